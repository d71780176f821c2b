"""What a Terraria texture is, by its path alone: for built mods without sources, and for files that no class names."""

from __future__ import annotations

import re

__all__ = ["category_by_path", "equip_suffix"]

EQUIP_SUFFIXES = (
    "Head", "Body", "Legs", "Arms", "FemaleBody", "HandsOn", "HandsOff", "Back", "Front", "Shoes", "Waist", "Wings",
    "Shield", "Neck", "Face", "Balloon", "Beard",
)  # fmt: skip
EXTRA_SUFFIXES = ("Glow", "Glowmask", "GlowMask", "Highlight", "Head_Boss", "Flame")

_NAMES = (
    ("buff", r"(?:Debuff|DeBuff|Buff)\d*"),
    ("dust", r"Dust\d*"),
    ("gore", r"Gores?_?\d*"),
    ("wall", r"Wall(?:Tile)?"),
    ("tile", r"Tile"),
    ("item", r"Item\d*"),
    ("projectile", r"(?:Proj|Projectile|Minion)\d*"),
    ("npc", r"NPC\d*"),
)
"""What the last word of a file's name says: authors write it there where their folders mix kinds."""
_FOLDERS = {
    "item": "item", "projectile": "projectile", "proj": "projectile", "minion": "projectile", "pet": "projectile",
    "tile": "tile", "furniture": "tile", "wall": "wall", "npc": "npc", "bosses": "npc", "boss": "npc", "enemies": "npc",
    "townnpc": "npc", "critter": "npc", "buff": "buff", "debuff": "buff", "dust": "dust", "gore": "gore",
    "weapon": "item", "accessories": "item", "accessory": "item", "armor": "item", "consumable": "item",
    "background": "other", "ui": "other", "effect": "other", "sky": "other", "mount": "other", "extra": "other",
    "particle": "other", "shader": "other", "map": "other",
}  # fmt: skip


def equip_suffix(asset_id: str) -> str:
    """The "Head", "Body" ... where the name ends in one behind an underscore; empty otherwise.

    >>> equip_suffix("Items/Armor/RubyHelmet_Head"), equip_suffix("Items/Ruby")
    ('Head', '')
    """
    name, _, suffix = asset_id.rpartition("/")[2].rpartition("_")
    return suffix if name and suffix in EQUIP_SUFFIXES else ""


def category_by_path(asset_id: str) -> str:
    """One of item, projectile, tile, wall, npc, buff, dust, gore, other.

    Sheets of worn things and glow masks are other. Everything under Gores/ is a gore, as the game loads it. Else the
    last word of the name decides, then the innermost folder that says something.

    >>> category_by_path("Items/Ruby"), category_by_path("Projectiles/Minions/Acorn/AcornMinionBuff")
    ('item', 'buff')
    >>> category_by_path("Items/Armor/RubyHelmet_Head"), category_by_path("Gores/AcornMinionItem")
    ('other', 'gore')
    """
    *folders, name = asset_id.split("/")
    if not folders:
        return "other"  # the mod's icons
    lowered = [folder.lower() for folder in folders]
    if "gores" in lowered:
        return "gore"
    if "backgrounds" in lowered or name.endswith(tuple(f"_{suffix}" for suffix in EXTRA_SUFFIXES)):
        return "other"
    for category, pattern in _NAMES:
        if re.search(rf"(?:^|[a-z0-9_]){pattern}$", name):
            return category
    for folder in reversed(lowered):
        told = _FOLDERS.get(folder) or _FOLDERS.get(folder.removesuffix("s"))
        if told:
            return "other" if told == "item" and equip_suffix(asset_id) else told
    return "other"
