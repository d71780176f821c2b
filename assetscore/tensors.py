"""What a profile keeps in numbers: to tensors, and back from a stranger's only where they can be a profile's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibrated import Calibration
from .calibration import leave_one_out_k
from .config import TOP
from .embedding import checked
from .profile import Profile

__all__ = ["restore", "tensors_of"]

FEATURES, VECTORS, LEAVE_ONE_OUT = "features", "vectors", "leave one out"


def tensors_of(profile: Profile) -> dict[tuple[str, ...], NDArray[Any]]:
    """What `restore` takes: features, or vectors where there are none, and leave-one-out similarities."""
    tensors: dict[tuple[str, ...], NDArray[Any]] = {}
    for category in profile.categories:
        if category in profile._features:
            tensors[FEATURES, category] = profile._features[category]
        for factor in profile.factors:
            if category not in profile._features:
                tensors[VECTORS, category, factor] = profile.vectors(category, factor)
            tensors[LEAVE_ONE_OUT, category, factor] = profile.calibration(category, factor).top
    return tensors


def restore(profile: Profile, tensors: dict[tuple[str, ...], NDArray[Any]]) -> None:
    """Take over saved tensors, by (kind, category[, factor]), as `tensors_of` gave them.

    Raises:
        ValueError: one is missing, or of another shape, type or content than this profile can have.
        EmbeddingError: vectors are not of unit length.
    """
    for category, references in profile.by_category.items():
        n = len(references)
        two_stage = (FEATURES, category) in tensors
        if two_stage:
            profile._features[category] = _tensor(tensors, (FEATURES, category), np.float32, n)
        for factor in profile.factors:
            if not two_stage:
                vectors = _tensor(tensors, (VECTORS, category, factor), np.float32, n)
                profile._vectors[category, factor] = checked(profile.encoder_name, profile.metric, vectors, n)
            groups = profile.groups(category)
            top = _tensor(tensors, (LEAVE_ONE_OUT, category, factor), np.float64, n)
            most = leave_one_out_k(TOP, groups)
            if not min(profile.config.k, most) <= top.shape[1] <= most or (np.diff(top, axis=1) > 1e-9).any():
                raise ValueError(f"the leave-one-out similarities of {category!r} under {factor!r} are no ranking")
            if profile.metric == "cosine" and np.abs(top).max(initial=0) > 1.001:
                raise ValueError(f"the leave-one-out similarities of {category!r} under {factor!r} are no cosines")
            profile._calibrations[category, factor] = Calibration(category, factor, top, groups)


def _tensor(tensors: dict[tuple[str, ...], NDArray[Any]], key: tuple[str, ...], dtype: Any, rows: int) -> NDArray[Any]:
    tensor = tensors[key]
    if tensor.dtype != dtype or tensor.ndim != 2 or len(tensor) != rows or not np.isfinite(tensor).all():
        raise ValueError(f"{' of '.join(key)}: expected {rows} finite rows of {np.dtype(dtype)}, got {tensor.shape}")
    return tensor
