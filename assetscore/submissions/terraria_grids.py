"""How Terraria's sheets are cut: strips of frames, tiles on a grid of 18 px, walls on one of 36 px, padding dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..frames import MAX_FRAMES, Box
from ..images import Texture

__all__ = ["Grid", "cut", "drawn_in_blocks", "infer_rows", "strip_boxes"]

MAX_CELLS = 32
"""Of a tile sheet at most this many distinct cells are frames, spread evenly: terrain has up to 240 much alike."""
MAX_ROWS = 64
TOWN_NPC = (40, 56)


@dataclass(frozen=True)
class Grid:
    """How one sheet is cut.

    Attributes:
        rows: equal frames one above the other; a remainder below is no frame.
        columns: equal frames beside each other.
        cell: (width, height) of cells instead, where the sheet is a grid.
        padding: pixels between cells.
        infer: find the rows by their blank lines where nothing else is known.
    """

    rows: int = 1
    columns: int = 1
    cell: tuple[int, int] | None = None
    padding: int = 0
    infer: bool = False


def cut(pixels: NDArray[np.uint8], grid: Grid) -> Texture:
    """A sheet's pixels (h, w, 4) to a Texture whose frames are the grid's; frames that show nothing are left out."""
    height, width = pixels.shape[:2]
    flags: tuple[str, ...] = ()
    if grid.cell is not None:
        boxes = _cells(pixels, grid.cell, grid.padding)
    else:
        rows = grid.rows
        if grid.infer and rows == 1 and grid.columns == 1:
            rows = infer_rows(pixels)
            if rows > 1:
                flags = (f"cut into {rows} frames by the blank lines between them",)
        boxes = strip_boxes(width, height, rows, grid.columns)
        if 1 < len(boxes) < rows * grid.columns:
            flags = (*flags, f"only the first {MAX_FRAMES} of {rows * grid.columns} frames are used")
        boxes = [box for box in boxes if _visible(pixels, box)]
    return Texture.from_rgba(pixels, boxes if len(boxes) > 1 or grid.cell is not None else (), flags)


def strip_boxes(width: int, height: int, rows: int, columns: int = 1) -> list[Box]:
    """Equal frames, row by row, at most MAX_FRAMES of them; sizes are rounded down, as the game does.

    >>> strip_boxes(30, 65, 2)
    [(0, 0, 30, 32), (0, 32, 30, 32)]
    """
    frame_width, frame_height = width // max(columns, 1), height // max(rows, 1)
    if rows * columns <= 1 or frame_width == 0 or frame_height == 0:
        return [(0, 0, width, height)]
    places = (divmod(number, columns) for number in range(min(rows * columns, MAX_FRAMES)))
    return [(x * frame_width, y * frame_height, frame_width, frame_height) for y, x in places]


def infer_rows(pixels: NDArray[np.uint8]) -> int:
    """How many frames a strip seems to hold: the most equal parts that each show something and end in a blank line.

    NPC and projectile sheets of the game keep two clear pixels below each frame. A guess: the caller says so.

    >>> strip = np.zeros((40, 20, 4), np.uint8)
    >>> strip[1:17] = strip[21:37] = 255
    >>> infer_rows(strip)
    2
    """
    height, width = pixels.shape[:2]
    shown = pixels[..., 3].any(axis=1)
    for rows in range(min(MAX_ROWS, height // 8), 1, -1):
        if height % rows == 0 and height // rows * 4 >= width:
            parts = shown.reshape(rows, -1)
            if not parts[:, -2:].any() and parts.any(axis=1).all():
                return rows
    return 1


def drawn_in_blocks(pixels: NDArray[np.uint8], size: int = 2) -> bool:
    """Does every size x size block of (h, w, 4) pixels have one colour, whatever the picture's size?"""
    height, width = pixels.shape[:2]
    if height % size or width % size:
        return False
    blocks = pixels.reshape(height // size, size, width // size, size, 4)
    return bool((blocks == blocks[:, :1, :, :1]).all())


def grid_for(category: str, width: int, height: int, count: int | None = None, suffix: str = "") -> Grid:
    """The grid of a sheet of a category, by what is known of it.

    Args:
        category: "item", "projectile", "tile", "wall", "npc", "buff" ...
        width: pixels.
        height: pixels.
        count: the number of frames, where code or a table states it.
        suffix: of worn things: "Head", "Legs", "Body" ...
    """
    if category == "tile":
        return Grid(cell=(16, 16), padding=2)
    if category == "wall":
        return Grid(cell=(32, 32), padding=4)
    if suffix in ("Head", "Legs", "Body", "Arms", "FemaleBody"):
        return Grid(cell=(40, 56)) if width % 40 == 0 and height >= 56 else Grid()
    if count is not None and count > 0:
        return Grid(rows=count)
    if category == "npc" and (width, height % TOWN_NPC[1]) == (TOWN_NPC[0], 0):
        return Grid(rows=height // TOWN_NPC[1])
    return Grid(infer=category in ("npc", "projectile"))


def _cells(pixels: NDArray[np.uint8], cell: tuple[int, int], padding: int) -> list[Box]:
    """The distinct cells that show something, at most MAX_CELLS of them, spread evenly."""
    height, width = pixels.shape[:2]
    cell_width, cell_height = min(cell[0], width), min(cell[1], height)
    distinct: dict[bytes, Box] = {}
    for top in range(0, height - cell_height + 1, cell[1] + padding):
        for left in range(0, width - cell_width + 1, cell[0] + padding):
            box = (left, top, cell_width, cell_height)
            if _visible(pixels, box):
                distinct.setdefault(pixels[top : top + cell_height, left : left + cell_width].tobytes(), box)
    boxes = list(distinct.values())
    if len(boxes) <= MAX_CELLS:
        return boxes
    return [boxes[i * len(boxes) // MAX_CELLS] for i in range(MAX_CELLS)]


def _visible(pixels: NDArray[np.uint8], box: Box) -> bool:
    left, top, width, height = box
    return bool(pixels[top : top + height, left : left + width, 3].any())
