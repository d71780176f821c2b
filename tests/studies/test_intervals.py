"""The resampling: counts that add up, reproducible in any block size, clusters drawn whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assetscore.errors import UsageError
from assetscore.studies import intervals
from assetscore.studies.intervals import Estimate, percentile_interval, resample_counts


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
    low, high, skipped = percentile_interval([math.nan, math.nan])
    assert math.isnan(low)
    assert math.isnan(high)
    assert skipped == 2
    with pytest.raises(UsageError):
        percentile_interval([1.0], level=1.0)


def test_an_estimate_prints_its_reason():
    assert str(Estimate(math.nan, reason="one rater only")) == "- (one rater only)"
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"
    assert str(Estimate(0.5)) == "0.500"
