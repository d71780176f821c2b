"""What a Terraria (tModLoader) mod registers, from its source tree or its built .tmod.

Where C# sources are there, classes decide what a texture is and how many frames it has; without them, as in most built
mods, its path does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

from ..errors import ArchiveError, ImageError
from ..images import Texture, load
from ..text import printable
from .archives import open_tree
from .base import Asset, Requests, Submission, Use, distinct_id
from .csharp import ClassDeclaration, declarations
from .terraria_classes import Registered, registered
from .terraria_content import references
from .terraria_grids import Grid, cut, grid_for
from .terraria_paths import category_by_path, equip_suffix
from .tmod import TmodTree, is_tmod_name, open_built, rawimg
from .trees import DEFAULT_LIMITS, FolderTree, Limits, Tree

__all__ = ["CATEGORIES", "read", "references"]

CATEGORIES = ("item", "projectile", "tile", "npc")
"""Those that have references. The others are wall, buff, dust, gore and other."""
MAX_PATTERNS = 100
"""Of buildIgnore, and characters in each: an author has a handful."""
NOT_BUILT = ("bin/", "obj/", "Properties/", ".vs/")
LOADED_FOLDERS = ("gores", "backgrounds")
"""What lies under these the game loads by itself, without a class."""


@dataclass(frozen=True)
class Mod:
    """One mod: a tree and the folder in it that is the mod's root.

    Attributes:
        tree: its files.
        prefix: the root folder, with a slash behind it; empty for all of the tree.
        folder: the root folder's name.
        group: what it is called among several; empty where it is the only one.
        archive: that `tree` is, in what was read, where `group` does not name it.
    """

    tree: Tree
    prefix: str
    folder: str
    group: str = ""
    archive: str = ""

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Names below the root of what is built into the mod."""
        ignored = _ignored(self)
        start = len(self.prefix)
        inner = (name[start:] for name in self.tree.names if name.startswith(self.prefix))
        return tuple(name for name in inner if not name.startswith(NOT_BUILT) and not ignored.fullmatch(name))

    def read(self, name: str) -> bytes:
        return self.tree.read(self.prefix + name)


def read(path: str | os.PathLike[str], *, requests: Requests = None, limits: Limits = DEFAULT_LIMITS) -> Submission:
    """The registered textures of a mod.

    Args:
        path: a source tree (marked by its build.txt), a .tmod file, a zip of a source tree, or a folder of those.
        requests: see `base.Requests`.
        limits: what an archive may ask.

    Returns:
        One asset a texture, by id: the path below the mod's root without its extension. Classes that show the game's
        own art, or art that is not there, are assets under their own name; a picture of that name is listed too, with
        ".png" behind its id. Of several mods the ids begin with the mod's name and a "!". What no class names is
        "unreferenced" where there are sources, and judged by its path.

    Raises:
        UsageError: there is nothing at `path`.
        ArchiveError: a damaged or hostile file.
        ManifestError: `requests` is no task file.
    """
    opened: list[Tree] = []
    notes: list[str] = []
    assets: list[Asset] = []
    try:
        mods = _mods(path, limits, opened, notes)
        for mod in mods:
            listed = (asset.of_group(mod.group, mod.group) for asset in _assets(mod, notes))
            found = {asset.id: asset for asset in listed}
            assets += found.values()
            if not found:
                notes.append(f"{mod.group or mod.tree.label}: registers no textures")
    except BaseException:
        for each in opened:
            each.close()
        raise
    ordered = tuple(sorted(assets, key=lambda asset: asset.id))
    closers = tuple(each.close for each in opened)
    return Submission("terraria", os.fspath(path), ordered, tuple(map(printable, notes)), closers).with_requests(
        requests
    )


def _mods(path: str | os.PathLike[str], limits: Limits, opened: list[Tree], notes: list[str]) -> list[Mod]:
    tree: Tree
    if isinstance(path, (str, os.PathLike)) and os.path.isfile(path) and _starts_with(path, b"TMOD"):
        built = TmodTree(path, limits)
        opened.append(built)
        return [Mod(built, "", built.mod)]
    if isinstance(path, (str, os.PathLike)) and os.path.isfile(path) and is_tmod_name(os.fspath(path)):
        raise ArchiveError(f"{os.fspath(path)}: no .tmod file (it does not begin with TMOD)")
    tree = open_tree(path, limits)
    opened.append(tree)
    roots: list[str] = []
    for name in sorted((n for n in tree.names if n.rpartition("/")[2] == "build.txt"), key=lambda n: n.count("/")):
        root = name.removesuffix("build.txt")
        if not any(root.startswith(outer) for outer in roots):
            roots.append(root)
    built_names = [n for n in tree.names if is_tmod_name(n)] if isinstance(tree, FolderTree) or not roots else []
    several = len(roots) + len(built_names) > 1
    if not roots and not built_names:
        notes.append(f"{tree.label}: no build.txt, so the whole is taken as the mod's root")
        roots = [""]
    label = tree.label.replace("\\", "/").rstrip("/").rpartition("/")[2]
    mods = [
        Mod(tree, r, r.rstrip("/").rpartition("/")[2] or label, r.rstrip("/") if several else "") for r in sorted(roots)
    ]
    for name in built_names if not roots or several else ():
        try:
            inner = open_built(tree, name)
        except ArchiveError as error:
            if not roots and name == built_names[-1] and not mods:  # nothing is left that could be read
                raise
            notes.append(f"passed over: {error}")
            continue
        opened.append(inner)
        mods.append(Mod(inner, "", inner.mod, name if several else "", "" if several else name))
    return mods


def _assets(mod: Mod, notes: list[str]) -> Iterator[Asset]:
    images = _images(mod)
    classes = list(_classes(mod, notes))
    internal, entries = registered(classes)
    names = {name for name in (internal, mod.folder) if name}
    taken: dict[str, tuple[Registered, str]] = {}
    bare: dict[str, Asset] = {}
    itself: set[str] = set()
    by_stem: dict[str, list[str]] = {}
    for image in images:
        by_stem.setdefault(image.rpartition("/")[2], []).append(image)
    for entry in entries:
        own_id = _below_root(entry.name.replace(".", "/"), names)
        if entry.vanilla:
            reason = f"its class shows the vanilla texture {entry.texture}"
            bare[own_id] = Asset(own_id, entry.category, "sprite", "vanilla", reason=reason)
            continue
        wanted = own_id if entry.texture is None else _below_root(entry.texture, names)
        reason = ""
        if wanted not in images:
            alike = by_stem.get(entry.name.rpartition(".")[2], [])
            if len(alike) != 1:
                if entry.texture is None:
                    notes.append(f"{entry.name}: its texture is computed when the game runs, and no file has its name")
                else:
                    reason = f"its class asks for {entry.texture}, and there is no such file"
                    bare[own_id] = Asset(own_id, entry.category, "sprite", "missing", reason=reason)
                continue
            wanted, reason = alike[0], "found by the name of its class alone"
        taken.setdefault(wanted, (entry, reason))
        if wanted == own_id:
            itself.add(own_id)
        for suffix in entry.suffixes:
            sheet = f"{wanted}_{suffix}"
            if sheet in images:
                taken.setdefault(sheet, (entry, "worn or shown by its class"))
            else:
                bare[sheet] = Asset(sheet, "other", "sprite", "missing", reason=f"{entry.name} needs it as {suffix}")
    ids = {*images, *bare}
    for image, file in images.items():
        asset_id = image
        if image in bare and image not in itself:
            asset_id = distinct_id(image, ids)
            ids.add(asset_id)
        yield _own(mod, image, asset_id, file, taken.get(image), known=bool(entries))
    for asset_id in sorted(bare):
        if asset_id not in images or asset_id not in itself:
            yield bare[asset_id]


def _own(mod: Mod, image: str, asset_id: str, file: str, claim: tuple[Registered, str] | None, known: bool) -> Asset:
    by_path = category_by_path(image)
    suffix = equip_suffix(image)
    use: Use = "sprite"
    if claim is not None:
        entry, reason = claim
        category = "other" if reason.startswith("worn") else entry.category
        count, cell = (entry.frames, entry.cell) if category == entry.category else (None, None)
    else:
        category, count, cell, reason = by_path, None, None, "told by its path"
        if known and not {part.lower() for part in image.split("/")[:-1]}.intersection(LOADED_FOLDERS):
            use, reason = "unreferenced", "no class names it; told by its path"
        elif "/" not in image:
            use, reason = "unreferenced", "lies beside build.txt, as the mod's icons do"
    loader = _Loader(mod, file, category, count, cell, suffix if category == "other" else "")
    path = f"{mod.archive}!{file}" if mod.archive else mod.prefix + file
    return Asset(asset_id, category, use, "own", None, path, reason, loader=loader)


def _images(mod: Mod) -> dict[str, str]:
    """Ids to files; what the build converted (.rawimg) goes before a .png of the same name."""
    images: dict[str, str] = {}
    for name in mod.files:
        stem, dot, extension = name.rpartition(".")
        if dot and extension.lower() == "rawimg":
            images[stem] = name
        elif dot and extension.lower() == "png":
            images.setdefault(stem if stem not in images or images[stem].endswith(".rawimg") else name, name)
    return images


def _classes(mod: Mod, notes: list[str]) -> Iterator[ClassDeclaration]:
    for name in mod.files:
        if name.endswith(".cs"):
            try:
                yield from declarations(mod.read(name))
            except ImageError as error:
                notes.append(f"passed over: {error}")


def _ignored(mod: Mod) -> re.Pattern[str]:
    """What matches a name that build.txt's buildIgnore lists; without one, nothing."""
    try:
        text = mod.read("build.txt").decode("utf-8-sig", "replace")
    except ImageError:
        text = ""
    patterns = []
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "buildIgnore":
            patterns += [pattern.strip().replace("\\", "/") for pattern in value.split(",") if pattern.strip()]
    short = (pattern for pattern in patterns[:MAX_PATTERNS] if len(pattern) <= MAX_PATTERNS)
    return re.compile("|".join(map(translate, short)) or "(?!)")


def _below_root(path: str, names: set[str]) -> str:
    """A path without the mod's internal name in front."""
    first, slash, rest = path.strip("/").partition("/")
    return rest if slash and first in names else path.strip("/")


def _starts_with(path: str | os.PathLike[str], magic: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Loader:
    mod: Mod
    file: str
    category: str
    count: int | None
    cell: tuple[int, int, int] | None
    suffix: str

    def __call__(self) -> Texture:
        name = self.mod.prefix + self.file
        content = self.mod.read(self.file)
        pixels = rawimg(content, name) if self.file.lower().endswith(".rawimg") else load(content, name=name)
        texture = pixels if isinstance(pixels, Texture) else load(pixels)
        width, height = texture.size
        if texture.is_empty:
            return texture
        cell = self.cell
        grid = (
            Grid(cell=cell[:2], padding=cell[2])
            if cell
            else grid_for(self.category, width, height, self.count, self.suffix)
        )
        framed = cut(texture.pixels, grid)
        return Texture(framed.pixels, framed.grid, framed.boxes, (*texture.flags, *framed.flags))
