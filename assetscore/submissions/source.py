"""Any submission as Items: a mod or pack of either game, built or in source, a folder of pictures, a manifest.

What a path is, its content decides (`detect`); `open_source` reads it with the reader that fits.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from ..batch import find_assets
from ..errors import ArchiveError, ImageError, UsageError
from ..factors import words_of_id
from ..images import load
from ..references import IMAGE_SUFFIXES
from ..scorer import Item
from . import minecraft, terraria
from .archives import is_archive_name, open_tree
from .base import SCORED_USES, Asset, Requests, Submission, Use, read_task
from .copies import CopyIndex
from .items import flagged, items
from .tmod import is_tmod_name

__all__ = ["GAMES", "Game", "Layout", "Source", "detect", "fingerprint", "open_source"]

Layout: TypeAlias = Literal["minecraft", "terraria", "folder", "manifest"]
Game: TypeAlias = Literal["auto", "minecraft", "terraria", "folder"]
GAMES: tuple[Game, ...] = ("auto", "minecraft", "terraria", "folder")
MANIFESTS = (".csv", ".jsonl", ".ndjson")
_MOD_FILES = frozenset(
    {"fabric.mod.json", "quilt.mod.json", "mods.toml", "neoforge.mods.toml", "mcmod.info", "pack.mcmeta"}
)
_IN_ASSETS = frozenset({"textures", "models", "blockstates", "items", "lang"})
_DEPTH = 12
"""Folders below the root that are looked through for what gives a game away."""
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


def detect(path: str | os.PathLike[str]) -> Layout:
    """What lies at a path: a project of either game, a manifest, or else a folder of pictures.

    A folder is a Terraria project by its build.txt, a Minecraft one by "assets/NAMESPACE/textures" (or models,
    blockstates ...) or a mod's or pack's own description file. One of built mods has .tmod files or jars in it, and no
    pictures. A damaged archive is left to the reader to refuse.

    Raises:
        UsageError: there is nothing, or a file of a kind that no reader knows.
    """
    text = os.fspath(path)
    if os.path.isdir(text):
        return _detect_folder(text)
    if not os.path.isfile(text):
        raise UsageError(f"{text}: there is nothing to read")
    with open(text, "rb") as file:
        start = file.read(4)
    if start == b"TMOD" or is_tmod_name(text):
        return "terraria"
    if start[:2] == b"PK" or is_archive_name(text):
        try:
            with open_tree(text) as tree:
                names = tree.names
        except ArchiveError:
            return "minecraft"
        in_source = any(name.rpartition("/")[2] == "build.txt" and name.count("/") <= 1 for name in names)
        return "terraria" if in_source and not any("assets/" in name for name in names) else "minecraft"
    if text.lower().endswith(MANIFESTS):
        return "manifest"
    raise UsageError(f"{text}: expected a folder, a mod (.jar, .zip, .tmod) or a manifest (.csv, .jsonl)")


def _detect_folder(root: str) -> Layout:
    is_assets = os.path.basename(os.path.abspath(root)) == "assets"
    layout: Layout = "folder"
    built: Layout | None = None
    pictures = False
    for folder, subfolders, files in os.walk(root):
        inner = os.path.relpath(folder, root).replace(os.sep, "/")
        parts = [] if inner == "." else inner.split("/")
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(".")) if len(parts) < _DEPTH else []
        near = len(parts) <= 1
        if near and "build.txt" in files:
            return "terraria"
        in_assets = (len(parts) >= 2 and parts[-2] == "assets") or (is_assets and len(parts) == 1)
        if not _MOD_FILES.isdisjoint(files) or (in_assets and not _IN_ASSETS.isdisjoint(subfolders)):
            layout = "minecraft"
        if layout == "minecraft" and not near:
            break  # a build.txt beside the root would have been seen
        if near and built is None:
            found = [is_tmod_name(name) for name in files if is_tmod_name(name) or is_archive_name(name)]
            built = None if not found else "terraria" if any(found) else "minecraft"
        pictures = pictures or any(name.lower().endswith(IMAGE_SUFFIXES) for name in files)
    if layout == "folder" and built is not None and not pictures:
        return built
    return layout


def fingerprint(path: str | os.PathLike[str]) -> str:
    """SHA-256 over everything a reader may read at a path: names and contents of all files, not their times."""
    text = os.fspath(path)
    digest = hashlib.sha256()
    if not os.path.isdir(text):
        _hash_file(text, digest.update)
        return digest.hexdigest()
    real = os.path.join(os.path.realpath(text), "")
    for folder, subfolders, files in os.walk(text):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(files):
            file = os.path.join(folder, name)
            inner = hashlib.sha256()
            if os.path.islink(file) and not os.path.realpath(file).startswith(real):
                inner.update(b"a link that leads out")
            else:
                _hash_file(file, inner.update)
            relative = os.path.relpath(file, text).replace(os.sep, "/")
            digest.update(os.fsencode(relative) + b"\0" + inner.digest())
    return digest.hexdigest()


def _hash_file(path: str, update: object) -> None:
    assert callable(update)
    try:
        if not os.path.isfile(path):  # a pipe would never end
            update(b"no regular file")
            return
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                update(block)
    except OSError as error:
        update(f"unreadable: {error.errno}".encode())


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
