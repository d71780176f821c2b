"""One line that says what a figure was measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"machine: {model}, {cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


def peak_memory_mb() -> float:
    """The most memory this process has held, in MB."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if platform.system() == "Darwin" else peak / 1e3
