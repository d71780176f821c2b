"""A folder put in the place of another, so that readers find the old one or the new one at every moment."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["exchange", "replacing"]


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`, put in its place when the block ends well and removed when it does not."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        _put(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step, where the system and the file system can (Linux, macOS); else False."""
    name, arguments = {
        "linux": ("renameat2", (-100, os.fsencode(first), -100, os.fsencode(second), 2)),
        "darwin": ("renamex_np", (os.fsencode(first), os.fsencode(second), 2)),
    }.get(sys.platform, ("", ()))
    if not name:
        return False
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):  # an older C library
        return False
    return bool(function(*arguments) == 0)


def _put(temporary: Path, folder: Path) -> None:
    """Move `temporary` to `folder`; what was there comes back if that fails, and another process's copy is replaced."""
    for attempt in range(50):
        if exchange(temporary, folder):
            return  # the old one is the temporary one now
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
        old = aside / folder.name
        try:
            with suppress(FileNotFoundError):
                folder.rename(old)
            temporary.rename(folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == 49:  # not another that was faster
                raise
        finally:
            if old.exists() and not folder.exists():
                try:
                    old.rename(folder)
                except OSError:
                    if not folder.exists():  # another process was faster once more, or else the old one is kept aside
                        raise
            shutil.rmtree(aside, ignore_errors=True)
