"""A result row judged again for another alpha, k or rule, from the similarities it keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .results import FAILING, Status, combine, explain, judge, mean_similarity, too_few

if TYPE_CHECKING:
    from .config import Config
    from .profile import Profile
    from .table import Row

__all__ = ["rejudged"]


def rejudged(row: Row, profile: Profile, config: Config) -> Row:
    """The row as scoring with `config` would have made it, but for `nearest`, which keeps its length."""
    changes: dict[str, Any] = {}
    words: list[str] = []
    calibrated, n = True, 0
    for check, factor, top in (("style", profile.style_factor, row.top_style), ("sem", row.sem_factor, row.top_sem)):
        if factor is None or not top:
            continue
        calibration = profile.calibration(row.category, factor)
        k = min(calibration.k_eff(config.k), len(top))
        similarity = mean_similarity(top, k, profile.metric)
        tau = calibration.threshold(config.alpha, config.k, config.rule)
        p_value = float(calibration.p_values(similarity, config.k))
        margin = None if tau is None else similarity - tau
        calibrated, n = calibrated and tau is not None, calibration.n
        if margin is not None:
            words.append(explain(factor, margin, p_value, n))
        values = {"s": similarity, "tau": tau, "margin": margin, "p": p_value}
        changes |= {f"{check}_{name}": value for name, value in values.items()}
    status: Status = row.status if row.status in FAILING else ("scored" if calibrated else "uncalibrated")
    if status not in FAILING:
        changes["reason"] = "; ".join(words) if calibrated else too_few(n, row.category, config.alpha)
    style = judge(status, changes["style_s"], changes["style_tau"])
    semantic = judge(status, changes.get("sem_s"), changes.get("sem_tau")) if row.sem_factor is not None else None
    changes |= {"status": status, "style_pass": style, "sem_pass": semantic}
    changes["both_pass"] = combine(style, semantic, row.sem_factor is None)
    margins = [changes.get("style_margin"), changes.get("sem_margin")]
    noise = profile.batch_noise
    changes["borderline"] = noise > 0 and any(margin is not None and abs(margin) <= noise for margin in margins)
    return replace(row, **changes)
