"""A layer passes every verb on, and is never left out."""

from __future__ import annotations

import inspect
from collections import Counter

import psycopg
import pytest

from holdfast.backends import (
    UNSET,
    Backend,
    BlockingBackend,
    Entry,
    Layer,
    Start,
    ThreadKey,
    Threads,
    Write,
    run,
)
from inner.sqlite import SqliteBackend
from support import databases, servers

VERBS = sorted(
    name
    for protocol in (Backend, BlockingBackend)
    for name in vars(protocol)
    if not name.startswith("_")
)


class Counting(Layer):
    """Counts commits and reads."""

    def __init__(self, backend):
        super().__init__(backend)
        self.calls = Counter()

    async def commit(self, writes):
        self.calls["commit"] += 1
        return await super().commit(writes)

    def commit_each(self, batches):
        self.calls["commit"] += len(batches)
        return super().commit_each(batches)

    async def read(self, keys):
        self.calls["read"] += 1
        return await super().read(keys)


def recorded(name):
    """A write that makes a thread with a journal entry."""
    entries = (Entry(name, "", "key", b"1", 1),)
    return Write(thread=name, at=1, expect=UNSET, start=Start(), entries=entries)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_the_port_is_passed_on_by_name(verb):
    [declared] = [vars(p)[verb] for p in (Backend, BlockingBackend) if verb in vars(p)]

    passed_on = vars(Layer)[verb]

    assert type(passed_on) is type(declared)
    if callable(declared):
        expected = inspect.signature(declared).parameters
        assert inspect.signature(passed_on).parameters == expected
        is_awaited = inspect.iscoroutinefunction(declared)
        assert inspect.iscoroutinefunction(passed_on) is is_awaited


def test_nothing_but_the_verbs_reaches_the_backend_below():
    assert "__getattr__" not in dir(Layer)


def test_a_layer_is_a_backend_and_can_be_stacked():
    inner = Counting(SqliteBackend(":memory:"))
    outer = Counting(inner)

    run(outer.ready())
    run(outer.commit([recorded("a")]))
    outer.commit_each([[recorded("b")], [recorded("c")]])
    [found] = run(outer.read([ThreadKey("b")]))
    page = run(outer.scan(Threads(every=True)))
    run(outer.close())

    assert found is not None
    assert len(page) == 3
    assert outer.blocking is inner.blocking is True
    assert outer.abilities == inner.backend.abilities
    assert outer.calls == inner.calls == {"commit": 3, "read": 1}


def test_abilities_that_a_layer_takes_away_are_not_among_the_facts():
    class Smaller(Layer):
        abilities = frozenset({"backup"})

    layer = Smaller(SqliteBackend(":memory:"))

    assert run(layer.facts()).abilities == {"backup"}


@pytest.mark.parametrize("above", [Layer, Counting])
@pytest.mark.parametrize("verb", ["commit", "commit_each"])
def test_a_layer_that_would_see_half_of_the_commits_is_refused(above, verb):
    with pytest.raises(TypeError, match="Half must override commit and commit_each"):
        type("Half", (above,), {verb: getattr(Layer, verb)})


@pytest.mark.parametrize("server", servers.NAMES[-1:])
def test_a_callers_connection_is_used_through_the_layer(server):
    # Loaded here, because it needs an extra that not every test run has.
    from inner.postgres import open_blocking

    with databases.place(servers.shared(server)) as place:
        layer = Counting(open_blocking(place.url, schema=place.schema))
        run(layer.ready())
        with psycopg.connect(place.url) as connection:
            ours = layer.using(connection)
            run(ours.commit([recorded("a")]))
            [inside] = run(ours.read([ThreadKey("a")]))
            connection.rollback()
        [after] = run(layer.read([ThreadKey("a")]))
        run(layer.close())

    assert type(ours) is Counting
    assert inside is not None
    assert after is None
    assert ours.calls is layer.calls
    assert layer.calls == {"commit": 1, "read": 2}
