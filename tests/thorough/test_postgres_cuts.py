"""A connection that breaks at any moment of a call: it was made once, or not at all.

The cable is cut when a request is on its way, so that the server never hears it, or
when an answer is, so that the server has done what the client is not told.
"""

from __future__ import annotations

import pytest

from holdfast import HoldfastError
from holdfast.testing import raises
from holdfast.testing.trials.scenario import (
    AGENT_OPERATIONS,
    STEPS,
    Source,
    build,
    build_agents,
    problems_of,
)
from support import databases, servers
from support.cut_connection import Cable

SIDES = ("request", "answer")
# Of a call that says more, the first, one in between, and the last, which commit.
MOST_MOMENTS = 6


# It is the same text behind both doors.
AWAITED = (
    "first-save", "save", "append", "fork", "record", "undo", "label", "prune",
    "delete-thread", "restore-agent",
)  # fmt: skip
CALLS = [
    *((call, "blocking") for call in STEPS),
    *((call, "awaited") for call in AWAITED),
]


@pytest.fixture(scope="module")
def originals():
    """The stores that calls on threads, and calls on agents, start from."""
    url = servers.shared(servers.NAMES[-1])
    with databases.database(url) as one, databases.database(url) as other:
        yield {
            False: databases.Original(one, build),
            True: databases.Original(other, build_agents),
        }


@pytest.fixture(scope="module")
def cable():
    url = servers.shared(servers.NAMES[-1])
    cable = Cable(int(url.rpartition(":")[2].partition("/")[0]))
    yield cable
    cable.close()


def _open(url, cable, door, source, busy_timeout=20):
    through = url.replace(url.rpartition(":")[2].partition("/")[0], str(cable.port))
    options = {"pool": (1, 1), "busy_timeout": busy_timeout, **source.options()}
    plain = f"{through}?sslmode=disable&gssencmode=disable"
    return databases.DOORS[door](plain, **options)


# Everything a store holds, but for the numbers that attempts have used up.
DUMP = (
    """
    select t.name, t.kind, t.owner, t.agent, t.metadata, c.id, t.deleted_at is null,
        t.forked_thread, t.forked_checkpoint, f.name, d.deleted_at is null
    from hf.thread t
    join hf.directory d on d.name = t.name and d.number = t.number
    left join hf.thread f on f.family = t.family and f.number = t.family
    left join hf.checkpoint c on c.family = t.family and c.seq = t.head
    order by t.name, t.number
    """,
    """
    select id, thread_name, parent_id, step, kind, label, tags, metadata, manifest,
        size, digest, link
    from hf.checkpoint order by seq
    """,
    "select number, packing, md5(data) from hf.segment order by family, number",
    """
    select t.name, j.checkpoint, j.key, j.value
    from hf.journal j join hf.thread t on t.family = j.family and t.number = j.thread
    order by j.seq
    """,
    """
    select t.name, m.kind, s.id, e.id
    from hf.move m join hf.thread t on t.family = m.family and t.number = m.thread
    left join hf.checkpoint s on s.family = m.family and s.seq = m.source
    left join hf.checkpoint e on e.family = m.family and e.seq = m.target
    order by m.seq
    """,
)


def _made(original, cable, door, call, cut=None):
    """What is there after a call whose cable was cut; how many moments there were."""
    original.restore()
    source = Source("call", 2_000_000)
    *before, step = STEPS[call]
    with _open(original.place.url, cable, door, source) as store:
        for earlier in before:
            earlier(store)
        cable.arm(*(cut or ("answer",)))
        try:
            step(store)
        finally:
            moments = cable.disarm()
        if cut is None:
            assert problems_of(store) == []
    with original.place.connect() as connection:
        seen = [connection.execute(sql.replace("hf.", "holdfast.")) for sql in DUMP]
        return [cursor.fetchall() for cursor in seen], moments


def _moments(count):
    """Which of so many moments are tried."""
    if count <= MOST_MOMENTS:
        return range(1, count + 1)
    return [1, count // 2, *range(count - MOST_MOMENTS + 3, count + 1)]


@pytest.mark.parametrize(("call", "door"), CALLS)
def test_a_call_whose_connection_breaks_at_any_moment_is_made_once(
    call, door, originals, cable
):
    original = originals[call in AGENT_OPERATIONS]
    whole, moments = _made(original, cable, door, call)

    for side in SIDES:
        for at in _moments(moments):
            found, _ = _made(original, cable, door, call, (side, at))

            assert found == whole, f"{call}, cut at {side} {at} of {moments}"
    assert moments > 0


@pytest.mark.parametrize("door", databases.DOORS)
def test_a_call_whose_connection_never_comes_back_ends_with_an_error(door, originals):
    original = originals[False]
    url = original.place.url
    cable = Cable(int(url.rpartition(":")[2].partition("/")[0]))
    with _open(url, cable, door, Source("call", 0), busy_timeout=1) as store:
        store.thread("a").save({"n": 1})
        cable.is_dead = True
        cable.arm("request", 1)

        with raises(HoldfastError, "connection_lost"):
            store.thread("a").save({"n": 2})

        cable.is_dead = False
        assert store.thread("a").save({"n": 3}).step == 2
    cable.close()
