"""`.xnb` textures: each surface format and compression, against other decoders where there are any."""

from __future__ import annotations

import io
import random
import shutil
import struct
import subprocess

import numpy as np
import pytest
from PIL import Image

from assetscore.errors import ArchiveError
from assetscore.submissions.dxt import to_rgba
from assetscore.submissions.lzx import LzxDecoder
from assetscore.submissions.xnb import decode_xnb, lz4_block, unpremultiply

from .makers_games import READER, art, lz4_pack, net_string, xnb, xnb_around, xnb_body
from .makers_limits import soon_and_small
from .makers_lzx import cabinet, compress


def unlzx(frames: list[tuple[bytes, int]]) -> bytes:
    decoder = LzxDecoder("test")
    return b"".join(decoder.decode(packed, size) for packed, size in frames)


def sample(seed: int) -> tuple[bytes, list[tuple[str, int]]]:
    """Seeded data of one of four kinds, cut into blocks of every type and size."""
    rng = random.Random(seed)
    size = rng.choice([1, 2, 3, 10, 1000, 5001, 32767, 32768, 32769, 70000])
    kind = seed % 4
    if kind == 0:
        data = rng.randbytes(size)
    elif kind == 1:
        data = bytes(rng.choices([0, 0, 0, 0, 1, 2, 3, 200], k=size))
    elif kind == 2:
        grown = bytearray(b"x")
        while len(grown) < size:
            offset = rng.randint(1, min(len(grown), 1900))
            grown += bytes(grown[-offset:][: rng.randint(1, 300)]) + rng.randbytes(1)
        data = bytes(grown[:size])
    else:
        data = bytes(size)
    blocks = []
    left = size
    while left:
        part = min(left, rng.choice([1, 7, 100, 5000, 32768, 40000, 100000]))
        blocks.append((rng.choice(["verbatim", "aligned", "stored"]), part))
        left -= part
    return data, blocks


@pytest.mark.parametrize("seed", range(24))
def test_lzx_gives_back_what_was_packed(seed):
    data, blocks = sample(seed)
    assert unlzx(compress(data, blocks)) == data


@pytest.mark.skipif(shutil.which("cabextract") is None, reason="needs cabextract, an independent LZX decoder")
@pytest.mark.parametrize("seed", range(24))
def test_the_packed_data_are_lzx_to_another_decoder(seed, tmp_path):
    data, blocks = sample(seed)
    (tmp_path / "a.cab").write_bytes(cabinet(compress(data, blocks), "out.bin"))
    subprocess.run(["cabextract", "-q", "-d", tmp_path, tmp_path / "a.cab"], check=True)
    assert (tmp_path / "out.bin").read_bytes() == data


def test_a_stored_lzx_frame_written_by_hand():
    # 1 bit: no translation; 3 bits: type 3; 24 bits: 5 bytes; 4 bits of padding. As 16-bit little-endian words.
    bits = "0" + "011" + format(5, "024b") + "0000"
    words = b"".join(struct.pack("<H", int(bits[i : i + 16], 2)) for i in (0, 16))
    assert LzxDecoder("test").decode(words + struct.pack("<III", 1, 1, 1) + b"hello\0", 5) == b"hello"


@pytest.mark.parametrize(("declared", "asked"), [(500, 1000), (1000, 700), (999, 1000)])
def test_a_match_past_the_end_of_its_block_or_frame(declared, asked):
    [(packed, _)] = compress(bytes(1000), [("verbatim", 1000)])
    # Behind one bit and three, the block's size: twelve bits in each of the first two words.
    words = list(struct.unpack(f"<{len(packed) // 2}H", packed))
    assert (words[0] & 0xFFF) << 12 | words[1] >> 4 == 1000
    words[1] = declared << 4 | words[1] & 15
    with pytest.raises(ArchiveError, match="past the end"):
        LzxDecoder("test").decode(struct.pack(f"<{len(words)}H", *words), asked)


@pytest.mark.parametrize("seed", range(8))
def test_lz4_gives_back_what_was_packed(seed):
    data, _ = sample(seed)
    assert lz4_block(lz4_pack(data), len(data), "test") == data


@pytest.mark.parametrize("seed", range(8))
def test_lz4_of_the_reference_implementation(seed):
    lz4 = pytest.importorskip("lz4.block")
    data, _ = sample(seed)
    assert lz4_block(lz4.compress(data, store_size=False), len(data), "test") == data


@pytest.mark.parametrize(("kind", "fourcc", "stride"), [(4, b"DXT1", 8), (5, b"DXT3", 16), (6, b"DXT5", 16)])
@pytest.mark.parametrize(("width", "height"), [(16, 8), (5, 7), (1, 1), (260, 4)])
def test_dxt_decodes_as_pillow_decodes_dds(kind, fourcc, stride, width, height):
    blocks = ((width + 3) // 4) * ((height + 3) // 4)
    data = np.random.default_rng(kind).integers(0, 256, blocks * stride, np.uint8).tobytes()
    head = struct.pack("<4sIIIIIII44x", b"DDS ", 124, 0x1007, height, width, len(data), 0, 0)
    head += struct.pack("<II4sIIIIIIIIII", 32, 4, fourcc, 0, 0, 0, 0, 0, 0x1000, 0, 0, 0, 0)
    expected = np.asarray(Image.open(io.BytesIO(head + data)).convert("RGBA")).astype(int)
    got = to_rgba(kind, data, width, height).astype(int)
    assert got.shape == (height, width, 4)
    # Both round thirds and fifths of 8-bit values, in different ways: one step apart at most.
    assert np.abs(got - expected).max() <= 1


@pytest.mark.parametrize(
    ("kind", "word", "rgba"),
    [
        (1, 0b11111_000000_00000, (255, 0, 0, 255)),
        (1, 0b00000_111111_00000, (0, 255, 0, 255)),
        (1, 0b10000_100000_00001, (132, 130, 8, 255)),
        (2, 0b1_11111_00000_00000, (255, 0, 0, 255)),
        (2, 0b1_00000_00000_11111, (0, 0, 255, 255)),
        (2, 0b0_00000_00000_00000, (0, 0, 0, 0)),
        (3, 0b1111_1111_0000_0000, (255, 0, 0, 255)),
        (3, 0b1111_0000_0000_1000, (0, 0, 136, 255)),
        (3, 0b0000_0000_0000_0000, (0, 0, 0, 0)),
    ],
)
def test_16_bit_formats_by_hand(kind, word, rgba):
    pixels = decode_xnb(xnb(struct.pack("<HH", word, word), 2, 1, kind), "a.xnb")
    assert [tuple(p) for p in pixels[0].tolist()] == [rgba, rgba]


@pytest.mark.parametrize("packing", ["", "lz4", "stored", "verbatim", "aligned"])
@pytest.mark.parametrize("size", [(1, 1), (16, 16), (130, 120)])
def test_color_round_trips_pixel_exact(packing, size):
    pixels = art(1, *size)
    assert (decode_xnb(xnb(pixels.tobytes(), *size, packing=packing), "a.xnb") == pixels).all()


@pytest.mark.parametrize("platform", ["w", "m", "x", "d", "Z"])
def test_any_platform_letter_is_read(platform):
    pixels = art(2)
    assert (decode_xnb(xnb(pixels.tobytes(), 16, 16, platform=platform), "a.xnb") == pixels).all()


def test_version_4_stores_color_as_bgra():
    pixels = art(3)
    data = xnb(pixels[..., [2, 1, 0, 3]].tobytes(), 16, 16, surface_format=1, version=4)
    assert (decode_xnb(data, "a.xnb") == pixels).all()


def test_every_premultiplied_colour_is_given_back_to_the_byte():
    colour, alpha = np.meshgrid(np.arange(256), np.arange(256))
    stored = colour * alpha // 255
    pixels = np.stack([stored, stored, stored, alpha], axis=-1).astype(np.uint8)
    straight = unpremultiply(pixels).astype(int)
    assert (straight[..., 0] * alpha // 255 == stored).all()
    assert (straight[..., 0][alpha == 255] == colour[alpha == 255]).all()


def test_straight_alpha_is_left_alone():
    pixels = np.array([[[200, 10, 10, 100], [5, 5, 5, 255]]], np.uint8)
    assert (unpremultiply(pixels) == pixels).all()


BODY = xnb_body(art(1).tobytes(), 16, 16)
HUGE = 0x80000000
HOSTILE = {
    "empty": b"",
    "another file": b"\x89PNG\r\n\x1a\n" + bytes(40),
    "only the head": b"XNBw\x05\x01\x0a\x00\x00\x00",
    "a version that never was": xnb_around(BODY, version=9),
    "file size past the end": xnb_around(BODY, size=HUGE),
    "file size of nothing": xnb_around(BODY, size=1),
    "truncated": xnb_around(BODY)[:-100],
    "unpacked to 2 GiB, LZX": xnb_around(struct.pack("<I", HUGE) + bytes(100), 0x80),
    "unpacked to 2 GiB, LZ4": xnb_around(struct.pack("<I", HUGE) + bytes(100), 0x40),
    "unpacked size negative": xnb_around(struct.pack("<i", -1) + bytes(100), 0x80),
    "LZX of zeros": xnb_around(struct.pack("<I", 1000) + struct.pack(">H", 50) + bytes(50), 0x80),
    "LZX frame past the end": xnb_around(struct.pack("<I", 1000) + struct.pack(">H", 5000) + bytes(50), 0x80),
    "LZX frame of nothing": xnb_around(struct.pack("<I", 1000) + bytes(50), 0x80),
    "LZ4 match before the start": xnb_around(struct.pack("<I", 1000) + b"\x0f\x05\x00" + bytes(20), 0x40),
    "LZ4 of endless length": xnb_around(struct.pack("<I", 1000) + b"\xf0" + b"\xff" * 5000, 0x40),
    "readers without number": xnb_around(b"\xff\xff\xff\xff\x07"),
    "a number without end": xnb_around(b"\xff" * 40),
    "a type name past the end": xnb_around(b"\x01\xff\x1f"),
    "no object": xnb_around(bytes([1]) + net_string(READER) + bytes(4) + bytes([0, 0]) + bytes(40)),
    "a sound": xnb_around(xnb_body(b"", 1, 1, reader="Microsoft.Xna.Framework.Content.SoundEffectReader")),
    "width 2^31": xnb_around(xnb_body(bytes(64), HUGE, 1)),
    "width times height overflows": xnb_around(xnb_body(bytes(64), 65536, 65536)),
    "no width": xnb_around(xnb_body(b"", 0, 4)),
    "surface larger than the file": xnb_around(xnb_body(bytes(64), 4000, 4000)),
    "surface size lies": xnb_around(xnb_body(bytes(64), 16, 16)),
    "unknown format": xnb_around(xnb_body(bytes(64), 4, 4, 77)),
    "negative format": xnb_around(xnb_body(bytes(64), 4, 4, -1)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_lying_files_are_named_errors(name):
    def check() -> None:
        with pytest.raises(ArchiveError, match=r"a\.xnb"):
            decode_xnb(HOSTILE[name], "a.xnb")

    soon_and_small(check)
