"""What the studies' commands share: results on stdout, remarks on stderr, no name that moves the cursor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..cli_common import JsonOption, one_format, print_json
from ..text import printable

if TYPE_CHECKING:
    from ..table import ResultTable

__all__ = ["JsonOption", "TableArgument", "one_format", "out", "print_json", "read_results", "remark"]

TableArgument = typer.Argument(help="Results: .parquet, .csv or .json.", exists=True, dir_okay=False)


def read_results(path: Path) -> ResultTable:
    from ..table import ResultTable

    return ResultTable.read(path)


def out(line: str) -> None:
    # names come from strangers: nothing in them may move the cursor
    sys.stdout.write(printable(line) + "\n")


def remark(line: str) -> None:
    sys.stderr.write(f"assetscore: {printable(line)}\n")
