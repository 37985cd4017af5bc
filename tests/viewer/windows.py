"""What the tests look for in a window of the viewer."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

WIDTHS = {"narrow": 360, "middle": 800, "wide": 1400}
THEMES = ("light", "dark")
PATIENCE = 60  # seconds
BETWEEN_MS = 10
# Whether a strip has the bar of a step with tokens, and the mark of its cost.
STRIP = """canvas => {
  const { borderBottomColor: bar, borderLeftColor: mark } = getComputedStyle(canvas);
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const pixels = Array.from({ length: width * height }, (_, at) =>
    `rgb(${data.slice(4 * at, 4 * at + 3).join(", ")})`);
  return [bar, mark].map((colour) => pixels.includes(colour));
}"""


def options(page: Page, label: str) -> Locator:
    """The rows of a list, by the list's name."""
    return page.get_by_role("listbox", name=label).get_by_role("option")


def selected(page: Page) -> Locator:
    """The row of the selected checkpoint."""
    return page.locator("#graph [aria-selected=true]")


def until(page: Page, condition: Callable[[], bool]) -> None:
    """Wait for what the page tells by an event, such as a request."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        page.wait_for_timeout(BETWEEN_MS)


def copied(page: Page) -> str:
    """What is on the clipboard, some time after a button was clicked."""
    return str(page.evaluate("navigator.clipboard.readText()"))


def scrubber_says(page: Page, text: str) -> None:
    """Wait until the scrubber says where it is."""
    expect(page.locator(".scrubber-text")).to_contain_text(text)
