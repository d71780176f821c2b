"""Textures as pages show them: PNG bytes made from canonical pixels, enlarged by whole numbers only."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field

from ..images import Texture

__all__ = ["Picture", "picture_of"]

FRAME_MS = 150
"""Milliseconds a frame of an animated texture is shown."""


@dataclass(frozen=True)
class Picture:
    """One picture as a page shows it: PNG bytes made anew, never a stranger's file as it is."""

    png: bytes = field(repr=False)
    width: int
    height: int

    def factor(self, side: int) -> int:
        """The largest whole number by which it can be enlarged within side x side; 1 where it is larger already."""
        return max(1, side // max(self.width, self.height))

    def sides(self, factor: int) -> tuple[int, int]:
        """(width, height) when every pixel is drawn factor x factor."""
        return self.width * factor, self.height * factor

    @property
    def uri(self) -> str:
        """The picture as a data: address, for pages that are one file."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


def picture_of(texture: Texture) -> Picture:
    """A Texture as a PNG; one that moves in the game moves here too, its frames one after the other."""
    from PIL import Image

    frames = [Image.fromarray(frame.pixels) for frame in texture.frames]
    file = io.BytesIO()
    if len(frames) > 1 and len({frame.size for frame in frames}) == 1:
        frames[0].save(file, "PNG", save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0)
    else:
        frames[0].save(file, "PNG")
    return Picture(file.getvalue(), *frames[0].size)
