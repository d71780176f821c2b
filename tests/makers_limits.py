"""What every hostile input must keep: an answer within a second of work, and 200 MB."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any


def soon_and_small(call: Callable[[], object], seconds: float = 1.0, size: float = 200e6) -> None:
    """Run `call` twice: once for its time (of the processor, since others may be at work), once for its memory."""
    start = time.process_time()
    call()
    taken = time.process_time() - start
    assert taken < seconds, f"{taken:.2f} s"
    tracemalloc.start()
    try:
        call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size, f"{peak / 1e6:.0f} MB"


_MEASURED = """
import json, resource, sys, time
from assetscore.errors import AssetscoreError
from assetscore.submissions import minecraft, terraria
start = time.process_time()
found = {"error": None, "count": 0}
try:
    with getattr(sys.modules["assetscore.submissions." + sys.argv[1]], "read")(sys.argv[2]) as submission:
        found["count"] = sum(asset.texture is not None for asset in submission.assets)
except AssetscoreError as error:
    found["error"] = f"{type(error).__name__}: {error}"
found["seconds"] = time.process_time() - start
try:  # of this program alone: what getrusage says includes the one that started it
    status = open("/proc/self/status").read()
    found["mb"] = int(status.partition("VmHWM:")[2].split()[0]) / 1e3
except (OSError, IndexError):
    found["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(json.dumps(found))
"""


def read_alone(game: str, path: Path) -> dict[str, Any]:
    """Read a mod and decode all it has, in a process of its own: error, count, processor seconds and peak memory (MB),
    the libraries' own included."""
    command = [sys.executable, "-c", _MEASURED, game, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return dict(json.loads(done.stdout))
