"""Calibration: the references' leave-one-out similarities under one factor, from which every alpha and k follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import calibration
from .calibration import Rule
from .config import TOP
from .errors import EmptyCategoryError
from .neighbours import Neighbours, exclude_groups, knn_mean

__all__ = ["Calibration", "calibrate"]


@dataclass(frozen=True, eq=False)
class Calibration:
    """One category under one factor.

    Attributes:
        category, factor: what it is for.
        top: (n, K) float64, each reference's K largest similarities to references outside its group, descending;
            K = min(20, the fewest references outside any one group); K = 0 where one group is everything.
        groups: (n,) int, the group of each reference.
    """

    category: str
    factor: str
    top: NDArray[np.float64] = field(repr=False)
    groups: NDArray[np.int64] = field(repr=False)
    _known: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)
    """Thresholds and sorted scores already asked for."""

    @cached_property
    def n(self) -> int:
        """How many groups there are: what counts as one reference for the guarantee."""
        return len(np.unique(self.groups))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """(n,) 1 / size of each reference's group."""
        return calibration.group_weights(self.groups)

    def k_eff(self, k: int) -> int:
        """How many neighbours are used where k are asked for, in calibration and in scoring alike."""
        return min(k, int(self.top.shape[1]))

    def scores(self, k: int) -> NDArray[np.float64]:
        """(n,) leave-one-out scores; none where no reference has a neighbour outside its group."""
        k = self.k_eff(k)
        return self.top[:, :k].mean(axis=1) if k else np.empty(0)

    def threshold(self, alpha: float, k: int, rule: Rule = "conformal") -> float | None:
        """tau, or None where there are too few references for this alpha."""
        key = (alpha, self.k_eff(k), rule)
        if key not in self._known:
            scores = self.scores(k)
            self._known[key] = calibration.threshold(scores, alpha, rule, groups=self.groups) if scores.size else None
        tau: float | None = self._known[key]
        return tau

    def p_values(self, similarities: ArrayLike, k: int) -> NDArray[np.float64]:
        """The share of references that score no better, as valid p-values; any shape."""
        key = self.k_eff(k)
        if key not in self._known:
            scores = self.scores(k)
            self._known[key] = calibration.PValues(scores, self.groups if scores.size else None)
        p: NDArray[np.float64] = self._known[key](similarities)
        return p

    def interval(self, alpha: float, k: int, confidence: float = 0.95) -> tuple[float, float]:
        """An order-statistic interval for the quantile that tau estimates."""
        scores = self.scores(k)
        groups = self.groups if scores.size else None
        return calibration.threshold_interval(scores, alpha, confidence, groups=groups)


def calibrate(
    category: str,
    factor: str,
    queries: NDArray[np.float32],
    rows: NDArray[np.float32],
    groups: NDArray[np.int64],
    *,
    most: int = TOP,
    rerank: Callable[[Neighbours], Neighbours] | None = None,
) -> Calibration:
    """Leave one group out: one exact search for the largest k serves every smaller one.

    Args:
        category, factor: for the result.
        queries, rows: (n, d) the references' vectors, as queries and as references (the same for cosine).
        groups: (n,) group of each.
        most: similarities to keep.
        rerank: puts what was found in another order, with other similarities.
    """
    k = calibration.leave_one_out_k(most, groups)
    if k == 0:
        return Calibration(category, factor, np.empty((len(rows), 0)), groups)
    try:
        found = knn_mean(queries, rows, k, exclude_groups(groups))
    except EmptyCategoryError as error:
        raise EmptyCategoryError(f"category {category!r}: {error}") from error
    if rerank is not None:
        found = rerank(found)
    return Calibration(category, factor, found.similarities, groups)
