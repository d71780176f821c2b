"""What an encoder is, and the registry that names find them in.

An encoder turns images into vectors, one set a factor. Two shapes exist:

* one stage: `embed(images, factors)` runs the model for everything (tpips);
* two stages: `features(images)` is the slow image pass, whose result does not depend on any factor, and
  `condition(features, factors)` is cheap. The library keeps the features of references and assets, so that a new
  factor costs no image pass. `TwoStageEncoder` gives `embed` for free.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import UnknownEncoderError
from ..factors import check_factors
from ..images import Asset, Texture, load

__all__ = ["Encoder", "EncoderInfo", "TwoStageEncoder", "available", "check_factors", "get_encoder", "register"]

Metric = Literal["cosine", "lpips"]


class Encoder(ABC):
    """Images to vectors under text factors.

    Attributes:
        name: what `get_encoder` found it under, options included (``"clip:ViT-B-32/openai"``).
        metric: ``"cosine"`` (unit rows, similarity is the inner product) or ``"lpips"`` (similarity is one minus the
            squared Euclidean distance of the rows).
        conditional: does the factor change the vector? Without it there is no semantic check.
        fingerprint: identifies the numbers: encoder, weights, preprocessing, dtype. Scores of different fingerprints
            cannot be compared.
        batch_noise: how far a similarity may move with the batch an image is in. 0 means bit-identical.
        rerank_top: how many of the nearest candidates `rerank` compares again; 0 for an encoder that does not.
    """

    name: str
    metric: Metric = "cosine"
    conditional: bool = False
    fingerprint: str
    batch_noise: float = 0.0
    rerank_top: int = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name[:60]!r}: {self.metric}, {getattr(self, 'fingerprint', '')[:80]}>"

    @abstractmethod
    def embed(self, images: Sequence[Asset | Texture], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Embed images under each factor, in one image pass where the model allows it.

        Args:
            images: n assets: paths, bytes, PIL images, uint8 arrays, or Textures.
            factors: texts such as ``"art style"``.

        Returns:
            For each factor an (n, d) float32 array, rows in the order of `images`. A row that could not be computed is
            NaN; it never spoils the others.

        Raises:
            FactorError: a factor is empty, too long, or not allowed by this encoder.
            ImageError: an image cannot be read.
        """

    def rerank(self, query: Texture, candidates: Sequence[Texture], factor: str) -> NDArray[np.float64]:
        """(m,) similarities of one picture to m candidates, compared pair by pair; only where `rerank_top` is not 0."""
        raise NotImplementedError(f"{self.name} compares vectors only")

    def check_factor(self, factor: str) -> str:
        """The factor as it will be used, or a FactorError. Encoders that allow less override this."""
        return check_factors((factor,))[0]


class TwoStageEncoder(Encoder):
    """An encoder whose image pass does not depend on the factor."""

    @abstractmethod
    def features(self, images: Sequence[Asset | Texture]) -> NDArray[np.float32]:
        """The image pass: n images to (n, m) float32, a fixed m an encoder. NaN rows for what cannot be computed."""

    @abstractmethod
    def condition(self, features: NDArray[np.float32], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The factor's part: (n, m) features to an (n, d) array of vectors for each factor."""

    def embed(self, images: Sequence[Asset | Texture], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return self.condition(self.features(images), check_factors(factors))


def as_textures(images: Sequence[Asset | Texture]) -> list[Texture]:
    """Images as Textures; what is one already passes through."""
    return [image if isinstance(image, Texture) else load(image) for image in images]


@dataclass(frozen=True)
class EncoderInfo:
    """One line of `assetscore encoders`."""

    name: str
    factory: str | Callable[..., Encoder]
    """A callable, or "package.module:Name" imported when first asked for."""
    summary: str
    licence: str
    conditional: bool
    size: str
    """What a first use downloads or needs, in words: "ships with the package", "17 GB from ..."."""
    requires: tuple[str, ...] = ()
    """Import names of packages the encoder needs beyond the core."""
    extra: str | None = None
    """The extra that installs them: pip install "assetscore[extra]"."""


class _Registry:
    entries: ClassVar[dict[str, EncoderInfo]] = {}


def register(info: EncoderInfo) -> None:
    """Make an encoder known by name. A name registered twice is replaced, so that a user can override one."""
    _Registry.entries[info.name] = info


def available() -> tuple[EncoderInfo, ...]:
    """Every registered encoder, by name."""
    return tuple(sorted(_Registry.entries.values(), key=lambda info: info.name))


def get_encoder(name: str | Encoder, **options: Any) -> Encoder:
    """The encoder of that name, ready to embed.

    Args:
        name: a registered name, with what it takes behind a colon: ``"lite"``, ``"clip:ViT-B-32/openai"``,
            ``"lpips:alex"``. An Encoder is returned as it is.
        options: passed to the encoder: ``device=``, ``dtype=``, ``batch_size=``, ``weights=`` ..., as it documents.

    Raises:
        UnknownEncoderError: no such name (the known ones are named), or the encoder takes nothing behind a colon.
        EncoderUnavailableError: it needs a package or a checkpoint that is not here.
    """
    if isinstance(name, Encoder):
        return name
    stem, _, argument = str(name).partition(":")
    info = _Registry.entries.get(stem)
    if info is None:
        known = ", ".join(sorted(_Registry.entries))
        raise UnknownEncoderError(f"encoder {name!r} is not known; known are: {known}")
    factory: Any = info.factory
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(import_module(module), attribute)
    if argument:
        try:
            signature(factory).bind_partial(argument)
        except TypeError:
            raise UnknownEncoderError(f"encoder {name!r}: {stem} takes nothing behind a colon") from None
    encoder: Encoder = factory(argument, **options) if argument else factory(**options)
    return encoder
