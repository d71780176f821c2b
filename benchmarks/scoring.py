"""What scoring costs beside decoding and embedding, a whole sweep beside one search, and how fast things start.

    python benchmarks/scoring.py [--encoder pixelstats]

Targets: scoring 2,000 textures from disk at most 1.15 times decoding and embedding the same files in the same batches;
peak memory under 1 GB; all 7 x 5 cells of (alpha, k) for 15,456 references of width 128 at most 1.5 times one exact
search for k = 21; `import assetscore` under 0.15 s, `assetscore --help` under 0.5 s. Ratios are medians of pairs
measured in turn, in processor time, so that they hold on a noisy machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from machine import machine, peak_memory_mb
from PIL import Image

import assetscore
from assetscore.batch import find_assets, run
from assetscore.calibrated import calibrate
from assetscore.config import DEFAULT_ENCODER
from assetscore.embedding import CHUNK
from assetscore.images import load

ALPHAS = (0.01, 0.02, 0.05, 0.10, 0.15, 0.20, 0.25)
KS = (1, 3, 5, 10, 20)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def pairs(ours: Callable[[], object], base: Callable[[], object], count: int) -> tuple[float, float, float]:
    """Median seconds of processor time of both, and the median of the ratios of pairs.

    Processor time, so that what else runs on the machine does not count.
    """
    times = [(processor_seconds(ours), processor_seconds(base)) for _ in range(count)]
    return median(a for a, _ in times), median(b for _, b in times), median(a / b for a, b in times)


def textures(folder: Path, count: int) -> None:
    """Textures of 16 to 32 px: crops and mirrors of the shipped references with a little noise, so that all differ."""
    random = np.random.default_rng(0)
    sources = [r.texture.pixels for r in assetscore.Profile.load("dungeon-crawl").references]
    (folder / "item").mkdir()
    for i in range(count):
        pixels = sources[i % len(sources)].copy()[:: 1 if i % 2 else -1]
        side = int(random.integers(16, 33))
        pixels = pixels[:side, :side]
        noise = random.integers(-9, 10, (*pixels.shape[:2], 1))
        pixels[..., :3] = (pixels[..., :3].astype(int) + noise).clip(0, 255)
        Image.fromarray(pixels).save(folder / "item" / f"{i:04}.png")


def scoring(encoder_name: str, count: int, repeats: int) -> None:
    shipped = assetscore.Profile.load("dungeon-crawl")
    profile = shipped
    if shipped.encoder_name != encoder_name:
        profile = assetscore.Profile.build(shipped.references, encoder_name)
    scorer = assetscore.Scorer(profile)
    encoder = profile.encoder
    factors = [factor for factor in (profile.style_factor, profile.semantic_factor) if factor]
    with tempfile.TemporaryDirectory() as folder:
        textures(Path(folder), count)
        items = find_assets(folder, profile.categories)
        paths = [item.path for item in items]

        def embed_only() -> None:
            for start in range(0, len(paths), CHUNK):
                batch = [load(path) for path in paths[start : start + CHUNK]]
                encoder.embed(batch, factors)

        run(scorer, items[:CHUNK])
        ours, base, ratio = pairs(lambda: run(scorer, items), embed_only, repeats)
    print(f"scoring {count} textures from disk with {encoder_name}: {ours:.2f} s, {count / ours:.0f}/s")
    print(f"  decoding and embedding alone: {base:.2f} s; ratio {ratio:.3f} (target 1.15)")
    print(f"  peak memory of the process: {peak_memory_mb():.0f} MB (target 1000)")


def sweep(repeats: int) -> None:
    import faiss

    random = np.random.default_rng(0)
    x = random.normal(size=(15_456, 128)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    groups = np.arange(len(x))

    def one_search() -> None:
        index = faiss.IndexFlatIP(128)
        index.add(x)
        index.search(x, 21)

    def every_cell() -> None:
        made = calibrate("item", "art style", x, x, groups)
        for k in KS:
            scores = made.scores(k)
            for alpha in ALPHAS:
                tau = made.threshold(alpha, k)
                assert tau is not None
                np.mean(scores >= tau)

    ours, base, ratio = pairs(every_cell, one_search, repeats)
    print(f"all {len(ALPHAS)} x {len(KS)} cells for 15,456 references of width 128: {ours:.2f} s")
    print(f"  one exact search for k = 21: {base:.2f} s; ratio {ratio:.3f} (target 1.5)")


def starting(repeats: int) -> None:
    empty = [sys.executable, "-c", "pass"]
    for label, command, target in (
        ("import assetscore", [sys.executable, "-c", "import assetscore"], 0.15),
        ("assetscore --help", [sys.executable, "-m", "assetscore", "--help"], 0.5),
    ):
        taken = median(
            seconds(lambda c=command: subprocess.run(c, check=True, capture_output=True)) for _ in range(repeats)
        )
        bare = median(seconds(lambda: subprocess.run(empty, check=True)) for _ in range(repeats))
        print(f"{label}: {taken:.3f} s, of which Python itself {bare:.3f} s (target {target})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default=DEFAULT_ENCODER)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(machine())
    starting(options.repeats)
    scoring(options.encoder, options.count, options.repeats)
    sweep(options.repeats)


if __name__ == "__main__":
    main()
