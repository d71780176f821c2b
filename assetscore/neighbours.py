"""The k nearest references, exactly: FAISS finds candidates, float64 gives the values.

Only an exact inner-product index is used: approximate ones would move thresholds. What is to be left out (the query
itself, its duplicates, its whole group) is told by index, never guessed from position or from a similarity of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import EmbeddingError, EmptyCategoryError, UsageError

__all__ = ["Neighbours", "exclude_groups", "knn_brute_force", "knn_mean", "lpips_rows"]

Exclude: TypeAlias = "NDArray[Any] | Sequence[int | Sequence[int] | None] | None"
_BLOCK = 4096
"""Queries searched at a time: memory is O(block * k * width), whatever the number of queries."""


class Neighbours(NamedTuple):
    """What `knn_mean` returns; k_eff = min(k, the fewest references any query has left).

    S: (q,) float64, the mean similarity to the k_eff nearest references; NaN for a query that is not finite.
    ids: (q, k_eff) int64, rows of `references`, nearest first, ties by the lower row; -1 where the query is not finite.
    similarities: (q, k_eff) float64, descending; NaN for a query that is not finite.
    """

    S: NDArray[np.float64]
    ids: NDArray[np.int64]
    similarities: NDArray[np.float64]


def knn_mean(queries: ArrayLike, references: ArrayLike, k: int, exclude: Exclude = None) -> Neighbours:
    """Mean inner product of each query with its k nearest references (Eq. 2 of the paper on unit vectors).

    Args:
        queries: (q, d) floats; unit rows make the similarities cosines. A row with NaN, infinity or only zeros gets
            S = NaN and ids = -1 and leaves the other rows alone.
        references: (n, d) finite floats.
        k: how many neighbours, at least 1. Where fewer are left, all queries use the fewest any of them has left, so
            that their scores stay comparable.
        exclude: rows of `references` that a query may not use: for each query an index, a sequence of indices or None;
            or an integer array (q,) or (q, m) in which -1 means nothing; or a boolean array (q, n), True to leave out.

    Raises:
        EmptyCategoryError: there are no references, or a query has none left.
        EmbeddingError: shapes do not fit, or a reference is not finite or only zeros.
        UsageError: k is less than 1, or `exclude` does not fit.

    >>> S, ids, similarities = knn_mean([[1, 0]], [[1, 0], [0, 1], [0.6, 0.8]], k=2)
    >>> S.round(2).tolist(), ids.tolist(), similarities.round(2).tolist()
    ([0.8], [[0, 2]], [[1.0, 0.6]])
    """
    queries, references, finite = _checked(queries, references, k)
    excluded = _excluded(exclude, len(queries), len(references))
    counts = np.array([len(rows) for rows in excluded]) if excluded is not None else np.zeros(len(queries), int)
    k_eff = _k_eff(k, len(references), counts)

    S = np.full(len(queries), np.nan)
    ids = np.full((len(queries), k_eff), -1, np.int64)
    similarities = np.full((len(queries), k_eff), np.nan)
    if not finite.any():
        return Neighbours(S, ids, similarities)

    index = _index(references)
    rows = np.flatnonzero(finite)
    # Queries that leave out about equally many rows (1, 2-3, 4-7 ...) are searched together.
    sizes = np.frexp(counts[rows])[1]
    for size in np.unique(sizes):
        same = rows[sizes == size]
        count = int(counts[same].max())
        for start in range(0, len(same), _BLOCK):
            block = same[start : start + _BLOCK]
            left_out = _padded([excluded[row] for row in block], count) if excluded is not None and count else None
            ids[block], similarities[block] = _search(index, queries[block], references, k_eff, count, left_out)
    S[finite] = similarities[finite].mean(axis=1)
    return Neighbours(S, ids, similarities)


def knn_brute_force(queries: ArrayLike, references: ArrayLike, k: int, exclude: Exclude = None) -> Neighbours:
    """`knn_mean` by the full (q, n) matrix in NumPy float64: the oracle of its tests. Same arguments, same result."""
    queries, references, finite = _checked(queries, references, k)
    allowed = np.ones((len(queries), len(references)), bool)
    for row, left_out in enumerate(_excluded(exclude, len(queries), len(references)) or []):
        allowed[row, left_out] = False
    k_eff = _k_eff(k, len(references), (~allowed).sum(axis=1))
    matrix = np.asarray(queries, np.float64) @ np.asarray(references, np.float64).T
    matrix[~allowed] = -np.inf
    ids = np.argsort(-matrix, axis=1, kind="stable")[:, :k_eff]
    similarities = np.take_along_axis(matrix, ids, axis=1)
    ids[~finite] = -1
    similarities[~finite] = np.nan
    return Neighbours(similarities.mean(axis=1), ids, similarities)


def exclude_groups(groups: ArrayLike, queries: ArrayLike | None = None) -> list[Sequence[int]]:
    """For leave-one-group-out: for each query group, all rows whose group is the same.

    Args:
        groups: (n,) group of each reference, integers or strings.
        queries: (q,) group of each query; the references' own where None.

    >>> [rows.tolist() for rows in exclude_groups(["a", "b", "a"])]
    [[0, 2], [1], [0, 2]]
    """
    groups = np.asarray(groups)
    order = np.argsort(groups, kind="stable")
    members = dict(zip(*_runs(groups[order], order), strict=True))
    nothing = np.empty(0, np.int64)
    wanted = groups if queries is None else np.asarray(queries)
    return [members.get(group, nothing) for group in wanted.tolist()]


def lpips_rows(vectors: NDArray[Any], *, query: bool) -> NDArray[np.float32]:
    """Rows whose inner product, query with reference, is 1 - the squared Euclidean distance of `vectors`' rows.

    1 - |a - b|^2 = 2 a.b + (1 - |a|^2) - |b|^2, so two more columns make an inner-product index serve LPIPS.
    """
    vectors = np.asarray(vectors, np.float64)
    norms = (vectors**2).sum(axis=1, keepdims=True)
    ones = np.ones_like(norms)
    parts = [2 * vectors, 1 - norms, ones] if query else [vectors, ones, -norms]
    return np.concatenate(parts, axis=1).astype(np.float32)


def _runs(values: NDArray[Any], order: NDArray[np.int64]) -> tuple[list[Any], list[NDArray[np.int64]]]:
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else np.empty(0, int)
    return values[starts].tolist(), np.split(order, starts[1:]) if len(values) else []


def _checked(
    queries: ArrayLike, references: ArrayLike, k: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise UsageError(f"k must be a whole number of at least 1, got {k!r}")
    queries = np.ascontiguousarray(queries, np.float32)
    references = np.ascontiguousarray(references, np.float32)
    if references.size == 0:
        raise EmptyCategoryError("there are no references to compare with")
    if queries.ndim != 2 or references.ndim != 2 or queries.shape[1] != references.shape[1]:
        raise EmbeddingError(
            f"queries (q, d) and references (n, d) must share d, got shapes {queries.shape} and {references.shape}"
        )
    usable = np.isfinite(references).all(axis=1) & references.any(axis=1)
    if not usable.all():
        row = int(np.flatnonzero(~usable)[0])
        raise EmbeddingError(f"{int((~usable).sum())} references are not finite or only zeros, the first in row {row}")
    return queries, references, np.isfinite(queries).all(axis=1) & queries.any(axis=1)


def _excluded(exclude: Exclude, q: int, n: int) -> list[NDArray[np.int64]] | None:
    if exclude is None:
        return None
    if len(exclude) != q:
        raise UsageError(f"exclude must have one entry a query ({q}), got {len(exclude)}")
    if isinstance(exclude, np.ndarray) and exclude.dtype == np.bool_:
        if exclude.shape != (q, n):
            raise UsageError(f"a boolean exclude must be (queries, references) = {(q, n)}, got {exclude.shape}")
        return [np.flatnonzero(row) for row in exclude]
    result = []
    for entry in exclude:
        rows = np.atleast_1d(np.asarray([] if entry is None else entry, dtype=np.int64))
        rows = np.unique(rows[rows != -1])
        if rows.size and (rows[0] < 0 or rows[-1] >= n):
            raise UsageError(f"exclude names reference {int(rows[0] if rows[0] < 0 else rows[-1])} of {n}")
        result.append(rows)
    return result


def _padded(left_out: Sequence[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """(q, count) with -1 where a query leaves out fewer."""
    padded = np.full((len(left_out), count), -1, np.int64)
    for row, own in zip(padded, left_out, strict=True):
        row[: len(own)] = own
    return padded


def _k_eff(k: int, n: int, excluded: NDArray[Any]) -> int:
    left = n - int(excluded.max(initial=0))
    if left < 1:
        raise EmptyCategoryError(f"a query has no reference left: all {n} are left out")
    return min(int(k), left)


def _index(references: NDArray[np.float32]) -> Any:
    import faiss

    index = faiss.IndexFlatIP(references.shape[1])
    index.add(references)
    return index


def _search(
    index: Any,
    queries: NDArray[np.float32],
    references: NDArray[np.float32],
    k: int,
    count: int,
    left_out: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    n = len(references)
    # One candidate more than needed, so that a tie at the edge in float32 is settled by the float64 values.
    _, found = index.search(queries, min(n, k + count + 1))
    # FAISS's float32 products depend on how many queries come at once; these do not.
    values = np.empty(found.shape)
    step = max(1, 2**18 // (found.shape[1] * references.shape[1]))  # what stays in a processor's cache
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        gathered = references[found[part]].astype(np.float64)
        values[part] = np.matmul(gathered, queries[part].astype(np.float64)[..., None])[..., 0]
    if left_out is not None:
        for column in left_out.T:
            values[found == column[:, None]] = -np.inf
    order = np.lexsort((found, -values), axis=1)[:, :k]
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(values, order, axis=1)
