"""The picture of a result row, from where its path says it lies: a file, or a file inside an archive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType

from ..errors import ArchiveError, AssetscoreError
from ..images import Texture, load
from ..text import printable
from .archives import open_nested, open_tree
from .tmod import TmodTree, is_tmod_name, open_built, rawimg
from .trees import Tree

__all__ = ["Pictures"]


class Pictures:
    """Opens pictures by a row's path, "FILE" or "ARCHIVE!FILE"; the last archive stays open for its next one.

    Rows of one submission follow each other, so that each archive is opened once. Names may have a "!" in them, too:
    what is there decides where an archive's name ends.
    """

    def __init__(self) -> None:
        self._open: dict[str, Tree] = {}
        self._escaped: dict[str, dict[str, str]] = {}
        self._folders: dict[str, dict[str, str]] = {}

    def load(self, path: str) -> Texture | None:
        """The picture, or None where it is not there or cannot be read."""
        try:
            path = self._on_disk(path)
            if "!" not in path or os.path.isfile(path):
                return load(path)
            for archive, inner in _splits(path):
                if os.path.isfile(archive) and (found := self._find(archive, None, inner)) is not None:
                    tree, name = found
                    content = tree.read(name)
                    built = name.lower().endswith(".rawimg")
                    return load(rawimg(content, name)) if built else load(content, name=name)
            return None
        except (AssetscoreError, OSError):
            return None

    def close(self) -> None:
        """Close what is open."""
        for tree in reversed(self._open.values()):
            tree.close()
        self._open.clear()
        self._escaped.clear()
        self._folders.clear()

    def __enter__(self) -> Pictures:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _on_disk(self, shown: str) -> str:
        """The path of a file, or of the archive around it, of which a row shows names as `printable` gives them."""
        if "\\" not in shown or os.path.lexists(shown):
            return shown
        place = ""
        for at, part in enumerate(shown.split("/")):
            inner = f"{place}/{part}" if at else part
            if "\\" in part and not os.path.lexists(inner):
                names = self._unprintable(place or ("/" if at else "."))
                ends = [len(part), *(i for i, sign in enumerate(part) if sign == "!")]
                end = next((end for end in ends if part[:end] in names), None)
                if end is not None:
                    inner = inner.removesuffix(part) + names[part[:end]] + part[end:]
            place = inner
        return place

    def _unprintable(self, folder: str) -> dict[str, str]:
        """The names in a folder that a row shows otherwise than they are, by how it shows them."""
        if folder not in self._folders:
            try:
                names = os.listdir(folder)
            except OSError:
                names = []
            self._folders[folder] = {printable(name): name for name in names if not name.isprintable()}
        return self._folders[folder]

    def _find(self, archive: str, parent: tuple[Tree, str] | None, rest: str) -> tuple[Tree, str] | None:
        """The archive that a file lies in and its name there; None where there is none.

        Args:
            archive: the path of one around the file.
            parent: the archive around that and its name there; None where it is a file.
            rest: the path of the file from there.
        """
        try:
            tree = self._tree(archive, parent)
        except ArchiveError:
            return None
        name = self._name(archive, rest)
        if name is not None:
            return tree, name
        for outer, inner in _splits(rest):
            name = self._name(archive, outer)
            found = None if name is None else self._find(f"{archive}!{outer}", (tree, name), inner)
            if found is not None:
                return found
        return None

    def _tree(self, archive: str, parent: tuple[Tree, str] | None) -> Tree:
        if archive in self._open:
            return self._open[archive]
        if parent is not None:
            tree: Tree = open_built(*parent) if is_tmod_name(parent[1]) else open_nested(*parent)
        else:
            self.close()
            with open(archive, "rb") as file:
                built = file.read(4) == b"TMOD"
            tree = TmodTree(archive) if built else open_tree(archive)
        self._open[archive] = tree
        return tree

    def _name(self, archive: str, shown: str) -> str | None:
        """The name in an opened archive of what a row shows: there, names are as `printable` gives them."""
        tree = self._open[archive]
        if shown in tree:
            return shown
        if archive not in self._escaped:
            self._escaped[archive] = {printable(name): name for name in tree.names if not name.isprintable()}
        return self._escaped[archive].get(shown)


def _splits(path: str) -> Iterator[tuple[str, str]]:
    """Both sides of each "!", from left to right."""
    at = path.find("!")
    while at >= 0:
        yield path[:at], path[at + 1 :]
        at = path.find("!", at + 1)
