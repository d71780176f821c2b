"""The network: an EfficientNet-Lite0 trunk without its head, and four small heads on its taps.

Batch normalisation is folded into the convolutions, so a forward pass is convolutions and clamps. torch is imported
when this module is: import it only when an encoder is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .pixels import SIDE, STATISTICS

__all__ = ["DAMAGE", "FEATURES", "OBJECT", "STYLE", "TEXT", "LiteNet", "Outputs", "Trunk", "fold"]

STAGES = (
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)  # fmt: skip
"""(blocks, kernel, stride, expansion, channels): EfficientNet-Lite0."""
TAPS = (0, 2, 4, 7, 10, 14)
"""Blocks whose outputs the style head sees, beside the stem's."""
STYLE, DAMAGE, OBJECT, TEXT = 128, 32, 128, 128
FEATURES = STYLE + DAMAGE + OBJECT + TEXT
DROPPED = 0.1
"""Share of what the heads read that is left out in training, but for its end, see `train.Recipe`."""
FROZEN_BLOCKS = 3
"""Blocks that keep their ImageNet weights, beside the stem and all depthwise weights (slow to train on a processor)."""


class Block(nn.Module):
    """Inverted residual: expand, depthwise, project."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        middle = inputs * expansion
        self.expand = nn.Conv2d(inputs, middle, 1) if expansion > 1 else None
        self.depth = nn.Conv2d(middle, middle, kernel, stride, kernel // 2, groups=middle)
        self.project = nn.Conv2d(middle, outputs, 1)
        self.residual = inputs == outputs and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.expand is None else F.relu6(self.expand(x), inplace=True)
        y = self.project(F.relu6(self.depth(y), inplace=True))
        out: Tensor = x + y if self.residual else y
        return out


class Trunk(nn.Module):
    """(n, 3, 64, 64) in -1 to 1 to the outputs of the stem and of the tapped blocks, and the last."""

    channels = (32, 16, 24, 40, 80, 112, 192)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, 2, 1)
        blocks: list[Block] = []
        inputs = 32
        for count, kernel, stride, expansion, outputs in STAGES:
            for i in range(count):
                blocks.append(Block(inputs, outputs, kernel, stride if i == 0 else 1, expansion))
                inputs = outputs
        self.blocks = nn.ModuleList(blocks)

    def freeze(self) -> None:
        """Keep the stem, the first three blocks and every depthwise weight as they are."""
        for part in (self.stem, *self.blocks[:FROZEN_BLOCKS], *(block.depth for block in self.blocks)):
            part.requires_grad_(False)

    def forward(self, x: Tensor, seen: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """The statistics of all taps, the deeper taps themselves (from block 4 on), and the last output.

        Args:
            x: (n, 3, 64, 64) colours in -1 to 1.
            seen: (n, 1, 64, 64) 1 where the picture is visible.
        """
        masks = [seen[:, 0]]
        for _ in range(5):  # 64, 32, 16, 8, 4, 2
            masks.append(_halve(masks[-1]))
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.stem.weight.requires_grad):
            # Small pieces through the early layers: their large maps then stay in the processor's cache.
            parts = [self._early(*piece) for piece in zip(*(torch.split(t, 16) for t in (x, *masks)), strict=True)]
            x = torch.cat([part[0] for part in parts])
            statistics = [torch.cat([part[1] for part in parts])]
        taps = []
        for i in range(FROZEN_BLOCKS, len(self.blocks)):
            x = self.blocks[i](x)
            if i in TAPS:
                taps.append(x)
                statistics.append(_spread(x, masks[SIDE.bit_length() - x.shape[-1].bit_length()]))
        return statistics, taps, x

    def _early(self, x: Tensor, *masks: Tensor) -> tuple[Tensor, Tensor]:
        statistics = [_spread(x, masks[0])]
        x = F.relu6(self.stem(x), inplace=True)
        statistics.append(_spread(x, masks[1]))
        for i in range(FROZEN_BLOCKS):
            x = self.blocks[i](x)
            if i in TAPS:
                statistics.append(_spread(x, masks[SIDE.bit_length() - x.shape[-1].bit_length()]))
        return x, torch.cat(statistics, 1)


@dataclass
class Outputs:
    """Unit rows of the four heads, and the damage head's logits."""

    style: Tensor
    damage: Tensor
    object: Tensor
    text: Tensor
    logits: Tensor

    def features(self) -> Tensor:
        """(n, 416): the four heads side by side."""
        return torch.cat([self.style, self.damage, self.object, self.text], dim=1)


class LiteNet(nn.Module):
    """Canvas and pixel statistics to the outputs of the heads."""

    centre: Tensor
    spread: Tensor
    object_centre: Tensor
    object_spread: Tensor

    def __init__(self, kinds: int = 14) -> None:
        super().__init__()
        self.trunk = Trunk()
        self.dropped = DROPPED
        self.statistics = 3 * (sum(Trunk.channels) + 3) + 2 + STATISTICS
        layout = 2 * 320 + 4 * 112 + 16 * 40 + 64 * 4
        self.register_buffer("centre", torch.zeros(self.statistics))
        self.register_buffer("spread", torch.ones(self.statistics))
        self.register_buffer("object_centre", torch.zeros(layout))
        self.register_buffer("object_spread", torch.ones(layout))
        self.style = nn.Sequential(nn.Linear(self.statistics, 384), nn.GELU(), nn.Linear(384, STYLE))
        self.damage = nn.Sequential(nn.Linear(self.statistics, 192), nn.GELU(), nn.Linear(192, DAMAGE))
        self.kinds = nn.Linear(DAMAGE, kinds)
        self.hidden = nn.Sequential(nn.Linear(layout, 640), nn.GELU())
        self.object = nn.Linear(640, OBJECT)
        self.text = nn.Linear(640, TEXT)
        self.words = nn.Linear(TEXT, TEXT, bias=False)
        nn.init.eye_(self.words.weight)

    def raw(self, canvas: Tensor, stats: Tensor) -> tuple[Tensor, Tensor]:
        """What the heads read, before standardising: (n, statistics) for style, (n, layout) for objects.

        Args:
            canvas: (n, 64, 64, 4) uint8, colours over grey.
            stats: (n, STATISTICS) float32.
        """
        x = canvas.permute(0, 3, 1, 2)
        colour = x[:, :3].to(self.trunk.stem.weight.dtype).sub_(127.5).div_(127.5)
        alpha = x[:, 3:].to(colour.dtype).div_(255)
        seen = (x[:, 3:] > 0).to(colour.dtype)
        found, taps, last = self.trunk(colour, seen)
        columns = [*found, alpha.mean((2, 3)), alpha.std((2, 3), correction=0), stats.to(colour.dtype)]
        layout = [
            last.mean((2, 3)), last.amax((2, 3)),
            F.avg_pool2d(taps[2], 2).flatten(1), F.avg_pool2d(taps[0], 2).flatten(1),
            F.avg_pool2d(torch.cat([colour, alpha], 1), 8).flatten(1),
        ]  # fmt: skip
        return torch.cat(columns, 1), torch.cat(layout, 1)

    def heads(self, statistics: Tensor, layout: Tensor) -> Outputs:
        """The heads on what `raw` gave."""
        statistics = ((statistics - self.centre) / self.spread).clamp(-6, 6)
        layout = ((layout - self.object_centre) / self.object_spread).clamp(-6, 6)
        statistics, layout = (F.dropout(x, self.dropped, self.training) for x in (statistics, layout))
        damage = F.normalize(self.damage(statistics), dim=1)
        hidden = F.dropout(self.hidden(layout), self.dropped, self.training)
        return Outputs(
            F.normalize(self.style(statistics), dim=1), damage, F.normalize(self.object(hidden), dim=1),
            F.normalize(self.text(hidden), dim=1), self.kinds(8 * damage),
        )  # fmt: skip

    def forward(self, canvas: Tensor, stats: Tensor) -> Outputs:
        return self.heads(*self.raw(canvas, stats))


def _halve(mask: Tensor) -> Tensor:
    """(n, s, s) to (n, s/2, s/2) means."""
    count, side = mask.shape[0], mask.shape[-1] // 2
    return mask.reshape(count, side, 2, side, 2).mean((2, 4))


def _spread(x: Tensor, seen: Tensor) -> Tensor:
    """Mean over space; mean and standard deviation over the visible part, weighted by (n, s, s): (n, 3 c)."""
    count, channels, side = x.shape[0], x.shape[1], x.shape[-1]
    flat = x.permute(0, 2, 3, 1).reshape(count, side * side, channels)
    share = seen.reshape(count, 1, side * side)
    share = share / share.sum(2, keepdim=True).clamp_min(1e-3)
    means = torch.cat([torch.full_like(share, 1 / (side * side)), share], 1) @ flat
    square = (share @ (flat * flat))[:, 0]
    spread = (square - means[:, 1].square()).clamp_min(0).add(1e-6).sqrt()
    return torch.cat([means.flatten(1), spread], 1)


def fold(state: dict[str, Any]) -> dict[str, Tensor]:
    """A published EfficientNet-Lite0 state dict to a `Trunk`'s, batch normalisation folded into the convolutions."""
    out: dict[str, Tensor] = {}

    def one(convolution: str, norm: str, name: str) -> None:
        scale = state[f"{norm}.weight"] / (state[f"{norm}.running_var"] + 1e-3).sqrt()
        out[f"{name}.weight"] = state[f"{convolution}.weight"] * scale[:, None, None, None]
        out[f"{name}.bias"] = state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale

    one("_conv_stem", "_bn0", "stem")
    for i in range(sum(stage[0] for stage in STAGES)):
        old, new = f"_blocks.{i}", f"blocks.{i}"
        if f"{old}._expand_conv.weight" in state:
            one(f"{old}._expand_conv", f"{old}._bn0", f"{new}.expand")
        one(f"{old}._depthwise_conv", f"{old}._bn1", f"{new}.depth")
        one(f"{old}._project_conv", f"{old}._bn2", f"{new}.project")
    return out
