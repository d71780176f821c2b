from __future__ import annotations

from decimal import Decimal
from math import floor

import numpy as np
import pytest
from scipy.stats import binomtest

from assetscore import calibration
from assetscore.calibrated import Calibration, calibrate
from assetscore.calibration import leave_one_out_k, p_values, rank, threshold, threshold_interval, wilson_interval
from assetscore.errors import EmbeddingError, UsageError
from assetscore.neighbours import exclude_groups, knn_brute_force, knn_mean

ALPHAS = np.arange(0.01, 0.31, 0.01)


class TestRank:
    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_every_n_against_whole_numbers(self, alpha: float) -> None:
        hundredths = round(alpha * 100)
        for n in range(1, 201):
            # m is the largest whole number with m / (n + 1) <= alpha: counted up, in integers.
            m = 0
            while (m + 1) * 100 <= hundredths * (n + 1):
                m += 1
            assert rank(n, alpha) == m, (n, alpha)

    def test_thousandths_as_decimals(self) -> None:
        for alpha in (0.001, 0.005, 0.025, 0.0625, 0.333, 0.999, 1e-6):
            for n in (1, 2, 39, 199, 999, 15456):
                assert rank(n, alpha) == floor(Decimal(str(alpha)) * (n + 1))

    @pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, float("nan"), float("inf"), "x", None])
    def test_alpha_outside_the_unit_interval(self, alpha: object) -> None:
        with pytest.raises(UsageError, match="alpha"):
            rank(10, alpha)  # type: ignore[arg-type]


class TestThreshold:
    def test_every_cell_against_counting(self) -> None:
        random = np.random.default_rng(0)
        for n in (1, 2, 5, 6, 7, 9, 10, 19, 29, 50, 99, 100, 200):
            scores = random.integers(0, max(2, n // 2), n) / 7.0  # with ties
            for alpha in ALPHAS:
                tau = threshold(scores, alpha)
                m = round(alpha * 100) * (n + 1) // 100
                # By definition: the smallest score that at least m scores do not exceed.
                reached = [s for s in scores if sum(other <= s for other in scores) >= m]
                assert tau == (min(reached) if m else None), (n, alpha)

    def test_nothing_to_calibrate_on(self) -> None:
        assert threshold([], 0.15) is None
        assert threshold([0.5] * 5, 0.15) is None
        assert threshold([0.5] * 6, 0.15) == 0.5

    def test_linear_is_numpys(self) -> None:
        scores = np.random.default_rng(1).normal(size=37)
        assert threshold(scores, 0.15, rule="linear") == np.quantile(scores, 0.15)

    def test_wrong_use(self) -> None:
        with pytest.raises(UsageError, match="rule"):
            threshold([1.0], 0.5, rule="median")  # type: ignore[arg-type]
        with pytest.raises(EmbeddingError, match="NaN"):
            threshold([1.0, np.nan], 0.5)
        with pytest.raises(UsageError, match="groups"):
            threshold([1.0, 2.0], 0.5, groups=[1])

    def test_groups_of_one_change_nothing(self) -> None:
        scores = np.random.default_rng(2).normal(size=83)
        for alpha in ALPHAS:
            assert threshold(scores, alpha, groups=np.arange(83)) == threshold(scores, alpha)

    def test_groups_against_fractions(self) -> None:
        from fractions import Fraction

        random = np.random.default_rng(3)
        for _ in range(40):
            groups = random.integers(0, 15, 60)
            scores = random.integers(0, 30, 60) / 3
            sizes = {g: int((groups == g).sum()) for g in groups}
            for alpha in (0.05, 0.1, 0.15, 0.3):
                m = floor(Decimal(str(alpha)) * (len(sizes) + 1))
                weight = {
                    s: sum(Fraction(1, sizes[g]) for g, other in zip(groups, scores, strict=True) if other <= s)
                    for s in scores
                }
                reached = [s for s in scores if weight[s] >= m]
                assert threshold(scores, alpha, groups=groups) == (min(reached) if m else None)


class TestPValues:
    @pytest.mark.parametrize("grouped", [False, True])
    def test_pass_exactly_when_p_exceeds_alpha(self, grouped: bool) -> None:
        random = np.random.default_rng(4)
        for n in (6, 7, 19, 20, 60, 133):
            scores = random.integers(0, n, n) / 5
            groups = random.integers(0, n // 2 + 1, n) if grouped else None
            values = np.concatenate([scores, scores + 0.01, scores - 0.01])
            p = p_values(scores, values, groups=groups)
            for alpha in ALPHAS:
                tau = threshold(scores, alpha, groups=groups)
                passed = np.ones(len(values), bool) if tau is None else values >= tau
                np.testing.assert_array_equal(passed, p > round(float(alpha), 2) + 1e-12)

    def test_by_counting(self) -> None:
        scores, values = [0.5, 0.7, 0.7, 0.9], [0.1, 0.5, 0.7, 0.8, 2.0]
        expected = [(1 + sum(s <= v for s in scores)) / 5 for v in values]
        assert p_values(scores, values).tolist() == expected

    def test_nan_and_shape(self) -> None:
        p = p_values([0.5], [[np.nan, 0.6]])
        assert np.isnan(p[0, 0])
        assert p[0, 1] == 1.0
        assert p_values([], 0.3) == 1.0


def _unit(random: np.random.Generator, n: int, d: int = 6) -> np.ndarray:
    # Clustered, so that nearest neighbours mean something.
    centres = random.normal(size=(4, d))
    x = centres[random.integers(0, 4, n)] + 0.5 * random.normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def _scores(x: np.ndarray, k: int, groups: np.ndarray) -> np.ndarray:
    """Each row's mean similarity to its k nearest rows of other groups, by sorting the whole matrix."""
    matrix = x.astype(float) @ x.astype(float).T
    matrix[groups[:, None] == groups[None, :]] = -np.inf
    return -np.sort(-matrix, axis=1)[:, :k].mean(axis=1)


class TestTheGuarantee:
    """False rejection of assets exchangeable with the references, by simulation; the bound is the binomial's 99.99 %."""

    @pytest.mark.parametrize("n", [10, 14, 20, 37, 80, 200])
    @pytest.mark.parametrize("alpha", [0.1, 0.15])
    @pytest.mark.parametrize("kind", ["smooth", "tied"])
    def test_at_every_n(self, n: int, alpha: float, kind: str) -> None:
        random = np.random.default_rng([n, int(alpha * 100), kind == "tied"])
        rejected, repetitions = 0, 600
        for _ in range(repetitions):
            x = _unit(random, n + 1)
            if kind == "tied":
                x = np.round(x * 1.5).astype(np.float32)
                x[~x.any(axis=1)] = 1
            tau = threshold(_scores(x[:n], 5, np.arange(n)), alpha)
            S = np.sort(x[:n].astype(float) @ x[n].astype(float))[-5:].mean()
            rejected += tau is not None and tau - 1e-12 > S
        bound = rank(n, alpha) / (n + 1)
        assert binomtest(rejected, repetitions, max(bound, 1e-9), alternative="greater").pvalue > 1e-4
        if kind == "smooth" and bound > 0.08:
            assert rejected / repetitions > bound / 2.5  # the check can fail: it is not passed by never rejecting

    def test_through_the_library(self) -> None:
        random = np.random.default_rng(20)
        n, alpha, rejected = 39, 0.15, 0
        for _ in range(200):
            x = _unit(random, n + 1)
            made = calibrate("item", "art style", x[:n], x[:n], np.arange(n))
            rejected += knn_mean(x[n:], x[:n], 5).S[0] < made.threshold(alpha, 5)  # type: ignore[operator]
        assert 0.06 < rejected / 200 < 0.15 + 0.08

    @pytest.mark.parametrize("k", [1, 3])
    def test_duplicates_are_left_out_together(self, k: int) -> None:
        """Every reference comes twice. Left out one by one they vouch for each other, and good assets fail."""
        random = np.random.default_rng(5)
        n, alpha, repetitions = 80, 0.05, 300
        groups = np.arange(n) // 2
        wrong = right = 0
        for _ in range(repetitions):
            distinct = _unit(random, n // 2 + 1)
            x, asset = distinct[groups], distinct[-1]
            S = np.sort(x.astype(float) @ asset.astype(float))[-k:].mean()
            wrong += threshold(_scores(x, k, np.arange(n)), alpha) > S  # type: ignore[operator]
            right += threshold(_scores(x, k, groups), alpha, groups=groups) > S  # type: ignore[operator]
        assert binomtest(right, repetitions, alpha, alternative="greater").pvalue > 1e-4
        assert wrong / repetitions > 3 * alpha

    def test_two_checks_reject_at_most_twice_alpha(self) -> None:
        random = np.random.default_rng(6)
        n, alpha = 60, 0.15
        rejected = 0
        for _ in range(300):
            x, y = _unit(random, n + 1), _unit(random, n + 1)
            fails = False
            for z in (x, y):
                S = np.sort(z[:n].astype(float) @ z[n].astype(float))[-5:].mean()
                fails |= bool(threshold(_scores(z[:n], 5, np.arange(n)), alpha) > S)  # type: ignore[operator]
            rejected += fails
        assert alpha < rejected / 300 < 2 * alpha + 0.06


class TestCalibration:
    def test_leave_one_out_against_a_double_loop(self) -> None:
        random = np.random.default_rng(8)
        x, groups = _unit(random, 50), random.integers(0, 20, 50)
        made = calibrate("item", "art style", x, x, groups)
        for k in (1, 3, 5):
            for i in range(50):
                others = [float(x[i].astype(float) @ x[j].astype(float)) for j in range(50) if groups[j] != groups[i]]
                expected = np.mean(sorted(others, reverse=True)[:k])
                assert made.scores(k)[i] == pytest.approx(expected, abs=1e-12)

    def test_k_is_what_the_largest_group_leaves(self) -> None:
        groups = np.array([0] * 7 + [1, 2, 3])
        assert leave_one_out_k(5, groups) == 3
        x = _unit(np.random.default_rng(9), 10)
        assert calibrate("a", "f", x, x, groups).top.shape == (10, 3)

    def test_one_group_is_uncalibrated(self) -> None:
        x = _unit(np.random.default_rng(9), 4)
        made = calibrate("a", "f", x, x, np.zeros(4, np.int64))
        assert made.threshold(0.15, 5) is None
        assert made.p_values(0.5, 5) == 1.0

    def test_every_item_has_a_twin(self) -> None:
        x = np.repeat(_unit(np.random.default_rng(10), 30), 2, axis=0)
        made = calibrate("a", "f", x, x, np.repeat(np.arange(30), 2))
        assert made.n == 30
        assert made.scores(1).max() < 0.9999
        brute = knn_brute_force(x, x, 1, exclude_groups(np.repeat(np.arange(30), 2)))
        np.testing.assert_allclose(made.scores(1), brute.S, atol=1e-12)

    def test_weights_of_groups(self) -> None:
        made = Calibration("a", "f", np.ones((4, 1)), np.array([0, 0, 1, 2]))
        assert made.weights.tolist() == [0.5, 0.5, 1.0, 1.0]


class TestIntervals:
    @pytest.mark.parametrize(("passed", "total"), [(0, 10), (1, 10), (8, 10), (10, 10), (170, 200)])
    def test_wilson_is_scipys(self, passed: int, total: int) -> None:
        ours = wilson_interval(passed, total)
        theirs = binomtest(passed, total).proportion_ci(method="wilson")
        assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)

    def test_wilson_of_nothing(self) -> None:
        assert np.isnan(wilson_interval(0, 0)).all()

    def test_threshold_interval_covers(self) -> None:
        random = np.random.default_rng(11)
        truth, hits = -1.0364333894937898, 0  # the 0.15-quantile of the normal distribution
        for _ in range(300):
            low, high = threshold_interval(random.normal(size=60), 0.15)
            hits += low <= truth <= high
        assert hits / 300 > 0.93

    def test_threshold_interval_of_few(self) -> None:
        low, high = threshold_interval([0.1, 0.2, 0.3], 0.15)
        assert low == -np.inf
        assert high in (0.3, 0.2, np.inf)


def test_one_threshold_function() -> None:
    """Two quantile functions in one library come to disagree: the calibration object uses the pure one."""
    top = np.random.default_rng(12).normal(size=(70, 20))
    made = Calibration("a", "f", -np.sort(-top, axis=1), np.arange(70))
    assert made.threshold(0.15, 5) == calibration.threshold(made.scores(5), 0.15)
