"""A small study folder of generated pixel art."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image


def pixel_art(seed, size=16):
    """A blob of a few colours on transparency."""
    rng = np.random.default_rng(seed)
    colours = rng.integers(40, 255, size=(4, 3))
    pixels = np.zeros((size, size, 4), np.uint8)
    inside = np.hypot(*(np.indices((size, size)) - size / 2 + 0.5)) < size / 2 - 2
    pixels[inside, :3] = colours[rng.integers(0, 4, inside.sum())]
    pixels[inside, 3] = 255
    return pixels


@pytest.fixture
def study_folder(tmp_path):
    """Six textures of two categories by manifest, and references for both."""
    folder = tmp_path / "study"
    for category in ("item", "block"):
        (folder / "references" / category).mkdir(parents=True)
        for i in range(5):
            art = pixel_art(sum(map(ord, category)) + i)
            Image.fromarray(art).save(folder / "references" / category / f"{i}.png")
    (folder / "made").mkdir()
    with open(folder / "manifest.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "category", "request", "asset_id"])
        for i in range(6):
            Image.fromarray(pixel_art(900 + i)).save(folder / "made" / f"secret_model_{i}.png")
            request = "<b>ruby & sword</b>" if i % 2 else ""
            writer.writerow([f"made/secret_model_{i}.png", ("item", "block")[i % 2], request, f"asset-{i}"])
    return folder
