"""What the commands share: options, progress on stderr, results on stdout, exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from .config import Config

if TYPE_CHECKING:
    from rich.console import Console

    from .scorer import Scorer

ProfileOption = Annotated[str, typer.Option(help="A profile's name or folder.")]
AlphaOption = Annotated[
    float | None, typer.Option(help=f"Share of good assets that may be rejected [profile's; {Config.alpha}]")
]
KOption = Annotated[int | None, typer.Option(help=f"Nearest references to compare with [profile's; {Config.k}]")]
RuleOption = Annotated[str | None, typer.Option(help="conformal (the guarantee) or linear (published tables)")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def load_scorer(profile: str, alpha: float | None, k: int | None, rule: str | None) -> Scorer:
    from .scorer import Scorer

    return Scorer.load(profile, alpha=alpha, k=k, rule=rule)  # type: ignore[arg-type]  # Config checks the rule


def stdout() -> Console:
    from rich.console import Console

    # Piped output is not wrapped to a terminal's width.
    return Console(width=None if sys.stdout.isatty() else 200)


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def one_format(format: str, as_json: bool) -> None:
    """Refuse two formats for one output.

    Raises:
        typer.BadParameter: --json beside a --format.
    """
    if as_json and format != "text":
        raise typer.BadParameter(f"--json prints JSON and no {format}: leave one of them out", param_hint="--format")


@contextmanager
def bar(label: str, total: int | None) -> Iterator[Any]:
    """A progress bar on stderr; gives the function that is told how many are done (and of how many)."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done, total=total: progress.update(task, completed=done, total=total)


RESULTS = (
    *("results.parquet", "results.csv", "summary.csv", "ablation.csv"),
    *(f"report{game}.html" for game in ("", "-minecraft", "-terraria", "-folders")),
)
"""The files that a batch may write into its folder."""


def check_out(out: Path | None) -> None:
    """Tell before anything is scored that results cannot be written there."""
    if out is None:
        return
    try:
        there = next(path for path in (out, *out.absolute().parents) if _is_there(path))
        writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
        folder = next((out / name for name in RESULTS if (out / name).is_dir()), None) if writable else None
        parts = out / "parts"
        kept = parts if writable and _is_there(parts) else there
    except (OSError, ValueError) as error:
        fail(f"--out {out}: {getattr(error, 'strerror', None) or error}")
    if not writable or not kept.is_dir() or not os.access(kept, os.W_OK | os.X_OK):
        fail(f"--out {out}: {there if not writable else kept} is no folder that can be written to")
    if folder is not None:
        fail(f"--out {out}: {folder} is a folder, and a file is to be written there")


def _is_there(path: Path) -> bool:
    """Is there anything, be it a link that leads nowhere? Raises an OSError where that cannot be told."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def remark(message: str) -> None:
    sys.stderr.write(f"assetscore: {message}\n")


def exit_with(verdicts: Sequence[bool | None]) -> None:
    if not verdicts:
        fail("nothing to score")
    if any(verdict is False for verdict in verdicts):
        raise typer.Exit(1)


def fail(message: str) -> NoReturn:
    sys.stderr.write(f"assetscore: {message}\n")
    raise typer.Exit(2)
