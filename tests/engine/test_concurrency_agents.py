"""A rival writes before any call of an operation: agent checkpoints stay whole."""

import os
from functools import partial
from itertools import count

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import (
    Agent,
    Conflict,
    Conversation,
    Corrupt,
    Message,
    NotFound,
    Retention,
    Store,
)
from holdfast.testing import raises
from holdfast.testing.trials.scenario import (
    AGENT_OPERATIONS,
    FILE_PLACE,
    build_agents,
    copy_folder,
    problems_of,
)
from inner.engine import Cache
from support.effort import THOROUGH
from support.samples import LONG
from support.stores import backend_of

pytestmark = pytest.mark.processes


class Interrupted:
    """A backend that runs a rival once, before its n-th call."""

    blocking = True

    def __init__(self, backend, at, rival=None):
        self.backend, self.at, self.rival = backend, at, rival
        self.calls = 0

    def __getattr__(self, name):
        verb = getattr(self.backend, name)

        async def ask(*arguments, **options):
            self.calls += 1
            if self.calls == self.at:
                self.rival()
            return await verb(*arguments, **options)

        return ask


def _interrupted(store, at, rival=None):
    backend = Interrupted(backend_of(store), at, rival)
    context = replace(store.runner.context, backend=backend, cache=Cache(1 << 20))
    return Store(context), backend


def _keep_one(store):
    store.agents.checkpoint("scout", "kept", keep=1)


def _restore_early(store):
    store.agents.restore("scout", "early")


def _delete_early(store):
    store.agents.delete_checkpoint("scout", "early")


def _replace_agent(store):
    store.agents.save(Agent(id="scout", name="by hand"))


def _remake(store):
    store.conversations.delete("grown")
    store.conversations.create("grown", agent="scout", owner="bob")


def _prune(store):
    store.prune(Retention(last=1, labelled=False, forks=False))


RIVALS = {
    **AGENT_OPERATIONS,
    "keep-one": _keep_one,
    "restore-early": _restore_early,
    "delete-early": _delete_early,
    "replace-agent": _replace_agent,
    "remake": _remake,
    "prune": _prune,
}
STRIDE = 2 if THOROUGH else 8
# What needs more than one look at the store before it changes it.
CALLS = [
    "checkpoint-agent",
    "restore-agent",
    "delete-agent-checkpoint",
    "keep-one",
    "delete-agent",
    "save-conversation",
    "add-message",
]


@pytest.fixture
def start(tmp_path):
    folder = tmp_path / "start"
    folder.mkdir()
    build_agents(str(folder / FILE_PLACE))
    return str(folder)


@pytest.fixture
def opened(start, tmp_path):
    """A fresh copy of the start, again and again."""
    stores = []

    def open_copy():
        for store in stores:
            store.close()
        path = copy_folder(start, os.path.join(tmp_path, "race"))
        stores[:] = [holdfast.open(path, durability="normal")]
        return stores[0]

    yield open_copy
    for store in stores:
        store.close()


def _tried(call, store):
    try:
        call(store)
    except (Conflict, NotFound) as error:
        return error.code
    return None


def _restorable(store):
    """Whether every checkpoint of every agent can be restored."""
    for agent in ("scout", "other"):
        for checkpoint in store.agents.checkpoints(agent):
            store.agents.restore(agent, checkpoint)
    return True


@pytest.mark.parametrize("call", CALLS)
def test_agents_are_whole_whoever_goes_first(call, opened):
    for number, rival in enumerate(RIVALS.values()):
        # Each rival at some of the moments, the next one at others.
        for at in count(1 + number % STRIDE, STRIDE):
            store = opened()
            one, backend = _interrupted(store, at, partial(_tried, rival, store))

            code = _tried(RIVALS[call], one)

            where = f"{call} ({code}) after rival {number} at {at}"
            assert problems_of(store) == [], where
            assert _restorable(store), where
            for talk in store.conversations.list():
                loaded = store.conversations.load(talk.id)
                assert loaded.message_count == talk.messages, where
            if backend.calls < at:
                break


def _agent_with_a_talk(store):
    store.agents.save(Agent(id="a"))
    store.conversations.create("c", agent="a")


def test_a_pin_used_again_while_it_is_being_removed_stays(memory):
    _agent_with_a_talk(memory)
    for at in range(1, 12):
        memory.conversations.add("c", Message.user(f"{at}"))
        only = memory.agents.checkpoint("a", id=f"only {at}")
        newest = memory.conversations.create(f"late {at}", agent="a")
        memory.agents.checkpoint("a", id=f"newest {at}")
        memory.conversations.delete(newest.id)
        reuse = partial(memory.agents.checkpoint, "a", id=f"reusing {at}")
        one, _ = _interrupted(memory, at, reuse)

        one.agents.delete_checkpoint("a", only)

        for checkpoint in memory.agents.checkpoints("a"):
            memory.agents.restore("a", checkpoint)
            memory.agents.delete_checkpoint("a", checkpoint)


def test_a_pin_removed_while_it_is_about_to_be_used_is_made_anew(memory):
    _agent_with_a_talk(memory)
    for at in range(1, 12):
        memory.conversations.add("c", Message.user(f"{at}"))
        only = memory.agents.checkpoint("a", id=f"only {at}")
        forget = partial(memory.agents.delete_checkpoint, "a", only)
        one, _ = _interrupted(memory, at, forget)

        one.agents.checkpoint("a", id=f"new {at}")

        assert memory.agents.restore("a", f"new {at}").rewound == ()


def test_what_another_user_made_meanwhile_is_not_overwritten(memory):
    talks = memory.conversations
    for at in (1, 2):
        theirs = partial(talks.create, f"{at}", owner="bob", title="bob's")
        one, backend = _interrupted(memory, at, theirs)

        with raises(Conflict, "foreign"):
            one.conversations.save(Conversation(id=f"{at}", owner="ann", title="mine"))

        assert backend.calls >= at
        assert talks.load(f"{at}").title == "bob's"


def test_one_made_by_hand_begins_anew_what_is_deleted_meanwhile(memory):
    talks = memory.conversations
    for at in count(1):
        talks.save(Conversation(id="c", title="old"))
        one, backend = _interrupted(memory, at, partial(talks.delete, "c"))
        one.conversations.save(Conversation(id="c", title="new"))

        if backend.calls < at:
            break
        found = talks.find("c")
        assert found is None or found.title == "new"


LISTINGS = {
    "agents": lambda store: [a.id for a in store.agents.list()],
    "conversations": lambda store: [c.id for c in store.conversations.list()],
    "documents": lambda store: [d.name for d in store.documents.list()],
    "statistics": lambda store: [store.stats().messages],
}


@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.parametrize("change", ["delete", "replace"])
def test_what_goes_while_it_is_listed_is_not_called_damaged(listing, change, memory):
    for n in "123":
        memory.agents.save(Agent(id=n, state={"text": LONG}))
        memory.conversations.create(n, title=LONG, context={"text": LONG})
        memory.documents.save(n, "x", metadata={"text": LONG})

    def go_first():
        if change == "delete":
            memory.agents.delete("2")
            memory.conversations.delete("2")
            memory.documents.delete("2")
        else:
            memory.agents.save(Agent(id="2"))
            memory.conversations.save(Conversation(id="2"))
            memory.documents.save("2", "y", metadata={})
            memory.prune(Retention(last=1))

    for at in count(1):
        one, backend = _interrupted(memory, at, go_first)

        found = LISTINGS[listing](one)

        if backend.calls < at:
            break
        assert {*found} <= {"1", "2", "3", 0}
        assert {*found} >= {"1", "3"} or listing == "statistics"


def test_a_document_saved_while_others_replace_it_is_given_back(memory):
    memory.documents.save("d", "first", metadata={"text": LONG})

    def go_first():
        memory.documents.save("d", "theirs", metadata={"other": LONG})
        memory.prune(Retention(last=1))

    for at in count(1):
        one, backend = _interrupted(memory, at, go_first)

        saved = one.documents.save("d", "mine")

        if backend.calls < at:
            break
        assert saved.content == "mine"
        assert saved.metadata in ({"text": LONG}, {"other": LONG})


@pytest.mark.parametrize("harm", ["deleted", "written to"])
def test_a_checkpoint_whose_pins_were_harmed_is_not_restored(harm, memory):
    _agent_with_a_talk(memory)
    made = memory.agents.checkpoint("a")
    for pin in memory.threads(kind="pin"):
        thread = memory.thread(pin.id)
        thread.delete() if harm == "deleted" else thread.save({"not": "mine"})
    before = memory.agents.load("a")

    with raises(Corrupt):
        memory.agents.restore("a", made)
    with raises(Corrupt):
        memory.agents.load_checkpoint("a", made)

    assert memory.agents.load("a") == before
    assert len(memory.agents.checkpoints("a")) == 1
