"""The viewer in Chromium before 100,000 checkpoints in a thread, and 1,000 forks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import holdfast
from support.folders import TESTS

sys.path.insert(0, str(TESTS / "viewer"))

from chromium import chromium
from viewer_server import Served, served
from windows import options, scrubber_says, selected

pytestmark = pytest.mark.timeout(600)

STEPS = 100_000
FORKS = 1_000
MOST_ROWS = 60
PARTS = (0.3, 0.999, 0.6, 0.01)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@contextmanager
def opened(browser: Browser, path: str, **where: str) -> Iterator[tuple[Page, Served]]:
    """A page over a store; it must not complain."""
    said: list[str] = []
    with served(path) as server:
        context = browser.new_context(viewport={"width": 1400, "height": 800})
        context.set_default_timeout(30_000)
        context.on("console", lambda one: said.append(one.text))
        context.on("weberror", lambda error: said.append(str(error.error)))
        page = context.new_page()
        page.goto(server.page(**where))
        yield page, server
        context.close()
    assert said == []


def scroll(page: Page, part: float) -> None:
    page.evaluate(
        "part => { const list = document.getElementById('graph');"
        "list.scrollTop = part * list.scrollHeight; }",
        part,
    )


def assert_shows(page: Page, index: int) -> Locator:
    """The row with an index is there with its content, among few others."""
    rows = options(page, "Checkpoints")
    row = page.locator(f"#graph [aria-posinset='{index + 1}']")
    expect(row).to_have_attribute("data-checkpoint", re.compile("."))
    assert rows.count() <= MOST_ROWS
    return row


def test_a_hundred_thousand_checkpoints_are_scrolled_and_scrubbed(browser, tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("long")
        for step in range(1, STEPS + 1):
            thread.append(messages=[{"role": "assistant", "content": f"said {step}"}])

    with opened(browser, path, t="long") as (page, _):
        expect(selected(page)).to_contain_text(f"said {STEPS}")
        scrubber_says(page, f"{STEPS:,} of {STEPS:,}")
        for part in PARTS:
            scroll(page, part)
            index = min(STEPS - 10, round(part * STEPS) + 5)
            expect(assert_shows(page, index)).to_contain_text(f"said {STEPS - index}")

        slider = page.get_by_role("slider", name="Step")
        for step in (1, 77_777, 50_000):
            slider.fill(str(step - 1))
            scrubber_says(page, f"{step:,} of {STEPS:,}")
            expect(selected(page)).to_contain_text(f"said {step}")
            expect(page.get_by_role("tabpanel")).to_contain_text(f"said {step}")
        page.keyboard.press("ArrowRight")
        expect(selected(page)).to_contain_text("said 50001")
        assert options(page, "Checkpoints").count() <= MOST_ROWS


def test_a_thousand_forks_are_shown_and_found(browser, tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path, durability="normal") as store:
        trunk = store.thread("trunk")
        for step in range(1, FORKS + 1):
            trunk.append(messages=[{"role": "assistant", "content": f"said {step}"}])
        for step in range(1, FORKS + 1):
            tried = [{"role": "user", "content": f"tried {step}"}]
            trunk.fork(f"fork-{step}", f"@{step}").append(messages=tried)
        there = store.thread("fork-321").get().id

    with opened(browser, path, t="trunk") as (page, server):
        expect(selected(page)).to_contain_text(f"said {FORKS}")
        for part in PARTS:
            scroll(page, part)
            assert_shows(page, min(2 * FORKS - 10, round(part * 2 * FORKS) + 5))
        # A checkpoint of another thread of the family, and the line that leads to it.
        page.goto(server.page(t="trunk", c=there))
        expect(selected(page)).to_contain_text("tried 321")
        scrubber_says(page, "322 of 322")
