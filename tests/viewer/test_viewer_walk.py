"""Every interaction of the viewer in both themes and at three widths, with pictures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from everything import NIGHT, night, open_everything
from pictures import compare
from playwright.sync_api import Page
from viewer_server import Served, served
from walk import STEPS, Walk
from windows import THEMES, WIDTHS

from support.effort import THOROUGH

# What is wider than its place, and so cut off or to be scrolled sideways.
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll("dialog")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.className)"""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("everything") / "agents.db"
    open_everything(str(path))
    return path


@pytest.fixture
def writable(everything: Path, tmp_path: Path) -> Iterator[Served]:
    """A viewer that may change a copy; its clock and its ids are always the same."""
    path = shutil.copy(everything, tmp_path)
    with served(str(path), write=True, **night("w-")) as server:
        yield server


@pytest.mark.skipif(not THOROUGH, reason="takes a minute and a half")
@pytest.mark.parametrize(("width", "theme"), [*product(WIDTHS, THEMES)])
def test_every_interaction_works_and_looks_as_it_did(
    new_page: Callable[..., Page],
    writable: Served,
    tmp_path: Path,
    width: str,
    theme: str,
):
    clipboard = ["clipboard-read", "clipboard-write"]
    page = new_page(width=width, theme=theme, permissions=clipboard)
    page.context.clock.set_fixed_time(NIGHT / 1_000_000)
    walk = Walk(page, writable, tmp_path)
    for step in STEPS:
        step(walk)
        assert page.evaluate(TOO_WIDE) == []
        compare(page, f"{step.__name__}-{width}-{theme}")
