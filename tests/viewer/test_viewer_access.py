"""Accessible for everybody, light to load, and pictures as they were agreed on."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from importlib.resources import files

import pytest
from pictures import compare, keep_for_docs
from playwright.sync_api import Page, Response, expect
from story import MAIN
from viewer_server import Served
from windows import WIDTHS, options, scrubber_says, selected

TABS = ["Chat", "State", "Diff", "Meta", "Context", "Effects", "Charts", "Compare"]
MOST_BYTES = 60_000
MOST_REQUESTS = 6


AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
# Results of other kinds would double the time.
RUN = "where => axe.run(where, { resultTypes: ['violations'] })"


def assert_accessible(page: Page, where: str = "html") -> None:
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE)
    found = page.evaluate(RUN, where)["violations"]
    told = [(one["id"], one["nodes"][0]["html"][:200]) for one in found]
    assert told == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_in_the_frame(
    new_page: Callable[..., Page], viewer: Served, width: str, theme: str
):
    page = new_page(width=width, theme=theme)
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)
    assert_accessible(page)

    options(page, "Threads").nth(2).click()
    scrubber_says(page, "8 of 8")
    page.keyboard.press("b")
    assert_accessible(page)


@pytest.mark.parametrize(("width", "theme"), [("wide", "light"), ("narrow", "dark")])
def test_axe_finds_nothing_in_the_tabs_and_the_keys(
    new_page: Callable[..., Page], viewer: Served, width: str, theme: str
):
    page = new_page(width=width, theme=theme)
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")

    page.keyboard.press("?")
    assert_accessible(page, "dialog")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    for name in TABS:
        page.get_by_role("tab", name=name, exact=True).click()
        expect(page.get_by_role("tabpanel")).not_to_have_attribute("aria-busy", "true")
        assert_accessible(page, ".detail")


def test_a_narrow_window_shows_one_pane_at_a_time(
    new_page: Callable[..., Page], viewer: Served
):
    page = new_page(width="narrow")
    page.goto(viewer.page())
    options(page, "Threads").filter(has_text="support-4812").click()
    expect(options(page, "Checkpoints")).to_have_count(14)
    expect(page.get_by_role("region", name="Threads")).to_be_hidden()

    options(page, "Checkpoints").filter(has_text="bad-policy").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("Refund denied")
    expect(page.get_by_role("region", name="History")).to_be_hidden()
    page.get_by_role("button", name="History").click()
    expect(selected(page)).to_contain_text("bad-policy")
    page.get_by_role("button", name="Threads", exact=True).click()
    expect(options(page, "Threads")).to_have_count(6)


@pytest.mark.parametrize("pane", ["graph", "detail"])
def test_nothing_is_cut_off_at_twice_the_size(
    new_page: Callable[..., Page], viewer: Served, pane: str
):
    page = new_page(viewport={"width": 700, "height": 400}, device_scale_factor=2)
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")

    page.keyboard.press(pane[0])

    wide = "() => document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(wide) <= 0
    expect(page.get_by_role("slider", name="Step")).to_be_in_viewport(ratio=1)


def test_the_first_picture_is_light(page: Page, viewer: Served):
    answers: list[Response] = []

    def count(answer: Response) -> None:
        answers.append(answer)

    page.on("response", count)
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)

    assert len(answers) <= MOST_REQUESTS, [answer.url for answer in answers]
    own = [one for one in answers if "/api/" not in one.url]
    assert sum(len(gzip.compress(one.body())) for one in own) <= MOST_BYTES


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_looks_as_it_did(
    new_page: Callable[..., Page], viewer: Served, width: str, theme: str
):
    page = new_page(width=width, theme=theme)
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")
    expect(page.locator("#detail-panel")).to_contain_text("I check our policy again")
    expect(page.locator(".connection")).to_contain_text("live")

    compare(page, f"thread-{width}-{theme}")
    if (width, theme) in [("wide", "light"), ("narrow", "dark")]:
        keep_for_docs(page, f"viewer-thread-{width}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_first_screen_looks_as_it_did(
    new_page: Callable[..., Page], viewer: Served, theme: str
):
    page = new_page(theme=theme)
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)
    expect(page.locator(".connection")).to_contain_text("live")

    compare(page, f"threads-wide-{theme}")
    if theme == "dark":
        keep_for_docs(page, "viewer-threads")
