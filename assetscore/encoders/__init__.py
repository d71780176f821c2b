"""Encoders: images to vectors under text factors. `get_encoder(name)` finds them."""

from .base import Encoder, EncoderInfo, TwoStageEncoder, available, get_encoder, register

__all__ = ["Encoder", "EncoderInfo", "TwoStageEncoder", "available", "get_encoder", "register"]

register(
    EncoderInfo(
        name="pixelstats",
        factory="assetscore.encoders.pixelstats:PixelStats",
        summary="hand-made descriptor of palette, gradients and outline; the baseline",
        licence="Apache-2.0",
        conditional=False,
        size="nothing to download",
    )
)

register(
    EncoderInfo(
        name="lite",
        factory="assetscore.encoders.lite:Lite",
        summary="small text-conditioned encoder for sprites of 8 to 64 px, trained on free game art",
        licence="code Apache-2.0, weights CC-BY-SA-4.0",
        conditional=True,
        size="ships with the package (15 MB)",
    )
)
