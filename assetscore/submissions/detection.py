"""What lies at a path, by its content: a project of either game, a manifest, or a folder of pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

from ..errors import ArchiveError, ImageError, UnsupportedTypeError, UsageError
from ..references import IMAGE_SUFFIXES
from .archives import is_archive_name, open_tree
from .tmod import is_tmod_name
from .trees import IGNORED_FOLDERS

__all__ = ["MANIFESTS", "Layout", "detect"]

Layout: TypeAlias = Literal["minecraft", "terraria", "folder", "manifest"]
MANIFESTS = (".csv", ".jsonl", ".ndjson")
_MOD_FILES = frozenset(
    {"fabric.mod.json", "quilt.mod.json", "mods.toml", "neoforge.mods.toml", "mcmod.info", "pack.mcmeta"}
)
_IN_ASSETS = frozenset({"textures", "models", "blockstates", "items", "lang"})
_BUILD_KEYS = re.compile(
    rb"^[ \t]*(displayName|modReferences|weakReferences|dllReferences|buildIgnore|hideCode|hideResources|includeSource"
    rb"|noCompile|playableOnPreview|sortAfter|sortBefore|side)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)
"""What only tModLoader's build.txt says; author, version and homepage stand in many files."""
_DEPTH = 12
"""Folders below the root that are looked through."""
_BUILD_BYTES = 1 << 16


def detect(path: str | os.PathLike[str]) -> Layout:
    """What lies at a path: a project of either game, a manifest, or else a folder of pictures.

    Signs of Minecraft are a mod's or pack's own description file, and "assets/NAMESPACE/textures" (or models,
    blockstates ...); of Terraria a build.txt at the root or one below, counting more when it says what tModLoader's
    does, and C# sources beside it. The heavier side wins, so a Minecraft tree may hold a build.txt of its own. A folder
    of built mods has .tmod files or jars in it, and no pictures in folders of their own. A damaged archive is left to
    the reader to refuse.

    Raises:
        UnsupportedTypeError: `path` is no path.
        UsageError: there is nothing, a file of a kind that no reader knows, or as much speaks for one game as for the
            other.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise UnsupportedTypeError(f"path must be the path of a submission, got {type(path).__name__}")
    text = os.fspath(path)
    if os.path.isdir(text):
        is_assets = os.path.basename(os.path.abspath(text)) == "assets"
        return _weigh(text, _walk(text), lambda name: _start_of(os.path.join(text, name)), is_assets) or "folder"
    if not os.path.isfile(text):
        raise UsageError(f"path: nothing to read at {text}")
    start = _start_of(text, 4)
    if start == b"TMOD" or is_tmod_name(text):
        return "terraria"
    if start[:2] == b"PK" or is_archive_name(text):
        try:
            with open_tree(text) as tree:
                return _weigh(text, tree.names, lambda name: tree.read(name)[:_BUILD_BYTES], False) or "minecraft"
        except ArchiveError:
            return "minecraft"
    if text.lower().endswith(MANIFESTS):
        return "manifest"
    raise UsageError(f"{text}: expected a folder, a mod (.jar, .zip, .tmod) or a manifest (.csv, .jsonl)")


def _weigh(path: str, names: Iterable[str], read: Callable[[str], bytes], is_assets: bool) -> Layout | None:
    """The game that more speaks for, None where nothing does."""
    minecraft: dict[str, str] = {}  # kind of sign: the first file that shows it
    tmods: list[str] = []
    archives: list[str] = []
    builds: list[str] = []
    sources: list[str] = []
    pictured: set[str] = set()  # folders
    for name in names:
        folder, _, file = name.rpartition("/")
        parts = folder.split("/") if folder else []
        if file in _MOD_FILES:
            minecraft.setdefault("description", name)
        if _in_assets(["assets", *parts] if is_assets else parts):
            minecraft.setdefault("assets", name)
        if file == "build.txt" and len(parts) <= 1:
            builds.append(name)
        elif is_tmod_name(file):
            tmods.append(name)
        elif is_archive_name(file):
            archives.append(name)
        elif file.endswith((".cs", ".csproj")):
            sources.append(name)
        elif file.lower().endswith(IMAGE_SUFFIXES):
            pictured.add(folder)
    terraria: dict[str, int] = {}
    for build in builds:
        root = build.removesuffix("build.txt")
        terraria[build] = 1 + (_BUILD_KEYS.search(_read(read, build)) is not None)
        terraria[build] += 2 * any(source.startswith(root) for source in sources)
    weights = (2 * len(minecraft), max(terraria.values(), default=0))
    signs = (next(iter(minecraft.values()), ""), max(terraria, key=terraria.__getitem__, default=""))
    preview = {"", *(name.rpartition("/")[0] for name in tmods)}  # where a built mod's picture of itself lies
    if weights == (0, 0) and not pictured - preview:
        jars = [name for name in archives if name.lower().endswith(".jar")] if tmods else archives
        weights, signs = (len(jars) > 0, len(tmods) > 0), ((jars or [""])[0], (tmods or [""])[0])
    if weights == (0, 0):
        return None
    if weights[0] == weights[1]:
        raise UsageError(
            f"{path}: may be of either game: Minecraft by {signs[0]}, Terraria by {signs[1]}; say which: "
            "game (--game) minecraft or terraria"
        )
    return "minecraft" if weights[0] > weights[1] else "terraria"


def _in_assets(parts: list[str]) -> bool:
    """Does a file lie in assets/NAMESPACE/textures, or in another folder that a namespace has?"""
    return any(part == "assets" and parts[i + 2] in _IN_ASSETS for i, part in enumerate(parts[:-2]))


def _walk(root: str) -> Iterator[str]:
    for folder, subfolders, files in os.walk(root):
        inner = os.path.relpath(folder, root).replace(os.sep, "/")
        prefix = "" if inner == "." else f"{inner}/"
        known = (name for name in subfolders if not name.startswith(".") and name.lower() not in IGNORED_FOLDERS)
        subfolders[:] = sorted(known) if prefix.count("/") < _DEPTH else []
        for name in sorted(files):
            yield prefix + name


def _start_of(path: str, count: int = _BUILD_BYTES) -> bytes:
    if not os.path.isfile(path):  # a pipe would never end
        return b""
    with open(path, "rb") as file:
        return file.read(count)


def _read(read: Callable[[str], bytes], name: str) -> bytes:
    try:
        return read(name)
    except (ImageError, OSError):
        return b""
