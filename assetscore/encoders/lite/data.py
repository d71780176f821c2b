"""The training corpus: free game art and emoji drawn by many hands, as one array with names, packs and splits.

Sources (none of them is needed at inference):

* a zip of game packs with a ``manifest.csv`` (columns file, pack, family, category, object_words, name, ...);
* Iconify's npm packages, unpacked (each holds ``icons.json``, ``chars.json``, ``info.json``), rendered with resvg.

What is held out is written here, before any training: whole families of games, whole cdda tilesets, two emoji sets and
a quarter of the emoji codepoints. Only rows whose `split` is ``"train"`` are ever trained on.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...errors import EncoderUnavailableError, ManifestError
from ...images import Texture

__all__ = ["HELD_OUT_FAMILIES", "HELD_OUT_PACKS", "SIDE", "Corpus", "build_corpus", "held_out_codepoint"]

SIDE = 64
"""Pixels a side of the slot each image is kept in (top left corner), and of the encoder's canvas."""

HELD_OUT_FAMILIES = frozenset(
    {
        "angband", "freedink", "minetest", "nethack", "openclonk", "paxbritannica", "slashem", "supertux", "vonsh",
        "wesnoth", "widelands",
    }
)  # fmt: skip
HELD_OUT_PACKS = frozenset({"cdda/HoderTileset", "cdda/BrownLikeBears", "cdda/Cuteclysm", "cdda/UltimateCataclysm"})
HELD_OUT_ICONS = frozenset({"openmoji", "fxemoji"})
NEVER = frozenset({"crawl", "minecraft", "terraria"})
"""Families that are refused wherever they turn up: they are what the encoder is judged on."""

PLAIN_ICONS = frozenset({"game-icons", "pixelarticons", "flat-color-icons"})
"""Icon sets that are no emoji: named by words alone."""
TWICE = {"streamline-flex-color": "-flat", "streamline-plump-color": "-flat", "streamline-kameleon-color": "-duo",
         "streamline-stickies-color": "-duo", "streamline-cyber-color": "", "streamline-freehand-color": "",
         "streamline-ultimate-color": ""}  # fmt: skip
"""Icon sets that are no emoji; where a suffix is given, its names are the same icons drawn in a second style."""
REDRAWN = frozenset({"cdda", "freeciv", "emoji", "themes", *(name for name, suffix in TWICE.items() if suffix)})
"""Families whose packs redraw one game: two packs of them are two styles. Elsewhere packs of a family share lineage."""

_MODIFIER = re.compile(r"(light|dark|medium)(-(light|dark))?-skin-tone|skin-tone|[A-Z]{2}-flag")
_COLOURS = {"game-icons": "#d8d4c8", "pixelarticons": "#2b2b3a", "emojione-monotone": "#4a2a12",
            "fluent-emoji-high-contrast": "#203a6a"}  # fmt: skip
_CONTEXTS = frozenset(
    {"apps", "categories", "devices", "emblems", "emotes", "mimetypes", "places", "status", "actions"}
)
"""Folders of a freedesktop icon theme."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Corpus:
    """n images and what is known about them.

    Attributes:
        pixels: (n, 64, 64, 4) uint8, canonical RGBA in the top left corner of each slot, transparent elsewhere.
        size: (n, 2) int16, height and width on the native grid.
        pack: n names of styles, such as ``"crossfire/base"`` or ``"emoji/noto"``.
        family: n names; two packs of a family are no evidence about style unless the family is in `REDRAWN`.
        key: n identities within a family of packs that redraw the same things (cdda ids, codepoints), or "".
        words: n object words, such as ``"ruby sword"``, or "".
        category: n of item, entity, block, ...
        split: n of ``"train"`` or ``"held"``. An emoji of a training set with a held-out codepoint is ``"none"``.
    """

    pixels: NDArray[np.uint8]
    size: NDArray[np.int16]
    pack: NDArray[np.str_]
    family: NDArray[np.str_]
    key: NDArray[np.str_]
    words: NDArray[np.str_]
    category: NDArray[np.str_]
    split: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.size)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Corpus:
        """The given rows as a corpus of their own."""
        return Corpus(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    def save(self, folder: Path) -> None:
        """Keep the decoded corpus as .npy files, so that a second run starts at once."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.__dataclass_fields__:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """A corpus that `save` wrote."""
        return cls(**{name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in cls.__dataclass_fields__})


def held_out_codepoint(codepoint: str) -> bool:
    """Whether an emoji codepoint is kept from training: a quarter of them, by hash.

    >>> sum(held_out_codepoint(f"{0x1F300 + i:x}") for i in range(1000)) in range(200, 300)
    True
    """
    return hashlib.sha256(codepoint.encode()).digest()[0] < 64


def build_corpus(
    pool: Path | None, icons: Sequence[Path], themes: Sequence[Path] = (), cache: Path | None = None
) -> Corpus:
    """Read every source once.

    Args:
        pool: the zip of game packs, or None.
        icons: folders of unpacked Iconify packages, each with an ``icons.json``.
        themes: folders of freedesktop icon themes, each with an ``index.theme``: the same names drawn by many hands.
        cache: a folder where the decoded corpus is kept.

    Raises:
        ManifestError: the zip has no readable manifest, or holds a family that must never be trained on.
    """
    if cache is not None and (cache / "split.npy").exists():
        return Corpus.load(cache)
    rows: list[tuple[NDArray[np.uint8], str, str, str, str, str, str]] = []
    if pool is not None:
        rows.extend(_pool_rows(pool))
    codepoints = _codepoints(icons)
    for folder in icons:
        rows.extend(_icon_rows(folder, codepoints))
    rows.extend(_theme_rows(themes))
    if not rows:
        raise ManifestError("the corpus is empty: neither the pool nor the icon packages gave an image")
    pixels = np.zeros((len(rows), SIDE, SIDE, 4), np.uint8)
    for slot, (image, *_) in zip(pixels, rows, strict=True):
        slot[: image.shape[0], : image.shape[1]] = image
    corpus = Corpus(
        pixels,
        np.array([row[0].shape[:2] for row in rows], np.int16),
        *(np.array([row[i] for row in rows], dtype=np.str_) for i in range(1, 7)),
    )
    if cache is not None:
        corpus.save(cache)
    _LOG.info("corpus: %d images, %d to train on", len(corpus), int((corpus.split == "train").sum()))
    return corpus


def canonical(image: Image.Image) -> NDArray[np.uint8]:
    """RGBA on the native grid, no colour where nothing is visible."""
    return Texture.from_rgba(np.array(image.convert("RGBA"))).native


def _pool_rows(path: Path) -> Iterator[tuple[NDArray[np.uint8], str, str, str, str, str, str]]:
    with zipfile.ZipFile(path) as archive:
        try:
            table = list(csv.DictReader(io.TextIOWrapper(archive.open("manifest.csv"), "utf-8")))
        except KeyError:
            raise ManifestError(f"{path.name} has no manifest.csv") from None
        for line in table:
            family, pack = line["family"], line["pack"]
            if family in NEVER:
                raise ManifestError(f"{path.name} holds {family!r}, which must never be trained on")
            with Image.open(archive.open(line["file"])) as image:
                pixels = canonical(image)
            if max(pixels.shape[:2]) > SIDE or not pixels[..., 3].any():
                continue
            key = line["name"] if family in REDRAWN else ""
            held = family in HELD_OUT_FAMILIES or pack in HELD_OUT_PACKS
            yield pixels, pack, family, key, line["object_words"], line["category"], "held" if held else "train"


def _codepoints(icons: Sequence[Path]) -> dict[str, str]:
    """Emoji names, letters and digits only, to codepoints, from the sets that tell them. The others share the names."""
    found: dict[str, str] = {}
    for folder in icons:
        if not _plain(folder) and (folder / "chars.json").exists():
            for codepoint, name in json.loads((folder / "chars.json").read_text("utf-8")).items():
                found.setdefault(_letters(name), codepoint.replace("-fe0f", ""))
    return found


def _plain(folder: Path) -> bool:
    return json.loads((folder / "info.json").read_text("utf-8"))["prefix"] in PLAIN_ICONS | set(TWICE)


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _icon_rows(
    folder: Path, codepoints: dict[str, str]
) -> Iterator[tuple[NDArray[np.uint8], str, str, str, str, str, str]]:
    data = json.loads((folder / "icons.json").read_text("utf-8"))
    prefix, side = data["prefix"], data.get("width", data.get("height", 16))
    family = prefix if prefix in PLAIN_ICONS or prefix in TWICE else "emoji"
    for name, icon in data["icons"].items():
        codepoint = codepoints.get(_letters(name), "") if family == "emoji" else ""
        if icon.get("hidden") or _MODIFIER.search(name) or (family == "emoji" and not codepoint):
            continue
        if any(tone in codepoint for tone in ("1f3fb", "1f3fc", "1f3fd", "1f3fe", "1f3ff")):
            continue
        width, height = icon.get("width", side), icon.get("height", data.get("height", side))
        pixels = _render(icon["body"], width, height, _COLOURS.get(prefix, "#303030"))
        if pixels is None:
            continue
        words = "" if name.startswith(("flag-", "regional")) else name.replace("-", " ")
        held = bool(codepoint) and held_out_codepoint(codepoint)
        split = "train" if not held else "none"
        if prefix in HELD_OUT_ICONS:
            split = "held" if held else "none"
        key, second = codepoint, ""
        if prefix in TWICE:
            suffix = TWICE[prefix]
            second = suffix if suffix and name.endswith(suffix) else ""
            base = name.removesuffix(second)
            key = base if suffix else ""
            words = " ".join(word for word in base.split("-") if not word.isdigit())
        yield pixels, f"{family}/{prefix}{second}", family, key, words, "icon", split


def _theme_rows(themes: Sequence[Path]) -> Iterator[tuple[NDArray[np.uint8], str, str, str, str, str, str]]:
    """One picture for each name that three themes draw: nearest to 48 px; no links and no symbols."""
    found = {folder.name.lower(): _theme_files(folder) for folder in themes}
    drawn = Counter(name for files in found.values() for name in files)
    for theme, files in sorted(found.items()):
        for name, path in sorted(files.items()):
            if drawn[name] < 3:
                continue
            try:
                pixels = _theme_picture(path)
            except (OSError, ValueError) as error:
                _LOG.debug("an icon cannot be read: %s", error)
                continue
            if pixels is not None:
                yield pixels, f"themes/{theme}", "themes", name, "", "icon", "train"


def _theme_files(folder: Path) -> dict[str, Path]:
    """Names to the file nearest to 48 px of a theme, whose folders are SIZE/CONTEXT or CONTEXT/SIZE."""
    best: dict[str, tuple[int, Path]] = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_symlink() or path.suffix not in (".png", ".svg", ".svgz") or not _CONTEXTS & set(parts):
            continue
        sizes = [int(m[1]) for m in (re.fullmatch(r"(\d+)(x\d+)?", part) for part in parts[:-1]) if m]
        size = sizes[0] if sizes else 48 if "scalable" in parts else 0
        if not 16 <= size <= 64 or "symbolic" in path.name or path.suffix == ".svgz":
            continue
        name, distance = path.stem, abs(size - 48)
        if name not in best or distance < best[name][0]:
            best[name] = distance, path
    return {name: path for name, (_, path) in best.items()}


def _theme_picture(path: Path) -> NDArray[np.uint8] | None:
    if path.suffix == ".svg":
        return _rendered(path.read_text("utf-8"), SIDE, SIDE)
    with Image.open(path) as image:
        pixels = canonical(image)
    return pixels if max(pixels.shape[:2]) <= SIDE and pixels[..., 3].any() else None


def _render(body: str, width: float, height: float, colour: str) -> NDArray[np.uint8] | None:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{body}</svg>'
    svg = svg.replace("currentColor", colour).replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1)
    scale = SIDE / max(width, height)
    return _rendered(svg, max(1, round(width * scale)), max(1, round(height * scale)))


def _rendered(svg: str, width: int, height: int) -> NDArray[np.uint8] | None:
    try:
        import resvg_py
    except ImportError:
        raise EncoderUnavailableError('rendering the icon sets needs resvg: pip install "resvg-py>=0.2"') from None
    try:
        png = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width, height=height))
    except ValueError as error:
        _LOG.debug("an icon cannot be rendered: %s", error)
        return None
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.array(image.convert("RGBA"))
    pixels[pixels[..., 3] == 0] = 0
    return pixels[:SIDE, :SIDE] if pixels[..., 3].any() else None
