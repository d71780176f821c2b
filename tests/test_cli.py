from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import assetscore
from assetscore import ResultTable
from assetscore.cli import main
from assetscore.encoders.pixelstats import PixelStats
from assetscore.folders import data_folder

from .conftest import sprite
from .png import RGBA, png


@pytest.fixture
def drawn(references: assetscore.ReferenceSet) -> str:
    """A profile of the drawn references, by name."""
    assetscore.Profile.build(references, PixelStats(), name="drawn").save(data_folder() / "drawn")
    return "drawn"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def good_asset(profile: str) -> np.ndarray:
    """A new drawing that passes: found among many, so that the test does not depend on one seed."""
    scorer = assetscore.Scorer.load(profile)
    return next(s for s in (sprite(i) for i in range(5000, 5100)) if scorer.score(s, "item").passed)


class TestScore:
    def test_exit_codes(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        good, bad = tmp_path / "good.png", tmp_path / "bad.png"
        good.write_bytes(png(good_asset(drawn), RGBA))
        bad.write_bytes(png(np.random.default_rng(0).integers(0, 256, (16, 16, 4)), RGBA))
        clear = tmp_path / "clear.png"
        clear.write_bytes(png(np.zeros((16, 16, 4), np.uint8), RGBA))
        score = ("score", "-c", "item", "--profile", drawn)
        assert run(*score, good) == 0
        assert run(*score, good, clear) == 0
        assert run(*score, good, bad) == 1
        assert run(*score, good, tmp_path / "gone.png") == 1
        capsys.readouterr()
        assert run(*score[:2], "gui", "--profile", drawn, good) == 2
        err = capsys.readouterr().err
        assert "block, item" in err
        assert "Traceback" not in err
        assert run("score", good, "-c", "item", "--profile", "nobody") == 2
        assert run("score", "-c", "item") == 2
        assert run(*score, good, "--alpha", "2") == 2
        assert run(*score, good, "--rule", "median") == 2

    def test_json_is_what_the_library_says(
        self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "a.png"
        path.write_bytes(png(sprite(5000), RGBA))
        run("score", path, "-c", "item", "--profile", drawn, "--json")
        out = capsys.readouterr()
        (printed,) = json.loads(out.out)
        expected = assetscore.score(path, "item", profile=drawn).to_dict()
        assert printed == json.loads(json.dumps(expected))

    def test_names_are_not_markup(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "[red]x[bold] [link=x].png"
        path.write_bytes(png(sprite(5000), RGBA))
        run("score", path, "-c", "item", "--profile", drawn)
        assert "[red]x[bold] [link=x].png" in capsys.readouterr().out.replace("\n", "")


class TestBatch:
    def folder(self, tmp_path: Path) -> Path:
        root = tmp_path / "mod"
        (root / "item").mkdir(parents=True)
        for i in range(3):
            (root / "item" / f"ruby_sword_{i}.png").write_bytes(png(sprite(5000 + i), RGBA))
        (root / "item" / "broken.png").write_bytes(b"x")
        return root

    def test_files_and_table(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "out"
        assert run("batch", self.folder(tmp_path), "--profile", drawn, "--out", out) == 1
        printed = capsys.readouterr().out
        assert "references (leave-one-out)" in printed
        assert "mod" in printed
        assert sorted(p.name for p in out.iterdir()) == ["report.html", "results.csv", "results.parquet", "summary.csv"]
        table = ResultTable.read(out / "results.parquet")
        assert table.rows == ResultTable.read(out / "results.csv").rows
        assert [row.status for row in table] == ["unreadable", "scored", "scored", "scored"]

    @pytest.mark.parametrize("options", [("--alpha", "0.3"), ("--k", "3"), ("--rule", "linear")])
    def test_other_numbers_reach_the_report(self, drawn: str, tmp_path: Path, options: tuple[str, str]) -> None:
        out = tmp_path / "out"
        assert run("batch", self.folder(tmp_path), "--profile", drawn, "--out", out, *options) == 1
        assert (out / "report.html").stat().st_size > 1000

    def test_requests_from_ids(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run("batch", self.folder(tmp_path), "--requests", "ids", "--json")
        rows = json.loads(capsys.readouterr().out)["rows"]
        wanted = {"ruby sword"} if assetscore.Profile.load("dungeon-crawl").conditional else {None}
        assert {row["sem_factor"] for row in rows if row["status"] == "scored"} == wanted

    @pytest.mark.parametrize("format", ["text", "markdown", "csv", "latex"])
    def test_formats(self, drawn: str, tmp_path: Path, format: str, capsys: pytest.CaptureFixture[str]) -> None:
        run("batch", self.folder(tmp_path), "--profile", drawn, "--format", format)
        assert "mod" in capsys.readouterr().out

    def test_nothing_to_score(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "empty").mkdir()
        assert run("batch", tmp_path / "empty", "--profile", drawn, "--out", tmp_path / "out") == 2
        assert "nothing to score" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    def test_no_folder_of_a_known_category(
        self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "mod" / "itemz").mkdir(parents=True)
        (tmp_path / "mod" / "itemz" / "a.png").write_bytes(png(sprite(5000), RGBA))
        assert run("batch", tmp_path / "mod", "--profile", drawn) == 2
        assert "block, item" in capsys.readouterr().err

    def test_folders_with_a_dot_in_their_name_stay_apart(
        self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for model in ("claude-3.5", "claude-3.7"):
            (tmp_path / model / "item").mkdir(parents=True)
            (tmp_path / model / "item" / "a.png").write_bytes(png(sprite(5000), RGBA))
        run("batch", tmp_path / "claude-3.5", tmp_path / "claude-3.7", "--profile", drawn, "--json")
        groups = [row["group"] for row in json.loads(capsys.readouterr().out)["summary"]]
        assert groups[1:] == ["claude-3.5", "claude-3.7"]

    def test_an_impossible_out_is_told_before_scoring(
        self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "file").write_text("x")
        for out in (tmp_path / "file", tmp_path / "file" / "deeper"):
            assert run("batch", self.folder(tmp_path / f"for {out.name}"), "--profile", drawn, "--out", out) == 2
            assert "--out" in capsys.readouterr().err
            assert run("demo", "--out", out) == 2

    def test_wrong_use(self, drawn: str, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        assert run("batch", tmp_path / "gone") == 2
        assert run("batch", folder, "--requests", "names") == 2
        assert run("batch", folder, "--profile", drawn, "--by", "colour") == 2
        assert run("batch", folder, "--profile", drawn, "--format", "word") == 2


class TestProfile:
    def test_build_show_list(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for category, start in (("item", 0), ("block", 100)):
            (tmp_path / "art" / category).mkdir(parents=True)
            for i in range(start, start + 20):
                (tmp_path / "art" / category / f"{i}.png").write_bytes(png(sprite(i), RGBA))
        assert run("profile", "build", tmp_path / "art", "--name", "mine", "--encoder", "pixelstats") == 0
        assert "leave-one-out" in capsys.readouterr().out
        assert run("profile", "list") == 0
        assert "mine" in capsys.readouterr().out
        assert run("profile", "show", "mine", "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["categories"] == {"block": 20, "item": 20}
        assert shown["thresholds"][0]["tau"] == assetscore.Profile.load("mine").calibration(
            "block", "art style"
        ).threshold(0.15, 5)

    def test_wrong_use(self, tmp_path: Path) -> None:
        assert run("profile", "build", tmp_path / "gone") == 2
        assert run("profile", "build", tmp_path, "--game", "chess") == 2
        assert run("profile", "build", tmp_path, "--name", "../x") == 2
        assert run("profile", "build", tmp_path, "--encoder", "nobody") == 2
        assert run("profile", "show", "nobody") == 2


def test_encoders(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("encoders", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["pixelstats"]["installed"]
    assert not rows["pixelstats"]["conditional"]
    assert run("encoders") == 0
    assert "pixelstats" in capsys.readouterr().out


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("demo", "--out", tmp_path / "demo", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["rows"]) == 102
    assert result["auroc"] > result["size_only_auroc"]
    own = [row["style_margin"] for row in result["rows"] if row["group"] == "own art"]
    foreign = [row["style_margin"] for row in result["rows"] if row["group"] != "own art"]
    pairs = [(a > b) + (a == b) / 2 for a in own for b in foreign]
    assert result["auroc"] == pytest.approx(sum(pairs) / len(pairs))
    assert "data:image/png" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")


def test_stdout_is_for_results(drawn: str, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(sprite(5000), RGBA))
    command = [sys.executable, "-m", "assetscore", "score", path, "-c", "item", "--profile", drawn, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    json.loads(done.stdout)
