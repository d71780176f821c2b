"""The picture of a row is found again, whatever its archive and its file are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assetscore.images import Texture, load
from assetscore.submissions.pictures import Pictures
from assetscore.submissions.source import open_source
from assetscore.text import printable

from .makers_games import art, png, rawimg, tmod, write_tree, zip_bytes

TEXTURES = "assets/ruby/textures/item"
NAMES = [
    "gem", "gem!", "!gem", "a!b!c", "!", "!!", "mod.jar!gem", "in.jar!assets", "with space !", "grün!", "a\u200bb",
    "nbsp\u00a0!x", "#?%", "new\x07bell", "'\"", "dot.", ".hidden", "x.png",
]  # fmt: skip
"""All legal in a zip, and in the folders of most systems."""
FILES = {f"{TEXTURES}/{name}.png": png(number) for number, name in enumerate(NAMES)}
DEEP = {"assets/deep/textures/item/!.png": png(90), "assets/deep/textures/item/in.jar!x.png": png(91)}
BUILT = tmod({f"Items/{name}.rawimg": rawimg(art(number)) for number, name in enumerate(NAMES)} | {"Info": b""})

KINDS = {
    "jar": (len(NAMES), {"mod.jar": zip_bytes(FILES)}, "mod.jar"),
    "jar!": (len(NAMES), {"a!b!.jar": zip_bytes(FILES)}, "a!b!.jar"),
    "in a folder!": (len(NAMES), {"a!/b!/!.jar": zip_bytes(FILES)}, "a!/b!/!.jar"),
    "jar in a jar": (
        len(NAMES) + 2, {"!.jar": zip_bytes({**FILES, "META-INF/jars/in!.jar": zip_bytes(DEEP)})}, "!.jar",
    ),
    "jar in a jar in a jar": (
        2,
        {"x.jar": zip_bytes({"META-INF/jars/a!.jar": zip_bytes({"META-INF/jars/!b.jar": zip_bytes(DEEP)})})},
        "x.jar",
    ),
    "folder of one jar": (len(NAMES), {"mods/a!.jar": zip_bytes(FILES)}, "mods"),
    "folder of one jar with a jar inside": (
        len(NAMES) + 2, {"mods/a!.jar": zip_bytes({**FILES, "META-INF/jars/in!.jar": zip_bytes(DEEP)})}, "mods",
    ),
    "folder of jars": (2 * len(NAMES), {"m/a!.jar": zip_bytes(FILES), "m/a.jar": zip_bytes(FILES)}, "m"),
    "zip of one jar": (len(NAMES), {"all.zip": zip_bytes({"all!/a!.jar": zip_bytes(FILES)})}, "all.zip"),
    "zip of jars": (
        2 * len(NAMES), {"all.zip": zip_bytes({"a!.jar": zip_bytes(FILES), "b!.jar": zip_bytes(FILES)})}, "all.zip",
    ),
    "folder of zips of one jar": (
        2 * len(NAMES), {f"m/{z}": zip_bytes({"a!.jar": zip_bytes(FILES)}) for z in ("y!.zip", "z.zip")}, "m",
    ),
    "tmod": (len(NAMES), {"!.tmod": BUILT}, "!.tmod"),
    "folder of one tmod": (len(NAMES), {"m/!.tmod": BUILT}, "m"),
    "folder of tmods": (2 * len(NAMES), {"m/!.tmod": BUILT, "m/b.tmod": BUILT}, "m"),
}  # fmt: skip


PLAIN = {f"item/{name}.png": png(number) for number, name in enumerate(NAMES)}
KINDS |= {
    "category folders": (len(NAMES), {f"f/{name}": content for name, content in PLAIN.items()}, "f"),
    "category folders in odd ones": (
        2 * len(NAMES), {f"f\x07/{n}\u2028/{name}": c for n in "a!" for name, c in PLAIN.items()}, "f\x07",
    ),
    "source tree": (
        len(NAMES),
        {f"m\x1b/src/main/resources/{n}": c for n, c in FILES.items()} | {"m\x1b/fabric.mod.json": b"{}"}, "m\x1b",
    ),
    "jar of an odd name": (len(NAMES), {"a\x07!b.jar": zip_bytes(FILES)}, "a\x07!b.jar"),
    "folder of jars of odd names": (
        2 * len(NAMES), {"m/a\x07!.jar": zip_bytes(FILES), "m/a\u200b.jar": zip_bytes(FILES)}, "m",
    ),
    "terraria tree": (
        len(NAMES), {"t\x07/build.txt": b"", **{f"t\x07/Items/{n}.png": png(i) for i, n in enumerate(NAMES)}}, "t\x07",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_legal_name_is_found(tmp_path: Path, kind: str) -> None:
    count, files, place = KINDS[kind]
    path = write_tree(tmp_path / "root", files) / place
    seen = 0
    with open_source(path, uses=("sprite", "unreferenced")) as source, Pictures() as pictures:
        for item in source.items:
            assert isinstance(item.asset, (Texture, Path))
            found = pictures.load(printable(item.path))  # as a row has it
            assert found is not None, item.path
            assert np.array_equal(found.pixels, load(item.asset).pixels), item.path
            seen += 1
    assert seen == count


def test_zips_of_built_mods_are_read_and_found(tmp_path: Path) -> None:
    files = {"one.zip": zip_bytes({"all/!.tmod": BUILT}), "two.zip": zip_bytes({"a.tmod": BUILT, "b!.tmod": BUILT})}
    write_tree(tmp_path, files)
    for name, count in (("one.zip", len(NAMES)), ("two.zip", 2 * len(NAMES))):
        with open_source(tmp_path / name, game="terraria", uses=("sprite",)) as source, Pictures() as pictures:
            found = [(item.asset, pictures.load(item.path)) for item in source.items]
            assert len(found) == count
            assert all(np.array_equal(ours.pixels, theirs.pixels) for ours, theirs in found)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "path",
    ["mod.jar!", "mod.jar!!", "!mod.jar!x", "mod.jar!gone!x.png", "mod.jar!" + "!" * 5000, "text!x.png", "mod.jar!text!x",
     "mod.jar!../mod.jar", "mod.jar!a/text", "dir!x", "dir/!x"],
)  # fmt: skip
def test_what_is_not_there_is_none(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {"mod.jar": zip_bytes({**FILES, "text": b"hello", "a/text": b""}), "text": b"", "dir/y": b""})
    monkeypatch.chdir(tmp_path)
    with Pictures() as pictures:
        assert pictures.load(path) is None
        assert pictures.load(f"mod.jar!{TEXTURES}/!gem.png") is not None
