"""`pixelstats`: a hand-made descriptor of what pixel artists call palette, shading and outline. No learned weights.

The baseline that every learned encoder must beat. It ignores the factor, and no number in it says how large the image
is. Each part is a histogram or a position on a soft scale, taken to its square root (so that inner products are
Bhattacharyya coefficients) and given an equal share of the unit vector.

A picture of more than 512 x 512 px in all is reduced by area first. No sprite is that large: the numbers of all smaller
pictures, and so the fingerprint, are those from before there was this limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..images import Asset, Texture, composite, reduce_area
from .base import TwoStageEncoder, as_textures, check_factors

__all__ = ["PixelStats"]

MAX_PIXELS = 512 * 512
_LUMA = np.array([0.299, 0.587, 0.114])
_SOFT = np.linspace(0, 1, 8)
"""Positions on a soft scale."""
_STEPS = np.array([1e-6, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5], np.float32)
_DEVIATIONS = np.array([1e-4, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32], np.float32)


class PixelStats(TwoStageEncoder):
    """Palette, gradients, outline, local contrast and colour count of the visible pixels on the native grid.

    >>> import numpy as np
    >>> encoder = PixelStats()
    >>> vectors = encoder.embed([np.eye(16, dtype=np.uint8) * 255], ["art style"])["art style"]
    >>> vectors.shape, round(float((vectors**2).sum()), 3)
    ((1, 172), 1.0)
    """

    name = "pixelstats"
    conditional = False
    fingerprint = "pixelstats/1/float32"

    def features(self, images: Sequence[Asset | Texture]) -> NDArray[np.float32]:
        rows = [_describe(_reduced(texture.native)) for texture in as_textures(images)]
        return np.stack(rows) if rows else np.empty((0, 172), np.float32)

    def condition(self, features: NDArray[np.float32], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return dict.fromkeys(check_factors(factors), features)


def _reduced(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """At most 512 x 512 pixels in all, in the same proportions, so that a long strip stays one."""
    height, width = rgba.shape[:2]
    if height * width <= MAX_PIXELS:
        return rgba
    scale = np.sqrt(MAX_PIXELS / (height * width))
    columns = min(max(1, int(width * scale)), MAX_PIXELS)
    small = reduce_area(rgba, columns, min(max(1, int(height * scale)), MAX_PIXELS // columns))
    if small[..., 3].any():
        return small
    seen = rgba[rgba[..., 3] > 0]  # specks too few to show after reducing: described by their colours, in a row
    return seen[None, :: -(-len(seen) // MAX_PIXELS)] if len(seen) else small


def _describe(rgba: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(h, w, 4) to (172,): unit length, or NaN where nothing is visible."""
    visible = rgba[..., 3] > 0
    if not visible.any():
        return np.full(172, np.nan, np.float32)
    colours = rgba[visible]
    rgb = colours[:, :3] / 255
    luma = composite(rgba) @ _LUMA / 255
    parts = [*_palette(rgb), *_gradients(luma, visible), *_outline(rgba[..., 3], luma, visible), _colour_count(colours)]
    roots = [np.sqrt(part / max(float(part.sum()), 1e-12)) for part in parts]
    vector: NDArray[np.float64] = np.concatenate(roots)
    return np.asarray(vector / np.sqrt((vector**2).sum()), np.float32)


def _palette(rgb: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """Joint 4 x 4 x 4 RGB histogram; lightness, saturation; hue weighted by chroma."""
    cells = np.minimum((rgb * 4).astype(np.int64), 3)
    joint = np.bincount(cells @ np.array([16, 4, 1]), minlength=64).astype(np.float64)
    high, low = rgb.max(axis=1), rgb.min(axis=1)
    chroma = high - low
    saturation = chroma / np.maximum(high, 1e-6)
    difference = np.maximum(chroma, 1e-6)
    r, g, b = rgb.T
    sectors = [(g - b) / difference % 6, (b - r) / difference + 2]
    hue = np.select([high == r, high == g], sectors, (r - g) / difference + 4)
    hues = np.bincount((hue * 2).astype(np.int64) % 12, weights=chroma, minlength=12) + 1e-3 * len(rgb) / 12
    return [joint, _histogram(rgb @ _LUMA, 16), _histogram(saturation, 8), hues]


def _gradients(luma: NDArray[np.floating], visible: NDArray[np.bool_]) -> list[NDArray[np.floating]]:
    """Steps between neighbours: how many are flat, faint, strong; which way they point; how they alternate."""
    parts: list[NDArray[np.floating]] = []
    strength = np.zeros(2)
    for axis in (0, 1):
        here, there = (luma[1:], luma[:-1]) if axis == 0 else (luma[:, 1:], luma[:, :-1])
        both = (visible[1:] & visible[:-1]) if axis == 0 else (visible[:, 1:] & visible[:, :-1])
        steps = np.abs(here - there)[both]
        strength[axis] = steps.sum()
        # Logarithmic edges: pixel art differs from rendered art most in its share of exactly flat and faint steps.
        parts.append(_binned(steps, _STEPS))
    parts.append(strength + 1e-3)
    return [*parts, _contrast(luma, visible)]


def _contrast(luma: NDArray[np.floating], visible: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Standard deviation of lightness in 3 x 3 windows around visible pixels, on a logarithmic scale."""
    padded, weight = np.pad(luma * visible, 1), np.pad(visible.astype(np.float64), 1)
    total, squares, count = (_box3(x) for x in (padded, padded**2, weight))
    count = np.maximum(count, 1)
    variance = np.maximum(squares / count - (total / count) ** 2, 0)[visible]
    return _binned(np.sqrt(variance), _DEVIATIONS)


def _outline(
    alpha: NDArray[np.uint8], luma: NDArray[np.floating], visible: NDArray[np.bool_]
) -> list[NDArray[np.floating]]:
    """Share covered, share half transparent, and how the outline's lightness differs from the inside's."""
    around = _box3(np.pad(visible, 1).astype(np.float64))
    edge = visible & (around < 9)
    inside = visible & ~edge
    partial = ((alpha > 0) & (alpha < 255)).sum() / visible.sum()
    middle = float(luma[inside].mean()) if inside.any() else float(luma[visible].mean())
    contrast = _histogram((luma[edge] - middle + 1) / 2, 12) if edge.any() else np.full(12, 1e-3)
    return [_soft(visible.mean()), _soft(partial), _soft(edge.sum() / visible.sum()), contrast]


def _colour_count(colours: NDArray[np.uint8]) -> NDArray[np.floating]:
    """Distinct colours against visible pixels, in bits: 0 for one colour, 1 for a new colour with every pixel."""
    packed = np.ascontiguousarray(colours).view(np.uint32)
    return _soft(np.log2(len(np.unique(packed))) / max(np.log2(len(colours)), 1))


def _box3(padded: NDArray[np.floating]) -> NDArray[np.floating]:
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    return np.asarray(rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:])


def _histogram(values: NDArray[np.floating], bins: int) -> NDArray[np.floating]:
    cells = np.clip((values * bins).astype(np.int64), 0, bins - 1)
    return np.bincount(cells, minlength=bins) + 1e-3


def _binned(values: NDArray[np.floating], edges: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1) + 1e-3


def _soft(value: float | np.floating) -> NDArray[np.floating]:
    """A number in [0, 1] as weights on a scale of 8, so that near numbers have near vectors."""
    return np.asarray(np.exp(-((_SOFT - float(value)) ** 2) / (2 * 0.12**2)))
