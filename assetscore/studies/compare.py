"""Two builds of one project, asset by asset; two methods over many tasks; two encoders over the same assets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..errors import UsageError
from ..results import UNDECIDED
from ..table import Row
from .agreement import rows_by_id
from .keepbest import KeepBest, Step, keep_best
from .paired import RESAMPLES, Paired, RankAgreement, paired, rank_agreement

__all__ = [
    "MEASURES",
    "BuildComparison",
    "Change",
    "KeepBest",
    "Paired",
    "RankAgreement",
    "Step",
    "TaskComparison",
    "compare_builds",
    "compare_methods",
    "compare_orders",
    "keep_best",
    "measures",
    "other_thresholds",
    "paired",
    "rank_agreement",
]

MEASURES = ("pass_style", "pass_sem", "pass_both", "custom")
"""What a build is measured by: rates over its assets that have a verdict."""
Kind = Literal["gained", "lost", "changed", "same"]
_VERDICTS = {"style": "style_pass", "semantic": "sem_pass", "both": "both_pass"}
BY = {"group": "groups", "task": "tasks", "category": "categories", "game": "games", "asset_id": "assets"}
"""The columns that may name a task or a model, and their plurals."""
_WORDS = {True: "pass", False: "fail", None: "no verdict"}
_SAME = 1e-6
"""Scores nearer than this are the same picture's: an encoder's own noise is smaller."""


def measures(rows: Iterable[Row]) -> dict[str, float]:
    """The rates of a build: pass_style, pass_sem (where there is such a check), pass_both and custom.

    The denominator is the assets that have a verdict. NaN where there is none.
    """
    listed = list(rows)
    decided = [row for row in listed if row.status not in UNDECIDED]
    verdicts = {
        "pass_style": [row.style_pass is True for row in decided],
        "pass_sem": [row.sem_pass is True for row in decided],
        "pass_both": [row.both_pass is True for row in decided],
        "custom": [row.custom for row in decided],
    }
    if all(row.sem_factor is None for row in listed):
        del verdicts["pass_sem"]
    return {name: sum(values) / len(values) if values else math.nan for name, values in verdicts.items()}


@dataclass(frozen=True)
class Change:
    """One asset in two builds.

    Attributes:
        asset_id: its id in both.
        kind: "gained" (only in the second), "lost" (only in the first), "changed", "same".
        what: what changed, in words: "style: fail -> pass", "picture".
        before, after: the result rows; None where the build lacks it.
    """

    asset_id: str
    kind: Kind
    what: tuple[str, ...]
    before: Row | None
    after: Row | None

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        scores = {
            name: None if row is None else row.style_s for name, row in (("before", self.before), ("after", self.after))
        }
        return {"asset_id": self.asset_id, "kind": self.kind, "what": list(self.what), "style_s": scores}


@dataclass(frozen=True)
class BuildComparison:
    """Two builds of one project.

    Attributes:
        changes: one for each asset of either, the changed ones first.
        before, after: the builds' `measures`.
        margins: for each check, the paired comparison of S - tau over the assets that both builds scored; None where
            there is no such asset.
        remarks: what besides the art may have moved verdicts and margins: other thresholds, other requests.
    """

    changes: tuple[Change, ...]
    before: Mapping[str, float]
    after: Mapping[str, float]
    margins: Mapping[str, Paired | None]
    remarks: tuple[str, ...] = ()

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """The assets of one kind."""
        return tuple(change for change in self.changes if change.kind == kind)

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {
            "before": _no_nan(self.before),
            "after": _no_nan(self.after),
            "margins": {name: None if value is None else value.to_dict() for name, value in self.margins.items()},
            "remarks": list(self.remarks),
            "changes": [change.to_dict() for change in self.changes],
        }


def compare_builds(
    before: Iterable[Row], after: Iterable[Row], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> BuildComparison:
    """Match the assets of two builds by id and say what became of each.

    Where one id belongs to several groups, assets are matched by group and id.

    Args:
        before, after: result rows of each build, scored with one profile.
        level, resamples, seed: of the intervals.

    Raises:
        UsageError: an asset_id belongs to two rows of one group, or the builds were scored with different encoders.
    """
    first, second = _keyed(list(before), list(after))
    check_one_profile([*first.values(), *second.values()])
    changes = [_change(asset, first.get(asset), second.get(asset)) for asset in dict.fromkeys([*first, *second])]
    order = {"changed": 0, "gained": 1, "lost": 2, "same": 3}
    changes.sort(key=lambda change: order[change.kind])
    shared = [(change.before, change.after) for change in changes if change.before and change.after]
    margins: dict[str, Paired | None] = {}
    for name, column in (("style", "style_margin"), ("semantic", "sem_margin")):
        pairs = [(getattr(a, column), getattr(b, column)) for a, b in shared]
        pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
        values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        settings: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed, "unit": "asset"}
        margins[name] = paired(values[:, 0], values[:, 1], **settings) if pairs else None
    before_rates, after_rates = measures(first.values()), measures(second.values())
    return BuildComparison(tuple(changes), before_rates, after_rates, margins, _remarks(shared))


@dataclass(frozen=True)
class TaskComparison:
    """Two methods over the same tasks.

    Attributes:
        measure: what is compared.
        tasks: the tasks that both have a number for, with the two numbers.
        only_first, only_second: tasks for which the other has no number; they are left out.
        result: the paired comparison, second minus first.
    """

    measure: str
    tasks: Mapping[str, tuple[float, float]]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    result: Paired

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {
            "measure": self.measure,
            "tasks": {name: list(values) for name, values in self.tasks.items()},
            "only_first": list(self.only_first),
            "only_second": list(self.only_second),
            "result": self.result.to_dict(),
        }


def compare_methods(
    first: Iterable[Row],
    second: Iterable[Row],
    measure: str = "pass_both",
    by: str = "group",
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TaskComparison:
    """Compare a measure of two methods over tasks, paired.

    Args:
        first, second: result rows of each method.
        measure: one of `MEASURES`.
        by: the column that names the task.
        level, resamples, seed: of the interval.

    Raises:
        UsageError: an unknown measure or column, or no task in common.
    """
    tasks, only_first, only_second = _matched(first, second, measure, by)
    numbers = np.array(list(tasks.values()), dtype=np.float64)
    return TaskComparison(
        measure,
        tasks,
        only_first,
        only_second,
        result=paired(numbers[:, 0], numbers[:, 1], level=level, resamples=resamples, seed=seed),
    )


def compare_orders(
    first: Iterable[Row], second: Iterable[Row], measure: str = "pass_both", by: str = "group"
) -> RankAgreement:
    """Do two encoders (two judges) order the same groups (models) alike?

    Args:
        first, second: result rows of the same assets under each encoder.
        measure: one of `MEASURES`.
        by: the column that names the group.

    Raises:
        UsageError: an unknown measure or column, or no group in common.
    """
    rates, only_first, only_second = _matched(first, second, measure, by)
    numbers = np.array(list(rates.values()), dtype=np.float64)
    order = rank_agreement(numbers[:, 0], numbers[:, 1], list(rates))
    return replace(order, only_first=only_first, only_second=only_second)


def _change(asset: str, before: Row | None, after: Row | None) -> Change:
    if before is None or after is None:
        return Change(asset, "gained" if before is None else "lost", (), before, after)
    what = []
    if before.status != after.status:
        what.append(f"status: {before.status} -> {after.status}")
    for name, column in _VERDICTS.items():
        old, new = getattr(before, column), getattr(after, column)
        if old != new:
            what.append(f"{name}: {_WORDS[old]} -> {_WORDS[new]}")
    if before.category != after.category:
        what.append(f"category: {before.category} -> {after.category}")
    elif _looks_different(before, after):
        what.append("picture")
    return Change(asset, "changed" if what else "same", tuple(what), before, after)


def _looks_different(before: Row, after: Row) -> bool:
    """Whether one category's references are at other distances: they are by the picture alone, S is by k too."""
    old, new = before.top_style, after.top_style
    if not old or not new:
        old, new = (() if row.style_s is None else (row.style_s,) for row in (before, after))
    return any(abs(a - b) > _SAME for a, b in zip(old, new, strict=False))


def _keyed(before: Sequence[Row], after: Sequence[Row]) -> tuple[dict[str, Row], dict[str, Row]]:
    """Both builds' rows by id, or by group and id where ids alone are not unique."""
    if all(len({row.asset_id for row in rows}) == len(rows) for rows in (before, after)):
        return rows_by_id(before), rows_by_id(after)
    tables: list[dict[str, Row]] = []
    for rows in (before, after):
        table: dict[str, Row] = {}
        for row in rows:
            key = f"{row.group}: {row.asset_id}"
            if key in table:
                raise UsageError(
                    f"asset_id {row.asset_id!r} belongs to two rows of group {row.group!r}; make ids unique"
                )
            table[key] = row
        tables.append(table)
    return tables[0], tables[1]


def check_one_profile(rows: Iterable[Row]) -> None:
    """Raise a UsageError where rows were scored with several encoders or profiles: their scores share no scale."""
    rows = list(rows)
    used = dict.fromkeys(row.encoder for row in rows if row.encoder)
    if len(used) > 1:
        raise UsageError(f"scores of different encoders cannot be compared: {', '.join(used)}")
    profiles = {row.profile_fingerprint: f"{row.profile} ({row.profile_fingerprint[:12]})" for row in rows}
    profiles.pop("", None)
    if len(profiles) > 1:
        raise UsageError(f"scores against different profiles cannot be compared: {', '.join(profiles.values())}")


def other_thresholds(builds: Sequence[Iterable[Row]]) -> tuple[str, ...]:
    """For each build that was judged by other thresholds than the first one, a sentence that says so.

    Alpha, k and the rule set one threshold for each category and factor: where it moved, more than the art did.
    """
    taus = [_thresholds(rows) for rows in builds]
    found = []
    for index, new in enumerate(taus[1:], 1):
        shared = [key for key in taus[0] if key in new]
        moved = [key for key in shared if max(abs(a - b) for a in taus[0][key] for b in new[key]) > _SAME]
        if moved:
            found.append(
                f"build {index} was judged with another alpha, k or rule than build 0 ({len(moved)} of {len(shared)} "
                "thresholds differ), so their rates do not show the art alone"
            )
    return tuple(found)


def _thresholds(rows: Iterable[Row]) -> dict[tuple[str, str | None], set[float]]:
    """The thresholds met, by category and by the semantic check's factor, None for the style check."""
    found: dict[tuple[str, str | None], set[float]] = {}
    for row in rows:
        for factor, tau in ((None, row.style_tau), (row.sem_factor, row.sem_tau)):
            if tau is not None:
                found.setdefault((row.category, factor), set()).add(tau)
    return found


def _remarks(shared: Sequence[tuple[Row, Row]]) -> tuple[str, ...]:
    """What moved besides the art: a request changes what is asked, alpha, k and the rule change the threshold."""
    asked = [(a, b) for a, b in shared if None not in (a.sem_factor, b.sem_factor)]
    other = sum(a.sem_factor != b.sem_factor for a, b in asked)
    found = [f"{other} of {len(asked)} assets were asked for with other words"] if other else []
    same = [(a, b) for a, b in asked if a.sem_factor == b.sem_factor]
    for name, column, pairs in (("style", "style_tau", shared), ("semantic", "sem_tau", same)):
        taus = [(getattr(a, column), getattr(b, column)) for a, b in pairs if a.category == b.category]
        # a status without a threshold (a missing file, say) is no other threshold
        taus = [(a, b) for a, b in taus if a is not None and b is not None]
        moved = [(a, b) for a, b in taus if abs(a - b) > _SAME]
        if moved:
            ends = f"{min(b - a for a, b in moved):+.3f} to {max(b - a for a, b in moved):+.3f}"
            found.append(
                f"{name} thresholds differ for {len(moved)} of {len(taus)} assets (tau {ends}): the builds were judged "
                "with another alpha, k or rule, so verdicts and margins do not show the art alone"
            )
    return tuple(found)


def check_by(by: str, measure: str = MEASURES[0]) -> None:
    """Raise a UsageError for a column or a measure that builds, methods and encoders cannot be compared by."""
    if measure not in MEASURES:
        raise UsageError(f"measure must be one of {', '.join(MEASURES)}, got {measure!r}")
    if by not in BY:
        raise UsageError(f"by must be one of {', '.join(BY)}, got {by!r}")


def shared_names(first: Iterable[Row], second: Iterable[Row], by: str) -> tuple[str, ...]:
    """The names that a column has in both."""
    names = [dict.fromkeys(str(getattr(row, by)) for row in rows) for rows in (first, second)]
    return tuple(name for name in names[0] if name in names[1])


def _matched(
    first: Iterable[Row], second: Iterable[Row], measure: str, by: str
) -> tuple[dict[str, tuple[float, float]], tuple[str, ...], tuple[str, ...]]:
    """The two numbers of each name that both have one for, and the names that only the first, the second has."""
    check_by(by, measure)
    tables = list(first), list(second)
    if not shared_names(*tables, by):
        named = (_some(dict.fromkeys(str(getattr(row, by)) for row in rows)) for rows in tables)
        raise UsageError(f"the two have no {BY[by]} in common: {' against '.join(named)}")
    values = [_by_group(rows, measure, by) for rows in tables]
    matched = {name: (value, values[1][name]) for name, value in values[0].items() if name in values[1]}
    if not matched:
        raise UsageError(f"no {by} has a number for {measure} in both: no asset has such a verdict")
    left = [tuple(name for name in part if name not in matched) for part in values]
    return matched, left[0], left[1]


def _by_group(rows: Iterable[Row], measure: str, by: str) -> dict[str, float]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(getattr(row, by)), []).append(row)
    values = {name: measures(members).get(measure, math.nan) for name, members in groups.items()}
    return {name: value for name, value in values.items() if not math.isnan(value)}


def _some(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in list(names)[:5]) or "none"


def _no_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}
