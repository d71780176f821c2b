"""A benchmark run: submissions of several models to several tasks, in either game, resumed where it was interrupted.

In the result rows `group` is the model (with its configuration in brackets) and `task` the task; ids begin with
"group/task/", so that they are unique over the run.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from . import __version__
from .batch import read_manifest, run
from .cache import EmbeddingCache, cached
from .entries import Entry, check_distinct
from .errors import (
    ArchiveError,
    AssetscoreError,
    ManifestError,
    MissingImageError,
    UnreadableImageError,
    UsageError,
)
from .parts import Part, key_of, read_part, write_part
from .profile import Profile
from .scorer import Item, Scorer
from .submissions.archives import open_tree
from .submissions.base import SCORED_USES, USES, Requests, Use, read_task
from .submissions.copies import CopyIndex
from .submissions.detection import MANIFESTS, Layout, detect
from .submissions.source import fingerprint, open_source
from .table import ResultTable

__all__ = ["BenchmarkRun", "check_pair", "run_benchmark"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BenchmarkRun:
    """What a run gave.

    Attributes:
        table: all rows, in the order of the entries.
        notes: what readers passed over, submissions without textures or unreadable, in words.
        reused: how many entries an earlier run had finished.
        games: the games in the rows by name ("" for plain folders, last), each with the Scorer that judged it.
        lines: (game, group, task) of what was read, in order; those of a submission without textures are only here.
    """

    table: ResultTable
    notes: tuple[str, ...]
    reused: int
    games: Mapping[str, Scorer]
    lines: tuple[tuple[str, str, str], ...] = ()

    def expected(self, by: str = "group") -> dict[str, list[str]]:
        """For each game the values of the column `by` that its summary has a line for, with or without textures.

        Columns that a submission without textures has no value in, such as category, are not expected of it.
        """
        if by not in ("game", "group", "task"):
            return {}
        place = ("game", "group", "task").index(by)
        return {game: list(dict.fromkeys(e[place] for e in self.lines if e[0] == game)) for game in self.games}


def check_pair(entries: Sequence[Entry], first: str, second: str) -> None:
    """Tell before anything is scored that two groups cannot be compared.

    Raises:
        UsageError: they are one, a group has no submission, or the two have no game in common.
    """
    if first == second:
        raise UsageError(f"a pair is two groups, got {first!r} twice")
    games: dict[str, set[str]] = {}
    for entry in entries:
        for group in _groups(entry):
            games.setdefault(group, set()).add(_label(entry) or "")
    for name in (first, second):
        if name not in games:
            raise UsageError(f"no submission of {name!r}; there are: {', '.join(games)}")
    if not games[first] & games[second]:
        raise UsageError(f"{first!r} and {second!r} have no game in common")


def _groups(entry: Entry) -> list[str]:
    """The groups of its rows to come; a manifest of assets names its own."""
    if not entry.task and entry.path.suffix.lower() in MANIFESTS and entry.path.is_file():
        return list(dict.fromkeys(item.group for item in read_manifest(entry.path, entry.group)))
    return [entry.group]


def run_benchmark(
    entries: Sequence[Entry],
    scorers: Mapping[str, Scorer],
    *,
    parts: Path | None = None,
    uses: Iterable[Use] = SCORED_USES,
    copies: bool = True,
    cache: EmbeddingCache | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> BenchmarkRun:
    """Score submissions one after another. What is wrong with one is a row or a note, never the end.

    Args:
        entries: from `find_entries`, or your own.
        scorers: by game; "" is for every game that has none of its own.
        parts: a folder for what is finished. A run that was interrupted goes on from there when it is started again,
            with the same results; what changed since (submission, profile, settings, requests, this library) is scored.
        uses: which textures of mods.
        copies: flag near copies of references.
        cache: keeps embeddings between runs.
        progress: called with the number of entries done, of assets done, and of assets found so far, as they grow.

    Raises:
        UsageError: no scorer for a game, or an unknown game or use.
        ManifestError: a task file that is none, or two answers of one model to one task.
    """
    check_distinct(entries)
    wanted = tuple(uses)
    for use in wanted:
        if use not in USES:
            raise UsageError(f"uses: known are {', '.join(USES)}, got {use!r}")
    runner = _Runner(scorers, wanted, copies, cache)
    labels = [_label(entry) for entry in entries]
    tasks = [
        (entry, _likely(entry, entries, labels) if label is None else label, _texts(entry.requests))
        for entry, label in zip(entries, labels, strict=True)
    ]
    for _, game, _ in tasks:
        runner.scorer(game)
    finished: list[Part] = []
    reused = assets = 0
    for number, (entry, game, requests) in enumerate(tasks, 1):

        def tell(done: int, found: int, number: int = number, before: int = assets) -> None:
            if progress is not None:
                progress(number - 1, before + done, before + found)

        part, scored = runner.part(entry, game, requests, parts, tell)
        finished.append(part)
        reused += not scored
        assets += len(part.rows)
        if progress is not None:
            progress(number, assets, assets)
    rows = tuple(row for part in finished for row in part.rows)
    lines = _lines(tasks, finished)
    games = sorted({game for game, _, _ in lines}, key=lambda game: (not game, game))
    used = {game: runner.scorer(game or None) for game in games}
    notes = [
        f"{entry.prefix.rstrip('/') or entry.path}: {note}"
        for entry, part in zip(entries, finished, strict=True)
        for note in part.notes
    ]
    profile = next(iter(used.values())).profile if len(used) == 1 else None
    return BenchmarkRun(ResultTable(rows, profile), tuple(notes), reused, used, lines)


def _lines(
    tasks: Sequence[tuple[Entry, str | None, object]], finished: Sequence[Part]
) -> tuple[tuple[str, str, str], ...]:
    """(game, group, task) of each entry's rows; of one without any, of the entry.

    Where nothing in an empty entry speaks for a game, it is that of the task's other answers, or the run's only one.
    """
    games = {row.game for part in finished for row in part.rows}
    of_task: dict[str, set[str]] = {}
    for (entry, _, _), part in zip(tasks, finished, strict=True):
        of_task.setdefault(entry.task, set()).update(row.game for row in part.rows)
    lines: dict[tuple[str, str, str], None] = {}
    for (entry, game, _), part in zip(tasks, finished, strict=True):
        if not part.rows:
            likely = next((found for found in (of_task[entry.task], games) if len(found) == 1), {""})
            lines[game or next(iter(likely)), entry.group, entry.task] = None
        lines.update(dict.fromkeys((row.game, row.group, row.task) for row in part.rows))
    return tuple(lines)


class _Runner:
    """Scores one entry at a time; what belongs to a profile is made once."""

    def __init__(
        self, scorers: Mapping[str, Scorer], uses: tuple[Use, ...], copies: bool, cache: EmbeddingCache | None
    ) -> None:
        self.scorers, self.uses, self.copies, self.cache = scorers, uses, copies, cache
        self._indexes: dict[int, CopyIndex] = {}

    def scorer(self, game: str | None) -> Scorer:
        if game is None:  # nothing will be compared: the row that says so needs no profile of its own
            return self.scorers.get("") or next(iter(self.scorers.values()))
        scorer = self.scorers.get(game) or self.scorers.get("")
        if scorer is None:
            raise UsageError(f"no profile for {game or 'folders of pictures'}: there are {', '.join(self.scorers)}")
        return scorer

    def key(self, entry: Entry, game: str | None, requests: Mapping[str, str] | str) -> str:
        """Everything the entry's rows depend on."""
        scorer = self.scorer(game)
        profile = scorer.profile
        judged = (profile.name, profile.fingerprint, *profile.factors, scorer.config.fingerprint)
        asked = json.dumps(requests, sort_keys=True)
        named = (str(entry.path), entry.group, entry.task, entry.game, game or "")
        found = fingerprint(entry.path)
        return key_of(__version__, *judged, *named, ",".join(self.uses), str(self.copies), asked, found)

    def part(
        self,
        entry: Entry,
        game: str | None,
        requests: Mapping[str, str] | str,
        folder: Path | None,
        progress: Callable[[int, int], None],
    ) -> tuple[Part, bool]:
        """What an entry gave, and whether it had to be scored for that."""
        if folder is None:
            return self.score(entry, game, requests, progress)[0], True
        key = self.key(entry, game, requests)
        part = read_part(folder, key)
        if part is not None:
            return part, False
        part, lasting = self.score(entry, game, requests, progress)
        if lasting and self.key(entry, game, requests) == key:  # else it changed while it was read
            write_part(folder, key, part)
        return part, True

    def score(
        self, entry: Entry, game: str | None, requests: Mapping[str, str] | str, progress: Callable[[int, int], None]
    ) -> tuple[Part, bool]:
        """What an entry gives, and whether it would give that again: what the system refuses may pass later."""
        scorer = self.scorer(game)
        with ExitStack() as stack:
            stack.enter_context(_caching(scorer.profile, self.cache))
            try:
                if not entry.path.exists():
                    raise UsageError(f"{entry.path}: there is nothing to read")
                source = stack.enter_context(
                    open_source(
                        entry.path,
                        game=entry.game,
                        categories=scorer.profile.categories,
                        group=entry.group,
                        uses=self.uses,
                        requests=requests or None,
                        copies=self._index(scorer.profile),
                    )
                )
            except Exception as error:  # whatever a stranger's files make of a reader: the others go on
                if isinstance(error, (UsageError, ManifestError)) and not entry.task:
                    raise
                return self._refused(scorer, entry, game or "", error), not isinstance(error, (OSError, MemoryError))
            try:
                named = _named(source.items, entry, game or "", source.layout)
                table = run(scorer, named, progress=lambda done: progress(done, source.total))
            except (ArchiveError, OSError) as error:
                return self._refused(scorer, entry, game or "", error), not isinstance(error, OSError)
        notes = list(source.notes)
        ids = {row.asset_id for row in table}
        unknown = [id for id in requests if entry.prefix + id not in ids] if isinstance(requests, Mapping) else []
        if unknown:
            notes.append(f"{len(unknown)} requests name no asset: {', '.join(unknown[:3])}")
        if not table.rows:
            notes.append("no textures to score")
        return Part(table.rows, tuple(dict.fromkeys(notes))), True

    def _index(self, profile: Profile) -> CopyIndex | None:
        if not self.copies:
            return None
        if id(profile) not in self._indexes:
            self._indexes[id(profile)] = CopyIndex(profile.references)
        return self._indexes[id(profile)]

    def _refused(self, scorer: Scorer, entry: Entry, game: str, error: Exception) -> Part:
        """One row for a submission that is not there or cannot be read: it fails, and counts as one asset."""
        known = isinstance(error, (AssetscoreError, OSError))
        reason = str(error) if known else f"{entry.path}: {type(error).__name__}: {error}"
        log.log(logging.INFO if known else logging.ERROR, "%s", reason, exc_info=None if known else error)
        failure = UnreadableImageError(reason) if entry.path.exists() else MissingImageError(reason)
        name = entry.path.name if entry.game == "auto" else f"{entry.path.name} ({entry.game})"
        item = Item(failure, "", asset_id=entry.prefix + name, path=str(entry.path), group=entry.group)
        return Part(
            run(scorer, [replace(item, game=game, task=entry.task)]).rows, (f"the submission cannot be read: {reason}",)
        )


@contextmanager
def _caching(profile: Profile, cache: EmbeddingCache | None) -> Iterator[None]:
    """The cache before the profile's encoder, for as long as the block lasts."""
    if cache is None:
        yield
        return
    plain = profile.encoder
    profile.use_encoder(cached(plain, cache))
    try:
        yield
    finally:
        profile.use_encoder(plain)


def _named(items: Iterable[Item], entry: Entry, game: str, layout: Layout) -> Iterator[Item]:
    for item in items:
        inner, group = item.asset_id, entry.group
        if layout == "manifest" and not entry.task:
            group = item.group
        elif layout == "manifest" and item.group != group:  # no submission puts its rows into another model's
            inner = f"{item.group}/{inner}"
        yield replace(
            item,
            asset_id=entry.prefix + inner,
            group=group,
            game=item.game or game,
            task=entry.task,
        )


def _label(entry: Entry) -> str | None:
    """The game of an entry: told, or found out; "" for plain folders, None for what no reader can tell."""
    if entry.game in ("minecraft", "terraria"):
        return entry.game
    if entry.game == "folder":
        return ""
    try:
        layout = detect(entry.path)
    except (UsageError, OSError):
        return None
    if layout == "minecraft" and entry.path.suffix.lower() == ".zip" and not _opens(entry.path):
        return None  # a damaged archive by that name may have been either game's
    return layout if layout in ("minecraft", "terraria") else ""


def _opens(path: Path) -> bool:
    try:
        open_tree(path).close()
    except (AssetscoreError, OSError):
        return False
    return True


def _likely(entry: Entry, entries: Sequence[Entry], labels: Sequence[str | None]) -> str | None:
    """The game that what cannot be read was an answer in: that of the task's other answers, or the run's only one."""
    known = [(other.task, label) for other, label in zip(entries, labels, strict=True) if label is not None]
    of_task = {label for task, label in known if task == entry.task}
    for found in (of_task, {label for _, label in known}):
        if len(found) == 1:
            return next(iter(found))
    return None


def _texts(requests: Requests) -> Mapping[str, str] | str:
    """The requests themselves, so that a changed task file is noticed; "" for none."""
    if requests is None or isinstance(requests, Mapping):
        return dict(requests or {}) or ""
    return "ids" if isinstance(requests, str) and requests == "ids" else read_task(requests)
