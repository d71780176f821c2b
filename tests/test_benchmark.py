"""Benchmark runs: what is found, scored, kept, resumed and summarised; one bad submission is one row."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assetscore import Profile, ReferenceSet, ResultTable, Scorer
from assetscore.benchmark import BenchmarkRun, run_benchmark
from assetscore.cache import EmbeddingCache
from assetscore.encoders.pixelstats import PixelStats
from assetscore.entries import Entry, find_entries, is_benchmark_manifest
from assetscore.errors import EncoderError, ManifestError, UsageError
from assetscore.parts import Part, read_part, write_part
from assetscore.results import UNDECIDED
from assetscore.submissions import minecraft
from assetscore.summary import leave_one_out_row, summarise_games
from assetscore.table import Row

from .conftest import Conditional, sprite
from .makers_games import model, png, tmod, write_tree, zip_bytes


def mod(*seeds: int, namespace: str = "ruby") -> dict[str, bytes]:
    """A Minecraft mod of one item a seed, drawn like the references."""
    files = {}
    for seed in seeds:
        name = f"gem_{seed}"
        files[f"assets/{namespace}/textures/item/{name}.png"] = png(sprite(seed))
        files[f"assets/{namespace}/models/item/{name}.json"] = model(
            "item/generated", layer0=f"{namespace}:item/{name}"
        )
    return files


ITEM = "assets/ruby/textures/item"


def in_mod(files: dict[str, bytes]) -> dict[str, bytes]:
    """Pictures "item/NAME.png" as items of a Minecraft mod, each with its model."""
    inner = {name.replace("item/", f"{ITEM}/"): content for name, content in files.items()}
    for name in files:
        if name.endswith(".png"):
            stem = name.removeprefix("item/").removesuffix(".png")
            inner[f"assets/ruby/models/item/{stem}.json"] = model("item/generated", layer0=f"ruby:item/{stem}")
    return inner


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two models and three tasks: a tree, a jar, a .tmod, category subfolders, an empty mod."""
    root = tmp_path / "submissions"
    write_tree(root / "alpha" / "swords", mod(2001, 2002, 2003))
    write_tree(root / "alpha", {"gems.jar": zip_bytes(mod(2004, 2005))})
    write_tree(root / "alpha", {"boss.tmod": tmod({"Items/Axe.png": png(sprite(2006)), "NPCs/Boss.png": png(3)})})
    write_tree(root / "beta" / "swords", {"item/a.png": png(sprite(2007)), "block/b.png": png(5), "item/c.png": b"x"})
    write_tree(root / "beta" / "gems", {"fabric.mod.json": b"{}"})
    write_tree(root / "beta", {"boss.tmod": tmod({"Items/Axe.png": png(sprite(2008))}), "notes.txt": b"no submission"})
    write_tree(root, {"README.md": b"not a model", ".git/x/y": b""})
    return root


@pytest.fixture
def scorer(references: ReferenceSet) -> Scorer:
    return Scorer(Profile.build(references, Conditional(), name="drawn"))


def passes(scorer: Scorer) -> int:
    encoder = scorer.profile.encoder
    assert isinstance(encoder, Conditional)
    return encoder.image_passes


class TestEntries:
    def test_folder(self, root: Path) -> None:
        found = [(e.model, e.task, e.path.name) for e in find_entries(root)]
        assert found == [
            ("alpha", "boss", "boss.tmod"),
            ("alpha", "gems", "gems.jar"),
            ("alpha", "swords", "swords"),
            ("beta", "boss", "boss.tmod"),
            ("beta", "gems", "gems"),
            ("beta", "swords", "swords"),
        ]

    def test_manifests(self, root: Path, tmp_path: Path) -> None:
        write_tree(tmp_path, {"task.json": b'{"ruby:item/gem_2004": "a red gem"}'})
        (tmp_path / "m.csv").write_text(
            "\ufeffsubmission,model,task,game,config,requests\n"
            "submissions/alpha/gems.jar,Alpha,gems,minecraft,with tools,task.json\n"
            "submissions/alpha/gems.jar,Alpha,gems,,plain,ids\n",
            encoding="utf-8",
        )
        first, second = find_entries(tmp_path / "m.csv", game="auto")
        assert (first.group, first.task, first.game) == ("Alpha (with tools)", "gems", "minecraft")
        assert first.prefix == "Alpha (with tools)/gems/"
        assert first.requests == tmp_path / "task.json"
        assert (second.group, second.game, second.requests) == ("Alpha (plain)", "auto", "ids")
        (tmp_path / "m.jsonl").write_text(
            '{"submission": "submissions/alpha/gems.jar", "model": "Alpha", "task": "gems"}\n\n'
        )
        assert find_entries(tmp_path / "m.jsonl") == [Entry(root / "alpha" / "gems.jar", "Alpha", "gems")]

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("m.csv", "submission,model\na,b\n", "'task' is missing"),
            ("m.csv", "submission,model,task\na,,c\n", "line 2: model is missing"),
            ("m.csv", "submission,model,task\na,b,c\nd,b,c\n", "line 3: 'b' answers 'c' in line 2"),
            ("m.csv", "submission,model,task,game\na,b,c,chess\n", "line 2: game must be one of auto"),
            ("m.jsonl", '{"submission": 1, "model": "b", "task": "c"}', "line 1: submission must be text"),
            ("m.jsonl", '{"submission": "a\\u0000", "model": "b", "task": "c"}', "line 1: a NUL"),
            ("m.jsonl", '{"submission": "a"', "line 1: no JSON"),
            ("m.csv", "path,category\na,b\n", "expected a folder"),
            ("m.txt", "submission,model,task\n", "expected a folder"),
        ],
    )
    def test_mistakes_name_the_line(self, name: str, content: str, words: str, tmp_path: Path) -> None:
        (tmp_path / name).write_text(content)
        with pytest.raises(ManifestError, match=words):
            find_entries(tmp_path / name)

    @pytest.mark.parametrize(
        ("first", "second", "distinct"),
        [
            ("b,c,minecraft,", "b,c,terraria,", True),
            ("b,c,minecraft,", "b,c,minecraft,", False),
            ("b,c,,", "b,c,minecraft,", False),
            ("b,c,terraria,", "b,c,auto,", False),
            ("b,c,,one", "b,c,,two", True),
            ("b (one),c,,", "b,c,,one", False),
            ("b/x,c,,", "b,x/c,,", False),
        ],
    )
    def test_one_answer_to_a_task(self, first: str, second: str, distinct: bool, tmp_path: Path) -> None:
        """Two rows whose ids could meet are refused; a task that is told to be of each game is two."""
        path = tmp_path / "m.csv"
        path.write_text(f"submission,model,task,game,config\nx,{first}\nx,{second}\n")
        if not distinct:
            with pytest.raises(ManifestError, match=r"line 3: .* in line 2 already"):
                find_entries(path)
            return
        entries = find_entries(path)
        assert len(entries) == 2

    @pytest.mark.parametrize("second", ["t.zip", "t.JAR", "t.tmod", "t"])
    def test_two_files_of_one_task(self, second: str, tmp_path: Path) -> None:
        write_tree(tmp_path, {"A/t.jar": b"", "A/t2.jar": b""})
        if second == "t":
            (tmp_path / "A" / "t").mkdir()
        else:
            write_tree(tmp_path, {f"A/{second}": b""})
        with pytest.raises(ManifestError) as caught:
            find_entries(tmp_path)
        assert str(tmp_path / "A" / second) in str(caught.value)
        assert str(tmp_path / "A" / "t.jar") in str(caught.value)

    def test_the_same_answer_in_two_folders(self, root: Path, scorer: Scorer, tmp_path: Path) -> None:
        write_tree(tmp_path / "more", {"alpha/gems.jar": zip_bytes(mod(1))})
        with pytest.raises(ManifestError, match="'alpha' answers 'gems' in"):
            run_benchmark([*find_entries(root), *find_entries(tmp_path / "more")], {"": scorer})

    def test_ids_of_both_games_never_meet(self, scorer: Scorer, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_text("submission,model,task,game\nx/a,b,c,minecraft\ny/a,b,c,terraria\n")
        ids = [row.asset_id for row in run_benchmark(find_entries(tmp_path / "m.csv"), {"": scorer}).table]
        assert len(set(ids)) == len(ids) == 2

    @pytest.mark.parametrize("place", ["out", "alpha/out", "."])
    @pytest.mark.parametrize("state", ["whole", "interrupted", "killed while writing"])
    def test_results_are_no_submission(self, place: str, state: str, root: Path, scorer: Scorer) -> None:
        before = find_entries(root)
        out = root / place
        run_benchmark(before, {"": scorer}, parts=out / "parts")
        if state == "whole":
            write_tree(
                out, dict.fromkeys(("results.parquet", "results.csv", "summary.csv", "report-terraria.html"), b"")
            )
        if state == "killed while writing":
            write_tree(out, {"parts/.0123.tmp": b"PAR", ".4567.tmp": b""})
        assert find_entries(root) == before

    def test_a_submission_with_such_files_among_its_own_is_none_of_ours(self, root: Path) -> None:
        before = find_entries(root)
        write_tree(root / "alpha" / "swords", {"results.parquet": b"", "parts/x.png": png(1)})
        write_tree(root / "beta" / "wheels", {"parts/wheel.png": png(1)})
        found = find_entries(root)
        assert [e.task for e in found if e not in before] == ["wheels"]
        assert len(found) == len(before) + 1

    def test_a_manifest_of_assets_is_none_of_submissions(self, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_text("path,category\n")
        assert not is_benchmark_manifest(tmp_path / "m.csv")
        assert not is_benchmark_manifest(tmp_path / "gone.csv")
        assert not is_benchmark_manifest(tmp_path)

    def test_requests_of_a_folder_of_tasks(self, root: Path, tmp_path: Path) -> None:
        write_tree(tmp_path, {"tasks/gems.json": b'{"ruby:item/gem_2004": "a red gem"}'})
        found = {(e.model, e.task): e.requests for e in find_entries(root, requests=tmp_path / "tasks")}
        assert found["alpha", "gems"] == tmp_path / "tasks" / "gems.json"
        assert found["alpha", "swords"] is None
        write_tree(tmp_path, {"wrong/swordz.json": b"{}"})
        with pytest.raises(ManifestError, match=r"wrong holds a file for none of the tasks: boss\.json, gems\.json"):
            find_entries(root, requests=tmp_path / "wrong")


class TestRun:
    def test_rows(self, root: Path, scorer: Scorer) -> None:
        done = run_benchmark(find_entries(root), {"": scorer})
        rows = [(r.game, r.group, r.task, r.asset_id, r.category, r.status, r.use) for r in done.table]
        assert rows == [
            ("terraria", "alpha", "boss", "alpha/boss/Items/Axe", "item", "scored", "sprite"),
            ("terraria", "alpha", "boss", "alpha/boss/NPCs/Boss", "npc", "no_references", "sprite"),
            *(
                ("minecraft", "alpha", task, f"alpha/{task}/ruby:item/gem_{seed}", "item", "scored", "sprite")
                for task, seed in (("gems", 2004), ("gems", 2005), ("swords", 2001), ("swords", 2002), ("swords", 2003))
            ),
            ("terraria", "beta", "boss", "beta/boss/Items/Axe", "item", "scored", "sprite"),
            ("", "beta", "swords", "beta/swords/block/b.png", "block", "scored", ""),
            ("", "beta", "swords", "beta/swords/item/a.png", "item", "scored", ""),
            ("", "beta", "swords", "beta/swords/item/c.png", "item", "unreadable", ""),
        ]
        assert list(done.games) == ["minecraft", "terraria", ""]
        assert "beta/gems: no textures to score" in done.notes
        alone = scorer.score(sprite(2004), "item")
        (row,) = (r for r in done.table if r.asset_id.endswith("gem_2004"))
        assert (row.style_s, row.style_p, row.top_style) == (
            alone.style.similarity,
            alone.style.p_value,
            alone.style.top,
        )

    def test_each_game_has_its_profile(self, root: Path, scorer: Scorer) -> None:
        other = ReferenceSet.from_textures([(f"t{i}", "item", sprite(700 + i)) for i in range(30)], name="terra")
        terraria = Scorer(Profile.build(other, Conditional(), name="terra"), alpha=0.3)
        done = run_benchmark(find_entries(root), {"": scorer, "terraria": terraria})
        assert {(r.game, r.profile) for r in done.table} == {
            ("terraria", "terra"),
            ("minecraft", "drawn"),
            ("", "drawn"),
        }
        assert done.games["terraria"] is terraria
        summary = summarise_games(done.table, done.games)
        assert summary["terraria"][0] == leave_one_out_row(terraria.profile, alpha=0.3)
        assert [line.group for line in summary["minecraft"]] == ["references (leave-one-out)", "alpha"]
        with pytest.raises(UsageError, match="no profile for folders of pictures: there are minecraft, terraria"):
            run_benchmark(find_entries(root), {"minecraft": scorer, "terraria": terraria})

    def test_requests(self, root: Path, scorer: Scorer) -> None:
        def asked(requests: object) -> tuple[dict[str, str | None], BenchmarkRun]:
            entries = find_entries(root, requests=requests)  # type: ignore[arg-type]
            done = run_benchmark([e for e in entries if e.task == "gems"], {"": scorer})
            return {r.asset_id.rpartition("/")[2]: r.sem_factor for r in done.table}, done

        assert asked("ids")[0] == {"gem_2004": "gem", "gem_2005": "gem"}
        factors, done = asked({"ruby:item/gem_2004": "a red gem", "ruby:item/gem_9": "x"})
        assert factors == {"gem_2004": "a red gem", "gem_2005": "object class"}
        assert "alpha/gems: 1 requests name no asset: ruby:item/gem_9" in done.notes

    def test_uses(self, root: Path, scorer: Scorer) -> None:
        (root / "alpha/swords/assets/ruby/models/item/gem_2001.json").unlink()
        entries = [e for e in find_entries(root) if (e.model, e.task) == ("alpha", "swords")]
        counts = {
            uses: len(run_benchmark(entries, {"": scorer}, uses=uses).table)  # type: ignore[arg-type]
            for uses in (("sprite",), ("unreferenced",), ("sprite", "unreferenced"))
        }
        assert counts == {("sprite",): 2, ("unreferenced",): 1, ("sprite", "unreferenced"): 3}
        with pytest.raises(UsageError, match="uses: known are"):
            run_benchmark(entries, {"": scorer}, uses=("sky",))  # type: ignore[arg-type]

    def test_near_copies_are_flagged_and_scored(self, root: Path, scorer: Scorer) -> None:
        near = sprite(7).copy()
        near[8, 8, :3] ^= 16
        write_tree(root / "alpha" / "swords", {"assets/ruby/textures/item/gem_2001.png": png(near)})
        entries = [e for e in find_entries(root) if e.task == "swords"]
        for copies in (True, False):
            done = run_benchmark(entries, {"": scorer}, copies=copies)
            (row,) = (r for r in done.table if r.asset_id.endswith("gem_2001"))
            assert row.status == "scored"
            assert row.flags == (("near copy: a copy of item/7 with 1 pixel changed",) if copies else ())

    def test_the_cache_changes_nothing(self, root: Path, references: ReferenceSet, tmp_path: Path) -> None:
        tables = []
        for cache in (None, EmbeddingCache(tmp_path / "c.sqlite"), EmbeddingCache(tmp_path / "c.sqlite")):
            encoder = Conditional()
            profile = Profile.build(references, encoder, name="drawn")
            tables.append(run_benchmark(find_entries(root), {"": Scorer(profile)}, cache=cache).table.rows)
            assert profile.encoder is encoder, "as it was before"
        assert tables[0] == tables[1] == tables[2]
        assert cache is not None
        assert (cache.hits, cache.misses) == (9, 0)

    def test_progress(self, root: Path, scorer: Scorer) -> None:
        told: list[tuple[int, int, int]] = []
        run_benchmark(find_entries(root), {"": scorer}, progress=lambda *done: told.append(done))
        assert told == sorted(told)
        assert told[-1] == (6, 11, 11)
        assert (2, 3, 4) not in told
        assert (1, 3, 4) in told, "one of the two gems is done, after the boss's two"


def traversal(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.png", png(1))


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(3):
            archive.writestr(f"assets/x/textures/item/{i}.png", bytes(60_000_000))


HOSTILE: dict[str, Callable[[Path], object]] = {
    "traversal": traversal,
    "bomb": bomb,
    "no zip": lambda path: path.write_bytes(b"hello"),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(zip_bytes(mod(1, 2))[:-30]),
}


class TestBadSubmissions:
    @pytest.mark.parametrize("kind", HOSTILE)
    def test_an_archive(self, kind: str, root: Path, scorer: Scorer) -> None:
        HOSTILE[kind](root / "alpha" / "gems.jar")
        done = run_benchmark(find_entries(root), {"": scorer})
        (row,) = (r for r in done.table if (r.group, r.task) == ("alpha", "gems"))
        assert (row.asset_id, row.status, row.both_pass, row.game) == (
            "alpha/gems/gems.jar",
            "unreadable",
            False,
            "minecraft",
        )
        assert "gems.jar" in row.reason
        assert any("alpha/gems: the submission cannot be read" in note for note in done.notes)
        assert len(done.table) == 10, "the others are scored"
        assert not list(root.rglob("evil.png"))
        assert not (root.parent / "evil.png").exists()

    def test_not_there(self, root: Path, scorer: Scorer) -> None:
        entries = [Entry(root / "gone.jar", "m", "t"), Entry(root / "README.md", "m", "u")]
        done = run_benchmark([*entries, *find_entries(root)], {"minecraft": scorer, "": scorer})
        assert [(r.asset_id, r.status, r.game) for r in done.table][:2] == [
            ("m/t/gone.jar", "missing", ""),
            ("m/u/README.md", "unreadable", ""),
        ]

    @pytest.mark.parametrize(
        ("name", "content"),
        [("gone.jar", None), ("gone", None), ("answer.txt", b"I cannot"), ("cut.zip", b"PK no zip"), ("pipe", "fifo")],
    )
    def test_the_game_of_what_cannot_be_read_is_that_of_the_tasks_other_answers(
        self, name: str, content: bytes | str | None, root: Path, scorer: Scorer, tmp_path: Path
    ) -> None:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content:
            os.mkfifo(path)
        others = [entry for entry in find_entries(root) if entry.model == "alpha"]
        for task, game in (("boss", "terraria"), ("gems", "minecraft")):
            for stated in ("auto", game):
                entries = [Entry(path, "beta", task, stated), *others]  # type: ignore[arg-type]
                for _ in range(2):  # the second from parts
                    done = run_benchmark(entries, {"": scorer}, parts=tmp_path / "parts")
                    (row,) = (row for row in done.table if row.group == "beta")
                    assert (row.game, row.both_pass) == (game, False)
                    assert row.status == ("missing" if content is None else "unreadable")
                    assert done.expected()[game] == list(dict.fromkeys(["beta", "alpha"])), "one table, two lines"
                    assert "" not in done.games
        (row,) = run_benchmark([Entry(path, "beta", "new"), others[0]], {"": scorer}).table.rows[:1]
        assert row.game == "terraria", "a task that nobody else answered: the run's only game"

    def test_a_reader_that_breaks(
        self, root: Path, scorer: Scorer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        read = minecraft.read

        def breaking(path, **options):  # type: ignore[no-untyped-def]
            if Path(path).name == "gems.jar":
                raise RecursionError("too deep")
            return read(path, **options)

        monkeypatch.setattr(minecraft, "read", breaking)
        with caplog.at_level(logging.ERROR):
            done = run_benchmark(find_entries(root), {"": scorer})
        (row,) = (r for r in done.table if r.status == "unreadable" and r.task == "gems")
        assert "RecursionError: too deep" in row.reason
        assert "Traceback" in caplog.text

    def test_an_encoder_that_cannot_run_ends_the_run(self, root: Path, scorer: Scorer, tmp_path: Path) -> None:
        class Gone(Conditional):
            def check_factor(self, factor: str) -> str:
                raise EncoderError("no weights")

        scorer.profile.use_encoder(Gone())
        entries = find_entries(root, requests="ids")
        with pytest.raises(EncoderError):
            run_benchmark(entries, {"": scorer}, parts=tmp_path / "parts")

    def test_outside_a_benchmark_it_is_an_error(self, tmp_path: Path, scorer: Scorer) -> None:
        with pytest.raises(UsageError, match=r"gone\.jar"):
            run_benchmark([Entry(tmp_path / "gone.jar", "m")], {"": scorer})


class TestWithoutTextures:
    """A submission that shows nothing has no row and still is one: its model and its task have a line, N = 0."""

    @pytest.fixture
    def blank(self, root: Path) -> Path:
        write_tree(root / "gamma", {"gems/fabric.mod.json": b"{}", "swords/readme.txt": b"I give up"})
        write_tree(root / "gamma", {"boss.tmod": tmod({"Sounds/x.txt": b""})})
        return root

    def test_lines(self, blank: Path, scorer: Scorer, tmp_path: Path) -> None:
        for _ in range(2):  # the second from parts
            done = run_benchmark(find_entries(blank), {"": scorer}, parts=tmp_path / "parts")
            lines = {
                game: {line.group: (line.n, line.pass_both.value) for line in rows[1:]}
                for game, rows in summarise_games(done.table, done.games, expected=done.expected()).items()
            }
            assert lines["minecraft"]["gamma"] == lines["terraria"]["gamma"] == (0, None)
            assert [list(groups) for groups in lines.values()] == [
                ["alpha", "beta", "gamma"],
                ["alpha", "beta", "gamma"],
                ["beta", "gamma"],
            ]
            assert sum("no textures to score" in note for note in done.notes) == 4
        by_task = summarise_games(done.table, done.games, "task", expected=done.expected("task"))
        assert {line.group: line.n for line in by_task["minecraft"][1:]} == {"gems": 2, "swords": 3}
        assert done.expected("category") == {}

    def test_a_task_that_nobody_answered(self, root: Path, scorer: Scorer) -> None:
        write_tree(root / "alpha", {"hats/fabric.mod.json": b"{}"})
        done = run_benchmark([e for e in find_entries(root) if e.model == "alpha"], {"": scorer})
        rows = summarise_games(done.table, done.games, "task", expected=done.expected("task"))["minecraft"]
        assert {line.group: line.n for line in rows[1:]} == {"gems": 2, "hats": 0, "swords": 3}

    def test_the_game_is_that_of_the_tasks_other_answers(self, root: Path, scorer: Scorer) -> None:
        """`gamma/boss` is an empty folder; the others answer that task with mods of Terraria."""
        (root / "gamma" / "boss").mkdir(parents=True)
        done = run_benchmark(find_entries(root), {"": scorer})
        assert ("terraria", "gamma", "boss") in done.lines
        alone = run_benchmark([e for e in find_entries(root) if e.model == "gamma"], {"": scorer})
        assert alone.lines == (("", "gamma", "boss"),)


class TestResume:
    def run(self, root: Path, scorer: Scorer, parts: Path | None, **options: object) -> BenchmarkRun:
        return run_benchmark(find_entries(root), {"": scorer}, parts=parts, **options)  # type: ignore[arg-type]

    def test_interrupted(self, root: Path, scorer: Scorer, references: ReferenceSet, tmp_path: Path) -> None:
        whole = self.run(root, scorer, None)

        class Stops(Conditional):
            def features(self, images):  # type: ignore[no-untyped-def]
                if self.image_passes >= 3:
                    raise KeyboardInterrupt
                return super().features(images)

        parts = tmp_path / "parts"
        profile = Profile.build(references, Conditional(), name="drawn")
        profile.use_encoder(Stops())
        with pytest.raises(KeyboardInterrupt):
            self.run(root, Scorer(profile), parts)
        finished = len(list(parts.glob("*.parquet")))
        assert 0 < finished < 6
        before = passes(scorer)
        again = self.run(root, scorer, parts)
        assert again.reused == finished
        assert again.table.rows == whole.table.rows
        assert again.notes == whole.notes
        assert passes(scorer) - before < 9
        last = self.run(root, scorer, parts)
        assert (last.reused, last.table.rows, last.notes) == (6, whole.table.rows, whole.notes)
        assert not [name for name in os.listdir(parts) if name.startswith(".")]

    def test_what_changed_is_scored_again(self, root: Path, scorer: Scorer, tmp_path: Path) -> None:
        parts = tmp_path / "parts"
        self.run(root, scorer, parts)
        assert self.run(root, scorer, parts).reused == 6
        texture = root / "alpha/swords/assets/ruby/textures/item/gem_2001.png"
        texture.write_bytes(png(sprite(2999)))
        changed = self.run(root, scorer, parts)
        assert changed.reused == 5
        (row,) = (r for r in changed.table if r.asset_id.endswith("gem_2001"))
        assert row.style_s == scorer.score(sprite(2999), "item").style.similarity
        assert self.run(root, Scorer(scorer.profile, alpha=0.3), parts).reused == 0
        assert self.run(root, Scorer(scorer.profile, k=3), parts).reused == 0
        assert self.run(root, scorer, parts, uses=("sprite",)).reused == 0
        assert self.run(root, scorer, parts, copies=False).reused == 0
        assert run_benchmark(find_entries(root, requests="ids"), {"": scorer}, parts=parts).reused == 0
        assert self.run(root, scorer, parts).reused == 6, "each setting has parts of its own"

    @pytest.mark.parametrize("kind", ["folder", "tree", "jar", "tmod", "manifest"])
    def test_every_kind_of_submission(self, kind: str, scorer: Scorer, tmp_path: Path) -> None:
        """Each step changes something that rows may depend on: that entry alone is scored again."""
        root = tmp_path / "runs"
        files = {"item/a.png": png(sprite(1)), "item/b.png": png(sprite(2))}
        write_tree(root, {"beta/other.jar": zip_bytes(mod(3))})
        make: dict[str, Callable[[dict[str, bytes]], object]] = {
            "folder": lambda files: write_tree(root / "alpha" / "t", files),
            "tree": lambda files: write_tree(root / "alpha" / "t", in_mod(files)),
            "jar": lambda files: write_tree(root, {"alpha/t.jar": zip_bytes(in_mod(files))}),
            "tmod": lambda files: write_tree(root, {"alpha/t.tmod": tmod(files)}),
            "manifest": lambda files: write_tree(tmp_path / "art", files),
        }
        write_tree(
            tmp_path, {"m.csv": f"submission,model,task\n{kind}.csv,alpha,t\nruns/beta/other.jar,beta,other\n".encode()}
        )
        if kind == "manifest":
            listed = "".join(f"art/item/{name}.png,item\n" for name in "abc")
            write_tree(tmp_path, {"manifest.csv": f"path,category\n{listed}".encode()})

        def entries() -> list[Entry]:
            return find_entries(tmp_path / "m.csv" if kind == "manifest" else root)

        make[kind](files)
        assert run_benchmark(entries(), {"": scorer}, parts=tmp_path / "parts").reused == 0
        steps: list[tuple[str, bytes | None]] = [
            ("item/a.png", png(sprite(4))),
            ("item/c.png", png(sprite(5))),
            ("item/b.png", b"no picture"),
            ("item/b.png", None),
        ]
        if kind != "tmod":
            tall = np.concatenate([sprite(6), sprite(7)])
            steps += [
                ("item/a.png.mcmeta", b'{"animation": {}}'),
                ("item/a.png", png(tall)),
                ("item/a.png.mcmeta", b'{"animation": {"frames": [1]}}'),
                ("item/a.png.mcmeta", None),
            ]
        for name, content in steps:
            if content is None:
                del files[name]
                for place in (root / "alpha" / "t", root / "alpha" / "t" / ITEM, tmp_path / "art"):
                    (place / (name if place.name != "item" else name.partition("/")[2])).unlink(missing_ok=True)
            else:
                files[name] = content
            make[kind](files)
            done = run_benchmark(entries(), {"": scorer}, parts=tmp_path / "parts")
            assert done.reused == 1, (kind, name)
            assert done.table.rows == run_benchmark(entries(), {"": scorer}).table.rows
            assert run_benchmark(entries(), {"": scorer}, parts=tmp_path / "parts").reused == 2

    def test_a_submission_that_changes_while_it_is_read_is_not_kept(
        self, root: Path, scorer: Scorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = minecraft.read
        picture = root / "alpha/swords/assets/ruby/textures/item/gem_2001.png"

        def late(path, **options):  # type: ignore[no-untyped-def]
            if Path(path).name == "swords":
                picture.write_bytes(png(sprite(2998)))
            return read(path, **options)

        monkeypatch.setattr(minecraft, "read", late)
        entries = [e for e in find_entries(root) if (e.model, e.task) == ("alpha", "swords")]
        run_benchmark(entries, {"": scorer}, parts=tmp_path / "parts")
        picture.write_bytes(png(sprite(2001)))
        monkeypatch.setattr(minecraft, "read", read)
        done = run_benchmark(entries, {"": scorer}, parts=tmp_path / "parts")
        assert done.reused == 0
        assert done.table.rows == run_benchmark(entries, {"": scorer}).table.rows

    def test_what_the_system_refused_is_tried_again(
        self, root: Path, scorer: Scorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refusing(path, **options):  # type: ignore[no-untyped-def]
            raise OSError(24, "Too many open files", str(path))

        with monkeypatch.context() as patched:
            patched.setattr(minecraft, "read", refusing)
            first = self.run(root, scorer, tmp_path / "parts")
        assert sum("Too many open files" in row.reason for row in first.table) == 3
        again = self.run(root, scorer, tmp_path / "parts")
        assert again.reused == 3
        assert again.table.rows == self.run(root, scorer, None).table.rows

    def test_a_manifests_rows_stay_its_models(self, scorer: Scorer, tmp_path: Path) -> None:
        """A submission cannot put rows into another model's group, nor give two rows one id."""
        write_tree(tmp_path, {"a.png": png(sprite(1)), "b.png": png(sprite(2))})
        write_tree(tmp_path, {"s.csv": b"path,category,group,asset_id\na.png,item,beta,x\nb.png,item,,x\n"})
        rows = run_benchmark([Entry(tmp_path / "s.csv", "alpha", "t")], {"": scorer}).table.rows
        assert [(row.group, row.asset_id) for row in rows] == [("alpha", "alpha/t/beta/x"), ("alpha", "alpha/t/x")]
        plain = run_benchmark([Entry(tmp_path / "s.csv", "alpha")], {"": scorer}).table.rows
        assert [(row.group, row.asset_id) for row in plain] == [("beta", "x"), ("alpha", "x")]

    def test_another_game(self, root: Path, scorer: Scorer, tmp_path: Path) -> None:
        for game in ("auto", "minecraft", "folder"):
            entries = [e for e in find_entries(root, game=game) if (e.model, e.task) == ("beta", "swords")]  # type: ignore[arg-type]
            done = run_benchmark(entries, {"": scorer}, parts=tmp_path / "parts")
            assert done.reused == 0
            assert {row.game for row in done.table} == {"minecraft" if game == "minecraft" else ""}

    def test_a_changed_task_file(self, root: Path, scorer: Scorer, tmp_path: Path) -> None:
        task, parts = tmp_path / "task.json", tmp_path / "parts"
        entries = [replace(e, requests=task) for e in find_entries(root) if e.task == "gems"]
        for words in ("a red gem", "a blue gem"):
            task.write_text(json.dumps({"ruby:item/gem_2004": words}))
            done = run_benchmark(entries, {"": scorer}, parts=parts)
            assert done.reused == 0
            assert done.table.rows[0].sem_factor == words

    def test_another_profile(self, root: Path, scorer: Scorer, tmp_path: Path) -> None:
        self.run(root, scorer, tmp_path / "parts")
        fewer = ReferenceSet.from_textures([(f"i{i}", "item", sprite(i)) for i in range(25)], name="drawn")
        other = Scorer(Profile.build(fewer, Conditional(), name="drawn"))
        assert self.run(root, other, tmp_path / "parts").reused == 0

    @pytest.mark.parametrize("damage", ["cut", "rubbish", "empty", "other rows", "another part", "no metadata"])
    def test_damaged_parts(self, damage: str, root: Path, scorer: Scorer, tmp_path: Path) -> None:
        parts = tmp_path / "parts"
        whole = self.run(root, scorer, parts)
        path, other = sorted(parts.glob("*.parquet"), key=lambda p: -p.stat().st_size)[:2]
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-100])
        elif damage == "rubbish":
            path.write_bytes(b"PAR1" + b"x" * 500)
        elif damage == "empty":
            path.write_bytes(b"")
        elif damage == "another part":
            path.write_bytes(other.read_bytes())
        elif damage == "no metadata":
            ResultTable.read(path).write(path)
        else:
            import pyarrow.parquet as pq

            rows = tuple(replace(row, both_pass=True, style_s=0.9) for row in ResultTable.read(path))
            meta = pq.read_schema(path).metadata
            pq.write_table(ResultTable(rows).to_arrow().replace_schema_metadata(meta), path)
        again = self.run(root, scorer, parts)
        assert again.reused == 5
        assert again.table.rows == whole.table.rows
        assert self.run(root, scorer, parts).reused == 6, "and put right"

    def test_a_part_keeps_everything(self, tmp_path: Path) -> None:
        rows = (
            Row("a", "minecraft", "item", "m", "p", "scored", "r", 0.1, 0.2, -0.1, 0.3, False, "x", 1 / 3, task="t"),
            Row("b\u00e9", status="missing", nearest=("n",), top_style=(0.1 + 0.2,), use="flat"),
        )
        for part in (Part(rows, ("one", "zw\u00e9i")), Part((), ())):
            write_part(tmp_path, "k" * 64, part)
            assert read_part(tmp_path, "k" * 64) == part
        assert read_part(tmp_path, "j" * 64) is None


@pytest.mark.slow
def test_killed_and_started_again(references: ReferenceSet, tmp_path: Path) -> None:
    """SIGKILL in the middle of the command; the second start gives the rows of a run that was never killed."""
    root = tmp_path / "submissions"
    for i in range(40):
        write_tree(root / f"model{i % 2}", {f"task{i}.jar": zip_bytes(mod(*range(3000 + 20 * i, 3020 + 20 * i)))})
    Profile.build(references, PixelStats(), name="drawn").save(tmp_path / "drawn")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "assetscore", "batch", "--submissions", str(root)]
    options = ["--profile", str(tmp_path / "drawn"), "--format", "csv"]

    def parts() -> list[Path]:
        return list((out / "parts").glob("*.parquet"))

    killed = subprocess.Popen(
        [*command, *options, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while len(parts()) < 3 and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    finished = len(parts())
    assert 3 <= finished < 40, "killed in the middle"
    assert not (out / "results.parquet").exists()

    again = subprocess.run([*command, *options, "--out", str(out)], capture_output=True, text=True, check=False)
    assert again.returncode in (0, 1), again.stderr
    assert f"{finished} of 40 submissions were scored before" in again.stderr
    scorer = Scorer.load(tmp_path / "drawn")
    whole = run_benchmark(find_entries(root), {"": scorer})
    assert ResultTable.read(out / "results.parquet").rows == whole.table.rows
    assert len(whole.table) == 800


def test_summary_by_hand(root: Path, scorer: Scorer) -> None:
    """Each game's lines are counted again from the rows, without the library's summary."""
    done = run_benchmark(find_entries(root), {"": scorer})
    for game, (own, *lines) in summarise_games(done.table, done.games).items():
        assert own.n == 60
        groups = list(dict.fromkeys(r.group for r in done.table if r.game == game))
        assert [line.group for line in lines] == groups
        for line in lines:
            rows = [r for r in done.table if (r.game, r.group) == (game, line.group)]
            decided = [r for r in rows if r.status not in UNDECIDED]
            assert (line.n, line.undecided) == (len(rows), len(rows) - len(decided))
            assert line.pass_both.value == np.mean([r.both_pass is True for r in decided])
