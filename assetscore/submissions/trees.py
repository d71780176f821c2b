"""Files by relative name, read-only: the `Tree` that every reader sees, and the one over a folder."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from ..errors import ArchiveError, MissingImageError
from ..images import read_file

__all__ = ["DEFAULT_LIMITS", "FolderTree", "Limits", "Tree"]

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


DEFAULT_LIMITS = Limits()


class Tree(ABC):
    """A read-only view of files by relative name ("assets/mod/lang/en_us.json"), in a fixed order."""

    label: str
    """What it is, for messages: the path of the folder or archive."""
    limits: Limits

    @cached_property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Every file, sorted; never a folder."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """A file's content.

        Raises:
            MissingImageError: there is no such file, or it is a link that leaves the tree.
            UnreadableImageError: the file is damaged.
            ImageTooLargeError: the file is larger than is read. In no case is the rest of the tree in doubt.
        """

    def __contains__(self, name: object) -> bool:
        at = bisect_left(self.names, name) if isinstance(name, str) else len(self.names)  # a set would double the names
        return at < len(self.names) and self.names[at] == name

    def close(self) -> None:
        """Release what is held open; reading afterwards is an error."""
        return

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FolderTree(Tree):
    """A folder. Links to files inside it are followed, links to folders and out of it are not."""

    def __init__(self, path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> None:
        self.label = os.fspath(path)
        self.limits = limits

    @cached_property
    def names(self) -> tuple[str, ...]:
        names: list[str] = []
        self._links: set[str] = set()
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
                        continue
                    name = prefix + entry.name
                    if entry.is_symlink():
                        if os.path.isdir(entry.path):
                            continue
                        self._links.add(name)
                    names.append(name)
            if len(names) > 10 * self.limits.entries:
                raise ArchiveError(f"{self.label}: more than {10 * self.limits.entries} files")
        return tuple(sorted(names))

    def read(self, name: str) -> bytes:
        return read_file(self.inside(name))

    def inside(self, name: str) -> str:
        """The path of a file, or a MissingImageError where a link leads out of the folder."""
        path = os.path.join(self.label, name)
        if name not in self:
            raise MissingImageError(f"{path}: no such file")
        if name in self._links:
            real, root = os.path.realpath(path), os.path.realpath(self.label)
            if not real.startswith(os.path.join(root, "")):
                raise MissingImageError(f"{path}: a link that leads out of the folder")
        return path
