"""What the report says, as plain values: numbers as text, verdicts in words, pictures by their place in an album."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..calibration import rank
from ..config import Config
from ..factors import OBJECT
from ..images import Texture
from ..submissions.pictures import Pictures
from ..summary import Rate, SummaryRow
from ..table import ResultTable, Row
from .pictures import Album

if TYPE_CHECKING:
    from ..calibrated import Calibration
    from ..profile import Profile
    from ..studies.ablation import Ablation

__all__ = ["ablation_lines", "assets", "headline", "method", "summary_lines"]

STATUS_WORDS = {
    "scored": "compared with the references",
    "not_custom": "a copy of the game's own art",
    "missing": "file missing",
    "unreadable": "file unreadable",
    "failed": "the encoder gave nothing",
    "empty": "empty placeholder",
    "uncalibrated": "too few references",
    "no_references": "no references of its category",
}
BINS = 48
"""Columns of the strip that shows where the references' own scores lie."""


def headline(table: ResultTable) -> dict[str, Any]:
    """How many belong, and how many of each status."""
    verdicts = [row.both_pass for row in table]
    statuses: dict[str, int] = {}
    for row in table:
        statuses[row.status] = statuses.get(row.status, 0) + 1
    return {
        "n": len(verdicts),
        "passed": sum(verdict is True for verdict in verdicts),
        "failed": sum(verdict is False for verdict in verdicts),
        "undecided": sum(verdict is None for verdict in verdicts),
        "semantic": any(row.sem_factor is not None for row in table),
        "profile": next((row.profile for row in table if row.profile), ""),
        "encoder": next((row.encoder for row in table if row.encoder), ""),
        "statuses": [
            {"name": name, "words": words, "count": statuses[name]}
            for name, words in STATUS_WORDS.items()
            if statuses.get(name)
        ],
    }


def summary_lines(rows: Sequence[SummaryRow]) -> list[dict[str, Any]]:
    """The paper's Table 6 as text, with what is needed to draw each rate and its Wilson interval."""
    return [
        {
            "group": row.group,
            "references": row.custom is None,
            "n": row.n,
            "undecided": row.undecided,
            "custom": None if row.custom is None else _rate(row.custom),
            "style_margin": _signed(row.style_margin),
            "style": _rate(row.pass_style),
            "sem_margin": _signed(row.sem_margin),
            "sem": None if row.pass_sem is None else _rate(row.pass_sem),
            "both": _rate(row.pass_both),
        }
        for row in rows
    ]


def ablation_lines(found: Ablation) -> dict[str, Any]:
    """The paper's Table 13 as text: the rates of two groups, and their mean difference over tasks with its interval."""
    words = {"pass_style": "Pass style", "pass_sem": "Pass semantic", "pass_both": "Pass both"}
    checks = [name for name in words if name in found.rates]
    lines = [
        {"group": group, "n": found.n[i], "rates": [_rate(found.rates[name][i]) for name in checks]}
        for i, group in enumerate((found.first, found.second))
    ]
    changes = []
    for name in checks:
        each = found.differences.get(name)
        estimate = None if each is None else each.result.difference
        interval = "" if estimate is None else estimate.reason
        if estimate is not None and isfinite(estimate.low):
            interval = f"{_signed(estimate.low)} to {_signed(estimate.high)}"
        changes.append({"text": _signed(None if estimate is None else estimate.value), "interval": interval})
    tasks = max((len(each.tasks) for each in found.differences.values() if each is not None), default=0)
    return {"columns": [words[name] for name in checks], "lines": lines, "changes": changes, "tasks": tasks}


def method(table: ResultTable, profile: Profile, config: Config) -> dict[str, Any]:
    """How it was judged: everything a number here needs to be checked."""
    factors = [profile.style_factor] + ([profile.semantic_factor] if profile.semantic_factor else [])
    used = [category for category in profile.categories if any(row.category == category for row in table)]
    lines = []
    for category in used:
        for factor in factors:
            calibration = profile.calibration(category, factor)
            tau = calibration.threshold(config.alpha, config.k, config.rule)
            low, high = calibration.interval(config.alpha, config.k)
            lines.append(
                {
                    "category": category,
                    "factor": factor,
                    "references": profile.categories[category],
                    "n": calibration.n,
                    "k": calibration.k_eff(config.k),
                    "rank": rank(calibration.n, config.alpha) if config.rule == "conformal" else None,
                    "tau": "none: too few references" if tau is None else f"{tau:.4f}",
                    "low": f"{low:.4f}" if isfinite(low) else "−∞",
                    "high": f"{high:.4f}" if isfinite(high) else "∞",
                }
            )
    return {
        "profile": profile.name,
        "fingerprint": profile.fingerprint[:16],
        "references": len(profile.references),
        "encoder": profile.encoder_fingerprint,
        "k": config.k,
        "alpha": config.alpha,
        "percent": f"{100 * config.alpha:g}",
        "both_percent": f"{min(100.0, 200 * config.alpha):g}",
        "rule": config.rule,
        "families": config.families,
        "factors": factors,
        "requests": len({row.sem_factor for row in table if row.sem_factor not in (None, *factors)}),
        "lines": lines,
    }


def assets(
    table: ResultTable, profile: Profile | None, config: Config | None, images: Mapping[str, Texture]
) -> dict[str, Any]:
    """The rows, the references they name, the pictures of both, and the strips: what the page's script draws from."""
    album = Album()
    references: dict[str, int] = {}
    shown: list[dict[str, Any]] = []
    rows = []
    with Pictures() as pictures:
        for row in table:
            for reference in row.nearest:
                if reference not in references:
                    references[reference] = len(shown)
                    picture = None if profile is None else album.add(profile.texture(reference))
                    shown.append({"id": reference, "picture": picture})
            picture = album.add(_picture(row, images, pictures))
            rows.append(_row(row, picture, [references[name] for name in row.nearest], _request(row, profile)))
    strips = [] if profile is None or config is None else _strips(table, profile, config)
    return {"rows": rows, "references": shown, "pictures": album.pictures, "strips": strips}


def _request(row: Row, profile: Profile | None) -> str | None:
    """What was asked for, where it was more than an object of some class."""
    plain = (None, OBJECT, None if profile is None else profile.semantic_factor)
    return None if row.sem_factor in plain else row.sem_factor


def _row(row: Row, picture: int | None, nearest: Sequence[int], request: str | None) -> dict[str, Any]:
    similarities = row.top_style[: len(nearest)] if row.frames == 1 else ()
    return {
        "id": row.asset_id,
        "category": row.category,
        "group": row.group,
        "request": request,
        "status": row.status,
        "words": STATUS_WORDS.get(row.status, row.status),
        "reason": "; ".join(filter(None, (row.reason, *row.flags))),
        "pass": row.both_pass,
        "borderline": row.borderline,
        "grid": row.grid,
        "frames": row.frames,
        "picture": picture,
        "nearest": nearest,
        "similar": [_finite(value) for value in similarities],
        "style": [*map(_finite, (row.style_s, row.style_tau, row.style_margin, row.style_p)), row.style_pass],
        "sem": None
        if row.sem_factor is None
        else [*map(_finite, (row.sem_s, row.sem_tau, row.sem_margin, row.sem_p)), row.sem_pass],
    }


def _picture(row: Row, images: Mapping[str, Texture], pictures: Pictures) -> Texture | None:
    """The asset's picture, or None: a report is also written where the files have gone."""
    if row.asset_id in images:
        return images[row.asset_id]
    if not row.path or row.status in ("missing", "unreadable"):
        return None
    return pictures.load(row.path)


def _strips(table: ResultTable, profile: Profile, config: Config) -> list[dict[str, Any]]:
    """For each category and check: where the references' leave-one-out scores lie, and where tau and the assets do.

    A request has a distribution of its own; only the profile's own factors, which are calibrated already, are drawn.
    """
    strips = []
    for category in profile.categories:
        for check, factor in (("style", profile.style_factor), ("sem", profile.semantic_factor)):
            rows = [row for row in table if row.category == category and (check == "style" or row.sem_factor == factor)]
            known = [score for row in rows if (score := _finite(getattr(row, f"{check}_s"))) is not None]
            if factor is None or not known:
                continue
            strip = _strip(profile.calibration(category, factor), config, known)
            if strip is not None:
                strips.append({"check": check, "category": category, **strip})
    return strips


def _strip(calibration: Calibration, config: Config, scores: Sequence[float]) -> dict[str, Any] | None:
    own: NDArray[np.float64] = calibration.scores(config.k)
    if not own.size:
        return None
    low, high = float(own.min()), float(own.max())
    reach = max(high - low, 1e-6)
    # Assets far out are drawn at the edge, so that one of them does not squeeze all others into a line.
    low, high = max(min(low, *scores), low - reach), min(max(high, *scores), high + reach)
    pad = 0.02 * max(high - low, 1e-6)
    low, high = low - pad, high + pad
    counts, _ = np.histogram(own, BINS, (low, high), weights=calibration.weights)
    heights = np.ceil(100 * counts / counts.max()) if counts.max() > 0 else counts
    tau = calibration.threshold(config.alpha, config.k, config.rule)
    return {"low": low, "high": high, "bins": [int(height) for height in heights], "tau": _finite(tau)}


def _rate(rate: Rate) -> dict[str, Any]:
    if rate.value is None:
        return {"text": "–", "interval": "", "value": None, "low": None, "high": None}
    low, high = rate.interval
    return {
        "text": f"{rate.value:.2f}",
        "interval": f"{low:.2f} to {high:.2f}",
        "value": round(100 * rate.value, 2),
        "low": round(100 * low, 2),
        "high": round(100 * high, 2),
    }


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def _finite(value: float | None) -> float | None:
    return round(value, 6) if value is not None and isfinite(value) else None
