"""The programs of the page print what it says."""

from importlib.metadata import version

import pytest

from support.pages import page_of, printed, shown


@pytest.mark.skipif(
    version("agent-framework-core") == "1.11.0",
    reason="later releases have one more checkpoint, which the page shows",
)
def test_the_page(tmp_path):
    page = page_of("agent_framework")

    assert printed(page, tmp_path) == shown(page)
