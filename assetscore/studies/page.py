"""A comparison of two builds as one HTML file, with the pictures of what changed."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ImageError
from ..images import load
from ..table import Row
from .compare import BuildComparison
from .pictures import Picture, picture_of

__all__ = ["write_page"]


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
    from jinja2 import Environment, PackageLoader

    shown = [change for change in comparison.changes if change.kind != "same"]
    names = dict.fromkeys([*comparison.before, *comparison.after])
    page = Environment(loader=PackageLoader("assetscore.studies"), autoescape=True).get_template("compare.html")
    text = page.render(
        title=title,
        rates=[(name, comparison.before.get(name), comparison.after.get(name)) for name in names],
        margins={name: value for name, value in comparison.margins.items() if value is not None},
        counts={kind: len(comparison.of(kind)) for kind in ("changed", "gained", "lost", "same")},
        changes=[(change, _picture(change.before), _picture(change.after)) for change in shown[:limit]],
        left_out=max(0, len(shown) - limit),
    )
    Path(path).write_text(text, encoding="utf-8")


def _picture(row: Row | None) -> Picture | None:
    """The asset's picture, where its file can still be read."""
    if row is None or not row.path:
        return None
    try:
        return picture_of(load(row.path))
    except ImageError:
        return None
