"""`python -m benchmarks page`: writes benchmarks/README.md from results.json.

What is above the mark in the page is written by hand and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from benchmarks.report import Row, Series, comparison, progress

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE / "README.md"
MARK = "<!-- from here on made by `python -m benchmarks page` -->"
DERIVED = ("target", "met")


def main(arguments: Sequence[str] = ()) -> int:
    """Write the page again; takes no arguments."""
    assert not arguments
    written = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(f"{written}{MARK}\n\n{figures(orjson.loads(RESULTS.read_bytes()))}")
    return 0


def figures(results: dict[str, Any]) -> str:
    """All figures of a run, as Markdown."""
    rows = [
        Row(**{name: value for name, value in row.items() if name not in DERIVED})
        for row in results["rows"]
    ]
    with_target = [row for row in rows if row.limit is not None]
    reached = sum(row.met is True for row in with_target)
    facts = {**results["environment"], **_syncs(results["fdatasync before each"])}
    return "\n".join(
        [
            "## The run\n",
            *(f"- {name}: {fact}" for name, fact in facts.items()),
            *(f"- {note}" for note in results["notes"]),
            f"\n## Targets\n\n{reached} of {len(with_target)} are reached.\n",
            comparison(with_target),
            "\n## Without a target\n",
            comparison(row for row in rows if row.limit is None),
            "\n## A conversation of 500 turns\n",
            progress(Series(**series) for series in results["stores"]),
            "",
        ]
    )


def _syncs(found: dict[str, str]) -> dict[str, str]:
    return {"fdatasync before each": ", ".join(f"{k} {v}" for k, v in found.items())}
