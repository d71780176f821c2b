"""The commands of the studies: sweep, agree, compare; `register` adds them and `study` to the command line.

Results on stdout, remarks on stderr. Exit codes: 0, and 2 for wrong use.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import DEFAULT_PROFILE, TOP
from ..errors import UsageError
from .console import JsonOption, TableArgument, out, print_json, read_results, remark
from .study_cli import study_app

if TYPE_CHECKING:
    from ..table import ResultTable

__all__ = ["register"]

FormatOption = Annotated[str, typer.Option(help="Tables on stdout: text, markdown, csv or latex.")]
LevelOption = Annotated[float, typer.Option(help="Level of the intervals.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the bootstrap.", min=0)]
ByOption = Annotated[str, typer.Option(help="Column that names a task or a model: group, task, category, game.")]


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

    table = None if results is None else read_results(results)
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
        remark(f"figures: {plot / 'alpha.png'}, {plot / 'k.png'}")
    if as_json:
        return print_json(swept.to_dict())
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
    tables = [read_results(path) for path in results]
    settings: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    studies = [agreement(answers, table, **settings) for table in tables]
    pairs = [
        (question, other, compare_encoders(answers, tables[0], tables[other], question, **settings))
        for other in range(1, len(tables))
        for question in answers.questions
    ]
    if as_json:
        return print_json(
            {
                "results": [
                    {"file": str(path), **study.to_dict()} for path, study in zip(results, studies, strict=True)
                ],
                "paired": [{"question": q, "first": 0, "second": i, **pair.to_dict()} for q, i, pair in pairs],
            }
        )
    sys.stdout.write(agreement_table(studies, format))  # type: ignore[arg-type]  # checked there
    sys.stdout.write("\n" + raters_table(studies[0], format))  # type: ignore[arg-type]
    names = _names(results)
    for question, other, pair in pairs:
        p = f"DeLong p = {pair.p_value:.3g}" if not math.isnan(pair.p_value) else pair.difference.reason
        remark(
            f"{question}: AUROC of {names[0]} minus {names[other]}: {pair.difference}, {p}; "
            f"bootstrap {pair.bootstrap}; {pair.first.n} assets that both scored"
        )
    for line in dict.fromkeys(_reasons(studies)):
        remark(line)


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
    tables = [read_results(path) for path in results]
    if aim is not None:
        return _keep_best(results, tables, aim, gain, loss, patience, as_json)
    if len(tables) != 2:
        raise UsageError(f"compare takes two results, or several with --aim; got {len(tables)}")
    from .compare import compare_builds, compare_methods, compare_orders
    from .page import write_page

    first, second = tables
    encoders = [{row.encoder for row in table if row.encoder} for table in tables]
    if all(encoders) and encoders[0] != encoders[1]:
        order = compare_orders(first, second, measure, by)
        if as_json:
            return print_json({"kind": "encoders", "measure": measure, "by": by, "order": order.to_dict()})
        if order.reason:
            out(f"two encoders, {order.models} in common by {by}: {order.reason}")
        else:
            out(
                f"two encoders, {measure} by {by}: Spearman {order.spearman:.3f}, Kendall {order.kendall:.3f}; "
                f"{order.same_order:.0%} of the pairs of {order.models} in the same order; best {', '.join(order.best)}"
            )
        return None
    settings: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    builds = compare_builds(first, second, **settings)
    methods = compare_methods(first, second, measure, by, **settings) if _shared(tables, by) else None
    if page is not None:
        write_page(builds, page, " and ".join(_names(results)))
        remark(f"page: {page}")
    if as_json:
        tasks = None if methods is None else methods.to_dict()
        return print_json({"kind": "builds", "builds": builds.to_dict(), "tasks": tasks})
    counts = ", ".join(f"{len(builds.of(kind))} {kind}" for kind in ("changed", "gained", "lost", "same"))
    out(f"assets: {counts}")
    for name in builds.before:
        out(f"{name:10}  {_number(builds.before[name])} -> {_number(builds.after.get(name))}")
    for name, result in builds.margins.items():
        if result is not None:
            out(f"{name} S - tau over {result.difference.n} assets: {_paired(result)}")
    if methods is not None:
        out(f"{measure} over {len(methods.tasks)} of {by}: {_paired(methods.result)}")
    for change in builds.changes:
        if change.kind != "same":
            out(f"{change.kind:8}  {change.asset_id}  {'; '.join(change.what)}".rstrip())
    return None


def _keep_best(
    paths: list[Path], tables: list[ResultTable], aim: str, gain: float, loss: float, patience: int, as_json: bool
) -> None:
    from .compare import keep_best, measures

    rates = [measures(table) for table in tables]
    result = keep_best(rates, aim, gain=gain, loss=loss, patience=patience)
    if as_json:
        builds = [{"file": str(p), **{n: _plain(v) for n, v in r.items()}} for p, r in zip(paths, rates, strict=True)]
        return print_json({"kind": "keep best", "builds": builds, **result.to_dict()})
    names = _names(paths)
    for name, rate, step in zip(names, rates, result.steps, strict=True):
        out(f"{step.decision:11}  {name}  {aim} {_number(rate[aim])}  ({step.reason})")
    out(f"keep {names[result.best]}")


def _names(paths: list[Path]) -> list[str]:
    """The files' names; as they were given where several have one name, as every batch's results.csv has."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(set(paths)) else [str(path) for path in paths]


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
