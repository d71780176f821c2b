"""Pictures made to mislead, to stop or to slow down: each family must end as a verdict, a remark or a named error."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import threading
import time
import warnings
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from assetscore.containers import MAX_PIXELS, MAX_SCANS
from assetscore.encoders.pixelstats import PixelStats
from assetscore.errors import ImageTooLargeError, UnreadableImageError, UnsupportedTypeError
from assetscore.frames import MAX_FRAMES
from assetscore.images import Texture, check_asset, load

from .conftest import sprite
from .png import GREY, GREY_ALPHA, PALETTE, RGB, RGBA, SIGNATURE, chunk, png

RANDOM = np.random.default_rng(11)
KINDS = [(GREY, 1), (GREY, 2), (GREY, 4), (GREY, 8), (GREY, 16), (RGB, 8), (RGB, 16), (PALETTE, 1), (PALETTE, 2)]
KINDS += [(PALETTE, 4), (PALETTE, 8), (GREY_ALPHA, 8), (GREY_ALPHA, 16), (RGBA, 8), (RGBA, 16)]
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}


def any_png(colour_type: int, depth: int, interlaced: bool, shape: tuple[int, int]) -> bytes:
    samples = RANDOM.integers(1, 2**depth, (*shape, CHANNELS[colour_type]))
    palette = RANDOM.integers(0, 256, (2**depth, 3)) if colour_type == PALETTE else None
    return png(samples, colour_type, depth, palette=palette, interlaced=interlaced)


def with_pixel_data(file: bytes, keep: int | None = None, more: bytes = b"", pieces: int = 1) -> bytes:
    """The PNG with only `keep` of its inflated bytes, and `more`, in a whole stream over `pieces` IDAT chunks."""
    at = file.index(b"IDAT")
    (length,) = struct.unpack_from(">I", file, at - 4)
    stream = zlib.compress(zlib.decompress(file[at + 4 : at + 4 + length])[:keep] + more)
    step = -(-len(stream) // pieces)
    chunks = b"".join(chunk(b"IDAT", stream[i : i + step]) for i in range(0, len(stream), step))
    return file[: at - 4] + chunks + file[at + 8 + length :]


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


class TestTruncatedPixelData:
    @pytest.mark.parametrize(("colour_type", "depth"), KINDS)
    @pytest.mark.parametrize("interlaced", [False, True])
    @pytest.mark.parametrize("shape", [(64, 64), (1, 1), (5, 3), (1, 9), (9, 1)])
    def test_a_stream_that_ends_early_is_no_picture(
        self, colour_type: int, depth: int, interlaced: bool, shape: tuple[int, int]
    ) -> None:
        whole = any_png(colour_type, depth, interlaced, shape)
        pixels = load(whole).pixels
        for good in (with_pixel_data(whole, more=b"\0" * 999), with_pixel_data(whole, pieces=7)):
            np.testing.assert_array_equal(load(good).pixels, pixels)
        at = whole.index(b"IDAT")
        size = len(zlib.decompress(whole[at + 4 :][: struct.unpack_from(">I", whole, at - 4)[0]]))
        for keep in {0, size // 2, size - 1}:
            with pytest.raises(UnreadableImageError, match=r"half\.png: truncated PNG"):
                load(with_pixel_data(whole, keep), name="half.png")

    def test_a_long_stream_of_many_pieces(self) -> None:
        whole = png(RANDOM.integers(0, 256, (600, 700, 4)), RGBA)  # does not compress: 1.7 MB in and out
        for pieces in (1, 50):
            np.testing.assert_array_equal(load(with_pixel_data(whole, pieces=pieces)).pixels, load(whole).pixels)
            with pytest.raises(UnreadableImageError, match="1 of the 1680600 bytes"):
                load(with_pixel_data(whole, -1, pieces=pieces))

    def test_inflating_stops_at_what_is_needed(self) -> None:
        bomb = with_pixel_data(png(sprite(1), RGBA), more=bytes(60_000_000))
        start = time.process_time()
        assert load(bomb).size == (16, 16)
        middle = time.process_time()
        zlib.decompress(bomb[bomb.index(b"IDAT") + 4 : -16])
        assert middle - start < (time.process_time() - middle) / 2

    @pytest.mark.parametrize(
        "chunks",
        [
            [chunk(b"IDAT", zlib.compress(b"\0" * 80))],
            [chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, RGBA, 0, 0, 0))] * 2,
            [chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, RGBA, 0, 0, 0))],
            [chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 7, 0, 0, 0)), chunk(b"IDAT", zlib.compress(b"\0" * 80))],
        ],
        ids=["no header", "two headers", "no pixels", "no such colour type"],
    )
    def test_parts_that_are_missing_or_come_twice(self, chunks: list[bytes]) -> None:
        with pytest.raises(UnreadableImageError, match="PNG"):
            load(SIGNATURE + b"".join(chunks) + chunk(b"IEND", b""))


class TestTransparentColour:
    @pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
    @pytest.mark.parametrize("colour_type", [GREY, RGB])
    def test_only_the_low_bits_count(self, depth: int, colour_type: int) -> None:
        if colour_type == RGB and depth < 8:
            return
        samples = RANDOM.integers(0, 2 if depth < 16 else 2**16, (8, 8, CHANNELS[colour_type]))
        key = samples[3, 3]
        for high in (0, 0x0100, 0xFF00, 0xFFFF << depth & 0xFFFF):
            if depth == 16 or high & (2**depth - 1):
                continue
            trns = struct.pack(f">{len(key)}H", *(int(value) | high for value in key))
            pixels = load(png(samples, colour_type, depth, trns=trns)).pixels
            np.testing.assert_array_equal(pixels[..., 3] == 0, (samples == key).all(axis=-1))


class TestJpeg:
    photo = Image.fromarray(RANDOM.integers(0, 256, (6, 7, 3)).astype(np.uint8)).resize((70, 60))

    def scans(self, total: int) -> bytes:
        """A progressive file whose last scan comes again until there are `total`."""
        file = encoded(self.photo, "JPEG", progressive=True)
        last = file.rindex(b"\xff\xda")
        return file[:-2] + file[last:-2] * (total - file.count(b"\xff\xda")) + file[-2:]

    def test_scans_are_counted_before_decoding(self) -> None:
        assert load(self.scans(MAX_SCANS)).size == (70, 60)
        for total in (MAX_SCANS + 1, 5000):
            with pytest.raises(UnreadableImageError, match=rf"slow\.jpg: a JPEG of {total} scans"):
                load(self.scans(total), name="slow.jpg")

    def test_what_only_looks_like_a_scan_is_none(self) -> None:
        file = encoded(self.photo, "JPEG", comment=b"\xff\xda\0\x02" * 300)
        assert file.count(b"\xff\xda") > 300
        assert load(file).content_hash == load(encoded(self.photo, "JPEG")).content_hash

    @pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"progressive": True, "quality": 95},
            {"restart_marker_blocks": 1},
            {"comment": b"a stranger's words", "dpi": (72, 72)},
            {"exif": b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"},
            {"icc_profile": b"no profile" * 9000},
            {"keep_rgb": True},
        ],
        ids=str,
    )
    @pytest.mark.filterwarnings("ignore:Corrupt EXIF")  # from the plain reading that this is compared with
    def test_pixels_are_those_of_the_whole_file(self, mode: str, options: dict[str, Any]) -> None:
        if options.get("keep_rgb") and mode != "RGB":
            return
        file = encoded(self.photo.convert(mode), "JPEG", **options)
        for variant in (file, file.replace(b"\xff\xdb", b"\xff\xff\xff\xdb"), file + b"\xff\xda" * 500):
            with Image.open(BytesIO(file)) as plain:
                np.testing.assert_array_equal(load(variant).pixels[..., :3], np.asarray(plain.convert("RGB")))

    def test_runs_of_fill_bytes_cost_no_more_than_their_length(self) -> None:
        start = time.process_time()
        with pytest.raises(UnreadableImageError):
            load(b"\xff\xd8" + b"\xff" * 10**5 + b"\0")
        assert time.process_time() - start < 1


@pytest.mark.parametrize("kind", ["PNG", "GIF", "JPEG", "WEBP"])
def test_no_damage_to_any_kind_of_file_raises_anything_else(kind: str) -> None:
    random = np.random.default_rng(len(kind))
    whole = encoded(Image.fromarray(sprite(3)).convert("RGB"), kind)
    for _ in range(150):
        damaged = bytearray(whole[: random.integers(12, len(whole) + 1)])
        for at in random.integers(12, len(whole), random.integers(1, 6)):
            if at < len(damaged):
                damaged[at] = random.integers(0, 256)
        with contextlib.suppress(UnreadableImageError, ImageTooLargeError):
            load(bytes(damaged))


class TestWarnings:
    def test_filters_are_nobodys_but_the_callers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def forbidden(*_: object, **__: object) -> None:
            raise AssertionError("warnings.catch_warnings is not thread-safe")

        before = list(warnings.filters)
        image = Image.fromarray(sprite(1)).convert("RGB")
        files = [encoded(image, kind) for kind in ("PNG", "GIF", "JPEG", "WEBP")]
        monkeypatch.setattr(warnings, "catch_warnings", forbidden)
        threads = [threading.Thread(target=lambda: [load(file) for file in files * 10]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for damaged in (b"text", SIGNATURE, files[1][:20], files[2][:-90], files[3][:40]):
            with pytest.raises(UnreadableImageError):
                load(damaged)
        monkeypatch.undo()
        assert warnings.filters == before

    def test_no_file_makes_pillow_warn(self, recwarn: pytest.WarningsRecorder) -> None:
        image = Image.fromarray(sprite(1)).convert("RGB")
        broken_exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01\x12\0\x03\xff\xff"
        animated = chunk(b"acTL", b"\0" * 8)
        load(encoded(image, "JPEG", exif=broken_exif))
        load(encoded(image, "WEBP", exif=broken_exif))
        load(png(sprite(1), RGBA, before_idat=animated + animated + chunk(b"eXIf", broken_exif[6:])))
        for large in (
            b"GIF89a" + struct.pack("<HH", 9000, 11000) + b"\0\0\0" + b",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;",
            SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 9000, 11000, 8, RGBA, 0, 0, 0)) + chunk(b"IEND", b""),
        ):
            with pytest.raises(ImageTooLargeError):
                load(large)
        assert not recwarn.list


class TestMcmeta:
    good = png(np.concatenate([sprite(1), sprite(2)]), RGBA)

    @pytest.mark.parametrize("kind", ["2 MB", "70 MB", "folder", "pipe", "broken link", "loop of links", "no text"])
    def test_whatever_lies_beside_a_picture_is_a_remark(self, kind: str, tmp_path: Path) -> None:
        path, beside = tmp_path / "lava.png", tmp_path / "lava.png.mcmeta"
        path.write_bytes(self.good)
        if kind.endswith("MB"):
            with open(beside, "wb") as file:
                file.truncate(int(kind[:-3]) * 10**6)
        elif kind == "folder":
            beside.mkdir()
        elif kind == "pipe":
            if not hasattr(os, "mkfifo"):
                pytest.skip("no named pipes here")
            os.mkfifo(beside)
        elif "link" in kind:
            beside.symlink_to(beside if "loop" in kind else tmp_path / "gone")
        else:
            beside.write_bytes(b"\xff\xfe\0")
        texture = load(path)
        assert len(texture.frames) == 1
        (flag,) = texture.flags
        assert flag.startswith(".mcmeta ignored: ")
        assert str(tmp_path) not in flag

    @pytest.mark.parametrize(
        "animation",
        [
            {"width": 1, "height": 1},
            {"width": 1},
            {"height": 1},
            {"width": 1, "height": 1, "frames": [0]},
            {"frames": [0]},
            {"width": 1, "height": 1, "frames": [9 * 16 + 8]},
        ],
        ids=str,
    )
    def test_no_choice_of_frames_hides_a_picture(self, animation: dict[str, object]) -> None:
        picture = np.concatenate([np.zeros((16, 16, 4), np.uint8), sprite(1)])
        for pixels in (picture, sprite(2)):
            texture = load(png(pixels, RGBA), mcmeta=json.dumps({"animation": animation}).encode())
            assert [frame for frame in texture.frames if not frame.is_empty]

    def test_too_many_frames_do_not_hide_what_comes_after_them(self) -> None:
        strip = np.zeros((8 * (MAX_FRAMES + 10), 8, 4), np.uint8)
        strip[-8:] = sprite(1, 8)
        texture = load(png(strip, RGBA), mcmeta=b'{"animation": {}}')
        assert [frame for frame in texture.frames if not frame.is_empty]
        assert any("only the first 512" in flag for flag in texture.flags)

    def test_frames_are_bounded_whatever_the_size(self) -> None:
        strip = np.zeros((65536, 16, 4), np.uint8)
        strip[..., :2] = np.arange(65536).view(np.uint8).reshape(65536, 8)[:, None, :2]
        strip[..., 3] = 255
        for mcmeta in (b'{"animation": {}}', b'{"animation": {"width": 1, "height": 1}}'):
            texture = load(strip, mcmeta=mcmeta)
            assert 0 < len(texture.frames) <= MAX_FRAMES
            assert [flag for flag in texture.flags if "only the first 512" in flag]

    def test_only_a_file_of_one_pixel_is_a_placeholder(self) -> None:
        dot = np.full((1, 1, 4), 255, np.uint8)
        assert load(dot).is_empty
        assert load(dot, mcmeta=b'{"animation": {}}').frames[0].is_empty
        assert not Texture(dot, is_frame=True).is_empty
        assert Texture(dot * 0, is_frame=True).is_empty


def pil(mode: str = "RGB", **info: object) -> Image.Image:
    image = Image.new("LAB" if mode == "LAB" else mode, (4, 4))
    image.info.update(info)
    return image


class BytesPath:
    def __init__(self, path: object) -> None:
        self.path = path

    def __fspath__(self) -> Any:
        return self.path


def closed() -> Image.Image:
    image = pil()
    image.close()
    return image


def closed_file() -> Image.Image:
    image = Image.open(BytesIO(png(sprite(1), RGBA)))
    image.close()
    return image


def released() -> memoryview:
    view = memoryview(b"abc")
    view.release()
    return view


class TestTypes:
    @pytest.mark.parametrize(
        "asset",
        [
            *(pil(mode) for mode in ("F", "I")),
            *(BytesPath(path) for path in (b"x.png", 3, None)),
            *(np.zeros(shape, np.uint8) for shape in [(), (4,), (4, 4, 2), (0, 4), (4, 4, 4, 4)]),
            *(np.zeros((4, 4), kind) for kind in (np.float32, bool, np.int64, object)),
            *(None, 3, [1], object(), released()),
        ],
        ids=repr,
    )
    def test_what_is_no_asset_is_told_before_anything_is_read(self, asset: Any) -> None:
        for refuse in (check_asset, load):
            with pytest.raises(UnsupportedTypeError, match="asset must be a path, bytes, a PIL image or a uint8 array"):
                refuse(asset)

    @pytest.mark.parametrize("asset", ["no/such.png", Path("x"), b"", bytearray(), memoryview(b""), closed()], ids=repr)
    def test_what_may_hold_an_image_passes_the_check(self, asset: Any) -> None:
        check_asset(asset)
        check_asset(load(sprite(1)))

    @pytest.mark.parametrize("make", [closed, closed_file])
    def test_closed_images(self, make: Any) -> None:
        with pytest.raises(UnreadableImageError, match="the given image"):
            load(make())

    MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "I;16")

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        "told",
        ["x", -1, 300, 2**80, 1.5, (), (1, 2), (1, 2, 3), ("a",), [3], b"", b"\0" * 999, {}, np.zeros(9)],
        ids=str,
    )
    def test_whatever_an_image_says_of_its_transparency(self, mode: str, told: object) -> None:
        try:
            pixels = load(pil(mode, transparency=told)).pixels
        except UnreadableImageError:
            return
        assert pixels.shape == (4, 4, 4)

    def test_premultiplied_grey(self) -> None:
        straight = Image.fromarray(np.array([[[200, 100], [9, 0], [77, 255]]], np.uint8))
        pixels = load(straight.convert("La")).pixels
        assert np.abs(pixels[0, 0].astype(int) - [200, 200, 200, 100]).max() <= 2
        assert pixels[0, 1:].tolist() == [[0, 0, 0, 0], [77, 77, 77, 255]]

    @pytest.mark.parametrize(
        "pixels",
        [
            None,
            [[1]],
            np.zeros((4, 4, 3), np.uint8),
            np.zeros((4, 4), np.uint8),
            np.zeros((4, 4, 4)),
            np.zeros((0, 4, 4), np.uint8),
        ],
        ids=repr,
    )
    def test_a_texture_of_anything_but_rgba(self, pixels: Any) -> None:
        for make in (Texture, Texture.from_rgba):
            with pytest.raises(UnsupportedTypeError, match=r"uint8 array \(h, w, 4\)"):
                make(pixels)


class TestLargePictures:
    def test_the_limit_holds_for_every_way_in(self) -> None:
        side = 4097
        array = np.zeros((side, side), np.uint8)
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, GREY, 0, 0, 0))
        for asset in (array, Image.new("1", (side, side)), SIGNATURE + header + chunk(b"IEND", b"")):
            with pytest.raises(ImageTooLargeError, match=f"{side} x {side} pixels, at most {MAX_PIXELS}"):
                load(asset)

    @pytest.mark.parametrize("shape", [(512, 512), (16, 16), (6400, 16), (1, 512)])
    def test_ordinary_pictures_are_described_as_they_are(self, shape: tuple[int, int]) -> None:
        from assetscore.encoders.pixelstats import _describe

        pixels = RANDOM.integers(0, 256, (*shape, 4)).astype(np.uint8)
        np.testing.assert_array_equal(PixelStats().features([Texture(pixels)])[0], _describe(pixels))

    @pytest.mark.parametrize(
        ("shape", "to"),
        [
            ((1024, 1024), (512, 512)),
            ((2048, 512), (1024, 256)),
            ((65536, 16), (32768, 8)),
            ((2**20, 1), (2**18, 1)),
            ((1, 2**20), (1, 2**18)),
        ],
        ids=str,
    )
    def test_larger_ones_are_described_reduced(self, shape: tuple[int, int], to: tuple[int, int]) -> None:
        rgb = RANDOM.integers(0, 256, (*shape, 3)).astype(np.uint8)
        by_hand = Image.fromarray(rgb).resize(to[::-1], Image.Resampling.BOX).convert("RGBA")
        large, small = PixelStats().features([Texture(np.dstack([rgb, np.full(shape, 255, np.uint8)])), load(by_hand)])
        np.testing.assert_array_equal(large, small)

    def test_a_speck_on_a_large_picture_is_still_described(self) -> None:
        pixels = np.zeros((2048, 2048, 4), np.uint8)
        pixels[7, 9] = (200, 10, 10, 255)
        assert np.isfinite(PixelStats().features([Texture(pixels)])).all()
