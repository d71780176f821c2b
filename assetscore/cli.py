"""The command line. Results on stdout, progress and remarks on stderr.

Exit codes of score and batch: 0 all pass, 1 something failed or could not be read, 2 wrong use or nothing to score.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .cli_batch import batch, output
from .cli_common import (
    AlphaOption,
    JsonOption,
    KOption,
    ProfileOption,
    RuleOption,
    bar,
    check_out,
    exit_with,
    load_scorer,
    print_json,
    remark,
    stdout,
)
from .config import DEFAULT_ENCODER, DEFAULT_PROFILE, Config
from .errors import AssetscoreError
from .studies.cli import register

if TYPE_CHECKING:
    from .profile import Profile
    from .results import Score

app = typer.Typer(
    name="assetscore",
    help="Does a new game texture belong to a game's art?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts in half the time
)
profile_app = typer.Typer(help="Build, show and list profiles: what assets are scored against.", no_args_is_help=True)
app.add_typer(profile_app, name="profile")


@app.command()
def score(
    files: Annotated[list[Path], typer.Argument(help="Image files.", metavar="FILE...")],
    category: Annotated[str, typer.Option("--category", "-c", help="What they are compared under: item, block ...")],
    request: Annotated[str | None, typer.Option(help='What they should show: "ruby sword".')] = None,
    profile: ProfileOption = DEFAULT_PROFILE,
    alpha: AlphaOption = None,
    k: KOption = None,
    rule: RuleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score image files against a profile."""
    scorer = load_scorer(profile, alpha, k, rule)
    if request and not scorer.profile.conditional:
        remark(f"encoder {scorer.profile.encoder_name} ignores the request: style is checked alone")
    scores = scorer.score_many([(str(file), category, request) for file in files])
    if as_json:
        print_json([result.to_dict() for result in scores])
    else:
        _print_scores(scores)
    exit_with([result.passed for result in scores])


app.command()(batch)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and the results.")] = Path("demo-report"),
    profile: ProfileOption = DEFAULT_PROFILE,
    as_json: JsonOption = False,
) -> None:
    """Score the shipped demo submissions and write the report with pictures."""
    from .demo import run_demo

    check_out(out)
    scorer = load_scorer(profile, None, None, None)
    with bar("Scoring", None) as progress:
        result = run_demo(scorer, progress)
    output(result.table, {"": scorer}, out, "group", "text", as_json, True, "Demo submissions", extra=result.to_dict())
    if not as_json:
        console = stdout()
        console.print()
        for line in result.lines():
            console.print(line, highlight=False)
        console.print(f"\nReport: {out / 'report.html'}", highlight=False, soft_wrap=True)


@app.command()
def encoders(as_json: JsonOption = False) -> None:
    """List the encoders: licence, conditional or not, what is installed, what a first use would download."""
    from importlib.util import find_spec

    from .encoders import available

    rows = []
    for info in available():
        missing = [package for package in info.requires if find_spec(package) is None]
        install = f'pip install "assetscore[{info.extra}]"' if info.extra else f"pip install {' '.join(missing)}"
        rows.append(
            {
                "name": info.name,
                "summary": info.summary,
                "licence": info.licence,
                "conditional": info.conditional,
                "installed": not missing,
                "install": install if missing else "",
                "size": info.size,
                "default": info.name == DEFAULT_ENCODER,
            }
        )
    if as_json:
        return print_json(rows)
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("encoder", "conditional", "licence", "installed", "first use", "what it is"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        name = f"{row['name']} (default)" if row["default"] else str(row["name"])
        installed = "yes" if row["installed"] else str(row["install"])
        conditional = "yes" if row["conditional"] else "no"
        table.add_row(name, conditional, str(row["licence"]), installed, str(row["size"]), str(row["summary"]))
    stdout().print(table)


@profile_app.command("build")
def profile_build(
    references: Annotated[Path, typer.Argument(help="A folder of category subfolders, or with an index.csv.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write [the user's data folder / name]")] = None,
    name: Annotated[str | None, typer.Option(help="Name to load it by [the folder's]")] = None,
    encoder: Annotated[str, typer.Option(help="See `assetscore encoders`.")] = DEFAULT_ENCODER,
    factor: Annotated[
        list[str] | None, typer.Option(help="Factor to prepare; repeat. First style, then semantic.")
    ] = None,
    game: Annotated[str | None, typer.Option(help="minecraft or terraria: read the game's own files.")] = None,
    k: Annotated[int, typer.Option(help="Nearest references to compare with.")] = Config.k,
    alpha: Annotated[float, typer.Option(help="Share of good assets that may be rejected.")] = Config.alpha,
    rule: Annotated[str, typer.Option(help="conformal or linear.")] = Config.rule,
    families: Annotated[bool, typer.Option(help="Leave a reference's whole family out together.")] = Config.families,
    as_json: JsonOption = False,
) -> None:
    """Embed and calibrate a reference set, and save it as a profile."""
    from .factors import OBJECT, STYLE
    from .folders import data_folder
    from .profile import Profile
    from .references import ReferenceSet

    readers = {
        None: ReferenceSet.from_folder,
        "minecraft": ReferenceSet.from_minecraft,
        "terraria": ReferenceSet.from_terraria,
    }
    if game not in readers:
        raise typer.BadParameter(f"expected minecraft or terraria, got {game!r}", param_hint="--game")
    if name is not None and Path(name).name != name:
        raise typer.BadParameter(f"a name cannot be a path, got {name!r}", param_hint="--name")
    refs = readers[game](references)
    name = name or refs.name
    if families and not any(reference.family for reference in refs):
        remark("no families are known (column family of an index.csv): variants of one drawing vouch for each other")
    with bar("Embedding", len(refs)) as progress:
        built = Profile.build(
            refs,
            encoder,
            factor or (STYLE, OBJECT),
            k,
            alpha,
            rule=rule,  # type: ignore[arg-type]  # Config checks it
            families=families,
            name=name,
            progress=lambda done, _: progress(done),
        )
    target = out or data_folder() / name
    built.save(target)
    _show(built, target, as_json)


@profile_app.command("show")
def profile_show(
    profile: Annotated[str, typer.Argument(help="A profile's name or folder.")] = DEFAULT_PROFILE,
    as_json: JsonOption = False,
) -> None:
    """Show what a profile holds and the thresholds it sets."""
    from .folders import find_profile
    from .profile import Profile

    _show(Profile.load(profile), find_profile(profile), as_json)


@profile_app.command("list")
def profile_list(as_json: JsonOption = False) -> None:
    """List the profiles that can be loaded by name."""
    from .folders import named_profiles

    found = {name: str(path) for name, path in named_profiles().items()}
    if as_json:
        return print_json(found)
    for name, path in found.items():
        stdout().print(f"{name}  {path}", highlight=False, soft_wrap=True, markup=False)


register(app)


def _show(profile: Profile, folder: Path, as_json: bool) -> None:
    from .store import thresholds
    from .summary import leave_one_out_row

    rows = thresholds(profile)
    row = leave_one_out_row(profile).to_dict()
    if as_json:
        return print_json(
            {
                "name": profile.name,
                "folder": str(folder),
                "encoder": profile.encoder_fingerprint,
                "fingerprint": profile.fingerprint,
                "config": profile.config.to_dict(),
                "categories": profile.categories,
                "duplicates": profile.references.duplicates,
                "skipped": [list(pair) for pair in profile.references.skipped],
                "thresholds": rows,
                "leave_one_out": row,
            }
        )
    from rich.table import Table

    console = stdout()
    console.print(f"{profile.name}  {folder}", highlight=False, soft_wrap=True, markup=False)
    console.print(f"encoder {profile.encoder_fingerprint}", highlight=False, soft_wrap=True, markup=False)
    refs = profile.references
    doubles = sum(len(ids) for ids in refs.duplicates.values())
    console.print(
        f"{len(refs)} references; {doubles} exact duplicates collapsed, {len(refs.skipped)} files skipped",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("category", "factor", "references", "n", "k", "tau", "95 % interval"):
        table.add_column(heading, justify="left" if heading in ("category", "factor") else "right")
    for line in rows:
        low, high = ("-" if x is None else f"{x:.4f}" for x in line["tau_interval_95"])
        tau = "uncalibrated" if line["tau"] is None else f"{line['tau']:.4f}"
        table.add_row(
            line["category"],
            line["factor"],
            str(line["references"]),
            str(line["n"]),
            str(line["k"]),
            tau,
            f"{low} {high}",
        )
    console.print(table)
    rate = row["pass_style"]["value"]
    if rate is not None:
        console.print(f"leave-one-out: {rate:.3f} of the references pass the style check", highlight=False)


def _print_scores(scores: Sequence[Score]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("verdict", "asset", "check", "S", "tau", "margin", "p", "nearest", "why"):
        table.add_column(
            heading, overflow="fold", justify="right" if heading in ("S", "tau", "margin", "p") else "left"
        )
    verdicts = {True: ("pass", "green"), False: ("fail", "red"), None: ("-", "yellow")}
    for result in scores:
        word, colour = verdicts[result.passed]
        reason = result.reason + (" (borderline)" if result.borderline else "")
        for check in (result.style, result.semantic):
            if check is None:
                continue
            first = check is result.style
            numbers = [
                "-" if x is None else f"{x:.3f}"
                for x in (check.similarity, check.threshold, check.margin, check.p_value)
            ]
            table.add_row(
                Text(word if first else "", style=colour),
                Text(result.asset_id if first else ""),
                Text(check.factor),
                *numbers,
                Text(check.neighbours[0].reference if check.neighbours else "-"),
                Text(reason if first else ""),
            )
    stdout().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the library's errors become one line on stderr and exit code 2."""
    logging.basicConfig(level=logging.WARNING, format="assetscore: %(message)s", stream=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files are not always text
    try:
        app(list(arguments) if arguments is not None else None)
    except (AssetscoreError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            os._exit(1)  # who read stdout is gone
        sys.stderr.write(f"assetscore: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
