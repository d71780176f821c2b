"""Profiles on disk: one folder, no pickle, every file's hash checked, written whole or not at all.

    profile.json         what it is: schema, encoder, references, config, and the SHA-256 of every other file
    thresholds.json      for people: k, n, tau and its interval for each category and factor
    vectors.safetensors  features, vectors and leave-one-out similarities
    atlas-N.png          the references' pictures, pixel-exact

A folder holds the game's art: what is built from a game you own is for your own use.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from . import __version__, atlas
from .calibration import rank
from .config import Config
from .errors import EmbeddingError, ImageError, ProfileCorruptError, ProfileError, ReferenceSetError, UsageError
from .folders import find_profile
from .images import Texture
from .profile import Profile
from .references import Reference, ReferenceSet
from .replacing import replacing
from .tensors import restore, tensors_of

__all__ = ["load", "save", "thresholds"]

SCHEMA = 1
MAX_BYTES = 4 * 1024**3
_ATTEMPTS = 20
"""At reading a profile that others replace, 10 ms apart."""
_T = TypeVar("_T")
_FILE_NAME = re.compile(r"vectors\.safetensors|thresholds\.json|atlas-\d{1,4}\.png")


def save(profile: Profile, folder: Path) -> None:
    """Write a profile to `folder`, which must be new, empty, or a profile that is then replaced.

    Raises:
        ProfileError: the folder holds something else.
    """
    _undisturbed(lambda: folder, _check_replaceable)
    textures = [reference.texture for reference in profile.references]
    pages, places = atlas.pack([t.native for t in textures], [t.grid for t in textures])
    files = {f"atlas-{number}.png": page for number, page in enumerate(pages)}
    files["vectors.safetensors"] = _tensors(profile)
    files["thresholds.json"] = json.dumps(thresholds(profile), indent=1, ensure_ascii=False).encode()
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    described = {**_described(profile, places), "files": hashes}
    files["profile.json"] = json.dumps(described, indent=1, ensure_ascii=False).encode()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder) as temporary:
            for name, content in files.items():
                (temporary / name).write_bytes(content)
    except OSError as error:
        raise ProfileError(f"{folder}: the profile cannot be written: {error}") from error


def load(profile: str | os.PathLike[str]) -> Profile:
    """Read a profile from a folder, or by name from the user's profiles and then the shipped ones.

    Raises:
        ProfileNotFoundError: neither; where was looked is said.
        ProfileCorruptError: a file is missing, changed, or of an unknown schema; the part is named.
    """
    return _undisturbed(lambda: find_profile(profile), _load)


def _undisturbed(find: Callable[[], Path], read: Callable[[Path], _T]) -> _T:
    """What `read` makes of the folder that `find` gives; again where the profile in it was replaced meanwhile."""
    seen = None
    for attempt in range(_ATTEMPTS):
        folder = find()
        before = _written(folder)
        try:
            return read(folder)
        except ProfileError:  # it may have met half of the old one, half of the new one, or neither
            if attempt == _ATTEMPTS - 1 or (before is not None and seen == before == _written(folder)):
                raise
            seen = before  # it may also have been away for a moment: damage is what is met twice
            time.sleep(0.01)
    raise AssertionError("the last attempt returns or raises")


def _written(folder: Path) -> tuple[int, int] | None:
    """Which profile.json this is; None while there is none."""
    try:
        status = (folder / "profile.json").stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _load(folder: Path) -> Profile:
    described = _read_json(folder / "profile.json")
    found = described.get("schema") if isinstance(described, dict) else None
    if type(found) is not int or found != SCHEMA:
        raise ProfileCorruptError(f"{folder / 'profile.json'}: schema {found!r}; this version reads schema {SCHEMA}")
    try:
        files = _checked_files(folder, described["files"])
        return _assemble(folder, described, files)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError) as error:
        raise ProfileCorruptError(f"{folder}: {type(error).__name__}: {error}") from error
    except (ImageError, UsageError, EmbeddingError, ReferenceSetError) as error:
        raise ProfileCorruptError(f"{folder}: {error}") from error


def _checked_files(folder: Path, hashes: dict[str, str]) -> dict[str, bytes]:
    """The content of every file that profile.json names, each as it was when saved."""
    contents = {}
    for name, expected in hashes.items():
        if not _FILE_NAME.fullmatch(name):
            raise ProfileCorruptError(f"{folder}: profile.json names a file outside the folder: {name!r}")
        content = _read(folder / name)
        if hashlib.sha256(content).hexdigest() != expected:
            raise ProfileCorruptError(f"{folder / name}: differs from what profile.json says it was{_lfs(content)}")
        contents[name] = content
    return contents


def _described(profile: Profile, places: Sequence[atlas.Place]) -> dict[str, Any]:
    references = profile.references
    return {
        "schema": SCHEMA,
        "library": __version__,
        "name": profile.name,
        "fingerprint": profile.fingerprint,
        "encoder": {
            "name": profile.encoder_name,
            "fingerprint": profile.encoder_fingerprint,
            "metric": profile.metric,
            "conditional": profile.conditional,
            "batch_noise": profile.batch_noise,
        },
        "config": profile.config.to_dict(),
        "factors": list(profile.factors),
        "references": {
            "name": references.name,
            "fingerprint": references.fingerprint,
            "duplicates": references.duplicates,
            "skipped": references.skipped,
            "columns": ["id", "category", "sheet", "family", "words", "licence", "frame", "place"],
            "rows": [
                [r.id, r.category, r.sheet, r.family, r.words, r.licence, r.frame, place.to_list()]
                for r, place in zip(references, places, strict=True)
            ],
        },
    }


def _tensors(profile: Profile) -> bytes:
    from safetensors.numpy import save as save_tensors

    return save_tensors({"\n".join(key): np.ascontiguousarray(tensor) for key, tensor in tensors_of(profile).items()})


def thresholds(profile: Profile) -> list[dict[str, Any]]:
    rows = []
    config = profile.config
    for category in profile.categories:
        for factor in profile.factors:
            calibration = profile.calibration(category, factor)
            low, high = calibration.interval(config.alpha, config.k)
            rows.append(
                {
                    "category": category,
                    "factor": factor,
                    "references": profile.categories[category],
                    "n": calibration.n,
                    "k": calibration.k_eff(config.k),
                    "alpha": config.alpha,
                    "rule": config.rule,
                    "m": rank(calibration.n, config.alpha),
                    "tau": calibration.threshold(config.alpha, config.k, config.rule),
                    "tau_interval_95": [x if np.isfinite(x) else None for x in (low, high)],
                }
            )
    return rows


def _assemble(folder: Path, described: dict[str, Any], files: dict[str, bytes]) -> Profile:
    """A Profile from checked files; everything a stranger could have put in them is checked before it is used."""
    meta = _meta(described["encoder"])
    if not isinstance(described["factors"], list) or not described["factors"]:
        raise ValueError(f"factors must be a list of texts, got {described['factors']!r}")
    rows = described["references"]["rows"]
    pages = [files[name] for name in sorted(files, key=_page_number) if name.startswith("atlas-")]
    pictures = atlas.unpack(pages, [row[7] for row in rows])
    references = ReferenceSet(
        str(described["references"]["name"]),
        tuple(
            Reference(str(r[0]), str(r[1]), Texture.from_rgba(p), str(r[2]), str(r[3]), str(r[4]), str(r[5]), int(r[6]))
            for r, p in zip(rows, pictures, strict=True)
        ),
        {id: tuple(ids) for id, ids in described["references"]["duplicates"].items()},
        tuple((id, reason) for id, reason in described["references"]["skipped"]),
    )
    if references.fingerprint != described["references"]["fingerprint"]:
        raise ProfileCorruptError(f"{folder}: the references' pictures differ from their fingerprint")
    profile = Profile(
        references,
        None,
        Config.from_dict(described["config"]),
        described["factors"],
        name=str(described["name"]),
        meta=meta,
    )
    if profile.fingerprint != described["fingerprint"]:
        raise ProfileCorruptError(f"{folder}: encoder, references or config differ from the profile's fingerprint")
    try:
        restore(profile, _load_tensors(files["vectors.safetensors"]))
    except SafetensorError as error:
        raise ProfileCorruptError(f"{folder / 'vectors.safetensors'}: {error}") from error
    return profile


def _load_tensors(content: bytes) -> dict[tuple[str, ...], NDArray[Any]]:
    from safetensors.numpy import load as load_tensors

    return {tuple(key.split("\n")): tensor for key, tensor in load_tensors(content).items()}


def _meta(encoder: dict[str, Any]) -> dict[str, Any]:
    """The description of the encoder, each value of its kind."""
    kinds: dict[str, Any] = {
        "name": str,
        "fingerprint": str,
        "metric": str,
        "conditional": bool,
        "batch_noise": (int, float),
    }
    for key, kind in kinds.items():
        if not isinstance(encoder[key], kind) or (key == "batch_noise" and isinstance(encoder[key], bool)):
            raise ValueError(f"the encoder's {key} cannot be {encoder[key]!r}")
    if encoder["metric"] not in ("cosine", "lpips") or not 0 <= encoder["batch_noise"] < 2:
        raise ValueError(f"no encoder has metric {encoder['metric']!r} and batch noise {encoder['batch_noise']!r}")
    return {key: encoder[key] for key in kinds}


def _page_number(name: str) -> int:
    return int("".join(filter(str.isdigit, name)) or -1)


def _read_json(path: Path) -> Any:
    content = _read(path)
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProfileCorruptError(f"{path}: {error}{_lfs(content)}") from error


def _read(path: Path) -> bytes:
    """The content of a regular file of at most 4 GiB."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise ProfileCorruptError(f"{path}: no regular file of at most {MAX_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise ProfileCorruptError(f"{path}: {error.strerror or error}") from error


def _lfs(content: bytes) -> str:
    start = content[:24]
    return ": this is a Git LFS pointer, run `git lfs pull`" if start.startswith(b"version https://git-lfs") else ""


def _check_replaceable(folder: Path) -> None:
    """A ProfileError unless there is nothing, an empty folder, or a profile and nothing beside it."""
    try:
        there = {entry.name for entry in folder.iterdir()}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        there = {folder.name}
    if not there:
        return
    with suppress(ProfileError, KeyError, TypeError):
        described = _read_json(folder / "profile.json")
        if there <= {*described["files"], "profile.json"} and type(described["schema"]) is int:
            return
    raise ProfileError(f"{folder} exists and holds something else than a profile: it is not overwritten")
