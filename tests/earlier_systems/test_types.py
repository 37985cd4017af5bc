"""Every type of five earlier systems, by its number, and what represents it here."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

import holdfast
from holdfast import (
    Agent,
    Attachment,
    Conversation,
    FormatMismatch,
    Message,
    NotFound,
    Retention,
    ToolCall,
    Unstorable,
    strategy,
)
from holdfast.strategy import Event
from holdfast.testing import raises
from inner.messages import KINDS
from support.stores import open_awaited, open_file

HOUR = timedelta(hours=1)
SECOND = 1_000_000


@pytest.fixture(params=[open_file, open_awaited], ids=["file", "awaited"])
def store(request, path, clock):
    """The conformance suite tests every kind of store; here both doors will do."""
    with request.param(path, clock=clock, durability="normal") as store:
        yield store


def fields(type_):
    return set(type_.__struct_fields__)


# --- echo -----------------------------------------------------------------------------


def test_type_01_a_checkpoint_of_a_session(store, clock):
    chat = store.thread("session")
    first = chat.save({"messages": ["a"], "summary": "s", "metadata": {"k": 1}})
    second = chat.append(messages=["b"])

    assert (second.thread, second.parent) == ("session", first.id)
    assert second.saved_at == clock.now
    assert chat.load(first)["summary"] == "s"


def test_type_02_the_state_of_a_session(store):
    talk = Conversation(id="c", messages=[Message.user("a")], summary="s")
    talk.metadata["k"] = 1
    store.conversations.save(talk)

    loaded = store.conversations.load("c")

    assert (loaded.messages, loaded.summary) == (talk.messages, "s")
    assert loaded.metadata == {"k": 1}


# --- cortex ---------------------------------------------------------------------------


def test_type_03_what_is_known_of_a_checkpoint(store, clock):
    chat = store.thread("thread")
    chat.save({})
    saved = chat.save([1], label="l", tags=["a", "b"], metadata={"custom": "x"})

    assert fields(holdfast.Checkpoint) >= {"id", "thread", "parent", "step", "size"}
    assert (saved.thread, saved.step, saved.label) == ("thread", 2, "l")
    assert (saved.tags, saved.metadata) == (("a", "b"), {"custom": "x"})
    assert (saved.size, saved.saved_at) == (len("[1]"), clock.now)


def test_type_04_a_checkpoint_with_a_state_of_any_type(store):
    class Plan(msgspec.Struct):
        steps: list[str]

    saved = store.thread("t").save(Plan(["read"]))

    assert store.thread("t").load(saved, type=Plan) == Plan(["read"])
    assert (saved.id, saved.thread, saved.step) == (saved.id, "t", 1)


def test_type_05_errors(store):
    store.thread("t").save({"n": 1})

    for error, call in (
        (NotFound, lambda: store.thread("t").load("nothing")),
        (NotFound, lambda: store.thread("nobody").load()),
        (Unstorable, lambda: store.thread("t").save({"f": print})),
        (FormatMismatch, lambda: store.thread("t").load(type=list)),
    ):
        with raises(error) as raised:
            call()
        assert isinstance(raised.error, holdfast.HoldfastError)
        assert raised.error.code


def test_type_06_limits_age_and_compression(path):
    policy = Retention(last=100, within=timedelta(days=7))
    with holdfast.open(path, retention=policy, compress=True) as store:
        store.thread("t").save({"text": "x" * 5000})

        assert store.stats().stored_bytes < 1000


# --- smooth ---------------------------------------------------------------------------


def test_type_07_a_checkpoint_of_a_loop(store, clock):
    store.conversations.create("c", agent="agent-1", budget=8000)
    talk = store.conversations.load("c")
    talk.run, talk.metadata = {"iteration": 5}, {"k": "v"}
    store.conversations.save(talk)

    loaded = store.conversations.load("c")

    assert (loaded.agent, loaded.budget) == ("agent-1", 8000)
    assert (loaded.run, loaded.metadata) == ({"iteration": 5}, {"k": "v"})
    assert loaded.updated_at == clock.now
    plain = store.conversations.thread("c").load()
    assert msgspec.json.decode(msgspec.json.encode(plain)) == plain


def event(kind, **more):
    return Event(
        **{"kind": kind, "at": 0, "iteration": 3, "saved_at": 0, "saved_iteration": 0}
        | more
    )


def test_type_08_strategies():
    reply, result = event("llm_response"), event("tool_result", open_calls=0)

    assert strategy.after_tool_batch().wants(result) == "save"
    assert strategy.every(3).wants(event("iteration")) == "save"
    assert strategy.every(4).wants(event("iteration")) is None
    assert strategy.after_reply().wants(reply) == "save"
    assert strategy.never().wants(reply) is None


@pytest.mark.parametrize("kind", ["tool_result", "llm_response", "iteration"])
def test_type_09_events(kind):
    assert event(kind).kind == kind


# --- aether ---------------------------------------------------------------------------


def test_type_10_the_state_of_an_agent(store):
    agent = Agent(
        id="a",
        name="n",
        type="t",
        system_prompt="p",
        capabilities=["c"],
        config={"k": 1},
        state={"s": [1]},
        metadata={"m": None},
    )
    store.agents.save(agent)
    store.conversations.create("c", agent="a")

    loaded = store.agents.load("a")

    assert loaded.active_conversations == ("c",)
    assert (loaded.version, loaded.get_state("s")) == (1, [1])
    assert msgspec.structs.replace(loaded, active_conversations=()) == agent


def test_type_11_a_conversation(store, clock):
    talk = Conversation(id="c", agent="a", tags=["t"], archived=True)
    talk.add(Message.user("What is a reef?"))
    talk.auto_title()
    store.conversations.save(talk)

    loaded = store.conversations.load("c")

    assert loaded == talk
    assert (loaded.title, loaded.message_count) == ("What is a reef?", 1)
    assert loaded.created_at == loaded.updated_at == clock.now


def test_type_12_a_message(store):
    call = ToolCall(name="look")
    messages = [
        Message.system("s"),
        Message.user("u", tokens=1, metadata={"k": 1}),
        Message.assistant("a", tool_calls=[call]),
        Message.tool_result(call, "r"),
    ]
    messages[3].parent = messages[2].id
    store.conversations.create("c", messages=messages)

    loaded = store.conversations.load("c").messages

    assert loaded == messages
    assert [m.role for m in loaded] == ["system", "user", "assistant", "tool"]
    assert loaded[3].tool_call_id == call.id


@pytest.mark.parametrize("kind", ["image", "audio", "video", "file", "code"])
def test_type_13_an_attachment(kind, store):
    file = Attachment(
        kind=kind, name="n", mime_type="m", content="YQ==", url="https://x", size=1
    )
    store.conversations.create("c", messages=[Message.user("m", attachments=[file])])

    assert store.conversations.load("c").messages[0].attachments == [file]


@pytest.mark.parametrize("status", ["pending", "running", "completed", "failed"])
def test_type_14_a_tool_call(status, store):
    call = ToolCall(name="n", arguments={"a": 1}, status=status, result={"r": 2})
    store.conversations.create("c", messages=[Message.assistant(tool_calls=[call])])

    assert store.conversations.load("c").messages[0].tool_calls == [call]


@pytest.mark.parametrize("kind", KINDS)
def test_type_15_a_checkpoint_of_an_agent(kind, store, clock):
    store.agents.save(Agent(id="a", state={"k": 1}))
    store.conversations.create("c", agent="a")

    made = store.agents.checkpoint("a", "name", kind, "description")

    assert (made.agent_id, made.name, made.kind) == ("a", "name", kind)
    assert (made.description, made.created_at) == ("description", clock.now)
    assert (made.conversations, made.size > 0) == (1, True)
    # What stands for a checksum: the digest of the save that holds it all.
    assert store.get(made.id).digest.startswith("sha256:")


def test_type_16_statistics(store):
    facts = store.stats()

    assert facts.agents == facts.conversations == facts.messages == 0
    assert facts.agent_checkpoints == facts.stored_bytes == 0


def test_type_17_how_often_and_how_many(store, clock):
    store.agents.save(Agent(id="a"))
    saving = store.agents.autosave("a", every=300, keep=10)
    for n in range(12):
        store.agents.save(Agent(id="a", name=f"{n}"))
        saving.take()
    store.agents.checkpoint("a", "risky", kind="pre_operation")

    kinds = [c.kind for c in store.agents.checkpoints("a")]
    assert kinds == ["pre_operation"] + ["automatic"] * 10


# --- oxios ----------------------------------------------------------------------------


def test_type_18_the_id_of_a_session():
    with holdfast.open(":memory:") as store:
        session = store.conversations.get_or_create("ann")

    assert str(UUID(session.id)) == session.id


def test_type_19_a_session(store, clock):
    session = store.conversations.get_or_create("ann", "s")
    assert session.is_empty
    clock.advance(HOUR)
    store.conversations.add("s", Message.user("q"), Message.assistant("a"))
    store.conversations.update(
        "s", context={"seed": "x", "persona": "p"}, metadata={"k": [1]}
    )

    loaded = store.conversations.load("s")

    assert (loaded.owner, loaded.exchange_count) == ("ann", 1)
    assert loaded.context == {"seed": "x", "persona": "p"}
    assert (loaded.metadata["k"], loaded.is_empty) == ([1], False)
    assert loaded.updated_at - loaded.created_at == 3600 * SECOND


def test_type_20_what_the_user_said_and_the_agent_answered(store):
    about = {"seed_id": "x", "phase_reached": "run", "evaluation_passed": True}
    said = [Message.user("q", at=1), Message.assistant("a", at=2, metadata=about)]
    store.conversations.create("s", messages=said)

    assert store.conversations.load("s").messages == said


def test_type_21_the_summary_of_a_session(store):
    store.conversations.get_or_create("ann", "s", context={"seed": "x"})
    store.conversations.add("s", Message.user("q"))

    [summary] = store.conversations.list()

    assert (summary.id, summary.owner, summary.messages) == ("s", "ann", 1)
    assert (summary.context, summary.exchanges) == ({"seed": "x"}, 0)
    assert summary.created_at <= summary.updated_at


def test_type_22_how_many_sessions_and_how_long():
    policy = Retention(threads_per_owner=100, idle=168 * HOUR)

    assert policy.drops_threads
    assert not Retention().drops_threads
    with raises(Unstorable):
        Retention(threads_per_owner=0)


def test_type_23_sessions_are_pruned_once_in_a_while(path, clock):
    policy = Retention(kinds=("conversation",), threads_per_owner=1)
    options = {"retention": policy, "prune_every": HOUR, "clock": clock}
    with holdfast.open(path, **options) as store:
        for n in range(3):
            store.conversations.get_or_create("ann", f"{n}")
        assert len(store.conversations.list()) == 3

        clock.advance(HOUR)
        store.conversations.get_or_create("ann", "3")

        assert [talk.id for talk in store.conversations.list()] == ["3"]
