"""The embedded encoder: input, text side, conditioning, weights, and what the shipped weights can tell apart."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from assetscore import images
from assetscore.encoders import TwoStageEncoder, get_encoder
from assetscore.encoders.lite import Lite, conditioning, pixels
from assetscore.encoders.lite.encoder import DEFAULT_WEIGHTS
from assetscore.encoders.lite.text import TextTable, pieces
from assetscore.errors import EncoderUnavailableError, FactorError, WeightsError

REFERENCES = Path(__file__).parents[1] / "references" / "dungeon-tiles"
STYLE, OBJECT = "art style", "object class"


@pytest.fixture(scope="module")
def lite() -> Lite:
    encoder = get_encoder("lite")
    assert isinstance(encoder, Lite)
    return encoder


def sprite(seed: int, height: int = 16, width: int = 16) -> np.ndarray:
    """A random picture with some of it transparent."""
    rng = np.random.default_rng(seed)
    rgba = rng.integers(0, 256, (height, width, 4), np.uint8)
    rgba[..., 3] = np.where(rng.random((height, width)) < 0.3, 0, rng.choice([255, 255, 90], (height, width)))
    rgba[height // 2, width // 2, 3] = 255
    rgba[rgba[..., 3] == 0] = 0
    return rgba


SHAPES = [(16, 16), (32, 32), (8, 8), (1, 1), (16, 1), (1, 40), (20, 33), (64, 64), (63, 64), (100, 40), (300, 7)]


# Input


@pytest.mark.parametrize("shape", SHAPES)
def test_a_canvas_is_the_librarys_own_canvas_over_grey(shape: tuple[int, int]) -> None:
    rgba = sprite(1, *shape)
    made = pixels.canvases(*pixels.slots([rgba]))[0]
    if max(shape) <= 64:
        expected = images.canvas(rgba, 64)
        assert (made[..., 3] == expected[..., 3]).all()
        assert (made[..., :3] == images.composite(expected)).all()
    assert made.shape == (64, 64, 4)


def test_a_flip_mirrors_the_picture_and_a_shift_moves_it() -> None:
    slot, size = pixels.slots([sprite(2, 20, 14)])
    plain = pixels.canvases(slot, size)[0]
    flipped = pixels.canvases(slot, size, np.array([True]))[0]
    left = (64 - 14 * 3) // 2
    assert (flipped[:, left : left + 42] == plain[:, left : left + 42][:, ::-1]).all()
    moved = pixels.canvases(slot, size, shift=np.array([[2, -3]]))[0]
    assert (moved[2:, :-3] == plain[:-2, 3:]).all()


def test_statistics_do_not_depend_on_the_batch_or_on_neighbouring_sizes() -> None:
    pictures = [sprite(i, *shape) for i, shape in enumerate(SHAPES)]
    together = pixels.statistics(*pixels.slots(pictures))
    alone = np.concatenate([pixels.statistics(*pixels.slots([p])) for p in pictures])
    assert (together == alone).all()
    assert together.shape == (len(SHAPES), pixels.STATISTICS)


def test_statistics_count_colours_and_steps_as_a_plain_loop_does() -> None:
    rgba = sprite(3, 12, 10) // 64 * 64
    rgba[..., 3] = np.where(rgba[..., 3] > 0, 255, 0)
    rgba[0, 0] = 255
    rgba[rgba[..., 3] == 0] = 0
    row = pixels.statistics(*pixels.slots([rgba]))[0]
    seen = [tuple(p[:3].tolist()) for line in rgba for p in line if p[3]]
    assert row[28] == pytest.approx(np.log2(len(set(seen))) / 12)
    assert row[29] == pytest.approx(len(set(seen)) / len(seen))
    assert row[34] == pytest.approx(len(seen) / 120)
    steps = []
    for y in range(12):
        for x in range(10):
            for dy, dx in ((1, 0), (0, 1)):
                if y + dy < 12 and x + dx < 10 and rgba[y, x, 3] and rgba[y + dy, x + dx, 3]:
                    steps.append(np.abs(rgba[y, x, :3].astype(int) - rgba[y + dy, x + dx, :3]).max())
    assert row[36] == pytest.approx(np.sqrt(np.mean(np.array(steps) == 0)))
    assert row[43] == pytest.approx(np.sqrt(np.mean(np.array(steps) >= 96)))


def test_statistics_are_finite_for_what_is_hardly_a_picture() -> None:
    pictures = [np.zeros((5, 7, 4), np.uint8), np.full((1, 1, 4), 255, np.uint8), np.full((64, 64, 4), 255, np.uint8)]
    assert np.isfinite(pixels.statistics(*pixels.slots(pictures))).all()


# Text


def table() -> TextTable:
    rng = np.random.default_rng(0)
    words = ["art", "style", "object", "class", "ruby", "sword", "apple", "red", "##s", "s", "##word"]
    vectors = rng.normal(size=(len(words), 128)).astype(np.float32)
    return TextTable({w: i for i, w in enumerate(words)}, vectors, np.zeros(128, np.float32), ("sword", "red apple"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ruby sword", ["ruby", "sword"]),
        ("RubySwords", ["ruby", "sword", "##s"]),
        ("ruby_sword-RED", ["ruby", "sword", "red"]),
        ("r\u00fcby sw\u00f6rd", ["ruby", "sword"]),
        ("sword", ["sword"]),  # the longest piece wins over "s" + "##word"
        ("??? \u2603", []),
        ("", []),
    ],
)
def test_pieces(text: str, expected: list[str]) -> None:
    vocabulary = table().vocabulary
    assert pieces(text, vocabulary) == [vocabulary[w] for w in expected]


def test_the_vocabulary_is_split_as_the_published_tokenizer_does(lite: Lite) -> None:
    # From BertTokenizer ("bert-base-uncased"): the pieces of texts whose split is not obvious.
    known = {
        "unaffable": ["una", "##ffa", "##ble"],
        "embeddings": ["em", "##bed", "##ding", "##s"],
        "gunpowder": ["gunpowder"],
    }
    vocabulary = lite._table.vocabulary
    for text, expected in known.items():
        assert pieces(text, vocabulary) == [vocabulary[w] for w in expected]


def test_a_table_survives_its_file() -> None:
    before = table()
    after = TextTable.from_tensors(before.to_tensors())
    assert after.vocabulary == before.vocabulary
    assert after.things == before.things
    texts = ["ruby sword", "apple", "nothing known: \u2603"]
    assert np.abs(after(texts) - before(texts)).max() < 0.02
    assert not after(["\u2603"]).any()
    assert np.linalg.norm(after(["ruby sword"])) == pytest.approx(1, abs=1e-5)


# Conditioning


@pytest.mark.parametrize("factor", ["art style", "Art  Style", "colour palette", "shading technique", "pixel art"])
def test_questions_about_style(lite: Lite, factor: str) -> None:
    asked = lite.senses(factor)
    assert asked.style > 0.9
    assert asked.word is None


@pytest.mark.parametrize("factor", ["object class", "what the picture shows", "silhouette", "type of thing"])
def test_questions_about_the_object(lite: Lite, factor: str) -> None:
    asked = lite.senses(factor)
    assert asked.style < 0.1
    assert asked.word is None


@pytest.mark.parametrize(
    "factor", ["sword", "ruby sword", "red apple", "paint brush", "colorful bird", "torch", "iron ore block", "zzqx"]
)
def test_names_of_things(lite: Lite, factor: str) -> None:
    asked = lite.senses(factor)
    assert asked.style == 0
    assert asked.word is not None


def test_condition_weighs_the_heads_and_nothing_else(lite: Lite) -> None:
    features = lite.features([sprite(i) for i in range(6)])
    before = lite.condition(features, [STYLE, OBJECT, "sword"])
    for vectors in before.values():
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(6), abs=1e-5)
    changed = features.copy()
    changed[:, 160:416] = np.roll(changed[:, 160:416], 1, axis=0)  # the objects of other pictures
    after = lite.condition(changed, [STYLE, OBJECT])
    assert (after[STYLE] == before[STYLE]).all()
    assert np.abs(after[OBJECT] - before[OBJECT]).max() > 0.01
    # The weights, spelled out.
    similarity = before[STYLE] @ before[STYLE].T
    style, damage, thing, text, counted = np.split(features, [128, 160, 288, 416], axis=1)
    w, u, v = conditioning.DAMAGE_WEIGHT, conditioning.STATISTICS_WEIGHT, conditioning.TEXT_WEIGHT
    expected = (style @ style.T + w * damage @ damage.T + u * counted @ counted.T) / (1 + w + u)
    assert similarity == pytest.approx(expected, abs=1e-5)
    similarity = before[OBJECT] @ before[OBJECT].T
    assert similarity == pytest.approx((thing @ thing.T + v * text @ text.T) / (1 + v), abs=1e-5)


def test_factors_and_features_are_checked(lite: Lite) -> None:
    features = lite.features([sprite(0)])
    for bad in ("", "   "):
        with pytest.raises(FactorError):
            lite.condition(features, [bad])
    with pytest.raises(FactorError):
        lite.text_vector("\u2603")
    with pytest.raises(ValueError, match="491"):
        lite.condition(features[:, :100], [STYLE])
    assert np.isnan(lite.condition(np.full((1, 491), np.nan, np.float32), [STYLE])[STYLE]).all()


# The encoder


def test_it_is_the_two_stage_encoder_that_the_registry_makes(lite: Lite) -> None:
    assert isinstance(lite, TwoStageEncoder)
    assert lite.name == "lite"
    assert lite.conditional
    assert lite.metric == "cosine"
    assert lite.fingerprint == Lite().fingerprint
    assert lite.fingerprint != Lite(dtype="bfloat16").fingerprint


@pytest.mark.parametrize("batch_size", [1, 2, 7, 64])
def test_a_picture_gives_the_same_vector_in_any_batch_and_order(lite: Lite, batch_size: int) -> None:
    pictures = [sprite(i, *SHAPES[i % len(SHAPES)]) for i in range(40)]
    together = lite.embed(pictures, [STYLE, OBJECT])
    again = lite.embed(pictures, [STYLE, OBJECT])
    order = np.random.default_rng(0).permutation(40)
    other = Lite(batch_size=batch_size).embed([pictures[i] for i in order], [STYLE, OBJECT])
    for factor in (STYLE, OBJECT):
        assert (together[factor] == again[factor]).all()
        mine, theirs = together[factor][order], other[factor]
        assert np.abs(mine @ mine.T - theirs @ theirs.T).max() <= lite.batch_noise


def test_only_what_is_seen_counts(lite: Lite) -> None:
    rgba = sprite(5)
    hidden = rgba.copy()
    hidden[rgba[..., 3] == 0] = [200, 10, 30, 0]
    large = rgba.repeat(3, 0).repeat(3, 1)
    vectors = lite.features([rgba, hidden, large])
    assert np.abs(vectors[1:] - vectors[0]).max() < 1e-5


@pytest.mark.parametrize("shape", SHAPES)
def test_every_size_has_finite_features(lite: Lite, shape: tuple[int, int]) -> None:
    features = lite.features([sprite(9, *shape)])
    assert features.shape == (1, 491)
    assert np.isfinite(features).all()


def test_no_pictures_no_rows(lite: Lite) -> None:
    assert lite.features([]).shape == (0, 491)
    assert lite.embed([], [STYLE])[STYLE].shape[0] == 0


def test_text_and_pictures_share_a_space(lite: Lite) -> None:
    text = lite.text_vector("sword")
    image = lite.image_text_vectors(lite.features([sprite(1)]))
    assert text.shape == image.shape[1:] == (128,)
    assert np.linalg.norm(text) == pytest.approx(1, abs=1e-5)
    assert text @ lite.text_vector("swords") > text @ lite.text_vector("apple") + 0.2


# Weights


def test_the_weights_are_small_and_load_fast_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert DEFAULT_WEIGHTS.stat().st_size <= 15_000_000
    Lite()
    began = time.perf_counter()
    Lite()
    assert time.perf_counter() - began < 3  # 0.5 s on an idle machine; see benchmarks/lite_speed.py


def test_importing_the_encoders_loads_no_torch() -> None:
    code = "import sys, assetscore.encoders.lite; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("share", [0, 0.0000004, 0.001, 0.5, 0.999999])
def test_a_truncated_file_is_named(tmp_path: Path, share: float) -> None:
    path = tmp_path / "cut.safetensors"
    data = DEFAULT_WEIGHTS.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(WeightsError, match=r"cut\.safetensors"):
        Lite(path)


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b"\x80\x04pickle", b"\xff" * 64])
def test_what_is_no_safetensors_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.safetensors"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"other\.safetensors"):
        Lite(path)


@pytest.mark.parametrize("fault", ["missing", "shape", "extra", "nan", "table"])
def test_weights_of_another_network_are_refused(tmp_path: Path, fault: str) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = load_file(DEFAULT_WEIGHTS)
    name = "trunk.blocks.4.project.weight"
    if fault == "missing":
        del tensors[name]
    elif fault == "shape":
        tensors[name] = np.ascontiguousarray(tensors[name][:-1])
    elif fault == "extra":
        tensors["something.else"] = np.zeros(3, np.float32)
    elif fault == "nan":
        tensors[name] = tensors[name] * np.float16(np.nan)
    else:
        name = "text table"
        del tensors["table.scale"]
    path = tmp_path / "wrong.safetensors"
    save_file(tensors, path)
    with pytest.raises(WeightsError, match="something.else" if fault == "extra" else name):
        Lite(path)


def test_a_missing_file_and_wrong_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailableError, match="nowhere"):
        Lite(tmp_path / "nowhere.safetensors")
    with pytest.raises(ValueError, match="dtype"):
        Lite(dtype="float16")
    with pytest.raises(ValueError, match="batch_size"):
        Lite(batch_size=0)


# What the shipped weights can do: loose bounds, far above what an encoder that ignores the question reaches


def test_the_references_tell_damage_from_their_own(lite: Lite) -> None:
    from assetscore.encoders.lite.damage import DAMAGE
    from assetscore.encoders.lite.evaluate import auroc
    from assetscore.neighbours import knn_mean

    paths = sorted((REFERENCES / "item").glob("*.png"))[::3]
    assert len(paths) > 60
    natives = [images.load(path).native for path in paths]
    own = lite.embed(natives, [STYLE])[STYLE]
    good = knn_mean(own, own, 5, np.arange(len(own))).S
    rng = np.random.default_rng(0)
    for name in ("resample", "noise", "smooth x4", "mean colour", "half pixel"):
        spoiled = lite.embed([DAMAGE[name](native, rng) for native in natives], [STYLE])[STYLE]
        assert auroc(good, knn_mean(spoiled, own, 5, np.arange(len(own))).S) > 0.85, name
