"""Native pixels to what the network sees: a canvas, and statistics of the pixels as the artist set them.

All of it works on slots: (n, 64, 64, 4) uint8 with each image in the top left corner, and (n, 2) sizes. Nothing here
depends on the batch an image is in: sums are exact integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...images import reduce_area

__all__ = ["SIDE", "STATISTICS", "canvases", "slots", "statistics"]

SIDE = 64
MATTE = 128
_STEPS = np.array([1, 3, 6, 12, 24, 48, 96])
"""Lower edges of the bins of colour steps; below the first the two pixels are equal."""
_BINS = len(_STEPS) + 1
STATISTICS = 75
"""Columns of `statistics`."""

Slots = NDArray[np.uint8]
Sizes = NDArray[np.integer]


def slots(natives: Sequence[NDArray[np.uint8]]) -> tuple[Slots, NDArray[np.int16]]:
    """Images on their native grid to slots; those longer than 64 px are first reduced by area."""
    out = np.zeros((len(natives), SIDE, SIDE, 4), np.uint8)
    size = np.zeros((len(natives), 2), np.int16)
    for slot, hw, image in zip(out, size, natives, strict=True):
        height, width = image.shape[:2]
        longer = max(height, width)
        if longer > SIDE:
            scale = SIDE / longer
            image = reduce_area(image, max(1, round(width * scale)), max(1, round(height * scale)))
            height, width = image.shape[:2]
        slot[:height, :width] = image
        hw[:] = height, width
    return out, size


def canvases(
    slot: Slots, size: Sizes, flip: NDArray[np.bool_] | None = None, shift: NDArray[np.integer] | None = None
) -> Slots:
    """Slots to (n, 64, 64, 4) canvases: enlarged by an integer, centred, colours laid over grey, alpha kept.

    Args:
        flip: (n,) mirror left and right (training only).
        shift: (n, 2) pixels of the canvas to move down and right (training only).
    """
    count = len(slot)
    alpha = slot[..., 3:].astype(np.uint16)
    grey = np.empty_like(slot)
    grey[..., :3] = (slot[..., :3] * alpha + np.uint16(MATTE) * (255 - alpha) + 127) // 255
    grey[..., 3:] = slot[..., 3:]
    source = grey.view(np.uint32)[..., 0].reshape(-1)
    blank = np.array([MATTE, MATTE, MATTE, 0], np.uint8).view(np.uint32)[0]
    factor = SIDE // size.max(axis=1).astype(np.int32)
    index, inside = [], []
    for axis in (0, 1):
        length = size[:, axis].astype(np.int32)
        start = (SIDE - length * factor) // 2
        if shift is not None:
            start = start + shift[:, axis]
        at = (np.arange(SIDE, dtype=np.int32)[None] - start[:, None]) // factor[:, None]
        inside.append((at >= 0) & (at < length[:, None]))
        at = at.clip(0, length[:, None] - 1)
        if axis == 1 and flip is not None:
            at = np.where(flip[:, None], length[:, None] - 1 - at, at)
        index.append(at)
    base = np.arange(count, dtype=np.int32)[:, None, None] * (SIDE * SIDE)
    picked = source[base + index[0][:, :, None] * SIDE + index[1][:, None, :]]
    picked[~(inside[0][:, :, None] & inside[1][:, None, :])] = blank
    return np.asarray(picked.view(np.uint8).reshape(count, SIDE, SIDE, 4), np.uint8)


def statistics(slot: Slots, size: Sizes) -> NDArray[np.float32]:
    """Slots to (n, 75) statistics of colours, steps between neighbours, outline and transparency, each about 0 to 1.

    None of them tells the size of the image.
    """
    out = np.zeros((len(slot), STATISTICS), np.float32)
    longer = size.max(axis=1) if len(size) else np.zeros(0, np.int16)
    low = 0
    for side in (16, 24, 32, 48, SIDE):  # small images cost less
        rows = np.flatnonzero((longer > low) & (longer <= side))
        low = side
        if rows.size:
            out[rows] = _statistics(np.ascontiguousarray(slot[rows, :side, :side]), size[rows])
    return out


def _statistics(slot: Slots, size: Sizes) -> NDArray[np.float32]:
    count, side = slot.shape[:2]
    red, green, blue, alpha = (slot[..., c].astype(np.int16) for c in range(4))
    seen = alpha > 0
    visible = seen.sum(axis=(1, 2)).clip(1)
    area = (size[:, 0].astype(np.int64) * size[:, 1]).clip(1)
    light = (red * 2 + green * 5 + blue) >> 3
    high, low = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    chroma = high - low
    columns: list[NDArray[np.floating]] = []

    def histogram(values: NDArray[np.integer], where: NDArray[np.bool_], bins: int) -> NDArray[np.int64]:
        flat = np.where(where, values, bins).reshape(count, -1).astype(np.int32)
        flat += np.arange(count, dtype=np.int32)[:, None] * (bins + 1)
        found = np.bincount(flat.reshape(-1), minlength=count * (bins + 1))
        return np.asarray(found.reshape(count, bins + 1)[:, :bins], np.int64)

    def shares(values: NDArray[np.integer], where: NDArray[np.bool_], bins: int) -> None:
        found = histogram(values, where, bins)
        columns.append(np.sqrt(found / found.sum(axis=1, keepdims=True).clip(1)))

    # What colours: lightness, chroma, hue.
    shares(light >> 5, seen, 8)
    shares(chroma >> 5, seen, 8)
    hue = np.where(high == red, (green - blue) * 2, np.where(high == green, (blue - red) * 2 + 4 * chroma, 0))
    hue = np.where((high == blue) & (high != red) & (high != green), (red - green) * 2 + 8 * chroma, hue)
    shares((hue // chroma.clip(1) + 12) % 12, seen & (chroma > 24), 12)

    # How many: distinct colours, exact and coarse. Sorting a row costs less than a set.
    for shift in (0, 3, 5):
        packed = (red >> shift).astype(np.int32) << 16 | (green >> shift).astype(np.int32) << 8 | (blue >> shift)
        packed = np.sort(np.where(seen, packed, -1).reshape(count, -1), axis=1)
        different = ((packed[:, 1:] != packed[:, :-1]) & (packed[:, 1:] >= 0)).sum(axis=1)
        different = different + (packed[:, 0] >= 0)
        columns.append(np.stack([np.log2(different.clip(1)) / 12, different / visible], axis=1))
    columns.append(np.stack([visible / area, (seen & (alpha < 255)).sum(axis=(1, 2)) / visible], axis=1))

    # Steps between neighbours: the largest channel difference, and of lightness the second difference.
    def step(axis: int) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        a, b = (slice(None, -1), slice(1, None))
        first = (slice(None), a) if axis == 0 else (slice(None), slice(None), a)
        second = (slice(None), b) if axis == 0 else (slice(None), slice(None), b)
        size_of = np.abs(red[first] - red[second])
        for channel in (green, blue):
            np.maximum(size_of, np.abs(channel[first] - channel[second]), out=size_of)
        return size_of, seen[first] & seen[second]

    binned = np.searchsorted(_STEPS, np.arange(256 * 4), side="right").astype(np.int8)
    total = np.zeros((count, _BINS))
    single = np.ones((count, side, side), np.bool_)
    for axis in (0, 1):
        change, both = step(axis)
        total += histogram(binned[change], both, _BINS)
        differs = (change > 8) | ~both
        pad_after = ((0, 0), (0, 1), (0, 0)) if axis == 0 else ((0, 0), (0, 0), (0, 1))
        pad_before = ((0, 0), (1, 0), (0, 0)) if axis == 0 else ((0, 0), (0, 0), (1, 0))
        single &= np.pad(differs, pad_after, constant_values=True) & np.pad(differs, pad_before, constant_values=True)
    columns.append(np.sqrt(total / total.sum(axis=1, keepdims=True).clip(1)))
    columns.append((single & seen).sum(axis=(1, 2))[:, None] / visible[:, None])

    total = np.zeros((count, _BINS))
    for axis in (1, 2):
        parts = [np.take(light, np.arange(side - 2) + i, axis=axis) for i in range(3)]
        mask = [np.take(seen, np.arange(side - 2) + i, axis=axis) for i in range(3)]
        total += histogram(binned[np.abs(parts[0] - 2 * parts[1] + parts[2])], mask[0] & mask[1] & mask[2], _BINS)
    columns.append(np.sqrt(total / total.sum(axis=1, keepdims=True).clip(1)))

    # 2 x 2 windows of one colour, of two, of more: flat areas, lines, textures.
    whole = red.astype(np.int32) << 16 | green.astype(np.int32) << 8 | blue
    corners = [whole[:, i : side - 1 + i, j : side - 1 + j] for i in (0, 1) for j in (0, 1)]
    mask2 = seen[:, :-1, :-1] & seen[:, 1:, :-1] & seen[:, :-1, 1:] & seen[:, 1:, 1:]
    equal = sum((corners[i] == corners[j]).astype(np.int8) for i in range(4) for j in range(i))
    shares(np.asarray(equal).clip(0, 6), mask2, 7)

    # The outline: pixels beside nothing, against those inside.
    padded = np.pad(seen, ((0, 0), (1, 1), (1, 1)))
    inner = padded[:, :-2, 1:-1] & padded[:, 2:, 1:-1] & padded[:, 1:-1, :-2] & padded[:, 1:-1, 2:] & seen
    edge = seen & ~inner
    for where in (edge, inner):
        found = histogram(light >> 6, where, 4)
        columns.append(found / found.sum(axis=1, keepdims=True).clip(1))
    centre = (light * seen).sum(axis=(1, 2)) / visible
    spread = np.sqrt(np.maximum((light.astype(np.int64) ** 2 * seen).sum(axis=(1, 2)) / visible - centre**2, 0))
    columns.append(np.stack([centre / 255, spread / 128, edge.sum(axis=(1, 2)) / visible], axis=1))
    # Smoothness of transparency.
    partial = histogram(alpha >> 6, seen & (alpha < 255), 4)
    columns.append(partial / visible[:, None])
    return np.concatenate(columns, axis=1).astype(np.float32)
