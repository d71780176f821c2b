"""Which of the shipped tiles are variants of one tile."""

from __future__ import annotations

import csv
import importlib.util
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

REFERENCES = Path(__file__).parents[1] / "references"
TILES = REFERENCES / "dungeon-tiles"


@pytest.fixture(scope="module")
def make_families() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_families", REFERENCES / "make_families.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def index() -> list[dict[str, str]]:
    with (TILES / "index.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def family_of(index: list[dict[str, str]]) -> dict[str, str]:
    return {Path(row["file"]).stem: row["family"] for row in index}


def test_the_index_lists_each_shipped_file_once(index: list[dict[str, str]]) -> None:
    listed = [row["file"] for row in index]
    on_disk = {path.relative_to(TILES).as_posix() for path in TILES.glob("*/*.png")}
    assert len(listed) == len(set(listed)) == 1146
    assert set(listed) == on_disk
    assert {row["licence"] for row in index} == {"CC0-1.0"}
    assert all(row["family"].startswith(row["category"] + "/") for row in index)


# Pairs picked from the contact sheets by eye, not from the rule.
SAME = [
    ("wall__abyss__abyss_green0", "wall__abyss__abyss_lightmagenta3"),
    ("altars__jiyva01", "altars__jiyva11"),
    ("floor__dirt_ne", "floor__dirt_full"),
    ("doors__gate_closed_left", "doors__gate_runed_right"),
    ("book__red", "book__artefact__velvet"),
    ("potion__black", "potion__fizzy"),
    ("misc__misc_fan", "misc__misc_fan_inert"),
    ("gold__01", "gold__25"),
    ("demihumanoids__merfolk__merfolk", "demihumanoids__merfolk__merfolk_water"),
    ("animals__hog", "animals__holy_swine"),
    ("wall__brick_brown0", "wall__snake0"),
    ("wall__lair1", "wall__orc1"),
    ("statues__statue_imp", "statues__statue_iron"),
    ("undead__spectrals__spectral_hydra1", "undead__spectrals__spectral_hydra5"),
]
DIFFERENT = [
    ("staff__staff00", "staff__staff01"),
    ("rod__rod03", "rod__rod04"),
    ("demons__chaos_spawn1", "demons__chaos_spawn2"),
    ("armour__headgear__helmet1", "armour__headgear__helmet4"),
    ("wall__brick_brown0", "wall__brick_gray0"),
    ("wall__metal_wall", "wall__metal_wall_white0"),
    ("wall__crystal_wall00", "wall__lab-stone0"),
    ("wall__stone2_gray0", "wall__stone_gray0"),
    ("statues__statue_dragon", "statues__statue_angel"),
    ("food__orange", "food__lemon"),
    ("floor__grass__grass0", "floor__dirt0"),
    ("undead__spectrals__spectral_ant", "undead__simulacra__simulacrum_ant"),
    ("floor__snake-a0", "wall__snake0"),
    ("weapon__long_sword1", "weapon__short_sword1"),
    ("altars__xom0", "altars__zin"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_variants_of_one_tile_share_a_family(a: str, b: str, index: list[dict[str, str]]) -> None:
    family = family_of(index)
    assert family[a] == family[b]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_drawings_do_not(a: str, b: str, index: list[dict[str, str]]) -> None:
    family = family_of(index)
    assert family[a] != family[b]


def test_no_family_is_a_whole_theme(index: list[dict[str, str]]) -> None:
    members: dict[str, list[str]] = defaultdict(list)
    per_category: dict[str, int] = defaultdict(int)
    for row in index:
        members[row["family"]].append(row["file"])
        per_category[row["category"]] += 1
    for family, files in members.items():
        assert len(files) <= 0.25 * per_category[family.split("/")[0]], family


def test_exact_copies_share_a_family(index: list[dict[str, str]]) -> None:
    seen: dict[tuple[str, bytes], str] = {}
    for row in index:
        pixels = np.array(Image.open(TILES / row["file"]).convert("RGBA"))
        pixels[pixels[..., 3] == 0] = 0
        assert seen.setdefault((row["category"], pixels.tobytes()), row["family"]) == row["family"], row["file"]


@pytest.mark.slow
def test_the_index_is_what_the_script_writes(make_families: ModuleType) -> None:
    text = make_families.index_with_families(TILES)
    assert text == (TILES / "index.csv").read_text(encoding="utf-8")


def test_a_recoloured_drawing_is_the_same_and_a_moved_one_is_not(make_families: ModuleType) -> None:
    rng = np.random.default_rng(0)
    tile = np.zeros((32, 32, 4), np.uint8)
    tile[6:26, 8:24, :3] = rng.integers(40, 200, (20, 16, 3))
    tile[6:26, 8:24, 3] = 255
    recoloured = tile.copy()
    recoloured[..., :3] = recoloured[..., [2, 0, 1]] // 2 + tile[..., :3] // 2
    assert make_families.same_drawing(tile, recoloured)
    assert not make_families.same_drawing(tile, np.roll(tile, 6, axis=1))
    other = tile.copy()
    other[6:26, 8:24, :3] = rng.integers(40, 200, (20, 16, 3))
    assert not make_families.same_drawing(tile, other), "the same outline with another picture inside"
    assert not make_families.same_drawing(tile, tile[:16])
