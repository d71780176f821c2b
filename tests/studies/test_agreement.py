"""Votes against results: the majority, the verdicts, and a planted study recovered."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from assetscore.errors import ManifestError, UsageError
from assetscore.studies.agreement import agreement, compare_encoders, majority, verdict_agreement
from assetscore.studies.votes import Vote, Votes
from assetscore.table import Row

NAN = math.nan


def test_majority_drops_unsure_and_counts_ties():
    ratings = np.array(
        [  # accepted, rejected, tie, tie with unsure, only unsure, nobody, one yes among unsure
            [1.0, 0.0, 1.0, 1.0, 0.5, NAN, 0.5],
            [1.0, 0.0, 0.0, 0.5, 0.5, NAN, 0.5],
            [0.0, 1.0, NAN, 0.0, NAN, NAN, 1.0],
        ]
    )
    result = majority(ratings)
    np.testing.assert_array_equal(result.labels, [1.0, 0.0, NAN, NAN, NAN, NAN, 1.0])
    assert (result.accepted, result.rejected, result.ties, result.undecided, result.unanswered) == (2, 1, 2, 1, 1)


@pytest.mark.parametrize("ratings", [[1, 0], [[0.3]], [[2]]])
def test_majority_takes_answers_only(ratings):
    with pytest.raises(UsageError):
        majority(ratings)


def test_verdicts_equal_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    passed, labels = rng.random(50) < 0.5, (rng.random(50) < 0.4).astype(int)
    result = verdict_agreement(passed, labels)
    assert result.acceptance == pytest.approx(metrics.recall_score(labels, passed))
    assert result.rejection == pytest.approx(metrics.recall_score(labels, passed, pos_label=0))
    assert result.balanced == pytest.approx(metrics.balanced_accuracy_score(labels, passed))


@pytest.mark.parametrize(("labels", "why"), [([1, 1], "rejected"), ([0, 0], "accepted"), ([], "accepted or rejected")])
def test_verdicts_of_one_class_say_why(labels, why):
    result = verdict_agreement([True] * len(labels), labels)
    assert math.isnan(result.balanced)
    assert why in result.reason
    assert result.to_dict()["balanced"] is None


def row(asset, style=0.5, passed=True, sem=0.5, sem_passed=True, encoder="lite"):
    return Row(asset, style_s=style, style_pass=passed, sem_s=sem, sem_pass=sem_passed, encoder=encoder)


def vote(asset, rater, answer, question="style", line=2):
    return Vote(asset, rater, question, answer, line)


def test_what_has_no_score_or_no_verdict_is_counted():
    answers = {"a": "yes", "b": "no", "c": "yes", "d": "no", "e": "unsure"}
    votes = Votes(tuple(vote(a, r, answer) for a, answer in answers.items() for r in "xy"))
    rows = [row("a", 0.9), row("b", 0.1, False), row("c", None, False), row("d", 0.2, None), row("e"), row("f")]
    (result,) = agreement(votes, rows).questions
    assert (result.accepted, result.rejected, result.undecided, result.ties) == (2, 2, 1, 0)
    assert (result.without_score, result.without_verdict) == (1, 1)
    assert result.auroc.n == 3
    assert result.auroc.value == 1.0
    assert (result.verdicts.acceptance, result.verdicts.rejection) == (0.5, 1.0)
    assert json.loads(json.dumps(agreement(votes, rows).to_dict()))["questions"][0]["question"] == "style"


def test_an_unknown_asset_names_its_line():
    with pytest.raises(ManifestError, match="line 7"):
        agreement(Votes((vote("z", "x", "yes", line=7),)), [row("a")])


def test_an_asset_twice_in_the_results_is_named():
    rows = [row("a"), row("b"), row("b")]
    agreement(Votes((vote("a", "x", "yes"),)), rows)  # nobody was asked about b
    with pytest.raises(UsageError, match="'b' belongs to two rows"):
        agreement(Votes((vote("b", "x", "yes"),)), rows)


def test_an_encoder_without_a_semantic_check_says_so():
    votes = Votes(tuple(vote(a, r, x, "object") for a, x in {"a": "yes", "b": "no"}.items() for r in "xy"))
    (result,) = agreement(votes, [row("a", sem=None, sem_passed=None), row("b", sem=None, sem_passed=None)]).questions
    assert result.auroc.reason == result.auroc_bootstrap.reason == "none of the 2 assets with a majority has a score"
    assert result.verdicts.reason == "none of the 2 assets with a majority has a verdict"
    assert result.alpha.value == 1.0


def test_one_rater_says_why_there_is_no_alpha():
    votes = Votes((vote("a", "x", "yes"), vote("b", "x", "no")))
    (result,) = agreement(votes, [row("a", 0.9), row("b", 0.1)]).questions
    assert "one rater" in result.alpha.reason
    assert "one rater" in result.alpha_ordinal.reason
    assert result.auroc.value == 1.0


def test_unsure_is_read_in_three_ways():
    answers = {"a": "yes yes unsure", "b": "no unsure no", "c": "yes no unsure", "d": "no no no"}
    votes = Votes(tuple(vote(a, r, x) for a, text in answers.items() for r, x in zip("xyz", text.split(), strict=True)))
    (result,) = agreement(votes, [row(a) for a in answers]).questions
    assert result.ties == 1
    values = {result.alpha.value, result.alpha_unsure.value, result.alpha_ordinal.value}
    assert len(values) == 3
    assert result.alpha.value > result.alpha_ordinal.value > result.alpha_unsure.value


def planted(seed, n=200, raters=9, shift=1.0):
    """Votes that follow a hidden label (few errors, so the majority is the label), scores `shift` apart."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.5
    wrong = rng.random((raters, n)) < 0.1
    unsure = rng.random((raters, n)) < 0.1
    votes = tuple(
        vote(f"a{j}", f"r{i}", "unsure" if unsure[i, j] else "yes" if truth[j] ^ wrong[i, j] else "no")
        for i in range(raters)
        for j in range(n)
    )
    scores = rng.normal(size=n) + shift * truth
    rows = [row(f"a{j}", float(scores[j]), bool(scores[j] > shift / 2)) for j in range(n)]
    return Votes(votes), rows


@pytest.mark.slow
def test_a_planted_study_is_recovered():
    """The area of classes 1 apart; alpha of raters who err one time in ten on balanced labels, (1 - 2 / 10)^2."""
    truth = stats.norm.cdf(1.0 / math.sqrt(2))
    covered = {"delong": 0, "bootstrap": 0, "alpha": 0}
    for seed in range(100):
        (result,) = agreement(*planted(seed, n=120, raters=7), seed=seed).questions
        covered["delong"] += result.auroc.low <= truth <= result.auroc.high
        covered["bootstrap"] += result.auroc_bootstrap.low <= truth <= result.auroc_bootstrap.high
        covered["alpha"] += result.alpha.low <= 0.8**2 <= result.alpha.high
    assert min(covered.values()) >= 90, covered


def test_the_better_of_two_encoders_is_found():
    votes, rows = planted(1)
    rng = np.random.default_rng(2)
    worse = [replace(r, style_s=r.style_s + rng.normal(scale=3), encoder="other") for r in rows]
    result = compare_encoders(votes, rows, worse)
    assert result.difference.low > 0
    assert result.p_value < 0.01
    back = compare_encoders(votes, worse, rows)
    assert back.difference.value == pytest.approx(-result.difference.value)
    with pytest.raises(UsageError, match="question"):
        compare_encoders(votes, rows, worse, "colour")


def test_encoders_without_a_common_score_say_so():
    votes, rows = planted(3, n=20)
    nothing = [replace(r, style_s=None) for r in rows]
    result = compare_encoders(votes, rows, nothing)
    for part in (result.first, result.second, result.difference, result.bootstrap):
        assert math.isnan(part.value)
        assert re.fullmatch(r"none of the \d+ assets with a majority has a score under both", part.reason)


def test_encoders_are_compared_on_what_both_scored():
    votes, rows = planted(3, n=40)
    partly = [replace(r, style_s=None) if i % 4 == 0 else r for i, r in enumerate(rows)]
    result = compare_encoders(votes, rows, partly)
    assert result.first.n == result.second.n <= 30


@pytest.mark.parametrize("hold", ["agreement", "compare first", "compare second"])
def test_scores_of_several_encoders_in_one_table_share_no_scale(hold):
    votes, rows = planted(3, n=20)
    mixed = [replace(r, encoder="another") if i % 2 else r for i, r in enumerate(rows)]
    tables = {"agreement": (mixed,), "compare first": (mixed, rows), "compare second": (rows, mixed)}[hold]
    with pytest.raises(UsageError, match=r"different encoders share no scale: .*another"):
        (agreement if len(tables) == 1 else compare_encoders)(votes, *tables)
    # a missing file was scored with no encoder
    assert agreement(votes, [replace(rows[0], encoder=""), *rows[1:]]).encoder == rows[0].encoder
