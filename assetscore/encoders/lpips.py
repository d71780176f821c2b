"""LPIPS as an index: vectors whose squared Euclidean distance is LPIPS itself.

LPIPS (Zhang et al., CVPR 2018) compares two images layer by layer: features scaled to length 1 at each position,
squared differences weighted by channel, averaged over positions, summed over layers. That is a squared distance of
the features scaled by sqrt(w / (h w')) and laid end to end, so the nearest references can be searched, not only
compared one by one. The vectors are long: about 32,000 numbers with alex at 64 px, 500,000 with vgg.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import EncoderUnavailableError, UsageError, WeightsError
from ..images import MATTE
from ._names import by_name
from ._torch import fingerprint, weights_digest
from ._tower import ImageTower
from ._weights import PROBE_SECONDS, check_fit, read_state_dict, within

if TYPE_CHECKING:
    import torch

__all__ = ["LPIPS"]

TRUNKS = {"alex": "AlexNet_Weights", "vgg": "VGG16_Weights", "squeeze": "SqueezeNet1_1_Weights"}
SMALLEST = {"alex": 31, "vgg": 16, "squeeze": 17}
"""Pixels a side below which a trunk's last layers have nothing left."""
EPSILON = 1e-10


class LPIPS(ImageTower):
    """LPIPS features; similarity is one minus the squared distance of two rows.

    Args:
        trunk: "alex" (the metric's default), "vgg" or "squeeze".
        weights: torchvision's file of the trunk, or None for torchvision's own download.
        side: pixels of the square canvas that every texture is brought to: smaller ones are enlarged by an integer.
        device, dtype, batch_size, matte: as for csd; but for float32, since a distance is a small difference.

    Raises:
        UsageError: an unknown trunk, or a side too small for it.
        EncoderUnavailableError: the trunk's weights are not here and cannot be fetched.
        WeightsError: the file is damaged or holds another model.
    """

    metric = "lpips"
    mean = (0.5, 0.5, 0.5)  # LPIPS is defined on [-1, 1]: feeding it [0, 1] is a silent, common mistake
    std = (0.5, 0.5, 0.5)
    unit = False

    def __init__(
        self,
        trunk: Literal["alex", "vgg", "squeeze"] | str = "alex",
        *,
        weights: str | os.PathLike[str] | None = None,
        side: int = 64,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "fp32",
        batch_size: int = 32,
        matte: int = MATTE,
    ) -> None:
        if trunk not in TRUNKS:
            raise UsageError(f"lpips takes one of {', '.join(TRUNKS)}, got {trunk!r}")
        if side < SMALLEST[trunk]:
            raise UsageError(f"side must be at least {SMALLEST[trunk]} for lpips:{trunk}, got {side}")
        super().__init__(f"lpips:{trunk}", device, dtype, batch_size, matte)
        self.side = side
        path = trunk_file(trunk) if weights is None else Path(weights)
        model = load_model(trunk, read_state_dict(path), path)
        self._model = model.to(self.device, self.dtype).eval()
        self._channels = [head.model[-1].weight.flatten().float() for head in model.lins]
        if any(bool((weight < 0).any()) for weight in self._channels):
            raise WeightsError(f"lpips:{trunk}: a channel weight is negative: this is no distance that can be indexed")
        self.width = self._measure()
        self.fingerprint = fingerprint(f"lpips-{trunk}", weights=weights_digest(model.state_dict()), **self.settings())

    def _measure(self) -> int:
        import torch

        with torch.inference_mode():
            blank = torch.zeros(1, 3, self.side, self.side, device=self.device, dtype=self.dtype)
            return self.forward(blank).shape[1]

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """(n, 3, side, side) in [-1, 1] to (n, d) float32 whose squared distances are LPIPS."""
        import torch

        parts = []
        layers = self._model.net(self._model.scaling_layer(pictures))
        for layer, weight in zip(layers, self._channels, strict=True):
            layer = layer.float()
            norm = layer.square().sum(dim=1, keepdim=True).sqrt()
            positions = layer.shape[2] * layer.shape[3]
            scale = (weight / positions).sqrt().view(1, -1, 1, 1)
            parts.append((layer / (norm + EPSILON) * scale).flatten(1))
        return torch.cat(parts, dim=1)


def make(argument: str = "", **options: Any) -> LPIPS:
    """What `get_encoder("lpips...")` gives."""
    return by_name(LPIPS, "lpips", argument, options)


def trunk_file(trunk: str) -> Path:
    """torchvision's file of the trunk's weights, fetched on first use.

    Raises:
        EncoderUnavailableError: it is not in torch's cache and its server does not answer; raised in under 5 s.
    """
    import urllib.request

    import torch
    import torchvision

    url: str = getattr(torchvision.models, TRUNKS[trunk]).IMAGENET1K_V1.url
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    if path.is_file():
        return path

    def probe() -> Any:
        return urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PROBE_SECONDS).close()

    try:
        within(PROBE_SECONDS, probe)
        torch.hub.load_state_dict_from_url(url, map_location="cpu", progress=False, check_hash=True, weights_only=True)
    except Exception as error:
        raise EncoderUnavailableError(
            f"lpips:{trunk} needs {url} and cannot fetch it ({error}). On a machine with access download it, bring it "
            f"here as {path}, or give its path as `weights`"
        ) from error
    return path


def load_model(trunk: str, state: Mapping[str, torch.Tensor], path: str | os.PathLike[str]) -> Any:
    """The lpips package's model with these weights in its trunk and the package's own in its heads.

    It is made on the meta device and takes the tensors as they are: random numbers for a trunk of vgg's size, which
    the weights then replace, would take many seconds.

    Args:
        trunk: "alex", "vgg" or "squeeze".
        state: torchvision's "features.<i>.*" tensors; the package's slices name the same layers "slice<k>.<i>.*".
        path: where they come from, for messages.

    Raises:
        WeightsError: they are not this trunk's.
    """
    import lpips
    import torch

    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore", UserWarning)  # lpips asks torchvision in a deprecated way
        model = lpips.LPIPS(net=trunk, pnet_rand=True, pretrained=False, verbose=False)
    targets = model.net.state_dict()
    sources = {target: "features." + target.partition(".")[2] for target in targets}
    state = {name: tensor for name, tensor in state.items() if not name.startswith("classifier.")}
    check_fit(path, f"lpips:{trunk}", {sources[target]: tensor for target, tensor in targets.items()}, state)
    model.net.load_state_dict({target: state[source].float() for target, source in sources.items()}, assign=True)
    heads = Path(lpips.__file__).parent / "weights" / f"v{model.version}" / f"{trunk}.pth"
    model.load_state_dict(read_state_dict(heads), strict=False, assign=True)
    model.scaling_layer = lpips.ScalingLayer()
    return model
