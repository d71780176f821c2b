"""What a path is taken for, how it is read, and that every row's picture is found again."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from assetscore import submissions
from assetscore.errors import ArchiveError, ManifestError, UsageError
from assetscore.images import Texture, load
from assetscore.references import ReferenceSet
from assetscore.submissions.copies import CopyIndex
from assetscore.submissions.detection import detect
from assetscore.submissions.pictures import Pictures
from assetscore.submissions.source import fingerprint, open_source

from .conftest import sprite
from .makers_games import art as drawn
from .makers_games import model, png, rawimg, tmod, write_tree, zip_bytes

ITEM = "assets/ruby/textures/item"
MOD = {
    f"{ITEM}/ruby.png": png(1),
    f"{ITEM}/loose.png": png(2),
    "assets/ruby/models/item/ruby.json": model("item/generated", layer0="ruby:item/ruby"),
    "assets/ruby/models/item/blank.json": model("item/generated", layer0="ruby:item/gone"),
}
SOURCES = {f"src/main/resources/{name}": content for name, content in MOD.items()}
TERRARIA = {
    "build.txt": b"displayName = Ruby\n",
    "Items/Ruby.png": png(np.kron(drawn(3), np.ones((2, 2, 1), np.uint8))),
    "Items/Ruby.cs": b"using Terraria.ModLoader; namespace RubyMod.Items { class Ruby : ModItem {} }",
}
BUILT = tmod({"Items/Ruby.rawimg": rawimg(drawn(3)), "Items/Opal.png": png(4)})
FOLDER = {"item/axe.png": png(1), "block/stone.png": png(2), "readme.txt": b"hello"}

Make = Callable[[Path], Path]
KINDS: dict[str, tuple[str, Make]] = {
    "source tree": ("minecraft", lambda root: write_tree(root / "mod", SOURCES)),
    "resource pack": ("minecraft", lambda root: write_tree(root / "pack", {**MOD, "pack.mcmeta": b"{}"})),
    "assets folder": (
        "minecraft",
        lambda root: write_tree(
            root / "assets", {name.removeprefix("assets/"): content for name, content in MOD.items()}
        ),
    ),
    "jar": ("minecraft", lambda root: write_tree(root, {"mod.jar": zip_bytes(MOD)}) / "mod.jar"),
    "zip": ("minecraft", lambda root: write_tree(root, {"pack.zip": zip_bytes(MOD)}) / "pack.zip"),
    "jar in a jar": (
        "minecraft",
        lambda root: (
            write_tree(root, {"mod.jar": zip_bytes({**MOD, "META-INF/jars/in.jar": zip_bytes(other_names())})})
            / "mod.jar"
        ),
    ),
    "folder of jars": (
        "minecraft",
        lambda root: write_tree(root / "mods", {"a.jar": zip_bytes(MOD), "b.jar": zip_bytes(MOD)}),
    ),
    "folder of packs": (
        "minecraft",
        lambda root: write_tree(
            root / "packs", {f"{p}/{n}": c for p in "ab" for n, c in {**MOD, "pack.mcmeta": b"{}"}.items()}
        ),
    ),
    "empty mod": ("minecraft", lambda root: write_tree(root / "mod", {"fabric.mod.json": b"{}"})),
    "terraria tree": ("terraria", lambda root: write_tree(root / "RubyMod", TERRARIA)),
    "terraria zip": ("terraria", lambda root: write_tree(root, {"ruby.zip": zip_bytes(TERRARIA)}) / "ruby.zip"),
    "folder of trees": (
        "terraria",
        lambda root: write_tree(root / "mods", {f"{m}/{n}": c for m in ("A", "B") for n, c in TERRARIA.items()}),
    ),
    "tmod": ("terraria", lambda root: write_tree(root, {"Ruby.tmod": BUILT}) / "Ruby.tmod"),
    "tmod by content": ("terraria", lambda root: write_tree(root, {"ruby.bin": BUILT}) / "ruby.bin"),
    "folder of tmods": ("terraria", lambda root: write_tree(root / "built", {"a.tmod": BUILT, "b.tmod": BUILT})),
    "zip of tmods": (
        "terraria",
        lambda root: write_tree(root, {"all.zip": zip_bytes({"a.tmod": BUILT, "v1/b.tmod": BUILT})}) / "all.zip",
    ),
    "tmods deep down": (
        "terraria",
        lambda root: write_tree(root / "built", {"x/2023.6/a.tmod": BUILT, "x/2024.5/b.tmod": BUILT}),
    ),
    "tmods and their pictures": (
        "terraria",
        lambda root: write_tree(
            root / "built", {"a.tmod": BUILT, "icon.png": png(5), "v/b.tmod": BUILT, "v/icon.png": png(6)}
        ),
    ),
    "jars deep down": (
        "minecraft",
        lambda root: write_tree(root / "done", {"x/v1/a.jar": zip_bytes(MOD), "x/v2/b.jar": zip_bytes(MOD)}),
    ),
    "jars and a picture": (
        "minecraft",
        lambda root: write_tree(
            root / "mods", {"a.jar": zip_bytes(MOD), "b.jar": zip_bytes(MOD), "icon.png": png(5), "read.txt": b""}
        ),
    ),
    "folder": ("folder", lambda root: write_tree(root / "mine", FOLDER)),
    "empty folder": ("folder", lambda root: write_tree(root / "none", {"x/y": b""})),
    "category folders with archives": (
        "folder",
        lambda root: write_tree(root / "mine", {**FOLDER, "item/all.zip": zip_bytes(MOD), "x/old.tmod": BUILT}),
    ),
    "folder with an archive": (
        "folder",
        lambda root: write_tree(root / "mine", {**FOLDER, "all.zip": zip_bytes(MOD), "old.tmod": BUILT}),
    ),
    "textures by category": ("folder", lambda root: write_tree(root / "t", {"textures/item/a.png": png(1)})),
    "csv": ("manifest", lambda root: write_tree(root, {"m.csv": b"path,category\n"}) / "m.csv"),
    "jsonl": ("manifest", lambda root: write_tree(root, {"m.JSONL": b""}) / "m.JSONL"),
    "damaged jar": ("minecraft", lambda root: write_tree(root, {"mod.jar": b"no zip"}) / "mod.jar"),
    "damaged tmod": ("terraria", lambda root: write_tree(root, {"mod.tmod": b"no tmod"}) / "mod.tmod"),
}


def other_names() -> dict[str, bytes]:
    return {name.replace("ruby", "opal"): content.replace(b"ruby", b"opal") for name, content in MOD.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_detected(kind: str, tmp_path: Path) -> None:
    expected, make = KINDS[kind]
    assert detect(make(tmp_path)) == expected


GRADLE = b"run gradlew build\nversion = 2\n"
BOTH: dict[str, tuple[str, dict[str, bytes]]] = {
    "a build.txt of its own beside a mod's sources": ("minecraft", {**SOURCES, "build.txt": GRADLE}),
    "the same one below": ("minecraft", {f"repo/{n}": c for n, c in {**SOURCES, "build.txt": GRADLE}.items()}),
    "in a pack": ("minecraft", {**MOD, "pack.mcmeta": b"{}", "build.txt": GRADLE}),
    "in a pack without a description": ("minecraft", {**MOD, "build.txt": GRADLE}),
    "assets in a mod of Terraria": ("terraria", {**TERRARIA, "assets/art/textures/big.png": png(5)}),
    "a build.txt that says nothing": ("terraria", {"build.txt": b"", "Items/Ruby.png": png(3)}),
    "nothing but C#": ("folder", {"Items/Ruby.cs": b"class Ruby", "item/a.png": png(1)}),
    "one mod of each game": ("", {"fabric.mod.json": b"{}", **MOD, **TERRARIA}),
    "one mod of each game, one below": (
        "",
        {
            "m/fabric.mod.json": b"{}",
            **{f"m/{n}": c for n, c in MOD.items()},
            **{f"t/{n}": c for n, c in TERRARIA.items()},
        },
    ),
    "built mods of both games": ("", {"a.jar": zip_bytes(MOD), "b.tmod": BUILT}),
    "built mods, one below": ("", {"m/a.jar": zip_bytes(MOD), "t/b.tmod": BUILT}),
    "a jar beside a source tree": (
        "terraria",
        {"m/a.jar": zip_bytes(MOD), **{f"t/{n}": c for n, c in TERRARIA.items()}},
    ),
    "a .tmod and its sources' zip": ("terraria", {"a.zip": zip_bytes(TERRARIA), "b.tmod": BUILT}),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", BOTH)
def test_what_speaks_for_both_games_is_weighed(kind: str, packed: bool, tmp_path: Path) -> None:
    expected, files = BOTH[kind]
    path = write_tree(tmp_path / "tree", files)
    if packed:
        if any(name.endswith((".tmod", ".jar")) for name in files):
            pytest.skip("an archive of archives is no folder of built mods")
        path = tmp_path / "tree.zip"
        path.write_bytes(zip_bytes(files))
        expected = "minecraft" if expected == "folder" else expected
    if expected:
        assert detect(path) == expected
        if expected != "folder":
            with submissions.read(path) as submission:
                assert submission.game == expected, "one rule"
        return
    for read in (detect, submissions.read, lambda path: open_source(path).__enter__()):
        with pytest.raises(UsageError, match=r"either game: Minecraft by .*, Terraria by .*--game") as caught:
            read(path)
    named = [name for name in files if name in str(caught.value)]
    assert len(named) >= 2, "a file of each"
    for game in ("minecraft", "terraria"):
        with submissions.read(path, game) as submission:  # type: ignore[arg-type]
            assert submission.game == game, "told which, it is read"
            assert any(asset.id.casefold().endswith("/ruby") and asset.origin == "own" for asset in submission.assets)


@pytest.mark.parametrize("kind", ["nothing", "a text file"])
def test_neither(kind: str, tmp_path: Path) -> None:
    if kind != "nothing":
        (tmp_path / "x").write_bytes(b"just text")
    with pytest.raises(UsageError):
        detect(tmp_path / "x")


def test_a_mod_registers_what_its_models_name(tmp_path: Path) -> None:
    for kind in ("source tree", "resource pack", "assets folder", "jar", "zip"):
        path = KINDS[kind][1](tmp_path / kind.replace(" ", "-"))
        with open_source(path, requests="ids") as source:
            rows = [(i.asset_id, i.category, i.status, i.use, i.request, i.game) for i in source.items]
        assert rows == [
            ("ruby:item/gone", "item", "missing", "sprite", "gone", "minecraft"),
            ("ruby:item/ruby", "item", None, "sprite", "ruby", "minecraft"),
        ], kind
        assert source.total == 2
        with open_source(path, uses=("unreferenced",)) as source:
            assert [item.asset_id for item in source.items] == ["ruby:item/loose"]


@pytest.mark.parametrize("kind", [kind for kind, (layout, _) in KINDS.items() if layout in ("minecraft", "terraria")])
def test_every_rows_picture_is_found_again(kind: str, tmp_path: Path) -> None:
    path = KINDS[kind][1](tmp_path)
    if kind.startswith("damaged"):
        with pytest.raises(ArchiveError), open_source(path):
            pass
        return
    seen = []
    with open_source(path, uses=("sprite", "unreferenced")) as source, Pictures() as pictures:
        for item in source.items:
            if isinstance(item.asset, Texture):
                found = pictures.load(item.path)
                assert found is not None, item.path
                assert np.array_equal(found.pixels, item.asset.pixels)
                seen.append(item.path)
    assert len(seen) == len(set(seen))
    counts = {"empty mod": 0, "jar in a jar": 4, "terraria tree": 1, "terraria zip": 1, "tmod": 2, "tmod by content": 2}
    plural = ("folder of jars", "folder of packs", "folder of tmods", "zip of", "tmods", "jars")
    assert len(seen) == counts.get(kind, 4 if kind.startswith(plural) else 2)


@pytest.mark.parametrize(
    "path", ["", "gone.png", "gone.jar!x.png", "a!b!c", "here.jar!gone.png", "here.jar!../x", "text!x"]
)
def test_a_picture_that_is_not_there(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path, {"here.jar": zip_bytes(MOD), "text": b"text"})
    with Pictures() as pictures:
        assert pictures.load(path) is None


class TestFolders:
    def test_as_before(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mine", FOLDER)
        with open_source(root, categories=["item", "block"], group="g") as source:
            rows = [(i.asset_id, i.category, i.group, i.game, i.request) for i in source.items]
        assert rows == [("block/stone.png", "block", "g", "", None), ("item/axe.png", "item", "g", "", None)]

    def test_told_a_game_it_has_no_layout_of(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mine", FOLDER)
        with open_source(root, game="minecraft", categories=["item"]) as source:
            assert [(i.asset_id, i.game) for i in source.items] == [
                ("block/stone.png", "minecraft"),
                ("item/axe.png", "minecraft"),
            ]

    def test_an_empty_mod_is_empty(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mod", {"fabric.mod.json": b"{}", "logo.png": png(1)})
        with open_source(root, categories=["item"]) as source:
            assert list(source.items) == []
        assert "registers no textures" in source.notes[0]

    def test_told_to_be_a_folder(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mod", MOD)
        with open_source(root, game="folder", categories=["item"]) as source:
            assert [i.asset_id for i in source.items] == [f"{ITEM}/loose.png", f"{ITEM}/ruby.png"]

    def test_requests(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mine", FOLDER)
        write_tree(tmp_path, {"task.json": b'{"item/axe.png": "a wood axe"}', "bad.json": b"[]"})
        for requests, expected in (
            ("ids", ["stone", "axe"]),
            (tmp_path / "task.json", [None, "a wood axe"]),
            ({"block/stone.png": "a rock"}, ["a rock", None]),
        ):
            with open_source(root, requests=requests) as source:
                assert [i.request for i in source.items] == expected
        with pytest.raises(ManifestError), open_source(root, requests=tmp_path / "bad.json"):
            pass

    def test_unreadable_pictures_are_items(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mine", {"item/a.png": b"rubbish", "item/b.png": png(1)})
        index = CopyIndex(ReferenceSet.from_textures([("x", "item", sprite(1))]))
        with open_source(root, copies=index) as source:
            first, second = source.items
        assert "a.png" in str(first.asset)
        assert isinstance(second.asset, Texture)


@pytest.mark.parametrize("kind", ["folder", "jar", "tmod"])
def test_near_copies_are_flagged(kind: str, tmp_path: Path) -> None:
    seed = {"folder": 1, "jar": 1, "tmod": 4}[kind]
    near = drawn(seed).copy()
    near[5, 5] = (1, 2, 3, 255)
    index = CopyIndex(ReferenceSet.from_textures([("vanilla", "item", near)]))
    with open_source(KINDS[kind][1](tmp_path), copies=index) as source:
        flags = {i.asset_id: i.asset.flags for i in source.items if isinstance(i.asset, Texture)}
    flagged = [id for id, remarks in flags.items() if any("near copy" in r and "vanilla" in r for r in remarks)]
    assert flagged == {"folder": ["item/axe.png"], "jar": ["ruby:item/ruby"], "tmod": ["Items/Opal"]}[kind]


@pytest.mark.parametrize(("options", "words"), [({"game": "chess"}, "chess"), ({"uses": ["sky"]}, "sky")])
def test_wrong_use(options: dict[str, object], words: str, tmp_path: Path) -> None:
    root = write_tree(tmp_path / "mod", MOD)
    with pytest.raises(UsageError, match=words), open_source(root, **options):  # type: ignore[arg-type]
        pass


class TestFingerprint:
    def test_content_and_names_count_and_times_do_not(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mod", MOD)
        first = fingerprint(root)
        os.utime(root / f"{ITEM}/ruby.png", (1, 1))
        assert fingerprint(root) == first
        seen = {first}
        for name, content in ((f"{ITEM}/ruby.png", png(9)), (f"{ITEM}/new.png", png(9)), ("empty.txt", b"")):
            write_tree(root, {name: content})
            seen.add(fingerprint(root))
        (root / "empty.txt").rename(root / "other.txt")
        seen.add(fingerprint(root))
        assert len(seen) == 5

    def test_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jar"
        path.write_bytes(zip_bytes(MOD))
        first = fingerprint(path)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("x", b"y")
        assert fingerprint(path) != first

    def test_a_manifest_is_what_it_names_too(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path, {"a.png": png(1), "deep/b.png": png(2), "other.png": png(3)})
        write_tree(root, {"m.csv": b"path,category\na.png,item\ndeep/b.png,item\ngone.png,item\n"})
        write_tree(root, {"m.jsonl": b'{"path": "deep/b.png", "category": "item"}\n'})

        def both() -> tuple[str, str]:
            return fingerprint(root / "m.csv"), fingerprint(root / "m.jsonl")

        seen = [both()]

        def step(names_b: bool) -> None:
            seen.append(both())
            assert len({csv for csv, _ in seen}) == len(seen)
            assert (seen[-1][1] != seen[-2][1]) == names_b

        for name, content, names_b in (
            ("a.png", png(9), False),
            ("a.png.mcmeta", b"{}", False),
            ("a.png.mcmeta", b"{ }", False),
            ("deep/b.png", png(9), True),
            ("deep/b.png.mcmeta", b"{}", True),
            ("gone.png", png(9), False),
        ):
            write_tree(root, {name: content})
            step(names_b)
        (root / "deep/b.png").unlink()
        step(True)
        write_tree(root, {"other.png": png(4), "new.png": png(5)})
        assert both() == seen[-1], "what it does not name is nothing to it"

    @pytest.mark.parametrize("content", [b"", b"path\n", b"path,category\n\xff\xfe", b"path,category\na\0b,item\n"])
    def test_a_manifest_with_a_mistake(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_bytes(content)
        first = fingerprint(tmp_path / "m.csv")
        (tmp_path / "m.csv").write_bytes(content + b"x")
        assert fingerprint(tmp_path / "m.csv") != first

    def test_what_leads_out_and_what_never_ends(self, tmp_path: Path) -> None:
        root = write_tree(tmp_path / "mod", MOD)
        outside = tmp_path / "secret"
        outside.write_bytes(b"one")
        (root / "link").symlink_to(outside)
        os.mkfifo(root / "pipe")
        (root / "loop").symlink_to(root)
        first = fingerprint(root)
        outside.write_bytes(b"two")
        assert fingerprint(root) == first
        assert fingerprint(tmp_path / "gone") == fingerprint(root / "pipe")


def test_real_mods(mods: Path) -> None:
    with open_source(mods / "farmersdelight") as source:
        items = list(source.items)
    assert source.layout == "minecraft"
    uses = [(item.category, item.use) for item in items]
    assert (uses.count(("item", "sprite")), uses.count(("block", "flat")), uses.count(("block", "sprite"))) == (
        136,
        98,
        11,
    )
    assert all(os.path.isfile(item.path) for item in items if item.status is None)
    assert load(items[0].path) is not None
    assert detect(mods / "amulet-of-many-minions") == "terraria"
