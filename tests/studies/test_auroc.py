"""AUROC, DeLong and the bootstrap, against scikit-learn, SciPy, brute force and the planted truth."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from scipy import special, stats

from assetscore.errors import UsageError
from assetscore.studies.agreement import auroc, auroc_bootstrap, auroc_delong, compare_auroc
from assetscore.studies.intervals import resample_counts


def sample(seed, n=60, ties=True, shift=0.8):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(int)
    labels[:2] = (0, 1)
    scores = rng.normal(size=n) + shift * labels
    return (np.round(scores, 1) if ties else scores), labels


def components(scores, labels):
    """DeLong's structural components by two loops."""
    up, down = scores[labels == 1], scores[labels == 0]
    psi = np.array([[1.0 if x > y else 0.5 if x == y else 0.0 for y in down] for x in up])
    return psi.mean(axis=1), psi.mean(axis=0)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_equals_scikit_learn_and_mann_whitney(seed, ties):
    metrics = pytest.importorskip("sklearn.metrics")
    scores, labels = sample(seed, ties=ties)
    area = auroc(scores, labels)
    assert area == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-12)
    u = stats.mannwhitneyu(scores[labels == 1], scores[labels == 0]).statistic
    assert area == pytest.approx(u / (labels.sum() * (1 - labels).sum()), abs=1e-12)


def test_ties_count_half():
    assert auroc([1, 1, 1, 1], [0, 1, 0, 1]) == 0.5
    assert auroc([1, 2, 2, 3], [0, 0, 1, 1]) == 0.875
    assert auroc([3, 2, 1], [0, 1, 1]) == 0.0


@pytest.mark.parametrize("labels", [[1, 1, 1], [0, 0, 0], []])
def test_one_class_says_why_there_is_no_number(labels, caplog):
    scores = [0.1, 0.2, 0.3][: len(labels)]
    with caplog.at_level(logging.WARNING):
        assert math.isnan(auroc(scores, labels))
    assert "both classes are needed" in caplog.text
    for estimate in (auroc_delong(scores, labels), auroc_bootstrap(scores, labels)):
        assert math.isnan(estimate.value)
        assert "both classes are needed" in estimate.reason
    paired = compare_auroc(scores, scores, labels)
    assert math.isnan(paired.p_value)
    assert "both classes" in paired.difference.reason


@pytest.mark.parametrize(
    ("scores", "labels"),
    [([1.0, 2.0], [0, 2]), ([math.nan, 2.0], [0, 1]), ([1.0], [0, 1]), (["a", "b"], [0, 1]), ([[1.0, 2.0]], [[0, 1]])],
)
def test_wrong_use_is_named(scores, labels):
    with pytest.raises(UsageError):
        auroc(scores, labels)


@pytest.mark.parametrize("seed", range(4))
def test_delong_equals_its_structural_components(seed):
    scores, labels = sample(seed)
    v10, v01 = components(scores, labels)
    error = math.sqrt(v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01))
    estimate = auroc_delong(scores, labels, level=0.9, transform="none")
    assert estimate.value == pytest.approx(v10.mean())
    assert estimate.high == pytest.approx(min(1.0, v10.mean() + stats.norm.ppf(0.95) * error))
    assert estimate.low == pytest.approx(v10.mean() - stats.norm.ppf(0.95) * error)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_logit_interval_is_delongs_on_the_log_odds(seed, ties):
    """By brute force: its ends lie z standard errors of the log-odds from the area's, the error from two loops."""
    scores, labels = sample(seed, ties=ties)
    v10, v01 = components(scores, labels)
    area = v10.mean()
    error = math.sqrt(v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01))
    step = 1e-6
    slope = (special.logit(area + step) - special.logit(area - step)) / (2 * step)
    estimate = auroc_delong(scores, labels, level=0.8)
    ends = special.logit([estimate.low, estimate.high]) - special.logit(area)
    assert ends == pytest.approx(np.array([-1, 1]) * stats.norm.ppf(0.9) * slope * error, rel=1e-6)


def test_delongs_variance_is_that_of_the_area_over_many_studies():
    """What the formula estimates: how much the area itself varies when the study is repeated."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [40, 30])
    areas, errors = [], []
    for _ in range(2000):
        scores = rng.normal(size=70) + 0.9 * labels
        estimate = auroc_delong(scores, labels, transform="none", level=0.5)
        areas.append(estimate.value)
        errors.append((estimate.high - estimate.value) / stats.norm.ppf(0.75))
    assert np.mean(np.square(errors)) == pytest.approx(np.var(areas), rel=0.08)


def test_the_interval_stays_inside_and_contains_the_area():
    scores, labels = sample(3, n=24, shift=2.5, ties=False)
    estimate = auroc_delong(scores, labels)
    assert 0.0 < estimate.low < estimate.value < estimate.high < 1.0


def test_an_area_without_variance_has_no_interval():
    estimate = auroc_delong([5, 5, 5, 5], [0, 0, 1, 1])
    assert (estimate.value, estimate.reason) == (0.5, "no interval: the scores are wholly tied, so the variance is 0")
    assert math.isnan(estimate.low)
    estimate = auroc_delong([1, 2, 3], [0, 0, 1])
    assert estimate.value == 1.0
    assert "only one accepted" in estimate.reason
    estimate = auroc_bootstrap([1, 2, 3, 4], [0, 0, 1, 1])
    assert math.isnan(estimate.low)
    assert estimate.reason == "no interval: the resamples do not differ, which says nothing about other assets"


def test_perfect_separation_still_has_an_interval():
    """Its lower end falls with fewer assets, is no surprise to a simulation, and mirrors at 0."""
    ends = []
    for n in (3, 10, 40):
        scores, labels = np.arange(2 * n), np.repeat([0, 1], n)
        estimate = auroc_delong(scores, labels)
        assert estimate.value == estimate.high == 1.0
        mirrored = auroc_delong(-scores, labels)
        assert (mirrored.low, mirrored.high) == (0.0, pytest.approx(1 - estimate.low))
        ends.append(estimate.low)
    assert ends == sorted(ends)
    assert 0.3 < ends[0] < ends[2] < 0.99
    # the lower end is where 1 lies z standard errors (Hanley and McNeil's, for equal numbers) above it
    area, n = ends[1], 10
    q1, q2 = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    error = math.sqrt((area * (1 - area) + (n - 1) * (q1 + q2)) / n**2)
    assert 1 - area == pytest.approx(stats.norm.ppf(0.975) * error)
    # at the lower end for 10 and 10, perfect separation should happen to about one study in forty or fewer
    shift = stats.norm.ppf(ends[1]) * math.sqrt(2)
    rng = np.random.default_rng(0)
    low, high = rng.normal(size=(20_000, 10)), rng.normal(size=(20_000, 10)) + shift
    assert (low.max(axis=1) < high.min(axis=1)).mean() < 0.04


@pytest.mark.parametrize("seed", range(4))
def test_paired_delong_equals_its_components(seed):
    first, labels = sample(seed)
    second = np.round(first + np.random.default_rng(seed + 100).normal(size=len(first)), 1)
    gap = [a - b for a, b in zip(components(first, labels), components(second, labels), strict=True)]
    error = math.sqrt(gap[0].var(ddof=1) / len(gap[0]) + gap[1].var(ddof=1) / len(gap[1]))
    result = compare_auroc(first, second, labels)
    assert result.difference.value == pytest.approx(gap[0].mean())
    assert result.z == pytest.approx(gap[0].mean() / error)
    assert result.p_value == pytest.approx(2 * stats.norm.cdf(-abs(gap[0].mean() / error)))


APART = "the areas differ by"
LABELS = [0, 0, 0, 1, 1, 1]
ORDERS = {"up": [1, 2, 3, 4, 5, 6], "down": [6, 5, 4, 3, 2, 1], "tied": [7] * 6, "other": [3, 1, 2, 6, 5, 4]}


@pytest.mark.parametrize(
    ("first", "second", "gap", "why"),
    [
        ("up", "up", 0.0, "order these assets alike"),
        ("tied", "tied", 0.0, "order these assets alike"),
        ("up", "other", 0.0, "set each asset against the other class alike"),
        ("up", "down", 1.0, f"{APART} +1.000"),
        ("down", "up", -1.0, f"{APART} -1.000"),
        ("up", "tied", 0.5, f"{APART} +0.500"),
        ("tied", "down", 0.5, f"{APART} +0.500"),
    ],
)
def test_a_difference_without_variance_says_what_is_so(first, second, gap, why):
    """No test and no interval, but "alike" only where the scores are: opposite and tied orders differ as far as can be."""
    result = compare_auroc(ORDERS[first], ORDERS[second], LABELS)
    assert result.difference.value == result.bootstrap.value == gap
    assert math.isnan(result.p_value)
    assert why in result.difference.reason
    assert ("alike," in result.difference.reason) == (gap == 0.0)
    for part in (result.difference, result.bootstrap):
        assert math.isnan(part.low)
        assert math.isnan(part.high)
        assert part.reason.startswith("no ")


def test_scores_on_another_scale_are_the_same_scores():
    scores, labels = sample(0)
    result = compare_auroc(scores, 2 * scores + 1, labels)
    assert "order these assets alike" in result.difference.reason
    assert "do not differ" in result.bootstrap.reason


def test_each_resample_equals_scikit_learn_on_its_assets():
    metrics = pytest.importorskip("sklearn.metrics")
    scores, labels = sample(5, n=40)
    draws = []
    for counts in resample_counts(40, 50, seed=7):
        for row in counts.astype(int):
            pick = np.repeat(np.arange(40), row)
            draws.append(metrics.roc_auc_score(labels[pick], scores[pick]))
    estimate = auroc_bootstrap(scores, labels, resamples=50, seed=7)
    tail = stats.norm.cdf(-stats.t.ppf(0.975, 39) * math.sqrt(40 / 39))
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(draws, [tail, 1 - tail])))


def test_resamples_without_a_class_are_counted():
    estimate = auroc_bootstrap([0.1, 0.2, 0.3, 0.4], [0, 0, 0, 1], resamples=1000)
    expected = 1000 * 0.75**4
    assert estimate.skipped == pytest.approx(expected + 1000 * 0.25**4, abs=60)


def test_clusters_widen_the_interval():
    scores, labels = sample(2, n=40, ties=False)
    tripled, names = np.repeat(scores, 3), np.repeat(np.arange(40), 3).tolist()
    alone = auroc_bootstrap(tripled, np.repeat(labels, 3), resamples=3000)
    together = auroc_bootstrap(tripled, np.repeat(labels, 3), resamples=3000, clusters=names)
    once = auroc_bootstrap(scores, labels, resamples=3000)
    assert together.high - together.low == pytest.approx(once.high - once.low, abs=0.02)
    assert alone.high - alone.low < 0.75 * (together.high - together.low)


@pytest.mark.parametrize("n", [40, 120])
@pytest.mark.parametrize("shift", [0.6, 1.2, 2.0])
@pytest.mark.parametrize("interval", ["delong", "bootstrap"])
def test_a_planted_area_is_recovered(interval, shift, n):
    """Two normal classes `shift` apart have the area Phi(shift / sqrt 2)."""
    truth, covered = stats.norm.cdf(shift / math.sqrt(2)), 0
    for seed in range(100):
        rng = np.random.default_rng(1000 + seed)
        labels = np.repeat([0, 1], n // 2)
        scores = rng.normal(size=n) + shift * labels
        if interval == "bootstrap":
            estimate = auroc_bootstrap(scores, labels, resamples=1000, seed=seed)
        else:
            estimate = auroc_delong(scores, labels)
        covered += estimate.low <= truth <= estimate.high
    assert covered >= 90


def test_paired_test_keeps_its_level_when_both_are_alike():
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        labels = np.repeat([0, 1], 40)
        common = rng.normal(size=80) + labels
        first, second = common + rng.normal(size=80), common + rng.normal(size=80)
        rejected += compare_auroc(first, second, labels, resamples=1).p_value < 0.05
    assert 2 <= rejected <= 22
