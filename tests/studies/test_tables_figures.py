"""The printed tables in each format, and figures that say in words what they show."""

from __future__ import annotations

import csv
import io
import math
import sys

import numpy as np
import pytest

from assetscore.errors import MissingExtraError, UsageError
from assetscore.studies import figures
from assetscore.studies.intervals import Estimate
from assetscore.studies.sweep import sweep
from assetscore.studies.tables import Missing, alpha_table, format_table, k_table
from assetscore.studies.votes import Vote, Votes

from .planted import planted

ROWS = [["csd", Estimate(0.54, 0.41, 0.67), 3], ["a_b|<c>", Estimate(math.nan, reason="one class"), None]]
HEADER = ["encoder", "AUROC", "n"]


def test_text_is_aligned():
    assert format_table(HEADER, ROWS) == (
        "encoder              AUROC  n\n"
        "csd      0.54 [0.41, 0.67]  3\n"
        "a_b|<c>              - (1)  -\n"
        "(1) one class\n"
    )  # fmt: skip


def test_markdown_latex_and_csv_escape_what_strangers_wrote():
    assert format_table(HEADER, ROWS, "markdown").splitlines()[3] == r"| a\_b\|&lt;c&gt; | - (1) | - |"
    latex = format_table([*HEADER, ""], [[*row, "&%$#_{}"] for row in ROWS], "latex")
    assert r"\&\%\$\#\_\{\}" in latex
    rows = list(csv.DictReader(io.StringIO(format_table(HEADER, ROWS, "csv"))))
    assert rows[0] == {
        "encoder": "csd",
        "AUROC": "0.540000",
        "AUROC low": "0.410000",
        "AUROC high": "0.670000",
        "n": "3",
        "reason": "",
    }
    assert rows[1]["AUROC"] == rows[1]["n"] == ""
    assert rows[1]["reason"] == "AUROC: one class"


WHY = "one <class> & _none_"
REASONS = [
    ["a", Estimate(math.nan, reason=WHY), 0.5, 1],
    ["b", Estimate(0.5, reason="no interval: one task"), Missing(WHY), 2],
    ["c", Estimate(0.5, 0.25, 0.75), Missing("else\x1b[2J"), None],
]


@pytest.mark.parametrize(
    ("format", "cells", "notes"),
    [
        ("text", ["- (1)", "0.50 (2)", "- (3)"], [f"(1) {WHY}", "(2) no interval: one task", "(3) else\\x1b[2J"]),
        ("markdown", ["- (1)", "0.50 (2)", "- (3)"], [r"(1) one &lt;class&gt; &amp; \_none\_", "(2) no interval"]),
        ("latex", ["- (1)", "0.50 (2)", "- (3)"], [r"{\footnotesize (1) one <class> \& \_none\_}", "(2) no interval"]),
    ],
)
def test_every_table_says_why_a_number_is_missing(format, cells, notes):
    """Each reason once, in the order in which the cells need it, escaped as the cells are."""
    text = format_table(["name", "x", "y", "n"], REASONS, format)
    places = [text.index(part) for part in notes]
    assert places == sorted(places)
    assert all(cell in text[: places[0]] for cell in cells)
    assert text.count("(1)") == 3
    assert "\x1b" not in text


def test_csv_says_why_in_a_column():
    rows = list(csv.DictReader(io.StringIO(format_table(["name", "x", "y", "n"], REASONS, "csv"))))
    assert [row["x low"] for row in rows] == ["", "", "0.250000"]
    assert [row["reason"] for row in rows[:2]] == [f"x: {WHY}", f"x: no interval: one task; y: {WHY}"]
    mixed = format_table(["name", "x", "y"], [["a", Missing("no"), 1], ["b", Estimate(0.5, 0.25, 0.75), 2]], "csv")
    assert [row["y"] for row in csv.DictReader(io.StringIO(mixed))] == ["1", "2"]
    assert "reason" not in format_table(["name", "x"], [["a", 0.5]], "csv")


def test_a_sweep_without_votes_or_results_says_so():
    profile, table, _ = planted()
    header, *lines = alpha_table(sweep(profile, table), "csv").splitlines()
    assert header == "alpha,style pass,sem pass,Pass_both,Vanilla both,No verdict,,reason"
    assert "no category holds enough references" in lines[0]
    for text in (alpha_table(sweep(profile)), k_table(sweep(profile))):
        assert "(1) no results were given" in text
        assert "(2)" not in text.splitlines()[3]
    alone = sweep(profile, [row for row in table if row.group == "good"])
    assert "an order needs two groups" in k_table(alone)


def test_nothing_in_a_name_moves_the_cursor():
    assert "\x1b" not in format_table(["model"], [["\x1b[2Jred"]])
    assert "\n" not in format_table(["model"], [["a\nb"]]).splitlines()[1]


def test_an_unknown_format_is_named():
    with pytest.raises(UsageError, match="text, markdown, csv, latex"):
        format_table(HEADER, ROWS, "pdf")


@pytest.fixture(scope="module")
def swept():
    profile, table, _ = planted()
    votes = Votes(
        tuple(
            Vote(f"a{i}", r, q, "yes" if i % 3 else "no")
            for i in range(1, 50)
            for r in "xy"
            for q in ("style", "object")
        )
    )
    return sweep(profile, table, votes)


def test_the_papers_columns_are_there(swept):
    header, *lines = alpha_table(swept, "csv").splitlines()
    assert header == (
        "alpha,style Acc,style Rej,style Bal,sem Acc,sem Rej,sem Bal,Bal,Pass_both,Vanilla both,No verdict,,reason"
    )
    assert len(lines) == 7
    cell = swept.cells[0.15, 5]
    used = next(line for line in lines if ",<- used" in line).split(",")
    assert float(used[1]) == pytest.approx(cell.style.votes.acceptance, abs=1e-6)
    assert float(used[9]) == pytest.approx(cell.references_both, abs=1e-6)
    header, *lines = k_table(swept, "csv").splitlines()
    assert header == "k,style pass,style rank,style same,style order,sem pass,sem rank,sem same,sem order,"
    assert [line.split(",")[0] for line in lines] == ["1", "3", "5", "10", "20"]


def drawn(figure):
    """Every line of a figure as its numbers, and every text."""
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    texts += [part for ax in figure.axes for part in (ax.get_title(), ax.get_xlabel(), ax.get_ylabel())]
    lines = {line.get_label(): list(line.get_ydata()) for ax in figure.axes[:1] for line in ax.lines}
    return lines, " ".join([*texts, figure.get_suptitle()])


def test_the_alpha_figure_draws_the_tables_numbers(swept):
    pytest.importorskip("matplotlib")
    lines, texts = drawn(figures.plot_alpha(swept))
    assert lines["rejected by people: fails"] == pytest.approx(
        [cell.style.votes.rejection for cell in swept.by_alpha], nan_ok=True
    )
    assert "used: 0.15" in texts
    assert "textures with a majority" in texts


def test_the_k_figure_draws_the_tables_numbers(swept):
    pytest.importorskip("matplotlib")
    lines, texts = drawn(figures.plot_k(swept))
    assert lines["semantic check"] == pytest.approx([cell.semantic.pass_rate for cell in swept.by_k])
    assert "same verdict as k = 5" in texts


def test_a_figure_says_why_a_number_is_missing():
    pytest.importorskip("matplotlib")
    figure = figures.plot_estimates({"style": ROWS[0][1], "object": ROWS[1][1]}, "T", "x", chance=0.5)
    assert "no number: one class" in drawn(figure)[1]


def test_a_figure_says_why_an_interval_is_missing():
    pytest.importorskip("matplotlib")
    shown = {"a": Estimate(0.5, reason="no interval: one task", n=1), "b": Estimate(0.5, 0.25, 0.75, n=58)}
    text = drawn(figures.plot_estimates(shown, "T", "x"))[1]
    assert "no interval: one task" in text
    assert "0.50 (n = 58)" in text


def test_lines_are_told_apart_without_colour(swept):
    """Each line of a panel has its own marker and dash, and every axis its unit."""
    pytest.importorskip("matplotlib")
    for figure in (figures.plot_alpha(swept), figures.plot_k(swept)):
        for ax in figure.axes:
            lines = [line for line in ax.lines if line.get_marker() != "None" and line.get_linestyle() != "None"]
            looks = [(line.get_marker(), line.get_linestyle()) for line in lines]
            assert len(looks) == len(set(looks)) >= 2
            assert ax.get_xlabel()
    assert {ax.get_ylabel() for ax in figures.plot_k(swept).axes} == {"share of assets", "Spearman's rho"}


def test_figures_are_written_by_their_ending(tmp_path):
    pytest.importorskip("matplotlib")
    figure = figures.plot_orders([0.1, 0.5], [0.5, 0.1], ["a", "b"], ("x", "y"), "T")
    for suffix in ("png", "svg", "pdf"):
        figures.save_figure(figure, tmp_path / f"f.{suffix}")
        assert (tmp_path / f"f.{suffix}").stat().st_size > 1000
    with pytest.raises(UsageError, match=r"\.png"):
        figures.save_figure(figure, tmp_path / "f.exe")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"assetscore\[notebooks\]"):
        figures.plot_orders([0.1, 0.5], [0.5, 0.1], ["a", "b"], ("x", "y"), "T")


def test_the_figure_of_alpha_holds_what_passes_every_check():
    """Table 18's last column: both panels show it beside each check's own share."""
    pytest.importorskip("matplotlib")
    from assetscore.studies.figures import plot_alpha

    profile, table, _ = planted()
    swept = sweep(profile, table)
    for ax in plot_alpha(swept).axes:
        (line,) = [line for line in ax.get_lines() if line.get_label() == "the game's own art: passes every check"]
        expected = [swept.cells[alpha, swept.k].references_both for alpha in line.get_xdata()]
        np.testing.assert_array_equal(line.get_ydata(), expected)
        assert len(expected) == len(swept.by_alpha)
