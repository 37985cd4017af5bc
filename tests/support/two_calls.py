"""Two calls at the same moment: one between the plan and the commit of the other."""

from holdfast import Conflict, NotFound
from holdfast.testing.trials.scenario import AGENT_OPERATIONS, STEPS


class Interrupted:
    """A backend that makes a rival's call once, before its own first change."""

    blocking = True

    def __init__(self, backend, rival):
        self._backend = backend
        self._rival = rival

    def __getattr__(self, name):
        return getattr(self._backend, name)

    async def commit(self, writes):
        self._let_go_first()
        return await self._backend.commit(writes)

    async def prune(self, plan):
        self._let_go_first()
        return await self._backend.prune(plan)

    async def compact(self):
        self._let_go_first()
        return await self._backend.compact()

    def _let_go_first(self):
        rival, self._rival = self._rival, None
        if rival is not None:
            rival()


def _append_everywhere(store):
    for thread in store.threads():
        handle = store.thread(thread.id)
        state = handle.load()
        if isinstance(state, dict):
            handle.append(messages=[{"late": thread.id, "text": "y" * 300}])


def _rewind_to(reference):
    def rewind(store):
        store.thread("main").rewind(reference)

    return rewind


def _delete(reference):
    """Delete one checkpoint, whatever else depends on it."""

    def delete(store):
        store.thread("main").delete(reference)

    return delete


BEFORE_SECOND, BEFORE_THIRD = "built-1", "built-2"

CALLS = {
    **{n: steps[-1] for n, steps in STEPS.items() if n not in AGENT_OPERATIONS},
    "delete-the-first": _delete("first"),
    "delete-the-one-before": _delete(BEFORE_SECOND),
    "delete-what-was-rewound": _delete("third"),
}


def rivals_of(call):
    """What others do between the plan of a call and its transaction."""
    yield from ([rival] for rival in CALLS.values())
    yield [_append_everywhere]
    # The same call, and then appends that reuse what it has just set free.
    yield [CALLS[call], _append_everywhere]
    for reference in ("first", "second", BEFORE_THIRD):
        yield [CALLS[call], _rewind_to(reference), _append_everywhere]


def tried(call, store):
    try:
        call(store)
    except (Conflict, NotFound) as error:
        return error.code
    return None


def try_all(calls, store):
    for call in calls:
        tried(call, store)
