"""PNG and JPEG files cut down to what makes their pixels, and checked for what Pillow does not check.

Games load files whose text or colour profile is damaged, and nothing is to be gained from decompressing a stranger's
comment. Pixels that are missing at the end of a PNG, and a JPEG made to be slow, are errors.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence

from .errors import ImageTooLargeError, UnreadableImageError

__all__ = ["MAX_PIXELS", "PNG_SIGNATURE", "clean_jpeg", "clean_png"]

MAX_PIXELS = 2**24
"""4096 x 4096: 64 MiB as RGBA."""
MAX_SCANS = 100
"""Of a progressive JPEG, whose decoding takes as long as it has scans. Encoders write about ten."""

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PIXEL_CHUNKS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel by the PNG colour type."""
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""The passes of an interlaced PNG: left, top, step across, step down."""
_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd7\xff])")
"""The next JPEG segment: stuffed bytes, fill bytes and the markers that stand alone are passed over."""
_SOS, _EOI, _COM = 0xDA, 0xD9, 0xFE
_APP0, _APP14, _APP15 = 0xE0, 0xEE, 0xEF


def clean_png(data: bytes, name: str) -> tuple[bytes, tuple[int, ...] | None]:
    """The PNG with only the chunks that make pixels, and the transparent value of a grey or RGB one.

    That value is read here, since Pillow scales samples of less than 8 bits but not always the value. It comes as 8-bit
    samples; of 16-bit RGB the high bytes; of 16-bit grey, which Pillow keeps, all bits.
    A wrong checksum is an error in the header, the palette and the pixels, and is mended in the rest.
    """
    kept = [PNG_SIGNATURE]
    idat: list[bytes] = []
    position, depth, colour_type, needed = len(PNG_SIGNATURE), 8, -1, 0
    key: tuple[int, ...] | None = None
    while True:
        if position + 12 > len(data):
            raise UnreadableImageError(f"{name}: truncated PNG: it ends at byte {len(data)} before its IEND chunk")
        (length,) = struct.unpack_from(">I", data, position)
        kind = data[position + 4 : position + 8]
        end = position + 12 + length
        if end > len(data):
            raise UnreadableImageError(f"{name}: truncated PNG: its {kind!r} chunk ends after byte {len(data)}")
        body = data[position + 8 : end - 4]
        if (kind == b"IHDR") != (len(kept) == 1):
            raise UnreadableImageError(f"{name}: damaged PNG: it must start with its header and have but one")
        if kind == b"tRNS" and colour_type in (0, 2):
            samples = struct.unpack(f">{length // 2}H", body[: length // 2 * 2])
            if len(samples) != (1 if colour_type == 0 else 3):
                raise UnreadableImageError(f"{name}: damaged PNG: a tRNS chunk of {length} bytes")
            if depth == 16:
                key = samples if colour_type == 0 else tuple(sample >> 8 for sample in samples)
            else:  # only the low `depth` bits count
                most = 2**depth - 1
                key = tuple((sample & most) * 255 // most for sample in samples)
        elif kind in _PIXEL_CHUNKS:
            checksum = zlib.crc32(kind + body)
            if kind != b"tRNS" and data[end - 4 : end] != struct.pack(">I", checksum):
                raise UnreadableImageError(f"{name}: damaged PNG: wrong checksum in its {kind.decode()} chunk")
            kept.append(struct.pack(">I", length) + kind + body + struct.pack(">I", checksum))
        if kind == b"IHDR":
            if length != 13:
                raise UnreadableImageError(f"{name}: damaged PNG: a header of {length} bytes")
            width, height, depth, colour_type, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            if width * height > MAX_PIXELS:
                raise ImageTooLargeError(f"{name}: {width} x {height} pixels, at most {MAX_PIXELS} are decoded")
            if depth not in (1, 2, 4, 8, 16) or colour_type not in _CHANNELS:
                raise UnreadableImageError(f"{name}: damaged PNG: samples of {depth} bits, colour type {colour_type}")
            needed = _png_bytes(width, height, depth * _CHANNELS[colour_type], bool(interlaced))
        if kind == b"IDAT":
            idat.append(body)
        if kind == b"IEND":
            missing = _missing(idat, needed)
            if missing:
                raise UnreadableImageError(
                    f"{name}: truncated PNG: {missing} of the {needed} bytes of its pixels are missing"
                )
            return b"".join(kept), key
        position = end


def clean_jpeg(data: bytes, name: str) -> bytes:
    """The JPEG without comments and application data, but JFIF's and Adobe's, which say what its colours mean.

    From the first scan on nothing is dropped: in damaged pixel data anything may look like a comment.

    Raises:
        UnreadableImageError: more than 100 scans, each of which takes as long as a whole picture.
    """
    kept, position, scans, start = [], 2, 0, 0
    while (found := _MARKER.search(data, position)) is not None and found[1][0] != _EOI:
        marker = found[1][0]
        position = found.end() + int.from_bytes(data[found.end() : found.end() + 2], "big")
        if marker == _SOS:
            scans += 1
        elif scans == 0 and (marker == _COM or (_APP0 < marker <= _APP15 and marker != _APP14)):
            kept.append(data[start : found.start()])
            start = position
    if scans > MAX_SCANS:
        raise UnreadableImageError(f"{name}: a JPEG of {scans} scans, at most {MAX_SCANS} are decoded")
    return b"".join([*kept, data[start:]])


def _png_bytes(width: int, height: int, bits: int, interlaced: bool) -> int:
    """How long the inflated pixel data of a PNG is: rows of whole bytes, one more before each for its filter."""
    total = 0
    for left, top, across, down in _ADAM7 if interlaced else ((0, 0, 1, 1),):
        columns, rows = (width - left + across - 1) // across, (height - top + down - 1) // down
        total += rows * (1 + (columns * bits + 7) // 8) if columns > 0 and rows > 0 else 0
    return total


def _missing(parts: Sequence[bytes], needed: int) -> int:
    """How many of `needed` bytes a zlib stream lacks at its end. Pillow takes one that ends early for a whole picture.

    Nothing is kept, and inflating stops at what is needed. Damage is none of this function's: Pillow finds it.
    """
    inflater = zlib.decompressobj()
    try:
        for part in parts:
            for start in range(0, len(part), 2**16):  # in slices, since what is left of one is copied at every step
                block = part[start : start + 2**16]
                while needed > 0 and not inflater.eof:
                    made = len(inflater.decompress(block, min(needed, 2**20)))
                    needed -= made
                    block = inflater.unconsumed_tail
                    if not block and not made:
                        break
    except zlib.error:
        return 0
    return needed
