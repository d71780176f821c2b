"""What a Minecraft mod or resource pack registers: the textures that its models, blockstates and item definitions show.

`read` lists every texture once, with its use, and adds what is registered without art of its own: vanilla textures that
models name, and textures and models that are named and not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..errors import ArchiveError, ImageError, ReferenceSetError
from ..factors import words_of_id
from ..images import Texture, load
from ..text import printable
from .archives import open_tree
from .base import USES, Asset, Origin, ReferenceRecord, Requests, Submission, Use, distinct_id
from .jsonfiles import DamagedJson, parse_json
from .minecraft_families import family_of
from .minecraft_layout import Container, Resource, containers, resources
from .minecraft_models import Model, model_ids, resolve, textures_within
from .trees import DEFAULT_LIMITS, Limits, Tree

__all__ = ["CATEGORIES", "read", "references"]

CATEGORIES = ("item", "block", "entity")
"""Those that have references. Others (gui, particle, mob_effect ...) are called as their folder is."""
FOLDERS = {"item": "item", "items": "item", "block": "block", "blocks": "block", "entity": "entity"}
_UNMODELLED = "colormap effect environment font gui map misc mob_effect models painting particle trims"
UNMODELLED = frozenset(_UNMODELLED.split())
"""Folders of textures that are no model's, whatever names them."""
_FLAT: Use = "flat"
_SPRITE: Use = "sprite"
_Key = TypeVar("_Key", str, tuple[str, str])


def read(path: str | os.PathLike[str], *, requests: Requests = None, limits: Limits = DEFAULT_LIMITS) -> Submission:
    """The registered textures of a mod or resource pack.

    Args:
        path: a source tree, an assets folder, a .jar, a resource pack (.zip or folder), or a folder of those.
        requests: see `base.Requests`.
        limits: what an archive may ask.

    Returns:
        One asset a texture, by id. What a model, blockstate or item definition shows that is not the mod's is an asset
        of its id; a texture file of the same id that it does not show is listed too, with ".png" behind its id. Of a
        folder of several jars and packs the ids begin with its name and a "!"; a hostile one among them is passed over.
        A jar or data pack without textures gives an empty submission, and a note, as does a damaged jar inside a jar.

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
            try:
                found = [asset.of_group(container.group, container.owner) for asset in _assets(container, notes)]
            except ArchiveError as error:
                if not container.owner:
                    raise
                notes.append(f"passed over: {error}")
                continue
            for asset in found:
                _join(assets, asset)
            if not found:
                notes.append(f"{container.group or tree.label}: registers no textures")
    except BaseException:
        for each in opened:
            each.close()
        raise
    ordered = tuple(assets[key] for key in sorted(assets))
    closers = tuple(each.close for each in opened)
    return Submission("minecraft", tree.label, ordered, tuple(map(printable, notes)), closers).with_requests(requests)


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
            category = FOLDERS.get(_folder(texture_id))
            if category is None:
                continue
            try:
                texture = _load(tree, name)
            except ImageError:
                continue
            frames = [frame for frame in texture.frames if not frame.is_empty]
            for number, frame in enumerate(frames):
                frame_id = f"{texture_id}#{number}" if len(frames) > 1 else texture_id
                count += 1
                family = family_of(texture_id)
                yield ReferenceRecord(frame_id, category, frame, texture_id, words_of_id(texture_id), family)
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
    shown = _Shown(files)
    bare: dict[str, Asset] = {}
    models = {key: Model.of(content) for key, content in _parsed(container.tree, files.models, notes)}
    for model_id in sorted(models):
        try:
            resolved = resolve(model_id, models)
        except ArchiveError as error:
            raise ArchiveError(f"{container.tree.label}: {error}") from error
        if resolved.rings:
            rings = ", ".join(f"#{variable[:60]}" for variable in resolved.rings[:5])
            notes.append(f"{container.tree.label}: model {model_id}: its variables go round in a circle, at {rings}")
        kind = model_id.partition(":")[2].partition("/")[0]
        for variable, texture_id in resolved.textures.items():
            if texture_id in files.textures or variable.rpartition(".")[2] != "particle":
                shown.add(texture_id, resolved.use, kind)
        if resolved.vanilla is not None and not model_id.startswith("minecraft:"):
            reason = f"shows the vanilla model {resolved.vanilla}"
            bare[model_id] = _bare(model_id, FOLDERS.get(kind, kind), resolved.use, "vanilla", reason)
    itself: set[str] = set()
    for (kind, owner), definition in _parsed(container.tree, files.definitions, notes):
        category, use = ("block", _FLAT) if kind == "blockstates" else ("item", _SPRITE)
        for texture_id in textures_within(definition):
            shown.add(texture_id, "flat", category)
        own_id = f"{owner.partition(':')[0]}:{category}/{owner.partition(':')[2]}"
        for asset in _unmodelled(owner, own_id, category, use, definition, files):
            bare.setdefault(own_id, asset)
        if own_id in bare and own_id in _textures_of(definition, models):
            itself.add(own_id)
    models.clear()  # they need not be in memory together with the rows
    files.models.clear()
    taken = bare.keys() - itself
    ids = {*bare, *files.textures, *shown.uses} if taken else set()

    def id_of(texture_id: str) -> str:
        if texture_id not in taken:
            return texture_id
        distinct = distinct_id(texture_id, ids)
        ids.add(distinct)
        return distinct

    for texture_id, name in files.textures.items():
        yield _own(container, texture_id, id_of(texture_id), name, shown)
    for texture_id in sorted(shown.uses.keys() - files.textures.keys()):
        origin: Origin = "vanilla" if texture_id.startswith("minecraft:") else "missing"
        reason = f"a model names this {origin} texture"
        yield _bare(id_of(texture_id), shown.category(texture_id), shown.uses[texture_id], origin, reason)
    for asset_id, asset in bare.items():
        if asset_id in taken or not (asset_id in files.textures or asset_id in shown.uses):
            yield asset


def _join(assets: dict[str, Asset], asset: Asset) -> None:
    """Add a row of a jar's next inner jar. They are one mod, and of two files of one id the outermost holds."""
    before = assets.get(asset.id)
    if before is None:
        assets[asset.id] = asset
    elif "vanilla" in (before.origin, asset.origin) and before.origin != asset.origin:
        registered, other = (before, asset) if before.origin == "vanilla" else (asset, before)
        if other.origin == "own" and (other is asset or other.use == "unreferenced"):
            assets[asset.id] = registered
            distinct = distinct_id(other.id, assets)
            assets[distinct] = replace(other, id=distinct)
    else:
        file, used = before, before
        if before.origin == "missing" and asset.origin == "own":
            file = asset
        if USES.index(asset.use) < USES.index(before.use):
            used = asset
        reason = "" if used is not file and file.origin == "own" else file.reason
        assets[asset.id] = replace(file, category=used.category, use=used.use, reason=reason)


def _textures_of(definition: Any, models: Mapping[str, Model]) -> set[str]:
    """The textures that a blockstate or item definition shows, itself or through the models that it names."""
    found = set(textures_within(definition))
    for model_id in set(model_ids(definition)):
        for known in (model_id, _before_flattening(model_id)):
            if known in models:
                found.update(resolve(known, models).textures.values())
    return found


def _before_flattening(model_id: str) -> str:
    """What a blockstate of 1.12 and older means: they leave "block/" out."""
    namespace, _, path = model_id.partition(":")
    return f"{namespace}:block/{path}"


class _Shown:
    """What models show: the first use of each texture and, for art in a folder of the mod's own, in what."""

    def __init__(self, files: Resource) -> None:
        self.uses: dict[str, Use] = {}
        self.kinds: dict[str, str] = {}
        self._keys = {key: key for key in files.textures}  # one string object for each id

    def add(self, texture_id: str, use: Use, kind: str) -> None:
        texture_id = self._keys.setdefault(texture_id, texture_id)
        before = self.uses.get(texture_id)
        if before is None or USES.index(use) < USES.index(before):
            self.uses[texture_id] = use
        if kind in CATEGORIES and self.kinds.get(texture_id) != "item" and _folder(texture_id) not in FOLDERS:
            self.kinds[texture_id] = kind

    def category(self, texture_id: str) -> str:
        """By folder; art in a folder of the mod's own belongs to what shows it: item models, else block models."""
        folder = _folder(texture_id)
        if folder in FOLDERS:
            return FOLDERS[folder]
        if folder not in UNMODELLED and texture_id in self.kinds:
            return self.kinds[texture_id]
        return folder or "other"


def _folder(texture_id: str) -> str:
    """The first folder of a texture's path; empty for one that lies in none."""
    folder, slash, _ = texture_id.partition(":")[2].partition("/")
    return folder if slash else ""


def _unmodelled(owner: str, own_id: str, category: str, use: Use, definition: Any, files: Resource) -> Iterator[Asset]:
    """What a blockstate or item definition shows through a model that the submission does not bring."""
    namespace = owner.partition(":")[0]
    if namespace == "minecraft":
        return
    for model_id in sorted(set(model_ids(definition))):
        model_namespace, _, model_path = model_id.partition(":")
        if model_id in files.models or _before_flattening(model_id) in files.models:
            continue
        if model_namespace == "minecraft":
            if model_path not in ("block/air", "air"):
                yield _bare(own_id, category, use, "vanilla", f"shows the vanilla model {model_id}")
        elif model_namespace == namespace and files.models:
            yield _bare(own_id, category, use, "missing", f"shows the model {model_id}, which is not there")


def _own(container: Container, texture_id: str, asset_id: str, name: str, shown: _Shown) -> Asset:
    category, use = shown.category(texture_id), shown.uses.get(texture_id)
    reason = ""
    if category == "entity":
        use = "entity"
    elif use is None and texture_id.startswith("minecraft:") and category in CATEGORIES and name.endswith(".png"):
        use = "sprite" if category == "item" else "flat"
        reason = "no model of this pack names it; the game's own do"
    elif use is None:
        use = "unreferenced"
        reason = "no model, blockstate or item definition names it"
    if not name.endswith(".png"):
        reason = "the game loads only lower-case .png"
    loader = _Loader(container.tree, name)
    return Asset(asset_id, category, use, "own", None, container.path(name), reason, loader=loader)


def _bare(asset_id: str, category: str, use: Use, origin: Origin, reason: str) -> Asset:
    return Asset(asset_id, category, "entity" if category == "entity" else use, origin, reason=reason)


def _parsed(tree: Tree, files: Mapping[_Key, str], notes: list[str]) -> Iterator[tuple[_Key, Any]]:
    """JSON files by key, one at a time; damaged ones are noted and passed over, as the game does."""
    for key, name in sorted(files.items()):
        try:
            yield key, parse_json(tree.read(name), f"{tree.label}: {name}")
        except (DamagedJson, ImageError) as error:
            notes.append(f"passed over: {error}")


@dataclass(frozen=True, slots=True)
class _Loader:
    tree: Tree
    name: str

    def __call__(self) -> Texture:
        return _load(self.tree, self.name)


def _load(tree: Tree, name: str) -> Texture:
    mcmeta = f"{name}.mcmeta"
    strip: bytes | None = None
    if mcmeta in tree:
        try:
            strip = tree.read(mcmeta)
        except ImageError:
            strip = b""  # damaged, too large, a link that leads out: remarked on, and the picture is one frame
    return load(tree.read(name), name=name, mcmeta=strip)
