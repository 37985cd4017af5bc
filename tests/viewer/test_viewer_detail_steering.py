"""What the viewer changes with --write, checked through the library."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from payday import THREAD, open_payday
from playwright.sync_api import Locator, Page, expect
from story import MAIN
from viewer_server import Served, served

import holdfast
from support.snapshots import MemorySnapshot

# What a tab has in an exported file.
TEXTS = {
    "State": "vars",
    "Diff": "1 added",
    "Meta": "sha256:",
    "Context": "tokens",
    "Effects": "No tool call",
    "Charts": "Which values grow",
    "Compare": "5 shared messages",
    "Files": "No files were saved",
}


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[Served]:
    """A viewer that may change a store with payments."""
    path = str(tmp_path / "paid.db")
    open_payday(path)
    with served(path, write=True) as server:
        yield server


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[Served]:
    """A viewer over a thread whose files have changed."""
    path = str(tmp_path / "files.db")
    with holdfast.open(path) as store:
        thread = store.thread("report")
        thread.save(1, files=MemorySnapshot({"a.py": b"one\ntwo\n", "old": b"x"}))
        thread.save(1, files=MemorySnapshot({"a.py": b"one\n2 < 3\n", "b.bin": b"\0"}))
    with served(path, write=True) as server:
        yield server


def press(page: Page, name: str) -> Locator:
    """Press a button of the detail pane; gives the dialog that it opens."""
    page.locator(".step-bar").get_by_role("button", name=name, exact=True).click()
    return page.get_by_role("dialog")


def at_step(page: Page, step: int, last: int) -> None:
    """Wait for a step, and for all that moves between steps."""
    expect(page.locator(".scrubber-text")).to_contain_text(f"{step} of {last}")
    expect(page.locator(".step-bar h2")).to_contain_text(f"Step {step} ")


def told(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator(".status")).to_contain_text(text)


def test_without_write_nothing_can_be_changed(page: Page, viewer: Served):
    page.goto(viewer.page(t=MAIN))
    buttons = page.locator(".step-bar").get_by_role("button")

    expect(buttons).to_have_text(["◆ Base", "Copy link", "Export"])


def test_a_fork_from_here_and_its_command_do_the_same(page: Page, writable: Served):
    page.goto(writable.page(t=MAIN))
    dialog = press(page, "Fork")
    expect(dialog.get_by_label("Name")).to_be_focused()
    dialog.get_by_label("Name").fill("my try")
    command = dialog.locator(".command code")
    expect(command).to_have_text(re.compile(r"^holdfast fork c-\d+ 'my try'$"))
    dialog.get_by_role("button", name="Fork").click()

    told(page, "Done: holdfast fork c-")
    page.wait_for_url("**t=my+try**")
    expect(page.locator(".chip.here")).to_have_text("my try")
    with holdfast.open(writable.path) as store:
        assert store.thread("my try").get() == store.thread(MAIN).get()


def test_a_value_is_edited_as_json_and_the_fork_has_it(page: Page, writable: Served):
    page.goto(writable.page(t=MAIN, tab="state"))
    row = page.locator('li[data-anchor="/plan/cursor"]')
    row.locator("button.value").click()
    row.get_by_role("button", name="Edit and fork").click()
    dialog = page.get_by_role("dialog")
    value = dialog.get_by_label("Value as JSON")
    expect(value).to_have_value("0")
    value.fill("{")
    expect(dialog.get_by_role("status")).to_contain_text("Not JSON yet")
    dialog.get_by_role("button", name="Fork").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The value is not JSON")

    value.fill('{"at": 7}')
    expect(dialog.locator(".command code")).to_contain_text(
        """'--set=/plan/cursor={"at":7}'"""
    )
    dialog.get_by_label("Name").fill("edited")
    dialog.get_by_role("button", name="Fork").click()

    told(page, "Done")
    expect(row).to_have_count(1)
    with holdfast.open(writable.path) as store:
        edited = store.thread("edited").load()
        assert edited["plan"]["cursor"] == {"at": 7}
        assert edited["messages"] == store.thread(MAIN).load()["messages"]


def test_the_whole_state_can_be_edited(page: Page, writable: Served):
    page.goto(writable.page(t=MAIN))
    dialog = press(page, "Edit and fork")
    value = dialog.get_by_label("Value as JSON")
    expect(value).to_have_value(re.compile('"title": "Refund for order 4812"'))
    value.fill('{"title": "anew", "messages": []}')
    dialog.get_by_label("Name").fill("anew")
    dialog.get_by_role("button", name="Fork").click()

    told(page, "Done")
    with holdfast.open(writable.path) as store:
        assert store.thread("anew").load() == {"title": "anew", "messages": []}


def test_labels_and_tags_are_set_and_taken_away(page: Page, writable: Served):
    page.goto(writable.page(t="fix-policy"))
    dialog = press(page, "Label")
    dialog.get_by_label("Label").fill("the good one")
    dialog.get_by_role("button", name="Save").click()
    chips = page.locator(".step-bar .chip")
    expect(chips).to_have_text(["the good one"])
    dialog = press(page, "Tag")
    dialog.get_by_label("Another tag").fill("red, green")
    dialog.get_by_role("button", name="Save").click()
    expect(chips).to_have_text(["the good one", "#red, green"])
    with holdfast.open(writable.path) as store:
        head = store.thread("fix-policy").get()
        assert (head.label, list(head.tags)) == ("the good one", ["red, green"])

    dialog = press(page, "Tag")
    dialog.get_by_label("red, green").uncheck()
    expect(dialog.locator(".command code")).to_contain_text("--delete 'red, green'")
    dialog.get_by_role("button", name="Save").click()
    dialog = press(page, "Label")
    dialog.get_by_label("Label").fill("")
    dialog.get_by_role("button", name="Save").click()
    expect(chips).to_have_count(0)
    with holdfast.open(writable.path) as store:
        head = store.thread("fix-policy").get()
        assert (head.label, list(head.tags)) == (None, [])


def test_a_rewind_is_shown_first_with_the_effects_it_leaves_behind(
    paid: Served, page: Page
):
    page.goto(paid.page(t=THREAD))
    at_step(page, 6, 6)
    page.keyboard.press("Home")
    at_step(page, 1, 6)
    dialog = press(page, "Rewind")
    expect(dialog).to_contain_text("The head goes back by 5 steps.")
    expect(dialog).to_contain_text("would be left behind")
    expect(dialog).to_contain_text('pay {"to":"ann","amount":100}')
    assert Axe().run(page).response["violations"] == []
    page.keyboard.press("Escape")
    with holdfast.open(paid.path) as store:
        assert store.thread(THREAD).step == 6

    dialog = press(page, "Rewind")
    dialog.get_by_role("button", name="Rewind").click()
    told(page, "Done: holdfast rewind conversation:payday@p-")
    with holdfast.open(paid.path) as store:
        assert store.thread(THREAD).step == 1
        assert store.thread(THREAD).undo().step == 6


def test_files_that_differ_are_shown_before_a_rewind_and_as_lines(
    filed: Served, page: Page
):
    page.goto(filed.page(t="report", tab="diff"))
    at_step(page, 2, 2)
    rows = page.get_by_role("tabpanel").locator(".change")
    expect(rows).to_contain_text(["a.py", "b.bin 1 B", "old 1 B"])
    expect(page.locator(".counts")).to_have_text("3 files")
    rows.first.locator("summary").click()
    expect(rows.first.locator("ins")).to_have_text("+2 < 3")
    expect(rows.first.locator("del")).to_have_text("-two")
    assert Axe().run(page).response["violations"] == []
    page.keyboard.press("Home")
    at_step(page, 1, 2)

    dialog = press(page, "Rewind")

    expect(dialog).to_contain_text("3 files would differ; no folder is touched")
    names = ["~ a.py", "\N{MINUS SIGN} b.bin", "+ old"]
    expect(dialog.locator("li")).to_have_text(names)


def test_an_interrupted_call_is_resolved_with_what_is_true(paid: Served, page: Page):
    page.goto(paid.page(t=THREAD, tab="effects"))
    panel = page.get_by_role("tabpanel")
    panel.get_by_role("button", name="Resolve").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What became of it").select_option("error")
    dialog.get_by_label("Its result").fill("the bank never got it")
    dialog.get_by_label("What became of it").select_option("result")
    dialog.get_by_label("Its result").fill('{"receipt": "dee-500"}')
    expect(dialog.locator(".command code")).to_contain_text(
        "holdfast resolve conversation:payday fifth --result"
    )
    dialog.get_by_role("button", name="Record").click()

    expect(panel.locator(".is-unknown")).to_have_count(0)
    expect(panel.locator(".is-happened h3")).to_contain_text("3 calls")
    with holdfast.open(paid.path) as store:
        ended = store.thread(THREAD).effects()[-1]
        assert (ended.status, ended.result) == ("completed", {"receipt": "dee-500"})


def test_of_two_people_the_slower_is_told_and_changes_nothing(
    page: Page, writable: Served, complaints: list[str]
):
    page.goto(writable.page(t=MAIN))
    at_step(page, 8, 8)
    page.keyboard.press("ArrowLeft")
    at_step(page, 7, 8)
    dialog = press(page, "Rewind")
    expect(dialog).to_contain_text("The head goes back by 1 step.")
    with holdfast.open(writable.path) as store:
        newest = store.thread(MAIN).append(messages=[{"role": "user", "content": "Hi"}])
    dialog.get_by_role("button", name="Rewind").click()

    expect(dialog.get_by_role("alert")).to_contain_text(
        "Another change was saved first"
    )
    with holdfast.open(writable.path) as store:
        assert store.thread(MAIN).get().id == newest.id
    dialog.get_by_role("button", name="Look at the newest state").click()
    at_step(page, 9, 9)

    dialog = press(page, "Label")
    expect(dialog).to_be_visible()
    with holdfast.open(writable.path) as store:
        store.thread(MAIN).label("mine", newest)
    dialog.get_by_label("Label").fill("yours")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("was changed meanwhile")
    page.keyboard.press("Escape")
    dialog = press(page, "Fork")
    dialog.get_by_label("Name").fill("fix-policy")
    dialog.get_by_role("button", name="Fork").click()
    expect(dialog.get_by_role("alert")).to_contain_text("fix-policy")

    # Chromium writes every answer with an error to the console.
    assert [said for said in complaints if "status of 409" not in said] == []
    complaints.clear()


def test_the_export_button_saves_a_file_with_the_same_tabs(
    new_page: Callable[..., Page], viewer: Served, tmp_path: Path
):
    page = new_page(accept_downloads=True)
    page.goto(viewer.page(t="fix-policy"))
    with page.expect_download() as download:
        press(page, "Export")
    assert download.value.suggested_filename == "fix-policy.html"
    download.value.save_as(tmp_path / "thread.html")

    page.goto((tmp_path / "thread.html").as_uri())
    page.get_by_role("option").filter(has_text="fix-policy").first.click()
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("Refund approved: $129.00.")
    for name, text in TEXTS.items():
        page.get_by_role("tab", name=name).click()
        expect(panel).to_contain_text(text)
        expect(panel.get_by_role("alert")).to_have_count(0)
    page.get_by_role("tab", name="State").click()
    panel.locator('li[data-anchor="/vars/attempts"] button.value').click()
    expect(panel).to_contain_text("This file does not contain that.")
    buttons = page.locator(".step-bar").get_by_role("button")
    expect(buttons).to_have_text(["◆ Base", "Copy link"])
