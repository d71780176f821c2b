from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assetscore import ReferenceSet
from assetscore.errors import ManifestError, ReferenceSetError
from assetscore.folders import shipped_folder
from assetscore.images import enlarge

from .conftest import sprite
from .png import RGBA, png


def write(folder: Path, name: str, seed: int) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(sprite(seed), RGBA))


class TestFromFolder:
    def test_subfolders_are_categories(self, tmp_path: Path) -> None:
        write(tmp_path, "item/a.png", 1)
        write(tmp_path, "item/deep/er/b.PNG", 2)
        write(tmp_path, "block/c.png", 3)
        write(tmp_path, ".hidden/d.png", 4)
        (tmp_path / "item" / "notes.txt").write_text("no image")
        refs = ReferenceSet.from_folder(tmp_path)
        assert [(r.category, r.id) for r in refs] == [
            ("block", "block/c.png"),
            ("item", "item/a.png"),
            ("item", "item/deep/er/b.PNG"),
        ]

    def test_manifest(self, tmp_path: Path) -> None:
        for seed, name in enumerate(("x/1.png", "x/2.png")):
            write(tmp_path, name, seed)
        manifest = tmp_path / "index.csv"
        manifest.write_text("\ufefffile,category,object_words,family\nx/1.png,item,axe,axes\nx/2.png,item,,\n", "utf-8")
        for source in (tmp_path, manifest):
            refs = ReferenceSet.from_folder(source)
            assert [(r.words, r.group()) for r in refs] == [("axe", "family:axes"), ("", "sheet:x/2.png")]
            assert [r.group(families=False) for r in refs] == ["sheet:x/1.png", "sheet:x/2.png"]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("file,kind\na.png,item\n", "category"),
            ("category\nitem\n", "file"),
            ("", "file"),
            ("file,category\na.png,item\na.png,block\n", "line 3.*twice"),
            ("file,category\na.png,\n", "line 2"),
        ],
    )
    def test_manifest_mistakes_name_the_line(self, content: str, words: str, tmp_path: Path) -> None:
        (tmp_path / "manifest.csv").write_text(content)
        with pytest.raises(ManifestError, match=words):
            ReferenceSet.from_folder(tmp_path)

    def test_bad_files_are_skipped_and_reported(self, tmp_path: Path) -> None:
        write(tmp_path, "item/good.png", 1)
        (tmp_path / "item" / "bad.png").write_bytes(b"nonsense")
        (tmp_path / "item" / "clear.png").write_bytes(png(np.zeros((8, 8, 4), np.uint8), RGBA))
        refs = ReferenceSet.from_folder(tmp_path)
        assert refs.categories == {"item": 1}
        assert {id for id, _ in refs.skipped} == {"item/bad.png", "item/clear.png"}

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(ReferenceSetError, match="no such folder"):
            ReferenceSet.from_folder(tmp_path / "gone")
        with pytest.raises(ReferenceSetError, match="no reference"):
            ReferenceSet.from_folder(tmp_path)


class TestDuplicates:
    def test_collapse_within_a_category_only(self) -> None:
        same, other = sprite(1), sprite(2)
        refs = ReferenceSet.from_textures(
            [("b", "item", same), ("a", "item", same), ("c", "item", other), ("d", "block", same)]
        )
        assert [r.id for r in refs] == ["d", "a", "c"]
        assert refs.duplicates == {"a": ("b",)}

    def test_every_item_has_a_twin(self) -> None:
        refs = ReferenceSet.from_textures([(f"{i}{twin}", "item", sprite(i)) for i in range(5) for twin in "ab"])
        assert refs.categories == {"item": 5}
        assert len(refs.duplicates) == 5

    def test_an_enlarged_copy_is_another_drawing(self) -> None:
        refs = ReferenceSet.from_textures([("a", "item", sprite(1)), ("b", "item", enlarge(sprite(1), 2))])
        assert refs.categories == {"item": 2}

    def test_ids_must_differ(self) -> None:
        with pytest.raises(ReferenceSetError, match="twice"):
            ReferenceSet.from_textures([("a", "item", sprite(1)), ("a", "block", sprite(2))])


def test_frames_count_once_and_stand_apart(tmp_path: Path) -> None:
    strip = np.concatenate([sprite(1), sprite(2), sprite(1)])
    (tmp_path / "item").mkdir()
    (tmp_path / "item" / "fire.png").write_bytes(png(strip, RGBA))
    (tmp_path / "item" / "fire.png.mcmeta").write_text('{"animation": {}}')
    write(tmp_path, "item/still.png", 9)
    refs = ReferenceSet.from_folder(tmp_path)
    assert [r.id for r in refs] == ["item/fire.png#0", "item/fire.png#1", "item/still.png"]
    assert refs.categories == {"item": 2}
    assert [r.group() for r in refs] == ["sheet:item/fire.png"] * 2 + ["sheet:item/still.png"]


def test_the_fingerprint_follows_what_changes_scores() -> None:
    base = [("a", "item", sprite(1)), ("b", "item", sprite(2))]
    first = ReferenceSet.from_textures(base, "one")
    assert ReferenceSet.from_textures(reversed(base), "two").fingerprint == first.fingerprint
    for other in (
        [("a", "item", sprite(1)), ("b", "item", sprite(3))],
        [("a", "item", sprite(1)), ("c", "item", sprite(2))],
        [("a", "item", sprite(1)), ("b", "block", sprite(2))],
    ):
        assert ReferenceSet.from_textures(other).fingerprint != first.fingerprint
    assert ReferenceSet.from_textures(base, family="f").fingerprint != first.fingerprint


def test_the_shipped_set() -> None:
    refs = ReferenceSet.from_folder(shipped_folder("references") / "dungeon-tiles")
    assert refs.categories == {"block": 306, "entity": 281, "feature": 182, "item": 377}
    assert refs.duplicates == {}
    assert refs.skipped == ()
    assert {r.licence for r in refs} == {"CC0-1.0"}
    groups = {r.id: r.group() for r in refs}
    assert groups["feature/altars__jiyva01.png"] == groups["feature/altars__jiyva11.png"]
    assert groups["feature/altars__jiyva01.png"] != groups["feature/altars__zin.png"]
