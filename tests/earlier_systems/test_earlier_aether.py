"""What broke in an earlier system, aether, each mistake by its number.

Mistakes of importers, loops, encryption, damaged files and crashes are tested
elsewhere.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from queue import Queue

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import (
    Agent,
    Attachment,
    Conversation,
    Corrupt,
    Message,
    NotFound,
    Retention,
    ToolCall,
    Unstorable,
)
from holdfast.testing import FakeClock, ids, raises
from inner.messages import stored
from support.earlier_systems import DAY, damage, steps, watched
from support.samples import LONG
from support.stores import (
    open_awaited,
    open_compressed,
    open_compressed_awaited,
    open_file,
    open_memory,
)


@pytest.fixture
def busy(store):
    """A store with an agent that has two conversations."""
    store.agents.save(Agent(id="a", state={"text": LONG}))
    for id_ in ("one", "two"):
        store.conversations.create(id_, agent="a", messages=[Message.user(id_ + LONG)])
    return store


def test_3_1_a_thousand_keys_in_any_order_are_as_they_were(path):
    state = {f"key {n * 7919 % 1000}": {"n": n, "text": LONG[:n]} for n in range(1000)}
    with holdfast.open(path) as store:
        digest = store.thread("chat").save(state).digest

    with holdfast.open(path) as store:
        assert store.thread("chat").load() == state
        assert list(store.thread("chat").load()) == list(state)
        assert store.thread("chat").get().digest == digest


def test_3_2_a_digest_depends_on_everything_before_it(store):
    one, other = store.thread("one"), store.thread("other")
    one.save({"n": 1}, id="a")
    other.save({"n": 2}, id="a")

    ends = [thread.save({"n": 3}, id="b").digest for thread in (one, other)]

    assert ends[0] != ends[1]


def test_3_4_a_checkpoint_of_an_agent_is_whole_or_is_not_made(memory):
    memory.agents.save(Agent(id="a"))
    memory.conversations.create("whole", agent="a", messages=[Message.user("x" + LONG)])
    memory.conversations.create("broken", agent="a", messages=[Message.user(LONG)])
    damage(memory, "conversation:broken")
    store, _ = watched(memory)

    with raises(Corrupt):
        store.agents.checkpoint("a")

    assert list(store.agents.checkpoints("a")) == []
    assert len(store.threads(kind="pin")) == 0


def test_3_4_what_cannot_be_read_is_listed_and_can_be_deleted(memory):
    memory.agents.save(Agent(id="a"))
    memory.conversations.create("broken", agent="a", messages=[Message.user(LONG)])
    damage(memory, "conversation:broken")
    store, _ = watched(memory)

    assert [talk.id for talk in store.conversations.list()] == ["broken"]
    assert store.agents.load("a").active_conversations == ("broken",)
    with raises(Corrupt):
        store.conversations.load("broken")
    assert store.agents.delete("a") == 1
    assert store.stats().threads == 0
    assert store.verify()


def test_3_5_a_checkpoint_that_cannot_be_read_is_not_restored_in_part(memory):
    memory.agents.save(Agent(id="a"))
    for id_ in ("one", "two"):
        memory.conversations.create(id_, agent="a", messages=[Message.user(id_ + LONG)])
    made = memory.agents.checkpoint("a")
    for id_ in ("one", "two"):
        memory.conversations.add(id_, Message.user("later"))
    damage(memory, "conversation:two", at="@^")
    store, _ = watched(memory)

    with raises(Corrupt):
        store.agents.restore("a", made)

    assert store.conversations.load("one").message_count == 2
    assert len(store.agents.checkpoints("a")) == 1


def test_3_5_a_restore_is_exactly_the_checkpoint_and_can_be_undone(busy):
    talks = busy.conversations
    made = busy.agents.checkpoint("a")
    old = {id_: talks.load(id_) for id_ in ("one", "two")}
    talks.add("one", Message.user("later"))
    talks.delete("two")
    talks.create("late", agent="a", messages=[Message.user("new")])
    new = {id_: talks.load(id_) for id_ in ("one", "late")}

    done = busy.agents.restore("a", made)
    assert {talk.id: talks.load(talk.id) for talk in talks.list()} == old
    assert done.recovery.kind == "recovery"
    busy.agents.restore("a", done.recovery)
    assert {talk.id: talks.load(talk.id) for talk in talks.list()} == new


def test_3_6_of_more_than_may_stay_the_newest_stay(store):
    chat = store.thread("chat")
    for n in range(11):
        saved = chat.save({"n": n}, kind="manual" if n < 5 else "automatic")
        store.prune(Retention(last=10))
        assert chat.head == saved

    assert steps(chat.history()) == list(range(11, 1, -1))


def test_3_6_a_checkpoint_just_made_is_never_the_one_that_goes(busy):
    for n in range(12):
        made = busy.agents.checkpoint("a", f"{n}", keep=10)
        assert busy.agents.checkpoints("a", limit=1)[0] == made

    names = [checkpoint.name for checkpoint in busy.agents.checkpoints("a")]
    assert names == [f"{n}" for n in range(11, 1, -1)]


def test_3_6_automatic_checkpoints_do_not_push_out_those_of_people(busy):
    busy.agents.checkpoint("a", "mine")
    for n in range(5):
        busy.conversations.add("one", Message.user(f"{n}"))
        busy.agents.checkpoint("a", kind="automatic", keep=2)

    kinds = [checkpoint.kind for checkpoint in busy.agents.checkpoints("a")]
    assert kinds == ["automatic", "automatic", "manual"]


def _loops():
    return sum(t.name == "holdfast-autosave" for t in threading.enumerate())


def test_3_7_start_stop_start_is_one_loop(memory):
    memory.agents.save(Agent(id="a"))
    saving = memory.agents.autosave("a", every=0.001)

    for _ in range(3):
        saving.start()
        saving.start()
        assert _loops() == 1
        saving.stop()
        assert _loops() == 0


def test_3_7_the_first_checkpoint_waits_for_its_time(memory):
    memory.agents.save(Agent(id="a"))
    saving = memory.agents.autosave("a", every=DAY)
    saving.start()

    assert list(memory.agents.checkpoints("a")) == []
    saving.stop()
    assert len(memory.agents.checkpoints("a")) == 1


def test_3_7_a_failure_is_seen_and_does_not_end_the_loop(memory):
    seen = Queue()
    failing = memory.agents.autosave("a", every=0.001, on_error=lambda *e: seen.put(e))

    with failing:
        for _ in range(3):
            agent, error = seen.get(timeout=120)
            assert (agent, type(error)) == ("a", NotFound)
    with raises(NotFound), memory.agents.autosave("a", every=DAY):
        pass


def test_3_7_automatic_checkpoints_are_bounded(memory):
    memory.agents.save(Agent(id="a"))
    saving = memory.agents.autosave("a", every=DAY)
    for n in range(15):
        memory.agents.save(Agent(id="a", name=f"{n}"))
        saving.take()

    assert len(memory.agents.checkpoints("a")) == 10


def test_3_7_what_cannot_be_read_is_not_made_a_checkpoint_of(memory):
    memory.agents.save(Agent(id="a", state={"text": LONG}))
    damage(memory, "agent:a")
    store, _ = watched(memory)
    seen = []

    store.agents.autosave("a", on_error=lambda *both: seen.append(both)).take()

    assert [type(error) for _, error in seen] == [Corrupt]
    assert list(store.agents.checkpoints("a")) == []


@pytest.mark.parametrize("every", [0, -1, 0.0, timedelta(0), float("nan")])
def test_3_7_an_interval_that_makes_no_sense_is_refused(every, memory):
    with raises(Unstorable):
        memory.agents.autosave("a", every=every)


def test_3_8_a_hundred_concurrent_appends_are_a_hundred_messages(store):
    chat = store.thread("chat")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: chat.append(messages=[n]), range(100)))

    assert sorted(chat.load()["messages"]) == list(range(100))


def test_3_8_a_hundred_concurrent_additions_are_a_hundred_messages(store):
    store.conversations.create("c")
    with ThreadPoolExecutor(8) as pool:
        add = lambda n: store.conversations.add("c", Message.user(f"{n}"))  # noqa: E731
        list(pool.map(add, range(100)))

    said = [message.content for message in store.conversations.load("c").messages]
    assert sorted(said, key=int) == [f"{n}" for n in range(100)]
    assert store.conversations.list()[0].messages == 100


def test_3_8_an_addition_costs_the_same_however_long_the_conversation_is(memory):
    costs = []
    for length in (1, 1000):
        talk = memory.conversations.create(messages=[Message.user(LONG)] * length)
        store, backend = watched(memory)
        before = store.stats().stored_bytes
        backend.asked.clear()
        store.conversations.add(talk.id, Message.user("more", id="m", at=1))
        costs.append((list(backend.asked), store.stats().stored_bytes - before))

    (asked_short, short), (asked_long, long) = costs
    assert asked_short == asked_long
    assert long - short < 100  # the numbers in its record have more digits


@pytest.mark.parametrize(
    "text",
    [
        "\u6f22\u5b57" * 40,
        "\u05e9\u05dc\u05d5\u05dd " * 20,
        "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 20,
        "\U0001f1eb\U0001f1f7" * 40,
        "e\u0301" * 60,
        "\ud83d" * 60,
    ],
    ids=["cjk", "rtl", "zwj", "flags", "combining", "surrogates"],
)
def test_3_9_any_text_can_become_a_title(text, store):
    store.conversations.create("c", messages=[Message.user(text)])

    title = store.conversations.auto_title("c")

    assert text.startswith(title.removesuffix("\u2026"))
    assert 20 < len(title) <= 50
    assert store.conversations.load("c").title == title


def test_3_10_ids_of_agents_and_conversations_keep_their_dots(store):
    names = {"foo.json", "foo", "foo.json.json", ".json", "a.b.c"}
    for name in names:
        store.agents.save(Agent(id=name))
        store.conversations.create(name)
        store.documents.save(name, "x")

    assert {agent.id for agent in store.agents.list()} == names
    assert {talk.id for talk in store.conversations.list()} == names
    assert {document.name for document in store.documents.list()} == names


def test_3_11_hostile_ids_stay_inside_the_store(tmp_path):
    folder = tmp_path / "deep" / "down"
    names = ["../../x", str(tmp_path / "x"), "a/b", "..", "~/x", "C:\\x"]
    with holdfast.open(folder / "store.db", make_folders=True) as store:
        for name in names:
            store.agents.save(Agent(id=name))
            store.conversations.create(name, agent=name)
            store.documents.save(name, name)
            store.agents.checkpoint(name)
            assert store.agents.restore(name, "manual").rewound == ()

    assert os.listdir(tmp_path) == ["deep"]
    assert os.listdir(folder) == ["store.db"]


def test_3_10_ids_with_dots_keep_them(store):
    for name in ("foo.json", "foo", "foo.json.json", ".json", "a.b.c"):
        store.thread(name).save({"name": name})

    for name in ("foo.json", "foo", "foo.json.json", ".json", "a.b.c"):
        assert store.thread(name).load() == {"name": name}
    assert store.stats().threads == 5


def test_3_12_not_a_number_does_not_brick_a_thread(store):
    chat = store.thread("chat")
    chat.save({"score": float("nan"), "scores": [float("inf"), float("-inf")] * 100})
    chat.append(scores=[float("nan")])

    loaded = chat.load()
    assert loaded["score"] != loaded["score"]
    assert loaded["scores"][:2] == [float("inf"), float("-inf")]
    assert loaded["scores"][200] != loaded["scores"][200]


def test_3_12_not_a_number_does_not_brick_an_agent(store):
    agent = store.agents.save(Agent(id="a", config={"t": float("nan")}))
    agent.set_state("scores", [float("inf"), float("-inf"), float("nan")])
    store.agents.save(agent)
    store.agents.checkpoint("a")

    loaded = store.agents.load("a")
    assert repr((loaded.config, loaded.state)) == repr((agent.config, agent.state))


def test_3_13_the_fields_of_an_agent_tell_the_truth(busy, clock):
    first = busy.agents.load("a")
    clock.advance(DAY)
    busy.agents.save(first)
    busy.conversations.archive("one")

    agent = busy.agents.load("a")
    made = busy.agents.checkpoint("a", "n", "pre_operation", "before it goes wrong")

    assert (agent.version, agent.updated_at) == (2, clock.now)
    assert agent.active_conversations == ("two",)
    assert (made.kind, made.description) == ("pre_operation", "before it goes wrong")
    assert busy.agents.checkpoints("a")[0] == made


def test_3_13_every_field_tells_the_truth(store, clock):
    chat = store.thread("chat")
    for n in range(1, 4):
        clock.advance(DAY)
        saved = chat.save({"n": n})
        about = chat.about
        assert (about.updated_at, about.head) == (clock.now, saved)
        assert about.changed == saved.seq
    assert about.created_at == clock.now - 2 * DAY // timedelta(microseconds=1)


def test_3_14_statistics_are_the_same_on_file_and_in_memory(path):
    facts = []
    for url in (path, ":memory:"):
        with holdfast.open(url) as store:
            for n in range(20):
                store.thread("chat").append(m=[f"{n} {LONG}"])
            store.thread("chat").fork("fork").save({"n": LONG})
            store.thread("chat").record("key", 1)
            store.thread("gone").save({})
            store.thread("gone").delete()
            facts.append(store.stats())

    assert facts[0].threads == 2
    assert replace(facts[0], file_bytes=0) == replace(facts[1], file_bytes=0)


def _work(store):
    """Something of everything."""
    for agent in ("a", "b"):
        store.agents.save(Agent(id=agent, state={"text": LONG}))
        for n in range(3):
            said = [Message.user(f"{m} {LONG}", id=f"{m}", at=m) for m in range(n)]
            store.conversations.create(f"{agent}{n}", agent=agent, messages=said)
    store.conversations.create("without an agent", messages=[{"role": "user"}])
    store.conversations.create("of a ghost", agent="ghost", messages=[{"role": "user"}])
    store.documents.save("notes/a", LONG)
    made = store.agents.checkpoint("a")
    store.conversations.add("a1", Message.user(LONG, id="m", at=1))
    store.agents.checkpoint("a", keep=1)
    store.conversations.delete("a2")
    store.agents.restore("a", "manual")
    store.agents.delete("b")
    assert store.agents.delete_checkpoint("a", made) == 0


def test_3_14_statistics_of_agents_are_the_same_everywhere(tmp_path):
    kinds = [open_file, open_awaited, open_memory]
    kinds += [open_compressed, open_compressed_awaited]
    facts = []
    for n, opened in enumerate(kinds):
        options = {"clock": FakeClock(), "new_id": ids(), "durability": "normal"}
        with opened(str(tmp_path / f"{n}.db"), **options) as store:
            _work(store)
            facts.append(replace(store.stats(), file_bytes=0))

    assert (facts[0].agents, facts[0].conversations, facts[0].messages) == (1, 5, 6)
    assert (facts[0].documents, facts[0].agent_checkpoints) == (1, 2)
    assert facts[0] == facts[1] == facts[2]
    assert facts[3] == facts[4]
    assert replace(facts[0], stored_bytes=0) == replace(facts[3], stored_bytes=0)
    assert facts[0].stored_bytes > facts[3].stored_bytes > 0


def test_3_14_statistics_read_no_messages(memory):
    for n in range(5):
        memory.conversations.create(f"{n}", messages=[Message.user(LONG)] * 50)
    store, backend = watched(memory)

    assert store.stats().messages == 250

    assert "segments" not in backend.asked


def test_3_15_a_second_checkpoint_of_an_agent_costs_next_to_nothing(store):
    scan = Attachment(name="scan", content=LONG * 200)
    store.agents.save(Agent(id="a"))
    for n in range(10):
        said = [Message.user(f"{m} {LONG}") for m in range(20)]
        said.append(Message.user("see", attachments=[scan]))
        store.conversations.create(f"{n}", agent="a", messages=said)
    store.agents.checkpoint("a")
    before = store.stats().stored_bytes

    store.conversations.add("5", Message.user("one more"))
    store.agents.checkpoint("a")

    assert 0 < store.stats().stored_bytes - before < 2000


def test_3_15_a_file_does_not_grow_with_the_checkpoints_of_an_agent(path):
    with holdfast.open(path) as store:
        store.agents.save(Agent(id="a"))
        for n in range(10):
            said = [Message.user(f"{m} {LONG}") for m in range(200)]
            store.conversations.create(f"{n}", agent="a", messages=said)
        store.agents.checkpoint("a")
    before = os.path.getsize(path)

    with holdfast.open(path) as store:
        for n in range(10):
            store.conversations.add("5", Message.user(f"one more {n}"))
            store.agents.checkpoint("a")

    assert before > 1_000_000
    assert os.path.getsize(path) - before < 50_000


def test_3_15_one_new_message_costs_one_message(store):
    chat = store.thread("chat")
    attachment = {"name": "scan", "content": LONG * 200}
    state = {"messages": [LONG] * 100, "files": [attachment], "config": {"a": LONG}}
    chat.save(state)
    before = store.stats().stored_bytes

    chat.save({**state, "messages": [*state["messages"], "one more"]})

    assert store.stats().stored_bytes - before < 2000


def test_3_16_opening_makes_everything_that_is_needed(tmp_path):
    path = tmp_path / "not" / "there" / "yet" / "store.db"

    with holdfast.open(path, make_folders=True) as store:
        store.thread("chat").save({"n": 1})

    assert path.exists()


def test_3_17_an_unknown_kind_is_kept(store):
    store.thread("chat", kind="of another age").save({}, kind="never heard of")

    assert store.thread("chat").about.kind == "of another age"
    assert store.thread("chat").get().kind == "never heard of"


def test_3_17_unknown_roles_kinds_and_fields_are_kept(store):
    call = ToolCall(name="look", status="dreaming", extra={"depth": 3})
    file = Attachment(kind="hologram", extra={"angle": 45})
    message = Message(
        role="narrator", tool_calls=[call], attachments=[file], extra={"mood": "calm"}
    )
    other = {"role": "chorus", "kind": "song", "verses": [{"of": "tomorrow"}]}
    store.conversations.create("c")
    thread = store.conversations.thread("c")
    messages = [stored(message), other]
    thread.save({**thread.load(), "messages": messages, "weather": "fair"})

    loaded = store.conversations.load("c")
    store.conversations.save(loaded)

    assert loaded.messages == [message, other]
    assert loaded.extra == {"weather": "fair"}
    assert thread.load()["weather"] == "fair"
    assert isinstance(store.conversations.find("c"), Conversation)
