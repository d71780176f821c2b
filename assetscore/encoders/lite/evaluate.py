"""The tables of the model card: senses (A), fit (B), request (C), on data held out before training.

python -m assetscore.encoders.lite.evaluate --corpus run/corpus --references references/dungeon-tiles --table A
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...images import Asset, Texture
from ..base import Encoder, TwoStageEncoder, as_textures, check_factors, get_encoder
from . import pixels
from .data import Corpus
from .restyle import resize_native

__all__ = ["FrozenLite0", "bootstrap", "main", "senses_table", "triplets"]

Vectors = NDArray[np.float32]
STYLE, OBJECT = "art style", "object class"
_SAME_HANDS = {"slashem": "nethack"}


class FrozenLite0(TwoStageEncoder):
    """The baseline: ImageNet's EfficientNet-Lite0 as it is, mean over space of its last block; no conditioning."""

    name, conditional, fingerprint = "frozen Lite0", False, "frozen-lite0"

    def __init__(self) -> None:
        import torch

        from .model import Trunk
        from .train import pretrained

        self.trunk = Trunk()
        self.trunk.load_state_dict(pretrained())
        self.trunk = self.trunk.eval().requires_grad_(False).to(memory_format=torch.channels_last)

    def features(self, images: Sequence[Asset | Texture]) -> Vectors:
        import torch

        rows = []
        textures = as_textures(images)
        for start in range(0, len(textures), 64):
            canvas = pixels.canvases(*pixels.slots([t.native for t in textures[start : start + 64]]))
            x = torch.from_numpy(canvas).permute(0, 3, 1, 2)
            with torch.inference_mode():
                _, _, last = self.trunk(x[:, :3].float().sub_(127.5).div_(127.5), (x[:, 3:] > 0).float())
                rows.append(torch.nn.functional.normalize(last.mean((2, 3)), dim=1).numpy())
        return np.concatenate(rows)

    def condition(self, features: Vectors, factors: Sequence[str]) -> dict[str, Vectors]:
        return dict.fromkeys(check_factors(factors), features)


def textures_of(corpus: Corpus, side: int = 0) -> list[Texture]:
    """The images of a corpus, with `side` reduced to that many pixels by area."""
    found = []
    for slot, (height, width) in zip(corpus.pixels, corpus.size, strict=True):
        image = slot[:height, :width]
        found.append(Texture.from_rgba(resize_native(image, side) if side else image))
    return found


def triplets(corpus: Corpus, count: int = 6000, seed: int = 0) -> NDArray[np.int64]:
    """(count, 4) rows A1, A2, B1, B2: A2 another object in A1's pack, B1 A1's object in another, B2 another there.

    An object is the key where packs redraw one game, and else its words; objects that share a word are never "other".
    """
    rng = np.random.default_rng(seed)
    names = [k or w for k, w in zip(corpus.key.tolist(), corpus.words.tolist(), strict=True)]
    rows = zip(corpus.family.tolist(), corpus.key.tolist(), corpus.pack.tolist(), strict=True)
    hands = [pack if key else _SAME_HANDS.get(family, family) for family, key, pack in rows]
    by_name: dict[str, list[int]] = defaultdict(list)
    by_pack: dict[str, list[int]] = defaultdict(list)
    for row, (name, pack) in enumerate(zip(names, corpus.pack.tolist(), strict=True)):
        if name:
            by_name[name].append(row)
            by_pack[pack].append(row)
    parts = [set(f"{n} {w}".split()) for n, w in zip(names, corpus.words.tolist(), strict=True)]
    eligible = [r for r, n in enumerate(names) if n and len({hands[o] for o in by_name[n]}) > 1]
    found: list[tuple[int, int, int, int]] = []
    if not eligible:
        return np.empty((0, 4), np.int64)
    for _ in range(20 * count):
        a1 = eligible[int(rng.integers(len(eligible)))]
        partners = [r for r in by_name[names[a1]] if hands[r] != hands[a1]]
        b1 = partners[int(rng.integers(len(partners)))]
        a2, b2 = (_another(rng, by_pack[str(corpus.pack[r])], parts, parts[a1]) for r in (a1, b1))
        if a2 >= 0 and b2 >= 0:
            found.append((a1, a2, b1, b2))
            if len(found) == count:
                break
    return np.array(found, np.int64).reshape(-1, 4)


def _another(rng: np.random.Generator, rows: list[int], parts: list[set[str]], taken: set[str]) -> int:
    for _ in range(20):
        row = rows[int(rng.integers(len(rows)))]
        if not parts[row] & taken:
            return row
    return -1


def senses_table(encoder: Encoder, corpus: Corpus, count: int = 6000, seed: int = 0) -> dict[str, dict[str, float]]:
    """Table A: accuracies on triplets of each held-out source, with the neutral controls."""
    held = corpus.take(corpus.split == "held")
    named = (held.words != "") | (held.key != "")
    sources = {
        "families": (~np.isin(held.family, ["cdda", "emoji"]) & (held.words != ""), 0),
        "cdda": ((held.family == "cdda") & named, 0),
        "emoji": ((held.family == "emoji") & named, 32),
    }
    table = {}
    for source, (mask, side) in sources.items():
        part = held.take(mask)
        rows = triplets(part, count, seed)
        if not len(rows):
            continue
        used = np.unique(rows)
        vectors = encoder.embed(textures_of(part.take(used), side), [STYLE, OBJECT])
        a1, a2, b1, b2 = (np.searchsorted(used, rows[:, i]) for i in range(4))

        def near(
            factor: str, i: NDArray[np.intp], j: NDArray[np.intp], vectors: dict[str, Vectors] = vectors
        ) -> Vectors:
            return np.asarray(np.einsum("nd,nd->n", vectors[factor][i], vectors[factor][j]))

        style = float((near(STYLE, a1, a2) > near(STYLE, a1, b1)).mean())
        thing = float((near(OBJECT, a1, b1) > near(OBJECT, a1, a2)).mean())
        table[source] = {
            "style": style, "object": thing, "mean": (style + thing) / 2,
            "neutral style": float((near(STYLE, a1, a2) > near(STYLE, a1, b2)).mean()),
            "neutral object": float((near(OBJECT, a1, b1) > near(OBJECT, a1, b2)).mean()), "triplets": len(rows),
        }  # fmt: skip
    return table


def auroc(positive: NDArray[np.floating], negative: NDArray[np.floating]) -> float:
    """The chance that a positive scores above a negative, ties counting half; NaN where one side is empty."""
    from ...studies.auroc import auroc as area

    return area(np.concatenate([positive, negative]), np.repeat([1, 0], [len(positive), len(negative)]))


def bootstrap(
    positive: NDArray[np.floating], negative: NDArray[np.floating], rounds: int = 200, seed: int = 0
) -> tuple[float, float]:
    """95 % interval of the AUROC, both sides drawn again."""
    rng = np.random.default_rng(seed)
    found = [auroc(rng.choice(positive, len(positive)), rng.choice(negative, len(negative))) for _ in range(rounds)]
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


def encoders(names: Sequence[str], weights: Path | None) -> list[Encoder]:
    """The encoders a table compares."""
    made: dict[str, Callable[[], Encoder]] = {
        "frozen": FrozenLite0, "lite": lambda: get_encoder("lite", **({"weights": weights} if weights else {}))
    }  # fmt: skip
    return [made[name]() if name in made else get_encoder(name) for name in names]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command: see the module's docstring."""
    from .evaluate_fit import fit_table, request_table

    parser = argparse.ArgumentParser(prog="python -m assetscore.encoders.lite.evaluate", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="the folder that the recipe keeps its corpus in")
    parser.add_argument("--references", type=Path, help="folder of the shipped references, for B")
    parser.add_argument("--table", choices="ABC", nargs="+", default=list("ABC"))
    parser.add_argument("--encoders", nargs="+", default=["pixelstats", "frozen", "lite"])
    parser.add_argument("--weights", type=Path, help="a weights file for lite; default: the shipped one")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    corpus = Corpus.load(options.corpus)
    for encoder in encoders(options.encoders, options.weights):
        for table in options.table:
            if table == "A":
                rows = senses_table(encoder, corpus, seed=options.seed)
            elif table == "B":
                if options.references is None:
                    parser.error("table B needs --references")
                rows = fit_table(encoder, corpus, options.references, seed=options.seed)
            else:
                rows = request_table(encoder, corpus, seed=options.seed)
            for row, values in rows.items():
                numbers = {k: round(v, 3) if isinstance(v, float) else v for k, v in values.items()}
                sys.stdout.write(json.dumps({"encoder": encoder.name, "table": table, "row": row, **numbers}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
