"""Pictures to vectors that can be trusted: float32, unit length where they must be, NaN where there is nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .encoders.base import Encoder, TwoStageEncoder
from .errors import EmbeddingError
from .images import Texture

__all__ = ["CHUNK", "checked", "condition", "embed_assets", "embed_references"]

log = logging.getLogger(__name__)

Vectors = NDArray[np.float32]
CHUNK = 256
"""Pictures given to an encoder at a time."""


def checked(name: str, metric: str, vectors: Any, rows: int) -> Vectors:
    """An encoder's vectors as a float32 copy in which a row that is not finite or only zeros is NaN.

    Raises:
        EmbeddingError: not (rows, d) real numbers; or the metric is cosine and a row's length is off 1 by over 0.001.
    """
    given = np.asarray(vectors)
    if given.ndim != 2 or len(given) != rows or given.dtype.kind not in "fiu":
        raise EmbeddingError(f"{name} must give {rows} rows of numbers, got {given.dtype} {given.shape}")
    unit: Vectors = np.array(given, np.float32)
    norms = np.sqrt((unit.astype(np.float64) ** 2).sum(axis=1))
    if metric == "cosine":
        off = np.isfinite(norms) & (norms > 0) & (np.abs(norms - 1) > 1e-3)
        if off.any():
            raise EmbeddingError(f"{name} must give unit vectors, got one of length {norms[off][0]:.4g}")
    unit[~np.isfinite(norms) | (norms == 0)] = np.nan
    return unit


def features(encoder: TwoStageEncoder, textures: Sequence[Texture]) -> Vectors:
    """The image pass of a two-stage encoder, its shape checked."""
    rows = np.asarray(encoder.features(textures), np.float32)
    if rows.ndim != 2 or len(rows) != len(textures):
        raise EmbeddingError(f"{encoder.name} must give features of {len(textures)} pictures, got {rows.shape}")
    return rows


def condition(encoder: TwoStageEncoder, rows: Vectors, factors: Sequence[str]) -> dict[str, Vectors]:
    """Features to checked vectors under each factor."""
    return _each(encoder, encoder.condition(rows, factors), factors, len(rows))


def embed(encoder: Encoder, textures: Sequence[Texture], factors: Sequence[str]) -> dict[str, Vectors]:
    """Pictures to checked vectors under each factor."""
    return _each(encoder, encoder.embed(textures, factors), factors, len(textures))


def _each(encoder: Encoder, found: dict[str, Any], factors: Sequence[str], rows: int) -> dict[str, Vectors]:
    missing = [factor for factor in factors if factor not in found]
    if missing:
        raise EmbeddingError(f"{encoder.name} gave no vectors under {missing[0]!r}")
    return {factor: checked(encoder.name, encoder.metric, found[factor], rows) for factor in factors}


def embed_references(
    encoder: Encoder,
    textures: Sequence[Texture],
    factors: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[str, Vectors], Vectors | None]:
    """All textures under each factor, and the features where the encoder has two stages. Rows in order."""
    vectors: dict[str, list[Vectors]] = {factor: [] for factor in factors}
    kept: list[Vectors] = []
    for start in range(0, len(textures), CHUNK):
        part = textures[start : start + CHUNK]
        if isinstance(encoder, TwoStageEncoder):
            kept.append(features(encoder, part))
            embedded = condition(encoder, kept[-1], factors)
        else:
            embedded = embed(encoder, part, factors)
        for factor in factors:
            vectors[factor].append(embedded[factor])
        if progress is not None:
            progress(start + len(part), len(textures))
    return {factor: np.concatenate(parts) for factor, parts in vectors.items()}, np.concatenate(kept) if kept else None


def embed_assets(
    encoder: Encoder, assets: Sequence[Sequence[Texture]], style: str, requests: Sequence[str | None]
) -> tuple[dict[str, list[Vectors]], dict[int, str]]:
    """Each asset's frames under the style factor and under its own request.

    One image pass for a two-stage encoder; for others one a frame, under its factors. Where the encoder raises for the
    batch, each asset is tried alone, so that one bad picture costs one row.

    Args:
        assets: n assets of one or more frames.
        style: the factor for all of them.
        requests: n further factors, None for none.

    Returns:
        For each factor n arrays (frames, d), of no rows where an asset was not asked for it or failed; and what went
        wrong, in words, by the asset's position.
    """
    try:
        return _embed_batch(encoder, assets, style, requests), {}
    except Exception as error:
        if len(assets) == 1:
            log.warning("%s failed: %s", encoder.name, error)
            return {}, {0: f"{encoder.name} failed: {type(error).__name__}: {error}"}
        log.info("%s failed for a batch, each picture is tried alone: %s", encoder.name, error)
    vectors: dict[str, list[Vectors]] = {}
    problems: dict[int, str] = {}
    for i, (frames, request) in enumerate(zip(assets, requests, strict=True)):
        alone, problem = embed_assets(encoder, [frames], style, [request])
        for factor, parts in alone.items():
            vectors.setdefault(factor, [np.empty((0, 1), np.float32)] * len(assets))[i] = parts[0]
        if problem:
            problems[i] = problem[0]
    return vectors, problems


def _embed_batch(
    encoder: Encoder, assets: Sequence[Sequence[Texture]], style: str, requests: Sequence[str | None]
) -> dict[str, list[Vectors]]:
    if isinstance(encoder, TwoStageEncoder):
        rows = features(encoder, [frame for frames in assets for frame in frames])
        parts = np.split(rows, np.cumsum([len(frames) for frames in assets])[:-1])

        def vectors_of(positions: Sequence[int], factors: Sequence[str]) -> dict[str, Vectors]:
            return condition(encoder, np.concatenate([parts[i] for i in positions]), factors)
    else:

        def vectors_of(positions: Sequence[int], factors: Sequence[str]) -> dict[str, Vectors]:
            return embed(encoder, [frame for i in positions for frame in assets[i]], factors)

    vectors: dict[str, list[Vectors]] = {}
    for request in dict.fromkeys(requests):
        positions = [i for i, other in enumerate(requests) if other == request]
        factors = tuple(dict.fromkeys(factor for factor in (style, request) if factor is not None))
        ends = np.cumsum([len(assets[i]) for i in positions])[:-1]
        for factor, found in vectors_of(positions, factors).items():
            whole = vectors.setdefault(factor, [np.empty((0, found.shape[1]), np.float32)] * len(assets))
            for i, own in zip(positions, np.split(found, ends), strict=True):
                whole[i] = own
    return vectors
