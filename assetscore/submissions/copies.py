"""Near copies: an asset that is a reference turned over, recoloured, or with a few pixels changed.

Exact copies the scorer finds by itself. These here are flagged with the reference that they copy, and still scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..images import Texture, pixels_hash

__all__ = ["Copy", "CopyIndex"]

MAX_CHANGED = 0.05
"""Share of the visible pixels that an edited copy may differ in."""
MAX_STRAY = 0.02
"""Share of the pairs of equally coloured pixels that a recoloured copy may colour differently."""
MIN_COLOURS = 3
"""Fewer colours make no drawing that one could recognise again."""
SAMPLE = 64
"""Pixels of a picture that are compared before all of them are."""
MAX_FRAMES = 8
"""Frames of one asset that are looked up."""

Packed = NDArray[np.uint32]


class _Reference(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def texture(self) -> Texture: ...


@dataclass(frozen=True)
class Copy:
    """What an asset copies.

    Attributes:
        reference: the id of the reference.
        kind: how: as it is, turned or mirrored, in other colours, or with pixels changed.
        changed: how many native pixels differ, of an edited copy.
    """

    reference: str
    kind: Literal["equal", "turned", "recoloured", "edited"]
    changed: int = 0

    def __str__(self) -> str:
        how = {"equal": "", "turned": " turned or mirrored", "recoloured": " in other colours"}
        changed = f" with {self.changed} pixel{'s' if self.changed != 1 else ''} changed"
        return f"a copy of {self.reference}{how.get(self.kind, changed)}"


class CopyIndex:
    """References, to be searched for what a texture copies. Compared is on the native grid, so enlargements are equal.

    Args:
        references: anything with `id` and `texture`: a ReferenceSet, or `ReferenceRecord`s.

    >>> from assetscore.references import ReferenceSet
    >>> drawing = np.arange(256, dtype=np.uint8).reshape(16, 16) // 8 * 8
    >>> index = CopyIndex(ReferenceSet.from_textures([("stone", "block", drawing)]))
    >>> print(index.find(Texture.from_rgba(np.dstack([drawing[:, ::-1]] * 3 + [drawing * 0 + 255]))))
    a copy of stone turned or mirrored
    """

    def __init__(self, references: Iterable[_Reference]) -> None:
        self._by_hash: dict[str, str] = {}
        self._by_pattern: dict[bytes, str] = {}
        self._by_outline: dict[bytes, list[tuple[str, _Colours]]] = {}
        by_shape: dict[tuple[int, ...], list[tuple[str, Packed]]] = {}
        for reference in references:
            for frame in reference.texture.frames:
                packed = _packed(frame.native)
                if frame.native_hash in self._by_hash:
                    continue
                self._by_hash[frame.native_hash] = reference.id
                by_shape.setdefault(frame.native.shape[:2], []).append((reference.id, packed))
                colours = _Colours.of(packed)
                if colours.telling:
                    self._by_pattern.setdefault(_pattern(frame.native), reference.id)
                    self._by_outline.setdefault(_outline(frame.native), []).append((reference.id, colours))
        self._shapes = {shape: _Stack.of(entries) for shape, entries in by_shape.items()}

    def find(self, texture: Texture) -> Copy | None:
        """What the texture, or one of its first frames, copies; None where it copies nothing."""
        for frame in texture.frames[:MAX_FRAMES]:
            if not frame.is_empty and (found := self._find(frame)) is not None:
                return found
        return None

    def _find(self, frame: Texture) -> Copy | None:
        known = self._by_hash.get(frame.native_hash)
        if known is not None:
            return Copy(known, "equal")
        height, width = frame.native.shape[:2]
        if (height, width) not in self._shapes and (width, height) not in self._shapes:
            return None  # no reference has this size, turned or not
        colours = np.unique(_packed(frame.native))
        if colours.size - (0 in colours) < MIN_COLOURS:
            return None
        turned = [np.ascontiguousarray(pixels) for pixels in _turned(frame.native)]
        for pixels in turned[1:]:
            known = self._by_hash.get(pixels_hash(pixels))
            if known is not None:
                return Copy(known, "turned")
        for look in (self._recoloured, self._edited, self._nearly_recoloured):
            for pixels in turned:
                found = look(pixels)
                if found is not None:
                    return found
        return None

    def _recoloured(self, pixels: NDArray[np.uint8]) -> Copy | None:
        known = self._by_pattern.get(_pattern(pixels))
        return None if known is None else Copy(known, "recoloured")

    def _edited(self, pixels: NDArray[np.uint8]) -> Copy | None:
        stack = self._shapes.get(pixels.shape[:2])
        return None if stack is None else stack.nearest(_packed(pixels))

    def _nearly_recoloured(self, pixels: NDArray[np.uint8]) -> Copy | None:
        candidates = self._by_outline.get(_outline(pixels), ())
        own = _packed(pixels)
        count = np.unique(own[own != 0]).size if candidates else 0
        for reference, colours in candidates:
            if colours.explain(own, count):
                return Copy(reference, "recoloured")
        return None


@dataclass(frozen=True)
class _Stack:
    """References of one size, to be compared pixel by pixel.

    Attributes:
        ids: n reference ids.
        pixels: (n, p), a number a pixel.
        sample: (n, s), the same at evenly spread positions: most references differ there already.
    """

    ids: tuple[str, ...]
    pixels: Packed
    sample: Packed
    step: int

    @classmethod
    def of(cls, entries: list[tuple[str, Packed]]) -> _Stack:
        pixels = np.stack([packed for _, packed in entries])
        step = max(1, pixels.shape[1] // SAMPLE | 1)  # odd, so that the positions are not all in one column
        return cls(tuple(reference for reference, _ in entries), pixels, pixels[:, ::step].copy(), step)

    def nearest(self, own: Packed) -> Copy | None:
        """The reference that differs least, where that is little enough."""
        differ = (self.sample != own[:: self.step]).mean(axis=1)
        rows = np.flatnonzero(differ <= 5 * MAX_CHANGED)
        if not rows.size:
            return None
        changed = (self.pixels[rows] != own).sum(axis=1)
        best = int(changed.argmin())
        visible = int(((self.pixels[rows[best]] != 0) | (own != 0)).sum())
        if changed[best] > MAX_CHANGED * visible:
            return None
        return Copy(self.ids[rows[best]], "edited", int(changed[best]))


@dataclass(frozen=True)
class _Colours:
    """Which pixels of a reference share a colour: a recoloured copy keeps that, whatever its colours are.

    Attributes:
        first, second: positions of neighbours in the list of equally coloured pixels.
        count: number of colours.
        visible: number of visible pixels.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    count: int
    visible: int

    @classmethod
    def of(cls, packed: Packed) -> _Colours:
        positions = np.flatnonzero(packed).astype(np.int32)
        order = positions[np.argsort(packed[positions], kind="stable")]
        alike = packed[order[1:]] == packed[order[:-1]]
        return cls(order[:-1][alike], order[1:][alike], int(order.size - alike.sum()), order.size)

    @property
    def telling(self) -> bool:
        """Has it colours enough to be a drawing, and few enough for their pattern to say something?"""
        return self.count >= MIN_COLOURS and self.first.size * 2 >= self.visible

    def explain(self, own: Packed, colours: int) -> bool:
        """Is `own`, of the same outline, the reference in other colours, one for one with few strays?"""
        if colours < max(MIN_COLOURS, self.count / 2):
            return False
        return bool((own[self.first] != own[self.second]).sum() <= MAX_STRAY * self.first.size)


def _pattern(pixels: NDArray[np.uint8]) -> bytes:
    """What of (h, w, 4) pixels stays when colours change for others: size, outline, and which pixels are alike."""
    packed = _packed(pixels)
    _, first, labels = np.unique(packed, return_index=True, return_inverse=True)
    by_appearance = np.empty(first.size, np.int32)
    by_appearance[np.argsort(first)] = np.arange(first.size)
    return _digest(pixels, by_appearance[labels.ravel()].tobytes() + (packed != 0).tobytes())


def _outline(pixels: NDArray[np.uint8]) -> bytes:
    """Size, and which pixels are visible."""
    return _digest(pixels, (pixels[..., 3] != 0).tobytes())


def _digest(pixels: NDArray[np.uint8], content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16, key=str(pixels.shape).encode()).digest()


def _packed(pixels: NDArray[np.uint8]) -> Packed:
    """(h, w, 4) to (h * w,): one number a pixel, 0 where nothing is visible."""
    return np.ascontiguousarray(pixels).view(np.uint32).ravel()


def _turned(pixels: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """The picture, and it mirrored and turned in the seven other ways."""
    for mirrored in (pixels, pixels[:, ::-1]):
        for quarter in range(4):
            yield np.rot90(mirrored, quarter)
