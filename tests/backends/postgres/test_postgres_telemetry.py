"""Telemetry of a store on PostgreSQL."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

import holdfast
from support import databases, servers
from support.stores import opened
from support.telemetry import Exported

TASKS = 40


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[-1])) as place:
        yield place


@pytest.mark.parametrize("door", ["blocking", "awaited"])
def test_a_span_names_the_server_and_is_a_child_of_the_caller(door, place):
    exported = Exported()
    options = {"schema": place.schema, "telemetry": exported.telemetry}
    with opened(door, place.url, **options) as store, exported.trace() as parent:
        store.thread("chat").save({"text": "secret-content"}, id="once")
    with opened(door, place.url, **options) as store, exported.trace():
        repeated = store.thread("chat").save({"text": "secret-content"}, id="once")
        found = store.thread("chat").head

    span = exported.spans("save")[0]
    url = urlsplit(place.url)
    assert span.attributes["db.system.name"] == "postgresql"
    assert span.attributes["db.namespace"] == f"{url.path[1:]}|{place.schema}"
    assert span.attributes["server.address"] == url.hostname
    assert span.attributes["server.port"] == url.port
    assert span.attributes["holdfast.step"] == 1
    assert span.parent.span_id == parent.get_span_context().span_id
    assert f"{span.context.span_id:016x}" in found.traceparent
    assert repeated == found
    assert "secret-content" not in exported.text()


def test_saves_that_share_a_statement_say_how_many_they_were(place):
    exported = Exported()

    async def save_all():
        options = {"schema": place.schema, "telemetry": exported.telemetry}
        async with holdfast.open_async(place.url, **options) as store:
            threads = [store.thread(f"t{n}") for n in range(TASKS)]
            for n in range(3):
                await asyncio.gather(*(thread.save({"n": n}) for thread in threads))

    asyncio.run(save_all())

    spans = exported.spans("save")
    sizes = [span.attributes["holdfast.commit.size"] for span in spans]
    assert len(sizes) == 3 * TASKS
    assert max(sizes) > 1
    assert "holdfast.commit.sync_duration" not in spans[-1].attributes
