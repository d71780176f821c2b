"""The reference encoders in the library's own pipeline: profile, save, load, score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import assetscore
from assetscore.encoders import get_encoder

from ..conftest import sprite


@pytest.mark.parametrize("kind", ["tpips", "clip subspace", "clip", "csd", "lpips"])
def test_a_profile_is_built_saved_loaded_and_scores(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    names = {
        "tpips": lambda: f"tpips:{request.getfixturevalue('checkpoint')}?shared_prefix=true",
        "clip": lambda: f"clip:tiny-clip/{request.getfixturevalue('tiny_clip')}",
        "clip subspace": lambda: f"clip:tiny-clip/{request.getfixturevalue('tiny_clip')}?conditioning=subspace&rank=6",
        "csd": lambda: f"csd:{request.getfixturevalue('csd_file')}",
        "lpips": lambda: f"lpips:alex?weights={request.getfixturevalue('alex_file')}",
    }
    encoder = get_encoder(names[kind](), device="cpu")
    items = [(f"item/{i}", "item", sprite(i)) for i in range(24)]
    references = assetscore.ReferenceSet.from_textures(items, name="drawn")
    profile = assetscore.Profile.build(references, encoder, name="drawn")
    profile.save(tmp_path / "profile")
    scorer = assetscore.Scorer.load(tmp_path / "profile")  # finds its encoder by its name

    copy, own, noise = scorer.score_many(
        [
            (sprite(3), "item"),
            (sprite(77), "item", "ruby sword"),
            (np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8), "item"),
        ]
    )
    assert copy.status == "not_custom"
    assert own.status == noise.status == "scored"
    assert own.style.similarity > noise.style.similarity, "a sprite of the same kind is nearer than noise"
    assert (own.semantic is not None) == encoder.conditional
    if encoder.conditional:
        assert own.semantic.factor == "ruby sword"
        assert noise.semantic.factor == "object class"
    again = scorer.score(sprite(77), "item")
    assert again.style.similarity == pytest.approx(own.style.similarity, abs=encoder.batch_noise)
