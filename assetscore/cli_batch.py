"""The command `batch`: submissions of any kind scored, summarised and reported; and what `demo` shares with it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .cli_common import (
    AlphaOption,
    JsonOption,
    KOption,
    RuleOption,
    bar,
    check_out,
    exit_with,
    fail,
    load_scorer,
    one_format,
    print_json,
)
from .config import DEFAULT_PROFILE

if TYPE_CHECKING:
    from .entries import Entry
    from .scorer import Scorer
    from .studies.ablation import Ablation
    from .submissions.base import Use
    from .table import ResultTable

__all__ = ["batch", "output"]


def batch(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Mods and packs (source tree, .jar, .zip, .tmod), folders with category subfolders, "
            "manifests of assets or of submissions (CSV, JSONL).",
            metavar="SOURCE...",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.parquet, .csv, summary.csv, report.html.")
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help=f"A profile's name or folder; GAME=NAME for one game, repeat. [{DEFAULT_PROFILE}]"),
    ] = None,
    game: Annotated[str, typer.Option(help="auto, minecraft, terraria, or folder (by category subfolders).")] = "auto",
    uses: Annotated[
        str, typer.Option(help="Which textures of a mod: sprite, flat, entity, uv, unreferenced.")
    ] = "sprite,flat,entity",
    submissions: Annotated[
        bool, typer.Option("--submissions", help="Sources are folders MODEL/TASK of submissions; resumed with --out.")
    ] = False,
    requests: Annotated[
        str | None,
        typer.Option(help='"ids": the words of each id; or a JSON file of id to request, or a folder of TASK.json.'),
    ] = None,
    by: Annotated[str, typer.Option(help="Column that the summary groups by: group, task, category, use.")] = "group",
    group: Annotated[
        str | None, typer.Option(help="Name for the assets, such as a model's [the source's name]")
    ] = None,
    columns: Annotated[str, typer.Option(help="full, or pass: the pass rates alone.")] = "full",
    pair: Annotated[
        tuple[str, str] | None, typer.Option(help="Two groups to compare over their tasks.", metavar="FIRST SECOND")
    ] = None,
    format: Annotated[str, typer.Option(help="Summary on stdout: text, markdown, csv or latex.")] = "text",
    intervals: Annotated[bool, typer.Option(help="Show 95 % Wilson intervals beside the rates.")] = False,
    cache: Annotated[bool, typer.Option(help="Keep embeddings in the user's cache folder.")] = True,
    alpha: AlphaOption = None,
    k: KOption = None,
    rule: RuleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score every texture of submissions and print the summary table."""
    from .benchmark import check_pair, run_benchmark
    from .cache import EmbeddingCache
    from .report import render
    from .submissions.source import GAMES
    from .table import ResultTable
    from .text import printable

    if game not in GAMES:
        raise typer.BadParameter(f"expected {', '.join(GAMES)}, got {game!r}", param_hint="--game")
    if requests is not None and requests != "ids" and not Path(requests).exists():
        raise typer.BadParameter(f"expected ids, or a file or folder, got {requests!r}", param_hint="--requests")
    one_format(format, as_json)
    render([], format, columns=columns)  # type: ignore[arg-type]  # a mistake is told before anything is scored
    ResultTable(()).column(by)
    check_out(out)
    scorers = _scorers(profile or [DEFAULT_PROFILE], alpha, k, rule)
    entries: list[Entry] = []
    for source in sources:
        entries += _entries(source, game, group, requests, submissions)
    if pair is not None:
        check_pair(entries, *pair)
    if out is not None:
        _check_outside(out, entries)
    parts = out / "parts" if out is not None and any(entry.task for entry in entries) else None
    with bar("Scoring", None) as progress:
        done = run_benchmark(
            entries,
            scorers,
            parts=parts,
            uses=cast("list[Use]", [use.strip() for use in uses.split(",") if use.strip()]),
            cache=EmbeddingCache() if cache else None,
            progress=lambda ended, assets, found: (
                progress(assets, found) if len(entries) == 1 else progress(ended, len(entries))
            ),
        )
    for note in done.notes:
        sys.stderr.write(f"assetscore: {printable(note)}\n")
    if done.reused:
        sys.stderr.write(f"assetscore: {done.reused} of {len(entries)} submissions were scored before\n")
    if not done.table.rows:
        fail(f"nothing to score: no texture in {', '.join(map(str, sources))}")
    if all(row.status == "no_references" for row in done.table):
        known = ", ".join(dict.fromkeys(c for scorer in done.games.values() for c in scorer.profile.categories))
        fail(f"nothing to score: none of the {len(done.table)} textures lies in a folder named {known}")
    compared: list[Ablation] = []
    if pair is not None:
        from .studies.ablation import ablation

        compared = ablation(done.table, *pair, expected=done.expected())
    title = f"{len(done.table)} assets"
    output(
        done.table,
        done.games,
        out,
        by,
        format,
        as_json,
        intervals,
        title,
        columns=columns,
        compared=compared,
        expected=done.expected(by),
        notes=done.notes,
    )
    exit_with([row.both_pass for row in done.table])


def _entries(source: Path, game: str, group: str | None, requests: str | None, submissions: bool) -> list[Entry]:
    from .entries import Entry, find_entries, is_benchmark_manifest

    if submissions or is_benchmark_manifest(source):
        found = find_entries(source, game=game, requests=requests)  # type: ignore[arg-type]  # checked by batch
        if not found:
            fail(f"nothing to score: no folder MODEL/TASK in {source}")
        return found
    if requests is not None and requests != "ids" and Path(requests).is_dir():
        fail(
            f"--requests {requests}: a folder of TASK.json goes with --submissions, or a manifest of submissions; "
            f'{source} is neither, so give "ids" or one JSON file'
        )
    resolved = source.resolve()
    name = group if group is not None else resolved.name if source.is_dir() else resolved.stem
    return [Entry(source, name, game=game, requests=requests)]  # type: ignore[arg-type]


def _check_outside(out: Path, entries: Sequence[Entry]) -> None:
    """Results inside a submission would be read as part of it the next time."""
    place = out.resolve()
    for entry in entries:
        if entry.task and place.is_relative_to(entry.path.resolve()):
            fail(f"--out {out} lies inside the submission {entry.path}: choose a folder outside")


def _scorers(profiles: list[str], alpha: float | None, k: int | None, rule: str | None) -> dict[str, Scorer]:
    """Scorers by game: "" for a profile that was given without one."""
    named: dict[str, str] = {}
    for text in profiles:
        game, mark, name = text.partition("=")
        if not mark or game not in ("minecraft", "terraria", "folder"):
            game, name = "", text
        game = "" if game == "folder" else game
        if game in named:
            raise typer.BadParameter(f"two profiles for {game or 'every game'}: {named[game]}, {name}")
        named[game] = name
    loaded = {name: load_scorer(name, alpha, k, rule) for name in dict.fromkeys(named.values())}
    return {game: loaded[name] for game, name in named.items()}


def output(
    table: ResultTable,
    games: Mapping[str, Scorer],
    out: Path | None,
    by: str,
    format: str,
    as_json: bool,
    intervals: bool,
    title: str,
    *,
    columns: str = "full",
    compared: list[Ablation] | None = None,
    expected: Mapping[str, Sequence[str]] | None = None,
    notes: Sequence[str] = (),
    extra: dict[str, Any] | None = None,
) -> None:
    """The summary of each game on stdout, and everything in the folder `out`; `expected` as in `summarise_games`."""
    from .folders import write_atomically
    from .report import render, render_games
    from .studies.tables import ablation_table
    from .summary import summarise_games

    summary = summarise_games(table, games, by, expected=expected)
    shape: dict[str, Any] = {"intervals": intervals, "columns": columns}

    def tables(format: Any, **shape: Any) -> str:
        plain = list(summary) == [""]
        return render(summary[""], format, **shape) if plain else render_games(summary, format, **shape)

    shown = tables(format, **shape)
    if compared:
        shown += "\n" + ablation_table(compared, format, intervals=intervals)  # type: ignore[arg-type]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        table.write(out / "results.parquet")
        table.write(out / "results.csv")
        write_atomically(out / "summary.csv", tables("csv", intervals=True).encode("utf-8", "replace"))
        if compared:
            content = ablation_table(compared, "csv", intervals=True)
            write_atomically(out / "ablation.csv", content.encode("utf-8", "replace"))
        _reports(table, games, out, by, title, compared or [], expected or {}, notes)
    if as_json:
        rows = [{"game": game, **row.to_dict()} for game, lines in summary.items() for row in lines]
        found = {"ablation": [part.to_dict() for part in compared]} if compared else {}
        print_json({"summary": rows, **found, "rows": table.to_dicts(), **(extra or {})})
    else:
        sys.stdout.write(shown.rstrip() + "\n")


def _reports(
    table: ResultTable,
    games: Mapping[str, Scorer],
    out: Path,
    by: str,
    title: str,
    compared: list[Ablation],
    expected: Mapping[str, Sequence[str]],
    notes: Sequence[str],
) -> None:
    """report.html, or one page a game: each game has its own references."""
    from .report import write_report
    from .table import ResultTable

    for game, scorer in games.items():
        rows = tuple(row for row in table if row.game == game)
        name = "report.html" if len(games) == 1 else f"report-{game or 'folders'}.html"
        config = scorer.config
        found = next((part for part in compared if part.game == game), None)
        heading = title if len(games) == 1 else f"{game.capitalize() or 'Folders'}: {len(rows)} assets"
        write_report(
            ResultTable(rows),
            out / name,
            profile=scorer.profile,
            title=heading,
            by=by,
            alpha=config.alpha,
            k=config.k,
            rule=config.rule,
            ablation=found,
            expected=expected.get(game, ()),
            notes=notes,
        )
