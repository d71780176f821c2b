"""What holds many things prints short: a name, counts and a fingerprint, however large it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

import assetscore
from assetscore import Profile, ReferenceSet, ResultTable, Scorer, Texture

from .conftest import sprite

LINE = 500
"""Characters a line may have."""


@pytest.fixture(scope="module")
def large() -> Profile:
    """Fifty categories with long names, three hundred references, some of them left out."""
    named = [(f"{'long/' * 30}{i}", f"category {i % 50} {'x' * 100}", sprite(i)) for i in range(300)]
    refs = ReferenceSet.from_textures(named, name="n" * 300)
    refs = replace(refs, skipped=tuple((f"file {i}", "unreadable") for i in range(999)))
    return Profile.build(refs, "pixelstats")


def test_every_object_that_holds_many_prints_one_short_line(large: Profile) -> None:
    scorer = Scorer(large)
    category = next(iter(large.categories))
    scores = scorer.score_many([(sprite(1000 + i), category) for i in range(40)])
    table = ResultTable.from_scores(scores, large)
    strip = Texture.from_rgba(sprite(1, 64), boxes=[(0, y, 64, 1) for y in range(64)])
    things = (
        large, large.references, scorer, scores[0], scores[0].style, table, strip, large.encoder,
        large.calibration(category, "art style"), large.references.references[0].texture, large.config,
    )  # fmt: skip
    for thing in things:
        assert len(repr(thing)) <= LINE, type(thing)
        assert "\n" not in repr(thing)
        assert type(thing).__name__ in repr(thing)


def test_what_is_printed_tells_two_apart(references: ReferenceSet, profile: Profile) -> None:
    assert repr(references) == f"<ReferenceSet 'drawn': block 20, item 40; {references.fingerprint[:12]}>"
    assert profile.fingerprint[:12] in repr(profile)
    assert "item 40" in repr(profile)
    result = Scorer(profile).score(sprite(5000), "item")
    for part in (result.status, f"{result.style.similarity:.3f}", profile.fingerprint[:12]):
        assert part in repr(result)
    missing = Scorer(profile).score("nowhere.png", "item")
    table = ResultTable.from_scores([result, missing, missing], profile)
    assert "of 3: " in repr(table)
    assert "missing 2" in repr(table)
    assert repr(ResultTable(())) == "<ResultTable of 0: no rows; 0 passed>"


def test_an_encoder_prints_before_it_is_ready() -> None:
    class Unready(assetscore.Encoder):
        name = "unready"

        def embed(self, images, factors):  # type: ignore[no-untyped-def]
            return {}

    assert "unready" in repr(Unready())
