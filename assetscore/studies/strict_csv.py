"""CSV from spreadsheets and strangers, read line by line: what is wrong is named with its line; and written exactly."""

from __future__ import annotations

import csv
import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from ..errors import ManifestError

__all__ = ["csv_line", "read_rows"]

MAX_LINE = 64 * 1024
"""Bytes. A longer line is no row of a table."""
MAX_FILE = 256 * 1024 * 1024
"""Bytes. A larger file is no table of votes or textures."""
_SPECIAL = frozenset(',"\r\n')


def csv_line(cells: Iterable[str]) -> str:
    """One row as `read_rows` reads it back, character by character, whatever the cells hold but NUL.

    Example:
        >>> print(csv_line(["ruby, red", " c", "plain"]), end="")
        "ruby, red"," c",plain
    """
    return ",".join(_quoted(cell) for cell in cells) + "\n"


def _quoted(cell: str) -> str:
    # the csv module leaves a lone carriage return bare where lines end in a newline, and then cannot read it
    if set(cell) & _SPECIAL or cell != cell.strip():
        return '"' + cell.replace('"', '""') + '"'
    return cell


def read_rows(source: str, required: Sequence[str], *, bom: bool = False) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file in UTF-8, whose first line names the columns, in any order and case; blank lines skipped.

    Args:
        source: the file's path.
        required: columns that must be there, lower case.
        bom: pass over the byte order mark that spreadsheets put before UTF-8, instead of refusing it.

    Yields:
        (line, cells): the line on which the row starts, from 1, and its cells by lower-case column name, exactly as
        they are.

    Raises:
        ManifestError: with the file and the line: no such file, a column is missing or there twice, a row is longer
            or shorter than the first line, a line is too long, no UTF-8 or no CSV, or there is a byte order mark.
    """
    try:
        size = os.path.getsize(source)
        if size > MAX_FILE:
            raise ManifestError(
                f"{source}: such a file has at most {MAX_FILE >> 20} MiB, this one has {size >> 20} MiB"
            )
        with open(source, "rb") as file:
            yield from _rows(file, source, required, bom)
    except OSError as error:
        raise ManifestError(f"{source}: the file cannot be read: {error.strerror or error}") from None


def _rows(file: BinaryIO, source: str, required: Sequence[str], bom: bool) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(_lines(file, source, bom), strict=True)
    columns: list[str] = []
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = _header(cells, f"{source}, line {start}", required)
                continue
            if len(cells) != len(columns):
                raise ManifestError(
                    f"{source}, line {start}: the first line names {len(columns)} columns, "
                    f"but this one has {len(cells)}"
                )
            yield start, dict(zip(columns, cells, strict=True))
    except csv.Error as error:
        raise ManifestError(f"{source}, line {reader.line_num}: this is no CSV: {error}") from None


def _lines(file: BinaryIO, source: str, bom: bool) -> Iterator[str]:
    """The file's lines as text, none held in memory beyond the longest one allowed."""
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        where = f"{source}, line {number}"
        if number == 1:
            if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise ManifestError(f"{where}: the file is UTF-16; save it as CSV in UTF-8")
            if raw.startswith(BOM_UTF8) and not bom:
                raise ManifestError(
                    f"{where}: the file begins with a byte order mark (BOM), as spreadsheets write it; save it "
                    'without one: in an editor with the encoding "UTF-8", not "UTF-8 with BOM"'
                )
            raw = raw.removeprefix(BOM_UTF8)
        if len(raw) > MAX_LINE:
            raise ManifestError(f"{where}: a line has at most {MAX_LINE} bytes, and this one is longer")
        if b"\0" in raw:
            raise ManifestError(f"{where}: the line holds a NUL byte; save the file as CSV in UTF-8")
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ManifestError(f"{where}: byte {error.start + 1} is no UTF-8; save the file as CSV in UTF-8") from None


def _header(cells: list[str], where: str, required: Sequence[str]) -> list[str]:
    names = [cell.strip().casefold() for cell in cells]
    for name in required:
        if names.count(name) != 1:
            problem = "missing" if name not in names else "there twice"
            found = ", ".join(repr(cell[:40]) for cell in cells[:10])
            hint = "; the columns are separated by ',' only" if len(cells) == 1 and ";" in cells[0] else ""
            raise ManifestError(
                f"{where}: column {name!r} is {problem}; needed are {', '.join(required)}; found {found}{hint}"
            )
    return names
