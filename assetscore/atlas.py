"""Many small pictures on a few PNG pages, pixel-exact: how a saved profile carries its references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .containers import MAX_PIXELS
from .images import enlarge, load

__all__ = ["Place", "pack", "unpack"]

PAGE = 2048
"""Pixels a side. A page grows beyond it only for a single picture that does."""
MAX_TOTAL = 2**29
"""Pixels of all pictures together, 2 GiB: some thirty times what Terraria's 15,456 frames take."""


@dataclass(frozen=True)
class Place:
    """Where a picture's native pixels lie, and by which factor the picture itself is larger."""

    page: int
    left: int
    top: int
    width: int
    height: int
    grid: int = 1

    def to_list(self) -> list[int]:
        return [self.page, self.left, self.top, self.width, self.height, self.grid]


def pack(pictures: Sequence[NDArray[np.uint8]], grids: Sequence[int]) -> tuple[list[bytes], list[Place]]:
    """(h, w, 4) pictures to PNG pages and the place of each, in the order given. Tallest first, in rows."""
    order = sorted(range(len(pictures)), key=lambda i: (-pictures[i].shape[0], -pictures[i].shape[1], i))
    places: dict[int, Place] = {}
    sizes: list[tuple[int, int]] = []
    page = -1
    left = top = shelf = width = height = 0
    for i in order:
        h, w = pictures[i].shape[:2]
        if page >= 0 and left + w > width:
            left, top, shelf = 0, top + shelf, 0
        if page < 0 or top + h > height or w > width:
            page, left, top, shelf = page + 1, 0, 0, 0
            width, height = max(PAGE, w), max(PAGE, h)
            sizes.append((width, 0))
        places[i] = Place(page, left, top, w, h, grids[i])
        left, shelf = left + w, max(shelf, h)
        sizes[page] = (width, max(sizes[page][1], top + h))
    pages = [np.zeros((h, w, 4), np.uint8) for w, h in sizes]
    for i, place in places.items():
        _cut(pages[place.page], place)[:] = pictures[i]
    return [_png(pixels) for pixels in pages], [places[i] for i in range(len(pictures))]


def unpack(pages: Sequence[bytes], places: Sequence[Sequence[int]]) -> list[NDArray[np.uint8]]:
    """The pictures at their full size again.

    Raises:
        ImageError: a page cannot be read.
        ValueError: a place lies outside its page.
    """
    decoded = [load(page, name=f"atlas page {number}").pixels for number, page in enumerate(pages)]
    pictures = []
    total = 0
    for values in places:
        place = Place(*(int(value) for value in values))
        height, width = decoded[place.page].shape[:2] if 0 <= place.page < len(decoded) else (0, 0)
        inside = (
            0 <= place.left <= place.left + place.width <= width
            and 0 <= place.top <= place.top + place.height <= height
        )
        if not inside or place.width < 1 or place.height < 1 or place.grid < 1:
            raise ValueError(f"the atlas holds no picture at {place}")
        total += place.width * place.height * place.grid**2
        if place.width * place.height * place.grid**2 > MAX_PIXELS or total > MAX_TOTAL:
            raise ValueError(f"the atlas' pictures are too large from {place} on")
        pictures.append(enlarge(_cut(decoded[place.page], place), place.grid))
    return pictures


def _cut(page: NDArray[np.uint8], place: Place) -> NDArray[np.uint8]:
    return page[place.top : place.top + place.height, place.left : place.left + place.width]


def _png(pixels: NDArray[Any]) -> bytes:
    from PIL import Image

    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG", optimize=True)
    return out.getvalue()
