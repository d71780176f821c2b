"""`.tmod`: the file that tModLoader builds a mod into, opened as a tree of files.

Source: the layout as tModLoader's own reader has it. Little-endian; strings are .NET's (length in 7-bit groups, UTF-8).
"TMOD", the loader's version, SHA-1 of everything behind the length field (20 bytes), a signature (256), the length
(int32), the data. Before version 0.11 the data are one DEFLATE stream of (name, length, content); from 0.11 on a table
of (name, length, stored length) with the stored contents behind it, each DEFLATE where the two lengths differ.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from functools import cached_property
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import ArchiveError, MissingImageError, UnreadableImageError
from .archives import inflate, safe_name
from .trees import DEFAULT_LIMITS, Limits, Tree

__all__ = ["TmodTree", "is_tmod_name", "rawimg"]

CHUNK = 1024 * 1024
NEW_LAYOUT = (0, 11)
MAX_STRING = 4096


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
            raise UnreadableImageError(f"{self.label}: {name} declares {size} bytes, at most {self.limits.entry_bytes}")
        self._file.seek(offset)
        content = self._file.read(stored)
        return content if size == stored else inflate(content, size, f"{self.label}: {name}")

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
        if self.loader_version >= NEW_LAYOUT:
            self._read_table(file)
        else:
            self._read_stream(_Inflating(file, self.limits, label))

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

    def _read_stream(self, stream: _Inflating) -> None:
        self.mod, self.version = self._string(stream), self._string(stream)
        for _ in range(self._count(stream, self.limits.entries)):
            name = safe_name(self._string(stream), self.label)
            (size,) = struct.unpack("<i", self._exactly(stream, 4))
            if size < 0 or size > self.limits.entry_bytes:
                raise ArchiveError(f"{self.label}: {name} declares {size} bytes, at most {self.limits.entry_bytes}")
            self._entries[name] = self._exactly(stream, size)

    def _count(self, file: BinaryIO | _Inflating, possible: int) -> int:
        (count,) = struct.unpack("<i", self._exactly(file, 4))
        if not 0 <= count <= self.limits.entries:
            raise ArchiveError(f"{self.label}: declares {count} files, at most {self.limits.entries} are read")
        if count > possible:
            raise ArchiveError(f"{self.label}: declares {count} files, there is room for {possible}")
        return int(count)

    def _string(self, file: BinaryIO | _Inflating) -> str:
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

    def _exactly(self, file: BinaryIO | _Inflating, size: int) -> bytes:
        content = file.read(size)
        if len(content) != size:
            raise ArchiveError(f"{self.label}: truncated .tmod: {size} bytes wanted, {len(content)} left")
        return content


class _Inflating:
    """Sequential reading of one raw DEFLATE stream, with the limits of an archive."""

    def __init__(self, file: BinaryIO, limits: Limits, label: str) -> None:
        self._chunks = iter(lambda: file.read(64 * 1024), b"")
        self._limits, self._label = limits, label
        self._stream = zlib.decompressobj(-15)
        self._ready = bytearray()
        self._packed = self._unpacked = 0

    def read(self, size: int) -> bytes:
        while len(self._ready) < size and self._more():
            pass
        taken = bytes(self._ready[:size])
        del self._ready[:size]
        return taken

    def _more(self) -> bool:
        pending = self._stream.unconsumed_tail
        if not pending:
            pending = next(self._chunks, b"")
            self._packed += len(pending)
        if not pending or self._stream.eof:
            return False
        try:
            block = self._stream.decompress(pending, CHUNK)
        except zlib.error as error:
            raise ArchiveError(f"{self._label}: damaged .tmod: {error}") from error
        self._unpacked += len(block)
        _check_total(self._unpacked, self._packed, self._limits, self._label)
        self._ready += block
        return True


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
