"""A real browser on a real server over a real store. Installs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from chromium import FOUND, chromium
from playwright.sync_api import Browser, BrowserContext, Page, expect
from story import MORNING, open_story
from viewer_server import Served, served
from windows import WIDTHS

from holdfast.testing import FakeClock

# On a crowded machine a page needs seconds for what it usually shows at once.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
LATER = MORNING + 30 * 60 * 1_000_000


def pytest_runtest_setup(item: pytest.Function) -> None:
    """Skip here, not in a fixture: then pytest reports all tests in one line."""
    if FOUND is None and "browser" in item.fixturenames:
        pytest.skip("there is no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one module: its event loop would disturb other tests."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def story_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a bit of everything; to be copied by tests that change it."""
    path = str(tmp_path_factory.mktemp("viewer") / "agents.db")
    open_story(path)
    return path


@pytest.fixture(scope="module")
def viewer(story_file: str) -> Iterator[Served]:
    """A read-only viewer over the story."""
    with served(story_file, clock=FakeClock(LATER)) as server:
        yield server


@pytest.fixture
def writable(story_file: str, tmp_path: Any) -> Iterator[Served]:
    """A viewer that may change a copy of the story, which others may change too."""
    path = str(tmp_path / "agents.db")
    shutil.copy(story_file, path)
    with served(path, write=True) as server:
        yield server


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What browsers write to their consoles; a test fails if anything is left here."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def new_context(
    request: pytest.FixtureRequest, browser: Browser, complaints: list[str]
) -> Iterator[Callable[..., BrowserContext]]:
    """Makes windows: ``width``, ``theme`` and other options of Playwright."""
    # A server that ends before its windows would make them complain.
    if "writable" in request.fixturenames:
        request.getfixturevalue("writable")
    contexts: list[BrowserContext] = []

    def make(
        *, width: str = "wide", theme: str = "light", **more: Any
    ) -> BrowserContext:
        options: dict[str, Any] = {
            "viewport": {"width": WIDTHS[width], "height": 800},
            "color_scheme": theme,
            "reduced_motion": "reduce",
            "timezone_id": "UTC",
            "locale": "en-GB",
            **more,
        }
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        context.clock.set_fixed_time(LATER / 1_000_000)
        context.on("console", lambda said: complaints.append(said.text))
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def new_page(new_context: Callable[..., BrowserContext]) -> Callable[..., Page]:
    """As `new_context`, with one page."""
    return lambda **options: new_context(**options).new_page()


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """A wide, light window."""
    return new_page()
