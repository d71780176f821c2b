"""Write the family column of dungeon-tiles/index.csv: which tiles are variants of one tile.

A family is left out as a whole when one of its members is scored, so that a wall's second crack pattern, or the same
robe in another colour, does not vouch for the first. Two tiles of one category belong together when

1. their names agree but for a variant's mark: a trailing number, then a colour, a material, a direction, a side or a
   state ("abyss_green0", "dirt_ne", "gate_closed_left", "misc_fan_inert"). `DISTINCT` lists the names whose numbered or
   coloured tiles are different drawings all the same (ten different staffs); or
2. they are one drawing under two names (all books are one book): their outlines and their light and dark agree, see
   `same_drawing`.

Both steps were checked by eye on contact sheets. A family is named after its first member in alphabetical order,
without that member's mark.

    python references/make_families.py            # rewrites references/dungeon-tiles/index.csv
    python references/make_families.py --check    # exits 1 where the file would change
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

TILES = Path(__file__).parent / "dungeon-tiles"
OVERLAP = 0.9
"""Intersection over union of two outlines, from which on two tiles may be one drawing."""

NUMBER = re.compile(r"[-_]?\d+[a-z]?$")
COLOUR = (
    r"(?:light|dark)?[-_]?(?:black|blue|brown|cyan|dark|gold|golden|gray|green|grey|light|magenta|orange|purple|red|"
    r"silver|tan|turquoise|white|yellow)"
)
MATERIAL = r"bone|brass|bronze|copper|glass|iron|ivory|lead|metal|plastic|wood"
PLACE = r"n|e|s|w|ne|nw|se|sw|full|left|middle|right|up|down"
STATE = r"open|closed|runed|sealed|inert|flickering|rotated|water|gone|portal|exit|used|rotten"
MARK = re.compile(rf"(?<=[a-z0-9])[-_](?:{COLOUR}|{MATERIAL}|{PLACE}|{STATE})$")

DISTINCT = frozenset(
    {
        "armour__headgear__helmet",
        "armour__headgear__helmet_art",
        "armour__headgear__helmet_ego",
        "demons__chaos_spawn",
        "rod__rod",
        "staff__staff",
        "statues__statue_iron",
        "wall__brick_gray",
        "wall__metal_wall_white",
    }
)
"""Names, without their number, whose marks do not say "variant": those tiles are drawings of their own."""


def name_family(stem: str) -> str:
    """A tile's name without its variant's mark.

    >>> name_family("wall__abyss__abyss_green0"), name_family("altars__jiyva11"), name_family("floor__dirt_ne")
    ('wall__abyss__abyss', 'altars__jiyva', 'floor__dirt')
    >>> name_family("food__orange"), name_family("staff__staff03"), name_family("wall__stone2_dark1")
    ('food__orange', 'staff__staff03', 'wall__stone2')
    >>> name_family("gold__10")
    'gold'
    """
    folder, _, name = stem.rpartition("__")
    if folder and name.isdigit():
        return folder
    folder = f"{folder}__" if folder else ""
    unnumbered = NUMBER.sub("", name) or name
    if folder + unnumbered in DISTINCT:
        # Numbered drawings of their own keep the number; a colour that is no variant keeps the name.
        return stem if MARK.search(unnumbered) is None else folder + unnumbered
    while (shorter := MARK.sub("", unnumbered)) != unnumbered:
        unnumbered = shorter
    return folder + (unnumbered or name)


def same_drawing(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> bool:
    """Are two (h, w, 4) tiles one drawing, recoloured or retouched?

    Outlines are compared by intersection over union, light and dark by the correlation of luma where both are visible.
    A square without transparency has no outline to agree on, so its light and dark must agree closely.
    """
    if a.shape != b.shape:
        return False
    visible_a, visible_b = a[..., 3] > 0, b[..., 3] > 0
    both = visible_a & visible_b
    overlap = both.sum() / max(1, (visible_a | visible_b).sum())
    if overlap < OVERLAP:
        return False
    luma = np.array([0.299, 0.587, 0.114])
    light_a, light_b = a[..., :3][both] @ luma, b[..., :3][both] @ luma
    if light_a.std() == 0 or light_b.std() == 0:
        return False
    agreement = np.corrcoef(light_a, light_b)[0, 1]
    if agreement >= 0.82:
        return True
    outlined = not (visible_a.all() or visible_b.all())
    return bool(outlined and overlap >= 0.93 and agreement >= 0.6)


def families(tiles: Mapping[str, NDArray[np.uint8]]) -> dict[str, str]:
    """The family of each tile of one category, by stem; all tiles have one size."""
    parent = {stem: stem for stem in tiles}

    def find(stem: str) -> str:
        while parent[stem] != stem:
            stem = parent[stem]
        return stem

    def join(a: str, b: str) -> None:
        first, second = sorted((find(a), find(b)))
        parent[second] = first

    by_name: dict[str, str] = {}
    for stem in sorted(tiles):
        join(by_name.setdefault(name_family(stem), stem), stem)
    stems = sorted(tiles)
    # One matrix product finds the few pairs whose outlines agree; only those are compared in full.
    outlines = np.stack([tiles[stem][..., 3].ravel() > 0 for stem in stems]).astype(np.float32)
    shared, sizes = outlines @ outlines.T, outlines.sum(axis=1)
    alike = shared >= OVERLAP * (sizes[:, None] + sizes[None, :] - shared)
    for i, j in combinations(range(len(stems)), 2):
        if alike[i, j] and find(stems[i]) != find(stems[j]) and same_drawing(tiles[stems[i]], tiles[stems[j]]):
            join(stems[i], stems[j])
    return {stem: name_family(find(stem)) for stem in tiles}


def index_with_families(folder: Path) -> str:
    """The text of index.csv with its family column made anew."""
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by_category: dict[str, dict[str, NDArray[np.uint8]]] = {}
    for row in rows:
        pixels = np.asarray(Image.open(folder / row["file"]).convert("RGBA"))
        by_category.setdefault(row["category"], {})[PurePosixPath(row["file"]).stem] = pixels
    family = {category: families(tiles) for category, tiles in by_category.items()}
    out = io.StringIO()
    columns = ["file", "category", "object_words", "family", "licence", "upstream_path"]
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        row["family"] = f"{row['category']}/{family[row['category']][PurePosixPath(row['file']).stem]}"
        writer.writerow({"licence": "CC0-1.0", **row})
    return out.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the family column of dungeon-tiles/index.csv.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where the file would change")
    check = parser.parse_args().check
    path = TILES / "index.csv"
    text = index_with_families(TILES)
    if check:
        return int(path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8", newline="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
