"""Every interaction of the viewer, as steps that work in a window of any width.

Each step ends with something worth a picture. The steps that change the store are last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from everything import DIALECTS, FILES, night
from payday import NOTES, THREAD
from playwright.sync_api import Locator, Page, expect
from story import LONG, MAIN
from viewer_server import Served
from windows import STRIP, copied, options, scrubber_says, selected, until

import holdfast


@dataclass(frozen=True)
class Walk:
    """A window, the viewer it shows, and a folder for files that are saved."""

    page: Page
    server: Served
    folder: Path

    def open(self, thread: str, step: int, tab: str = "chat", pane: str = "Detail"):
        """Open a thread at its head, which is this step."""
        self.page.goto(self.server.page(t=thread, tab=tab))
        self.show(pane)
        self.at_step(step)

    def show(self, pane: str) -> None:
        """Bring a pane in sight; a wide window shows them all."""
        self.page.locator("#app[data-view]").wait_for()
        button = self.page.get_by_role("navigation", name="Panes").get_by_role(
            "button", name=pane, exact=True
        )
        if button.is_visible():
            button.click()
        expect(self.page.get_by_role("region", name=pane)).to_be_visible()

    def at_step(self, step: int) -> None:
        """Wait until all that moves between steps is at this one."""
        scrubber_says(self.page, f"{step} of ")
        expect(self.page.locator(".step-bar h2")).to_contain_text(f"Step {step} ")
        expect(self.panel).not_to_have_attribute("aria-busy", "true")

    def newest(self, thread: str) -> None:
        """Wait until this thread is on top, where the window shows the threads."""
        if self.page.get_by_role("region", name="Threads").is_visible():
            expect(options(self.page, "Threads").first).to_contain_text(thread)

    def press(self, name: str) -> Locator:
        """Press a button of the detail pane; gives the dialog that it opens."""
        bar = self.page.locator(".step-bar")
        bar.get_by_role("button", name=name, exact=True).click()
        return self.dialog

    def tree_row(self, path: str) -> Locator:
        """A row of the tree of the state."""
        return self.panel.locator(f'li[data-anchor="{path}"]')

    @property
    def panel(self) -> Locator:
        return self.page.locator("#detail-panel")

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")


# --- looking --------------------------------------------------------------------------


def first_screen(walk: Walk) -> None:
    walk.page.goto(walk.server.page())
    expect(options(walk.page, "Threads").first).to_contain_text(FILES)
    expect(walk.page.locator(".connection")).to_contain_text("live")


def scrub(walk: Walk) -> None:
    walk.open(MAIN, 8)
    slider = walk.page.get_by_role("slider", name="Step")
    box = slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    walk.page.mouse.move(box["x"] + box["width"] - 6, middle)
    walk.page.mouse.down()
    for part in range(6, 1, -1):
        walk.page.mouse.move(box["x"] + box["width"] * part / 7, middle)
    walk.at_step(3)
    walk.page.mouse.up()
    expect(walk.panel).to_contain_text("I look up the order first.")
    expect(walk.panel).not_to_contain_text("get_order")


def strip(walk: Walk) -> None:
    walk.open(MAIN, 8, tab="charts")
    expect(walk.page.locator(".scrubber-text")).to_contain_text("702 tok · $0.0036")
    shown = walk.page.locator("canvas.strip")
    until(walk.page, lambda: shown.evaluate(STRIP) == [True, True])
    expect(walk.panel.locator("figure")).to_have_count(5)


def minimap(walk: Walk) -> None:
    walk.open(LONG, 30, pane="History")
    walk.page.get_by_role("button", name="Fold tools").click()
    rows = options(walk.page, "Checkpoints")
    canvas = walk.page.locator("canvas.minimap")
    expect(canvas).to_be_visible()
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": 10, "y": box["height"] - 2})
    expect(rows.filter(has_text="Sum up every shop.")).to_be_in_viewport()


def difference_to_the_parent(walk: Walk) -> None:
    walk.open(NOTES, 3, tab="diff")
    expect(walk.panel.locator("del")).to_have_text(["order", "denied", "desk"])
    expect(walk.panel.locator("ins")).to_have_text(["parcel", "granted", "shop"])


def difference_of_any_two(walk: Walk) -> None:
    walk.open(NOTES, 3, tab="diff")
    walk.press("◆ Base")
    walk.page.get_by_role("button", name="First step").click()
    walk.at_step(1)
    expect(walk.panel.locator(".counts")).to_contain_text("2 changed")


def compare_branches(walk: Walk) -> None:
    walk.open("fix-policy", 10, tab="compare")
    expect(walk.panel.locator("th")).to_have_count(3)
    expect(walk.panel.locator(".counts")).to_contain_text("after 5 shared messages")
    name = walk.panel.get_by_role("button", name="try-credit", exact=True)
    name.scroll_into_view_if_needed()
    expect(name).to_be_in_viewport()


def dialects(walk: Walk) -> None:
    walk.open(DIALECTS, 1)
    calls = walk.panel.locator(".call")
    names = ("chat", "responses", "anthropic", "strands", "adk")
    expect(calls).to_contain_text([f"{name}_weather" for name in names])
    degrees = ["1 degree", *(f"{n} degrees" for n in range(2, 6))]
    expect(calls).to_contain_text(degrees)


def tool_card(walk: Walk) -> None:
    walk.open("fix-policy", 10)
    card = walk.panel.locator(".call", has_text="get_order")
    card.locator("summary").click()
    expect(card.locator(".text").first).to_have_text(re.compile('"order": 4812'))
    expect(card).to_contain_text('"paid": 129.0')


def effects(walk: Walk) -> None:
    walk.open(THREAD, 6, tab="effects")
    names = ["Unknown", "Left behind", "Failed", "Repeated", "Happened"]
    expect(walk.panel.get_by_role("heading", level=3)).to_contain_text(names)
    failed = walk.panel.locator(".is-failed")
    failed.locator("summary").click()
    expect(failed).to_contain_text("the card was declined")


def state_tree(walk: Walk) -> None:
    walk.open(NOTES, 3, tab="state")
    expect(walk.tree_row("/deep/one/two")).to_have_count(0)
    walk.tree_row("/deep/one").locator(".toggle").first.click()
    walk.tree_row("/deep/one/two").locator(".toggle").first.click()
    deepest = walk.tree_row("/deep/one/two/three")
    deepest.get_by_role("button", name="Copy path").first.click()
    until(walk.page, lambda: copied(walk.page) == "/deep/one/two/three")


def blame(walk: Walk) -> None:
    walk.open(NOTES, 3, tab="state")
    walk.tree_row("/attempts").locator("button.value").click()
    told = walk.panel.locator(".blame")
    expect(told).to_contain_text("Set by step 2 of notes (edit)")
    expect(told).to_be_in_viewport(ratio=0.9)
    told.get_by_role("button", name="step 2").click()
    walk.at_step(2)
    walk.tree_row("/attempts").locator("button.value").click()
    expect(told).to_contain_text("Set by step 2 of notes (edit)")


def search(walk: Walk) -> None:
    walk.page.goto(walk.server.page())
    walk.page.get_by_label("Search").fill("store credit")
    found = options(walk.page, "Threads").filter(has=walk.page.locator("mark"))
    expect(found.first).to_contain_text("May I offer store credit")
    found.first.click()
    walk.at_step(8)
    hit = walk.panel.locator(".message.found")
    expect(hit).to_contain_text("store credit of $140")
    expect(hit).to_be_in_viewport(ratio=0.9)


def permalink(walk: Walk) -> None:
    walk.open("fix-policy", 10, pane="History")
    options(walk.page, "Checkpoints").filter(has_text="bad-policy").click()
    walk.show("Detail")
    walk.at_step(6)
    walk.press("◆ Base")
    walk.page.get_by_role("tab", name="Meta").click()
    walk.press("Copy link")
    expect(walk.page.locator(".status")).to_contain_text("Copied link.")
    link = copied(walk.page)
    walk.page.goto("about:blank")
    walk.page.goto(link)
    walk.show("History")
    expect(selected(walk.page)).to_contain_text("bad-policy")
    expect(selected(walk.page)).to_contain_text("◆ base")


def keys(walk: Walk) -> None:
    walk.open(MAIN, 8)
    walk.page.get_by_role("button", name="Keys").click()
    expect(walk.dialog).to_contain_text("back to where you were")
    expect(walk.dialog.get_by_role("button", name="Close")).to_be_visible()


def files(walk: Walk) -> None:
    walk.open(FILES, 2, tab="files")
    opened = walk.panel.locator("[data-anchor='a.py']")
    opened.locator("summary").click()
    expect(opened.locator("pre")).to_have_text("one\n2 < 3\n")


def exported_file(walk: Walk) -> None:
    walk.open(MAIN, 8)
    with walk.page.expect_download() as download:
        walk.press("Export")
    file = walk.folder / "thread.html"
    download.value.save_as(file)
    walk.page.goto(file.as_uri())
    expect(walk.page.locator(".connection")).to_contain_text("exported file")
    walk.show("History")
    options(walk.page, "Checkpoints").filter(has_text="#golden").click()
    walk.show("Detail")
    expect(walk.panel).to_contain_text("Refund approved")
    scrubber_says(walk.page, "8 of 10")


def notebook_cell(walk: Walk) -> None:
    with holdfast.open(walk.server.path, read_only=True) as store:
        cell = store.thread(MAIN)._repr_html_()
    walk.page.goto("about:blank")
    walk.page.set_content(cell or "")
    shown = walk.page.frame_locator("iframe")
    expect(shown.locator(".scrubber-text")).to_contain_text("8 of 8")
    shown.get_by_role("button", name="First step").click()
    expect(shown.locator(".scrubber-text")).to_contain_text("1 of 8")
    expect(shown.locator("#detail-panel")).to_contain_text("Be kind.")


# --- changing -------------------------------------------------------------------------


def commands(walk: Walk) -> None:
    walk.open(MAIN, 8)
    buttons = {"Label": "label", "Tag": "tag", "Rewind": "rewind", "Export": "export"}
    for name, command in buttons.items():
        button = walk.page.locator(".step-bar").get_by_role("button", name=name)
        expect(button).to_have_attribute("title", re.compile(f"^holdfast {command} "))
    walk.press("Fork").get_by_label("Name").fill("my try")
    shown = walk.dialog.locator(".command code")
    expect(shown).to_have_text(re.compile(r"^holdfast fork c-\d+ 'my try'$"))
    expect(walk.dialog.get_by_role("button", name="Fork")).to_be_in_viewport(ratio=0.9)


def rewind_preview(walk: Walk) -> None:
    walk.open(FILES, 2)
    walk.page.keyboard.press("Home")
    walk.at_step(1)
    walk.press("Rewind")
    changed = ["~ a.py", "\N{MINUS SIGN} b.bin", "+ old"]
    expect(walk.dialog.locator("li")).to_contain_text(changed)
    walk.page.keyboard.press("Escape")
    walk.open(THREAD, 6)
    walk.page.keyboard.press("Home")
    walk.at_step(1)
    walk.press("Rewind")
    expect(walk.dialog).to_contain_text("would be left behind")
    expect(walk.dialog).to_contain_text('pay {"to":"ann","amount":100}')


def edit_and_fork(walk: Walk) -> None:
    walk.open(MAIN, 8, tab="state")
    row = walk.tree_row("/plan/cursor")
    row.locator("button.value").click()
    row.get_by_role("button", name="Edit and fork").click()
    value = walk.dialog.get_by_label("Value as JSON")
    expect(value).to_have_value("0")
    value.fill('{"at": 7}')
    walk.dialog.get_by_label("Name").fill("edited")
    walk.dialog.get_by_role("button", name="Fork").click()
    expect(walk.dialog).to_have_count(0)
    walk.page.wait_for_url("**t=edited**")
    walk.at_step(9)
    row.locator(".toggle").click()
    expect(walk.tree_row("/plan/cursor/at")).to_contain_text("7")
    walk.newest("edited")


def resolve(walk: Walk) -> None:
    walk.open(THREAD, 6, tab="effects")
    walk.panel.get_by_role("button", name="Resolve").click()
    walk.dialog.get_by_label("Its result").fill('{"receipt": "dee-500"}')
    walk.dialog.get_by_role("button", name="Record").click()
    expect(walk.panel.locator(".is-unknown")).to_have_count(0)
    expect(walk.panel.locator(".is-happened h3")).to_contain_text("3 calls")
    walk.newest(THREAD)


def live_tail(walk: Walk) -> None:
    walk.open(MAIN, 8)
    expect(walk.page.locator(".connection")).to_contain_text("live")
    follow = walk.page.get_by_role("button", name="Follow live")
    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")
    with holdfast.open(walk.server.path, **night("n-")) as store:
        said = {"role": "assistant", "content": "Here is your refund."}
        store.thread(MAIN).append(messages=[said])
    walk.at_step(9)
    expect(walk.panel).to_contain_text("Here is your refund.")
    walk.newest("Here is your refund.")


def back_to_where_i_was(walk: Walk) -> None:
    walk.open(MAIN, 9)
    walk.page.get_by_role("button", name="Step back").click()
    walk.at_step(8)
    walk.page.get_by_role("button", name="First step").click()
    walk.at_step(1)
    walk.page.get_by_role("button", name="↩ Back").click()
    walk.at_step(8)
    walk.show("History")
    expect(selected(walk.page)).to_contain_text("You are right")


STEPS: list[Callable[[Walk], None]] = [
    first_screen,
    scrub,
    strip,
    minimap,
    difference_to_the_parent,
    difference_of_any_two,
    compare_branches,
    dialects,
    tool_card,
    effects,
    state_tree,
    blame,
    search,
    permalink,
    keys,
    files,
    exported_file,
    notebook_cell,
    commands,
    rewind_preview,
    edit_and_fork,
    resolve,
    live_tail,
    back_to_where_i_was,
]
