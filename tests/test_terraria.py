"""Terraria submissions: classes, paths, frames and the game's own sheets."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from assetscore import submissions
from assetscore.errors import ArchiveError, ReferenceSetError, UsageError
from assetscore.frames import MAX_FRAMES
from assetscore.images import enlarge
from assetscore.references import ReferenceSet
from assetscore.submissions import terraria
from assetscore.submissions.csharp import declarations
from assetscore.submissions.terraria_classes import registered
from assetscore.submissions.terraria_grids import Grid, cut, drawn_in_blocks, infer_rows, strip_boxes
from assetscore.submissions.terraria_paths import category_by_path

from .makers_games import art, model, png, rawimg, tmod, write_tree, xnb, zip_bytes
from .makers_limits import soon_and_small


def mod(tmp_path: Path, sources: str = "", images: tuple[str, ...] = (), **extra: bytes) -> Path:
    """A source tree in a folder that is not called as the mod is."""
    files = {"build.txt": b"displayName = Ruby\n", "RubyMod.cs": b"namespace RubyMod; class RubyMod : Mod {}"}
    files.update({f"{name}.png": png(number) for number, name in enumerate(images)})
    if sources:
        files["Source.cs"] = sources.encode()
    return write_tree(tmp_path / "checkout", {**files, **extra})


def rows(submission) -> dict[str, tuple[str, str, str]]:
    return {asset.id: (asset.category, asset.use, asset.origin) for asset in submission.assets}


@pytest.mark.parametrize(
    ("base", "category"),
    [
        ("ModItem", "item"), ("ModProjectile", "projectile"), ("ModTile", "tile"), ("ModWall", "wall"), ("ModNPC", "npc"),
        ("ModBuff", "buff"), ("ModDust", "dust"), ("ModGore", "gore"), ("Terraria.ModLoader.ModItem", "item"),
        ("ModPylon", "tile"), ("ModMount", "other"),
    ],
)  # fmt: skip
def test_a_class_takes_the_path_of_its_namespace_and_name(tmp_path, base, category):
    path = mod(tmp_path, f"namespace RubyMod.Odd.Place {{ public class Thing : {base} {{ }} }}", ("Odd/Place/Thing",))
    assert rows(terraria.read(path)) == {"Odd/Place/Thing": (category, "sprite", "own")}


def test_kinds_come_through_bases_in_other_files(tmp_path):
    files = {
        "A.cs": b"namespace RubyMod.Base; public abstract class RubyItem<T> : Middle { }",
        "B.cs": b"using Terraria.ModLoader; namespace RubyMod.Base; public abstract class Middle : ModItem { }",
        "C.cs": b"using RubyMod.Base; namespace RubyMod.Items; class Gem : RubyItem<int>, IThing { }",
        "D.cs": b"namespace Elsewhere; class Middle : ModNPC { }",
        "E.cs": b"namespace RubyMod.Items { class Loop : Pool { } class Pool : Loop { } class Plain { } }",
    }
    path = mod(tmp_path, "", ("Items/Gem",), **files)
    found = rows(terraria.read(path))
    assert found == {"Items/Gem": ("item", "sprite", "own"), "Elsewhere/Middle": ("npc", "sprite", "missing")}


TEXTURES = {
    "literal": ('"RubyMod/Art/A"', "own"),
    "verbatim": ('@"RubyMod/Art/A"', "own"),
    "raw": ('"""RubyMod/Art/A"""', "own"),
    "concatenated": ('"RubyMod/" + "Art/" + "A"', "own"),
    "interpolated": ('$"RubyMod/Art/{Letter}"', "own"),
    "constant": ("Path", "own"),
    "of another class": ("Assets.Folder + Letter", "own"),
    "of another class, fully named": ('RubyMod.Assets.Folder + "A"', "own"),
    "of a class around it": ("Around", "own"),
    "of an imported class": ("Imported + Letter", "own"),
    "cast": ('"RubyMod/Art/" + (string)"A"', "own"),
    "nameof": ('nameof(RubyMod) + "/Art/" + nameof(A)', "own"),
    "typeof": ('$"{nameof(RubyMod)}/Art/{typeof(A).Name}"', "own"),
    "mod name": ('$"{Mod.Name}/Art/A"', "own"),
    "replace": ('"RubyMod.Art.A".Replace(".", "/")', "own"),
    "replace characters": ("\"RubyMod.Art.A\".Replace('.', '/')", "own"),
    "a choice": ('Main.dedServ ? Unknown() : "RubyMod/Art/A"', "own"),
    "a switch": ('Kind switch { 0 => Unknown(), _ => "RubyMod/Art/A" }', "own"),
    "another item's": ("ModContent.GetInstance<Other>().Texture", "own"),
    "concat": ('string.Concat("RubyMod", "/Art/", "A")', "own"),
    "vanilla": ('"Terraria/Images/Item_1"', "vanilla"),
    "vanilla, by number": ('"Terraria/Images/Item_" + ItemID.Muramasa', "vanilla"),
    "vanilla, interpolated": ('$"Terraria/Images/Projectile_{ProjectileID.Bullet}"', "vanilla"),
    "vanilla, before 1.4": ('"Terraria/Item_" + 5', "vanilla"),
    "missing": ('"RubyMod/Art/Gone"', "missing"),
    "another mod's": ('"CalamityMod/Items/B"', "missing"),
}


@pytest.mark.parametrize("name", TEXTURES)
@pytest.mark.parametrize("form", ["=> {};", "{{ get {{ return {}; }} }}", "{{ get => {}; }}", "{{ get; }} = {};"])
def test_overridden_textures_are_evaluated(tmp_path, name, form):
    expression, origin = TEXTURES[name]
    source = f"""
    using static RubyMod.Imports;
    namespace RubyMod.Items;
    class Outer {{
        const string Around = "RubyMod/Art/A";
        class Gem : ModItem {{
            const string Path = "RubyMod/Art/" + Letter;
            static readonly string Letter = "A";
            public override string Texture {form.format(expression)}
        }}
    }}
    class Other : ModItem {{ public override string Texture => "RubyMod/Art/A"; }}
    """
    assets = b"""namespace RubyMod;
    static class Assets { public const string Folder = "RubyMod/Art/"; }
    static class Imports { public static string Imported => Assets.Folder; }"""
    found = rows(terraria.read(mod(tmp_path, source, ("Art/A",), **{"Assets.cs": assets})))
    expected = {"Art/A": ("item", "sprite", "own")}
    if origin != "own":
        expected["Items/Gem"] = ("item", "sprite", origin)
    assert found == expected


def test_texture_and_name_are_inherited_and_seen_from_the_class_itself(tmp_path):
    source = """
    namespace RubyMod.Items;
    abstract class Folder : ModItem { public override string Texture => "RubyMod/Art/" + Name; }
    class Gem : Folder { }
    class Renamed : Folder { public override string Name => "Stone"; }
    class Longer : Gem { public override string Texture => base.Texture + "_Long"; }
    class Nested { class Inner : ModItem { } }
    class Default : ModItem { public override string Name => "Given"; }
    class Spelled : ModItem {
        public override string Texture => (GetType().Namespace + "." + GetType().Name).Replace('.', '/') + "X";
    }
    """
    images = ("Art/Gem", "Art/Stone", "Art/Longer_Long", "Items/Inner", "Items/Given", "Items/SpelledX")
    assert rows(terraria.read(mod(tmp_path, source, images))) == dict.fromkeys(images, ("item", "sprite", "own"))


def test_bare_class_names_are_the_last_resort(tmp_path):
    source = """
    namespace RubyMod.Items;
    class Gem : ModItem { }
    class Lost : ModItem { public override string Texture => Compute(); }
    class Unknown : ModItem { public override string Texture => Compute(); }
    """
    images = ("Items/Gem", "Tiles/Gem", "Art/Lost")
    submission = terraria.read(mod(tmp_path, source, images))
    assert rows(submission) == {
        "Items/Gem": ("item", "sprite", "own"),
        "Tiles/Gem": ("tile", "unreferenced", "own"),  # not the item's, whatever it is called
        "Art/Lost": ("item", "sprite", "own"),
    }
    assert "alone" in submission.assets[0].reason
    assert any("Unknown" in note for note in submission.notes)


def test_abstract_generic_and_unloaded_classes_register_nothing(tmp_path):
    source = """
    namespace RubyMod;
    abstract class A : ModItem { }
    class B<T> : ModItem { }
    [Autoload(false)] class C : ModItem { }
    class D : ModPlayer { }
    class E : GlobalItem { }
    """
    assert rows(terraria.read(mod(tmp_path, source))) == {}


def test_sheets_of_worn_things_and_other_suffixes(tmp_path):
    source = """
    namespace RubyMod.Armor;
    [AutoloadEquip(EquipType.Head)] class Helmet : ModItem { }
    [Other, AutoloadEquip(EquipType.Body, EquipType.Wings)] class Plate : ModItem { }
    [AutoloadEquip(EquipType.Legs)] class Greaves : ModItem { }
    [AutoloadBossHead] class Boss : ModNPC { }
    """
    images = ("Armor/Helmet", "Armor/Helmet_Head", "Armor/Helmet_Glow", "Armor/Plate", "Armor/Plate_Body",
              "Armor/Plate_Wings", "Armor/Greaves", "Armor/Boss", "Armor/Boss_Head_Boss")  # fmt: skip
    assert rows(terraria.read(mod(tmp_path, source, images))) == {
        "Armor/Helmet": ("item", "sprite", "own"),
        "Armor/Helmet_Head": ("other", "sprite", "own"),
        "Armor/Helmet_Glow": ("other", "unreferenced", "own"),
        "Armor/Plate": ("item", "sprite", "own"),
        "Armor/Plate_Body": ("other", "sprite", "own"),
        "Armor/Plate_Wings": ("other", "sprite", "own"),
        "Armor/Greaves": ("item", "sprite", "own"),
        "Armor/Greaves_Legs": ("other", "sprite", "missing"),
        "Armor/Boss": ("npc", "sprite", "own"),
        "Armor/Boss_Head_Boss": ("other", "sprite", "own"),
    }


def strip(frames: int, width: int = 20, height: int = 20) -> np.ndarray:
    """Distinct frames with two clear lines below each, all of them below the size that is cut without being told."""
    pixels = np.zeros((frames * height, width, 4), np.uint8)
    for i in range(frames):
        pixels[i * height : (i + 1) * height - 2] = art(i + 1, width, height - 2) | np.array([1, 0, 0, 255], np.uint8)
    return pixels


FRAME_SOURCES = {
    "npc": ("ModNPC", "Main.npcFrameCount[Type] = 4;", "NPCs"),
    "npc, before 1.4": ("ModNPC", "Main.npcFrameCount[npc.type] = 4;", "NPCs"),
    "npc, constant": ("ModNPC", "Main.npcFrameCount[NPC.type] = Count;", "NPCs"),
    "projectile": ("ModProjectile", "Main.projFrames[Projectile.type] = 4;", "Projectiles"),
    "projectile, fully named": ("ModProjectile", "Terraria.Main.projFrames[Type] = 4;", "Projectiles"),
    "item": ("ModItem", "Main.RegisterItemAnimation(Type, new DrawAnimationVertical(5, 4));", "Items"),
}


@pytest.mark.parametrize("name", FRAME_SOURCES)
@pytest.mark.parametrize("inherited", [False, True])
def test_frame_counts_of_classes(tmp_path, name, inherited):
    base, statement, folder = FRAME_SOURCES[name]
    body = f"const int Count = 4; public override void SetStaticDefaults() {{ {statement} }}"
    source = f"namespace RubyMod.{folder};"
    if inherited:
        source += f"abstract class Base : {base} {{ {body} }} class Thing : Base {{ }}"
    else:
        source += f"class Thing : {base} {{ {body} }}"
    # 4 x 22 rows and one more: sheets that do not divide evenly are rounded down.
    pixels = np.random.default_rng(1).integers(1, 255, (89, 30, 4), np.uint8)
    path = mod(tmp_path, source, **{f"{folder}/Thing.png": png(pixels)})
    [asset] = terraria.read(path).assets
    assert [frame.size for frame in asset.frames] == [(30, 22)] * 4
    assert (asset.frames[3].pixels == pixels[66:88]).all()


def test_frames_by_blank_lines_where_no_class_says(tmp_path):
    path = mod(tmp_path, **{"NPCs/Slime.png": png(strip(3)), "Items/Rod.png": png(strip(3))})
    item, npc = terraria.read(path).assets
    assert (len(npc.frames), len(item.frames)) == (3, 1)
    assert any("blank lines" in flag for flag in npc.texture.flags)


@pytest.mark.parametrize(
    ("pixels", "rows_"),
    [(strip(1), 1), (strip(2), 2), (strip(7), 7), (art(1, 20, 60), 1), (np.zeros((60, 20, 4), np.uint8), 1)],
)
def test_infer_rows(pixels, rows_):
    assert infer_rows(pixels) == rows_


def test_tiles_are_cells_without_their_padding(tmp_path):
    sheet = np.zeros((36, 54, 4), np.uint8)
    cells = {}
    for row in range(2):
        for column in range(3):
            if (row, column) != (1, 1):  # one cell shows nothing
                cells[row, column] = art(row * 3 + column, 16, 16) | np.array([0, 0, 0, 255], np.uint8)
                sheet[row * 18 : row * 18 + 16, column * 18 : column * 18 + 16] = cells[row, column]
    sheet[18:34, 36:52] = cells[0, 0]  # and one is drawn again
    path = mod(tmp_path, "namespace RubyMod.Tiles; class Ore : ModTile { }", **{"Tiles/Ore.png": png(sheet)})
    [asset] = terraria.read(path).assets
    expected = [cells[0, 0], cells[0, 1], cells[0, 2], cells[1, 0]]
    assert [frame.pixels.tolist() for frame in asset.frames] == [cell.tolist() for cell in expected]


@pytest.mark.parametrize(
    ("width", "height", "count"), [(52, 34, 6), (54, 38, 6), (16, 16, 1), (12, 20, 1), (18, 18, 1)]
)
def test_tile_sheets_without_the_last_padding_or_with_a_high_last_row(width, height, count):
    pixels = np.random.default_rng(1).integers(1, 255, (height, width, 4), np.uint8)
    assert len(cut(pixels, Grid(cell=(16, 16), padding=2)).frames) == count


def test_tile_cells_of_another_size(tmp_path):
    source = """namespace RubyMod.Tiles; class Torch : ModTile { public override void SetStaticDefaults() {
        TileObjectData.newTile.CoordinateWidth = 20; TileObjectData.newTile.CoordinatePadding = 2; } }"""
    pixels = np.random.default_rng(1).integers(1, 255, (22, 66, 4), np.uint8)
    [asset] = terraria.read(mod(tmp_path, source, **{"Tiles/Torch.png": png(pixels)})).assets
    assert [frame.size for frame in asset.frames] == [(20, 20)] * 3


def test_a_large_tile_sheet_gives_at_most_32_frames():
    pixels = np.random.default_rng(1).integers(1, 255, (270, 288, 4), np.uint8)
    assert len(cut(pixels, Grid(cell=(16, 16), padding=2)).frames) == 32


def test_walls_worn_sheets_and_town_npcs(tmp_path):
    noise = lambda w, h: png(np.random.default_rng(1).integers(1, 255, (h, w, 4), np.uint8))  # noqa: E731
    path = mod(
        tmp_path,
        **{
            "Walls/Brick.png": noise(72, 36),
            "Items/Hat_Head.png": noise(40, 1120),
            "Items/Hood_Head.png": noise(40, 1118),
            "Items/Coat_Body.png": noise(360, 224),
            "NPCs/Guide.png": noise(40, 56 * 5),
            "Buffs/Shine.png": noise(32, 32),
        },
    )
    found = {asset.id: [frame.size for frame in asset.frames] for asset in terraria.read(path).assets}
    assert found == {
        "Walls/Brick": [(32, 32)] * 2,
        "Items/Hat_Head": [(40, 56)] * 20,
        "Items/Hood_Head": [(40, 56)] * 19,
        "Items/Coat_Body": [(40, 56)] * 32,
        "NPCs/Guide": [(40, 56)] * 5,
        "Buffs/Shine": [(32, 32)],
    }


HIDDEN = {
    # name: the class RubyMod.Items.Gem and others, and the rows of Items/Gem and of the picture of that name
    "vanilla": ('class Gem : ModItem { public override string Texture => "Terraria/Images/Item_1"; }', "vanilla",
                "unreferenced"),
    "missing": ('class Gem : ModItem { public override string Texture => "RubyMod/Art/Gone"; }', "missing",
                "unreferenced"),
    "shown by another": (
        'class Gem : ModItem { public override string Texture => "Terraria/Images/Item_1"; }'
        'class Opal : ModItem { public override string Texture => "RubyMod/Items/Gem"; }', "vanilla", "sprite",
    ),
    "shown by itself": ("class Gem : ModItem { }", "own", None),
    "shown by itself and by another": (
        'class Gem : ModItem { } class Opal : ModItem { public override string Texture => "RubyMod/Items/Gem"; }', "own",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("built", [False, True])
def test_a_picture_does_not_hide_what_the_class_of_its_name_shows(tmp_path, name, built):
    classes, origin, use = HIDDEN[name]
    source = f"namespace RubyMod.Items; {classes}"
    if name == "missing":  # or the bare name would be found
        source += "class A : ModItem { }"
    images = ("Items/Gem", "Other/Gem", "Items/A")
    path = mod(tmp_path, source, images)
    if built:
        files = {f"{image}.rawimg": rawimg(art(number)) for number, image in enumerate(images)}
        path = tmp_path / "RubyMod.tmod"
        path.write_bytes(tmod({**files, "Source.cs": source.encode()}))
    with terraria.read(path) as submission:
        found = rows(submission)
        assert found.pop("Items/Gem") == ("item", "sprite", origin)
        assert found.pop("Items/Gem.png", None) == (None if use is None else ("item", use, "own"))
        assert set(found) == {"Other/Gem", "Items/A"}
        own = next(asset for asset in submission.assets if asset.path.startswith("Items/Gem."))
        assert (own.texture.pixels == art(0)).all()


def test_a_link_to_a_built_mod_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "secret.tmod").write_bytes(tmod({"Items/Gem.rawimg": rawimg(art(1))}))
    (tmp_path / "mods").mkdir()
    (tmp_path / "mods/a.tmod").symlink_to(tmp_path / "secret.tmod")
    with pytest.raises(ArchiveError, match="leads out"):
        terraria.read(tmp_path / "mods")
    (tmp_path / "mods/b.tmod").write_bytes(tmod({"Items/Own.rawimg": rawimg(art(2))}))
    with terraria.read(tmp_path / "mods") as submission:
        assert [asset.id for asset in submission.assets] == ["b.tmod!Items/Own"]
        assert any("leads out" in note for note in submission.notes)


@pytest.mark.parametrize("stated", [600, 4096, 5000])
def test_frames_are_bounded_however_many_a_class_states(tmp_path, stated):
    source = f"namespace RubyMod.NPCs; class Thing : ModNPC {{ void A() {{ Main.npcFrameCount[Type] = {stated}; }} }}"
    pixels = np.random.default_rng(1).integers(1, 255, (stated * 2, 4, 4), np.uint8)
    [asset] = terraria.read(mod(tmp_path, source, **{"NPCs/Thing.png": png(pixels)})).assets
    assert len(asset.frames) == MAX_FRAMES
    assert (asset.frames[-1].pixels == pixels[2 * MAX_FRAMES - 2 : 2 * MAX_FRAMES]).all()
    assert asset.texture.flags == (f"only the first {MAX_FRAMES} of {stated} frames are used",)


@pytest.mark.parametrize("columns", [1, 3])
def test_boxes_are_bounded_and_in_order(columns):
    boxes = strip_boxes(4 * columns, 4000, 1000, columns)
    assert len(boxes) == MAX_FRAMES
    assert boxes == [(4 * (i % columns), 4 * (i // columns), 4, 4) for i in range(MAX_FRAMES)]


def test_a_town_npc_of_a_thousand_frames_is_bounded(tmp_path):
    pixels = np.random.default_rng(1).integers(1, 255, (56 * 1000, 40, 4), np.uint8)
    [asset] = terraria.read(mod(tmp_path, **{"NPCs/Guide.png": png(pixels)})).assets
    assert len(asset.texture.boxes) == MAX_FRAMES


def test_strip_boxes_that_cannot_be():
    assert strip_boxes(20, 3, 5) == [(0, 0, 20, 3)]
    assert strip_boxes(20, 3, 0) == [(0, 0, 20, 3)]
    assert strip_boxes(20, 30, 10**9) == [(0, 0, 20, 30)]


def test_art_in_2_x_2_blocks_comes_to_its_native_grid(tmp_path):
    native = art(5, 20, 24)
    path = mod(tmp_path, **{"Items/Gem.png": png(enlarge(native, 2)), "Items/Fine.png": png(art(6, 40, 48))})
    fine, gem = terraria.read(path).assets
    assert (gem.texture.grid, fine.texture.grid) == (2, 1)
    assert (gem.texture.native == native).all()
    assert drawn_in_blocks(enlarge(native, 2))
    assert not drawn_in_blocks(art(6, 40, 48))
    assert not drawn_in_blocks(enlarge(native, 2)[1:])


@pytest.mark.parametrize(
    "pixels", [np.zeros((1, 1, 4), np.uint8), np.zeros((36, 54, 4), np.uint8), np.full((1, 1, 4), 9, np.uint8)]
)
@pytest.mark.parametrize("folder", ["Items", "Tiles", "NPCs", "Walls"])
def test_placeholders_are_empty(tmp_path, pixels, folder):
    [asset] = terraria.read(mod(tmp_path, **{f"{folder}/Empty.png": png(pixels)})).assets
    assert asset.texture.is_empty


@pytest.mark.parametrize(
    ("path", "category"),
    [
        ("icon", "other"), ("Items/Gem", "item"), ("Content/Items/Weapons/Gem", "item"), ("Weapons/Gem", "item"),
        ("Projectiles/Bolt", "projectile"), ("Items/Weapons/GemProjectile", "projectile"), ("NPCs/Bosses/King", "npc"),
        ("NPCs/Slime_Alt", "npc"), ("Tiles/Ore", "tile"), ("Tiles/Furniture/Chair", "tile"), ("Items/OreTile", "tile"),
        ("Walls/Brick", "wall"), ("Buffs/Shine", "buff"), ("Items/ShineBuff", "buff"), ("Items/BurnDebuff", "buff"),
        ("Dusts/Spark", "dust"), ("Gores/King_0", "gore"), ("Items/Gores/Gem", "gore"), ("Backgrounds/Sky", "other"),
        ("UI/Button", "other"), ("Items/Gem_Glow", "other"), ("Items/Hat_Head", "other"),
        ("Projectiles/Squid_Head", "projectile"), ("Tiles/Ore_Highlight", "other"), ("Assets/Trail", "other"),
        ("Walls/OreWallItem", "item"), ("Items/Rebuff", "item"),
    ],
)  # fmt: skip
def test_category_by_path(path, category):
    assert category_by_path(path) == category


def test_what_build_txt_ignores_is_not_in_the_mod(tmp_path):
    ignore = b"buildIgnore = *.csproj, Drafts\\*, obj\\*, *_old.png\n"
    images = ("Items/Gem", "Drafts/Gem2", "obj/Gem3", "bin/Gem4", "Items/Gem_old")
    assert set(rows(terraria.read(mod(tmp_path, "", images, **{"build.txt": ignore})))) == {"Items/Gem"}


def test_a_hostile_build_txt_ends_soon(tmp_path):
    patterns = ", ".join(["*a" * 45 + str(i) for i in range(5000)]).encode()
    images = {f"Items/{'a' * 60}{i}.png": b"" for i in range(2000)}
    path = mod(tmp_path, **{"build.txt": b"buildIgnore = " + patterns, **images})
    soon_and_small(lambda: terraria.read(path), seconds=3)


def test_a_built_mod_with_its_sources_is_read_by_its_classes(tmp_path):
    source = b"namespace RubyMod.Content; class Gem : ModNPC { void A() { Main.npcFrameCount[Type] = 2; } }"
    files = {"Content/Gem.rawimg": rawimg(art(1, 16, 32)), "Content/Gem.png": png(9), "Content/Gem.cs": source}
    (tmp_path / "a.tmod").write_bytes(tmod(files))
    with terraria.read(tmp_path / "a.tmod") as submission:
        found = {asset.id: asset for asset in submission.assets}
        assert (found["Content/Gem"].category, len(found["Content/Gem"].frames)) == ("npc", 2)


def test_several_mods_of_a_folder(tmp_path):
    write_tree(
        tmp_path, {"One/build.txt": b"", "One/Items/Gem.png": png(1), "Two/build.txt": b"", "Two/Items/Gem.png": png(2)}
    )
    (tmp_path / "Three.tmod").write_bytes(tmod({"Items/Gem.rawimg": rawimg(art(3))}))
    (tmp_path / "Bad.tmod").write_bytes(b"TMOD")
    with terraria.read(tmp_path) as submission:
        ids = [asset.id for asset in submission.assets]
        assert ids == ["One!Items/Gem", "Three.tmod!Items/Gem", "Two!Items/Gem"]
        assert [(a.texture.pixels == art(n)).all() for a, n in zip(submission.assets, (1, 3, 2), strict=True)] == [
            True
        ] * 3
        assert any("Bad.tmod" in note for note in submission.notes)


def test_a_zip_of_a_source_tree(tmp_path):
    files = {
        "mod-main/build.txt": b"",
        "mod-main/Items/Gem.png": png(1),
        "mod-main/Gem.cs": b"namespace RubyMod.Items; class Gem : ModItem { }",
        "other/Items/No.png": png(2),
    }
    (tmp_path / "repo.zip").write_bytes(zip_bytes(files))
    with terraria.read(tmp_path / "repo.zip") as submission:
        assert rows(submission) == {"Items/Gem": ("item", "sprite", "own")}
        assert submission.assets[0].texture.size == (16, 16)


def test_the_game_is_told_by_what_marks_a_mod(tmp_path):
    source = mod(tmp_path, "", ("Items/Gem",))
    packed = tmp_path / "repo.zip"
    packed.write_bytes(zip_bytes({"mod-main/build.txt": b"", "mod-main/Items/Gem.png": png(1)}))
    built = tmp_path / "built" / "a.tmod"
    write_tree(built.parent, {"a.tmod": tmod({"Items/Gem.rawimg": rawimg(art(1))})})
    jar = tmp_path / "mod.jar"
    jar.write_bytes(zip_bytes({"assets/ruby/textures/item/gem.png": png(1)}))
    for path, game in ((source, "terraria"), (packed, "terraria"), (built, "terraria"), (built.parent, "terraria"),
                       (jar, "minecraft")):  # fmt: skip
        with submissions.read(path, requests="ids") as submission:
            assert submission.game == game
            assert [asset.request for asset in submission.assets] == ["gem"]
    with submissions.read(source, "minecraft") as submission:
        assert (submission.game, submission.assets) == ("minecraft", ())
    with pytest.raises(UsageError, match="game"):
        submissions.read(source, "doom")
    for path in (tmp_path / "nowhere", 17):
        with pytest.raises(UsageError, match="path"):
            submissions.read(path)


def test_nothing_to_read(tmp_path):
    with pytest.raises(UsageError, match="path"):
        terraria.read(tmp_path / "nowhere")
    (tmp_path / "a.tmod").write_bytes(b"no")
    with pytest.raises(ArchiveError, match=r"a\.tmod"):
        terraria.read(tmp_path / "a.tmod")
    (tmp_path / "empty").mkdir()
    submission = terraria.read(tmp_path / "empty")
    assert submission.assets == ()
    assert "build.txt" in submission.notes[0]


HOSTILE_SOURCES = {
    "a property that is itself": "class A : ModItem { public override string Texture => Texture; }",
    "two in a circle": "class A : ModItem { string X => Y; string Y => X; public override string Texture => X; }",
    "a name that is itself": "class A : ModItem { public override string Name => Name + Name; }",
    "doubling": "class A : ModItem { public override string Texture => P0; "
    + "".join(f"string P{i} => P{i + 1} + P{i + 1};" for i in range(60))
    + "}",
    "doubling over classes": "class A : ModItem { public override string Texture => C0.P; }"
    + "".join(f"static class C{i} {{ public static string P => C{i + 1}.P + C{i + 1}.P; }}" for i in range(60)),
    "ever longer texts": "class A : ModItem { public override string Texture => "
    + '"a"'
    + '.Replace("a", "aaaaaaaaaa")' * 50
    + "; }",
    "deep parentheses": "class A : ModItem { public override string Texture => "
    + "(" * 5000
    + '"a"'
    + ")" * 5000
    + "; }",
    "a sum of 5,000": "class A : ModItem { public override string Texture => " + "+".join(['"a"'] * 5000) + "; }",
    "5,000 blocks deep": "class A : ModItem { void F() " + "{" * 5000 + "}" * 5000 + " }",
    "1,000 classes deep": "class A {" * 1000 + "}" * 1000,
    "5,000 bases deep": "".join(f"class C{i} : C{i + 1} {{ }}" for i in range(5000)),
    "unbalanced": 'class A : ModItem { { { ( [ "',
    "bytes": "class \x00\x01 : ModItem { }",
    "a huge number": "class A : ModNPC { void F() { Main.npcFrameCount[Type] = 99999999999999999999; } }",
}


@pytest.mark.parametrize("name", HOSTILE_SOURCES)
def test_hostile_sources_end_soon(tmp_path, name):
    source = "namespace RubyMod;" + HOSTILE_SOURCES[name]
    soon_and_small(lambda: registered(declarations(source.encode())), seconds=2)


def test_declarations_of_nothing_and_of_too_much():
    assert declarations(b"") == []
    assert declarations(b"\xff\xfe\x00") == []
    assert declarations(b"class A {}" + b" " * 5_000_000) == []


def images_folder(tmp_path: Path, packing: str) -> Path:
    sheets = {
        "Item_1": art(1, 20, 24),
        "Item_520": strip(4, 22, 24),
        "Projectile_9": strip(3),
        "NPC_2": np.random.default_rng(2).integers(1, 255, (62, 30, 4), np.uint8) | np.array([0, 0, 0, 255], np.uint8),
        "NPC_17": np.random.default_rng(3).integers(1, 255, (56 * 3, 40, 4), np.uint8)
        | np.array([0, 0, 0, 255], np.uint8),
        "Tiles_0": np.random.default_rng(4).integers(1, 255, (36, 36, 4), np.uint8)
        | np.array([0, 0, 0, 255], np.uint8),
        "Tiles_4": np.random.default_rng(5).integers(1, 255, (22, 44, 4), np.uint8)
        | np.array([0, 0, 0, 255], np.uint8),
        "Item_3": np.zeros((1, 1, 4), np.uint8),
        "Extra_1": art(9),
        "NPC_Head_1": art(9),
        "Wall_1": art(9),
    }
    files = {}
    for name, pixels in sheets.items():
        height, width = pixels.shape[:2]
        if packing == "png":
            files[f"{name}.png"] = png(pixels)
        else:
            premultiplied = pixels.copy()
            premultiplied[..., :3] = pixels[..., :3].astype(int) * pixels[..., 3:] // 255
            files[f"{name}.xnb"] = xnb(premultiplied.tobytes(), width, height, packing=packing)
    files["Item_7.xnb" if packing != "png" else "Item_7.png"] = b"damaged"
    return write_tree(tmp_path / "Content" / "Images", files)


@pytest.mark.parametrize("packing", ["png", "", "lz4", "verbatim"])
def test_vanilla_references(tmp_path, packing):
    folder = images_folder(tmp_path, packing)
    expected = Counter({("item", "Item_1"): 1, ("item", "Item_520"): 4, ("projectile", "Projectile_9"): 3,
                        ("npc", "NPC_2"): 2, ("npc", "NPC_17"): 3, ("tile", "Tiles_0"): 4, ("tile", "Tiles_4"): 2})  # fmt: skip
    for path in (folder, folder.parent, folder.parent.parent):
        records = list(terraria.references(path))
        assert Counter((r.category, r.group) for r in records) == expected
    assert ReferenceSet.from_terraria(folder).categories == {"item": 5, "npc": 5, "projectile": 3, "tile": 6}
    first = next(r for r in records if r.id == "Item_1")
    assert (first.texture.pixels == art(1, 20, 24)).all()


def test_no_vanilla_sheets_is_a_named_error(tmp_path):
    with pytest.raises(ReferenceSetError, match="Item_N"):
        list(terraria.references(write_tree(tmp_path, {"a.png": png(1), "m.json": model("x")})))


def test_a_real_mod_without_its_classes(mods):
    start = time.process_time()
    submission = terraria.read(mods / "amulet-of-many-minions")
    textures = {asset.id: asset.texture for asset in submission.assets}
    assert time.process_time() - start < 10
    assert len(textures) == 549
    assert sum(drawn_in_blocks(texture.pixels) for texture in textures.values()) == 486
    assert {asset.origin for asset in submission.assets} == {"own"}
    counted = Counter(asset.category for asset in submission.assets)
    assert set(counted) == {"item", "projectile", "buff", "dust", "gore", "other"}
    buffs = [asset for asset in submission.assets if asset.id.endswith("Buff")]
    assert {asset.category for asset in buffs} == {"buff"}
    assert {textures[asset.id].size for asset in buffs} == {(32, 32)}
