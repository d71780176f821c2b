"""Two configurations of one model (the paper's Table 13): their rates by game, and the difference paired over tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..results import UNDECIDED
from ..summary import Rate
from ..table import Row
from .compare import TaskComparison, compare_methods
from .paired import RESAMPLES

__all__ = ["Ablation", "ablation"]

_COLUMNS = {"pass_style": "style_pass", "pass_sem": "sem_pass", "pass_both": "both_pass"}


@dataclass(frozen=True)
class Ablation:
    """Two groups' results in one game.

    Attributes:
        game: which.
        first, second: the groups.
        n: assets of each, those without a verdict included.
        rates: for "pass_style", "pass_sem" (where there is such a check) and "pass_both" the share of all assets with a
            verdict, of each group, as in the other tables.
        differences: for each the mean difference over tasks, second minus first, with its bootstrap interval; None
            where no task has assets with a verdict of both. Each task counts once, so this need not be the difference
            of the two rates.
    """

    game: str
    first: str
    second: str
    n: tuple[int, int]
    rates: Mapping[str, tuple[Rate, Rate]]
    differences: Mapping[str, TaskComparison | None]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {
            "game": self.game,
            "first": self.first,
            "second": self.second,
            "n": list(self.n),
            "rates": {name: [rate.to_dict() for rate in rates] for name, rates in self.rates.items()},
            "differences": {
                name: None if found is None else found.to_dict() for name, found in self.differences.items()
            },
        }


def ablation(
    rows: Iterable[Row],
    first: str,
    second: str,
    *,
    expected: Mapping[str, Iterable[str]] | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Ablation]:
    """Compare two groups of a benchmark's rows, in each game that both have rows of.

    Args:
        rows: with `task` set.
        first, second: their `group`; the difference is second minus first.
        expected: groups by game that count as being there without a row: N = 0, no rates.
        level, resamples, seed: of the interval over tasks.

    Raises:
        UsageError: a group has no rows, or the two have no game in common.
    """
    listed = list(rows)
    there = {game: list(names) for game, names in (expected or {}).items()}
    for row in listed:
        there.setdefault(row.game, []).append(row.group)
    groups = list(dict.fromkeys(name for names in there.values() for name in names))
    for name in (first, second):
        if name not in groups:
            raise UsageError(f"no results of {name!r}; there are: {', '.join(groups)}")
    found = []
    for game in sorted(there, key=lambda game: (not game, game)):
        if not {first, second} <= set(there[game]):
            continue
        one, other = ([row for row in listed if (row.game, row.group) == (game, name)] for name in (first, second))
        semantic = any(row.sem_factor is not None for row in (*one, *other))
        rates: dict[str, tuple[Rate, Rate]] = {}
        differences: dict[str, TaskComparison | None] = {}
        for measure, column in _COLUMNS.items():
            if measure == "pass_sem" and not semantic:
                continue
            rates[measure] = (_rate(one, column), _rate(other, column))
            try:
                differences[measure] = compare_methods(
                    one, other, measure, "task", level=level, resamples=resamples, seed=seed
                )
            except UsageError:  # no task with verdicts of both
                differences[measure] = None
        found.append(Ablation(game, first, second, (len(one), len(other)), rates, differences))
    if not found:
        raise UsageError(f"{first!r} and {second!r} have no game in common")
    return found


def _rate(rows: Iterable[Row], column: str) -> Rate:
    decided = [row for row in rows if row.status not in UNDECIDED]
    return Rate(sum(getattr(row, column) is True for row in decided), len(decided))
