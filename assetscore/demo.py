"""The demo: shipped submissions, some by the references' own artists and some from other games, and how well they are
told apart; beside it a judge that sees only the image's size, so that nobody has to believe that size did it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from .batch import run
from .errors import ReferenceSetError
from .folders import shipped_folder
from .images import Texture, load
from .profile import Profile
from .scorer import Item, Scorer
from .studies.agreement import auroc
from .table import ResultTable

__all__ = ["DemoResult", "run_demo"]

OWN, FOREIGN, NEAR = "own art", "foreign art", "foreign art, near in style"


@dataclass(frozen=True)
class DemoResult:
    """The scored submissions and how well own and foreign art are separated (AUROC, 0.5 is chance)."""

    table: ResultTable
    auroc: float
    size_auroc: float

    def to_dict(self) -> dict[str, Any]:
        values = {"auroc": self.auroc, "size_only_auroc": self.size_auroc}
        return {name: value if isfinite(value) else None for name, value in values.items()}

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"AUROC of the style margin, own against foreign art: {self.auroc:.3f}",
            f"AUROC of a judge that sees only the size:           {self.size_auroc:.3f}",
        ]


def run_demo(scorer: Scorer, progress: Callable[[int], None] | None = None) -> DemoResult:
    """Score the shipped submissions."""
    folder = shipped_folder("references") / "dungeon-demo"
    items = demo_items(folder)
    table = run(scorer, items, progress=progress)
    scored = [(item, row) for item, row in zip(items, table, strict=True) if row.style_margin is not None]
    own = [item.group == OWN for item, _ in scored]
    sizes = [size_score(load(item.asset), scorer.profile, item.category) for item, _ in scored]  # type: ignore[arg-type]
    margins = [float(row.style_margin or 0.0) for _, row in scored]
    return DemoResult(table, float(auroc(margins, own)), float(auroc(sizes, own)))


def demo_items(folder: Path) -> list[Item]:
    """The submissions as Items; their group says whose art they are."""
    index = folder / "index.csv"
    if not index.is_file():
        raise ReferenceSetError(f"{index}: the demo's submissions are not installed")
    with index.open(encoding="utf-8", newline="") as file:
        return [
            Item(
                folder / row["file"],
                row["category"],
                request=row["object_words"] or None,
                asset_id=row["file"],
                path=str(folder / row["file"]),
                group=OWN if row["expected"] == "pass" else NEAR if row["hard"] == "yes" else FOREIGN,
            )
            for row in csv.DictReader(file)
        ]


def size_score(texture: Texture, profile: Profile, category: str) -> float:
    """What size alone can say: the share of the category's references of exactly this width and height, native grid."""
    shape = texture.native.shape
    references = profile.by_category[category]
    return sum(reference.texture.native.shape == shape for reference in references) / len(references)
