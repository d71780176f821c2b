"""Leave-one-out scores of the references to thresholds and p-values. Pure NumPy.

The promise: with k fixed and S the mean of the k largest similarities, an asset exchangeable with the n references is
rejected with probability at most m / (n + 1) <= alpha, where m = floor(alpha (n + 1)) and tau is the m-th smallest
leave-one-out score; at every n, ties included. (Adding the asset to the references could only raise their scores, so
each leave-one-out score is at most its full-conformal counterpart.) Nothing is promised about which share of bad assets
is caught, and an asset that must pass two checks can be rejected with up to 2 alpha.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor, sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import EmbeddingError, UsageError

__all__ = ["Rule", "leave_one_out_k", "p_values", "rank", "threshold", "threshold_interval", "wilson_interval"]

Rule = Literal["conformal", "linear"]
_TINY = 1e-9
"""Slack for sums of group weights 1/size, which floats cannot hold exactly."""


def rank(n: int, alpha: float) -> int:
    """m = floor(alpha (n + 1)), with alpha read as the decimal fraction it is written as.

    0.09999999999999999, as numpy.arange makes it, is 0.1. 0 means that n references cannot carry a threshold at alpha.

    >>> rank(99, 0.15), rank(9, 0.1), rank(9, 0.09999999999999999), rank(5, 0.15)
    (15, 1, 1, 0)
    """
    return floor(_fraction(alpha) * (n + 1))


def threshold(
    scores: ArrayLike, alpha: float, rule: Rule = "conformal", *, groups: ArrayLike | None = None
) -> float | None:
    """tau: an asset passes when its score S >= tau.

    Args:
        scores: (n,) leave-one-out scores of the references.
        alpha: the share of good assets that may be rejected, in (0, 1).
        rule: "conformal", the m-th smallest score, m = floor(alpha (n + 1)), None where m = 0; or "linear",
            numpy.quantile's rule, to reproduce published tables (it rejects too much at small n).
        groups: (n,) group of each score, where scores of one group (a sheet's frames, a family's variants) count as one
            reference together: each weighs 1/size, n is the number of groups, and tau is the smallest score at which
            the summed weight reaches m.

    Returns:
        tau, or None where uncalibrated: too few references for this alpha, or none.

    >>> threshold([0.9, 0.5, 0.7, 0.8], alpha=0.2), threshold([0.9, 0.5, 0.7, 0.8], alpha=0.1)
    (0.5, None)
    """
    ordered, weights, n = _weighted(scores, groups)
    _check_rule(rule)
    alpha_fraction = _fraction(alpha)
    if n == 0:
        return None
    if rule == "linear":
        return float(np.quantile(ordered, float(alpha_fraction)))
    m = rank(n, alpha)
    if m == 0:
        return None
    reached = np.cumsum(weights) >= m - _TINY
    return float(ordered[int(np.argmax(reached))])


def p_values(scores: ArrayLike, values: ArrayLike, *, groups: ArrayLike | None = None) -> NDArray[np.float64]:
    """Conformal p-values: p = (1 + #{scores <= value}) / (n + 1), so that S >= tau exactly when p > alpha.

    Args:
        scores: (n,) leave-one-out scores of the references.
        values: scores of assets, any shape. NaN gives NaN.
        groups: as for `threshold`; n is then the number of groups and the count is the summed weight, rounded down.

    >>> p_values([0.5, 0.7, 0.8, 0.9], [0.4, 0.5, 0.75, 1.0]).tolist()
    [0.2, 0.4, 0.6, 1.0]
    """
    return PValues(scores, groups)(values)


class PValues:
    """`p_values` of one set of leave-one-out scores, sorted once: call it with scores of assets."""

    def __init__(self, scores: ArrayLike, groups: ArrayLike | None = None) -> None:
        self._ordered, weights, self._n = _weighted(scores, groups)
        self._summed = np.concatenate([[0.0], np.cumsum(weights)])

    def __call__(self, values: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(values, np.float64)
        summed = self._summed[np.searchsorted(self._ordered, values, side="right")]
        p: NDArray[np.float64] = (1 + np.floor(summed + _TINY)) / (self._n + 1)
        return np.where(np.isnan(values), np.nan, p)


def leave_one_out_k(k: int, groups: ArrayLike) -> int:
    """k_eff: min(k, the fewest references outside any one group); 0 where a group holds every reference.

    >>> leave_one_out_k(5, ["a", "a", "b", "c"])
    2
    """
    _, sizes = np.unique(np.asarray(groups), return_counts=True)
    return int(min(k, sizes.sum() - sizes.max(initial=0)))


def threshold_interval(
    scores: ArrayLike, alpha: float, confidence: float = 0.95, *, groups: ArrayLike | None = None
) -> tuple[float, float]:
    """An order-statistic interval for the alpha-quantile that tau estimates; ends are -inf or inf where n is too small.

    The number of n scores below the true quantile is binomial(n, alpha), which gives the two ranks whatever the
    scores' distribution. With groups, ranks are summed weights.
    """
    from scipy.special import bdtr  # scipy.stats takes seconds to import

    ordered, weights, n = _weighted(scores, groups)
    below = bdtr(np.arange(n + 1), n, float(_fraction(alpha)))
    low, high = np.searchsorted(below, [(1 - confidence) / 2, (1 + confidence) / 2])
    summed = np.cumsum(weights)
    return _at_weight(ordered, summed, int(low)), _at_weight(ordered, summed, int(high) + 1, missing=np.inf)


def wilson_interval(passed: float, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a rate; (nan, nan) for a total of 0.

    >>> [round(x, 4) for x in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    """
    from scipy.special import ndtri

    if total == 0:
        return float("nan"), float("nan")
    z = float(ndtri((1 + confidence) / 2))
    rate = passed / total
    centre = (rate + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    return max(0.0, centre - half), min(1.0, centre + half)


def group_weights(groups: ArrayLike) -> NDArray[np.float64]:
    """1 / size of its group, for each member of `groups` (n,)."""
    _, inverse, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    return np.asarray(1.0 / sizes[inverse], np.float64)


def _weighted(scores: ArrayLike, groups: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Scores ascending, their weights in that order, and the number of groups."""
    values = np.asarray(scores, np.float64).ravel()
    if np.isnan(values).any():
        raise EmbeddingError(f"{int(np.isnan(values).sum())} of {values.size} leave-one-out scores are NaN")
    order = np.argsort(values, kind="stable")
    if groups is None:
        return values[order], np.ones(values.size), values.size
    labels: NDArray[Any] = np.asarray(groups).ravel()
    if labels.shape != values.shape:
        raise UsageError(f"groups must name the group of each of the {values.size} scores, got {labels.size}")
    weights = group_weights(labels)
    return values[order], weights[order], len(np.unique(labels))


def _at_weight(
    ordered: NDArray[np.float64], summed: NDArray[np.float64], weight: int, missing: float = -np.inf
) -> float:
    if weight < 1 or not summed.size or summed[-1] < weight - _TINY:
        return -np.inf if weight < 1 else missing
    return float(ordered[int(np.argmax(summed >= weight - _TINY))])


def _fraction(alpha: float) -> Fraction:
    try:
        fraction = Fraction(round(Decimal(repr(float(alpha))), 12))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(f"alpha must be a number between 0 and 1, got {alpha!r}") from error
    if not 0 < fraction < 1:
        raise UsageError(f"alpha must lie between 0 and 1, both excluded, got {alpha!r}")
    return fraction


def _check_rule(rule: str) -> None:
    if rule not in get_args(Rule):
        raise UsageError(f"rule must be one of {', '.join(get_args(Rule))}, got {rule!r}")
