"""What a study shows: the textures to rate and, for each category, a panel of the game's own art."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from ...errors import ImageError, ManifestError, UsageError
from ...images import Texture, load
from ..ids import check_id
from ..pictures import Picture, picture_of
from ..strict_csv import read_rows

__all__ = ["Item", "Study", "read_study"]

SUFFIXES = (".png", ".gif", ".webp", ".jpg", ".jpeg")
PANEL_SIZE = 24
"""Pictures of the game's own art beside each texture."""
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and signs that are drawn as nothing: fillers of Hangul, the empty cell of Braille."""
MAX_NAME = 255
"""Bytes of a folder's name."""
LARGE, SMALL = 256, 64
"""Pixels to which the rated texture and a typical panel picture are enlarged."""
SHORT = {
    "(max-width: 44rem) and (max-height: 37rem), (max-height: 30rem)": 128,
    "(max-height: 44rem)": 192,
}
"""By kind of screen, the first that fits: pixels to which the rated texture is enlarged there."""


@dataclass(frozen=True)
class Item:
    """One texture to rate.

    Attributes:
        asset_id: what votes call it.
        category: as raters read it, empty where nothing of it can be seen.
        request: what was asked for, empty where nothing was, or nothing that can be seen.
        art: the panel it is shown beside: the folder's name.
    """

    asset_id: str
    category: str
    request: str
    art: str
    picture: Picture = field(repr=False)


@dataclass(frozen=True)
class Study:
    """A study folder, read.

    Attributes:
        folder: where it lies; the answers go there too.
        items: the textures to rate, by asset_id.
        panels: by `Item.art`, pictures of the game's own art, the same for every rater.
    """

    folder: Path
    items: dict[str, Item]
    panels: dict[str, tuple[Picture, ...]] = field(repr=False)

    def panel_factor(self, art: str) -> int:
        """One enlargement for a whole panel, so that its pictures keep their sizes relative to each other."""
        panel = self.panels[art]
        side = float(np.median([max(picture.width, picture.height) for picture in panel]))
        return max(1, int(SMALL // max(side, 1)))


def read_study(folder: str | os.PathLike[str], references: str | os.PathLike[str] | None = None) -> Study:
    """Read a study folder.

    Either `FOLDER/manifest.csv` names the textures (columns path and category; request, asset_id and art where wanted;
    paths lie inside the folder), or they lie in `FOLDER/textures/CATEGORY/`. The game's own art lies in
    `FOLDER/references/CATEGORY/`, or where the manifest's column art names another folder, in `FOLDER/references/ART/`;
    with `references`, in `CATEGORY/` of that folder.

    Args:
        folder: the study.
        references: a folder with one folder of the game's art a category, instead of `FOLDER/references`.

    Raises:
        ManifestError: the manifest is wrong (its line is named), there is no texture, two textures share an id, a
            texture cannot be read, or a category has no art to show beside it.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ManifestError(f"{root}: there is no such study folder")
    manifest = root / "manifest.csv"
    entries = list(_listed(manifest, root) if manifest.is_file() else _found(root / "textures"))
    if not entries:
        raise ManifestError(f"{root}: nothing to rate: neither manifest.csv nor textures/CATEGORY/ names a texture")
    items: dict[str, Item] = {}
    for where, path, category, request, asset_id, art in entries:
        if asset_id in items:
            raise ManifestError(f"{where}: asset_id {asset_id!r} is there twice")
        shown_with = art if art and references is None else category
        if not _is_name(shown_with):
            raise ManifestError(f"{where}: category or art must be a plain folder name, got {shown_with[:60]!r}")
        try:
            items[check_id(asset_id)] = Item(
                asset_id, _seen(category), _seen(request), shown_with, picture_of(load(path))
            )
        except ImageError as error:
            raise ManifestError(f"{where}: this texture cannot be shown: {error}") from error
        except UsageError as error:
            raise ManifestError(f"{where}: {error}") from error
    own = Path(references) if references is not None else root / "references"
    names = {item.art: item.category or item.art for item in items.values()}
    panels = {name: _panel(own / name, category) for name, category in sorted(names.items())}
    return Study(root, items, panels)


Entry = tuple[str, Path, str, str, str, str]


def _listed(manifest: Path, root: Path) -> Iterable[Entry]:
    for line, cells in read_rows(str(manifest), ("path", "category"), bom=True):  # as a batch reads manifests
        where, asset_id = f"{manifest}, line {line}", cells.pop("asset_id", "") or cells["path"]
        cells = {name: cell.strip() for name, cell in cells.items()}  # but an id is taken as it is
        path = PurePosixPath(cells["path"].replace("\\", "/"))
        if not path.parts or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            raise ManifestError(f"{where}: path must lie inside the study folder, got {cells['path'][:80]!r}")
        # without an asset_id its path, as in the results of a batch over this manifest
        yield where, root / path, cells["category"], cells.get("request", ""), asset_id, cells.get("art", "")


def _found(textures: Path) -> Iterable[Entry]:
    for path in _pictures(textures, depth=2):
        asset_id = path.relative_to(textures).as_posix()
        yield str(path), path, path.parent.name, "", asset_id, ""


def _pictures(folder: Path, depth: int) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob("/".join("*" * depth)) if path.suffix.lower() in SUFFIXES)


def _seen(text: str) -> str:
    """A text as raters see it, empty where every character of it is a blank or none that leaves a mark."""
    marks = (c for c in text if unicodedata.category(c)[0] in "LNPS" and c not in _BLANK)
    return text if any(marks) else ""


def _is_name(text: str) -> bool:
    plain = bool(text) and text not in (".", "..") and not set(text) & set("/\\:\0")
    return plain and len(text.encode("utf-8", "surrogatepass")) <= MAX_NAME


def _panel(folder: Path, category: str) -> tuple[Picture, ...]:
    textures: dict[str, Texture] = {}
    for path in _pictures(folder, depth=1):
        try:
            texture = load(path)
        except ImageError as error:
            raise ManifestError(f"{path}: this reference cannot be shown: {error}") from error
        if not texture.is_empty:
            textures.setdefault(texture.content_hash, texture)
    if not textures:
        raise ManifestError(
            f"{folder}: raters need the game's own art of category {category!r} beside the textures; "
            "put pictures there, or name another folder with --references"
        )
    # by content, not by name: the choice is random to the eye and the same on every machine
    chosen = sorted(textures, key=lambda digest: hashlib.sha256(digest.encode()).digest())[:PANEL_SIZE]
    return tuple(picture_of(textures[digest]) for digest in chosen)
