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
from ..results import UNDECIDED
from .console import JsonOption, TableArgument, one_format, out, print_json, read_results, remark
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

    one_format(format, as_json)
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
    text = format == "text"
    shown = alpha_table(swept, format)  # type: ignore[arg-type]  # checked there
    if text:
        out(f"{swept.assets} assets of {swept.groups} groups, {swept.references} references")
        out(f"alpha, at k = {swept.k}. Vanilla both: references, left out one at a time, that pass every check.")
        for name, voted in swept.voted.items():
            out(f"{name} votes: {voted} assets with a majority. Acc: accepted and passing; Rej: rejected and failing.")
    sys.stdout.write(shown + "\n")
    if text:
        out(f"k, at alpha = {swept.alpha:g}, against k = {swept.k}. rank: Spearman of the assets' scores;")
        out(f"same: share of equal verdicts; order: Spearman of the {swept.groups} groups' pass rates.")
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
    from .intervals import check_settings
    from .tables import agreement_table, raters_table
    from .votes import read_votes

    one_format(format, as_json)
    check_settings(level, resamples, seed)
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
    text = format == "text"
    names = _names(results)
    encoders = [study.encoder or "results" for study in studies]
    called = encoders
    if len(set(encoders)) < len(encoders):  # one encoder with another k, say: the files tell the lines apart
        called = [f"{encoder}, {name}" for encoder, name in zip(encoders, names, strict=True)]
    shown = agreement_table(studies, format, called)  # type: ignore[arg-type]  # checked there
    sys.stdout.write(f"Scores and verdicts against the raters' majority, {level * 100:g} % intervals\n" if text else "")
    sys.stdout.write(shown + "\n")
    sys.stdout.write(
        "The raters among themselves: Krippendorff's alpha in three readings, raw agreement\n" if text else ""
    )
    sys.stdout.write(raters_table(studies[0], format))  # type: ignore[arg-type]
    if pairs and text:
        out("")
    for question, other, pair in pairs:
        p = f", DeLong p = {pair.p_value:.3g}" if not math.isnan(pair.p_value) else ""
        found = f"{pair.difference}{p}; bootstrap {pair.bootstrap}"
        if math.isnan(pair.difference.value):
            found = f"no number: {pair.difference.reason}"
        # a text table goes on with the comparison; a file in another format must not hold it
        (out if text else remark)(
            f"{question}: AUROC of {names[0]} minus {names[other]}, {pair.first.n} assets that both scored: {found}"
        )
    for line in dict.fromkeys(_left_out(studies, called)):
        remark(line)


def compare(
    context: typer.Context,
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
    from .compare import BY, check_by, compare_builds, compare_methods, compare_orders, shared_names
    from .intervals import check_settings
    from .page import write_page

    check_settings(level, resamples, seed)
    check_by(by, measure)
    tables = [read_results(path) for path in results]
    if page is not None and aim is not None:
        raise UsageError("--page shows two builds, --aim chooses among several: give one of them")
    if aim is not None:
        _refuse(context, ("by", "measure", "level", "resamples", "seed"), "--aim goes by the rates of whole builds")
        return _keep_best(results, tables, aim, gain, loss, patience, as_json)
    _refuse(context, ("gain", "loss", "patience"), "without --aim no build is kept or rejected")
    if len(tables) != 2:
        raise UsageError(f"compare takes two results, or several with --aim; got {len(tables)}")
    first, second = tables
    encoders = [{row.encoder for row in table if row.encoder} for table in tables]
    if all(encoders) and encoders[0] != encoders[1]:
        if page is not None:
            raise UsageError("--page shows two builds under one encoder, these results are of different encoders")
        _refuse(context, ("level", "resamples", "seed"), "the order under two encoders has no interval")
        order = compare_orders(first, second, measure, by)
        if as_json:
            return print_json({"kind": "encoders", "measure": measure, "by": by, "order": order.to_dict()})
        out(f"two encoders: are {order.models} {BY[by]} in the same order by {measure}?")
        if order.reason:
            out(f"no number: {order.reason}")
        else:
            out(f"rank correlation: Spearman {order.spearman:.3f}, Kendall {order.kendall:.3f}")
            out(f"same order: {order.same_order:.0%} of the pairs")
        for path, best in zip(_names(results), order.best, strict=True):
            out(f"best under {path}: {' and '.join(best)}{' (tied)' if len(best) > 1 else ''}")
        _alone(results, BY[by], order.only_first, order.only_second)
        return None
    settings: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    builds = compare_builds(first, second, **settings)
    shared = shared_names(first, second, by)
    methods, why_not = None, f"{len(shared)} in common, at least two are needed"
    if len(shared) > 1:
        try:
            methods = compare_methods(first, second, measure, by, **settings)
        except UsageError as error:  # no verdict on one side: the builds can be compared all the same
            why_not = str(error)
    no_tasks = "" if methods is not None else f"no comparison over {BY[by]}: {why_not}"
    if page is not None:
        write_page(builds, page, " and ".join(_names(results)))
        remark(f"page: {page}")
    if as_json:
        tasks = {"reason": no_tasks} if methods is None else methods.to_dict()
        return print_json({"kind": "builds", "builds": builds.to_dict(), "tasks": tasks})
    counts = ", ".join(f"{len(builds.of(kind))} {kind}" for kind in ("changed", "gained", "lost", "same"))
    out(f"assets: {counts}")
    decided = [sum(row.status not in UNDECIDED for row in table) for table in tables]
    out(f"shares of the assets with a verdict ({decided[0]} before, {decided[1]} after):")
    for name, value in builds.before.items():
        after = builds.after.get(name, math.nan)
        gap = "" if math.isnan(after - value) else f"  ({after - value:+.3f})"
        out(f"{name:10}  {_number(value)} -> {_number(after)}{gap}")
    for name, result in builds.margins.items():
        if result is not None:
            out(f"{name} margin, S - tau, of {result.difference.n} assets in both: {_paired(result)}")
    if methods is not None:
        out(f"{measure} over {len(methods.tasks)} {BY[by]}: {_paired(methods.result)}")
        _alone(results, BY[by], methods.only_first, methods.only_second)
    for line in (*builds.remarks, *filter(None, [no_tasks])):
        remark(line)
    for change in builds.changes:
        if change.kind != "same":
            out(f"{change.kind:8}  {change.asset_id}  {'; '.join(change.what)}".rstrip())
    return None


def _refuse(context: typer.Context, options: tuple[str, ...], why: str) -> None:
    """Wrong use: an option was typed that has no effect in this kind of comparison."""
    for name in options:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"--{name} has no effect here: {why}")


def _alone(results: list[Path], what: str, *left: tuple[str, ...]) -> None:
    for name, alone in zip(_names(results), left, strict=True):
        if alone:
            some = ", ".join(alone[:5]) + (" ..." if len(alone) > 5 else "")
            remark(f"left out, {what} that have a number in {name} alone: {len(alone)} ({some})")


def _keep_best(
    paths: list[Path], tables: list[ResultTable], aim: str, gain: float, loss: float, patience: int, as_json: bool
) -> None:
    from .compare import check_one_profile, keep_best, measures, other_thresholds

    check_one_profile(row for table in tables for row in table)
    rates = [measures(table) for table in tables]
    result = keep_best(rates, aim, gain=gain, loss=loss, patience=patience)
    remarks = other_thresholds(tables)
    if as_json:
        builds = [{"file": str(p), **{n: _plain(v) for n, v in r.items()}} for p, r in zip(paths, rates, strict=True)]
        return print_json({"kind": "keep best", "builds": builds, **result.to_dict(), "remarks": remarks})
    for line in remarks:
        remark(line)
    names = _names(paths)
    for index, (name, rate, step) in enumerate(zip(names, rates, result.steps, strict=True)):
        out(f"{index}  {step.decision:11}  {name}  {aim} {_number(rate[aim])}  ({step.reason})")
    out(f"keep {names[result.best]}" + (f"  ({result.reason})" if result.reason else ""))


def _names(paths: list[Path]) -> list[str]:
    """The files' names; as they were given where several have one name, as every batch's results.csv has."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(set(paths)) else [str(path) for path in paths]


def _left_out(studies: list[Any], called: list[str]) -> list[str]:
    lines = []
    for study, name in zip(studies, called, strict=True):
        for part in study.questions:
            for number, what in ((part.without_score, "score"), (part.without_verdict, "verdict")):
                if number:
                    lines.append(f"{name}, {part.question}: assets with a majority but no {what}: {number}")
    return lines


def _paired(result: Any) -> str:
    p = result.reason if math.isnan(result.wilcoxon_p) else f"Wilcoxon signed-rank p = {result.wilcoxon_p:.3g}"
    level = "" if math.isnan(result.difference.low) else f" ({result.difference.level * 100:g} % interval)"
    return (
        f"mean change {result.difference}{level}; {result.wins} higher, {result.losses} lower, {result.ties} equal; {p}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
