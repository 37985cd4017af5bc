"""Accessible for everybody, light to load, and pictures as they were agreed on."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from importlib.resources import files

from pictures import compare, keep_for_docs
from playwright.sync_api import Page, Response, expect
from story import MAIN
from viewer_server import Served
from windows import THEMES, WIDTHS, options, scrubber_says, selected

TABS = [
    "Chat",
    "State",
    "Diff",
    "Meta",
    "Context",
    "Effects",
    "Charts",
    "Compare",
    "Files",
]
MOST_BYTES = 60_000
MOST_REQUESTS = 6


AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
# Results of other kinds would double the time.
OPTIONS = {"resultTypes": ["violations"], "preload": False}
CONTRAST = {**OPTIONS, "runOnly": ["color-contrast"]}
LAYOUT = {**OPTIONS, "runOnly": ["scrollable-region-focusable", "target-size"]}
# A theme changes only colours, and a width none of them.
WINDOWS = [
    ("wide", "light", OPTIONS),
    ("wide", "dark", CONTRAST),
    ("middle", "light", LAYOUT),
    ("narrow", "light", LAYOUT),
]
# A narrow window has buttons of its own.
WHOLE_WINDOWS = [
    *WINDOWS[:3],
    ("narrow", "light", OPTIONS),
    ("narrow", "dark", CONTRAST),
]


def windows(
    page: Page, kinds: list[tuple[str, str, dict[str, object]]]
) -> Iterator[dict[str, object]]:
    """Make a page a window of each kind; gives what to look for in it."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE)
    for width, theme, rules in kinds:
        page.set_viewport_size({"width": WIDTHS[width], "height": 800})
        page.emulate_media(color_scheme=theme)
        yield rules


def violations(page: Page, where: str, options: dict[str, object]) -> list[object]:
    run = "([where, options]) => axe.run(where, options)"
    found = page.evaluate(run, [where, options])["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found]


def test_axe_finds_nothing_in_the_frame(page: Page, viewer: Served):
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)
    for rules in windows(page, WHOLE_WINDOWS):
        assert violations(page, "html", rules) == []

    options(page, "Threads").nth(2).click()
    scrubber_says(page, "8 of 8")
    page.keyboard.press("b")
    for rules in windows(page, WHOLE_WINDOWS):
        assert violations(page, "html", rules) == []


def test_axe_finds_nothing_in_the_tabs_and_the_keys(page: Page, viewer: Served):
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")
    page.keyboard.press("d")
    for rules in windows(page, WINDOWS):
        page.keyboard.press("?")
        assert violations(page, "dialog", rules) == []
        page.keyboard.press("Escape")
        for number, name in enumerate(TABS, 1):
            page.keyboard.press(str(number))
            shown = page.get_by_role("tab", name=name, exact=True)
            expect(shown).to_have_attribute("aria-selected", "true")
            panel = page.get_by_role("tabpanel")
            expect(panel).not_to_have_attribute("aria-busy", "true")
            where = ".detail" if name == TABS[0] else "#detail-panel"
            assert violations(page, where, rules) == [], name


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


def test_nothing_is_cut_off_at_twice_the_size(
    new_page: Callable[..., Page], viewer: Served
):
    page = new_page(viewport={"width": 700, "height": 400}, device_scale_factor=2)
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")

    for pane in ("graph", "detail"):
        page.keyboard.press(pane[0])

        expect(page.locator(f".{pane}").first).to_be_visible()
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


def themed(page: Page) -> Iterator[str]:
    """The page in each theme; a stored picture shows what it looked like."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        yield theme


def test_the_page_looks_as_it_did(page: Page, viewer: Served):
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")
    expect(page.locator("#detail-panel")).to_contain_text("I check our policy again")
    expect(page.locator(".connection")).to_contain_text("live")

    for width in WIDTHS:
        page.set_viewport_size({"width": WIDTHS[width], "height": 800})
        for theme in themed(page):
            compare(page, f"thread-{width}-{theme}")
            if (width, theme) in [("wide", "light"), ("narrow", "dark")]:
                keep_for_docs(page, f"viewer-thread-{width}")


def test_the_first_screen_looks_as_it_did(page: Page, viewer: Served):
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)
    expect(page.locator(".connection")).to_contain_text("live")

    for theme in themed(page):
        compare(page, f"threads-wide-{theme}")
    keep_for_docs(page, "viewer-threads")
