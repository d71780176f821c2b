"""`.xnb`: a texture as XNA's and MonoGame's content pipelines build it, with LZX, LZ4 or no compression.

Source: Microsoft's "Compiled (XNB) Content Format" and MonoGame's documentation.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from ..errors import ArchiveError
from .dxt import FORMATS, surface_size, to_rgba
from .lzx import LzxDecoder

__all__ = ["decode_xnb", "lz4_block", "unpremultiply"]

LZX_FLAG, LZ4_FLAG = 0x80, 0x40
FRAME = 0x8000
MAX_UNPACKED = 64 * 1024 * 1024
MAX_SIDE = 16_384
XNA3_FORMATS = {1: 0, 28: 4, 30: 5, 32: 6}
"""SurfaceFormat of XNA 3.1 (version 4 files) to XNA 4's; its Color is BGRA."""


def decode_xnb(data: bytes, label: str) -> NDArray[np.uint8]:
    """The largest mip of the Texture2D in an .xnb file: (h, w, 4) uint8 RGBA, straight alpha.

    Raises:
        ArchiveError: no .xnb, damaged, with lengths that lie, or one that holds something else.
    """
    if data[:3] != b"XNB" or len(data) < 10:
        raise ArchiveError(f"{label}: no .xnb file (it does not begin with XNB)")
    version, flags = data[4], data[5]
    if version not in (4, 5):
        raise ArchiveError(f"{label}: .xnb version {version}; 4 and 5 are read")
    (size,) = struct.unpack_from("<I", data, 6)
    if not 10 <= size <= len(data):
        raise ArchiveError(f"{label}: declares {size} bytes, the file has {len(data)}")
    body = data[10:size]
    if flags & (LZX_FLAG | LZ4_FLAG):
        if len(body) < 4:
            raise ArchiveError(f"{label}: truncated .xnb: {len(data)} bytes")
        (unpacked,) = struct.unpack_from("<I", body)
        if unpacked > MAX_UNPACKED:
            raise ArchiveError(f"{label}: declares {unpacked} bytes unpacked, at most {MAX_UNPACKED} are read")
        body = _lzx(body[4:], unpacked, label) if flags & LZX_FLAG else lz4_block(body[4:], unpacked, label)
    try:
        return _texture(body, version, label)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ArchiveError(f"{label}: damaged .xnb: {error}") from error


def _texture(body: bytes, version: int, label: str) -> NDArray[np.uint8]:
    readers, position = [], 0
    count, position = _seven_bit(body, position, label)
    if count > 1000:
        raise ArchiveError(f"{label}: damaged .xnb: {count} type readers")
    for _ in range(count):
        length, position = _seven_bit(body, position, label)
        if length > 4096 or position + length + 4 > len(body):
            raise ArchiveError(f"{label}: damaged .xnb: a type name of {length} bytes")
        readers.append(body[position : position + length].decode("utf-8"))
        position += length + 4
    _, position = _seven_bit(body, position, label)  # shared resources: none of them matters to a texture
    kind, position = _seven_bit(body, position, label)
    name = readers[kind - 1] if 0 < kind <= len(readers) else "nothing"
    if "Texture2DReader" not in name:
        raise ArchiveError(f"{label}: holds {name[:100]}, not a Texture2D")
    stored, width, height, mips, length = struct.unpack_from("<iIIII", body, position)
    position += 20
    surface_format = XNA3_FORMATS.get(stored, -1) if version == 4 else stored
    if surface_format not in FORMATS:
        known = ", ".join(text for text, _ in FORMATS.values())
        raise ArchiveError(f"{label}: surface format {stored}; read are {known}")
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and mips):
        raise ArchiveError(f"{label}: a texture of {width} x {height} pixels and {mips} mips")
    needed = surface_size(surface_format, width, height)
    if needed > MAX_UNPACKED or length != needed or position + length > len(body):
        raise ArchiveError(
            f"{label}: {width} x {height} {FORMATS[surface_format][0]} pixels need {needed} bytes; "
            f"{length} are declared and {len(body) - position} follow"
        )
    pixels = to_rgba(surface_format, body[position : position + length], width, height)
    if version == 4 and surface_format == 0:
        pixels = pixels[..., [2, 1, 0, 3]]
    return unpremultiply(pixels)


def unpremultiply(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Premultiplied (h, w, 4) to straight alpha: the smallest colour that gives each stored byte again.

    The content pipeline stores floor(c * a / 255). Where a colour is larger than its alpha the picture was never
    premultiplied, and is returned as it is.

    >>> unpremultiply(np.array([[[64, 0, 128, 128]]], np.uint8))
    array([[[128,   0, 255, 128]]], dtype=uint8)
    """
    alpha = pixels[..., 3:].astype(np.uint32)
    if (pixels[..., :3] > alpha).any():
        return pixels
    straight: NDArray[np.uint8] = pixels.copy()
    straight[..., :3] = (pixels[..., :3] * np.uint32(255) + alpha - (alpha > 0)) // np.maximum(alpha, 1)
    return straight


def _lzx(data: bytes, size: int, label: str) -> bytes:
    """Frames: packed size (2 bytes, big-endian), or FF, unpacked size and packed size; a few bytes may be left over."""
    decoder = LzxDecoder(label)
    frames: list[bytes] = []
    position = done = 0
    while done < size:
        if position + 2 > len(data):
            raise ArchiveError(f"{label}: damaged .xnb: {size} bytes unpacked are declared, {done} came")
        unpacked = FRAME
        if data[position] == 0xFF and position + 5 <= len(data):
            unpacked, packed = struct.unpack_from(">HH", data, position + 1)
            position += 5
        else:
            (packed,) = struct.unpack_from(">H", data, position)
            position += 2
        unpacked = min(unpacked, size - done)
        if packed == 0 or unpacked == 0 or position + packed > len(data):
            raise ArchiveError(f"{label}: damaged .xnb: a frame of {packed} bytes for {unpacked}")
        frames.append(decoder.decode(data[position : position + packed], unpacked))
        position += packed
        done += unpacked
    return b"".join(frames)


def lz4_block(data: bytes, size: int, label: str) -> bytes:
    """LZ4's block format: `size` bytes unpacked. Source: the LZ4 block format description.

    Raises:
        ArchiveError: damaged, or of another size.

    >>> lz4_block(bytes([0x31]) + b"abc" + bytes([3, 0, 0x10]) + b"!", 9, "example")
    b'abcabcab!'
    """
    out = bytearray()
    position = 0
    try:
        while position < len(data):
            token = data[position]
            count, position = _lz4_length(data, position + 1, token >> 4)
            literals = data[position : position + count]
            if len(literals) != count or len(out) + count > size:
                raise ArchiveError(f"{label}: damaged LZ4 data: {count} literals at byte {position}")
            out += literals
            position += count
            if position >= len(data):
                break
            offset = data[position] | data[position + 1] << 8
            count, position = _lz4_length(data, position + 2, token & 15)
            count += 4
            if not 0 < offset <= len(out) or len(out) + count > size:
                raise ArchiveError(f"{label}: damaged LZ4 data: a match of {count} bytes, {offset} bytes back")
            pattern = bytes(out[len(out) - offset :][:count])
            out += (pattern * (count // offset + 1))[:count]
    except IndexError:
        raise ArchiveError(f"{label}: damaged LZ4 data: it ends inside a sequence") from None
    if len(out) != size:
        raise ArchiveError(f"{label}: damaged LZ4 data: {size} bytes are declared, {len(out)} came")
    return bytes(out)


def _lz4_length(data: bytes, position: int, nibble: int) -> tuple[int, int]:
    if nibble == 15:
        while True:
            nibble += data[position]
            position += 1
            if data[position - 1] != 255:
                break
    return nibble, position


def _seven_bit(body: bytes, position: int, label: str) -> tuple[int, int]:
    """A number in 7-bit groups, lowest first, and the position behind it."""
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise ArchiveError(f"{label}: damaged .xnb: a number that does not end")
