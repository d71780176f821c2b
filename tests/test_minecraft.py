"""Minecraft submissions: what is registered, how it is shown, and where projects keep it."""

from __future__ import annotations

import json
import os
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from assetscore.errors import ArchiveError, ImageError, ManifestError, ReferenceSetError, UsageError
from assetscore.references import ReferenceSet
from assetscore.submissions import minecraft
from assetscore.submissions.minecraft_models import Model, resolve
from assetscore.submissions.trees import Limits

from .makers_games import art, model, png, solid, write_tree, zip_bytes
from .makers_limits import soon_and_small

A = "assets/ruby/"


def rows(submission) -> dict[str, tuple[str, str, str]]:
    return {asset.id: (asset.category, asset.use, asset.origin) for asset in submission.assets}


def mod(**extra: bytes) -> dict[str, bytes]:
    """A small mod with one of everything."""
    return {
        A + "models/item/gem.json": model("minecraft:item/generated", layer0="ruby:item/gem"),
        A + "models/item/sword.json": model("item/handheld", layer0="ruby:item/sword"),
        A + "models/item/ore.json": model("ruby:block/ore"),
        A + "models/item/stick.json": model("item/generated", layer0="minecraft:item/stick"),
        A + "models/item/lost.json": model("item/generated", layer0="ruby:item/lost"),
        A + "models/item/apple.json": model("minecraft:item/apple"),
        A + "models/block/ore.json": model("block/cube_all", all="ruby:block/ore"),
        A + "models/block/lamp.json": solid(all="ruby:block/lamp", particle="minecraft:block/stone"),
        A + "models/block/lamp_on.json": model("ruby:block/lamp", all="ruby:block/lamp_on"),
        A + "models/block/bush.json": model("block/cross", cross="#plant", plant="ruby:block/bush"),
        A + "models/item/bush.json": model("item/generated", layer0="ruby:block/bush"),
        A + "models/block/lantern.json": model("block/template_lantern", lantern="ruby:block/lantern"),
        A + "blockstates/ore.json": json.dumps({"variants": {"": {"model": "ruby:block/ore"}}}).encode(),
        A + "blockstates/stone.json": json.dumps({"variants": {"": [{"model": "minecraft:block/stone"}]}}).encode(),
        A + "blockstates/gone.json": json.dumps({"multipart": [{"apply": {"model": "ruby:block/gone"}}]}).encode(),
        A + "textures/item/gem.png": png(1),
        A + "textures/item/sword.png": png(2),
        A + "textures/item/unused.png": png(3),
        A + "textures/block/ore.png": png(4),
        A + "textures/block/lamp.png": png(5),
        A + "textures/block/lamp_on.png": png(6),
        A + "textures/block/bush.png": png(7),
        A + "textures/block/lantern.png": png(8),
        A + "textures/entity/golem.png": png(9, 64, 32),
        A + "textures/gui/panel.png": png(10),
        **extra,
    }


EXPECTED = {
    "ruby:item/gem": ("item", "sprite", "own"),
    "ruby:item/sword": ("item", "sprite", "own"),
    "ruby:item/unused": ("item", "unreferenced", "own"),
    "ruby:item/lost": ("item", "sprite", "missing"),
    "ruby:item/apple": ("item", "sprite", "vanilla"),
    "minecraft:item/stick": ("item", "sprite", "vanilla"),
    "ruby:block/ore": ("block", "flat", "own"),
    "ruby:block/lamp": ("block", "uv", "own"),
    "ruby:block/lamp_on": ("block", "uv", "own"),
    "ruby:block/bush": ("block", "sprite", "own"),
    "ruby:block/lantern": ("block", "uv", "own"),
    "ruby:block/stone": ("block", "flat", "vanilla"),
    "ruby:block/gone": ("block", "flat", "missing"),
    "ruby:entity/golem": ("entity", "entity", "own"),
    "ruby:gui/panel": ("gui", "unreferenced", "own"),
}


@pytest.mark.parametrize(
    "root", ["", "src/main/resources/", "common/src/main/resources/", "Xplat/", "repo-main/src/generated/resources/"]
)
@pytest.mark.parametrize("packing", ["folder", "zip", "zip with folder entries", "streamed zip"])
def test_one_of_everything_wherever_it_lies(tmp_path, root, packing):
    files = {root + name: content for name, content in mod().items()}
    if packing == "folder":
        path = write_tree(tmp_path / "mod", files)
    else:
        path = tmp_path / "mod.jar"
        path.write_bytes(zip_bytes(files, folders="folder" in packing, stream="streamed" in packing))
    with minecraft.read(path) as submission:
        assert rows(submission) == EXPECTED
        gem = next(asset for asset in submission.assets if asset.id == "ruby:item/gem")
        assert (gem.texture.pixels == art(1)).all()
        assert all(asset.reason for asset in submission.assets if asset.origin != "own")
        assert submission.notes == ()


@pytest.mark.parametrize("below", ["assets", "assets/ruby"])
def test_an_assets_folder_or_a_namespace_of_it(tmp_path, below):
    write_tree(tmp_path, mod())
    assert rows(minecraft.read(tmp_path / below)) == EXPECTED


def test_sprite_goes_before_flat_before_uv(tmp_path):
    files = {
        A + "models/block/a.json": solid(all="ruby:block/a"),
        A + "models/block/b.json": model("block/cube_all", all="ruby:block/a"),
        A + "textures/block/a.png": png(1),
    }
    write_tree(tmp_path, files)
    assert rows(minecraft.read(tmp_path)) == {"ruby:block/a": ("block", "flat", "own")}


def test_item_definitions_of_newer_versions(tmp_path):
    nested = {
        "model": {
            "type": "minecraft:condition",
            "on_true": {"type": "minecraft:model", "model": "ruby:item/on"},
            "on_false": {"type": "minecraft:model", "model": "minecraft:item/compass"},
        }
    }
    files = {
        A + "items/on.json": json.dumps(nested).encode(),
        A + "models/item/on.json": model("item/generated", layer0="ruby:item/on"),
        A + "textures/item/on.png": png(1),
        A + "items/egg.json": json.dumps({"model": {"type": "model", "model": "minecraft:item/egg"}}).encode(),
    }
    found = rows(minecraft.read(write_tree(tmp_path, files)))
    assert found == {"ruby:item/on": ("item", "sprite", "own"), "ruby:item/egg": ("item", "sprite", "vanilla")}


def test_before_the_flattening(tmp_path):
    files = {
        A + "blockstates/ore.json": b'{"forge_marker": 1, "defaults": {"model": "cube_all", "textures": '
        b'{"all": "ruby:blocks/ore"}}, "variants": {"normal": [{}], "lit": {"model": "ruby:ore_lit"}}}',
        A + "models/block/ore_lit.json": model("block/cube_all", all="ruby:blocks/ore_lit"),
        A + "textures/blocks/ore.png": png(1),
        A + "textures/blocks/ore_lit.png": png(2),
        A + "textures/items/gem.png": png(3),
    }
    found = rows(minecraft.read(write_tree(tmp_path, files)))
    assert found["ruby:blocks/ore"] == ("block", "flat", "own")
    assert found["ruby:blocks/ore_lit"] == ("block", "flat", "own")
    assert found["ruby:items/gem"] == ("item", "unreferenced", "own")


def test_art_in_a_folder_of_the_mods_own_belongs_to_what_shows_it(tmp_path):
    files = {
        A + "models/item/gem.json": model("item/generated", layer0="ruby:custom/gem"),
        A + "models/block/ore.json": model("block/cube_all", all="ruby:custom/ore"),
        A + "textures/custom/gem.png": png(1),
        A + "textures/custom/ore.png": png(2),
        A + "textures/custom/else.png": png(3),
    }
    assert rows(minecraft.read(write_tree(tmp_path, files))) == {
        "ruby:custom/gem": ("item", "sprite", "own"),
        "ruby:custom/ore": ("block", "flat", "own"),
        "ruby:custom/else": ("custom", "unreferenced", "own"),
    }


def test_parts_of_a_loaders_model(tmp_path):
    composite = {
        "loader": "neoforge:composite",
        "children": {"base": {"parent": "block/cube_all", "textures": {"all": "ruby:block/base"}}},
    }
    files = {
        A + "models/block/a.json": json.dumps(composite).encode(),
        A + "models/block/b.json": b'{"loader": "forge:obj", "textures": {"t": "ruby:block/obj"}}',
        A + "textures/block/base.png": png(1),
        A + "textures/block/obj.png": png(2),
    }
    found = rows(minecraft.read(write_tree(tmp_path, files)))
    assert found == {"ruby:block/base": ("block", "flat", "own"), "ruby:block/obj": ("block", "uv", "own")}


@pytest.mark.parametrize(
    "place",
    [
        "art/assets/ruby/textures/item/old.png",
        "build/resources/main/assets/ruby/textures/item/old.png",
        "src/test/resources/assets/ruby/textures/item/old.png",
        "src/main/resources/resourcepacks/retro/assets/ruby/textures/item/old.png",
        "src/main/resources/programmer_art/assets/ruby/textures/item/old.png",
        "docs/old.png",
        ".git/assets/ruby/textures/item/old.png",
        "node_modules/x/src/main/resources/assets/ruby/textures/item/old.png",
    ],
)
def test_what_is_not_built_into_the_mod_does_not_count(tmp_path, place):
    files = {f"src/main/resources/{name}": content for name, content in mod().items()}
    assert rows(minecraft.read(write_tree(tmp_path, {**files, place: png(99)}))) == EXPECTED


@pytest.mark.parametrize("around", ["ruby/", "ruby-mod-1.0/", "Ruby Mod/out/", "out/", "test/", "a/b/c/"])
@pytest.mark.parametrize("root", ["", "src/main/resources/"])
@pytest.mark.parametrize("packing", ["folder", "zip"])
@pytest.mark.parametrize("beside", [(), (".DS_Store", "__MACOSX/ruby/assets/ruby/textures/item/._gem.png")])
def test_what_was_packed_with_its_folder(tmp_path, around, root, packing, beside):
    files = {around + root + name: content for name, content in mod().items()}
    files[f"{around}art/assets/ruby/textures/item/draft.png"] = png(98)
    files.update(dict.fromkeys(beside, b"\0"))
    path = write_tree(tmp_path / "mod", files)
    if packing == "zip":
        path = tmp_path / "mod.zip"
        path.write_bytes(zip_bytes(files))
    with minecraft.read(path) as submission:
        assert rows(submission) == EXPECTED
        assert submission.notes == ()


def test_the_one_root_beside_other_files(tmp_path):
    files = {f"ruby/{name}": content for name, content in mod().items()}
    files.update({"README.md": b"", "docs/gem.png": png(1), "ruby/art/assets/ruby/textures/item/draft.png": png(2)})
    files["resourcepacks/retro/assets/ruby/textures/item/retro.png"] = png(3)
    assert rows(minecraft.read(write_tree(tmp_path, files))) == EXPECTED


def test_several_roots_are_sub_projects(tmp_path):
    files = {
        "one/assets/ruby/textures/item/gem.png": png(1),
        "two/assets/ruby/models/item/gem.json": model("item/generated", layer0="ruby:item/gem"),
        "two/assets/ruby/textures/item/gem.png": png(2),
        "two/assets/opal/textures/item/gem.png": png(3),
    }
    submission = minecraft.read(write_tree(tmp_path, files))
    assert rows(submission) == {
        "opal:item/gem": ("item", "unreferenced", "own"),
        "ruby:item/gem": ("item", "sprite", "own"),
    }
    assert (submission.assets[1].texture.pixels == art(1)).all()


def test_packs_inside_a_mod_without_textures_are_not_its_own(tmp_path):
    files = {"fabric.mod.json": b"{}", "resourcepacks/retro/assets/ruby/textures/item/gem.png": png(1)}
    assert minecraft.read(write_tree(tmp_path, files)).assets == ()


def test_a_zip_of_a_folder_of_jars_and_packs(tmp_path):
    files = {
        "all/a.jar": zip_bytes(mod()),
        "all/mods/b.jar": zip_bytes({"assets/opal/textures/item/gem.png": png(1)}),
        "all/c/pack.mcmeta": b"{}",
        "all/c/assets/minecraft/textures/block/stone.png": png(2),
    }
    (tmp_path / "all.zip").write_bytes(zip_bytes(files))
    with minecraft.read(tmp_path / "all.zip") as submission:
        expected = {f"all/a.jar!{key}": row for key, row in EXPECTED.items()}
        expected["all/mods/b.jar!opal:item/gem"] = ("item", "unreferenced", "own")
        expected["all/c!minecraft:block/stone"] = ("block", "flat", "own")
        assert rows(submission) == expected
        assert all(asset.texture.size for asset in submission.assets if asset.origin == "own")


VANILLA_ROW, MISSING_ROW = ("item", "sprite", "vanilla"), ("item", "sprite", "missing")
GEM_MODEL = model("item/generated", layer0="ruby:item/gem")
COLLISIONS = {
    # name: the files beside textures/item/apple.png, and the rows of item/apple and of that file
    "a model shows vanilla art": ({"models/item/apple.json": model("minecraft:item/apple")}, VANILLA_ROW, "unreferenced"),
    "an item definition does": (
        {"items/apple.json": b'{"model": {"type": "model", "model": "minecraft:item/apple"}}'},
        ("item", "sprite", "vanilla"), "unreferenced",
    ),
    "its model is not there": (
        {"items/apple.json": b'{"model": {"model": "ruby:item/gone"}}', "models/item/x.json": b"{}"},
        MISSING_ROW, "unreferenced",
    ),
    "another item shows the file": (
        {"models/item/apple.json": model("minecraft:item/apple"),
         "models/item/pear.json": model("item/generated", layer0="ruby:item/apple")},
        VANILLA_ROW, "sprite",
    ),
    "the id shows the file, too": (
        {"items/apple.json": b'{"model": {"a": {"model": "minecraft:item/apple"}, "b": {"model": "ruby:item/red"}}}',
         "models/item/red.json": model("item/generated", layer0="ruby:item/apple")},
        ("item", "sprite", "own"), None,
    ),
    "the id shows the file alone": (
        {"models/item/apple.json": model("item/generated", layer0="ruby:item/apple")}, ("item", "sprite", "own"), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COLLISIONS)
@pytest.mark.parametrize("nested", [False, True])
def test_a_file_does_not_hide_what_its_id_shows(tmp_path, name, nested):
    beside, registered, use = COLLISIONS[name]
    files = {A + "textures/item/apple.png": png(1), **{A + name: content for name, content in beside.items()}}
    path = tmp_path / "mod.jar"
    path.write_bytes(zip_bytes({"META-INF/jars/a.jar": zip_bytes(files)} if nested else files))
    expected = {"ruby:item/apple": registered}
    if use is not None:
        expected["ruby:item/apple.png"] = ("item", use, "own")
    with minecraft.read(path) as submission:
        assert rows(submission) == expected
        own = next(asset for asset in submission.assets if asset.origin == "own")
        assert (own.texture.pixels == art(1)).all()
        assert own.path.endswith("textures/item/apple.png")


def test_a_block_does_not_hide_behind_a_file_either(tmp_path):
    state = {"variants": {"a": {"model": "minecraft:block/stone"}, "b": {"model": "ruby:block/slate"}}}
    files = {
        A + "blockstates/stone.json": json.dumps(state).encode(),
        A + "blockstates/slate.json": json.dumps(state).encode(),
        A + "models/block/slate.json": model("block/cube_all", all="ruby:block/slate"),
        A + "textures/block/stone.png": png(1),
        A + "textures/block/slate.png": png(2),
        A + "textures/item/stone.png": png(3),  # another id
    }
    assert rows(minecraft.read(write_tree(tmp_path, files))) == {
        "ruby:block/stone": ("block", "flat", "vanilla"),
        "ruby:block/stone.png": ("block", "unreferenced", "own"),
        "ruby:block/slate": ("block", "flat", "own"),
        "ruby:item/stone": ("item", "unreferenced", "own"),
    }


def test_made_ids_stay_unique_and_a_missing_texture_is_not_hidden(tmp_path):
    files = {
        A + "models/item/apple.json": model("minecraft:item/apple"),
        A + "models/item/pear.json": model("minecraft:item/apple"),
        A + "models/item/bowl.json": model("item/generated", layer0="ruby:item/pear"),
        A + "textures/item/apple.png": png(1),
        A + "textures/item/apple.png.png": png(2),
    }
    assert rows(minecraft.read(write_tree(tmp_path, files))) == {
        "ruby:item/apple": VANILLA_ROW,
        "ruby:item/apple.png": ("item", "unreferenced", "own"),
        "ruby:item/apple.png.png": ("item", "unreferenced", "own"),
        "ruby:item/pear": VANILLA_ROW,
        "ruby:item/pear.png": MISSING_ROW,
    }


def test_what_a_jar_names_may_lie_in_a_jar_inside_it(tmp_path):
    inner = {
        A + "textures/item/gem.png": png(1),
        A + "models/item/opal.json": model("item/generated", layer0="ruby:item/opal"),
    }
    outer = {
        A + "models/item/gem.json": GEM_MODEL,
        A + "models/item/pearl.json": model("item/generated", layer0="ruby:item/pearl"),
        A + "textures/item/opal.png": png(2),
        "META-INF/jarjar/inner.jar": zip_bytes(inner),
    }
    (tmp_path / "mod.jar").write_bytes(zip_bytes(outer))
    with minecraft.read(tmp_path / "mod.jar") as submission:
        assert rows(submission) == {
            "ruby:item/gem": ("item", "sprite", "own"),
            "ruby:item/opal": ("item", "sprite", "own"),
            "ruby:item/pearl": MISSING_ROW,
        }
        pixels = [asset.texture.pixels.tolist() for asset in submission.assets if asset.origin == "own"]
        assert pixels == [art(1).tolist(), art(2).tolist()]
        assert [asset.reason for asset in submission.assets if asset.origin == "own"] == ["", ""]


@pytest.mark.parametrize("beside", ["dangling link", "link out", "too large", "folder"])
def test_a_mcmeta_that_cannot_be_read_costs_its_frames_alone(tmp_path, beside):
    picture = A + "textures/item/gem.png"
    write_tree(tmp_path / "mod", {picture: png(1, 16, 32)})
    (tmp_path / "outside").write_bytes(b'{"animation": {}}')
    mcmeta = tmp_path / "mod" / f"{picture}.mcmeta"
    if beside == "too large":
        with mcmeta.open("wb") as file:
            file.truncate(65 * 2**20)
    elif beside == "folder":
        mcmeta.mkdir()
    else:
        mcmeta.symlink_to("nowhere" if beside == "dangling link" else tmp_path / "outside")
    [asset] = minecraft.read(tmp_path / "mod").assets
    assert (len(asset.frames), asset.texture.size) == (1, (16, 32))
    assert len(asset.texture.flags) == (0 if beside == "folder" else 1)


def test_a_mcmeta_too_large_in_a_jar_costs_its_frames_alone(tmp_path):
    files = {A + "textures/item/gem.png": png(1, 16, 32), A + "textures/item/gem.png.mcmeta": bytes(9000)}
    (tmp_path / "mod.jar").write_bytes(zip_bytes(files))
    with minecraft.read(tmp_path / "mod.jar", limits=Limits(entry_bytes=8000)) as submission:
        assert submission.assets[0].texture.size == (16, 32)
        assert "mcmeta" in submission.assets[0].texture.flags[0]


def test_sub_projects_and_generated_resources_are_one_mod(tmp_path):
    files = {
        "common/src/main/resources/assets/ruby/textures/item/gem.png": png(1),
        "common/src/generated/resources/assets/ruby/models/item/gem.json": model(
            "item/generated", layer0="ruby:item/gem"
        ),
        "fabric/src/main/resources/assets/ruby/textures/item/gem.png": png(2),
        "fabric/src/main/resources/assets/rubyfabric/textures/item/extra.png": png(3),
    }
    submission = minecraft.read(write_tree(tmp_path, files))
    assert rows(submission) == {
        "ruby:item/gem": ("item", "sprite", "own"),
        "rubyfabric:item/extra": ("item", "unreferenced", "own"),
    }
    assert (submission.assets[0].texture.pixels == art(1)).all()


def test_jars_in_jars_count_and_the_outer_one_goes_first(tmp_path):
    innermost = zip_bytes({"assets/deep/textures/item/deep.png": png(1)})
    inner = zip_bytes({"assets/ruby/textures/item/gem.png": png(2), "META-INF/jars/deep.jar": innermost})
    outer = {**mod(), "META-INF/jarjar/inner.jar": inner, "META-INF/jarjar/library.jar": zip_bytes({"a.class": b"x"})}
    path = tmp_path / "mod.jar"
    path.write_bytes(zip_bytes(outer))
    with minecraft.read(path) as submission:
        found = rows(submission)
        assert found == {**EXPECTED, "deep:item/deep": ("item", "unreferenced", "own")}
        assert (next(a for a in submission.assets if a.id == "ruby:item/gem").texture.pixels == art(1)).all()
        assert any("library.jar: registers no textures" in note for note in submission.notes)


def test_a_folder_of_jars_and_packs(tmp_path):
    (tmp_path / "a.jar").write_bytes(zip_bytes(mod()))
    (tmp_path / "b.zip").write_bytes(zip_bytes({"assets/minecraft/textures/item/apple.png": png(1)}))
    (tmp_path / "broken.zip").write_bytes(b"no zip")
    pack = {"pack.mcmeta": b"{}", "assets/minecraft/textures/block/stone.png": png(2)}
    write_tree(tmp_path / "c", pack)
    with minecraft.read(tmp_path) as submission:
        expected = {f"a.jar!{key}": row for key, row in EXPECTED.items()}
        expected["b.zip!minecraft:item/apple"] = ("item", "sprite", "own")
        expected["c!minecraft:block/stone"] = ("block", "flat", "own")
        assert rows(submission) == expected
        assert {asset.group for asset in submission.assets} == {"a.jar", "b.zip", "c"}
        assert any("broken.zip" in note for note in submission.notes)


@pytest.mark.parametrize("place", ["mod.jar", "mods/mod.jar", "pack/assets", "libs/mod.jar"])
def test_a_folder_of_one(tmp_path, place):
    if place.endswith(".jar"):
        write_tree(tmp_path, {place: zip_bytes(mod()), "readme.txt": b""})
    else:
        write_tree(tmp_path / "pack", {**mod(), "pack.mcmeta": b"{}"})
    with minecraft.read(tmp_path) as submission:
        assert rows(submission) == ({} if place.startswith("libs") else EXPECTED)
        assert {asset.group for asset in submission.assets} <= {""}


PACK = "assets/ruby/textures/item/gem.png"


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("files", "groups"),
    [
        ({f"A/{PACK}": 1, "A/pack.mcmeta": 0, f"B/{PACK}": 2}, {"A": 1, "B": 2}),
        ({f"A/{PACK}": 1, f"B/{PACK}": 2, "B/pack.mcmeta": 0, f"C/{PACK}": 3}, {"A": 1, "B": 2, "C": 3}),
        ({f"all/A/{PACK}": 1, "all/A/pack.mcmeta": 0, f"all/B/{PACK}": 2}, {"all/A": 1, "all/B": 2}),
        ({f"A/{PACK}": 1, "A/pack.mcmeta": 0, f"out/{PACK}": 2, f".trash/{PACK}": 3}, {"": 1}),
        ({f"A/{PACK}": 1, "A/pack.mcmeta": 0, f"A/{PACK.replace('assets', 'old/assets')}": 2}, {"": 1}),
    ],
)
def test_packs_without_a_description_beside_one_that_has_it(tmp_path, files, groups, zipped):
    contents = {name: png(seed) if seed else b"{}" for name, seed in files.items()}
    if zipped:
        (tmp_path / "all.zip").write_bytes(zip_bytes(contents))
    else:
        write_tree(tmp_path / "all.zip", contents)
    with minecraft.read(tmp_path / "all.zip") as submission:
        assert {asset.group: asset.id.endswith("ruby:item/gem") for asset in submission.assets} == dict.fromkeys(
            groups, True
        )
        for asset in submission.assets:
            assert (asset.texture.pixels == art(groups[asset.group])).all()


@pytest.mark.parametrize("beside", [0, 1, 2])
@pytest.mark.parametrize("where", ["META-INF/jars/lib.jar", "META-INF/jarjar/a!b.jar"])
def test_a_jars_inner_jars_are_its_own_however_many_lie_beside_it(tmp_path, where, beside):
    lib = zip_bytes({"assets/lib/textures/item/part.png": png(9)})
    shows = {A + "models/item/part.json": model("item/generated", layer0="lib:item/part")}
    write_tree(tmp_path, {"one.jar": zip_bytes({**mod(), **shows, where: lib})})
    write_tree(tmp_path, {f"other{i}.jar": zip_bytes(mod()) for i in range(beside)})
    owners = ["one.jar!", *(f"other{i}.jar!" for i in range(beside))] if beside else [""]
    with minecraft.read(tmp_path) as submission:
        expected = {owner + key: row for owner in owners for key, row in EXPECTED.items()}
        expected[f"{owners[0]}lib:item/part"] = ("item", "sprite", "own")
        assert rows(submission) == expected
        part = next(asset for asset in submission.assets if asset.id.endswith("lib:item/part"))
        assert (part.texture.pixels == art(9)).all()
        assert part.group == f"one.jar!{where}"


@pytest.mark.parametrize(
    ("files", "count"),
    [
        (["done/mod.jar"], 1),
        (["a/b/c/mod.jar"], 1),
        (["a/one.jar", "b/two.jar"], 2),
        (["overrides/mods/a.jar", "overrides/resourcepacks/p.zip", "modrinth.index.json"], 2),
        (["mods/a.jar", "deep/down/b.jar"], 1),
        (["libs/api.jar", "gradle/wrapper/gradle-wrapper.jar"], 0),
        (["build.gradle", "tools/api.jar"], 0),
        (["src/main/java/Ruby.java", "vendor/api.jar"], 0),
        (["build/tools/api.jar", "__MACOSX/x.jar", "notes.txt"], 0),
        (["textures/item/gem.png", "x/y/a.jar"], 0),
    ],
)
def test_jars_in_folders(tmp_path, files, count):
    archive = zip_bytes({A + "textures/item/gem.png": png(1)})
    content = {name: archive if name.endswith((".jar", ".zip")) else png(2) for name in files}
    write_tree(tmp_path / "ruby", content)
    with minecraft.read(tmp_path / "ruby") as submission:
        assert sum(".jar" in asset.path + asset.group or ".zip" in asset.group for asset in submission.assets) == count


BROKEN = {"no zip": b"no zip", "empty": b"", "hostile": zip_bytes({"../x": b""}), "cut": zip_bytes(mod())[:-30]}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_folder_whose_only_jars_cannot_be_read_is_an_error(tmp_path, kind):
    inner = zip_bytes({**mod(), "META-INF/jars/in.jar": BROKEN[kind]})
    for number, beside in enumerate([{}, {"b.jar": b"x"}, {"b.zip": zip_bytes({"c.jar": BROKEN[kind]})}]):
        path = write_tree(tmp_path / str(number), {"a.jar": BROKEN[kind], **beside})
        with pytest.raises(ArchiveError):
            minecraft.read(path)
        with minecraft.read(write_tree(path, {"good.jar": zip_bytes(mod())})) as submission:
            assert rows(submission) == {f"good.jar!{key}": row for key, row in EXPECTED.items()}
            assert sum("passed over" in note for note in submission.notes) == 1 + len(beside)
    path = write_tree(tmp_path / "inside", {"a.jar": inner, "good.jar": zip_bytes(mod())})
    with minecraft.read(path) as submission:
        assert "good.jar!ruby:item/gem" in rows(submission), "a hostile jar in a jar costs that one alone"
        assert ("a.jar!ruby:item/gem" in rows(submission)) == (kind != "hostile")


def test_a_jar_without_textures_is_a_valid_empty_result(tmp_path):
    path = tmp_path / "data.jar"
    path.write_bytes(zip_bytes({"data/ruby/recipes/gem.json": b"{}", "fabric.mod.json": b"{}"}))
    with minecraft.read(path) as submission:
        assert submission.assets == ()
        assert "registers no textures" in submission.notes[0]


def test_broken_json_is_noted_and_passed_over(tmp_path):
    files = mod(
        **{A + "models/block/broken.json": b"{", A + "blockstates/b.json": b"\xff\xfe", A + "items/x.json": b"[1,"}
    )
    files[A + "models/item/number.json"] = b"17"
    files[A + "models/item/digits.json"] = b'{"a": ' + b"9" * 20_000 + b"}"
    files[A + "models/item/bom.json"] = b"\xef\xbb\xbf" + model("item/generated", layer0="ruby:item/bom")
    files[A + "textures/item/bom.png"] = png(1)
    submission = minecraft.read(write_tree(tmp_path, files))
    assert rows(submission) == {**EXPECTED, "ruby:item/bom": ("item", "sprite", "own")}
    assert sum("passed over" in note for note in submission.notes) == 3


FRAMES = [
    ("one frame a square", b'{"animation": {}}', (16, 64), 4),
    ("byte order mark", b'\xef\xbb\xbf{"animation": {"frametime": 3}}', (16, 64), 4),
    ("height", b'{"animation": {"height": 32}}', (16, 64), 2),
    ("frames named", b'{"animation": {"frames": [0, {"index": 2, "time": 5}, 0]}}', (16, 64), 2),
    ("index out of range", b'{"animation": {"frames": [0, 1, 99]}}', (16, 64), 2),
    ("broken", b'{"animation": ', (16, 64), 1),
    ("no animation", b'{"texture": {"blur": true}}', (16, 64), 1),
    ("no mcmeta", None, (16, 32), 1),
    ("a long strip", b'{"animation": {}}', (16, 6400), 400),
]


@pytest.mark.parametrize(("name", "mcmeta", "size", "count"), FRAMES, ids=[f[0] for f in FRAMES])
@pytest.mark.parametrize("jar", [False, True])
def test_frames_by_mcmeta_alone(tmp_path, name, mcmeta, size, count, jar):
    files = {
        A + "textures/block/strip.png": png(np.random.default_rng(1).integers(0, 255, (size[1], size[0], 4), np.uint8))
    }
    files[A + "textures/block/nothing_beside.png.mcmeta"] = b'{"animation": {}}'
    if mcmeta is not None:
        files[A + "textures/block/strip.png.mcmeta"] = mcmeta
    path = write_tree(tmp_path / "tree", files)
    if jar:
        path = tmp_path / "mod.jar"
        path.write_bytes(zip_bytes(files))
    with minecraft.read(path) as submission:
        [asset] = submission.assets
        assert len(asset.frames) == count


def test_links_inside_are_followed_and_links_outside_are_not(tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(1))
    root = write_tree(tmp_path / "mod", mod())
    folder = root / A / "textures/item"
    (folder / "alias.png").symlink_to("gem.png")
    (folder / "out.png").symlink_to(secret)
    (folder / "up.png").symlink_to("../../../../../../secret.png")
    (folder / "dangling.png").symlink_to("nowhere.png")
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "folder").symlink_to(tmp_path, target_is_directory=True)
    submission = minecraft.read(root)
    found = {asset.id: asset for asset in submission.assets}
    new = {f"ruby:item/{name}" for name in ("alias", "out", "up", "dangling", "loop")}
    assert found.keys() == EXPECTED.keys() | new
    assert (found["ruby:item/alias"].texture.pixels == art(1)).all()
    for name in ("out", "up", "dangling", "loop"):
        with pytest.raises(ImageError):
            _ = found[f"ruby:item/{name}"].texture


def test_odd_names(tmp_path):
    places = ["Upper.PNG", "with space.png", "grün.png", "case.png", "Case.png", "dotted.name.png"]
    files = {f"{A}textures/item/{name}": png(i) for i, name in enumerate(places)}
    root = write_tree(tmp_path, files)
    (root / A / "textures/item/folder.png").mkdir()
    found = {asset.id: asset for asset in minecraft.read(root).assets}
    assert set(found) == {
        "ruby:item/Upper.PNG", "ruby:item/with space", "ruby:item/grün", "ruby:item/case", "ruby:item/Case",
        "ruby:item/dotted.name",
    }  # fmt: skip
    for number, name in enumerate(places):
        key = f"ruby:item/{name if name.endswith('.PNG') else name[:-4]}"
        assert (found[key].texture.pixels == art(number)).all()


def test_names_that_no_table_or_terminal_should_see(tmp_path):
    folder = tmp_path / A / "textures/item"
    folder.mkdir(parents=True)
    for number, name in enumerate([b"\xff\xfe.png", b"two\nlines.png", b"\x1b[31mred.png"]):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(png(number))
    (tmp_path / A / "models/item").mkdir(parents=True)
    surrogate = '{"parent": "item/generated", "textures": {"layer0": "ruby:item/\\ud800\\u001b"}}'
    (tmp_path / A / "models/item/a.json").write_text(surrogate)
    submission = minecraft.read(tmp_path)
    assert len(submission.assets) == 4
    for asset in submission.assets:
        assert (asset.id + asset.path + asset.reason).isprintable()
        (asset.id + asset.path).encode()
    pixels = {asset.texture.pixels.tobytes() for asset in submission.assets if asset.origin == "own"}
    assert pixels == {art(number).tobytes() for number in range(3)}


def test_unreadable_pictures_cost_one_row_each(tmp_path):
    broken = {
        "empty": b"",
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "truncated": png(1, 64, 64)[:-60],
        "text": b"hello",
    }
    files = {f"{A}textures/item/{name}.png": content for name, content in broken.items()}
    for asset in minecraft.read(write_tree(tmp_path, files)).assets:
        with pytest.raises(ImageError, match=asset.path.rpartition("/")[2].replace(".", r"\.")):
            _ = asset.texture


def test_requests_by_ids_by_mapping_and_by_task_file(tmp_path):
    root = write_tree(tmp_path / "mod", mod())
    by_id = {asset.id: asset.request for asset in minecraft.read(root, requests="ids").assets}
    assert by_id["ruby:block/lamp_on"] == "lamp on"
    task = tmp_path / "task.json"
    task.write_text('{"ruby:item/gem": "a red gem"}')
    for requests in ({"ruby:item/gem": "a red gem"}, task):
        found = {asset.id: asset.request for asset in minecraft.read(root, requests=requests).assets}
        assert found["ruby:item/gem"] == "a red gem"
        assert found["ruby:item/sword"] is None
    assert {asset.request for asset in minecraft.read(root).assets} == {None}


@pytest.mark.parametrize("content", ["[]", "{", '{"a": 1}', '{"a": ""}', ""])
def test_a_bad_task_file_is_named(tmp_path, content):
    task = tmp_path / "task.json"
    task.write_text(content)
    with pytest.raises(ManifestError, match=r"task\.json"):
        minecraft.read(write_tree(tmp_path / "mod", mod()), requests=task)


def test_select_leaves_out_uv_and_unreferenced_until_asked(tmp_path):
    submission = minecraft.read(write_tree(tmp_path, mod()))
    assert {asset.use for asset in submission.select()} == {"sprite", "flat", "entity"}
    assert len(submission.select(("uv",))) == 3
    with pytest.raises(UsageError, match="uses"):
        submission.select(("sheet",))


@pytest.mark.parametrize("path", ["nowhere", "no\0where"])
def test_nothing_at_the_path(tmp_path, path):
    with pytest.raises(UsageError, match="path"):
        minecraft.read(str(tmp_path / path))
    with pytest.raises(UsageError, match="path"):
        minecraft.read(17)


def cycle(length: int) -> dict[str, bytes]:
    return {A + f"models/item/m{i}.json": model(f"ruby:item/m{(i + 1) % length}") for i in range(length)}


HOSTILE_TREES = {
    "a model its own parent": cycle(1),
    "parents in a circle": cycle(7),
    "endless parents": {A + f"models/item/m{i}.json": model(f"ruby:item/m{i + 1}") for i in range(300)},
    "arrays 1,000 deep": {A + "models/item/a.json": b"[" * 1000 + b"]" * 1000},
    "objects 1,000 deep": {A + "models/item/a.json": b'{"a":' * 1000 + b"1" + b"}" * 1000},
    "arrays a million deep": {A + "blockstates/a.json": b"[" * 1_000_000},
    "quotes do not hide depth": {A + "items/a.json": b'{"]": ' + b"[" * 1000 + b"]" * 1000 + b"}"},
    "20 MB of JSON": {A + "models/item/a.json": b'{"a": "' + b"x" * 20_000_000 + b'"}'},
}


@pytest.mark.parametrize("name", HOSTILE_TREES)
@pytest.mark.parametrize("jar", [False, True])
def test_hostile_models_are_named_errors(tmp_path, name, jar):
    path = write_tree(tmp_path / "tree", HOSTILE_TREES[name])
    if jar:
        path = tmp_path / "mod.jar"
        path.write_bytes(zip_bytes(HOSTILE_TREES[name]))

    def check() -> None:
        with pytest.raises(ArchiveError, match=rf"{path.name}.*ruby.*\b(m\d+|a)\b"):  # the mod and the file
            minecraft.read(path)

    soon_and_small(check)


def test_a_mod_among_several_that_cannot_be_read_is_noted(tmp_path):
    (tmp_path / "a.jar").write_bytes(zip_bytes(cycle(3)))
    (tmp_path / "b.jar").write_bytes(zip_bytes(mod()))
    with minecraft.read(tmp_path) as submission:
        assert rows(submission) == {f"b.jar!{key}": row for key, row in EXPECTED.items()}
        assert any(note.startswith("passed over") and "a.jar" in note for note in submission.notes)


RINGS = {
    "names itself": {"all": "#all"},
    "two": {"all": "#b", "b": "#all"},
    "seven": {"all": "#v0", **{f"v{i}": f"#v{(i + 1) % 7}" for i in range(7)}},
    "leads into one": {"all": "#b", "b": "#c", "c": "#b"},
    "many lead into a long one": {f"v{i}": f"#v{(i + 1) % 100_000}" for i in range(100_000)} | {"all": "#v5"},
}


@pytest.mark.parametrize("name", RINGS)
@pytest.mark.parametrize("inherited", [False, True])
def test_variables_in_a_circle_show_nothing_and_are_noted(tmp_path, name, inherited):
    textures = {**RINGS[name], "top": "ruby:block/top", "side": "#top"}
    files = mod(
        **{A + "models/block/ring.json": model("block/cube", **textures), A + "textures/block/top.png": png(11)}
    )
    if inherited:
        files[A + "models/block/child.json"] = model("ruby:block/ring")
    submission = minecraft.read(write_tree(tmp_path, files))
    assert rows(submission) == {**EXPECTED, "ruby:block/top": ("block", "flat", "own")}
    assert len(submission.notes) == 1 + inherited
    assert all("in a circle" in note for note in submission.notes)
    assert "model ruby:block/ring:" in submission.notes[-1]
    if not name.startswith("many"):
        soon_and_small(lambda: minecraft.read(tmp_path))


def test_a_long_chain_of_variables_is_no_ring():
    chain = {f"v{i}": f"#v{i + 1}" for i in range(5000)} | {"v5000": "m:block/end"}
    resolved = resolve("m:a", {"m:a": Model.of({"textures": chain})})
    assert set(resolved.textures.values()) == {"m:block/end"}
    assert (len(resolved.textures), resolved.rings) == (5001, ())


def test_depth_inside_texts_is_no_depth(tmp_path):
    content = json.dumps({"parent": "item/generated", "comment": "[" * 5000 + '\\"{' * 500}).encode()
    write_tree(tmp_path, {A + "models/item/a.json": content, A + "textures/item/a.png": png(1)})
    assert minecraft.read(tmp_path).notes == ()


def test_resolve_follows_variables_through_parents():
    models = {
        "m:block/base": {"parent": "block/cube", "textures": {"side": "#main", "top": "#cap", "main": "m:block/x"}},
        "m:block/child": {"parent": "m:block/base", "textures": {"cap": "m:block/y", "main": "m:block/z"}},
    }
    models = {key: Model.of(content) for key, content in models.items()}
    assert dict(resolve("m:block/base", models).textures) == {"side": "m:block/x", "main": "m:block/x"}
    assert dict(resolve("m:block/child", models).textures) == {
        "side": "m:block/z", "top": "m:block/y", "cap": "m:block/y", "main": "m:block/z",
    }  # fmt: skip


VANILLA = {
    "textures/item/apple.png": png(1),
    "textures/block/stone.png": png(2),
    "textures/block/lava.png": png(np.random.default_rng(1).integers(0, 255, (48, 16, 4), np.uint8)),
    "textures/block/lava.png.mcmeta": b'{"animation": {}}',
    "textures/block/clear.png": png(np.zeros((16, 16, 4), np.uint8)),
    "textures/entity/cow/cow.png": png(3, 64, 32),
    "textures/gui/icons.png": png(4),
    "textures/block/damaged.png": b"nothing",
}
RECORDS = [
    ("minecraft:block/lava#0", "block", "minecraft:block/lava", "lava"),
    ("minecraft:block/lava#1", "block", "minecraft:block/lava", "lava"),
    ("minecraft:block/lava#2", "block", "minecraft:block/lava", "lava"),
    ("minecraft:block/stone", "block", "minecraft:block/stone", "stone"),
    ("minecraft:entity/cow/cow", "entity", "minecraft:entity/cow/cow", "cow"),
    ("minecraft:item/apple", "item", "minecraft:item/apple", "apple"),
]


@pytest.mark.parametrize("layout", ["client jar", "assets folder", "pack folder", "plain folders"])
def test_vanilla_references_from_every_layout(tmp_path, layout):
    files = {f"assets/minecraft/{name}": content for name, content in VANILLA.items()}
    files["assets/realms/textures/item/x.png"] = png(9)
    if layout == "plain folders":
        renamed = {n.removeprefix("textures/"): c for n, c in VANILLA.items()}
        files = {n.replace("item/", "items/").replace("block/", "blocks/"): c for n, c in renamed.items()}
    path = write_tree(tmp_path / "1.21.1", files)
    if layout == "client jar":
        path = tmp_path / "client.jar"
        path.write_bytes(zip_bytes({**files, "a.class": b"\xca\xfe"}))
    elif layout == "assets folder":
        path = path / "assets"
    records = list(minecraft.references(path))
    assert [(r.id, r.category, r.group, r.words) for r in records] == RECORDS
    refs = ReferenceSet.from_minecraft(path)
    assert refs.categories == {"block": 2, "entity": 1, "item": 1}  # an animation is one texture ...
    assert len(refs) == 6  # ... of which each frame can be a neighbour


def test_no_vanilla_art_is_a_named_error(tmp_path):
    with pytest.raises(ReferenceSetError, match="minecraft"):
        list(minecraft.references(write_tree(tmp_path, mod())))


def test_a_real_mod_and_its_jar_have_the_same_rows(mods, tmp_path):
    farmers = mods / "farmersdelight"
    submission = minecraft.read(farmers)
    counted = Counter((asset.category, asset.use) for asset in submission.assets)
    assert len(submission.assets) == 394
    assert counted == {
        ("item", "sprite"): 136,
        ("item", "unreferenced"): 3,
        ("block", "flat"): 98,
        ("block", "sprite"): 11,
        ("block", "uv"): 75,
        ("entity", "entity"): 34,
        ("gui", "unreferenced"): 22,
        ("particle", "unreferenced"): 13,
        ("mob_effect", "unreferenced"): 2,
    }
    assert {asset.origin for asset in submission.assets} == {"own"}
    jar = tmp_path / "farmersdelight.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for root in (farmers / "src/generated/resources", farmers / "src/main/resources"):
            for file in sorted(path for path in root.rglob("*") if path.is_file()):
                archive.write(file, file.relative_to(root).as_posix())
    with minecraft.read(jar) as packed:
        assert rows(packed) == rows(submission)
        for ours, theirs in zip(submission.assets, packed.assets, strict=True):
            assert ours.texture.content_hash == theirs.texture.content_hash
            assert len(ours.frames) == len(theirs.frames)


def test_reading_writes_nothing_and_holds_little(tmp_path):
    path = tmp_path / "mod.jar"
    path.write_bytes(zip_bytes({f"{A}textures/item/i{i}.png": png(1) for i in range(500)}))
    before = sorted(p.name for p in tmp_path.rglob("*"))
    tracemalloc.start()
    with minecraft.read(path) as submission:
        for asset in submission.assets:
            assert asset.texture is not None
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    assert peak < 20e6
