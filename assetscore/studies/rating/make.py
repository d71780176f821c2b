"""From results to a study: some of the scored textures under names that tell nothing, and the game's own art."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ImageError, UsageError
from ...factors import OBJECT
from ...images import load
from ...table import Row, check_row
from ..pictures import picture_of
from .study import PANEL_SIZE

if TYPE_CHECKING:
    from ...profile import Profile

__all__ = ["make_study"]


def make_study(
    rows: Iterable[Row], profile: Profile, folder: str | os.PathLike[str], n: int = 40, seed: int = 0
) -> list[Row]:
    """Write a study folder for `study serve` from results.

    Textures are drawn at random, in turn from each group, so that every model is seen; those without a readable file,
    or without a verdict, are not drawn. Votes will name assets by the results' own ids.

    Args:
        rows: of the results; `path` must still lead to the files.
        profile: what they were scored with: its references are shown beside the textures.
        folder: a new or empty folder.
        n: how many textures; all there are where they are fewer.
        seed: of the draw.

    Returns:
        The rows drawn.

    Raises:
        UsageError: the folder holds something, ids are not unique, or no texture can be shown.
    """
    root = Path(folder)
    if root.exists() and any(root.iterdir()):
        raise UsageError(f"{root}: a study needs a new or an empty folder")
    rng = np.random.default_rng(seed)
    listed = [row for row in rows if row.path and row.status == "scored"]
    for row in listed:
        check_row(row, profile)
        profile.check_category(row.category)
    if len({row.asset_id for row in listed}) < len(listed):
        raise UsageError("asset ids are not unique in these results; votes could not tell the assets apart")
    groups: dict[str, list[Row]] = {}
    for index in rng.permutation(len(listed)):
        groups.setdefault(listed[index].group, []).append(listed[index])
    turns = [(turn, row) for members in groups.values() for turn, row in enumerate(members)]
    turns.sort(key=lambda pair: pair[0])
    drawn: list[Row] = []
    pictures: list[bytes] = []
    for _, row in turns:
        if len(drawn) == n:
            break
        try:
            pictures.append(picture_of(load(row.path)).png)
        except ImageError:
            continue
        drawn.append(row)
    if not drawn:
        raise UsageError("none of these results has a file that can be shown; run this where the textures lie")
    (root / "shown").mkdir(parents=True)
    with open(root / "manifest.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["path", "category", "request", "asset_id"])
        for number, (row, png) in enumerate(zip(drawn, pictures, strict=True)):
            name = f"shown/{number:04}.png"
            (root / name).write_bytes(png)
            writer.writerow([name, row.category, row.sem_factor if row.sem_factor != OBJECT else "", row.asset_id])
    for category in sorted({row.category for row in drawn}):
        art = root / "references" / category
        art.mkdir(parents=True)
        own = profile.by_category[category]
        for number, index in enumerate(rng.permutation(len(own))[:PANEL_SIZE]):
            (art / f"{number:02}.png").write_bytes(picture_of(own[index].texture).png)
    return drawn
