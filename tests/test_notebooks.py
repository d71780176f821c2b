"""The notebooks run from the saved study to the end, and what they show is what is stored in them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
NAMES = ("calibration_sweep", "human_agreement", "compare_encoders")


def texts(notebook):
    """What the cells print, cell by cell."""
    return [
        "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def figures(notebook):
    """How many pictures each cell shows."""
    return [
        sum("image/png" in output.get("data", {}) for output in cell["outputs"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs_to_the_end_and_shows_what_is_stored(name, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra 'notebooks'")
    nbclient = pytest.importorskip("nbclient", reason="notebooks need the extra 'notebooks'")
    for package in ("ipykernel", "matplotlib"):
        pytest.importorskip(package, reason="notebooks need the extra 'notebooks'")
    paths = [str(NOTEBOOKS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    stored = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    ran = nbformat.from_dict(json.loads(json.dumps(stored)))
    nbclient.NotebookClient(
        ran, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
    ).execute()
    assert figures(ran) == figures(stored)
    assert sum(figures(ran)) >= 2
    numbers = [[[float(n) for n in re.findall(r"-?\d+\.?\d*", text)] for text in texts(book)] for book in (ran, stored)]
    for mine, kept in zip(*numbers, strict=True):
        assert mine == pytest.approx(kept, abs=0.011), "the notebook was not run again after its data changed"


@pytest.mark.parametrize("name", NAMES)
def test_is_clean(name):
    text = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert all(output["output_type"] != "error" for cell in notebook["cells"] for output in cell.get("outputs", []))
    assert not re.search(r"/(home|tmp|work|opt|Users)/", text), "a path of someone's machine"
    assert "simulated" in text, "readers must know that the votes are not people's"
    assert len(text) < 700_000


def test_the_saved_study_is_small_and_consistent():
    from assetscore.studies.saved import SavedCalibrations
    from assetscore.studies.votes import read_votes
    from assetscore.table import ResultTable

    data = NOTEBOOKS / "data"
    assert sum(path.stat().st_size for path in data.iterdir()) < 2_000_000
    votes = read_votes(data / "votes.csv")
    for name in ("first", "second"):
        table = ResultTable.read(data / f"{name}.csv")
        votes.check_assets(table.column("asset_id"))
        saved = SavedCalibrations.load(data / f"{name}.safetensors")
        assert {row.encoder for row in table} == {saved.encoder_fingerprint}
        assert not any(Path(row.path).is_absolute() for row in table)


def test_the_data_script_needs_no_one_elses_files():
    code = "import sys; sys.path.insert(0, 'notebooks'); import make_data; print(len(make_data.items()))"
    run = subprocess.run([sys.executable, "-c", code], cwd=NOTEBOOKS.parent, capture_output=True, text=True, check=True)
    assert int(run.stdout) > 50
