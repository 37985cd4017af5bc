"""The programs of the page print what it shows."""

import pytest
from google.adk import errors

from support.pages import page_of, printed, shown


@pytest.mark.skipif(
    not hasattr(errors, "StaleSessionError"), reason="the page shows a newer version"
)
def test_the_page(tmp_path):
    page = page_of("google_adk")

    assert printed(page, tmp_path) == shown(page)
