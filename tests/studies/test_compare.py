"""Builds asset by asset, methods over tasks, encoders by their order, and the rule for what to keep."""

from __future__ import annotations

import html.parser
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from assetscore.errors import UsageError
from assetscore.studies.compare import (
    compare_builds,
    compare_methods,
    compare_orders,
    keep_best,
    measures,
    other_thresholds,
)
from assetscore.studies.page import write_page
from assetscore.table import Row

from .planted import planted


def row(asset, style=0.6, sem=0.6, tau=0.5, group="g", status="scored", path="", encoder="e"):
    style_pass, sem_pass = style >= tau, sem >= tau
    return Row(
        asset, category="item", group=group, path=path, status=status, style_s=style, style_tau=tau,
        style_margin=style - tau, style_pass=style_pass, sem_factor="object class", sem_s=sem, sem_tau=tau,
        sem_margin=sem - tau, sem_pass=sem_pass, both_pass=style_pass and sem_pass, encoder=encoder,
    )  # fmt: skip


def missing(asset):
    return Row(asset, status="missing", style_pass=False, sem_factor="object class", sem_pass=False, both_pass=False)


def test_assets_are_matched_by_id():
    before = [row("same"), row("better", 0.4), row("repainted", 0.61), row("lost"), missing("came")]
    after = [row("gained"), row("came"), row("repainted", 0.62), row("better", 0.7), row("same")]
    result = compare_builds(before, after)
    kinds = {change.asset_id: change.kind for change in result.changes}
    assert kinds == {
        "same": "same", "better": "changed", "repainted": "changed", "came": "changed",
        "lost": "lost", "gained": "gained",
    }  # fmt: skip
    what = {change.asset_id: change.what for change in result.changes}
    assert what["better"] == ("style: fail -> pass", "both: fail -> pass", "picture")
    assert what["repainted"] == ("picture",)
    assert what["came"][0] == "status: missing -> scored"
    assert result.before == {"pass_style": 0.6, "pass_sem": 0.8, "pass_both": 0.6, "custom": 0.8}
    assert result.after == {"pass_style": 1.0, "pass_sem": 1.0, "pass_both": 1.0, "custom": 1.0}
    style = result.margins["style"]
    assert (style.wins, style.losses, style.ties, style.difference.n) == (2, 0, 1, 3)
    assert style.difference.value == pytest.approx((0.3 + 0.01) / 3)
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_same_build_twice_has_no_change():
    _, table, _ = planted()
    result = compare_builds(table, table)
    assert {change.kind for change in result.changes} == {"same"}
    assert "tie" in result.margins["style"].reason


def test_rates_are_those_of_the_summary():
    from assetscore.summary import summarise

    _, table, _ = planted()
    rates = measures(table)
    line = summarise(replace(table, rows=tuple(replace(r, group="all") for r in table), profile=None))[0]
    assert rates == {
        "pass_style": line.pass_style.value,
        "pass_sem": line.pass_sem.value,
        "pass_both": line.pass_both.value,
        "custom": line.custom.value,
    }


def test_builds_that_cannot_be_compared():
    with pytest.raises(UsageError, match="different encoders"):
        compare_builds([row("a", encoder="x")], [row("a", encoder="y")])
    with pytest.raises(UsageError, match="two rows of group 'g'"):
        compare_builds([row("a"), row("a")], [row("a")])


def test_ids_that_several_groups_share_are_matched_within_their_group():
    before = [row("sword", 0.4, group="task1"), row("sword", 0.6, group="task2")]
    after = [row("sword", 0.7, group="task2"), row("sword", 0.7, group="task1")]
    result = compare_builds(before, after)
    assert [(change.asset_id, change.kind) for change in result.changes] == [
        ("task1: sword", "changed"),
        ("task2: sword", "changed"),
    ]
    assert result.margins["style"].difference.value == pytest.approx(0.2)


def test_builds_with_nothing_in_common_have_no_margins():
    result = compare_builds([row("a")], [row("b")])
    assert result.margins == {"style": None, "semantic": None}
    assert [change.kind for change in result.changes] == ["gained", "lost"]


def test_methods_are_paired_by_task():
    first = [row(f"{t}{i}", 0.6 if i < t % 4 else 0.4, group=f"task{t}") for t in range(8) for i in range(4)]
    second = [row(f"{t}{i}", 0.6 if i < t % 4 + 1 else 0.4, group=f"task{t}") for t in range(7) for i in range(4)]
    result = compare_methods(first, second, "pass_style")
    assert result.only_first == ("task7",)
    assert result.tasks["task2"] == (0.5, 0.75)
    assert result.result.difference.value == pytest.approx(0.25)
    assert (result.result.wins, result.result.losses) == (7, 0)
    with pytest.raises(UsageError, match="measure"):
        compare_methods(first, second, "beauty")
    with pytest.raises(UsageError, match="by must be"):
        compare_methods(first, second, by="path")
    with pytest.raises(UsageError, match="in common"):
        compare_methods(first, [row("a", group="other")])


def test_two_encoders_may_order_models_differently():
    rates = {"a": 1, "b": 2, "c": 3, "d": 4}
    first = [row(f"{g}{i}", 0.6 if i < n else 0.4, group=g) for g, n in rates.items() for i in range(4)]
    rates["c"], rates["d"] = rates["d"], rates["c"]
    second = [row(f"{g}{i}", 0.6 if i < n else 0.4, group=g, encoder="y") for g, n in rates.items() for i in range(4)]
    result = compare_orders(first, second)
    assert result.spearman == pytest.approx(0.8)
    assert result.best == (("d",), ("c",))
    extra = [*second, row("z", 0.6, group="extra", encoder="y")]
    assert compare_orders(first, extra).only_second == ("extra",)
    with pytest.raises(UsageError, match="no group has a number for pass_both in both"):
        compare_orders(first, [replace(r, status="uncalibrated") for r in second])


@pytest.mark.parametrize("what", ["style", "sem"])
def test_other_thresholds_are_said(what):
    """The same pictures judged with another alpha: verdicts and margins move, and the reader is told why."""
    before = [row(f"a{i}", 0.52) for i in range(4)] + [missing("gone")]
    moved = {f"{what}_tau": 0.55, f"{what}_margin": 0.52 - 0.55, f"{what}_pass": False}
    after = [replace(r, **moved) if r.style_s else r for r in before]
    assert compare_builds(before, before).remarks == ()
    result = compare_builds(before, after)
    (remark,) = result.remarks
    name = {"style": "style", "sem": "semantic"}[what]
    assert f"{name} thresholds differ for 4 of 4 assets (tau +0.050 to +0.050)" in remark
    assert remark in result.to_dict()["remarks"]


def test_other_requests_are_said_and_are_no_other_threshold():
    before = [row(f"a{i}") for i in range(4)]
    after = [replace(before[0], sem_factor="ruby sword", sem_tau=0.4), *before[1:]]
    assert compare_builds(before, after).remarks == ("1 of 4 assets were asked for with other words",)


def test_the_page_says_what_else_moved(tmp_path):
    after = [replace(row("a"), style_tau=0.55)]
    write_page(compare_builds([row("a")], after), tmp_path / "page.html")
    assert "style thresholds differ for 1 of 1" in (tmp_path / "page.html").read_text()


# keep the best


def test_the_rule_step_by_step():
    builds = [
        {"aim": 0.40, "other": 0.80},
        {"aim": 0.44, "other": 0.90},  # too little gained
        {"aim": 0.50, "other": 0.74},  # too much lost
        {"aim": 0.45, "other": 0.75},  # exactly at both limits
        {"aim": 0.49, "other": 0.80},  # measured from the kept one, not from the first
        {"aim": 0.50, "other": 0.69},
        {"aim": 0.49, "other": 0.99},
        {"aim": 0.99, "other": 0.99},  # three without a new best: not reached
    ]
    result = keep_best(builds, "aim")
    assert [step.decision for step in result.steps] == [
        "kept", "rejected", "rejected", "kept", "rejected", "rejected", "rejected", "not reached"
    ]  # fmt: skip
    assert (result.best, result.stopped_after) == (3, 6)
    assert "other -0.060" in result.steps[2].reason
    assert keep_best(builds, "aim", patience=4).best == 7
    assert keep_best(builds, "aim", others=[]).best == 2


@pytest.mark.parametrize("hundredths", range(0, 95))
def test_the_limits_hold_in_decimals_not_in_floats(hundredths):
    kept = {"aim": hundredths / 100, "other": (hundredths + 5) / 100}
    new = {"aim": (hundredths + 5) / 100, "other": hundredths / 100}
    assert keep_best([kept, new], "aim").best == 1
    assert keep_best([kept, {**new, "aim": (hundredths + 4) / 100}], "aim").best == 0
    assert keep_best([new, {"aim": (hundredths + 10) / 100, "other": (hundredths - 6) / 100}], "aim").best == 0


NAN = math.nan


@pytest.mark.parametrize("none", [NAN, None])
@pytest.mark.parametrize(
    ("builds", "best", "why"),
    [
        # (aim, other) of each build; the index of the kept one; what the last step says
        ([(0.1, 0.5), (None, 0.5)], 0, "aim has no number here"),
        ([(0.1, 0.5), (0.9, None)], 0, "other has no number here, and had 0.500"),
        ([(0.1, None), (0.9, None)], 1, "other not compared, build 0 has no number there"),
        ([(0.1, None), (0.9, 0.5)], 1, "other not compared, build 0 has no number there"),
        ([(None, 0.5), (0.1, 0.5)], 1, "the first build with a number for aim"),
        ([(None, 0.9), (0.0, None)], 1, "the first build with a number for aim"),
        ([(None, 0.5), (None, 0.5), (0.1, 0.0)], 2, "the first build with a number for aim"),
        ([(None, 0.5), (0.3, 0.5), (0.36, 0.5)], 2, "aim +0.060 over build 1"),
        ([(None, 0.5)] * 6 + [(0.2, 0.5)], 6, "the first build with a number for aim"),
    ],
)
def test_a_build_without_a_number(builds, best, why, none):
    """On the aim it is replaced by the first build with one, and never replaces; elsewhere it is said."""
    named = [{"aim": none if a is None else a, "other": none if o is None else o} for a, o in builds]
    result = keep_best(named, "aim")
    assert (result.best, result.reason) == (best, "")
    assert why in result.steps[-1].reason
    assert (result.steps[0].reason == "the first build") == (builds[0][0] is not None)
    json.dumps(result.to_dict(), allow_nan=False)


def test_no_build_with_a_number_is_said():
    result = keep_best([{"aim": NAN}] * 5, "aim")
    assert (result.best, result.stopped_after) == (0, 4)
    assert result.reason == "no build has a number for aim, so the first is kept"


def test_patience_counts_from_the_first_number():
    builds = [{"aim": a} for a in (NAN, NAN, 0.5, NAN, 0.5, 0.52, 0.9)]
    result = keep_best(builds, "aim")
    assert (result.best, result.stopped_after) == (2, 5)
    assert result.steps[6].decision == "not reached"


@pytest.mark.parametrize(
    ("builds", "options"),
    [
        ([], {}),
        ([{"other": 1.0}], {}),
        ([{"aim": 1.0}, {"other": 1.0}], {}),
        ([{"aim": 1.0}], {"gain": -0.1}),
        ([{"aim": 1.0}], {"loss": math.nan}),
        ([{"aim": 1.0}], {"patience": 0}),
        ([{"aim": 1.0}], {"patience": 2.5}),
        ([{"aim": 1.0}], {"patience": True}),
        ([{"aim": math.inf}], {}),
        ([{"aim": 1.0}, {"aim": -math.inf}], {}),
        ([{"aim": "high"}], {}),
    ],
)
def test_wrong_use_of_the_rule_is_named(builds, options):
    with pytest.raises(UsageError):
        keep_best(builds, "aim", **options)


# the page


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.images, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_holds_the_pictures_and_escapes_what_strangers_wrote(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("old", "new"):
        Image.fromarray(rng.integers(0, 255, (16, 16, 3), np.uint8)).save(tmp_path / f"{name}.png")
    before = [
        row("<script>x</script>", 0.4, path=str(tmp_path / "old.png")),
        row("gone", path=str(tmp_path / "no.png")),
    ]
    after = [row("<script>x</script>", 0.7, path=str(tmp_path / "new.png")), missing("came")]
    write_page(compare_builds(before, after), tmp_path / "page.html", title="A & B")
    text = (tmp_path / "page.html").read_text()
    reader = Reader()
    reader.feed(text)
    assert "script" not in reader.tags
    assert "<script>x</script>" in "".join(reader.texts)
    assert len(reader.images) == 2
    assert all(image["src"].startswith("data:image/png;base64,") for image in reader.images)
    assert (reader.images[0]["width"], reader.images[0]["height"]) == ("96", "96")
    assert "no picture at hand" in text
    assert "missing" in text
    assert str(tmp_path) not in text


def test_the_page_has_a_limit_and_says_so(tmp_path):
    before = [row(f"a{i}", 0.4) for i in range(30)]
    after = [row(f"a{i}", 0.7) for i in range(30)]
    write_page(compare_builds(before, after), tmp_path / "page.html", limit=10)
    text = (tmp_path / "page.html").read_text()
    assert text.count("<article>") == 10
    assert "20 more are not shown" in text


SIMILAR = (0.9, 0.8, 0.7)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ({"style_s": 0.8}, ()),  # another k
        ({"style_s": 0.8, "style_tau": 0.7, "style_margin": 0.1}, ()),
        ({"top_style": (0.9, 0.8, 0.6)}, ("picture",)),
        ({"style_s": 0.8, "top_style": (0.8, 0.8, 0.8)}, ("picture",)),
        ({"style_s": 0.8, "top_style": ()}, ("picture",)),  # nothing but the score to go by
        ({"category": "block", "top_style": (0.2, 0.1, 0.1)}, ("category: item -> block",)),
    ],
)
def test_a_picture_has_changed_where_its_similarities_have(after, what):
    """S moves with k, and everything does with the category; the similarities to one category only with the picture."""
    before = replace(row("a", 0.85), top_style=SIMILAR)
    (change,) = compare_builds([before], [replace(before, **after)]).changes
    assert change.what == what
    assert change.kind == ("changed" if what else "same")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, 0),
        ({"style_s": 0.9, "style_margin": 0.4}, 0),
        ({"style_tau": 0.55}, 1),
        ({"sem_tau": 0.45}, 1),
        ({"category": "block", "style_tau": 0.55, "sem_tau": 0.45}, 0),  # nothing in common to compare
        ({"sem_factor": "ruby sword", "sem_tau": 0.45}, 0),
    ],
)
def test_a_build_judged_by_other_thresholds_is_said(changes, said):
    builds = [[row("a"), missing("b")], [row("a")], [replace(row("a"), **changes)]]
    remarks = other_thresholds(builds)
    assert len(remarks) == said
    assert all("build 2 was judged with another alpha, k or rule than build 0 (1 of 2" in remark for remark in remarks)
