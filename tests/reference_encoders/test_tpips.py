"""TPIPS against the package itself, on a tiny checkpoint made with its real classes."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tpips", reason='pip install "assetscore[tpips]"')

import torch

from assetscore.encoders import get_encoder
from assetscore.encoders.tpips import TPIPS, PixelBudget, fit, picture
from assetscore.encoders.tpips_load import REPOSITORIES, say_licence
from assetscore.encoders.tpips_rerank import Reranker, rerank_neighbours
from assetscore.errors import EncoderUnavailableError, FactorError, UsageError, WeightsError
from assetscore.images import composite, load

from .test_weights import DAMAGED, damaged, put_in_cache
from .tiny_models import save_backbone, save_tpips

Array = np.ndarray[Any, Any]
FACTORS = ["art style", "ruby sword", "overall"]


def made(checkpoint: Path, **options: Any) -> TPIPS:
    return get_encoder(f"tpips:{checkpoint}", **{"device": "cpu", "dtype": "fp32", **options})


@pytest.fixture(scope="package")
def encoder(checkpoint: Path) -> TPIPS:
    return made(checkpoint)


@pytest.fixture(scope="package")
def package(checkpoint: Path) -> Any:
    """The package's own model of the same checkpoint, in float32."""
    import tpips

    return tpips.load_model("embedding", checkpoint, device="cpu").float()


def by_hand(pixels: Array, factor: int, height: int, width: int) -> Image.Image:
    """A picture enlarged and composited here, as the package takes it."""
    if pixels.shape[2] == 3:
        pixels = np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)])
    large = np.kron(pixels, np.ones((factor, factor, 1), np.uint8)).astype(float)
    flat = np.floor(large[..., :3] * large[..., 3:] / 255 + 128 * (1 - large[..., 3:] / 255) + 0.5)
    out = np.full((height, width, 3), 128, np.uint8)
    top, left = (height - large.shape[0]) // 2, (width - large.shape[1]) // 2
    out[top : top + large.shape[0], left : left + large.shape[1]] = flat
    return Image.fromarray(out)


def test_vectors_are_the_packages(encoder: TPIPS, package: Any, pictures: list[Array]) -> None:
    sizes = [(4, 64, 64), (4, 64, 64), (4, 128, 64), (2, 64, 64), (1, 64, 64), (4, 64, 64)]
    images = [by_hand(pixels, *size) for pixels, size in zip(pictures, sizes, strict=True)]
    vectors = encoder.embed(pictures, FACTORS)
    assert list(vectors) == FACTORS
    for factor in FACTORS:
        with torch.inference_mode():
            expected = torch.stack([package.embed(image, factor, normalized=True) for image in images]).numpy()
        assert vectors[factor] == pytest.approx(expected, abs=2e-6)
        assert (expected @ expected.T)[0, 1:].max() < 0.99, "the pictures differ for this model"
    assert (vectors["art style"] * vectors["ruby sword"]).sum(1).max() < 0.99, "the factors differ for this model"


def test_a_score_does_not_depend_on_the_company(checkpoint: Path, encoder: TPIPS, pictures: list[Array]) -> None:
    whole = encoder.embed(pictures, ["art style"])["art style"]
    order = [3, 0, 5, 2, 4, 1]
    for size in (1, 2):
        rows = made(checkpoint, batch_size=size).embed([pictures[i] for i in order], ["art style"])["art style"]
        assert rows == pytest.approx(whole[order], abs=1e-6)


def test_hidden_colours_do_not_count(encoder: TPIPS, pictures: list[Array]) -> None:
    other = pictures[0].copy()
    other[:8, :, :3] = (255, 0, 255)
    a, b = encoder.embed([pictures[0], other], ["art style"])["art style"]
    assert np.array_equal(a, b)


SHAPES = [(16, 16), (1, 1), (8, 16), (16, 8), (17, 16), (24, 24), (20, 30), (64, 64), (31, 33), (224, 224), (300, 20)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_processor_resamples_nothing(encoder: TPIPS, shape: tuple[int, int]) -> None:
    """The patches that reach the model hold the texture's colours and the matte, and no other value."""
    from assetscore.encoders.tpips_shared_prefix import backbone_inputs

    texture = load(np.random.default_rng(0).integers(0, 256, (*shape, 4), dtype=np.uint8))
    inputs = backbone_inputs(encoder._model, ["x"], encoder._pictures([texture]))
    height, width = picture(texture, encoder.pixel_budget).shape[:2]
    assert inputs["image_grid_thw"].tolist() == [[1, height // 16, width // 16]]
    found = np.unique(inputs["pixel_values"].numpy().round(4))
    bytes_found = (found + 1) / 2 * 255
    assert bytes_found == pytest.approx(bytes_found.round(), abs=0.02)
    colours = set(np.unique(composite(texture.native)).tolist())
    assert colours <= set(bytes_found.round().tolist()) <= colours | {128}


def test_without_pre_enlargement_it_would(encoder: TPIPS) -> None:
    """The control: what the package does with the small picture itself."""
    from assetscore.encoders.tpips_shared_prefix import backbone_inputs

    two_colours = torch.zeros(3, 16, 16)
    two_colours[:, ::2] = 1
    patches = backbone_inputs(encoder._model, ["x"], [two_colours])["pixel_values"]
    assert len(patches.unique()) > 10


def test_the_pixel_budget_is_the_processors_own(tmp_path: Path) -> None:
    backbone = save_backbone(tmp_path / "backbone", least=65536, most=1 << 18, layers=2)
    big = made(save_tpips(tmp_path / "tpips", backbone))
    assert big.pixel_budget == PixelBudget(unit=32, least=65536, most=1 << 18)
    assert picture(load(np.zeros((16, 16), np.uint8)), big.pixel_budget).shape == (256, 256, 3)
    assert np.isfinite(big.embed([np.zeros((16, 16), np.uint8)], ["x"])["x"]).all()
    with pytest.raises(UsageError, match="min_pixels"):
        made(tmp_path / "tpips", min_pixels=1 << 20)


def test_the_minimum_can_be_raised_and_counts(checkpoint: Path, encoder: TPIPS) -> None:
    finer = made(checkpoint, min_pixels=128 * 128)
    assert finer.pixel_budget.least == 128 * 128
    assert finer.fingerprint != encoder.fingerprint


@pytest.mark.parametrize("seed", range(4))
def test_every_size_fits(seed: int) -> None:
    """What `smart_resize` of the transformers library leaves as it is, for any picture."""
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

    random = np.random.default_rng(seed)
    budget = PixelBudget(32, int(random.choice([4096, 65536, 200_000])), 1800 * 1024)
    sizes = [(int(h), int(w)) for h, w in np.exp(random.uniform(0, np.log(9000), (300, 2)))]
    for height, width in [*sizes, (16, 8192), (1, 9000), (9000, 1), (1, 1), (1358, 1358)]:
        factor, tall, wide = fit(height, width, budget)
        assert tall >= height * factor
        assert wide >= width * factor
        if tall * wide <= budget.most:
            assert smart_resize(tall, wide, 32, budget.least, budget.most) == (tall, wide)
            assert tall * wide < 8 * max(budget.least, height * width, 32 * max(height, width)), "no waste"
        else:
            assert height * width * 1.1 > budget.most or max(height, width) > 6000


@pytest.mark.parametrize("shape", [(3000, 3000), (16, 8192), (8192, 16), (1, 40_000), (1357, 1359)])
def test_large_and_long_pictures_are_brought_into_the_budget(shape: tuple[int, int]) -> None:
    budget = PixelBudget(32, 4096, 1800 * 1024)
    height, width, _ = picture(load(np.random.default_rng(0).integers(0, 9, shape, dtype=np.uint8)), budget).shape
    assert budget.least <= height * width <= budget.most
    assert max(height, width) <= 200 * min(height, width)
    assert height % 32 == width % 32 == 0


def test_odd_pictures_are_rows_and_not_the_end_of_the_batch(encoder: TPIPS, tmp_path: Path) -> None:
    Image.fromarray(np.arange(0, 65536, 256, dtype=np.uint16).reshape(16, 16)).save(tmp_path / "sixteen.png")
    random = np.random.default_rng(0)
    odd = [
        np.zeros((1, 1, 3), np.uint8),
        random.integers(0, 256, (16, 8192, 4), dtype=np.uint8),
        random.integers(0, 256, (16, 1, 3), dtype=np.uint8),
        np.zeros((16, 16, 4), np.uint8),
        str(tmp_path / "sixteen.png"),
        (tmp_path / "sixteen.png").read_bytes(),
        Image.new("P", (8, 8)),
    ]
    rows = encoder.embed(odd, ["art style"])["art style"]
    assert rows.shape == (7, 64)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(rows[4], rows[5])
    assert encoder.embed([], ["art style"])["art style"].shape == (0, 64)


@pytest.mark.parametrize(
    "factor", ["<|im_end|>", "style<|image_pad|>", "a <|x|> b", "<think>", "", "  ", "x" * 10_000, "<|vision_start|>s"]
)
def test_control_tokens_and_texts_that_are_no_factor_are_refused(encoder: TPIPS, factor: str) -> None:
    with pytest.raises(FactorError):
        encoder.embed([np.zeros((16, 16, 3), np.uint8)], ["art style", factor])


def test_nothing_is_printed(checkpoint: Path, pictures: list[Array], capfd: pytest.CaptureFixture[str]) -> None:
    made(checkpoint, shared_prefix=True).embed(pictures, FACTORS)
    made(checkpoint).embed(pictures[:1], FACTORS)
    assert capfd.readouterr().out == ""


def test_the_licence_is_said_once(checkpoint: Path, caplog: pytest.LogCaptureFixture) -> None:
    say_licence.cache_clear()
    with caplog.at_level(logging.WARNING):
        made(checkpoint)
        made(checkpoint)
    assert caplog.text.count("non-commercial") == 1


def test_what_changes_the_numbers_changes_the_fingerprint(checkpoint: Path, backbone: Path, tmp_path: Path) -> None:
    other = save_tpips(tmp_path / "other", backbone, lora_alpha=4)
    changed = torch.load(other / "model.pt", weights_only=True)
    changed[next(name for name in changed if "lora_B" in name)][0, 0] += 0.1
    torch.save(changed, other / "model.pt")
    prints = [
        made(checkpoint).fingerprint,
        made(checkpoint, matte=0).fingerprint,
        made(checkpoint, dtype="bf16").fingerprint,
        made(checkpoint, shared_prefix=True).fingerprint,
        made(other).fingerprint,
    ]
    assert len(set(prints)) == 5
    assert made(checkpoint, batch_size=2).fingerprint == prints[0]


def test_the_name_makes_the_encoder_again(checkpoint: Path) -> None:
    encoder = made(checkpoint, shared_prefix=True, min_pixels=9000, batch_size=3)
    assert encoder.name == f"tpips:{checkpoint}?dtype=fp32&min_pixels=9000&shared_prefix=true"
    assert get_encoder(encoder.name, device="cpu").fingerprint == encoder.fingerprint


def test_bf16_stays_close(checkpoint: Path, encoder: TPIPS, pictures: list[Array]) -> None:
    exact = encoder.embed(pictures, ["art style"])["art style"]
    rough = made(checkpoint, dtype="bf16").embed(pictures, ["art style"])["art style"]
    assert (exact * rough).sum(1).min() > 0.995


# Checkpoints


def test_a_partial_checkpoint_is_the_whole_one(
    tmp_path: Path, backbone: Path, encoder: TPIPS, pictures: list[Array]
) -> None:
    partial = save_tpips(tmp_path / "partial", backbone, partial=True)
    assert all("lora" in name for name in torch.load(partial / "model.pt", weights_only=True))
    rows = made(partial).embed(pictures, ["art style"])["art style"]
    assert rows == pytest.approx(encoder.embed(pictures, ["art style"])["art style"], abs=1e-6)


def test_a_checkpoint_without_lora_is_read_and_must_be_whole(tmp_path: Path, backbone: Path) -> None:
    whole = save_tpips(tmp_path / "whole", backbone, use_lora=False)
    assert made(whole).fingerprint
    state = torch.load(whole / "model.pt", weights_only=True)
    state.pop(sorted(state)[0])
    torch.save(state, whole / "model.pt")
    with pytest.raises(WeightsError, match="1 missing keys"):
        made(whole)


def copy_of(checkpoint: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.json", "model.pt"):
        (folder / name).write_bytes((checkpoint / name).read_bytes())
    return folder


def drifted(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    lora = next(name for name in state if "lora_A" in name)
    return {
        "empty": {},
        "unrelated": {"encoder.weight": torch.ones(3)},
        "another prefix": {f"model.{name}": value for name, value in state.items()},
        "without one trained tensor": {name: value for name, value in state.items() if name != lora},
        "one key too many": {**state, "head.weight": torch.ones(3)},
        "another shape": {**state, lora: torch.ones(2, 2)},
        "the backbone's alone": {name: value for name, value in state.items() if "lora" not in name},
    }


@pytest.mark.parametrize("how", drifted({"lora_A": 0}))
def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path, checkpoint: Path, how: str) -> None:
    """The package itself would give the base model's vectors for most of these."""
    folder = copy_of(checkpoint, tmp_path / "other")
    state = torch.load(checkpoint / "model.pt", weights_only=True)
    torch.save(drifted(state)[how], folder / "model.pt")
    with pytest.raises(WeightsError, match=r"model\.pt"):
        made(folder)


@pytest.mark.parametrize("name", [name for name in DAMAGED if name.endswith(".pt")])
def test_a_damaged_checkpoint_is_refused_and_runs_nothing(tmp_path: Path, checkpoint: Path, name: str) -> None:
    folder = copy_of(checkpoint, tmp_path / "other")
    (folder / "model.pt").write_bytes(damaged(tmp_path)[name].read_bytes())
    with pytest.raises(WeightsError, match=r"model\.pt"):
        made(folder)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("no json", "must be JSON"),
        ("[]", "must be JSON"),
        ("{}", "must be JSON"),
        ('{"model": "x"}', "must be JSON"),
        ('{"model": {"type": "early_fusion"}}', "'embedding' is needed"),
        ('{"model": {"type": "embedding", "backbone_family": "other", "name": "."}}', "config.json of the checkpoint"),
    ],
)
def test_a_wrong_config_is_named(tmp_path: Path, checkpoint: Path, config: str, message: str) -> None:
    folder = copy_of(checkpoint, tmp_path / "other")
    (folder / "config.json").write_text(config)
    with pytest.raises(WeightsError, match=message):
        made(folder)


def test_missing_pieces_are_named(tmp_path: Path, checkpoint: Path, hub_cache: Path) -> None:
    folder = copy_of(checkpoint, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    config["model"]["name"] = "Qwen/Qwen3-VL-Embedding-8B"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EncoderUnavailableError, match=r"Qwen/Qwen3-VL-Embedding-8B \(config.json\) is needed"):
        made(folder)
    config["model"]["name"] = str(tmp_path / "gone")
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EncoderUnavailableError, match="gone"):
        made(folder)
    config["model"]["name"] = str(tmp_path)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EncoderUnavailableError, match="backbone"):
        made(folder)
    (folder / "model.pt").unlink()
    with pytest.raises(EncoderUnavailableError, match=r"lacks model.pt"):
        made(folder)
    with pytest.raises(WeightsError, match="is a file"):
        made(folder / "config.json")
    with pytest.raises(EncoderUnavailableError, match="no such folder"):
        made(tmp_path / "nowhere" / "at" / "all")


def test_offline_the_authors_repository_is_named_at_once(hub_cache: Path) -> None:
    start = time.monotonic()
    with pytest.raises(EncoderUnavailableError, match=r"sywang/TPIPS-Embed-Qwen3VL-8B \(config.json, model.pt\)"):
        get_encoder("tpips", device="cpu")
    assert time.monotonic() - start < 5


def test_the_hubs_checkpoint_and_revision_are_used_from_the_cache(
    hub_cache: Path, checkpoint: Path, backbone: Path, encoder: TPIPS
) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    config["model"]["name"] = "Qwen/Tiny"
    files = {"config.json": json.dumps(config).encode(), "model.pt": (checkpoint / "model.pt").read_bytes()}
    put_in_cache(hub_cache, REPOSITORIES["embedding"], files, commit="a" * 40)
    put_in_cache(hub_cache, "Qwen/Tiny", {path.name: path.read_bytes() for path in backbone.iterdir()})
    options = {"device": "cpu", "dtype": "fp32"}
    assert get_encoder("tpips", **options).fingerprint == encoder.fingerprint
    assert get_encoder("tpips", revision="a" * 40, **options).fingerprint == encoder.fingerprint
    with pytest.raises(EncoderUnavailableError, match="--revision b"):
        get_encoder("tpips", revision="b" * 40, **options)


def test_a_checkpoints_own_processor_is_used(tmp_path: Path, checkpoint: Path) -> None:
    from .tiny_models import qwen_processor

    folder = copy_of(checkpoint, tmp_path / "other")
    config = (folder / "config.json").read_text()
    qwen_processor(least=16384, most=1 << 20).save_pretrained(folder)
    (folder / "config.json").write_text(config)
    assert made(folder).pixel_budget.least == 16384


# Pairwise models


@pytest.mark.parametrize("kind", ["early_fusion", "activation_dist"])
def test_reranking_is_the_packages_comparison(
    tmp_path: Path, checkpoint: Path, backbone: Path, pictures: list[Array], kind: str
) -> None:
    import tpips

    folder = save_tpips(tmp_path / kind, backbone, kind, activation_dist_num_probes=2)
    encoder = made(checkpoint, rerank=kind, rerank_weights=folder, rerank_top=7)
    assert encoder.rerank_top == 7
    textures = [load(pixels) for pixels in (pictures[0], pictures[1], pictures[5])]
    values = encoder.rerank(textures[0], textures, "art style")
    package = tpips.load_model(kind, folder, device="cpu").float()
    images = [by_hand(pixels, 4, 64, 64) for pixels in (pictures[0], pictures[1], pictures[5])]
    with torch.inference_mode():
        distances = [float(package.distance(images[0], image, "art style")) for image in images]
    assert values == pytest.approx(1 - np.array(distances), abs=1e-5)
    assert values[0] == pytest.approx(1, abs=1e-5), "a picture is nearest to itself"
    assert values[1:].max() < 0.999
    assert encoder.fingerprint != made(checkpoint).fingerprint
    with pytest.raises(FactorError):
        encoder.rerank(textures[0], textures, "<|im_end|>")


@pytest.mark.parametrize("kind", ["early_fusion", "activation_dist"])
def test_pairs_of_unlike_sizes_do_not_disturb_each_other(
    tmp_path: Path, backbone: Path, pictures: list[Array], kind: str, recwarn: pytest.WarningsRecorder
) -> None:
    folder = save_tpips(tmp_path / kind, backbone, kind, activation_dist_num_probes=2)
    reranker = Reranker(kind, folder, device="cpu", dtype="fp32")
    recwarn.clear()
    textures = [load(pixels) for pixels in pictures]
    together = reranker.similarities(textures[0], textures, "art style")
    alone = [reranker.similarities(textures[0], [texture], "art style")[0] for texture in textures]
    assert np.isfinite(together).all()
    assert together == pytest.approx(alone, abs=1e-5)
    assert reranker.similarities(textures[0], [], "art style").shape == (0,)


def test_reranking_must_be_asked_for(encoder: TPIPS, checkpoint: Path) -> None:
    texture = load(np.zeros((16, 16, 3), np.uint8))
    assert encoder.rerank_top == 0
    with pytest.raises(UsageError, match="no pairwise model"):
        encoder.rerank(texture, [texture], "art style")
    with pytest.raises(UsageError, match="rerank must be"):
        made(checkpoint, rerank="late_fusion")
    with pytest.raises(UsageError, match="rerank_top"):
        made(checkpoint, rerank="early_fusion", rerank_top=0)


def test_neighbours_come_back_in_their_new_order() -> None:
    """Against a search by hand, with a comparer whose similarities are known."""
    textures = [load(np.full((8, 8), grey, np.uint8)) for grey in (0, 50, 100, 150, 100)]

    class Greys:
        def rerank(self, query: Any, candidates: Any, factor: str) -> Any:
            grey = [float(texture.pixels[0, 0, 0]) for texture in (query, *candidates)]
            return np.array([np.nan if other == 150 else -abs(grey[0] - other) for other in grey[1:]])

    found = np.array([[3, 1, 4, 2], [0, 4, -1, -1], [-1, -1, -1, -1]])
    ids, values = rerank_neighbours(Greys(), textures[:3], found, textures, "x")
    assert ids.tolist() == [[1, 2, 4, 3], [0, 4, -1, -1], [-1, -1, -1, -1]]
    assert np.nan_to_num(values, nan=7).tolist() == [[-50, -100, -100, 7], [-50, -50, 7, 7], [7, 7, 7, 7]]
