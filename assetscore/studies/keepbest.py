"""The keep-the-best rule: which of several builds to keep, and when to stop trying."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal

from ..errors import UsageError
from .intervals import whole_number

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
        reason: why the kept build was compared with none: no build has a number for the aim. Empty otherwise.
    """

    best: int
    stopped_after: int
    steps: tuple[Step, ...]
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return asdict(self)


def keep_best(
    checkpoints: Sequence[Mapping[str, float | None]],
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

    NaN or None is a measure without a number. A build without one on the aim is never a new best; the first build with
    one replaces a kept build without, whatever else it lost, and patience counts from there. On the other measures, a
    number may not be lost; where the kept build has none, there is nothing to lose, and the step says so.

    Args:
        checkpoints: for each build its measures by name, larger is better; the first one is kept to begin with.
        aim: the measure to improve.
        gain, loss: in the measures' own unit; 0.05 is five points of a rate.
        patience: builds without a new best before stopping.
        others: the measures that must not suffer; default all but the aim.

    Raises:
        UsageError: no checkpoint, a measure that one of them lacks or that is infinite, or a parameter out of range.

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
    whole_number("patience", patience, 1)
    watched = [name for name in checkpoints[0] if name != aim] if others is None else list(others)
    builds = [_numbers(index, measures, (aim, *watched)) for index, measures in enumerate(checkpoints)]
    first = "the first build" + (f", without a number for {aim}" if math.isnan(builds[0][aim]) else "")
    best, last, tries, steps = 0, 0, 0, [Step(0, "kept", first)]
    for index, new in enumerate(builds[1:], 1):
        if tries >= patience:
            steps.append(Step(index, "not reached", f"{patience} builds without a new best"))
            continue
        last, kept = index, builds[best]
        objection = _objection(kept, new, aim, watched, gain, loss)
        if objection:
            tries += not math.isnan(kept[aim])  # before the first number there is no best to be better than
            steps.append(Step(index, "rejected", objection))
            continue
        if math.isnan(kept[aim]):
            reason = f"the first build with a number for {aim}"
        else:
            unknown = [name for name in watched if math.isnan(kept[name])]
            reason = f"{aim} {new[aim] - kept[aim]:+.3f} over build {best}"
            reason += f"; {', '.join(unknown)} not compared, build {best} has no number there" if unknown else ""
        steps.append(Step(index, "kept", reason))
        best, tries = index, 0
    reason = f"no build has a number for {aim}, so the first is kept" if math.isnan(builds[best][aim]) else ""
    return KeepBest(best, last, tuple(steps), reason)


def _numbers(index: int, measures: Mapping[str, float | None], names: Sequence[str]) -> dict[str, float]:
    """The named measures of one build, NaN for None."""
    numbers = {}
    for name in names:
        if name not in measures:
            raise UsageError(f"checkpoint {index} has no measure {name!r}; it has {', '.join(measures)}")
        value = measures[name]
        if not (value is None or (isinstance(value, Real) and not math.isinf(value))):
            raise UsageError(f"{name} of checkpoint {index} must be a finite number, NaN or None, got {value!r}")
        numbers[name] = math.nan if value is None else float(value)
    return numbers


def _objection(
    kept: Mapping[str, float], new: Mapping[str, float], aim: str, others: Sequence[str], gain: float, loss: float
) -> str:
    """Why a build does not replace the kept one; empty where it does."""
    if math.isnan(new[aim]):
        return f"{aim} has no number here"
    if math.isnan(kept[aim]):
        return ""
    change = new[aim] - kept[aim]
    if change < gain - _SLACK:
        return f"{aim} {change:+.3f}, at least {gain:+.3f} is needed"
    for name in others:
        change = new[name] - kept[name]
        if math.isnan(new[name]) and not math.isnan(kept[name]):
            return f"{name} has no number here, and had {kept[name]:.3f}"
        if change < -loss - _SLACK:
            return f"{name} {change:+.3f}, at most {-loss:+.3f} is allowed"
    return ""
