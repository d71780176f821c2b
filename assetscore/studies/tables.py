"""The paper's Tables 13, 14, 18 and 19 as text, Markdown, CSV or LaTeX.

What does not exist is "-" with a note below the table that says why; in CSV it is empty, and a last column says why.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import UsageError
from ..summary import Rate
from ..text import printable
from .ablation import Ablation
from .agreement import Agreement
from .intervals import Estimate
from .majority import VerdictAgreement
from .sweep import Cell, CheckCell, Sweep

__all__ = ["Format", "ablation_table", "agreement_table", "alpha_table", "format_table", "k_table", "raters_table"]

Format = Literal["text", "markdown", "csv", "latex"]


@dataclass(frozen=True)
class Missing:
    """A number that does not exist, and why."""

    reason: str


class _Difference(Estimate):
    """An Estimate shown with its sign."""


Value = str | int | float | Estimate | Missing | None
_LATEX = {sign: "\\" + sign for sign in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
_MARKDOWN = {sign: "\\" + sign for sign in "\\`*_[]|"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def format_table(header: Sequence[str], rows: Sequence[Sequence[Value]], format: Format = "text") -> str:
    """Rows of texts and numbers under a header, ending in a newline; the first column is left-aligned.

    Args:
        header: one name a column.
        rows: as many values each. An Estimate is its number with the interval, in CSV three columns; the reasons why a
            number or an interval is missing stand below the table, in CSV in a last column.
        format: "text", "markdown", "csv" or "latex" (a booktabs tabular).

    Raises:
        UsageError: no such format.

    Example:
        >>> print(format_table(["encoder", "AUROC"], [["csd", 0.54], ["tpips", 0.66]]), end="")
        encoder  AUROC
        csd       0.54
        tpips     0.66
    """
    if format not in get_args(Format):
        raise UsageError(f"format must be one of {', '.join(get_args(Format))}, got {format!r}")
    if format == "csv":
        return _csv(header, rows)
    notes: dict[str, int] = {}
    cells = [[_cell(value, notes) for value in row] for row in rows]
    said = [f"({number}) {reason}" for reason, number in notes.items()]
    if format == "markdown":
        lines = [[_escape(cell, _MARKDOWN) for cell in line] for line in (header, *cells)]
        rule = "|---|" + "---:|" * (len(header) - 1)
        parts = ["| " + " | ".join(lines[0]) + " |", rule, *("| " + " | ".join(c) + " |" for c in lines[1:])]
        return "\n".join([*parts, *(f"\n{_escape(note, _MARKDOWN)}" for note in said)]) + "\n"
    if format == "latex":
        body = [" & ".join(_escape(cell, _LATEX) for cell in line) + r" \\" for line in (header, *cells)]
        parts = [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule", body[0], r"\midrule", *body[1:]]
        below = [rf"\par\noindent{{\footnotesize {_escape(note, _LATEX)}}}" for note in said]
        return "\n".join([*parts, r"\bottomrule", r"\end{tabular}", *below]) + "\n"
    widths = [max(len(line[i]) for line in (header, *cells)) for i in range(len(header))]
    lines = [
        [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))]
        for line in (header, *cells)
    ]
    return "\n".join([*("  ".join(line).rstrip() for line in lines), *said]) + "\n"


def alpha_table(sweep: Sweep, format: Format = "text") -> str:
    """Table 18: for each alpha, agreement with the votes and the share of references that pass both checks.

    Without votes, each check's pass rate instead of the agreement.
    """
    checks, voted = list(sweep.by_alpha[0].checks), bool(sweep.voted)
    per_check = ("Acc", "Rej", "Bal") if voted else ("pass",)
    header = ["alpha", *(f"{_short(name)} {column}" for name in checks for column in per_check)]
    rows: list[list[Value]] = []
    for cell in sweep.by_alpha:
        row: list[Value] = [f"{cell.alpha:g}"]
        for check in cell.checks.values():
            row += _against_votes(check) if voted else [_known(check.pass_rate, _no_rate(sweep))]
        row += [_known(cell.balanced, "a check has no Bal")] if voted else []
        row += [_known(cell.pass_both, _no_rate(sweep)), _known(cell.references_both, _TOO_FEW)]
        rows.append([*row, cell.undecided, _mark(sweep, cell)])
    header += ["Bal"] if voted else []
    return format_table([*header, "Pass_both", "Vanilla both", "No verdict", ""], rows, format)


def k_table(sweep: Sweep, format: Format = "text") -> str:
    """Table 19: for each k, pass rate, rank correlation, same verdict and order of the groups."""
    header = ["k"]
    for name in sweep.by_k[0].checks:
        header += [f"{_short(name)} {column}" for column in ("pass", "rank", "same", "order")]
    rows: list[list[Value]] = []
    for cell in sweep.by_k:
        row: list[Value] = [str(cell.k)]
        for check in cell.checks.values():
            row += _k_values(check, sweep, format)
        rows.append([*row, _mark(sweep, cell)])
    return format_table([*header, ""], rows, format)


def ablation_table(games: Sequence[Ablation], format: Format = "text", *, intervals: bool = False) -> str:
    """Table 13: two configurations by game, and below them the mean difference over tasks with its interval.

    Args:
        games: from `ablation.ablation`.
        format: "text", "markdown", "csv" or "latex".
        intervals: give the rates' Wilson intervals (95 %), too. The difference has its own in any case.
    """
    names = {"pass_style": "Pass_style", "pass_sem": "Pass_sem", "pass_both": "Pass_both"}
    rows: list[list[Value]] = []
    for part in games:
        for i, group in enumerate((part.first, part.second)):
            rates = [part.rates[name][i] if name in part.rates else None for name in names]
            rows.append([part.game or "folders", group, part.n[i], *(_of_rate(rate, intervals) for rate in rates)])
        found = [part.differences.get(name) for name in names]
        tasks = max((len(each.tasks) for each in found if each is not None), default=0)
        changes: list[Value] = [
            _Difference(**vars(each.result.difference))
            if each is not None
            else Missing("no task has a verdict of both" if name in part.rates else "the encoder ignores requests")
            for name, each in zip(names, found, strict=True)
        ]
        rows.append([part.game or "folders", f"difference over {tasks} task{'s' * (tasks != 1)}", None, *changes])
    return format_table(["game", "configuration", "N", *names.values()], rows, format)


def _of_rate(rate: Rate | None, intervals: bool) -> Value:
    if rate is None or rate.value is None:
        return None
    return Estimate(rate.value, *rate.interval) if intervals else rate.value


def agreement_table(studies: Sequence[Agreement], format: Format = "text", names: Sequence[str] | None = None) -> str:
    """Table 14: for each encoder and question, how its scores and verdicts agree with the majority.

    Args:
        studies: one for each result table.
        format: "text", "markdown", "csv" or "latex".
        names: what to call each; default its encoder.
    """
    header = ["encoder", "question", "AUROC", "bootstrap", "Acc", "Rej", "Bal", "assets"]
    rows: list[list[Value]] = []
    called = names or [study.encoder or "-" for study in studies]
    for study, name in zip(studies, called, strict=True):
        for part in study.questions:
            row: list[Value] = [name, part.question, part.auroc, part.auroc_bootstrap]
            rows.append([*row, *_verdicts(part.verdicts), part.auroc.n])
    return format_table(header, rows, format)


def raters_table(study: Agreement, format: Format = "text") -> str:
    """The raters among themselves: majorities, Krippendorff's alpha in its readings, and the raw agreement."""
    header = ["question", "raters", "answers", "accepted", "rejected", "ties", "unsure only"]
    header += ["alpha", "unsure an answer", "ordinal", "raw"]
    rows: list[list[Value]] = []
    for part in study.questions:
        row: list[Value] = [part.question, part.raters, part.answers, part.accepted, part.rejected, part.ties]
        raw = _known(part.raw, "no asset was answered by two raters")
        rows.append([*row, part.undecided, part.alpha, part.alpha_unsure, part.alpha_ordinal, raw])
    return format_table(header, rows, format)


def _k_values(check: CheckCell, sweep: Sweep, format: Format) -> list[Value]:
    rank = check.rank_correlation
    return [
        _known(check.pass_rate, _no_rate(sweep)),
        # as the paper prints it; a file keeps what it has
        _known(rank, _no_order("assets", sweep.assets)) if math.isnan(rank) or format == "csv" else f"{rank:.3f}",
        _known(check.same_verdict, _no_rate(sweep)),
        _known(check.group_order, _no_order("groups", sweep.groups)),
    ]


_TOO_FEW = "no category holds enough references for this alpha"


def _no_rate(sweep: Sweep) -> str:
    return "no asset has a verdict here" if sweep.assets else "no results were given"


def _no_order(what: str, count: int) -> str:
    if count == 0:
        return "no results were given"
    return f"all {what} are equal, or without a number" if count > 1 else f"an order needs two {what}"


def _known(value: float, reason: str) -> Value:
    return Missing(reason) if math.isnan(value) else value


def _against_votes(check: CheckCell) -> list[Value]:
    return [Missing("nobody was asked this check's question")] * 3 if check.votes is None else _verdicts(check.votes)


def _verdicts(found: VerdictAgreement) -> list[Value]:
    return [_known(value, found.reason) for value in (found.acceptance, found.rejection, found.balanced)]


def _mark(sweep: Sweep, cell: Cell) -> str:
    return "<- used" if (cell.alpha, cell.k) == (sweep.alpha, sweep.k) else ""


def _short(name: str) -> str:
    return "sem" if name == "semantic" else name


def _cell(value: Value, notes: dict[str, int]) -> str:
    """What a cell shows, with the number of its note; new reasons are added to `notes`."""
    reason = printable(_reason(value))
    mark = f" ({notes.setdefault(reason, len(notes) + 1)})" if reason else ""
    if isinstance(value, Estimate):
        if math.isnan(value.value):
            return f"-{mark}"
        sign = "+" if isinstance(value, _Difference) else ""
        ends = "" if math.isnan(value.low) else f" [{value.low:{sign}.2f}, {value.high:{sign}.2f}]"
        return f"{value.value:{sign}.2f}{ends}{mark}"
    if value is None or isinstance(value, Missing) or (isinstance(value, float) and math.isnan(value)):
        return f"-{mark}"
    return f"{value:.2f}" if isinstance(value, float) else printable(str(value))


def _reason(value: Value) -> str:
    return value.reason if isinstance(value, Estimate | Missing) else ""


def _csv(header: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    wide = [any(isinstance(row[i], Estimate) for row in rows) for i in range(len(header))]
    said = any(wide) or any(isinstance(value, Missing) for row in rows for value in row)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [
        [name, f"{name} low", f"{name} high"] if is_wide else [name] for name, is_wide in zip(header, wide, strict=True)
    ]
    writer.writerow([*(name for part in names for name in part), *(["reason"] if said else [])])
    for row in rows:
        values: list[str] = []
        for value, is_wide in zip(row, wide, strict=True):
            parts = (value.value, value.low, value.high) if isinstance(value, Estimate) else (value,)
            values += [_plain(part) for part in parts] + [""] * (2 if is_wide and len(parts) == 1 else 0)
        reasons = [f"{name}: {_reason(value)}" for name, value in zip(header, row, strict=True) if _reason(value)]
        writer.writerow([*values, *(["; ".join(reasons)] if said else [])])
    return out.getvalue()


def _plain(value: str | int | float | Missing | None) -> str:
    if value is None or isinstance(value, Missing) or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _escape(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(sign, sign) for sign in text)
