"""ReferenceSet: a game's own textures by category, without exact duplicates, in groups that never serve each other."""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ImageError, ManifestError, ReferenceSetError
from .images import Asset, Texture, load
from .text import counted, printable

if TYPE_CHECKING:
    from .submissions.base import ReferenceRecord

__all__ = ["IMAGE_SUFFIXES", "Reference", "ReferenceSet"]

log = logging.getLogger(__name__)

IMAGE_SUFFIXES = (".png", ".gif", ".jpg", ".jpeg", ".webp")
MANIFESTS = ("index.csv", "manifest.csv")


@dataclass(frozen=True)
class Reference:
    """One picture an asset can be compared with: a texture, or one frame of a sheet.

    Attributes:
        id: unique in the set; a file's path within it, with "#n" behind it for a frame.
        category: what it is compared under.
        texture: the picture.
        sheet: the file it was cut from; frames of one sheet are one group.
        family: variants of one drawing (numbered walls, colours of one potion); "" where unknown.
        words: what it shows, in words; "" where unknown.
        licence: as the manifest states it.
        frame: its number among the frames of an animated texture; -1 for a whole one.
    """

    id: str
    category: str
    texture: Texture = field(repr=False)
    sheet: str = ""
    family: str = ""
    words: str = ""
    licence: str = ""
    frame: int = -1

    @property
    def texture_id(self) -> str:
        """The animated texture it is a frame of; its own id where it is whole."""
        return self.id if self.frame < 0 else self.id.removesuffix(f"#{self.frame}")

    def group(self, families: bool = True) -> str:
        """What is left out together with it: its family where families count and it has one, else its sheet."""
        if families and self.family:
            return f"family:{self.family}"
        return f"sheet:{self.sheet or self.id}"


@dataclass(frozen=True, repr=False)
class ReferenceSet:
    """A game's own textures.

    Attributes:
        name: for people.
        references: by category, then by id.
        duplicates: for each id that stands for several files of its category, the ids that collapsed into it.
        skipped: files that are no reference, with the reason in words.

    >>> import numpy as np
    >>> dot, line = np.zeros((8, 8), np.uint8), np.eye(8, dtype=np.uint8)
    >>> refs = ReferenceSet.from_textures([("a", "item", dot), ("b", "item", line), ("c", "item", dot)])
    >>> refs.categories, refs.duplicates
    ({'item': 2}, {'a': ('c',)})
    """

    name: str
    references: tuple[Reference, ...]
    duplicates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    skipped: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<ReferenceSet {self.name[:60]!r}: {counted(self.categories)}{skipped}; {self.fingerprint[:12]}>"

    def __len__(self) -> int:
        return len(self.references)

    def __iter__(self) -> Iterator[Reference]:
        return iter(self.references)

    @cached_property
    def categories(self) -> dict[str, int]:
        """How many textures each category holds; the frames of an animated one count once."""
        textures: dict[str, set[str]] = {}
        for reference in self.references:
            textures.setdefault(reference.category, set()).add(reference.texture_id)
        return {category: len(ids) for category, ids in textures.items()}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over categories, ids, groups and pixels: changes with anything that changes a score."""
        digest = hashlib.sha256()
        for r in self.references:
            digest.update("\0".join((r.category, r.id, r.sheet, r.family, r.texture.content_hash, "\n")).encode())
        return digest.hexdigest()

    def of(self, category: str) -> tuple[Reference, ...]:
        """The references of one category; none for an unknown one."""
        return tuple(reference for reference in self.references if reference.category == category)

    @classmethod
    def from_textures(
        cls, items: Iterable[tuple[str, str, Asset | Texture]], name: str = "references", **columns: Any
    ) -> ReferenceSet:
        """From (id, category, asset) triples, assets as `images.load` takes them; `columns` go to every Reference.

        Raises:
            ImageError: an asset cannot be read.
        """
        return cls.build(
            (Reference(id, category, load(asset), **columns) for id, category, asset in items),
            name,
        )

    @classmethod
    def build(cls, references: Iterable[Reference], name: str, skipped: Iterable[tuple[str, str]] = ()) -> ReferenceSet:
        """From References: textures are cut into frames, empty ones skipped, exact duplicates collapsed.

        Of equal pictures in one category the first id in order stays. A family that spans duplicates keeps the first's.

        Raises:
            ReferenceSetError: nothing is left, or an id comes twice.
        """
        kept: dict[tuple[str, str], Reference] = {}
        doubles: dict[str, list[str]] = {}
        left_out = list(skipped)
        seen: set[str] = set()
        for whole in sorted(references, key=lambda r: (r.category, r.id)):
            if not whole.category or not whole.category.isprintable():
                raise ReferenceSetError(f"a category must be a printable text, got {whole.category!r}")
            frames = whole.texture.frames
            ids = [whole.id] if len(frames) == 1 else [f"{whole.id}#{number}" for number in range(len(frames))]
            twice = seen.intersection(ids)
            if twice:
                raise ReferenceSetError(f"reference id {min(twice)!r} comes twice")
            seen.update(ids)
            for number, frame in enumerate(frames):
                single, id = len(frames) == 1, ids[number]
                if frame.is_empty:
                    left_out.append((id, "empty: nothing visible"))
                    continue
                first = kept.setdefault(
                    (whole.category, frame.content_hash),
                    replace(
                        whole,
                        id=id,
                        texture=frame,
                        sheet=whole.sheet or whole.id,
                        frame=whole.frame if single else number,
                    ),
                )
                if first.id != id:
                    doubles.setdefault(first.id, []).append(id)
        if not kept:
            raise ReferenceSetError(f"{name}: no reference image found" + _because(left_out))
        duplicates = {id: tuple(ids) for id, ids in doubles.items()}
        return cls(name, tuple(kept.values()), duplicates, tuple(left_out))

    @classmethod
    def from_folder(cls, path: str | os.PathLike[str], name: str | None = None) -> ReferenceSet:
        """From a folder of category subfolders, or with a manifest, or from a manifest file.

        A manifest is a CSV named index.csv or manifest.csv with the columns file and category (and, where known,
        family, object_words, licence); paths are relative to it. Without one, the subfolders are the categories and
        everything below them belongs to them. Files that cannot be read are skipped and reported.

        Raises:
            ReferenceSetError: no such folder, or no image in it.
            ManifestError: the manifest lacks a column or names the same file twice; the line is named.
        """
        path = Path(path)
        if not path.exists():
            raise ReferenceSetError(f"{path}: there is no such folder")
        manifest = path if path.is_file() else next((path / m for m in MANIFESTS if (path / m).is_file()), None)
        rows = _manifest_rows(manifest) if manifest else _folder_rows(path)
        root = manifest.parent if manifest else path
        references: list[Reference] = []
        skipped: list[tuple[str, str]] = []
        for row in rows:
            try:
                texture = load(root / row["file"])
            except ImageError as error:
                log.warning("reference skipped: %s", error)
                skipped.append((printable(row["file"]), printable(str(error))))
                continue
            references.append(
                Reference(
                    id=printable(row["file"]),
                    category=printable(row["category"]),
                    texture=texture,
                    family=row.get("family") or "",
                    words=row.get("object_words") or "",
                    licence=row.get("licence") or "",
                )
            )
        return cls.build(references, name or root.resolve().name, skipped)

    @classmethod
    def from_minecraft(cls, path: str | os.PathLike[str], name: str | None = None) -> ReferenceSet:
        """From a client jar, a resource pack or an assets folder: see `submissions.minecraft.references`."""
        from .submissions.minecraft import references

        # An animated texture counts once; a sheet's frames (Terraria) count each.
        return cls._from_game(references(path), name or Path(path).name, animations=True)

    @classmethod
    def from_terraria(cls, path: str | os.PathLike[str], name: str | None = None) -> ReferenceSet:
        """From the game's Content/Images or a folder of extracted PNGs: see `submissions.terraria.references`."""
        from .submissions.terraria import references

        return cls._from_game(references(path), name or Path(path).name)

    @classmethod
    def _from_game(cls, records: Iterable[ReferenceRecord], name: str, *, animations: bool = False) -> ReferenceSet:
        def reference(r: ReferenceRecord) -> Reference:
            number = r.id.removeprefix(f"{r.group}#") if animations else ""
            frame = int(number) if number.isdigit() else -1
            return Reference(r.id, r.category, r.texture, sheet=r.group, family=r.family, words=r.words, frame=frame)

        return cls.build(map(reference, records), name)


def _because(skipped: list[tuple[str, str]]) -> str:
    return f"; {len(skipped)} files were skipped, the first because: {skipped[0][1]}" if skipped else ""


def _folder_rows(root: Path) -> Iterator[dict[str, str]]:
    for category in sorted(entry for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith(".")):
        for folder, subfolders, files in os.walk(category):
            subfolders.sort()
            for file in sorted(files):
                if file.lower().endswith(IMAGE_SUFFIXES):
                    yield {"file": (Path(folder) / file).relative_to(root).as_posix(), "category": category.name}


def _manifest_rows(manifest: Path) -> list[dict[str, str]]:
    try:
        text = manifest.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{manifest}: {error}") from error
    with io.StringIO(text, newline="") as file:
        reader = csv.DictReader(file)
        for column in ("file", "category"):
            if column not in (reader.fieldnames or ()):
                raise ManifestError(f"{manifest}: column {column!r} is missing; there are: {reader.fieldnames}")
        rows, seen = [], set()
        for row in reader:
            if not row["file"] or not row["category"]:
                raise ManifestError(f"{manifest}, line {reader.line_num}: file and category must not be empty")
            if row["file"] in seen:
                raise ManifestError(f"{manifest}, line {reader.line_num}: {row['file']!r} is named twice")
            seen.add(row["file"])
            rows.append(row)
    return rows
