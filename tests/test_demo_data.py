"""The demo's textures: what they are, whose they are, and that size does not give the answer away."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from assetscore.images import load

REFERENCES = Path(__file__).parents[1] / "references"
DEMO = REFERENCES / "dungeon-demo"
PERMISSIVE = {"CC0-1.0", "CC-BY-3.0", "MIT", "BSD-2-Clause", "Zlib", "WTFPL", "LicenseRef-Bolt-free-use"}
CATEGORIES = ("item", "block", "entity", "feature")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with (DEMO / "index.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_index_lists_each_file_once(rows: list[dict[str, str]]) -> None:
    paths = [row["file"] for row in rows]
    assert sorted(paths) == sorted(path.relative_to(DEMO).as_posix() for path in DEMO.glob("*/*.png"))
    assert len({Path(path).stem for path in paths}) == len(rows)
    assert all(row["file"].startswith(row["category"] + "/") for row in rows)
    assert {row["category"] for row in rows} == set(CATEGORIES)


def test_each_file_has_a_request_an_author_and_a_permissive_licence(rows: list[dict[str, str]]) -> None:
    notice = (DEMO / "NOTICE").read_text(encoding="utf-8")
    for row in rows:
        assert row["object_words"].strip(), row
        assert row["author"].strip(), row
        assert row["licence"] in PERMISSIVE, row
        assert Path(row["file"]).stem.rsplit("-", 1)[0] + "-*" in notice, row


def test_foreign_art_of_the_references_own_size_is_in_every_category(rows: list[dict[str, str]]) -> None:
    # Both sides are opened as files, not through the library's own grid finder; a 32 x 32 picture made of 2 x 2 blocks
    # would be 16 x 16 art.
    native = Counter()
    for row in rows:
        pixels = np.asarray(Image.open(DEMO / row["file"]).convert("RGBA"))
        blocky = (pixels[::2, ::2] == pixels[1::2, 1::2]).all() if pixels.shape[:2] == (32, 32) else True
        if row["expected"] == "fail" and not blocky:
            native[row["category"]] += 1
    assert set(native) == set(CATEGORIES)
    assert min(native.values()) >= 8


def test_near_styles_are_marked(rows: list[dict[str, str]]) -> None:
    hard = [row for row in rows if row["hard"] == "yes"]
    assert {row["pack"] for row in hard} == {"angband/gervais32"}
    assert {row["category"] for row in hard} == set(CATEGORIES)
    assert all(row["expected"] == "fail" for row in hard)


def test_no_demo_texture_is_a_reference(rows: list[dict[str, str]]) -> None:
    known = {load(path).native_hash for path in (REFERENCES / "dungeon-tiles").glob("*/*.png")}
    demo = [load(DEMO / row["file"]).native_hash for row in rows]
    assert not known & set(demo)
    assert len(set(demo)) == len(demo)
