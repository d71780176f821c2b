"""A PNG writer of the tests' own: every colour type, depth, tRNS, interlacing and damage that files in the wild have."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6


def chunk(kind: bytes, body: bytes, *, bad_crc: bool = False) -> bytes:
    checksum = zlib.crc32(kind + body) ^ (1 if bad_crc else 0)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)


def png(
    samples: NDArray[np.integer],
    colour_type: int,
    depth: int = 8,
    *,
    palette: NDArray[np.uint8] | None = None,
    trns: bytes | None = None,
    interlaced: bool = False,
    before_idat: bytes = b"",
    after_iend: bytes = b"",
) -> bytes:
    """Samples (h, w) or (h, w, channels) of `depth` bits as a PNG file."""
    samples = samples[..., None] if samples.ndim == 2 else samples
    height, width, _ = samples.shape
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced))
    passes = [(0, 0, 1, 1)]
    if interlaced:  # Adam7: (left, top, step across, step down)
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    raw = b"".join(
        b"\0" + _pack(row, depth) for left, top, dx, dy in passes for row in samples[top::dy, left::dx] if row.size
    )
    parts = [SIGNATURE, chunk(b"IHDR", header), before_idat]
    if palette is not None:
        parts.append(chunk(b"PLTE", palette.astype(np.uint8).tobytes()))
    if trns is not None:
        parts.append(chunk(b"tRNS", trns))
    parts += [chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b""), after_iend]
    return b"".join(parts)


def _pack(row: NDArray[np.integer], depth: int) -> bytes:
    flat = row.reshape(-1)
    if depth == 16:
        return flat.astype(">u2").tobytes()
    if depth == 8:
        return flat.astype(np.uint8).tobytes()
    bits = ((flat[:, None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8)
    return np.packbits(bits.reshape(-1)).tobytes()
