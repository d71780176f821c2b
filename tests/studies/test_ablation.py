"""Table 13 against numbers worked out by hand."""

from __future__ import annotations

import csv
import io
import json
from itertools import product

import numpy as np
import pytest

from assetscore.errors import UsageError
from assetscore.studies.ablation import ablation
from assetscore.studies.tables import ablation_table
from assetscore.table import Row

P, F, N = True, False, None


def rows(game: str, group: str, task: str, style: list[bool | None], sem: list[bool | None] | None) -> list[Row]:
    made = []
    for i, passed in enumerate(style):
        semantic = None if sem is None else sem[i]
        both = passed if sem is None else (None if passed is None else bool(passed and semantic))
        made.append(
            Row(
                f"{group}/{task}/{i}",
                game,
                "item",
                group,
                status="scored" if passed is not None else "empty",
                style_pass=passed,
                sem_factor=None if sem is None else "object class",
                sem_pass=semantic,
                both_pass=both,
                task=task,
            )
        )
    return made


# Style by task, plain -> tools: t1 1/2 -> 2/2, t2 0/2 -> 1/2, t3 1/1 -> 1/1; t4 and t5 have no partner.
# Over assets 2/6 (t4 included) -> 4/5: the empty one has no verdict. Over tasks +0.5, +0.5, 0: mean +1/3.
MINECRAFT = [
    *rows("minecraft", "plain", "t1", [P, F], [P, P]),
    *rows("minecraft", "plain", "t2", [F, F], [F, P]),
    *rows("minecraft", "plain", "t3", [P], [F]),
    *rows("minecraft", "plain", "t4", [F], [F]),
    *rows("minecraft", "tools", "t1", [P, P, N], [P, F, N]),
    *rows("minecraft", "tools", "t2", [P, F], [P, P]),
    *rows("minecraft", "tools", "t3", [P], [P]),
    *rows("minecraft", "tools", "t5", [N], [N]),
    *rows("minecraft", "someone else", "t1", [P], [P]),
]
TERRARIA = [*rows("terraria", "plain", "t1", [F, F, F, P], None), *rows("terraria", "tools", "t1", [P, F], None)]


def test_by_hand() -> None:
    (found,) = ablation(MINECRAFT, "plain", "tools")
    assert (found.game, found.n) == ("minecraft", (6, 7))
    shares = {name: tuple((rate.passed, rate.total) for rate in pair) for name, pair in found.rates.items()}
    assert shares == {
        "pass_style": ((2, 6), (4, 5)),
        "pass_sem": ((3, 6), (4, 5)),
        "pass_both": ((1, 6), (3, 5)),
    }
    style = found.differences["pass_style"]
    assert style is not None
    assert dict(style.tasks) == {"t1": (0.5, 1.0), "t2": (0.0, 0.5), "t3": (1.0, 1.0)}
    assert style.only_first == ("t4",)
    assert style.only_second == (), "t5 has no verdict, so nothing to compare"
    assert style.result.difference.value == pytest.approx(1 / 3)
    # Of the 27 equally likely resamples of (+.5, +.5, 0) one has mean 0 (3.7 %) and eight have mean .5 (29.6 %).
    means = sorted(np.mean(draw) for draw in product((0.5, 0.5, 0.0), repeat=3))
    assert means.count(0.0) / 27 > 0.025
    assert means.count(0.5) / 27 > 0.025
    assert (style.result.difference.low, style.result.difference.high) == (0.0, 0.5)
    assert (style.result.wins, style.result.losses, style.result.ties) == (2, 0, 1)
    semantic = found.differences["pass_sem"]
    assert semantic is not None
    assert dict(semantic.tasks) == {"t1": (1.0, 0.5), "t2": (0.5, 1.0), "t3": (0.0, 1.0)}
    both = found.differences["pass_both"]
    assert both is not None
    assert dict(both.tasks) == {"t1": (0.5, 0.5), "t2": (0.0, 0.5), "t3": (0.0, 1.0)}
    json.dumps(found.to_dict(), allow_nan=False)


def test_turned_round() -> None:
    (there,), (back,) = ablation(MINECRAFT, "plain", "tools"), ablation(MINECRAFT, "tools", "plain")
    for name, difference in there.differences.items():
        other = back.differences[name]
        assert difference is not None
        assert other is not None
        assert difference.result.difference.value == -other.result.difference.value
        assert there.rates[name] == back.rates[name][::-1]


def test_text() -> None:
    text = ablation_table(ablation(MINECRAFT + TERRARIA, "plain", "tools"))
    assert text == (
        "game                 configuration  N            Pass_style              Pass_sem             Pass_both\n"
        "minecraft                    plain  6                  0.33                  0.50                  0.17\n"
        "minecraft                    tools  7                  0.80                  0.80                  0.60\n"
        "minecraft  difference over 3 tasks  -  +0.33 [+0.00, +0.50]  +0.33 [-0.50, +1.00]  +0.50 [+0.00, +1.00]\n"
        "terraria                     plain  4                  0.25                     -                  0.25\n"
        "terraria                     tools  2                  0.50                     -                  0.50\n"
        "terraria    difference over 1 task  -             +0.25 (1)                 - (2)             +0.25 (1)\n"
        "(1) no interval: there is only one task to draw from\n"
        "(2) the encoder ignores requests\n"
    )
    fewer = ablation_table(ablation(TERRARIA, "tools", "plain")).splitlines()[3]
    assert fewer.split()[-6:] == ["-0.25", "(1)", "-", "(2)", "-0.25", "(1)"]


def test_csv_and_intervals() -> None:
    found = ablation(MINECRAFT, "plain", "tools")
    first, second, change = csv.DictReader(io.StringIO(ablation_table(found, "csv", intervals=True)))
    assert (first["game"], first["configuration"], first["N"]) == ("minecraft", "plain", "6")
    # Wilson's interval ends where (1/3 - p)^2 = z^2 p (1 - p) / 6.
    z2 = 1.959963984540054**2 / 6
    low, high = sorted(np.roots([1 + z2, -(2 / 3 + z2), 1 / 9]))
    assert float(first["Pass_style low"]) == pytest.approx(low, abs=1e-6)
    assert float(first["Pass_style high"]) == pytest.approx(high, abs=1e-6)
    assert float(second["Pass_both"]) == pytest.approx(0.6)
    assert (change["N"], change["Pass_style low"]) == ("", "0.000000")
    assert float(change["Pass_style"]) == pytest.approx(1 / 3, abs=1e-6)
    assert r"| +0.33 \[+0.00, +0.50\]" in ablation_table(found, "markdown")
    assert "& +0.33 [+0.00, +0.50]" in ablation_table(found, "latex")


def test_no_task_in_common() -> None:
    apart = [*rows("", "a", "t1", [P], None), *rows("", "b", "t2", [P], None)]
    (found,) = ablation(apart, "a", "b")
    assert found.differences == {"pass_style": None, "pass_both": None}
    *_, line, why, none = ablation_table([found]).splitlines()
    assert line.split() == ["folders", "difference", "over", "0", "tasks", "-", "-", "(1)", "-", "(2)", "-", "(1)"]
    assert (why, none) == ("(1) no task has a verdict of both", "(2) the encoder ignores requests")


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="no results of 'nobody'; there are: plain, tools, someone else"):
        ablation(MINECRAFT, "plain", "nobody")
    apart = [*rows("minecraft", "a", "t", [P], None), *rows("terraria", "b", "t", [P], None)]
    with pytest.raises(UsageError, match="no game in common"):
        ablation(apart, "a", "b")
