"""The figures on benchmarks/README.md are those of the stored run."""

import orjson

from benchmarks import page


def test_the_page_has_the_figures_of_the_stored_run():
    made = page.PAGE.read_text().partition(f"{page.MARK}\n\n")[2]

    assert made == page.figures(orjson.loads(page.RESULTS.read_bytes()))
