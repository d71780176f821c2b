"""The report: one HTML page that answers how many assets belong, and shows each beside its nearest references.

The page loads nothing: pictures are data URIs, style and script stand inline, and a content security policy allows no
other. Names come from strangers: jinja2 escapes them in the page, and the script only ever writes them as text.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calibration import Rule
from ..errors import ProfileMismatchError, UsageError
from ..folders import write_atomically
from ..images import Texture
from ..summary import leave_one_out_row, summarise
from ..table import ResultTable
from .content import ablation_lines, assets, headline, method, summary_lines

if TYPE_CHECKING:
    from ..profile import Profile
    from ..studies.ablation import Ablation

__all__ = ["write_report"]


def write_report(
    table: ResultTable,
    path: str | os.PathLike[str],
    *,
    profile: Profile | None = None,
    title: str = "Asset report",
    images: Mapping[str, Texture] | None = None,
    by: str = "group",
    alpha: float | None = None,
    k: int | None = None,
    rule: Rule | None = None,
    ablation: Ablation | None = None,
    expected: Iterable[str] = (),
    notes: Iterable[str] = (),
) -> None:
    """Write the results as one self-contained HTML page.

    Args:
        table: the rows to show.
        path: the file to write, replaced where it exists.
        profile: what the rows were scored with, for the references' pictures, their scores and the thresholds; default
            the table's own. Without one the page says less.
        title: the page's heading.
        images: pictures by asset_id, before which a row's path is not read. An asset whose picture is in neither is
            shown without one.
        by: the column that the summary groups by.
        alpha, k, rule: what the page is to judge by; default the profile's own. The rows are judged again where they
            are given.
        ablation: two groups compared over tasks, shown below the summary.
        expected: as `summary.summarise`'s.
        notes: what was passed over, in words, listed below the summary.

    Raises:
        ProfileMismatchError: the rows are of another profile or encoder, so that the references shown would be wrong.
        UsageError: the rows were judged by another alpha, k or rule than the page would say, or `by` is no column.
    """
    profile = profile or table.profile
    if profile is None:
        if (alpha, k, rule) != (None, None, None):
            raise UsageError("alpha, k and rule need the profile the table was scored with: pass profile=")
        loo = []
    else:
        config = profile.config.with_(alpha=alpha, k=k, rule=rule)
        if (alpha, k, rule) != (None, None, None):
            table = table.rethreshold(alpha=alpha, k=k, rule=rule, profile=profile)
        _check(table, profile, config)
        loo = [leave_one_out_row(profile, alpha=config.alpha, k=config.k, rule=config.rule)]
    summary = [*loo, *summarise(replace(table, profile=None), by, expected=expected)]
    context = {
        "title": title,
        "headline": headline(table),
        "summary": summary_lines(summary),
        "notes": list(notes),
        "ablation": None if ablation is None else ablation_lines(ablation),
        "method": None if profile is None else method(table, profile, config),
        "data": assets(table, profile, None if profile is None else config, images or {}),
    }
    # A name may hold what UTF-8 cannot: half of a surrogate pair, from a file name in another encoding.
    write_atomically(Path(path), _render(context).encode("utf-8", "replace"))


def _check(table: ResultTable, profile: Profile, config: Any) -> None:
    """Refuse a profile or a setting that the rows were not judged by: the page would state what is not so."""
    taus: dict[str, float | None] = {}
    for row in table:
        if row.encoder and row.encoder != profile.encoder_fingerprint:
            raise ProfileMismatchError(
                f"row {row.asset_id!r} was scored with encoder {row.encoder}, "
                f"profile {profile.name!r} holds {profile.encoder_fingerprint}"
            )
        if row.style_tau is None or row.category not in profile.categories:
            continue
        if row.category not in taus:
            calibration = profile.calibration(row.category, profile.style_factor)
            taus[row.category] = calibration.threshold(config.alpha, config.k, config.rule)
        tau = taus[row.category]
        if tau is None or abs(tau - row.style_tau) > 1e-6:
            raise UsageError(
                f"row {row.asset_id!r} was judged by tau = {row.style_tau}, profile {profile.name!r} gives {tau} for "
                f"alpha = {config.alpha}, k = {config.k}, rule {config.rule}: pass the alpha, k and rule to judge by"
            )


def _render(context: dict[str, Any]) -> str:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    folder = files(__package__)
    script = (folder / "report.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template("report.html").render(
        **context,
        style=Markup((folder / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )
