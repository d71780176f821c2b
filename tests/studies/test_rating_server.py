"""The rating page's server, killed while answers come in from several people at once."""

from __future__ import annotations

import http.cookiejar
import os
import re
import signal
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from http.client import HTTPException

import pytest

from assetscore.studies.rating.store import Store

from .serving import serving

pytest.importorskip("flask", reason="no flask: the rating page needs the extra 'study'")
pytest.importorskip("waitress", reason="no waitress: the rating page needs the extra 'study'")


class Visitor:
    """A browser without a screen."""

    def __init__(self, url):
        self.url = url
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)

    def get(self, path):
        with self.opener.open(self.url + path, timeout=10) as response:
            return response.read().decode()

    def post(self, path, **data):
        with self.opener.open(self.url + path, urllib.parse.urlencode(data).encode(), timeout=10) as response:
            return response.read().decode()


def hidden(page):
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([0-9a-f]+)"', page))


@pytest.mark.slow
def test_a_server_killed_amid_answers_keeps_what_it_confirmed(study_folder):
    confirmed, begun = Counter(), threading.Event()

    def rate(url, name):
        visitor = Visitor(url)
        try:
            page = visitor.post("/start", name=name)
            while True:
                # answering anew is adding a row, so that the stream does not end with the study
                sent = hidden(page) or hidden(visitor.get(re.search(r'id="back" href="([^"]+)"', page).group(1)))
                page = visitor.post("/rate", **sent, style="yes", object="no")
                confirmed[name] += 1
                if confirmed[name] == 8:
                    begun.set()
        except (OSError, HTTPException):
            return  # the server is dead, maybe amid a page

    with serving(study_folder, kill=True) as (url, process):
        threads = [threading.Thread(target=rate, args=(url, f"rater {i}")) for i in range(4)]
        for thread in threads:
            thread.start()
        assert begun.wait(60)
        os.kill(process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(30)
    store = Store(study_folder / "answers.sqlite", create=False)
    with store._open() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute(
            "SELECT name, question, count(*) FROM answer JOIN rater ON rater.id = answer.rater GROUP BY name, question"
        ).fetchall()
    kept = {(name, question): count for name, question, count in rows}
    for name, count in confirmed.items():
        assert kept[name, "style"] == kept[name, "object"], "half an answer was kept"
        assert count <= kept[name, "style"] <= count + 1, "only the one under way may be kept without a confirmation"
    with serving(study_folder) as (url, _):
        page = Visitor(url).post("/start", name="rater 0")
        done = min(6, len(store.answered(store.rater("rater 0"))))
        assert f"{done} of 6 answered" in page


@pytest.mark.slow
def test_two_servers_on_one_folder_at_once(study_folder):
    failures = []

    def rate(url, name, answer):
        try:
            visitor = Visitor(url)
            page = visitor.post("/start", name=name)
            for _ in range(6):
                page = visitor.post("/rate", **hidden(page), style=answer, object=answer)
            assert "Thank you" in page
        except BaseException as error:
            failures.append(error)

    with serving(study_folder) as (first, _), serving(study_folder) as (second, _):
        people = [((first, second)[i % 2], f"rater {i}", ("yes", "no", "unsure")[i % 3]) for i in range(6)]
        threads = [threading.Thread(target=rate, args=person) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert Counter((vote.rater, vote.answer) for vote in votes) == {(name, said): 12 for _, name, said in people}
