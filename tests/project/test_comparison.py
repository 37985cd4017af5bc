"""The sizes on docs/comparison.md are those that were measured."""

from __future__ import annotations

import json
import re

import pytest

from support.folders import DOCS, ROOT

MEASURED = {
    store["store"]: store["disk"]
    for store in json.loads((ROOT / "benchmarks" / "results.json").read_text())[
        "stores"
    ]
}
ROWS = dict(
    re.findall(
        r"^\| (.+?) \| ([\d.]+) MB \|",
        (DOCS / "comparison.md").read_text(),
        re.MULTILINE,
    )
)
NAMES = {
    "OpenAI `SQLiteSession`, without history": (
        "OpenAI Agents SQLiteSession (no history)"
    ),
    "Holdfast, `append`": "Holdfast append",
    "Holdfast, `append`, compressed": "Holdfast append, compressed",
    "the whole state as one blob in SQLite": "whole state as one blob",
    "LangGraph with `HoldfastSaver`": "HoldfastSaver in LangGraph",
    "LangGraph with `SqliteSaver`": "LangGraph SqliteSaver",
    "LangGraph with `SqliteSaver`, delta channels": (
        "LangGraph SqliteSaver, delta channels"
    ),
    "LangGraph with `PostgresSaver`": "PostgreSQL, LangGraph PostgresSaver",
    "LangGraph with `PostgresSaver`, delta channels": (
        "PostgreSQL, LangGraph PostgresSaver, delta channels"
    ),
}


def test_the_table_has_a_measurement_for_every_row():
    assert ROWS.keys() == NAMES.keys()


@pytest.mark.parametrize("row", NAMES)
def test_a_size_is_the_one_that_was_measured_within_a_tenth(row):
    assert float(ROWS[row]) * 1e6 == pytest.approx(MEASURED[NAMES[row]], rel=0.1)
