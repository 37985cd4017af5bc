"""The tools that models call, and what each of them does."""

import threading

import pytest

import holdfast
from holdfast import Agent, Message
from holdfast.tools import Toolset
from support.payments import World, pay
from support.toolsets import Awaited, Blocking, json_size

HELLO = {"role": "user", "content": "hello there"}
HI = {"role": "assistant", "content": "hi"}


@pytest.fixture(params=[Blocking, Awaited], ids=["blocking", "awaited"])
def desk(request, path):
    """A store whose tools are called through the sync and the async API."""
    made = request.param(path)
    yield made
    made.close()


@pytest.fixture
def tools(memory):
    return Toolset(memory)


def error_of(result):
    return result["error"]


# --- agents ---------------------------------------------------------------------------


def test_an_agent_is_created_and_loaded(desk):
    saved = desk.call("agent_save", agent_id="planner", name="Planner", type="travel")

    loaded = desk.call("agent_load", agent_id="planner")

    assert (saved["created"], saved["version"]) == (True, 1)
    assert (loaded["name"], loaded["type"], loaded["state"]) == (
        "Planner",
        "travel",
        {},
    )


def test_saving_an_agent_changes_only_what_is_given(desk):
    agent = Agent(
        id="planner", name="Planner", config={"model": "x"}, metadata={"k": 1}
    )
    desk.store.agents.save(agent)

    saved = desk.call(
        "agent_save", agent_id="planner", system_prompt="Plan.", name=None
    )

    loaded = desk.store.agents.load("planner")
    assert (saved["created"], saved["version"]) == (False, 2)
    assert (loaded.name, loaded.config) == ("Planner", {"model": "x"})
    assert (loaded.system_prompt, loaded.metadata) == ("Plan.", {"k": 1})
    assert loaded.created_at == agent.created_at


def test_an_empty_value_clears_a_field_of_an_agent(tools, memory):
    memory.agents.save(Agent(id="a", name="A", capabilities=["x"], state={"k": 1}))

    tools.call(
        "agent_save", {"agent_id": "a", "name": "", "capabilities": [], "state": {}}
    )

    loaded = memory.agents.load("a")
    assert (loaded.name, loaded.capabilities, loaded.state) == ("", [], {})


@pytest.mark.parametrize(
    ("merge", "state"), [(None, {"b": 3}), (False, {"b": 3}), (True, {"a": 1, "b": 3})]
)
def test_state_is_replaced_unless_it_shall_be_merged(tools, memory, merge, state):
    memory.agents.save(Agent(id="a", state={"a": 1, "b": 2}))
    arguments = {"agent_id": "a", "state": {"b": 3}, "merge_state": merge}

    tools.call("agent_save", arguments)

    assert memory.agents.load("a").state == state


@pytest.mark.parametrize(
    ("merge", "found"), [(None, {"b": 3}), (False, {"b": 3}), (True, {"a": 1, "b": 3})]
)
@pytest.mark.parametrize("messages", [None, [{"role": "user", "content": "hi"}]])
def test_context_is_replaced_unless_it_shall_be_merged(
    tools, memory, merge, found, messages
):
    before = {"a": 1, "b": 2}
    memory.conversations.create("c", context=before, metadata={**before, "c": 4})
    given = {"context": {"b": 3}, "metadata": {"b": 3}, "merge": merge}

    tools.call("conversation_save", {"conversation_id": "c", **given})
    if merge:
        given = {"metadata": {"c": None}, "merge": True, "messages": messages}
        tools.call("conversation_save", {"conversation_id": "c", **given})

    loaded = memory.conversations.load("c")
    assert (loaded.context, loaded.metadata) == (found, found)
    assert loaded.message_count == len(messages or ()) * bool(merge)


def test_a_null_that_is_merged_into_nothing_is_no_key(tools, memory):
    given = {"context": {"a": 1, "b": None}, "metadata": {"c": None}, "merge": True}

    tools.call("conversation_save", {"conversation_id": "c", **given})

    loaded = memory.conversations.load("c")
    assert (loaded.context, loaded.metadata) == ({"a": 1}, {})


@pytest.mark.parametrize("value", [1, "long " * 5000], ids=["small", "large"])
def test_saving_an_agent_again_makes_no_new_version(desk, value):
    first = desk.call("agent_save", agent_id="a", name="A", state={"k": value})

    again = desk.call("agent_save", agent_id="a", name="A", state={"k": value})

    assert (first["version"], again["version"], again["created"]) == (1, 1, False)


def test_rivals_that_merge_into_one_state_lose_nothing(path):
    def save(key):
        with holdfast.open(path) as store:
            arguments = {"agent_id": "a", "state": {key: 1}, "merge_state": True}
            Toolset(store).call("agent_save", arguments)

    holdfast.open(path).close()
    threads = [threading.Thread(target=save, args=[f"k{n}"]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with holdfast.open(path) as store:
        assert store.agents.load("a").state == {f"k{n}": 1 for n in range(8)}


def test_agents_are_listed_in_pages(desk):
    for number in range(5):
        desk.call("agent_save", agent_id=f"a{number}", type=["even", "odd"][number % 2])

    first = desk.call("agent_list", limit=2)
    second = desk.call("agent_list", limit=2, cursor=first["cursor"])
    even = desk.call("agent_list", type="even")

    assert [a["agent_id"] for a in first["agents"]] == ["a4", "a3"]
    assert [a["agent_id"] for a in second["agents"]] == ["a2", "a1"]
    assert [a["agent_id"] for a in even["agents"]] == ["a4", "a2", "a0"]
    assert even["cursor"] is None


def test_an_agent_is_deleted_with_all_that_is_its_own(desk):
    desk.call("agent_save", agent_id="a")
    desk.call("conversation_save", conversation_id="c", agent_id="a", messages=[HELLO])
    desk.call("checkpoint_create", agent_id="a")

    deleted = desk.call("agent_delete", agent_id="a")
    again = desk.call("agent_delete", agent_id="a")

    assert deleted == {"deleted": 1, "conversations": 1, "checkpoints": 1}
    assert again["deleted"] == 0
    assert "no agent 'a'" in again["note"]
    assert desk.store.conversations.find("c") is None


def test_what_was_deleted_can_be_made_anew(desk):
    desk.call("agent_save", agent_id="a", name="A")
    desk.call("conversation_save", conversation_id="c", messages=[HELLO])
    desk.call("agent_delete", agent_id="a")
    desk.call("conversation_delete", conversation_id="c")

    agent = desk.call("agent_save", agent_id="a")
    conversation = desk.call("conversation_save", conversation_id="c", messages=[HI])

    assert (agent["created"], agent["version"]) == (True, 1)
    assert (conversation["created"], conversation["message_count"]) == (True, 1)


# --- conversations --------------------------------------------------------------------


def test_a_conversation_is_created_with_messages_and_grows(desk):
    made = desk.call(
        "conversation_save",
        conversation_id="c",
        agent_id="a",
        owner="ann",
        title="T",
        tags=["x"],
        messages=[HELLO],
    )

    grown = desk.call("conversation_save", conversation_id="c", messages=[HI])

    loaded = desk.store.conversations.load("c")
    assert (made["created"], made["added"], made["message_count"]) == (True, 1, 1)
    assert (grown["created"], grown["added"], grown["message_count"]) == (False, 1, 2)
    assert loaded.messages == [HELLO, HI]
    assert (loaded.agent, loaded.owner, loaded.title) == ("a", "ann", "T")


def test_a_conversation_is_changed_only_where_something_is_given(tools, memory):
    memory.conversations.create(
        "c", title="T", summary="S", tags=["x"], archived=True, messages=[HELLO]
    )
    about = {"title": "New", "summary": "", "archived": False, "tags": None}

    tools.call("conversation_save", {"conversation_id": "c", **about})

    loaded = memory.conversations.load("c")
    assert (loaded.title, loaded.summary, loaded.tags) == ("New", None, ["x"])
    assert (loaded.archived, loaded.messages) == (False, [HELLO])


def test_values_and_messages_of_one_call_are_one_checkpoint(tools, memory):
    memory.conversations.create("c")

    tools.call(
        "conversation_save", {"conversation_id": "c", "title": "T", "messages": [HI]}
    )

    assert memory.conversations.thread("c").step == 2


def test_a_repeated_call_adds_no_message_twice(desk):
    arguments = {"conversation_id": "c", "messages": [HELLO, HI]}
    desk.call("conversation_save", **arguments)

    again = desk.call("conversation_save", **arguments)

    assert (again["added"], again["message_count"]) == (0, 2)
    assert "start=2" in again["note"]


def test_start_adds_what_already_stands_at_the_end_once_more(tools, memory):
    memory.conversations.create("c", messages=[HELLO, HI])
    arguments = {"conversation_id": "c", "messages": [HELLO, HI], "start": 2}

    first = tools.call("conversation_save", arguments)
    again = tools.call("conversation_save", arguments)

    assert (first["added"], again["added"]) == (2, 0)
    assert memory.conversations.load("c").messages == [HELLO, HI, HELLO, HI]


def test_a_typed_message_counts_as_there_already(tools, memory):
    memory.conversations.create("c", messages=[Message.user("hello there")])

    saved = tools.call(
        "conversation_save", {"conversation_id": "c", "messages": [HELLO]}
    )

    assert saved["added"] == 0


@pytest.mark.parametrize(
    ("start", "message"), [(5, "after the end"), (0, "there are other messages at 0")]
)
def test_a_start_where_the_messages_do_not_belong_is_refused(
    tools, memory, start, message
):
    memory.conversations.create("c", messages=[HELLO, HI])
    arguments = {"conversation_id": "c", "messages": [HI], "start": start}

    refused = error_of(tools.call("conversation_save", arguments))

    assert refused["code"] == "conflict"
    assert message in refused["message"]
    assert "start=2" in refused["hint"]


def test_a_new_conversation_cannot_start_in_the_middle(tools):
    arguments = {"conversation_id": "c", "messages": [HI], "start": 3}

    refused = error_of(tools.call("conversation_save", arguments))

    assert "start=0" in refused["hint"]


def test_a_conversation_keeps_its_agent_and_owner(tools, memory):
    memory.conversations.create("c", agent="a", owner="ann")

    refused = error_of(
        tools.call("conversation_save", {"conversation_id": "c", "owner": "bob"})
    )

    assert refused["message"] == "conversation 'c' exists, and its owner is 'ann'"
    assert "Leave owner out" in refused["hint"]


def test_rivals_that_add_to_a_conversation_lose_nothing(path):
    def save(number):
        with holdfast.open(path) as store:
            message = {"role": "user", "content": f"m{number}"}
            arguments = {"conversation_id": "c", "messages": [message]}
            Toolset(store).call("conversation_save", arguments)

    holdfast.open(path).close()
    threads = [threading.Thread(target=save, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with holdfast.open(path) as store:
        texts = [
            message["content"] for message in store.conversations.load("c").messages
        ]
    assert sorted(texts) == [f"m{n}" for n in range(6)]


def test_a_rival_with_the_same_message_is_noticed_at_the_last_moment(path):
    """The clock is asked right before the commit: that is when the rival comes."""
    rivals = []

    def clock():
        while rivals:
            rivals.pop()()
        return 0

    with holdfast.open(path, clock=clock) as store, holdfast.open(path) as other:
        store.conversations.create("c", messages=[HI])
        rivals.append(lambda: other.conversations.add("c", HELLO))
        arguments = {"conversation_id": "c", "messages": [HELLO]}
        saved = Toolset(store).call("conversation_save", arguments)

        assert (saved["added"], saved["message_count"]) == (0, 2)
        assert store.conversations.load("c").messages == [HI, HELLO]


def test_a_conversation_is_loaded_newest_messages_first_in_order(desk):
    messages = [{"role": "user", "content": f"m{n}"} for n in range(5)]
    desk.call("conversation_save", conversation_id="c", messages=messages)

    newest = desk.call("conversation_load", conversation_id="c", limit=2)
    older = desk.call("conversation_load", conversation_id="c", cursor=newest["cursor"])

    assert newest["messages"] == [
        {"position": 3, "role": "user", "content": "m3"},
        {"position": 4, "role": "user", "content": "m4"},
    ]
    assert [message["position"] for message in older["messages"]] == [0, 1, 2]
    assert (older["cursor"], older["message_count"]) == (None, 5)


def test_messages_of_every_origin_are_shown_as_they_came(tools, memory):
    call = {"type": "tool_use", "id": "u", "name": "f", "input": {"x": 1}}
    foreign = {"role": "assistant", "content": [call], "position": "mine"}
    memory.conversations.create(
        "c", messages=[foreign, Message.user("hi", id="m", at=1)]
    )

    shown = tools.call("conversation_load", {"conversation_id": "c"})["messages"]

    assert shown[0] == {"role": "assistant", "content": [call], "position": 0}
    assert shown[1] == {
        "position": 1,
        "role": "user",
        "content": "hi",
        "id": "m",
        "at": 1,
    }


def test_conversations_are_listed_by_agent_owner_tag_and_archive(desk):
    desk.store.conversations.create("a", agent="x", owner="ann", tags=["t"])
    desk.store.conversations.create("b", agent="x", archived=True)
    desk.store.conversations.create("c", owner="ann")

    def listed(**arguments):
        found = desk.call("conversation_list", **arguments)["conversations"]
        return [conversation["conversation_id"] for conversation in found]

    assert listed() == ["c", "b", "a"]
    assert listed(agent_id="x") == ["b", "a"]
    assert listed(owner="ann", agent_id=None) == ["c", "a"]
    assert listed(archived=True) == ["b"]
    assert listed(tag="t") == ["a"]


def test_messages_are_found_by_their_text_a_page_at_a_time(desk):
    desk.store.conversations.create("c", messages=[HELLO, HI, HELLO])

    first = desk.call("conversation_search", query="HELLO", limit=1)
    second = desk.call("conversation_search", query="HELLO", cursor=first["cursor"])

    [match] = first["matches"]
    assert (match["conversation_id"], match["position"]) == ("c", 2)
    assert (match["role"], match["snippet"]) == ("user", "hello there")
    assert [match["position"] for match in second["matches"]] == [0]


def test_keywords_find_messages_or_tell_which_of_them_would(desk):
    ask = {"role": "user", "content": "A train from Paris to Lyon, please"}
    desk.store.conversations.create("c", messages=[ask, HELLO])

    def searched(query, **arguments):
        found = desk.call("conversation_search", query=query, **arguments)
        return [match["position"] for match in found["matches"]], found.get("note", "")

    assert searched("lyon train paris") == ([0], "")
    assert "No message has 'ticket'. Search for a part" in searched("ticket")[1]
    note = searched('lyon "train from" ticket')[1]
    assert "Found alone: 'lyon', 'train from'; not found: 'ticket'." in note
    assert "Found alone: 'lyon', 'hello'; not found: none." in searched("lyon hello")[1]
    assert "Found alone: none;" in searched("lyon x", owner="bob")[1]


def test_a_conversation_is_deleted_and_comes_back_with_a_checkpoint(desk):
    desk.call("agent_save", agent_id="a")
    desk.call("conversation_save", conversation_id="c", agent_id="a", messages=[HELLO])
    desk.call("checkpoint_create", agent_id="a", name="before")

    deleted = desk.call("conversation_delete", conversation_id="c")
    again = desk.call("conversation_delete", conversation_id="c")
    restored = desk.call("checkpoint_restore", agent_id="a", checkpoint="before")

    assert (deleted, again["deleted"]) == ({"deleted": 1}, 0)
    assert restored["revived"] == {"count": 1, "conversation_ids": ["c"]}
    assert desk.store.conversations.load("c").messages == [HELLO]


# --- checkpoints and statistics -------------------------------------------------------


def test_a_restore_says_what_it_did_and_how_to_undo_it(desk):
    desk.call("agent_save", agent_id="a", state={"k": 1})
    desk.call("conversation_save", conversation_id="c", agent_id="a", messages=[HELLO])
    made = desk.call("checkpoint_create", agent_id="a", description="all is well")
    desk.call("conversation_save", conversation_id="c", messages=[HI])
    desk.call("conversation_save", conversation_id="later", agent_id="a")

    done = desk.call(
        "checkpoint_restore", agent_id="a", checkpoint=made["checkpoint_id"]
    )
    restored = desk.store.conversations.load("c").messages
    desk.call("checkpoint_restore", agent_id="a", checkpoint=done["undo"])

    assert restored == [HELLO]
    assert (done["rewound"]["count"], done["removed"]["count"]) == (1, 1)
    assert done["restored"]["description"] == "all is well"
    assert desk.store.conversations.load("c").messages == [HELLO, HI]
    assert desk.store.conversations.find("later") is not None


def test_checkpoints_are_listed_by_kind_and_deleted(desk):
    desk.call("agent_save", agent_id="a")
    one = desk.call("checkpoint_create", agent_id="a", name="one")["checkpoint_id"]
    desk.call("checkpoint_create", agent_id="a", name="two")
    desk.call("checkpoint_restore", agent_id="a", checkpoint="one")

    newest = desk.call("checkpoint_list", agent_id="a", limit=1)
    manual = desk.call("checkpoint_list", agent_id="a", kind="manual")
    deleted = desk.call("checkpoint_delete", agent_id="a", checkpoint_id=one)
    again = desk.call("checkpoint_delete", agent_id="a", checkpoint_id=one)

    assert newest["checkpoints"][0]["kind"] == "recovery"
    assert newest["cursor"] is not None
    assert [c["name"] for c in manual["checkpoints"]] == ["two", "one"]
    assert (deleted, again["deleted"]) == ({"deleted": 1}, 0)
    assert one in again["note"]


def test_statistics_count_what_is_kept(desk):
    desk.call("agent_save", agent_id="a")
    desk.call("conversation_save", conversation_id="c", agent_id="a", messages=[HELLO])
    desk.call("checkpoint_create", agent_id="a")

    counted = desk.call("persistence_stats")

    kinds = ("agents", "conversations", "messages", "documents", "agent_checkpoints")
    assert [counted[kind] for kind in kinds] == [1, 1, 1, 0, 1]
    assert counted["file_bytes"] > 0


# --- effects --------------------------------------------------------------------------


def agent_that_paid(store):
    """An agent that paid bob after its checkpoint ``before``; the recorder goes on."""
    store.agents.save(Agent(id="a"))
    run = store.conversations.recorder("c", agent="a", tools=World().tools())
    run.add(HELLO)
    run.save(label="asked")
    store.agents.checkpoint("a", "before")
    pay(run, "call-1", "a1")
    run.save()
    return run


def test_a_restore_tells_which_effects_stay_in_force(desk):
    agent_that_paid(desk.store)

    done = desk.call("checkpoint_restore", agent_id="a", checkpoint="before")
    undone = desk.call("checkpoint_restore", agent_id="a", checkpoint=done["undo"])

    [paid] = done["left_behind"]["calls"]
    assert done["left_behind"]["count"] == 1
    assert "do not make them again" in done["left_behind"]["note"]
    assert paid.pop("at").endswith("Z")
    assert paid == {
        "conversation_id": "c",
        "tool": "pay",
        "arguments": {"to": "bob", "amount": 500, "ref": "a1"},
        "status": "completed",
        "result": {"receipt": "a1"},
    }
    assert undone["left_behind"] == {"count": 0, "calls": []}


def test_the_effects_of_a_conversation_are_a_part_of_it(desk):
    run = agent_that_paid(desk.store)
    made = desk.call("conversation_load", conversation_id="c", part="effects")
    run.resume(at="label:asked", tell=False)

    after = desk.call("conversation_load", conversation_id="c", part="effects")
    behind = desk.call(
        "conversation_load", conversation_id="c", part="effects.left_behind"
    )

    assert [call["tool"] for call in made["value"]["made"]] == ["pay"]
    assert made["value"]["left_behind"] == []
    assert after["value"] == {
        "made": [],
        "left_behind": made["value"]["made"],
    }
    assert behind["value"] == made["value"]["made"]


def test_effects_of_a_fork_that_is_another_users_are_not_told(desk):
    agent_that_paid(desk.store)
    chat = desk.store.thread("conversation:c")
    chat.describe(owner="ann")
    forked = chat.fork("conversation:f", "label:asked")
    forked.describe(owner="bob")
    bound = desk.toolset(owner="bob")

    found = bound.call("conversation_load", {"conversation_id": "f", "part": "effects"})

    assert found["value"] == {"made": [], "left_behind": []}


def test_countless_effects_left_behind_are_bounded(tools, memory):
    run = agent_that_paid(memory)
    for n in range(60):
        pay(run, f"more-{n}", "x" * 2000, to=f"{n}")
    run.save()

    done = tools.call("checkpoint_restore", {"agent_id": "a", "checkpoint": "before"})

    assert done["left_behind"]["count"] == 61
    shown = [call["arguments"]["to"] for call in done["left_behind"]["calls"]]
    assert shown == [str(n) for n in range(50, 60)]
    assert json_size(done) <= 32_000
