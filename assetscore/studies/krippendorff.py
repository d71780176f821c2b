"""Krippendorff's alpha: how far raters agree beyond chance, with missing answers.

K. Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011. 1 is perfect agreement, 0 is chance.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UsageError
from .intervals import Estimate, check_level, percentile_interval, resample_counts

__all__ = ["krippendorff_alpha", "krippendorff_bootstrap", "raw_agreement"]

logger = logging.getLogger(__name__)
Level = Literal["nominal", "ordinal", "interval"]
_Floats = NDArray[np.float64]
MAX_VALUES = 100
"""Different answers. More are a measurement, not a rating, and would take their square in memory for every unit."""


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float:
    """Krippendorff's alpha of raters over units.

    Args:
        ratings: (raters, units). NaN or None is a missing answer. Numbers, or, for the nominal level, texts.
        level: ``"nominal"`` (answers are equal or not), ``"ordinal"`` (they have an order) or ``"interval"`` (their
            differences count).

    Returns:
        alpha, at most 1. NaN where it does not exist: one rater, no unit with two answers, or one answer throughout.
        The reason is logged here, and `krippendorff_bootstrap` carries it in its result.

    Raises:
        UsageError: not two-dimensional, an infinite or unordered answer, or an unknown level.

    Example:
        Three coders, fifteen units (a common worked example; 0.691):

        >>> from math import nan
        >>> a = [nan, nan, nan, nan, nan, 3, 4, 1, 2, 1, 1, 3, 3, nan, 3]
        >>> b = [1, nan, 2, 1, 3, 3, 4, 3, nan, nan, nan, nan, nan, nan, nan]
        >>> c = [nan, nan, 2, 1, 3, 4, 4, nan, 2, 1, 1, 3, 3, nan, 4]
        >>> round(krippendorff_alpha([a, b, c]), 3)
        0.691
    """
    counts, values, reason = _counts(ratings, level)
    if reason:
        logger.warning("no Krippendorff's alpha: %s", reason)
        return math.nan
    return float(_alpha(counts, values, level, np.ones((1, len(counts))))[0])


def krippendorff_bootstrap(
    ratings: ArrayLike, level: Level = "nominal", confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """alpha with a percentile bootstrap interval over units (assets).

    Args:
        ratings, level: as for `krippendorff_alpha`.
        confidence, resamples, seed: of the interval.

    Returns:
        The estimate; resamples in which every answer was the same are left out and counted in `skipped`.
    """
    check_level(confidence)
    counts, values, reason = _counts(ratings, level)
    method, n = f"bootstrap over units, {level}", len(counts)
    if reason:
        return Estimate(math.nan, level=confidence, method=method, n=n, reason=reason)
    value = float(_alpha(counts, values, level, np.ones((1, n)))[0])
    draws = [_alpha(counts, values, level, weights) for weights in resample_counts(n, resamples, seed)]
    low, high, skipped = percentile_interval(np.concatenate(draws), confidence, n)
    reason = ""
    if math.isnan(low):
        reason = "no interval: " + (
            "only one unit was answered by two raters" if n == 1 else "no resample held two answers"
        )
    return Estimate(value, low, high, confidence, method, n, skipped, reason)


def raw_agreement(ratings: ArrayLike) -> float:
    """The share of pairs of answers to one unit that are equal, chance included; NaN where no unit has two answers.

    Each unit's pairs weigh as in alpha, so that a unit counts by its number of answers.

    Example:
        >>> raw_agreement([[1, 0, 1], [1, 0, 0]])
        0.6666666666666666
    """
    counts, _, _ = _counts(ratings, "nominal")
    if len(counts) == 0:
        return math.nan
    answers = counts.sum(axis=1)
    equal = (counts * (counts - 1)).sum(axis=1) / (answers - 1)
    return float(equal.sum() / answers.sum())


def _counts(ratings: ArrayLike, level: str) -> tuple[_Floats, _Floats, str]:
    """How often each value was given to each unit that has two answers: (units, values), the values, why no alpha."""
    if level not in ("nominal", "ordinal", "interval"):
        raise UsageError(f"level must be 'nominal', 'ordinal' or 'interval', got {level!r}")
    table = _numbers(ratings, level)
    if table.ndim != 2:
        raise UsageError(f"ratings must have two dimensions (raters, units), got shape {table.shape}")
    if np.isinf(table).any():
        raise UsageError("ratings must be finite; NaN is a missing answer")
    given = ~np.isnan(table)
    values = np.unique(table[given])
    if table.size and len(values) > MAX_VALUES:
        raise UsageError(f"ratings may hold at most {MAX_VALUES} different answers, got {len(values)}")
    counts = np.stack([(table == value).sum(axis=0) for value in values], axis=1) if len(values) else np.zeros((0, 0))
    counts = counts[counts.sum(axis=1) >= 2].astype(np.float64) if counts.size else np.zeros((0, 0))
    raters = int(given.any(axis=1).sum())
    if not given.any():
        return counts, values, "there is no answer at all"
    if raters < 2:
        return counts, values, "one rater only: agreement needs two"
    if len(counts) == 0:
        return counts, values, f"no unit was answered by two raters ({raters} raters, {table.shape[1]} units)"
    if (counts.sum(axis=0) > 0).sum() < 2:
        return counts, values, "every answer is the same, so chance agreement is perfect and alpha does not exist"
    return counts, values, ""


def _numbers(ratings: ArrayLike, level: str) -> _Floats:
    try:
        return np.asarray(ratings, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    try:
        texts: NDArray[Any] = np.asarray(ratings, dtype=object)
    except ValueError as error:
        raise UsageError(f"ratings must be a full (raters, units) table: {error}") from None
    missing = np.array(
        [cell is None or (isinstance(cell, float) and math.isnan(cell)) for cell in texts.ravel()], dtype=bool
    )
    if level != "nominal":
        raise UsageError(f"level {level!r} needs numbers, since texts have no order; got {texts.ravel()[~missing][:1]}")
    codes = {cell: float(i) for i, cell in enumerate(dict.fromkeys(texts.ravel()[~missing]))}
    flat = [math.nan if gone else codes[cell] for cell, gone in zip(texts.ravel(), missing, strict=True)]
    return np.array(flat, dtype=np.float64).reshape(texts.shape)


def _alpha(counts: _Floats, values: _Floats, level: str, weights: _Floats) -> _Floats:
    """alpha of b resamples: counts (u, v), weights (b, u) -> (b,); NaN where all answers of a resample are equal."""
    answers = counts.sum(axis=1, keepdims=True)
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs -= np.eye(len(values)) * counts[:, :, None]
    observed = np.tensordot(weights, pairs / (answers - 1)[:, :, None], axes=1)
    totals = weights @ counts
    distance = _distance(totals, values, level)
    n = totals.sum(axis=1)
    disagreement = (observed * distance).sum(axis=(1, 2)) * (n - 1)
    expected = (totals[:, :, None] * totals[:, None, :] * distance).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        result: _Floats = 1.0 - disagreement / expected
    result[expected <= 0] = np.nan
    return result


def _distance(totals: _Floats, values: _Floats, level: str) -> _Floats:
    """The squared difference of each two values, (b, v, v); the ordinal one depends on how often each was given."""
    if level == "ordinal":
        middle = np.cumsum(totals, axis=1) - totals / 2
        return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)
    if level == "interval":
        return np.broadcast_to((values[:, None] - values[None, :]) ** 2, (len(totals), len(values), len(values)))
    return np.broadcast_to(1.0 - np.eye(len(values)), (len(totals), len(values), len(values)))
