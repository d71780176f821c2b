"""A submission's files, read-only, whether they lie in a folder or in a zip: one `Tree` over both.

Nothing is ever unpacked to disk. What a stranger's archive claims is checked before anything is believed: the number of
entries before they are read, names before they are listed, sizes before and while they are decompressed.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from ..errors import ArchiveError, MissingImageError, UnreadableImageError, UnsupportedTypeError, UsageError
from ..images import read_file

__all__ = ["FolderTree", "Limits", "MemoryTree", "Tree", "ZipTree", "is_archive_name", "open_tree", "safe_name"]

MIB = 1024 * 1024
IGNORED_FOLDERS = frozenset({"node_modules", "__pycache__", "__macosx"})
"""Never entered, like every folder whose name begins with a dot. Lower case."""


@dataclass(frozen=True)
class Limits:
    """What an archive may ask of its reader. Nested archives share one total.

    Attributes:
        entries: files of one archive; of a folder ten times as many.
        entry_bytes: of one file, unpacked.
        total_bytes: of all files together, unpacked, as declared.
        ratio: unpacked to packed, once more than `ratio_from` bytes come out.
        ratio_from: bytes.
        depth: archives inside archives.
    """

    entries: int = 100_000
    entry_bytes: int = 64 * MIB
    total_bytes: int = 4096 * MIB
    ratio: int = 200
    ratio_from: int = 64 * MIB
    depth: int = 3


class Tree(ABC):
    """A read-only view of files by relative name ("assets/mod/lang/en_us.json"), in a fixed order."""

    label: str
    """What it is, for messages: the path of the folder or archive."""

    @cached_property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Every file, sorted; never a folder."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """A file's content.

        Raises:
            MissingImageError: there is no such file, or it is a link that leaves the tree.
            UnreadableImageError: the file is damaged or too large. The rest of the tree is not in doubt.
        """

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def open_nested(self, name: str) -> Tree:
        """The archive `name` as a tree of its own; ArchiveError where it is none, or too deeply nested."""
        raise ArchiveError(f"{self.label}: {name} cannot be opened as an archive")

    def close(self) -> None:
        """Release the file; reading afterwards is an error."""

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FolderTree(Tree):
    """A folder. Links to files inside it are followed, links to folders and out of it are not."""

    def __init__(self, path: str | os.PathLike[str], limits: Limits = Limits()) -> None:
        self.label = os.fspath(path)
        self.limits = limits

    @cached_property
    def names(self) -> tuple[str, ...]:
        names: list[str] = []
        pending = [""]
        while pending:
            prefix = pending.pop()
            try:
                entries = os.scandir(os.path.join(self.label, prefix))
            except OSError as error:
                if not prefix:
                    raise ArchiveError(f"{self.label}: {error.strerror}") from error
                continue  # a folder without permission holds nothing for us
            with entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if not entry.name.startswith(".") and entry.name.lower() not in IGNORED_FOLDERS:
                            pending.append(f"{prefix}{entry.name}/")
                    elif not (entry.is_symlink() and entry.is_dir()):
                        names.append(prefix + entry.name)
            if len(names) > 10 * self.limits.entries:
                raise ArchiveError(f"{self.label}: more than {10 * self.limits.entries} files")
        return tuple(sorted(names))

    def read(self, name: str) -> bytes:
        return read_file(self._inside(name))

    def open_nested(self, name: str) -> Tree:
        try:
            return ZipTree(self._inside(name), self.limits)
        except MissingImageError as error:
            raise ArchiveError(str(error)) from error

    def _inside(self, name: str) -> str:
        path = os.path.join(self.label, name)
        real, root = os.path.realpath(path), os.path.realpath(self.label)
        if not real.startswith(os.path.join(root, "")):
            raise MissingImageError(f"{path}: a link that leads out of the folder")
        return path


class MemoryTree(Tree):
    """Files whose bytes are fetched by name from a mapping, as an opened .tmod is."""

    def __init__(self, label: str, files: Mapping[str, bytes]) -> None:
        self.label = label
        self.files = files

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))

    def read(self, name: str) -> bytes:
        try:
            return self.files[name]
        except KeyError:
            raise MissingImageError(f"{self.label}: has no file {name}") from None


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
        limits: Limits = Limits(),
        *,
        label: str | None = None,
        outer: ZipTree | None = None,
    ) -> None:
        self.limits = limits
        self.depth = 0 if outer is None else outer.depth + 1
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
            self._entries = {name: info for name, info in self._checked(zipfile.ZipFile(file))}
            spent = sum(info.file_size for info in self._entries.values())
            self._spent = spent if outer is None else spent + outer._spent
            if outer is not None:
                outer._spent = self._spent
            if self._spent > limits.total_bytes:
                raise ArchiveError(f"{self.label}: declares {self._spent} bytes, at most {limits.total_bytes} are read")
        except ArchiveError:
            file.close()
            raise
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, struct.error) as error:
            file.close()
            raise ArchiveError(f"{self.label}: no readable zip: {error}") from error

    def _checked(self, archive: zipfile.ZipFile) -> Iterator[tuple[str, zipfile.ZipInfo]]:
        self._zip = archive
        unpacked = packed = 0
        for info in archive.infolist():
            name = safe_name(info.filename, self.label)
            if info.create_system == 3 and stat.S_ISLNK(info.external_attr >> 16):
                raise ArchiveError(f"{self.label}: {name!r} is a link; archives with links are not read")
            unpacked += info.file_size
            packed += info.compress_size
            if not name.endswith("/"):
                yield name, info
        if unpacked > self.limits.ratio_from and unpacked > self.limits.ratio * packed:
            raise ArchiveError(
                f"{self.label}: {packed} bytes declare to unpack to {unpacked}, more than {self.limits.ratio} to 1"
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))

    def read(self, name: str) -> bytes:
        info = self._entries.get(name)
        if info is None:
            raise MissingImageError(f"{self.label}: has no file {name}")
        if info.flag_bits & 1:
            raise UnreadableImageError(f"{self.label}: {name} is encrypted")
        if info.file_size > self.limits.entry_bytes:
            raise UnreadableImageError(
                f"{self.label}: {name} declares {info.file_size} bytes, at most {self.limits.entry_bytes} are read"
            )
        try:
            with self._zip.open(info) as file:
                content = file.read(info.file_size + 1)
        except Exception as error:  # zipfile and zlib raise a dozen types on damaged entries
            raise UnreadableImageError(f"{self.label}: {name} is damaged: {error}") from error
        if len(content) != info.file_size:
            raise UnreadableImageError(f"{self.label}: {name} declares {info.file_size} bytes, {len(content)} came")
        return content

    def open_nested(self, name: str) -> Tree:
        label = f"{self.label}!{name}"
        try:
            content = self.read(name)
        except (MissingImageError, UnreadableImageError) as error:
            raise ArchiveError(str(error)) from error
        return ZipTree(content, self.limits, label=label, outer=self)

    def close(self) -> None:
        self._zip.close()


def open_tree(path: str | os.PathLike[str], limits: Limits = Limits()) -> Tree:
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
        raise ArchiveError(f"{label}: no zip archive (it has no end-of-directory record)")
    (length,) = struct.unpack_from("<I", tail, at + 12)
    end = tail_start + at
    if at >= 76 and tail[at - 20 : at - 16] == b"PK\x06\x07":  # zip64: the sizes are in a record of its own
        if tail[at - 76 : at - 72] != b"PK\x06\x06":
            raise ArchiveError(f"{label}: damaged zip64: no end-of-directory record before its locator")
        (length,) = struct.unpack_from("<Q", tail, at - 76 + 40)
        end -= 76
    if length > end:
        raise ArchiveError(f"{label}: damaged zip: its directory is larger than the file")
    position, count = end - length, 0
    while position + 46 <= end:
        file.seek(position)
        head = file.read(46)
        if head[:4] != b"PK\x01\x02":
            raise ArchiveError(f"{label}: damaged zip: no directory entry at byte {position}")
        position += 46 + sum(struct.unpack_from("<HHH", head, 28))
        count += 1
        if count > limit:
            raise ArchiveError(f"{label}: more than {limit} entries")
