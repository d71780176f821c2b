"""Estimates with an interval, or with the reason why there is none; the resampling behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..errors import UsageError

__all__ = ["Estimate", "percentile_interval", "resample_counts"]

_BLOCK = 4_000_000
"""Cells of one block of resampled counts: 32 MB, whatever the number of resamples."""


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


def check_level(level: float) -> float:
    """A confidence level strictly between 0 and 1, or a UsageError."""
    if not 0.0 < level < 1.0:
        raise UsageError(f"level must lie strictly between 0 and 1, got {level!r}")
    return float(level)


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
        UsageError: no units, no resamples, or a wrong number of cluster labels.
    """
    if n < 1 or resamples < 1:
        raise UsageError(f"a bootstrap needs at least one unit and one resample, got n={n}, resamples={resamples}")
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


def percentile_interval(draws: ArrayLike, level: float = 0.95, n: int | None = None) -> tuple[float, float, int]:
    """The percentile interval of bootstrap draws.

    Args:
        draws: the statistic on each resample; NaN where it does not exist there.
        level: the interval's level.
        n: how many independent units were resampled. The percentiles are then moved outwards as a t interval is wider
            than a normal one and as n is larger than n - 1 (the expanded percentile interval; T. Hesterberg, The
            American Statistician 69, 2015): plain percentiles cover too rarely where n is small. None leaves them.

    Returns:
        (low, high, skipped): NaN ends when no draw is finite or n is 1; `skipped` counts the NaN draws.

    Example:
        >>> percentile_interval([0.0, 1.0, 2.0, 3.0, 4.0, float("nan")], level=0.5)
        (1.0, 3.0, 1)
    """
    values = np.asarray(draws, dtype=np.float64)
    finite = values[np.isfinite(values)]
    skipped = int(values.size - finite.size)
    tail = (1.0 - check_level(level)) / 2.0
    if finite.size == 0 or n == 1:
        return math.nan, math.nan, skipped
    if n is not None:
        tail = float(special.ndtr(math.sqrt(n / (n - 1)) * special.stdtrit(n - 1, tail)))
    low, high = np.quantile(finite, [tail, 1.0 - tail])
    return float(low), float(high), skipped
