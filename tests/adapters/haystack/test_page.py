"""The recipe for Haystack does what it says."""

from support.pages import page_of, printed, shown


def test_the_recipe_prints_what_it_shows(tmp_path):
    assert printed(page_of("haystack"), tmp_path) == shown(page_of("haystack"))
