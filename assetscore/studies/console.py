"""What the studies' commands share: results on stdout, remarks on stderr, no name that moves the cursor."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..table import ResultTable

__all__ = ["JsonOption", "TableArgument", "out", "print_json", "read_results", "remark"]

TableArgument = typer.Argument(help="Results: .parquet, .csv or .json.", exists=True, dir_okay=False)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def read_results(path: Path) -> ResultTable:
    from ..table import ResultTable

    return ResultTable.read(path)


def out(line: str) -> None:
    # names come from strangers: nothing in them may move the cursor
    sys.stdout.write("".join(c if c.isprintable() else "\ufffd" for c in line) + "\n")


def remark(line: str) -> None:
    sys.stderr.write("assetscore: " + "".join(c if c.isprintable() else "\ufffd" for c in line) + "\n")


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
