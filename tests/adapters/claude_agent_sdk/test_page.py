"""The page shows what its programs print."""

from support.pages import page_of, printed, shown


def test_the_programs_of_the_page_print_what_it_shows(tmp_path):
    page = page_of("claude_agent_sdk")

    assert printed(page, tmp_path) == shown(page)
