"""Files as they are found in mods, through the reader and into a row: each costs its own row at most."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from assetscore import Profile, Scorer
from assetscore.submissions import minecraft
from assetscore.submissions.items import items

from .makers_games import write_tree, zip_bytes
from .png import GREY, PALETTE, RGB, RGBA, chunk, png

RANDOM = np.random.default_rng(3)
RGBA_16 = RANDOM.integers(1, 255, (16, 16, 4))
WHOLE = png(RGBA_16, RGBA)
HIDDEN = RGBA_16.copy()
HIDDEN[:5, :, 3] = 0
COLOURS = RANDOM.integers(0, 255, (16, 3))


def noise(width: int, height: int) -> bytes:
    return png(RANDOM.integers(1, 255, (height, width, 4)), RGBA)


def encoded(kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(RGBA_16[..., :3].astype(np.uint8)).save(out, kind)
    return out.getvalue()


WILD: dict[str, tuple[bytes, str, tuple[int, int] | None]] = {
    # name: the file, the status of its row, its size
    "empty": (b"", "unreadable", None),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n", "unreadable", None),
    "truncated": (WHOLE[:-40], "unreadable", None),
    "gif": (encoded("GIF"), "scored", (16, 16)),
    "jpeg": (encoded("JPEG"), "scored", (16, 16)),
    "bad_iccp": (png(RGBA_16, RGBA, before_idat=chunk(b"iCCP", b"x", bad_crc=True)), "scored", (16, 16)),
    "bad_text": (png(RGBA_16, RGBA, before_idat=chunk(b"tEXt", b"x", bad_crc=True)), "scored", (16, 16)),
    "rgb16": (png(RANDOM.integers(0, 65536, (16, 16, 3)), RGB, 16), "scored", (16, 16)),
    "rgba16": (png(RANDOM.integers(300, 65536, (16, 16, 4)), RGBA, 16), "scored", (16, 16)),
    "interlaced": (png(RGBA_16, RGBA, interlaced=True), "scored", (16, 16)),
    **{
        f"palette{depth}": (
            png(RANDOM.integers(0, min(2**depth, 16), (16, 16)), PALETTE, depth, palette=COLOURS[: 2**depth],
                trns=b"\xff\x80"[: 2**depth]),
            "scored", (16, 16),
        )
        for depth in (1, 2, 4, 8)
    },
    "grey_trns": (png(RANDOM.integers(0, 255, (16, 16)), GREY, trns=b"\0\x07"), "scored", (16, 16)),
    "rgb_trns": (png(RANDOM.integers(0, 255, (16, 16, 3)), RGB, trns=b"\0\1\0\2\0\3"), "scored", (16, 16)),
    "after_iend": (png(RGBA_16, RGBA, after_iend=b"more" * 99), "scored", (16, 16)),
    "hidden_colour": (png(HIDDEN, RGBA), "scored", (16, 16)),
    "one_pixel": (noise(1, 1), "empty", (1, 1)),
    "clear": (png(np.zeros((16, 16, 4), int), RGBA), "empty", (16, 16)),
    "4x4": (noise(4, 4), "scored", (4, 4)),
    "26x21": (noise(26, 21), "scored", (26, 21)),
    "800x796": (noise(800, 796), "scored", (800, 796)),
    "3840x2160": (png(np.zeros((2160, 3840, 4), int) + 99, RGBA), "scored", (3840, 2160)),
    "strip": (noise(16, 6400), "scored", (16, 6400)),
    "with space": (WHOLE, "scored", (16, 16)),
    "grün": (WHOLE, "scored", (16, 16)),
    "same": (noise(16, 16), "scored", (16, 16)),
    "Same": (noise(16, 16), "scored", (16, 16)),
}  # fmt: skip


@pytest.mark.parametrize("packing", ["tree", "jar"])
def test_every_file_has_its_row(tmp_path: Path, profile: Profile, packing: str) -> None:
    files = {f"assets/ruby/textures/item/{name}.png": content for name, (content, _, _) in WILD.items()}
    files["assets/ruby/textures/item/Upper.PNG"] = WHOLE
    path = write_tree(tmp_path / "mod", files)
    if packing == "jar":
        path = tmp_path / "mod.jar"
        path.write_bytes(zip_bytes(files))
    else:
        (path / "assets/ruby/textures/item/folder.png").mkdir()
        (path / "assets/ruby/textures/item/link.png").symlink_to("with space.png")
        (path / "assets/ruby/textures/item/out.png").symlink_to("/etc/hostname")
    with minecraft.read(path) as submission:
        scores = list(Scorer(profile).stream(items(submission, uses=("unreferenced",))))
        found = {asset.id.removeprefix("ruby:item/"): asset for asset in submission.assets}
        expected = {name: status for name, (_, status, _) in WILD.items()} | {"Upper.PNG": "scored"}
        if packing == "tree":
            expected |= {"link": "scored", "out": "missing"}
        assert {score.asset_id.removeprefix("ruby:item/"): score.status for score in scores} == expected
        for name, (_, _, size) in WILD.items():
            if size is not None:
                assert found[name].texture.size == size, name
