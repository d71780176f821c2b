"""The keep-the-best rule: which of several builds to keep, and when to stop trying."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..errors import UsageError

__all__ = ["KeepBest", "Step", "keep_best"]

_SLACK = 1e-9
"""0.35 - 0.30 is 0.04999999999999999 for a computer and a gain of 0.05 for everyone else."""


@dataclass(frozen=True)
class Step:
    """What became of one checkpoint.

    Attributes:
        index: its place in the sequence.
        decision: "kept" (it is the best so far), "rejected", or "not reached" (the rule had stopped before).
        reason: why, in words.
    """

    index: int
    decision: Literal["kept", "rejected", "not reached"]
    reason: str


@dataclass(frozen=True)
class KeepBest:
    """The build to keep.

    Attributes:
        best: index of the build that is kept in the end.
        stopped_after: index of the last checkpoint that was looked at.
        steps: one for each checkpoint.
    """

    best: int
    stopped_after: int
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return asdict(self)


def keep_best(
    checkpoints: Sequence[Mapping[str, float]],
    aim: str,
    *,
    gain: float = 0.05,
    loss: float = 0.05,
    patience: int = 3,
    others: Sequence[str] | None = None,
) -> KeepBest:
    """Go through builds in order and keep the best one.

    A build replaces the kept one when it is at least `gain` better on the aim and at most `loss` worse on every other
    measure. After `patience` builds in a row that did not, the rest is not looked at.

    Args:
        checkpoints: for each build its measures by name, larger is better; the first one is kept to begin with.
        aim: the measure to improve.
        gain, loss: in the measures' own unit; 0.05 is five points of a rate.
        patience: builds without a new best before stopping.
        others: the measures that must not suffer; default all but the aim.

    Raises:
        UsageError: no checkpoint, a measure that one of them lacks, or a parameter out of range.

    Example:
        >>> builds = [{"style": 0.30, "both": 0.2}, {"style": 0.35, "both": 0.2}, {"style": 0.50, "both": 0.1}]
        >>> result = keep_best(builds, "style")
        >>> result.best, [step.decision for step in result.steps]
        (1, ['kept', 'kept', 'rejected'])
    """
    if not checkpoints:
        raise UsageError("keep_best needs at least one checkpoint")
    if not (gain >= 0 and loss >= 0):
        raise UsageError(f"gain and loss must not be negative, got {gain!r} and {loss!r}")
    if patience < 1:
        raise UsageError(f"patience must be at least 1, got {patience!r}")
    watched = [name for name in checkpoints[0] if name != aim] if others is None else list(others)
    for index, measures in enumerate(checkpoints):
        for name in (aim, *watched):
            if name not in measures:
                raise UsageError(f"checkpoint {index} has no measure {name!r}; it has {', '.join(measures)}")
    best, last, steps = 0, 0, [Step(0, "kept", "the first build")]
    for index, measures in enumerate(checkpoints[1:], 1):
        if last - best >= patience:
            steps.append(Step(index, "not reached", f"{patience} builds without a new best"))
            continue
        last = index
        reason = _objection(checkpoints[best], measures, aim, watched, gain, loss)
        if reason:
            steps.append(Step(index, "rejected", reason))
        else:
            gained = measures[aim] - checkpoints[best][aim]
            steps.append(Step(index, "kept", f"{aim} {gained:+.3f} over build {best}"))
            best = index
    return KeepBest(best, last, tuple(steps))


def _objection(
    kept: Mapping[str, float], new: Mapping[str, float], aim: str, others: Sequence[str], gain: float, loss: float
) -> str:
    """Why a build does not replace the kept one; empty where it does."""
    change = new[aim] - kept[aim]
    if math.isnan(change):
        return f"{aim} has no number"
    if change < gain - _SLACK:
        return f"{aim} {change:+.3f}, at least {gain:+.3f} is needed"
    for name in others:
        change = new[name] - kept[name]
        if math.isnan(change) and not math.isnan(kept[name]):
            return f"{name} has no number"
        if change < -loss - _SLACK:
            return f"{name} {change:+.3f}, at most {-loss:+.3f} is allowed"
    return ""
