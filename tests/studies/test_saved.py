"""Saved calibrations stand in for a profile in a sweep, and damaged ones are named."""

from __future__ import annotations

import json

import numpy as np
import pytest

from assetscore.errors import ProfileCorruptError, UsageError
from assetscore.studies.saved import SavedCalibrations
from assetscore.studies.sweep import sweep

from .planted import planted


@pytest.fixture(scope="module")
def study():
    profile, table, _ = planted()
    requests = {(row.category, row.sem_factor) for row in table if row.sem_factor}
    return profile, table, SavedCalibrations.of(profile, sorted(requests))


def test_a_sweep_needs_no_more(study, tmp_path):
    profile, table, saved = study
    saved.save(tmp_path / "saved.safetensors")
    loaded = SavedCalibrations.load(tmp_path / "saved.safetensors")
    assert loaded.categories == profile.categories
    assert loaded.config == profile.config
    mine, theirs = sweep(loaded, table), sweep(profile, table)
    assert mine.cells.keys() == theirs.cells.keys()
    for key, cell in mine.cells.items():
        assert cell.pass_both == pytest.approx(theirs.cells[key].pass_both, nan_ok=True)
        assert cell.references_both == pytest.approx(theirs.cells[key].references_both, nan_ok=True, abs=0.02)
        assert cell.semantic.rank_correlation == pytest.approx(theirs.cells[key].semantic.rank_correlation)


def test_what_was_not_saved_is_named(study):
    profile, table, _ = study
    with pytest.raises(UsageError, match="'ruby'"):
        sweep(SavedCalibrations.of(profile), table)


def damaged(path, change):
    """The file with its description or tensors changed."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    with safe_open(path, framework="numpy") as file:
        described = json.loads(file.metadata()["assetscore"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    change(described, tensors)
    save_file(tensors, path, metadata={"assetscore": json.dumps(described)})


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d.update(schema=2),
        lambda d, t: d.pop("calibrations"),
        lambda d, t: d.update(calibrations=[{"category": "item"}]),
        lambda d, t: d.update(config={"k": -1}),
        lambda d, t: t.pop("0.top"),
        lambda d, t: t.update({"0.top": np.full((3, 5), np.nan, np.float32)}),
        lambda d, t: t.update({"0.groups": np.zeros(1, np.int64)}),
        lambda d, t: t.update({"0.top": np.zeros((len(t["0.groups"]), 21), np.float32)}),
    ],
)
def test_damage_is_named(study, tmp_path, change):
    path = tmp_path / "saved.safetensors"
    study[2].save(path)
    damaged(path, change)
    with pytest.raises(ProfileCorruptError, match=r"saved\.safetensors"):
        SavedCalibrations.load(path)


@pytest.mark.parametrize("content", [b"", b"not a tensor file", b"\xff" * 64])
def test_what_is_no_such_file_is_named(tmp_path, content):
    path = tmp_path / "saved.safetensors"
    path.write_bytes(content)
    with pytest.raises(ProfileCorruptError, match=r"saved\.safetensors"):
        SavedCalibrations.load(path)
    with pytest.raises(ProfileCorruptError):
        SavedCalibrations.load(tmp_path / "none.safetensors")
