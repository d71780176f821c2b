"""Vectors that were slow to make, kept in the user's cache: a category's references under a factor asked for later."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .folders import cache_folder, write_atomically

__all__ = ["cached_vectors"]

log = logging.getLogger(__name__)

SCHEMA = 2


def cached_vectors(parts: Sequence[str], rows: int, compute: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """Vectors from the cache, or computed and put there.

    Args:
        parts: everything the numbers depend on, so that a stale answer is impossible: the encoder's and the
            references' fingerprints, category, factor.
        rows: how many there must be; a damaged file is computed again.
        compute: makes them.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    key = hashlib.sha256("\0".join((str(SCHEMA), *parts)).encode()).hexdigest()
    file = cache_folder() / "vectors" / f"{key}.safetensors"
    try:
        stored = load(file.read_bytes())
        vectors = stored["vectors"]
        if vectors.dtype == np.float32 and len(vectors) == rows and stored["sha256"].tobytes() == _digest(vectors):
            return vectors
    except (OSError, SafetensorError, KeyError):
        pass
    vectors = np.ascontiguousarray(compute())
    if not np.isfinite(vectors).all():
        return vectors  # a failure that may pass is not kept
    try:
        digest = np.frombuffer(_digest(vectors), np.uint8)
        write_atomically(file, save({"vectors": vectors, "sha256": digest}))
    except OSError as error:
        log.warning("the cache cannot be written: %s", error)
    return vectors


def _digest(vectors: NDArray[np.float32]) -> bytes:
    return hashlib.sha256(vectors.tobytes()).digest()
