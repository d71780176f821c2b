"""What holds for every image tower: csd, clip plain and conditioned, lpips."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from assetscore.encoders import available, get_encoder
from assetscore.encoders._tower import ImageTower
from assetscore.errors import FactorError

Array = np.ndarray[Any, Any]
Maker = Callable[..., Any]
FACTORS = ["art style", "ruby sword"]


@pytest.fixture(params=["csd", "csd crop", "clip", "clip subspace", "lpips"])
def maker(request: pytest.FixtureRequest) -> Maker:
    """Makes an encoder on its tiny weights."""
    kind = request.param
    file: Path = request.getfixturevalue({"cs": "csd_file", "cl": "tiny_clip", "lp": "alex_file"}[kind[:2]])
    fixed: dict[str, Any] = {"device": "cpu", "dtype": "fp32", "weights": file}
    if "crop" in kind:
        fixed["preprocessing"] = "crop"
    if "subspace" in kind:
        fixed["conditioning"] = "subspace"
    name = {"clip": "clip:tiny-clip"}.get(kind.split()[0], kind.split()[0])
    return lambda **options: get_encoder(name, **{**fixed, **options})


def rows_of(encoder: Any, images: list[Any]) -> Array:
    return np.stack(list(encoder.embed(images, FACTORS).values()))


def test_neither_batch_nor_order_counts(maker: Maker, pictures: list[Array]) -> None:
    whole = rows_of(maker(), pictures)
    order = [3, 0, 5, 2, 4, 1]
    for size in (1, 2):
        encoder = maker(batch_size=size)
        rows = rows_of(encoder, [pictures[i] for i in order])
        assert np.abs(rows - whole[:, order]).max() < 1e-5
        assert encoder.fingerprint == maker().fingerprint


def test_threads_get_what_one_gets(maker: Maker, pictures: list[Array]) -> None:
    encoder = maker()
    expected = [rows_of(encoder, [pixels]) for pixels in pictures]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pixels: rows_of(encoder, [pixels]), pictures * 3))
    for rows, other in zip(found, expected * 3, strict=True):
        assert np.abs(rows - other).max() < 1e-5


def test_how_a_picture_is_stored_does_not_count(maker: Maker) -> None:
    indices = np.random.default_rng(0).integers(0, 4, (16, 16), dtype=np.uint8)
    palette = Image.fromarray(indices, "P")
    palette.putpalette([0, 0, 0, 90, 90, 90, 160, 160, 160, 255, 255, 255])
    grey = np.array([0, 90, 160, 255], np.uint8)[indices]
    hidden = np.dstack([grey] * 3 + [np.full_like(grey, 255)])
    sixteen = BytesIO()
    Image.fromarray(grey.astype(np.uint16) * 257).save(sixteen, "PNG")
    forms = [grey, np.dstack([grey] * 3), hidden, palette, sixteen.getvalue(), np.kron(grey, np.ones((2, 2), np.uint8))]
    rows = rows_of(maker(), forms)
    last = 1 if "crop" in maker().preprocessing else 0  # the authors' preparation does not look for a native grid
    for form in range(1, len(forms) - last):
        assert np.array_equal(rows[:, form], rows[:, 0])


def test_odd_pictures_are_rows(maker: Maker) -> None:
    random = np.random.default_rng(0)
    odd = [
        np.zeros((1, 1, 3), np.uint8),
        random.integers(0, 256, (16, 8192, 4), dtype=np.uint8),
        random.integers(0, 256, (8192, 16, 3), dtype=np.uint8),
        random.integers(0, 256, (16, 1, 3), dtype=np.uint8),
        np.zeros((16, 16, 4), np.uint8),
        np.full((300, 500, 3), 255, np.uint8),
    ]
    encoder = maker()
    assert np.isfinite(rows_of(encoder, odd)).all()
    assert rows_of(encoder, []).shape == (2, 0, rows_of(encoder, odd[:1]).shape[2])


def test_unit_rows_and_metric(maker: Maker, pictures: list[Array]) -> None:
    encoder = maker()
    norms = np.linalg.norm(rows_of(encoder, pictures), axis=2)
    assert encoder.metric in ("cosine", "lpips")
    if encoder.metric == "cosine":
        assert norms == pytest.approx(1, abs=1e-5)


def test_bf16_keeps_the_direction(maker: Maker, pictures: list[Array]) -> None:
    exact = maker().features(pictures)
    rough = maker(dtype="bf16").features(pictures)
    assert rough.dtype == np.float32
    cosines = (exact * rough).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(rough, axis=1)
    assert cosines.min() > 0.999
    assert not np.array_equal(exact, rough)


def test_out_of_memory_halves_the_batch(maker: Maker, pictures: list[Array], monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = maker()
    expected = rows_of(encoder, pictures)
    stacked = ImageTower.pictures

    def small_memory(self: ImageTower, textures: list[Any]) -> torch.Tensor:
        if len(textures) > 2:
            raise torch.OutOfMemoryError("out of memory")
        return stacked(self, textures)

    monkeypatch.setattr(ImageTower, "pictures", small_memory)
    assert np.abs(rows_of(encoder, pictures) - expected).max() < 1e-5


def test_an_image_that_never_fits_is_nan_alone(
    maker: Maker, pictures: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = maker()
    stacked = ImageTower.pictures

    def no_room_for_the_largest(self: ImageTower, textures: list[Any]) -> torch.Tensor:
        if any(texture.size == (64, 64) for texture in textures):
            raise torch.OutOfMemoryError("out of memory")
        return stacked(self, textures)

    monkeypatch.setattr(ImageTower, "pictures", no_room_for_the_largest)
    rows = rows_of(encoder, pictures)
    assert np.isnan(rows[:, 4]).all()
    assert np.isfinite(np.delete(rows, 4, axis=1)).all()


def test_nothing_is_printed(maker: Maker, pictures: list[Array], capfd: pytest.CaptureFixture[str]) -> None:
    maker().embed(pictures, FACTORS)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("factor", ["", "   ", "x" * 10_000])
def test_texts_that_are_no_factor_are_refused(maker: Maker, factor: str) -> None:
    with pytest.raises(FactorError):
        maker().embed([], ["art style", factor])


def test_the_name_makes_the_encoder_again(maker: Maker) -> None:
    """A profile keeps the name only."""
    for options in ({}, {"matte": 0, "batch_size": 3}):
        encoder = maker(**options)
        assert "batch_size" not in encoder.name
        assert get_encoder(encoder.name, device="cpu").fingerprint == encoder.fingerprint


def test_the_reference_encoders_are_listed() -> None:
    infos = {info.name: info for info in available()}
    assert {"tpips", "csd", "clip", "lpips"} <= set(infos)
    assert [name for name in ("tpips", "csd", "clip", "lpips") if infos[name].conditional] == ["tpips"]
    assert infos["tpips"].extra == "tpips"
    assert "non-commercial" in infos["tpips"].licence
