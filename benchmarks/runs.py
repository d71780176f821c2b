"""What the embedding cache and resuming save: rows a second from the cache, and a benchmark run fresh and again.

    python benchmarks/runs.py [--count 5000] [--jars 100]

Makes its own jars in a temporary folder, and scores them with pixelstats against the shipped profile; the cache is also
measured with vectors as long as tpips gives. One process, one thread. An encoder slower than pixelstats saves more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from inputs import minecraft_files
from machine import machine, peak_memory_mb

from assetscore import Scorer
from assetscore.benchmark import run_benchmark
from assetscore.cache import EmbeddingCache
from assetscore.entries import find_entries

CHUNK = 256


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def cache_speed(folder: Path, count: int, width: int) -> None:
    random = np.random.default_rng(0)
    rows = {os.urandom(32): random.random(width, np.float32) for _ in range(count)}
    keys = list(rows)
    parts = [keys[i : i + CHUNK] for i in range(0, count, CHUNK)]
    path = folder / f"{width}.sqlite"
    cache = EmbeddingCache(path)
    written, _ = timed(lambda: [cache.put({key: rows[key] for key in part}) for part in parts])
    cache.close()
    again = EmbeddingCache(path)
    read, found = timed(lambda: [again.get(part) for part in parts])
    assert sum(map(len, found)) == count
    again.close()
    size = path.stat().st_size / count
    print(
        f"cache, {width:4} numbers a row: {count / written:7.0f} rows/s written, {count / read:7.0f} read, "
        f"{size:.0f} B a row"
    )


def write_jars(root: Path, count: int, jars: int) -> None:
    files = list(minecraft_files(count))
    share = 2 * (count // jars)
    for number in range(jars):
        path = root / f"model{number % 5}" / f"task{number // 5}.jar"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files[number * share : (number + 1) * share]:
                archive.writestr(name, content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="textures")
    parser.add_argument("--jars", type=int, default=100, help="submissions")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for width in (172, 4096):
            cache_speed(folder, arguments.count, width)
        write_jars(folder / "runs", arguments.count, arguments.jars)
        entries = find_entries(folder / "runs")
        parts = folder / "parts"

        def run(**options: Any) -> Any:
            return run_benchmark(entries, {"": Scorer.load()}, **options)

        plain, whole = timed(run)
        filled, _ = timed(lambda: run(cache=EmbeddingCache(folder / "c.sqlite")))
        hit, third = timed(lambda: run(cache=EmbeddingCache(folder / "c.sqlite"), parts=parts))
        resumed, fourth = timed(lambda: run(parts=parts))
        for file in sorted(parts.glob("*.parquet"))[: arguments.jars // 2]:
            file.unlink()
        half, fifth = timed(lambda: run(parts=parts))
        assert whole.table.rows == third.table.rows == fourth.table.rows == fifth.table.rows
        n = len(whole.table)
        print(f"{n} textures in {len(entries)} jars, pixelstats:")
        print(f"  without a cache          {plain:6.1f} s  {n / plain:6.0f} textures/s")
        print(f"  filling the cache        {filled:6.1f} s  {n / filled:6.0f} textures/s")
        print(f"  embeddings from it       {hit:6.1f} s  {n / hit:6.0f} textures/s")
        print(f"  started again, finished  {resumed:6.1f} s  {n / resumed:6.0f} textures/s, {fourth.reused} reused")
        print(f"  started again, half done {half:6.1f} s  {n / half:6.0f} textures/s, {fifth.reused} reused")
        print(f"peak memory {peak_memory_mb():.0f} MB")


if __name__ == "__main__":
    main()
