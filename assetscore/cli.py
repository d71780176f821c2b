"""The command line. Results on stdout, progress and remarks on stderr.

Exit codes of score and batch: 0 all pass, 1 something failed or could not be read, 2 wrong use or nothing to score.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .config import DEFAULT_ENCODER, DEFAULT_PROFILE, Config
from .errors import AssetscoreError

if TYPE_CHECKING:
    from rich.console import Console

    from .profile import Profile
    from .results import Score
    from .table import ResultTable

app = typer.Typer(
    name="assetscore",
    help="Does a new game texture belong to a game's art?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
profile_app = typer.Typer(help="Build, show and list profiles: what assets are scored against.", no_args_is_help=True)
app.add_typer(profile_app, name="profile")

ProfileOption = Annotated[str, typer.Option(help="A profile's name or folder.")]
AlphaOption = Annotated[
    float | None, typer.Option(help=f"Share of good assets that may be rejected [profile's; {Config.alpha}]")
]
KOption = Annotated[int | None, typer.Option(help=f"Nearest references to compare with [profile's; {Config.k}]")]
RuleOption = Annotated[str | None, typer.Option(help="conformal (the guarantee) or linear (published tables)")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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
    scorer = _scorer(profile, alpha, k, rule)
    scores = scorer.score_many([(str(file), category, request) for file in files])
    if as_json:
        _print_json([result.to_dict() for result in scores])
    else:
        _print_scores(scores)
    _exit([result.passed for result in scores])


@app.command()
def batch(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Folders with category subfolders, or CSV/JSONL manifests.", metavar="SOURCE..."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.parquet, .csv, summary.csv, report.html.")
    ] = None,
    profile: ProfileOption = DEFAULT_PROFILE,
    by: Annotated[str, typer.Option(help="Column that the summary groups by: group, category, game.")] = "group",
    group: Annotated[
        str | None, typer.Option(help="Name for the assets, such as a model's [the source's name]")
    ] = None,
    requests: Annotated[str | None, typer.Option(help='"ids": the words of each id are its request.')] = None,
    format: Annotated[str, typer.Option(help="Summary on stdout: text, markdown, csv or latex.")] = "text",
    alpha: AlphaOption = None,
    k: KOption = None,
    rule: RuleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score every texture of submissions and print the summary table."""
    from dataclasses import replace

    from .batch import find_assets, run
    from .factors import words_of_id

    if requests not in (None, "ids"):
        raise typer.BadParameter(f"expected ids, got {requests!r}", param_hint="--requests")
    scorer = _scorer(profile, alpha, k, rule)
    items = []
    for source in sources:
        name = group if group is not None else source.resolve().stem
        items += find_assets(source, scorer.profile.categories, name)
    if requests == "ids":
        items = [replace(item, request=item.request or words_of_id(item.asset_id) or None) for item in items]
    if not items:
        _fail(f"nothing to score: no image file in {', '.join(map(str, sources))}")
    with _bar("Scoring", len(items)) as progress:
        table = run(scorer, items, progress=progress)
    _output(table, scorer.profile, out, by, format, as_json, title=f"{len(items)} assets")
    _exit([row.both_pass for row in table])


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and the results.")] = Path("demo-report"),
    profile: ProfileOption = DEFAULT_PROFILE,
    as_json: JsonOption = False,
) -> None:
    """Score the shipped demo submissions and write the report with pictures."""
    from .demo import run_demo

    scorer = _scorer(profile, None, None, None)
    with _bar("Scoring", None) as progress:
        result = run_demo(scorer, progress)
    _output(result.table, scorer.profile, out, "group", "text", as_json, "Demo submissions", extra=result.to_dict())
    if not as_json:
        console = _stdout()
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
        return _print_json(rows)
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("encoder", "conditional", "licence", "installed", "first use", "what it is"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        name = f"{row['name']} (default)" if row["default"] else str(row["name"])
        installed = "yes" if row["installed"] else str(row["install"])
        conditional = "yes" if row["conditional"] else "no"
        table.add_row(name, conditional, str(row["licence"]), installed, str(row["size"]), str(row["summary"]))
    _stdout().print(table)


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
    from .profile import Profile
    from .references import ReferenceSet
    from .store import data_folder

    readers = {
        None: ReferenceSet.from_folder,
        "minecraft": ReferenceSet.from_minecraft,
        "terraria": ReferenceSet.from_terraria,
    }
    if game not in readers:
        raise typer.BadParameter(f"expected minecraft or terraria, got {game!r}", param_hint="--game")
    refs = readers[game](references)
    name = name or refs.name
    with _bar("Embedding", len(refs)) as progress:
        built = Profile.build(
            refs,
            encoder,
            factor or (STYLE, OBJECT),
            k,
            alpha,
            rule=rule,  # type: ignore[arg-type]  # Config checks it
            families=families,
            name=name,
            progress=(lambda done, _: progress(done)) if progress else None,
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
    from .profile import Profile
    from .store import find

    _show(Profile.load(profile), find(profile), as_json)


@profile_app.command("list")
def profile_list(as_json: JsonOption = False) -> None:
    """List the profiles that can be loaded by name."""
    from .store import named_profiles

    found = {name: str(path) for name, path in named_profiles().items()}
    if as_json:
        return _print_json(found)
    for name, path in found.items():
        _stdout().print(f"{name}  {path}", highlight=False, soft_wrap=True, markup=False)


def _scorer(profile: str, alpha: float | None, k: int | None, rule: str | None) -> Any:
    from .scorer import Scorer

    return Scorer.load(profile, alpha=alpha, k=k, rule=rule)  # type: ignore[arg-type]  # Config checks the rule


def _output(
    table: ResultTable,
    profile: Profile,
    out: Path | None,
    by: str,
    format: str,
    as_json: bool,
    title: str,
    extra: dict[str, Any] | None = None,
) -> None:
    """The summary on stdout, and everything in the folder `out`."""
    from .report import render, write_report
    from .summary import summarise

    summary = summarise(table, by, profile)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        table.write(out / "results.parquet")
        table.write(out / "results.csv")
        (out / "summary.csv").write_text(render(summary, "csv"), encoding="utf-8")
        write_report(table, out / "report.html", profile=profile, title=title)
    if as_json:
        _print_json({"summary": [row.to_dict() for row in summary], "rows": table.to_dicts(), **(extra or {})})
    else:
        sys.stdout.write(render(summary, format).rstrip() + "\n")  # type: ignore[arg-type]


def _show(profile: Profile, folder: Path, as_json: bool) -> None:
    from .store import thresholds
    from .summary import leave_one_out_row

    rows = thresholds(profile)
    row = leave_one_out_row(profile).to_dict()
    if as_json:
        return _print_json(
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

    console = _stdout()
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
    _stdout().print(table)


def _stdout() -> Console:
    from rich.console import Console

    # Piped output is not wrapped to a terminal's width.
    return Console(width=None if sys.stdout.isatty() else 200)


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


@contextmanager
def _bar(label: str, total: int | None) -> Iterator[Any]:
    """A progress bar on stderr; gives the function that is told how many are done."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.update(task, completed=done)


def _exit(verdicts: Sequence[bool | None]) -> None:
    if not verdicts:
        _fail("nothing to score")
    if any(verdict is False for verdict in verdicts):
        raise typer.Exit(1)


def _fail(message: str) -> None:
    sys.stderr.write(f"assetscore: {message}\n")
    raise typer.Exit(2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the library's errors become one line on stderr and exit code 2."""
    logging.basicConfig(level=logging.WARNING, format="assetscore: %(message)s", stream=sys.stderr)
    try:
        app(list(arguments) if arguments is not None else None)
    except AssetscoreError as error:
        sys.stderr.write(f"assetscore: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
