"""Spans: one for each operation, named by the conventions, without any content."""

import asyncio
import contextvars
import threading

import apsw
import pytest
from opentelemetry.trace import SpanKind, StatusCode

import holdfast
from holdfast import Agent, Conflict, NotFound
from inner.api import store_address
from inner.sqlite import page_checksums
from inner.telemetry import attributes_of
from support.stores import opened
from support.telemetry import Exported

SECRET = "the-launch-code-is-0000"


@pytest.fixture
def exported():
    return Exported()


@pytest.fixture(params=["blocking", "awaited"])
def store(request, path, exported):
    telemetry = exported.telemetry
    with opened(request.param, path, telemetry=telemetry) as store:
        yield store


def test_a_save_says_what_was_saved_where_and_how_much_of_it(store, path, exported):
    saved = store.thread("chat").append(messages=[{"content": "x" * 1000}])

    span = exported.span("append")
    seconds = span.attributes["holdfast.commit.sync_duration"]
    assert (span.name, span.kind) == ("append thread", SpanKind.CLIENT)
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes) == {
        "db.system.name": "sqlite",
        "db.namespace": path,
        "db.operation.name": "append",
        "db.collection.name": "thread",
        "gen_ai.conversation.id": "chat",
        "holdfast.thread": "chat",
        "holdfast.checkpoint": saved.id,
        "holdfast.step": 1,
        "holdfast.bytes.logical": saved.size,
        "holdfast.bytes.stored": span.attributes["holdfast.bytes.stored"],
        "holdfast.commit.size": 1,
        "holdfast.commit.sync_duration": seconds,
    }
    assert 1000 < span.attributes["holdfast.bytes.stored"] < 2000
    assert 0 < seconds < (span.end_time - span.start_time) / 1e9


@pytest.mark.parametrize("door", ["blocking", "awaited"])
@pytest.mark.parametrize("asked", [False, True])
def test_spans_of_a_store_with_a_key_name_nothing_unless_asked(asked, door, path):
    exported = Exported(encrypted_names=asked)
    options = {"telemetry": exported.telemetry, "key": bytes(32)}
    with opened(door, path, **options) as store:
        for place in (store, store.scope("acme-corp")):
            place.agents.save(Agent(id="planner-7", name="planner-7"))
            place.thread("ann@example.org", agent="planner-7").save({"n": 1})
            place.thread("ann@example.org").label("first-label")
            with pytest.raises(NotFound):
                place.thread("bob@example.org").load()

    texts = repr([[s.name, s.attributes, s.status, s.events] for s in exported.spans()])
    told = [
        name
        for name in ("ann@example.org", "bob@example.org", "planner-7")
        if name in texts
    ]
    assert bool(told) is asked
    assert exported.spans("save")[0].attributes["holdfast.step"] == 1


def test_only_what_is_new_counts_as_stored(store, exported):
    thread = store.thread("chat")
    thread.append(messages=[{"content": "x" * 9000}])
    thread.append(messages=[{"content": "y" * 500}])

    [_, second] = exported.spans("append")
    assert second.attributes["holdfast.bytes.logical"] > 9500
    assert second.attributes["holdfast.bytes.stored"] < 1500


@pytest.mark.parametrize("door", ["blocking", "awaited"])
def test_of_what_is_compressed_the_compressed_size_counts(door, path, exported):
    telemetry = exported.telemetry
    with opened(door, path, telemetry=telemetry, compress=True) as store:
        store.thread("chat").append(messages=[{"content": "x" * 9000}])

    assert exported.span("append").attributes["holdfast.bytes.stored"] < 1500


CALLS = {
    "save": lambda thread: thread.save({"messages": []}),
    "append": lambda thread: thread.extend({"messages": [1]}),
    "load": lambda thread: thread.load(),
    "get": lambda thread: thread.get(),
    "history": lambda thread: thread.history(),
    "count": lambda thread: thread.count(),
    "find": lambda thread: thread.find(tag="x"),
    "diff": lambda thread: thread.diff("@~1"),
    "blame": lambda thread: thread.blame("messages"),
    "moves": lambda thread: thread.moves(),
    "family": lambda thread: thread.family(),
    "tree": lambda thread: thread.tree(),
    "fork": lambda thread: thread.fork("other"),
    "undo": lambda thread: thread.undo(),
    "redo": lambda thread: thread.redo(),
    "mark": lambda thread: thread.tag("x"),
    "describe": lambda thread: thread.describe(owner="me"),
    "record": lambda thread: thread.record("k", 1),
    "recorded": lambda thread: thread.recorded("k"),
    "journal": lambda thread: thread.journal(),
    "effects": lambda thread: thread.effects(),
    "consume": lambda thread: thread.consume("grant"),
    "rewind": lambda thread: thread.rewind("@~1", hard=True),
    "delete": lambda thread: thread.delete(),
}


def test_every_operation_of_a_thread_has_the_name_of_its_method(store, exported):
    for call in CALLS.values():
        call(store.thread("chat"))

    assert exported.names() == [f"{name} thread" for name in CALLS]
    for span in exported.spans():
        assert span.attributes["holdfast.thread"] == "chat"


def test_records_are_named_by_what_they_are(store, exported):
    store.agents.save(Agent(id="bot"))
    store.conversations.create("c1", agent="bot", messages=[{"role": "user"}])
    store.conversations.add("c1", {"role": "user", "content": "hi"})
    store.conversations.load("c1")
    store.conversations.list()
    store.agents.checkpoint("bot", name="before")
    store.documents.save("notes", "text")
    store.stats()
    store.search("hi")

    assert exported.names() == [
        "save agent",
        "create conversation",
        "add conversation",
        "load conversation",
        "list conversation",
        "checkpoint agent",
        "save document",
        "stats",
        "search",
    ]
    ids = {
        span.name: (
            span.attributes.get("gen_ai.conversation.id"),
            span.attributes.get("gen_ai.agent.id"),
        )
        for span in exported.spans()
    }
    assert ids["save agent"] == (None, "bot")
    assert ids["create conversation"] == ("c1", "bot")
    assert ids["load conversation"] == ("c1", "bot")
    assert ids["checkpoint agent"] == (None, "bot")
    assert ids["save document"] == ids["search"] == (None, None)


def test_a_recorder_makes_spans_of_its_conversation(store, exported):
    recorder = store.conversations.recorder("talk")
    recorder.add({"role": "user", "content": "hi"})
    recorder.save()

    assert exported.names()[:2] == ["resume conversation", "record conversation"]
    assert exported.names()[-1] == "save conversation"
    assert exported.spans()[-1].attributes["gen_ai.conversation.id"] == "talk"


def test_spans_are_children_of_the_span_of_the_caller(store, exported):
    with exported.trace() as parent:
        store.thread("chat").save({})
        context = contextvars.copy_context()
        worker = threading.Thread(target=context.run, args=[store.thread("chat").load])
        worker.start()
        worker.join()

    for span in exported.spans():
        assert span.parent.span_id == parent.get_span_context().span_id
    assert exported.names() == ["save thread", "load thread"]


def test_what_an_operation_calls_is_a_child_of_it(path, exported):
    def clock():
        with exported.trace("clock"):
            return 1

    with holdfast.open(path, telemetry=exported.telemetry, clock=clock) as store:
        store.thread("chat").save({})

    [inner] = [s for s in exported._spans.get_finished_spans() if s.name == "clock"]
    assert inner.parent.span_id == exported.span("save").context.span_id


def test_an_error_is_told_by_type_and_code_and_not_by_its_text(store, exported):
    store.thread("chat").save({})
    with pytest.raises(Conflict):
        store.thread("chat").save({}, expect=None)
    with pytest.raises(NotFound):
        store.thread("chat").get(SECRET)

    conflict, missing = exported.spans("save")[1], exported.span("get")
    assert conflict.attributes["error.type"] == "holdfast.errors.Conflict"
    assert conflict.attributes["db.response.status_code"] == "head_moved"
    assert missing.attributes["error.type"] == "holdfast.errors.NotFound"
    for span in (conflict, missing):
        assert (span.status.status_code, span.status.description) == (
            StatusCode.ERROR,
            None,
        )
        assert not span.events


def test_nothing_that_is_saved_or_asked_for_is_exported(store, exported):
    thread = store.thread("chat")
    thread.save(
        {SECRET: 1, "messages": [SECRET * 50]},
        metadata={"note": SECRET},
        journal={"answer": SECRET},
    )
    thread.append(messages=[{"role": "user", "content": SECRET}])
    thread.record("key", SECRET)
    store.conversations.create("c", title=SECRET, messages=[{"content": SECRET}])
    store.documents.save("notes", SECRET)
    store.search(SECRET)
    recorder = store.conversations.recorder("talk")
    recorder.add({"role": "user", "content": SECRET})
    with pytest.raises(RuntimeError):
        recorder.call({"id": "1", "name": "pay", "arguments": {"to": SECRET}}, _fail)
    with pytest.raises(holdfast.Unstorable):
        thread.save({"messages": object(), SECRET: 1})
    with pytest.raises(NotFound):
        thread.load(f"label:{SECRET}")

    assert len(exported.spans()) > 10
    assert SECRET not in exported.text()


def _fail(to):
    raise RuntimeError(to)


def test_a_conflict_that_the_save_got_over_is_counted_in_its_span(path, exported):
    with (
        holdfast.open(path, telemetry=exported.telemetry) as store,
        holdfast.open(path, telemetry=False) as rival,
    ):
        store.thread("chat").append(log=[1])
        rival.thread("chat").append(log=[2])
        store.thread("chat").append(log=[3])

    [_, span] = exported.spans("append")
    assert span.attributes["holdfast.conflicts"] == 1
    assert span.attributes["holdfast.step"] == 3
    assert span.status.status_code is StatusCode.UNSET
    codes = exported.values("holdfast.conflicts", "db.response.status_code")
    assert codes == {("head_moved",): 1}


def test_saves_that_share_a_commit_say_how_many_they_were(path, exported):
    async def save_all():
        async with holdfast.open_async(path, telemetry=exported.telemetry) as store:
            rival = apsw.Connection(path, vfs=page_checksums())
            rival.execute("begin immediate")  # the first has to wait, for all of them
            saves = [store.thread(f"t{n}").append(log=[n]) for n in range(20)]
            saving = asyncio.gather(*saves)
            await asyncio.sleep(0)
            rival.close()
            await saving

    asyncio.run(save_all())

    sizes = [span.attributes["holdfast.commit.size"] for span in exported.spans()]
    assert len(sizes) == 20
    assert max(sizes) > 1


def test_waiting_for_changes_is_one_span(path, exported):
    async def wait():
        async with holdfast.open_async(path, telemetry=exported.telemetry) as store:
            await store.changes(timeout=0.1)

    asyncio.run(wait())

    assert exported.names() == ["changes"]


def test_a_folder_has_a_name_and_the_time_of_its_files(tmp_path, exported):
    folder = str(tmp_path / "history")
    with holdfast.open(f"dir:{folder}", telemetry=exported.telemetry) as store:
        store.thread("chat").save({})

    attributes = exported.span("save").attributes
    assert attributes["db.system.name"] == "holdfast.directory"
    assert attributes["db.namespace"] == folder
    assert attributes["holdfast.commit.sync_duration"] > 0


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (
            "postgresql://me:secret@db.example:5433/agents?sslmode=require",
            {
                "db.namespace": "agents|holdfast",
                "server.address": "db.example",
                "server.port": 5433,
            },
        ),
        (
            "postgres:///agents?host=/run/postgresql&password=secret",
            {"db.namespace": "agents|holdfast", "server.address": "/run/postgresql"},
        ),
        (
            "postgresql://me:secret@one:5432,two:5433/agents",
            {"db.namespace": "agents|holdfast", "server.address": "one"},
        ),
    ],
)
def test_a_server_is_named_without_users_and_passwords(address, expected):
    found = attributes_of(store_address(address), "holdfast")

    assert found == {"db.system.name": "postgresql", **expected}
