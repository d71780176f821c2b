"""Shared material: small pictures drawn by code, a fast encoder, a profile of them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import assetscore
from assetscore.encoders.base import TwoStageEncoder
from assetscore.encoders.pixelstats import PixelStats

MODS = Path(os.environ.get("ASSETSCORE_MODS", Path(__file__).parents[2] / "shared" / "data" / "mods"))


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the profiles and caches of who runs it."""
    monkeypatch.setenv("ASSETSCORE_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="session")
def mods() -> Path:
    if not MODS.is_dir():
        pytest.skip(f"the two real mods are not here: {MODS}")
    return MODS


def sprite(seed: int, size: int = 16) -> NDArray[np.uint8]:
    """A round blob in a few related colours on transparency: (size, size, 4)."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size] / (size - 1) - 0.5
    radius = 0.3 + 0.1 * random.random() + 0.05 * np.sin(np.arctan2(y, x) * random.integers(2, 6))
    inside = np.hypot(x, y) < radius
    base = random.integers(60, 200, 3)
    steps = np.digitize(x + y + random.normal(0, 0.05, (size, size)), [-0.3, 0.0, 0.3])
    colours = (base + (steps[..., None] - 1) * 25).clip(0, 255)
    return np.dstack([np.where(inside[..., None], colours, 0), inside * 255]).astype(np.uint8)


class Conditional(TwoStageEncoder):
    """Pixel statistics turned by a rotation that the factor chooses: cheap, two-stage, conditional."""

    name = "conditional-test"
    conditional = True
    fingerprint = "conditional-test/1"

    def __init__(self) -> None:
        self.image_passes = 0
        self._inner = PixelStats()

    def features(self, images):  # type: ignore[no-untyped-def]
        self.image_passes += len(images)
        return self._inner.features(images)

    def condition(self, features, factors):  # type: ignore[no-untyped-def]
        vectors = {}
        for factor in factors:
            random = np.random.default_rng(sum(factor.encode()))
            mixed = features * random.uniform(0.2, 1.8, features.shape[1])
            vectors[factor] = (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32)
        return vectors


@pytest.fixture(scope="session")
def references() -> assetscore.ReferenceSet:
    """Forty items and twenty blocks."""
    items = [(f"item/{i}", "item", sprite(i)) for i in range(40)]
    blocks = [(f"block/{i}", "block", sprite(100 + i, 24)[4:20, 4:20]) for i in range(20)]
    return assetscore.ReferenceSet.from_textures([*items, *blocks], name="drawn")


@pytest.fixture(scope="session")
def profile(references: assetscore.ReferenceSet) -> assetscore.Profile:
    """The drawn references under the conditional encoder."""
    return assetscore.Profile.build(references, Conditional(), name="drawn")
