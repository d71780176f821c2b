"""The submissions of a benchmark: whose each is, which task it answers, and where it lies.

    <folder>/<model>/<task>/        one submission: a mod's source tree or built file, or category subfolders
    <folder>/<model>/<task>.jar     or its file alone

or a manifest (CSV or JSON Lines) with the columns submission, model and task, and game, config and requests where
wanted; paths in it are relative to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .batch import manifest_lines
from .errors import ManifestError
from .submissions.archives import is_archive_name
from .submissions.base import Requests
from .submissions.detection import MANIFESTS
from .submissions.source import GAMES, Game
from .submissions.tmod import is_tmod_name

__all__ = ["Entry", "check_distinct", "find_entries", "is_benchmark_manifest"]

COLUMNS = ("submission", "model", "task", "game", "config", "requests")
"""What a manifest of submissions may say of each; the first three it must."""
_WRITTEN = re.compile(r"\..*|parts|(results|summary|ablation)\.(parquet|csv)|report(-\w+)?\.html")
_PART = re.compile(r"\..*|[0-9a-f]{32}\.parquet")


@dataclass(frozen=True)
class Entry:
    """One submission of a run.

    Attributes:
        path: the submission.
        model: whose it is.
        task: what it answers; empty outside a benchmark.
        game: "minecraft" or "terraria"; "auto" finds out; "folder" reads category subfolders.
        config: which configuration of the model, where there are several.
        requests: see `submissions.base.Requests`.
    """

    path: Path
    model: str = ""
    task: str = ""
    game: Game = "auto"
    config: str = ""
    requests: Requests = None

    @property
    def group(self) -> str:
        """The model, with its configuration in brackets."""
        return f"{self.model} ({self.config})" if self.config else self.model

    @property
    def prefix(self) -> str:
        """What its ids begin with in the results of a benchmark."""
        return f"{self.group}/{self.task}/" if self.task else ""


def find_entries(source: str | os.PathLike[str], *, game: Game = "auto", requests: Requests = None) -> list[Entry]:
    """The submissions of a folder of models, or of a manifest of submissions.

    Args:
        source: see the module.
        game: for entries that do not say it themselves.
        requests: the same, for those too; the path of a folder stands for its files TASK.json.

    Raises:
        ManifestError: `source` is neither, a mistake in the manifest, a model that answers a task twice, a task file
            that is none, or a folder of task files without one for any task.
    """
    path = Path(source)
    if path.is_dir():
        found = _walk(path, game)
    elif is_benchmark_manifest(path):
        found = _read(path, game)
    else:
        raise ManifestError(
            f"{path}: expected a folder MODEL/TASK, or a manifest with the columns {', '.join(COLUMNS[:3])}"
        )
    asked = [replace(entry, requests=_task_requests(entry, requests)) for entry in found]
    folder = os.fspath(requests) if isinstance(requests, (str, os.PathLike)) and os.path.isdir(requests) else None
    if found and folder is not None and all(entry.requests is None for entry in asked):
        names = ", ".join(dict.fromkeys(f"{entry.task}.json" for entry in asked[:3]))
        raise ManifestError(f"requests: {folder} holds a file for none of the tasks: {names} ...")
    return asked


def check_distinct(entries: Sequence[Entry], places: Sequence[str] = (), within: str = "") -> None:
    """Refuse two answers of one model to one task, whose ids would meet; one for each game is no such pair.

    Args:
        entries: in any order; those without a task have no such ids.
        places: where each stands, for the message; default its path.
        within: what holds the places.

    Raises:
        ManifestError: both are named.
    """
    seen: dict[str, list[tuple[Entry, str]]] = {}
    for i, entry in enumerate(entries):
        place = places[i] if places else str(entry.path)
        if not entry.task:
            continue
        for other, before in seen.setdefault(entry.prefix, []):
            if "auto" in (entry.game, other.game) or entry.game == other.game:
                raise ManifestError(
                    f"{within}{place}: {entry.group!r} answers {entry.task!r} in {before} already; "
                    "a manifest tells two apart by config, or by game"
                )
        seen[entry.prefix].append((entry, place))


def is_benchmark_manifest(path: Path) -> bool:
    """Does a file's first line speak of submissions (and not of assets)?"""
    if path.suffix.lower() not in MANIFESTS or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096).decode("utf-8", "replace").lstrip("\ufeff").lstrip().partition("\n")[0]
    if path.suffix.lower() == ".csv":
        return "submission" in [name.strip().strip('"') for name in start.split(",")]
    return '"submission"' in start


def _task_requests(entry: Entry, requests: Requests) -> Requests:
    if entry.requests is not None or requests is None or isinstance(requests, Mapping):
        return entry.requests if entry.requests is not None else requests
    if isinstance(requests, str) and requests == "ids":
        return requests
    folder = Path(requests)
    if not folder.is_dir():
        return requests
    file = folder / f"{entry.task}.json"
    return file if file.is_file() else None


def _walk(root: Path, game: Game) -> list[Entry]:
    entries = []
    for model in sorted(child for child in root.iterdir() if child.is_dir() and not child.name.startswith(".")):
        if _is_results(model):
            continue
        for path in sorted(model.iterdir()):
            if path.name.startswith("."):
                continue
            if path.is_dir():
                if not _is_results(path):
                    entries.append(Entry(path, model.name, path.name, game))
            elif is_archive_name(path.name) or is_tmod_name(path.name):
                entries.append(Entry(path, model.name, path.stem, game))
    check_distinct(entries)
    return entries


def _is_results(folder: Path) -> bool:
    """Is it what a run wrote, whole or interrupted, and nothing else? Such files among others make no results."""
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
        if not names or not all(_WRITTEN.fullmatch(name) for name in names):
            return False
        return "parts" not in names or all(_PART.fullmatch(name) for name in os.listdir(folder / "parts"))
    except OSError:
        return False


def _read(manifest: Path, game: Game) -> list[Entry]:
    entries: list[Entry] = []
    lines: list[int] = []
    for line, record in manifest_lines(manifest, COLUMNS[:3]):
        where = f"{manifest}, line {line}"
        values = {}
        for column in COLUMNS:
            value = record.get(column)
            if value is not None and not isinstance(value, str):
                raise ManifestError(f"{where}: {column} must be text, got {value!r}")
            values[column] = (value or "").strip()
            if not values[column] and column in COLUMNS[:3]:
                raise ManifestError(f"{where}: {column} is missing")
        if "\0" in "".join(values.values()):
            raise ManifestError(f"{where}: a NUL character stands in it")
        stated = values["game"] or game
        if stated not in GAMES:
            raise ManifestError(f"{where}: game must be one of {', '.join(GAMES)}, got {stated!r}")
        asked = values["requests"]
        requests: Requests = None if not asked else "ids" if asked == "ids" else manifest.parent / asked
        path = manifest.parent / values["submission"]
        entries.append(Entry(path, values["model"], values["task"], stated, values["config"], requests))
        lines.append(line)
    check_distinct(entries, [f"line {line}" for line in lines], f"{manifest}, ")
    return entries
