"""The rating page without a browser: what it shows, what it keeps, and what it never tells."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from assetscore.errors import ManifestError, UsageError
from assetscore.studies.rating.store import Rater, Store, rater_key
from assetscore.studies.rating.study import read_study
from assetscore.studies.votes import read_votes, write_votes

BOTH = {"style": "yes", "object": "unsure"}


@pytest.fixture
def study(study_folder):
    return read_study(study_folder)


@pytest.fixture
def store(study_folder):
    return Store(study_folder / "answers.sqlite")


@pytest.fixture
def app(study, store):
    pytest.importorskip("flask")
    from assetscore.studies.rating.app import create_app

    return create_app(study, store)


def begin(app, name):
    client = app.test_client()
    assert client.post("/start", data={"name": name}).status_code == 303
    return client


def token(html):
    return hidden(html)["item"]


def hidden(html):
    """What a page's form sends of its own accord."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([0-9a-f]+)"', html))


def answer(client, **answers):
    page = client.get("/rate", follow_redirects=True).get_data(as_text=True)
    return client.post("/rate", data={**hidden(page), **(answers or BOTH)})


# the folder


def test_reads_a_manifest(study):
    assert sorted(study.items) == [f"asset-{i}" for i in range(6)]
    assert study.items["asset-1"].request == "<b>ruby & sword</b>"
    assert {category: len(panel) for category, panel in study.panels.items()} == {"block": 5, "item": 5}


def test_reads_a_plain_folder(study_folder):
    (study_folder / "manifest.csv").unlink()
    for category in ("item", "block"):
        (study_folder / "textures" / category).mkdir(parents=True)
        (study_folder / "made" / f"secret_model_{category == 'item':d}.png").rename(
            study_folder / "textures" / category / "a.png"
        )
    assert {(i.asset_id, i.category) for i in read_study(study_folder).items.values()} == {
        ("item/a.png", "item"),
        ("block/a.png", "block"),
    }


def test_ids_are_those_of_a_batch_over_the_same_folder(study_folder):
    from assetscore.batch import find_assets

    with open(study_folder / "manifest.csv", "a") as file:
        file.write("made/secret_model_0.png,item,,\n")
    batch = find_assets(study_folder / "manifest.csv", ["item", "block"])
    assert [item.asset_id for item in batch] == list(read_study(study_folder).items)
    (study_folder / "manifest.csv").rename(study_folder / "old.csv")
    (study_folder / "textures" / "item").mkdir(parents=True)
    (study_folder / "made" / "secret_model_1.png").rename(study_folder / "textures" / "item" / "ruby.png")
    batch = find_assets(study_folder / "textures", ["item", "block"])
    assert [item.asset_id for item in batch] == list(read_study(study_folder).items)


def test_references_may_lie_elsewhere(study_folder, tmp_path):
    (study_folder / "references").rename(tmp_path / "art")
    with pytest.raises(ManifestError, match="--references"):
        read_study(study_folder)
    assert len(read_study(study_folder, tmp_path / "art").panels["item"]) == 5


def test_the_panel_is_the_same_each_time_and_holds_no_twins(study_folder):
    art = study_folder / "references" / "item"
    (art / "copy.png").write_bytes((art / "0.png").read_bytes())
    for i in range(40):
        Image.fromarray(np.full((16, 16, 3), 4 * i, np.uint8)).save(art / f"grey{i}.png")
    first, second = read_study(study_folder), read_study(study_folder)
    assert len(first.panels["item"]) == 24
    assert [p.png for p in first.panels["item"]] == [p.png for p in second.panels["item"]]
    assert len({p.png for p in first.panels["item"]}) == 24


def test_pictures_are_made_anew_from_canonical_pixels(study_folder):
    hidden = np.full((16, 16, 4), 255, np.uint8)
    hidden[..., 3] = 0
    hidden[4:8, 4:8, 3] = 255
    path = study_folder / "made" / "secret_model_0.png"
    Image.fromarray(hidden).save(path)
    path.write_bytes(path.read_bytes() + b"<script>alert(1)</script>")
    png = read_study(study_folder).items["asset-0"].picture.png
    assert b"script" not in png
    assert not np.array(Image.open(io.BytesIO(png)))[0, 0].any()


def test_what_moves_in_the_game_moves_on_the_page(study_folder):
    strip = np.concatenate([np.full((16, 16, 3), value, np.uint8) for value in (10, 90, 200)])
    path = study_folder / "made" / "secret_model_0.png"
    Image.fromarray(strip).save(path)
    assert read_study(study_folder).items["asset-0"].picture.height == 48
    path.with_name(path.name + ".mcmeta").write_text('{"animation": {}}')
    picture = read_study(study_folder).items["asset-0"].picture
    assert (picture.width, picture.height) == (16, 16)
    assert Image.open(io.BytesIO(picture.png)).n_frames == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("../../secret.png,item,,x", "inside the study folder"),
        ("/etc/hostname,item,,x", "inside the study folder"),
        ("..\\x.png,item,,x", "inside the study folder"),
        ("C:\\x.png,item,,x", "inside the study folder"),
        ("made/secret_model_0.png,../item,,x", "plain folder name"),
        ("made/secret_model_0.png,..,,x", "plain folder name"),
        ("made/secret_model_0.png,,,x", "plain folder name"),
        (f"made/secret_model_0.png,{'x' * 256},,x", "plain folder name"),
        (f"made/secret_model_0.png,item,,{'x' * 9000}", "at most 8192"),
        ('made/secret_model_0.png,item,,"  "', "is blank"),
        ("made/secret_model_0.png,item,,asset-3", "asset-3' is there twice"),
        ("made/none.png,item,,x", "cannot be shown"),
        ("manifest.csv,item,,x", "cannot be shown"),
        ("made,item,,x", "cannot be shown"),
        ("made/secret_model_0.png,item", "4 columns, but this one has 2"),
    ],
)
def test_a_wrong_manifest_names_its_line(study_folder, line, says):
    with open(study_folder / "manifest.csv", "a") as file:
        file.write(line + "\n")
    with pytest.raises(ManifestError, match=r"manifest\.csv, line 8: .*" + re.escape(says)):
        read_study(study_folder)


def test_nothing_to_rate_is_named(tmp_path):
    with pytest.raises(ManifestError, match="nothing to rate"):
        read_study(tmp_path)
    with pytest.raises(ManifestError, match="no such study folder"):
        read_study(tmp_path / "none")


# the answers


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\0b", "a\u202eb", "=SUM(1)", "+1", "-x", "@x", "\x1b[31m"])
def test_names_that_cannot_be_used(store, name):
    with pytest.raises(UsageError):
        store.rater(name)


def test_the_same_name_is_the_same_rater(store):
    first = store.rater("Ana  Maria")
    assert store.rater(" ana maria ") == first == Rater(first.id, "Ana Maria")
    assert store.rater("Ben").id != first.id
    assert rater_key("ＡＮＡ") == "ana"


def test_the_last_answer_counts_and_none_is_overwritten(store):
    ana = store.rater("ana")
    store.record(ana, "a", {"style": "yes", "object": "no"})
    store.record(ana, "a", {"style": "no", "object": "no"})
    assert [(v.asset, v.question, v.answer) for v in store.votes()] == [("a", "style", "no"), ("a", "object", "no")]
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT count(*) FROM answer").fetchone() == (4,)


def test_an_answer_is_on_the_disk_before_the_page_moves_on(store):
    with store._open() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_half_an_asset_is_not_answered(store):
    ana = store.rater("ana")
    store.record(ana, "a", {"style": "yes"})
    assert store.answered(ana) == frozenset()
    store.record(ana, "a", {"object": "yes"})
    assert store.answered(ana) == {"a"}


@pytest.mark.parametrize("answers", [{"style": "maybe"}, {"colour": "yes"}, {"style": "yes", "object": ""}])
def test_a_wrong_answer_keeps_nothing(store, answers):
    with pytest.raises(UsageError):
        store.record(store.rater("ana"), "a", answers)
    assert store.votes() == []


def test_each_rater_has_an_order_of_their_own(store):
    assets = [f"a{i}" for i in range(30)]
    orders = [store.order(store.rater(name), assets) for name in ("ana", "ben", "cem")]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == sorted(assets) for order in orders)
    assert orders[0] == Store(store.path).order(store.rater("ana"), reversed(assets))
    without = [asset for asset in orders[0] if asset != "a7"]
    assert store.order(store.rater("ana"), without) == without


def test_positions_in_the_order_are_spread_evenly(store):
    assets = [f"a{i}" for i in range(10)]
    first = [store.order(Rater(i, ""), assets)[0] for i in range(500)]
    counts = np.array([first.count(asset) for asset in assets])
    assert ((counts - 50) ** 2 / 50).sum() < 27.9  # chi-squared, 9 degrees of freedom, p = 0.001


def test_no_file_of_answers_is_named(tmp_path):
    with pytest.raises(ManifestError, match="nobody has rated"):
        Store(tmp_path / "none.sqlite", create=False)
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(ManifestError, match="no file of answers"):
        Store(tmp_path / "text.sqlite")
    with sqlite3.connect(tmp_path / "new.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ManifestError, match="schema 99"):
        Store(tmp_path / "new.sqlite")


def test_raters_at_once_lose_nothing(tmp_path):
    path, failures = tmp_path / "answers.sqlite", []

    def work(number):
        try:
            own = Store(path)  # as another process would
            rater = own.rater(f"rater {number}")
            for i in range(15):
                own.record(rater, f"a{i}", {"style": "yes" if (i + number) % 2 else "no", "object": "unsure"})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    votes = Store(path, create=False).votes()
    assert len(votes) == 8 * 15 * 2
    for number in range(8):
        mine = {v.asset: v.answer for v in votes if v.rater == f"rater {number}" and v.question == "style"}
        assert mine == {f"a{i}": "yes" if (i + number) % 2 else "no" for i in range(15)}


def test_a_file_opened_by_many_at_once_is_made_once(tmp_path):
    for attempt in range(10):
        path, secrets, failures = tmp_path / f"{attempt}.sqlite", [], []

        def work(path=path, secrets=secrets, failures=failures):
            try:
                secrets.append(Store(path).secret)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(set(secrets)) == 1


KILLED = """
import sys
from assetscore.studies.rating.store import Store
store = Store(sys.argv[1])
rater = store.rater("ana")
for i in range(100000):
    store.record(rater, f"a{i}", {"style": "yes", "object": "no"})
    print(i, flush=True)
"""


def test_a_killed_server_loses_no_answer_that_was_taken(tmp_path):
    path = tmp_path / "answers.sqlite"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    taken = -1
    for line in process.stdout:
        taken = int(line)
        if taken >= 25:
            os.kill(process.pid, signal.SIGKILL)
            break
    rest = process.stdout.read().split()
    process.wait()
    taken = int(rest[-1]) if rest else taken
    store = Store(path, create=False)
    answered = store.answered(store.rater("ana"))
    assert {f"a{i}" for i in range(taken + 1)} <= answered
    assert len(store.votes()) == 2 * len(answered)  # both answers of an asset, or neither


# the pages


def test_a_rater_from_the_first_page_to_the_votes_file(app, store, tmp_path):
    client = app.test_client()
    assert "6 textures" in client.get("/").get_data(as_text=True)
    assert client.get("/rate").location == "/"
    client = begin(app, "Ana")
    seen = []
    for done in range(6):
        page = client.get("/rate", follow_redirects=True).get_data(as_text=True)
        assert f"{done} of 6 answered" in page
        seen.append(token(page))
        assert answer(client).status_code == 303
    assert len(set(seen)) == 6
    page = client.get("/rate", follow_redirects=True).get_data(as_text=True)
    assert "Thank you, Ana" in page
    assert "All 6 of 6" in page
    write_votes(tmp_path / "votes.csv", store.votes())
    votes = read_votes(tmp_path / "votes.csv", known=[f"asset-{i}" for i in range(6)])
    assert len(votes.votes) == 12
    assert {(v.question, v.answer) for v in votes.votes} == set(BOTH.items())


def test_raters_at_once_through_the_pages(app, store):
    failures = []

    def work(number):
        try:
            client = begin(app, f"rater {number}")
            for _ in range(6):
                assert answer(client, style=("yes", "no", "unsure")[number % 3], object="yes").status_code == 303
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    votes = store.votes()
    assert len({(v.rater, v.asset, v.question) for v in votes}) == len(votes) == 10 * 6 * 2
    for vote in votes:
        if vote.question == "style":
            assert vote.answer == ("yes", "no", "unsure")[int(vote.rater.split()[1]) % 3]


def test_a_rater_comes_back_to_where_they_stopped(app, study, store):
    from assetscore.studies.rating.app import create_app

    client = begin(app, "Ana")
    answer(client)
    answer(client)
    waiting = token(client.get("/rate", follow_redirects=True).get_data(as_text=True))
    again = begin(create_app(study, Store(store.path)), "ANA")
    page = again.get("/rate", follow_redirects=True).get_data(as_text=True)
    assert "2 of 6 answered" in page
    assert token(page) == waiting


def test_nothing_tells_what_the_texture_is_or_what_others_said(app, study):
    ana, ben = begin(app, "Ana"), begin(app, "Ben")
    for _ in range(3):
        answer(ana)
    for client in (ana, ben):
        for path in ("/rate", "/"):
            response = client.get(path, follow_redirects=True)
            text = response.get_data(as_text=True) + str(response.headers)
            for secret in ("secret_model", "asset-", "manifest", "score", "similarity", str(study.folder)):
                assert secret not in text
    assert "Ana" not in ben.get("/rate", follow_redirects=True).get_data(as_text=True)
    assert "checked" not in ben.get("/rate", follow_redirects=True).get_data(as_text=True)
    # someone else under Ana's name is led on, and sees none of her answers
    page = begin(app, "Ana").get("/rate", follow_redirects=True).get_data(as_text=True)
    back = re.search(r'id="back" href="([^"]+)"', page).group(1)
    assert "checked" not in begin(app, "Ana").get(back).get_data(as_text=True)


def test_back_shows_my_own_last_answers_and_lets_me_change_them(app, store):
    client = begin(app, "Ana")
    answer(client, style="yes", object="no")
    back = re.search(
        r'id="back" href="([^"]+)"', client.get("/rate", follow_redirects=True).get_data(as_text=True)
    ).group(1)
    page = client.get(back).get_data(as_text=True)
    checked = re.findall(r'name="(\w+)" value="(\w+)" required checked', page)
    assert checked == [("style", "yes"), ("object", "no")]
    assert "answered this one already" in page
    client.post("/rate", data={**hidden(page), "style": "no", "object": "no"})
    assert {(v.question, v.answer) for v in store.votes()} == {("style", "no"), ("object", "no")}


def test_each_texture_has_an_address_of_its_own(app):
    """The browser's Back goes by addresses; one that is not mine to see yet leads to the one that is."""
    client = begin(app, "Ana")
    first = client.get("/rate").location
    answer(client)
    second = client.get("/rate").location
    assert first != second
    for address, shown in ((first, first), (second, second), ("/rate?item=none", second)):
        page = client.get(address, follow_redirects=True).get_data(as_text=True)
        assert token(page) in shown
    other = begin(app, "Ben").get("/rate").location
    unseen = next(f"/rate?item={t}" for t in tokens_of(app) if f"/rate?item={t}" not in (first, second, other))
    assert client.get(unseen).location == "/rate"


def tokens_of(app):
    """The addresses of all textures, from someone who answers everything."""
    client, seen = begin(app, "Everyone"), []
    for _ in range(6):
        seen.append(client.get("/rate").location.split("=")[1])
        answer(client)
    return seen


@pytest.mark.parametrize(
    "nothing", ["", " ", "\t ", "\u00a0", "\u200b", "\u2060\ufeff", "\u3164", "\u2800", "\u202e", "\u00ad"]
)
@pytest.mark.parametrize("column", ["category", "request"])
def test_a_text_that_cannot_be_seen_is_not_quoted(study_folder, store, column, nothing):
    from assetscore.studies.rating.app import create_app

    lines = [
        ["path", "category", "request", "asset_id", "art"],
        ["made/secret_model_0.png", "item", "ruby", "a", "item"],
    ]
    lines[1][lines[0].index(column)] = nothing
    with open(study_folder / "manifest.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    page = begin(create_app(read_study(study_folder), store), "Ana").get("/rate", follow_redirects=True)
    texts = [re.sub(r"<[^>]*>", "", part).strip() for part in headings(page.get_data(as_text=True))]
    expected = {
        "category": ["Asked for: ruby", "The game's own art", "Would it fit in beside the art shown?"],
        "request": ["A texture of category item", "The game's own art: item", "Would it fit in beside the art shown?"],
    }[column]
    assert texts[:3] == expected
    if column == "category":
        lines[1][2] = ""
        with open(study_folder / "manifest.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
        page = begin(create_app(read_study(study_folder), store), "Ana").get("/rate", follow_redirects=True)
        texts = [re.sub(r"<[^>]*>", "", part).strip() for part in headings(page.get_data(as_text=True))]
        assert (texts[0], texts[3]) == ("A texture", "Is it a recognisable, plausible object?")


def headings(page):
    return re.findall(r"<(?:h1|h2|legend)>(.*?)</(?:h1|h2|legend)>", page)


def test_further_back_no_answer_is_shown(app):
    client = begin(app, "Ana")
    first = token(client.get("/rate", follow_redirects=True).get_data(as_text=True))
    answer(client)
    answer(client, style="no", object="no")
    page = client.get(f"/rate?item={first}").get_data(as_text=True)
    assert token(page) == first
    assert "checked" not in page


@pytest.mark.parametrize("given", [{}, {"style": "yes"}, {"style": "yes", "object": "perhaps"}])
def test_half_an_answer_is_asked_again_and_kept_in_the_form(app, store, given):
    client = begin(app, "Ana")
    sent = hidden(client.get("/rate", follow_redirects=True).get_data(as_text=True))
    response = client.post("/rate", data={**sent, **given})
    assert response.status_code == 400
    text = response.get_data(as_text=True)
    assert "answer both questions" in text
    assert hidden(text) == sent
    assert text.count(" checked") == (given.get("style") == "yes")
    assert store.votes() == []


def test_a_form_speaks_for_whom_it_was_shown_to(app, store):
    """One browser profile, two people, one after the other: the first one's page is still open in a tab."""
    client = begin(app, "Ana")
    left_open = hidden(client.get("/rate", follow_redirects=True).get_data(as_text=True))
    client.post("/leave")
    nobody = client.post("/rate", data={**left_open, **BOTH})
    assert (nobody.status_code, store.votes()) == (409, [])
    assert "not kept" in nobody.get_data(as_text=True)
    assert 'name="name"' in nobody.get_data(as_text=True), "it asks for the name"
    client.post("/start", data={"name": "Ben"})
    refused = client.post("/rate", data={**left_open, **BOTH})
    text = refused.get_data(as_text=True)
    assert (refused.status_code, store.votes()) == (409, [])
    assert "That answer was not kept" in text
    assert "Ben" in text
    assert "Ana" not in text
    answer(client)
    assert {vote.rater for vote in store.votes()} == {"Ben"}
    client.post("/start", data={"name": "Ana"})
    assert client.post("/rate", data={**left_open, **BOTH}).status_code == 303, "it is hers again"
    assert {vote.rater for vote in store.votes()} == {"Ana", "Ben"}


@pytest.mark.parametrize(
    "change",
    [
        {"form": ""},
        {"form": "0" * 24},
        {"form": "\u00e9"},
        {"item": "0" * 24},
        {"item": "asset-0"},
        {"item": "", "form": ""},
        {"item": "another"},
    ],
    ids=str,
)
def test_a_form_that_was_not_shown_keeps_nothing(app, store, change):
    client = begin(app, "Ana")
    sent = hidden(client.get("/rate", follow_redirects=True).get_data(as_text=True))
    if change == {"item": "another"}:  # a texture of the study, but not the one this form was for
        source = re.findall(
            r"/texture/([0-9a-f]+)", begin(app, "Cem").get("/rate", follow_redirects=True).get_data(as_text=True)
        )
        change = {"item": next(t for t in [*source, *map(app_token(store), range(6))] if t != sent["item"])}
    response = client.post("/rate", data={**sent, **BOTH, **change})
    assert response.status_code == 409
    assert "That answer was not kept" in response.get_data(as_text=True)
    assert store.votes() == []
    assert client.get("/rate?item=" + "0" * 24).location == "/rate"


def app_token(store):
    return lambda number: store.token("item", f"asset-{number}")


def test_two_studies_in_one_browser_keep_apart(study, store, tmp_path):
    """A browser sends one host's cookies to every port of it."""
    pytest.importorskip("flask")
    from assetscore.studies.rating.app import create_app

    apps = create_app(study, store), create_app(study, Store(tmp_path / "other.sqlite"))
    names = [app.test_client().post("/start", data={"name": "Ana"}).headers["Set-Cookie"].split("=")[0] for app in apps]
    assert names[0] != names[1]


def test_two_servers_of_one_study_are_one(app, study, store):
    from assetscore.studies.rating.app import create_app

    client, other = begin(app, "Ana"), create_app(study, Store(store.path)).test_client()
    cookie = client.get_cookie(app.config["SESSION_COOKIE_NAME"])
    other.set_cookie(cookie.key, cookie.value)
    seen = []
    for turn in (client, other) * 3:
        seen.append(token(turn.get("/rate", follow_redirects=True).get_data(as_text=True)))
        assert answer(turn).status_code == 303
    assert len(set(seen)) == 6
    assert len(store.votes()) == 12


def test_the_page_of_a_large_study_takes_no_time_that_grows_with_the_answers_of_others(study, store):
    """2,000 textures, each answered by 10 others: a page costs less than a quarter second of processor time."""
    pytest.importorskip("flask")
    from assetscore.studies.rating.app import create_app

    item = next(iter(study.items.values()))
    large = replace(study, items={f"a{i}": replace(item, asset_id=f"a{i}") for i in range(2000)})
    others = [store.rater(f"r{i}").id for i in range(10)]
    with sqlite3.connect(store.path) as connection:
        connection.executemany(
            "INSERT INTO answer (rater, asset, question, answer, given) VALUES (?, ?, ?, 'yes', '')",
            [(other, f"a{i}", question) for other in others for i in range(2000) for question in BOTH],
        )
    client = begin(create_app(large, store), "Ana")
    used = []
    for _ in range(5):
        start = time.process_time()
        assert answer(client).status_code == 303
        used.append(time.process_time() - start)
    assert min(used) < 0.25


def test_texts_of_strangers_are_escaped(app, study):
    client = begin(app, "<i>Ana</i>")
    for _ in study.items:
        page = client.get("/rate", follow_redirects=True).get_data(as_text=True)
        assert "<i>Ana" not in page
        assert "<b>ruby" not in page
        answer(client)
    assert "<i>Ana" not in client.get("/rate", follow_redirects=True).get_data(as_text=True)


def test_pictures_come_by_token_only(app):
    client = begin(app, "Ana")
    page = client.get("/rate", follow_redirects=True).get_data(as_text=True)
    sources = re.findall(r'src="(/(?:texture|reference)/[0-9a-f]{24}\.png)"', page)
    assert len(set(sources)) == 6  # the texture, five references
    for source in sources:
        response = client.get(source)
        assert response.mimetype == "image/png"
        assert Image.open(io.BytesIO(response.data)).size == (16, 16)
    assert client.get("/texture/asset-0.png").status_code == 404
    assert client.get("/texture/../manifest.csv").status_code == 404


def test_other_sites_cannot_reach_in(app):
    client = begin(app, "Ana")
    assert client.get("/rate", headers={"Host": "evil.example"}).status_code == 400
    item = hidden(client.get("/rate", follow_redirects=True).get_data(as_text=True))
    for origin in ("http://evil.example", "null", "http://localhost:1"):  # "null": from a frame or a file
        evil = client.post("/rate", data={**item, **BOTH}, headers={"Origin": origin})
        assert evil.status_code == 403
        assert "Nothing was recorded" in evil.get_data(as_text=True)
    assert hidden(client.get("/rate", follow_redirects=True).get_data(as_text=True)) == item  # not a step further
    assert client.post("/rate", data={"item": "x" * 20_000}).status_code == 413
    headers = client.get("/rate", follow_redirects=True).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert "SameSite=Lax" in app.test_client().post("/start", data={"name": "x"}).headers["Set-Cookie"]


def test_a_deleted_rater_begins_anew(app, store):
    client = begin(app, "Ana")
    with sqlite3.connect(store.path) as connection:
        connection.execute("DELETE FROM rater")
    assert client.get("/rate").location == "/"


def test_without_flask_the_error_says_what_to_install(study, store, monkeypatch):
    from assetscore.errors import MissingExtraError
    from assetscore.studies.rating import app as module

    monkeypatch.setitem(sys.modules, "flask", None)
    with pytest.raises(MissingExtraError, match=r"assetscore\[study\]"):
        module.create_app(study, store)


def test_importing_studies_needs_no_web_framework():
    code = (
        "import sys, json, assetscore.studies.rating.app, assetscore.studies.agreement; "
        "print(json.dumps([m for m in ('flask', 'waitress', 'torch', 'faiss', 'matplotlib') if m in sys.modules]))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == []
