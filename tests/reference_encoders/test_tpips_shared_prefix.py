"""All factors in one forward: equal to the package's own vectors, and what breaks it is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tpips", reason='pip install "assetscore[tpips]"')

import torch

from assetscore.encoders import get_encoder
from assetscore.encoders import tpips_shared_prefix as shared
from assetscore.errors import EncoderError

from .tiny_models import save_tpips

FACTORS = ["art style", "ruby sword", "overall", "the material it is made of", "art styles"]


@pytest.fixture(scope="module")
def package(checkpoint: Path) -> Any:
    import tpips

    return tpips.load_model("embedding", checkpoint, device="cpu").float()


def images(shape: tuple[int, int], count: int = 2) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return [torch.rand(3, *shape, generator=generator) for _ in range(count)]


def difference(model: Any, pictures: list[torch.Tensor], factors: list[str] = FACTORS) -> float:
    """The largest difference of any entry to the package's own vectors, one factor at a time."""
    with torch.inference_mode():
        expected = torch.stack([model.embed(pictures, factor, normalized=True) for factor in factors], dim=1)
        return float((shared.embed_factors(model, pictures, factors) - expected).abs().max())


@pytest.mark.parametrize("shape", [(64, 64), (128, 64), (32, 256), (224, 224)])
@pytest.mark.parametrize("count", [1, 3])
def test_it_equals_the_package(package: Any, shape: tuple[int, int], count: int) -> None:
    assert difference(package, images(shape, count)) < 1e-5


@pytest.mark.parametrize("factors", [FACTORS[:2], FACTORS[::-1], ["x", "xx", "xxx"], [f"thing {i}" for i in range(20)]])
def test_it_equals_the_package_for_any_factors(package: Any, factors: list[str]) -> None:
    assert difference(package, images((64, 96)), factors) < 1e-5


def test_it_equals_the_package_with_eager_attention_and_mean_pooling(tmp_path: Path, backbone: Path) -> None:
    import tpips

    folder = save_tpips(tmp_path / "mean", backbone, similarity_pooling="mean")
    model = tpips.load_model("embedding", folder, device="cpu").float()
    assert model.pooling == "mean"
    assert difference(model, images((64, 64))) < 1e-5
    model.backbone.set_attn_implementation("eager")
    assert difference(model, images((64, 64))) < 1e-5


# Negative controls: the comparison above must be able to fail


@pytest.mark.parametrize("shift", [1, 3])
def test_a_wrong_rope_delta_is_seen(package: Any, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    right = shared.suffix_positions

    def wrong(positions: torch.Tensor, prefix: int, lengths: list[int]) -> torch.Tensor:
        moved = right(positions, prefix, lengths)
        moved[:, :, prefix:] += shift
        return moved

    monkeypatch.setattr(shared, "suffix_positions", wrong)
    assert difference(package, images((64, 96))) > 1e-4


def test_positions_counted_from_the_index_are_seen(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one would write without knowing that an image takes fewer positions than tokens."""

    def naive(positions: torch.Tensor, prefix: int, lengths: list[int]) -> torch.Tensor:
        steps = [torch.arange(prefix, prefix + length).expand(3, positions.shape[1], -1) for length in lengths]
        return torch.cat([positions[:, :, :prefix], *steps], dim=2)

    monkeypatch.setattr(shared, "suffix_positions", naive)
    assert difference(package, images((64, 96))) > 1e-4


def test_dropped_deepstack_features_are_seen(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text_model = next(module for module in package.modules() if "_deepstack_process" in vars(type(module)))
    embed_factors = shared.embed_factors

    def without(*args: Any) -> torch.Tensor:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_model, "_deepstack_process", lambda hidden, mask, features: hidden)
            return embed_factors(*args)

    monkeypatch.setattr(shared, "embed_factors", without)
    assert difference(package, images((64, 96))) > 1e-4


def test_suffixes_that_see_each_other_are_seen(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    causal_only = shared.packed_mask(prefix=500, lengths=[], dtype=torch.float32)

    def leaky(prefix: int, lengths: list[int], dtype: torch.dtype) -> torch.Tensor:
        length = prefix + sum(lengths)
        return causal_only[:, :, :length, :length]

    monkeypatch.setattr(shared, "packed_mask", leaky)
    assert difference(package, images((64, 96))) > 1e-4


# The encoder's mode


def made(checkpoint: Path, **options: Any) -> Any:
    return get_encoder(f"tpips:{checkpoint}", device="cpu", dtype="fp32", **options)


def test_the_mode_gives_the_plain_modes_vectors(checkpoint: Path, pictures: list[Any]) -> None:
    plain, packed = made(checkpoint), made(checkpoint, shared_prefix=True)
    assert plain.fingerprint != packed.fingerprint
    expected, rows = plain.embed(pictures, FACTORS), packed.embed(pictures, FACTORS)
    for factor in FACTORS:
        assert rows[factor] == pytest.approx(expected[factor], abs=1e-5)
    assert np.array_equal(packed.embed(pictures, ["x", "x"])["x"], packed.embed(pictures, ["x"])["x"])


def test_the_image_is_computed_once(checkpoint: Path, pictures: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = made(checkpoint, shared_prefix=True)
    visual = encoder._model.backbone.model.visual
    passes = []
    visual.register_forward_pre_hook(lambda module, args: passes.append(1))
    encoder.embed(pictures[:1], FACTORS)
    assert len(passes) == 1


def test_out_of_memory_halves_the_batch(checkpoint: Path, pictures: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = made(checkpoint).embed(pictures, FACTORS)
    embed_factors = shared.embed_factors

    def small_memory(model: Any, batch: list[torch.Tensor], factors: list[str]) -> torch.Tensor:
        if len(batch) > 1:
            raise torch.OutOfMemoryError("out of memory")
        return embed_factors(model, batch, factors)

    monkeypatch.setattr(shared, "embed_factors", small_memory)
    rows = made(checkpoint, shared_prefix=True).embed(pictures, FACTORS)
    for factor in FACTORS:
        assert rows[factor] == pytest.approx(expected[factor], abs=1e-5)


def test_an_attention_without_masks_is_refused(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = made(checkpoint, shared_prefix=True)
    monkeypatch.setattr(encoder._model.backbone.config, "_attn_implementation_internal", "flash_attention_2")
    with pytest.raises(EncoderError, match="TPIPS_ATTN_IMPL=sdpa"):
        encoder.embed([np.zeros((16, 16, 3), np.uint8)], FACTORS)


def test_mixed_sizes_are_refused(package: Any) -> None:
    with pytest.raises(EncoderError, match="one size"):
        shared.embed_factors(package, [*images((64, 64), 1), *images((64, 128), 1)], FACTORS)


def test_the_mask_by_brute_force() -> None:
    prefix, lengths = 4, [2, 3, 1]
    mask = shared.packed_mask(prefix, lengths, torch.float32)[0, 0]
    owner = [0] * prefix + [i + 1 for i, length in enumerate(lengths) for _ in range(length)]
    for query, q in enumerate(owner):
        for key, k in enumerate(owner):
            seen = key <= query and (k in (0, q))
            assert (mask[query, key] == 0) == seen
