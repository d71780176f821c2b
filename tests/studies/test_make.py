"""From results to a study's folder: whole or not at all, for any category and any id."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from assetscore.errors import UsageError
from assetscore.images import load
from assetscore.profile import Profile
from assetscore.references import Reference, ReferenceSet
from assetscore.studies.rating import make
from assetscore.studies.rating.make import make_study
from assetscore.studies.rating.study import read_study
from assetscore.table import Row

from .planted import Projection, art


def profile_of(categories):
    rng = np.random.default_rng(1)
    references = [
        Reference(f"{i}/{j}", category, load(art(rng, rng.uniform(40, 220, (8, 8, 3)), 40)))
        for i, category in enumerate(categories)
        for j in range(3)
    ]
    return Profile.build(ReferenceSet.build(references, "made"), Projection())


@pytest.fixture
def rows(tmp_path):
    """Four textures of each of two models, named alike."""
    rng = np.random.default_rng(0)
    made = []
    for group in ("one", "two"):
        for i in range(4):
            path = tmp_path / group / f"{i}.png"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(art(rng, np.full((8, 8, 3), 128.0), 60)).save(path)
            made.append(Row(f"{i}.png", category="item", group=group, path=str(path)))
    return made


PROFILE = profile_of(["item"])


def listing(folder):
    return sorted((p.relative_to(folder).as_posix(), p.read_bytes() if p.is_file() else b"") for p in folder.rglob("*"))


def test_equal_file_names_of_two_models(rows, tmp_path):
    draw = make_study(rows, PROFILE, tmp_path / "study")
    assert sorted(draw.names) == sorted(f"{row.group}: {row.asset_id}" for row in rows)
    items = read_study(tmp_path / "study").items
    for row, name in zip(draw.rows, draw.names, strict=True):
        png = tmp_path / "again.png"
        png.write_bytes(items[name].picture.png)
        assert load(png).content_hash == load(row.path).content_hash, "the name is another texture's"


def test_what_nothing_tells_apart_is_refused(rows, tmp_path):
    with pytest.raises(UsageError, match=r"'0\.png' is there twice in the same game, group and task"):
        make_study([*rows, rows[0]], PROFILE, tmp_path / "study")
    assert not (tmp_path / "study").exists()
    make_study([*rows, *[replace(rows[0], asset_id="x.png", status="failed")] * 2], PROFILE, tmp_path / "study", n=3)


@pytest.mark.parametrize("there", ["file", "empty folder", "folder", "link to nowhere", "link to a folder"])
def test_what_is_there_already_is_not_touched(rows, tmp_path, there):
    target, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if there == "file":
        target.write_text("mine")
    elif there == "link to nowhere":
        target.symlink_to(tmp_path / "nowhere")
    elif there == "link to a folder":
        target.symlink_to(elsewhere)
    else:
        target.mkdir()
        if there == "folder":
            (target / "manifest.csv").write_text("mine")
    before = listing(tmp_path)
    with pytest.raises(UsageError, match="there already; a study needs a new folder"):
        make_study(rows, PROFILE, target)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("breaks", ["first picture", "last picture", "art", "record", "rename", "interrupt"])
def test_a_failure_leaves_nothing(rows, tmp_path, monkeypatch, breaks):
    (tmp_path / "home").mkdir()
    error, calls = KeyboardInterrupt() if breaks == "interrupt" else OSError(28, "No space left on device"), []
    if breaks == "rename":
        monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(error))
    elif breaks == "record":
        monkeypatch.setattr(make.json, "dumps", lambda *_, **__: (_ for _ in ()).throw(error))
    else:
        limit = {"first picture": 1, "last picture": 8, "art": 10, "interrupt": 5}[breaks]
        write = type(tmp_path).write_bytes

        def failing(path, data):
            calls.append(path)
            if len(calls) == limit:
                raise error
            return write(path, data)

        monkeypatch.setattr(type(tmp_path), "write_bytes", failing)
    with pytest.raises(type(error)):
        make_study(rows, PROFILE, tmp_path / "home" / "study")
    assert list((tmp_path / "home").iterdir()) == []
    monkeypatch.undo()
    make_study(rows, PROFILE, tmp_path / "home" / "study")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["study"]


CATEGORIES = [
    "../../escaped", "..", ".", "/etc/escaped", "wall/stone", "wall\\stone", "a:b", "C:\\x", "x" * 3000, " ", " item",
    "item ", "item.", "Item", "item", "CON", "nul.txt", "\u0436\u0443\u043a", "\u00e9", "e\u0301", "\U0001f600" * 80, 'a "b", c', "-rf", "~", "<b>", "*?",
]  # fmt: skip


def test_any_category_is_shown_with_its_own_art(rows, tmp_path):
    profile = profile_of(CATEGORIES)
    listed = [replace(rows[i % 8], asset_id=f"a{i}", category=category) for i, category in enumerate(CATEGORIES)]
    home = tmp_path / "deep" / "down" / "home"
    draw = make_study(listed, profile, home / "study", n=100)
    assert len(draw.rows) == len(CATEGORIES)
    assert [path.name for path in home.iterdir()] == ["study"]
    assert sorted(path.name for path in (tmp_path / "deep").rglob("*") if "escaped" in path.name) == []
    study = read_study(home / "study")
    for row in listed:
        item = study.items[row.asset_id]
        assert item.category == row.category.strip()
        own = {load(picture_file(tmp_path, r.png)).content_hash for r in study.panels[item.art]}
        assert own == {r.texture.content_hash for r in profile.by_category[row.category]}


def picture_file(folder, png):
    path = folder / "one picture.png"
    path.write_bytes(png)
    return path


def test_the_art_of_another_folder_goes_by_category(rows, tmp_path):
    make_study(rows, PROFILE, tmp_path / "study")
    with pytest.raises(Exception, match=r"own art of category 'item'"):
        read_study(tmp_path / "study", tmp_path / "art")
    (tmp_path / "study" / "references" / "00").rename(tmp_path / "item")
    assert len(read_study(tmp_path / "study", tmp_path).panels["item"]) == 3


@pytest.mark.parametrize("bad", ["../00", "..", ".", "a/b", "a:b", "x" * 256])
def test_the_column_art_is_a_plain_folder_name(rows, tmp_path, bad):
    make_study(rows, PROFILE, tmp_path / "study")
    manifest = tmp_path / "study" / "manifest.csv"
    manifest.write_text(manifest.read_text().replace(",00\n", f",{bad}\n", 1))
    with pytest.raises(Exception, match="line 2: category or art must be a plain folder name"):
        read_study(tmp_path / "study")


def test_files_that_cannot_be_shown_are_named_and_recorded(rows, tmp_path):
    for broken, content in ((rows[0], b""), (rows[5], b"no picture")):
        with open(broken.path, "wb") as file:
            file.write(content)
    os.unlink(rows[2].path)
    draw = make_study(rows, PROFILE, tmp_path / "study")
    assert sorted(name for name, _ in draw.left_out) == ["one: 0.png", "one: 2.png", "two: 1.png"]
    assert all(reason for _, reason in draw.left_out)
    assert len(draw.rows) == 5
    record = json.loads((tmp_path / "study" / "draw.json").read_text())
    assert [(each["asset"], each["reason"]) for each in record["left_out"]] == list(draw.left_out)
    assert (record["scored"], record["drawn"], record["n"], record["seed"]) == (8, 5, 40, 0)
    assert record["profile_fingerprint"] == PROFILE.fingerprint
    for row in rows:
        if os.path.exists(row.path):
            os.unlink(row.path)
    with pytest.raises(UsageError, match="run this where the textures lie"):
        make_study(rows, PROFILE, tmp_path / "other")


def test_ids_that_votes_could_not_hold_are_refused_before_anyone_rates(rows, tmp_path):
    for bad in ("a\0b", "x\udc80.png", "  ", "x" * 9000):
        with pytest.raises(UsageError, match="asset id"):
            make_study([replace(rows[0], asset_id=bad, group="")], PROFILE, tmp_path / "study")
    assert not (tmp_path / "study").exists()
    odd = [" a", "a", "a\r", "a\nb", 'a"', "a,b", "\ufeffa", "a\u2028"]
    make_study([replace(row, asset_id=i) for row, i in zip(rows, odd, strict=True)], PROFILE, tmp_path / "study")
    assert set(read_study(tmp_path / "study").items) == set(odd)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"n": 0}, {"n": -3}])
def test_a_wrong_seed_or_number_is_named(rows, tmp_path, wrong):
    with pytest.raises(UsageError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))}"):
        make_study(rows, PROFILE, tmp_path / "study", **wrong)


def killed_while_writing(rows, folder, monkeypatch):
    """A run that never cleans up, as one killed outright does not."""
    with monkeypatch.context() as patch:
        patch.setattr(make.shutil, "rmtree", lambda *_, **__: None)
        patch.setattr(make.json, "dumps", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            make_study(rows, PROFILE, folder)


def test_what_a_killed_run_left_is_named_and_not_touched(rows, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    for name in (".study-notes", ".study-", ".study-0123456789ABCDEF", "study-0123456789abcdef"):
        (home / name).mkdir()  # not ours
    assert make_study(rows, PROFILE, home / "first").unfinished == ()
    killed_while_writing(rows, home / "second", monkeypatch)
    killed_while_writing(rows, home / "second", monkeypatch)
    before = listing(home)
    draw = make_study(rows, PROFILE, home / "second")
    assert len(draw.unfinished) == 2
    assert all((path / "manifest.csv").is_file() and path.parent == home for path in draw.unfinished)
    assert [entry for entry in listing(home) if not entry[0].startswith("second")] == before
