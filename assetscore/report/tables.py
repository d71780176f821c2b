"""The summary in the columns of the paper's Tables 6 and 4: aligned text, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ..errors import UsageError
from ..summary import Rate, SummaryRow
from ..text import printable

__all__ = ["Columns", "Format", "render", "render_games"]

Format: TypeAlias = Literal["text", "markdown", "csv", "latex"]

Columns: TypeAlias = Literal["full", "pass"]
"""All columns, as in Table 6, or the pass rates alone, as in Table 4."""

Cell: TypeAlias = "str | int | float | Rate | None"


@dataclass(frozen=True)
class _Column:
    name: str
    latex: str
    value: Callable[[SummaryRow], Cell]
    rate: bool = False


_COLUMNS = (
    _Column("N", "$N$", lambda row: row.n),
    _Column("Custom", "Custom", lambda row: row.custom, rate=True),
    _Column("Style S-tau", r"Style $S-\tau$", lambda row: row.style_margin),
    _Column("Pass_style", r"Pass$_{\mathrm{style}}$", lambda row: row.pass_style, rate=True),
    _Column("Sem S-tau", r"Sem $S-\tau$", lambda row: row.sem_margin),
    _Column("Pass_sem", r"Pass$_{\mathrm{sem}}$", lambda row: row.pass_sem, rate=True),
    _Column("Pass_both", r"Pass$_{\mathrm{both}}$", lambda row: row.pass_both, rate=True),
)
_UNDECIDED = _Column("No verdict", "No verdict", lambda row: row.undecided)
"""Assets that stay out of the rates; the column is there where any row has some."""


def render(
    rows: Sequence[SummaryRow],
    format: Format = "text",
    *,
    intervals: bool = False,
    columns: Columns = "full",
    heading: str = "",
) -> str:
    """The summary rows as one table, ending in a newline.

    Args:
        rows: from `summary.summarise`, the references' own row first.
        format: "text" (aligned), "markdown", "csv" (numbers to six decimals) or "latex" (a booktabs tabular).
        intervals: give the Wilson interval (95 %) of each rate: behind it, or in CSV as two more columns.
        columns: "full" or "pass".
        heading: over the names; in CSV "group" where none is given.

    What does not exist, such as the semantic check of an encoder that ignores factors, is "-", in CSV empty.

    Raises:
        UsageError: no such format or columns.

    >>> row = SummaryRow("GLM-5.3", 226, 0, Rate(212, 226), 0.001, Rate(111, 226), None, None, Rate(111, 226), {})
    >>> print(render([row]), end="")
                N  Custom  Style S-tau  Pass_style  Sem S-tau  Pass_sem  Pass_both
    GLM-5.3   226    0.94       +0.001        0.49          -         -       0.49
    """
    if format not in get_args(Format):
        raise UsageError(f"format must be one of {', '.join(get_args(Format))}, got {format!r}")
    chosen = _chosen(rows, columns)
    if format == "csv":
        return _csv({"": rows}, chosen, intervals, (heading or "group",))
    cells = [[_cell(column.value(row), intervals) for column in chosen] for row in rows]
    names = [heading, *(row.group for row in rows)]
    if format == "latex":
        return _latex(names, cells, chosen)
    if format == "markdown":
        return _markdown(names, cells, chosen)
    return _text(names, cells, chosen)


def render_games(
    games: Mapping[str, Sequence[SummaryRow]],
    format: Format = "text",
    *,
    intervals: bool = False,
    columns: Columns = "full",
) -> str:
    """A table for each game, one below the other, under the game's name; in CSV one table with a column "game".

    Args:
        games: the rows by game; "" is for assets that say none.
        format, intervals, columns: as `render`'s.
    """
    if format == "csv":
        chosen = _chosen([row for rows in games.values() for row in rows], columns)
        return _csv(games, chosen, intervals, ("game", "group"))
    parts = [
        render(rows, format, intervals=intervals, columns=columns, heading=game.capitalize())
        for game, rows in games.items()
    ]
    return "\n".join(parts)


def _chosen(rows: Sequence[SummaryRow], columns: Columns) -> tuple[_Column, ...]:
    if columns not in get_args(Columns):
        raise UsageError(f"columns must be one of {', '.join(get_args(Columns))}, got {columns!r}")
    if columns == "pass":
        return tuple(column for column in _COLUMNS if column.name.startswith("Pass_"))
    undecided = (_UNDECIDED,) if any(row.undecided for row in rows) else ()
    return (_COLUMNS[0], *undecided, *_COLUMNS[1:])


def _cell(value: Cell, intervals: bool) -> str:
    if isinstance(value, Rate):
        if value.value is None:
            return "-"
        low, high = value.interval
        return f"{value.value:.2f} [{low:.2f}, {high:.2f}]" if intervals else f"{value.value:.2f}"
    if isinstance(value, float):
        return f"{value:+.3f}"
    return "-" if value is None else str(value)


def _text(names: Sequence[str], cells: Sequence[Sequence[str]], columns: Sequence[_Column]) -> str:
    names = [printable(name) for name in names]
    first = max((_width(name) for name in names), default=0)
    widths = [max(len(column.name), *(len(row[i]) for row in cells), 4) for i, column in enumerate(columns)]
    lines = [
        _padded(names[0], first) + "".join(f"  {column.name:>{w}}" for column, w in zip(columns, widths, strict=True))
    ]
    for name, row in zip(names[1:], cells, strict=True):
        lines.append(_padded(name, first) + "".join(f"  {cell:>{w}}" for cell, w in zip(row, widths, strict=True)))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _markdown(names: Sequence[str], cells: Sequence[Sequence[str]], columns: Sequence[_Column]) -> str:
    heading = f"| {_escape(printable(names[0]), _MARKDOWN)} ".rstrip() + " | "
    lines = [heading + " | ".join(_escape(column.name, _MARKDOWN) for column in columns) + " |"]
    lines.append("|---|" + "---:|" * len(columns))
    lines += [
        f"| {_escape(printable(name), _MARKDOWN)} | " + " | ".join(row) + " |"
        for name, row in zip(names[1:], cells, strict=True)
    ]
    return "\n".join(lines) + "\n"


def _latex(names: Sequence[str], cells: Sequence[Sequence[str]], columns: Sequence[_Column]) -> str:
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        _escape(printable(names[0]), _LATEX) + " & " + " & ".join(column.latex for column in columns) + r" \\",
        r"\midrule",
    ]
    for name, row in zip(names[1:], cells, strict=True):
        numbers = " & ".join(f"${cell}$" if cell[0] in "+-" and len(cell) > 1 else cell for cell in row)
        lines.append(rf"{_escape(printable(name), _LATEX)} & {numbers} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _csv(
    games: Mapping[str, Sequence[SummaryRow]], columns: Sequence[_Column], intervals: bool, names: Sequence[str]
) -> str:
    header = list(names)
    for column in columns:
        header.append(column.name)
        if intervals and column.rate:
            header += [f"{column.name}_low", f"{column.name}_high"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for game, row in ((game, row) for game, rows in games.items() for row in rows):
        values: list[str | int] = [game, row.group] if len(names) > 1 else [row.group]
        for column in columns:
            value = column.value(row)
            values.append(_number(value.value if isinstance(value, Rate) else value))
            if intervals and column.rate:
                ends = value.interval if isinstance(value, Rate) and value.total else (None, None)
                values += [_number(end) for end in ends]
        writer.writerow(values)
    return out.getvalue()


def _number(value: str | int | float | None) -> str | int:
    if value is None:
        return ""
    return f"{value:.6f}" if isinstance(value, float) else value


_MARKDOWN = {**{sign: "\\" + sign for sign in "\\`*_[]|#~"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LATEX = {
    **{sign: "\\" + sign for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
}


def _escape(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(sign, sign) for sign in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns a text takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) != 0 for sign in text)
