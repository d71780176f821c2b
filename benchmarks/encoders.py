"""Images a second of the image towers as the library runs them, against a plain float32 loop of the same model.

    python benchmarks/encoders.py [--towers clip:ViT-B-32 clip:ViT-B-16 csd lpips:alex] [--images 16] [--repeats 3]

Random weights: speed does not depend on them. CPU time of the process divided by its threads, the two ways taking
turns in one run. Prints the machine, whether its processor has bfloat16, and the cosine between the two ways.
Target: at least 3 times for the ViT towers where the processor has bfloat16; the same speed elsewhere.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from machine import machine

sys.path.insert(0, str(Path(__file__).parents[1]))

from assetscore.encoders import get_encoder
from assetscore.encoders._torch import cpu_has_bf16, dtype_name
from assetscore.images import load
from tests.reference_encoders.tiny_models import csd_state

TARGET = 3.0


def weights_of(tower: str, folder: Path) -> Path:
    """A file of random weights of the tower's real size."""
    import open_clip
    import torchvision

    torch.manual_seed(0)
    path = folder / f"{tower.replace(':', '-')}.pt"
    kind, _, name = tower.partition(":")
    if kind == "csd":
        torch.save(csd_state(width=1024, layers=24, style=768, side=224, patch=14), path)
    elif kind == "clip":
        torch.save(open_clip.create_model(name).state_dict(), path)
    else:
        trunks = {"alex": "alexnet", "vgg": "vgg16", "squeeze": "squeezenet1_1"}
        features = getattr(torchvision.models, trunks[name])().features.state_dict()
        torch.save({f"features.{key}": value for key, value in features.items()}, path)
    return path


def seconds(function: Callable[[], Any]) -> float:
    """CPU seconds of one call, as if its threads had run side by side."""
    start = time.process_time()
    function()
    return (time.process_time() - start) / torch.get_num_threads()


def row(tower: str, folder: Path, images: int, repeats: int, dtype: str) -> str:
    """One line of the table."""
    random = np.random.default_rng(0)
    textures = [load(random.integers(0, 256, (16, 16, 4), dtype=np.uint8)) for _ in range(images)]
    weights = weights_of(tower, folder)
    plain = get_encoder(tower, weights=weights, device="cpu", dtype="fp32")
    ours = get_encoder(tower, weights=weights, device="cpu", dtype=dtype, batch_size=16)
    weights.unlink()

    def loop() -> np.ndarray[Any, Any]:
        with torch.inference_mode():
            return np.concatenate([plain.forward(plain.pictures([texture])).float().numpy() for texture in textures])

    def batched() -> np.ndarray[Any, Any]:
        return ours.features(textures)

    a, b = loop(), batched()
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    pairs = [(seconds(loop), seconds(batched)) for _ in range(repeats)]
    slow, fast = (images / median(times) for times in zip(*pairs, strict=True))
    ratio = median(x / y for x, y in pairs)
    precision = dtype_name(ours.dtype)
    vit = tower.startswith(("clip:ViT", "csd"))
    verdict = "" if not vit or not cpu_has_bf16() else f"{TARGET} {'reached' if ratio >= TARGET else 'MISSED'}"
    return f"{tower:<16} {slow:>8.1f} {fast:>8.1f} {precision:>5} {ratio:>6.2f} {cosine.min():>10.6f}  {verdict}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--towers", nargs="+", default=["clip:ViT-B-32", "clip:ViT-B-16", "csd", "lpips:alex"])
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtype", default="auto", help='"bf16" to see it where the processor has to emulate it')
    parser.add_argument("--threads", type=int, default=1, help="waiting threads burn CPU time on a busy machine")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    print(f"{machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    if cpu_has_bf16():
        print("bfloat16: this processor has it")
    else:
        print("bfloat16: this processor has it not, so the library runs float32 and the target cannot be measured here")
    print(f"{'tower':<16} {'loop/s':>8} {'ours/s':>8} {'in':>5} {'ratio':>6} {'min cosine':>10}  target")
    with tempfile.TemporaryDirectory() as folder:
        for tower in options.towers:
            print(row(tower, Path(folder), options.images, options.repeats, options.dtype), flush=True)


if __name__ == "__main__":
    main()
