"""Every cell of a sweep against a recomputation from the vectors, one number at a time."""

from __future__ import annotations

import functools
import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from assetscore.calibrated import Calibration
from assetscore.config import Config
from assetscore.errors import ManifestError, ProfileMismatchError, UsageError
from assetscore.studies.saved import SavedCalibrations
from assetscore.studies.sweep import ALPHAS, KS, sweep
from assetscore.studies.votes import Vote, Votes
from assetscore.table import Row

from .planted import OBJECT, STYLE, planted

FAILED = ("missing",)


@pytest.fixture(scope="module")
def study():
    profile, table, vectors = planted()
    rng = np.random.default_rng(5)
    votes = []
    for row in list(table)[10:50]:
        for question, margin in (("style", row.style_s), ("object", row.sem_s)):
            for rater in range(3):
                lean = 0.5 if margin is None else 0.2 + 0.6 * (margin > 0.75)
                answer = "unsure" if rng.random() < 0.1 else "yes" if rng.random() < lean else "no"
                votes.append(Vote(row.asset_id, f"r{rater}", question, answer))
    return profile, table, vectors, Votes(tuple(votes))


class Naive:
    """The sweep as the paper says it: from the vectors, with loops, everything anew in every cell."""

    def __init__(self, profile, table, vectors, votes):
        self.profile, self.table, self.vectors, self.votes = profile, table, vectors, votes
        for name in ("references", "tau", "score"):  # asked for again and again
            setattr(self, name, functools.cache(getattr(self, name)))

    def references(self, category, factor, k):
        """(scores, group sizes) of the references, each left out with its group."""
        vectors = self.profile.vectors(category, factor).astype(np.float64)
        groups = [r.group() for r in self.profile.references.of(category)]
        k = min(k, *(sum(g != own for g in groups) for own in groups))
        scores = []
        for own, vector in zip(groups, vectors, strict=True):
            others = sorted((float(vector @ v) for v, g in zip(vectors, groups, strict=True) if g != own), reverse=True)
            scores.append(sum(others[:k]) / k)
        return scores, [groups.count(g) for g in groups], k

    def tau(self, category, factor, alpha, k):
        scores, sizes, _ = self.references(category, factor, k)
        weight = {s: Fraction(0) for s in scores}
        for score, size in zip(scores, sizes, strict=True):
            weight[score] += Fraction(1, size)
        m = math.floor(Fraction(str(alpha)) * (sum(weight.values()) + 1))
        if m == 0:
            return None
        total = Fraction(0)
        for score in sorted(weight):
            total += weight[score]
            if total >= m:
                return score
        return None

    def score(self, row, factor, k):
        if row.asset_id not in self.vectors or row.status == "empty":
            return None
        k = self.references(row.category, factor, k)[2]
        rows = self.profile.vectors(row.category, factor).astype(np.float64)
        vector = self.vectors[row.asset_id][factor].astype(np.float64)
        return sum(sorted((float(vector @ v) for v in rows), reverse=True)[:k]) / k

    def verdict(self, row, check, alpha, k):
        if row.status in FAILED:
            return False
        factors = {"style": STYLE, "semantic": row.sem_factor}
        values = {name: (self.score(row, f, k), self.tau(row.category, f, alpha, k)) for name, f in factors.items()}
        if any(s is None or tau is None for s, tau in values.values()):
            return None
        passed = {name: s >= tau - 1e-12 for name, (s, tau) in values.items()}
        return all(passed.values()) if check == "both" else passed[check]

    def rate(self, check, alpha, k, group=None):
        verdicts = [self.verdict(r, check, alpha, k) for r in self.table if group in (None, r.group)]
        verdicts = [v for v in verdicts if v is not None]
        return sum(verdicts) / len(verdicts) if verdicts else math.nan

    def majority(self, asset, question):
        answers = [v.answer for v in self.votes.votes if (v.asset, v.question) == (asset, question)]
        yes, no = answers.count("yes"), answers.count("no")
        return None if yes == no else yes > no

    def against_votes(self, check, alpha, k):
        question = {"style": "style", "semantic": "object"}[check]
        pairs = [(self.majority(r.asset_id, question), self.verdict(r, check, alpha, k)) for r in self.table]
        pairs = [(m, v) for m, v in pairs if m is not None and v is not None]
        accepted = [v for m, v in pairs if m]
        rejected = [v for m, v in pairs if not m]
        share = sum(accepted) / len(accepted) if accepted else math.nan
        return share, (sum(not v for v in rejected) / len(rejected) if rejected else math.nan)

    def vanilla(self, check, alpha, k):
        """Share of the references that pass, a group counting once."""
        passed = total = Fraction(0)
        for category in self.profile.categories:
            results = []
            for factor in (STYLE, OBJECT):
                scores, sizes, _ = self.references(category, factor, k)
                tau = self.tau(category, factor, alpha, k)
                results.append([None if tau is None else s >= tau - 1e-12 for s in scores])
            if any(r is None for result in results for r in result):
                continue
            for style, semantic, size in zip(*results, sizes, strict=True):
                ok = {"style": style, "semantic": semantic, "both": style and semantic}[check]
                total += Fraction(1, size)
                passed += Fraction(int(ok), size)
        return float(passed / total) if total else math.nan


def close(value, expected):
    return (math.isnan(value) and math.isnan(expected)) or value == pytest.approx(expected, abs=1e-12)


CELLS = [(0.15, 1), (0.15, 3), (0.15, 20), (0.01, 5), (0.05, 5), (0.25, 5), (0.1, 10)]


@pytest.fixture(scope="module")
def naive(study):
    return Naive(*study)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "k"), CELLS)
def test_every_number_of_a_cell_equals_its_naive_recomputation(study, naive, alpha, k):
    profile, table, _, votes = study
    result = sweep(profile, table, votes)
    cell = result.cells[alpha, k]
    groups = ("good", "fair", "poor")
    for name, check in cell.checks.items():
        assert close(check.pass_rate, naive.rate(name, alpha, k))
        mine, base = ([naive.verdict(r, name, a, n) for r in table] for a, n in ((alpha, k), (0.15, 5)))
        both = [(x, y) for x, y in zip(mine, base, strict=True) if x is not None and y is not None]
        assert close(check.same_verdict, sum(x == y for x, y in both) / len(both) if both else math.nan)
        factor = (lambda r: STYLE) if name == "style" else (lambda r: r.sem_factor)
        pairs = [(naive.score(r, factor(r), k), naive.score(r, factor(r), 5)) for r in table if r.sem_factor]
        pairs = [pair for pair in pairs if pair[0] is not None]
        assert close(check.rank_correlation, float(stats.spearmanr(*zip(*pairs, strict=True)).statistic))
        rates = np.array([[naive.rate(name, a, n, g) for g in groups] for a, n in ((alpha, k), (0.15, 5))])
        constant = any(len(set(row)) == 1 for row in rates.round(9).tolist())
        order = math.nan if constant else float(stats.spearmanr(*rates.round(9)).statistic)
        assert close(check.group_order, order)
        accepted, rejected = naive.against_votes(name, alpha, k)
        assert close(check.votes.acceptance, accepted)
        assert close(check.votes.rejection, rejected)
        assert close(check.references, naive.vanilla(name, alpha, k))
    assert close(cell.pass_both, naive.rate("both", alpha, k))
    assert close(cell.references_both, naive.vanilla("both", alpha, k))
    assert close(cell.balanced, (cell.style.votes.balanced + cell.semantic.votes.balanced) / 2)
    assert cell.undecided == sum(naive.verdict(r, "both", alpha, k) is None for r in table)


def test_cells_equal_the_table_judged_again(study):
    profile, table, _, votes = study
    result = sweep(profile, table, votes)
    for (alpha, k), cell in result.cells.items():
        again = table.rethreshold(alpha=alpha, k=k)
        for name, column in (("style", "style_pass"), ("semantic", "sem_pass")):
            verdicts = [v for v in again.column(column) if v is not None]
            assert close(cell.checks[name].pass_rate, float(np.mean(verdicts)) if verdicts else math.nan)


def test_the_base_cell_agrees_with_itself(study):
    profile, table, _, votes = study
    base = sweep(profile, table, votes).cells[0.15, 5]
    for check in base.checks.values():
        assert (check.rank_correlation, check.same_verdict, check.group_order) == pytest.approx((1.0, 1.0, 1.0))


def test_pass_rates_fall_with_alpha(study):
    profile, table, _, _ = study
    result = sweep(profile, table)
    cells = [cell for cell in result.by_alpha if cell.undecided == result.cells[0.15, 5].undecided]
    assert len(cells) >= 5
    for low, high in itertools.pairwise(cells):
        assert low.alpha < high.alpha
        assert low.style.pass_rate >= high.style.pass_rate
        assert low.style.references >= high.style.references


def test_too_few_references_for_an_alpha_leave_their_assets_undecided(study):
    profile, table, _, _ = study
    strict = sweep(profile, table).cells[0.01, 5]
    assert strict.undecided == sum(row.status != "missing" for row in table)
    assert strict.style.pass_rate == 0.0, "what is missing fails at every alpha"
    assert math.isnan(strict.references_both)


def test_the_tables_hold_the_papers_rows(study):
    profile, table, _, votes = study
    result = sweep(profile, table, votes)
    assert [cell.alpha for cell in result.by_alpha] == list(ALPHAS)
    assert [cell.k for cell in result.by_k] == list(KS)
    assert set(result.voted) == {"style", "semantic"}
    read = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert len(read["cells"]) == len(ALPHAS) * len(KS)


def test_alphas_from_arange_are_the_decimals_they_mean(study):
    profile, table, _, _ = study
    grid = sweep(profile, table, alphas=np.arange(0.05, 0.28, 0.05), ks=[5])
    exact = sweep(profile, table, alphas=[0.05, 0.1, 0.15, 0.2, 0.25], ks=[5])
    assert set(grid.cells) == set(exact.cells)
    for mine, other in zip(grid.by_alpha, exact.by_alpha, strict=True):
        assert (mine.style.pass_rate, mine.references_both) == (other.style.pass_rate, other.references_both)


def test_numpys_numbers_are_numbers(study):
    profile, table, _, _ = study
    mine = sweep(profile, table, alphas=np.array([0.1], np.float32), ks=np.array([3], np.int16), k=np.int64(4))
    assert set(mine.cells) == {(a, k) for a in (0.1, 0.15) for k in (3, 4)}
    assert json.loads(json.dumps(mine.to_dict(), allow_nan=False))["base"] == {"alpha": 0.15, "k": 4}


def test_a_profile_alone_gives_the_references_columns(study):
    profile, _, _, _ = study
    cell = sweep(profile).cells[0.15, 5]
    assert cell.style.references == pytest.approx(0.85, abs=0.04)
    assert math.isnan(cell.style.pass_rate)


def test_a_score_at_the_threshold_passes_and_few_references_limit_k():
    """Twenty references with three neighbours each: k is 3 whatever is asked for, and the third lowest score is tau."""
    scores = np.linspace(0.25, 0.75, 20)
    top = np.stack([scores + 0.125, scores, scores - 0.125], axis=1)
    calibration = Calibration("item", STYLE, top, np.arange(20))
    saved = SavedCalibrations("s", "e", Config(), STYLE, None, {("item", STYLE): calibration})
    kept = [(*top[i], *[0.0] * 17) for i in (1, 2, 3)]
    rows = [Row(f"a{i}", category="item", top_style=values, encoder="e") for i, values in enumerate(kept)]
    result = sweep(saved, rows, alphas=[0.15], ks=[3, 5, 20])
    for cell in result.cells.values():
        assert cell.style.pass_rate == pytest.approx(2 / 3)
        assert cell.style.same_verdict == cell.style.rank_correlation == 1.0


def test_wrong_use_is_named(study):
    profile, table, _, _ = study
    row = table.rows[0]
    with pytest.raises(UsageError, match="between 1 and 20"):
        sweep(profile, table, ks=[21])
    with pytest.raises(UsageError, match="alpha"):
        sweep(profile, table, alphas=[0.0])
    for wrong in (2.5, 0, -1, True, "5", None, math.nan):
        with pytest.raises(UsageError, match="k must be a whole number between 1 and 20"):
            sweep(profile, table, ks=[wrong])
    for wrong in (None, True, "0.1", -0.1, 1.0, math.nan):
        with pytest.raises(UsageError, match="alpha"):
            sweep(profile, table, alphas=[wrong])
    with pytest.raises(UsageError, match="similarities"):
        sweep(profile, [replace(table.rows[1], top_style=(0.5,))])
    with pytest.raises(ProfileMismatchError, match="other:1"):
        sweep(profile, [replace(row, encoder="other:1")])
    with pytest.raises(ManifestError, match="line 9"):
        sweep(profile, table, Votes((Vote("nobody", "r", "style", "yes", 9),)))


def test_rows_of_another_profile_are_refused(tmp_path: Path) -> None:
    """Equal encoder and categories, other references: sweep, the rating study and compare all say so."""
    from assetscore import Profile, ReferenceSet, ResultTable, Scorer
    from assetscore.encoders.pixelstats import PixelStats
    from assetscore.studies.compare import compare_builds
    from assetscore.studies.rating.make import make_study

    from ..conftest import sprite

    profiles = [
        Profile.build(
            ReferenceSet.from_textures([(str(i), "item", sprite(i + start)) for i in range(12)]), PixelStats()
        )
        for start in (0, 50)
    ]
    path = tmp_path / "a.png"
    Image.fromarray(sprite(900)).save(path)
    tables = [ResultTable.from_scores(Scorer(p).score_many([(path, "item")])) for p in profiles]
    with pytest.raises(ProfileMismatchError):
        sweep(profiles[1], tables[0].rows)
    with pytest.raises(ProfileMismatchError):
        make_study(tables[0].rows, profiles[1], tmp_path / "study")
    assert not (tmp_path / "study").exists()
    with pytest.raises(UsageError, match="different profiles"):
        compare_builds(*tables)
