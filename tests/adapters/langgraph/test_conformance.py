"""LangGraph's own conformance suite: all of it, on every backend, sync and async."""

import asyncio
import contextlib

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver

CAPABILITIES = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


@contextlib.asynccontextmanager
async def awaited(url, **options):
    async with HoldfastSaver.from_conn_string(url, **options) as saver:
        yield saver


@contextlib.asynccontextmanager
async def blocking(url, **options):
    with holdfast.open(url, **options) as store:
        yield HoldfastSaver(store)


@pytest.mark.parametrize("opened", [awaited, blocking], ids=["async", "sync"])
def test_all_81_tests_of_all_8_capabilities_pass(place, opened):
    url, options = place

    @checkpointer_test(name="HoldfastSaver")
    async def saver():
        async with opened(url, **options) as saver:
            yield saver

    report = asyncio.run(validate(saver))

    results = report.to_dict()["results"]
    assert [r["failures"] for r in results.values() if r["failures"]] == []
    assert {name: r["tests_passed"] for name, r in results.items()} == CAPABILITIES
    assert report.conformance_level() == "FULL"
