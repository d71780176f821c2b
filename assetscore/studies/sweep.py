"""Choosing alpha and k: every cell from the similarities that a profile and its results keep, nothing embedded again.

The columns are those by which the paper chose alpha (its Table 18) and k (its Table 19). Thresholds are calibrated
anew for every cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..config import TOP
from ..errors import UsageError
from ..results import FAILING
from ..summary import leave_one_out_row
from ..table import Row, check_row
from .ids import rows_by_name
from .intervals import whole_number
from .majority import VerdictAgreement, majority_labels, verdict_agreement
from .paired import rank_agreement
from .votes import Votes

if TYPE_CHECKING:
    from ..calibrated import Calibration
    from ..profile import Profile
    from .saved import SavedCalibrations

__all__ = ["ALPHAS", "KS", "Cell", "CheckCell", "Sweep", "sweep"]

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
"""The alphas of Table 18."""
KS = (1, 3, 5, 10, 20)
"""The k of Table 19."""
QUESTION_OF = {"style": "style", "semantic": "object"}
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CheckCell:
    """One check at one alpha and k. A share or a correlation that does not exist is NaN.

    Attributes:
        pass_rate: of the assets, over those that have a verdict.
        rank_correlation: Spearman's, of the assets' scores with those at the base k.
        same_verdict: the share of assets that keep their verdict at the base cell.
        group_order: Spearman's, of the groups' (models') pass rates with those at the base cell.
        references: the share of the references, left out one at a time, that pass.
        votes: acceptance, rejection and balanced accuracy against the majority; None without votes.
    """

    pass_rate: float
    rank_correlation: float
    same_verdict: float
    group_order: float
    references: float
    votes: VerdictAgreement | None = None


@dataclass(frozen=True)
class Cell:
    """Everything at one alpha and k.

    Attributes:
        undecided: assets without a verdict here (too few references for this alpha, nothing visible ...).
        style, semantic: the checks; semantic is None for an encoder that ignores factors.
        pass_both, references_both: the share of assets, and of references, that pass every check.
        balanced: balanced accuracy averaged over the checks; NaN without votes or where a check has none.
    """

    alpha: float
    k: int
    undecided: int
    style: CheckCell
    semantic: CheckCell | None
    pass_both: float
    references_both: float
    balanced: float = math.nan

    @property
    def checks(self) -> dict[str, CheckCell]:
        """The checks there are, by name."""
        named = {"style": self.style, "semantic": self.semantic}
        return {name: check for name, check in named.items() if check is not None}


@dataclass(frozen=True)
class Sweep:
    """All cells of a grid of alphas and ks.

    Attributes:
        cells: by (alpha, k).
        alpha, k: the base cell, which the others are compared with.
        assets, groups, references: how many of each.
        voted: for each check, how many assets have a majority; empty without votes.
    """

    cells: Mapping[tuple[float, int], Cell]
    alpha: float
    k: int
    assets: int
    groups: int
    references: int
    voted: Mapping[str, int]

    @property
    def by_k(self) -> list[Cell]:
        """The cells at the base alpha, by k: Table 19."""
        return [cell for (alpha, _), cell in sorted(self.cells.items()) if alpha == self.alpha]

    @property
    def by_alpha(self) -> list[Cell]:
        """The cells at the base k, by alpha: Table 18."""
        return [cell for (_, k), cell in sorted(self.cells.items()) if k == self.k]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold: NaN becomes None."""
        cells = [_no_nan(asdict(cell)) for _, cell in sorted(self.cells.items())]
        return {
            "base": {"alpha": self.alpha, "k": self.k},
            "assets": self.assets,
            "groups": self.groups,
            "references": self.references,
            "voted": dict(self.voted),
            "cells": cells,
        }


def sweep(
    profile: Profile | SavedCalibrations,
    rows: Iterable[Row] = (),
    votes: Votes | None = None,
    *,
    alphas: Sequence[float] = ALPHAS,
    ks: Sequence[int] = KS,
    alpha: float | None = None,
    k: int | None = None,
) -> Sweep:
    """Judge the same assets for every alpha and k.

    Args:
        profile: what the assets were scored with, or its saved calibrations.
        rows: of the results, a ResultTable say; without any, only the references' own columns have numbers.
        votes: people's answers on some of the assets.
        alphas, ks: the grid; k is at most 20.
        alpha, k: the base cell; default the profile's. It is added to the grid where it is missing.

    Raises:
        UsageError: an alpha or k that cannot be used, or a row that kept fewer similarities than a k needs.
        ProfileMismatchError: a row was scored with another encoder or profile.
        ManifestError: a vote names an asset that is not among the rows.
    """
    base = profile.config.with_(alpha=alpha, k=k)
    # rounded, so that numpy.arange's 0.15000000000000002 is the cell of 0.15
    decimals = [round(replace(profile.config, alpha=a).alpha, 9) for a in (*alphas, base.alpha)]
    base, grid_alpha = base.with_(alpha=decimals[-1]), tuple(dict.fromkeys(decimals))
    grid_k = tuple(dict.fromkeys([*(whole_number("k", n, 1, TOP) for n in ks), base.k]))
    listed = list(rows)
    checks = _checks(profile, listed)
    labels: dict[str, _Floats] = {}
    if votes is not None:
        by_name = rows_by_name(listed, votes.assets)
        votes.check_assets(by_name)
        names = {id(row): name for name, row in by_name.items()}
        ids = [names.get(id(row), "") for row in listed]  # no asset of a votes file is called ""
        asked = {name: QUESTION_OF[name] for name in checks if QUESTION_OF[name] in votes.questions}
        labels = {name: majority_labels(votes, question, ids) for name, question in asked.items()}
    failing = np.array([row.status in FAILING for row in listed], dtype=bool)
    group = np.array([row.group for row in listed], dtype=object)
    judged = {(a, n): _verdicts(checks, failing, a, n, profile.config.rule) for a in grid_alpha for n in grid_k}
    scores = {(name, n): check.scores(n) for name, check in checks.items() for n in grid_k}
    cells = {}
    for (a, n), verdicts in judged.items():
        loo = leave_one_out_row(cast("Profile", profile), alpha=a, k=n)
        rates = {"style": loo.pass_style.value, "semantic": None if loo.pass_sem is None else loo.pass_sem.value}
        made = {
            name: CheckCell(
                pass_rate=_mean(verdicts[name]),
                rank_correlation=_spearman(scores[name, n], scores[name, base.k]),
                same_verdict=_same(verdicts[name], judged[base.alpha, base.k][name]),
                group_order=_group_order(verdicts[name], judged[base.alpha, base.k][name], group),
                references=_or_nan(rates[name]),
                votes=_against(verdicts[name], labels[name]) if name in labels else None,
            )
            for name in checks
        }
        balanced = [cell.votes.balanced if cell.votes else math.nan for cell in made.values()]
        cells[a, n] = Cell(
            alpha=a,
            k=n,
            undecided=int(np.isnan(verdicts["both"]).sum()),
            style=made["style"],
            semantic=made.get("semantic"),
            pass_both=_mean(verdicts["both"]),
            references_both=_or_nan(loo.pass_both.value),
            balanced=float(np.mean(balanced)),
        )
    return Sweep(
        cells,
        base.alpha,
        base.k,
        assets=len(listed),
        groups=len(set(group.tolist())),
        references=len(profile.references),
        voted={name: int((~np.isnan(values)).sum()) for name, values in labels.items()},
    )


@dataclass(frozen=True)
class _Check:
    """The similarities of N assets under one check, and what each is judged by."""

    top: _Floats
    """(N, 20), NaN where nothing was kept."""
    unit: NDArray[np.int64]
    """(N,) index into `calibrations`; -1 for an asset without similarities."""
    calibrations: tuple[Calibration, ...]

    def scores(self, k: int) -> _Floats:
        """(N,) S, NaN where there is none."""
        result = np.full(len(self.unit), np.nan)
        for i, calibration in enumerate(self.calibrations):
            used = calibration.k_eff(k)
            if used:
                result[self.unit == i] = self.top[self.unit == i, :used].mean(axis=1)
        return result

    def thresholds(self, alpha: float, k: int, rule: Any) -> _Floats:
        """(N,) tau, NaN where uncalibrated."""
        found = [_or_nan(calibration.threshold(alpha, k, rule)) for calibration in self.calibrations]
        return np.array([*found, math.nan])[self.unit]


def _checks(profile: Profile | SavedCalibrations, rows: Sequence[Row]) -> dict[str, _Check]:
    tops = {"style": [row.top_style for row in rows]}
    factors: dict[str, list[str | None]] = {"style": [profile.style_factor] * len(rows)}
    if profile.semantic_factor is not None:
        tops["semantic"] = [row.top_sem for row in rows]
        factors["semantic"] = [row.sem_factor for row in rows]
    for row in rows:
        check_row(row, profile)
    checks = {}
    for name, kept in tops.items():
        top = np.full((len(rows), TOP), np.nan)
        units: dict[tuple[str, str], int] = {}
        unit = np.full(len(rows), -1, dtype=np.int64)
        for i, (row, values, factor) in enumerate(zip(rows, kept, factors[name], strict=True)):
            if not values or factor is None:
                continue
            top[i, : len(values)] = values[:TOP]
            unit[i] = units.setdefault((row.category, factor), len(units))
        calibrations = tuple(profile.calibration(*key) for key in units)
        for i, row in enumerate(rows):
            needed = calibrations[unit[i]].k_eff(TOP) if unit[i] >= 0 else 0
            if np.isnan(top[i, :needed]).any():
                raise UsageError(
                    f"row {row.asset_id!r} keeps {len(kept[i])} {name} similarities, the profile needs {needed}"
                )
        checks[name] = _Check(top, unit, calibrations)
    return checks


def _verdicts(
    checks: Mapping[str, _Check], failing: NDArray[np.bool_], alpha: float, k: int, rule: Any
) -> dict[str, _Floats]:
    """For each check and "both": (N,) 1 pass, 0 fail, NaN no verdict. What is failing fails at every alpha and k."""
    margins = {name: check.scores(k) - check.thresholds(alpha, k, rule) for name, check in checks.items()}
    undecided = np.any([np.isnan(margin) for margin in margins.values()], axis=0)
    verdicts = {}
    for name, margin in margins.items():
        verdict = np.where(undecided, np.nan, (margin >= 0).astype(np.float64))
        verdicts[name] = np.where(failing, 0.0, verdict)
    verdicts["both"] = np.min(list(verdicts.values()), axis=0)
    return verdicts


def _against(verdicts: _Floats, labels: _Floats) -> VerdictAgreement:
    use = ~np.isnan(verdicts) & ~np.isnan(labels)
    return verdict_agreement(verdicts[use] == 1.0, labels[use])


def _mean(verdicts: _Floats) -> float:
    decided = verdicts[~np.isnan(verdicts)]
    return float(decided.mean()) if decided.size else math.nan


def _same(verdicts: _Floats, base: _Floats) -> float:
    both = ~np.isnan(verdicts) & ~np.isnan(base)
    return float((verdicts[both] == base[both]).mean()) if both.any() else math.nan


def _spearman(scores: _Floats, base: _Floats) -> float:
    both = np.isfinite(scores) & np.isfinite(base)
    if both.sum() < 2 or np.ptp(scores[both]) == 0 or np.ptp(base[both]) == 0:
        return math.nan
    return float(stats.spearmanr(scores[both], base[both]).statistic)


def _group_order(verdicts: _Floats, base: _Floats, group: NDArray[Any]) -> float:
    names = list(dict.fromkeys(group.tolist()))
    rates = np.array([[_mean(values[group == name]) for name in names] for values in (verdicts, base)])
    there = np.isfinite(rates).all(axis=0) if names else np.zeros(0, dtype=bool)
    if there.sum() < 2:
        return math.nan
    return rank_agreement(rates[0, there], rates[1, there]).spearman


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _no_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _no_nan(part) for key, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
