"""Changes while the page is open: live, in two windows, over bad connections."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from playwright.sync_api import Page, Route, expect
from story import LONG, MAIN
from viewer_server import Served, served
from windows import options, scrubber_says, selected, until

import holdfast
from support.servers import free_port


def say(path: str, text: str, thread: str = MAIN) -> None:
    with holdfast.open(path) as store:
        message = {"role": "assistant", "content": text}
        store.thread(thread).append(messages=[message])


def test_new_checkpoints_appear_and_are_followed_in_every_window(
    new_context, writable: Served
):
    context = new_context()
    reading, following = context.new_page(), context.new_page()
    reading.goto(writable.page(t=MAIN))
    # The second window has no token in its address: it asks the first.
    following.goto(writable.page(t=MAIN).partition("#")[0])
    for window in (reading, following):
        scrubber_says(window, "8 of 8")
        expect(window.locator(".connection")).to_contain_text("live")
    reading.keyboard.press("ArrowLeft")
    following.keyboard.press("f")

    say(writable.path, "Here is your refund.")

    expect(selected(following)).to_contain_text("Here is your refund.")
    scrubber_says(following, "9 of 9")
    expect(following.get_by_role("tabpanel")).to_contain_text("Here is your refund.")
    expect(options(reading, "Checkpoints").first).to_contain_text("Here is your refund")
    expect(options(reading, "Threads").first).to_contain_text("Here is your refund.")
    expect(selected(reading)).to_contain_text("Your site says 30 days!")
    scrubber_says(reading, "7 of 9")

    following.keyboard.press("ArrowLeft")
    say(writable.path, "Anything else?")
    expect(options(following, "Checkpoints").first).to_contain_text("Anything else?")
    expect(selected(following)).to_contain_text("You are right")
    following.get_by_role("button", name="↩ Back").click()
    expect(selected(following)).to_contain_text("You are right")


def test_a_lost_server_is_said_and_what_was_missed_is_shown_after_it(
    new_page, story_file: str, tmp_path: Path, complaints: list[str]
):
    path = str(tmp_path / "agents.db")
    shutil.copy(story_file, path)
    page: Page = new_page()
    port = free_port()
    with served(path, port=port) as server:
        page.goto(server.page(t=MAIN))
        expect(page.locator(".connection")).to_contain_text("live")
        scrubber_says(page, "8 of 8")  # a step is chosen, whose tabs can be opened
        expect(page.get_by_role("tabpanel")).to_contain_text("Your site says")
    expect(page.locator(".connection")).to_contain_text("not connected")
    page.get_by_role("tab", name="Meta").click()
    problem = page.get_by_role("tabpanel").get_by_role("alert")
    expect(problem).to_contain_text("The server cannot be reached.")
    say(path, "Said while nobody listened.")

    with served(path, port=port):
        expect(page.locator(".connection")).to_contain_text("live")
        newest = options(page, "Checkpoints").first
        expect(newest).to_contain_text("Said while nobody listened.")
        expect(problem).to_have_count(0)
        page.close()
    assert all("ERR_" in said for said in complaints)
    complaints.clear()


def test_an_answer_that_is_no_longer_wanted_is_given_up(page: Page, viewer: Served):
    held: list[Route] = []
    given_up: list[str] = []
    page.on("requestfailed", lambda request: given_up.append(request.url))
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/messages?*", hold)
    page.keyboard.press("ArrowLeft")
    expect(selected(page)).to_contain_text("Your site says")
    until(page, lambda: len(held) == 1)
    page.keyboard.press("Home")
    scrubber_says(page, "1 of 8")
    until(page, lambda: len(held) == 2)
    held[-1].continue_()

    chat = page.get_by_role("tabpanel")
    expect(chat).not_to_contain_text("I want my money back")
    expect(chat).to_contain_text("Be kind.")
    until(page, lambda: held[0].request.url in given_up)


def test_a_chat_stays_at_its_end_when_what_stands_above_it_comes_later(
    page: Page, viewer: Served
):
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/checkpoint?*", hold)
    page.goto(viewer.page(t=LONG))
    newest = page.get_by_role("tabpanel").locator(".message").last
    expect(newest).to_be_in_viewport()
    until(page, lambda: len(held) > 0)
    held[-1].continue_()

    expect(page.locator(".step-bar")).to_contain_text("changed: run")
    left = page.get_by_role("tabpanel").evaluate(
        """async (panel) => {
          for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
          return panel.scrollHeight - panel.scrollTop - panel.clientHeight;
        }"""
    )
    assert left < 1


def test_a_slow_network_shows_the_last_step_that_was_asked_for(
    page: Page, viewer: Served
):
    page.goto(viewer.page(t=MAIN))
    scrubber_says(page, "8 of 8")
    slow = {"offline": False, "latency": 300, "downloadThroughput": 50_000}
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})

    for _ in range(5):
        page.keyboard.press("ArrowLeft")

    scrubber_says(page, "3 of 8")
    newest = page.get_by_role("tabpanel").locator(".message").last
    for shown in (newest, selected(page)):
        expect(shown).to_contain_text("I look up the order")


def test_a_store_that_cannot_be_read_is_said_with_a_way_on(
    page: Page, viewer: Served, complaints: list[str]
):
    error = {"code": "busy", "message": "The store is locked.", "hint": "Wait."}
    answer = json.dumps({"error": error})
    page.route(
        "**/api/1/threads?*", lambda route: route.fulfill(status=423, body=answer)
    )
    page.goto(viewer.page())

    problem = page.locator(".threads").get_by_role("alert")
    expect(problem).to_contain_text("The store is locked.")
    expect(problem).to_contain_text("Wait.")
    page.unroute("**/api/1/threads?*")
    page.get_by_role("button", name="Try again").click()
    expect(options(page, "Threads")).to_have_count(6)
    assert all("423" in said for said in complaints)
    complaints.clear()


def test_a_page_without_token_asks_for_it(
    page: Page, viewer: Served, complaints: list[str]
):
    page.goto(viewer.origin)

    page.get_by_label("Address or token").fill(viewer.page())
    page.get_by_role("button", name="Open").click()

    expect(options(page, "Threads")).to_have_count(6)
    assert all("401" in said for said in complaints)
    complaints.clear()


def test_a_rewind_moves_the_head_and_leaves_the_steps_grey(
    page: Page, writable: Served
):
    page.goto(writable.page(t=MAIN))
    scrubber_says(page, "8 of 8")
    rows = options(page, "Checkpoints")
    rewound = rows.filter(has_text="Your site says 30 days!")
    expect(rewound).to_have_class(re.compile("on-line"))

    with holdfast.open(writable.path) as store:
        store.thread(MAIN).rewind("@~2")

    expect(rewound).to_have_class(re.compile("off-line"))
    expect(rows.filter(has_text="bad-policy")).to_contain_text(MAIN)
    which = page.get_by_label("Which checkpoints")
    which.select_option("line")
    expect(rows).to_have_count(6)
    which.select_option("all")
    expect(rows).to_have_count(8)
