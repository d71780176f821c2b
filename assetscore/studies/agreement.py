"""Do the scores agree with people? Votes against results: majority, AUROC, accuracy, and the raters' own agreement.

Unsure is dropped before the majority vote; an asset with as many yes as no has no majority and is counted as a tie.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UsageError
from ..table import Row
from .auroc import PairedAuroc, auroc, auroc_bootstrap, auroc_delong, compare_auroc
from .intervals import Estimate
from .krippendorff import krippendorff_alpha, krippendorff_bootstrap, raw_agreement
from .votes import Vote, Votes, canonical_question, read_votes

__all__ = [
    "Agreement",
    "Estimate",
    "Majority",
    "PairedAuroc",
    "QuestionAgreement",
    "VerdictAgreement",
    "Vote",
    "Votes",
    "agreement",
    "auroc",
    "auroc_bootstrap",
    "auroc_delong",
    "compare_auroc",
    "compare_encoders",
    "krippendorff_alpha",
    "krippendorff_bootstrap",
    "majority",
    "raw_agreement",
    "read_votes",
    "verdict_agreement",
]

SCORE_COLUMNS = {"style": ("style_s", "style_pass"), "object": ("sem_s", "sem_pass")}
"""For each question, the columns of a result row that answer it: the score and the verdict."""


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


@dataclass(frozen=True)
class QuestionAgreement:
    """One question: the raters among themselves, and the scores against their majority.

    Attributes:
        question: "style" or "object".
        raters, answers: how many raters answered it, and how often.
        accepted, rejected, ties, undecided: assets, by their majority.
        without_score: assets with a majority but no score (a missing file, say): in no number below but the verdicts.
        without_verdict: assets with a majority but no verdict (uncalibrated, say): not among the verdicts.
        auroc: with DeLong's interval; `auroc_bootstrap` with the bootstrap's, over assets.
        verdicts: acceptance, rejection and balanced accuracy.
        raw: the share of equal pairs of answers, unsure dropped.
        alpha: Krippendorff's, nominal, unsure dropped as before the majority.
        alpha_unsure: nominal, unsure an answer of its own.
        alpha_ordinal: ordinal, unsure between no and yes.
    """

    question: str
    raters: int
    answers: int
    accepted: int
    rejected: int
    ties: int
    undecided: int
    without_score: int
    without_verdict: int
    auroc: Estimate
    auroc_bootstrap: Estimate
    verdicts: VerdictAgreement
    raw: float
    alpha: Estimate
    alpha_unsure: Estimate
    alpha_ordinal: Estimate

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        plain = {key: value for key, value in vars(self).items() if not hasattr(value, "to_dict")}
        nested = {key: value.to_dict() for key, value in vars(self).items() if hasattr(value, "to_dict")}
        plain["raw"] = None if math.isnan(self.raw) else self.raw
        return plain | nested


@dataclass(frozen=True)
class Agreement:
    """A study's votes against one result table; the row of Table 14 for its encoder."""

    encoder: str
    questions: tuple[QuestionAgreement, ...]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        return {"encoder": self.encoder, "questions": [question.to_dict() for question in self.questions]}


def agreement(
    votes: Votes, rows: Iterable[Row], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Agreement:
    """Hold a result table against votes.

    Args:
        votes: of the study.
        rows: of the results, a ResultTable say; one row an asset.
        level, resamples, seed: of the intervals.

    Raises:
        ManifestError: a vote names an asset that is not among the rows; its line is named.
        UsageError: an asset with votes belongs to two rows.
    """
    by_id = rows_by_id(rows, frozenset(votes.assets))
    votes.check_assets(by_id)
    settings = (level, resamples, seed)
    parts = tuple(_question(votes, question, by_id, *settings) for question in votes.questions)
    encoders = dict.fromkeys(row.encoder for row in by_id.values())
    return Agreement(", ".join(name for name in encoders if name), parts)


def compare_encoders(
    votes: Votes,
    first: Iterable[Row],
    second: Iterable[Row],
    question: Literal["style", "object"] = "style",
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PairedAuroc:
    """Which of two encoders' scores agrees better with the majority, on the assets that both scored.

    Args:
        votes: of the study.
        first, second: result rows of the same assets under each encoder.
        question: "style" or "object".
        level, resamples, seed: of the intervals.

    Raises:
        ManifestError, UsageError: as for `agreement`; UsageError also for an unknown question.
    """
    name = canonical_question(question)
    if name is None:
        raise UsageError(f"question must be one of {', '.join(SCORE_COLUMNS)}, got {question!r}")
    column = SCORE_COLUMNS[name][0]
    voted = frozenset(votes.assets)
    tables = rows_by_id(first, voted), rows_by_id(second, voted)
    for table in tables:
        votes.check_assets(table)
    labels = majority(votes.matrix(name)).labels
    scores = np.array([[_number(getattr(table[asset], column)) for asset in votes.assets] for table in tables])
    use = ~np.isnan(labels) & np.isfinite(scores).all(axis=0)
    return compare_auroc(scores[0, use], scores[1, use], labels[use], level, resamples, seed)


def rows_by_id(rows: Iterable[Row], needed: Collection[str] | None = None) -> dict[str, Row]:
    """Result rows by asset_id.

    Raises:
        UsageError: an id (of the `needed` ones, where given) belongs to two rows, of two groups perhaps.
    """
    table: dict[str, Row] = {}
    for row in rows:
        if row.asset_id in table and (needed is None or row.asset_id in needed):
            groups = f"groups {table[row.asset_id].group!r} and {row.group!r}"
            raise UsageError(
                f"asset_id {row.asset_id!r} belongs to two rows of the results ({groups}); make ids unique"
            )
        table[row.asset_id] = row
    return table


def _question(
    votes: Votes, question: str, by_id: Mapping[str, Row], level: float, resamples: int, seed: int
) -> QuestionAgreement:
    ratings = votes.matrix(question)
    asked: NDArray[np.bool_] = np.asarray((~np.isnan(ratings)).any(axis=0))
    result = majority(ratings[:, asked])
    rows = [by_id[asset] for asset, there in zip(votes.assets, asked, strict=True) if there]
    score_column, pass_column = SCORE_COLUMNS[question]
    scores = np.array([_number(getattr(row, score_column)) for row in rows])
    decided = ~np.isnan(result.labels)
    scored = decided & np.isfinite(scores)
    judged = decided & np.array([getattr(row, pass_column) is not None for row in rows], dtype=bool)
    passed = [bool(getattr(row, pass_column)) for row, use in zip(rows, judged, strict=True) if use]
    decisive = np.where(ratings == 0.5, np.nan, ratings)
    return QuestionAgreement(
        question=question,
        raters=int((~np.isnan(ratings)).any(axis=1).sum()),
        answers=int((~np.isnan(ratings)).sum()),
        accepted=result.accepted,
        rejected=result.rejected,
        ties=result.ties,
        undecided=result.undecided,
        without_score=int((decided & ~scored).sum()),
        without_verdict=int((decided & ~judged).sum()),
        auroc=auroc_delong(scores[scored], result.labels[scored], level),
        auroc_bootstrap=auroc_bootstrap(scores[scored], result.labels[scored], level, resamples, seed),
        verdicts=verdict_agreement(passed, result.labels[judged]),
        raw=raw_agreement(decisive),
        alpha=krippendorff_bootstrap(decisive, "nominal", level, resamples, seed),
        alpha_unsure=krippendorff_bootstrap(ratings, "nominal", level, resamples, seed),
        alpha_ordinal=krippendorff_bootstrap(ratings, "ordinal", level, resamples, seed),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def majority_labels(votes: Votes, question: str, assets: Sequence[str]) -> NDArray[np.float64]:
    """The majority on each of the given assets: 1, 0, or NaN where there is none (also where nobody was asked)."""
    labels = dict(zip(votes.assets, majority(votes.matrix(question)).labels, strict=True)) if votes.votes else {}
    return np.array([labels.get(asset, math.nan) for asset in assets], dtype=np.float64)
