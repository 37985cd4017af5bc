"""The viewer in Chromium before 100,000 checkpoints, 1,000 forks, 50 MB of state."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Locator, Page, Response, expect

import holdfast
from support.folders import TESTS

sys.path.insert(0, str(TESTS / "viewer"))

from chromium import FOUND, chromium
from viewer_server import Served, served
from windows import options, scrubber_says, selected

pytestmark = [
    pytest.mark.skipif(FOUND is None, reason="there is no Chromium"),
    pytest.mark.timeout(600),
]

STEPS = 100_000
FORKS = 1_000
CALLS = 12_000
MOST_ROWS = 60
# What the tabs have of a state of 50 MB, and how large an answer may be.
HEAVY = {"State": "50.0 MB", "Diff": "1 added", "Meta": "MB", "Context": "tokens"}
LARGEST_ANSWER = 2 << 20
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


def test_a_long_run_of_tool_steps_loads_no_more_than_what_is_in_sight(
    browser, tmp_path
):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("busy")
        for step in range(1, CALLS + 1):
            function = {"name": "look", "arguments": "{}"}
            call = {"id": f"{step}", "type": "function", "function": function}
            said = {"role": "assistant", "content": "", "tool_calls": [call]}
            thread.append(messages=[said])

    with opened(browser, path, t="busy") as (page, _):
        scrubber_says(page, f"{CALLS:,} of {CALLS:,}")
        rows = options(page, "Checkpoints")
        whole = rows.filter(has_text="100 steps of look")
        expect(whole.nth(25)).to_be_attached(timeout=60_000)
        assert rows.count() <= MOST_ROWS
        scroll(page, 0.5)
        waiting = page.locator("#graph .waiting")
        expect(waiting).to_have_count(0, timeout=60_000)
        expect(whole.nth(25)).to_be_attached()
        page.get_by_role("slider", name="Step").fill(str(CALLS // 2))
        expect(selected(page)).to_be_in_viewport()
        assert rows.count() <= MOST_ROWS


def test_a_state_of_fifty_megabytes_is_read_in_pieces(browser, tmp_path):
    path = str(tmp_path / "agents.db")
    text = "word " * 40_000
    with holdfast.open(path) as store:
        thread = store.thread("heavy")
        many = [{"role": "user", "content": f"{n} {text}"} for n in range(250)]
        thread.save({"messages": many, "notes": {"n": 1}})
        thread.append(messages=[{"role": "assistant", "content": "the last one"}])

    with opened(browser, path) as (page, _):
        sizes: list[int] = []

        def weigh(response: Response) -> None:
            if "/api/1/live" not in response.url:
                sizes.append(len(response.body()))

        page.on("response", weigh)
        options(page, "Threads").first.click()
        panel = page.get_by_role("tabpanel")
        expect(panel).to_contain_text("the last one")
        for tab, shown in HEAVY.items():
            page.get_by_role("tab", name=tab).click()
            expect(panel).to_contain_text(shown)
        page.get_by_role("button", name="First step").click()
        scrubber_says(page, "1 of 2")
        page.get_by_role("tab", name="Chat").click()
        button = panel.get_by_role("button", name="Show all 200,004 characters")
        expect(button.last).to_be_attached()

    assert max(sizes) < LARGEST_ANSWER
