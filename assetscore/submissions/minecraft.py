"""What a Minecraft mod or resource pack registers: the textures that its models, blockstates and item definitions show.

`read` lists every texture once, with its use, and adds what is registered without art of its own: vanilla textures that
models name, and textures and models that are named and not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from ..errors import ImageError, ReferenceSetError, UnreadableImageError
from ..images import Texture, load
from .archives import open_tree
from .base import USES, Asset, Origin, ReferenceRecord, Requests, Submission, Use, words
from .jsonfiles import DamagedJson, parse_json
from .minecraft_layout import Container, Resource, containers, resources
from .minecraft_models import model_ids, resolve, textures_within
from .trees import DEFAULT_LIMITS, Limits, Tree

__all__ = ["CATEGORIES", "read", "references"]

CATEGORIES = ("item", "block", "entity")
"""Those that have references. Others (gui, particle, mob_effect ...) are called as their folder is."""
FOLDERS = {"item": "item", "items": "item", "block": "block", "blocks": "block", "entity": "entity"}
_UNMODELLED = "colormap effect environment font gui map misc mob_effect models painting particle trims"
UNMODELLED = frozenset(_UNMODELLED.split())
"""Folders of textures that are no model's, whatever names them."""


def read(path: str | os.PathLike[str], *, requests: Requests = None, limits: Limits = DEFAULT_LIMITS) -> Submission:
    """The registered textures of a mod or resource pack.

    Args:
        path: a source tree, an assets folder, a .jar, a resource pack (.zip or folder), or a folder of those.
        requests: see `base.Requests`.
        limits: what an archive may ask.

    Returns:
        One asset a texture, by id. Of a folder of archives the ids begin with the archive's name and a "!". A jar or
        data pack without textures gives an empty submission, and a note.

    Raises:
        UsageError: there is nothing at `path`.
        ArchiveError: a damaged or hostile archive, models whose parents go round in a circle, JSON without end.
        ManifestError: `requests` is no task file.
    """
    tree = open_tree(path, limits)
    opened = [tree]
    notes: list[str] = []
    assets: dict[str, Asset] = {}
    try:
        for container in containers(tree, opened, notes):
            found = list(_assets(container, notes))
            for asset in found:
                assets.setdefault(asset.id, asset)
            if not found:
                notes.append(f"{container.group or tree.label}: registers no textures")
    except BaseException:
        for each in opened:
            each.close()
        raise
    ordered = tuple(assets[key] for key in sorted(assets))
    closers = tuple(each.close for each in opened)
    return Submission("minecraft", tree.label, ordered, tuple(notes), closers).with_requests(requests)


def references(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> Iterator[ReferenceRecord]:
    """The game's own item, block and entity textures, each frame a record.

    Args:
        path: a client jar, a resource pack, an assets folder, or a folder with "items", "blocks" and "entity" in it, as
            the npm package minecraft-assets has them for each version.

    What counts: every file under textures/item, textures/block and textures/entity of the namespace "minecraft" that
    can be read and shows something, each animation's distinct frames as one group. Whether the game's models use it is
    not asked. Files with the same pixels stay separate records: the reference set knows duplicates.

    Raises:
        UsageError: there is nothing at `path`.
        ArchiveError: a damaged or hostile archive.
        ReferenceSetError: no texture of the game in it.
    """
    count = 0
    with open_tree(path, limits) as tree:
        found = resources(Container(tree)).textures
        textures = {key: name for key, name in found.items() if key.startswith("minecraft:")}
        for texture_id, name in sorted((textures or _plain_folders(tree)).items()):
            category = _category(texture_id, {})
            if category not in CATEGORIES:
                continue
            try:
                texture = _load(tree, name)
            except ImageError:
                continue
            frames = [frame for frame in texture.frames if not frame.is_empty]
            for number, frame in enumerate(frames):
                frame_id = f"{texture_id}#{number}" if len(frames) > 1 else texture_id
                count += 1
                yield ReferenceRecord(frame_id, category, frame, texture_id, words(texture_id))
    if not count:
        raise ReferenceSetError(f"{tree.label}: holds no item, block or entity texture of the namespace minecraft")


def _plain_folders(tree: Tree) -> dict[str, str]:
    """Textures of a folder with "items", "blocks" and "entity" directly in it."""
    found = {}
    for name in tree.names:
        folder, _, rest = name.partition("/")
        if folder in FOLDERS and rest.endswith(".png"):
            found[f"minecraft:{FOLDERS[folder]}/{rest[:-4]}"] = name
    return found


def _assets(container: Container, notes: list[str]) -> Iterator[Asset]:
    files = resources(container)
    uses: dict[str, set[Use]] = {}
    shown_in: dict[str, set[str]] = {}
    bare: list[Asset] = []
    models = _parsed(container.tree, files.models, notes)
    for model_id in sorted(models):
        resolved = resolve(model_id, models)
        kind = model_id.partition(":")[2].partition("/")[0]
        for variable, texture_id in resolved.textures.items():
            if texture_id in files.textures or variable.rpartition(".")[2] != "particle":
                uses.setdefault(texture_id, set()).add(resolved.use)
                shown_in.setdefault(texture_id, set()).add(kind)
        if resolved.vanilla is not None and not model_id.startswith("minecraft:"):
            reason = f"shows the vanilla model {resolved.vanilla}"
            bare.append(_bare(model_id, FOLDERS.get(kind, kind), resolved.use, "vanilla", reason))
    for (kind, owner), name in sorted(files.definitions.items()):
        definition = _parsed(container.tree, {owner: name}, notes).get(owner)
        category: str = "block" if kind == "blockstates" else "item"
        use: Use = "flat" if category == "block" else "sprite"
        for texture_id in textures_within(definition):
            uses.setdefault(texture_id, set()).add("flat")
            shown_in.setdefault(texture_id, set()).add(category)
        bare.extend(_unmodelled(owner, category, use, definition, files))
    for texture_id, name in files.textures.items():
        yield _own(container, texture_id, name, uses.get(texture_id, set()), shown_in)
    for texture_id in sorted(uses.keys() - files.textures.keys()):
        origin: Origin = "vanilla" if texture_id.startswith("minecraft:") else "missing"
        reason = (
            "a model names this vanilla texture" if origin == "vanilla" else "a model names it; there is no such file"
        )
        category = _category(texture_id, shown_in)
        yield _grouped(container, _bare(texture_id, category, _first(uses[texture_id]), origin, reason))
    for asset in bare:
        yield _grouped(container, asset)


def _unmodelled(owner: str, category: str, use: Use, definition: Any, files: Resource) -> Iterator[Asset]:
    """What a blockstate or item definition shows through a model that the submission does not bring."""
    namespace, _, path = owner.partition(":")
    if namespace == "minecraft":
        return
    own_id = f"{namespace}:{category}/{path}"
    for model_id in sorted(set(model_ids(definition))):
        model_namespace, _, model_path = model_id.partition(":")
        before_flattening = f"{model_namespace}:block/{model_path}"  # 1.12 and older leave "block/" out
        if model_id in files.models or before_flattening in files.models:
            continue
        if model_namespace == "minecraft":
            if model_path not in ("block/air", "air"):
                yield _bare(own_id, category, use, "vanilla", f"shows the vanilla model {model_id}")
        elif model_namespace == namespace and files.models:
            yield _bare(own_id, category, use, "missing", f"shows the model {model_id}, which is not there")


def _own(container: Container, texture_id: str, name: str, uses: set[Use], shown_in: Mapping[str, set[str]]) -> Asset:
    category = _category(texture_id, shown_in)
    namespace = texture_id.partition(":")[0]
    reason = ""
    if category == "entity":
        use: Use = "entity"
    elif uses:
        use = _first(uses)
    elif namespace == "minecraft" and category in ("item", "block") and name.endswith(".png"):
        use = "sprite" if category == "item" else "flat"
        reason = "no model of this pack names it; the game's own do"
    else:
        use = "unreferenced"
        reason = "no model, blockstate or item definition names it"
    if not name.endswith(".png"):
        reason = "the game loads only lower-case .png"
    loader = partial(_load, container.tree, name)
    return _grouped(container, Asset(texture_id, category, use, "own", None, name, reason, loader=loader))


def _bare(asset_id: str, category: str, use: Use, origin: Origin, reason: str) -> Asset:
    return Asset(asset_id, category, "entity" if category == "entity" else use, origin, reason=reason)


def _grouped(container: Container, asset: Asset) -> Asset:
    if not container.group:
        return asset
    shown = f"{container.group}!{asset.id}" if container.several else asset.id
    return Asset(
        shown, asset.category, asset.use, asset.origin, None, asset.path, asset.reason, container.group, asset.loader
    )


def _category(texture_id: str, shown_in: Mapping[str, set[str]]) -> str:
    """By folder; art in a folder of the mod's own belongs to what shows it: item models, else block models."""
    folder, slash, _ = texture_id.partition(":")[2].partition("/")
    if folder in FOLDERS and slash:
        return FOLDERS[folder]
    if folder not in UNMODELLED:
        for kind in ("item", "block"):
            if kind in shown_in.get(texture_id, ()):
                return kind
    return folder if slash else "other"


def _first(uses: Iterable[Use]) -> Use:
    return min(uses, key=USES.index)


def _parsed(tree: Tree, files: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """JSON files by id; damaged ones are noted and passed over, as the game does."""
    parsed = {}
    for key, name in files.items():
        label = f"{tree.label}: {name}"
        try:
            parsed[key] = parse_json(tree.read(name), label)
        except (DamagedJson, ImageError) as error:
            notes.append(f"passed over: {error}")
    return parsed


def _load(tree: Tree, name: str) -> Texture:
    mcmeta = f"{name}.mcmeta"
    strip: bytes | None = None
    if mcmeta in tree:
        try:
            strip = tree.read(mcmeta)
        except UnreadableImageError:
            strip = b""  # damaged: remarked on as such, and the picture is one frame
    return load(tree.read(name), name=name, mcmeta=strip)
