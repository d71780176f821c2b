"""Do the scores agree with people? Votes against results: majority, AUROC, accuracy, and the raters' own agreement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from ..table import Row
from .auroc import PairedAuroc, auroc, auroc_bootstrap, auroc_delong, compare_auroc
from .ids import rows_by_name
from .intervals import Estimate
from .krippendorff import krippendorff_alpha, krippendorff_bootstrap, raw_agreement
from .majority import Majority, VerdictAgreement, majority, majority_labels, verdict_agreement
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
    "majority_labels",
    "raw_agreement",
    "read_votes",
    "verdict_agreement",
]

SCORE_COLUMNS = {"style": ("style_s", "style_pass"), "object": ("sem_s", "sem_pass")}
"""For each question, the columns of a result row that answer it: the score and the verdict."""


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
        rows: of the results, a ResultTable say. Votes name them by asset_id; where several rows share one, by
            `ids.full_id`, "GAME/GROUP/TASK: ASSET_ID", as `study make` does.
        level, resamples, seed: of the intervals.

    Raises:
        ManifestError: a vote names an asset that is not among the rows; its line is named.
        UsageError: an asset with votes belongs to two rows, two of the votes' names to one row, or the rows were scored
            with several encoders, whose scores share no scale.
    """
    listed = tuple(rows)
    by_name = rows_by_name(listed, votes.assets)
    votes.check_assets(by_name)
    encoder = _one_encoder(listed)
    settings = (level, resamples, seed)
    parts = tuple(_question(votes, question, by_name, *settings) for question in votes.questions)
    return Agreement(encoder, parts)


def compare_encoders(
    votes: Votes,
    first: Iterable[Row],
    second: Iterable[Row],
    question: str = "style",
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
    tables = rows_by_name(first, votes.assets), rows_by_name(second, votes.assets)
    for table in tables:
        votes.check_assets(table)
        _one_encoder(table.values())
    labels = majority(votes.matrix(name)).labels
    scores = np.array([[_number(getattr(table[asset], column)) for asset in votes.assets] for table in tables])
    decided = ~np.isnan(labels)
    use = decided & np.isfinite(scores).all(axis=0)
    pair = compare_auroc(scores[0, use], scores[1, use], labels[use], level, resamples, seed)
    if use.any() or not decided.any():
        return pair
    reason = f"none of the {int(decided.sum())} assets with a majority has a score under both"
    parts = ("first", "second", "difference", "bootstrap")
    return replace(pair, **{part: replace(getattr(pair, part), reason=reason) for part in parts})


def _one_encoder(rows: Iterable[Row]) -> str:
    used = [name for name in dict.fromkeys(row.encoder for row in rows) if name]
    if len(used) > 1:
        raise UsageError(
            f"scores of different encoders share no scale: {', '.join(used)}; hold each encoder's results against the "
            "votes on their own"
        )
    return used[0] if used else ""


def rows_by_id(rows: Iterable[Row]) -> dict[str, Row]:
    """Result rows by asset_id.

    Raises:
        UsageError: an id belongs to two rows, of two groups perhaps.
    """
    table: dict[str, Row] = {}
    for row in rows:
        if row.asset_id in table:
            groups = f"groups {table[row.asset_id].group!r} and {row.group!r}"
            raise UsageError(
                f"asset_id {row.asset_id!r} belongs to two rows of the results ({groups}); make ids unique"
            )
        table[row.asset_id] = row
    return table


def _question(
    votes: Votes, question: str, by_name: Mapping[str, Row], level: float, resamples: int, seed: int
) -> QuestionAgreement:
    ratings = votes.matrix(question)
    asked: NDArray[np.bool_] = np.asarray((~np.isnan(ratings)).any(axis=0))
    result = majority(ratings[:, asked])
    rows = [by_name[asset] for asset, there in zip(votes.assets, asked, strict=True) if there]
    score_column, pass_column = SCORE_COLUMNS[question]
    scores = np.array([_number(getattr(row, score_column)) for row in rows])
    decided = ~np.isnan(result.labels)
    scored = decided & np.isfinite(scores)
    judged = decided & np.array([getattr(row, pass_column) is not None for row in rows], dtype=bool)
    passed = [bool(getattr(row, pass_column)) for row, use in zip(rows, judged, strict=True) if use]
    area, boot = (
        auroc_delong(scores[scored], result.labels[scored], level),
        auroc_bootstrap(scores[scored], result.labels[scored], level, resamples, seed),
    )
    verdicts = verdict_agreement(passed, result.labels[judged])
    if decided.any() and not scored.any():  # an encoder that ignores the question's text, usually
        reason = f"none of the {int(decided.sum())} assets with a majority has a score"
        area, boot = replace(area, reason=reason), replace(boot, reason=reason)
    if decided.any() and not judged.any():
        reason = f"none of the {int(decided.sum())} assets with a majority has a verdict"
        verdicts = replace(verdicts, reason=reason)
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
        auroc=area,
        auroc_bootstrap=boot,
        verdicts=verdicts,
        raw=raw_agreement(decisive),
        alpha=krippendorff_bootstrap(decisive, "nominal", level, resamples, seed),
        alpha_unsure=krippendorff_bootstrap(ratings, "nominal", level, resamples, seed),
        alpha_ordinal=krippendorff_bootstrap(ratings, "ordinal", level, resamples, seed),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value
