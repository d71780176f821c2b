"""Conditioning fixed image vectors by text, without training: project them into the span of phrases about a factor.

After CLAY (arXiv 2604.11539). Image and text vectors of a contrastive model lie in two narrow cones, side by side.
With each cone's mean taken away they share their directions, so that the directions in which phrases about art
styles differ are those in which art styles differ in images. A factor then costs one small projection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import EncoderError
from ._torch import unit_rows

__all__ = ["project", "subspace"]


def subspace(phrases: NDArray[np.floating], rank: int) -> NDArray[np.float64]:
    """An orthonormal basis of the directions in which phrase vectors differ most.

    Args:
        phrases: (p, d) vectors of the text tower, at least two.
        rank: at most so many directions; fewer where the phrases span fewer.

    Returns:
        (d, r) float64, r <= min(rank, p - 1, d), by falling singular value.

    >>> subspace(np.array([[3.0, 0, 5], [-1, 0, 5]]), rank=4).round(6).ravel().tolist()
    [1.0, 0.0, 0.0]
    """
    vectors = np.asarray(phrases, np.float64)
    _, values, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    kept = int(np.sum(values[:rank] > 1e-6 * max(float(values[0]), 1e-12)))
    if kept == 0:
        raise EncoderError("the text tower gives all phrases of this factor the same vector: they span nothing")
    basis = directions[:kept].T
    # An SVD leaves each direction's sign open: the largest entry is made positive, so that machines agree.
    signs = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(kept)])
    oriented: NDArray[np.float64] = basis * signs + 0.0  # no negative zeros
    return oriented


def project(
    features: NDArray[np.floating], mean: NDArray[np.floating], basis: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Vectors less their modality's mean, in the coordinates of a subspace, scaled to length 1.

    Args:
        features: (n, d) image vectors.
        mean: (d,) the mean of image vectors in general, not of these: a score must not depend on its batch.
        basis: (d, r) orthonormal.

    Returns:
        (n, r) float32 unit rows; NaN where a vector has no part in the subspace.
    """
    return unit_rows((np.asarray(features, np.float64) - mean) @ basis)
