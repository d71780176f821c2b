"""Estimates with an interval, or with the reason why there is none; the resampling behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..errors import UsageError

__all__ = ["Estimate", "Interval", "bootstrap", "check_settings", "percentile_interval", "resample_counts"]

_BLOCK = 4_000_000
"""Cells of one block of resampled counts: 32 MB, whatever the number of resamples."""
MAX_RESAMPLES = 1_000_000
"""More would take minutes and change no digit that is printed."""


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Attributes:
        value: the estimate; NaN where there is none, and `reason` says why.
        low, high: the interval's ends; NaN where there is no interval, and `reason` says why.
        level: how often such intervals cover the truth (0.95).
        method: how the interval was made, in words.
        n: how many units the estimate rests on.
        skipped: resamples on which the statistic did not exist (a resample with one class only, say).
        reason: why a number is missing; empty when none is.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    method: str = ""
    n: int = 0
    skipped: int = 0
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold: NaN becomes None."""
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in asdict(self).items()}

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"- ({self.reason})"
        if math.isnan(self.low):
            return f"{self.value:.3f}" + (f" ({self.reason})" if self.reason else "")
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number in a range, NumPy's too. True, 2.5 and "3" are none: a UsageError that names the argument."""
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is None or number < least or (most is not None and number > most):
        allowed = f"at least {least}" if most is None else f"between {least} and {most}"
        raise UsageError(f"{name} must be a whole number {allowed}, got {value!r}")
    return number


def check_level(level: float, name: str = "level") -> float:
    """A confidence level strictly between 0 and 1, or a UsageError."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0.0 < level < 1.0:
        raise UsageError(f"{name} must lie strictly between 0 and 1, got {level!r}")
    return float(level)


def check_settings(level: float, resamples: int, seed: int) -> None:
    """Raise a UsageError that names the setting of a bootstrap interval that cannot be used."""
    check_level(level)
    whole_number("resamples", resamples, 1, MAX_RESAMPLES)
    whole_number("seed", seed, 0)


def resample_counts(
    n: int, resamples: int, seed: int, clusters: Sequence[object] | NDArray[Any] | None = None
) -> Iterator[NDArray[np.float64]]:
    """How often each of n units is drawn, for each bootstrap resample, block by block.

    Args:
        n: number of units.
        resamples: number of resamples, over all blocks.
        seed: the same seed gives the same resamples, whatever the block size.
        clusters: n labels. Units of one cluster (frames of one sheet, textures of one submission) are drawn together.

    Yields:
        (b, n) arrays of counts as floats, b resamples each; no block holds more than a few million cells.

    Raises:
        UsageError: no units, a wrong number of cluster labels, or resamples or a seed that cannot be used.
    """
    whole_number("n", n, 1)
    whole_number("resamples", resamples, 1, MAX_RESAMPLES)
    whole_number("seed", seed, 0)
    codes: NDArray[np.intp] | None = None
    drawn = n
    if clusters is not None:
        if len(clusters) != n:
            raise UsageError(f"clusters must name one cluster for each of the {n} units, got {len(clusters)}")
        numbers = {label: code for code, label in enumerate(dict.fromkeys(clusters))}
        codes = np.array([numbers[label] for label in clusters], dtype=np.intp)
        drawn = len(numbers)
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // max(n, drawn))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        picks = rng.integers(0, drawn, size=(rows, drawn))
        picks += np.arange(rows)[:, None] * drawn
        counts = np.bincount(picks.ravel(), minlength=rows * drawn).reshape(rows, drawn).astype(np.float64)
        yield counts if codes is None else counts[:, codes]


class Interval(NamedTuple):
    """The ends of an interval; NaN where there is none, and `reason` says why. `skipped` counts the NaN draws."""

    low: float
    high: float
    skipped: int
    reason: str


def percentile_interval(draws: ArrayLike, level: float = 0.95, n: int | None = None, unit: str = "unit") -> Interval:
    """The percentile interval of bootstrap draws, or the reason why they give none.

    There is none where only one unit was drawn from, where fewer than 2 / (1 - level) draws exist (its ends would lie
    beyond the draws), and where the draws do not differ: resampling what was seen cannot tell how far the unseen
    would stray, and an interval without width would pass for certainty.

    Args:
        draws: the statistic on each resample; NaN where it does not exist there.
        level: the interval's level.
        n: how many independent units were resampled. The percentiles are then moved outwards as a t interval is wider
            than a normal one and as n is larger than n - 1 (the expanded percentile interval; T. Hesterberg, The
            American Statistician 69, 2015): plain percentiles cover too rarely where n is small. None leaves them.
        unit: what was resampled, for the reason.

    Example:
        >>> percentile_interval([0.0, 1.0, 2.0, 3.0, 4.0, float("nan")], level=0.5)
        Interval(low=1.0, high=3.0, skipped=1, reason='')
        >>> percentile_interval([0.5] * 100).reason
        'no interval: the resamples do not differ, which says nothing about other units'
    """
    values = np.asarray(draws, dtype=np.float64)
    finite = values[np.isfinite(values)]
    skipped = int(values.size - finite.size)
    tail = (1.0 - check_level(level)) / 2.0
    needed = math.ceil(1.0 / tail - 1e-9)
    low = high = math.nan
    if n == 1:
        reason = f"there is only one {unit} to draw from"
    elif finite.size == 0:
        reason = f"the number exists on none of the {values.size} resamples"
    elif finite.size < needed:
        reason = f"{finite.size} resamples with a number are too few, a level of {level:g} needs {needed}"
    else:
        if n is not None:
            tail = float(special.ndtr(math.sqrt(n / (n - 1)) * special.stdtrit(n - 1, tail)))
        low, high = (float(end) for end in np.quantile(finite, [tail, 1.0 - tail]))
        if high - low > 1e-12 * max(1.0, abs(low), abs(high)):  # sums of equal numbers differ by rounding
            return Interval(low, high, skipped, "")
        reason = f"the resamples do not differ, which says nothing about other {unit}s"
    return Interval(math.nan, math.nan, skipped, f"no interval: {reason}")


def bootstrap(
    value: float,
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    n: int,
    *,
    level: float,
    resamples: int,
    seed: int,
    method: str,
    unit: str,
    clusters: Sequence[object] | None = None,
) -> Estimate:
    """A number with its percentile bootstrap interval, or with the reason why it has none.

    Args:
        value: the number itself, on all n units.
        statistic: counts (b, n) of b resamples to the number on each, (b,); NaN where it does not exist.
        n: number of units.
        level, resamples, seed, clusters: as for `resample_counts` and `percentile_interval`.
        method, unit: words for the result and for the reason.
    """
    check_settings(level, resamples, seed)
    draws = [statistic(counts) for counts in resample_counts(n, resamples, seed, clusters)]
    drawn, unit = (n, unit) if clusters is None else (len(set(clusters)), "cluster")
    found = percentile_interval(np.concatenate(draws), level, drawn, unit)
    return Estimate(value, found.low, found.high, level, method, n, found.skipped, found.reason)
