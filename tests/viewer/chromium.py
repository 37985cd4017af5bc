"""The browser of this machine. Installs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Root has no other way to start Chromium.
ARGUMENTS = ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text"]


FOUND = next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium while the block runs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, args=ARGUMENTS)
        yield browser
        browser.close()
