"""Where things lie: the user's profiles and cache, and the data that comes with the package."""

from __future__ import annotations

import glob
import logging
import os
import secrets
import time
from pathlib import Path

from .errors import ProfileNotFoundError

__all__ = [
    "cache_folder",
    "data_folder",
    "find_profile",
    "holds_profile",
    "named_profiles",
    "shipped_folder",
    "write_atomically",
]

log = logging.getLogger(__name__)


def find_profile(profile: str | os.PathLike[str]) -> Path:
    """The folder of a profile given as a path or by name.

    A text without a separator is a name: it is looked for among the user's profiles, then among the shipped ones, and
    only then in the working directory; where both exist, a warning in the log says so. A Path is a path first.
    """
    path, name = Path(profile), os.fspath(profile)
    named: list[Path] = []
    if name and name not in (".", "..") and "/" not in name and os.sep not in name:
        named = [root / name for root in (data_folder(), shipped_folder())]
    places = [*named, path] if isinstance(profile, str) else [path, *named]
    try:
        for place in places:
            if holds_profile(place):
                if place is not path and isinstance(profile, str) and (path / "profile.json").is_file():
                    log.warning("profile %r is %s; the folder of that name here is %r", name, place, f"./{name}")
                return place
    except (OSError, ValueError) as error:
        raise ProfileNotFoundError(f"profile {name[:100]!r} can be no path: {error}") from error
    looked = map(str, places)
    names = ", ".join(sorted(named_profiles())) or "none"
    raise ProfileNotFoundError(f"profile {name!r}: no profile.json in {' or '.join(looked)}; known by name: {names}")


def holds_profile(folder: Path) -> bool:
    """Is there a profile? One that is being replaced is waited for: without an exchange it is away for a moment."""
    for _ in range(50):
        if (folder / "profile.json").is_file():
            return True
        if not any(folder.parent.glob(f".{glob.escape(folder.name)}-old-*")):
            break
        time.sleep(0.01)
    return (folder / "profile.json").is_file()


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


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever reads half of it.

    Raises:
        OSError: it cannot be written; what was there before stays whole. The error names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise error if error.errno is None else OSError(error.errno, error.strerror, str(path)) from error
