"""The votes file: what is read, and every bad file named with its line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetscore.errors import ManifestError, UsageError
from assetscore.studies.votes import Vote, read_votes, write_votes

GOOD = "asset,rater,question,answer\nruby,ana,style,yes\nruby,ben,style,no\nruby,ana,object,unsure\n"


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "votes.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.rstrip("\n"),
        GOOD.replace("asset,rater", "Asset, Rater").replace("yes", " YES ").replace("ana", " ana "),
        GOOD.replace("style", "fits").replace("object", "recognisable"),
        GOOD.replace("object", "semantic").replace("\n", "\n\n"),
        "note,answer,question,rater,asset\n,yes,style,ana,ruby\n,no,style,ben,ruby\nx,unsure,object,ana,ruby\n",
        GOOD.replace("ruby", '"ruby"'),
    ],
    ids=["plain", "crlf", "no last newline", "case", "aliases", "blank lines", "columns", "quotes"],
)
def test_reads_what_spreadsheets_write(tmp_path, text):
    votes = read_votes(write(tmp_path, text), known=["ruby", "opal"])
    assert [(v.asset, v.rater, v.question, v.answer) for v in votes.votes] == [
        ("ruby", "ana", "style", "yes"),
        ("ruby", "ben", "style", "no"),
        ("ruby", "ana", "object", "unsure"),
    ]
    assert (votes.assets, votes.raters, votes.questions) == (("ruby",), ("ana", "ben"), ("style", "object"))
    np.testing.assert_array_equal(votes.matrix("style"), [[1.0], [0.0]])
    np.testing.assert_array_equal(votes.matrix("object"), [[0.5], [np.nan]])


HEAD = "asset,rater,question,answer\n"
ROW = "ruby,ana,style,yes\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (HEAD + ROW + "opal,ana,style,yes\n", 3, "asset 'opal' is not among"),
        (HEAD + ROW + "ruby,ben,style,maybe\n", 3, "yes, no or unsure, got 'maybe'"),
        (HEAD + ROW + "ruby,ben,style,\n", 3, "yes, no or unsure"),
        (HEAD + ROW + "ruby,ben,colour,yes\n", 3, "question must be one of"),
        (HEAD + ROW + "\nruby,ana,fits,no\n", 4, "already, in line 2"),
        (HEAD + ROW + ",ben,style,yes\n", 3, "asset is empty"),
        (HEAD + "ruby,  ,style,yes\n", 2, "rater is empty"),
        (HEAD + ROW + "ruby,ben,style\n", 3, "4 columns, but this one has 3"),
        (HEAD + ROW + "ruby,ben,style,yes,no\n", 3, "4 columns, but this one has 5"),
        ("asset,rater,answer\nruby,ana,yes\n", 1, "column 'question' is missing"),
        ("asset,rater,rater,question,answer\n", 1, "column 'rater' is there twice"),
        ("asset;rater;question;answer\nruby;ana;style;yes\n", 1, "separated by ',' only"),
        ("ruby,ana,style,yes\n", 1, "column 'asset' is missing"),
        (HEAD, 1, "no vote"),
        ("", 1, "no vote"),
        (HEAD + ROW + "x" * 10_000_000, 3, "at most 65536 bytes"),
        ("x" * 10_000_000, 1, "at most 65536 bytes"),
        (HEAD + ROW + '"ruby' + "\n" + "a,b\n" * 3, 6, "no CSV"),
        (HEAD + ROW + 'ruby,"ben"x,style,yes\n', 3, "no CSV"),
        ((HEAD + ROW).encode("utf-16"), 1, "UTF-16"),
        ((HEAD + ROW).encode("utf-16-le"), 1, "NUL byte"),
        ("\ufeff" + HEAD + ROW, 1, 'save it without one: in an editor with the encoding "UTF-8"'),
        ("\ufeff" + (HEAD + ROW).replace("asset", '"asset"').replace("\n", "\r\n"), 1, "byte order mark (BOM)"),
        ("\ufeff", 1, "byte order mark (BOM)"),
        (HEAD + " ruby,ana,style,yes\n", 2, "take away the blanks"),
        (HEAD + "ruby,ana,style,yes\nruby, ana,style,no\n", 3, "already, in line 2"),
        (HEAD + '"  ",ana,style,yes\n', 2, "asset is empty"),
        (HEAD.encode() + b"ruby,ben\xe9,style,yes\n", 2, "byte 9 is no UTF-8"),
        (HEAD.encode() + b"ruby,b\0en,style,yes\n", 2, "NUL byte"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 and "," not in value else None,
)
def test_bad_votes_name_the_file_and_the_line(tmp_path, text, line, says):
    path = write(tmp_path, text)
    with pytest.raises(ManifestError) as error:
        read_votes(path, known=["ruby"])
    message = str(error.value)
    assert message.startswith(f"{path}, line {line}:"), message
    assert says in message
    assert len(message) < 500


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ManifestError, match=r"none\.csv"):
        read_votes(tmp_path / "none.csv")


def test_the_line_counts_quoted_line_breaks(tmp_path):
    path = write(tmp_path, HEAD + '"ru\nby",ana,style,yes\nruby,ana,style,perhaps\n')
    with pytest.raises(ManifestError, match="line 4: answer"):
        read_votes(path)


def test_written_votes_are_read_back(tmp_path):
    votes = [Vote('a "quoted", id', "zoë", "style", "yes"), Vote("b\nc", "ana", "object", "unsure")]
    path = tmp_path / "votes.csv"
    write_votes(path, votes)
    again = read_votes(path)
    assert [(v.asset, v.rater, v.question, v.answer) for v in again.votes] == [
        (v.asset, v.rater, v.question, v.answer) for v in votes
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["votes.csv"]


ANY = st.text(max_size=12) | st.text(alphabet=" \t\r\n,;\"'ab\u00a0\u0085\u2028\ufeff\x1c", max_size=8)


@given(st.lists(st.tuples(ANY, ANY), max_size=4, unique=True))
@settings(max_examples=400, deadline=None)
def test_any_id_is_read_back_exactly_or_refused_when_written(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("trip") / "votes.csv"
    votes = [Vote(asset, rater, "style", "yes") for asset, rater in pairs]
    bad = [
        v
        for v in votes
        if "\0" in v.asset + v.rater or not v.asset.strip() or not v.rater or v.rater != v.rater.strip()
    ]
    if bad:
        with pytest.raises(UsageError):
            write_votes(path, votes)
        assert not path.exists()
    elif votes:
        write_votes(path, votes)
        assert [(v.asset, v.rater) for v in read_votes(path).votes] == pairs


@pytest.mark.parametrize("bad", ["a\0b", "x\udc80", "\ud800", "", " ", "\t", "\u00a0", "x" * 8193, "\u00e9" * 4097])
@pytest.mark.parametrize("column", ["asset", "rater"])
def test_what_a_votes_file_cannot_hold_is_refused_by_name(tmp_path, column, bad):
    vote = Vote(**{"asset": "ruby", "rater": "ana", "question": "style", "answer": "yes", column: bad})
    with pytest.raises(UsageError, match=re.escape(repr(bad[:60]))):
        write_votes(tmp_path / "votes.csv", [vote])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("longest", ["x" * 8192, '"' * 8192, "\r" * 8191 + "x", "\n" * 8191 + "x"])
def test_the_longest_id_is_read_back(tmp_path, longest):
    write_votes(tmp_path / "votes.csv", [Vote(longest, longest.strip(), "style", "yes")])
    assert read_votes(tmp_path / "votes.csv").votes[0].asset == longest


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = write(tmp_path, GOOD)

    def votes():
        yield Vote("a", "b", "style", "yes")
        raise RuntimeError("power")

    with pytest.raises(RuntimeError):
        write_votes(path, votes())
    assert path.read_text() == GOOD
    assert [p.name for p in tmp_path.iterdir()] == ["votes.csv"]


@given(st.binary(max_size=300) | st.text(alphabet='assetrquioniywe,;"\n\r\ufeff 01=', max_size=200).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_votes_or_a_manifest_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "votes.csv"
    path.write_bytes(HEAD.encode() + content if len(content) % 2 else content)
    try:
        votes = read_votes(path).votes
    except ManifestError:
        return
    assert all(vote.answer in ("yes", "no", "unsure") for vote in votes)
