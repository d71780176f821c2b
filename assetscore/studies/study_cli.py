"""The commands `study make`, `study serve`, `study export` and `study coherence`.

Exit codes: 0, and 2 for wrong use; 1 where `coherence` had to leave assets out.
"""

from __future__ import annotations

import logging
import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..config import DEFAULT_ENCODER, DEFAULT_PROFILE, Config
from ..errors import UsageError
from .console import JsonOption, TableArgument, out, print_json, read_results, remark

__all__ = ["study_app"]

study_app = typer.Typer(
    help="Ask people: make a study, serve its page, export the votes; coherence of a set.", no_args_is_help=True
)

ANSWERS_FILE = "answers.sqlite"
SHOWN = 5
"""How many of what was left out are named; the study's folder names all."""


@study_app.command("make")
def make(
    results: Annotated[Path, TableArgument],
    folder: Annotated[Path, typer.Argument(help="The study's folder to write; it must not be there yet.")],
    profile: Annotated[str, typer.Option(help="The profile they were scored with.")] = DEFAULT_PROFILE,
    n: Annotated[int, typer.Option("-n", help="How many textures to show.", min=1)] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the draw.", min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a study's folder from results: some of their textures, and the game's own art beside."""
    from ..profile import Profile
    from .rating.make import make_study

    draw = make_study(read_results(results), Profile.load(profile), folder, n, seed)
    if draw.left_out:
        remark(f"left out: {len(draw.left_out)} whose files cannot be shown; {folder / 'draw.json'} names all of them")
        for name, reason in draw.left_out[:SHOWN]:
            remark(f"left out: {name}: {reason}")
    for path in draw.unfinished:
        remark(f"unfinished study of a run that was killed, or that runs now; delete it if none does: {path}")
    if len(draw.rows) < n:
        remark(f"{n} textures were asked for; of {draw.scored} scored results {len(draw.rows)} can be shown")
    if as_json:
        left_out = [{"asset": name, "reason": reason} for name, reason in draw.left_out]
        unfinished = [str(path) for path in draw.unfinished]
        shown = {"folder": str(folder), "assets": list(draw.names), "left_out": left_out, "unfinished": unfinished}
        return print_json(shown)
    out(f"textures: {len(draw.rows)}, groups: {len({row.group for row in draw.rows})}, in {folder}")
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
            print_json({"url": url, "textures": len(study.items), "answers": str(folder / ANSWERS_FILE)})
        else:
            out(f"{url}  ({len(study.items)} textures; Ctrl-C ends it)")
        sys.stdout.flush()

    logging.getLogger("waitress").setLevel(logging.ERROR)  # its queue remarks would bury ours
    run(study, Store(folder / ANSWERS_FILE), host, port, ready=ready)


@study_app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(help="The study's folder.", exists=True, file_okay=False)],
    target: Annotated[Path | None, typer.Option("--out", "-o", help="Votes file to write [stdout].")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the answers so far as a votes file (CSV: asset, rater, question, answer)."""
    from .rating.store import Store
    from .votes import votes_csv, write_votes

    votes = Store(folder / ANSWERS_FILE, create=False).votes()
    raters = len({vote.rater for vote in votes})
    if target is not None:
        write_votes(target, votes)
    if as_json:
        names = ("asset", "rater", "question", "answer")
        return print_json([{name: getattr(vote, name) for name in names} for vote in votes])
    if target is None:
        sys.stdout.write(votes_csv(votes))
    remark(f"answers: {len(votes)}, raters: {raters}" + (f" in {target}" if target is not None else ""))
    return None


@study_app.command("coherence")
def coherence(
    folder: Annotated[Path, typer.Argument(help="Textures, in subfolders too.", exists=True, file_okay=False)],
    encoder: Annotated[str, typer.Option(help="See `assetscore encoders`.")] = DEFAULT_ENCODER,
    k: Annotated[int, typer.Option(help="Nearest others to compare with.", min=1)] = Config.k,
    show: Annotated[int, typer.Option(help="How many of the odd ones to list.", min=1)] = 20,
    page: Annotated[Path | None, typer.Option(help="HTML page with the pictures, the odd ones first.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Score a set of textures against itself, for a game without vanilla art; the odd ones out first."""
    from ..batch import walk_folder
    from .coherence import coherence as run

    items = walk_folder(folder, (), "")
    if not items:
        raise UsageError(f"{folder}: there is no image file")
    paths = {item.asset_id: item.path for item in items}
    result = run(paths.items(), encoder, k=k)
    if page is not None:
        from .page import write_coherence_page

        write_coherence_page(result, paths, page, f"{folder.name} against itself")
        remark(f"page: {page}")
    if as_json:
        print_json(result.to_dict())
    else:
        spread = any(not math.isnan(member.z) for member in result.members)
        z = "z: robust standard deviations from the median" if spread else "no z: the set has no spread"
        out(f"{len(result.members)} textures, {result.groups} different, under {result.encoder}")
        out(
            f"similarity to the {result.k} nearest others: mean {result.mean:.3f}, median {result.median:.3f}; {z}; "
            "the odd ones first"
        )
        for member in result.members[:show]:
            z = "" if math.isnan(member.z) else f"  z {member.z:+.1f}"
            out(f"{member.similarity:.3f}{z}  {member.asset_id}")
    for asset_id, reason in result.skipped:
        remark(f"left out: {asset_id}: {reason}")
    if result.skipped:
        raise typer.Exit(1)
