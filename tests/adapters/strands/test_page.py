"""The page about Strands does what it says."""

from support.pages import page_of, printed, shown


def test_the_page_prints_what_it_shows(tmp_path):
    assert printed(page_of("strands"), tmp_path) == shown(page_of("strands"))
