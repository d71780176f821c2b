"""The pairwise TPIPS models, as re-rankers of the candidates that a search has found.

"early_fusion" and "activation_dist" compare two pictures in one forward and give no vectors, so they cannot be
searched. They can look again at the few references that the embedding finds nearest:

    found = knn_mean(queries, rows, encoder.rerank_top, exclude)          # by embedding
    ids, similarities = rerank_neighbours(encoder, textures, found.ids, references, factor)
    S = similarities[:, :k].mean(axis=1)

References are calibrated the same way, each against its own candidates, so that thresholds and scores agree.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from ..images import MATTE, Texture
from ._torch import choose_device, choose_dtype, dtype_name, fingerprint, run_in_batches, weights_digest
from .tpips import PixelBudget, centred, picture
from .tpips_load import Kind, load_tpips, quiet

if TYPE_CHECKING:
    import torch

__all__ = ["Pairwise", "Reranker", "rerank_neighbours"]


class Pairwise(Protocol):
    """What compares a texture with others, pair by pair."""

    def rerank(self, query: Texture, candidates: Sequence[Texture], factor: str) -> NDArray[np.float64]: ...


class Reranker:
    """A pairwise TPIPS model.

    Args:
        kind: "early_fusion" (cosine of two jointly read pictures) or "activation_dist" (one minus
            the learned distance).
        weights: a checkpoint folder or a hub id; None is the authors' own.
        revision, min_pixels, device, dtype, batch_size, matte: as for `TPIPS`; a batch is so many pairs.
    """

    def __init__(
        self,
        kind: str,
        weights: str | os.PathLike[str] | None = None,
        *,
        revision: str | None = None,
        min_pixels: int | None = None,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        batch_size: int = 4,
        matte: int = MATTE,
    ) -> None:
        kinds: dict[str, Kind] = {"early_fusion": "early_fusion", "activation_dist": "activation_dist"}
        if kind not in kinds:
            raise UsageError(f'kind must be "early_fusion" or "activation_dist", got {kind!r}')
        self.kind = kinds[kind]
        self.device = choose_device(device)
        self.dtype = choose_dtype(dtype, self.device, gpu="bf16")
        self.batch_size = batch_size
        self.matte = matte
        self._lock = threading.Lock()
        self._model: Any = load_tpips(self.kind, weights, revision, self.device, self.dtype)
        self.pixel_budget = PixelBudget.of(self._model.processor, min_pixels)
        self.fingerprint = fingerprint(
            f"tpips-{kind}",
            dtype=dtype_name(self.dtype),
            matte=matte,
            pixels=asdict(self.pixel_budget),
            tpips=version("tpips"),
            version=1,
            weights=weights_digest(self._model.state_dict()),
        )

    def similarities(self, query: Texture, candidates: Sequence[Texture], factor: str) -> NDArray[np.float64]:
        """Similarities of a texture to n others under a factor: (n,) float64, higher is more similar.

        The two kinds are on scales of their own, and neither is the embedding's.
        """
        left = picture(query, self.pixel_budget, self.matte)
        rights = [picture(candidate, self.pixel_budget, self.matte) for candidate in candidates]
        pairs = [self._pair(left, right) for right in rights]
        with self._lock:
            rows = run_in_batches(pairs, self.batch_size, lambda batch: self._forward(batch, factor), 1)
        return rows[:, 0].astype(np.float64)

    def _pair(self, left: NDArray[np.uint8], right: NDArray[np.uint8]) -> tuple[torch.Tensor, torch.Tensor]:
        if self.kind == "activation_dist":
            # It compares patch by patch, and would itself bring the larger picture down to the smaller, bicubically.
            height, width = (max(sides) for sides in zip(left.shape[:2], right.shape[:2], strict=True))
            left, right = (self._on_canvas(side, height, width) for side in (left, right))
        return chw(left), chw(right)

    def _on_canvas(self, pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
        opaque = np.full((*pixels.shape[:2], 4), 255, np.uint8)
        opaque[..., :3] = pixels
        wide = centred(opaque, height, width)
        return np.where(wide[..., 3:] > 0, wide[..., :3], np.uint8(self.matte))

    def _forward(self, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], factor: str) -> NDArray[np.float32]:
        lefts, rights = ([pair[side] for pair in pairs] for side in (0, 1))
        with quiet():
            if self.kind == "early_fusion":
                values = self._model.similarity(lefts, rights, factor)
            else:
                values = 1 - self._model.distance(lefts, rights, factor)
        column: NDArray[np.float32] = values.float().cpu().numpy()[:, None]
        return column


def chw(pixels: NDArray[np.uint8]) -> torch.Tensor:
    """(h, w, 3) bytes as a (3, h, w) tensor in [0, 1]."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1).float().div(255)


def rerank_neighbours(
    encoder: Pairwise,
    queries: Sequence[Texture],
    ids: NDArray[np.int64],
    references: Sequence[Texture],
    factor: str,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The neighbours that a search found, compared again pair by pair and put in their new order.

    Args:
        encoder: what compares, such as a `TPIPS` made with `rerank`.
        queries: q textures.
        ids: (q, m) rows of `references` that the search found for each; -1 for none.
        references: what `ids` counts.
        factor: under which they are compared.

    Returns:
        (q, m) ids and (q, m) float64 similarities, falling, ties by the lower id; -1 and NaN at the end.
    """
    ids = np.array(ids, np.int64)
    similarities = np.full(ids.shape, np.nan)
    for row, query in enumerate(queries):
        found = ids[row][ids[row] >= 0]
        values = encoder.rerank(query, [references[i] for i in found], factor)
        order = np.lexsort((found, -values))  # NaN comes last
        ids[row] = np.concatenate([found[order], np.full(ids.shape[1] - len(found), -1)])
        similarities[row, : len(found)] = values[order]
    return ids, similarities
