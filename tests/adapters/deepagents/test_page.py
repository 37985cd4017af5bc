"""The page about deepagents does what it says."""

from support.pages import page_of, printed, shown


def test_the_page_prints_what_it_shows(tmp_path):
    assert printed(page_of("deepagents"), tmp_path) == shown(page_of("deepagents"))
