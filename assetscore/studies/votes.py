"""What raters answered: the votes file (CSV: asset, rater, question, answer), read strictly, written atomically."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import ManifestError, UsageError
from .ids import check_id
from .strict_csv import csv_line, read_rows

__all__ = ["ANSWERS", "QUESTIONS", "Vote", "Votes", "canonical_question", "read_votes", "votes_csv", "write_votes"]

COLUMNS = ("asset", "rater", "question", "answer")
ANSWERS = {"yes": 1.0, "unsure": 0.5, "no": 0.0}
"""The answers and their place in the order: unsure stands in the middle."""
QUESTIONS = {
    "style": "Would it fit in beside the art shown?",
    "object": "Is it recognisable as what was asked for?",
}
"""The two questions of a study: what the style check and the semantic check are held against."""
_ALIASES = {"fit": "style", "fits": "style", "semantic": "object", "sem": "object"}
_ALIASES |= {"recognisable": "object", "recognizable": "object"}


@dataclass(frozen=True)
class Vote:
    """One answer of one rater to one question on one asset; `line` is where it stands in its file (0: in none)."""

    asset: str
    rater: str
    question: str
    answer: str
    line: int = 0


@dataclass(frozen=True)
class Votes:
    """The votes of a study: at most one for each (asset, rater, question).

    Attributes:
        votes: in the file's order.
        source: the file, for messages.
    """

    votes: tuple[Vote, ...]
    source: str = "votes"

    @property
    def assets(self) -> tuple[str, ...]:
        """Asset ids, in the order in which they first appear."""
        return tuple(dict.fromkeys(vote.asset for vote in self.votes))

    @property
    def raters(self) -> tuple[str, ...]:
        """Raters, in the order in which they first appear."""
        return tuple(dict.fromkeys(vote.rater for vote in self.votes))

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions asked, "style" before "object"."""
        asked = {vote.question for vote in self.votes}
        return tuple(question for question in QUESTIONS if question in asked)

    def matrix(self, question: str) -> NDArray[np.float64]:
        """The answers to one question as a (raters, assets) array: 1 yes, 0.5 unsure, 0 no, NaN not answered."""
        rows = {rater: i for i, rater in enumerate(self.raters)}
        columns = {asset: i for i, asset in enumerate(self.assets)}
        table = np.full((len(rows), len(columns)), np.nan)
        for vote in self.votes:
            if vote.question == question:
                table[rows[vote.rater], columns[vote.asset]] = ANSWERS[vote.answer]
        return table

    def check_assets(self, known: Collection[str]) -> None:
        """Raise a ManifestError that names the line of the first vote on an asset that `known` does not hold."""
        ids = frozenset(known)
        for vote in self.votes:
            if vote.asset not in ids:
                blanks = vote.asset.strip() in ids
                hint = "take away the blanks around it" if blanks else "votes name assets by asset_id"
                raise ManifestError(
                    f"{self.source}, line {vote.line}: asset {vote.asset!r} is not among the assets of the results; "
                    + hint
                )


def canonical_question(text: str) -> str | None:
    """ "style" or "object" for the names that files use for the two questions; None for anything else.

    Example:
        >>> canonical_question("Fits"), canonical_question("semantic"), canonical_question("colour")
        ('style', 'object', None)
    """
    name = text.strip().casefold()
    name = _ALIASES.get(name, name)
    return name if name in QUESTIONS else None


def read_votes(path: str | os.PathLike[str], known: Collection[str] | None = None) -> Votes:
    """Read a votes file.

    The first line names the columns, in any order: asset, rater, question, answer; further columns are ignored. A
    question is "style" ("fits") or "object" ("semantic", "recognisable"); an answer yes, no or unsure, in any case.
    An asset's id is taken exactly as it is written; blanks around the other cells do not count.

    Args:
        path: the CSV file.
        known: the asset ids that votes may name; without it any asset is taken.

    Raises:
        ManifestError: with the file and the line: a column is missing, an answer, question or asset is unknown, a
            rater answered the same question on the same asset twice, a line is too long or no UTF-8, the file begins
            with a byte order mark, or there is no vote.
    """
    source = os.fspath(path)
    votes = tuple(_votes(source))
    if not votes:
        raise ManifestError(f"{source}, line 1: there is no vote in this file")
    result = Votes(votes, source)
    if known is not None:
        result.check_assets(known)
    return result


def _votes(source: str) -> Iterator[Vote]:
    seen: dict[tuple[str, str, str], int] = {}
    for line, cells in read_rows(source, COLUMNS):
        vote = _vote(cells, line, f"{source}, line {line}")
        key = (vote.asset, vote.rater, vote.question)
        if key in seen:
            raise ManifestError(
                f"{source}, line {line}: rater {vote.rater!r} has answered {vote.question!r} on asset "
                f"{vote.asset!r} already, in line {seen[key]}"
            )
        seen[key] = line
        yield vote


def _vote(cells: dict[str, str], line: int, where: str) -> Vote:
    asset, rater = cells["asset"], cells["rater"].strip()
    asked, answered = cells["question"].strip(), cells["answer"].strip()
    for name, value in (("asset", asset), ("rater", rater)):
        if not value.strip():
            raise ManifestError(f"{where}: {name} is empty")
    question, answer = canonical_question(asked), answered.casefold()
    if question is None:
        raise ManifestError(f"{where}: question must be one of {', '.join(QUESTIONS)}, got {asked[:60]!r}")
    if answer not in ANSWERS:
        raise ManifestError(f"{where}: answer must be yes, no or unsure, got {answered[:60]!r}")
    return Vote(asset, rater, question, answer, line)


def votes_csv(votes: Iterable[Vote]) -> str:
    """Votes as the text of a votes file, which `read_votes` reads back exactly.

    Raises:
        UsageError: an asset's id or a rater's name that such a file cannot hold: blank, longer than 8 KiB, with a NUL
            or half of a surrogate pair; a rater's name that begins or ends in a blank.

    Example:
        >>> print(votes_csv([Vote("item/ruby", "ana", "style", "yes")]), end="")
        asset,rater,question,answer
        item/ruby,ana,style,yes
    """
    lines = [csv_line(COLUMNS)]
    for vote in votes:
        rater = check_id(vote.rater, "rater")
        if rater != rater.strip():
            raise UsageError(f"rater {rater[:60]!r} begins or ends in a blank")
        lines.append(csv_line((check_id(vote.asset), rater, vote.question, vote.answer)))
    return "".join(lines)


def write_votes(path: str | os.PathLike[str], votes: Iterable[Vote]) -> None:
    """Write a votes file; an interrupted write leaves the old file as it was.

    Raises:
        UsageError: as for `votes_csv`.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(draft, "x", encoding="utf-8", newline="") as file:
            file.write(votes_csv(votes))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
