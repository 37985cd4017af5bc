"""Two calls on PostgreSQL at the same moment, in any order: the store stays sound."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Store
from holdfast.testing.trials.scenario import build, problems_of
from support import databases, servers
from support.stores import backend_of
from support.two_calls import CALLS, Interrupted, rivals_of, tried, try_all

# Of all pairs, which a file is tried with, every so many.
EVERY = 2


def _build(url):
    build(url)
    with holdfast.open(url) as store:
        store.thread("main").label("marked", "third")


@pytest.fixture(scope="module")
def original():
    with databases.database(servers.shared(servers.NAMES[0])) as url:
        yield databases.Original(url, _build)


@pytest.mark.parametrize("call", CALLS)
def test_calls_at_the_same_moment_leave_a_sound_store(call, original):
    url, first = original.place.url, list(CALLS).index(call) % EVERY
    with holdfast.open(url, pool=(1, 1)) as one, holdfast.open(url, pool=(1, 1)) as two:
        for number, rivals in list(enumerate(rivals_of(call)))[first::EVERY]:
            original.restore()
            # The numbers start again as well, so the caches hold wrong records.
            one.runner.context.cache.clear()
            two.runner.context.cache.clear()
            for thread in one.threads():
                one.thread(thread.id).load()
            go_first = partial(try_all, rivals, two)
            backend = Interrupted(backend_of(one), go_first)

            code = tried(
                CALLS[call], Store(replace(one.runner.context, backend=backend))
            )

            assert problems_of(two) == [], f"{call} ({code}) after rival {number}"
