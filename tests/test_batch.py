from __future__ import annotations

import csv
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from assetscore import Profile, ReferenceSet, ResultTable, Scorer
from assetscore.batch import find_assets, read_manifest, run, walk_folder
from assetscore.calibration import wilson_interval
from assetscore.errors import ManifestError, ProfileMismatchError, UsageError
from assetscore.scorer import Item
from assetscore.summary import leave_one_out_row, summarise
from assetscore.table import COLUMNS, Row

from .conftest import Conditional, sprite
from .png import RGBA, png


@pytest.fixture(scope="module")
def scorer(profile: Profile) -> Scorer:
    return Scorer(profile)


@pytest.fixture(scope="module")
def table(scorer: Scorer) -> ResultTable:
    """Two models: the first draws like the references, the second hands in rubbish."""
    items = [Item(sprite(2000 + i), "item", f"thing {i % 2}", f"a{i}", group="careful") for i in range(12)]
    items += [Item(sprite(2100 + i), "block", None, f"b{i}", group="careful") for i in range(4)]
    items += [
        Item(b"rubbish", "item", None, "c0", group="careless"),
        Item(sprite(3), "item", None, "c1", group="careless"),
    ]
    items += [
        Item(sprite(5, 64), "gui", None, "c2", group="careless"),
        Item("gone.png", "item", None, "c3", group="careless"),
    ]
    items += [Item(sprite(2200 + i, 40), "item", None, f"d{i}", group="careless") for i in range(3)]
    return run(scorer, items)


class TestFolders:
    def test_categories_at_any_depth(self, tmp_path: Path) -> None:
        names = [
            "src/assets/mod/textures/item/a.png",
            "src/assets/mod/textures/items/deep/b.PNG",
            "Blocks/c.webp",
            "textures/gui/d.png",
            "e.png",
            "item/.git/f.png",
            "item/notes.txt",
        ]
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(png(sprite(1), RGBA))
        found = {item.asset_id: item.category for item in walk_folder(tmp_path, ["item", "block"])}
        assert found == {
            names[0]: "item",
            names[1]: "item",
            names[2]: "block",
            names[3]: "gui",
            names[4]: "",
        }

    def test_names_equal_but_for_case_and_folders_named_like_files(self, tmp_path: Path) -> None:
        (tmp_path / "item" / "x.png").mkdir(parents=True)
        for name in ("A.png", "a.png", "x.png/y.png", "ünï cödé.png"):
            (tmp_path / "item" / name).write_bytes(png(sprite(1), RGBA))
        ids = [item.asset_id for item in walk_folder(tmp_path, ["item"])]
        assert ids == ["item/A.png", "item/a.png", "item/ünï cödé.png", "item/x.png/y.png"]

    def test_links_do_not_lead_out(self, scorer: Scorer, tmp_path: Path) -> None:
        inside, outside = tmp_path / "in" / "item", tmp_path / "out"
        inside.mkdir(parents=True)
        outside.mkdir()
        (outside / "secret.png").write_bytes(png(sprite(2000), RGBA))
        (inside / "own.png").write_bytes(png(sprite(2001), RGBA))
        (inside / "leaves.png").symlink_to(outside / "secret.png")
        (inside / "stays.png").symlink_to(inside / "own.png")
        (inside / "folder").symlink_to(outside)
        rows = {r.asset_id: r.status for r in run(scorer, walk_folder(tmp_path / "in", scorer.profile.categories))}
        assert rows == {"item/leaves.png": "unreadable", "item/own.png": "scored", "item/stays.png": "scored"}

    def test_names_that_are_no_text_and_loops(self, scorer: Scorer, tmp_path: Path) -> None:
        folder = tmp_path / "mod" / "item"
        folder.mkdir(parents=True)
        (folder / "good.png").write_bytes(png(sprite(2000), RGBA))
        (folder / "loop.png").symlink_to(folder / "loop.png")
        names = [b"caf\xe9.png", b"esc\x1b[31m.png", b"new\nline.png"]
        for name in names:
            with open(os.fsencode(folder) + b"/" + name, "wb") as file:
                file.write(png(sprite(2001), RGBA))
        table = run(scorer, walk_folder(tmp_path / "mod", scorer.profile.categories))
        assert [row.status for row in table].count("scored") == 4
        assert {row.asset_id: row.status for row in table}["item/loop.png"] in ("missing", "unreadable")
        assert all(row.asset_id.isprintable() and row.path.isprintable() for row in table)
        for ending in ("parquet", "csv", "json"):
            table.write(tmp_path / f"t.{ending}")
            assert ResultTable.read(tmp_path / f"t.{ending}").rows == table.rows
        refs = ReferenceSet.from_folder(tmp_path / "mod")
        assert len(refs.fingerprint) == 64

    def test_linked_folders_are_spoken_of(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "item").mkdir()
        (tmp_path / "block").symlink_to(tmp_path / "item")
        walk_folder(tmp_path, ["item"])
        assert "block" in caplog.text


class TestManifests:
    def test_csv_and_jsonl_say_the_same(self, tmp_path: Path) -> None:
        rows = [
            {"path": "a.png", "category": "item", "request": "axe", "group": "m", "asset_id": "one"},
            {"path": "b.png", "category": "block", "request": "", "group": "", "asset_id": ""},
        ]
        with (tmp_path / "m.csv").open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        lines = [json.dumps({key: value for key, value in row.items() if value}) for row in rows]
        (tmp_path / "m.jsonl").write_text("\n".join([*lines, "", ""]))
        assert read_manifest(tmp_path / "m.csv", "g") == read_manifest(tmp_path / "m.jsonl", "g")
        first, second = read_manifest(tmp_path / "m.csv", "g")
        assert (first.request, first.group, first.asset_id, first.path) == ("axe", "m", "one", str(tmp_path / "a.png"))
        assert (second.request, second.group, second.asset_id) == (None, "g", "b.png")

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("m.csv", "file,category\na,item\n", "'path' is missing"),
            ("m.csv", "path,category\n,item\n", "line 2: path"),
            ("m.csv", "path,category\na.png,\n", "line 2: category"),
            ("m.csv", "path,category\na.png,item\na.png,item\n", "line 3.*line 2"),
            ("m.csv", f"path,category,request\na.png,item,{'x' * 1500}\n", "line 2: request"),
            ("m.csv", "", "path"),
            ("m.csv", b"path,category\n\xff\xfe,item\n", "utf-8"),
            ("m.csv", 'path,category\n"' + "x" * 200_000 + '",item\n', "field larger"),
            ("m.jsonl", '{"path": "a.png"}', "line 1: category"),
            ("m.jsonl", '{"path": "a.png", "category": 3}', "line 1: category must be text"),
            ("m.jsonl", "\n[1]\n", "line 2: expected a JSON object"),
            ("m.jsonl", "{", "line 1: no JSON"),
            ("m.jsonl", "[" * 100_000, "line 1: no JSON"),
            ("m.jsonl", '{"a": "' + "x" * 2_000_000 + '"}', "line 1: no JSON"),
            ("m.txt", "a", "expected a folder"),
        ],
    )
    def test_mistakes_name_the_line(self, name: str, content: str | bytes, words: str, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(ManifestError, match=words):
            find_assets(tmp_path / name, ["item"])

    def test_one_id_in_two_groups(self, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_text("path,category,group,asset_id\na.png,item,x,i\nb.png,item,y,i\n")
        assert len(read_manifest(tmp_path / "m.csv")) == 2

    def test_missing_files_are_rows(self, scorer: Scorer, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_text('path,category\ngone.png,item\n"a\0b",item\n')
        assert [row.status for row in run(scorer, read_manifest(tmp_path / "m.csv"))] == ["missing", "missing"]


class TestTable:
    @pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
    def test_written_and_read_again(self, table: ResultTable, ending: str, tmp_path: Path) -> None:
        path = tmp_path / f"results.{ending}"
        table.write(path)
        assert ResultTable.read(path).rows == table.rows

    def test_columns(self, table: ResultTable, tmp_path: Path) -> None:
        table.write(tmp_path / "r.csv")
        header = (tmp_path / "r.csv").read_text().splitlines()[0]
        assert header.split(",") == list(COLUMNS)
        assert header == (
            "asset_id,game,category,group,path,status,reason,style_s,style_tau,style_margin,style_p,style_pass,"
            "sem_factor,sem_s,sem_tau,sem_margin,sem_p,sem_pass,both_pass,borderline,grid,frames,nearest,top_style,"
            "top_sem,encoder,profile,task,use,flags,profile_fingerprint"
        )

    @pytest.mark.parametrize("alpha", [0.05, 0.15, 0.3, 0.45])
    @pytest.mark.parametrize("k", [1, 5, 12])
    @pytest.mark.parametrize("rule", ["conformal", "linear"])
    def test_judged_again_is_what_scoring_again_gives(
        self, scorer: Scorer, table: ResultTable, alpha: float, k: int, rule: str
    ) -> None:
        again = Scorer(scorer.profile, alpha=alpha, k=k, rule=rule)  # type: ignore[arg-type]
        items = [Item(sprite(2000 + i), "item", f"thing {i % 2}", f"a{i}", group="careful") for i in range(12)]
        fresh = run(again, items)
        judged = table.rethreshold(alpha=alpha, k=k, rule=rule)  # type: ignore[arg-type]
        for ours, theirs in zip(judged.rows[:12], fresh.rows, strict=True):
            for column in ("status", "style_pass", "sem_pass", "both_pass"):
                assert getattr(ours, column) == getattr(theirs, column)
            for column in ("style_s", "style_tau", "style_margin", "style_p", "sem_s", "sem_tau", "sem_p"):
                assert getattr(ours, column) == pytest.approx(getattr(theirs, column), abs=1e-12)

    def test_judged_again_with_its_own_numbers_is_itself(self, table: ResultTable) -> None:
        assert table.rethreshold(alpha=0.15, k=5).rows == table.rows

    def test_into_uncalibrated_and_back(self, table: ResultTable) -> None:
        strict = table.rethreshold(alpha=0.01)
        assert {row.status for row in strict.rows[:12]} == {"uncalibrated"}
        assert {row.both_pass for row in strict.rows[:12]} == {None}
        assert strict.rethreshold(alpha=0.15).column("both_pass") == table.column("both_pass")

    def test_wrong_use(self, table: ResultTable, profile: Profile) -> None:
        with pytest.raises(UsageError, match="between 1 and 20"):
            table.rethreshold(k=21)
        with pytest.raises(UsageError, match="profile"):
            ResultTable(table.rows).rethreshold(alpha=0.1)
        with pytest.raises(ProfileMismatchError, match="a0"):
            table.rethreshold(alpha=0.1, profile=Profile.load("dungeon-crawl"))
        with pytest.raises(UsageError, match="known are"):
            table.column("colour")
        with pytest.raises(UsageError, match="parquet"):
            table.write("x.xlsx")

    @pytest.mark.parametrize(
        ("content", "words"),
        [("a,b\n1,2\n", "asset_id"), (",".join(COLUMNS) + "\n" + "x," * (len(COLUMNS) - 1) + "y\n", "line 2")],
    )
    def test_no_results_table(self, content: str, words: str, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text(content)
        with pytest.raises(ManifestError, match=words):
            ResultTable.read(tmp_path / "x.csv")

    def test_another_profile_with_the_same_encoder_is_refused(
        self, table: ResultTable, references: ReferenceSet
    ) -> None:
        other = Profile.build(ReferenceSet("other", references.references[:-1]), Conditional())
        with pytest.raises(ProfileMismatchError, match="a0"):
            table.rethreshold(alpha=0.3, profile=other)

    @pytest.mark.parametrize("alpha", [0.05, 0.3])
    def test_words_and_remarks_follow(self, scorer: Scorer, alpha: float) -> None:
        items = [Item(sprite(2000 + i), "item", asset_id=f"a{i}") for i in range(9)]
        judged = run(scorer, items).rethreshold(alpha=alpha)
        fresh = run(Scorer(scorer.profile, alpha=alpha), items)
        assert [replace(row, nearest=()) for row in judged] == [replace(row, nearest=()) for row in fresh]
        assert judged.rethreshold(alpha=0.01).rethreshold(alpha=alpha).rows == judged.rows

    @pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "=1+1", " a ", "\u202ea", "\ud800"])
    def test_any_text_survives_csv(self, text: str, tmp_path: Path) -> None:
        table = ResultTable((Row("x", reason=text, group=text), Row("y")))
        if text.isprintable() or text[0] == "a":
            table.write(tmp_path / "t.csv")
            assert ResultTable.read(tmp_path / "t.csv").rows == table.rows
        table.write(tmp_path / "t.parquet")
        assert len(ResultTable.read(tmp_path / "t.parquet")) == 2

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("t.json", b"[1]"),
            ("t.json", b"["),
            ("t.json", b"{}"),
            ("t.json", b"[" * 100_000),
            ("t.csv", b"\xff\xfea\x00"),
            ("t.parquet", b"PAR1"),
            ("t.parquet", b""),
            ("gone.csv", None),
            ("gone.parquet", None),
        ],
    )
    def test_what_is_no_table_is_a_named_error(self, name: str, content: bytes | None, tmp_path: Path) -> None:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ManifestError, match=name):
            ResultTable.read(tmp_path / name)

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("status", "banana"),
            ("style_s", [1]),
            ("style_s", float("nan")),
            ("style_s", True),
            ("style_pass", 1),
            ("borderline", None),
            ("grid", 0),
            ("frames", "2x"),
            ("nearest", [1]),
            ("top_style", ["a"]),
            ("top_style", 0.5),
            ("asset_id", None),
            ("category", 3),
        ],
    )
    def test_values_no_row_can_hold(self, table: ResultTable, column: str, value: object, tmp_path: Path) -> None:
        records = table.to_dicts()
        records[1][column] = value
        (tmp_path / "t.json").write_text(json.dumps(records))
        with pytest.raises(ManifestError, match=f"line 3: column '{column}'"):
            ResultTable.read(tmp_path / "t.json")


class TestSummary:
    def test_by_hand(self, table: ResultTable) -> None:
        first, careful, careless = summarise(table)
        assert first.group == "references (leave-one-out)"
        assert (careful.group, careful.n, careful.undecided) == ("careful", 16, 0)
        assert (careless.group, careless.n, careless.undecided) == ("careless", 7, 1)
        assert careless.statuses == {"unreadable": 1, "not_custom": 1, "no_references": 1, "missing": 1, "scored": 3}
        assert careless.custom is not None
        assert careless.custom.value == 3 / 6
        for line, group in ((careful, "careful"), (careless, "careless")):
            rows = [r for r in table if r.group == group and r.status != "no_references"]
            for rate, column in (
                (line.pass_style, "style_pass"),
                (line.pass_sem, "sem_pass"),
                (line.pass_both, "both_pass"),
            ):
                assert rate is not None
                passed = sum(getattr(r, column) is True for r in rows)
                assert rate.value == passed / len(rows)
                assert rate.interval == wilson_interval(passed, len(rows))
            margins = [r.style_s - r.style_tau for r in rows if r.status == "scored"]  # type: ignore[operator]
            assert line.style_margin == pytest.approx(sum(margins) / len(margins))

    def test_the_references_pass_at_one_minus_alpha(self, profile: Profile) -> None:
        for alpha in (0.1, 0.15, 0.3):
            row = leave_one_out_row(profile, alpha=alpha)
            expected = 0
            for category, n in (("item", 40), ("block", 20)):
                scores = profile.calibration(category, "art style").scores(5)
                tau = sorted(scores)[math.floor(alpha * (n + 1) + 1e-9) - 1]
                expected += sum(s >= tau for s in scores)
            assert row.pass_style.passed == expected
            assert row.n == 60
            assert abs(row.pass_style.value - (1 - alpha)) < 0.05  # type: ignore[operator]
            assert row.pass_both.passed <= min(row.pass_style.passed, row.pass_sem.passed)  # type: ignore[union-attr]
            assert row.custom is None

    def test_by_another_column(self, table: ResultTable) -> None:
        assert [line.group for line in summarise(table, by="category")[1:]] == ["item", "block", "gui"]

    def test_nothing_decided(self, scorer: Scorer) -> None:
        (_, line) = summarise(run(scorer, [Item(sprite(9999), "gui")]))
        assert line.pass_style.value is None
        assert line.to_dict()["pass_style"] == {"value": None, "low": None, "high": None}


def test_farmersdelight(mods: Path) -> None:
    profile = Profile.load("dungeon-crawl")
    items = find_assets(mods / "farmersdelight", profile.categories)
    table = run(Scorer(profile), items)
    assert len(table) == len(items) > 350
    counts: dict[str, int] = {}
    for row in table:
        counts[row.status] = counts.get(row.status, 0) + 1
    assert counts["scored"] > 300
    assert not {"unreadable", "missing", "failed"} & set(counts)
    assert {row.category for row in table if row.status == "no_references"} >= {"gui"}
