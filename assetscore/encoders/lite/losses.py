"""What the heads are trained for, on one batch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .model import Outputs
from .restyle import KINDS

__all__ = ["contrast", "decorrelation", "inside", "object_masks", "style_masks", "word_loss"]

IGNORE, WEAK, HARD = 0.0, 0.3, 3.0


def contrast(vectors: Tensor, positive: Tensor, weight: Tensor, temperature: float = 0.1) -> Tensor:
    """Supervised contrastive loss with weighted comparisons.

    Args:
        vectors: (n, d) unit rows.
        positive: (n, n) bool, which pairs should be near.
        weight: (n, n) of every pair in the denominator: 0 leaves a pair out, 3 counts it three times.

    Returns:
        The mean over rows that have a positive; 0 where none has.
    """
    logits = vectors @ vectors.T / temperature
    weight = torch.where(positive, 1.0, weight).fill_diagonal_(0)
    positive = positive.clone().fill_diagonal_(False)
    total = torch.logsumexp(logits + weight.clamp_min(1e-12).log(), dim=1, keepdim=True)
    found = positive.sum(1)
    each = -((logits - total) * positive).sum(1) / found.clamp_min(1)
    has = (found > 0).to(each.dtype)
    return (each * has).sum() / has.sum().clamp_min(1)


def style_masks(
    style: Tensor, pack: Tensor, lineage: Tensor, kind: Tensor, item: Tensor, thing: Tensor, group: Tensor
) -> tuple[Tensor, Tensor]:
    """(positive, weight) for the style head: one style is near, its object in another style the hardest contrast."""

    def same(x: Tensor) -> Tensor:
        return x[:, None] == x[None, :]

    alike = same(style)
    positive = alike & ~same(item)
    weight = torch.ones(len(style), len(style))
    weight[~alike & same(thing) & (thing >= 0)[:, None]] = HARD
    weight[~alike & same(item)] = HARD
    weight[same(lineage) & ~same(pack)] = IGNORE  # neither one style nor two
    weight[same(pack) & ~alike & same(kind) & ~same(group)] = IGNORE  # the same damage, a little more or less of it
    weight[alike & same(item)] = IGNORE
    plain = (kind == 0) | (kind == KINDS.index("colour"))
    recoloured = same(pack) & ~alike & plain[:, None] & plain[None, :]
    weight[recoloured] = weight[recoloured].clamp_max(WEAK)  # one hand may paint in other colours
    return positive, weight


def object_masks(style: Tensor, item: Tensor, thing: Tensor, likeness: Tensor) -> tuple[Tensor, Tensor]:
    """(positive, weight) for the object head: one thing is near, other things of the same style the hardest contrast.

    Args:
        likeness: (n, n) of the object words: 1 where they are equal, -1 where a word is not known.
    """

    def same(x: Tensor) -> Tensor:
        return x[:, None] == x[None, :]

    named = (thing >= 0)[:, None] & (thing >= 0)[None, :]
    one = (same(thing) & named) | (likeness > 0.995) | same(item)
    weight = torch.ones_like(likeness)
    weight[same(style)] = HARD
    weight[~named | (likeness > 0.55)] = IGNORE
    return one, weight


def inside(group: Tensor, positive: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """(positive, weight) within groups alone: two styles, the same objects, and so the two questions put head on."""
    same = group[:, None] == group[None, :]
    return positive & same, weight * same


def word_loss(outputs: Outputs, words: Tensor, target: Tensor, likeness: Tensor, temperature: float = 0.06) -> Tensor:
    """Cross entropy of the text head over many phrases, softened towards phrases that mean nearly the same.

    Args:
        words: (w, d) unit rows, the phrases in the joint space.
        target: (n,) rows of `outputs` that have words.
        likeness: (len(target), w) similarity of their phrase to all phrases.
    """
    logits = outputs.text[target] @ words.T / temperature
    return F.cross_entropy(logits, F.softmax(likeness / 0.05, dim=1))


def decorrelation(a: Tensor, b: Tensor) -> Tensor:
    """Mean squared correlation between the columns of two heads."""
    a = (a - a.mean(0)) / a.std(0).clamp_min(1e-4)
    b = (b - b.mean(0)) / b.std(0).clamp_min(1e-4)
    return ((a.T @ b) / len(a)).square().mean()
