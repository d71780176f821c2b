"""Paired comparisons: one measure of two methods on the same tasks, the order of models under two encoders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..errors import UsageError
from .intervals import Estimate, bootstrap, check_settings

__all__ = ["Paired", "RankAgreement", "paired", "rank_agreement"]

RESAMPLES = 20_000
_TIE = 1e-9
"""Differences smaller than this are ties: rates that are equal on paper differ by rounding."""
_EXACT = 50
"""Changed tasks up to which every sign pattern is counted; 2^50 is exact in a float."""


@dataclass(frozen=True)
class Paired:
    """Second minus first, over tasks.

    Attributes:
        difference: the mean, with a percentile bootstrap interval over tasks.
        wilcoxon_p: the two-sided signed-rank test's p-value, ties dropped; NaN with `reason` where there is none.
        wins, losses, ties: tasks on which the second is higher, lower, equal.
        reason: why there is no p-value.
    """

    difference: Estimate
    wilcoxon_p: float
    wins: int
    losses: int
    ties: int
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        p = None if math.isnan(self.wilcoxon_p) else self.wilcoxon_p
        return asdict(self) | {"difference": self.difference.to_dict(), "wilcoxon_p": p}


def paired(
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    clusters: Sequence[object] | None = None,
    unit: str = "task",
) -> Paired:
    """Compare two methods on the same n tasks.

    Args:
        first, second: n finite values each, in the same order of tasks.
        level, resamples, seed: of the bootstrap interval.
        clusters: n labels; tasks of one cluster are resampled together.
        unit: what the values belong to, for the words of the result.

    Raises:
        UsageError: unequal lengths, nothing to compare, or a value that is not finite.

    Example:
        >>> result = paired([0.2, 0.4, 0.5, 0.1], [0.3, 0.6, 0.5, 0.5])
        >>> round(result.difference.value, 3), result.wins, result.losses, result.ties
        (0.175, 3, 0, 1)
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if a.ndim != 1 or a.shape != b.shape or a.size == 0:
        raise UsageError(
            f"first and second must be two lists of one length, one value a task; got {a.shape}, {b.shape}"
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise UsageError("first and second must be finite: leave out tasks that either did not finish, and count them")
    check_settings(level, resamples, seed)
    change = b - a
    change[np.abs(change) < _TIE] = 0.0
    difference = bootstrap(
        float(change.mean()),
        lambda counts: counts @ change / counts.sum(axis=1),
        change.size,
        level=level,
        resamples=resamples,
        seed=seed,
        method=f"bootstrap over {f'{unit}s' if clusters is None else 'clusters'}, {resamples} resamples",
        unit=unit,
        clusters=clusters,
    )
    # ranks of equal differences must be equal: rounding would split ties such as 0.3 - 0.2 and 0.4 - 0.3
    moved = np.round(change[change != 0.0], 9)
    return Paired(
        difference,
        _signed_rank_p(moved) if moved.size else math.nan,
        wins=int((change > 0).sum()),
        losses=int((change < 0).sum()),
        ties=int((change == 0).sum()),
        reason="" if moved.size else f"no test: every {unit} is a tie",
    )


def _signed_rank_p(change: NDArray[np.float64]) -> float:
    """Wilcoxon's two-sided p of changes without zeros: over all sign patterns up to 50, SciPy's approximation beyond.

    Rates tie often, and SciPy counts sign patterns with ties in some versions only.
    """
    if change.size > _EXACT:
        return float(stats.wilcoxon(change).pvalue)
    doubled = np.round(2 * stats.rankdata(np.abs(change))).astype(np.int64)  # midranks are halves
    patterns = np.ones(1)
    for rank in doubled:  # how many of the 2^n sign patterns give each sum of positive ranks
        longer = np.zeros(patterns.size + rank)
        longer[: patterns.size] += patterns
        longer[rank:] += patterns
        patterns = longer
    up = int(doubled[change > 0].sum())
    fewer = min(up, int(doubled.sum()) - up)
    return float(min(1.0, 2 * patterns[: fewer + 1].sum() / patterns.sum()))


@dataclass(frozen=True)
class RankAgreement:
    """How alike two encoders order the same models.

    Attributes:
        spearman, kendall: rank correlations (Kendall's tau-b); NaN with `reason` where there are none.
        same_order: the share of pairs of models that both order the same way, ties in both counted as the same.
        models: how many.
        best: the best model under each; all of them where several share the highest number. Empty without models.
        reason: why a number is missing.
        only_first, only_second: models for which the other has no number; they are left out.
    """

    spearman: float
    kendall: float
    same_order: float
    models: int
    best: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    reason: str = ""
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def rank_agreement(first: ArrayLike, second: ArrayLike, names: Sequence[str] | None = None) -> RankAgreement:
    """Compare the order of m models under two encoders (or two judges).

    Args:
        first, second: m numbers each (pass rates, say), in the same order of models.
        names: the models' names, for `best`.

    Raises:
        UsageError: unequal lengths or a value that is not finite.

    Example:
        >>> result = rank_agreement([0.1, 0.2, 0.3], [0.2, 0.4, 0.4], ["a", "b", "c"])
        >>> round(result.spearman, 3), result.best
        (0.866, (('c',), ('b', 'c')))
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if a.ndim != 1 or a.shape != b.shape:
        raise UsageError(f"first and second must be two lists of one length, got {a.shape}, {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise UsageError("first and second must be finite: leave out models that either did not score")
    if names is not None and len(names) != a.size:
        raise UsageError(f"names must be {a.size} names, got {len(names)}")
    labels = [str(i) for i in range(a.size)] if names is None else list(names)
    best = (_best(a, labels), _best(b, labels))
    if a.size < 2:
        return RankAgreement(math.nan, math.nan, math.nan, a.size, best, "an order needs two models")
    upper = np.triu_indices(a.size, 1)
    signs = [np.sign(np.round(values[upper[0]] - values[upper[1]], 9)) for values in (a, b)]
    same = float((signs[0] == signs[1]).mean())
    for which, values in (("first", signs[0]), ("second", signs[1])):
        if not values.any():
            reason = f"all models are equal under the {which}, so there is no order to correlate"
            return RankAgreement(math.nan, math.nan, same, a.size, best, reason)
    a, b = np.round(a, 9), np.round(b, 9)
    spearman, kendall = float(stats.spearmanr(a, b).statistic), float(stats.kendalltau(a, b).statistic)
    return RankAgreement(spearman, kendall, same, a.size, best)


def _best(values: NDArray[np.float64], labels: Sequence[str]) -> tuple[str, ...]:
    highest = values.max(initial=-math.inf)
    return tuple(label for label, value in zip(labels, values, strict=True) if highest - value < _TIE)
