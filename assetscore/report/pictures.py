"""Pictures for a page that loads nothing: Textures as small PNG data URIs, each drawing once."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..images import Texture, reduce_area

__all__ = ["LONGEST", "Album", "png_bytes"]

LONGEST = 192
"""Pixels. A longer picture is reduced by area: nobody sees its pixels at the size a page shows it in."""


class Album:
    """Pictures, each kept once however many assets or references show it.

    >>> import numpy as np
    >>> from assetscore.images import load
    >>> album = Album()
    >>> album.add(load(np.eye(8, dtype=np.uint8))), album.add(load(np.eye(8, dtype=np.uint8)))
    (0, 0)
    """

    def __init__(self) -> None:
        self.pictures: list[dict[str, Any]] = []
        self._places: dict[str, int] = {}

    def add(self, texture: Texture | None) -> int | None:
        """The picture's place in `pictures`; None for None. Of an animation its first frame, on the native grid."""
        if texture is None:
            return None
        frame = texture.frames[0]
        place = self._places.get(frame.native_hash)
        if place is None:
            pixels = frame.native
            height, width = pixels.shape[:2]
            if max(height, width) > LONGEST:
                scale = LONGEST / max(height, width)
                pixels = reduce_area(pixels, max(1, round(width * scale)), max(1, round(height * scale)))
            uri = "data:image/png;base64," + base64.b64encode(png_bytes(pixels)).decode("ascii")
            place = self._places[frame.native_hash] = len(self.pictures)
            self.pictures.append({"src": uri, "w": pixels.shape[1], "h": pixels.shape[0]})
        return place


def png_bytes(rgba: NDArray[np.uint8]) -> bytes:
    """(h, w, 4) pixels as a PNG file, with a palette where at most 256 colours allow it; nothing is lost."""
    from PIL import Image

    height, width = rgba.shape[:2]
    packed = np.ascontiguousarray(rgba).view(np.uint32).reshape(height, width)
    colours, places = np.unique(packed, return_inverse=True)
    out = io.BytesIO()
    if len(colours) > 256:
        Image.fromarray(np.ascontiguousarray(rgba)).save(out, "PNG", optimize=True)
        return out.getvalue()
    table = colours.view(np.uint8).reshape(-1, 4)
    image = Image.fromarray(places.reshape(height, width).astype(np.uint8))
    image = image.convert("P") if image.mode != "P" else image
    image.putpalette(table[:, :3].tobytes())
    alpha = table[:, 3]
    if (alpha == 255).all():
        image.save(out, "PNG", optimize=True)
    else:
        image.save(out, "PNG", optimize=True, transparency=alpha.tobytes())
    return out.getvalue()
