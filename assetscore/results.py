"""What a score is: frozen, complete enough to be checked, and judged again for another alpha without embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, isfinite
from typing import Any, Literal, TypeAlias, get_args

__all__ = ["FAILING", "UNDECIDED", "FactorScore", "Neighbour", "Score", "Status"]

Status: TypeAlias = Literal[
    "scored", "not_custom", "missing", "unreadable", "failed", "empty", "uncalibrated", "no_references"
]
FAILING: tuple[Status, ...] = ("not_custom", "missing", "unreadable", "failed")
"""Statuses that fail every check."""
NOT_OWN: tuple[Status, ...] = ("not_custom", "missing", "unreadable")
"""Statuses without own readable artwork: what is not counted as custom."""
UNDECIDED: tuple[Status, ...] = ("empty", "uncalibrated", "no_references")
"""Statuses without a verdict: they stay out of the rates."""


@dataclass(frozen=True)
class Neighbour:
    """One of the nearest references: its id in the profile, and the similarity to it."""

    reference: str
    similarity: float


@dataclass(frozen=True)
class FactorScore:
    """One check: the similarity under one factor against its threshold.

    Attributes:
        factor: the text the encoder was given.
        similarity: S, the mean similarity to the k nearest references, averaged over frames; None where nothing
            was embedded.
        threshold: tau; None where uncalibrated.
        p_value: share of the references that score no better, (1 + #{S_i <= S}) / (n + 1); None without a similarity.
        passed: S >= tau; False where the status fails every check; None where there is no verdict.
        k, alpha, n, rule: how the threshold was set; n is the number of references, or of their groups.
        neighbours: the nearest references, nearest first.
        top: the (up to 20) largest similarities, descending, averaged over frames by position.
    """

    factor: str
    similarity: float | None
    threshold: float | None
    p_value: float | None
    passed: bool | None
    k: int
    alpha: float
    n: int
    rule: str
    neighbours: tuple[Neighbour, ...] = field(default=(), repr=False)
    top: tuple[float, ...] = field(default=(), repr=False)

    @property
    def margin(self) -> float | None:
        """S - tau; None where either is."""
        if self.similarity is None or self.threshold is None:
            return None
        return self.similarity - self.threshold

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, `margin` included."""
        return {
            "factor": self.factor,
            "similarity": self.similarity,
            "threshold": self.threshold,
            "margin": self.margin,
            "p_value": self.p_value,
            "passed": self.passed,
            "k": self.k,
            "alpha": self.alpha,
            "n": self.n,
            "rule": self.rule,
            "neighbours": [{"reference": n.reference, "similarity": n.similarity} for n in self.neighbours],
            "top": list(self.top),
        }


@dataclass(frozen=True, repr=False)
class Score:
    """The verdict on one asset.

    Attributes:
        asset_id, category, path, group, game, task, use: what was scored, as far as it was told.
        status: one of `Status`; `reason` says it in words.
        style: the check under "art style".
        semantic: the check under "object class" or the request; None for an encoder that ignores factors.
        grid: the factor by which the art was enlarged; frames: how many distinct frames were averaged.
        borderline: a margin within the encoder's own batch noise.
        encoder, profile, profile_fingerprint: the encoder's fingerprint, the profile's name and fingerprint.
        flags: remarks on the file, in words.
    """

    asset_id: str
    category: str
    status: Status
    reason: str
    style: FactorScore
    semantic: FactorScore | None
    path: str = ""
    group: str = ""
    game: str = ""
    grid: int = 1
    frames: int = 1
    borderline: bool = False
    encoder: str = ""
    profile: str = ""
    profile_fingerprint: str = ""
    flags: tuple[str, ...] = ()
    task: str = ""
    use: str = ""

    def __repr__(self) -> str:
        checks = [check for check in (self.style, self.semantic) if check is not None and check.similarity is not None]
        said = "".join(
            f"; {check.factor[:40]} {check.similarity:.3f}"
            + (f" (tau {check.threshold:.3f})" if check.threshold is not None else "")
            for check in checks
        )
        return (
            f"<Score {self.asset_id[-60:]!r} as {self.category[:40]}: {self.status}, passed={self.passed}{said}; "
            f"{self.profile[:60]} {self.profile_fingerprint[:12]}>"
        )

    @property
    def passed(self) -> bool | None:
        """False if any check is False, else None if any is None, else True."""
        return combine(
            self.style.passed, None if self.semantic is None else self.semantic.passed, self.semantic is None
        )

    @property
    def custom(self) -> bool:
        """Own readable artwork: not a reference's, and a file that could be read."""
        return self.status not in NOT_OWN

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, nested."""
        return {
            "asset_id": self.asset_id,
            "category": self.category,
            "status": self.status,
            "reason": self.reason,
            "passed": self.passed,
            "style": self.style.to_dict(),
            "semantic": None if self.semantic is None else self.semantic.to_dict(),
            "path": self.path,
            "group": self.group,
            "game": self.game,
            "grid": self.grid,
            "frames": self.frames,
            "borderline": self.borderline,
            "encoder": self.encoder,
            "profile": self.profile,
            "profile_fingerprint": self.profile_fingerprint,
            "flags": list(self.flags),
            "task": self.task,
            "use": self.use,
        }


def combine(style: bool | None, semantic: bool | None, no_semantic: bool = False) -> bool | None:
    """The verdict of both checks: False beats None, None beats True; the style check alone where there is no other.

    >>> combine(True, False), combine(True, None), combine(True, None, no_semantic=True)
    (False, None, True)
    """
    checks = (style,) if no_semantic else (style, semantic)
    if any(check is False for check in checks):
        return False
    return None if any(check is None for check in checks) else True


def judge(status: Status, similarity: float | None, threshold: float | None) -> bool | None:
    """One check's verdict from the asset's status, S and tau."""
    if status not in get_args(Status):
        raise ValueError(f"unknown status {status!r}")
    if status in FAILING:
        return False
    if status in UNDECIDED or similarity is None or threshold is None or not isfinite(similarity):
        return None
    return similarity >= threshold


def explain(factor: str, margin: float, p_value: float, n: int) -> str:
    """One check in words.

    >>> explain("art style", -0.02, 0.1, 99)
    'does not fit in art style: 9% of the references are as far from the others'
    """
    share = max(0.0, p_value - 1 / (n + 1))
    verdict = "fits" if margin >= 0 else "does not fit"
    return f"{verdict} in {factor}: {share:.0%} of the references are as far from the others"


def too_few(n: int, category: str, alpha: float) -> str:
    """Why an asset is uncalibrated, in words."""
    return f"{n} references of {category!r} are too few for alpha = {alpha}"


def mean_similarity(top: Sequence[float], k: int, metric: str) -> float:
    """S: the mean of the k largest similarities; cosines are kept within [-1, 1] against rounding."""
    similarity = fsum(top[:k]) / k
    return min(1.0, max(-1.0, similarity)) if metric == "cosine" and isfinite(similarity) else similarity
