"""Long histories: few elements, pages as they come in sight, jumps to any place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect
from viewer_server import Served, served
from windows import options, scrubber_says, selected

import holdfast
from inner.views import minimap

# More than the page loads at once, and than the server counts for the minimap.
STEPS = 1_400
COUNTED = 1_000
# The first steps are calls of a tool.
CALLS = 300
MOST_ROWS = 60


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A viewer over a thread of many checkpoints, forked near its beginning."""
    path = str(Path(tmp_path_factory.mktemp("large")) / "agents.db")
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("long")
        for step in range(1, STEPS + 1):
            thread.append(messages=[call(step) if step <= CALLS else said(step)])
        fork = thread.fork("late", f"@{CALLS + 50}")
        fork.append(messages=[{"role": "user", "content": "another way"}])
    with pytest.MonkeyPatch.context() as patch, served(path) as server:
        patch.setattr(minimap, "MOST_ROWS", COUNTED)
        yield server


def said(step: int) -> dict[str, object]:
    return {"role": "assistant", "content": f"said {step}"}


def call(step: int) -> dict[str, object]:
    function = {"name": "look", "arguments": "{}"}
    asked = {"id": f"call-{step}", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [asked]}


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

    for part in (0.25, 0.5, 0.6):
        scroll(page, part)
        step = STEPS - round(part * (STEPS + 1)) - 5
        expect(rows.filter(has_text=f"said {step}").first).to_be_attached()
        assert rows.count() <= MOST_ROWS
    expect(rows.last).to_have_attribute("aria-setsize", str(STEPS + 1))


def scroll(page: Page, part: float) -> None:
    page.evaluate(
        "part => { const list = document.getElementById('graph');"
        "list.scrollTop = part * list.scrollHeight; }",
        part,
    )


def test_runs_of_tool_steps_are_folded_wherever_they_come_in_sight(
    page: Page, large: Served
):
    page.goto(large.page(t="long"))
    scrubber_says(page, f"{STEPS:,} of {STEPS:,}")
    rows = options(page, "Checkpoints")
    runs = rows.filter(has_text="steps of look")
    scroll(page, 1)

    # One line for each hundred: nothing more has to be loaded to show them.
    expect(runs).to_have_text([f"{n} steps of lookshow" for n in (99, 100, 100)])
    expect(rows.last).to_have_attribute("aria-setsize", str(STEPS + 1 - 98 - 2 * 99))
    before = rows.filter(has_text=f"said {CALLS + 1}")
    place = before.bounding_box()
    runs.nth(1).click()
    expect(runs).to_have_count(1)
    expect(rows.last).to_have_attribute("aria-setsize", str(STEPS + 1 - 98 - 99))
    assert before.bounding_box() == place
    assert rows.count() <= MOST_ROWS

    page.get_by_role("slider", name="Step").fill("150")
    expect(selected(page)).to_be_in_viewport()
    scrubber_says(page, f"151 of {STEPS:,}")
    page.get_by_role("button", name="Fold tools").click()
    expect(rows.last).to_have_attribute("aria-setsize", str(STEPS + 1))
    expect(selected(page)).to_be_in_viewport()


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
    page.mouse.click(box["x"] + 10, box["y"] + box["height"] * 0.5)
    expect(options(page, "Checkpoints").filter(has_text="said 700")).to_be_attached()
    expect(page.locator("#graph")).not_to_contain_text("said 778")

    slider = page.get_by_role("slider", name="Step")
    slider.fill("1233")
    expect(selected(page)).to_contain_text("said 1234")


def test_a_link_to_a_checkpoint_of_another_thread_of_the_family_shows_that_place(
    page: Page, large: Served
):
    with holdfast.open(large.path) as store:
        middle = store.thread("long").get("@1277").id

    page.goto(large.page(t="late", c=middle))

    expect(selected(page)).to_contain_text("said 1277")
    scrubber_says(page, f"1,277 of {STEPS:,}")
