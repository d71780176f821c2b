"""The report: it says what the rows say, hostile names stay text, and it works in a browser without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from markupsafe import escape
from numpy.typing import NDArray

from assetscore.encoders.base import Encoder
from assetscore.errors import ProfileMismatchError, UsageError
from assetscore.images import Asset, Texture, enlarge, load
from assetscore.profile import Profile
from assetscore.references import ReferenceSet
from assetscore.report import write_report
from assetscore.report.pictures import LONGEST, Album, png_bytes
from assetscore.scorer import Item, Scorer
from assetscore.studies.ablation import ablation
from assetscore.table import ResultTable

from .browser import Browser, find_chromium

LONG = "a very long name " * 18
RTL = "\u202egnp.drows\u202c עברית"
HOSTILE = [
    "<script>window.pwned=1</script>",
    "\"><img src=x onerror='window.pwned=1'>",
    "</script><script>window.pwned=1</script>",
    "';window.pwned=1;//",
    "{{ 7*7 }}{% raw %}",
    "<!--<script>",
    RTL,
    LONG,
    "x" * 300,
    "constructor",
    "__proto__",
    "&lt;b&gt;",
    "javascript:window.pwned=1",
    "\ud800 half a pair",
]


class Toy(Encoder):
    """A conditional encoder that a test can follow: mean colours, turned by a number that the factor gives."""

    name = "toy"
    conditional = True
    fingerprint = "toy/1"

    def embed(self, images: Sequence[Asset | Texture], factors: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        pixels = [load(image).pixels.reshape(-1, 4).astype(float) for image in images]
        rows = np.array([[*part.mean(0), *part.std(0), 20.0] for part in pixels])
        out = {}
        for factor in factors:
            rows_of_factor = np.roll(rows, len(factor) % 3, axis=1) * np.linspace(
                1, 1 + len(factor) / 20, rows.shape[1]
            )
            out[factor] = (rows_of_factor / np.linalg.norm(rows_of_factor, axis=1, keepdims=True)).astype(np.float32)
        return out


def picture(seed: int, size: int = 16, warm: bool = True) -> NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    pixels = np.zeros((size, size, 4), np.uint8)
    pixels[2:-2, 2:-2, :3] = rng.integers(60, 200, 3) + rng.integers(-50, 50, (size - 4, size - 4, 3))
    pixels[2:-2, 2:-2, 2] = pixels[2:-2, 2:-2, 2] // (4 if warm else 1)
    pixels[2:-2, 2:-2, 3] = 255
    return pixels


@pytest.fixture(scope="module")
def profile() -> Profile:
    triples = [
        (f"{kind}/r{i}.png", kind, picture(i + 100 * n)) for n, kind in enumerate(("item", "block")) for i in range(24)
    ]
    return Profile.build(ReferenceSet.from_textures(triples, name="toy game"), Toy(), k=3)


@pytest.fixture(scope="module")
def table(profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> ResultTable:
    """Every status, every hostile name, two groups."""
    folder = tmp_path_factory.mktemp("assets")
    items = []
    for i, name in enumerate(HOSTILE):
        path = folder / f"{i}.png"
        path.write_bytes(png_bytes(picture(1000 + i, warm=i % 2 == 0)))
        kind = "item" if i % 3 else "block"
        items.append(Item(path, kind, request=name if i % 4 == 0 else None, asset_id=name, path=str(path), group="one"))
    for i in range(6):
        items.append(Item(picture(2000 + i, warm=False), "item", asset_id=f"cold {i}", group=HOSTILE[i]))
    broken = folder / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\nno more")
    items += [
        Item(folder / "gone.png", "item", asset_id="gone", path=str(folder / "gone.png"), group="one"),
        Item(broken, "item", asset_id="broken", path=str(broken), group="one"),
        Item(np.zeros((16, 16, 4), np.uint8), "item", asset_id="empty", group="one"),
        Item(picture(3), "item", asset_id="copy", group="one"),
        Item(picture(3000), "constructor", asset_id="no such category", group="one"),
    ]
    return ResultTable.from_scores(Scorer(profile).stream(items), profile)


@pytest.fixture(scope="module")
def report(table: ResultTable, profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(table, path, profile=profile, title="<b>Title</b> & more")
    return path


def data_of(path: Path) -> dict[str, Any]:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.S)
    return dict(json.loads(text))


# Without a browser


def test_two_configurations_with_hostile_names(table: ResultTable, profile: Profile, tmp_path: Path) -> None:
    rows = [replace(row, task=f"t{i % 3}", group=HOSTILE[i % 2]) for i, row in enumerate(table)]
    (found,) = ablation(rows, *HOSTILE[:2])
    write_report(ResultTable(tuple(rows)), tmp_path / "r.html", profile=profile, ablation=found)
    page = (tmp_path / "r.html").read_text("utf-8")
    section = page[page.index("Two configurations") : page.index('id="assets"')]
    assert "Difference over 3 tasks" in section
    for name in HOSTILE[:2]:
        assert f"<bdi>{escape(name)}</bdi>" in section
    for measure, (first, second) in found.rates.items():
        assert f"<b>{first.value:.2f}</b>" in section, measure
        assert f"<b>{second.value:.2f}</b>" in section, measure


class _Addresses(HTMLParser):
    found: ClassVar[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loading = ("src", "srcset", "href", "action", "data", "poster", "background", "xlink:href")
        self.found += [value or "" for name, value in attrs if name in loading]


def test_the_page_names_nothing_outside_itself(report: Path) -> None:
    page = report.read_text("utf-8")
    parser = _Addresses()
    parser.feed(page)
    assert "data:," in parser.found, "the icon, which a browser would ask for"
    assert all(address.startswith(("#", "data:")) for address in parser.found)
    assert "url(" not in page
    assert "@import" not in page


def test_the_policy_allows_the_pages_own_script_and_no_other(report: Path) -> None:
    page = report.read_text("utf-8")
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "script-src 'unsafe-inline'" not in policy


def test_every_row_is_there_with_its_numbers(report: Path, table: ResultTable) -> None:
    rows = data_of(report)["rows"]
    assert len(rows) == len(table)
    for shown, row in zip(rows, table, strict=True):
        assert shown["id"].encode("utf-16", "surrogatepass") == row.asset_id.encode("utf-16", "surrogatepass")
        assert (shown["status"], shown["reason"], shown["pass"]) == (row.status, row.reason, row.both_pass)
        for number, value in zip(
            shown["style"], (row.style_s, row.style_tau, row.style_margin, row.style_p), strict=False
        ):
            assert (number is None) == (value is None)
            assert number is None or number == pytest.approx(value, abs=1e-6)


def test_the_pictures_are_the_assets_own_pixels(report: Path, table: ResultTable, profile: Profile) -> None:
    data = data_of(report)

    def pixels(place: int) -> NDArray[np.uint8]:
        return load(base64.b64decode(data["pictures"][place]["src"].split(",")[1])).pixels

    checked = 0
    for shown, row in zip(data["rows"], table, strict=True):
        if row.path and row.status == "scored":
            assert np.array_equal(pixels(shown["picture"]), load(row.path).pixels)
            checked += 1
        for place, name in zip(shown["nearest"], row.nearest, strict=True):
            reference = data["references"][place]
            texture = profile.texture(name)
            assert texture is not None
            assert reference["id"] == name
            assert np.array_equal(pixels(reference["picture"]), texture.native)
    assert checked == len(HOSTILE)


def test_pictures_given_come_before_the_path_and_a_missing_one_is_none(table: ResultTable, tmp_path: Path) -> None:
    given = load(picture(77))
    gone = replace(table.rows[1], path=str(tmp_path / "deleted since.png"))
    first = replace(table.rows[0], asset_id="given")
    write_report(ResultTable((first, gone), table.profile), tmp_path / "r.html", images={"given": given})
    data = data_of(tmp_path / "r.html")
    place = data["rows"][0]["picture"]
    assert np.array_equal(load(base64.b64decode(data["pictures"][place]["src"].split(",")[1])).pixels, given.pixels)
    assert data["rows"][1]["picture"] is None


@pytest.mark.parametrize("colours", [1, 2, 200, 400])
@pytest.mark.parametrize("alpha", [False, True])
def test_png_files_lose_nothing(colours: int, alpha: bool) -> None:
    rng = np.random.default_rng(colours)
    table = rng.integers(0, 256, (colours, 4), np.uint8)
    table[:, 3] = table[:, 3] if alpha else 255
    pixels = table[rng.integers(0, colours, (40, 30))]
    from io import BytesIO

    from PIL import Image

    assert np.array_equal(np.asarray(Image.open(BytesIO(png_bytes(pixels))).convert("RGBA")), pixels)


def test_enlargements_are_one_picture_and_large_ones_are_reduced() -> None:
    album = Album()
    small = picture(5, 32)
    assert album.add(load(small)) == album.add(load(enlarge(small, 2))) == 0
    album.add(load(np.random.default_rng(0).integers(0, 255, (796, 800, 3), np.uint8)))
    assert [(p["w"], p["h"]) for p in album.pictures] == [(32, 32), (LONGEST, 191)]
    assert album.add(None) is None


def test_the_same_rows_give_the_same_file(table: ResultTable, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report(table, tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_another_alpha_is_judged_again_and_never_only_claimed(
    table: ResultTable, profile: Profile, tmp_path: Path
) -> None:
    strict = table.rethreshold(alpha=0.4, profile=profile)
    assert [row.both_pass for row in strict] != [row.both_pass for row in table]
    with pytest.raises(UsageError, match="pass the alpha, k and rule"):
        write_report(strict, tmp_path / "r.html", profile=profile)
    for rows in (strict, table):
        write_report(rows, tmp_path / "r.html", profile=profile, alpha=0.4)
        assert [row["pass"] for row in data_of(tmp_path / "r.html")["rows"]] == [row.both_pass for row in strict]
        assert "α = 0.4" in (tmp_path / "r.html").read_text("utf-8")


def test_rows_of_another_encoder_are_refused(table: ResultTable, profile: Profile, tmp_path: Path) -> None:
    rows = tuple(replace(row, encoder="other/1") for row in table.rows)
    with pytest.raises(ProfileMismatchError, match=r"other/1.*toy/1"):
        write_report(ResultTable(rows), tmp_path / "r.html", profile=profile)


def test_a_column_that_is_none_is_refused(table: ResultTable, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="colour"):
        write_report(table, tmp_path / "r.html", by="colour")


def test_what_is_promised_and_what_is_not_is_said(report: Path) -> None:
    text = (
        re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", report.read_text("utf-8")))
        .replace("\xa0", " ")
        .replace("&nbsp;", " ")
    )
    assert "at most 15 % is rejected by a check" in text
    assert "by either of the two checks, at most 30 %" in text
    assert "Which share of art that does not belong is caught" in text
    assert "toy/1" in text


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium: set CHROMIUM, or install one, to test the report in a browser")
    with Browser(path) as browser:
        yield browser


def open_page(browser: Browser, path: Path, fragment: str = "") -> None:
    browser.open("about:blank")
    browser.open(path.as_uri() + fragment)
    browser.wait_for("document.querySelector('.card, .nothing') !== null")


def shown(browser: Browser) -> list[int]:
    """Which rows have a card, in their order."""
    cards = "[...document.querySelectorAll('.card')].map((card) => +card.id.replace('asset-', ''))"
    return list(browser.evaluate(cards))


def choose(browser: Browser, name: str, value: str) -> None:
    browser.evaluate(f"document.getElementById('{name}').value = {json.dumps(value)}")
    browser.evaluate(f"document.getElementById('{name}').dispatchEvent(new Event('change'))")


@pytest.mark.browser
def test_the_first_screen_answers(browser: Browser, report: Path, table: ResultTable) -> None:
    browser.resize(1280, 800)
    open_page(browser, report)
    passed = sum(row.both_pass is True for row in table)
    assert browser.evaluate("document.querySelector('.answer').textContent") == f"{passed} of {len(table)} belong"
    assert browser.evaluate("document.querySelector('h1').textContent") == "<b>Title</b> & more"
    assert shown(browser)[0] == min(
        (i for i, row in enumerate(table) if row.style_margin is not None),
        key=lambda i: table.rows[i].style_margin or 0,
    )
    for part in (".answer", "#mine", ".statuses"):
        assert browser.evaluate(f"document.querySelector('{part}').getBoundingClientRect().bottom") < 800, part
    assert browser.complaints() == []


KEYS = {
    "margin": lambda row: row.style_margin,
    "p": lambda row: row.style_p,
    "sem-margin": lambda row: row.sem_margin,
    "sem-p": lambda row: row.sem_p,
    "given": lambda row: 0,
}


@pytest.mark.browser
@pytest.mark.parametrize("key", KEYS)
def test_sorting(browser: Browser, report: Path, table: ResultTable, key: str) -> None:
    open_page(browser, report)
    choose(browser, "sort", key)
    values = [KEYS[key](row) for row in table]
    numbered = [i for i, value in enumerate(values) if value is not None]
    without = [i for i, value in enumerate(values) if value is None]
    upwards = sorted(numbered, key=lambda i: round(values[i], 6))
    assert shown(browser) == upwards + without
    browser.evaluate("document.getElementById('direction').click()")
    downwards = sorted(numbered, key=lambda i: -round(values[i], 6)) if key != "given" else numbered[::-1]
    assert shown(browser) == downwards + without


@pytest.mark.browser
@pytest.mark.parametrize("key", ["name", "category", "group"])
def test_sorting_by_words(browser: Browser, report: Path, table: ResultTable, key: str) -> None:
    open_page(browser, report)
    choose(browser, "sort", key)
    order = shown(browser)
    assert sorted(order) == list(range(len(table)))
    plain = [i for i in order if table.rows[i].asset_id.startswith("cold ")] if key == "name" else []
    assert [table.rows[i].asset_id for i in plain] == [f"cold {i}" for i in range(6)][: len(plain)]
    values = [getattr(table.rows[i], {"name": "asset_id"}.get(key, key)) for i in order]
    runs = len([value for value, _ in groupby(values)])
    assert runs == len(set(values)), "equal values stand together"


@pytest.mark.browser
def test_filters_and_search(browser: Browser, report: Path, table: ResultTable) -> None:
    open_page(browser, report)
    for verdict, wanted in (("pass", True), ("fail", False), ("none", None)):
        browser.evaluate(f"document.querySelector('[data-verdict={verdict}]').click()")
        assert sorted(shown(browser)) == [i for i, row in enumerate(table) if row.both_pass is wanted]
        assert (
            browser.evaluate(f"document.querySelector('[data-verdict={verdict}]').getAttribute('aria-pressed')")
            == "true"
        )
    browser.evaluate("document.querySelector('[data-verdict=\"\"]').click()")
    for name in ("category", "group"):
        for value in {getattr(row, name) for row in table}:
            choose(browser, name, value)
            assert sorted(shown(browser)) == [i for i, row in enumerate(table) if getattr(row, name) == value], value
        choose(browser, name, "")
    browser.evaluate("document.getElementById('q').focus()")
    browser.write("COLD 3")
    browser.wait_for("document.querySelectorAll('.card').length === 1")
    assert [table.rows[i].asset_id for i in shown(browser)] == ["cold 3"]
    assert browser.evaluate("document.getElementById('count').textContent") == f"1 of {len(table)} assets"
    browser.write(" nowhere")
    browser.wait_for("document.querySelector('.nothing') !== null")
    browser.evaluate("document.querySelector('.nothing button').click()")
    assert len(shown(browser)) == len(table)


@pytest.mark.browser
def test_a_view_is_kept_in_the_address(browser: Browser, report: Path, table: ResultTable) -> None:
    open_page(browser, report, "#verdict=fail&category=item&sort=p&dir=desc")
    assert sorted(shown(browser)) == [
        i for i, row in enumerate(table) if row.both_pass is False and row.category == "item"
    ]
    choose(browser, "category", "block")
    address = browser.evaluate("location.href")
    before = shown(browser)
    browser.open("about:blank")
    browser.open(address)
    browser.wait_for("document.querySelector('.card, .nothing') !== null")
    assert shown(browser) == before


@pytest.mark.browser
def test_yours_by_keyboard_alone(browser: Browser, report: Path, table: ResultTable) -> None:
    browser.resize(1280, 800)
    open_page(browser, report)
    for _ in range(20):
        browser.press("Tab")
        if browser.evaluate("document.activeElement.id") == "mine":
            break
    browser.write("cold 2")
    row = next(row for row in table if row.asset_id == "cold 2")
    said = browser.evaluate("document.querySelector('#matches button').textContent")
    assert said.startswith("cold 2")
    assert f"{abs(row.style_margin or 0):.3f}" in said
    browser.press("Enter", "\r")
    assert [table.rows[i].asset_id for i in shown(browser)] == ["cold 2"]
    assert browser.evaluate("document.activeElement.id") == "assets"
    for _ in range(4):
        browser.press("Tab")
        if browser.evaluate("document.activeElement.dataset.verdict") == "":
            break
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.dataset.verdict") == "pass"
    browser.press("Enter", "\r")
    assert browser.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    unnamed = """[...document.querySelectorAll('button, input, select, img')].filter((e) =>
        !(e.textContent.trim() || e.labels?.length || e.getAttribute('aria-label') || e.alt)).length"""
    assert browser.evaluate(unnamed) == 0


class _Hits(BaseHTTPRequestHandler):
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    _Hits.paths.clear()
    httpd = HTTPServer(("127.0.0.1", 0), _Hits)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.mark.browser
def test_hostile_names_run_nothing_and_load_nothing(
    browser: Browser, table: ResultTable, profile: Profile, tmp_path: Path, server: str
) -> None:
    call = f"<img src='{server}/x' onerror='window.pwned=1'><script>window.pwned=1</script>"
    rows = tuple(
        replace(row, asset_id=call + row.asset_id, group=call, reason=call, category=row.category, sem_factor=call)
        for row in table.rows
    )
    path = tmp_path / "hostile.html"
    write_report(ResultTable(rows), path, profile=profile, title=call)
    open_page(browser, path)
    browser.evaluate("document.getElementById('mine').focus()")
    browser.write("img")
    browser.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert browser.evaluate("typeof window.pwned") == "undefined"
    assert browser.evaluate("document.querySelectorAll('.card').length") == len(rows)
    assert browser.evaluate("document.querySelector('.card h3').textContent").startswith(call)
    assert browser.requests() == [path.as_uri()]
    assert _Hits.paths == []
    # The same text as a page of its own does run and does load: this test can fail.
    (tmp_path / "open.html").write_text(f"<!DOCTYPE html><body>{call}", encoding="utf-8")
    browser.open((tmp_path / "open.html").as_uri())
    browser.wait_for("window.pwned === 1")
    assert _Hits.paths == ["/x"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(browser: Browser, report: Path, table: ResultTable, width: int) -> None:
    browser.resize(width, 844)
    open_page(browser, report)
    assert len(shown(browser)) == len(table)
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    outside = """[...document.querySelectorAll('main *, header *')].filter((element) =>
        element.getBoundingClientRect().right > innerWidth + 0.5 && element.offsetParent !== null
        && !element.closest('bdi, thead, option')).map((element) => element.tagName + '.' + element.className)"""
    assert browser.evaluate(outside) == []
    browser.resize(1280, 800)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_pixels_stay_pixels(browser: Browser, report: Path, width: int) -> None:
    browser.resize(width, 844)
    open_page(browser, report)
    browser.wait_for("[...document.querySelectorAll('.card img')].every((i) => (i.loading = 'eager', i.complete))")
    pictures = browser.evaluate(
        "[...document.querySelectorAll('.card img')].map((i) => [i.naturalWidth, i.naturalHeight, i.clientWidth, "
        "i.clientHeight, getComputedStyle(i).imageRendering])"
    )
    assert len(pictures) > 50
    for natural_w, natural_h, w, h, rendering in pictures:
        assert natural_w > 0, "a picture that does not load"
        assert w % natural_w == 0
        assert w // natural_w == h // natural_h >= 2
        assert rendering == "pixelated"
    assert "conic-gradient" in browser.evaluate("getComputedStyle(document.querySelector('.stage')).backgroundImage")
    browser.resize(1280, 800)


@pytest.mark.browser
def test_the_strip_shows_the_side_of_the_threshold(browser: Browser, report: Path, table: ResultTable) -> None:
    open_page(browser, report)
    marks = browser.evaluate(
        """[...document.querySelectorAll('.card')].map((card) => {
            const strip = card.querySelector('.check svg');
            const at = (name) => +/M([\\d.]+)/.exec(strip.querySelector(name).getAttribute('d'))[1];
            return strip && [+card.id.replace('asset-', ''), at('.here'), at('.tau')];
        }).filter(Boolean)"""
    )
    assert len(marks) == sum(row.style_s is not None for row in table)
    for index, here, tau in marks:
        margin = table.rows[index].style_margin
        assert margin is not None
        assert here == tau or (here > tau) == (margin > 0)


@pytest.mark.browser
def test_many_assets_come_in_parts(browser: Browser, table: ResultTable, profile: Profile, tmp_path: Path) -> None:
    rows = tuple(replace(table.rows[i % len(HOSTILE)], asset_id=f"asset {i}") for i in range(500))
    write_report(ResultTable(rows, profile), tmp_path / "many.html")
    browser.resize(1280, 800)
    open_page(browser, tmp_path / "many.html")
    first = len(shown(browser))
    assert first < 500
    browser.evaluate("scrollTo(0, document.body.scrollHeight)")
    browser.wait_for(f"document.querySelectorAll('.card').length > {first}")
    browser.evaluate("while (!document.getElementById('more').hidden) document.getElementById('more').click()")
    assert sorted(shown(browser)) == list(range(500))


@pytest.mark.browser
def test_light_and_dark(browser: Browser, report: Path) -> None:
    seen = []
    for dark in (False, True):
        browser.resize(1280, 800, dark=dark)
        open_page(browser, report)
        ground = browser.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        ink = browser.evaluate("getComputedStyle(document.body).color")
        seen.append((brightness(ground), brightness(ink)))
    browser.resize(1280, 800)
    assert seen[0][0] > 180 > 80 > seen[0][1]
    assert seen[1][0] < 80 < 180 < seen[1][1]


def brightness(colour: str) -> float:
    return float(np.mean([int(part) for part in re.findall(r"\d+", colour)[:3]]))


@pytest.mark.browser
def test_a_page_without_rows_or_profile(browser: Browser, table: ResultTable, tmp_path: Path) -> None:
    write_report(ResultTable(()), tmp_path / "empty.html")
    open_page(browser, tmp_path / "empty.html")
    assert browser.evaluate("document.querySelector('.answer').textContent") == "0 of 0 belong"
    assert browser.complaints() == []
    write_report(ResultTable(table.rows), tmp_path / "bare.html")
    open_page(browser, tmp_path / "bare.html")
    assert len(shown(browser)) == len(table)
    assert browser.complaints() == []
    assert os.path.getsize(tmp_path / "bare.html") < 200_000
