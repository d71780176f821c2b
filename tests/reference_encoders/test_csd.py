"""CSD against a forward written from the architecture's description, on a small tower with random weights."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from assetscore.encoders import get_encoder
from assetscore.encoders._tower import CLIP_MEAN, CLIP_STD, cropped
from assetscore.errors import EncoderUnavailableError, FactorError, UsageError, WeightsError
from assetscore.images import load

from .test_weights import put_in_cache
from .tiny_models import csd_state

Array = np.ndarray[Any, Any]


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def style_of(state: dict[str, torch.Tensor], picture: Array) -> Array:
    """The style vector of one (side, side, 3) byte picture, by the description, in float64.

    Patches by one convolution without bias; a class token in front; positions added; pre-norm residual blocks of
    multi-head attention (heads 64 wide) and a QuickGELU MLP; the class token, normalised; times the style matrix.
    """
    w = {key.removeprefix("backbone."): value.double().numpy() for key, value in state.items()}
    width, _, patch, _ = w["conv1.weight"].shape
    x = ((picture / 255.0 - CLIP_MEAN) / CLIP_STD).transpose(2, 0, 1)
    grid = picture.shape[0] // patch
    patches = [
        x[:, r * patch : (r + 1) * patch, c * patch : (c + 1) * patch].ravel() for r in range(grid) for c in range(grid)
    ]
    tokens = np.vstack([w["class_embedding"], np.stack(patches) @ w["conv1.weight"].reshape(width, -1).T])
    tokens = layer_norm(tokens + w["positional_embedding"], w["ln_pre.weight"], w["ln_pre.bias"])
    layers = sum(key.endswith("ln_1.weight") for key in w)
    for layer in range(layers):
        start = f"transformer.resblocks.{layer}."
        b = {key.removeprefix(start): value for key, value in w.items() if key.startswith(start)}
        qkv = layer_norm(tokens, b["ln_1.weight"], b["ln_1.bias"]) @ b["attn.in_proj_weight"].T + b["attn.in_proj_bias"]
        heads = []
        for head in range(0, width, 64):
            q, k, v = (qkv[:, part * width + head : part * width + head + 64] for part in range(3))
            weights = np.exp(q @ k.T / 8)
            heads.append(weights / weights.sum(1, keepdims=True) @ v)
        tokens = tokens + np.hstack(heads) @ b["attn.out_proj.weight"].T + b["attn.out_proj.bias"]
        hidden = layer_norm(tokens, b["ln_2.weight"], b["ln_2.bias"]) @ b["mlp.c_fc.weight"].T + b["mlp.c_fc.bias"]
        hidden = hidden / (1 + np.exp(-1.702 * hidden))
        tokens = tokens + hidden @ b["mlp.c_proj.weight"].T + b["mlp.c_proj.bias"]
    style = layer_norm(tokens[0], w["ln_post.weight"], w["ln_post.bias"]) @ w["last_layer_style"]
    return style / np.linalg.norm(style)


def picture_of(rgba: Array, side: int = 32) -> Array:
    """By hand: nearest enlargement by the largest factor that fits, centred, over mid grey."""
    if rgba.shape[2] == 3:
        rgba = np.dstack([rgba, np.full(rgba.shape[:2], 255, np.uint8)])
    factor = side // max(rgba.shape[:2])
    large = np.kron(rgba, np.ones((factor, factor, 1), np.uint8))
    alpha = large[..., 3:] / 255
    colours = np.floor(large[..., :3] * alpha + 128 * (1 - alpha) + 0.5)
    out = np.full((side, side, 3), 128.0)
    top, left = (side - large.shape[0]) // 2, (side - large.shape[1]) // 2
    out[top : top + large.shape[0], left : left + large.shape[1]] = colours
    return out


def test_it_is_the_described_network(csd_file: Path, pictures: list[Array]) -> None:
    encoder = get_encoder("csd", weights=csd_file, device="cpu", dtype="fp32")
    small = [pixels for pixels in pictures if max(pixels.shape) <= 32]
    vectors = encoder.embed(small, ["art style"])["art style"]
    expected = np.stack([style_of(csd_state(), picture_of(pixels)) for pixels in small])
    assert np.abs(vectors - expected).max() < 2e-6
    assert np.sort(expected @ expected.T)[:, -2].max() < 0.995, "the pictures differ for this tower"
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "form",
    [
        lambda state: state,
        lambda state: {f"module.{key}": value for key, value in state.items()},
        lambda state: {"model_state_dict": {f"module.{key}": value for key, value in state.items()}, "epoch": 1},
        lambda state: {key: value for key, value in state.items() if key != "last_layer_content"},
        lambda state: {**state, "backbone.proj": torch.ones(128, 24)},
        lambda state: {key: value.half().float() if "content" in key else value for key, value in state.items()},
    ],
    ids=["bare", "module", "wrapped module", "without content head", "with CLIP's projection", "another content head"],
)
def test_every_key_form_gives_the_same_vectors(
    tmp_path: Path, csd_file: Path, pictures: list[Array], form: Callable[[dict[str, torch.Tensor]], object]
) -> None:
    torch.save(form(csd_state()), tmp_path / "other.pth")
    expected = get_encoder("csd", weights=csd_file, device="cpu", dtype="fp32").embed(pictures[:2], ["x"])["x"]
    other = get_encoder(f"csd:{tmp_path / 'other.pth'}", device="cpu", dtype="fp32").embed(pictures[:2], ["x"])["x"]
    assert np.array_equal(other, expected)


def test_the_hubs_file_is_found_in_the_cache(hub_cache: Path, csd_file: Path) -> None:
    put_in_cache(
        hub_cache, "tomg-group-umd/CSD-ViT-L", {"pytorch_model.bin": csd_file.read_bytes(), "config.json": b"{}"}
    )
    expected = get_encoder("csd", weights=csd_file, device="cpu", dtype="fp32").fingerprint
    assert get_encoder("csd", device="cpu", dtype="fp32").fingerprint == expected


def test_offline_the_hubs_file_is_named(hub_cache: Path) -> None:
    with pytest.raises(EncoderUnavailableError, match=r"tomg-group-umd/CSD-ViT-L .*pytorch_model\.bin"):
        get_encoder("csd")


def broken_states() -> dict[str, dict[str, torch.Tensor]]:
    state = csd_state()
    lost = "backbone.transformer.resblocks.1.ln_2.bias"
    return {
        "a block's tensor missing": {k: v for k, v in state.items() if k != lost},
        "a tensor too many": {**state, "backbone.transformer.resblocks.0.ls_1.gamma": torch.ones(3)},
        "another head": {**state, "classifier.weight": torch.ones(3)},
        "no style head": {k: v for k, v in state.items() if k != "last_layer_style"},
        "no tower": {k: v for k, v in state.items() if not k.startswith("backbone")},
        "a style head of another width": {**state, "last_layer_style": torch.ones(64, 24)},
        "a tensor of another shape": {**state, "backbone.ln_pre.weight": torch.ones(64)},
    }


@pytest.mark.parametrize("name", broken_states())
def test_a_checkpoint_that_is_not_csds_is_refused(tmp_path: Path, name: str) -> None:
    torch.save(broken_states()[name], tmp_path / "other.pth")
    with pytest.raises(WeightsError, match=r"other\.pth"):
        get_encoder("csd", weights=tmp_path / "other.pth", device="cpu")


def test_it_warns_that_its_weights_are_under_review(csd_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        get_encoder("csd", weights=csd_file, device="cpu")
    assert "under review" in caplog.text


@pytest.mark.parametrize("size", [(16, 64), (64, 16), (31, 45), (224, 224), (300, 20), (17, 16), (900, 700)])
def test_the_authors_crop_is_torchvisions(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    theirs = transforms.Compose(
        [transforms.Resize(224, transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(224)]
    )(Image.fromarray(pixels))
    ours = cropped(load(pixels), 224)
    assert np.array_equal(ours, np.asarray(theirs))


@pytest.mark.parametrize("shape", [(1, 100_000), (100_000, 1)])
def test_the_crop_of_an_endless_strip_is_made_without_the_strip(shape: tuple[int, int]) -> None:
    grey = np.linspace(0, 255, 100_000).astype(np.uint8).reshape(shape)
    middle = cropped(load(grey), 224)
    assert np.abs(middle.astype(int) - 127).max() <= 1


def test_padding_keeps_every_column_and_the_crop_does_not(csd_file: Path) -> None:
    random = np.random.default_rng(1)
    sprite = random.integers(0, 256, (16, 32, 3), dtype=np.uint8)
    other = sprite.copy()
    other[:, :4] = 255 - other[:, :4]
    pad = get_encoder("csd", weights=csd_file, device="cpu").embed([sprite, other], ["x"])["x"]
    crop = get_encoder("csd", weights=csd_file, device="cpu", preprocessing="crop").embed([sprite, other], ["x"])["x"]
    assert pad[0] @ pad[1] < 0.999
    assert crop[0] @ crop[1] == pytest.approx(1, abs=1e-5)


def test_what_changes_the_numbers_changes_the_fingerprint(csd_file: Path, tmp_path: Path) -> None:
    def made(path: Path = csd_file, **options: Any) -> str:
        return get_encoder("csd", weights=path, device="cpu", **{"dtype": "fp32", **options}).fingerprint

    other = csd_state()
    other["last_layer_style"][0, 0] += 1e-3
    torch.save(other, tmp_path / "other.pth")
    prints = [made(), made(matte=0), made(preprocessing="crop"), made(dtype="bf16"), made(tmp_path / "other.pth")]
    assert len(set(prints)) == 5
    assert made(batch_size=1) == prints[0]


def test_wrong_options_are_named(csd_file: Path) -> None:
    for option, value in (("preprocessing", "squash"), ("matte", 300), ("dtype", "int8"), ("device", "gpu")):
        with pytest.raises(UsageError, match=option):
            get_encoder("csd", weights=csd_file, **{option: value})
    with pytest.raises(FactorError, match="at most"):
        get_encoder("csd", weights=csd_file, device="cpu").embed([], ["x" * 10_000])
