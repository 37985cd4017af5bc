"""Long histories: few elements, pages as they come in sight, jumps to any place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect
from viewer_server import Served, served
from windows import options, scrubber_says, selected

import holdfast

# So many that the server no longer counts every row of the minimap.
STEPS = 3_100
MOST_ROWS = 60


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A viewer over a thread of many checkpoints, forked near its beginning."""
    path = str(Path(tmp_path_factory.mktemp("large")) / "agents.db")
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("long")
        for step in range(1, STEPS + 1):
            thread.append(messages=[{"role": "assistant", "content": f"said {step}"}])
        fork = thread.fork("late", "@50")
        fork.append(messages=[{"role": "user", "content": "another way"}])
    with served(path) as server:
        yield server


def test_a_long_history_has_few_elements_and_loads_what_is_in_sight(
    page: Page, large: Served
):
    asked: list[str] = []

    def count(request: Request) -> None:
        if "/log?" in request.url:
            asked.append(request.url)

    page.on("request", count)
    page.goto(large.page(t="long"))
    scrubber_says(page, f"{STEPS:,} of {STEPS:,}")
    rows = options(page, "Checkpoints")
    expect(rows.first).to_contain_text("another way")
    assert len(asked) == 1

    for part in (0.25, 0.5, 0.75, 1):
        page.evaluate(
            "part => { const list = document.getElementById('graph');"
            "list.scrollTop = part * list.scrollHeight; }",
            part,
        )
        index = round(part * (STEPS + 1))
        step = min(STEPS - 10, max(10, STEPS - index - 5))
        expect(rows.filter(has_text=f"said {step}").first).to_be_attached()
        assert rows.count() <= MOST_ROWS
    expect(rows.last).to_have_attribute("aria-setsize", str(STEPS + 1))


def test_a_link_into_the_middle_of_a_long_history_shows_that_place(
    page: Page, large: Served
):
    with holdfast.open(large.path) as store:
        middle = store.thread("long").get("@777").id

    page.goto(large.page(t="long", c=middle))

    expect(selected(page)).to_contain_text("said 777")
    expect(selected(page)).to_be_in_viewport()
    scrubber_says(page, f"777 of {STEPS:,}")
    page.keyboard.press("ArrowRight")
    expect(selected(page)).to_contain_text("said 778")

    minimap = page.locator("canvas.minimap")
    expect(minimap).to_be_visible()
    box = minimap.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 10, box["y"] + box["height"] * 0.9)
    expect(options(page, "Checkpoints").filter(has_text="said 312")).to_be_attached()
    expect(page.locator("#graph")).not_to_contain_text("said 778")

    slider = page.get_by_role("slider", name="Step")
    slider.fill("1233")
    expect(selected(page)).to_contain_text("said 1234")


def test_a_link_to_a_checkpoint_of_another_thread_of_the_family_shows_that_place(
    page: Page, large: Served
):
    with holdfast.open(large.path) as store:
        middle = store.thread("long").get("@2777").id

    page.goto(large.page(t="late", c=middle))

    expect(selected(page)).to_contain_text("said 2777")
    scrubber_says(page, f"2,777 of {STEPS:,}")
