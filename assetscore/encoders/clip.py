"""Any open_clip model: as a plain image encoder, or conditioned by its own text tower.

clip:ViT-B-32/laion2b_s34b_b79k                            a pretrained tag of open_clip
clip:ViT-B-32//home/me/model.safetensors                   the same architecture with a local file
clip:ViT-B-16-SigLIP/webli?conditioning=subspace&rank=16   factors through the text tower
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import EncoderUnavailableError, UnknownEncoderError, UsageError
from ..images import MATTE
from ._names import by_name
from ._open_clip import load_network, tokenizer
from ._phrases import VOCABULARY_VERSION, phrases_of
from ._subspace import project, subspace
from ._torch import fingerprint, weights_digest
from ._tower import CLIP_MEAN, CLIP_STD, ImageTower, Preprocessing
from ._weights import PROBE_SECONDS, hub_file, within
from .base import check_factors

if TYPE_CHECKING:
    import torch

__all__ = ["CLIP", "anchors", "parse_name"]

ANCHORS_VERSION = 1
"""Part of a fingerprint: raise it with any change of `anchors`."""
Conditioning = Literal["none", "subspace"]


class CLIP(ImageTower):
    """An open_clip image tower, plain or conditioned by text.

    Args:
        model: "ARCH/TAG", "ARCH/FILE" or "ARCH" with `weights`.
        weights: a checkpoint file, in place of a tag.
        conditioning: "none": the image vector, whatever the factor. "subspace": see `_subspace`; the factor's phrases
            come from `phrases`, else from a vocabulary.
        rank: directions a factor is given, at most.
        phrases: texts for factors of your own, at least two each.
        quickgelu: does the checkpoint use QuickGELU? None goes by the tag, or the architecture's name.
        preprocessing: "pad" shows the whole texture; "crop" is CLIP's own.
        device, dtype, batch_size, matte: as for csd.

    Raises:
        UnknownEncoderError: open_clip has no such architecture or tag.
        EncoderUnavailableError: the weights are not here and cannot be fetched; or the text tower's configuration or
            tokenizer, which some architectures keep in the hub, is not: with a local checkpoint the hub is not asked.
        WeightsError: the file is damaged or holds another model.
    """

    def __init__(
        self,
        model: str = "",
        *,
        weights: str | os.PathLike[str] | None = None,
        conditioning: Conditioning = "none",
        rank: int = 16,
        phrases: Mapping[str, Sequence[str]] | None = None,
        quickgelu: bool | None = None,
        preprocessing: Preprocessing = "pad",
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        batch_size: int = 32,
        matte: int = MATTE,
    ) -> None:
        import open_clip

        architecture, tag = parse_name(model)
        if rank < 1:
            raise UsageError(f"rank must be at least 1, got {rank}")
        if conditioning not in ("none", "subspace"):
            raise UsageError(f'conditioning must be "none" or "subspace", got {conditioning!r}')
        super().__init__(f"clip:{model}", device, dtype, batch_size, matte, preprocessing)
        config = open_clip.pretrained.get_pretrained_cfg(architecture, tag)
        path = Path(weights) if weights is not None else find_weights(architecture, tag, config)
        # Only a tag says that the hub may be asked: what goes with a local checkpoint is on this machine too.
        fetch = weights is None and bool(config)
        self.conditional = conditioning == "subspace"
        self._tokenize = tokenizer(architecture, fetch) if self.conditional else None
        quickgelu = bool(config.get("quick_gelu")) if quickgelu is None else quickgelu
        network = load_network(architecture, path, quickgelu, fetch)
        self.mean = tuple(config.get("mean", CLIP_MEAN))
        self.std = tuple(config.get("std", CLIP_STD))
        size = network.visual.image_size
        self.side = int(size if isinstance(size, int) else size[0])
        self.rank = rank
        self._phrases = {factor: checked_phrases(factor, texts) for factor, texts in (phrases or {}).items()}
        self._digest = weights_digest(network.state_dict())
        self._network = network.to(self.device, self.dtype).eval()
        self._bases: dict[str, NDArray[np.float64]] = {}
        self.width = self._measure()
        self._mean = self._anchor_mean() if self.conditional else None
        self._identify(f"anchors {ANCHORS_VERSION}")

    def _identify(self, mean: str) -> None:
        settings = self.settings()
        if self.conditional:
            settings |= {
                "mean_of": mean,
                "phrases": sorted((factor, *texts) for factor, texts in self._phrases.items()),
                "rank": self.rank,
                "vocabulary": VOCABULARY_VERSION,
            }
        self.fingerprint = fingerprint("clip", weights=self._digest, **settings)

    def _measure(self) -> int:
        import torch

        with torch.inference_mode():
            blank = torch.zeros(1, 3, self.side, self.side, device=self.device, dtype=self.dtype)
            return int(self.forward(blank).shape[1])

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self._network.encode_image(pictures)
        return features

    def _anchor_mean(self) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = self.features(anchors()).astype(np.float64).mean(axis=0)
        return mean

    def with_mean(self, features: NDArray[np.float32]) -> CLIP:
        """This encoder with the modality's mean taken from (n, d) features, such as a game's references'.

        Without it the mean is that of generated pictures. It changes the fingerprint.
        """
        if not self.conditional:
            raise UsageError('a mean is used with conditioning="subspace" only')
        finite = np.asarray(features, np.float64)[np.isfinite(features).all(axis=1)]
        if finite.ndim != 2 or finite.shape[1:] != (self.width,) or not len(finite):
            raise UsageError(f"features must be (n, {self.width}) with a finite row, got shape {np.shape(features)}")
        other = copy(self)
        other._mean = finite.mean(axis=0)
        other._identify(hashlib.sha256(np.sort(finite.astype(np.float32), axis=0).tobytes()).hexdigest())
        return other

    def condition(self, features: NDArray[np.float32], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """(n, d) image vectors, projected for each factor to (n, r) unit rows; as they are where plain."""
        if self._mean is None:
            return super().condition(features, factors)
        return {factor: project(features, self._mean, self.basis(factor)) for factor in check_factors(factors)}

    def basis(self, factor: str) -> NDArray[np.float64]:
        """The (d, r) orthonormal basis of a factor's subspace, made once."""
        if factor not in self._bases:
            texts = self._phrases.get(factor) or phrases_of(factor)
            self._bases[factor] = subspace(self.text_vectors(texts), self.rank)
        return self._bases[factor]

    def text_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) unit vectors of the text tower."""
        import torch

        assert self._tokenize is not None
        rows = []
        with self._lock, torch.inference_mode():
            for start in range(0, len(texts), 64):
                tokens = self._tokenize(list(texts[start : start + 64])).to(self.device)
                rows.append(self._network.encode_text(tokens, normalize=True).float().cpu().numpy())
        return np.concatenate(rows)


def make(argument: str = "", **options: Any) -> CLIP:
    """What `get_encoder("clip...")` gives."""
    return by_name(CLIP, "clip", argument, options)


def parse_name(model: str) -> tuple[str, str]:
    """An architecture of open_clip, and the tag or file behind the slash.

    >>> parse_name("ViT-B-32/openai"), parse_name("ViT-B-32//home/me/model.pt")
    (('ViT-B-32', 'openai'), ('ViT-B-32', '/home/me/model.pt'))
    """
    import open_clip

    architecture, _, tag = model.partition("/")
    if architecture not in open_clip.list_models():
        near = get_close_matches(architecture, open_clip.list_models(), n=5)
        raise UnknownEncoderError(
            f"clip needs an architecture of open_clip, as in 'clip:ViT-B-32/openai', got {architecture!r}"
            + (f"; near are: {', '.join(near)}" if near else "")
        )
    return architecture, tag


def checked_phrases(factor: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The texts, or a UsageError: two or more are needed to differ in something."""
    if isinstance(texts, str) or len(set(texts)) < 2:
        raise UsageError(f"phrases for {factor!r} must be two different texts or more, got {texts!r}")
    return tuple(texts)


def find_weights(architecture: str, tag: str, config: Mapping[str, Any]) -> Path:
    """The file of a pretrained tag, fetched on first use, or the local file that `tag` names.

    Raises:
        UnknownEncoderError: neither a tag of that architecture nor a file.
        EncoderUnavailableError: the file is not cached and cannot be fetched.
    """
    import open_clip

    if not config:
        if os.path.isfile(tag):
            return Path(tag)
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(architecture)) or "none"
        raise UnknownEncoderError(f"clip:{architecture} has no pretrained tag and no file {tag!r}; tags are: {tags}")
    if hub := config.get("hf_hub"):
        repository, _, filename = hub.rpartition("/")
        names = [filename] if filename else ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"]
        return hub_file(repository, names)
    url = config["url"]
    cached = Path("~/.cache/clip").expanduser() / url.rpartition("/")[2]
    if not cached.is_file():
        import urllib.request

        request = urllib.request.Request(url, method="HEAD")
        try:
            within(PROBE_SECONDS, lambda: urllib.request.urlopen(request, timeout=PROBE_SECONDS).close())
            return Path(open_clip.download_pretrained(config))
        except Exception as error:
            raise EncoderUnavailableError(
                f"clip:{architecture}/{tag} needs {url} and cannot fetch it ({error}). On a machine with access "
                f"download it, bring it here, and give its path as `weights`"
            ) from error
    return Path(cached)


def anchors(count: int = 64, side: int = 16) -> list[NDArray[np.uint8]]:
    """Generated (side, side, 4) pictures, always the same, whose mean vector stands for that of images in general.

    Few-coloured blobs, flat tiles, stripes and noise, opaque and on transparency: not to be told from one game's art,
    which is the point.
    """
    random = np.random.default_rng(20260723)
    ys, xs = np.mgrid[:side, :side]
    pictures = []
    for index in range(count):
        palette = random.integers(0, 256, (4, 3), dtype=np.uint8)
        kind = index % 4
        if kind == 0:  # noise in four colours
            which = random.integers(0, 4, (side, side))
        elif kind == 1:  # stripes
            which = (xs * random.integers(0, 3) + ys * random.integers(1, 3)) // random.integers(2, 5) % 4
        elif kind == 2:  # rings
            centre = random.uniform(4, side - 4, 2)
            which = (np.hypot(ys - centre[0], xs - centre[1]) / random.uniform(1.5, 4)).astype(int) % 4
        else:  # blocks
            which = random.integers(0, 4, (4, 4)).repeat(side // 4, 0).repeat(side // 4, 1)
        alpha = np.full((side, side), 255, np.uint8)
        if index % 8 >= 4:
            alpha[np.hypot(ys - side / 2, xs - side / 2) > random.uniform(4, side / 2)] = 0
        pictures.append(np.dstack([palette[which], alpha]))
    return pictures
