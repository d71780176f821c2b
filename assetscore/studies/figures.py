"""Figures of the studies: matplotlib Figures, to be shown in a notebook or saved. Needs the extra "notebooks"."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import MissingExtraError, UsageError
from .intervals import Estimate
from .sweep import Cell, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_alpha", "plot_estimates", "plot_k", "plot_orders", "plot_scores", "save_figure"]

# apart for colour-blind readers, too (Okabe and Ito); markers and dashes tell lines apart without colour
BLUE, ORANGE, GREY, GREEN = "#0072b2", "#d55e00", "#6b7480", "#009e73"
COLOURS = {"style": BLUE, "semantic": ORANGE, "object": ORANGE}
LINES = {"style": "o-", "semantic": "s--"}
SUFFIXES = (".png", ".svg", ".pdf")


def plot_alpha(sweep: Sweep) -> Figure:
    """Table 18 as a figure: what a larger alpha costs in accepted textures and gains in rejected ones.

    Without votes, the pass rates of assets and references instead.
    """
    cells = sweep.by_alpha
    checks = list(cells[0].checks)
    figure, axes = _axes(len(checks), "How strict should the check be?")
    for ax, name in zip(axes, checks, strict=True):
        votes = all(cell.checks[name].votes is not None for cell in cells)
        if votes:
            _line(ax, cells, lambda c, n=name: c.checks[n].votes.acceptance, "accepted by people: passes", GREEN, "^-")
            _line(ax, cells, lambda c, n=name: c.checks[n].votes.rejection, "rejected by people: fails", ORANGE, "v-")
            _line(
                ax,
                cells,
                lambda c, n=name: c.checks[n].votes.balanced,
                "mean of the two: balanced accuracy",
                BLUE,
                "o-",
            )
        else:
            _line(ax, cells, lambda c, n=name: c.checks[n].pass_rate, "assets that pass", BLUE, "o-")
        _line(ax, cells, lambda c, n=name: c.checks[n].references, "the game's own art: passes", GREY, "s--")
        if len(checks) > 1:
            _line(ax, cells, lambda c: c.references_both, "the game's own art: passes every check", GREY, "D:")
        _used(ax, sweep.alpha, f"used: {sweep.alpha:g}")
        count = f", {sweep.voted[name]} textures with a majority" if votes else f", {sweep.assets} assets"
        ax.set_title(f"{name} check{count}", fontsize=10)
        ax.set_xlabel("alpha: share of the game's own art that may be rejected")
        _shares(ax)
    axes[0].set_ylabel("share of textures")
    if len({cell.undecided for cell in cells}) > 1:
        text = "not filled: some textures have no verdict, a category holds too few references"
        axes[0].plot([], [], "o", color=GREY, mfc="white", markersize=5, label=text)
    _legend(figure, axes[0], 2)
    return figure


def plot_k(sweep: Sweep) -> Figure:
    """Table 19 as a figure: what changes with the number of neighbours, and what does not."""
    cells = sweep.by_k
    panels = {
        "assets that pass": ("pass_rate", "share of assets"),
        f"same verdict as k = {sweep.k}": ("same_verdict", "share of assets"),
        f"rank correlation of scores with k = {sweep.k}": ("rank_correlation", "Spearman's rho"),
        f"order of the {sweep.groups} groups' pass rates, against k = {sweep.k}": ("group_order", "Spearman's rho"),
    }
    figure, axes = _axes(
        4, f"Does the number of neighbours matter? (alpha = {sweep.alpha:g}, {sweep.assets} assets)", rows=2
    )
    for ax, (title, (column, unit)) in zip(axes, panels.items(), strict=True):
        for name in cells[0].checks:
            numbers = [getattr(cell.checks[name], column) for cell in cells]
            ax.plot(range(len(cells)), numbers, LINES[name], color=COLOURS[name], label=f"{name} check", markersize=4)
        ax.set_xticks(range(len(cells)), [str(cell.k) for cell in cells])
        low = min(0.0, *ax.get_ylim()) if column in ("rank_correlation", "group_order") else 0.0
        _used(ax, [cell.k for cell in cells].index(sweep.k), f"used: {sweep.k}", low + 0.02)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("k, nearest references compared with")
        ax.set_ylabel(unit)
        ax.set_ylim(low, 1.05)
        ax.spines[["top", "right"]].set_visible(False)
    _legend(figure, axes[0], 2)
    return figure


def plot_estimates(
    estimates: Mapping[str, Estimate],
    title: str,
    label: str,
    chance: float | None = None,
    limits: tuple[float, float] = (0, 1),
) -> Figure:
    """Numbers with their intervals and how many units they rest on, one line each; what has none says why.

    Args:
        estimates: by the name to show.
        title, label: above the figure and under its axis.
        chance: a value to mark as chance.
        limits: of the axis.
    """
    figure, (ax,) = _axes(1, title, height=1.1 + 0.45 * len(estimates))
    for y, (name, estimate) in enumerate(estimates.items()):
        if np.isnan(estimate.value):
            ax.text(limits[0], y, f" no number: {estimate.reason}", va="center", fontsize=8, color=GREY)
            continue
        colour = COLOURS.get(name.split()[0].strip(":,"), BLUE)
        if np.isnan(estimate.low):
            ax.text(limits[0], y + 0.28, f" {estimate.reason}", va="center", fontsize=7, color=GREY)
        else:
            ax.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=2.5, solid_capstyle="round")
        ax.plot([estimate.value], [y], "o", color=colour, markersize=7)
        text = f"{estimate.value:.2f}" + (f" (n = {estimate.n})" if estimate.n else "")
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # readable where the chance line passes
        ax.annotate(text, (estimate.value, y), (0, 7), textcoords="offset points", ha="center", fontsize=8, bbox=box)
    if chance is not None:
        ax.axvline(chance, color=GREY, linewidth=0.9, linestyle="--")
        ax.annotate("chance", (chance, -0.62), (4, 0), textcoords="offset points", va="center", fontsize=8, color=GREY)
    if limits[0] < 0 < limits[1]:  # differences: which side of 0 an interval lies on is what the reader asks
        ax.axvline(0, color=GREY, linewidth=0.9, zorder=0)
    ax.set_yticks(range(len(estimates)), list(estimates))
    ax.set_ylim(len(estimates) - 0.4, -0.8)
    ax.set_xlim(*limits)
    ax.set_xlabel(label)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure


def plot_scores(
    first: ArrayLike,
    second: ArrayLike,
    labels: ArrayLike,
    names: tuple[str, str],
    title: str,
    label: str = "score",
    thresholds: tuple[float, float] | None = None,
) -> Figure:
    """One dot an asset: its score under two encoders, coloured by what most people said.

    Args:
        first, second: n scores.
        labels: n times 1 (accepted), 0 (rejected) or NaN (no majority).
        names: the two encoders'.
        title: above the figure.
        label: what the scores are, for the axes.
        thresholds: marked where all assets share one.
    """
    x, y, majority = (np.asarray(values, dtype=np.float64) for values in (first, second, labels))
    figure, (ax,) = _axes(1, title, height=4.8, width=6.4)
    kinds = ((majority == 1, "accepted by most people", GREEN, "o"), (majority == 0, "rejected by most", ORANGE, "X"))
    for use, meaning, colour, marker in (*kinds, (np.isnan(majority), "not asked, or no majority", GREY, ".")):
        if use.any():
            ax.scatter(
                x[use],
                y[use],
                s=34,
                color=colour,
                marker=marker,
                label=f"{meaning} ({int(use.sum())})",
                alpha=0.85,
                linewidths=0,
            )
    if thresholds is not None:
        ax.axvline(thresholds[0], color=GREY, linewidth=0.9, linestyle="--")
        ax.axhline(thresholds[1], color=GREY, linewidth=0.9, linestyle="--")
    ax.set_xlabel(f"{label} under {names[0]}")
    ax.set_ylabel(f"{label} under {names[1]}")
    ax.legend(fontsize=8, frameon=False, loc="best")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def plot_orders(
    first: Sequence[float], second: Sequence[float], models: Sequence[str], names: tuple[str, str], title: str
) -> Figure:
    """Lines from each model's rate under one encoder to its rate under the other: crossings are changed places."""
    figure, (ax,) = _axes(1, title, height=3.8, width=6.4)
    for a, b in zip(first, second, strict=True):
        ax.plot([0, 1], [a, b], "o-", color=BLUE, linewidth=1.4, markersize=5)
    gap = 0.045 * max(1e-9, float(np.ptp([*first, *second])))
    for side, values, align in ((0, first, "right"), (1, second, "left")):
        placed = -np.inf
        for value, model in sorted(zip(values, models, strict=True)):
            placed = max(value, placed + gap)
            ax.text(
                side + (0.03 if side else -0.03), placed, f"{model}  {value:.2f}", ha=align, va="center", fontsize=8
            )
    ax.set_xticks([0, 1], list(names))
    ax.set_xlim(-0.55, 1.55)
    ax.set_ylabel("share of assets that pass")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as .png, .svg or .pdf, by the ending.

    Raises:
        UsageError: another ending.
    """
    name = os.fspath(path)
    if not name.lower().endswith(SUFFIXES):
        raise UsageError(f"figures are written as {', '.join(SUFFIXES)}, got {name!r}")
    figure.savefig(name, dpi=150)


def _axes(count: int, title: str, rows: int = 1, height: float = 3.6, width: float = 9.0) -> tuple[Figure, list[Axes]]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError('figures need matplotlib: pip install "assetscore[notebooks]"') from error
    figure = Figure(figsize=(width, height * (1 if rows == 1 else 1.7)), layout="constrained")
    grid: Any = figure.subplots(rows, count // rows, squeeze=False)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    return figure, list(grid.ravel())


def _legend(figure: Figure, ax: Axes, columns: int) -> None:
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=9, frameon=False)


def _line(ax: Axes, cells: Sequence[Cell], value: Any, label: str, colour: str, style: str) -> None:
    """One line; `style` is a marker and a dash, such as "o-"."""
    x, y = [cell.alpha for cell in cells], [value(cell) for cell in cells]
    ax.plot(x, y, style, color=colour, label=label, markersize=5)
    # where too few references carry a threshold the points rest on fewer textures: they are not filled
    fewest = min(cell.undecided for cell in cells)
    partial = [i for i, cell in enumerate(cells) if cell.undecided > fewest]
    ax.plot(
        [x[i] for i in partial], [y[i] for i in partial], style[0], color=colour, mfc="white", markersize=5, label="_"
    )


def _used(ax: Axes, at: float, text: str, height: float = 0.02) -> None:
    ax.axvline(at, color=GREY, linewidth=0.8, linestyle=":")
    ax.annotate(text, (at, height), (3, 0), textcoords="offset points", fontsize=8, color=GREY)


def _shares(ax: Axes) -> None:
    ax.set_ylim(0, 1.03)
    ax.spines[["top", "right"]].set_visible(False)
