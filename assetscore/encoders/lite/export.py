"""Trained state to the weights the package ships: one safetensors file, half precision, int8 text."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .text import TextTable

__all__ = ["FILE", "export"]

FILE = "lite.safetensors"
_FULL = ("centre", "spread", "object_centre", "object_spread")
"""Kept in single precision: half of a spread of 0.01 is too coarse, and they are small."""


def export(state: dict[str, Any], table: TextTable, folder: Path) -> Path:
    """Write the weights of a `LiteNet` state and its text table.

    Args:
        state: tensors by name; the damage classifier, which only training needs, is left out.
        folder: made where it is missing.

    Returns:
        The file's path.
    """
    from safetensors.numpy import save_file

    tensors: dict[str, NDArray[Any]] = {}
    for name, value in state.items():
        if name.startswith("kinds."):
            continue
        array = value.detach().cpu().numpy()
        tensors[name] = np.ascontiguousarray(array.astype(np.float32 if name in _FULL else np.float16))
    tensors |= table.to_tensors()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    save_file(tensors, path, metadata={"format": "assetscore lite 1"})
    return path


def digest(path: Path) -> str:
    """SHA-256 of a file, 16 hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
