"""Table B, fit: do good additions pass, and damaged or foreign ones not? Table C: does a picture show the word?"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...calibration import leave_one_out_k, threshold
from ...images import Texture
from ...neighbours import exclude_groups, knn_mean
from ...references import ReferenceSet
from ..base import Encoder, TwoStageEncoder
from .damage import DAMAGE, UNSEEN, primitive
from .data import Corpus
from .evaluate import STYLE, auroc, bootstrap, textures_of
from .restyle import resize_native

__all__ = ["fit_table", "request_table"]

ALPHA, K = 0.15, 5
PACKS = ("angband/gervais32", "supertux/main", "wesnoth/units", "freedink/dink", "minetest/game")
"""Held-out packs that table B brings to 32 x 32 as foreign art."""

Vectors = NDArray[np.float32]


class _Reference:
    """Vectors of the references by category, with their groups and thresholds."""

    def __init__(self, vectors: Vectors, category: NDArray[np.str_], group: NDArray[np.str_]) -> None:
        self.rows = {c: vectors[category == c] for c in np.unique(category)}
        self.tau: dict[str, float] = {}
        self.k: dict[str, int] = {}
        for name, rows in self.rows.items():
            groups = np.unique(group[category == name], return_inverse=True)[1]
            self.k[name] = min(K, leave_one_out_k(K, groups))
            scores = knn_mean(rows, rows, self.k[name], exclude_groups(groups)).S
            tau = threshold(scores, ALPHA, groups=groups)
            self.tau[name] = np.nan if tau is None else tau

    def margins(self, vectors: Vectors, category: NDArray[np.str_]) -> NDArray[np.float64]:
        """S - tau of each row among the references of its category."""
        out = np.full(len(vectors), np.nan)
        for name in np.unique(category):
            rows = np.flatnonzero(category == name)
            out[rows] = knn_mean(vectors[rows], self.rows[name], self.k[name]).S - self.tau[name]
        return out


def fit_table(
    encoder: Encoder, corpus: Corpus, references: Path, seed: int = 0, folds: int = 3
) -> dict[str, dict[str, float]]:
    """Table B: AUROC of the style margin and pass rates, a third of the references' families held out as new art.

    Each third is held out once. Every figure is the mean over the three; so are the ends of the bootstrap intervals.
    """
    rng = np.random.default_rng([seed, 7])
    everything = list(ReferenceSet.from_folder(references))
    group = np.array([reference.group() for reference in everything])
    category = np.array([reference.category for reference in everything])
    natives = [reference.texture.native for reference in everything]

    def embed(images: list[NDArray[np.uint8]]) -> Vectors:
        return encoder.embed([Texture.from_rgba(image) for image in images], [STYLE])[STYLE]

    own = embed(natives)
    spoiled = {name: embed([damage(image, rng) for image in natives]) for name, damage in DAMAGE.items()}
    spoiled["primitives"] = embed([primitive(image, rng) for image in natives])
    foreign = {}
    for name in (*PACKS, "emoji"):
        images, kinds = _foreign(corpus, name, rng)
        foreign[name] = embed(images), kinds

    names = rng.permutation(np.unique(group))
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for part in np.array_split(names, folds):
        held = np.isin(group, part)
        reference = _Reference(own[~held], category[~held], group[~held])
        good = reference.margins(own[held], category[held])
        found["positives"].append({"pass": float((good >= 0).mean()), "n": len(good)})
        negatives = {name: (rows[held], category[held]) for name, rows in spoiled.items()} | foreign
        for name, (rows, kinds) in negatives.items():
            bad = reference.margins(rows, kinds)
            low, high = bootstrap(good, bad, seed=seed)
            row = {"auroc": auroc(good, bad), "low": low, "high": high, "pass": float((bad >= 0).mean()), "n": len(bad)}
            found[name].append(row)
    table = {name: {key: float(np.mean([r[key] for r in rows])) for key in rows[0]} for name, rows in found.items()}
    means = {
        "mean of six": [n for n in DAMAGE if n not in (*UNSEEN, "hue")],
        "mean of unseen": list(UNSEEN), "mean of packs": list(PACKS),
    }  # fmt: skip
    return table | {name: {"auroc": float(np.mean([table[r]["auroc"] for r in rows]))} for name, rows in means.items()}


def _foreign(
    corpus: Corpus, name: str, rng: np.random.Generator, count: int = 200
) -> tuple[list[NDArray[np.uint8]], NDArray[np.str_]]:
    """Held-out art of other hands at 32 px, and the category each is compared under."""
    of = (corpus.family == "emoji") if name == "emoji" else (corpus.pack == name)
    rows = rng.permutation(np.flatnonzero((corpus.split == "held") & of))[:count]
    images = [resize_native(corpus.pixels[r, : corpus.size[r, 0], : corpus.size[r, 1]], 32) for r in rows]
    if name == "emoji":
        return images, np.full(len(rows), "item")
    return images, np.array([c if c in ("entity", "item") else "feature" for c in corpus.category[rows].tolist()])


def request_table(encoder: Encoder, corpus: Corpus, seed: int = 0, each: int = 12) -> dict[str, dict[str, float]]:
    """Table C on held-out families: AUROC of an image's own word against words of others in its category and pack.

    The pictures of a pack's category are its references; the one asked about is left out of them.
    """
    rng = np.random.default_rng([seed, 11])
    held = corpus.take((corpus.split == "held") & (corpus.words != "") & ~np.isin(corpus.family, ["cdda", "emoji"]))
    features = encoder.features(textures_of(held)) if isinstance(encoder, TwoStageEncoder) else None
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, place in enumerate(zip(held.pack.tolist(), held.category.tolist(), strict=True)):
        places[place].append(row)
    own: dict[str, list[float]] = defaultdict(list)
    other: dict[str, list[float]] = defaultdict(list)
    for rows in places.values():
        if len(rows) < 40 or features is None:
            continue
        here, words = features[rows], held.words[rows]
        for index in rng.permutation(len(rows))[:each]:
            parts = set(str(words[index]).split())
            strangers = [i for i, w in enumerate(words) if not set(str(w).split()) & parts]
            if not strangers:
                continue
            wrong = str(words[strangers[int(rng.integers(len(strangers)))]])
            for word, into in ((str(words[index]), own), (wrong, other)):
                margin, agreement = _asked(encoder, here, int(index), word, words)
                into["semantic check"].append(margin)
                into["agreement"].append(agreement)
    table = {}
    for name in own:
        good, bad = np.array(own[name]), np.array(other[name])
        if np.isnan(good).all():
            continue
        low, high = bootstrap(good, bad, seed=seed)
        table[name] = {"auroc": auroc(good, bad), "low": low, "high": high, "n": len(good)}
    return table


def _asked(encoder: Encoder, features: Vectors, index: int, word: str, words: NDArray[np.str_]) -> tuple[float, float]:
    """(S - tau under the factor `word`, agreement of the image with the word against references with their own)."""
    assert isinstance(encoder, TwoStageEncoder)
    vectors = encoder.condition(features, [word])[word]
    rest = np.flatnonzero(np.arange(len(features)) != index)
    groups = np.unique(words[rest], return_inverse=True)[1]
    k = min(K, leave_one_out_k(K, groups))
    scores = knn_mean(vectors[rest], vectors[rest], k, exclude_groups(groups)).S
    tau = threshold(scores, ALPHA, groups=groups)
    margin = float(knn_mean(vectors[index : index + 1], vectors[rest], k).S[0]) - (np.nan if tau is None else tau)
    text, image = getattr(encoder, "text_vector", None), getattr(encoder, "image_text_vectors", None)
    if text is None or image is None:
        return margin, float("nan")
    # Agreement above what the other pictures have with the same word, among the references with their own words.
    seen = image(features)
    own = np.stack([text(str(w)) for w in words[rest]])
    every = seen[rest] @ own.T
    above = np.diag(every) - every.mean(axis=0)
    asked = float(seen[index] @ text(word)) - float((seen[rest] @ text(word)).mean())
    return margin, float((above <= asked).mean())
