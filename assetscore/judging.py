"""Verdicts on assets that have been read: embedded together, each compared with its neighbours and judged."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from .config import Config
from .embedding import embed_assets
from .images import Texture
from .profile import Profile
from .results import FactorScore, Neighbour, Score, Status, explain, judge, mean_similarity, too_few

__all__ = ["Pending", "judge_together"]

log = logging.getLogger(__name__)


@dataclass
class Pending:
    """An asset on its way: its result so far, and the frames still to be embedded.

    Attributes:
        category: what it is compared under.
        score: the result so far; final once `frames` is empty or it has been judged.
        frames: the distinct frames with something to see; none for an asset that is settled.
        request: the semantic factor; None where there is no semantic check.
        judged: its checks, "style" and "semantic", once they are made.
    """

    category: str
    score: Score
    frames: tuple[Texture, ...] = ()
    request: str | None = None
    judged: dict[str, FactorScore] = field(default_factory=dict)


def judge_together(profile: Profile, config: Config, waiting: Sequence[Pending]) -> None:
    """Embed assets in one pass and give each its verdict; what fails costs the assets it concerns, never the others.

    Args:
        profile: what they are compared with.
        config: k, alpha and rule to judge by.
        waiting: assets with frames, each of a category that the profile has; their `score` is final afterwards.
    """
    style, requests = profile.style_factor, [pending.request for pending in waiting]
    vectors, problems = embed_assets(profile.encoder, [p.frames for p in waiting], style, requests)
    for category in dict.fromkeys(pending.category for pending in waiting):
        same = [i for i, p in enumerate(waiting) if p.category == category and i not in problems]
        if same:
            parts = [vectors[style][i] for i in same]
            _judge(profile, config, "style", category, style, [waiting[i] for i in same], parts)
        for factor in dict.fromkeys(waiting[i].request for i in same):
            if factor is None:
                continue
            asked = [i for i in same if waiting[i].request == factor]
            parts = [vectors[factor][i] for i in asked]
            try:
                _judge(profile, config, "semantic", category, factor, [waiting[i] for i in asked], parts)
            except Exception as error:  # the references under this request: it costs those who asked, not the batch
                log.warning("%r cannot be judged among %s: %s", factor, category, error)
                reason = f"the references cannot be compared under {factor!r}: {type(error).__name__}: {error}"
                problems |= dict.fromkeys(asked, reason)
    for i, pending in enumerate(waiting):
        _conclude(profile, config, pending, problems.get(i))


def _judge(
    profile: Profile,
    config: Config,
    check: str,
    category: str,
    factor: str,
    pendings: Sequence[Pending],
    vectors: Sequence[NDArray[np.float32]],
) -> None:
    """Neighbours, S and p of assets of one category under one factor, from the vectors of their frames."""
    calibration = profile.calibration(category, factor)
    k = calibration.k_eff(config.k)
    if k == 0 or not pendings:
        return
    tau = calibration.threshold(config.alpha, config.k, config.rule)
    frames = [frame for pending in pendings for frame in pending.frames]
    found = profile.nearest(category, factor, np.concatenate(vectors), frames, calibration.top.shape[1])
    ids = [reference.id for reference in profile.by_category[category]]
    parts = np.split(np.arange(len(frames)), np.cumsum([len(part) for part in vectors])[:-1])
    tops = np.stack([found.similarities[rows].mean(axis=0) for rows in parts])
    similarities = [mean_similarity(top, k, profile.metric) for top in tops.tolist()]
    p_values = calibration.p_values(similarities, config.k)
    for pending, rows, top, similarity, p in zip(pendings, parts, tops, similarities, p_values, strict=True):
        if not isfinite(similarity):
            continue
        pending.judged[check] = FactorScore(
            factor=factor,
            similarity=similarity,
            threshold=tau,
            p_value=float(p),
            passed=judge("scored", similarity, tau),
            k=k,
            alpha=config.alpha,
            n=calibration.n,
            rule=config.rule,
            neighbours=_nearest(found.ids[rows], found.similarities[rows], ids, k),
            top=tuple(top.tolist()),
        )


def _conclude(profile: Profile, config: Config, pending: Pending, problem: str | None) -> None:
    """The status, the reason in words and the checks of an asset that was embedded, or that met a problem."""
    score = pending.score
    checks = [pending.judged.get("style", score.style)]
    if score.semantic is not None:
        checks.append(pending.judged.get("semantic", score.semantic))
    status: Status = "scored"
    reason = ""
    if problem is not None or any(check.similarity is None for check in checks):
        status = "failed"
        reason = problem or f"{profile.encoder_name} gave nothing finite"
        if problem is None and profile.calibration(pending.category, profile.style_factor).k_eff(1) == 0:
            status, reason = "uncalibrated", f"category {score.category!r} has one reference, or one group of them"
    elif any(check.threshold is None for check in checks):
        status = "uncalibrated"
        reason = too_few(checks[0].n, score.category, config.alpha)
    if status != "scored":
        checks = [replace(check, passed=judge(status, check.similarity, check.threshold)) for check in checks]
    noise = profile.batch_noise
    pending.score = replace(
        score,
        status=status,
        reason=reason
        or "; ".join(
            explain(v.factor, v.margin, v.p_value, v.n)
            for v in checks
            if v.margin is not None and v.p_value is not None
        ),
        style=checks[0],
        semantic=checks[1] if len(checks) > 1 else None,
        borderline=noise > 0 and any(v.margin is not None and abs(v.margin) <= noise for v in checks),
    )


def _nearest(
    ids: NDArray[np.int64], similarities: NDArray[np.float64], names: Sequence[str], k: int
) -> tuple[Neighbour, ...]:
    """The k nearest references over all frames, each once, at its best similarity."""
    if len(ids) == 1:
        return tuple(
            Neighbour(names[i], s) for i, s in zip(ids[0, :k].tolist(), similarities[0, :k].tolist(), strict=True)
        )
    best: dict[int, float] = {}
    for i, similarity in zip(ids.ravel().tolist(), similarities.ravel().tolist(), strict=True):
        if i >= 0:
            best[i] = max(similarity, best.get(i, -np.inf))
    ordered = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    return tuple(Neighbour(names[i], similarity) for i, similarity in ordered)
