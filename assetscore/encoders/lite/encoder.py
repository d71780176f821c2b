"""The encoder class: textures to features, features to vectors under a factor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import EncoderUnavailableError, FactorError, WeightsError
from ...images import Asset, Texture
from ..base import TwoStageEncoder, as_textures, check_factors
from . import conditioning, pixels
from .conditioning import Parts, Senses, condition, senses
from .text import TextTable

if TYPE_CHECKING:
    from .model import LiteNet

__all__ = ["DEFAULT_WEIGHTS", "Lite"]

DEFAULT_WEIGHTS = Path(__file__).parent / "weights" / "lite.safetensors"
_WIDTHS = (128, 32, 128, 128, pixels.STATISTICS)
"""Columns of the features: style, damage, object, text, pixel statistics."""
_PREPROCESSING = "native64"


class Lite(TwoStageEncoder):
    """The small encoder that ships with the package: text-conditioned, offline, made for sprites of 8 to 64 px.

    A convolutional trunk sees a 64 x 64 canvas (integer nearest enlargement, or reduction by area), and beside it
    statistics of the native pixels. Four heads give a style, a damage, an object and a text vector: the features. A
    factor text decides which count: "art style" the first two and the statistics themselves, "object class" the
    last two, a thing's name ("ruby sword") the last two and how well the image agrees with the name.

    Args:
        weights: a file that `lite.export` wrote; default: the one in the package.
        device: where torch runs the trunk.
        dtype: "float32", or "bfloat16" on processors that have it. Their scores do not mix: the fingerprints differ.
        batch_size: images a pass through the trunk.

    Raises:
        WeightsError: the file is damaged or made for another network.
        EncoderUnavailableError: torch is missing, or there is no such file.
    """

    name = "lite"
    metric = "cosine"
    conditional = True
    batch_noise = 1e-5
    """Three times the largest move of a similarity seen with batches of 1 to 300 images (float32, noise pictures)."""

    def __init__(
        self,
        weights: str | Path | None = None,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        batch_size: int = 64,
    ) -> None:
        path = DEFAULT_WEIGHTS if weights is None else Path(weights)
        if dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype must be 'float32' or 'bfloat16', got {dtype!r}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.device, self.dtype, self.batch_size = device, dtype, batch_size
        if dtype == "bfloat16":
            self.batch_noise = 2e-2
        tensors, digest = _read(path)
        self._table, self._words, self._net = _assemble(tensors, path, device)
        self.fingerprint = f"lite:{digest}:{conditioning.fingerprint()}:{_PREPROCESSING}:{dtype}"

    def features(self, images: Sequence[Asset | Texture]) -> NDArray[np.float32]:
        """The image pass: n images to (n, 491) float32: unit rows of the four heads and of the pixel statistics."""
        import torch

        textures = as_textures(images)
        out = np.full((len(textures), sum(_WIDTHS)), np.nan, np.float32)
        for start in range(0, len(textures), self.batch_size):
            slot, size = pixels.slots([texture.native for texture in textures[start : start + self.batch_size]])
            canvas = torch.from_numpy(pixels.canvases(slot, size)).to(self.device)
            counted = pixels.statistics(slot, size)
            stats = torch.from_numpy(counted).to(self.device)
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == "bfloat16"):
                found = self._net(canvas, stats).features()
            counted /= np.maximum(np.linalg.norm(counted, axis=1, keepdims=True), 1e-9)
            out[start : start + len(slot)] = np.concatenate([found.float().cpu().numpy(), counted], axis=1)
        return out

    def condition(self, features: NDArray[np.float32], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Features to unit rows under each factor: 235 columns for style, 256 for the object, one more for a name."""
        if features.ndim != 2 or features.shape[1] != sum(_WIDTHS):
            raise ValueError(f"features must be (n, {sum(_WIDTHS)}), got {features.shape}")
        parts = self._parts(features)
        out = {}
        for factor in check_factors(factors):
            asked = self.senses(factor)
            word = None if asked.word is None else self.text_vector(factor)
            out[factor] = condition(parts, asked, word)
        return out

    def senses(self, factor: str) -> Senses:
        """What a factor text is taken to ask for: the share of style, and the thing it names."""
        return senses(factor, self._table)

    def text_vector(self, text: str) -> NDArray[np.float32]:
        """A text in the space that images and texts share: (128,) float32, unit length.

        The inner product with a row of `image_text_vectors` says how well an image agrees with the text. It is no
        probability: compare it with what other images, or other texts, get.

        Raises:
            FactorError: no piece of the text is known.
        """
        vector = self._words @ self._table(check_factors([text]))[0]
        norm = float(np.linalg.norm(vector))
        if norm == 0:
            raise FactorError(f"no part of {text!r} is known to this encoder")
        return np.asarray(vector / norm, np.float32)

    def image_text_vectors(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """The images of `features` in the space that images and texts share: (n, 128) float32 unit rows."""
        return self._parts(features).text

    @staticmethod
    def _parts(features: NDArray[np.float32]) -> Parts:
        return Parts(*np.split(features, np.cumsum(_WIDTHS)[:-1], axis=1))


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], str]:
    """The tensors of a safetensors file and a digest of its bytes."""
    import hashlib

    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        data = path.read_bytes()
    except OSError as error:
        raise EncoderUnavailableError(
            f"the weights of lite cannot be read: {path}: {error.strerror or error}"
        ) from error
    try:
        tensors = load(data)
    except (SafetensorError, ValueError, KeyError, json.JSONDecodeError) as error:
        raise WeightsError(f"{path}: not a safetensors file, or damaged: {error}") from error
    return tensors, hashlib.sha256(data).hexdigest()[:16]


def _assemble(
    tensors: dict[str, NDArray[Any]], path: Path, device: str
) -> tuple[TextTable, NDArray[np.float32], LiteNet]:
    """The text table, the projection of texts, and the network, with every name and shape checked."""
    try:
        import torch
    except ImportError as error:
        raise EncoderUnavailableError('lite needs torch: pip install "torch>=2.2"') from error
    from .model import LiteNet

    text = {name: array for name, array in tensors.items() if name.startswith("table.")}
    try:
        table = TextTable.from_tensors(text)
    except (KeyError, ValueError) as error:
        raise WeightsError(f"{path}: the text table is missing or damaged: {error}") from error
    with torch.device("meta"):
        net = LiteNet()
    wanted = {name: tuple(value.shape) for name, value in net.state_dict().items() if not name.startswith("kinds.")}
    state = {name: array for name, array in tensors.items() if name not in text}
    for name in sorted(wanted.keys() | state.keys()):
        if name not in state or name not in wanted:
            raise WeightsError(f"{path}: {name} is {'missing' if name in wanted else 'not part of this encoder'}")
        if state[name].shape != wanted[name]:
            raise WeightsError(f"{path}: {name} has the shape {state[name].shape}, this encoder needs {wanted[name]}")
        if not np.isfinite(state[name]).all():
            raise WeightsError(f"{path}: {name} holds values that are not finite")
    loaded = {name: torch.from_numpy(array.astype(np.float32)) for name, array in state.items()}
    for name, value in net.state_dict().items():
        if name.startswith("kinds."):
            loaded[name] = torch.zeros(value.shape)
    net.load_state_dict(loaded, assign=True)
    net = net.eval().requires_grad_(False).to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return table, state["words.weight"].astype(np.float32), net
