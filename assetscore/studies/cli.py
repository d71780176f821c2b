"""The commands of the studies: sweep, agree, compare, and study make, serve, export and coherence.

`register` adds them to the command line. Results on stdout, remarks on stderr. Exit codes: 0, and 2 for wrong use; 1
where `study coherence` had to leave assets out.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import DEFAULT_ENCODER, DEFAULT_PROFILE, TOP, Config
from ..errors import UsageError

if TYPE_CHECKING:
    from ..table import ResultTable

__all__ = ["register"]

study_app = typer.Typer(
    help="Ask people: make a study, serve its page, export the votes; coherence of a set.", no_args_is_help=True
)

ANSWERS_FILE = "answers.sqlite"
TableArgument = typer.Argument(help="Results: .parquet, .csv or .json.", exists=True, dir_okay=False)
FormatOption = Annotated[str, typer.Option(help="Tables on stdout: text, markdown, csv or latex.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LevelOption = Annotated[float, typer.Option(help="Level of the intervals.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the bootstrap.")]
ByOption = Annotated[str, typer.Option(help="Column that names a task or a model: group, category, game.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line's own."""
    app.command("sweep")(sweep)
    app.command("agree")(agree)
    app.command("compare")(compare)
    app.add_typer(study_app, name="study")


def sweep(
    results: Annotated[Path | None, typer.Argument(help="Results; none: the references alone.", exists=True)] = None,
    profile: Annotated[
        str, typer.Option(help="The profile they were scored with, or its saved calibrations.")
    ] = DEFAULT_PROFILE,
    votes: Annotated[Path | None, typer.Option(help="Votes, for agreement at each alpha.", exists=True)] = None,
    alpha: Annotated[list[float] | None, typer.Option(help="An alpha to try; repeat [0.01 ... 0.25].")] = None,
    k: Annotated[list[int] | None, typer.Option(help=f"A k to try, up to {TOP}; repeat [1, 3, 5, 10, 20].")] = None,
    base_alpha: Annotated[float | None, typer.Option(help="The alpha to compare with [the profile's].")] = None,
    base_k: Annotated[int | None, typer.Option(help="The k to compare with [the profile's].")] = None,
    plot: Annotated[Path | None, typer.Option(help="Folder for alpha.png and k.png.")] = None,
    format: FormatOption = "text",
    as_json: JsonOption = False,
) -> None:
    """Judge the same results for every alpha and k, without embedding again."""
    from ..profile import Profile
    from .saved import SUFFIX, SavedCalibrations
    from .sweep import ALPHAS, KS
    from .sweep import sweep as run
    from .tables import alpha_table, k_table
    from .votes import read_votes

    table = None if results is None else _read(results)
    answers = None if votes is None else read_votes(votes)
    if answers is not None and table is None:
        raise UsageError("votes need results to be held against: name the results file")
    loaded = SavedCalibrations.load(profile) if profile.endswith(SUFFIX) else Profile.load(profile)
    rows = () if table is None else table.rows
    swept = run(loaded, rows, answers, alphas=alpha or ALPHAS, ks=k or KS, alpha=base_alpha, k=base_k)
    if plot is not None:
        from .figures import plot_alpha, plot_k, save_figure

        plot.mkdir(parents=True, exist_ok=True)
        save_figure(plot_alpha(swept), plot / "alpha.png")
        save_figure(plot_k(swept), plot / "k.png")
        _remark(f"figures: {plot / 'alpha.png'}, {plot / 'k.png'}")
    if as_json:
        return _print_json(swept.to_dict())
    sys.stdout.write(f"alpha, at k = {swept.k}\n" if format == "text" else "")
    sys.stdout.write(alpha_table(swept, format))  # type: ignore[arg-type]  # checked there
    sys.stdout.write(f"\nk, at alpha = {swept.alpha:g}\n" if format == "text" else "\n")
    sys.stdout.write(k_table(swept, format))  # type: ignore[arg-type]


def agree(
    votes: Annotated[Path, typer.Argument(help="CSV: asset, rater, question, answer.", exists=True, dir_okay=False)],
    results: Annotated[list[Path], TableArgument],
    level: LevelOption = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", min=1)] = 2000,
    seed: SeedOption = 0,
    format: FormatOption = "text",
    as_json: JsonOption = False,
) -> None:
    """Hold results of one or more encoders against people's votes."""
    from .agreement import agreement, compare_encoders
    from .tables import agreement_table, raters_table
    from .votes import read_votes

    answers = read_votes(votes)
    tables = [_read(path) for path in results]
    settings: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    studies = [agreement(answers, table, **settings) for table in tables]
    pairs = [
        (question, other, compare_encoders(answers, tables[0], tables[other], question, **settings))
        for other in range(1, len(tables))
        for question in answers.questions
    ]
    if as_json:
        return _print_json(
            {
                "results": [
                    {"file": str(path), **study.to_dict()} for path, study in zip(results, studies, strict=True)
                ],
                "paired": [{"question": q, "first": 0, "second": i, **pair.to_dict()} for q, i, pair in pairs],
            }
        )
    sys.stdout.write(agreement_table(studies, format))  # type: ignore[arg-type]  # checked there
    sys.stdout.write("\n" + raters_table(studies[0], format))  # type: ignore[arg-type]
    for question, other, pair in pairs:
        p = f"DeLong p = {pair.p_value:.3g}" if not math.isnan(pair.p_value) else pair.difference.reason
        _remark(
            f"{question}: AUROC of {results[0].name} minus {results[other].name}: {pair.difference}, {p}; "
            f"bootstrap {pair.bootstrap}; {pair.first.n} assets that both scored"
        )
    for line in dict.fromkeys(_reasons(studies)):
        _remark(line)


def compare(
    results: Annotated[list[Path], TableArgument],
    by: ByOption = "group",
    measure: Annotated[str, typer.Option(help="pass_style, pass_sem, pass_both or custom.")] = "pass_both",
    page: Annotated[Path | None, typer.Option(help="HTML page with the pictures of what changed.")] = None,
    aim: Annotated[str | None, typer.Option(help="Keep the best of several builds by this measure.")] = None,
    gain: Annotated[float, typer.Option(help="What a new best must gain on the aim.")] = 0.05,
    loss: Annotated[float, typer.Option(help="What it may lose on every other measure.")] = 0.05,
    patience: Annotated[int, typer.Option(help="Builds without a new best before stopping.", min=1)] = 3,
    level: LevelOption = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", min=1)] = 20_000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare two builds by asset and by task, or two encoders by their order; with --aim, keep the best of several."""
    tables = [_read(path) for path in results]
    if aim is not None:
        return _keep_best(results, tables, aim, gain, loss, patience, as_json)
    if len(tables) != 2:
        raise UsageError(f"compare takes two results, or several with --aim; got {len(tables)}")
    from .compare import compare_builds, compare_methods, compare_orders, write_page

    first, second = tables
    encoders = [{row.encoder for row in table if row.encoder} for table in tables]
    if all(encoders) and encoders[0] != encoders[1]:
        order = compare_orders(first, second, measure, by)
        if as_json:
            return _print_json({"kind": "encoders", "measure": measure, "by": by, "order": order.to_dict()})
        if order.reason:
            _out(f"two encoders, {order.models} in common by {by}: {order.reason}")
        else:
            _out(
                f"two encoders, {measure} by {by}: Spearman {order.spearman:.3f}, Kendall {order.kendall:.3f}; "
                f"{order.same_order:.0%} of the pairs of {order.models} in the same order; best {', '.join(order.best)}"
            )
        return None
    settings: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    builds = compare_builds(first, second, **settings)
    methods = compare_methods(first, second, measure, by, **settings) if _shared(tables, by) else None
    if page is not None:
        write_page(builds, page, f"{results[0].name} and {results[1].name}")
        _remark(f"page: {page}")
    if as_json:
        tasks = None if methods is None else methods.to_dict()
        return _print_json({"kind": "builds", "builds": builds.to_dict(), "tasks": tasks})
    counts = ", ".join(f"{len(builds.of(kind))} {kind}" for kind in ("changed", "gained", "lost", "same"))
    _out(f"assets: {counts}")
    for name in builds.before:
        _out(f"{name:10}  {_number(builds.before[name])} -> {_number(builds.after.get(name))}")
    for name, result in builds.margins.items():
        if result is not None:
            _out(f"{name} S - tau over {result.difference.n} assets: {_paired(result)}")
    if methods is not None:
        _out(f"{measure} over {len(methods.tasks)} of {by}: {_paired(methods.result)}")
    for change in builds.changes:
        if change.kind != "same":
            _out(f"{change.kind:8}  {change.asset_id}  {'; '.join(change.what)}".rstrip())
    return None


def _keep_best(
    paths: list[Path], tables: list[ResultTable], aim: str, gain: float, loss: float, patience: int, as_json: bool
) -> None:
    from .compare import keep_best, measures

    rates = [measures(table) for table in tables]
    result = keep_best(rates, aim, gain=gain, loss=loss, patience=patience)
    if as_json:
        builds = [{"file": str(p), **{n: _plain(v) for n, v in r.items()}} for p, r in zip(paths, rates, strict=True)]
        return _print_json({"kind": "keep best", "builds": builds, **result.to_dict()})
    for path, rate, step in zip(paths, rates, result.steps, strict=True):
        _out(f"{step.decision:11}  {path.name}  {aim} {_number(rate[aim])}  ({step.reason})")
    _out(f"keep {paths[result.best].name}")


@study_app.command("make")
def make(
    results: Annotated[Path, TableArgument],
    folder: Annotated[Path, typer.Argument(help="The study's folder to write.")],
    profile: Annotated[str, typer.Option(help="The profile they were scored with.")] = DEFAULT_PROFILE,
    n: Annotated[int, typer.Option("-n", help="How many textures to show.", min=1)] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a study's folder from results: some of their textures, and the game's own art beside."""
    from ..profile import Profile
    from .rating.make import make_study

    drawn = make_study(_read(results), Profile.load(profile), folder, n, seed)
    if as_json:
        return _print_json({"folder": str(folder), "assets": [row.asset_id for row in drawn]})
    _out(f"{len(drawn)} textures of {len({row.group for row in drawn})} groups in {folder}")
    return None


@study_app.command("serve")
def serve(
    folder: Annotated[Path, typer.Argument(help="manifest.csv or textures/CATEGORY/, and references/CATEGORY/.")],
    references: Annotated[Path | None, typer.Option(help="The game's own art by category [FOLDER/references].")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others can take part on any but this one.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    as_json: JsonOption = False,
) -> None:
    """Serve the rating page. Answers go to FOLDER/answers.sqlite; Ctrl-C ends it, nothing is lost."""
    from .rating.app import serve as run
    from .rating.store import Store
    from .rating.study import read_study

    study = read_study(folder, references)

    def ready(url: str) -> None:
        if as_json:
            _print_json({"url": url, "textures": len(study.items), "answers": str(folder / ANSWERS_FILE)})
        else:
            _out(f"{url}  ({len(study.items)} textures; Ctrl-C ends it)")
        sys.stdout.flush()

    logging.getLogger("waitress").setLevel(logging.ERROR)  # its queue remarks would bury ours
    run(study, Store(folder / ANSWERS_FILE), host, port, ready=ready)


@study_app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(help="The study's folder.", exists=True, file_okay=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Votes file to write [stdout].")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the answers so far as a votes file (CSV: asset, rater, question, answer)."""
    from .rating.store import Store
    from .votes import votes_csv, write_votes

    votes = Store(folder / ANSWERS_FILE, create=False).votes()
    raters = len({vote.rater for vote in votes})
    if out is not None:
        write_votes(out, votes)
    if as_json:
        names = ("asset", "rater", "question", "answer")
        return _print_json([{name: getattr(vote, name) for name in names} for vote in votes])
    if out is None:
        sys.stdout.write(votes_csv(votes))
    _remark(f"{len(votes)} answers of {raters} raters" + (f" in {out}" if out is not None else ""))
    return None


@study_app.command("coherence")
def coherence(
    folder: Annotated[Path, typer.Argument(help="Textures, in subfolders too.", exists=True, file_okay=False)],
    encoder: Annotated[str, typer.Option(help="See `assetscore encoders`.")] = DEFAULT_ENCODER,
    k: Annotated[int, typer.Option(help="Nearest others to compare with.", min=1)] = Config.k,
    show: Annotated[int, typer.Option(help="How many of the odd ones to list.", min=1)] = 20,
    as_json: JsonOption = False,
) -> None:
    """Score a set of textures against itself, for a game without vanilla art; the odd ones out first."""
    from ..batch import walk_folder
    from .coherence import coherence as run

    items = walk_folder(folder, (), "")
    if not items:
        raise UsageError(f"{folder}: there is no image file")
    result = run([(item.asset_id, item.path) for item in items], encoder, k=k)
    if as_json:
        _print_json(result.to_dict())
    else:
        _out(
            f"{len(result.members)} textures, {result.groups} different; "
            f"mean similarity to the {result.k} nearest others"
        )
        _out(f"{result.mean:.3f}, median {result.median:.3f}, under {result.encoder}")
        for member in result.members[:show]:
            z = "" if math.isnan(member.z) else f"  z {member.z:+.1f}"
            _out(f"{member.similarity:.3f}{z}  {member.asset_id}")
    for asset_id, reason in result.skipped:
        _remark(f"left out: {asset_id}: {reason}")
    if result.skipped:
        raise typer.Exit(1)


def _read(path: Path) -> ResultTable:
    from ..table import ResultTable

    return ResultTable.read(path)


def _shared(tables: list[ResultTable], by: str) -> bool:
    names = [{getattr(row, by, "") for row in table} for table in tables]
    return len(names[0] & names[1]) > 1


def _reasons(studies: list[Any]) -> list[str]:
    lines = []
    for study in studies:
        for part in study.questions:
            where = f"{study.encoder or 'results'}, {part.question}"
            named = {
                "AUROC": part.auroc,
                "alpha": part.alpha,
                "ordinal alpha": part.alpha_ordinal,
                "verdicts": part.verdicts,
            }
            lines += [f"{where}: {name}: {value.reason}" for name, value in named.items() if value.reason]
            if part.without_score:
                lines.append(f"{where}: {part.without_score} assets with a majority have no score")
            if part.without_verdict:
                lines.append(f"{where}: {part.without_verdict} assets with a majority have no verdict")
    return lines


def _paired(result: Any) -> str:
    p = result.reason if math.isnan(result.wilcoxon_p) else f"Wilcoxon p = {result.wilcoxon_p:.3g}"
    return f"mean change {result.difference}; {result.wins} higher, {result.losses} lower, {result.ties} equal; {p}"


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _out(line: str) -> None:
    # names come from strangers: nothing in them may move the cursor
    sys.stdout.write("".join(c if c.isprintable() else "\ufffd" for c in line) + "\n")


def _remark(line: str) -> None:
    sys.stderr.write("assetscore: " + "".join(c if c.isprintable() else "\ufffd" for c in line) + "\n")


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
