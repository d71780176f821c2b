"""TPIPS: text-conditioned perceptual similarity, the encoder behind the published numbers.

An optional extra (`pip install "assetscore[tpips]"`): a multimodal model of 8 billion parameters that reads the factor
with the picture, so that every factor has vectors of its own. Package and weights are non-commercial (Adobe Research
Licence).
"""

from __future__ import annotations

import math
import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FactorError, UsageError
from ..images import MATTE, Asset, Texture, composite, enlarge, reduce_area
from ._names import by_name
from ._torch import (
    BATCH_NOISE,
    choose_device,
    choose_dtype,
    dtype_name,
    fingerprint,
    run_in_batches,
    unit_rows,
    weights_digest,
)
from .base import Encoder, as_textures, check_factors
from .tpips_load import load_tpips

if TYPE_CHECKING:
    import torch

    from .tpips_rerank import Reranker

__all__ = ["TPIPS", "PixelBudget", "fit", "picture"]

MOST_PIXELS = 1800 * 32 * 32
"""What the package means to be the most; its processor is never told, and would take up to 16,000 tokens."""
STEEPEST = 200
"""The processor refuses a picture whose sides are in a larger ratio."""


@dataclass(frozen=True)
class PixelBudget:
    """The sizes that a Qwen processor leaves as they are: sides in multiples of `unit`, `least` to `most` pixels."""

    unit: int
    least: int
    most: int

    @classmethod
    def of(cls, processor: Any, least: int | None = None) -> PixelBudget:
        """What a processor really does, whatever the message to it says; `least` may raise its minimum."""
        images = processor.image_processor
        size = images.size
        lowest, highest = int(size["shortest_edge"]), int(size["longest_edge"])
        if least is not None and least > min(highest, MOST_PIXELS):
            raise UsageError(f"min_pixels must be at most {min(highest, MOST_PIXELS)}, got {least}")
        least = max(lowest, least or 0)
        # Whole units around the least need room: a processor of one size only would leave none, and resample.
        return cls(images.patch_size * images.merge_size, least, max(min(highest, MOST_PIXELS), 4 * least))


def fit(height: int, width: int, budget: PixelBudget) -> tuple[int, int, int]:
    """The integer enlargement and the canvas for a picture: (factor, canvas height, canvas width).

    The enlargement is the least that reaches the budget's minimum; one that fills whole units without a margin is
    preferred as long as it does not double the pixels.

    >>> fit(16, 16, PixelBudget(32, 65536, 2**24)), fit(20, 30, PixelBudget(32, 4096, 2**24))
    ((16, 256, 256), (2, 64, 64))
    """

    def whole(side: int) -> int:
        return -(-side // budget.unit) * budget.unit

    def size(factor: int) -> tuple[int, int]:
        tall, wide = whole(height * factor), whole(width * factor)
        return max(tall, whole(-(-wide // STEEPEST))), max(wide, whole(-(-tall // STEEPEST)))

    factor = 1
    while math.prod(size(factor)) < budget.least:
        factor += 1
    step = math.lcm(*(budget.unit // math.gcd(side, budget.unit) for side in (height, width)))
    exact = -(-factor // step) * step
    if math.prod(size(exact)) <= min(2 * math.prod(size(factor)), budget.most):
        factor = exact
    return factor, *size(factor)


def picture(texture: Texture, budget: PixelBudget, matte: int = MATTE) -> NDArray[np.uint8]:
    """A texture as (h, w, 3) 8-bit RGB in a size that the processor does not resample.

    Enlarged by nearest neighbour, centred on a matte margin where its sides are no multiples of the unit, and reduced
    by area only where it exceeds the budget.
    """
    rgba = texture.native
    shrink = 1.0
    while math.prod(fit(rgba.shape[0], rgba.shape[1], budget)[1:]) > budget.most:
        shrink *= 0.95
        height, width = texture.native.shape[:2]
        rgba = reduce_area(texture.native, max(1, int(width * shrink)), max(1, int(height * shrink)))
    factor, height, width = fit(rgba.shape[0], rgba.shape[1], budget)
    large = enlarge(rgba, factor)
    return composite(centred(large, height, width), matte)


def centred(rgba: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """(h, w, 4) pixels in the middle of a transparent (height, width, 4) canvas."""
    canvas = np.zeros((height, width, 4), np.uint8)
    top, left = (height - rgba.shape[0]) // 2, (width - rgba.shape[1]) // 2
    canvas[top : top + rgba.shape[0], left : left + rgba.shape[1]] = rgba
    return canvas


class TPIPS(Encoder):
    """TPIPS embeddings; each factor is a pass of its own, unless `shared_prefix` is on.

    Args:
        weights: a checkpoint folder or a hub id; None is the authors' own.
        revision: of the hub repository, a commit for numbers that can be reproduced.
        shared_prefix: all factors of an image in one forward. Same vectors up to rounding, and 1.5 to 6 times as fast;
            a numeric mode of its own, with its own fingerprint.
        rerank: "early_fusion" or "activation_dist": the best candidates of a search are compared again, pair by pair,
            by that model (see `tpips_rerank`). Loads a second model.
        rerank_weights, rerank_revision: of that model, as `weights` and `revision`.
        rerank_top: how many candidates are compared again.
        min_pixels: pictures are enlarged to at least so many pixels, where the processor's minimum is lower.
        device: "auto" or torch's name.
        dtype: "auto" is bf16, the weights' own, wherever the processor has it, and fp32 elsewhere.
        batch_size: pictures a forward; halved where memory runs out.
        matte: the grey under transparent pixels.

    Attributes:
        pixel_budget: what the processor leaves as it is, read from the loaded processor.

    Raises:
        EncoderUnavailableError: the package or the weights are not here and cannot be fetched.
        WeightsError: the checkpoint is damaged or does not fit the model.
    """

    conditional = True

    def __init__(
        self,
        weights: str | os.PathLike[str] | None = None,
        *,
        revision: str | None = None,
        shared_prefix: bool = False,
        rerank: str | None = None,
        rerank_weights: str | os.PathLike[str] | None = None,
        rerank_revision: str | None = None,
        rerank_top: int = 20,
        min_pixels: int | None = None,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        batch_size: int = 8,
        matte: int = MATTE,
    ) -> None:
        if rerank not in (None, "early_fusion", "activation_dist"):
            raise UsageError(f'rerank must be "early_fusion", "activation_dist" or None, got {rerank!r}')
        if rerank_top < 1:
            raise UsageError(f"rerank_top must be at least 1, got {rerank_top}")
        self.name = "tpips"
        self.device = choose_device(device)
        self.dtype = choose_dtype(dtype, self.device, gpu="bf16")
        self.batch_size = batch_size
        self.matte = matte
        self.shared_prefix = shared_prefix
        self.batch_noise = BATCH_NOISE[dtype_name(self.dtype)]
        self._lock = threading.Lock()
        # Any: the package's models type none of what is used here.
        self._model: Any = load_tpips("embedding", weights, revision, self.device, self.dtype)
        self.pixel_budget = PixelBudget.of(self._model.processor, min_pixels)
        self._special = tuple(self._model.processor.tokenizer.get_added_vocab())
        self.rerank_top = rerank_top if rerank else 0
        self._reranker: Reranker | None = None
        if rerank:
            from .tpips_rerank import Reranker

            self._reranker = Reranker(
                rerank,
                rerank_weights,
                revision=rerank_revision,
                min_pixels=min_pixels,
                device=self.device,
                dtype=self.dtype,
                batch_size=batch_size,
                matte=matte,
            )
        self.fingerprint = fingerprint(
            "tpips",
            attention=self._model.backbone.config._attn_implementation,
            dtype=dtype_name(self.dtype),
            instruction=self._model.instruction,
            matte=matte,
            pixels=asdict(self.pixel_budget),
            pooling=self._model.pooling,
            reranker=self._reranker and (self._reranker.fingerprint, rerank_top),
            shared_prefix=shared_prefix,
            tpips=version("tpips"),
            version=1,
            weights=weights_digest(self._model.state_dict()),
        )

    def embed(self, images: Sequence[Asset | Texture], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """(n, d) unit rows for each factor. The factor is part of the vector: compare within one factor only.

        Raises:
            FactorError: besides what no encoder takes, a text that the tokenizer would read as a control token.
            ImageError: an image cannot be read.
        """
        check_factors(factors)  # a single text is no sequence of them
        factors = tuple(dict.fromkeys(self.check_factor(factor) for factor in factors))
        textures = as_textures(images)
        width = int(self._model.backbone.config.text_config.hidden_size)
        vectors = {factor: np.full((len(textures), width), np.nan, np.float32) for factor in factors}
        # Pictures of one size give the same numbers whatever their number; mixed sizes are padded and do not.
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, texture in enumerate(textures):
            groups[fit(texture.native.shape[0], texture.native.shape[1], self.pixel_budget)[1:]].append(index)
        for indices in groups.values():
            group = [textures[index] for index in indices]
            for factor, rows in self._embed_group(group, factors, width).items():
                vectors[factor][indices] = unit_rows(rows)
        return vectors

    def check_factor(self, factor: str) -> str:
        """The factor as it will be used.

        Raises:
            FactorError: besides what no encoder takes, it holds a control token: that would end the prompt, or start
                another picture.
        """
        factor = super().check_factor(factor)
        if any(token in factor for token in self._special) or ("<|" in factor and "|>" in factor):
            raise FactorError(f"a factor for tpips must not hold control tokens such as <|...|>, got {factor!r}")
        return factor

    def _embed_group(
        self, group: Sequence[Texture], factors: tuple[str, ...], width: int
    ) -> dict[str, NDArray[np.float32]]:
        """{factor: (n, d)} for textures that become pictures of one size."""
        with self._lock:  # the model keeps state between its own steps
            if self.shared_prefix and len(factors) > 1:
                forward = partial(self._forward_shared, factors=factors)
                together = run_in_batches(group, self.batch_size, forward, width * len(factors))
                return dict(zip(factors, np.split(together, len(factors), axis=1), strict=True))
            return {
                factor: run_in_batches(group, self.batch_size, partial(self._forward, factor=factor), width)
                for factor in factors
            }

    def _pictures(self, textures: Sequence[Texture]) -> list[torch.Tensor]:
        import torch

        arrays = [picture(texture, self.pixel_budget, self.matte) for texture in textures]
        return [torch.from_numpy(array).permute(2, 0, 1).float().div(255) for array in arrays]

    def _forward(self, textures: Sequence[Texture], factor: str) -> NDArray[np.float32]:
        vectors: torch.Tensor = self._model.embed(self._pictures(textures), factor, normalized=True)
        return vectors.float().cpu().numpy()

    def _forward_shared(self, textures: Sequence[Texture], factors: tuple[str, ...]) -> NDArray[np.float32]:
        from .tpips_shared_prefix import embed_factors

        vectors = embed_factors(self._model, self._pictures(textures), factors)
        return vectors.flatten(1).float().cpu().numpy()

    def rerank(self, query: Texture, candidates: Sequence[Texture], factor: str) -> NDArray[np.float64]:
        """Similarities of a texture to n candidates by the pairwise model: (n,) float64, higher is more similar.

        Raises:
            UsageError: the encoder was made without `rerank`.
        """
        if self._reranker is None:
            raise UsageError('this encoder has no pairwise model: make it with rerank="early_fusion"')
        return self._reranker.similarities(query, candidates, self.check_factor(factor))


def make(argument: str = "", **options: Any) -> TPIPS:
    """What `get_encoder("tpips...")` gives."""
    return by_name(TPIPS, "tpips", argument, options)
