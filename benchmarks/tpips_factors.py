"""TPIPS under several factors: one forward for all of them, against a loop over the package's `embed`.

    python benchmarks/tpips_factors.py [--sizes 64 224 512] [--factors 1 2 5 20] [--images 2] [--repeats 5]

CPU time of the process, on a model of mid size with random weights, whose parts stand in the proportions of the
8-billion one and whose prompt has as many tokens. Prints the machine, seconds, the ratio, and the largest difference
of any entry of the vectors. Target at 224 px: at least 1.8 times for 2 factors, 3.4 times for 5.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from machine import machine

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.reference_encoders.tiny_models import save_backbone, save_tpips

FACTORS = (
    "art style", "object class", "ruby sword", "material", "colour palette", "outline", "shading", "lighting", "pose",
    "mood", "age", "shape", "size", "texture", "pattern", "contrast", "detail", "perspective", "era", "culture",
)  # fmt: skip
SENTENCE = "the similarity of image based on input " + " ".join(FACTORS)
WORDS = [*(f" {word}" for word in SENTENCE.split()), "Represent", "system", "user", "assistant", "'s"]
"""One token each, as in the real vocabulary: 16 tokens before an image, 12 to 27 behind it."""
TARGETS = {(224, 2): 1.8, (224, 5): 3.4}


def model_of_mid_size(folder: Path) -> Any:
    """The package's own model: 8 text layers 512 wide, 6 vision layers 192 wide, in float32."""
    import tpips

    backbone = save_backbone(
        folder / "backbone", hidden=512, layers=8, heads=8, vision_hidden=192, vision_depth=6, words=WORDS
    )
    return tpips.load_model("embedding", save_tpips(folder / "tpips", backbone), device="cpu").float()


def seconds(function: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 224, 512])
    parser.add_argument("--factors", type=int, nargs="+", default=[1, 2, 5, 20])
    parser.add_argument("--images", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="waiting threads burn CPU time on a busy machine")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    from assetscore.encoders.tpips_shared_prefix import embed_factors

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):
            model = model_of_mid_size(Path(folder))
        print(f"{machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
        print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f}M parameters, fp32, {options.images} images")
        print(f"{'px':>4} {'factors':>7} {'loop s':>8} {'one forward s':>13} {'ratio':>6} {'difference':>10}  target")
        for size in options.sizes:
            images = list(torch.rand(options.images, 3, size, size, generator=torch.Generator().manual_seed(0)))
            for count in options.factors:
                print(row(model, images, FACTORS[:count], size, options.repeats, embed_factors), flush=True)


def row(
    model: Any, images: list[torch.Tensor], factors: tuple[str, ...], size: int, repeats: int, embed_factors: Any
) -> str:
    """One line of the table: the least disturbed of the repeats, the two ways taking turns."""

    def loop() -> torch.Tensor:
        return torch.stack([model.embed(images, factor, normalized=True) for factor in factors], dim=1)

    def together() -> torch.Tensor:
        vectors: torch.Tensor = embed_factors(model, images, factors)
        return vectors

    with torch.inference_mode():
        difference = float((loop() - together()).abs().max())
        pairs = [(seconds(loop), seconds(together)) for _ in range(repeats)]
    slow, fast = (min(times) for times in zip(*pairs, strict=True))
    ratio = slow / fast
    target = TARGETS.get((size, len(factors)))
    verdict = "" if target is None else f"{target} {'reached' if ratio >= target else 'MISSED'}"
    return f"{size:>4} {len(factors):>7} {slow:>8.2f} {fast:>13.2f} {ratio:>6.2f} {difference:>10.1e}  {verdict}"


if __name__ == "__main__":
    main()
