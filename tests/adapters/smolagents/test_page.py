"""The recipe for smolagents does what it says."""

from support.pages import page_of, printed, shown


def test_the_recipe_prints_what_it_shows(tmp_path):
    assert printed(page_of("smolagents"), tmp_path) == shown(page_of("smolagents"))
