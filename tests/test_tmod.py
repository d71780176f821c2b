"""`.tmod` files of both layouts, and the ways in which one can lie."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from assetscore.errors import ArchiveError, UnreadableImageError
from assetscore.submissions import terraria
from assetscore.submissions.tmod import TmodTree
from assetscore.submissions.tmod import rawimg as read_rawimg
from assetscore.submissions.trees import Limits

from .makers_games import art, deflate, net_string, png, rawimg, tmod, tmod_around
from .makers_limits import soon_and_small

FILES = {
    "Info": b"\0" * 10,
    "icon.png": png(1),
    "Items/Ruby.rawimg": rawimg(art(2)),
    "Items/Blau und Grün.rawimg": rawimg(art(3, 20, 30)),
    "Tiles/RubyTile.rawimg": rawimg(art(4, 52, 34)),
    "Items/Odd.png": b"GIF89a",
    "Sounds/a.ogg": bytes(1000),
}


def write(tmp_path, data: bytes):
    path = tmp_path / "RubyMod.tmod"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "loader", ["0.8.3", "0.9.2.3", "0.10.1.5", "0.11", "0.11.8.9", "1.4.3.2", "2022.9.47.87", "2026.5.3.0"]
)
@pytest.mark.parametrize("packed", [True, False])
def test_every_layout_gives_back_its_files(tmp_path, loader, packed):
    with TmodTree(write(tmp_path, tmod(FILES, loader, packed=packed))) as tree:
        assert (tree.mod, tree.version) == ("RubyMod", "1.0")
        assert tree.names == tuple(sorted(FILES))
        assert {name: tree.read(name) for name in tree.names} == FILES


@pytest.mark.parametrize("loader", ["0.10.1.5", "2022.9.47.87"])
def test_textures_of_a_built_mod(tmp_path, loader):
    with terraria.read(write(tmp_path, tmod(FILES, loader))) as submission:
        found = {asset.id: asset for asset in submission.assets}
        assert {key: (asset.category, asset.origin) for key, asset in found.items()} == {
            "icon": ("other", "own"),
            "Items/Ruby": ("item", "own"),
            "Items/Blau und Grün": ("item", "own"),
            "Items/Odd": ("item", "own"),
            "Tiles/RubyTile": ("tile", "own"),
        }
        assert (found["Items/Ruby"].texture.pixels == art(2)).all()
        with pytest.raises(UnreadableImageError, match=r"Items/Odd\.png"):
            _ = found["Items/Odd"].texture


def test_versions_compare_as_numbers(tmp_path):
    # As texts "0.9" is behind "0.11"; as numbers before it, so the old layout holds.
    with TmodTree(write(tmp_path, tmod(FILES, "0.9"))) as tree:
        assert len(tree.names) == len(FILES)


def test_a_changed_byte_is_found_by_the_sha1(tmp_path):
    data = bytearray(tmod(FILES))
    data[-500] ^= 1
    with pytest.raises(ArchiveError, match="SHA-1"):
        TmodTree(write(tmp_path, bytes(data)))


def table(*entries: tuple[str, int, int], count: int | None = None) -> bytes:
    head = net_string("M") + net_string("1") + struct.pack("<i", len(entries) if count is None else count)
    return head + b"".join(net_string(name) + struct.pack("<ii", size, stored) for name, size, stored in entries)


def old(*entries: tuple[str, int, bytes], count: int | None = None) -> bytes:
    head = net_string("M") + net_string("1") + struct.pack("<i", len(entries) if count is None else count)
    return deflate(head + b"".join(net_string(name) + struct.pack("<i", size) + data for name, size, data in entries))


HUGE = 2**31 - 1
HOSTILE = {
    "empty": b"",
    "another file": b"PK\x03\x04" + bytes(400),
    "only the magic": b"TMOD",
    "truncated head": tmod(FILES)[:100],
    "a version of words": tmod_around(b"", "latest"),
    "an endless version": b"TMOD" + b"\xff" * 30,
    "a long version": b"TMOD" + b"\xff\xff\xff\xff\x07" + bytes(400),
    "length negative": tmod_around(b"abc", length=-1),
    "length 2^31 - 1": tmod_around(b"abc", length=HUGE),
    "no data": tmod_around(b""),
    "count negative": tmod_around(table(count=-1)),
    "count 2^31 - 1": tmod_around(table(count=HUGE)),
    "count past the end": tmod_around(table(("a.png", 1, 1), count=5)),
    "size negative": tmod_around(table(("a.png", -1, 1))),
    "stored negative": tmod_around(table(("a.png", 1, -1))),
    "stored past the end": tmod_around(table(("a.png", 9, 9)) + b"abc"),
    "stored 2^31 - 1": tmod_around(table(("a.png", HUGE, HUGE))),
    "stored sums past the end": tmod_around(table(*[(f"{i}.png", 30, 30) for i in range(10)]) + bytes(100)),
    "unpacked sum too large": tmod_around(table(*[(f"{i}.png", HUGE, 1) for i in range(10)]) + bytes(10)),
    "parent folder": tmod_around(table(("../../etc/a.png", 1, 1)) + b"x"),
    "absolute path": tmod_around(table(("/etc/a.png", 1, 1)) + b"x"),
    "drive": tmod_around(table(("C:\\a.png", 1, 1)) + b"x"),
    "old: no DEFLATE": tmod_around(b"\xff" * 50, "0.10"),
    "old: count negative": tmod_around(old(count=-1), "0.10"),
    "old: count 2^31 - 1": tmod_around(old(count=HUGE), "0.10"),
    "old: size negative": tmod_around(old(("a.png", -1, b"")), "0.10"),
    "old: size 2^31 - 1": tmod_around(old(("a.png", HUGE, b"abc")), "0.10"),
    "old: parent folder": tmod_around(old(("../a.png", 1, b"x")), "0.10"),
    "old: a bomb": tmod_around(old(*[(f"{i}", 40_000_000, bytes(40_000_000)) for i in range(2)]), "0.10"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_lying_files_are_named_errors(tmp_path, name):
    path = write(tmp_path, HOSTILE[name])

    def check() -> None:
        with pytest.raises(ArchiveError, match=r"RubyMod\.tmod"):
            terraria.read(path)

    soon_and_small(check)
    assert [p.name for p in tmp_path.iterdir()] == ["RubyMod.tmod"]


def test_an_entry_that_unpacks_to_another_size_costs_one_row(tmp_path):
    bomb, ruby = deflate(bytes(8 * 1024 * 1024)), FILES["Items/Ruby.rawimg"]
    entries = table(("Items/Bomb.rawimg", 50, len(bomb)), ("Items/Ruby.rawimg", len(ruby), len(ruby)))
    with terraria.read(write(tmp_path, tmod_around(entries + bomb + ruby))) as submission:
        found = {asset.id: asset for asset in submission.assets}
        with pytest.raises(UnreadableImageError, match="declares 50 bytes"):
            _ = found["Items/Bomb"].texture
        assert (found["Items/Ruby"].texture.pixels == art(2)).all()


def test_an_entry_over_the_limit_costs_one_row(tmp_path):
    data = tmod({"Items/Large.rawimg": rawimg(art(5, 64, 64)), "Items/Ruby.rawimg": rawimg(art(2))}, packed=False)
    with terraria.read(write(tmp_path, data), limits=Limits(entry_bytes=2000)) as submission:
        large, ruby = submission.assets
        with pytest.raises(UnreadableImageError, match="at most 2000"):
            _ = large.texture
        assert ruby.texture.size == (16, 16)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<ii", 1, 4),
        struct.pack("<iii", 2, 1, 1) + bytes(4),
        struct.pack("<iii", 1, -1, -1) + bytes(4),
        struct.pack("<iii", 1, HUGE, HUGE) + bytes(4),
        struct.pack("<iii", 1, 0, 0),
        struct.pack("<iii", 1, 2, 2) + bytes(15),
        struct.pack("<iii", 1, 2, 2) + bytes(17),
    ],
)
def test_a_damaged_rawimg_is_an_unreadable_image(content):
    with pytest.raises(UnreadableImageError, match=r"a\.rawimg"):
        read_rawimg(content, "a.rawimg")


def test_a_rawimg_by_hand():
    pixels = read_rawimg(struct.pack("<iii", 1, 2, 1) + bytes([1, 2, 3, 255, 4, 5, 6, 7]), "a.rawimg")
    assert (pixels == np.array([[[1, 2, 3, 255], [4, 5, 6, 7]]])).all()
