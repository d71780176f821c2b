"""What every hostile input must keep: an answer within a second of work, and 200 MB."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable


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
