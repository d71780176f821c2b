"""Zips, jars and resource packs as trees of files, checked when they are opened and never unpacked to disk.

What a stranger's archive claims is checked before it is believed: the number of entries before they are read, names
before they are listed, sizes before and while they are decompressed.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO, NamedTuple

from ..errors import (
    ArchiveError,
    ImageError,
    ImageTooLargeError,
    MissingImageError,
    UnreadableImageError,
    UnsupportedTypeError,
    UsageError,
)
from .trees import DEFAULT_LIMITS, FolderTree, Limits, Tree

__all__ = ["DamagedArchive", "ZipTree", "inflate", "is_archive_name", "open_nested", "open_tree", "safe_name"]

MAX_DIRECTORY = 64 * 1024 * 1024
"""Bytes. A hundred thousand entries of ordinary names take a tenth of it."""
_LOCAL_HEAD = struct.Struct("<4s22xHH")
_ENCRYPTED = 0x0041
_DIRECTORY_ENTRY = struct.Struct("<4s24xHHH")


class DamagedArchive(ArchiveError):
    """No zip, or not a whole one. Inside another it costs that one its content, and the rest is read; a hostile one
    (limits, links, names that lead out) is a plain ArchiveError, which nothing around it survives."""


class _Entry(NamedTuple):
    """Where a file lies in a zip; a tenth of what zipfile keeps of it."""

    offset: int
    packed: int
    size: int
    checksum: int
    method: int | None
    """None of an encrypted one."""


class ZipTree(Tree):
    """A zip, jar or resource pack, checked when it is opened.

    Args:
        source: a path, or the bytes of an archive inside another.
        limits: what it may ask.
        label: for messages, where `source` is bytes.
        outer: the archive that it lies in; their files share one total.

    Raises:
        ArchiveError: no zip, damaged, encrypted, or hostile: names that leave the archive, links, too many entries,
            too much or too highly compressed content, too deeply nested.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes,
        limits: Limits = DEFAULT_LIMITS,
        *,
        label: str | None = None,
        outer: ZipTree | None = None,
    ) -> None:
        self.limits = limits
        self.depth: int = 0 if outer is None else outer.depth + 1
        self._spent: int = 0 if outer is None else outer._spent
        if isinstance(source, bytes):
            self.label = label or "the given bytes"
            file: BinaryIO = io.BytesIO(source)
        else:
            self.label = label or os.fspath(source)
            try:
                file = open(source, "rb")  # noqa: SIM115 - closed by close()
            except OSError as error:
                raise ArchiveError(f"{self.label}: {error.strerror}") from error
        try:
            if self.depth > limits.depth:
                raise ArchiveError(f"{self.label}: archives nested more than {limits.depth} deep")
            _count_entries(file, self.label, limits.entries)
            self._file, self._length = file, file.seek(0, os.SEEK_END)
            with zipfile.ZipFile(file) as archive:
                self._entries = dict(self._checked(archive))
            self._spent += sum(entry.size for entry in self._entries.values())
            if outer is not None:
                outer._spent = self._spent
            if self._spent > limits.total_bytes:
                raise ArchiveError(f"{self.label}: declares {self._spent} bytes, at most {limits.total_bytes} are read")
        except ArchiveError:
            file.close()
            raise
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, struct.error) as error:
            file.close()
            raise DamagedArchive(f"{self.label}: no readable zip: {error}") from error

    def _checked(self, archive: zipfile.ZipFile) -> Iterator[tuple[str, _Entry]]:
        unpacked = packed = 0
        for info in archive.infolist():
            name = safe_name(info.filename, self.label)
            if info.create_system == 3 and stat.S_ISLNK(info.external_attr >> 16):
                raise ArchiveError(f"{self.label}: {name!r} is a link; archives with links are not read")
            unpacked += info.file_size
            packed += info.compress_size
            if not name.endswith("/"):
                method = None if info.flag_bits & _ENCRYPTED else info.compress_type
                yield name, _Entry(info.header_offset, info.compress_size, info.file_size, info.CRC, method)
        if unpacked > self.limits.ratio_from and unpacked > self.limits.ratio * packed:
            raise ArchiveError(
                f"{self.label}: {packed} bytes declare to unpack to {unpacked}, more than {self.limits.ratio} to 1"
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))

    def read(self, name: str) -> bytes:
        entry = self._entries.get(name)
        label = f"{self.label}: {name}"
        if entry is None:
            raise MissingImageError(f"{self.label}: has no file {name}")
        if entry.method is None:
            raise UnreadableImageError(f"{label} is encrypted")
        if entry.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnreadableImageError(f"{label} is packed by a method (bzip2, LZMA ...) that is not read")
        if max(entry.size, entry.packed) > self.limits.entry_bytes:
            raise ImageTooLargeError(
                f"{label} declares {entry.size} bytes, {entry.packed} packed, "
                f"at most {self.limits.entry_bytes} are read"
            )
        stored = self._stored(entry, label)
        content = stored if entry.method == zipfile.ZIP_STORED else inflate(stored, entry.size, label)
        if len(content) != entry.size:
            raise UnreadableImageError(f"{label} declares {entry.size} bytes, {len(content)} came")
        if zlib.crc32(content) != entry.checksum:
            raise UnreadableImageError(f"{label} is damaged: wrong checksum")
        return content

    def _stored(self, entry: _Entry, label: str) -> bytes:
        """The packed bytes of an entry, which lie behind a head with the name again (APPNOTE 4.3.7)."""
        try:
            self._file.seek(entry.offset)
            signature, name, extra = _LOCAL_HEAD.unpack(self._file.read(_LOCAL_HEAD.size))
            start = entry.offset + _LOCAL_HEAD.size + name + extra
            if signature != b"PK\x03\x04" or start + entry.packed > self._length:
                raise UnreadableImageError(f"{label} is damaged: it does not lie where the directory says")
            self._file.seek(start)
            return self._file.read(entry.packed)
        except (OSError, ValueError, OverflowError, struct.error) as error:
            raise UnreadableImageError(f"{label} is damaged: {error}") from error

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def close(self) -> None:
        self._file.close()


def open_tree(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> Tree:
    """The folder or zip at `path` as a Tree; what a file is, its content decides.

    Raises:
        UnsupportedTypeError: `path` is no path.
        UsageError: there is nothing at `path`.
        ArchiveError: a file that is no zip, or a hostile one.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise UnsupportedTypeError(f"path must be the path of a folder or an archive, got {type(path).__name__}")
    text = os.fspath(path)
    try:
        mode = os.stat(text).st_mode
    except (OSError, ValueError) as error:
        raise UsageError(f"path: nothing to read at {text}: {getattr(error, 'strerror', None) or error}") from error
    if stat.S_ISDIR(mode):
        return FolderTree(text, limits)
    if not stat.S_ISREG(mode):
        raise ArchiveError(f"{text}: is neither a folder nor a regular file")
    return ZipTree(text, limits)


def open_nested(tree: Tree, name: str) -> ZipTree:
    """The archive `name` of a tree as a tree of its own.

    Raises:
        DamagedArchive: it is none, or damaged.
        ArchiveError: it is hostile, too large or too deeply nested.
    """
    try:
        if isinstance(tree, FolderTree):
            return ZipTree(tree.inside(name), tree.limits)
        outer = tree if isinstance(tree, ZipTree) else None
        return ZipTree(tree.read(name), tree.limits, label=f"{tree.label}!{name}", outer=outer)
    except ImageTooLargeError as error:
        raise ArchiveError(str(error)) from error
    except ImageError as error:
        raise DamagedArchive(str(error)) from error


def safe_name(name: str, label: str) -> str:
    """A name from an archive with forward slashes, or an ArchiveError where it could point outside.

    >>> safe_name("textures\\\\item\\\\ruby.png", "pack.zip")
    'textures/item/ruby.png'
    >>> safe_name("../ruby.png", "pack.zip")
    Traceback (most recent call last):
        ...
    assetscore.errors.ArchiveError: pack.zip: the name '../ruby.png' leads out of the archive
    """
    slashed = name.replace("\\", "/")
    if slashed.startswith("/") or slashed[1:2] == ":" or "\0" in name or ".." in slashed.split("/"):
        raise ArchiveError(f"{label}: the name {name[:200]!r} leads out of the archive")
    if len(slashed) > 1024:
        raise ArchiveError(f"{label}: a name of {len(slashed)} characters, at most 1024 are allowed: {name[:60]!r}...")
    while slashed.startswith("./"):
        slashed = slashed[2:]
    return slashed


def is_archive_name(name: str) -> bool:
    """Does the name say zip or jar?"""
    return name.lower().endswith((".jar", ".zip"))


def inflate(data: bytes, size: int, label: str) -> bytes:
    """Raw DEFLATE of exactly `size` bytes unpacked; never decompresses further than that.

    Raises:
        UnreadableImageError: damaged, or of another size than declared.
    """
    stream = zlib.decompressobj(-15)
    try:
        content = stream.decompress(data, size + 1)
    except zlib.error as error:
        raise UnreadableImageError(f"{label}: damaged DEFLATE data: {error}") from error
    if len(content) != size:
        more = "more" if len(content) > size else str(len(content))
        raise UnreadableImageError(f"{label}: declares {size} bytes unpacked, {more} came")
    return content


def _count_entries(file: BinaryIO, label: str, limit: int) -> None:
    """Refuse a central directory of more than `limit` entries before an object is made for each.

    Walks the directory's fixed-size heads (PKWARE's APPNOTE 4.3.12). The count that the archive states is not used: it
    may lie.
    """
    size = file.seek(0, os.SEEK_END)
    tail_start = max(0, size - 65_557)
    file.seek(tail_start)
    tail = file.read()
    at = len(tail) - 22 if tail[-22:-18] == b"PK\x05\x06" else tail.rfind(b"PK\x05\x06")
    if at < 0 or at + 22 > len(tail):
        raise DamagedArchive(f"{label}: no zip archive (it has no end-of-directory record)")
    (length,) = struct.unpack_from("<I", tail, at + 12)
    end = tail_start + at
    if at >= 76 and tail[at - 20 : at - 16] == b"PK\x06\x07":  # zip64: the sizes are in a record of its own
        if tail[at - 76 : at - 72] != b"PK\x06\x06":
            raise DamagedArchive(f"{label}: damaged zip64: no end-of-directory record before its locator")
        (length,) = struct.unpack_from("<Q", tail, at - 76 + 40)
        end -= 76
    if length > end:
        raise DamagedArchive(f"{label}: damaged zip: its directory is larger than the file")
    if length > MAX_DIRECTORY:
        raise ArchiveError(f"{label}: a directory of {length} bytes, at most {MAX_DIRECTORY} are read")
    file.seek(end - length)
    directory = file.read(length)
    position = count = 0
    while position + 46 <= length:
        signature, name, extra, comment = _DIRECTORY_ENTRY.unpack_from(directory, position)
        if signature != b"PK\x01\x02":
            raise DamagedArchive(f"{label}: damaged zip: no directory entry at byte {end - length + position}")
        position += 46 + name + extra + comment
        count += 1
        if count > limit:
            raise ArchiveError(f"{label}: more than {limit} entries")
