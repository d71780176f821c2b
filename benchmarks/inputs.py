"""How fast submissions are read: textures listed and decoded a second, and the memory that takes.

    python benchmarks/inputs.py [--count 5000] [--large 50000]

Makes its own inputs in a temporary folder: a Minecraft source tree and the same as a jar, and a Terraria .tmod, each of
`count` distinct 16 x 16 textures; then the same with `large`, for the growth of memory. Each reading runs in one thread
of a process of its own, whose peak memory is reported, libraries included. "CPU" is the processor's time, which other
programs at work change less than the clock's, "wall".

Targets: 2,000 textures a second, and memory flat from `count` to `large`. Measured beside other work on a machine of
two cores (x86-64, Python 3.11), where the clock's times say nothing:

    input    textures  list CPU s  all CPU s  a CPU s  peak MB
    tree        5,000        0.34       1.85    2,697     42.4
    jar         5,000        0.39       1.69    2,960     45.5
    tmod        5,000        0.17       0.84    5,984     46.5
    tree       50,000        4.04      21.90    2,283     92.2
    jar        50,000        4.31      19.80    2,526    120.8
    tmod       50,000        1.54       9.02    5,545     94.7

The rate is met by one core. Memory is not flat: it grows by 1.1 to 1.7 kB a texture, for a submission's rows, with ids
and paths, and an archive's directory are held whole; pictures are not, they are decoded one at a time.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

TARGET = 2000


def textures(count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Numbered 16 x 16 sprites of eight colours."""
    rng = np.random.default_rng(0)
    for number in range(count):
        palette = np.append(rng.integers(0, 256, (8, 3)), np.full((8, 1), 255), axis=1).astype(np.uint8)
        palette[0] = 0
        yield number, palette[rng.integers(0, 8, (16, 16))]


def minecraft_files(count: int) -> Iterator[tuple[str, bytes]]:
    for number, pixels in textures(count):
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        yield f"assets/bench/textures/item/t{number}.png", out.getvalue()
        content = {"parent": "minecraft:item/generated", "textures": {"layer0": f"bench:item/t{number}"}}
        yield f"assets/bench/models/item/t{number}.json", json.dumps(content).encode()


def write_tree(root: Path, count: int) -> Path:
    for name, content in minecraft_files(count):
        path = root / "src/main/resources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def write_jar(path: Path, count: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in minecraft_files(count):
            archive.writestr(name, content)
    return path


def write_tmod(path: Path, count: int) -> Path:
    def text(value: str) -> bytes:
        return bytes([len(value)]) + value.encode()

    table, bodies = bytearray(), bytearray()
    for number, pixels in textures(count):
        content = struct.pack("<iii", 1, 16, 16) + pixels.tobytes()
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        stored = packer.compress(content) + packer.flush()
        table += text(f"Items/T{number}.rawimg") + struct.pack("<ii", len(content), len(stored))
        bodies += stored
    data = text("Bench") + text("1.0") + struct.pack("<i", count) + bytes(table + bodies)
    head = b"TMOD" + text("2022.9.47.87") + hashlib.sha1(data).digest() + bytes(256)
    path.write_bytes(head + struct.pack("<i", len(data)) + data)
    return path


def measure(kind: str, path: str) -> None:
    """In a process of its own: list, then decode all; one line of JSON."""
    from assetscore.submissions import minecraft, terraria

    game = terraria if kind == "tmod" else minecraft
    clock, start = time.perf_counter(), time.process_time()
    with game.read(path) as submission:
        listed = time.process_time()
        count = sum(asset.texture is not None for asset in submission.assets)
    cpu, wall = time.process_time() - start, time.perf_counter() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"count": count, "list": listed - start, "cpu": cpu, "wall": wall, "mb": peak / 1024}
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--large", type=int, default=50000)
    parser.add_argument("--measure", nargs=2, metavar=("KIND", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    heads = ("textures", "list CPU s", "all CPU s", "wall s", "a CPU s", "a wall s", "peak MB")
    print("input " + "".join(f"{head:>11}" for head in heads))
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (options.count, options.large):
            for kind, write in (("tree", write_tree), ("jar", write_jar), ("tmod", write_tmod)):
                path = write(Path(folder) / f"{kind}{count}", count)
                command = [sys.executable, __file__, "--measure", kind, str(path)]
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                rates = [found["count"] / found[kind_of] for kind_of in ("cpu", "wall")]
                slow += [kind] if rates[0] < TARGET else []
                values = [f"{found['count']:,}", *(f"{found[key]:.2f}" for key in ("list", "cpu", "wall"))]
                values += [*(f"{rate:,.0f}" for rate in rates), f"{found['mb']:.1f}"]
                print(f"{kind:<6}" + "".join(f"{value:>11}" for value in values))
    if slow:
        print(f"below the target of {TARGET:,} a second of one core: {', '.join(slow)}")


if __name__ == "__main__":
    main()
