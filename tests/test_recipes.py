"""The recipes say what the readers do, and the table of grids is what the readers take."""

from __future__ import annotations

import json

import pytest

from assetscore.folders import shipped_folder
from assetscore.submissions.terraria_content import sheet_grid
from assetscore.submissions.terraria_grids import Grid

REFERENCES = shipped_folder("references")


@pytest.mark.parametrize(("name", "published"), [("minecraft-1.21.1", 1989), ("terraria-1.4.4", 15456)])
def test_recipes_name_what_to_own_where_it_is_and_the_counts(name, published):
    tomllib = pytest.importorskip("tomllib")
    recipe = tomllib.loads((REFERENCES / f"{name}.toml").read_text("utf-8"))
    assert recipe["name"] == name
    assert f"--game {recipe['game']} --name {name}" in recipe["source"]["command"]
    assert recipe["source"]["own"]
    assert recipe["source"]["paths"]
    assert recipe["paper"]["references"] == published
    if "references" in recipe["counts"]:
        assert all(recipe["counts"]["references"][key] <= n for key, n in recipe["counts"]["visible"].items())


def test_every_entry_of_the_table_is_a_grid():
    table = json.loads((REFERENCES / "terraria-grids.json").read_text("utf-8"))
    assert table.keys() == {"about", "item", "projectile", "npc", "tile"}
    for category in table.keys() - {"about"}:
        for number in table[category]:
            grid = sheet_grid(category, int(number), 20, 400)
            assert grid.rows > 1 or grid.cell is not None


def test_known_sheets():
    assert sheet_grid("item", 520, 22, 96) == Grid(rows=4)
    assert sheet_grid("tile", 4, 66, 22) == Grid(cell=(20, 20), padding=2)
    assert sheet_grid("tile", 0, 288, 270) == Grid(cell=(16, 16), padding=2)
    assert sheet_grid("npc", 17, 40, 1400) == Grid(rows=25)
    assert sheet_grid("item", 1, 40, 40) == Grid()
