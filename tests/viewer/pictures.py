"""Pictures of the page, compared to stored ones; UPDATE_PICTURES=1 replaces those."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

from PIL import Image, ImageChops, ImageFilter, ImageStat
from playwright.sync_api import Page

FOLDER = Path(__file__).parent / "pictures"
DOCS = Path(__file__).parents[2] / "docs" / "pictures"
UPDATE = bool(os.environ.get("UPDATE_PICTURES"))
# Fonts differ between machines: pictures are compared small and blurred, and their
# mean difference, of 255, has to be below this. A missing pane makes 5 and more.
MOST = 2.5
SMALL = (350, 200)
DOCS_HEIGHT = 620
PATIENCE = 60  # seconds
BETWEEN_MS = 100
# A notice goes away after a while; a picture is made as if it had.
CLEAR = "document.querySelector('.status')?.replaceChildren()"


def compare(page: Page, name: str) -> None:
    """Fail if the page does not look as the stored picture of this name."""
    page.mouse.move(0, 0)
    path = FOLDER / f"{name}.png"
    if UPDATE:
        FOLDER.mkdir(exist_ok=True)
        _quiet(page).quantize(48).save(path, optimize=True)
    stored = Image.open(path).convert("RGB")
    far = _distance(_shot(page), stored)
    # The last answers of the server may still be on their way.
    end = time.monotonic() + PATIENCE
    while far >= MOST and time.monotonic() < end:
        page.wait_for_timeout(BETWEEN_MS)
        far = _distance(_shot(page), stored)
    assert far < MOST, f"{name} differs by {far:.1f}; look, then UPDATE_PICTURES=1"


def keep_for_docs(page: Page, name: str) -> None:
    """Store a picture for the documentation, if pictures are made."""
    if UPDATE:
        DOCS.mkdir(exist_ok=True)
        size = page.viewport_size
        assert size is not None
        page.set_viewport_size({"width": size["width"], "height": DOCS_HEIGHT})
        shot = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
        few = shot.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        few.save(DOCS / f"{name}.png", optimize=True)
        page.set_viewport_size(size)


def _quiet(page: Page) -> Image.Image:
    """A picture of the page when it no longer changes."""
    before, now = None, _shot(page)
    while now != before:
        page.wait_for_timeout(BETWEEN_MS)
        before, now = now, _shot(page)
    return now


def _shot(page: Page) -> Image.Image:
    page.evaluate(CLEAR)
    shot = page.screenshot(animations="disabled")
    return _small(Image.open(io.BytesIO(shot)).convert("RGB"))


def _distance(one: Image.Image, other: Image.Image) -> float:
    difference = ImageChops.difference(_blurred(one), _blurred(other))
    return sum(ImageStat.Stat(difference).mean) / 3


def _small(picture: Image.Image) -> Image.Image:
    fits = picture.copy()
    fits.thumbnail(SMALL)
    return fits


def _blurred(picture: Image.Image) -> Image.Image:
    return picture.filter(ImageFilter.GaussianBlur(3))
