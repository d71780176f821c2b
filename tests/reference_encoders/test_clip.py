"""open_clip towers: against open_clip itself where plain, and for their algebra where conditioned by text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch

from assetscore.encoders import get_encoder
from assetscore.encoders._phrases import VOCABULARY, phrases_of
from assetscore.encoders._subspace import project, subspace
from assetscore.encoders._tower import CLIP_MEAN, CLIP_STD
from assetscore.encoders.clip import CLIP, anchors, parse_name
from assetscore.errors import EncoderError, EncoderUnavailableError, UnknownEncoderError, UsageError, WeightsError

from .test_csd import picture_of
from .test_weights import put_in_cache

Array = np.ndarray[Any, Any]


def made(path: Path, **options: Any) -> Any:
    return get_encoder(f"clip:tiny-clip/{path}", device="cpu", **{"dtype": "fp32", **options})


def reference(path: Path, pixels: Array, quickgelu: bool = False, mean: Any = CLIP_MEAN, std: Any = CLIP_STD) -> Array:
    """open_clip's own vector of one texture that was prepared by hand."""
    model = open_clip.create_model("tiny-clip", pretrained=str(path), force_quick_gelu=quickgelu).eval()
    picture = torch.from_numpy((picture_of(pixels) / 255 - mean) / std).permute(2, 0, 1)[None].float()
    with torch.no_grad():
        return model.encode_image(picture, normalize=True)[0].numpy()


def test_plain_vectors_are_open_clips(tiny_clip: Path, pictures: list[Array]) -> None:
    encoder = made(tiny_clip)
    vectors = encoder.embed(pictures[:4], ["art style", "object class"])
    assert not encoder.conditional
    assert np.array_equal(vectors["art style"], vectors["object class"])
    for row, pixels in zip(vectors["art style"], pictures, strict=False):
        assert row == pytest.approx(reference(tiny_clip, pixels), abs=2e-6)


def test_weights_may_be_named_apart(tiny_clip: Path, pictures: list[Array]) -> None:
    apart = get_encoder("clip:tiny-clip", weights=tiny_clip, device="cpu", dtype="fp32")
    assert apart.fingerprint == made(tiny_clip).fingerprint


def tagged(monkeypatch: pytest.MonkeyPatch, **config: Any) -> None:
    """Give "tiny-clip" a pretrained tag "web" on the hub."""
    config = {"hf_hub": "me/tiny/", "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4), **config}
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "tiny-clip", {"web": config})


@pytest.mark.parametrize("quickgelu", [False, True])
def test_a_tag_brings_its_activation_and_normalisation(
    tiny_clip: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch, pictures: list[Array], quickgelu: bool
) -> None:
    tagged(monkeypatch, quick_gelu=quickgelu)
    put_in_cache(hub_cache, "me/tiny", {"open_clip_model.safetensors": tiny_clip.read_bytes()})
    encoder = get_encoder("clip:tiny-clip/web", device="cpu", dtype="fp32")
    row = encoder.embed(pictures[:1], ["x"])["x"][0]
    options = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}
    assert row == pytest.approx(reference(tiny_clip, pictures[0], quickgelu, **options), abs=2e-6)
    assert np.abs(row - reference(tiny_clip, pictures[0], not quickgelu, **options)).max() > 1e-4


def test_offline_the_repository_and_file_are_named(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch, tiny_clip: Path
) -> None:
    tagged(monkeypatch)
    with pytest.raises(EncoderUnavailableError, match=r"me/tiny \(open_clip_model.safetensors"):
        get_encoder("clip:tiny-clip/web", device="cpu")
    tagged(monkeypatch, hf_hub="", url="https://example.org/weights-abc.pt")
    with pytest.raises(EncoderUnavailableError, match=r"https://example.org/weights-abc.pt"):
        get_encoder("clip:tiny-clip/web", device="cpu")


def test_names_are_parsed(tiny_clip: Path) -> None:
    assert parse_name("ViT-B-32//a/b.pt") == ("ViT-B-32", "/a/b.pt")
    for name, message in {
        "": "as in 'clip:ViT-B-32/openai', got ''",
        "ViT-B32/openai": "got 'ViT-B32'; near are: .*ViT-B-32",
    }.items():
        with pytest.raises(UnknownEncoderError, match=message):
            get_encoder(f"clip:{name}" if name else "clip")
    with pytest.raises(UnknownEncoderError, match="tags are: openai"):
        get_encoder("clip:ViT-B-32/nothing")
    for query, message in {
        "conditioning=clay": "conditioning must be",
        "rank=0": "rank must be",
        "rank=x": "rank must be a whole number",
        "quickgelu=yes": "quickgelu must be true or false",
        "mode=fast": "no option 'mode'; it has: weights, conditioning",
    }.items():
        with pytest.raises(UsageError, match=message):
            get_encoder(f"clip:tiny-clip/{tiny_clip}?{query}")


def test_weights_of_another_architecture_are_refused(tiny_clip: Path) -> None:
    with pytest.raises(WeightsError, match="no weights of clip:RN50"):
        get_encoder(f"clip:RN50/{tiny_clip}", device="cpu")


def test_an_architecture_that_needs_numbers_while_it_is_made_is_made_all_the_same(
    tiny_clip: Path, pictures: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = made(tiny_clip).features(pictures)
    create = open_clip.create_model

    def needs_numbers(*args: Any, **options: Any) -> Any:
        torch.zeros(1).item()
        return create(*args, **options)

    monkeypatch.setattr(open_clip, "create_model", needs_numbers)
    assert np.array_equal(made(tiny_clip).features(pictures), expected)


def planted(random: np.random.Generator, dimension: int = 40, rank: int = 5, count: int = 60) -> tuple[Array, Array]:
    """Phrases that differ in a planted rank-dimensional subspace only, far from the origin, and its basis."""
    basis = np.linalg.qr(random.normal(size=(dimension, rank)))[0]
    return 7 * random.normal(size=dimension) + random.normal(size=(count, rank)) @ basis.T, basis


def test_a_planted_subspace_is_recovered() -> None:
    phrases, basis = planted(np.random.default_rng(0))
    found = subspace(phrases, rank=16)
    assert found.shape == (40, 5), "no more directions than the phrases span"
    assert found.T @ found == pytest.approx(np.eye(5), abs=1e-9)
    assert found @ found.T == pytest.approx(basis @ basis.T, abs=1e-9), "the same projection"
    assert subspace(phrases, rank=2).shape == (40, 2)
    assert subspace(phrases[::-1] + 3, rank=16) == pytest.approx(found, abs=1e-9), "neither order nor mean matters"


def test_the_top_directions_are_those_of_most_variance() -> None:
    random = np.random.default_rng(1)
    scales = np.array([9.0, 5, 3, 1, 0.5])
    basis = np.linalg.qr(random.normal(size=(30, 5)))[0]
    phrases = random.normal(size=(4000, 5)) * scales @ basis.T
    assert np.abs(np.diag(subspace(phrases, rank=3).T @ basis[:, :3])) == pytest.approx(1, abs=0.01)


def test_phrases_that_do_not_differ_are_an_error() -> None:
    with pytest.raises(EncoderError, match="span nothing"):
        subspace(np.ones((4, 8)), 2)


def test_the_projected_cosine_is_the_cosine_of_planted_coordinates() -> None:
    random = np.random.default_rng(2)
    phrases, basis = planted(random)
    inside = random.normal(size=(10, 5))
    outside = random.normal(size=(10, 40)) @ (np.eye(40) - basis @ basis.T)
    mean = random.normal(size=40)
    rows = project(mean + inside @ basis.T + 100 * outside, mean, subspace(phrases, 16))
    unit = inside / np.linalg.norm(inside, axis=1, keepdims=True)
    assert rows @ rows.T == pytest.approx(unit @ unit.T, abs=1e-5)
    assert np.isnan(project(mean[None], mean, subspace(phrases, 16))).all(), "nothing of it lies in the subspace"


def test_the_encoder_projects_on_the_phrases_span(
    tiny_clip: Path, pictures: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = made(tiny_clip, conditioning="subspace", rank=4)
    assert encoder.conditional
    phrases, basis = planted(np.random.default_rng(3), dimension=32, rank=4)
    monkeypatch.setattr(encoder, "text_vectors", lambda texts: phrases)
    plain = made(tiny_clip)
    vectors = plain.embed(pictures, ["x"])["x"].astype(float) - plain.embed(anchors(), ["x"])["x"].mean(axis=0)
    coordinates = vectors @ basis
    coordinates /= np.linalg.norm(coordinates, axis=1, keepdims=True)
    rows = encoder.embed(pictures, ["art style"])["art style"]
    assert rows @ rows.T == pytest.approx(coordinates @ coordinates.T, abs=1e-4)


def test_text_vectors_are_open_clips(tiny_clip: Path) -> None:
    encoder = made(tiny_clip, conditioning="subspace")
    texts = [f"a picture of {i} things" for i in range(70)]
    model = open_clip.create_model("tiny-clip", pretrained=str(tiny_clip)).eval()
    with torch.no_grad():
        expected = model.encode_text(open_clip.get_tokenizer("tiny-clip")(texts), normalize=True).numpy()
    assert encoder.text_vectors(texts) == pytest.approx(expected, abs=2e-6)


def test_the_image_pass_runs_once_for_many_factors(
    tiny_clip: Path, pictures: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = made(tiny_clip, conditioning="subspace", batch_size=4)
    passes = []
    forward = CLIP.forward
    monkeypatch.setattr(CLIP, "forward", lambda self, x: (passes.append(len(x)), forward(self, x))[1])
    factors = ["art style", "object class", "ruby sword", "material", "a machine of brass"]
    vectors = encoder.embed(pictures, factors)
    assert passes == [4, 2]
    assert set(vectors) == set(factors)
    similarities = [vectors[factor] @ vectors[factor].T for factor in factors]
    assert min(np.abs(a - b).max() for i, a in enumerate(similarities) for b in similarities[:i]) > 1e-3


def test_a_score_does_not_depend_on_the_company(tiny_clip: Path, pictures: list[Array]) -> None:
    encoder = made(tiny_clip, conditioning="subspace")
    together = encoder.embed(pictures, ["art style"])["art style"]
    alone = np.concatenate([encoder.embed([pixels], ["art style"])["art style"] for pixels in pictures])
    assert together == pytest.approx(alone, abs=1e-5)


def test_the_mean_can_come_from_references(tiny_clip: Path, pictures: list[Array]) -> None:
    encoder = made(tiny_clip, conditioning="subspace")
    features = encoder.features(pictures)
    other = encoder.with_mean(features)
    assert other.fingerprint != encoder.fingerprint
    assert other.fingerprint == encoder.with_mean(features[::-1]).fingerprint, "in whatever order"
    assert other.fingerprint != encoder.with_mean(features[:5]).fingerprint
    expected = project(features, features.astype(float).mean(axis=0), encoder.basis("art style"))
    assert other.condition(features, ["art style"])["art style"] == pytest.approx(expected, abs=1e-6)
    with pytest.raises(UsageError, match="features must be"):
        encoder.with_mean(features[:, :3])
    with pytest.raises(UsageError, match="subspace"):
        made(tiny_clip).with_mean(features)


def test_own_phrases_replace_the_vocabulary(tiny_clip: Path, pictures: list[Array]) -> None:
    texts = {"mood": ("cheerful", "gloomy", "scary")}
    encoder = made(tiny_clip, conditioning="subspace", phrases=texts)
    assert encoder.embed(pictures, ["mood"])["mood"].shape == (6, 2)
    assert encoder.fingerprint != made(tiny_clip, conditioning="subspace").fingerprint
    for wrong in ({"mood": ("one",)}, {"mood": "cheerful"}, {"mood": ("same", "same")}):
        with pytest.raises(UsageError, match="phrases for 'mood'"):
            made(tiny_clip, conditioning="subspace", phrases=wrong)


def test_the_vocabulary_has_no_doubles_and_requests_stand_among_objects() -> None:
    for subjects in VOCABULARY.values():
        assert len(set(subjects)) == len(subjects) >= 10
    assert phrases_of("Art Style") == phrases_of("art style")
    assert set(phrases_of("object class")) < set(phrases_of("ruby sword"))
