"""An image tower behind the encoder protocol: what csd, clip and lpips have in common."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from ..images import MATTE, Asset, Texture, canvas, composite
from ._torch import BATCH_NOISE, choose_device, choose_dtype, dtype_name, run_in_batches, unit_rows
from .base import TwoStageEncoder, as_textures, check_factors

if TYPE_CHECKING:
    import torch

__all__ = ["CLIP_MEAN", "CLIP_STD", "ImageTower", "cropped", "padded"]

Preprocessing = Literal["pad", "crop"]
MOST_RESIZED = 1 << 25
"""Pixels."""
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)


def padded(texture: Texture, side: int, matte: int = MATTE) -> NDArray[np.uint8]:
    """The whole picture on a (side, side, 3) canvas: nearest enlargement, area reduction, never a crop."""
    return composite(canvas(texture.native, side), matte)


def cropped(texture: Texture, side: int, matte: int = MATTE) -> NDArray[np.uint8]:
    """CLIP's own preparation: the shorter side resized bicubically to `side`, then the (side, side, 3) middle.

    It cuts off the ends of what is not square: of a 16 x 64 sprite a quarter is left.
    """
    from PIL import Image

    picture = Image.fromarray(composite(texture.pixels, matte))
    width, height = (max(side, int(side * length / min(picture.size))) for length in picture.size)
    left, top = round((width - side) / 2), round((height - side) / 2)
    bicubic = Image.Resampling.BICUBIC
    if width * height <= MOST_RESIZED:
        return np.asarray(picture.resize((width, height), bicubic).crop((left, top, left + side, top + side)))
    # A strip of 1 x 100,000 would become 224 x 22,400,000 first: only the part that is kept is resized.
    scale_x, scale_y = picture.width / width, picture.height / height
    right, bottom = min((left + side) * scale_x, picture.width), min((top + side) * scale_y, picture.height)
    return np.asarray(picture.resize((side, side), bicubic, box=(left * scale_x, top * scale_y, right, bottom)))


class ImageTower(TwoStageEncoder):
    """A vision model that maps (n, 3, side, side) pictures to vectors, whatever the factor.

    Subclasses set `width`, `side`, `mean`, `std` and `fingerprint` when they are made, and implement `forward`.
    """

    width: int
    """Columns of the features."""
    side: int
    mean: tuple[float, ...] = CLIP_MEAN
    std: tuple[float, ...] = CLIP_STD
    unit = True
    """Are features scaled to length 1?"""

    def __init__(
        self,
        name: str,
        device: str | torch.device,
        dtype: str | torch.dtype,
        batch_size: int,
        matte: int,
        preprocessing: Preprocessing = "pad",
    ) -> None:
        if preprocessing not in ("pad", "crop"):
            raise UsageError(f'preprocessing must be "pad" or "crop", got {preprocessing!r}')
        if not 0 <= matte <= 255:
            raise UsageError(f"matte must be a grey from 0 to 255, got {matte}")
        self.name = name
        self.device = choose_device(device)
        self.dtype = choose_dtype(dtype, self.device)
        self.batch_size = batch_size
        self.matte = matte
        self.preprocessing = preprocessing
        self.batch_noise = BATCH_NOISE[dtype_name(self.dtype)]
        self._lock = threading.Lock()

    @abstractmethod
    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """(n, 3, side, side) normalised pictures, on the device in its precision, to (n, width) features."""

    def features(self, images: Sequence[Asset | Texture]) -> NDArray[np.float32]:
        textures = as_textures(images)
        # One forward at a time: models are not made for threads, and two at once would need twice the memory.
        with self._lock:
            rows = run_in_batches(textures, self.batch_size, self._batch, self.width)
        return unit_rows(rows) if self.unit else rows

    def condition(self, features: NDArray[np.float32], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The features themselves under every factor: this tower does not read factors."""
        return dict.fromkeys(check_factors(factors), np.asarray(features, np.float32))

    def _batch(self, textures: Sequence[Texture]) -> NDArray[np.float32]:
        features: NDArray[np.float32] = self.forward(self.pictures(textures)).float().cpu().numpy()
        return features

    def pictures(self, textures: Sequence[Texture]) -> torch.Tensor:
        """n textures as (n, 3, side, side), normalised by mean and std, on the device in its precision."""
        import torch

        prepare = padded if self.preprocessing == "pad" else cropped
        stack = torch.from_numpy(np.stack([prepare(texture, self.side, self.matte) for texture in textures]))
        pictures = stack.permute(0, 3, 1, 2).float() / 255
        mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (self.mean, self.std))
        return ((pictures - mean) / std).to(self.device, self.dtype)

    def settings(self) -> dict[str, Any]:
        """The part of the fingerprint that all towers share."""
        return {
            "dtype": dtype_name(self.dtype),
            "matte": self.matte,
            "mean": list(self.mean),
            "preprocessing": self.preprocessing,
            "side": self.side,
            "std": list(self.std),
            "version": 1,
        }
