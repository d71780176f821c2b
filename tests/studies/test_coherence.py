"""A set against itself: equal to brute force, the odd one first, duplicates and frames never their own neighbours."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from PIL import Image

from assetscore.errors import UsageError
from assetscore.studies.coherence import coherence, coherence_of_vectors

from .planted import Projection, art


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def brute(vectors, groups, k):
    scores = []
    for i, own in enumerate(groups):
        others = sorted((float(vectors[i] @ v) for v, g in zip(vectors, groups, strict=True) if g != own), reverse=True)
        scores.append(sum(others[:k]) / k)
    return scores


@pytest.mark.parametrize("k", [1, 3, 5, 50])
def test_equals_brute_force(k):
    rng = np.random.default_rng(0)
    vectors = unit(rng.normal(size=(12, 5)))
    ids = [f"a{i}" for i in range(12)]
    groups = [0, 0, 0, *range(1, 10)]
    result = coherence_of_vectors(vectors, ids, k, groups)
    assert result.k == min(k, 9)
    expected = dict(zip(ids, brute(vectors, groups, result.k), strict=True))
    assert {m.asset_id: m.similarity for m in result.members} == pytest.approx(expected, abs=1e-6)
    assert [m.similarity for m in result.members] == sorted(m.similarity for m in result.members)
    median = np.median(list(expected.values()))
    mad = 1.4826 * np.median(np.abs(np.array(list(expected.values())) - median))
    assert result.members[0].z == pytest.approx((min(expected.values()) - median) / mad, rel=1e-4)


def test_frames_are_averaged_and_never_their_own_neighbours():
    vectors = unit(np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [0.1, 1.0]]))
    result = coherence_of_vectors(vectors, ["sheet", "sheet", "b", "c"], k=1)
    sheet = next(m for m in result.members if m.asset_id == "sheet")
    assert sheet.similarity == pytest.approx(np.mean([vectors[0] @ vectors[3], vectors[1] @ vectors[3]]), abs=1e-6)


def test_the_odd_one_comes_first(tmp_path):
    rng = np.random.default_rng(1)
    centre, other = rng.uniform(40, 220, (2, 8, 8, 3))
    assets = [(f"a{i}", art(rng, centre, 25)) for i in range(15)]
    assets += [("odd", art(rng, other, 25)), ("twin", assets[0][1]), ("blank", np.zeros((8, 8, 4), np.uint8))]
    assets.append(("broken", b"no image"))
    result = coherence(assets, Projection(), k=3)
    assert result.members[0].asset_id == "odd"
    assert result.members[0].z < -3
    assert dict(result.skipped).keys() == {"blank", "broken"}
    by_id = {m.asset_id: m for m in result.members}
    assert by_id["twin"].similarity == pytest.approx(by_id["a0"].similarity, abs=1e-6)
    assert not {"a0", "twin"} & set(by_id["twin"].nearest)
    assert result.groups == 16
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["members"][0]["asset_id"] == "odd"


def test_a_folder_with_the_shipped_encoder(tmp_path):
    rng = np.random.default_rng(2)
    for i in range(5):
        Image.fromarray(art(rng, np.full((8, 8, 3), 120.0), 30)).save(tmp_path / f"{i}.png")
    result = coherence([(path.name, path) for path in sorted(tmp_path.iterdir())], "pixelstats")
    assert (len(result.members), result.k) == (5, 4)
    assert result.encoder.startswith("pixelstats")


def test_a_set_without_spread_has_no_z():
    result = coherence_of_vectors(np.eye(4), list("abcd"), k=2)
    assert all(math.isnan(m.z) for m in result.members)
    assert result.to_dict()["members"][0]["z"] is None


@pytest.mark.parametrize(
    ("vectors", "ids", "groups"),
    [(np.eye(1), ["a"], None), (np.eye(3), ["a", "b", "c"], ["g", "g", "g"]), (np.eye(2), ["a"], None)],
)
def test_wrong_use_is_named(vectors, ids, groups):
    with pytest.raises(UsageError):
        coherence_of_vectors(vectors, ids, 1, groups)


def test_assets_that_cannot_make_a_set(tmp_path):
    with pytest.raises(UsageError, match="comes twice"):
        coherence([("a", np.eye(8, dtype=np.uint8)), ("a", np.eye(8, dtype=np.uint8))])
    with pytest.raises(UsageError, match="no texture"):
        coherence([("a", tmp_path / "none.png")])
