"""Makes the small saved study in notebooks/data from the shipped references and demo submissions.

    python notebooks/make_data.py [FIRST_ENCODER SECOND_ENCODER]

The scores are real: each encoder's, of the demo submissions against the shipped references. The votes are not: the
repository holds no study with people, so nine raters are simulated, who mostly see whether a texture is by the game's
own artists, differ in strictness, and err. Every notebook says so.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from assetscore import Profile, ReferenceSet, Scorer
from assetscore.scorer import Item
from assetscore.studies.saved import SavedCalibrations
from assetscore.studies.votes import Vote, write_votes
from assetscore.table import ResultTable

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"
DEMO = ROOT / "references" / "dungeon-demo"
RATERS, SHOWN = 9, 60


def items() -> list[tuple[Item, dict[str, str]]]:
    """The demo submissions by the game they come from; small games are taken together."""
    with open(DEMO / "index.csv", encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    games = [line["pack"].split("/")[0] for line in listed]
    result = []
    for line, game in zip(listed, games, strict=True):
        group = "own artists" if line["expected"] == "pass" else game if games.count(game) >= 9 else "other games"
        item = Item(DEMO / line["file"], line["category"], asset_id=line["file"], path=line["file"], group=group)
        result.append((item, line))
    return result


def simulated_votes(listed: list[tuple[Item, dict[str, str]]], seed: int = 7) -> list[Vote]:
    """Nine raters on sixty of the textures. `hard` marks other games' art that looks much like this game's."""
    rng = np.random.default_rng(seed)
    chosen = sorted(rng.choice(len(listed), SHOWN, replace=False))
    strictness = rng.normal(scale=0.6, size=RATERS)
    votes = []
    for rater in range(RATERS):
        for index in chosen:
            item, line = listed[index]
            own, hard = line["expected"] == "pass", line["hard"] == "yes"
            lean = {"style": 1.3 if own else -0.2 if hard else -1.3, "object": 1.6 if own else 0.5}
            for question, value in lean.items():
                felt = value - strictness[rater] + rng.normal(scale=1.4)
                answer = "unsure" if abs(felt) < 0.25 else "yes" if felt > 0 else "no"
                votes.append(Vote(item.asset_id, f"rater {rater + 1}", question, answer))
    return votes


def main(encoders: list[str]) -> None:
    DATA.mkdir(exist_ok=True)
    listed = items()
    references = ReferenceSet.from_folder(ROOT / "references" / "dungeon-tiles")
    for place, encoder in zip(("first", "second"), encoders, strict=True):
        profile = Profile.build(references, encoder, name=f"dungeon tiles, {encoder}")
        table = ResultTable.from_scores(Scorer(profile).stream([item for item, _ in listed]), profile)
        rows = tuple(replace(row, profile=profile.name) for row in table)
        ResultTable(rows).write(DATA / f"{place}.csv")
        SavedCalibrations.of(profile).save(DATA / f"{place}.safetensors")
    write_votes(DATA / "votes.csv", simulated_votes(listed))


if __name__ == "__main__":
    main(sys.argv[1:] or ["lite", "pixelstats"])
