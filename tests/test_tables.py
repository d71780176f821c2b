"""The summary table: the paper's columns and rounding, and names that try to break out of the format."""

from __future__ import annotations

import csv
import io
import re

import pytest

from assetscore.errors import UsageError
from assetscore.report import render, render_games
from assetscore.summary import Rate, SummaryRow
from assetscore.text import printable


def line(
    group: str, n: int, custom: float, style: float, p_style: float, sem: float, p_sem: float, both: float
) -> SummaryRow:
    """One row of the published table; rates stand for the share of n that rounds to them."""
    rates = [Rate(round(share * n), n) for share in (custom, p_style, p_sem, both)]
    return SummaryRow(group, n, 0, rates[0], style, rates[1], sem, rates[2], rates[3], {"scored": n})


PUBLISHED = [
    SummaryRow(
        "Vanilla (leave-one-out)", 1989, 0, None, 0.041, Rate(1691, 1989), 0.062, Rate(1691, 1989), Rate(1591, 1989), {}
    ),
    line("DeepSeek-V4-Pro", 142, 1.00, -0.026, 0.17, -0.029, 0.23, 0.15),
    line("GLM-5.3", 226, 0.94, 0.001, 0.49, 0.003, 0.53, 0.40),
    line("Kimi-K3", 205, 0.94, -0.005, 0.52, -0.0001, 0.54, 0.47),
]
# As printed in the paper's Table 6, Minecraft.
TEXT = """\
                            N  Custom  Style S-tau  Pass_style  Sem S-tau  Pass_sem  Pass_both
Vanilla (leave-one-out)  1989       -       +0.041        0.85     +0.062      0.85       0.80
DeepSeek-V4-Pro           142    1.00       -0.026        0.17     -0.029      0.23       0.15
GLM-5.3                   226    0.94       +0.001        0.49     +0.003      0.53       0.40
Kimi-K3                   205    0.94       -0.005        0.52     -0.000      0.54       0.47
"""
UNCONDITIONAL = SummaryRow("a", 12, 2, Rate(9, 10), 0.01, Rate(8, 10), None, None, Rate(8, 10), {})
NOTHING = SummaryRow("b", 3, 3, Rate(0, 0), None, Rate(0, 0), None, None, Rate(0, 0), {})


def test_text_is_the_published_table() -> None:
    assert render(PUBLISHED) == TEXT


def test_no_semantic_check_is_a_dash_and_assets_without_verdict_are_counted() -> None:
    header, first, second = render([UNCONDITIONAL, NOTHING]).splitlines()
    assert re.split(r"\s{2,}", header.strip())[1] == "No verdict"
    assert first.split() == ["a", "12", "2", "0.90", "+0.010", "0.80", "-", "-", "0.80"]
    assert second.split() == ["b", "3", "3", "-", "-", "-", "-", "-", "-"]


def test_intervals_are_wilsons() -> None:
    # R: prop.test(8, 10, correct = FALSE) gives 0.4901625 to 0.9433178.
    assert "0.80 [0.49, 0.94]" in render([UNCONDITIONAL], intervals=True)
    [row] = csv.DictReader(io.StringIO(render([UNCONDITIONAL], "csv", intervals=True)))
    assert float(row["Pass_style_low"]) == pytest.approx(0.4902, abs=5e-5)
    assert float(row["Pass_both_high"]) == pytest.approx(0.9433, abs=5e-5)
    assert row["Pass_sem"] == row["Pass_sem_low"] == row["Sem S-tau"] == ""


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(render(PUBLISHED, "csv"))))
    assert [row["group"] for row in rows] == [row.group for row in PUBLISHED]
    assert list(rows[0])[1:] == ["N", "Custom", "Style S-tau", "Pass_style", "Sem S-tau", "Pass_sem", "Pass_both"]
    assert float(rows[1]["Pass_style"]) == pytest.approx(24 / 142, abs=1e-6)
    assert rows[0]["Custom"] == ""


HOSTILE = [
    "a_b & 50% #1 {x} ~ ^ \\end{tabular}",
    "a|b `c` *d* [e](f) <script>",
    "line\nbreak",
    "\x1b[31mred",
    "=1+1",
    "日本",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("format", ["text", "markdown", "latex", "csv"])
def test_a_name_cannot_break_the_table(name: str, format: str) -> None:
    row = SummaryRow(name, 1, 0, Rate(1, 1), 0.1, Rate(1, 1), None, None, Rate(1, 1), {})
    plain = SummaryRow("x", 1, 0, Rate(1, 1), 0.1, Rate(1, 1), None, None, Rate(1, 1), {})
    text = render([row, plain], format)  # type: ignore[arg-type]
    assert "\x1b" not in text or format == "csv"
    if format == "csv":
        assert [record["group"] for record in csv.DictReader(io.StringIO(text))] == [name, "x"]
        return
    assert text.count("\n") == render([plain, plain], format).count("\n")  # type: ignore[arg-type]
    if format == "latex":
        [cells] = [
            line for line in text.splitlines() if line.endswith(r"\\") and "0.100" in line and "x &" not in line[:3]
        ]
        assert len(re.findall(r"(?<!\\)&", cells)) == 7
        body = cells.removesuffix(r"\\")
        assert not re.search(r"(?<!\\)[%#]", body)
        assert text.count(r"\end{tabular}") == 1
    if format == "markdown":
        [cells] = [line for line in text.splitlines() if "0.100" in line and not line.startswith("| x")]
        assert len(re.findall(r"(?<!\\)\|", cells)) == 9
        assert "<script>" not in cells


def test_wide_characters_keep_the_columns() -> None:
    rows = [
        SummaryRow(name, 1, 0, Rate(1, 1), 0.1, Rate(1, 1), None, None, Rate(1, 1), {}) for name in ("日本", "abcd")
    ]
    _, wide, narrow = render(rows).splitlines()
    assert len(narrow) - len(wide) == 2, "two characters that take two columns each"


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UsageError, match="format must be one of text, markdown, csv, latex, got 'html'"):
        render(PUBLISHED, "html")  # type: ignore[arg-type]


def test_nothing_to_summarise_is_a_header() -> None:
    assert render([]).split("  ")[-1].strip() == "Pass_both"


# As printed in the paper's Table 6, Terraria.
TERRARIA = [
    SummaryRow(
        "Vanilla (leave-one-out)",
        15456,
        0,
        None,
        0.026,
        Rate(13138, 15456),
        0.041,
        Rate(13138, 15456),
        Rate(12056, 15456),
        {},
    ),
    line("GLM-5.3", 73, 0.74, -0.012, 0.32, -0.003, 0.37, 0.29),
]


class TestGames:
    def test_both_games_one_below_the_other(self) -> None:
        assert render_games({"minecraft": PUBLISHED, "terraria": TERRARIA}) == (
            TEXT.replace(" " * 9, "Minecraft", 1)
            + "\n"
            + "Terraria                     N  Custom  Style S-tau  Pass_style  Sem S-tau  Pass_sem  Pass_both\n"
            + "Vanilla (leave-one-out)  15456       -       +0.026        0.85     +0.041      0.85       0.78\n"
            + "GLM-5.3                     73    0.74       -0.012        0.32     -0.003      0.37       0.29\n"
        )

    def test_table_4_is_its_pass_columns(self) -> None:
        assert render_games({"terraria": TERRARIA}, columns="pass") == (
            "Terraria                 Pass_style  Pass_sem  Pass_both\n"
            "Vanilla (leave-one-out)        0.85      0.85       0.78\n"
            "GLM-5.3                        0.32      0.37       0.29\n"
        )

    def test_csv_is_one_table(self) -> None:
        text = render_games({"minecraft": PUBLISHED, "terraria": TERRARIA}, "csv")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [(row["game"], row["group"]) for row in rows] == [
            *(("minecraft", row.group) for row in PUBLISHED),
            *(("terraria", row.group) for row in TERRARIA),
        ]
        assert float(rows[-1]["Pass_both"]) == pytest.approx(21 / 73, abs=1e-6)

    def test_assets_without_verdict_in_one_game(self) -> None:
        text = render_games({"minecraft": [UNCONDITIONAL], "terraria": TERRARIA}, "csv")
        assert [row["No verdict"] for row in csv.DictReader(io.StringIO(text))] == ["2", "0", "0"]

    @pytest.mark.parametrize("game", HOSTILE)
    @pytest.mark.parametrize("format", ["text", "markdown", "latex"])
    def test_a_games_name_cannot_break_the_table(self, game: str, format: str) -> None:
        text = render_games({game: [UNCONDITIONAL]}, format)  # type: ignore[arg-type]
        assert "\x1b" not in text
        assert text.count("\n") == render_games({"x": [UNCONDITIONAL]}, format).count("\n")  # type: ignore[arg-type]

    def test_unknown_columns_are_named(self) -> None:
        with pytest.raises(UsageError, match="columns must be one of full, pass, got 'some'"):
            render(PUBLISHED, columns="some")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gem\x1b[31m", "a\nb", "no\u00a0break", "\u202eback", "pri\ue000vate", "half\ud800"])
def test_a_name_is_shown_by_the_one_rule_of_every_output(name: str) -> None:
    text = render([line(name, 10, 1, 0.1, 1, 0.1, 1, 1)])
    assert printable(name) != name
    assert text.splitlines()[1].startswith(printable(name) + "  ")
    assert "\ufffd" not in text
