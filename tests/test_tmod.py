"""`.tmod` files of both layouts, and the ways in which one can lie."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from assetscore.errors import ArchiveError, ImageTooLargeError, UnreadableImageError
from assetscore.submissions import terraria
from assetscore.submissions.tmod import TmodTree
from assetscore.submissions.tmod import rawimg as read_rawimg
from assetscore.submissions.trees import Limits

from .makers_games import art, deflate, net_string, png, rawimg, tmod, tmod_around
from .makers_limits import read_alone, soon_and_small

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
    "old: a sound past the end": tmod_around(old(("a.ogg", 50, b"abc")), "0.10"),
    "old: truncated": tmod_around(old(("a.png", 3000, np.random.default_rng(1).bytes(3000)))[:-500], "0.10"),
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
        with pytest.raises(ImageTooLargeError, match="at most 2000"):
            _ = large.texture
        assert ruby.texture.size == (16, 16)


def test_an_old_entry_over_the_limit_costs_one_row(tmp_path):
    data = tmod({"Items/Large.rawimg": rawimg(art(5, 64, 64)), "Items/Ruby.rawimg": rawimg(art(2))}, "0.10")
    with terraria.read(write(tmp_path, data), limits=Limits(entry_bytes=2000)) as submission:
        large, ruby = submission.assets
        with pytest.raises(ImageTooLargeError, match="at most 2000"):
            _ = large.texture
        assert (ruby.texture.pixels == art(2)).all()


def flushed(data: bytes) -> bytes:
    """A piece of a raw DEFLATE stream, which pieces in any order make up."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)


def large_old(tmp_path, count: int, suffix: str, size: int = 8 * 2**20):
    """An old .tmod of `count` pictures of `size` bytes each, about 80 to 1, made without making each."""
    noise = np.random.default_rng(1).integers(0, 256, size // 100, np.uint8).tobytes()
    side = 2048, size // 8192
    picture = struct.pack("<iii", 1, *side) + noise + bytes(size - len(noise))
    content = flushed(picture)
    pieces = [flushed(net_string("M") + net_string("1") + struct.pack("<i", count))]
    for number in range(count):
        pieces += [flushed(net_string(f"Items/P{number:03}{suffix}") + struct.pack("<i", len(picture))), content]
    return write(tmp_path, tmod_around(b"".join(pieces) + deflate(b""), "0.10.1.5"))


@pytest.mark.parametrize("suffix", [".rawimg", ".ogg"])
def test_an_old_mod_that_unpacks_to_much_is_an_error_soon_and_in_little_memory(tmp_path, suffix):
    path = large_old(tmp_path, 190, suffix)
    assert 15e6 < path.stat().st_size < 30e6  # 1.6 GB from 22 MB
    found = read_alone("terraria", path)
    assert found["error"].startswith("ArchiveError")
    assert "at most 268435456" in found["error"]
    assert found["seconds"] < 1, found
    assert found["mb"] < 200, found


def test_a_large_old_mod_is_read_in_little_memory(tmp_path):
    found = read_alone("terraria", large_old(tmp_path, 30, ".rawimg"))  # 250 MB
    assert (found["error"], found["count"]) == (None, 30)
    assert found["mb"] < 200, found


def test_an_old_mod_of_much_music_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("assetscore.submissions.tmod.OLD_TOTAL", 100_000)
    music = np.random.default_rng(1).bytes(500_000)
    path = write(tmp_path, tmod({"Music/a.ogg": music, "Items/Ruby.rawimg": rawimg(art(2))}, "0.10"))
    with terraria.read(path) as submission:
        assert (submission.assets[0].texture.pixels == art(2)).all()


def test_what_does_not_stay_in_memory_is_read_again_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr("assetscore.submissions.tmod.KEPT", 3000)
    monkeypatch.setattr("assetscore.submissions.inflating.SPACING", 5000)
    monkeypatch.setattr("assetscore.submissions.inflating.UNPACKED", 700)
    monkeypatch.setattr("assetscore.submissions.inflating.PACKED", 300)
    files = {f"Items/P{i}.rawimg": rawimg(art(i, 16, 10 + i)) for i in range(40)}
    files["Sounds/long.ogg"] = np.random.default_rng(1).bytes(20_000)
    with TmodTree(write(tmp_path, tmod(files, "0.10"))) as tree:
        order = np.random.default_rng(2).permutation(list(files) * 3)
        assert all(tree.read(str(name)) == files[str(name)] for name in order)
        assert all(tree.read(name) == content for name, content in files.items())
        assert all(tree.read(name) == files[name] for name in reversed(files))


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
