"""Near copies are found and other art is not; a submission becomes the scorer's items."""

from __future__ import annotations

import numpy as np
import pytest

from assetscore.errors import ImageError
from assetscore.images import Texture, enlarge, load
from assetscore.references import ReferenceSet
from assetscore.submissions import minecraft
from assetscore.submissions.copies import CopyIndex
from assetscore.submissions.items import items

from .makers_games import art, model, png, write_tree


@pytest.fixture(scope="module")
def drawings() -> dict[str, np.ndarray]:
    """40 sprites and blocks that have shapes and shades, as references have."""
    made = {}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        coarse = rng.integers(0, 5, (6, 6))
        shades = np.kron(coarse, np.ones((3, 3), int))[:16, :16]
        palette = np.sort(rng.integers(20, 256, (5, 3)), axis=0).astype(np.uint8)
        pixels = np.dstack([palette[shades], np.full((16, 16), 255, np.uint8)])
        if seed % 2:
            pixels[shades == 0] = 0
        made[f"r{seed}"] = pixels
    return made


@pytest.fixture(scope="module")
def index(drawings) -> CopyIndex:
    return CopyIndex(ReferenceSet.from_textures([(key, "item", pixels) for key, pixels in drawings.items()]))


def recolour(pixels: np.ndarray, seed: int) -> np.ndarray:
    """Every colour to another one, pixel for pixel by a table made apart from the code under test."""
    rng = np.random.default_rng(seed)
    table: dict[tuple[int, ...], list[int]] = {}
    out = pixels.copy()
    for y, x in np.ndindex(pixels.shape[:2]):
        if pixels[y, x, 3]:
            key = tuple(pixels[y, x])
            table.setdefault(key, [*rng.integers(0, 256, 3), 255])
            out[y, x] = table[key]
    return out


def change(pixels: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = pixels.copy()
    ys, xs = np.nonzero(pixels[..., 3])
    for i in rng.choice(len(ys), count, replace=False):
        out[ys[i], xs[i]] = [*rng.integers(0, 20, 3), 255]
    return out


TURNS = {
    "mirrored": lambda p: p[:, ::-1], "upside down": lambda p: p[::-1], "turned": lambda p: np.rot90(p),
    "turned and mirrored": lambda p: np.rot90(p)[:, ::-1],
}  # fmt: skip


@pytest.mark.parametrize("key", ["r0", "r1", "r17", "r38"])
@pytest.mark.parametrize("factor", [1, 3])
def test_near_copies_are_named_with_their_reference(index, drawings, key, factor):
    def found(pixels):
        copy = index.find(load(enlarge(np.ascontiguousarray(pixels), factor)))
        return None if copy is None else (copy.reference, copy.kind, copy.changed)

    original = drawings[key]
    assert found(original) == (key, "equal", 0)
    for turn in TURNS.values():
        assert found(turn(original)) == (key, "turned", 0)
        assert found(turn(recolour(original, 5))) == (key, "recoloured", 0)
        assert found(turn(change(original, 3))) == (key, "edited", 3)
    assert found(recolour(original, 5)) == (key, "recoloured", 0)
    assert found(change(original, 1)) == (key, "edited", 1)
    assert found(change(original, 40)) is None


def test_other_drawings_are_no_copies(index, drawings):
    for key, pixels in drawings.items():
        others = CopyIndex(ReferenceSet.from_textures([(k, "item", p) for k, p in drawings.items() if k != key]))
        assert others.find(load(pixels)) is None


@pytest.mark.parametrize(
    "pixels",
    [
        np.full((16, 16, 4), 255, np.uint8),
        np.zeros((16, 16, 4), np.uint8),
        np.random.default_rng(0).integers(0, 256, (16, 16, 4), np.uint8),
        np.kron(np.eye(2, dtype=np.uint8), np.full((8, 8), 255, np.uint8))[..., None].repeat(4, -1),
    ],
    ids=["one colour", "nothing", "noise", "two colours"],
)
def test_what_is_too_plain_or_too_noisy_is_no_copy(index, pixels):
    assert index.find(Texture.from_rgba(pixels)) is None
    plain = CopyIndex(ReferenceSet.from_textures([("a", "item", np.full((16, 16, 3), 9, np.uint8))]))
    assert plain.find(Texture.from_rgba(pixels)) is None


def test_a_frame_that_copies_a_frame(index, drawings):
    strip = np.concatenate([art(99), drawings["r4"][:, ::-1]])
    copy = index.find(load(png(strip), mcmeta=b'{"animation": {}}'))
    assert str(copy) == "a copy of r4 turned or mirrored"


def test_a_submission_as_items(tmp_path, index, drawings):
    a = "assets/ruby/"
    files = {
        a + "textures/item/own.png": png(77),
        a + "textures/item/mirrored.png": png(drawings["r1"][:, ::-1]),
        a + "textures/item/broken.png": b"",
        a + "textures/item/unused.png": png(78),
    }
    for name in ("own", "mirrored", "broken", "lost"):
        files[a + f"models/item/{name}.json"] = model("item/generated", layer0=f"ruby:item/{name}")
    files[a + "models/item/stick.json"] = model("item/generated", layer0="minecraft:item/stick")
    with minecraft.read(write_tree(tmp_path, files), requests="ids") as submission:
        found = {item.asset_id: item for item in items(submission, copies=index, group="team")}
        assert "ruby:item/unused" not in found
        assert {i.asset_id for i in items(submission, uses=("unreferenced",))} == {"ruby:item/unused"}
    assert {key: item.status for key, item in found.items()} == {
        "ruby:item/own": None,
        "ruby:item/mirrored": None,
        "ruby:item/broken": None,
        "ruby:item/lost": "missing",
        "minecraft:item/stick": "not_custom",
    }
    assert found["ruby:item/own"].asset.flags == ()
    assert found["ruby:item/mirrored"].asset.flags == ("near copy: a copy of r1 turned or mirrored",)
    assert isinstance(found["ruby:item/broken"].asset, ImageError)
    assert found["ruby:item/own"].request == "own"
    assert {(item.game, item.group, item.category) for item in found.values()} == {("minecraft", "team", "item")}
    assert all(item.reason for item in found.values() if item.status)
