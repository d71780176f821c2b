"""The game's own Terraria textures as references: an installed game's Content/Images, or a folder of extracted PNGs."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArchiveError, ImageError, ReferenceSetError
from ..folders import shipped_folder
from ..images import load
from .archives import open_tree
from .base import ReferenceRecord
from .terraria_grids import Grid, cut, grid_for
from .trees import DEFAULT_LIMITS, Limits, Tree
from .xnb import decode_xnb

__all__ = ["references", "sheet_grid"]

_FILES = re.compile(r"(Item|Projectile|NPC|Tiles)_(\d{1,5})\.(xnb|png)", re.IGNORECASE)
_KINDS = {
    "item": ("Item", "item"),
    "projectile": ("Projectile", "projectile"),
    "npc": ("NPC", "npc"),
    "tiles": ("Tiles", "tile"),
}

log = logging.getLogger(__name__)


def references(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> Iterator[ReferenceRecord]:
    """The game's own item, projectile, tile and NPC textures, each frame a record.

    Args:
        path: the game's folder, its Content or Images folder, a zip of one, or a folder of PNGs with the same names
            (``Item_1.png``, ``Tiles_0.png``). Where a name is there twice the .xnb counts.

    What counts: every Item_N, Projectile_N, NPC_N and Tiles_N that can be read and shows something. An item is one
    sprite, or as many frames as the table says; a projectile and an NPC its frames, by the table, by the 40 x 56 px of
    town NPCs, or by the blank lines between them; a tile sheet its distinct 16 px cells that show something, at most
    32. Frames of one sheet are a group, and frames with the same pixels count once. Words are not known from the files:
    they are empty.

    Raises:
        UsageError: there is nothing at `path`.
        ArchiveError: a damaged or hostile archive.
        ReferenceSetError: no such texture in it.
    """
    count = 0
    with open_tree(path, limits) as tree:
        for (kind, number), name in sorted(_sheets(tree).items()):
            title, category = _KINDS[kind]
            try:
                pixels = _pixels(tree, name)
            except (ImageError, ArchiveError) as error:
                log.warning("left out of the references: %s", error)
                continue
            height, width = pixels.shape[:2]
            texture = cut(pixels, sheet_grid(category, number, width, height))
            frames = [frame for frame in texture.frames if not frame.is_empty]
            for index, frame in enumerate(frames):
                sheet = f"{title}_{number}"
                count += 1
                yield ReferenceRecord(f"{sheet}#{index}" if len(frames) > 1 else sheet, category, frame, sheet, "")
        if not count:
            raise ReferenceSetError(f"{tree.label}: holds no Item_N, Projectile_N, NPC_N or Tiles_N as .xnb or .png")


def sheet_grid(category: str, number: int, width: int, height: int) -> Grid:
    """How the game's own sheet of that number is cut: by the table, else by what is known of its category."""
    entry: Any = _table().get(category, {}).get(str(number))
    if isinstance(entry, int):
        return Grid(rows=entry)
    if isinstance(entry, list):
        return Grid(cell=(entry[0], entry[1]), padding=entry[2])
    return grid_for(category, width, height)


def _sheets(tree: Tree) -> dict[tuple[str, int], str]:
    """(kind, number) to file; a name that is there more than once counts where it lies least deep, as .xnb."""
    found: dict[tuple[str, int], tuple[int, bool, str]] = {}
    for name in tree.names:
        match = _FILES.fullmatch(name.rpartition("/")[2])
        if match is not None:
            key = (match[1].lower(), int(match[2]))
            rank = (name.count("/"), match[3].lower() != "xnb", name)
            found[key] = min(found.get(key, rank), rank)
    return {key: rank[2] for key, rank in found.items()}


def _pixels(tree: Tree, name: str) -> NDArray[np.uint8]:
    content = tree.read(name)
    return decode_xnb(content, name) if name.lower().endswith(".xnb") else load(content, name=name).pixels


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Any]]:
    """The shipped table of frame counts and cells: references/terraria-grids.json says what it covers."""
    content: dict[str, Any] = json.loads((shipped_folder("references") / "terraria-grids.json").read_text("utf-8"))
    return content
