"""What votes call an asset, where several models' files have equal names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetscore.errors import ManifestError, UsageError
from assetscore.studies.agreement import agreement, compare_encoders
from assetscore.studies.ids import rows_by_name, vote_names
from assetscore.studies.sweep import sweep
from assetscore.studies.votes import Vote, Votes
from assetscore.table import Row

from .planted import planted

FEW = st.sampled_from(["", "a", "b", "a/b", "a: b", "b: a"])


@given(st.lists(st.builds(Row, asset_id=FEW.filter(bool), game=FEW, group=FEW, task=FEW), max_size=8))
def test_a_name_leads_back_to_its_row_or_there_is_none(rows):
    for row, name in zip(rows, vote_names(rows), strict=True):
        if name:
            found = rows_by_name(rows, [name])
            assert list(found) == [name]
            assert found[name] is row
        else:
            assert len([r for r in rows if r.asset_id == row.asset_id]) > 1, "no name, though nothing shares its id"


@pytest.mark.parametrize("column", ["game", "group", "task"])
def test_what_tells_rows_apart(column):
    rows = [replace(Row("ruby.png"), **{column: value}) for value in ("one", "two")]
    assert vote_names(rows) == ["one: ruby.png", "two: ruby.png"]


def test_rows_alike_in_everything_have_no_name():
    assert vote_names([Row("a", group="x"), Row("a", group="x", category="block"), Row("b")]) == ["", "", "b"]


def clashing():
    """(profile, rows with unique ids, the same rows with every model's files named alike, names of the latter)."""
    profile, table, _ = planted()
    unique = tuple(table.rows)
    counts: dict[str, int] = {}
    alike = []
    for row in unique:
        number = counts[row.group] = counts.get(row.group, -1) + 1
        alike.append(replace(row, asset_id=f"{number}.png", game="planted", task="t"))
    return profile, unique, tuple(alike), [f"planted/{row.group}/t: {row.asset_id}" for row in alike]


def votes_on(names, seed=0):
    rng = np.random.default_rng(seed)
    answers = ("yes", "no", "unsure")
    return Votes(
        tuple(
            Vote(name, f"r{i}", question, answers[rng.integers(3)], line)
            for line, name in enumerate(names, 2)
            for question in ("style", "object")
            for i in range(3)
        )
    )


def test_equal_file_names_change_no_number():
    profile, unique, alike, names = clashing()
    assert vote_names(alike) == names
    votes, other = votes_on([row.asset_id for row in unique]), votes_on(names)
    assert agreement(other, alike, resamples=50).to_dict() == agreement(votes, unique, resamples=50).to_dict()
    noisy = [
        [replace(r, style_s=None if r.style_s is None else r.style_s**2) for r in rows] for rows in (unique, alike)
    ]
    expected = compare_encoders(votes, unique, noisy[0], resamples=50).to_dict()
    assert compare_encoders(other, alike, noisy[1], resamples=50).to_dict() == expected
    assert sweep(profile, alike, other).to_dict() == sweep(profile, unique, votes).to_dict()


def test_one_models_own_results_take_the_names_of_all():
    _, _, alike, names = clashing()
    mine = [i for i, row in enumerate(alike) if row.group == "good"]
    rows, votes = [alike[i] for i in mine], votes_on([names[i] for i in mine])
    short = replace(votes, votes=tuple(replace(v, asset=v.asset.split(": ")[1]) for v in votes.votes))
    assert agreement(votes, rows, resamples=20).to_dict() == agreement(short, rows, resamples=20).to_dict()


@pytest.mark.parametrize(
    "hold", [agreement, lambda votes, rows: sweep(clashing()[0], rows, votes)], ids=["agree", "sweep"]
)
def test_a_name_that_leads_nowhere_or_to_two(hold):
    _, _, alike, names = clashing()
    with pytest.raises(UsageError, match=r"apart as 'planted/good/t: 0\.png' and 'planted/fair/t: 0\.png'"):
        hold(votes_on(["0.png"]), alike)
    with pytest.raises(UsageError, match="one asset in two ways"):
        hold(votes_on([names[0], "0.png"]), [alike[0]])
    with pytest.raises(ManifestError, match=r"line 2: asset 'planted/none/t: 0\.png' is not among"):
        hold(votes_on(["planted/none/t: 0.png"]), alike)
    with pytest.raises(UsageError, match="make ids unique"):
        hold(votes_on([names[0]]), [alike[0], replace(alike[0], category="block")])
