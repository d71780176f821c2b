"""The evaluation's damage: what a good style score must drop on. Never used in training.

Seven kinds that resemble what training restyles with (other code, other parameters), and three that it never saw.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

__all__ = ["DAMAGE", "SEEN", "UNSEEN", "primitive"]

Pixels = NDArray[np.uint8]


def _with(rgba: Pixels, colour: NDArray[np.floating]) -> Pixels:
    out = rgba.copy()
    out[..., :3] = np.rint(colour).clip(0, 255)
    out[out[..., 3] == 0] = 0
    return np.asarray(out, np.uint8)


def _resize(rgba: Pixels, width: int, height: int, method: Image.Resampling) -> Pixels:
    return np.array(Image.fromarray(rgba).convert("RGBa").resize((width, height), method).convert("RGBA"))


def resampled(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Four times larger and back, with a blur of 0.6 px."""
    height, width = rgba.shape[:2]
    large = _resize(rgba, width * 4, height * 4, Image.Resampling.BILINEAR)
    small = Image.fromarray(_resize(large, width, height, Image.Resampling.BILINEAR)).convert("RGBa")
    return np.array(small.filter(ImageFilter.GaussianBlur(0.6)).convert("RGBA"))


def jpeg(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """JPEG of quality 25 at twice the size, as it is delivered."""
    large = rgba.repeat(2, 0).repeat(2, 1)
    alpha = large[..., 3:] / 255
    buffer = io.BytesIO()
    Image.fromarray((large[..., :3] * alpha + 128 * (1 - alpha)).astype(np.uint8)).save(buffer, "JPEG", quality=25)
    return _with(large, np.array(Image.open(buffer).convert("RGB"), np.float64))


def hue(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Hue turned by 120 degrees."""
    return _with(rgba, rgba[..., [2, 0, 1]].astype(np.float64))


def noise(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Gaussian noise, sigma 25."""
    return _with(rgba, rgba[..., :3] + rng.normal(0, 25, (*rgba.shape[:2], 3)))


def smooth(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Enlarged four times, bicubic."""
    return _resize(rgba, rgba.shape[1] * 4, rgba.shape[0] * 4, Image.Resampling.BICUBIC)


def posterised(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Two levels a channel."""
    return _with(rgba, np.where(rgba[..., :3] >= 128, 255.0, 0.0))


def mean(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Every visible pixel the mean colour."""
    seen = rgba[..., 3] > 0
    return _with(rgba, np.broadcast_to(rgba[seen][:, :3].mean(0), rgba[..., :3].shape))


def dithered(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Ordered dithering to three levels a channel."""
    bayer = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16 - 0.47
    height, width = rgba.shape[:2]
    pattern = np.tile(bayer, (height // 4 + 1, width // 4 + 1))[:height, :width, None]
    return _with(rgba, np.rint(rgba[..., :3] / 127.5 + pattern).clip(0, 2) * 127.5)


def half_pixel(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Moved by half a pixel both ways, every pixel the mean of the four it then covers."""
    alpha = rgba[..., 3:].astype(np.float64)
    padded = np.pad(np.concatenate([rgba[..., :3] * alpha, alpha], 2), ((0, 1), (0, 1), (0, 0)), mode="edge")
    total = (padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4
    out = np.concatenate([total[..., :3] / np.maximum(total[..., 3:], 1e-9), total[..., 3:]], 2)
    out = np.rint(out).clip(0, 255).astype(np.uint8)
    out[out[..., 3] == 0] = 0
    return np.asarray(out, np.uint8)


def exploded(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """Hardly a colour twice, as image generators paint: a soft drift over the picture and a small jitter everywhere."""
    height, width = rgba.shape[:2]
    coarse = rng.normal(0, 12, (4, 4, 3))
    planes = [
        np.array(Image.fromarray(coarse[..., c]).resize((width, height), Image.Resampling.BICUBIC)) for c in (0, 1, 2)
    ]
    return _with(rgba, rgba[..., :3] + np.stack(planes, 2) + rng.uniform(-6, 6, (height, width, 3)))


DAMAGE: dict[str, Callable[[Pixels, np.random.Generator], Pixels]] = {
    "resample": resampled, "jpeg": jpeg, "hue": hue, "noise": noise, "smooth x4": smooth, "posterise": posterised,
    "mean colour": mean, "dither": dithered, "half pixel": half_pixel, "colours": exploded,
}  # fmt: skip
SEEN, UNSEEN = tuple(DAMAGE)[:7], tuple(DAMAGE)[7:]


def primitive(rgba: Pixels, rng: np.random.Generator) -> Pixels:
    """A flat drawing by code in a picture's palette: one to three shapes with plain fills, sometimes an outline."""
    from PIL import ImageDraw

    seen = rgba[rgba[..., 3] > 0][:, :3]
    height, width = rgba.shape[:2]
    image = Image.new("RGBA", (width, height))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(1, 4))):
        fill = (*(int(v) for v in seen[rng.integers(len(seen))]), 255)
        line = (*(int(v) for v in seen[rng.integers(len(seen))]), 255) if rng.random() < 0.4 else None
        x, y = rng.integers(1, max(2, width // 3)), rng.integers(1, max(2, height // 3))
        box = [int(x), int(y), int(rng.integers(width // 2, width)), int(rng.integers(height // 2, height))]
        shape = rng.integers(4)
        if shape == 0:
            draw.rectangle(box, fill, line)
        elif shape == 1:
            draw.ellipse(box, fill, line)
        elif shape == 2:
            draw.polygon([(box[0], box[3]), ((box[0] + box[2]) // 2, box[1]), (box[2], box[3])], fill, line)
        else:
            draw.line(box, fill, int(rng.integers(2, 6)))
    return np.array(image)
