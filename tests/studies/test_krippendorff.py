"""Krippendorff's alpha against published examples and against its definition, pair by pair."""

from __future__ import annotations

import itertools
import logging
import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from assetscore.errors import UsageError
from assetscore.studies.agreement import krippendorff_alpha, krippendorff_bootstrap, raw_agreement
from assetscore.studies.intervals import resample_counts

NAN = math.nan
# K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: four observers, twelve units.
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]
# The widely reproduced three coders, fifteen units.
THREE_CODERS = [
    [NAN, NAN, NAN, NAN, NAN, 3, 4, 1, 2, 1, 1, 3, 3, NAN, 3],
    [1, NAN, 2, 1, 3, 3, 4, 3, NAN, NAN, NAN, NAN, NAN, NAN, NAN],
    [NAN, NAN, 2, 1, 3, 4, 4, NAN, 2, 1, 1, 3, 3, NAN, 4],
]
# The same paper, example A (binary) and B (nominal): two observers.
BINARY = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
LETTERS = [list("aabbdcccedda"), list("babbbccceddd")]


@pytest.mark.parametrize(
    ("ratings", "level", "published"),
    [
        (FOUR_OBSERVERS, "nominal", 0.743),
        (FOUR_OBSERVERS, "ordinal", 0.815),
        (FOUR_OBSERVERS, "interval", 0.849),
        (THREE_CODERS, "nominal", 0.691),
        (THREE_CODERS, "interval", 0.811),
        (BINARY, "nominal", 0.095),
        (LETTERS, "nominal", 0.692),
    ],
)
def test_published_examples(ratings, level, published):
    assert krippendorff_alpha(ratings, level) == pytest.approx(published, abs=5e-4)


def by_definition(ratings, level):
    """1 - Do/De from every ordered pair of answers, one at a time."""
    units = [[v for v in column if not math.isnan(v)] for column in np.asarray(ratings, dtype=float).T]
    units = [unit for unit in units if len(unit) >= 2]
    everything = [v for unit in units for v in unit]

    def distance(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in everything)
        return (between - (everything.count(a) + everything.count(b)) / 2) ** 2

    observed = sum(
        sum(distance(a, b) for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(everything)
    expected = sum(distance(a, b) for a, b in itertools.permutations(everything, 2))
    return 1 - observed / (expected / (len(everything) * (len(everything) - 1)))


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_definition_on_random_tables(level, seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, size=(int(rng.integers(2, 6)), 12)) / 2
    table[rng.random(table.shape) < 0.3] = NAN
    assert krippendorff_alpha(table, level) == pytest.approx(by_definition(table, level), abs=1e-12)


def test_the_order_of_raters_and_units_does_not_matter():
    table = np.array(FOUR_OBSERVERS)
    shuffled = table[[2, 0, 3, 1]][:, ::-1]
    assert krippendorff_alpha(shuffled, "ordinal") == pytest.approx(krippendorff_alpha(table, "ordinal"), abs=1e-12)


class NAType:
    """As pandas.NA behaves: comparing it gives itself, and it is neither true nor false."""

    def __eq__(self, other):
        return self

    __ne__ = __eq__

    def __hash__(self):
        return 1

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    def __float__(self):
        raise TypeError("float() argument must be a string or a real number, not 'NAType'")


def test_the_stand_in_is_like_pandas_na():
    pandas = pytest.importorskip("pandas")
    for na in (pandas.NA, NAType()):
        assert type(na).__name__ == "NAType"
        with pytest.raises(TypeError):
            bool(na != na)
        with pytest.raises(TypeError):
            float(na)


MISSING = {
    "NaN": NAN, "None": None, "pandas.NA": NAType(), "NumPy's": np.float32("nan"), "decimal": Decimal("NaN"),
    "no time": np.datetime64("NaT"),
}  # fmt: skip


@pytest.mark.parametrize("none", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_every_kind_of_missing_is_missing(none, level):
    table = [[none if isinstance(v, float) and math.isnan(v) else v for v in row] for row in FOUR_OBSERVERS]
    published = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}[level]
    for ratings in (table, np.array(table, dtype=object)):
        assert krippendorff_alpha(ratings, level) == pytest.approx(published, abs=5e-4)
        assert krippendorff_bootstrap(ratings, level, resamples=50).n == 11
        assert raw_agreement(ratings) == pytest.approx(raw_agreement(FOUR_OBSERVERS))


@pytest.mark.parametrize("none", MISSING.values(), ids=MISSING)
def test_missing_among_texts_is_no_answer(none):
    words = [["yes", none, "no"], ["yes", "no", "no"], [none, "no", "yes"]]
    assert krippendorff_alpha(words) == pytest.approx(by_definition([[1, NAN, 0], [1, 0, 0], [NAN, 0, 1]], "nominal"))


@pytest.mark.parametrize("fill", [0, 3, NAN])
def test_masked_cells_are_missing(fill):
    table = np.array(FOUR_OBSERVERS)
    masked = np.ma.MaskedArray(np.where(np.isnan(table), fill, table), np.isnan(table))
    assert krippendorff_alpha(masked) == pytest.approx(0.743, abs=5e-4)


@pytest.mark.parametrize("text", ["nan", "NaN", " nan ", "", " ", "<NA>"])
@pytest.mark.parametrize("others", [("yes", "no"), ("1", "0")])
@pytest.mark.parametrize("form", [list, np.array, lambda rows: np.array(rows, dtype=object)])
def test_a_text_that_looks_missing_is_asked_about(text, others, form):
    """NumPy makes "nan" of NaN among texts: neither an answer nor silently none."""
    a, b = others
    with pytest.raises(UsageError, match="pass None or NaN for a missing answer"):
        krippendorff_alpha(form([[a, text, b], [a, b, b]]))


def test_numbers_in_texts_are_texts():
    assert krippendorff_alpha([["1", "2", "1"], ["1", "2", "2"]]) == krippendorff_alpha([[1, 2, 1], [1, 2, 2]])
    assert krippendorff_alpha([["1", "1.0"], ["1.0", "1"]]) < 0
    with pytest.raises(UsageError, match="texts have no order"):
        krippendorff_alpha([["1", "2"], ["1", "2"]], "ordinal")


def test_truth_values_are_answers():
    table = [[True, False, True, None], [True, False, False, True]]
    assert krippendorff_alpha(table) == pytest.approx(by_definition([[1, 0, 1, NAN], [1, 0, 0, 1]], "nominal"))
    assert krippendorff_alpha(np.array([[True, False], [True, True]])) == krippendorff_alpha([[1, 0], [1, 1]])


def test_perfect_agreement_has_no_interval():
    estimate = krippendorff_bootstrap([[0, 1, 0, 1, 1], [0, 1, 0, 1, 1]])
    assert estimate.value == 1.0
    assert math.isnan(estimate.low)
    assert "do not differ" in estimate.reason
    one = krippendorff_bootstrap([[0, 1, NAN], [1, NAN, NAN]])
    assert "only one unit with two answers" in one.reason


def test_none_is_missing_as_nan_is():
    words = [["yes", None, "no"], ["yes", "no", "no"], [None, "no", "yes"]]
    numbers = [[1, NAN, 0], [1, 0, 0], [NAN, 0, 1]]
    assert krippendorff_alpha(words) == pytest.approx(krippendorff_alpha(numbers))


@pytest.mark.parametrize(
    ("ratings", "why"),
    [
        ([[1, 0, 1]], "one rater"),
        ([[1, 0, 1], [NAN, NAN, NAN]], "one rater"),
        ([[1, NAN], [NAN, 0]], "no unit was answered by two"),
        ([[1, 1], [1, 1]], "every answer is the same"),
        ([[NAN, NAN], [NAN, NAN]], "no answer"),
    ],
)
def test_says_why_there_is_no_alpha(ratings, why, caplog):
    with caplog.at_level(logging.WARNING):
        assert math.isnan(krippendorff_alpha(ratings))
    assert why in caplog.text
    estimate = krippendorff_bootstrap(ratings)
    assert math.isnan(estimate.value)
    assert math.isnan(estimate.low)
    assert why in estimate.reason
    assert estimate.to_dict()["value"] is None


@pytest.mark.parametrize(
    ("ratings", "level"),
    [
        ([1, 0, 1], "nominal"),
        ([list(range(101)), list(range(101))], "interval"),
        ([[1, math.inf]], "nominal"),
        ([["a", "b"]], "ordinal"),
        ([[1, 2], [1]], "nominal"),
        ([[b"a", b"b"], [b"a", b"a"]], "nominal"),
        ([[1j, 2], [1, 2]], "nominal"),
        ([[{}, 1], [1, 1]], "nominal"),
        ([[[1], [2]], [[1], [2]]], "nominal"),
        ([[1, 0]], "ratio"),
    ],
)
def test_wrong_use_is_named(ratings, level):
    with pytest.raises(UsageError):
        krippendorff_alpha(ratings, level)


def test_perfect_agreement_is_one_and_systematic_disagreement_negative():
    assert krippendorff_alpha([[0, 1, 0, 1], [0, 1, 0, 1]]) == 1.0
    assert krippendorff_alpha([[0, 1, 0, 1], [1, 0, 1, 0]]) < -0.5


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_each_resample_equals_the_definition_on_its_columns(level):
    table = np.array(FOUR_OBSERVERS)
    table = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    n = table.shape[1]
    draws = []
    for counts in resample_counts(n, 12, seed=4):
        for row in counts.astype(int):
            draws.append(by_definition(table[:, np.repeat(np.arange(n), row)], level))
    estimate = krippendorff_bootstrap(table, level, confidence=0.8, resamples=12, seed=4)
    tail = stats.norm.cdf(-stats.t.ppf(0.9, n - 1) * math.sqrt(n / (n - 1)))
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(draws, [tail, 1 - tail])))


@pytest.mark.parametrize(("units", "raters"), [(40, 9), (150, 5)])
def test_a_planted_alpha_is_recovered(units, raters):
    """Binary truth, each rater flips it with probability e: alpha of infinitely many units is (1 - 2e)^2 at balance."""
    error, covered = 0.2, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        truth = rng.random(units) < 0.5
        answers = truth ^ (rng.random((raters, units)) < error)
        estimate = krippendorff_bootstrap(answers, resamples=500, seed=seed)
        covered += estimate.low <= (1 - 2 * error) ** 2 <= estimate.high
    assert covered >= 90


def test_raw_agreement_counts_equal_pairs():
    table = np.array(FOUR_OBSERVERS)
    pairs, equal = 0.0, 0.0
    for column in table.T:
        answers = [v for v in column if not math.isnan(v)]
        for a, b in itertools.permutations(answers, 2):
            pairs += 1 / (len(answers) - 1)
            equal += (a == b) / (len(answers) - 1)
    assert raw_agreement(table) == pytest.approx(equal / pairs)
