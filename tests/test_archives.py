"""Hostile archives: a named error, soon and in little memory, and nothing is ever written."""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from functools import lru_cache

import pytest

from assetscore.errors import ArchiveError, ImageError, UnreadableImageError, UsageError
from assetscore.submissions import minecraft, terraria
from assetscore.submissions.archives import ZipTree, inflate, open_tree, safe_name
from assetscore.submissions.trees import FolderTree, Limits

from .makers_games import png, write_tree, zip_bytes
from .makers_limits import soon_and_small

GEM = "assets/ruby/textures/item/gem.png"


def renamed(name: bytes) -> bytes:
    """A zip whose one entry is called `name` in both places; zipfile itself would clean it."""
    return zip_bytes({"x" * len(name): png(1)}).replace(b"x" * len(name), name)


def link(target: str, name: str = GEM) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.create_system = 3
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, target)
    return out.getvalue()


def declared(content: bytes, size: int, zip_size: int | None = None) -> bytes:
    """A zip of one entry that declares to unpack to `size` bytes."""
    data = bytearray(zip_bytes({GEM: content}))
    directory = data.rfind(b"PK\x01\x02")
    struct.pack_into("<I", data, directory + 24, size)
    struct.pack_into("<I", data, 22, size)
    if zip_size is not None:
        struct.pack_into("<I", data, directory + 20, zip_size)
    return bytes(data)


LOCAL = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, 8, 0) + b"aaaaaaaa"


@lru_cache(maxsize=2)
def directory_of(count: int) -> bytes:
    """The directory of `count` entries that all lie at one place, made without making each."""
    head = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 0, 0, 33, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0)
    return b"".join(head + b"%08d" % i for i in range(count))


def many_entries(count: int, stated: int | None = None) -> bytes:
    """A zip of `count` entries that states to have another number."""
    directory, stated = directory_of(count), (count if stated is None else stated) & 0xFFFF
    return (
        LOCAL
        + directory
        + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, stated, stated, len(directory), len(LOCAL), 0)
    )


def many_entries_zip64(count: int) -> bytes:
    directory = directory_of(count)
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(directory), len(LOCAL))
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(LOCAL) + len(directory), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return LOCAL + directory + record + locator + end


def bomb(total: int) -> bytes:
    """Entries that share one body of zeros, 1,000 to 1, as overlapping zip bombs do."""
    body = zip_bytes({GEM: bytes(10_000_000)})
    at, end = body.rfind(b"PK\x01\x02"), body.rfind(b"PK\x05\x06")
    entry, count = body[at:end], total // 10_000_000
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, count * len(entry), at, 0)
    return body[:at] + entry * count + tail


def nested(depth: int) -> bytes:
    content = zip_bytes({GEM: png(1)})
    for _ in range(depth):
        content = zip_bytes({"META-INF/jars/a.jar": content})
    return content


def zip64_liar() -> bytes:
    """The usual record says to look into a zip64 record, which is not where its locator must have it."""
    data = zip_bytes({GEM: png(1)})
    at = data.rfind(b"PK\x05\x06")
    return data[:at] + struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1) + data[at:]


HOSTILE = {
    "parent folder": lambda: renamed(b"../../../../../../../../home/assets/ruby/textures/item/g.png"),
    "parent folder inside": lambda: renamed(b"assets/ruby/textures/../../../../item/g.png"),
    "parent folder, backslashes": lambda: renamed(b"..\\..\\assets\\ruby\\textures\\item\\g.png"),
    "absolute path": lambda: renamed(b"/home/assets/ruby/textures/item/gem.png"),
    "drive": lambda: renamed(b"C:/assets/ruby/textures/item/gem.png"),
    "network share": lambda: renamed(b"\\\\host\\share\\textures\\item\\gem.png"),
    "a long name": lambda: zip_bytes({"a" * 5000: b""}),
    "link out": lambda: link("/etc/passwd"),
    "link up": lambda: link("../../../../etc/passwd"),
    "link inside": lambda: link("other.png"),
    "a million entries": lambda: many_entries(1_000_000),
    "a million entries, stated as 3": lambda: many_entries(1_000_000, stated=3),
    "bomb of 20 GB in one archive": lambda: bomb(20_000_000_000),
    "bomb of 500 MB": lambda: bomb(500_000_000),
    "declares 4 GiB": lambda: declared(png(1), 0xFFFFFFF0),
    "nested 8 deep": lambda: nested(8),
    "nested 50 deep": lambda: nested(50),
    "empty file": lambda: b"",
    "no zip": lambda: b"MZ" + bytes(5000),
    "truncated": lambda: zip_bytes({GEM: png(1, 64, 64)})[:-30],
    "directory larger than the file": lambda: zip_bytes({GEM: png(1)})[:-10] + b"\xff\xff\xff\x7f\0\0\0\0\0\0",
    "zip64 that lies": lambda: zip64_liar(),
    "only an end record": lambda: b"PK\x05\x06" + b"\xff" * 18,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("read", [minecraft.read, terraria.read], ids=["minecraft", "terraria"])
def test_hostile_archives_are_named_errors(tmp_path, name, read, monkeypatch):
    if name in ("nested 8 deep", "nested 50 deep") and read is terraria.read:
        pytest.skip("mods of Terraria hold no jars")
    path = tmp_path / "inner" / "mod.jar"
    path.parent.mkdir()
    path.write_bytes(HOSTILE[name]())
    monkeypatch.chdir(path.parent)

    def check() -> None:
        with pytest.raises(ArchiveError, match=r"mod\.jar"):
            read(path)

    soon_and_small(check)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "mod.jar"]


def corrupt(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


ONE_ROW = {
    "bad checksum": corrupt(zip_bytes({GEM: png(1), "b": b"b"}), 70),
    "declares less": declared(png(1), 20),
    "declares more": declared(png(1), 100_000),
    "declares 80 MB": declared(png(1), 80_000_000, 40_000_000),
}


@pytest.mark.parametrize("name", ONE_ROW)
def test_a_damaged_entry_costs_one_row(tmp_path, name):
    path = tmp_path / "mod.jar"
    path.write_bytes(ONE_ROW[name])
    with minecraft.read(path) as submission:
        [asset] = submission.assets
        with pytest.raises(ImageError, match="gem"):
            _ = asset.texture


GOOD = zip_bytes({"assets/inner/textures/item/inner.png": png(2)})
DAMAGED_INSIDE = {
    "no zip": b"PK\x03\x04 no",
    "empty": b"",
    "truncated": GOOD[:-30],
    "directory larger than the file": GOOD[:-10] + b"\xff\xff\xff\x7f\0\0\0\0\0\0",
    "directory overwritten": GOOD.replace(b"PK\x01\x02", b"PK\x01\xff"),
    "zip64 that lies": zip64_liar(),
    "a text": b"version https://git-lfs.github.com/spec/v1\n",
}


def with_inner(place: str, content: bytes, **more: bytes) -> bytes:
    return zip_bytes({GEM: png(1), place: content, "META-INF/jars/z.jar": GOOD, **more})


@pytest.mark.parametrize("name", DAMAGED_INSIDE)
@pytest.mark.parametrize("depth", [0, 1])
def test_a_damaged_jar_inside_costs_its_own_content_alone(tmp_path, name, depth):
    content = with_inner("META-INF/jarjar/bad.jar", DAMAGED_INSIDE[name])
    for _ in range(depth):
        content = zip_bytes({"META-INF/jars/around.jar": content, "assets/x/textures/item/x.png": png(3)})
    (tmp_path / "mod.jar").write_bytes(content)
    with minecraft.read(tmp_path / "mod.jar") as submission:
        expected = {"ruby:item/gem", "inner:item/inner"} | ({"x:item/x"} if depth else set())
        assert {asset.id for asset in submission.assets} == expected
        assert all(asset.texture.size == (16, 16) for asset in submission.assets)
        [note] = [note for note in submission.notes if "bad.jar" in note]
        assert note.startswith("passed over")


@pytest.mark.parametrize("entry", ["damaged", "encrypted", "packed otherwise"])
def test_a_jar_inside_whose_entry_cannot_be_read_costs_its_own_content_alone(tmp_path, entry):
    out = io.BytesIO()
    method = zipfile.ZIP_BZIP2 if entry == "packed otherwise" else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("META-INF/jars/a.jar", GOOD)
        archive.writestr(zipfile.ZipInfo(GEM), png(1), zipfile.ZIP_STORED)
    data = out.getvalue()
    if entry == "damaged":
        data = corrupt(data, 60)
    at = data.find(b"PK\x01\x02")
    if entry == "encrypted":
        data = data[:6] + b"\x01" + data[7 : at + 8] + b"\x01" + data[at + 9 :]
    (tmp_path / "mod.jar").write_bytes(data)
    with minecraft.read(tmp_path / "mod.jar") as submission:
        assert [asset.id for asset in submission.assets] == ["ruby:item/gem"]
        assert submission.assets[0].texture.size == (16, 16)
        assert any("a.jar" in note and note.startswith("passed over") for note in submission.notes)


HOSTILE_INSIDE = {
    "bomb": lambda: bomb(500_000_000),
    "a million entries": lambda: many_entries(1_000_000),
    "parent folder": lambda: renamed(b"../../../home/assets/ruby/textures/item/g.png"),
    "link": lambda: link("/etc/passwd"),
    "nested 8 deep": lambda: nested(8),
}


@pytest.mark.parametrize("name", HOSTILE_INSIDE)
def test_a_hostile_jar_inside_is_an_error_of_the_whole(tmp_path, name):
    (tmp_path / "mod.jar").write_bytes(with_inner("META-INF/jarjar/bad.jar", HOSTILE_INSIDE[name]()))
    with pytest.raises(ArchiveError, match=r"mod\.jar!META-INF"):
        minecraft.read(tmp_path / "mod.jar")


def test_a_jar_inside_that_is_too_large_is_an_error_of_the_whole(tmp_path):
    (tmp_path / "mod.jar").write_bytes(zip_bytes({GEM: png(1), "META-INF/jars/a.jar": bytes(5000)}))
    with pytest.raises(ArchiveError, match=r"a\.jar declares 5000 bytes, .* at most 2000"):
        minecraft.read(tmp_path / "mod.jar", limits=Limits(entry_bytes=2000))


def test_an_encrypted_entry_costs_one_row(tmp_path):
    data = bytearray(zip_bytes({GEM: png(1)}))
    data[6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "mod.jar").write_bytes(bytes(data))
    with minecraft.read(tmp_path / "mod.jar") as submission, pytest.raises(UnreadableImageError, match="encrypted"):
        _ = submission.assets[0].texture


def test_backslashes_are_slashes(tmp_path):
    (tmp_path / "mod.jar").write_bytes(renamed(b"assets\\ruby\\textures\\item\\gem.png"))
    with minecraft.read(tmp_path / "mod.jar") as submission:
        assert [asset.id for asset in submission.assets] == ["ruby:item/gem"]


def test_a_comment_a_prefix_and_zip64_are_fine(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        with archive.open(GEM, "w", force_zip64=True) as file:
            file.write(png(1))
        archive.comment = b"PK\x05 a comment" * 20
    path = tmp_path / "mod.jar"
    path.write_bytes(b"#!/bin/sh\nexit\n" + out.getvalue())
    with minecraft.read(path) as submission:
        assert submission.assets[0].texture.size == (16, 16)


def test_more_entries_than_the_old_format_can_count(tmp_path):
    (tmp_path / "mod.jar").write_bytes(many_entries_zip64(66_000))
    with open_tree(tmp_path / "mod.jar") as tree:
        assert len(tree.names) == 66_000
    (tmp_path / "mod.jar").write_bytes(many_entries_zip64(110_000))
    with pytest.raises(ArchiveError, match="more than 100000 entries"):
        open_tree(tmp_path / "mod.jar")


@pytest.mark.parametrize("limits", [Limits(entries=2), Limits(total_bytes=500), Limits(depth=0)])
def test_limits_can_be_set(tmp_path, limits):
    files = {**{f"assets/ruby/textures/item/{i}.png": png(i) for i in range(3)}, "META-INF/jars/a.jar": nested(0)}
    (tmp_path / "mod.jar").write_bytes(zip_bytes(files))
    with pytest.raises(ArchiveError):
        minecraft.read(tmp_path / "mod.jar", limits=limits)
    with minecraft.read(tmp_path / "mod.jar") as submission:
        assert len(submission.assets) == 4


def test_a_folder_of_too_many_files(tmp_path):
    write_tree(tmp_path, {f"{i}.txt": b"" for i in range(21)})
    with pytest.raises(ArchiveError, match="more than 20"):
        minecraft.read(tmp_path, limits=Limits(entries=2))


def test_neither_folder_nor_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ArchiveError, match="neither"):
        open_tree(pipe)
    with pytest.raises(UsageError, match="nothing"):
        open_tree(tmp_path / "nowhere")


def test_a_pipe_in_a_folder_costs_one_row(tmp_path):
    write_tree(tmp_path, {GEM: png(1)})
    os.mkfifo(tmp_path / "assets/ruby/textures/item/pipe.png")
    gem, pipe = minecraft.read(tmp_path).assets
    assert gem.texture.size == (16, 16)
    with pytest.raises(ImageError, match="regular"):
        _ = pipe.texture


@pytest.mark.parametrize("name", ["a/b.png", "./a.png", "a..b/c.png", "...", "a/b/"])
def test_harmless_names_stay(name):
    assert safe_name(name, "x") == name.removeprefix("./")


@pytest.mark.parametrize("size", [0, 99, 101, 10_000])
def test_inflate_never_gives_another_size(size):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(100)) + packer.flush()
    with pytest.raises(UnreadableImageError, match=f"declares {size}"):
        inflate(packed, size, "x")
    assert inflate(packed, 100, "x") == bytes(100)


def test_trees_list_files_alone_and_in_order(tmp_path):
    files = {"b.txt": b"1", "a/c.txt": b"2", "a.txt": b"3"}
    (tmp_path / "empty").mkdir()
    write_tree(tmp_path, files)
    with ZipTree(zip_bytes(files, folders=True)) as packed, FolderTree(tmp_path) as folder:
        assert packed.names == folder.names == ("a.txt", "a/c.txt", "b.txt")
        assert [packed.read(n) for n in packed.names] == [folder.read(n) for n in folder.names] == [b"3", b"2", b"1"]
        for tree in (packed, folder):
            with pytest.raises(ImageError):
                tree.read("c.txt")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_a_bound_are_not_read(tmp_path, method):
    path = tmp_path / "mod.jar"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("assets/m/textures/item/a.png", b"\0" * 2**20)
        archive.writestr(
            "assets/m/models/item/a.json", '{"parent": "item/generated", "textures": {"layer0": "m:item/a"}}'
        )
    with open_tree(path) as tree, pytest.raises(UnreadableImageError, match="packed by a method"):
        tree.read("assets/m/textures/item/a.png")
