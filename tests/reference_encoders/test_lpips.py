"""LPIPS vectors against the lpips package: squared distances are its distances."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import lpips
import numpy as np
import pytest
import torch
import torchvision

from assetscore.encoders import get_encoder
from assetscore.errors import EncoderUnavailableError, UsageError, WeightsError

Array = np.ndarray[Any, Any]
MODELS = {
    "alex": torchvision.models.alexnet,
    "vgg": torchvision.models.vgg16,
    "squeeze": torchvision.models.squeezenet1_1,
}


@pytest.mark.parametrize(
    ("trunk", "side"),
    [("alex", 64), ("alex", 96), ("squeeze", 64), ("squeeze", 96), pytest.param("vgg", 16, marks=pytest.mark.slow)],
)
def test_squared_distances_are_lpips(tmp_path: Path, trunk: str, side: int) -> None:
    torch.manual_seed(5)
    features = MODELS[trunk]().features
    torch.save({f"features.{key}": value for key, value in features.state_dict().items()}, tmp_path / "trunk.pth")
    encoder = get_encoder(f"lpips:{trunk}", weights=tmp_path / "trunk.pth", side=side, device="cpu")

    theirs = lpips.LPIPS(net=trunk, pnet_rand=True, verbose=False)
    for piece in theirs.net.children():  # each slice names its layers by their place in the trunk
        for place, layer in piece.named_children():
            layer.load_state_dict(features[int(place)].state_dict())

    random = np.random.default_rng(2)
    textures = [random.integers(0, 256, (side, side, 3), dtype=np.uint8) for _ in range(3)]
    textures.append(np.clip(textures[0].astype(int) + 3, 0, 255).astype(np.uint8))
    vectors = encoder.embed(textures, ["x"])["x"].astype(np.float64)
    tensors = [torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 127.5 - 1 for pixels in textures]
    for a, b in itertools.combinations(range(4), 2):
        with torch.no_grad():
            expected = float(theirs(tensors[a], tensors[b]))
        assert expected > 1e-4, "the pair differs for this trunk"
        assert ((vectors[a] - vectors[b]) ** 2).sum() == pytest.approx(expected, abs=1e-5)


def test_the_range_is_minus_one_to_one(alex_file: Path) -> None:
    """Fed [0, 1], the distance of black and white would be another number."""
    encoder = get_encoder("lpips:alex", weights=alex_file, device="cpu")
    black, white = encoder.pictures([_load(0), _load(255)])
    assert black.unique().tolist() == [-1]
    assert white.unique().tolist() == [1]


def _load(grey: int) -> Any:
    from assetscore.images import load

    return load(np.full((64, 64), grey, np.uint8))


def test_small_images_are_enlarged_first(alex_file: Path) -> None:
    encoder = get_encoder("lpips:alex", weights=alex_file, device="cpu")
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    small, large = encoder.embed([pixels, np.kron(pixels, np.ones((4, 4, 1), np.uint8))], ["x"])["x"]
    assert np.array_equal(small, large)


def test_factors_share_the_vectors(alex_file: Path, pictures: list[Array]) -> None:
    encoder = get_encoder("lpips", weights=alex_file, device="cpu")
    vectors = encoder.embed(pictures, ["art style", "object class"])
    assert encoder.metric == "lpips"
    assert not encoder.conditional
    assert np.array_equal(vectors["art style"], vectors["object class"])
    assert vectors["art style"].shape == (6, encoder.width) == (6, 31872)


@pytest.mark.parametrize(("trunk", "side"), [("alex", 31), ("squeeze", 17)])
def test_the_smallest_side_works_and_one_less_is_refused(tmp_path: Path, trunk: str, side: int) -> None:
    features = MODELS[trunk]().features.state_dict()  # vgg's, 16 px, is the smallest in the test above
    torch.save({f"features.{key}": value for key, value in features.items()}, tmp_path / "trunk.pth")
    assert get_encoder(f"lpips:{trunk}", weights=tmp_path / "trunk.pth", side=side, device="cpu").width > 0
    with pytest.raises(UsageError, match=f"side must be at least {side}"):
        get_encoder(f"lpips:{trunk}", weights=tmp_path / "trunk.pth", side=side - 1)


def test_torchvisions_whole_file_is_read_and_anothers_refused(tmp_path: Path, alex_file: Path) -> None:
    state = torch.load(alex_file, weights_only=True)
    expected = get_encoder("lpips:alex", weights=alex_file, device="cpu").fingerprint
    torch.save({**state, "classifier.1.weight": torch.ones(3)}, tmp_path / "whole.pth")
    assert get_encoder("lpips:alex", weights=tmp_path / "whole.pth", device="cpu").fingerprint == expected
    wrong = {
        "missing": {key: value for key, value in state.items() if key != "features.3.bias"},
        "too many": {**state, "features.99.weight": torch.ones(3)},
        "shape": {**state, "features.0.bias": torch.ones(3)},
    }
    for name, content in wrong.items():
        torch.save(content, tmp_path / f"{name}.pth")
        with pytest.raises(WeightsError, match=f"{name}.pth"):
            get_encoder("lpips:alex", weights=tmp_path / f"{name}.pth", device="cpu")
    with pytest.raises(UsageError, match="alex, vgg, squeeze"):
        get_encoder("lpips:resnet")


def test_offline_the_url_and_the_place_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(EncoderUnavailableError, match=r"https://.*alexnet.*\.pth.*weights"):
        get_encoder("lpips:alex")


def test_torchvisions_cache_is_used(tmp_path: Path, alex_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    name = torchvision.models.AlexNet_Weights.IMAGENET1K_V1.url.rpartition("/")[2]
    (tmp_path / "checkpoints" / name).write_bytes(alex_file.read_bytes())
    assert get_encoder("lpips:alex", device="cpu").width == 31872
