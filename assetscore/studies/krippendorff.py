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
from .intervals import Estimate, bootstrap, check_level, check_settings

__all__ = ["krippendorff_alpha", "krippendorff_bootstrap", "raw_agreement"]

logger = logging.getLogger(__name__)
Level = Literal["nominal", "ordinal", "interval"]
_LOOKS_MISSING = ("", "nan", "<na>")
_Floats = NDArray[np.float64]
MAX_VALUES = 100
"""Different answers. More are a measurement, not a rating, and would take their square in memory for every unit."""


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float:
    """Krippendorff's alpha of raters over units.

    Args:
        ratings: (raters, units). Numbers, or, for the nominal level, texts. NaN, None, pandas.NA and the masked cells
            of a NumPy masked array are missing answers.
        level: ``"nominal"`` (answers are equal or not), ``"ordinal"`` (they have an order) or ``"interval"`` (their
            differences count).

    Returns:
        alpha, at most 1. NaN where it does not exist: one rater, no unit with two answers, or one answer throughout.
        The reason is logged here, and `krippendorff_bootstrap` carries it in its result.

    Raises:
        UsageError: not two-dimensional, an infinite or unordered answer, an unknown level, or a text that
            looks like a missing answer ("", "nan", "<NA>"): whether it is one is for the caller to say.

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
        The estimate; resamples in which every answer was the same are left out and counted in `skipped`. Perfect
        agreement has no interval: every resample agrees perfectly, which says nothing about other units.
    """
    check_level(confidence, "confidence")
    check_settings(confidence, resamples, seed)
    counts, values, reason = _counts(ratings, level)
    method, n = f"bootstrap over units, {level}", len(counts)
    if reason:
        return Estimate(math.nan, level=confidence, method=method, n=n, reason=reason)
    return bootstrap(
        float(_alpha(counts, values, level, np.ones((1, n)))[0]),
        lambda weights: _alpha(counts, values, level, weights),
        n,
        level=confidence,
        resamples=resamples,
        seed=seed,
        method=method,
        unit="unit with two answers",
    )


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
    """(raters, units) as floats, NaN where an answer is missing; texts become codes."""
    if isinstance(ratings, np.ma.MaskedArray):
        cells = ratings.data.astype(object)
        cells[np.ma.getmaskarray(ratings)] = None
        ratings = cells
    plain = isinstance(ratings, np.ndarray) and ratings.dtype.kind in "biuf"
    try:  # of lists, NumPy would make texts of every cell if one of them is a text
        table: NDArray[Any] = np.asarray(ratings, dtype=np.float64 if plain else object)
    except ValueError as error:
        raise UsageError(f"ratings must be a full (raters, units) table: {error}") from None
    if table.ndim != 2:
        raise UsageError(f"ratings must have two dimensions (raters, units), got shape {table.shape}")
    if plain:
        return table
    given = [(i, cell) for i, cell in enumerate(table.ravel()) if not _is_missing(cell)]
    texts = [cell for _, cell in given if isinstance(cell, str)]
    for text in texts:
        if text.strip().casefold() in _LOOKS_MISSING:
            raise UsageError(f"ratings hold the text {text!r}: pass None or NaN for a missing answer, or rename it")
    if texts and level != "nominal":
        raise UsageError(f"level {level!r} needs numbers, since texts have no order; got {texts[0]!r}")
    result = np.full(table.size, math.nan)
    codes: dict[Any, float] = {}
    for i, cell in given:
        try:
            if isinstance(cell, bytes):  # float() would read it
                raise TypeError
            result[i] = codes.setdefault(cell, float(len(codes))) if texts else float(cell)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"ratings must be numbers or texts, got {cell!r}") from None
    return result.reshape(table.shape)


def _is_missing(cell: Any) -> bool:
    """None, and what is not equal to itself: NaN of any kind. pandas.NA does not even say whether it is."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


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
