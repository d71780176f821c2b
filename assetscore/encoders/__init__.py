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
register(
    EncoderInfo(
        name="tpips",
        factory="assetscore.encoders.tpips:make",
        summary="text-conditioned perceptual similarity, the paper's encoder; wants a GPU",
        licence="Adobe Research Licence (non-commercial), package and weights",
        conditional=True,
        size="17 GB from sywang/TPIPS-Embed-Qwen3VL-8B, and its backbone Qwen/Qwen3-VL-Embedding-8B",
        requires=("tpips", "transformers", "peft"),
        extra="tpips",
    )
)
register(
    EncoderInfo(
        name="csd",
        factory="assetscore.encoders.csd:make",
        summary="contrastive style descriptors, ViT-L/14; no factor; its weights are under their authors' review",
        licence="MIT",
        conditional=False,
        size="1.2 GB from tomg-group-umd/CSD-ViT-L",
        requires=("open_clip",),
    )
)
register(
    EncoderInfo(
        name="clip",
        factory="assetscore.encoders.clip:make",
        summary='open_clip models, "clip:ARCH/TAG"; "?conditioning=subspace" reads factors through the text tower',
        licence="MIT (package); the weights' own, mostly MIT or Apache-2.0",
        conditional=False,
        size="0.2 to 10 GB, by architecture (ViT-B-32: 0.6 GB)",
        requires=("open_clip",),
    )
)
register(
    EncoderInfo(
        name="lpips",
        factory="assetscore.encoders.lpips:make",
        summary='learned perceptual distance as an index, "lpips:alex", "lpips:vgg" or "lpips:squeeze"; no factor',
        licence="BSD-2-Clause; trunks BSD-3-Clause",
        conditional=False,
        size="alex 233 MB, vgg 528 MB, squeeze 5 MB from torchvision",
        requires=("lpips", "torchvision"),
    )
)
