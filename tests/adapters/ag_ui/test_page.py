"""The programs of the page print what it says."""

from support.pages import page_of, printed, shown


def test_the_page(tmp_path):
    page = page_of("ag_ui")

    assert printed(page, tmp_path) == shown(page)
