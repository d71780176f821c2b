"""Families of Minecraft's own textures: one drawing in the game's colours, woods, metals and states.

The game draws a thing once and repeats it: sixteen wools, a dozen planks, five swords, a lamp lit and unlit. Such
variants vouch for each other when a threshold is set leave one out, which new art has nobody to do for it. So they are
one family: the words of the name without those that name a variant. The sides of one block are drawings of their own.
"""

from __future__ import annotations

import re

__all__ = ["family_of"]

_COLOURS = "white orange magenta light_blue yellow lime pink gray light_gray cyan purple blue brown green red black"
_WOODS = "oak spruce birch jungle acacia dark_oak mangrove cherry bamboo crimson warped pale_oak azalea"
_MATERIALS = "wooden stone iron golden gold diamond netherite leather chainmail copper deepslate"
_STATES = "stripped cut chiseled polished mossy cracked exposed weathered oxidized on off lit empty open"
_VARIANTS = sorted(" ".join((_COLOURS, _WOODS, _MATERIALS, _STATES)).split(), key=len, reverse=True)
_VARIANT = re.compile(rf"_(?:{'|'.join(_VARIANTS)}|(?:tube|brain|bubble|fire|horn|dead)(?=_coral)|stage\d*|\d+)(?=_)")


def family_of(texture_id: str) -> str:
    """The family of a texture by its id: the name without the words that tell variants apart, in its folder.

    A name of nothing but such words stays whole ("stone"), or is the one family of its folder ("bed/red").

    >>> family_of("minecraft:block/light_blue_wool"), family_of("minecraft:block/red_wool")
    ('block/wool', 'block/wool')
    >>> family_of("item/diamond_sword"), family_of("item/clock_07"), family_of("block/fire_1"), family_of("block/stone")
    ('item/sword', 'item/clock', 'block/fire', 'block/stone')
    >>> family_of("minecraft:entity/bed/light_blue"), family_of("minecraft:entity/bed/red")
    ('entity/bed', 'entity/bed')
    """
    path = texture_id.partition(":")[2] or texture_id
    folder, _, name = path.rpartition("/")
    bare = _VARIANT.sub("", f"_{name}_").strip("_")
    if not bare:
        return folder if "/" in folder else f"{folder}/{name}"
    return f"{folder}/{bare}"
