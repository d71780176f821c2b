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
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import __version__, atlas
from .calibrated import Calibration
from .calibration import rank
from .config import Config
from .errors import ImageError, ProfileCorruptError, ProfileError, ProfileNotFoundError, UsageError
from .images import Texture
from .profile import Profile
from .references import Reference, ReferenceSet

__all__ = ["cached_vectors", "data_folder", "find", "load", "named_profiles", "save", "shipped_folder"]

log = logging.getLogger(__name__)

SCHEMA = 1
MAX_JSON_BYTES = 256 * 1024 * 1024


def save(profile: Profile, folder: Path) -> None:
    """Write a profile to `folder`, which must be new, empty, or a profile that is then replaced.

    Raises:
        ProfileError: the folder holds something else.
    """
    if folder.exists() and not (folder / "profile.json").is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProfileError(f"{folder} exists and is no profile: it is not overwritten")
    folder.parent.mkdir(parents=True, exist_ok=True)
    textures = [reference.texture for reference in profile.references]
    pages, places = atlas.pack([t.native for t in textures], [t.grid for t in textures])
    files = {f"atlas-{number}.png": page for number, page in enumerate(pages)}
    files["vectors.safetensors"] = _tensors(profile)
    files["thresholds.json"] = json.dumps(thresholds(profile), indent=1, ensure_ascii=False).encode()
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    described = {**_described(profile, places), "files": hashes}
    files["profile.json"] = json.dumps(described, indent=1, ensure_ascii=False).encode()
    with _replacing(folder) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)


def load(profile: str | os.PathLike[str]) -> Profile:
    """Read a profile from a folder, or by name from the user's profiles and then the shipped ones.

    Raises:
        ProfileNotFoundError: neither; where was looked is said.
        ProfileCorruptError: a file is missing, changed, or of an unknown schema; the part is named.
    """
    folder = find(profile)
    described = _read_json(folder / "profile.json")
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        found = described.get("schema") if isinstance(described, dict) else None
        raise ProfileCorruptError(f"{folder / 'profile.json'}: schema {found!r}; this version reads schema {SCHEMA}")
    try:
        for name, expected in described["files"].items():
            if os.sep in name or "/" in name or name.startswith("."):
                raise ProfileCorruptError(f"{folder}: profile.json names a file outside the folder: {name!r}")
            if _sha(folder / name) != expected:
                raise ProfileCorruptError(
                    f"{folder / name}: differs from what profile.json says it was{_lfs(folder / name)}"
                )
        return _assemble(folder, described)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ImageError, UsageError) as error:
        raise ProfileCorruptError(f"{folder}: {type(error).__name__}: {error}") from error


def find(profile: str | os.PathLike[str]) -> Path:
    """The folder of a profile given as a path or by name."""
    path = Path(profile)
    if (path / "profile.json").is_file():
        return path
    name = os.fspath(profile)
    looked = [str(path)]
    if name and name not in (".", "..") and "/" not in name and os.sep not in name:
        for root in (data_folder(), shipped_folder()):
            if (root / name / "profile.json").is_file():
                return root / name
            looked.append(str(root / name))
    names = ", ".join(sorted(named_profiles())) or "none"
    raise ProfileNotFoundError(f"profile {name!r}: no profile.json in {' or '.join(looked)}; known by name: {names}")


def named_profiles() -> dict[str, Path]:
    """Every profile that can be loaded by name, and its folder; the user's own come before shipped ones."""
    found: dict[str, Path] = {}
    for root in (data_folder(), shipped_folder()):
        for file in sorted(root.glob("*/profile.json")) if root.is_dir() else ():
            found.setdefault(file.parent.name, file.parent)
    return found


def data_folder() -> Path:
    """Where the user's own profiles are looked for by name: ASSETSCORE_HOME, or the platform's data folder."""
    import platformdirs

    home = os.environ.get("ASSETSCORE_HOME")
    return Path(home) / "profiles" if home else Path(platformdirs.user_data_dir("assetscore", False)) / "profiles"


def cache_folder() -> Path:
    """Where what was computed later is kept: ASSETSCORE_HOME, or the platform's cache folder."""
    import platformdirs

    home = os.environ.get("ASSETSCORE_HOME")
    return Path(home) / "cache" if home else Path(platformdirs.user_cache_dir("assetscore", False))


def shipped_folder(part: str = "calibration") -> Path:
    """The installed package's data: "calibration" or "references"; in an editable install the repository's."""
    package = Path(__file__).parent
    installed = package / "_data" / part
    return installed if installed.is_dir() else package.parent / part


def cached_vectors(
    profile: Profile, category: str, factor: str, compute: Callable[[], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Vectors of a category under a factor from the user's cache, or computed and put there.

    The key is everything the numbers depend on, so a stale answer is impossible; a damaged file is computed again.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_tensors
    from safetensors.numpy import save as save_tensors

    parts = (str(SCHEMA), profile.encoder_fingerprint, profile.references.fingerprint, category, factor)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    file = cache_folder() / "vectors" / f"{key}.safetensors"
    n = len(profile.by_category[category])
    try:
        vectors = load_tensors(file.read_bytes())["vectors"]
        if vectors.dtype == np.float32 and vectors.ndim == 2 and len(vectors) == n:
            return vectors
    except (OSError, SafetensorError, KeyError):
        pass
    vectors = compute()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(file, save_tensors({"vectors": np.ascontiguousarray(vectors)}))
    except OSError as error:
        log.warning("the cache cannot be written: %s", error)
    return vectors


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

    tensors: dict[str, NDArray[Any]] = {}
    for category in profile.categories:
        if category in profile._features:
            tensors[f"features\n{category}"] = profile._features[category]
        for factor in profile.factors:
            # What a two-stage encoder can make again from the features is not stored twice.
            if category not in profile._features:
                tensors[f"vectors\n{category}\n{factor}"] = profile.vectors(category, factor)
            tensors[f"leave one out\n{category}\n{factor}"] = profile.calibration(category, factor).top
    return save_tensors({key: np.ascontiguousarray(value) for key, value in tensors.items()})


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


def _assemble(folder: Path, described: dict[str, Any]) -> Profile:
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_tensors

    if not isinstance(described["factors"], list) or not described["factors"]:
        raise ValueError(f"factors must be a list of texts, got {described['factors']!r}")
    rows = described["references"]["rows"]
    pages = [(folder / name).read_bytes() for name in sorted(described["files"]) if name.startswith("atlas-")]
    pictures = atlas.unpack(pages, [row[7] for row in rows])
    references = ReferenceSet(
        str(described["references"]["name"]),
        tuple(
            Reference(row[0], row[1], Texture.from_rgba(pixels), *row[2:7])
            for row, pixels in zip(rows, pictures, strict=True)
        ),
        {id: tuple(ids) for id, ids in described["references"]["duplicates"].items()},
        tuple((id, reason) for id, reason in described["references"]["skipped"]),
    )
    if references.fingerprint != described["references"]["fingerprint"]:
        raise ProfileCorruptError(f"{folder}: the references' pictures differ from their fingerprint")
    try:
        tensors = load_tensors((folder / "vectors.safetensors").read_bytes())
    except SafetensorError as error:
        raise ProfileCorruptError(f"{folder / 'vectors.safetensors'}: {error}") from error
    features: dict[str, NDArray[np.float32]] = {}
    vectors: dict[tuple[str, str], NDArray[np.float32]] = {}
    calibrations: dict[tuple[str, str], Calibration] = {}
    for key, tensor in tensors.items():
        kind, category, *factor = key.split("\n")
        if kind == "features":
            features[category] = tensor
        elif kind == "vectors":
            vectors[category, factor[0]] = tensor
    profile = Profile(
        references,
        None,
        Config.from_dict(described["config"]),
        described["factors"],
        name=folder.name,
        meta=described["encoder"],
        features=features,
        vectors=vectors,
        calibrations=calibrations,
    )
    for key, tensor in tensors.items():
        kind, category, *factor = key.split("\n")
        if kind == "leave one out":
            calibrations[category, factor[0]] = Calibration(category, factor[0], tensor, profile.groups(category))
    for category, references_of in profile.by_category.items():
        n = len(references_of)
        for tensor in (
            *(t for c, t in features.items() if c == category),
            *(t for c, t in vectors.items() if c[0] == category),
        ):
            if len(tensor) != n:
                raise ProfileCorruptError(
                    f"{folder / 'vectors.safetensors'}: {len(tensor)} rows for {n} of {category!r}"
                )
    profile._calibrations = calibrations
    if profile.fingerprint != described["fingerprint"]:
        raise ProfileCorruptError(f"{folder}: encoder, references or config differ from the profile's fingerprint")
    return profile


def _read_json(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ProfileCorruptError(f"{path}: larger than {MAX_JSON_BYTES} bytes")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ProfileCorruptError(f"{path}: {error}{_lfs(path)}") from error


def _sha(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return (
                hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha_310(file)
            )
    except OSError as error:
        raise ProfileCorruptError(f"{path}: {error.strerror or error}") from error


def _sha_310(file: Any) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _lfs(path: Path) -> str:
    try:
        with path.open("rb") as file:
            start = file.read(24)
    except OSError:
        return ""
    return ": this is a Git LFS pointer, run `git lfs pull`" if start.startswith(b"version https://git-lfs") else ""


def _write_atomically(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, path)


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`, put in its place when the block ends well and removed when it does not."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        old = None
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent)) / folder.name
            folder.rename(old)
        temporary.rename(folder)
        if old is not None:
            shutil.rmtree(old.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
