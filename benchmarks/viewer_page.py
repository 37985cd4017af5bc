"""The memory that the viewer's page takes in Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
MOVES = 10
SCROLL = """part => {
  const list = document.getElementById("graph");
  list.scrollTop = part * list.scrollHeight;
}"""
# Rows that wait for their page of the log have no checkpoint.
LOADED = """() => [...document.querySelectorAll("#graph [role=option]")]
  .every((row) => row.dataset.checkpoint)"""


@contextmanager
def chromium() -> Iterator[Browser | None]:
    """The Chromium of this machine while the block runs, if there is one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        yield None
        return
    with sync_playwright() as playwright:
        # Root has no other way to start Chromium.
        options = ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=found, args=options)
        yield browser
        browser.close()


def memory(browser: Browser, path: str, thread: str) -> float:
    """Bytes of the heap after someone scrolled and scrubbed through a thread."""
    with _served(path) as address, browser.new_context() as context:
        page = context.new_page()
        page.goto(address.replace("#", f"?t={thread}#"))
        expect(page.locator("#graph [aria-selected=true]")).to_be_visible()
        _look_around(page)
        session = context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        session.send("Performance.enable")
        found = session.send("Performance.getMetrics")["metrics"]
        sizes = {metric["name"]: metric["value"] for metric in found}
        return float(sizes["JSHeapUsedSize"])


def _look_around(page: Page) -> None:
    slider = page.get_by_role("slider", name="Step")
    for move in range(MOVES):
        page.evaluate(SCROLL, move / MOVES)
        page.wait_for_function(LOADED)
        last = int(slider.get_attribute("max") or 0)
        slider.fill(str(last * move // MOVES))
        page.wait_for_function(LOADED)
        panel = page.get_by_role("tabpanel")
        expect(panel).not_to_have_attribute("aria-busy", "true")


@contextmanager
def _served(path: str) -> Iterator[str]:
    """The address of a viewer in a process of its own."""
    command = [sys.executable, "-m", "holdfast", "serve", "--store", path, "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"http\S+", process.stderr.readline())
        assert found, "the viewer does not say where it is"
        try:
            yield found[0]
        finally:
            process.terminate()
