"""The paper's Table 6: how each group of submissions fares, with the references' own leave-one-out row first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .calibration import Rule, wilson_interval
from .results import UNDECIDED
from .table import ResultTable, Row

if TYPE_CHECKING:
    from .profile import Profile
    from .scorer import Scorer

__all__ = ["Rate", "SummaryRow", "leave_one_out_row", "summarise", "summarise_games"]


@dataclass(frozen=True)
class Rate:
    """A share with its Wilson interval; `total` 0 has no share."""

    passed: float
    total: int

    @property
    def value(self) -> float | None:
        return self.passed / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 %."""
        return wilson_interval(self.passed, self.total)

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval
        return {"value": self.value, "low": low if self.total else None, "high": high if self.total else None}


@dataclass(frozen=True)
class SummaryRow:
    """One line of the table.

    Attributes:
        group: a model's name, a category, or "references (leave-one-out)".
        n: registered assets; `undecided` of them (empty, uncalibrated, without references) stay out of the rates.
        custom: share with own readable artwork; None for the references.
        style_margin, sem_margin: mean S - tau over the assets that have one; None without any.
        pass_style, pass_sem, pass_both: rates over n - undecided; pass_sem is None where there is no semantic check.
        statuses: how many assets have each status.
    """

    group: str
    n: int
    undecided: int
    custom: Rate | None
    style_margin: float | None
    pass_style: Rate
    sem_margin: float | None
    pass_sem: Rate | None
    pass_both: Rate
    statuses: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "n": self.n,
            "undecided": self.undecided,
            "custom": None if self.custom is None else self.custom.to_dict(),
            "style_margin": self.style_margin,
            "pass_style": self.pass_style.to_dict(),
            "sem_margin": self.sem_margin,
            "pass_sem": None if self.pass_sem is None else self.pass_sem.to_dict(),
            "pass_both": self.pass_both.to_dict(),
            "statuses": self.statuses,
        }


def summarise(
    table: ResultTable, by: str = "group", profile: Profile | None = None, *, expected: Iterable[str] = ()
) -> list[SummaryRow]:
    """One SummaryRow a value of the column `by`, in order of first appearance; the references' own row first.

    Args:
        table: the results.
        by: "group", "category", "game" ...
        profile: whose leave-one-out row stands first; default the table's; none, no such row.
        expected: values that have a line in any case, before the others: N = 0 and no rates where no row has them.
    """
    profile = profile or table.profile
    groups: dict[str, list[Row]] = {value: [] for value in expected}
    for row, value in zip(table.rows, table.column(by), strict=True):
        groups.setdefault(str(value), []).append(row)
    lines = [_line(group or "(all)", rows) for group, rows in groups.items()]
    return ([leave_one_out_row(profile)] if profile is not None else []) + lines


def summarise_games(
    table: ResultTable,
    games: Mapping[str, Scorer],
    by: str = "group",
    *,
    expected: Mapping[str, Iterable[str]] | None = None,
) -> dict[str, list[SummaryRow]]:
    """For each game its references' own row and one a value of the column `by`, as in the paper's tables.

    Args:
        table: the results.
        games: what each game's rows were judged by; "" for rows that say no game.
        by: as `summarise`'s.
        expected: the same, for each game.
    """
    summaries = {}
    for game, scorer in games.items():
        config = scorer.config
        own = leave_one_out_row(scorer.profile, alpha=config.alpha, k=config.k, rule=config.rule)
        rows = tuple(row for row in table.rows if row.game == game)
        summaries[game] = [own, *summarise(ResultTable(rows), by, expected=(expected or {}).get(game, ()))]
    return summaries


def _line(group: str, rows: Sequence[Row]) -> SummaryRow:
    decided = [row for row in rows if row.status not in UNDECIDED]
    semantic = any(row.sem_factor is not None for row in rows)
    statuses: dict[str, int] = {}
    for row in rows:
        statuses[row.status] = statuses.get(row.status, 0) + 1
    return SummaryRow(
        group=group,
        n=len(rows),
        undecided=len(rows) - len(decided),
        custom=Rate(sum(row.custom for row in decided), len(decided)),
        style_margin=_mean([row.style_margin for row in decided]),
        pass_style=Rate(sum(row.style_pass is True for row in decided), len(decided)),
        sem_margin=_mean([row.sem_margin for row in decided]),
        pass_sem=Rate(sum(row.sem_pass is True for row in decided), len(decided)) if semantic else None,
        pass_both=Rate(sum(row.both_pass is True for row in decided), len(decided)),
        statuses=statuses,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def leave_one_out_row(
    profile: Profile, *, alpha: float | None = None, k: int | None = None, rule: Rule | None = None
) -> SummaryRow:
    """The references judged against themselves: near 1 - alpha by construction; groups count as one reference."""
    config = profile.config.with_(alpha=alpha, k=k, rule=rule)
    checks = [profile.style_factor] + ([profile.semantic_factor] if profile.semantic_factor else [])
    weights: list[NDArray[np.float64]] = []
    margins: list[NDArray[np.float64]] = []
    textures, counted = sum(profile.categories.values()), 0
    for category, n in profile.categories.items():
        calibrations = [profile.calibration(category, factor) for factor in checks]
        taus = [c.threshold(config.alpha, config.k, config.rule) for c in calibrations]
        if not all(tau is not None for tau in taus):
            continue
        counted += n
        weights.append(calibrations[0].weights)
        scores = np.stack([c.scores(config.k) for c in calibrations])
        margins.append(scores - np.array(taus, np.float64)[:, None])
    weight = np.concatenate([np.empty(0), *weights])
    margin: NDArray[np.float64] = np.concatenate([np.empty((len(checks), 0)), *margins], axis=1)
    total = round(float(weight.sum()))

    def rate(passes: Any) -> Rate:
        return Rate(float(weight @ passes), total)

    def mean(values: NDArray[np.float64]) -> float | None:
        return float(weight @ values) / total if total else None

    return SummaryRow(
        group="references (leave-one-out)",
        n=textures,
        undecided=textures - counted,
        custom=None,
        style_margin=mean(margin[0]),
        pass_style=rate(margin[0] >= 0),
        sem_margin=mean(margin[1]) if len(checks) > 1 else None,
        pass_sem=rate(margin[1] >= 0) if len(checks) > 1 else None,
        pass_both=rate(np.asarray(margin >= 0).all(axis=0)),
        statuses={"scored": counted, "uncalibrated": textures - counted},
    )
