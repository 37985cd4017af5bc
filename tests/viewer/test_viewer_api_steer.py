"""Steering from the viewer really changes the store, and never by accident."""

from __future__ import annotations

import contextlib
import http.client
import shlex

import orjson
import pytest
from asking import TOKEN, asked

import holdfast

STATE = {"messages": [{"role": "user", "content": "Hi"}], "plan": {"step": 1}}


@pytest.fixture
def path(tmp_path):
    found = str(tmp_path / "agents.db")
    with holdfast.open(found) as store:
        thread = store.thread("case")
        thread.save(STATE)
        thread.append(messages=[{"role": "assistant", "content": "Hello"}])
    return found


@pytest.fixture
def viewer(path):
    with asked(path, write=True) as found:
        yield found


@pytest.fixture
def ids(viewer):
    """The checkpoints of the thread, newest first."""
    return [row["id"] for row in viewer.get("log", thread="case")["rows"]]


def stored(path, thread, reference="@"):
    with holdfast.open(path, read_only=True) as store:
        return store.thread(thread).load(reference)


def test_a_fork_begins_where_it_was_asked_for(viewer, path, ids):
    answered = viewer.post("fork", **{"from": ids[1], "thread": "tried"})
    again = viewer.post("fork", **{"from": ids[1], "thread": "tried"})

    assert answered.document["command"] == f"holdfast fork {ids[1]} tried"
    assert stored(path, "tried") == STATE
    assert again.status == 409


def test_an_edited_state_is_the_first_step_of_a_fork(viewer, path, ids):
    edits = {"plan.step": 7, "/messages/0/content": "Hey", "/note": [1]}

    answered = viewer.post("fork", **{"from": ids[0], "thread": "t", "set": edits})
    whole = viewer.post("fork", **{"from": ids[0], "thread": "u", "state": {"a": 1}})

    found = stored(path, "t")
    assert (found["plan"], found["note"]) == ({"step": 7}, [1])
    assert found["messages"][0]["content"] == "Hey"
    assert stored(path, "t", "@~1") == stored(path, "case")
    assert "--set=plan.step=7" in shlex.split(answered.document["command"])
    assert (whole.status, stored(path, "u")) == (200, {"a": 1})


def test_an_edit_that_leads_nowhere_makes_no_fork(viewer, path, ids):
    answered = viewer.post(
        "fork", **{"from": ids[0], "thread": "t", "set": {"/none/deeper": 1}}
    )

    assert answered.status == 400
    assert viewer.send("GET", "/api/1/thread?thread=t").status == 404


def test_a_label_is_not_overwritten_unseen(viewer, ids):
    first = viewer.post("label", checkpoint=ids[0], label="good", expect=None)
    unseen = viewer.post("label", checkpoint=ids[0], label="bad", expect=None)
    seen = viewer.post("label", checkpoint=ids[0], label=None, expect="good")

    assert (first.document["label"], unseen.status) == ("good", 409)
    assert unseen.code == "label_changed"
    assert seen.document["label"] is None


def test_tags_are_added_and_removed(viewer, ids):
    viewer.post("tag", checkpoint=ids[1], add=["a", "b"])

    answered = viewer.post("tag", checkpoint=ids[1], add=["c"], remove=["a"])

    assert answered.document["tags"] == ["b", "c"]
    assert answered.document["command"].count("holdfast tag") == 2


def test_a_rewind_needs_the_head_that_was_seen(viewer, path, ids):
    stale = viewer.post("rewind", thread="case", to=ids[1], expect=ids[1])
    made = viewer.post("rewind", thread="case", to=ids[1], expect=ids[0])

    assert (stale.status, stale.code) == (409, "head_moved")
    assert made.document["head"] == ids[1]
    assert stored(path, "case") == STATE


def test_an_interrupted_call_is_resolved_once(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        interrupt_a_call(store)
    with asked(path, write=True) as viewer:
        [before] = viewer.get("effects", thread="conversation:c")["effects"]
        body = {"thread": "conversation:c", "call": before["call"]}
        done = viewer.post("resolve", **body, result={"paid": True})
        again = viewer.post("resolve", **body, error="no")
        neither = viewer.post("resolve", **body)
        [after] = viewer.get("effects", thread="conversation:c")["effects"]

    assert (before["status"], after["status"]) == ("unknown", "happened")
    assert after["result"] == {"paid": True}
    assert "holdfast resolve" in done.document["command"]
    assert (again.status, neither.status) == (409, 400)


class Killed(BaseException):
    """Ends a program in the middle of a tool."""


def interrupt_a_call(store):
    def pay(to):
        raise Killed

    recorder = store.conversations.recorder("c")
    recorder.add({"role": "user", "content": "Pay Ada"})
    call = {"id": "p1", "function": {"name": "pay", "arguments": '{"to": "ada"}'}}
    recorder.llm_response({"role": "assistant", "tool_calls": [call]})
    with pytest.raises(Killed):
        recorder.call("p1", pay)


def test_a_stream_tells_changes_and_goes_on_after_one(viewer, path, ids):
    with holdfast.open(path) as store:
        [first, *_] = store.changes()
        store.thread("other").save({"n": 1})

    events = streamed(viewer, "?after=" + str(first.seq), 2)

    assert [event["thread"] for event in events] == ["case", "other"]
    assert events[0]["checkpoint"] == ids[0]
    assert streamed(viewer, f"?after={events[0]['seq']}", 1) == events[1:]


def test_a_stream_without_a_beginning_tells_what_comes(viewer, path):
    connection = opened(viewer, "")
    with holdfast.open(path) as store:
        saved = store.thread("new").save({"n": 1})

    [event] = read_events(connection, 1)

    assert (event["thread"], event["kind"]) == ("new", "save")
    assert event["checkpoint"] == saved.id


def test_a_stream_that_begins_beyond_the_newest_change_tells_what_comes(viewer, path):
    connection = opened(viewer, "?after=999999999999")
    with holdfast.open(path) as store:
        store.thread("new").save({"n": 1})

    [event] = read_events(connection, 1)

    assert (event["thread"], event["kind"]) == ("new", "save")


def test_a_stream_says_from_which_change_it_goes_on(viewer, path):
    with holdfast.open(path, read_only=True) as store:
        [*_, newest] = store.changes()
    for query in ("", "?after=999999999999", f"?after={newest.seq}"):
        connection, response = opened(viewer, query)
        with contextlib.closing(connection):
            assert response.readline() == b"id: %d\n" % newest.seq


def streamed(viewer, query, count):
    return read_events(opened(viewer, query), count)


def opened(viewer, query):
    connection = http.client.HTTPConnection(viewer.host, viewer.port, timeout=120)
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "gzip"}
    connection.request("GET", f"/api/1/live{query}", headers=headers)
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.readline() == b": connected\n"
    return connection, response


def read_events(stream, count):
    connection, response = stream
    found = []
    while len(found) < count:
        line = response.readline()
        if line.startswith(b"data: "):
            found.append(orjson.loads(line.removeprefix(b"data: ")))
    connection.close()
    return found
