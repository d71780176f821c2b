from __future__ import annotations

import contextlib
import json
import os
import struct
import time
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from assetscore.errors import (
    ImageTooLargeError,
    MissingImageError,
    UnreadableImageError,
    UnsupportedTypeError,
)
from assetscore.images import canvas, composite, enlarge, load, native_grid, pad_square, reduce_area

from .conftest import sprite
from .png import GREY, GREY_ALPHA, PALETTE, RGB, RGBA, SIGNATURE, chunk, png

RANDOM = np.random.default_rng(7)


def grey_samples(depth: int, shape: tuple[int, ...] = (9, 13)) -> np.ndarray:
    return RANDOM.integers(0, 2**depth, shape)


def expected(rgb: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Canonical RGBA written out by hand: colour under alpha 0 is zero."""
    rgba = np.dstack([rgb, alpha]).astype(np.uint8)
    rgba[alpha == 0] = 0
    return rgba


class TestEveryKindOfPng:
    @pytest.mark.parametrize("interlaced", [False, True])
    @pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
    @pytest.mark.parametrize("keyed", [False, True])
    def test_grey(self, depth: int, interlaced: bool, keyed: bool) -> None:
        samples = grey_samples(depth)
        key = int(samples[3, 4])
        trns = struct.pack(">H", key) if keyed else None
        values = samples >> 8 if depth == 16 else samples * 255 // (2**depth - 1)
        alpha = np.where(samples == key, 0, 255) if keyed else np.full(samples.shape, 255)
        pixels = load(png(samples, GREY, depth, trns=trns, interlaced=interlaced)).pixels
        np.testing.assert_array_equal(pixels, expected(np.dstack([values] * 3), alpha))

    @pytest.mark.parametrize("interlaced", [False, True])
    @pytest.mark.parametrize("depth", [1, 2, 4, 8])
    @pytest.mark.parametrize("entries", [0, 1, 2])
    def test_palette(self, depth: int, interlaced: bool, entries: int) -> None:
        samples = grey_samples(depth)
        palette = RANDOM.integers(0, 256, (2**depth, 3))
        alphas = np.full(2**depth, 255)
        alphas[:entries] = [0, 90][:entries]
        trns = bytes(alphas[:entries].tolist()) if entries else None
        pixels = load(png(samples, PALETTE, depth, palette=palette, trns=trns, interlaced=interlaced)).pixels
        np.testing.assert_array_equal(pixels, expected(palette[samples], alphas[samples]))

    @pytest.mark.parametrize("depth", [8, 16])
    @pytest.mark.parametrize("interlaced", [False, True])
    @pytest.mark.parametrize(("kind", "channels"), [(GREY_ALPHA, 2), (RGB, 3), (RGBA, 4)])
    def test_colour_and_alpha(self, kind: int, channels: int, depth: int, interlaced: bool) -> None:
        samples = grey_samples(depth, (7, 11, channels))
        high = samples >> (depth - 8)
        rgb = np.repeat(high[..., :1], 3, axis=-1) if channels == 2 else high[..., :3]
        alpha = high[..., -1] if channels in (2, 4) else np.full(high.shape[:2], 255)
        pixels = load(png(samples, kind, depth, interlaced=interlaced)).pixels
        np.testing.assert_array_equal(pixels, expected(rgb, alpha))

    def test_transparent_colour_of_rgb(self) -> None:
        samples = RANDOM.integers(0, 3, (8, 8, 3)) * 100
        key = samples[2, 2]
        alpha = np.where((samples == key).all(-1), 0, 255)
        pixels = load(png(samples, RGB, trns=struct.pack(">3H", *key.tolist()))).pixels
        np.testing.assert_array_equal(pixels, expected(samples, alpha))

    def test_one_picture_in_every_storage_has_one_hash(self) -> None:
        grey = RANDOM.integers(0, 2, (12, 12)) * 255
        rgb = np.dstack([grey] * 3)
        opaque = np.dstack([rgb, np.full(grey.shape, 255)])
        palette = np.array([[0, 0, 0], [255, 255, 255]])
        files = [
            png(grey, GREY),
            png(grey // 255, GREY, 1),
            png(grey // 255 * 3, GREY, 2),
            png(grey * 257, GREY, 16),
            png(np.dstack([grey, np.full(grey.shape, 255)]), GREY_ALPHA),
            png(rgb, RGB),
            png(rgb * 257, RGB, 16),
            png(opaque, RGBA),
            png(opaque, RGBA, interlaced=True),
            png(grey // 255, PALETTE, 1, palette=palette),
            png(grey // 255, PALETTE, 8, palette=palette, trns=b"\xff\xff"),
        ]
        webp = BytesIO()
        Image.fromarray(rgb.astype(np.uint8)).save(webp, "WEBP", lossless=True)
        gif = BytesIO()
        Image.fromarray(grey.astype(np.uint8)).save(gif, "GIF")
        assert len({load(file).content_hash for file in [*files, webp.getvalue(), gif.getvalue()]}) == 1


class TestHiddenColours:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_what_lies_under_alpha_0_changes_nothing(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        rgba = random.integers(0, 256, (10, 10, 4)).astype(np.uint8)
        rgba[random.random((10, 10)) < 0.5, 3] = 0
        other = rgba.copy()
        other[rgba[..., 3] == 0, :3] = random.integers(0, 256, 3)
        first, second = load(png(rgba, RGBA)), load(png(other, RGBA))
        assert first.content_hash == second.content_hash
        assert first.native_hash == second.native_hash
        np.testing.assert_array_equal(composite(first.native), composite(second.native))

    def test_glyphs_that_differ_only_in_alpha_differ(self) -> None:
        one, two = np.zeros((2, 8, 8, 4), np.uint8)
        one[2, :, 3] = 255
        two[:, 2, 3] = 255
        assert load(one).content_hash != load(two).content_hash


class TestDamagedFiles:
    good = png(RANDOM.integers(0, 256, (16, 16, 4)), RGBA)

    @pytest.mark.parametrize("kind", [b"iCCP", b"tEXt", b"gAMA", b"pHYs", b"zTXt"])
    def test_a_bad_checksum_where_games_do_not_look(self, kind: bytes) -> None:
        samples = RANDOM.integers(0, 256, (16, 16, 4))
        damaged = png(samples, RGBA, before_idat=chunk(kind, b"anything", bad_crc=True))
        assert load(damaged).content_hash == load(png(samples, RGBA)).content_hash

    def test_bytes_after_the_end(self) -> None:
        samples = RANDOM.integers(0, 256, (16, 16, 4))
        assert load(png(samples, RGBA, after_iend=b"x" * 99)).content_hash == load(png(samples, RGBA)).content_hash

    @pytest.mark.parametrize("kept", [1, 8, 20, 33, 60, -12, -13, -20, -200])
    def test_truncation_is_told_apart(self, kept: int) -> None:
        with pytest.raises(UnreadableImageError, match=r"cut\.png"):
            load(self.good[:kept], name="cut.png")

    def test_pixel_data_that_ends_early_in_a_whole_file(self) -> None:
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, RGBA, 0, 0, 0))
        half = chunk(b"IDAT", zlib.compress(b"\0" * 300))
        with pytest.raises(UnreadableImageError):
            load(SIGNATURE + header + half + chunk(b"IEND", b""))

    @pytest.mark.parametrize("kind", [b"IHDR", b"IDAT", b"IEND"])
    def test_a_bad_checksum_where_it_matters(self, kind: bytes) -> None:
        at = self.good.index(kind)
        (length,) = struct.unpack_from(">I", self.good, at - 4)
        end = at + 4 + length
        with pytest.raises(UnreadableImageError, match=kind.decode()):
            load(self.good[:end] + b"\0\0\0\0" + self.good[end + 4 :])

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "0 bytes"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n", "LFS"),
            (b"just some text", "no PNG"),
            (b"\x89PNG", "no PNG"),
            (SIGNATURE, "truncated"),
            (b"GIF89a", "image"),
            (b"\xff\xd8\xff\xe0", "image"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image"),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no PNG"),
        ],
    )
    def test_what_is_no_image_is_named(self, content: bytes, words: str, tmp_path: Path) -> None:
        path = tmp_path / "x.png"
        path.write_bytes(content)
        with pytest.raises(UnreadableImageError, match=words) as caught:
            load(path)
        assert "x.png" in str(caught.value)

    @settings(max_examples=150, deadline=None)
    @given(st.data())
    def test_no_damage_raises_anything_else(self, data: st.DataObject) -> None:
        damaged = bytearray(self.good)
        for _ in range(data.draw(st.integers(1, 6))):
            damaged[data.draw(st.integers(8, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        with contextlib.suppress(UnreadableImageError, ImageTooLargeError):
            load(bytes(damaged))

    @pytest.mark.parametrize("size", [(50_000, 50_000), (2**31 - 1, 1), (1, 2**26), (0, 16)])
    def test_size_limits_hold_before_decoding(self, size: tuple[int, int]) -> None:
        header = struct.pack(">IIBBBBB", *size, 8, RGBA, 0, 0, 0)
        bomb = SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 10**6)) + chunk(b"IEND", b"")
        start = time.perf_counter()
        with pytest.raises((ImageTooLargeError, UnreadableImageError)):
            load(bomb)
        assert time.perf_counter() - start < 1

    @pytest.mark.parametrize("depth", [0, 3, 5, 32, 255])
    def test_impossible_depths(self, depth: int) -> None:
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, depth, GREY, 0, 0, 0)) + chunk(b"tRNS", b"\0\0")
        with pytest.raises(UnreadableImageError):
            load(SIGNATURE + header + chunk(b"IDAT", zlib.compress(b"\0" * 300)) + chunk(b"IEND", b""))

    def test_large_sizes_of_other_formats(self) -> None:
        gif = b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\0\0\0" + b",\0\0\0\0\xff\xff\xff\xff\0\x02\x00;"
        with pytest.raises((ImageTooLargeError, UnreadableImageError)):
            load(gif)


class TestPathsAndTypes:
    @pytest.mark.parametrize("path", ["", "nothing/here.png", "a\0b", "x" * 5000])
    def test_missing(self, path: str) -> None:
        with pytest.raises(MissingImageError):
            load(path)

    def test_broken_link_and_folder(self, tmp_path: Path) -> None:
        (tmp_path / "link.png").symlink_to(tmp_path / "gone.png")
        (tmp_path / "folder.png").mkdir()
        with pytest.raises(MissingImageError):
            load(tmp_path / "link.png")
        with pytest.raises(UnreadableImageError, match="folder"):
            load(tmp_path / "folder.png")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.png")
        with pytest.raises(UnreadableImageError, match="regular"):
            load(tmp_path / "pipe.png")

    @pytest.mark.parametrize(
        "asset",
        [
            None,
            3,
            [1, 2],
            object(),
            np.zeros((4, 4), np.float32),
            np.zeros((4, 4, 2), np.uint8),
            np.zeros((4, 4, 5), np.uint8),
            np.zeros((0, 4), np.uint8),
            np.zeros(4, np.uint8),
            np.zeros((1, 4, 4, 4), np.uint8),
            np.zeros((4, 4), bool),
            Image.new("F", (4, 4)),
        ],
    )
    def test_what_is_no_image_type(self, asset: object) -> None:
        with pytest.raises(UnsupportedTypeError):
            load(asset)  # type: ignore[arg-type]

    def test_the_same_picture_by_every_way_in(self, tmp_path: Path) -> None:
        rgba = sprite(3)
        path = tmp_path / "Ünï cödé and spaces.PNG"
        path.write_bytes(png(rgba, RGBA))
        ways = [path, str(path), path.read_bytes(), bytearray(path.read_bytes()), Image.open(path), rgba]
        assert len({load(way).content_hash for way in ways}) == 1

    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBa", "CMYK", "YCbCr", "HSV", "I;16"])
    def test_pil_modes(self, mode: str) -> None:
        image = Image.new("L", (9, 9), 0)
        image.paste(255, (2, 2, 6, 6))
        image = (
            _sixteen_bit(image)
            if mode == "I;16"
            else (image.convert("RGBA") if mode == "RGBa" else image).convert(mode)
        )
        pixels = load(image).pixels
        assert pixels.shape == (9, 9, 4)
        assert pixels[3, 3, :3].min() > 250
        assert pixels[0, 0, :3].max() < 5

    def test_wrong_extension_is_remarked(self, tmp_path: Path) -> None:
        path = tmp_path / "trick.png"
        Image.new("RGB", (8, 8), (9, 9, 9)).save(path, "GIF")
        assert load(path).flags == ("GIF data in a file named .png",)


def _sixteen_bit(image: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(image).astype(np.uint16) * 257)


class TestNativeGrid:
    @pytest.mark.parametrize("factor", [1, 2, 3, 4, 5, 8])
    @pytest.mark.parametrize("shape", [(16, 16), (8, 24), (11, 9)])
    def test_enlargement_is_undone(self, factor: int, shape: tuple[int, int]) -> None:
        drawing = RANDOM.integers(0, 256, (*shape, 4)).astype(np.uint8)
        small, large = load(drawing), load(enlarge(drawing, factor))
        assert large.grid == factor
        np.testing.assert_array_equal(large.native, small.pixels)
        assert large.native_hash == small.native_hash
        assert (large.content_hash == small.content_hash) == (factor == 1)

    def test_against_brute_force(self) -> None:
        for seed in range(60):
            random = np.random.default_rng(seed)
            shape = random.integers(2, 8, 2) * random.integers(1, 5)
            image = random.integers(0, 2, (*shape, 1)) * np.full(4, 255)
            image = enlarge(image.astype(np.uint8), int(random.integers(1, 5)))
            assert native_grid(image) == _brute_force_grid(image), seed

    def test_one_colour_and_tiny_images_stay(self) -> None:
        assert load(np.full((64, 64), 9, np.uint8)).grid == 1
        assert load(enlarge(RANDOM.integers(0, 256, (4, 4, 4)).astype(np.uint8), 2)).grid == 1


def _brute_force_grid(image: np.ndarray) -> int:
    height, width = image.shape[:2]
    if len(np.unique(image.reshape(-1, 4), axis=0)) == 1:
        return 1
    best = 1
    for factor in range(2, min(height, width) // 8 + 1):
        if height % factor == 0 and width % factor == 0:
            small = image[::factor, ::factor]
            if (small.repeat(factor, 0).repeat(factor, 1) == image).all():
                best = factor
    return best


class TestFrames:
    strip = np.concatenate([sprite(i) for i in (1, 2, 1, 3)])

    def strip_with(self, mcmeta: bytes | None, tmp_path: Path) -> tuple[int, tuple[str, ...]]:
        path = tmp_path / "lava.png"
        path.write_bytes(png(self.strip, RGBA))
        if mcmeta is not None:
            (tmp_path / "lava.png.mcmeta").write_bytes(mcmeta)
        texture = load(path)
        return len(texture.frames), texture.flags

    def test_a_strip_without_mcmeta_is_one_picture(self, tmp_path: Path) -> None:
        assert self.strip_with(None, tmp_path) == (1, ())

    @pytest.mark.parametrize(
        ("animation", "frames"),
        [
            ({}, 3),
            ({"frametime": 3}, 3),
            ({"frames": [0, 2]}, 1),
            ({"frames": [0, {"index": 1, "time": 4}]}, 2),
            ({"width": 16, "height": 32}, 2),
            ({"width": 8, "height": 16}, 6),
            ({"height": 64}, 1),
        ],
    )
    def test_distinct_frames(self, animation: dict[str, object], frames: int, tmp_path: Path) -> None:
        assert self.strip_with(json.dumps({"animation": animation}).encode(), tmp_path) == (frames, ())

    @pytest.mark.parametrize(
        ("mcmeta", "frames", "remark"),
        [
            (b"\xef\xbb\xbf" + b'{"animation": {}}', 3, False),
            (b"{broken", 1, True),
            (b"\xff\xfe", 1, True),
            (b"[" * 100_000, 1, True),
            (b'{"animation": {"frames": [0, 99]}}', 1, True),
            (b'{"animation": {"frames": [-1, "x", null]}}', 3, True),
            (b'{"animation": {"width": 640}}', 1, True),
            (b'{"animation": {"height": 24}}', 2, True),
            (b'{"animation": {"width": 0, "height": true}}', 3, False),
            (b'{"animation": []}', 1, False),
            (b'{"texture": {"blur": true}}', 1, False),
            (b"[]", 1, False),
        ],
    )
    def test_mcmeta_in_the_wild(self, mcmeta: bytes, frames: int, remark: bool, tmp_path: Path) -> None:
        found, flags = self.strip_with(mcmeta, tmp_path)
        assert (found, bool(flags)) == (frames, remark)

    def test_frames_keep_the_native_grid(self) -> None:
        strip = enlarge(np.concatenate([sprite(1), sprite(2)]), 2)
        texture = load(png(strip, RGBA), mcmeta=b'{"animation": {}}')
        assert [frame.native.shape for frame in texture.frames] == [(16, 16, 4)] * 2

    def test_a_strip_of_a_thousand_frames(self) -> None:
        strip = np.zeros((6400, 16, 4), np.uint8)
        strip[..., 0], strip[..., 3] = np.arange(6400)[:, None] // 16 % 200, 255
        assert len(load(png(strip, RGBA), mcmeta=b'{"animation": {}}').frames) == 200


class TestCanvas:
    @pytest.mark.parametrize("alpha", range(0, 256, 15))
    def test_composite_is_rounded_to_nearest(self, alpha: int) -> None:
        rgba = np.array([[[0, 100, 255, alpha]]], np.uint8)
        exact = [(c * alpha + 128 * (255 - alpha)) / 255 for c in (0, 100, 255)]
        assert np.abs(composite(rgba)[0, 0] - np.array(exact)).max() <= 0.5

    @pytest.mark.parametrize("shape", [(16, 16), (16, 64), (7, 5), (1, 1), (100, 30), (64, 64), (33, 20)])
    def test_nothing_is_cropped(self, shape: tuple[int, int]) -> None:
        opaque = np.full((*shape, 4), 255, np.uint8)
        fitted = canvas(opaque, 64)
        assert fitted.shape == (64, 64, 4)
        rows, columns = (fitted[..., 3] > 0).any(1).sum(), (fitted[..., 3] > 0).any(0).sum()
        assert rows / columns == pytest.approx(shape[0] / shape[1], rel=0.1)

    def test_enlarging_makes_no_colours(self) -> None:
        drawing = sprite(5)
        colours = {tuple(c) for c in canvas(drawing, 64).reshape(-1, 4)}
        assert colours <= {tuple(c) for c in drawing.reshape(-1, 4)} | {(0, 0, 0, 0)}

    def test_reducing_does_not_let_hidden_colours_bleed(self) -> None:
        rgba = np.zeros((32, 32, 4), np.uint8)
        rgba[..., :3] = (255, 0, 255)
        rgba[::2, :, :] = (10, 200, 30, 255)
        small = reduce_area(rgba, 16, 16)
        assert np.abs(small[..., :3].astype(int) - [10, 200, 30]).max() <= 2

    def test_padding_is_centred(self) -> None:
        padded = pad_square(np.full((4, 2, 4), 255, np.uint8))
        assert padded[:, 1:3].min() == 255
        assert padded[:, [0, 3]].max() == 0
