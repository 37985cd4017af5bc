"""docs/coming-from.md is right: what its rows say is run as it is written there."""

import re
from datetime import timedelta

import pytest

import holdfast
from holdfast import Agent, Conversation, Message, Retention
from support.folders import DOCS
from support.stores import open_awaited, open_file

PAGE = (DOCS / "coming-from.md").read_text()
ROWS = [line.split(" | ", 1) for line in PAGE.splitlines() if line.startswith("| `")]
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture(params=[open_file, open_awaited], ids=["file", "awaited"])
def store(request, path, clock):
    with request.param(path, clock=clock, durability="normal") as store:
        yield store


def run(there, **names):
    """Run the first call that the page gives for a call of an earlier system."""
    [here] = [here for old, here in ROWS if f"`{there}`" in old]
    [call, *_] = re.findall(r"`([^`]+)`", here)
    return eval(call, {"Retention": Retention, "timedelta": timedelta, **names})


def talk(store, id_, saves=1, **about):
    for n in range(saves):
        store.conversations.save(Conversation(id=id_, title=f"{n}", **about))


def count(store, id_):
    return store.conversations.thread(id_).count()


def test_cleaning_up_old_ones_touches_conversations_only(store, clock):
    talk(store, "c", 3)
    store.documents.save("notes", "1")
    store.documents.save("notes", "2")
    clock.advance(2 * DAY)

    run("cleanup_old(days)", store=store, days=1)

    assert (count(store, "c"), store.documents.thread("notes").count()) == (1, 2)


def test_a_thread_is_capped_when_it_is_pruned(store):
    thread, other = store.thread("t"), store.thread("other")
    for n in range(120):
        thread.save({"n": n})
        other.save({"n": n})

    run("max_checkpoints_per_thread", thread=thread)

    assert (thread.count(), other.count()) == (100, 120)


@pytest.mark.parametrize(
    ("options", "counts"), [({}, [1, 2, 3, 1]), ({"prune_every": 0 * DAY}, [1] * 4)]
)
def test_a_policy_of_the_store_is_enforced_when_the_page_says(
    options, counts, path, clock
):
    policy = Retention(last=1)
    with holdfast.open(path, clock=clock, retention=policy, **options) as store:
        thread, found = store.thread("t"), []
        for pause in (0, 0, 0, 1):
            clock.advance(pause * HOUR)
            thread.save({})
            found.append(thread.count())

    assert found == counts


def test_pruning_one_agent_leaves_the_others(store):
    for agent in ("a", "b"):
        store.agents.save(Agent(id=agent, name="first"))
        store.agents.save(Agent(id=agent, name="second"))
        talk(store, f"{agent} 1", 5, agent=agent)
        talk(store, f"{agent} 2", 1, agent=agent)

    removed = run("prune(agent, keep)", store=store, agent="a", keep=2)

    assert removed.checkpoints == 3
    assert [count(store, id_) for id_ in ("a 1", "a 2", "b 1")] == [2, 1, 5]
    assert [store.agents.thread(agent).count() for agent in "ab"] == [2, 2]


def test_checkpoints_of_an_agent_are_capped_when_one_is_made(store):
    store.agents.save(Agent(id="a"))
    before = store.agents.checkpoint("a", kind="pre_operation")

    for made in range(1, 13):
        run("max_checkpoints", store=store, agent="a")
        kept = store.agents.checkpoints("a", kind="manual")
        assert len(kept) == min(made, 10)

    assert before in store.agents.checkpoints("a")


def test_setting_the_seed_of_a_session_keeps_the_rest(store):
    about = {"context": {"persona": "p"}, "metadata": {"old": 1}}
    store.conversations.create("s", **about)

    names = {"seed": "x", "key": "new", "value": 2}
    run("set_metadata", store=store, id="s", **names)

    found = store.conversations.load("s")
    assert found.context == {"persona": "p", "seed": "x"}
    assert found.metadata == {"old": 1, "new": 2}


def test_sessions_are_pruned_by_age_and_by_number_in_all(store, clock):
    talk(store, "old", owner="ann")
    clock.advance(8 * DAY)
    for n in range(4):
        talk(store, f"{n}", owner=f"user {n}")

    limits = {"ttl_hours": 168, "max_sessions": 3}
    pruned = run("prune_sessions(config)", store=store, **limits)

    assert pruned.threads == 2
    assert [found.id for found in store.conversations.list()] == ["3", "2", "1"]


def test_sessions_are_pruned_with_every_save(path, clock):
    policy = Retention(kinds=("conversation",), threads_in_all=2, threads_per_owner=1)
    options = {"retention": policy, "prune_every": timedelta(0), "clock": clock}
    with holdfast.open(path, **options) as store:
        store.documents.save("notes", "x")
        for owner in ("ann", "bob", "eve", "eve"):
            store.conversations.get_or_create(owner)
            assert len(store.conversations.list()) <= 2

        owners = {found.owner for found in store.conversations.list()}
        assert owners == {"bob", "eve"}
        assert store.documents.find("notes") is not None


def test_a_checkpoint_is_looked_into_without_restoring_it(store):
    store.agents.save(Agent(id="a", name="before"))
    store.conversations.create("c", agent="a", messages=[Message.user("hi")])
    made = store.agents.checkpoint("a")
    store.agents.save(Agent(id="a", name="after"))
    store.conversations.delete("c")

    found = store.agents.load_checkpoint("a", made)

    assert (found.agent.name, [c.id for c in found.conversations]) == ("before", ["c"])
    assert store.agents.load_conversation("a", made, "c").messages[0].content == "hi"
    assert store.agents.load("a").name == "after"
    assert store.conversations.find("c") is None
