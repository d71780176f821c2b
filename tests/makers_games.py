"""Writers of what mods are made of: PNGs, jars and packs, .tmod of both layouts, .xnb of every kind."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from .makers_lzx import compress


def art(seed: int, width: int = 16, height: int = 16, colours: int = 6) -> np.ndarray:
    """Seeded pixels (h, w, 4) of a few colours, part of them clear."""
    rng = np.random.default_rng(seed)
    palette = rng.integers(0, 256, (colours, 4), np.uint8)
    palette[:, 3] = 255
    palette[0] = 0
    pixels = palette[rng.integers(0, colours, (height, width))]
    pixels[0, 0] = palette[1]
    return pixels


def png(pixels: np.ndarray | int, width: int = 16, height: int = 16) -> bytes:
    """A PNG of the pixels, or of `art` of a seed."""
    if isinstance(pixels, int):
        pixels = art(pixels, width, height)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def model(parent: str | None = None, **textures: str) -> bytes:
    content: dict = {} if parent is None else {"parent": parent}
    if textures:
        content["textures"] = textures
    return json.dumps(content).encode()


def solid(parent: str | None = None, **textures: str) -> bytes:
    """A model with elements of its own."""
    content = json.loads(model(parent, **textures))
    content["elements"] = [{"from": [0, 0, 0], "to": [8, 8, 8], "faces": {"up": {"texture": "#all"}}}]
    return json.dumps(content).encode()


def write_tree(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def zip_bytes(
    files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], folders: bool = False, stream: bool = False
) -> bytes:
    """A zip. `folders`: with explicit folder entries; `stream`: with data descriptors, as unseekable output has them."""
    out = io.BytesIO()
    target = _Unseekable(out) if stream else out
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        entries = list(files.items() if isinstance(files, Mapping) else files)
        if folders:
            for folder in sorted(
                {"/".join(n.split("/")[:i]) + "/" for n, _ in entries for i in range(1, n.count("/") + 1)}
            ):
                archive.writestr(zipfile.ZipInfo(folder), b"")
        for name, content in entries:
            archive.writestr(name, content)
    return out.getvalue()


class _Unseekable:
    def __init__(self, file: io.BytesIO) -> None:
        self.file = file

    def write(self, data: bytes) -> int:
        return self.file.write(data)

    def flush(self) -> None:
        pass


def net_string(text: str) -> bytes:
    data = text.encode()
    length, head = len(data), b""
    while length >= 0x80:
        head += bytes([length & 0x7F | 0x80])
        length >>= 7
    return head + bytes([length]) + data


def rawimg(pixels: np.ndarray) -> bytes:
    height, width = pixels.shape[:2]
    return struct.pack("<iii", 1, width, height) + np.ascontiguousarray(pixels).tobytes()


def tmod(files: Mapping[str, bytes], loader: str = "2022.9.47.87", mod: str = "RubyMod", packed: bool = True) -> bytes:
    """A .tmod: before version 0.11 the old layout, else the new one, where `packed` deflates what gets smaller."""
    if tuple(map(int, loader.split("."))) < (0, 11):
        inner = net_string(mod) + net_string("1.0") + struct.pack("<i", len(files))
        for name, content in files.items():
            inner += net_string(name) + struct.pack("<i", len(content)) + content
        data = deflate(inner)
    else:
        table, bodies = b"", b""
        for name, content in files.items():
            stored = deflate(content) if packed else content
            stored = stored if len(stored) < len(content) else content
            table += net_string(name) + struct.pack("<ii", len(content), len(stored))
            bodies += stored
        data = net_string(mod) + net_string("1.0") + struct.pack("<i", len(files)) + table + bodies
    return tmod_around(data, loader)


def tmod_around(data: bytes, loader: str = "2022.9.47.87", length: int | None = None) -> bytes:
    """The head of a .tmod before any data, with the right SHA-1; `length` lies about the data's length."""
    head = b"TMOD" + net_string(loader) + hashlib.sha1(data).digest() + bytes(256)
    return head + struct.pack("<i", len(data) if length is None else length) + data


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


READER = "Microsoft.Xna.Framework.Content.Texture2DReader, Microsoft.Xna.Framework.Graphics, Version=4.0.0.0"


def xnb_body(surface: bytes, width: int, height: int, surface_format: int = 0, reader: str = READER) -> bytes:
    head = bytes([1]) + net_string(reader) + struct.pack("<i", 0) + bytes([0, 1])
    return head + struct.pack("<iIIII", surface_format, width, height, 1, len(surface)) + surface


def xnb(
    surface: bytes,
    width: int,
    height: int,
    surface_format: int = 0,
    packing: str = "",
    version: int = 5,
    platform: str = "w",
) -> bytes:
    """An .xnb with one Texture2D. `packing`: "", "lz4", or LZX as "stored", "verbatim" or "aligned"."""
    body = xnb_body(surface, width, height, surface_format)
    flags = {"": 0, "lz4": 0x40}.get(packing, 0x80) | 1
    if packing == "lz4":
        body = struct.pack("<I", len(body)) + lz4_pack(body)
    elif packing:
        body = struct.pack("<I", len(body)) + lzx_pack(body, packing)
    return xnb_around(body, flags, version, platform)


def xnb_around(body: bytes, flags: int = 0, version: int = 5, platform: str = "w", size: int | None = None) -> bytes:
    return b"XNB" + platform.encode() + bytes([version, flags]) + struct.pack("<I", size or 10 + len(body)) + body


def lzx_pack(body: bytes, kind: str) -> bytes:
    """Frames as .xnb has them: whole ones by their packed size, the last with both sizes, five spare bytes behind."""
    half = len(body) // 2
    packed = b""
    for frame, size in compress(body, [(kind, half), (kind, len(body) - half)]):
        packed += (b"" if size == 0x8000 else b"\xff" + struct.pack(">H", size)) + struct.pack(">H", len(frame)) + frame
    return packed + bytes(5)


def lz4_pack(data: bytes) -> bytes:
    """LZ4 block format: greedy matches of at least four bytes, the last bytes as literals."""
    out, literals, at, seen = bytearray(), bytearray(), 0, {}

    def length_bytes(count: int) -> bytes:
        return b"" if count < 15 else b"\xff" * ((count - 15) // 255) + bytes([(count - 15) % 255])

    while at < len(data):
        known = seen.get(data[at : at + 4])
        count = 0
        if known is not None and at - known < 65536 and at < len(data) - 12:
            while at + count < len(data) - 5 and data[known + count] == data[at + count]:
                count += 1
        seen[data[at : at + 4]] = at
        if count < 4:
            literals.append(data[at])
            at += 1
            continue
        out.append(min(len(literals), 15) << 4 | min(count - 4, 15))
        out += length_bytes(len(literals)) + literals + struct.pack("<H", at - known) + length_bytes(count - 4)
        literals.clear()
        at += count
    return bytes(out + bytes([min(len(literals), 15) << 4]) + length_bytes(len(literals)) + literals)
