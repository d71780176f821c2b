"""`.tmod`: the file that tModLoader builds a mod into, opened as a tree of files.

Source: the layout as tModLoader's own reader has it. Little-endian; strings are .NET's (length in 7-bit groups, UTF-8).
"TMOD", the loader's version, SHA-1 of everything behind the length field (20 bytes), a signature (256), the length
(int32), the data. Before version 0.11 the data are one DEFLATE stream of (name, length, content); from 0.11 on a table
of (name, length, stored length) with the stored contents behind it, each DEFLATE where the two lengths differ.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
from functools import cached_property
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import ArchiveError, ImageError, ImageTooLargeError, MissingImageError, UnreadableImageError
from .archives import inflate, safe_name
from .inflating import Inflating
from .trees import DEFAULT_LIMITS, FolderTree, Limits, Tree

__all__ = ["TmodTree", "is_tmod_name", "open_built", "rawimg"]

CHUNK = 1024 * 1024
NEW_LAYOUT = (0, 11)
MAX_STRING = 4096
OLD_TOTAL = 256 * 1024 * 1024
"""Bytes that a mod in the old layout may unpack to, or four times its own size: all of it is unpacked to find out what
it holds. Eight thousand textures of ordinary size are as much."""
KEPT = 32 * 1024 * 1024
"""Bytes of its files that stay in memory then. The others are unpacked again when they are read."""
WANTED = (".rawimg", ".png", ".cs", ".txt")
"""Which files those are."""


class TmodTree(Tree):
    """A built mod's files, by the names they have in the mod ("Items/Ruby.rawimg").

    Attributes:
        mod: the internal name, first part of every texture's path in code.
        version: of the mod.
        loader_version: of tModLoader, as numbers.

    Raises:
        ArchiveError: no .tmod, damaged (the SHA-1 is checked), or hostile: lengths that are negative or lie, names that
            leave the archive, too many files, too much content.
    """

    def __init__(
        self, path: str | os.PathLike[str] | BinaryIO, limits: Limits = DEFAULT_LIMITS, *, label: str = ""
    ) -> None:
        self.limits = limits
        if isinstance(path, (str, os.PathLike)):
            self.label = label or os.fspath(path)
            try:
                self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by close()
            except OSError as error:
                raise ArchiveError(f"{self.label}: {error.strerror}") from error
        else:
            self.label, self._file = label or "the given file", path
        try:
            self._read_head()
        except ArchiveError:
            self._file.close()
            raise
        except (struct.error, OSError, UnicodeDecodeError) as error:
            self._file.close()
            raise ArchiveError(f"{self.label}: damaged .tmod: {error}") from error

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))

    def read(self, name: str) -> bytes:
        entry = self._entries.get(name)
        if entry is None:
            raise MissingImageError(f"{self.label}: has no file {name}")
        if isinstance(entry, bytes):
            return entry
        offset, size, stored = entry
        if size > self.limits.entry_bytes:
            raise ImageTooLargeError(f"{self.label}: {name} declares {size} bytes, at most {self.limits.entry_bytes}")
        if self._stream is not None:
            self._stream.seek(offset)
            return self._exactly(self._stream, size)
        self._file.seek(offset)
        content = self._file.read(stored)
        return content if size == stored else inflate(content, size, f"{self.label}: {name}")

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def close(self) -> None:
        self._file.close()

    def _read_head(self) -> None:
        file, label = self._file, self.label
        self._end = file.seek(0, os.SEEK_END)
        file.seek(0)
        if file.read(4) != b"TMOD":
            raise ArchiveError(f"{label}: no .tmod file (it does not begin with TMOD)")
        self.loader_version = _version(self._string(file), label)
        digest = self._exactly(file, 20)
        self._exactly(file, 256)
        (length,) = struct.unpack("<i", self._exactly(file, 4))
        start = file.tell()
        if length < 0 or length > self._end - start:
            raise ArchiveError(f"{label}: declares {length} bytes of data, {self._end - start} follow")
        if _sha1(file) != digest:
            raise ArchiveError(f"{label}: damaged .tmod: its SHA-1 is another than it states")
        file.seek(start)
        self._entries: dict[str, bytes | tuple[int, int, int]] = {}
        self._stream: Inflating | None = None
        if self.loader_version >= NEW_LAYOUT:
            self._read_table(file)
        else:
            limits = self.limits
            total = min(max(OLD_TOTAL, 4 * self._end), limits.total_bytes)
            self._stream = Inflating(file, total, limits.ratio, limits.ratio_from, label)
            self._read_stream(self._stream)

    def _read_table(self, file: BinaryIO) -> None:
        self.mod, self.version = self._string(file), self._string(file)
        count = self._count(file, (self._end - file.tell()) // 9)
        table = []
        unpacked = packed = 0
        for _ in range(count):
            name = safe_name(self._string(file), self.label)
            size, stored = struct.unpack("<ii", self._exactly(file, 8))
            if size < 0 or stored < 0 or stored > self._end:
                raise ArchiveError(f"{self.label}: {name} declares {size} bytes, {stored} of them stored")
            unpacked, packed = unpacked + size, packed + stored
            table.append((name, size, stored))
        offset = file.tell()
        if packed > self._end - offset:
            raise ArchiveError(f"{self.label}: its files declare {packed} stored bytes, {self._end - offset} follow")
        _check_total(unpacked, packed, self.limits, self.label)
        for name, size, stored in table:
            self._entries[name] = (offset, size, stored)
            offset += stored

    def _read_stream(self, stream: Inflating) -> None:
        kept = 0
        self.mod, self.version = self._string(stream), self._string(stream)
        for _ in range(self._count(stream, self.limits.entries)):
            name = safe_name(self._string(stream), self.label)
            (size,) = struct.unpack("<i", self._exactly(stream, 4))
            if size < 0:
                raise ArchiveError(f"{self.label}: {name} declares {size} bytes")
            offset = stream.position
            if name.lower().endswith(WANTED) and size <= min(KEPT - kept, self.limits.entry_bytes):
                kept += size
                self._entries[name] = self._exactly(stream, size)
                continue
            self._entries[name] = (offset, size, size)
            stream.seek(offset + size)
            if stream.position != offset + size:
                raise ArchiveError(f"{self.label}: truncated .tmod: {name} declares {size} bytes, fewer are left")

    def _count(self, file: BinaryIO | Inflating, possible: int) -> int:
        (count,) = struct.unpack("<i", self._exactly(file, 4))
        if not 0 <= count <= self.limits.entries:
            raise ArchiveError(f"{self.label}: declares {count} files, at most {self.limits.entries} are read")
        if count > possible:
            raise ArchiveError(f"{self.label}: declares {count} files, there is room for {possible}")
        return int(count)

    def _string(self, file: BinaryIO | Inflating) -> str:
        length = shift = 0
        while True:
            (byte,) = self._exactly(file, 1)
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 28:
                raise ArchiveError(f"{self.label}: damaged .tmod: a text's length does not end")
        if length > MAX_STRING:
            raise ArchiveError(f"{self.label}: declares a text of {length} bytes, at most {MAX_STRING} are read")
        return self._exactly(file, length).decode("utf-8")

    def _exactly(self, file: BinaryIO | Inflating, size: int) -> bytes:
        content = file.read(size)
        if len(content) != size:
            raise ArchiveError(f"{self.label}: truncated .tmod: {size} bytes wanted, {len(content)} left")
        return content


def open_built(tree: Tree, name: str) -> TmodTree:
    """The .tmod of a folder or archive.

    Raises:
        ArchiveError: it is none, damaged, hostile, or a link that leads out.
    """
    try:
        if isinstance(tree, FolderTree):
            return TmodTree(tree.inside(name), tree.limits, label=f"{tree.label}/{name}")
        return TmodTree(io.BytesIO(tree.read(name)), tree.limits, label=f"{tree.label}!{name}")
    except ImageError as error:
        raise ArchiveError(str(error)) from error


def is_tmod_name(name: str) -> bool:
    """Does the name say .tmod?"""
    return name.lower().endswith(".tmod")


def _check_total(unpacked: int, packed: int, limits: Limits, label: str) -> None:
    if unpacked > limits.total_bytes or (unpacked > limits.ratio_from and unpacked > limits.ratio * packed):
        raise ArchiveError(f"{label}: {packed} bytes unpack to {unpacked} or more, which no mod's files do")


def _sha1(file: BinaryIO) -> bytes:
    digest = hashlib.sha1(usedforsecurity=False)
    for chunk in iter(lambda: file.read(CHUNK), b""):
        digest.update(chunk)
    return digest.digest()


def _version(text: str, label: str) -> tuple[int, ...]:
    """Versions compare as numbers, part by part: 0.9 is older than 0.11."""
    parts = text.split(".")
    if not parts or not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise ArchiveError(f"{label}: damaged .tmod: {text[:40]!r} is no version")
    return tuple(map(int, parts))


def rawimg(content: bytes, label: str) -> NDArray[np.uint8]:
    """The pixels of a .rawimg, (h, w, 4) uint8 straight alpha: int32 1, width, height, then RGBA.

    Raises:
        UnreadableImageError: another format, or a size that does not fit the content.
    """
    if len(content) < 12:
        raise UnreadableImageError(f"{label}: a .rawimg of {len(content)} bytes")
    version, width, height = struct.unpack_from("<iii", content)
    if version != 1 or width <= 0 or height <= 0 or width * height * 4 != len(content) - 12:
        raise UnreadableImageError(
            f"{label}: a .rawimg of version {version}, {width} x {height} pixels, {len(content) - 12} bytes of them"
        )
    return np.frombuffer(content, np.uint8, offset=12).reshape(height, width, 4)
