"""What mods and packs register: readers that turn source trees and built files into the textures the game would show.

`submissions.minecraft.read(path)` and `submissions.terraria.read(path)` return a `Submission`; `submissions.read(path)`
finds out which game it is for.
"""

from __future__ import annotations

import os
from typing import Literal

from ..errors import UsageError
from .base import Asset, Requests, Submission

__all__ = ["Asset", "Submission", "read"]


def read(
    path: str | os.PathLike[str], game: Literal["minecraft", "terraria"] | None = None, *, requests: Requests = None
) -> Submission:
    """The registered textures of a submission for either game.

    Args:
        path: anything that `minecraft.read` or `terraria.read` takes.
        game: which of them; None goes by what `detection.detect` finds, and reads what is neither as Minecraft's.
        requests: see `base.Requests`.

    Raises:
        UsageError: there is nothing at `path`, `game` is neither, or as much speaks for one game as for the other.
        ArchiveError: a damaged or hostile archive.
        ManifestError: `requests` is no task file.
    """
    from . import minecraft, terraria
    from .detection import detect

    if game is None:
        game = "terraria" if detect(path) == "terraria" else "minecraft"
    if game not in ("minecraft", "terraria"):
        raise UsageError(f"game must be minecraft or terraria, got {game!r}")
    if game == "terraria":
        return terraria.read(path, requests=requests)
    return minecraft.read(path, requests=requests)
