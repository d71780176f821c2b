"""What every torch encoder shares: device, precision, batches that survive running out of memory, fingerprints."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import EncoderError, EncoderUnavailableError, UsageError

if TYPE_CHECKING:
    import torch

__all__ = [
    "choose_device",
    "choose_dtype",
    "dtype_name",
    "fingerprint",
    "require",
    "run_in_batches",
    "weights_digest",
]

logger = logging.getLogger(__name__)
Item = TypeVar("Item")

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
BATCH_NOISE = {"fp32": 1e-5, "bf16": 4e-3, "fp16": 2e-3}
"""How far a similarity of unit vectors may move with its batch, by precision (borderline verdicts are marked by it)."""


def require(packages: Sequence[str], extra: str | None, encoder: str) -> None:
    """Raise EncoderUnavailableError, with the install line, unless every package can be imported."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        line = f'pip install "assetscore[{extra}]"' if extra else f"pip install {' '.join(absent)}"
        raise EncoderUnavailableError(f"encoder {encoder!r} needs {', '.join(absent)}: {line}")


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device to run on: "auto" is the first of cuda, mps and cpu that is there."""
    import torch

    if str(device) == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f'device must be "auto", "cpu", "cuda:0" or another of torch\'s, got {device!r}') from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise EncoderUnavailableError(f"device {device!r} was asked for, and torch finds no CUDA device here")
    if chosen.type == "mps" and not torch.backends.mps.is_available():
        raise EncoderUnavailableError(f"device {device!r} was asked for, and torch finds no MPS device here")
    return chosen


def cpu_has_bf16() -> bool:
    """Does this processor multiply bfloat16 itself? Where it does not, bfloat16 is slower than float32."""
    import torch

    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, name, lambda: False)()) for name in names)


def choose_dtype(
    dtype: str | torch.dtype = "auto", device: torch.device | None = None, gpu: str = "fp32"
) -> torch.dtype:
    """The precision to run in.

    Args:
        dtype: "fp32", "bf16", "fp16" (or torch's own), or "auto": bf16 on a processor that has it, `gpu` on cuda and
            mps, fp32 elsewhere.
        device: where the model will run; None is the CPU.
        gpu: what "auto" means on an accelerator: the precision the weights were published in.
    """
    import torch

    if isinstance(dtype, torch.dtype):
        dtype = str(dtype).removeprefix("torch.")
    if dtype == "auto":
        if device is None or device.type == "cpu":
            dtype = "bf16" if cpu_has_bf16() else "fp32"
        else:
            dtype = gpu
    name = DTYPES.get(dtype, dtype)
    if name not in DTYPES.values():
        raise UsageError(f'dtype must be "auto", {", ".join(map(repr, DTYPES))}, got {dtype!r}')
    chosen: torch.dtype = getattr(torch, name)
    return chosen


def dtype_name(dtype: torch.dtype) -> str:
    """ "fp32", "bf16" or "fp16"."""
    return {full: short for short, full in DTYPES.items()}[str(dtype).removeprefix("torch.")]


def out_of_memory(error: BaseException) -> bool:
    """Is this torch, on any device, saying that a tensor did not fit?"""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "not enough memory" in text)


def run_in_batches(
    items: Sequence[Item],
    batch_size: int,
    forward: Callable[[Sequence[Item]], NDArray[np.float32]],
    width: int,
) -> NDArray[np.float32]:
    """Apply `forward` to items in batches; a batch that does not fit in memory is halved, and the smaller size is kept.

    Args:
        items: n of what `forward` takes.
        batch_size: the largest batch, at least 1.
        forward: a batch of b items to a (b, width) array, in inference mode.
        width: columns of the result.

    Returns:
        (n, width) float32. An item that does not fit even alone is a row of NaN, and a warning in the log.
    """
    import torch

    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1, got {batch_size}")
    rows = np.full((len(items), width), np.nan, np.float32)
    start = 0
    while start < len(items):
        batch = items[start : start + batch_size]
        failed = False
        try:
            with torch.inference_mode():
                result = forward(batch)
        except Exception as error:  # torch raises several types for it, some only known by their text
            if not out_of_memory(error):
                raise
            failed = True
        if failed:  # outside the except block, so that the traceback no longer holds the batch's tensors
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if len(batch) > 1:
                batch_size = len(batch) // 2
                logger.warning("out of memory with a batch of %d: going on with %d", len(batch), batch_size)
                continue
            logger.warning("out of memory with a single image: its vector is NaN")
        elif result.shape != (len(batch), width):
            raise EncoderError(f"the model gave vectors of shape {result.shape}, expected {(len(batch), width)}")
        else:
            rows[start : start + len(batch)] = result
        start += len(batch)
    return rows


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; a row that is zero or not finite becomes NaN."""
    vectors = np.asarray(vectors, np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = vectors / norms
    unit[~(np.isfinite(norms) & (norms > 1e-12))[:, 0]] = np.nan
    rows: NDArray[np.float32] = unit.astype(np.float32)
    return rows


def weights_digest(state: Mapping[str, torch.Tensor]) -> str:
    """32 hexadecimal digits over every tensor's name, type, shape and bytes, in the order of the names."""
    import torch

    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if tensor.numel():
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def fingerprint(encoder: str, **parts: Any) -> str:
    """`encoder` and 16 hexadecimal digits over all that its numbers depend on.

    >>> fingerprint("clip", weights="ab12", dtype="fp32")
    'clip-41e45a1757b5e7ab'
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return f"{encoder}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
