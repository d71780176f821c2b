"""The game the method was made for: vanilla leave-one-out, later vanilla textures, and damaged copies of them.

Needs Minecraft's own textures, which are Mojang's and not shipped here. Install them for measuring:

    mkdir -p scratch && npm install --prefix scratch minecraft-assets@1.19.0
    python benchmarks/minecraft.py scratch/node_modules/minecraft-assets/minecraft-assets/data

References: 1.21.1 (items, blocks, entity). Submissions: the textures that 26.1 has under names that 1.21.1 has not, and
that are no copies; the game's artists drew them later, so a good judge passes about 1 - alpha of them. The degradations
of those show the other side: AUROC of S_style - tau, undamaged against damaged.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from machine import machine

import assetscore
from assetscore.encoders.lite.damage import DAMAGE
from assetscore.images import load
from assetscore.report import render
from assetscore.scorer import Item
from assetscore.studies.agreement import auroc
from assetscore.summary import summarise

CATEGORIES = {"item": "items", "block": "blocks", "entity": "entity"}


def files(version: Path, category: str) -> dict[str, Path]:
    folder = version / CATEGORIES[category]
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.png"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the package's data folder, with 1.21.1 and 26.1 in it")
    parser.add_argument("--encoder", default=None, help="default: the library's")
    parser.add_argument("--report", type=Path, help="write the report of the new textures here (do not publish it)")
    options = parser.parse_args()
    old, new = options.data / "1.21.1", options.data / "26.1"
    if not old.is_dir() or not new.is_dir():
        print(f"{options.data}: no 1.21.1 and 26.1 there.\n{__doc__}", file=sys.stderr)
        return 2
    print(machine())
    references = assetscore.ReferenceSet.from_minecraft(old, "minecraft-1.21.1")
    print("references after exact duplicates collapse:", references.categories)
    start = time.perf_counter()
    extra = {} if options.encoder is None else {"encoder": options.encoder}
    profile = assetscore.Profile.build(references, **extra)
    print(f"profile built in {time.perf_counter() - start:.1f} s: {profile}")

    items = []
    for category in ("item", "block", "entity"):
        known = files(old, category)
        items += [
            Item(path, category, asset_id=f"{category}/{name}", path=str(path), group=f"new {category}s")
            for name, path in files(new, category).items()
            if name not in known
        ]
    scorer = assetscore.Scorer(profile)
    scores = list(scorer.stream(items))
    table = assetscore.ResultTable.from_scores(scores, profile)
    print(render(summarise(table), "text"))
    for category in ("item", "block"):
        new_art = [s for s in scores if s.category == category and s.style.similarity is not None]
        print(f"style pass rate of new {category}s: {np.mean([s.style.passed for s in new_art]):.3f} of {len(new_art)}")
    if options.report:
        from assetscore.report import write_report

        write_report(table, options.report, profile=profile, title="26.1's new textures against 1.21.1")

    good = [
        (i, s) for i, s in zip(items, scores, strict=True) if s.category != "entity" and s.style.similarity is not None
    ]
    margins = [float(s.style.margin) for _, s in good]  # type: ignore[arg-type]
    print("\nAUROC of the style margin, new items and blocks against their degradations")
    values = {}
    for name, damage in DAMAGE.items():
        damaged = [
            Item(damage(load(item.asset).native, np.random.default_rng(seed)), item.category)  # type: ignore[arg-type]
            for seed, (item, _) in enumerate(good)
        ]
        lower = [score.style.margin for score in scorer.stream(damaged) if score.style.margin is not None]
        values[name] = float(auroc([*margins, *lower], [True] * len(margins) + [False] * len(lower)))
        print(f"  {name:<24}{values[name]:.3f}")
    print(f"  {'mean of all but hue':<24}{np.mean([v for name, v in values.items() if name != 'hue']):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
