"""A small profile and results from a test encoder that listens to the factor, with families of unequal size."""

from __future__ import annotations

import hashlib

import numpy as np

from assetscore.encoders.base import Encoder, EncoderInfo, as_textures, check_factors, register
from assetscore.images import load
from assetscore.profile import Profile
from assetscore.references import Reference, ReferenceSet
from assetscore.scorer import Item, Scorer
from assetscore.table import ResultTable

STYLE, OBJECT = "art style", "object class"


class Projection(Encoder):
    """Pixels through a random matrix that the factor seeds; unit rows."""

    name, fingerprint, metric, conditional = "projection", "projection:test", "cosine", True

    def check_factor(self, factor):
        return factor

    def embed(self, images, factors):
        pixels = np.stack([t.pixels[:8, :8, :3].reshape(-1) for t in as_textures(images)]).astype(np.float64)
        result = {}
        for factor in check_factors(factors):
            seed = int.from_bytes(hashlib.sha256(factor.encode()).digest()[:4], "big")
            rows = (pixels / 255 - 0.4) @ np.random.default_rng(seed).normal(size=(pixels.shape[1], 6))
            result[factor] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return result


# a saved profile finds its encoder by name when a request has to be calibrated
register(EncoderInfo("projection", Projection, "for tests", "Apache-2.0", True, "nothing"))


def art(rng, centre, noise):
    return np.clip(centre + rng.normal(scale=noise, size=(8, 8, 3)), 0, 255).astype(np.uint8)


def planted(seed=0):
    """(profile, results): two categories of 70 and 33 references, 60 assets of three groups, some without a file."""
    rng = np.random.default_rng(seed)
    centres = {"item": rng.uniform(40, 220, (8, 8, 3)), "block": rng.uniform(40, 220, (8, 8, 3))}
    references = [
        Reference(f"{c}/{i}", c, load(art(rng, centres[c], 40)), family=f"{c}-{i // 3}" if i < 18 else "")
        for c, n in (("item", 70), ("block", 33))
        for i in range(n)
    ]
    profile = Profile.build(ReferenceSet.build(references, "planted"), Projection())
    items = []
    for i in range(60):
        category, group = ("item", "block")[i % 2], ("good", "fair", "poor")[i % 3]
        noise = {"good": 40, "fair": 55, "poor": 80}[group]
        asset = art(rng, centres[category], noise) if i % 11 else np.zeros((8, 8, 4), np.uint8)
        if i in (7, 20):
            items.append(Item(f"no such file {i}.png", category, asset_id=f"a{i}", group=group))
        else:
            items.append(Item(asset, category, "ruby" if i % 5 == 0 else None, f"a{i}", group=group))
    table = ResultTable.from_scores(Scorer(profile).stream(items), profile)
    vectors = {}
    for item in items:
        if isinstance(item.asset, np.ndarray):
            factors = (STYLE, item.request or OBJECT)
            vectors[item.asset_id] = {f: v[0] for f, v in Projection().embed([item.asset], factors).items()}
    return profile, table, vectors
