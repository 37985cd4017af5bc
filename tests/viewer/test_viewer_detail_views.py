"""The detail pane in Chromium: what each tab shows of a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from payday import HOSTILE, NOTES, TALK, THREAD, open_payday
from playwright.sync_api import Locator, Page, expect
from viewer_server import Served, served
from windows import copied, until

TABS = ("chat", "state", "diff", "meta", "context", "charts", "compare", "effects")


@pytest.fixture(scope="module")
def payday(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A read-only viewer over payments, notes and hostile texts."""
    path = str(tmp_path_factory.mktemp("payday") / "agents.db")
    open_payday(path)
    with served(path) as server:
        yield server


def panel(page: Page) -> Locator:
    return page.get_by_role("tabpanel")


def step(page: Page, number: int) -> None:
    """Wait for a step, and for all that moves between steps."""
    expect(page.locator(".scrubber-text")).to_contain_text(f"{number} of ")
    expect(page.locator(".step-bar h2")).to_contain_text(f"Step {number} ")


def tree_row(page: Page, path: str) -> Locator:
    return panel(page).locator(f'li[data-anchor="{path}"]')


def test_the_chat_pairs_calls_with_results_and_keeps_cards_open_while_scrubbing(
    page: Page, viewer: Served
):
    page.goto(viewer.page(t="fix-policy"))
    expect(panel(page).locator(".message")).to_have_count(7)
    step(page, 10)
    card = panel(page).locator(".call", has_text="get_order")
    expect(card).to_contain_text('→ {"delivered": true, "paid": 129.0}')
    expect(card.get_by_text("Arguments")).to_have_count(0)

    card.locator("summary").click()
    expect(card.locator(".text").first).to_have_text(re.compile('"order": 4812'))
    page.keyboard.press("ArrowLeft")
    step(page, 9)

    expect(panel(page).locator(".call.is-open")).to_contain_text("no result yet")
    expect(card).to_have_attribute("open", "")


def test_pictures_and_long_texts_come_when_they_are_asked_for(
    page: Page, payday: Served
):
    page.goto(payday.page(t=f"x {HOSTILE}"))
    expect(panel(page).locator("img")).to_have_count(0)

    panel(page).get_by_role("button", name=re.compile("image .* — show")).click()
    picture = panel(page).locator("img")
    expect(picture).to_have_js_property("naturalWidth", 1)

    page.get_by_role("tab", name="State").click()
    long = tree_row(page, "/long")
    long.locator(".toggle").click()
    long.get_by_role("button", name=re.compile("Show all")).click()
    expect(long.locator(".text")).to_contain_text("<script>")


def test_a_long_transcript_is_shown_in_pages_and_a_search_jumps_into_it(
    page: Page, payday: Served
):
    page.goto(payday.page(t=TALK))
    expect(panel(page).locator(".message").last).to_contain_text("the last one")
    expect(panel(page).locator(".message").last).to_be_in_viewport()
    panel(page).get_by_role("button", name=re.compile("earlier")).click()
    expect(panel(page).get_by_text("message number 152", exact=True)).to_be_attached()

    page.locator("#search").fill("xylophone")
    page.get_by_role("option").filter(has_text="xylophone").click()

    found = panel(page).locator(".message.found")
    expect(found).to_contain_text("message number 20 has the word")
    expect(found).to_be_in_viewport()
    panel(page).get_by_role("button", name=re.compile("later")).click()
    expect(panel(page).get_by_text("message number 200", exact=True)).to_be_attached()


def test_scrubbing_never_empties_the_panel_and_keeps_the_place(
    page: Page, payday: Served
):
    page.goto(payday.page(t=NOTES, tab="state"))
    tree_row(page, "/items").get_by_role("button", name=re.compile("more")).click()
    step(page, 3)
    row = tree_row(page, "/items/40")
    row.scroll_into_view_if_needed()
    before = row.bounding_box()
    page.evaluate(
        """() => {
          const panel = document.getElementById("detail-panel");
          window.least = panel.childElementCount;
          const count = () => {
            window.least = Math.min(window.least, panel.childElementCount);
            requestAnimationFrame(count);
          };
          count();
        }"""
    )

    for key in ["ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"]:
        page.keyboard.press(key)
    step(page, 1)
    expect(tree_row(page, "/attempts").locator("button.value")).to_have_text("1")

    assert page.evaluate("window.least") == 1
    assert row.bounding_box() == before


def test_the_state_is_a_tree_whose_values_say_who_set_them(
    new_page: Callable[..., Page], payday: Served
):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(payday.page(t=NOTES, tab="state"))
    expect(tree_row(page, "/deep/one")).to_be_visible()
    expect(tree_row(page, "/deep/one/two")).to_have_count(0)

    tree_row(page, "/deep/one").locator(".toggle").first.click()
    tree_row(page, "/deep/one/two").locator(".toggle").first.click()
    deepest = tree_row(page, "/deep/one/two/three")
    expect(deepest).to_be_visible()
    deepest.get_by_role("button", name="Copy path").first.click()
    until(page, lambda: copied(page) == "/deep/one/two/three")

    page.get_by_label("Filter").fill("three")
    expect(deepest).to_be_visible()
    expect(tree_row(page, "/attempts")).to_be_hidden()
    page.get_by_role("button", name="Step back").dispatch_event("click")
    step(page, 2)
    expect(page.get_by_label("Filter")).to_be_focused()
    expect(tree_row(page, "/attempts")).to_be_hidden()
    page.get_by_label("Filter").fill("")

    tree_row(page, "/attempts").locator("button.value").click()
    blame = panel(page).locator(".blame")
    expect(blame).to_contain_text("Set by step 2 of notes (edit)")
    blame.get_by_role("button").click()
    step(page, 2)
    expect(deepest).to_be_visible()


def test_the_difference_is_to_the_parent_or_to_any_base(page: Page, payday: Served):
    page.goto(payday.page(t=NOTES, tab="diff"))
    change = panel(page).locator(".change")
    expect(change).to_have_count(1)
    expect(change.locator("del")).to_have_text(["order", "denied", "desk"])
    expect(change.locator("ins")).to_have_text(["parcel", "granted", "shop"])
    expect(panel(page).locator(".command")).to_contain_text("holdfast diff")

    step(page, 3)
    page.get_by_role("button", name="◆ Base").click()
    expect(panel(page)).to_contain_text("This checkpoint is the base")
    page.keyboard.press("Home")
    step(page, 1)
    expect(panel(page).locator(".counts")).to_contain_text("2 changed")
    expect(panel(page)).to_contain_text("attempts")
    page.get_by_role("button", name="Swap").click()
    step(page, 3)
    expect(panel(page).locator(".op-changed", has_text="attempts")).to_contain_text(
        "1 → 2"
    )
    page.get_by_role("button", name="Compare with parent").click()
    expect(change).to_have_count(1)

    page.goto(payday.page(t=THREAD, tab="diff"))
    added = panel(page).locator(".change.op-added").first
    expect(added).to_contain_text('⚙ pay {"to":"dee","amount":500}')


def test_meta_and_context_tell_what_a_checkpoint_is_and_what_the_model_saw(
    new_page: Callable[..., Page], viewer: Served
):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(viewer.page(t="fix-policy", tab="meta"))
    facts = panel(page).locator(".facts")
    expect(facts).to_contain_text("sha256:")
    expect(facts).to_contain_text("Forked fromsupport-4812 at step 5")
    expect(facts).to_contain_text("stored")
    command = panel(page).locator(".command", has_text="holdfast show").first
    command.get_by_role("button", name="Copy command").click()
    until(page, lambda: copied(page).startswith("holdfast show c-"))
    # In one go: the address of the page comes later than the link has to.
    page.locator(".step-bar .actions").evaluate(
        "bar => bar.querySelectorAll('button').forEach((button) =>"
        " /Base|Copy link/.test(button.textContent) && button.click())"
    )
    expect(page.locator(".status")).to_contain_text("Copied link.")
    assert re.search(r"t=fix-policy&c=c-\d+&base=c-\d+&tab=meta$", copied(page))
    facts.get_by_role("button", name="c-", exact=False).first.click()
    step(page, 9)

    page.get_by_role("tab", name="Context").click()
    expect(panel(page).get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"^\d+ tokens$")
    )
    expect(panel(page).locator(".fold")).to_have_count(9)
    expect(panel(page).locator(".legend")).to_contain_text("assistant")
    call = panel(page).locator(".fold", has_text='⚙ get_order {"order":4812}')
    call.locator("summary").click()
    expect(call.get_by_role("heading")).to_have_text("⚙ get_order")


def test_effects_are_sorted_by_what_became_of_them(page: Page, payday: Served):
    page.goto(payday.page(t=THREAD, tab="effects"))

    headings = panel(page).get_by_role("heading", level=3)
    expect(headings).to_have_text(
        [
            "?Unknown 1 call",
            "⤺Left behind 1 call",
            "✖Failed 1 call",
            "↻Repeated 1 call",
            "✓Happened 2 calls",
        ]
    )
    failed = panel(page).locator(".is-failed")
    failed.locator("summary").click()
    expect(failed).to_contain_text("the card was declined")
    assert Axe().run(page).response["violations"] == []
    expect(page.get_by_role("button", name="Resolve")).to_have_count(0)
    failed.get_by_role("button", name="Show its step").click()
    step(page, 3)
    expect(panel(page).locator(".is-unknown")).to_have_count(0)


def test_charts_are_pictures_with_a_table_of_the_same_numbers(
    page: Page, viewer: Served
):
    page.goto(viewer.page(t="fix-policy", tab="charts"))
    figures = panel(page).locator("figure")
    expect(figures).to_have_count(5)
    tokens = figures.filter(has_text="Tokens")
    expect(tokens.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile("Tokens over 10 points: tokens at most 671")
    )
    tokens.get_by_text("Table").click()
    expect(tokens.get_by_role("row")).to_have_count(11)
    expect(tokens.get_by_role("row").nth(8)).to_have_text("8671")

    picture = tokens.locator("canvas")
    drawn = "canvas => canvas.getContext('2d').getImageData(0, 0, 500, 100)"
    until(page, lambda: picture.evaluate(f"{drawn}.data.some((value) => value > 0)"))
    grown = figures.filter(has_text="Which values grow")
    expect(grown.locator(".legend")).to_contain_text("messages")
    box = picture.bounding_box()
    assert box is not None
    picture.hover(position={"x": box["width"] - 12, "y": 40})
    expect(tokens.locator(".reading")).to_contain_text("step 10")
    picture.click(position={"x": 60, "y": 40})
    step(page, 1)


def test_branches_stand_side_by_side_up_to_where_they_part(page: Page, viewer: Served):
    page.goto(viewer.page(t="fix-policy", tab="compare"))
    heads = panel(page).locator("th")
    expect(heads).to_have_count(3)
    expect(panel(page).locator(".counts")).to_have_text(
        "The branches part after 5 shared messages."
    )
    expect(panel(page).locator("tr", has_text="Refund denied")).to_contain_text(
        "get_policy"
    )

    panel(page).get_by_role("checkbox", name="support-4812").uncheck()
    expect(heads).to_have_count(2)
    expect(panel(page).locator(".counts")).to_contain_text("7 shared messages")
    panel(page).get_by_role("button", name="try-credit", exact=True).click()
    expect(page.locator(".step-bar")).to_contain_text("Step 8 ")


def test_stored_markup_stays_text_in_every_tab(page: Page, payday: Served):
    page.goto(payday.page(t=f"y {HOSTILE}"))
    expect(panel(page).locator(".message").first).to_contain_text("<script>")
    for tab in TABS:
        if tab == "effects":  # the payments have them
            page.goto(payday.page(t=THREAD, tab=tab))
        page.locator(f"#tab-{tab}").click()
        expect(panel(page)).to_have_attribute("aria-labelledby", f"tab-{tab}")
        expect(panel(page)).to_contain_text("<img src=x")
        panel(page).evaluate(
            "panel => panel.querySelectorAll('details').forEach(d => d.open = true)"
        )
        markup = page.locator("#app :is(script, a, img, iframe, [onerror])")
        assert markup.count() == 0
    assert page.title() == f"{THREAD} · Holdfast"


def test_the_tabs_are_moved_through_with_the_arrow_keys(page: Page, viewer: Served):
    page.goto(viewer.page(t="fix-policy"))
    step(page, 10)
    page.get_by_role("tab", name="Chat").focus()

    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Files")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")

    expect(page.get_by_role("tab", name="State")).to_have_attribute(
        "aria-selected", "true"
    )
    expect(panel(page)).to_have_attribute("aria-labelledby", "tab-state")
    step(page, 10)
