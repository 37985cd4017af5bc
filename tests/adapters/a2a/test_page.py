"""The page about A2A is true."""

from support.pages import page_of, printed, shown


def test_the_code_of_the_page_prints_what_the_page_shows(tmp_path):
    assert printed(page_of("a2a"), tmp_path) == shown(page_of("a2a"))
