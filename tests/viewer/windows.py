"""What the tests look for in a window of the viewer."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

WIDTHS = {"narrow": 360, "middle": 800, "wide": 1400}


def options(page: Page, label: str) -> Locator:
    """The rows of a list, by the list's name."""
    return page.get_by_role("listbox", name=label).get_by_role("option")


def selected(page: Page) -> Locator:
    """The row of the selected checkpoint."""
    return page.locator("#graph [aria-selected=true]")


def scrubber_says(page: Page, text: str) -> None:
    """Wait until the scrubber says where it is."""
    expect(page.locator(".scrubber-text")).to_contain_text(text)
