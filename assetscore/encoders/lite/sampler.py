"""Training batches: pairs of packs that draw the same objects, some of them restyled, some damaged.

A batch is many groups of twelve images: two styles, six objects in each, as many objects shared as the packs allow. So
every batch asks both questions: which images share a style though they show different things, and which show one thing
though the styles differ.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .data import PLAIN_ICONS, REDRAWN, TWICE, Corpus
from .pixels import SIDE, canvases, slots, statistics
from .restyle import KINDS, Restyling, draw, draw_colour, resize_native

__all__ = ["Batch", "Sampler"]

Rows = list[int]
Side = tuple[Rows, Restyling | None, int]
"""Rows of the corpus, how they are redrawn, and its index in `KINDS`."""
_ICONS = frozenset({"emoji", *PLAIN_ICONS, *TWICE})
_SHARES = {"games": 0.34, "icons and games": 0.14, "icons": 0.04, "cdda": 0.21, "emoji": 0.14, "themes": 0.08,
           "freeciv": 0.03, "streamline-flex-color": 0.01, "streamline-plump-color": 0.01}  # fmt: skip
"""How often two packs come from each source of shared objects."""


@dataclass(frozen=True)
class Batch:
    """n images and what each is.

    Attributes:
        canvas: (n, 64, 64, 4) uint8.
        stats: (n, s) float32, see `pixels.statistics`.
        style: (n,) equal for images of one pack under one restyling.
        pack: (n,) number of the pack.
        lineage: (n,) equal for packs of one family that are no evidence about style; unique for redrawn families.
        kind: (n,) index into `restyle.KINDS`.
        item: (n,) row of the corpus.
        thing: (n,) equal for one identity (a cdda id, a codepoint, an object word); -1 where it is not known.
        word: (n,) index of the object words among `Sampler.phrases`; -1 where there are none.
        group: (n,) which group of twelve.
    """

    canvas: NDArray[np.uint8]
    stats: NDArray[np.float32]
    style: NDArray[np.int64]
    pack: NDArray[np.int64]
    lineage: NDArray[np.int64]
    kind: NDArray[np.int64]
    item: NDArray[np.int64]
    thing: NDArray[np.int64]
    word: NDArray[np.int64]
    group: NDArray[np.int64]


class Sampler:
    """Draws batches from the training part of a corpus; everything follows from the seed and the step."""

    def __init__(self, corpus: Corpus, seed: int = 0, groups: int = 14, half: int = 6) -> None:
        if not (corpus.split == "train").all():
            raise ValueError("only the training part of a corpus may be sampled")
        self.corpus, self.seed, self.groups, self.half = corpus, seed, groups, half
        self.packs, pack_of = np.unique(corpus.pack, return_inverse=True)
        self.pack_of = pack_of.astype(np.int64)
        families = np.unique(corpus.family)
        lineage = np.searchsorted(families, corpus.family)
        self.lineage = np.where(np.isin(corpus.family, list(REDRAWN)), 1000 + self.pack_of, lineage).astype(np.int64)
        self.phrases, word = np.unique(corpus.words, return_inverse=True)
        self.word = np.where(corpus.words == "", -1, word).astype(np.int64)
        things: dict[str, int] = {}
        self.thing = np.full(len(corpus), -1, np.int64)
        for i, (family, key, words) in enumerate(
            zip(corpus.family.tolist(), corpus.key.tolist(), corpus.words.tolist(), strict=True)
        ):
            name = f"{family}:{key}" if key else f"word:{words}" if words else ""
            if name:
                self.thing[i] = things.setdefault(name, len(things))
        self.rows_of = [np.flatnonzero(self.pack_of == p) for p in range(len(self.packs))]
        self._pack_weight = np.array([max(0, len(r) - 3) ** 0.5 for r in self.rows_of])
        self._pack_weight[[len(r) < 8 for r in self.rows_of]] = 0
        self._pack_weight /= max(self._pack_weight.sum(), 1e-9)
        self._pairs = self._shared_objects()
        self._grounds = self._opaque()

    def _opaque(self, least: int = 8) -> list[tuple[int, NDArray[np.intp]]]:
        """Packs with at least so many pictures that are opaque all over, such as floors and walls, and their rows."""
        corpus = self.corpus
        height, width = corpus.size.T
        full = (corpus.pixels[..., 3] == 255).sum(axis=(1, 2)) == height.astype(np.int64) * width
        full &= np.minimum(height, width) >= 16
        full &= ~np.isin(corpus.family, [*_ICONS, "themes"])
        found = [(pack, rows[full[rows]]) for pack, rows in enumerate(self.rows_of)]
        return [(pack, rows) for pack, rows in found if len(rows) >= least]

    def _shared_objects(self) -> dict[str, list[tuple[int, int, list[tuple[Rows, Rows]], float]]]:
        """For each source, pairs of packs with the objects in both: (pack, pack, [(rows, rows)], weight)."""
        corpus = self.corpus
        redrawn = np.isin(corpus.family, list(REDRAWN))
        by_key: dict[tuple[str, str], dict[int, Rows]] = defaultdict(lambda: defaultdict(list))
        by_word: dict[str, dict[int, Rows]] = defaultdict(lambda: defaultdict(list))
        for i in range(len(corpus)):
            pack = int(self.pack_of[i])
            if redrawn[i] and corpus.key[i]:
                by_key[str(corpus.family[i]), str(corpus.key[i])][pack].append(i)
            if corpus.words[i]:
                by_word[str(corpus.words[i])][pack].append(i)
        pairs: dict[str, dict[tuple[int, int], list[tuple[Rows, Rows]]]] = defaultdict(lambda: defaultdict(list))
        for (family, _), packs in by_key.items():
            for a in packs:
                for b in packs:
                    if a < b:
                        pairs[family][a, b].append((packs[a], packs[b]))
        family_of = {p: str(corpus.family[rows[0]]) for p, rows in enumerate(self.rows_of)}
        for packs in by_word.values():
            for a in packs:
                for b in packs:
                    if a < b and family_of[a] != family_of[b]:
                        icons = (family_of[a] in _ICONS) + (family_of[b] in _ICONS)
                        source = ("games", "icons and games", "icons")[icons]
                        pairs[source][a, b].append((packs[a], packs[b]))
        out = {}
        for source, found in pairs.items():
            least = 3 if source == "games" else 4
            out[source] = [
                (a, b, shared, min(len(shared), 40) ** 0.5) for (a, b), shared in found.items() if len(shared) >= least
            ]
        return {source: listed for source, listed in out.items() if listed}

    def batch(self, step: int) -> Batch:
        """The batch of that step."""
        rng = np.random.default_rng([self.seed, step])
        sources = [s for s in _SHARES if s in self._pairs]
        chance = np.array([_SHARES[s] for s in sources])
        natives: list[NDArray[np.uint8]] = []
        columns: list[tuple[int, int, int, int]] = []  # style, kind, row, group
        for group in range(self.groups):
            way = rng.random()
            common = int(rng.choice([12, 16, 16, 20, 24, 32]))
            together, cut = rng.random() < 0.35, False
            if way < 0.08 and len(self._grounds) > 1:
                sides, together, cut = self._two_grounds(rng), True, True
            elif way < 0.20:
                sides = self._redrawn(rng)
            elif way < 0.42 or not sources:
                sides = self._damaged(rng)
            else:
                source = sources[int(rng.choice(len(sources), p=chance / chance.sum()))]
                sides = self._two_packs(rng, source, restyled=way > 0.78)
            cut = cut or (together and rng.random() < 0.5)
            for which, (rows, restyling, kind) in enumerate(sides):
                side, colours = self._size(rng, rows, common if together else 0)
                plain = restyling is None and not colours and side == SIDE
                style = int(self.pack_of[rows[0]]) if plain else len(self.packs) + 2 * group + which
                for row in rows:
                    height, width = self.corpus.size[row]
                    image = self.corpus.pixels[row, :height, :width]
                    image = _cut(rng, image, common) if cut else image
                    image = resize_native(image, side, colours)
                    natives.append(restyling(image) if restyling else image)
                    columns.append((style, kind, row, group))
        slot, size = slots(natives)
        count = len(natives)
        style, kinds, item, groups = np.array(columns, np.int64).T
        shift = rng.integers(-4, 5, (count, 2)) * (rng.random((count, 1)) < 0.5)
        flip = rng.random(count) < 0.5
        return Batch(
            canvases(slot, size, flip, shift), statistics(slot, size), style, self.pack_of[item], self.lineage[item],
            kinds, item, self.thing[item], self.word[item], groups,
        )  # fmt: skip

    def _size(self, rng: np.random.Generator, rows: Rows, common: int) -> tuple[int, int]:
        """(longest side allowed, colours of a palette or 0) for one half of a group."""
        if str(self.corpus.family[rows[0]]) not in _ICONS | {"themes"}:
            return (common or SIDE), 0
        colours = int(rng.integers(8, 33)) if rng.random() < 0.4 else 0
        return common or int(rng.choice([16, 20, 24, 32, 32, 40, 48, 64])), colours

    def _two_packs(self, rng: np.random.Generator, source: str, *, restyled: bool) -> list[Side]:
        """Two packs that draw the same objects, as they are or both redrawn: alike, or each in a way of its own."""
        listed = self._pairs[source]
        weight = np.array([pair[3] for pair in listed])
        a, b, shared, _ = listed[int(rng.choice(len(listed), p=weight / weight.sum()))]
        picked = rng.permutation(len(shared))[: self.half]
        sides: list[Rows] = [[], []]
        for index in picked:
            for side, rows in zip(sides, shared[index], strict=True):
                side.append(int(rng.choice(rows)))
        for side, pack in zip(sides, (a, b), strict=True):
            side.extend(self._more(rng, pack, side, self.half - len(side)))
        first = second = draw(rng, damage=False) if restyled else None
        if restyled and rng.random() < 0.35:
            second = draw(rng, damage=False)
        return [_side(rows, restyling) for rows, restyling in zip(sides, (first, second), strict=True)]

    def _two_grounds(self, rng: np.random.Generator) -> list[Side]:
        """Floors and walls of two packs: opaque all over, so that only their grain and colours can tell them apart."""
        chosen = rng.permutation(len(self._grounds))
        first = self._grounds[int(chosen[0])]
        lineage = self.lineage[first[1][0]]
        others = [self._grounds[int(i)] for i in chosen[1:]]
        second = next((o for o in others if self.lineage[o[1][0]] != lineage), others[0])
        return [_side([int(r) for r in rng.permutation(rows)[: self.half]], None) for _, rows in (first, second)]

    def _redrawn(self, rng: np.random.Generator) -> list[Side]:
        """One pack redrawn in two ways (or as it is and in one), as other artists would; most objects are the same."""
        pack = int(rng.choice(len(self.packs), p=self._pack_weight))
        rows = self._more(rng, pack, [], self.half)
        kept = rows[: self.half - 2]
        kept = kept + self._more(rng, pack, rows, self.half - len(kept))
        first = draw(rng, damage=False) if rng.random() < 0.5 else None
        return [_side(rows, first), _side(kept, draw(rng, damage=False))]

    def _damaged(self, rng: np.random.Generator) -> list[Side]:
        """One pack as it is, and damaged; half of the objects are the same."""
        pack = int(rng.choice(len(self.packs), p=self._pack_weight))
        clean = self._more(rng, pack, [], self.half)
        damaged = clean[: self.half // 2]
        damaged = damaged + self._more(rng, pack, clean, self.half - len(damaged))
        restyling = draw(rng, damage=True)
        style = draw_colour(rng) if rng.random() < 0.15 and restyling.kind != "colour" else None
        if style:  # the same damage where the clean half is recoloured too
            restyling = Restyling(restyling.kind, restyling.values, style)
        return [(clean, style, 0), (damaged, restyling, KINDS.index(restyling.kind))]

    def _more(self, rng: np.random.Generator, pack: int, taken: Rows, count: int) -> Rows:
        rows = [int(r) for r in rng.permutation(self.rows_of[pack])[: 4 * self.half] if int(r) not in set(taken)]
        rows = rows[:count]
        while len(rows) < count:
            rows.append(int(rng.choice(self.rows_of[pack])))
        return rows


def _side(rows: Rows, restyling: Restyling | None) -> Side:
    return rows, restyling, KINDS.index(restyling.kind) if restyling else 0


def _cut(rng: np.random.Generator, image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """A side x side window of a picture that is opaque all over, such as a ground or a wall; others as they are."""
    height, width = image.shape[:2]
    if min(height, width) < side + 4 or image[..., 3].min() < 255:
        return image
    top, left = int(rng.integers(height - side + 1)), int(rng.integers(width - side + 1))
    return image[top : top + side, left : left + side]
