"""The rating page in a real browser, served as the command serves it: from the first page to the votes file."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager

import pytest
from PIL import Image

from assetscore.studies.rating.store import Store
from assetscore.studies.votes import read_votes, write_votes

from ..browser import Browser, find_chromium
from .serving import serving as server

pytest.importorskip("flask", reason="no flask: the rating page needs the extra 'study'")
pytest.importorskip("waitress", reason="no waitress: the rating page needs the extra 'study'")
CHROMIUM = find_chromium()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: set CHROMIUM, or install one, to test the rating page"),
]


@contextmanager
def serving(folder, port=0, kill=False):
    """The server in a process of its own; yields its address."""
    with server(folder, port, kill) as (url, _):
        yield url


class Rater:
    """Someone at a browser of their own."""

    def __init__(self, browser):
        self.browser = browser

    def until(self, expression):
        """Wait until it is true, across a change of page."""
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.browser.evaluate(expression):
                    return
            except RuntimeError:
                pass  # the page was just going
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.02)

    def begin(self, url, name):
        self.browser.open(url)
        self.browser.evaluate("document.getElementById('name').focus()")
        self.browser.write(name)
        self.click("button.main")

    def answered(self, done, total=6):
        """Wait until the page says so and listens to keys."""
        text = json.dumps(f"{done} of {total} answered")
        self.until(
            f"document.getElementById('progress')?.textContent === {text} && !!document.querySelector('fieldset.current')"
        )

    def box(self, selector):
        return self.browser.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest'}});"
            " const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()"
        )

    def click(self, selector):
        x, y, width, height = self.box(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call(
                "Input.dispatchMouseEvent", type=kind, x=x + width / 2, y=y + height / 2, button="left", clickCount=1
            )

    def go(self, move):
        """The browser's own Back and Forward, which go by its list of pages."""
        history = self.browser.call("Page.getNavigationHistory")
        place = history["currentIndex"] + {"back": -1, "forward": 1}[move]
        self.browser.call("Page.navigateToHistoryEntry", entryId=history["entries"][place]["id"])

    def tap(self, selector):
        x, y, width, height = self.box(selector)
        points = [{"x": x + width / 2, "y": y + height / 2}]
        self.browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=points)
        self.browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def keys(self, *keys):
        for key in keys:
            self.browser.press(key)

    def enlargement(self):
        """How many screen pixels one pixel of the texture takes, across and down, and how it is enlarged."""
        self.until("document.getElementById('texture').naturalWidth > 0")
        return self.browser.evaluate(
            "(() => { const t = document.getElementById('texture'); const r = t.getBoundingClientRect();"
            " return [r.width / t.naturalWidth, r.height / t.naturalHeight, getComputedStyle(t).imageRendering]; })()"
        )


@contextmanager
def rater(width=1280, height=900):
    """A rater at a fresh browser; no script error and no refused resource may have come up."""
    with Browser(CHROMIUM, width, height) as browser:
        yield Rater(browser)
        assert browser.complaints() == []


def choice(question, answer):
    return f"label:has(input[name={question}][value={answer}])"


def test_by_keys_from_the_first_page_to_the_votes_file(study_folder, tmp_path):
    with serving(study_folder) as url, rater() as ana:
        ana.begin(url, "Ana")
        for done in range(6):
            ana.answered(done)
            ana.keys("y", "n" if done % 2 else "u", "Enter")
        ana.until("document.body.textContent.includes('Thank you, Ana')")
    write_votes(tmp_path / "votes.csv", Store(study_folder / "answers.sqlite", create=False).votes())
    votes = read_votes(tmp_path / "votes.csv")
    assert [vote.answer for vote in votes.votes if vote.question == "style"] == ["yes"] * 6
    assert [vote.answer for vote in votes.votes if vote.question == "object"] == ["unsure", "no"] * 3


def test_by_mouse_with_a_change_of_mind(study_folder):
    with serving(study_folder) as url, rater() as ben:
        ben.begin(url, "Ben")
        ben.answered(0)
        assert ben.enlargement() == [16, 16, "pixelated"]
        ben.click(choice("style", "no"))
        ben.click("#next")  # the second question is open: the page stays
        time.sleep(0.3)
        ben.answered(0)
        ben.click(choice("object", "yes"))
        ben.click("#next")
        ben.answered(1)
        ben.click("#back")
        ben.until("document.querySelector('input[name=style][value=no]').checked")
        ben.click(choice("style", "unsure"))
        ben.click("#next")
        ben.until("!document.querySelector('input:checked')")
        ben.answered(1)
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert {(vote.question, vote.answer) for vote in votes} == {("style", "unsure"), ("object", "yes")}


ITEM = "document.querySelector('input[name=item]').value"
CHECKED = "[...document.querySelectorAll('input:checked')].map((e) => e.name + ' ' + e.value).join()"


@pytest.mark.parametrize("scripts", [True, False])
def test_the_browsers_own_back_and_forward_carry_no_answer_to_another_texture(study_folder, scripts):
    with serving(study_folder) as url, rater() as ana:
        ana.begin(url, "Ana")
        ana.answered(0)
        ana.browser.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        seen = []
        for done in range(3):
            ana.until(f"document.getElementById('progress')?.textContent === '{done} of 6 answered'")
            seen.append(ana.browser.evaluate(ITEM))
            for question in ("style", "object"):
                ana.click(choice(question, "unsure"))
            ana.click("#next")
        ana.until("document.getElementById('progress')?.textContent === '3 of 6 answered'")
        seen.append(ana.browser.evaluate(ITEM))
        assert ana.browser.evaluate(CHECKED) == ""
        for move, place in [("back", 2), ("back", 1), ("forward", 2), ("forward", 3)]:
            ana.go(move)
            ana.until(f"document.querySelector('input[name=item]')?.value === '{seen[place]}'")
            ana.until("document.readyState === 'complete'")
            # my last answers are shown again where I may change them, on the texture they were on
            assert ana.browser.evaluate(CHECKED) == ("style unsure,object unsure" if place == 2 else "")
        ana.click(choice("style", "no"))
        ana.click(choice("object", "yes"))
        ana.click("#next")
        ana.until("document.getElementById('progress')?.textContent === '4 of 6 answered'")
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert [vote.answer for vote in votes] == ["unsure"] * 6 + ["no", "yes"]


@pytest.mark.parametrize(
    ("width", "height", "factor"),
    [(360, 740, 16), (375, 667, 12), (375, 553, 8), (667, 375, 8), (844, 390, 8), (1024, 600, 12)],
)
def test_on_a_phone_everything_is_in_reach(study_folder, width, height, factor):
    with serving(study_folder) as url, rater(width, height) as cem:
        cem.browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
        cem.begin(url, "Cem of the very long name, which has no end at all")
        cem.answered(0)
        assert cem.enlargement() == [factor, factor, "pixelated"]
        assert cem.browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
        cem.until("document.getElementById('next').getBoundingClientRect().bottom <= innerHeight")  # once all is loaded
        smallest = cem.browser.evaluate(
            "Math.min(...[...document.querySelectorAll('.choices label, #next, .leave button')].flatMap((e) =>"
            " { const r = e.getBoundingClientRect(); return [r.width, r.height]; }))"
        )
        assert smallest >= 44, "a finger needs 44 pixels"
        for selector in (choice("style", "yes"), choice("object", "no"), "#next"):
            cem.tap(selector)
        cem.answered(1)
        inside = "(e) => { const r = e.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth; }"
        assert cem.browser.evaluate(f"[...document.querySelectorAll('header *, .answers *')].every({inside})")
        cem.tap("#back")
        cem.until("document.body.textContent.includes('answered this one already')")
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert {(vote.question, vote.answer) for vote in votes} == {("style", "yes"), ("object", "no")}


SIZES = [(1, 1), (3, 200), (200, 3), (24, 24), (100, 100), (256, 16), (512, 512)]


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (375, 667), (667, 375)])
def test_no_size_is_enlarged_by_a_fraction_or_leaves_the_screen(study_folder, width, height):
    (study_folder / "manifest.csv").unlink()
    (study_folder / "textures" / "item").mkdir(parents=True)
    for size in SIZES:
        Image.new("RGB", size, (200, 40, 40)).save(study_folder / "textures" / "item" / f"{size[0]}x{size[1]}.png")
    with serving(study_folder) as url, rater(width, height) as ana:
        ana.begin(url, "Ana")
        for done in range(len(SIZES)):
            ana.answered(done, len(SIZES))
            across, down, rendering = ana.enlargement()
            if across >= 1:
                assert across == pytest.approx(down) == pytest.approx(round(across))
                assert rendering == "pixelated" or across == 1
            assert ana.browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert ana.browser.evaluate(
                "document.getElementById('texture').getBoundingClientRect().bottom <= innerHeight"
            )
            ana.keys("y", "y", "Enter")


def test_two_people_one_after_the_other_in_one_browser(study_folder):
    """Ana's page stays open in a tab; Ben takes over in another one; then Ana's page is sent."""
    with serving(study_folder) as url, Browser(CHROMIUM) as browser:
        ana = ben = Rater(browser)
        ana.begin(url, "Ana")
        ana.answered(0)
        with browser.tab():
            browser.open(url)
            ben.click(".leave button")
            ben.until("!!document.getElementById('name')")
            ben.begin(url, "Ben")
            ben.answered(0)
        ana.keys("y", "y", "Enter")
        ana.until("document.querySelector('h1').textContent === 'That answer was not kept'")
        assert browser.evaluate("document.body.textContent.includes('now answers for Ben')")
        assert Store(study_folder / "answers.sqlite").votes() == []
        ben.click("#next")
        ben.answered(0)
        ben.keys("n", "n", "Enter")
        ben.answered(1)
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert {(vote.rater, vote.answer) for vote in votes} == {("Ben", "no")}


def test_every_control_can_be_seen_and_reached_by_keyboard(study_folder):
    with serving(study_folder) as url, rater() as ana:
        ana.begin(url, "Ana")
        ana.answered(0)
        ana.keys("y", "y", "Enter")
        ana.answered(1)
        assert ana.browser.evaluate(CONTRAST) >= 4.5
        focused = []
        for _ in range(5):
            ana.browser.press("Tab")
            focused.append(ana.browser.evaluate(FOCUSED))
        assert [name for name, _ in focused] == ["stop here", "style", "object", "back", "next"]
        assert all(width == "3px" for _, width in focused), "the focus is not shown"


# the smallest contrast of any text with what lies behind it, by the formula of WCAG 2
CONTRAST = """
(() => {
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => {
    const v = c[i] / 255; return sum + w * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); }, 0);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
  const texts = [...document.querySelectorAll('body *')].filter((e) => e.offsetParent &&
    [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  return Math.min(...texts.map((e) => {
    const [a, b] = [light(numbers(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); }));
})()
"""
FOCUSED = """
(() => { const e = document.activeElement;
  const shown = e.type === 'radio' ? e.nextElementSibling : e;
  return [e.type === 'radio' ? e.name : e.id || e.textContent, getComputedStyle(shown).outlineWidth]; })()
"""


def test_raters_at_once_and_a_server_that_dies(study_folder):
    with rater() as ana, rater() as ben:
        with serving(study_folder, kill=True) as url:
            ana.begin(url, "Ana")
            ben.begin(url, "Ben")
            for done in range(3):
                for who, keys in ((ana, "yy"), (ben, "nu")):
                    who.answered(done)
                    who.keys(*keys, "Enter")
            for who in (ana, ben):
                who.answered(3)
        with serving(study_folder, int(url.rsplit(":", 1)[1])) as url:
            ana.browser.open(url)  # her browser still knows who she is
            ana.answered(3)
            ben.browser.call("Network.clearBrowserCookies")
            ben.begin(url, "ben")  # his does not: his name brings him back
            ben.answered(3)
    votes = Store(study_folder / "answers.sqlite", create=False).votes()
    assert len(votes) == 2 * 3 * 2
    assert {(vote.rater, vote.question, vote.answer) for vote in votes} == {
        ("Ana", "style", "yes"),
        ("Ana", "object", "yes"),
        ("Ben", "style", "no"),
        ("Ben", "object", "unsure"),
    }
