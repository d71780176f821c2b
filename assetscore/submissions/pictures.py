"""The picture of a result row, from where its path says it lies: a file, or a file inside an archive."""

from __future__ import annotations

import os
from types import TracebackType

from ..errors import AssetscoreError
from ..images import Texture, load
from .archives import open_nested, open_tree
from .tmod import TmodTree, rawimg
from .trees import Tree

__all__ = ["Pictures"]


class Pictures:
    """Opens pictures by a row's path, "FILE" or "ARCHIVE!FILE"; the last archive stays open for its next one.

    Rows of one submission follow each other, so that each archive is opened once.
    """

    def __init__(self) -> None:
        self._open: dict[str, Tree] = {}

    def load(self, path: str) -> Texture | None:
        """The picture, or None where it is not there or cannot be read."""
        try:
            if "!" not in path or os.path.isfile(path):
                return load(path)
            archive, _, inner = path.rpartition("!")
            content = self._tree(archive).read(inner)
            pixels = rawimg(content, inner) if inner.lower().endswith(".rawimg") else content
            return pixels if isinstance(pixels, Texture) else load(pixels, name=inner)
        except (AssetscoreError, OSError):
            return None

    def close(self) -> None:
        """Close what is open."""
        for tree in reversed(self._open.values()):
            tree.close()
        self._open.clear()

    def __enter__(self) -> Pictures:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tree(self, archive: str) -> Tree:
        if archive in self._open:
            return self._open[archive]
        outer, mark, inner = archive.rpartition("!")
        if mark and not os.path.exists(archive):
            parent = self._tree(outer)
            tree: Tree = open_nested(parent, inner)
        else:
            self.close()
            with open(archive, "rb") as file:
                built = file.read(4) == b"TMOD"
            tree = TmodTree(archive) if built else open_tree(archive)
        self._open[archive] = tree
        return tree
