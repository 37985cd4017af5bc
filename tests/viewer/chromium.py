"""The browser of this machine. Installs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Root has no other way to start Chromium.
ARGUMENTS = ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium while the block runs; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()
