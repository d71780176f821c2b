"""Paired comparisons against brute force, published numbers and the planted truth."""

from __future__ import annotations

import itertools
import json
import math
import time

import numpy as np
import pytest
from scipy import stats

from assetscore.errors import UsageError
from assetscore.studies.paired import paired, rank_agreement


def signed_rank_p(change):
    """The two-sided exact p by all sign patterns (no zeros)."""
    ranks = stats.rankdata(np.abs(change))
    observed = abs(ranks[change > 0].sum() - ranks.sum() / 2)
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in itertools.product((0, 1), repeat=len(ranks))
    ]
    return float(np.mean([abs(s - ranks.sum() / 2) >= observed for s in sums]))


@pytest.mark.parametrize("seed", range(4))
def test_wilcoxon_equals_all_sign_patterns(seed):
    rng = np.random.default_rng(seed)
    first = rng.random(9)
    second = first + rng.normal(0.2, 0.4, size=9)
    assert paired(first, second).wilcoxon_p == pytest.approx(signed_rank_p(second - first))


@pytest.mark.parametrize("seed", range(12))
def test_wilcoxon_with_ties_equals_all_sign_patterns(seed):
    """Rates of few assets a task: most differences tie, and zeros are dropped."""
    rng = np.random.default_rng(seed)
    change = rng.integers(-3, 5, size=int(rng.integers(2, 13))) / 4
    result = paired(np.full(change.size, 0.1), 0.1 + change)
    if change.any():
        assert result.wilcoxon_p == pytest.approx(signed_rank_p(change[change != 0]))
    assert result.ties == (change == 0).sum()


@pytest.mark.parametrize("n", [3, 20, 50, 51, 140])
def test_wilcoxon_equals_scipy_without_ties(n):
    change = np.random.default_rng(n).normal(0.2, 1, size=n)
    expected = stats.wilcoxon(change, method="exact" if n <= 50 else "auto").pvalue
    assert paired(np.zeros(n), change).wilcoxon_p == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [12, 40, 140])
def test_the_interval_equals_scipys_percentile_bootstrap(n):
    """SciPy's, at the level that the expansion for few tasks asks for; both are random, so within a few percent."""
    rng = np.random.default_rng(n)
    change = rng.normal(0.1, 0.3, size=n)
    tail = stats.norm.cdf(-stats.t.ppf(0.975, n - 1) * math.sqrt(n / (n - 1)))
    expected = stats.bootstrap(
        (change,), np.mean, n_resamples=20_000, confidence_level=1 - 2 * tail, method="percentile", rng=rng
    ).confidence_interval
    mine = paired(np.zeros(n), change).difference
    width = expected.high - expected.low
    assert mine.low == pytest.approx(expected.low, abs=0.03 * width)
    assert mine.high == pytest.approx(expected.high, abs=0.03 * width)


def test_tasks_of_one_cluster_are_one():
    change = np.random.default_rng(0).normal(size=30)
    once = paired(np.zeros(30), change).difference
    tripled = paired(np.zeros(90), np.repeat(change, 3), clusters=np.repeat(np.arange(30), 3).tolist()).difference
    assert (tripled.low, tripled.high) == pytest.approx((once.low, once.high))
    single = paired(np.zeros(3), [0.1, 0.2, 0.4], clusters=["a"] * 3).difference
    assert single.reason == "no interval: there is only one cluster to draw from"


@pytest.mark.parametrize("change", [0.0, 0.1, -0.3])
def test_an_equal_change_of_every_task_is_no_certainty(change):
    first = np.linspace(0.3, 0.6, 7)
    result = paired(first, first + change).difference
    assert result.value == pytest.approx(change)
    assert math.isnan(result.low)
    assert result.reason == "no interval: the resamples do not differ, which says nothing about other tasks"


def test_wilcoxon_published_example():
    """Darwin's maize, crossed minus self-fertilised in eighths of an inch: T = 24, two-sided exact p 0.0413."""
    change = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    result = paired(np.zeros(15), change)
    assert result.wilcoxon_p == pytest.approx(0.0413, abs=5e-5)
    assert (result.wins, result.losses, result.ties) == (13, 2, 0)


def test_equal_differences_tie_in_spite_of_rounding():
    first = np.array([0.2, 0.3, 0.1, 0.6, 0.5])
    second = np.array([0.3, 0.4, 0.2, 0.7, 0.4])
    exact = paired(np.zeros(5), [1, 1, 1, 1, -1]).wilcoxon_p
    assert paired(first, second).wilcoxon_p == exact
    result = paired([0.1 + 0.2, 0.5], [0.3, 0.6])
    assert (result.wins, result.losses, result.ties) == (1, 0, 1)


def test_the_interval_is_that_of_all_possible_resamples():
    change = np.array([0.3, -0.1, 0.2, 0.05, 0.0, 0.25])
    means = [np.mean(pick) for pick in itertools.product(change, repeat=6)]
    result = paired(np.zeros(6), change, resamples=100_000)
    tail = stats.norm.cdf(-stats.t.ppf(0.975, 5) * math.sqrt(6 / 5))
    low, high = np.quantile(means, [tail, 1 - tail])
    assert result.difference.low == pytest.approx(low, abs=0.02)
    assert result.difference.high == pytest.approx(high, abs=0.02)


def test_one_task_has_no_interval():
    result = paired([0.1], [0.3])
    assert math.isnan(result.difference.low)
    assert "one task" in result.difference.reason
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_planted_difference_is_recovered():
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        first = rng.random(140)
        second = first + 0.03 + rng.normal(scale=0.1, size=140)
        result = paired(first, second, resamples=1000, seed=seed).difference
        covered += result.low <= 0.03 <= result.high
    assert covered >= 90


def test_140_tasks_with_20000_resamples_take_under_two_seconds():
    rng = np.random.default_rng(0)
    first, second = rng.random(140), rng.random(140)
    start = time.process_time()
    result = paired(first, second)
    assert time.process_time() - start < 2.0
    assert "20000 resamples" in result.difference.method
    assert result == paired(first, second)


def test_no_difference_at_all_says_why_there_is_no_test():
    result = paired([0.1, 0.2], [0.1, 0.2])
    assert math.isnan(result.wilcoxon_p)
    assert "tie" in result.reason
    assert result.ties == 2
    assert math.isnan(result.difference.low)
    assert "do not differ" in result.difference.reason
    assert result.to_dict()["wilcoxon_p"] is None


@pytest.mark.parametrize(("first", "second"), [([], []), ([1.0], [1.0, 2.0]), ([math.nan], [1.0]), ([[1.0]], [[1.0]])])
def test_wrong_use_is_named(first, second):
    with pytest.raises(UsageError):
        paired(first, second)


def test_rank_agreement_equals_the_definitions():
    rng = np.random.default_rng(0)
    a, b = rng.random(8), rng.random(8)
    result = rank_agreement(a, b, [f"m{i}" for i in range(8)])
    ranks = [np.argsort(np.argsort(v)) for v in (a, b)]
    assert result.spearman == pytest.approx(1 - 6 * ((ranks[0] - ranks[1]) ** 2).sum() / (8 * 63))
    same = np.mean([(a[i] < a[j]) == (b[i] < b[j]) for i in range(8) for j in range(i)])
    assert result.same_order == pytest.approx(same)
    assert result.kendall == pytest.approx(2 * same - 1)
    assert result.best == ((f"m{a.argmax()}",), (f"m{b.argmax()}",))
    assert result.kendall == pytest.approx(stats.kendalltau(a, b).statistic)


def test_the_papers_model_order_example():
    """Seven published style pass rates against themselves with two neighbours swapped: rho = 1 - 12 / 336."""
    rates = [0.17, 0.49, 0.52, 0.32, 0.34, 0.16, 0.23]
    swapped = [0.17, 0.52, 0.49, 0.32, 0.34, 0.16, 0.23]
    assert rank_agreement(rates, swapped).spearman == pytest.approx(1 - 6 * 2 / (7 * 48))


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ([0.1, 0.5, 0.5], [0.2, 0.1, 0.4], (("b", "c"), ("c",))),
        ([0.3, 0.1 + 0.2, 0.1], [0.1, 0.1, 0.1], (("a", "b"), ("a", "b", "c"))),
        ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], (("c",), ("a",))),
    ],
)
def test_models_that_share_the_first_place_are_all_named(first, second, best):
    result = rank_agreement(first, second, ["a", "b", "c"])
    assert result.best == best
    assert json.loads(json.dumps(result.to_dict()))["best"] == [list(names) for names in best]


def test_one_model_is_the_best_of_one():
    assert rank_agreement([0.1], [0.2], ["a"]).best == (("a",), ("a",))
    assert rank_agreement([], []).best == ((), ())


@pytest.mark.parametrize(("first", "second", "why"), [([0.1], [0.2], "two models"), ([1, 1], [1, 2], "first")])
def test_no_order_says_why(first, second, why):
    result = rank_agreement(first, second)
    assert math.isnan(result.spearman)
    assert why in result.reason
