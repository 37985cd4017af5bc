"""The trace in which a checkpoint was saved is kept with it."""

import io
import json

import pytest

import holdfast
from holdfast import Unstorable
from holdfast.cli import main
from support.stores import opened
from support.telemetry import Exported

PLACES = ["{}/store.db", "dir:{}/store"]


@pytest.fixture
def exported():
    return Exported()


@pytest.fixture(params=["blocking", "awaited"])
def store(request, path, exported):
    with opened(request.param, path, telemetry=exported.telemetry) as store:
        yield store


def traceparent(span):
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-"


def test_a_checkpoint_leads_to_the_span_that_saved_it(store, exported):
    with exported.trace() as agent:
        saved = store.thread("chat").save({}, metadata={"cost": 1})
        store.conversations.create("talk")

    loaded = store.thread("chat").head
    talk = store.conversations.thread("talk").head
    assert loaded == saved
    assert loaded.metadata == {"cost": 1}
    assert loaded.traceparent.startswith(traceparent(exported.span("save")))
    assert talk.traceparent.startswith(traceparent(exported.span("create")))
    assert f"{agent.get_span_context().trace_id:032x}" in loaded.traceparent
    assert store.verify().problems == ()


def test_without_a_trace_or_without_telemetry_nothing_is_kept(path, store, exported):
    alone = store.thread("chat").save({})
    with exported.trace(), holdfast.open(path, telemetry=False) as silent:
        plain = silent.thread("chat").save({})

    assert (alone.traceparent, alone.encoded_metadata) == (None, b"")
    assert (plain.traceparent, plain.encoded_metadata) == (None, b"")


@pytest.mark.parametrize("metadata", [None, {"a": [1, (2, 3.5)], "n": float("nan")}])
def test_a_save_that_is_repeated_in_another_trace_is_the_same_save(
    store, exported, metadata
):
    def save(value, about=metadata):
        return store.thread("chat").save(value, id="once", metadata=about)

    with exported.trace("first"):
        saved = save({"n": 1})
    with exported.trace("second"):
        repeated = save({"n": 1})
        with pytest.raises(holdfast.Conflict):
            save({"n": 1}, {"other": "metadata"})
    again = save({"n": 1})

    assert repeated == again == saved
    assert store.thread("chat").step == 1


def test_an_equal_state_is_not_saved_again_for_another_trace(store, exported):
    saved = store.thread("chat").save({"n": 1})
    with exported.trace():
        kept = store.thread("chat").save({"n": 1}, if_changed=True)

    assert kept == saved


def test_a_caller_cannot_use_the_key_of_the_trace(store):
    with pytest.raises(Unstorable, match="is Holdfast's"):
        store.thread("chat").save({}, metadata={"holdfast:traceparent": "mine"})


@pytest.mark.parametrize("place", PLACES)
def test_a_trace_survives_forks_copies_and_archives(tmp_path, exported, place):
    url = place.format(tmp_path)
    archive, lines = io.BytesIO(), io.BytesIO()
    with holdfast.open(url, telemetry=exported.telemetry) as store:
        with exported.trace():
            saved = store.thread("chat").save({"n": 1}, metadata={"cost": 1})
        fork = store.thread("chat").fork("other").head
        store.export_to(archive)
        store.export_lines(lines)
        with holdfast.open(":memory:") as copy:
            store.copy_to(copy)
            copied = copy.thread("chat").head
    with holdfast.open(":memory:") as other:
        archive.seek(0)
        other.import_archive(archive)
        imported = other.thread("chat").head

    found = [c.traceparent for c in (fork, copied, imported)]
    assert found == [saved.traceparent] * 3
    assert saved.traceparent is not None
    assert b'"metadata":{"cost":1}' in lines.getvalue()


def test_the_command_line_shows_the_trace(path, exported, capsys):
    with holdfast.open(path, telemetry=exported.telemetry) as store:
        store.thread("chat").save({"n": 1})
        with exported.trace():
            saved = store.thread("chat").save({"n": 2})

    def printed(*arguments):
        assert main([*arguments, "--store", path]) == 0
        return capsys.readouterr().out

    assert f"trace       {saved.traceparent}\n" in printed("show", "chat")
    assert "trace" not in printed("show", "chat@1")
    shown = json.loads(printed("show", "chat", "--json"))["checkpoint"]
    logged = json.loads(printed("log", "chat", "--json"))["checkpoints"]
    traces = [line.get("traceparent") for line in logged]
    assert shown["traceparent"] == saved.traceparent
    assert traces == [saved.traceparent, None]
