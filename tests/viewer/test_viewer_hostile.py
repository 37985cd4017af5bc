"""Stored text stays text, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from payloads import PAYLOADS
from playwright.sync_api import Page, expect
from viewer_server import Served, served
from windows import options, scrubber_says, until

import holdfast

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

# What Chromium says of a picture, of markup and of code that the policy forbids.
STOPPED = ["img-src", "TrustedHTML", "TrustedScript"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A viewer over a store with every payload in every field that has room for it."""
    path = str(Path(tmp_path_factory.mktemp("hostile")) / "agents.db")
    with holdfast.open(path, durability="normal") as store:
        for text in PAYLOADS:
            thread = store.thread(text, owner=text, agent=text, kind=text)
            thread.save({"title": text, text: text}, label=text, tags=[text])
        thread = store.thread("all of them")
        for number, text in enumerate(PAYLOADS):
            function = {"name": text, "arguments": text}
            call = {"id": f"{number}", "type": "function", "function": function}
            said = {"role": text, "name": text, "content": text, "tool_calls": [call]}
            options_ = {"label": text, "tags": [text], "kind": text}
            metadata: dict[str, object] = {text: text, "model": text}
            thread.extend({"messages": [said]}, metadata=metadata, **options_)
    with served(path, write=True) as server:
        yield server


def assert_inert(page: Page) -> None:
    assert page.evaluate("window.pwned") is None
    assert page.locator("script").count() == 1
    assert page.locator("iframe, object, embed, img, base, main style").count() == 0


def scroll_through(page: Page, name: str) -> None:
    page.evaluate(
        "async name => { const list = document.getElementById(name);"
        "for (let top = 0; top < list.scrollHeight; top += list.clientHeight) {"
        "list.scrollTop = top; await new Promise(requestAnimationFrame); } }",
        name,
    )


def test_two_hundred_stored_payloads_are_shown_as_text(page: Page, hostile: Served):
    assert len(set(PAYLOADS)) == 200
    opened: list[str] = []
    page.on("dialog", lambda dialog: opened.append(dialog.message))
    page.goto(hostile.page())
    expect(options(page, "Threads").first).to_contain_text("all of them")
    page.keyboard.press("t")
    for known in (50, 100, 150, 200, 201):
        last = options(page, "Threads").last
        expect(last).to_have_attribute("aria-setsize", str(known))
        page.keyboard.press("End")
    expect(options(page, "Threads").last).to_have_attribute("aria-posinset", "201")
    scroll_through(page, "threads")
    assert_inert(page)

    options(page, "Threads").last.click()
    scrubber_says(page, "1 of 1")
    assert_inert(page)
    for key in ("t", "Home", "Enter"):
        page.keyboard.press(key)
    scrubber_says(page, "200 of 200")
    expect(options(page, "Checkpoints").first).to_contain_text(PAYLOADS[-1])
    scroll_through(page, "graph")
    page.keyboard.press("ArrowLeft")
    for name in TABS:
        page.get_by_role("tab", name=name, exact=True).click()
        expect(page.get_by_role("tabpanel")).not_to_have_attribute("aria-busy", "true")
        assert_inert(page)
    page.keyboard.press("/")
    page.keyboard.type("window")
    expect(options(page, "Threads").locator("mark").first).to_be_attached()
    assert_inert(page)
    assert opened == []


def test_the_policy_stops_what_a_defect_would_let_through(
    page: Page, hostile: Served, complaints: list[str]
):
    page.goto(hostile.page())
    expect(options(page, "Threads").first).to_contain_text("all of them")

    stopped = page.evaluate(
        """async () => {
          const image = new Image();
          const refused = new Promise((done) => (image.onerror = () => done("image")));
          image.src = "http://127.0.0.1:1/said.png";
          const names = [await refused];
          try { document.body.innerHTML = "<b>said</b>"; }
          catch (error) { names.push(error.name); }
          try { document.createElement("script").text = "window.pwned = 1"; }
          catch (error) { names.push(error.name); }
          return names;
        }"""
    )

    assert stopped == ["image", "TypeError", "TypeError"]
    until(page, lambda: len(complaints) >= len(STOPPED))
    for said, wanted in zip(complaints, STOPPED, strict=True):
        assert wanted in said
    complaints.clear()
