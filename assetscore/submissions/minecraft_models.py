"""Minecraft's models: parents inherited, texture variables resolved, and how a texture named by them is shown.

Source: the game's own formats, as the Minecraft Wiki documents them (Model, Items model definition, Blockstates).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ArchiveError
from .base import Use

__all__ = ["Model", "Resolved", "full_id", "model_ids", "resolve"]

MAX_PARENTS = 64

_UV_PARENTS = """
bell_floor bell_ceiling bell_wall bell_between_walls brewing_stand calibrated_sculk_sensor chain cocoa_stage0
cocoa_stage1 cocoa_stage2 conduit custom_fence_inventory custom_fence_post custom_fence_side_east
custom_fence_side_north custom_fence_side_south custom_fence_side_west end_rod flowerbed_1 flowerbed_2 flowerbed_3
flowerbed_4 grindstone lectern lever lever_on lightning_rod sculk_sensor sea_pickle sniffer_egg
template_cake_with_candle template_campfire template_candle template_custom_fence_gate
template_custom_fence_gate_open template_custom_fence_gate_wall template_custom_fence_gate_wall_open
template_four_candles template_four_turtle_eggs template_hanging_lantern template_lantern template_three_candles
template_three_turtle_eggs template_turtle_egg template_two_candles template_two_turtle_eggs tripwire_hook
"""
UV_PARENTS = frozenset(f"minecraft:block/{name}" for name in _UV_PARENTS.split())
"""The game's own parents whose textures are unwrapped solids. Its others show whole faces, or parts of one."""

_SHAPES = """
block/block block/thin_block builtin/entity builtin/generated builtin/missing item/generated item/handheld
item/handheld_rod item/template_banner item/template_bed item/template_shulker_box item/template_skull
item/template_chest item/chest block/air
"""
SHAPES = frozenset(f"minecraft:{name}" for name in _SHAPES.split())
"""Parents of the game that bring no texture of their own. What has another and names none shows vanilla art."""


@dataclass(frozen=True, slots=True)
class Model:
    """What of a model file matters here; the rest of a large file does not stay in memory.

    Attributes:
        parent: full id of its parent, if it names one.
        textures: (variable, texture or "#variable") pairs, those of a loader's parts among them.
        solid: has it geometry of its own, itself or in the parts of a loader's model?
    """

    parent: str | None
    textures: tuple[tuple[str, str], ...]
    solid: bool

    @classmethod
    def of(cls, content: Any) -> Model:
        """A model from its parsed JSON; what is no object has nothing.

        >>> Model.of({"parent": "block/cube_all", "textures": {"all": "mod:block/ore"}})
        Model(parent='minecraft:block/cube_all', textures=(('all', 'mod:block/ore'),), solid=False)
        """
        if not isinstance(content, Mapping):
            return cls(None, (), False)
        parent, loader = content.get("parent"), content.get("loader")
        named = {
            f"{number}.{variable}": name
            for number, part in enumerate(_parts(content))
            for variable, name in _named(part).items()
            if not name.startswith("#")
        }
        solid = bool(content.get("elements")) or any(part.get("elements") for part in _parts(content))
        return cls(
            sys.intern(full_id(parent)) if isinstance(parent, str) and parent else None,
            tuple((sys.intern(variable), name) for variable, name in {**named, **_named(content)}.items()),
            solid or (isinstance(loader, str) and loader.endswith("obj")),
        )


@dataclass(frozen=True)
class Resolved:
    """A model with everything its parents give it.

    Attributes:
        textures: variable to texture id, with namespaces; variables that stay open (of templates) are left out.
        use: how those textures are shown.
        vanilla: the vanilla model whose art is shown where the chain names no texture at all.
        rings: a variable of each ring of them ("all" of ``"all": "#all"``); what leads into one shows nothing.
    """

    textures: Mapping[str, str]
    use: Use
    vanilla: str | None = None
    rings: tuple[str, ...] = ()


def full_id(name: str) -> str:
    """An id with its namespace: the game's own where none is written.

    >>> full_id("item/stick"), full_id("mod:item/ruby")
    ('minecraft:item/stick', 'mod:item/ruby')
    """
    namespace, colon, path = name.partition(":")
    return f"{namespace or 'minecraft'}:{path}" if colon else f"minecraft:{name}"


def resolve(model_id: str, models: Mapping[str, Model]) -> Resolved:
    """A model of `models` with its parents' textures and its use.

    A chain that ends in "item/generated" or another of the game's item models shows sprites; one with "elements"
    (solids with coordinates on the texture) a UV sheet; the rest, such as "block/cube_all" and "block/cross", whole
    faces.

    Raises:
        ArchiveError: the parents go round in a circle, or are more than 64.
    """
    chain: list[Model] = []
    seen: set[str] = set()
    current: str | None = model_id
    while current is not None and current in models:
        if current in seen or len(chain) >= MAX_PARENTS:
            raise ArchiveError(
                f"model {model_id}: its parents go round in a circle or past {MAX_PARENTS}, at {current}"
            )
        seen.add(current)
        chain.append(models[current])
        current = models[current].parent
    named: dict[str, str] = {}
    for model in reversed(chain):
        named.update(model.textures)
    followed, rings = _followed(named)
    textures = {variable: full_id(name) for variable, name in followed.items() if name}
    use = _use(model_id, current, chain)
    foreign = current is not None and current.startswith("minecraft:") and current not in SHAPES
    return Resolved(textures, use, current if foreign and not named else None, rings)


def model_ids(definition: Any) -> Iterator[str]:
    """The models that a blockstate, an item definition, or a model's "overrides" names: every "model" with a text."""
    pending = [definition]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            name = value.get("model")
            if isinstance(name, str) and name:
                yield full_id(name)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def textures_within(definition: Any) -> Iterator[str]:
    """The textures that "textures" objects anywhere in a file name outright (Forge's blockstates before 1.13)."""
    pending = [definition]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from (full_id(name) for name in _named(value).values() if not name.startswith("#"))
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def _use(model_id: str, root: str | None, chain: list[Model]) -> Use:
    if root is not None and (root.startswith("minecraft:item/") or root == "minecraft:builtin/generated"):
        return "sprite"
    if any(model.solid for model in chain) or root in UV_PARENTS:
        return "uv"
    if root is not None and not root.startswith("minecraft:") and root.partition(":")[2].startswith("item/"):
        return "sprite"  # the parent is another mod's
    return "flat"


def _parts(model: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The models written inside a loader's model ("children", "base", "perspectives" ...)."""
    if "loader" not in model:
        return
    pending = list(model.values())
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def _named(model: Mapping[str, Any]) -> dict[str, str]:
    """The "textures" of an object."""
    textures = model.get("textures")
    if not isinstance(textures, dict):
        return {}
    named = {}
    for variable, value in textures.items():
        if isinstance(value, dict):  # {"sprite": ..., "force_translucent": ...}
            value = value.get("sprite")
        if isinstance(value, str) and value:
            named[variable] = value
    return named


def _followed(named: Mapping[str, str]) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """What each variable stands for in the end, None where a "#name" leads nowhere, and a variable of each ring.

    Each is followed once, however many lead to it.
    """
    found: dict[str, str | None] = {}
    rings: list[str] = []
    for variable in named:
        path: dict[str, None] = {}
        current = variable
        while current not in found and current not in path and named.get(current, "").startswith("#"):
            path[current] = None
            current = named[current][1:]
        if current in path:
            rings.append(current)
            end = None
        else:
            end = found[current] if current in found else named.get(current)
        found.update(dict.fromkeys(path, end))
        found.setdefault(variable, end)
    return found, tuple(rings)
