"""Texture2D surfaces to RGBA: the formats that .xnb files hold, DXT blocks among them.

Source: Microsoft's documentation of block compression (BC1, BC2, BC3) and of XNA's SurfaceFormat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "surface_size", "to_rgba"]

Pixels = NDArray[np.uint8]


def surface_size(surface_format: int, width: int, height: int) -> int:
    """Bytes that a surface of a known format takes."""
    per_block = {4: 8, 5: 16, 6: 16}.get(surface_format)
    if per_block is not None:
        return max(1, (width + 3) // 4) * max(1, (height + 3) // 4) * per_block
    return width * height * (4 if surface_format == 0 else 2)


def to_rgba(surface_format: int, data: bytes, width: int, height: int) -> Pixels:
    """A surface of `surface_size` bytes to (height, width, 4) uint8, alpha as stored.

    Args:
        surface_format: a key of FORMATS.
        data: the largest mip.
        width: pixels.
        height: pixels.
    """
    return FORMATS[surface_format][1](data, width, height)


def _color(data: bytes, width: int, height: int) -> Pixels:
    return np.frombuffer(data, np.uint8).reshape(height, width, 4)


def _bits16(*fields: tuple[int, int]) -> Callable[[bytes, int, int], Pixels]:
    """A reader of 16-bit pixels: (lowest bit, number of bits) of red, green, blue and alpha; no bits are opaque."""

    def read(data: bytes, width: int, height: int) -> Pixels:
        words = np.frombuffer(data, "<u2").reshape(height, width)
        channels = [_expand(words >> low & ((1 << bits) - 1), bits) for low, bits in fields]
        return np.stack(channels, axis=-1)

    return read


def _expand(values: NDArray[Any], bits: int) -> Pixels:
    """`bits`-bit samples to 8 bits by repeating their bits: the full range becomes 0 to 255."""
    if bits == 0:
        return np.full(values.shape, 255, np.uint8)
    wide = values.astype(np.uint16)
    total = np.zeros_like(wide)
    shift = 8 - bits
    while shift > -bits:
        total |= wide << shift if shift >= 0 else wide >> -shift
        shift -= bits
    return total.astype(np.uint8)


def _dxt(kind: int) -> Callable[[bytes, int, int], Pixels]:
    def read(data: bytes, width: int, height: int) -> Pixels:
        rows, columns = max(1, (height + 3) // 4), max(1, (width + 3) // 4)
        blocks = np.frombuffer(data, np.uint8).reshape(rows * columns, -1)
        pixels = _colours(blocks[:, -8:], four=kind != 1)
        if kind == 3:
            pixels[..., 3] = _explicit_alpha(blocks[:, :8])
        elif kind == 5:
            pixels[..., 3] = _interpolated_alpha(blocks[:, :8])
        tiled = pixels.reshape(rows, columns, 4, 4, 4).transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(tiled.reshape(rows * 4, columns * 4, 4)[:height, :width])

    return read


def _colours(blocks: Pixels, four: bool) -> Pixels:
    """(n, 8) colour blocks to (n, 16, 4) pixels. `four`: always four colours, as in DXT3 and DXT5."""
    ends = np.ascontiguousarray(blocks[:, :4]).view("<u2").reshape(-1, 2)
    channels = [_expand(ends >> low & ((1 << bits) - 1), bits) for low, bits in ((11, 5), (5, 6), (0, 5))]
    first, second = np.moveaxis(np.stack(channels, axis=-1).astype(np.uint16), 1, 0)
    opaque = (ends[:, 0] > ends[:, 1])[:, None] | four
    third = np.where(opaque, (2 * first + second) // 3, (first + second) // 2)
    fourth = np.where(opaque, (first + 2 * second) // 3, 0)
    palette = np.full((len(blocks), 4, 4), 255, np.uint8)
    palette[..., :3] = np.stack([first, second, third, fourth], axis=1)
    palette[:, 3, 3] = np.where(opaque[:, 0], 255, 0)
    return np.take_along_axis(palette, _indices(blocks[:, 4:], 2)[..., None], axis=1)


def _explicit_alpha(blocks: Pixels) -> Pixels:
    return (_indices(blocks, 4) * 17).astype(np.uint8)


def _interpolated_alpha(blocks: Pixels) -> Pixels:
    first, second = blocks[:, :1].astype(np.uint16), blocks[:, 1:2].astype(np.uint16)
    steps = np.arange(1, 7)
    eight = ((7 - steps) * first + steps * second) // 7
    six = np.concatenate([((5 - steps[:4]) * first + steps[:4] * second) // 5, first * 0, first * 0 + 255], axis=1)
    palette = np.concatenate([first, second, np.where(first > second, eight, six)], axis=1)
    return np.take_along_axis(palette, _indices(blocks[:, 2:], 3), axis=1).astype(np.uint8)


def _indices(packed: Pixels, bits: int) -> NDArray[np.int64]:
    """(n, 2 * bits) bytes to (n, 16) little-endian indices of `bits` bits."""
    flat = np.unpackbits(np.ascontiguousarray(packed), axis=1, bitorder="little").reshape(len(packed), 16, bits)
    indices: NDArray[np.int64] = (flat.astype(np.int64) << np.arange(bits)).sum(axis=-1)
    return indices


FORMATS: dict[int, tuple[str, Callable[[bytes, int, int], Pixels]]] = {
    0: ("Color", _color),
    1: ("Bgr565", _bits16((11, 5), (5, 6), (0, 5), (0, 0))),
    2: ("Bgra5551", _bits16((10, 5), (5, 5), (0, 5), (15, 1))),
    3: ("Bgra4444", _bits16((8, 4), (4, 4), (0, 4), (12, 4))),
    4: ("Dxt1", _dxt(1)),
    5: ("Dxt3", _dxt(3)),
    6: ("Dxt5", _dxt(5)),
}
"""By XNA 4's SurfaceFormat: name and reader."""
