"""From results to a study: some of the scored textures under names that tell nothing, and the game's own art."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from ...errors import ImageError, UsageError
from ...factors import OBJECT
from ...images import load
from ...table import Row, check_row
from ..ids import check_id, vote_names
from ..pictures import picture_of
from ..strict_csv import csv_line
from .study import PANEL_SIZE

if TYPE_CHECKING:
    from ...profile import Profile

__all__ = ["Draw", "make_study"]

_DRAFT = re.compile(r"\.study-[0-9a-f]{16}")
COLUMNS = ("path", "category", "request", "asset_id", "art")


@dataclass(frozen=True)
class Draw:
    """What `make_study` drew.

    Attributes:
        rows: the rows shown.
        names: what the votes will call each: its asset_id; where several rows of the results share one, its
            `ids.full_id`.
        left_out: (name, reason) of rows that were drawn but whose file cannot be shown; others took their places.
        scored: how many rows were scored and have a path: the draw was from these.
        unfinished: folders beside the study's that a run left when it was killed, or that one is writing now.
    """

    rows: tuple[Row, ...]
    names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    scored: int
    unfinished: tuple[Path, ...] = ()


def make_study(
    rows: Iterable[Row], profile: Profile, folder: str | os.PathLike[str], n: int = 40, seed: int = 0
) -> Draw:
    """Write a study folder for `study serve` from results.

    Textures are drawn at random, in turn from each group, so that every model is seen; those without a readable file,
    or without a verdict, are not drawn. How they were drawn, and what was left out, is in the folder's draw.json.

    Args:
        rows: of the results; `path` must still lead to the files.
        profile: what they were scored with: its references are shown beside the textures.
        folder: a new folder. It is there when all of it is written, or not at all.
        n: how many textures; all there are where they are fewer.
        seed: of the draw, from 0.

    Raises:
        UsageError: the folder is there already, a row cannot be told from another one, or no texture can be shown.
        ProfileMismatchError: a row was scored with another encoder or profile.
    """
    if n < 1 or seed < 0:
        raise UsageError(f"n must be at least 1 and seed at least 0, got n={n}, seed={seed}")
    root = Path(os.path.abspath(folder))
    if os.path.lexists(root):
        raise UsageError(f"{folder}: this is there already; a study needs a new folder")
    every = list(rows)
    listed = [
        (row, name) for row, name in zip(every, vote_names(every), strict=True) if row.path and row.status == "scored"
    ]
    for row, name in listed:
        check_row(row, profile)
        profile.check_category(row.category)
        if not name:
            raise UsageError(
                f"asset_id {row.asset_id!r} is there twice in the same game, group and task; "
                "votes could not tell the assets apart"
            )
        check_id(name)
    rng = np.random.default_rng(seed)
    groups: dict[str, list[tuple[Row, str]]] = {}
    for index in rng.permutation(len(listed)):
        groups.setdefault(listed[index][0].group, []).append(listed[index])
    turns = [(turn, *member) for members in groups.values() for turn, member in enumerate(members)]
    turns.sort(key=lambda each: each[0])
    drawn: list[tuple[Row, str]] = []
    pictures: list[bytes] = []
    left_out: list[tuple[str, str]] = []
    for _, row, name in turns:
        if len(drawn) == n:
            break
        try:
            pictures.append(picture_of(load(row.path)).png)
        except ImageError as error:
            left_out.append((name, str(error)))
            continue
        drawn.append((row, name))
    if not drawn:
        why = f" ({left_out[0][1]})" if left_out else ""
        raise UsageError(f"none of these results has a file that can be shown{why}; run this where the textures lie")
    root.parent.mkdir(parents=True, exist_ok=True)
    draw = Draw(
        tuple(row for row, _ in drawn),
        tuple(name for _, name in drawn),
        tuple(left_out),
        len(listed),
        tuple(sorted(path for path in root.parent.glob(".study-*") if _DRAFT.fullmatch(path.name))),
    )
    draft = root.with_name(f".study-{secrets.token_hex(8)}")
    try:
        _write(draft, draw, pictures, profile, rng)
        record = {"seed": seed, "n": n, "profile": profile.name, "profile_fingerprint": profile.fingerprint}
        record |= {"encoder": profile.encoder_fingerprint, "scored": draw.scored, "drawn": len(draw.rows)}
        record |= {"left_out": [{"asset": name, "reason": reason} for name, reason in left_out]}
        (draft / "draw.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        os.rename(draft, root)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return draw


def _write(folder: Path, draw: Draw, pictures: Sequence[bytes], profile: Profile, rng: Generator) -> None:
    """The textures, the manifest, and the game's art in numbered folders, since categories need not be folder names."""
    art = {category: f"{i:02}" for i, category in enumerate(sorted({row.category for row in draw.rows}))}
    (folder / "shown").mkdir(parents=True)
    with open(folder / "manifest.csv", "x", encoding="utf-8", newline="") as file:
        file.write(csv_line(COLUMNS))
        for number, (row, name, png) in enumerate(zip(draw.rows, draw.names, pictures, strict=True)):
            path = f"shown/{number:04}.png"
            (folder / path).write_bytes(png)
            request = row.sem_factor if row.sem_factor and row.sem_factor != OBJECT else ""
            file.write(csv_line((path, row.category, request, name, art[row.category])))
    for category, numbered in art.items():
        (folder / "references" / numbered).mkdir(parents=True)
        own = profile.by_category[category]
        for number, index in enumerate(rng.permutation(len(own))[:PANEL_SIZE]):
            (folder / "references" / numbered / f"{number:02}.png").write_bytes(picture_of(own[index].texture).png)
