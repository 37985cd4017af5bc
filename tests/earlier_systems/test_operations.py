"""Every operation of five earlier systems, by its number, and how it is done here."""

import threading
from datetime import timedelta

import pytest

import holdfast
from holdfast import (
    Agent,
    Conflict,
    Conversation,
    FormatMismatch,
    Message,
    NotFound,
    Retention,
    Unstorable,
)
from holdfast.testing import raises
from holdfast.tools import TOOLS
from support.stores import open_awaited, open_file

DAY = timedelta(days=1)


@pytest.fixture(params=[open_file, open_awaited], ids=["file", "awaited"])
def store(request, path, clock):
    """The conformance suite tests every kind of store; here both doors will do."""
    with request.param(path, clock=clock, durability="normal") as store:
        yield store


@pytest.fixture
def chat(store):
    return store.thread("chat")


@pytest.fixture
def agent(store):
    """An agent with a conversation that was added to."""
    store.agents.save(Agent(id="a", name="A"))
    store.conversations.create("c", agent="a")
    store.conversations.add("c", Message.user("Where is the REEF?"))
    return "a"


def steps(checkpoints):
    return [checkpoint.step for checkpoint in checkpoints]


# --- echo: a session holds messages ---------------------------------------------------


def test_operation_01_put_messages(chat):
    first = chat.save({"messages": ["hi"], "summary": "s", "metadata": {"k": 1}})
    second = chat.append(messages=["hello"])

    assert first.id != second.id
    assert chat.load() == {
        "messages": ["hi", "hello"],
        "summary": "s",
        "metadata": {"k": 1},
    }


def test_operation_02_get_the_latest_or_nothing(store, chat):
    chat.save({"n": 1})

    assert chat.head.step == 1
    assert store.thread("nobody").head is None
    with raises(NotFound):
        store.thread("nobody").load()


def test_operation_03_list_newest_first(store, chat):
    for n in range(3):
        chat.save({"n": n})

    assert steps(chat.history()) == [3, 2, 1]
    assert list(store.thread("nobody").history()) == []


def test_operation_04_list_a_page(chat):
    for n in range(5):
        chat.save({"n": n})

    page = chat.history(2)

    assert steps(page) == [5, 4]
    assert steps(chat.history(2, before=page.cursor)) == [3, 2]


def test_operation_05_clean_up_what_is_old(store, chat, clock):
    chat.save({"n": 1})
    chat.save({"n": 2})
    clock.advance(3 * DAY)
    chat.save({"n": 3})

    assert store.prune(Retention(within=DAY)).checkpoints == 2
    assert steps(chat.history()) == [3]


def test_operation_06_delete_a_session_and_list_them(store, chat):
    chat.save({})
    store.thread("other").save({})

    assert [thread.id for thread in store.threads()] == ["other", "chat"]
    assert (chat.delete(), chat.delete()) == (1, 0)
    assert [thread.id for thread in store.threads()] == ["other"]


def test_operation_07_open_a_path_that_is_not_there_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    with holdfast.open("~/deep/down/store.db", make_folders=True) as store:
        store.thread("chat").save({"n": 1})

    with holdfast.open(tmp_path / "deep" / "down" / "store.db") as store:
        assert store.thread("chat").load() == {"n": 1}


# --- cortex: a thread holds any state -------------------------------------------------


def test_operation_08_save_with_metadata(chat):
    saved = chat.save([1, "any", {"state": None}], metadata={"k": "v"})

    assert chat.get(saved.id).metadata == {"k": "v"}
    assert chat.load() == [1, "any", {"state": None}]


def test_operation_09_load_by_id(store, chat):
    saved = chat.save({"n": 1})
    chat.save({"n": 2})

    assert chat.load(saved.id) == {"n": 1}
    for missing in (lambda: chat.load("nothing"), store.thread("nobody").load):
        with raises(NotFound):
            missing()


def test_operation_10_load_the_latest(chat):
    chat.save({"n": 1})
    chat.save({"n": 2})

    assert chat.load() == {"n": 2}


def test_operation_11_list_without_states_count_and_list_threads(store, chat):
    for n in range(3):
        chat.save({"n": n})

    assert steps(chat.history(order="oldest")) == [1, 2, 3]
    assert (chat.step, chat.count()) == (3, 3)
    assert [thread.id for thread in store.threads()] == ["chat"]
    assert (store.thread("nobody").step, store.thread("nobody").count()) == (0, 0)


def test_operation_12_delete_a_checkpoint_or_a_thread(store, chat):
    first = chat.save({"n": 1})
    chat.save({"n": 2})

    assert (chat.delete(first), chat.delete(first)) == (1, 0)
    assert (store.delete("chat"), store.delete("chat")) == (1, 0)


def test_operation_13_save_counts_links_and_prunes(path, clock):
    options = {"retention": Retention(last=2), "prune_every": timedelta(0)}
    with holdfast.open(path, clock=clock, **options) as store:
        chat = store.thread("chat")
        first = chat.save({"n": 1})
        second = chat.save({"n": 2}, label="here")
        third = chat.save({"n": 3})

        assert (third.step, second.parent, third.parent) == (3, first.id, second.id)
        assert steps(chat.history()) == [3, 2]


def test_operation_14_load_as_a_type(chat):
    chat.save({"a": 1})

    assert chat.load(type=dict[str, int]) == {"a": 1}
    with raises(FormatMismatch):
        chat.load(type=list[int])


def test_operation_15_find_by_tag_or_label(chat):
    for n in range(3):
        chat.save({"n": n}, label="l", tags=["t"])

    assert chat.find(label="l").step == 3
    assert steps(chat.history(tag="t")) == [3, 2, 1]
    assert chat.find(label="none") is None


def test_operation_16_fork(store, chat):
    first = chat.save({"n": 1})
    chat.save({"n": 2})

    fork = chat.fork("fork", at=first)

    assert fork.load() == {"n": 1}
    assert fork.about.forked_from == ("chat", first.id)
    with raises(Conflict, "thread_exists"):
        chat.fork("fork")


def test_operation_17_rewind(chat):
    first = chat.save({"n": 1})
    second = chat.save({"n": 2})

    chat.rewind(first)
    assert (chat.load(), chat.step) == ({"n": 1}, 1)
    assert chat.load(second) == {"n": 2}
    chat.rewind(first, hard=True)
    with raises(NotFound):
        chat.load(second)


def test_operation_18_the_current_step(chat):
    assert chat.step == 0
    chat.save({})
    assert chat.step == 1


def test_operation_19_label_tag_and_describe_a_save(chat):
    saved = chat.save({}, label="l", tags=["a", "b"], metadata={"custom": "x"})

    assert (saved.label, saved.tags) == ("l", ("a", "b"))
    assert chat.find(tag="b").metadata == {"custom": "x"}


# --- smooth: an agent's loop saves its conversation -----------------------------------


def test_operation_20_save_under_an_id_of_ones_own(chat):
    first = chat.save({"n": 1}, id="mine")

    assert chat.save({"n": 1}, id="mine") == first
    with raises(Conflict, "id_taken"):
        chat.save({"n": 2}, id="mine")


def test_operation_21_load_the_latest_of_an_agent(store, agent):
    store.conversations.add("c", Message.assistant("North."))

    assert store.conversations.load("c").messages[-1].content == "North."
    assert store.conversations.find("nothing") is None


def test_operation_22_load_by_an_id_alone(store, chat):
    saved = chat.save({"n": 1})

    assert store.get(saved.id).thread == "chat"
    assert store.load(saved.id) == {"n": 1}


def test_operation_23_list_the_checkpoints_of_an_agents_conversation(store, agent):
    assert steps(store.conversations.thread("c").history()) == [2, 1]


def test_operation_24_prune_all_but_so_many_of_an_agent(store, agent):
    for n in range(5):
        store.conversations.add("c", Message.user(f"{n}"))
        store.thread("of another", agent="b").save({"n": n})

    assert store.prune(Retention(last=2), agent=agent).checkpoints == 5
    assert steps(store.conversations.thread("c").history()) == [7, 6]
    assert store.thread("of another").count() == 5


def test_operation_25_open_a_file_or_memory(path):
    for place in (path, f"sqlite:{path}", ":memory:"):
        with holdfast.open(place) as store:
            assert store.stats().format >= 1


# --- aether: agents, conversations, checkpoints ---------------------------------------


def test_operation_26_nothing_has_to_be_set_up(path):
    with holdfast.open(path) as store:
        assert store.agents.save(Agent(id="a")).version == 1


def test_operation_27_save_load_delete_and_list_agents(store):
    store.agents.save(Agent(id="a", name="A"))
    store.agents.save(Agent(id="b"))

    assert store.agents.load("a").name == "A"
    assert [agent.id for agent in store.agents.list()] == ["b", "a"]
    assert (store.agents.delete("a"), store.agents.delete("a")) == (1, 0)
    assert store.agents.find("a") is None


def test_operation_28_save_load_delete_and_list_conversations(store, agent):
    store.conversations.save(Conversation(id="d", agent=agent, title="T"))

    assert store.conversations.load("d").title == "T"
    assert [talk.id for talk in store.conversations.list(agent=agent)] == ["d", "c"]
    assert store.conversations.delete("d") == 1
    assert store.conversations.find("d") is None


def test_operation_29_make_find_delete_and_list_checkpoints(store, agent):
    first = store.agents.checkpoint(agent, "first")
    second = store.agents.checkpoint(agent, "second")

    assert list(store.agents.checkpoints(agent)) == [second, first]
    assert store.agents.delete_checkpoint(agent, "first") == 1
    assert list(store.agents.checkpoints(agent)) == [second]


def test_operation_30_search_conversations(store, agent):
    store.conversations.create("d", agent="b", messages=[Message.user("reef")])

    def found(query, limit):
        options = {"agent": agent, "limit": limit, "per": "conversation"}
        page = store.conversations.search(query, **options)
        return [(match.conversation, match.position) for match in page]

    assert found("Reef", 5) == [("c", 0)]
    more = [Message.user(f"Reef number {n}") for n in range(3)]
    store.conversations.create("e", agent=agent, messages=more)
    assert found("reef", 2) == [("e", 2), ("c", 0)]
    assert found("number reef", 2) == [("e", 2)]


def test_operation_31_statistics(store, agent):
    store.agents.checkpoint(agent)

    facts = store.stats()

    assert (facts.agents, facts.conversations, facts.messages) == (1, 1, 1)
    assert facts.agent_checkpoints == 1
    assert facts.file_bytes > facts.stored_bytes


def test_operation_32_add_a_message(store, agent):
    store.conversations.add("c", Message.assistant("North."))

    assert store.conversations.load("c").message_count == 2
    with raises(NotFound):
        store.conversations.add("nothing", Message.user("x"))


def test_operation_33_make_a_checkpoint_of_everything_and_keep_so_many(store, agent):
    for n in range(4):
        made = store.agents.checkpoint(agent, f"{n}", "automatic", keep=2)

    assert (made.conversations, made.messages) == (1, 1)
    assert [c.name for c in store.agents.checkpoints(agent)] == ["3", "2"]


def test_operation_34_restore_a_checkpoint(store, agent):
    made = store.agents.checkpoint(agent)
    store.conversations.add("c", Message.user("later"))

    done = store.agents.restore(agent, made)

    assert (done.checkpoint, done.rewound) == (made, ("c",))
    assert store.conversations.load("c").message_count == 1
    store.agents.restore(agent, done.recovery)
    assert store.conversations.load("c").message_count == 2


def test_operation_35_delete_an_agent_with_all_that_is_its_own(store, agent):
    store.agents.checkpoint(agent)

    assert store.agents.delete(agent) == 1

    assert store.stats().threads == 0


def test_operation_36_start_and_stop_automatic_checkpoints(store, agent):
    saving = store.agents.autosave(agent, every=300)
    saving.start()
    saving.stop()

    assert [c.kind for c in store.agents.checkpoints(agent)] == ["automatic"]
    assert "holdfast-autosave" not in {t.name for t in threading.enumerate()}


def test_operation_37_every_operation_is_a_tool_with_a_description():
    names = {tool.name for tool in TOOLS}

    assert len(names) == 14
    assert names >= {"agent_save", "conversation_list", "checkpoint_restore"}
    assert all(tool.description for tool in TOOLS)


# --- oxios: sessions and documents ----------------------------------------------------


def test_operation_38_save_and_load_text_and_json(store):
    store.documents.save("notes/rust/tips", "# Tips")
    store.documents.save("state/app.json", {"n": 1})
    store.documents.save("state/app.md", "# App")

    assert store.documents.load("notes/rust/tips").content == "# Tips"
    assert store.documents.load("state/app.json").content == {"n": 1}
    assert store.documents.load("state/app.md").content == "# App"
    assert store.documents.find("nothing") is None


def test_operation_39_list_a_category(store):
    for name in ("a/1", "a/2", "a/b/3", "c/4"):
        store.documents.save(name, "x")

    assert {d.name for d in store.documents.list("a")} == {"a/1", "a/2"}


def test_operation_40_delete_a_document(store):
    store.documents.save("d", "x")

    assert (store.documents.delete("d"), store.documents.delete("d")) == (1, 0)


def test_operation_41_sessions_of_a_user(store):
    session = store.conversations.get_or_create("ann", "s")
    store.conversations.update("s", context={"persona": "p"})
    store.conversations.update("s", merge=True, context={"seed": 1})

    again = store.conversations.get_or_create("ann", "s")

    assert (again.id, again.context) == (session.id, {"persona": "p", "seed": 1})
    assert store.conversations.load("s", owner="ann") == again
    assert store.conversations.delete("s", owner="ann") == 1
    assert store.conversations.find("s") is None


def test_operation_42_list_sessions_last_used_first(store):
    for id_ in "abc":
        store.conversations.get_or_create("ann", id_)
    store.conversations.add("a", Message.user("x"))

    listed = store.conversations.list(owner="ann")

    assert [(talk.id, talk.messages) for talk in listed] == [
        ("a", 1),
        ("c", 0),
        ("b", 0),
    ]


def test_operation_43_prune_sessions_by_age_and_number(store, clock):
    store.conversations.get_or_create("ann", "old")
    clock.advance(8 * DAY)
    for n in range(4):
        store.conversations.get_or_create("ann", f"{n}")

    assert store.conversations.prune(idle=7 * DAY, per_owner=3).threads == 2
    assert [talk.id for talk in store.conversations.list()] == ["3", "2", "1"]


def test_operation_44_prune_sessions_while_saving(path, clock):
    policy = Retention(kinds=("conversation",), threads_per_owner=2)
    options = {"retention": policy, "prune_every": timedelta(0)}
    with holdfast.open(path, clock=clock, **options) as store:
        for n in range(4):
            store.conversations.get_or_create("ann", f"{n}")

        assert [talk.id for talk in store.conversations.list()] == ["3", "2"]


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 600])
def test_operation_45_a_name_that_cannot_be_one_is_refused(name, store):
    for refuse in (
        lambda: store.documents.save(name, "x"),
        lambda: store.conversations.load(name),
        lambda: store.agents.load(name),
        lambda: store.thread(name),
    ):
        with raises(Unstorable):
            refuse()


@pytest.mark.parametrize("name", ["..", "/a", "a/", "a//b", "a\\b", "../../x", "CON"])
def test_operation_45_any_other_name_is_data(name, store):
    store.documents.save(name, name)

    assert store.documents.load(name).content == name
    assert [d.name for d in store.documents.list()] == [name]
