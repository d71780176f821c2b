"""Any submission as Items: a mod or pack of either game, built or in source, a folder of pictures, a manifest.

What a path is, its content decides (`detection.detect`); `open_source` reads it with the reader that fits.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from ..batch import find_assets, read_manifest
from ..errors import ImageError, ManifestError, UsageError
from ..factors import words_of_id
from ..images import load
from ..scorer import Item
from . import minecraft, terraria
from .base import SCORED_USES, Asset, Requests, Submission, Use, read_task
from .copies import CopyIndex
from .detection import MANIFESTS, Layout, detect
from .items import flagged, items

__all__ = ["GAMES", "Game", "Source", "fingerprint", "open_source"]

Game: TypeAlias = Literal["auto", "minecraft", "terraria", "folder"]
GAMES: tuple[Game, ...] = ("auto", "minecraft", "terraria", "folder")
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Source:
    """An opened submission.

    Attributes:
        layout: how it was read.
        items: its assets, decoded one at a time as they are drawn.
        total: how many.
        notes: what was passed over, in words.
    """

    layout: Layout
    items: Iterator[Item]
    total: int
    notes: tuple[str, ...] = ()


@contextmanager
def open_source(
    path: str | os.PathLike[str],
    *,
    game: Game = "auto",
    categories: Collection[str] = (),
    group: str = "",
    uses: Iterable[Use] = SCORED_USES,
    requests: Requests = None,
    copies: CopyIndex | None = None,
) -> Iterator[Source]:
    """Read a submission, for as long as the block lasts.

    Args:
        path: see the module.
        game: which reader; "auto" goes by what `detect` finds. Where a game's reader finds nothing registered in a
            folder, it is read by its category subfolders.
        categories: the profile's, for category subfolders.
        group: of the rows that have none of their own.
        uses: which textures of a mod.
        requests: see `base.Requests`; a manifest's own go first.
        copies: flags near copies of its references.

    Raises:
        UsageError: an unknown game or use, or there is nothing at `path`.
        ManifestError: a mistake in a manifest, or `requests` is no task file.
        ArchiveError: a damaged or hostile archive.
    """
    if game not in GAMES:
        raise UsageError(f"game must be one of {', '.join(GAMES)}, got {game!r}")
    layout: Layout = detect(path) if game == "auto" else game
    if layout == "folder" and Path(path).suffix.lower() in MANIFESTS and os.path.isfile(path):
        layout = "manifest"
    if layout in ("minecraft", "terraria"):
        reader = minecraft.read if layout == "minecraft" else terraria.read
        with reader(path, requests=requests) as submission:
            if submission.assets or not os.path.isdir(path):
                yield _of_mod(submission, layout, group, uses, copies)
                return
            empty = submission.notes
        found = find_assets(path, categories, group)
        known = [item for item in found if item.category in categories]
        if not known:
            yield Source(layout, iter(()), 0, empty)
            return
    else:
        found = find_assets(path, categories, group)
    label = game if game in ("minecraft", "terraria") else ""
    asked = [replace(item, game=item.game or label) for item in _asked(found, requests)]
    yield Source("manifest" if layout == "manifest" else "folder", _flagged(asked, copies), len(asked))


def fingerprint(path: str | os.PathLike[str]) -> str:
    """SHA-256 over everything a reader may read at a path: names and contents of all files, not their times.

    Of a manifest that is the pictures it names, too, and the .mcmeta beside each.
    """
    text = os.fspath(path)
    digest = hashlib.sha256()
    if not os.path.isdir(text):
        _hash_file(text, digest.update)
        for file in _named_files(text):
            _hash_named(file, file, digest.update)
        return digest.hexdigest()
    real = os.path.join(os.path.realpath(text), "")
    for folder, subfolders, files in os.walk(text):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(files):
            file = os.path.join(folder, name)
            relative = os.path.relpath(file, text).replace(os.sep, "/")
            leads_out = os.path.islink(file) and not os.path.realpath(file).startswith(real)
            _hash_named(relative, None if leads_out else file, digest.update)
    return digest.hexdigest()


def _named_files(path: str) -> list[str]:
    """The pictures that a manifest of assets names, each with its .mcmeta; nothing where it is none."""
    if not path.lower().endswith(MANIFESTS):
        return []
    try:
        pictures = sorted({item.path for item in read_manifest(Path(path))})
    except ManifestError:
        return []  # a mistake is the reader's to tell, and its text is in the manifest itself
    return [file for picture in pictures for file in (picture, f"{picture}.mcmeta")]


def _hash_named(name: str, path: str | None, update: Callable[[bytes], None]) -> None:
    """A file's name, and the digest of its content, whose length is fixed, so that no content passes for a name."""
    inner = hashlib.sha256()
    if path is None:
        inner.update(b"a link that leads out")
    else:
        _hash_file(path, inner.update)
    update(os.fsencode(name) + b"\0" + inner.digest())


def _hash_file(path: str, update: Callable[[bytes], None]) -> None:
    try:
        if not os.path.isfile(path):  # a pipe would never end
            update(b"no regular file")
            return
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                update(block)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        update(f"unreadable: {getattr(error, 'errno', '')}".encode())


def _of_mod(
    submission: Submission, layout: Layout, group: str, uses: Iterable[Use], copies: CopyIndex | None
) -> Source:
    chosen = submission.select(uses)
    of_id = {asset.id: asset for asset in chosen}
    found = (
        replace(item, path=_full_path(submission, of_id[item.asset_id]))
        for item in items(submission, uses=uses, copies=copies, group=group)
    )
    return Source(layout, found, len(chosen), submission.notes)


def _full_path(submission: Submission, asset: Asset) -> str:
    """Where the picture lies: a path, or "ARCHIVE!FILE", as `pictures.Pictures` opens it."""
    if not asset.path:
        return ""
    inside = asset.path
    if asset.group and not inside.startswith(f"{asset.group}/"):
        inside = f"{asset.group}!{inside}"
    return f"{submission.path}!{inside}" if os.path.isfile(submission.path) else os.path.join(submission.path, inside)


def _asked(found: Iterable[Item], requests: Requests) -> list[Item]:
    if requests is None:
        return list(found)
    if isinstance(requests, str) and requests == "ids":
        return [replace(item, request=item.request or words_of_id(item.asset_id) or None) for item in found]
    task = requests if isinstance(requests, Mapping) else read_task(requests)
    return [replace(item, request=item.request or task.get(item.asset_id)) for item in found]


def _flagged(found: Iterable[Item], copies: CopyIndex | None) -> Iterator[Item]:
    for item in found:
        if copies is None or isinstance(item.asset, ImageError):
            yield item
            continue
        try:
            yield replace(item, asset=flagged(load(item.asset, name=item.path or None), copies))
        except ImageError as error:
            yield replace(item, asset=error)
