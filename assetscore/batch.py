"""The pass over many submissions: find the assets, score them as a stream, one row each whatever is wrong."""

from __future__ import annotations

import csv
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import FactorError, ManifestError, MissingImageError, UnreadableImageError
from .factors import check_factors
from .references import IMAGE_SUFFIXES
from .scorer import Item, Scorer
from .table import ResultTable
from .text import printable

__all__ = ["find_assets", "manifest_lines", "read_manifest", "run", "walk_folder"]

log = logging.getLogger(__name__)

COLUMNS = ("path", "category", "request", "group", "asset_id")
"""What a manifest may say of an asset; path and category it must."""
MAX_LINE = 1 << 20


def run(
    scorer: Scorer,
    items: Iterable[Item],
    *,
    progress: Callable[[int], None] | None = None,
) -> ResultTable:
    """Score Items into a ResultTable, in their order.

    Args:
        scorer: what to judge by; categories it does not know give rows with the status no_references.
        items: from `find_assets`, or your own.
        progress: called with the number of assets done, after each.
    """

    def scored() -> Iterator[Any]:
        for done, score in enumerate(scorer.stream(items), 1):
            yield score
            if progress is not None:
                progress(done)

    return ResultTable.from_scores(scored(), scorer.profile)


def find_assets(source: str | os.PathLike[str], categories: Iterable[str], group: str = "") -> list[Item]:
    """The assets of a folder or a manifest: see `walk_folder` and `read_manifest`.

    Raises:
        ManifestError: `source` is neither, or a manifest with a mistake.
    """
    path = Path(source)
    if path.is_dir():
        return walk_folder(path, categories, group)
    if path.suffix.lower() in (".csv", ".jsonl", ".ndjson") and path.is_file():
        return read_manifest(path, group)
    raise ManifestError(f"{path}: expected a folder, or a manifest ending in .csv or .jsonl")


def walk_folder(root: Path, categories: Iterable[str], group: str = "") -> list[Item]:
    """Every image below a folder, in the order of their paths.

    The category is the first folder on the way that is named like a known category (or its plural: "items"); the folder
    right above the file where none is, which then has no references. A link that leads out of the folder is not
    followed: its row says so.
    """
    names = {name.lower(): name for name in categories}
    plurals = {f"{name.lower()}s": name for name in categories}
    inside = Path(os.path.realpath(root))
    items = []
    for folder, subfolders, files in os.walk(root, onerror=_unreadable_folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in subfolders:
            if os.path.islink(os.path.join(folder, name)):
                log.warning("%s: a linked folder is not followed", os.path.join(folder, name))
        for file in sorted(files):
            if not file.lower().endswith(IMAGE_SUFFIXES):
                continue
            path = Path(folder) / file
            relative = path.relative_to(root)
            parts = [part.lower() for part in relative.parts[:-1]]
            known = next((names.get(p) or plurals.get(p) for p in parts if p in names or p in plurals), None)
            category = known or (relative.parts[-2] if len(relative.parts) > 1 else "")
            asset: Any = path
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(inside):
                asset = UnreadableImageError(f"{path}: a link that leads out of the folder")
            items.append(Item(asset, category, asset_id=printable(relative.as_posix()), path=str(path), group=group))
    return items


def _unreadable_folder(error: OSError) -> None:
    log.warning("%s: not read: %s", error.filename, error.strerror)


def read_manifest(manifest: Path, group: str = "") -> list[Item]:
    """The assets a CSV or JSON Lines manifest names; paths are relative to it.

    Columns: path and category, and request, group, asset_id where known. `group` is for rows without one. A file that
    does not exist gives a row with the status missing.

    Raises:
        ManifestError: a column is missing, a value is no text, an asset_id comes twice, or a request is no usable
            text; the line is named.
    """
    items = []
    seen: dict[str, int] = {}
    for line, record in manifest_lines(manifest, COLUMNS[:2]):
        where = f"{manifest}, line {line}"
        values: dict[str, str] = {}
        for column in COLUMNS:
            value = record.get(column)
            if value is not None and not isinstance(value, str):
                raise ManifestError(f"{where}: {column} must be text, got {value!r}")
            values[column] = (value or "") if column == "path" else (value or "").strip()
        for column in ("path", "category"):
            if not values[column]:
                raise ManifestError(f"{where}: {column} is missing")
        if values["request"]:
            try:
                check_factors([values["request"]])
            except FactorError as error:
                raise ManifestError(f"{where}: request: {error}") from error
        asset_id = values["asset_id"] or values["path"]
        key = f"{values['group'] or group}\0{asset_id}"
        if key in seen:
            raise ManifestError(f"{where}: asset {asset_id!r} was named in line {seen[key]} already")
        seen[key] = line
        asset: Any = manifest.parent / values["path"]
        if "\0" in values["path"]:
            asset = MissingImageError(f"{values['path']!r} is no path")
        items.append(
            Item(
                asset,
                values["category"],
                request=values["request"] or None,
                asset_id=asset_id,
                path=str(manifest.parent / values["path"]),
                group=values["group"] or group,
            )
        )
    return items


def manifest_lines(manifest: Path, required: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The lines of a CSV or JSON Lines manifest, each with its number.

    Raises:
        ManifestError: a CSV without a required column, or what is neither; the line is named.
    """
    return _csv_lines(manifest, required) if manifest.suffix.lower() == ".csv" else _json_lines(manifest)


def _csv_lines(manifest: Path, required: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with manifest.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for column in required:
                if column not in (reader.fieldnames or ()):
                    raise ManifestError(f"{manifest}: column {column!r} is missing; there are: {reader.fieldnames}")
            for record in reader:
                yield reader.line_num, record
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise ManifestError(f"{manifest}: {error}") from error


def _json_lines(manifest: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with manifest.open(encoding="utf-8-sig") as file:
            number = 0
            while line := file.readline(MAX_LINE):
                number += 1
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise ManifestError(f"{manifest}, line {number}: no JSON: {error}") from error
                if not isinstance(record, dict):
                    raise ManifestError(f"{manifest}, line {number}: expected a JSON object, got {line[:40].strip()!r}")
                yield number, record
    except (UnicodeDecodeError, OSError) as error:
        raise ManifestError(f"{manifest}: {error}") from error
