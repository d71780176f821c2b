"""The rating page in a real browser, served by the command's own server: from the first page to the votes file."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from assetscore.studies.rating.store import Store
from assetscore.studies.votes import read_votes, write_votes

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SERVER = """
import logging, sys
from assetscore.studies.rating.app import serve
from assetscore.studies.rating.store import Store
from assetscore.studies.rating.study import read_study
logging.basicConfig(level=logging.INFO, format="%(message)s")
serve(read_study(sys.argv[1]), Store(sys.argv[1] + "/answers.sqlite"), port=int(sys.argv[2]))
"""


@contextmanager
def serving(folder, port=0, kill=False):
    """The server in a process of its own; yields its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder), str(port)], stderr=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    try:
        for line in process.stderr:
            if found := re.search(r"http://\S+", line):
                yield found.group()
                break
        else:
            pytest.fail("the server did not start")
    finally:
        process.send_signal(signal.SIGKILL if kill else signal.SIGINT)
        process.wait(timeout=10)
        process.stderr.close()


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser test")
    pytest.importorskip("flask", reason="flask is not installed: no rating page")
    pytest.importorskip("waitress", reason="waitress is not installed: no rating page")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no Chromium on this machine: no browser test")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def rater(browser, url, name, **options):
    """A browser of their own for one rater; fails on any script error or refused resource."""
    context = browser.new_context(**options)
    context.set_default_timeout(20_000)
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(url)
    page.get_by_label("Your name or code").fill(name)
    page.get_by_role("button", name="Begin").click()
    yield page
    assert problems == []
    context.close()


def progress(page, done):
    """Wait until so many are answered and the page listens to keys."""
    page.locator("fieldset.current").wait_for()
    page.get_by_text(f"{done} of 6 answered").wait_for()


def pixel_ratio(page):
    """How many screen pixels one pixel of the texture takes, across and down, and how it is enlarged."""
    return page.evaluate(
        "() => { const t = document.getElementById('texture'); const r = t.getBoundingClientRect();"
        " return [r.width / t.naturalWidth, r.height / t.naturalHeight, getComputedStyle(t).imageRendering]; }"
    )


def test_by_keys_from_the_first_page_to_the_votes_file(browser, study_folder, tmp_path):
    with serving(study_folder) as url, rater(browser, url, "Ana") as page:
        for done in range(6):
            progress(page, done)
            page.keyboard.press("y")
            page.keyboard.press("n" if done % 2 else "u")
            page.keyboard.press("Enter")
        page.get_by_text("Thank you, Ana").wait_for()
    write_votes(tmp_path / "votes.csv", Store(study_folder / "answers.sqlite", create=False).votes())
    votes = read_votes(tmp_path / "votes.csv")
    assert [vote.answer for vote in votes.votes if vote.question == "style"] == ["yes"] * 6
    assert [vote.answer for vote in votes.votes if vote.question == "object"] == ["unsure", "no"] * 3


def test_by_mouse_with_a_change_of_mind(browser, study_folder):
    with serving(study_folder) as url, rater(browser, url, "Ben") as page:
        progress(page, 0)
        assert pixel_ratio(page) == [16, 16, "pixelated"]
        style = page.get_by_role("group", name="Would it fit in beside the art shown?")
        style.get_by_role("radio", name="no", exact=True).check()
        page.get_by_role("button", name="Next").click()  # the second question is open: the page stays
        progress(page, 0)
        page.keyboard.press("y")
        page.get_by_role("button", name="Next").click()
        progress(page, 1)
        page.get_by_role("link", name="Back").click()
        page.locator("input[name=style][value=no]:checked").wait_for(state="attached")
        page.locator("label", has=page.locator("input[name=style][value=unsure]")).click()
        page.get_by_role("button", name="Next").click()
        progress(page, 1)
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert {(vote.question, vote.answer) for vote in votes} == {("style", "unsure"), ("object", "yes")}


def test_on_a_phone_everything_is_in_reach(browser, study_folder):
    phone = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
    with serving(study_folder) as url, rater(browser, url, "Cem", **phone) as page:
        progress(page, 0)
        width, height = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert width <= height, "the page must not scroll sideways"
        across, down, rendering = pixel_ratio(page)
        assert across == down
        assert rendering == "pixelated"
        for selector in (".choices label", "#next"):
            for box in [element.bounding_box() for element in page.locator(selector).all()]:
                assert min(box["width"], box["height"]) >= 44, "a finger needs 44 pixels"
        assert page.locator("#next").bounding_box()["y"] + 48 <= 740, "no scrolling to go on"
        for question, answer in (("style", "yes"), ("object", "no")):
            page.locator("label", has=page.locator(f"input[name={question}][value={answer}]")).tap()
        page.locator("#next").tap()
        progress(page, 1)


def test_raters_at_once_and_a_server_that_dies(browser, study_folder):
    with serving(study_folder, kill=True) as url:
        port = int(url.rsplit(":", 1)[1])
        with rater(browser, url, "Ana") as ana, rater(browser, url, "Ben") as ben:
            for done in range(3):
                for page, keys in ((ana, "yy"), (ben, "nu")):
                    progress(page, done)
                    for key in keys:
                        page.keyboard.press(key)
                    page.keyboard.press("Enter")
            for page in (ana, ben):
                progress(page, 3)
            cookies = ana.context.storage_state()
    time.sleep(0.2)
    with serving(study_folder, port) as url:
        context = browser.new_context(storage_state=cookies)  # Ana's browser is still who it was
        page = context.new_page()
        page.goto(url)
        progress(page, 3)
        context.close()
        with rater(browser, url, "ben") as page:  # Ben comes back by his name
            progress(page, 3)
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert len(votes) == 2 * 3 * 2
    assert {(v.rater, v.question, v.answer) for v in votes} == {
        ("Ana", "style", "yes"),
        ("Ana", "object", "yes"),
        ("Ben", "style", "no"),
        ("Ben", "object", "unsure"),
    }
