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


@contextmanager
def bar(label: str, total: int | None) -> Iterator[Any]:
    """A progress bar on stderr; gives the function that is told how many are done (and of how many)."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done, total=total: progress.update(task, completed=done, total=total)


def check_out(out: Path | None) -> None:
    """Tell before anything is scored that results cannot be written there."""
    if out is None:
        return
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        fail(f"--out {out}: {there} is no folder that can be written to")


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
