"""CSD: Contrastive Style Descriptors, the published alternative without a text factor.

A CLIP ViT-L/14 image tower (QuickGELU) without its own projection, then the style matrix, then length 1 (Somepalli et
al., "Measuring Style Similarity in Diffusion Models", 2024). Weights: `tomg-group-umd/CSD-ViT-L` on the hub, MIT.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import WeightsError
from ..images import MATTE
from ._names import by_name
from ._torch import fingerprint, weights_digest
from ._tower import ImageTower, Preprocessing
from ._weights import check_fit, hub_file, read_state_dict

if TYPE_CHECKING:
    import torch
    from open_clip.transformer import VisionTransformer

__all__ = ["CSD", "HUB_REPOSITORY", "style_tower"]

logger = logging.getLogger(__name__)

HUB_REPOSITORY = "tomg-group-umd/CSD-ViT-L"
HUB_FILES = ("model.safetensors", "pytorch_model.bin")
STYLE = "last_layer_style"
HEAD_WIDTH = 64
"""Of OpenAI's CLIP towers: the number of heads is the tower's width through this."""


class CSD(ImageTower):
    """The style vector of CSD.

    Args:
        weights: the authors' checkpoint file, in any of its key forms, or None for the hub's.
        revision: of the hub's repository.
        preprocessing: "pad" shows the model the whole texture; "crop" is the authors' own, which reproduces published
            numbers and cuts off the ends of what is not square.
        device, dtype: "auto", or torch's names.
        batch_size: pictures a forward; halved where memory runs out.
        matte: the grey under transparent pixels.

    Raises:
        EncoderUnavailableError: the weights are not here and cannot be fetched.
        WeightsError: the file is damaged or holds another model.
    """

    def __init__(
        self,
        weights: str | os.PathLike[str] | None = None,
        *,
        revision: str | None = None,
        preprocessing: Preprocessing = "pad",
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        batch_size: int = 32,
        matte: int = MATTE,
    ) -> None:
        super().__init__("csd", device, dtype, batch_size, matte, preprocessing)
        path = hub_file(HUB_REPOSITORY, HUB_FILES, revision) if weights is None else Path(weights)
        state = read_state_dict(path)
        tower, style = style_tower(state, path)
        used = {key: value for key, value in state.items() if not key.startswith("last_layer_content")}
        self.side = int(tower.image_size[0])
        self.width = style.shape[1]
        self.fingerprint = fingerprint("csd", weights=weights_digest(used), **self.settings())
        self._tower = tower.to(self.device, self.dtype).eval()
        self._style = style.to(self.device, self.dtype)
        logger.warning(
            "csd: its authors say that the released weights do not reproduce the paper's numbers and are under review"
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self._tower(pictures) @ self._style
        return features


def make(argument: str = "", **options: Any) -> CSD:
    """What `get_encoder("csd...")` gives."""
    return by_name(CSD, "csd", argument, options)


def style_tower(
    state: Mapping[str, torch.Tensor], path: str | os.PathLike[str]
) -> tuple[VisionTransformer, torch.Tensor]:
    """The image tower and the (tower width, d) style matrix that a CSD checkpoint holds.

    The sizes are read off the tensors; every tensor of the tower must be there, and none may be left over but the
    content head's, which the authors call a failed experiment.

    Raises:
        WeightsError: keys or shapes are not CSD's; the first few are named.
    """
    import torch
    from open_clip.transformer import QuickGELU, VisionTransformer

    backbone = {key.removeprefix("backbone."): value for key, value in state.items() if key.startswith("backbone.")}
    style = state.get(STYLE)
    shape_givers = ("conv1.weight", "positional_embedding", "transformer.resblocks.0.mlp.c_fc.weight")
    lacking = [f"backbone.{key}" for key in shape_givers if key not in backbone] + [STYLE] * (style is None)
    if lacking or style is None:
        raise WeightsError(f"{path}: no CSD checkpoint: it lacks {', '.join(lacking)}, it holds {sorted(state)[:3]}")
    convolution, positions, mlp = (backbone[key] for key in shape_givers)
    sizes_told = convolution.ndim == 4 and positions.ndim == style.ndim == 2 and mlp.ndim == 2
    if not sizes_told or 0 in (*convolution.shape, *positions.shape, *mlp.shape, *style.shape):
        shapes = ", ".join(f"{key} {tuple(backbone[key].shape)}" for key in shape_givers)
        raise WeightsError(
            f"{path}: no CSD checkpoint: its sizes cannot be read off {shapes}, {STYLE} {tuple(style.shape)}"
        )
    width, _, patch, _ = convolution.shape
    grid = math.isqrt(positions.shape[0] - 1)
    # Counted, not the highest number: one odd name must not ask for a million layers.
    layers = len({key.split(".")[2] for key in backbone if key.startswith("transformer.resblocks.")})
    if width % HEAD_WIDTH or not grid or style.shape[0] != width:
        raise WeightsError(
            f"{path}: no CSD checkpoint: the tower's width {width} must be a multiple of {HEAD_WIDTH} and the first "
            f"side of the style matrix, whose shape is {tuple(style.shape)}, and there must be a patch, got {grid}"
        )
    with torch.device("meta"):
        tower = VisionTransformer(
            image_size=grid * patch,
            patch_size=patch,
            width=width,
            layers=layers,
            heads=width // HEAD_WIDTH,
            mlp_ratio=mlp.shape[0] / width,
            output_dim=style.shape[1],
            act_layer=QuickGELU,
        )
    tower.proj = None  # CSD uses the feature before CLIP's projection
    backbone.pop("proj", None)
    expected = {f"backbone.{key}": tensor for key, tensor in tower.state_dict().items()} | {STYLE: style}
    used = {f"backbone.{key}": value for key, value in backbone.items()}
    used |= {key: value for key, value in state.items() if not key.startswith(("backbone.", "last_layer_content"))}
    check_fit(path, "csd", expected, used)
    tower.load_state_dict({key: value.float() for key, value in backbone.items()}, assign=True)
    return tower, style.float()
