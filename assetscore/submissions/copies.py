"""Near copies: an asset that is a reference turned over, recoloured, or with a few pixels changed.

Exact copies the scorer finds by itself. These here are flagged with the reference that they copy, and still scored.
"""

from __future__ import annotations

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
        self._by_shape: dict[tuple[int, ...], list[tuple[str, Texture]]] = {}
        for reference in references:
            for frame in reference.texture.frames:
                self._by_hash.setdefault(frame.native_hash, reference.id)
                self._by_shape.setdefault(frame.native.shape[:2], []).append((reference.id, frame))
        self._stacks: dict[tuple[int, ...], Packed] = {}
        self._outlines: dict[tuple[int, ...], dict[bytes, list[tuple[str, Texture]]]] = {}
        self._colours: dict[str, _Colours] = {}

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
        if np.unique(_packed(frame.native)).size < MIN_COLOURS:
            return None
        turned = list(_turned(frame.native))
        for pixels in turned[1:]:
            known = self._by_hash.get(pixels_hash(pixels))
            if known is not None:
                return Copy(known, "turned")
        for pixels in turned:
            found = self._edited(pixels) or self._recoloured(pixels)
            if found is not None:
                return found
        return None

    def _edited(self, pixels: NDArray[np.uint8]) -> Copy | None:
        same_shape = self._by_shape.get(pixels.shape[:2])
        if not same_shape:
            return None
        shape = pixels.shape[:2]
        if shape not in self._stacks:
            self._stacks[shape] = np.stack([_packed(texture.native) for _, texture in same_shape])
        stack, own = self._stacks[shape], _packed(pixels)
        changed = np.count_nonzero(stack != own, axis=1)
        best = int(changed.argmin())
        visible = int(((stack[best] != 0) | (own != 0)).sum())
        if changed[best] > MAX_CHANGED * visible:
            return None
        return Copy(same_shape[best][0], "edited", int(changed[best]))

    def _recoloured(self, pixels: NDArray[np.uint8]) -> Copy | None:
        own = _packed(pixels)
        visible = own != 0
        colours = np.unique(own[visible]).size
        for reference, texture in self._outlined(pixels.shape[:2]).get(visible.tobytes(), ()):
            key = texture.native_hash
            if key not in self._colours:
                self._colours[key] = _Colours.of(_packed(texture.native))
            if self._colours[key].explain(own, visible, colours):
                return Copy(reference, "recoloured")
        return None

    def _outlined(self, shape: tuple[int, ...]) -> dict[bytes, list[tuple[str, Texture]]]:
        """The references of a shape by what of them is visible: a recoloured copy keeps that."""
        if shape not in self._outlines:
            outlines: dict[bytes, list[tuple[str, Texture]]] = {}
            for reference, texture in self._by_shape.get(shape, ()):
                outlines.setdefault((_packed(texture.native) != 0).tobytes(), []).append((reference, texture))
            self._outlines[shape] = outlines
        return self._outlines[shape]


@dataclass(frozen=True)
class _Colours:
    """Which pixels of a reference share a colour: a recoloured copy keeps that, whatever its colours are.

    Attributes:
        visible: (p,) bool.
        first, second: positions of neighbours in the list of equally coloured pixels.
        count: number of colours.
    """

    visible: NDArray[np.bool_]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, packed: Packed) -> _Colours:
        visible = packed != 0
        positions = np.flatnonzero(visible)
        values = packed[positions]
        order = positions[np.argsort(values, kind="stable")]
        alike = packed[order[1:]] == packed[order[:-1]]
        return cls(visible, order[:-1][alike], order[1:][alike], int(np.unique(values).size))

    def explain(self, own: Packed, visible: NDArray[np.bool_], colours: int) -> bool:
        """Is `own` the reference in other colours, one colour for one with few strays?"""
        pairs = self.first.size
        if self.count < MIN_COLOURS or colours < max(MIN_COLOURS, self.count / 2) or pairs * 2 < visible.sum():
            return False  # too plain, or too noisy, to tell
        if not np.array_equal(visible, self.visible):
            return False
        return bool((own[self.first] != own[self.second]).sum() <= MAX_STRAY * pairs)


def _packed(pixels: NDArray[np.uint8]) -> Packed:
    """(h, w, 4) to (h * w,): one number a pixel, 0 where nothing is visible."""
    return np.ascontiguousarray(pixels).view(np.uint32).ravel()


def _turned(pixels: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """The picture, and it mirrored and turned in the seven other ways."""
    for mirrored in (pixels, pixels[:, ::-1]):
        for quarter in range(4):
            yield np.rot90(mirrored, quarter)
