"""The frame of the page in Chromium: threads, graph, scrubber, links, keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from story import LONG, MAIN
from viewer_server import TOKEN, Served, served
from windows import STRIP, options, scrubber_says, selected, until

import holdfast


@pytest.mark.smoke
def test_the_first_screen_says_what_is_going_on(page: Page, viewer: Served):
    page.goto(viewer.page())

    cards = options(page, "Threads")
    expect(cards).to_have_count(6)
    failed = cards.filter(has_text="Invoice 77")
    expect(failed).to_contain_text("✖failed")
    expect(failed).to_contain_text("TimeoutError: the printer did not answer")
    expect(failed).to_contain_text("anna · billing")
    waiting = cards.filter(has_text="Returns desk")
    expect(waiting).to_contain_text("waiting: a reply to the last message")
    expect(page.locator(".store")).to_contain_text("6 threads")
    expect(page.locator(".store")).to_contain_text("read-only")
    assert "token" not in page.url


def test_filters_leave_the_threads_that_were_asked_for(page: Page, viewer: Served):
    page.goto(viewer.page())
    cards = options(page, "Threads")
    expect(cards).to_have_count(6)

    page.get_by_label("State", exact=True).select_option("failed")
    expect(cards).to_have_count(1)
    page.get_by_label("State", exact=True).select_option("")
    page.get_by_label("Agent", exact=True).fill("reporter")
    expect(cards).to_have_count(1)
    page.get_by_label("Owner", exact=True).fill("nobody")
    expect(page.locator(".threads")).to_contain_text("Nothing found.")


def test_a_click_opens_a_thread_at_its_head_and_the_link_brings_back_the_same(
    page: Page, viewer: Served
):
    page.goto(viewer.page())
    options(page, "Threads").filter(has_text="↳ fix-policy").click()

    expect(selected(page)).to_contain_text("fix-policy")
    rows = options(page, "Checkpoints")
    expect(rows).to_have_count(14)
    expect(rows.filter(has_text="bad-policy")).to_have_class(re.compile("off-line"))
    expect(rows.filter(has_text="#golden")).to_have_class(re.compile("on-line"))

    rows.filter(has_text="Refund denied").click()
    page.keyboard.press("b")
    page.keyboard.press("3")
    page.wait_for_url("**&base=*&tab=diff")
    address = page.url
    assert "t=fix-policy" in address
    page.reload()
    expect(selected(page)).to_contain_text("Refund denied")
    expect(selected(page)).to_contain_text("◆ base")
    expect(page.get_by_role("tab", name="Diff")).to_have_attribute(
        "aria-selected", "true"
    )
    assert page.url == address

    page.go_back()
    expect(page.locator("#app")).to_have_attribute("data-view", "home")


def test_a_link_with_a_checkpoint_of_another_thread_shows_the_head(
    page: Page, viewer: Served
):
    page.goto(viewer.page(t=LONG))
    expect(selected(page)).to_contain_text(LONG)
    foreign = selected(page).get_attribute("data-checkpoint") or ""

    page.goto(viewer.page(t=MAIN, c=foreign))

    expect(selected(page)).to_contain_text(MAIN)
    expect(page.locator(".status")).to_contain_text("is not in this thread")
    page.wait_for_function("(id) => !location.search.includes(id)", arg=foreign)


def test_the_scrubber_moves_along_the_line_and_back_to_where_the_reader_was(
    page: Page, viewer: Served
):
    page.goto(viewer.page(t=MAIN))
    slider = page.get_by_role("slider", name="Step")
    scrubber_says(page, "8 of 8")
    spent = re.compile(r"8 of 8 · .* · 702 tok · \$0\.0036")
    expect(slider).to_have_attribute("aria-valuetext", spent)
    strip = page.locator("canvas.strip")
    until(page, lambda: strip.evaluate(STRIP) == [True, True])

    page.keyboard.press("ArrowLeft")
    expect(selected(page)).to_contain_text("Your site says 30 days!")
    page.keyboard.press("Home")
    scrubber_says(page, "1 of 8")
    expect(page.get_by_role("tabpanel")).to_contain_text("Refund within 30 days")
    expect(page.get_by_role("tabpanel")).not_to_contain_text("money back")
    page.keyboard.press("u")
    scrubber_says(page, "7 of 8")

    box = slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 6 / 7 - 4, middle)
    page.mouse.down()
    for part in range(13, -1, -1):
        page.mouse.move(box["x"] + box["width"] * part / 14, middle)
    scrubber_says(page, "1 of 8")
    page.mouse.up()
    expect(selected(page)).to_contain_text("Be kind")


def test_the_scrubber_takes_the_line_through_the_selected_checkpoint(
    page: Page, viewer: Served
):
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")

    options(page, "Checkpoints").filter(has_text="#golden").click()

    scrubber_says(page, "8 of 10")
    page.get_by_role("button", name="Last step").click()
    expect(selected(page)).to_contain_text("fix-policy")


def test_runs_of_tool_steps_are_folded_and_open_on_a_click(page: Page, viewer: Served):
    page.goto(viewer.page(t=LONG))
    rows = options(page, "Checkpoints")
    expect(rows).to_have_count(3)

    rows.filter(has_text="28 steps of read_sales").click()
    expect(rows).to_have_count(30)
    page.reload()
    scrubber_says(page, "30 of 30")
    page.keyboard.press("ArrowLeft")
    expect(rows).to_have_count(30)
    expect(selected(page)).to_contain_text("read_sales")


def test_a_search_jumps_to_the_message(page: Page, viewer: Served):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)
    page.keyboard.press("/")
    page.keyboard.insert_text(
        "store credit"
    )  # at once: typed slowly, it is two searches

    hit = options(page, "Threads").filter(has=page.locator("mark"))
    expect(hit.first).to_contain_text("May I offer store credit")
    hit.first.click()

    expect(selected(page)).to_contain_text("May I offer store credit")
    expect(page.get_by_role("tabpanel")).to_contain_text("store credit of $140")
    # The field lost the focus; a search once more would replace the rows.
    assert sum("/search?" in url for url in asked) == 1


def test_everything_can_be_reached_with_keys_alone(page: Page, viewer: Served):
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)

    page.keyboard.press("t")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(selected(page)).to_contain_text(MAIN)
    page.keyboard.press("g")
    for key in ("Home", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(selected(page)).to_contain_text("issue_refund(")
    page.keyboard.press("4")
    expect(page.get_by_role("tab", name="Meta")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("back to where you were")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("l")
    page.keyboard.press("l")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("a")
    expect(page.locator("#app")).to_have_attribute("data-view", "home")


def test_an_exported_file_shows_the_same_without_a_server(
    page: Page, viewer: Served, tmp_path: Path
):
    asked = f"{viewer.origin}/api/1/export?thread={MAIN}"
    headers = {"authorization": f"Bearer {TOKEN}"}
    answer = page.request.get(asked, headers=headers)
    file = tmp_path / "thread.html"
    file.write_bytes(answer.body())

    page.goto(file.as_uri())

    scrubber_says(page, "8 of 8")
    expect(page.locator(".connection")).to_contain_text("exported file")
    expect(options(page, "Checkpoints")).to_have_count(14)
    page.keyboard.press("Home")
    expect(selected(page)).to_contain_text("Be kind.")
    expect(page.get_by_role("tabpanel")).to_contain_text("Be kind.")
    options(page, "Checkpoints").filter(has_text="#golden").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("Refund approved")
    scrubber_says(page, "8 of 10")
    page.get_by_role("button", name="Last step").click()
    expect(selected(page)).to_contain_text("fix-policy")


def test_a_thread_shows_itself_in_a_cell_of_a_notebook(page: Page, viewer: Served):
    with holdfast.open(viewer.path, read_only=True) as store:
        cell = store.thread(MAIN)._repr_html_()

    page.set_content(cell or "")

    shown = page.frame_locator("iframe")
    expect(shown.locator(".scrubber-text")).to_contain_text("8 of 8")
    expect(shown.get_by_role("tabpanel")).to_contain_text("I check our policy again")
    shown.get_by_role("button", name="First step").click()
    expect(shown.get_by_role("tabpanel")).to_contain_text("Be kind.")


def test_the_page_works_under_a_path_of_a_larger_site(page: Page, story_file: str):
    with served(story_file, prefix="/tools/holdfast") as site:
        page.goto(site.page())
        options(page, "Threads").filter(has_text="Invoice 77").click()

        expect(page.get_by_role("tabpanel")).to_contain_text("TimeoutError")
        expect(page.locator(".connection")).to_contain_text("live")
        page.wait_for_url("**/tools/holdfast/?t=invoice-77&*")
        page.goto("about:blank")  # a lost server would be a complaint


def test_an_effect_that_fails_does_not_keep_others_from_running(
    page: Page, viewer: Served, complaints: list[str]
):
    page.goto(viewer.page())
    expect(options(page, "Threads")).to_have_count(6)

    seen = page.evaluate(
        """async () => {
          const { effect, signal } = await import("/static/signals.js");
          const [number, seen] = [signal(0), []];
          effect(() => { if (number.value === 1) throw new Error("failed at 1"); });
          effect(() => void seen.push(number.value));
          number.value = 1;
          number.value = 2;
          return seen;
        }"""
    )

    assert seen == [0, 1, 2]
    until(page, lambda: len(complaints) == 1)
    assert "failed at 1" in complaints.pop()


def test_keys_that_come_before_the_line_is_loaded_are_not_lost(
    page: Page, viewer: Served
):
    def press_first(route: Route) -> None:
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        route.continue_()

    page.route("**/api/1/line?*", press_first)
    page.goto(viewer.page(t=MAIN))

    scrubber_says(page, "6 of 8")
    expect(selected(page)).to_contain_text("Refund denied")
