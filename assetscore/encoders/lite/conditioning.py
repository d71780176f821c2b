"""Factor texts to senses: how much of a factor is style, how much is the object, and whether it names one thing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .text import TextTable

__all__ = ["Parts", "Senses", "condition", "senses"]

_STYLE = (
    "art style", "drawing style", "visual style", "artistic style", "rendering style", "pixel art style", "game style",
    "colour palette", "color palette", "colours", "color scheme", "shading", "texture", "brush strokes",
    "outline style", "hand-painted look", "way of drawing",
    "look and feel", "aesthetic", "art direction", "line work", "pixel size and resolution", "lighting",
)  # fmt: skip
_OBJECT = (
    "object class", "object category", "kind of object", "what it shows", "what is depicted", "subject", "content",
    "identity", "thing", "type of item", "semantic class", "meaning", "silhouette", "shape", "object", "category",
    "item", "creature", "species",
)  # fmt: skip
SHARPNESS = 12.0
DAMAGE_WEIGHT = 0.25
"""Of the damage vector beside the style vector."""
STATISTICS_WEIGHT = 0.25
"""Of the pixel statistics beside the style vector."""
TEXT_WEIGHT = 1.0
"""Of the text vector beside the object vector."""
WORD_WEIGHT = 8.0
"""Of the agreement with a named thing, a cosine that is seldom above 0.5."""
NEAR = 0.45
"""A text less like every anchor than this is no question about images but the name of a thing."""


def fingerprint() -> str:
    """8 hexadecimal digits that change with anything here that changes a vector."""
    constants = (SHARPNESS, DAMAGE_WEIGHT, STATISTICS_WEIGHT, TEXT_WEIGHT, WORD_WEIGHT, NEAR, _STYLE, _OBJECT)
    return hashlib.sha256(repr(constants).encode()).hexdigest()[:8]


class Parts(NamedTuple):
    """(n, ...) unit rows of each part of the features."""

    style: NDArray[np.float32]
    damage: NDArray[np.float32]
    object: NDArray[np.float32]
    text: NDArray[np.float32]
    statistics: NDArray[np.float32]


@dataclass(frozen=True)
class Senses:
    """What one factor asks for.

    Attributes:
        style: 0 to 1, the share of style; the rest is the object.
        word: (d,) unit vector of the thing it names, or None for a question such as "object class".
    """

    style: float
    word: NDArray[np.float32] | None


def senses(factor: str, table: TextTable) -> Senses:
    """Which sense a factor text means, by nearness to anchor texts.

    The name of a thing where none is near, or where the name of a common thing is nearer ("paint brush").
    """
    vector = table([factor])[0]
    style, thing = (table(list(anchors)) @ vector for anchors in (_STYLE, _OBJECT))
    best = float(max(style.max(), thing.max()))
    known = float((table.thing_vectors @ vector).max()) if table.things else 0.0
    if best < max(NEAR, known):
        return Senses(0.0, vector if vector.any() else None)
    share = 1 / (1 + np.exp(-SHARPNESS * (float(style.max()) - float(thing.max()))))
    return Senses(round(float(share), 2), None)


def condition(
    parts: Parts,
    asked: Senses,
    word: NDArray[np.float32] | None,
) -> NDArray[np.float32]:
    """The heads' vectors, weighted by what a factor asks for: (n, d) float32 unit rows.

    Args:
        parts: what the image pass gave.
        asked: the senses of the factor.
        word: the named thing in the joint space, a unit vector, or None.
    """
    style, damage, thing, text, counted = parts
    columns: list[NDArray[np.float32]] = []
    if asked.style > 0:
        scale = np.sqrt(asked.style / (1 + DAMAGE_WEIGHT + STATISTICS_WEIGHT))
        columns += [
            scale * style,
            scale * np.sqrt(DAMAGE_WEIGHT) * damage,
            scale * np.sqrt(STATISTICS_WEIGHT) * counted,
        ]
    if asked.style < 1:
        scale = np.sqrt((1 - asked.style) / (1 + TEXT_WEIGHT))
        columns += [scale * thing, scale * np.sqrt(TEXT_WEIGHT) * text]
        if word is not None:
            columns.append(scale * WORD_WEIGHT * np.maximum(text @ word, 0)[:, None])
    rows = np.concatenate(columns, axis=1).astype(np.float32)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norm == 0, np.nan, norm), np.float32)
