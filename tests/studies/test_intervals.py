"""The resampling: counts that add up, reproducible in any block size, clusters drawn whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assetscore.errors import UsageError
from assetscore.studies import intervals
from assetscore.studies.agreement import auroc_bootstrap, compare_auroc, krippendorff_bootstrap
from assetscore.studies.intervals import Estimate, percentile_interval, resample_counts
from assetscore.studies.paired import paired


def test_each_resample_draws_n_units():
    counts = np.concatenate(list(resample_counts(7, 500, seed=0)))
    assert counts.shape == (500, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(7), abs=0.2)


def test_the_block_size_changes_nothing(monkeypatch):
    whole = np.concatenate(list(resample_counts(9, 100, seed=3)))
    monkeypatch.setattr(intervals, "_BLOCK", 40)
    blocks = list(resample_counts(9, 100, seed=3))
    assert max(len(block) for block in blocks) == 4
    assert (np.concatenate(blocks) == whole).all()


def test_clusters_are_drawn_whole():
    counts = np.concatenate(list(resample_counts(5, 50, seed=1, clusters=["a", "a", "b", "b", "c"])))
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, 2] == counts[:, 3]).all()
    assert ((counts[:, 0] + counts[:, 2] + counts[:, 4]) == 3).all()


@pytest.mark.parametrize(("n", "resamples", "clusters"), [(0, 10, None), (3, 0, None), (3, 10, ["a"])])
def test_wrong_use_is_named(n, resamples, clusters):
    with pytest.raises(UsageError):
        list(resample_counts(n, resamples, 0, clusters))


def test_percentile_interval_leaves_out_what_does_not_exist():
    found = percentile_interval([math.nan, *range(100), math.nan])
    assert found.skipped == 2
    assert (found.low, found.high) == pytest.approx((99 * 0.025, 99 * 0.975))
    assert found.reason == ""


@pytest.mark.parametrize(
    ("draws", "n", "why"),
    [
        ([math.nan] * 50, None, "the number exists on none of the 50 resamples"),
        ([], None, "the number exists on none of the 0 resamples"),
        ([1.0], None, "1 resamples with a number are too few, a level of 0.95 needs 40"),
        ([*range(39), math.nan], None, "39 resamples with a number are too few"),
        ([0.5] * 100, None, "the resamples do not differ"),
        ([0.1 + 0.2, 0.3] * 100, 20, "the resamples do not differ"),
        ([0.0] * 2000 + [1.0], None, "the resamples do not differ"),
        (range(100), 1, "there is only one sheet to draw from"),
    ],
)
def test_no_interval_has_a_reason_and_no_ends(draws, n, why):
    """Never an interval without width, which would pass for certainty, and never NaN without a word."""
    found = percentile_interval(draws, n=n, unit="sheet")
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason.startswith(f"no interval: {why}")


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_draws_must_reach_beyond_the_level(level):
    needed = round(2 / (1 - level))
    assert percentile_interval(np.arange(needed), level).reason == ""
    assert f"needs {needed}" in percentile_interval(np.arange(needed - 1), level).reason


INTERVALS = {
    "auroc": lambda **s: auroc_bootstrap([1, 3, 2, 4, 5, 6], [0, 0, 1, 1, 0, 1], **s),
    "compare": lambda **s: compare_auroc([1, 3, 2, 4, 5, 6], [2, 1, 3, 6, 5, 4], [0, 0, 1, 1, 0, 1], **s).bootstrap,
    "alpha": lambda **s: krippendorff_bootstrap(
        [[0, 1, 0, 1, 1], [0, 1, 1, 1, 0]], **{"confidence" if k == "level" else k: v for k, v in s.items()}
    ),
    "paired": lambda **s: paired([0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.5, 0.9], **s).difference,
}


@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize("resamples", [1, 2, 39])
def test_too_few_resamples_are_said_everywhere(name, resamples):
    estimate = INTERVALS[name](resamples=resamples)
    assert math.isfinite(estimate.value)
    assert math.isnan(estimate.low)
    assert "too few" in estimate.reason or "none of the" in estimate.reason
    assert estimate.reason in str(estimate)
    assert estimate.to_dict()["low"] is None


@pytest.mark.parametrize("name", INTERVALS)
def test_numpys_numbers_are_numbers(name):
    mine = INTERVALS[name](resamples=np.int64(200), seed=np.uint8(3), level=np.float32(0.5))
    plain = INTERVALS[name](resamples=200, seed=3, level=0.5)
    assert (mine.value, mine.low, mine.high) == (plain.value, plain.low, plain.high)
    assert mine.low < mine.high


@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("seed", value) for value in (-1, 1.5, True, "1", None, math.nan)),
        *(("resamples", value) for value in (0, -1, 2.5, True, "5", 10**12)),
        *(("level", value) for value in (0, 1, -0.1, 1.5, math.nan, math.inf, True, "0.9")),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name, setting, value):
    word = "confidence" if (name, setting) == ("alpha", "level") else setting
    with pytest.raises(UsageError, match=f"^{word} must"):
        INTERVALS[name](**{setting: value})


def test_an_estimate_prints_its_reason():
    assert str(Estimate(math.nan, reason="one rater only")) == "- (one rater only)"
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"
    assert str(Estimate(0.5)) == "0.500"
