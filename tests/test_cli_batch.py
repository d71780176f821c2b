"""The command `batch` on mods, benchmark folders and manifests: exit codes, files, resuming, tables."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import assetscore
from assetscore import ResultTable
from assetscore.cache import default_path
from assetscore.encoders.pixelstats import PixelStats
from assetscore.folders import data_folder

from .conftest import sprite
from .makers_games import model, png, rawimg, tmod, write_tree, zip_bytes
from .test_cli import run


@pytest.fixture
def drawn(references: assetscore.ReferenceSet) -> str:
    assetscore.Profile.build(references, PixelStats(), name="drawn").save(data_folder() / "drawn")
    return "drawn"


def mod(*seeds: int) -> dict[str, bytes]:
    files = {}
    for seed in seeds:
        files[f"assets/ruby/textures/item/gem_{seed}.png"] = png(sprite(seed))
        files[f"assets/ruby/models/item/gem_{seed}.json"] = model("item/generated", layer0=f"ruby:item/gem_{seed}")
    return files


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Two configurations of a model and three tasks, in both games."""
    root = tmp_path / "runs"
    for i, name in enumerate(("alpha", "beta")):
        start = 5000 + 100 * i
        write_tree(root / name / "swords", mod(start, start + 1, start + 2))
        write_tree(root / name, {"gems.jar": zip_bytes(mod(start + 3, start + 4))})
        write_tree(root / name, {"boss.tmod": tmod({"Items/Axe.rawimg": rawimg(sprite(start + 5))})})
    return root


def json_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, list[dict[str, object]]]:
    capsys.readouterr()
    assert run("batch", *arguments, "--json") in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


class TestMods:
    @pytest.mark.parametrize("kind", ["tree", "jar"])
    def test_registered_textures(
        self, kind: str, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        files = {**mod(5000), "assets/ruby/textures/item/loose.png": png(sprite(5001))}
        path = write_tree(tmp_path / "tree", files)
        if kind == "jar":
            path = tmp_path / "mod.jar"
            path.write_bytes(zip_bytes(files))
        found = json_of(capsys, path, "--profile", drawn)
        rows = [(r["asset_id"], r["game"], r["use"], r["group"], r["task"]) for r in found["rows"]]
        assert rows == [("ruby:item/gem_5000", "minecraft", "sprite", path.stem, "")]
        assert {line["game"] for line in found["summary"]} == {"minecraft"}
        uses = ("--uses", "sprite,unreferenced", "--by", "use", "--requests", "ids")
        assert [r["asset_id"] for r in json_of(capsys, path, "--profile", drawn, *uses)["rows"]] == [
            "ruby:item/gem_5000",
            "ruby:item/loose",
        ]
        assert len(json_of(capsys, path, "--profile", drawn, "--uses", "unreferenced")["rows"]) == 1

    def test_a_mod_as_a_folder_of_pictures(
        self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        root = write_tree(tmp_path / "tree", {**mod(5000), "assets/ruby/textures/item/loose.png": png(sprite(5001))})
        rows = json_of(capsys, root, "--profile", drawn, "--game", "folder")["rows"]
        assert [row["asset_id"] for row in rows] == [
            "assets/ruby/textures/item/gem_5000.png",
            "assets/ruby/textures/item/loose.png",
        ]

    def test_pictures_of_an_archive_are_in_the_report(self, drawn: str, tmp_path: Path) -> None:
        (tmp_path / "mod.jar").write_bytes(zip_bytes(mod(5000)))
        (tmp_path / "mod.tmod").write_bytes(tmod({"Items/Axe.rawimg": rawimg(sprite(5001))}))
        for name in ("mod.jar", "mod.tmod"):
            run("batch", tmp_path / name, "--profile", drawn, "--out", tmp_path / "out")
            page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
            [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
            (row,) = json.loads(text)["rows"]
            assert row["picture"] is not None

    def test_an_empty_mod_among_others(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        empty = write_tree(tmp_path / "empty", {"fabric.mod.json": b"{}"})
        other = write_tree(tmp_path / "other", mod(5000))
        assert run("batch", empty, other, "--profile", drawn) in (0, 1)
        assert "no textures to score" in capsys.readouterr().err
        assert run("batch", empty, "--profile", drawn, "--out", tmp_path / "out") == 2
        assert "nothing to score" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    def test_a_hostile_archive_is_a_row(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "evil\x1b[2J.jar").write_bytes(zip_bytes({"../../evil.png": png(1)}))
        good = write_tree(tmp_path / "good", mod(5000))
        assert run("batch", tmp_path / "evil\x1b[2J.jar", good, "--profile", drawn) == 1
        out, err = capsys.readouterr()
        assert "cannot be read" in err
        assert "\x1b[2J" not in out + err

    def test_a_plain_folder_stays_one(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        root = write_tree(tmp_path / "mine", {"items/a.png": png(sprite(5000)), "deep/block/b.png": png(sprite(5001))})
        rows = json_of(capsys, root, "--profile", drawn)["rows"]
        assert [(r["asset_id"], r["category"], r["game"]) for r in rows] == [
            ("deep/block/b.png", "block", ""),
            ("items/a.png", "item", ""),
        ]

    def test_near_copies_are_said(self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        near = sprite(7).copy()
        near[8, 8, :3] ^= 16
        root = write_tree(tmp_path / "mine", {"item/a.png": png(near)})
        (row,) = json_of(capsys, root, "--profile", drawn)["rows"]
        assert row["flags"] == ["near copy: a copy of item/7 with 1 pixel changed"]

    def test_embeddings_are_kept_unless_told_not_to(self, drawn: str, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mine", {"item/a.png": png(sprite(5000))})
        run("batch", root, "--profile", drawn, "--no-cache")
        assert not default_path().exists()
        run("batch", root, "--profile", drawn)
        assert default_path().exists()


class TestBenchmark:
    def test_files_tables_and_resuming(
        self, drawn: str, benchmark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "out"
        arguments = ("batch", "--submissions", benchmark, "--profile", drawn, "--out", out, "--pair", "alpha", "beta")
        code = run(*arguments)
        printed, told = capsys.readouterr()
        assert "scored before" not in told
        table = ResultTable.read(out / "results.parquet")
        assert code == (1 if any(row.both_pass is False for row in table) else 0)
        assert sorted(path.name for path in out.iterdir()) == [
            "ablation.csv",
            "parts",
            "report-minecraft.html",
            "report-terraria.html",
            "results.csv",
            "results.parquet",
            "summary.csv",
        ]
        assert len(table) == 12
        assert {(row.group, row.task, row.game) for row in table} == {
            (model, task, game)
            for model in ("alpha", "beta")
            for task, game in (("swords", "minecraft"), ("gems", "minecraft"), ("boss", "terraria"))
        }
        first, second, third = printed.split("\n\n")
        assert first.startswith("Minecraft  ")
        assert second.startswith("Terraria  ")
        assert third.startswith("game  ")
        summary = list(csv.DictReader(io.StringIO((out / "summary.csv").read_text())))
        assert [(line["game"], line["group"], line["N"]) for line in summary] == [
            ("minecraft", "references (leave-one-out)", "60"),
            ("minecraft", "alpha", "5"),
            ("minecraft", "beta", "5"),
            ("terraria", "references (leave-one-out)", "60"),
            ("terraria", "alpha", "1"),
            ("terraria", "beta", "1"),
        ]
        for line in summary:
            rows = [r for r in table if (r.game, r.group) == (line["game"], line["group"])]
            if rows:
                assert float(line["Pass_style"]) == pytest.approx(
                    np.mean([r.style_pass is True for r in rows]), abs=1e-6
                )
        page = (out / "report-minecraft.html").read_text(encoding="utf-8")
        assert "Two configurations" in page
        assert "Difference over 2 tasks" in page
        assert "alpha/swords/ruby:item/gem_5000" in page
        assert run(*arguments) == code
        again, told = capsys.readouterr()
        assert "6 of 6 submissions were scored before" in told
        assert again == printed
        assert ResultTable.read(out / "results.parquet").rows == table.rows

    def test_a_manifest_of_submissions_needs_no_option(
        self, drawn: str, benchmark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_tree(tmp_path, {"task.json": b'{"ruby:item/gem_5000": "a red gem"}'})
        (tmp_path / "m.csv").write_text(
            "submission,model,task,config,requests\n"
            "runs/alpha/swords,GPT,swords,plain,task.json\n"
            "runs/beta/swords,GPT,swords,tools,\n"
            "runs/beta/gone.jar,GPT,gone,tools,\n"
        )
        found = json_of(capsys, tmp_path / "m.csv", "--profile", drawn, "--pair", "GPT (plain)", "GPT (tools)")
        assert [row["status"] for row in found["rows"]] == ["scored"] * 6 + ["missing"]
        (part,) = (part for part in found["ablation"] if part["game"] == "minecraft")
        assert part["n"] == [3, 4]  # the missing one counts in the only game of the run

    def test_profiles_by_game(
        self, drawn: str, benchmark: Path, references: assetscore.ReferenceSet, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assetscore.Profile.build(references, PixelStats(), name="other").save(data_folder() / "other")
        profiles = ("--profile", "minecraft=drawn", "--profile", "terraria=other")
        rows = json_of(capsys, "--submissions", benchmark, *profiles)["rows"]
        assert {(row["game"], row["profile"]) for row in rows} == {("minecraft", "drawn"), ("terraria", "other")}
        assert run("batch", "--submissions", benchmark, "--profile", "minecraft=drawn") == 2
        assert "no profile for terraria" in capsys.readouterr().err

    @pytest.mark.parametrize("command", [["batch", "."], ["sweep"], ["agree", "votes.csv", "results.csv"]])
    def test_one_output_has_one_format(
        self, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("votes.csv", "results.csv"):
            (tmp_path / name).touch()
        assert run(*command, "--json", "--format", "csv") == 2
        assert "leave one of them out" in " ".join(capsys.readouterr().err.split())

    @pytest.mark.parametrize("format", ["text", "markdown", "csv", "latex"])
    def test_formats(self, format: str, drawn: str, benchmark: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ("--submissions", benchmark, "--profile", drawn, "--format", format, "--intervals")
        run("batch", *arguments, "--columns", "pass", "--pair", "alpha", "beta")
        out = capsys.readouterr().out
        assert "Custom" not in out
        assert "difference over 2 tasks" in out
        assert "alpha" in out

    def test_a_model_without_textures_is_in_every_table(
        self, drawn: str, benchmark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_tree(benchmark / "nobody", {"swords/fabric.mod.json": b"{}", "gems/x.txt": b""})
        arguments = ("--submissions", benchmark, "--profile", drawn, "--pair", "alpha", "nobody")
        for format, line in (
            ("text", r"nobody +0 +- +- +- +- +- +-\n"),
            ("markdown", r"\| nobody \| 0 \| - \| - \| - \| - \| - \| - \|"),
            ("csv", r"minecraft,nobody,0,,,,,,\n"),
            ("latex", r"nobody & 0 & - & - & - & - & - & - \\\\"),
        ):
            assert run("batch", *arguments, "--format", format, "--out", tmp_path / "out") in (0, 1)
            shown = capsys.readouterr()
            assert len(re.findall(line, shown.out)) == 1, shown.out
        assert "nobody/swords: no textures to score" in shown.err
        assert re.search(r"minecraft,nobody,0,,+\n", (tmp_path / "out" / "summary.csv").read_text())
        assert re.search(r"minecraft,nobody,0,,+\n", (tmp_path / "out" / "ablation.csv").read_text())
        page = (tmp_path / "out" / "report-minecraft.html").read_text(encoding="utf-8")
        assert re.search(r'<bdi>nobody</bdi></th>\s*<td data-label="Assets">0</td>', page)
        assert "<bdi>nobody/swords: no textures to score</bdi>" in page
        found = json_of(capsys, *arguments)
        (line,) = (line for line in found["summary"] if line["group"] == "nobody")
        assert (line["game"], line["n"]) == ("minecraft", 0)

    @pytest.mark.parametrize(
        ("pair", "words"),
        [
            (("alpha", "nobody"), "no submission of 'nobody'; there are: alpha, beta"),
            (("alpha", "alpha"), "two groups, got 'alpha' twice"),
            (("alpha", "other"), "no game in common"),
        ],
    )
    def test_a_wrong_pair_is_told_before_anything_is_scored(
        self, pair: tuple[str, str], words: str, drawn: str, benchmark: Path, tmp_path: Path,
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:  # fmt: skip
        if "other" in pair:
            write_tree(benchmark / "other", {"x/item/a.png": png(1)})
        monkeypatch.setattr("assetscore.benchmark.run_benchmark", lambda *_, **__: pytest.fail("scored"))
        out = tmp_path / "out"
        assert run("batch", "--submissions", benchmark, "--profile", drawn, "--pair", *pair, "--out", out) == 2
        assert words in capsys.readouterr().err
        assert not out.exists()

    def test_a_pair_of_a_manifest_of_assets(
        self, drawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_tree(tmp_path, {"a.png": png(sprite(1)), "b.png": png(sprite(2))})
        write_tree(tmp_path, {"m.csv": b"path,category,group\na.png,item,one\nb.png,item,two\n"})
        assert run("batch", tmp_path / "m.csv", "--profile", drawn, "--pair", "one", "two") in (0, 1)
        assert run("batch", tmp_path / "m.csv", "--profile", drawn, "--pair", "one", "three") == 2
        assert "there are: one, two" in capsys.readouterr().err

    def test_results_within_the_submissions(
        self, drawn: str, benchmark: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for out in (benchmark / "out", benchmark / "alpha" / "out", benchmark):
            for again in (False, True):
                assert run("batch", "--submissions", benchmark, "--profile", drawn, "--out", out) in (0, 1)
                assert ("6 of 6 submissions were scored before" in capsys.readouterr().err) == again
                assert len(ResultTable.read(out / "results.parquet")) == 12
        inside = benchmark / "alpha" / "swords" / "out"
        assert run("batch", "--submissions", benchmark, "--profile", drawn, "--out", inside) == 2
        assert "lies inside the submission" in capsys.readouterr().err
        assert not inside.exists()

    @pytest.mark.parametrize(
        "wrong",
        ["file", "below a file", "parts", "a link", "results.parquet", "summary.csv", "report.html", "too long"],
    )
    def test_where_nothing_can_be_written_is_told_first(
        self, wrong: str, drawn: str, benchmark: Path, tmp_path: Path,
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:  # fmt: skip
        monkeypatch.setattr("assetscore.benchmark.run_benchmark", lambda *_, **__: pytest.fail("scored"))
        out = named = tmp_path / "out"
        if wrong == "file":
            out.write_bytes(b"")
        elif wrong == "below a file":
            named.write_bytes(b"")
            out = out / "deep" / "er"
        elif wrong == "parts":
            named = out / "parts"
            write_tree(out, {"parts": b""})
        elif wrong == "a link":
            out.symlink_to(tmp_path / "nowhere")
        elif wrong == "too long":
            out = named = tmp_path / ("x" * 300)
        else:
            named = out / wrong
            named.mkdir(parents=True)
        assert run("batch", "--submissions", benchmark, "--profile", drawn, "--out", out) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"assetscore: --out {out}: ")
        assert str(named) in error
        assert "Errno" not in error

    def test_a_folder_of_task_files_for_what_is_no_benchmark(
        self, drawn: str, benchmark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_tree(tmp_path / "tasks", {"swords.json": b"{}"})
        source = benchmark / "alpha" / "swords"
        assert run("batch", source, "--profile", drawn, "--requests", tmp_path / "tasks") == 2
        assert "a folder of TASK.json goes with --submissions" in capsys.readouterr().err

    def test_wrong_use(self, drawn: str, benchmark: Path, tmp_path: Path) -> None:
        batch = ("batch", "--submissions", benchmark, "--profile", drawn)
        assert run(*batch, "--pair", "alpha", "nobody") == 2
        assert run(*batch, "--columns", "some") == 2
        assert run(*batch, "--by", "colour") == 2
        assert run(*batch, "--game", "chess") == 2
        assert run(*batch, "--uses", "sky") == 2
        assert run(*batch, "--requests", "gone.json") == 2
        assert run(*batch, "--profile", "minecraft=drawn", "--profile", "minecraft=drawn") == 2
        (tmp_path / "nothing").mkdir()
        assert run("batch", "--submissions", tmp_path / "nothing") == 2
        assert run("batch", "--submissions", tmp_path / "gone") == 2


def test_farmersdelight(mods: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, mods / "farmersdelight", "--by", "use")
    assert {line["group"]: line["n"] for line in found["summary"][1:]} == {"flat": 98, "sprite": 147, "entity": 34}
