"""The page about Pydantic AI does what it shows."""

from support.pages import page_of, printed, shown


def test_the_programs_of_the_page_print_what_it_shows(tmp_path):
    page = page_of("pydantic_ai")

    assert printed(page, tmp_path) == shown(page)
