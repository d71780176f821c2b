"""Where a Minecraft project keeps its assets: source roots, namespaces, packs and jars inside folders and jars."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ..errors import ArchiveError
from .archives import DamagedArchive, is_archive_name, open_nested
from .trees import IGNORED_FOLDERS, Tree

__all__ = ["Container", "Resource", "containers", "resources"]

KINDS = frozenset({"textures", "models", "blockstates", "items"})
_SOURCE_ROOTS = "resources generated main src res client common xplat fabric forge neoforge quilt"
SOURCE_ROOTS = frozenset(_SOURCE_ROOTS.split())
"""What the folder that holds "assets" is called in source trees. Art under other folders is not built into the mod."""
_NOT_SHIPPED = "build out bin run runs target test tests testmod gametest resourcepacks datapacks"
NOT_SHIPPED = frozenset(_NOT_SHIPPED.split())
"""Folders that are built, tried or offered beside a mod; packs inside it redraw its names and are not its own art."""
ARCHIVE_FOLDERS = ("", "mods", "resourcepacks")
"""Where the jars and packs of a folder of them lie first; where none does, in any folder but those of `TOOLS`."""
TOOLS = (NOT_SHIPPED - {"resourcepacks", "datapacks"}) | {"libs", "lib", "gradle", "meta-inf"}
"""Folders whose jars are a project's tools, or built from what lies beside them."""
_PROJECT = re.compile(r"build\.gradle(\.kts)?|pom\.xml|gradlew|.*\.(java|kt)")
JAR_FOLDERS = ("META-INF/jarjar/", "META-INF/jars/")
MEANINGFUL = KINDS | {"assets", "data", "META-INF", "libs"}
"""Folders that say what lies in them, even where nothing lies beside them."""


@dataclass(frozen=True)
class Container:
    """One mod or pack.

    Attributes:
        tree: its files.
        prefix: the folder inside `tree` that it lies in, with a slash behind it; empty for all of it.
        group: what it is called among several.
        owner: of a folder of several, which of them it is or lies in; what ids begin with.
        archive: that `tree` is, in what was read, where `group` does not name it.
    """

    tree: Tree
    prefix: str = ""
    group: str = ""
    owner: str = ""
    archive: str = ""

    def path(self, name: str) -> str:
        """Of a file of the container: "FILE", or "ARCHIVE!FILE"."""
        return _joined(self.archive, name)


@dataclass
class Resource:
    """The files of a container by kind and id: ``"mod:item/ruby"`` to the file's name."""

    textures: dict[str, str] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    definitions: dict[tuple[str, str], str] = field(default_factory=dict)
    """Blockstates and item definitions, by (kind, id)."""


def containers(tree: Tree, opened: list[Tree], notes: list[str]) -> Iterator[Container]:
    """The mods and packs of a tree, outermost first. What was packed with the folder around it is read without that.

    Args:
        tree: a source tree, an assets folder, an opened jar or pack, or a folder of jars and packs.
        opened: receives the archives that were opened, to be closed later.
        notes: receives a line for each archive that cannot be read: one of a folder, or a damaged jar inside a jar.

    Raises:
        ArchiveError: an archive inside another is hostile, or none of those that a folder holds can be read.
    """
    around = _folder_around(tree.names)
    inner_names: Sequence[str] = tree.names
    if around:
        inner_names = [name[len(around) :] for name in tree.names if name.startswith(around)]
    packs = _packs(inner_names)
    archives = [n for n in inner_names if is_archive_name(n) and n.rpartition("/")[0] in ARCHIVE_FOLDERS]
    if not (archives or packs or any(_place(n) or not KINDS.isdisjoint(n.split("/")[:2]) for n in inner_names)):
        archives = _archives_below(inner_names)
    if _has_assets(inner_names) or not (archives or packs):
        yield Container(tree, around)
        for name in inner_names:
            if is_archive_name(name) and name.startswith(JAR_FOLDERS):
                try:
                    nested = open_nested(tree, around + name)
                    opened.append(nested)
                    found = list(containers(nested, opened, notes))
                except DamagedArchive as error:
                    notes.append(f"passed over: {error}")
                    continue
                for inner in found:
                    group = _joined(around + name, inner.group)
                    yield Container(inner.tree, inner.prefix, group, archive=inner.archive)
        return
    several = len(packs) + len(archives) > 1
    refused = 0
    for name in (around + name for name in packs):
        group = name if several else ""
        yield Container(tree, f"{name}/", group, group)
    for name in (around + name for name in archives):
        try:
            nested = open_nested(tree, name)
            opened.append(nested)
            found = list(containers(nested, opened, notes))
        except ArchiveError as error:
            refused += 1
            if refused == len(archives) and not packs:  # nothing is left that could be read
                raise
            notes.append(f"passed over: {error}")
            continue
        for inner in found:
            if several or inner.group:
                group, archive = _joined(name, inner.group), inner.archive
            else:
                group, archive = "", _joined(name, inner.archive)
            owner = _joined(name, inner.owner) if several or inner.owner else ""
            yield Container(inner.tree, inner.prefix, group, owner, archive)


def _packs(names: Sequence[str]) -> list[str]:
    """The folders of a folder of packs: where one says with its pack.mcmeta that it is one, those beside it are, too.

    >>> _packs(["a/assets/x/textures/y.png", "a/pack.mcmeta", "b/assets/x/textures/y.png"])
    ['a', 'b']
    """
    described = {name.removesuffix("/pack.mcmeta") for name in names if name.endswith("/pack.mcmeta")}
    folders = sorted({place[0] for name in names if (place := _place(name)) is not None and "/" not in place[0]} - {""})
    if described.isdisjoint(folders):
        return []
    return [name for name in folders if name in described or not (name.lower() in NOT_SHIPPED or _ignored(name))]


def _archives_below(names: Sequence[str]) -> list[str]:
    """The jars and packs in any folder; none where the whole is a project, whose jars are its tools.

    >>> _archives_below(["done/v1/ruby.jar", "libs/api.jar"]), _archives_below(["build.gradle", "done/ruby.jar"])
    (['done/v1/ruby.jar'], [])
    """
    if any(_PROJECT.fullmatch(name.rpartition("/")[2]) for name in names):
        return []
    return [n for n in names if is_archive_name(n) and TOOLS.isdisjoint(n.lower().split("/")[:-1]) and not _ignored(n)]


def _joined(*parts: str) -> str:
    return "!".join(filter(None, parts))


def resources(container: Container) -> Resource:
    """The textures, models, blockstates and item definitions of a container; the first of two equal ids holds."""
    names: Sequence[str] = container.tree.names
    if container.prefix:
        names = [name for name in names if name.startswith(container.prefix)]
    found = Resource()
    for name, namespace, kind, rest in _by_hand_first(_placed(container, names)):
        stem, dot, extension = rest.rpartition(".")
        if kind == "textures" and extension.lower() == "png" and dot:
            # The game loads only lower-case names; what it cannot load keeps its extension, so that ids stay unique.
            found.textures.setdefault(f"{namespace}:{stem if extension == 'png' else rest}", name)
        elif extension == "json" and kind == "models":
            found.models.setdefault(f"{namespace}:{stem}", name)
        elif extension == "json" and kind in ("blockstates", "items"):
            found.definitions.setdefault((kind, f"{namespace}:{stem}"), name)
    return found


def _placed(container: Container, names: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """(file, namespace, kind, path below the kind) of each file that belongs to the container's assets."""
    start = len(container.prefix)
    inner = [name[start:] for name in names] if start else names
    roots = _roots({place[0] for rest in inner if (place := _place(rest)) is not None})
    for name, rest in zip(names, inner, strict=True) if roots else ():
        place = _place(rest)
        if place is not None and place[0] in roots:
            yield name, *place[1:]
    if roots:
        return
    label = PurePosixPath(container.prefix or container.tree.label.replace("\\", "/")).name.lower()
    for name, rest in zip(names, inner, strict=True):  # an assets folder itself, or one namespace of it
        parts = rest.split("/")
        if len(parts) > 2 and parts[1] in KINDS:
            yield name, parts[0], parts[1], "/".join(parts[2:])
        elif len(parts) > 1 and parts[0] in KINDS:
            yield name, label, parts[0], "/".join(parts[1:])


def _place(name: str) -> tuple[str, str, str, str] | None:
    """(root, namespace, kind, path) of "<root>/assets/<namespace>/<kind>/<path>"."""
    if "assets/" not in name:
        return None
    parts = name.split("/")
    for at, part in enumerate(parts):
        if part == "assets" and len(parts) > at + 3 and parts[at + 2] in KINDS:
            return "/".join(parts[:at]), parts[at + 1], parts[at + 2], "/".join(parts[at + 3 :])
    return None


def _roots(found: set[str]) -> set[str]:
    """Which of the folders that hold an "assets" are the mod's.

    Where none is called as source roots are, the outermost: art beside a mod lies deeper than the mod.

    >>> sorted(_roots({"ruby", "ruby/art"})), sorted(_roots({"fabric", "art"})), _roots({"resourcepacks/retro"})
    (['ruby'], ['fabric'], set())
    """
    found = {root for root in found if not _ignored(root)}
    sources = set(filter(_is_source_root, found))
    if sources:
        return sources
    shipped = {root for root in found if not NOT_SHIPPED.intersection(root.lower().split("/"))}
    shipped = shipped or {root for root in found if "/" not in root}  # the mod's own folder may be called "out"
    return {root for root in shipped if not any(root.startswith(f"{other}/") for other in shipped)}


def _ignored(folder: str) -> bool:
    """Is it, or is one around it, a folder that nobody means to hand in (".git", "__MACOSX")?"""
    return any(part.startswith(".") or part.lower() in IGNORED_FOLDERS for part in folder.split("/"))


def _folder_around(names: Sequence[str]) -> str:
    """The folders that everything lies in, with a slash behind them; those that mean something do not count."""
    start = next((name for name in names if not _ignored(name)), "")
    end = next((name for name in reversed(names) if not _ignored(name)), "")
    first, last = start.split("/"), end.split("/")  # sorted: what both begin with, all begin with
    around = ""
    for at, (part, other) in enumerate(zip(first[:-1], last[:-1], strict=False)):
        inner = first[at + 1], last[at + 1]
        if part != other or part in MEANINGFUL or not KINDS.isdisjoint(inner):
            break
        around += f"{part}/"
    return around


def _has_assets(names: Sequence[str]) -> bool:
    """Is there an "assets" with something in it that the game gets to see?"""
    return any(_is_source_root(place[0]) for name in names if (place := _place(name)) is not None)


def _is_source_root(root: str) -> bool:
    parts = root.lower().split("/")
    return root == "" or (parts[-1] in SOURCE_ROOTS and not NOT_SHIPPED.intersection(parts))


def _by_hand_first(places: Iterator[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """Written by hand before generated, each in the order that they come in: by name."""
    generated = []
    for place in places:
        if "generated" in place[0].lower().split("/"):
            generated.append(place)
        else:
            yield place
    yield from generated
