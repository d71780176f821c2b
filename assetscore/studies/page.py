"""Pages with pictures, each one HTML file that needs nothing else: two builds compared, a set against itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ImageError
from ..images import load
from ..table import Row
from .coherence import Coherence
from .compare import BuildComparison
from .pictures import Picture, picture_of

__all__ = ["write_coherence_page", "write_page"]


def write_page(
    comparison: BuildComparison, path: str | os.PathLike[str], title: str = "Two builds", limit: int = 500
) -> None:
    """Write a comparison as one HTML file that needs nothing else, with the pictures of what changed.

    Args:
        comparison: from `compare_builds`.
        path: the file.
        title: its heading.
        limit: how many assets are shown; what is beyond is counted.
    """
    shown = [change for change in comparison.changes if change.kind != "same"]
    names = dict.fromkeys([*comparison.before, *comparison.after])
    text = _render(
        "compare.html",
        title=title,
        rates=[(name, comparison.before.get(name), comparison.after.get(name)) for name in names],
        remarks=comparison.remarks,
        margins={name: value for name, value in comparison.margins.items() if value is not None},
        counts={kind: len(comparison.of(kind)) for kind in ("changed", "gained", "lost", "same")},
        changes=[(change, _picture(change.before), _picture(change.after)) for change in shown[:limit]],
        left_out=max(0, len(shown) - limit),
    )
    Path(path).write_text(text, encoding="utf-8")


def write_coherence_page(
    result: Coherence,
    paths: Mapping[str, str | os.PathLike[str]],
    path: str | os.PathLike[str],
    title: str = "A set against itself",
    limit: int = 500,
) -> None:
    """Write a coherence study as one HTML file, the odd ones out first.

    Args:
        result: from `coherence`.
        paths: where each asset's file lies, by id.
        path: the file to write.
        title: its heading.
        limit: how many assets are shown; what is beyond is counted.
    """
    text = _render(
        "coherence.html",
        title=title,
        set=result,
        members=[(member, _picture_at(paths.get(member.asset_id))) for member in result.members[:limit]],
        left_out=max(0, len(result.members) - limit),
    )
    Path(path).write_text(text, encoding="utf-8")


def _render(template: str, **values: Any) -> str:
    from jinja2 import Environment, PackageLoader

    return (
        Environment(loader=PackageLoader("assetscore.studies"), autoescape=True).get_template(template).render(values)
    )


def _picture(row: Row | None) -> Picture | None:
    """The asset's picture, where its file can still be read."""
    return None if row is None or not row.path else _picture_at(row.path)


def _picture_at(path: str | os.PathLike[str] | None) -> Picture | None:
    if path is None:
        return None
    try:
        return picture_of(load(path))
    except ImageError:
        return None
