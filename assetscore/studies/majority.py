"""What most raters said of each asset, and how verdicts agree with it.

Unsure is dropped before the majority is taken; an asset with as many yes as no has no majority and is counted as a tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UsageError
from .votes import Votes

__all__ = ["Majority", "VerdictAgreement", "majority", "majority_labels", "verdict_agreement"]


@dataclass(frozen=True)
class Majority:
    """What most raters said of each asset.

    Attributes:
        labels: one number an asset: 1 accepted, 0 rejected, NaN neither.
        accepted, rejected: how many assets.
        ties: as many yes as no.
        undecided: answered, but only with unsure.
        unanswered: no answer at all.
    """

    labels: NDArray[np.float64]
    accepted: int
    rejected: int
    ties: int
    undecided: int
    unanswered: int


def majority(ratings: ArrayLike) -> Majority:
    """The majority vote on each asset, unsure dropped.

    Args:
        ratings: (raters, assets): 1 yes, 0 no, 0.5 unsure, NaN not answered.

    Raises:
        UsageError: another shape or another number.

    Example:
        >>> majority([[1, 1, 0.5], [1, 0, 0.5], [0, 0.5, 0.5]]).labels
        array([ 1., nan, nan])
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise UsageError(f"ratings must have two dimensions (raters, assets), got shape {table.shape}")
    if not (np.isnan(table) | np.isin(table, (0.0, 0.5, 1.0))).all():
        raise UsageError("ratings must be 1 (yes), 0 (no), 0.5 (unsure) or NaN (not answered)")
    yes, no = (table == 1.0).sum(axis=0), (table == 0.0).sum(axis=0)
    answered = (~np.isnan(table)).any(axis=0)
    labels = np.where(yes > no, 1.0, np.where(no > yes, 0.0, np.nan))
    return Majority(
        labels,
        accepted=int((yes > no).sum()),
        rejected=int((no > yes).sum()),
        ties=int(((yes == no) & (yes > 0)).sum()),
        undecided=int(((yes + no == 0) & answered).sum()),
        unanswered=int((~answered).sum()),
    )


@dataclass(frozen=True)
class VerdictAgreement:
    """Verdicts against the majority.

    Attributes:
        acceptance: the share of accepted assets that pass; NaN where none was accepted.
        rejection: the share of rejected assets that do not pass; NaN where none was rejected.
        balanced: the mean of the two; NaN where either is missing.
        accepted, rejected: how many assets each share rests on.
        reason: why a number is missing.
    """

    acceptance: float
    rejection: float
    balanced: float
    accepted: int
    rejected: int
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold: NaN becomes None."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def verdict_agreement(passed: ArrayLike, labels: ArrayLike) -> VerdictAgreement:
    """Acceptance, rejection and balanced accuracy.

    Args:
        passed: n verdicts, True or False.
        labels: n times 1 (accepted) or 0 (rejected).

    Example:
        >>> result = verdict_agreement([True, False, False, False], [1, 1, 0, 0])
        >>> result.acceptance, result.rejection, result.balanced
        (0.5, 1.0, 0.75)
    """
    verdicts, classes = np.asarray(passed, dtype=bool), np.asarray(labels, dtype=np.float64)
    if verdicts.ndim != 1 or verdicts.shape != classes.shape:
        raise UsageError(f"passed and labels must be two lists of one length, got {verdicts.shape}, {classes.shape}")
    if not np.isin(classes, (0.0, 1.0)).all():
        raise UsageError("labels must be 0 or 1: ties and undecided assets are left out before")
    accepted, rejected = int((classes == 1).sum()), int((classes == 0).sum())
    acceptance = float(verdicts[classes == 1].mean()) if accepted else math.nan
    rejection = float((~verdicts[classes == 0]).mean()) if rejected else math.nan
    missing = [name for name, count in (("accepted", accepted), ("rejected", rejected)) if not count]
    reason = f"no asset was {' or '.join(missing)} by the majority" if missing else ""
    return VerdictAgreement(acceptance, rejection, (acceptance + rejection) / 2, accepted, rejected, reason)


def majority_labels(votes: Votes, question: str, assets: Sequence[str]) -> NDArray[np.float64]:
    """The majority on each of the given assets: 1, 0, or NaN where there is none (also where nobody was asked)."""
    labels = dict(zip(votes.assets, majority(votes.matrix(question)).labels, strict=True)) if votes.votes else {}
    return np.array([labels.get(asset, math.nan) for asset in assets], dtype=np.float64)
