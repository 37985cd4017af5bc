"""Results of tools fit into a context: always valid JSON, never too long."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import Agent, Attachment, Message
from holdfast.tools import Toolset
from support.toolsets import json_size

LARGEST = 32_000
WIDE = "𝄞ä\u200d"


@pytest.fixture
def tools(memory):
    return Toolset(memory)


def pieces(tools, name, arguments):
    """Everything of a part, a call at a time, each of them within bounds."""
    found, cursor = [], None
    while True:
        result = tools.call(name, {**arguments, "cursor": cursor})
        assert json_size(result) <= LARGEST
        found.append(result["piece"])
        cursor = result["cursor"]
        if cursor is None:
            assert sum(map(len, found)) == result["total"]
            return "".join(found), result["format"]


def test_a_huge_conversation_is_read_in_pages_without_gaps(tools, memory):
    messages = [{"role": "user", "content": f"{n} " * 500} for n in range(300)]
    memory.conversations.create("c", messages=messages)

    seen, cursor = [], None
    while True:
        asked = {"conversation_id": "c", "limit": 500, "cursor": cursor}
        page = tools.call("conversation_load", asked)
        assert json_size(page) <= LARGEST
        seen[:0] = page["messages"]
        cursor = page["cursor"]
        if cursor is None:
            break

    assert [message["position"] for message in seen] == list(range(300))
    assert [message["content"] for message in seen] == [m["content"] for m in messages]


@pytest.mark.parametrize("part", [WIDE, "plain ", "\x01", '\\"', "\n"])
def test_a_huge_message_is_shortened_among_others_and_read_in_pieces(
    tools, memory, part
):
    text = part * 50_000
    around = {"role": "user", "content": "short"}
    memory.conversations.create(
        "c", messages=[around, {"role": "user", "content": text}]
    )

    page = tools.call("conversation_load", {"conversation_id": "c"})
    whole, form = pieces(
        tools, "conversation_load", {"conversation_id": "c", "part": "messages.1"}
    )

    assert json_size(page) <= LARGEST
    assert page["messages"][0] == {"position": 0, **around}
    assert page["messages"][1]["content"].startswith(part * 50)
    assert page["messages"][1]["content"].endswith(" characters]")
    assert page["note"].startswith("Shortened: messages.1.")
    assert (whole, form) == (text, "text")


def test_a_huge_message_with_more_than_text_is_read_as_json(tools, memory):
    block = {"type": "tool_use", "id": "u", "name": "f", "input": {"x": "y" * 99_999}}
    message = {"role": "assistant", "content": [block]}
    memory.conversations.create("c", messages=[message])

    whole, form = pieces(
        tools, "conversation_load", {"conversation_id": "c", "part": "messages.0"}
    )

    assert form == "json"
    assert json.loads(whole) == message


def test_a_message_of_countless_parts_is_shortened(tools, memory):
    parts = [{"type": "text", "text": f"part {n}"} for n in range(50_000)]
    memory.conversations.create("c", messages=[{"role": "user", "content": parts}])

    page = tools.call("conversation_load", {"conversation_id": "c"})

    assert json_size(page) <= LARGEST
    assert page["messages"][0]["content"][-1].endswith(" items]")


def test_a_message_that_cannot_be_shown_by_field_is_shown_as_text(tools, memory):
    bushy = "leaf"
    for _ in range(6):
        bushy = [bushy] * 5
    memory.conversations.create("c", messages=[{"role": "user", "content": bushy}])

    [shown] = tools.call("conversation_load", {"conversation_id": "c"})["messages"]

    assert json_size(shown) <= LARGEST
    assert shown["position"] == 0
    assert shown["shortened"].endswith("… [+more]")


def test_a_value_as_deep_as_can_be_stored_is_shown(tools, memory):
    deep = {}
    for _ in range(95):
        deep = {"k": [deep]}
    memory.agents.save(Agent(id="a", state=deep))

    page = tools.call("agent_load", {"agent_id": "a"})

    assert page["state"] == deep


def test_all_that_is_said_about_a_conversation_is_bounded(tools, memory):
    long = "ö" * 100_000
    memory.conversations.create(
        "c",
        title=long,
        summary=long,
        tags=[long] * 50,
        context={"k": long},
        metadata={f"k{n}": n for n in range(20_000)},
        messages=[{"role": "user", "content": "hi"}],
    )

    page = tools.call("conversation_load", {"conversation_id": "c"})
    summary, _ = pieces(
        tools, "conversation_load", {"conversation_id": "c", "part": "summary"}
    )
    listed = tools.call("conversation_list")

    assert json_size(page) <= LARGEST
    assert "title, summary, tags, context, metadata." in page["note"]
    assert summary == long
    assert json_size(listed) <= LARGEST


def test_a_huge_agent_is_shortened_and_read_in_pieces(tools, memory):
    state = {"notes": "line\n" * 20_000, "plan": list(range(20_000)), "n": 1}
    memory.agents.save(Agent(id="a", system_prompt="x" * 99_999, state=state))

    page = tools.call("agent_load", {"agent_id": "a"})
    notes, form = pieces(tools, "agent_load", {"agent_id": "a", "part": "state.notes"})
    plan, _ = pieces(tools, "agent_load", {"agent_id": "a", "part": "state.plan"})

    assert json_size(page) <= LARGEST
    assert page["state"]["n"] == 1
    assert page["note"].startswith("Shortened: system_prompt, state.")
    assert (notes, form) == (state["notes"], "text")
    assert plan == str(state["plan"]).replace(" ", "")


def test_an_agent_that_fits_is_not_shortened(tools, memory):
    state = {"notes": "x" * 20_000}
    memory.agents.save(Agent(id="a", state=state))

    page = tools.call("agent_load", {"agent_id": "a"})

    assert page["state"] == state
    assert "note" not in page


def test_a_small_part_comes_as_the_value_it_is(tools, memory):
    memory.agents.save(Agent(id="a", state={"plan": {"step": 3}}))

    part = tools.call("agent_load", {"agent_id": "a", "part": "state.plan"})

    assert part == {"agent_id": "a", "part": "state.plan", "value": {"step": 3}}


def test_a_cursor_behind_the_end_of_a_part_is_refused(tools, memory):
    memory.agents.save(Agent(id="a", state={"k": "v"}))
    asked = {"agent_id": "a", "part": "state.k", "cursor": "100"}

    assert tools.call("agent_load", asked)["error"]["code"] == "invalid_arguments"


def test_long_lists_are_cut_where_they_fit_and_go_on_from_there(tools, memory):
    for number in range(120):
        memory.conversations.create(f"c{number}", title="ü" * 400, tags=["x" * 400])

    seen, cursor = [], None
    while True:
        page = tools.call("conversation_list", {"limit": 500, "cursor": cursor})
        assert json_size(page) <= LARGEST
        seen += [found["conversation_id"] for found in page["conversations"]]
        cursor = page["cursor"]
        if cursor is None:
            break

    assert seen == [f"c{number}" for number in reversed(range(120))]


def test_many_matches_are_cut_where_they_fit_and_go_on_from_there(tools, memory):
    messages = [
        {"role": "user", "content": f"needle {n} " + "y" * 200} for n in range(300)
    ]
    memory.conversations.create("c", title="t" * 300, messages=messages)

    seen, cursor = [], None
    while True:
        asked = {"query": "needle", "limit": 500, "cursor": cursor}
        page = tools.call("conversation_search", asked)
        assert json_size(page) <= LARGEST
        seen += [match["position"] for match in page["matches"]]
        cursor = page["cursor"]
        if cursor is None:
            break

    assert seen == list(reversed(range(300)))


def test_a_list_has_twenty_unless_more_are_asked_for(tools, memory):
    for number in range(25):
        memory.agents.save(Agent(id=f"a{number}"))

    assert len(tools.call("agent_list")["agents"]) == 20
    assert len(tools.call("agent_list", {"limit": 500})["agents"]) == 25


def test_a_restore_of_countless_conversations_is_bounded(tools, memory):
    memory.agents.save(Agent(id="a"))
    memory.agents.checkpoint("a", "n" * 500, description="d" * 99_999)
    for number in range(200):
        memory.conversations.create(f"{number}" + "i" * 400, agent="a")

    done = tools.call("checkpoint_restore", {"agent_id": "a", "checkpoint": "n" * 500})
    listed = tools.call("checkpoint_list", {"agent_id": "a"})

    assert done["removed"]["count"] == 200
    assert json_size(done) <= LARGEST
    assert json_size(listed) <= LARGEST


def test_errors_echo_only_the_beginning_of_what_was_given(tools):
    long = "\ud800" + "x" * 100_000

    for arguments in ({"agent_id": long[1:400]}, {long: 1}, {"agent_id": long}):
        assert json_size(tools.call("agent_load", arguments)) < 1500
    assert json_size(tools.call(long)) < 1500


def test_values_that_json_does_not_have_are_shown_as_text(tools, memory):
    state = {
        "bytes": b"\x00\xff",
        "when": datetime(2026, 1, 2, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "span": timedelta(seconds=1),
        "price": Decimal("1.50"),
        "id": UUID(int=1),
        "set": {1},
        "pair": (1, 2),
        "nan": float("nan"),
        "big": 2**70,
        "half": "a\ud800",
        1: "number",
    }
    memory.agents.save(Agent(id="a", state=state))

    shown = tools.call("agent_load", {"agent_id": "a"})["state"]

    assert shown == {
        "bytes": "[2 bytes]",
        "when": "2026-01-02 00:00:00+00:00",
        "day": "2026-01-02",
        "span": "0:00:01",
        "price": "1.50",
        "id": str(UUID(int=1)),
        "set": [1],
        "pair": [1, 2],
        "nan": "nan",
        "big": str(2**70),
        "half": "a?",
        "1": "number",
    }


def test_a_time_beyond_the_calendar_is_shown_as_it_is(path):
    with holdfast.open(path, clock=lambda: 10**18) as store:
        saved = Toolset(store).call("agent_save", {"agent_id": "a"})

    assert saved["updated_at"] == 10**18


def test_attachments_are_shown_by_their_size(tools, memory):
    picture = Attachment(kind="image", content=b"x" * 5000, id="p")
    memory.conversations.create(
        "c", messages=[Message.user("see", attachments=[picture])]
    )

    [message] = tools.call("conversation_load", {"conversation_id": "c"})["messages"]

    assert message["attachments"][0]["content"] == "[5000 bytes]"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(
    state=st.dictionaries(st.text(), VALUES),
    name=st.text(),
    repeated=st.sampled_from([1, 9_000]),
)
def test_whatever_an_agent_keeps_can_be_shown(state, name, repeated):
    with holdfast.open(":memory:", durability="normal") as store:
        long = {f"{name}{key}": value for key, value in state.items()}
        long["text"], long["many"] = name * repeated, [name] * repeated
        store.agents.save(Agent(id="a", name=name * repeated, state=long))

        page = Toolset(store).call("agent_load", {"agent_id": "a"})

    assert json_size(page) <= LARGEST
    assert page["agent_id"] == "a"
