"""Table E of the embedded encoder: PNG on disk to verdict, one warm score, loading, a new factor, batch noise.

    python benchmarks/lite_speed.py references/dungeon-tiles [--against ViT-B-32] [--count 2000] [--dtype float32]

The textures are those of the folder at 32 px and, every second one, at 16 px. --against times an open_clip image tower
with random weights on the same textures in the same run and precision.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from machine import machine
from PIL import Image

import assetscore
from assetscore.calibration import threshold
from assetscore.encoders.lite import Lite
from assetscore.encoders.lite.restyle import resize_native
from assetscore.images import Texture, load
from assetscore.neighbours import knn_mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("references", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--against", help="an open_clip architecture, such as ViT-B-32")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    options = parser.parse_args()
    print(machine())

    Lite(dtype=options.dtype)  # torch is imported here
    print(f"loading the weights: {timed(lambda: Lite(dtype=options.dtype)):.2f} s")
    encoder = Lite(dtype=options.dtype)
    references = assetscore.ReferenceSet.from_folder(options.references)
    profile = assetscore.Profile.build(references, encoder=encoder)
    scorer = assetscore.Scorer(profile)
    with tempfile.TemporaryDirectory() as folder:
        assets = written(references, Path(folder), options.count)
        scorer.score_many(assets[:64])
        seconds = timed(lambda: scorer.score_many(assets))
        print(f"PNG to verdict: {len(assets) / seconds:.0f} a second ({len(assets)} in {seconds:.2f} s)")
        textures = [load(path) for path, _ in assets]
        seconds = timed(lambda: encoder.features(textures))
        print(f"  of it the encoder alone: {len(textures) / seconds:.0f} a second")
        single = [timed(lambda asset=asset: scorer.score(*asset)) for asset in assets[:200]]
        print(f"one warm score: p50 {1000 * np.median(single):.1f} ms, p95 {1000 * np.quantile(single, 0.95):.1f} ms")
    features = np.resize(encoder.features(textures[:1000]), (2000, 491))
    new = timed(lambda: calibrated(encoder.condition(features, ["axe"])["axe"]))
    print(f"a new factor over 2000 cached features, embedded and calibrated: {1000 * new:.0f} ms")
    print(f"batch noise: {noise(encoder, textures[:300], options.dtype):.1e}, stated {encoder.batch_noise:.0e}")
    if options.against:
        other = against(options.against, textures[:128], options.dtype)
        mine = len(textures) / seconds
        print(f"open_clip {options.against}, {options.dtype}: {other:.1f} a second, lite {mine / other:.0f} times that")


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def calibrated(vectors: np.ndarray) -> float | None:
    """Leave-one-out scores of the references and their threshold."""
    return threshold(knn_mean(vectors, vectors, 5, np.arange(len(vectors))).S, 0.15)


def written(references: assetscore.ReferenceSet, folder: Path, count: int) -> list[tuple[Path, str]]:
    """PNG files of 16 and 32 px with their categories."""
    found = []
    listed = list(references)
    for i in range(count):
        reference = listed[i % len(listed)]
        image = resize_native(reference.texture.native, 16 if i % 2 else 32)
        Image.fromarray(np.ascontiguousarray(image)).save(folder / f"{i}.png")
        found.append((folder / f"{i}.png", reference.category))
    return found


def noise(encoder: Lite, textures: list[Texture], dtype: str) -> float:
    """The largest move of a similarity between batch sizes."""
    alone = [Lite(batch_size=size, dtype=dtype).features(textures) for size in (1, 7, 64, 300)]
    worst = 0.0
    for factor in ("art style", "object class"):
        vectors = [encoder.condition(features, [factor])[factor] for features in alone]
        products = [v @ v.T for v in vectors]
        worst = max([worst, *(float(np.abs(p - products[0]).max()) for p in products[1:])])
    return worst


def against(architecture: str, textures: list[Texture], dtype: str) -> float:
    """Images a second of an open_clip image tower with random weights."""
    import open_clip
    import torch

    from assetscore.images import canvas, composite

    tower = open_clip.create_model(architecture, pretrained=None).visual.eval()
    kind = getattr(torch, dtype)
    tower = tower.to(kind)
    rows = np.stack([composite(canvas(texture.native, 224)) for texture in textures])
    pixels = torch.from_numpy(rows).permute(0, 3, 1, 2).to(kind) / 255
    with torch.inference_mode():
        tower(pixels[:16])
        seconds = timed(lambda: [tower(part) for part in pixels.split(16)])
    return len(textures) / seconds


if __name__ == "__main__":
    main()
