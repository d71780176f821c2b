from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from assetscore.errors import EmbeddingError, EmptyCategoryError, UsageError
from assetscore.neighbours import exclude_groups, knn_brute_force, knn_mean, lpips_rows


def unit(n: int, d: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def assert_same(a, b) -> None:  # type: ignore[no-untyped-def]
    np.testing.assert_allclose(a.S, b.S, atol=1e-12)
    np.testing.assert_array_equal(a.ids, b.ids)
    np.testing.assert_allclose(a.similarities, b.similarities, atol=1e-12)


@pytest.mark.parametrize("q", [1, 2, 19, 20, 21, 300])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_against_brute_force(q: int, k: int) -> None:
    references, queries = unit(97, 12), unit(q, 12, seed=1)
    assert_same(knn_mean(queries, references, k), knn_brute_force(queries, references, k))


@pytest.mark.parametrize("scale", [1.0, 37.5])
def test_plain_inner_products_of_any_length(scale: float) -> None:
    references, queries = unit(50, 8) * scale, unit(9, 8, seed=2)
    found = knn_mean(queries, references, 3)
    matrix = queries.astype(float) @ references.astype(float).T
    np.testing.assert_allclose(found.S, -np.sort(-matrix, axis=1)[:, :3].mean(axis=1), atol=1e-12)


class TestExclusion:
    x = unit(60, 8)
    x[[3, 10, 40]] = x[3]

    def test_self_by_index_not_by_similarity(self) -> None:
        found = knn_mean(self.x, self.x, 5, np.arange(60))
        assert_same(found, knn_brute_force(self.x, self.x, 5, np.arange(60)))
        # Exact copies of row 3 remain its neighbours: only itself was named.
        assert found.ids[3, :2].tolist() == [10, 40]
        assert found.similarities[3, 0] == pytest.approx(1, abs=1e-6)
        assert (found.ids != np.arange(60)[:, None]).all()

    def test_groups(self) -> None:
        groups = np.arange(60) // 4
        groups[[3, 10, 40]] = 99
        found = knn_mean(self.x, self.x, 5, exclude_groups(groups))
        assert_same(found, knn_brute_force(self.x, self.x, 5, exclude_groups(groups)))
        assert (groups[found.ids] != groups[:, None]).all()

    def test_forms_say_the_same(self) -> None:
        lists = [[0, 1], [2], [], [3]]
        padded = np.array([[0, 1], [2, -1], [-1, -1], [3, -1]])
        mask = np.zeros((4, 60), bool)
        for row, rows in enumerate(lists):
            mask[row, rows] = True
        queries = self.x[:4]
        expected = knn_brute_force(queries, self.x, 4, lists)
        for form in (lists, padded, mask, [[0, 1], 2, None, 3]):
            assert_same(knn_mean(queries, self.x, 4, form), expected)

    def test_a_query_outside(self) -> None:
        queries = unit(7, 8, seed=5)
        assert_same(knn_mean(queries, self.x, 4, [None] * 7), knn_mean(queries, self.x, 4))

    @pytest.mark.parametrize("exclude", [[0], [[60], None], [[-2], None], np.zeros((2, 5), bool)])
    def test_wrong_use(self, exclude: object) -> None:
        with pytest.raises(UsageError, match="exclude"):
            knn_mean(self.x[:2], self.x, 3, exclude)  # type: ignore[arg-type]

    def test_string_groups(self) -> None:
        assert [list(rows) for rows in exclude_groups(["b", "a", "b"])] == [[0, 2], [1], [0, 2]]
        assert [list(rows) for rows in exclude_groups(["b", "a"], ["a", "c"])] == [[1], []]


class TestEdges:
    def test_k_beyond_n_uses_all(self) -> None:
        queries, references = unit(3, 4, 1), unit(2, 4)
        found = knn_mean(queries, references, 9)
        assert found.ids.shape == (3, 2)
        assert (found.ids >= 0).all()
        np.testing.assert_allclose(
            found.S, (queries.astype(float) @ references.astype(float).T).mean(axis=1), atol=1e-12
        )

    def test_every_query_uses_equally_many(self) -> None:
        x = unit(6, 4)
        found = knn_mean(x[:2], x, 5, [[0, 1, 2], [5]])
        assert found.ids.shape == (2, 3)

    def test_no_references(self) -> None:
        with pytest.raises(EmptyCategoryError):
            knn_mean(unit(2, 4), np.empty((0, 4)), 3)
        with pytest.raises(EmptyCategoryError):
            knn_mean(unit(2, 4), unit(3, 4), 3, [[0, 1, 2], None])

    def test_no_queries(self) -> None:
        assert knn_mean(np.empty((0, 4)), unit(3, 4), 2).S.shape == (0,)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 0.0])
    def test_a_bad_query_spoils_only_itself(self, bad: float) -> None:
        queries, references = unit(5, 4, 1), unit(30, 4)
        expected = knn_mean(queries, references, 3)
        broken = queries.copy()
        broken[2] = bad
        found = knn_mean(broken, references, 3)
        assert np.isnan(found.S[2])
        assert (found.ids[2] == -1).all()
        assert np.isnan(found.similarities[2]).all()
        keep = [0, 1, 3, 4]
        np.testing.assert_array_equal(found.S[keep], expected.S[keep])

    @pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
    def test_a_bad_reference_is_refused_with_its_row(self, bad: float) -> None:
        references = unit(30, 4)
        references[7] = bad
        with pytest.raises(EmbeddingError, match="row 7"):
            knn_mean(unit(2, 4), references, 3)

    @pytest.mark.parametrize("k", [0, -1, 2.5, True, None])
    def test_k_must_be_a_positive_whole_number(self, k: object) -> None:
        with pytest.raises(UsageError, match="k must"):
            knn_mean(unit(2, 4), unit(9, 4), k)  # type: ignore[arg-type]

    def test_shapes_must_fit(self) -> None:
        with pytest.raises(EmbeddingError, match="share d"):
            knn_mean(unit(2, 4), unit(9, 5), 3)


def test_a_score_does_not_depend_on_the_batch() -> None:
    references, queries = unit(400, 64), unit(200, 64, 3)
    together = knn_mean(queries, references, 5)
    alone = np.array([knn_mean(queries[i : i + 1], references, 5).S[0] for i in range(200)])
    np.testing.assert_array_equal(together.S, alone)
    order = np.random.default_rng(0).permutation(200)
    np.testing.assert_array_equal(knn_mean(queries[order], references, 5).S, together.S[order])


def test_ties_are_ordered_by_row() -> None:
    references = np.repeat(unit(4, 8), 5, axis=0)
    found = knn_mean(references[:1], references, 5)
    assert found.ids[0].tolist() == [0, 1, 2, 3, 4]


def test_cosines_stay_within_rounding_of_one() -> None:
    x = unit(250, 128)
    assert knn_mean(x, x, 1).S.max() <= 1 + 1e-6


def test_lpips_rows_are_one_minus_squared_distance() -> None:
    random = np.random.default_rng(0)
    a, b = random.random((12, 30)), random.random((40, 30))
    found = knn_mean(lpips_rows(a, query=True), lpips_rows(b, query=False), 4)
    distances = ((a[:, None] - b[None]) ** 2).sum(-1)
    np.testing.assert_allclose(found.S, 1 - np.sort(distances, axis=1)[:, :4].mean(axis=1), atol=1e-5)


def test_memory_does_not_grow_with_queries_times_references() -> None:
    x = unit(6000, 16)
    tracemalloc.start()
    knn_mean(x, x, 21, np.arange(6000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 4 / 2
