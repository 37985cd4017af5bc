"""Whatever a request says, the viewer answers it at once, and never fails."""

from __future__ import annotations

import contextlib
import json
import socket
from urllib.parse import quote

import msgspec
import pytest
from asking import TOKEN, Asked, asked

import holdfast
from inner.viewer import READINGS, STEERINGS

DEEP = 100_000
# Written as they stand in an address.
TEXTS = {
    "empty": "",
    "a number of 5,000 digits": "9" * 5_000,
    "a negative number": "-1",
    "a number beyond 64 bits": str(2**70),
    "no number": "NaN",
    "infinity": "-Infinity",
    "a number with an exponent": "1e999",
    "a digit of another script": quote("٣²"),
    "deep lists": quote("[" * 5_000),
    "a deep path": quote("/0" * 5_000),
    "a position of 5,000 digits": quote("messages[" + "9" * 5_000 + "]"),
    "steps back beyond 64 bits": quote("@~" + "9" * 5_000),
    "a time of 5,000 digits": quote("@{" + "9" * 5_000 + " minutes ago}"),
    "a lone surrogate": "%ED%A0%80",
    "bytes that are no UTF-8": "%FF%FE",
    "NUL": "a%00b",
    "the separator of scopes": "a%1Fb",
}
# Written as they stand in a body.
VALUES = {
    "null": "null",
    "a number": "5",
    "a number of 5,000 digits": "9" * 5_000,
    "a number beyond 64 bits": "1" + "0" * 30,
    "NaN": "NaN",
    "a number with an exponent": "1e999",
    "a list": '["x", 5]',
    "an object": '{"x": {"y": null}}',
    "deep lists": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "lists as deep as can be read": "[" * 900 + "]" * 900,
    "a lone surrogate": r'"\ud800"',
    "NUL": r'"a\u0000b"',
    "an empty text": '""',
    "a long text": json.dumps("x" * 5_000_000),
    "the tag of a type": '{"~": "x", "$": 1}',
}


def interrupt_calls(store, count):
    """Calls that began, and whose end is in no journal."""

    def killed():
        raise KeyboardInterrupt

    run = store.conversations.recorder("paying")
    for n in range(count):
        function = {"name": "pay", "arguments": "{}"}
        call = {"id": f"c{n}", "type": "function", "function": function}
        run.llm_response({"role": "assistant", "tool_calls": [call]})
        with contextlib.suppress(KeyboardInterrupt):
            run.call(f"c{n}", killed)


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("wrong") / "agents.db")
    with holdfast.open(path) as store:
        thread = store.thread("case")
        thread.save({"messages": [{"role": "user", "content": "Hi"}]})
        found = thread.append(messages=[{"role": "assistant", "content": "Hello"}])
        interrupt_calls(store, len(VALUES))
    return path, found.id


@pytest.fixture(scope="module")
def viewer(head):
    with asked(head[0], write=True) as server:
        yield server


def known(id_):
    """What makes sense for each parameter that a route requires."""
    return {
        "thread": "case",
        "id": id_,
        "checkpoint": id_,
        "from": id_,
        "to": id_,
        "at": id_,
        "q": "Hi",
        "path": "/messages",
        "position": "0",
    }


def required(struct):
    return [f.encode_name for f in msgspec.structs.fields(struct) if f.required]


def refused(answered, what):
    """Whether an answer is one of the viewer; it may find nothing wrong."""
    assert answered.status < 500, (what, answered.status, answered.body[:300])
    if answered.status >= 400:
        error = answered.document["error"]
        assert error["code"], what
        assert error["message"], what


@pytest.mark.parametrize("route", sorted(READINGS))
def test_no_parameter_of_an_address_makes_a_route_fail(viewer: Asked, head, route):
    query = READINGS[route].query
    names = [field.encode_name for field in msgspec.structs.fields(query)]
    fine = {name: known(head[1])[name] for name in required(query)}

    for name in [*names, "unknown"]:
        for what, text in TEXTS.items():
            given = {**fine, name: text}
            line = "&".join(f"{key}={value}" for key, value in given.items())
            answered = viewer.send("GET", f"/api/1/{route}?{line}")
            refused(answered, f"{route}?{name}: {what}")


@pytest.mark.parametrize("route", ["live", "export"])
def test_no_parameter_makes_the_feed_or_an_export_fail(viewer: Asked, route):
    for name in ("after", "thread"):
        for what, text in TEXTS.items():
            answered = begun(viewer, f"/api/1/{route}?{name}={text}")
            assert answered < 500, f"{route}?{name}: {what}"


def begun(viewer, path):
    """The status of an answer that need not end."""
    line = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}"
    with socket.create_connection((viewer.host, viewer.port), 60) as connection:
        connection.sendall(f"{line}\r\nConnection: close\r\n\r\n".encode())
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize("route", sorted(STEERINGS))
def test_no_field_of_a_body_makes_a_route_fail(viewer: Asked, head, route):
    body = STEERINGS[route].body
    names = [field.encode_name for field in msgspec.structs.fields(body)]
    more = {"call": "c1", "expect": "x", "label": None, "thread": f"new-{route}"}
    fine = {n: {**known(head[1]), **more}.get(n, "x") for n in required(body)}

    for name in [*names, "unknown"]:
        for what, value in VALUES.items():
            given = {key: json.dumps(text) for key, text in fine.items()} | {
                name: value
            }
            text = "{" + ",".join(f'"{key}": {v}' for key, v in given.items()) + "}"
            refused(posted(viewer, route, text), f"{route} {name}: {what}")


def test_no_value_at_a_path_and_no_result_makes_a_route_fail(viewer: Asked, head):
    for n, (what, value) in enumerate(VALUES.items()):
        fork = (
            f'{{"from": "{head[1]}", "thread": "fork {n}", "set": {{"/n": {value}}}}}'
        )
        refused(posted(viewer, "fork", fork), f"fork set: {what}")
        end = f'{{"thread": "conversation:paying", "call": "c{n}", "result": {value}}}'
        refused(posted(viewer, "resolve", end), f"resolve: {what}")


def test_a_path_that_is_none_of_the_viewer_is_not_found(viewer: Asked):
    for path in ("%00", "%ED%A0%80", "..%2f..%2fapp.py", "x" * 5_000, "%FF", "[" * 900):
        for folder in ("static", "api/1"):
            answered = viewer.send("GET", f"/{folder}/{path}")
            assert answered.status == 404, (folder, path)
            assert answered.document["error"]["message"]


def posted(viewer, route, text):
    kind = {"Content-Type": "application/json"}
    return viewer.send("POST", f"/api/1/{route}", kind, text.encode())


BODIES = {
    "nothing": b"",
    "cut short": b'{"thread": "ca',
    "no JSON": b"thread=case",
    "bytes that are no UTF-8": b'{"thread": "\xff\xfe"}',
    "a lone surrogate in UTF-8": b'{"thread": "\xed\xa0\x80"}',
    "a byte order mark": b'\xef\xbb\xbf{"thread": "case"}',
    "two documents": b"{} {}",
    "a list": b"[]",
    "a number of 5,000 digits": b"9" * 5_000,
    "deep lists": b"[" * DEEP,
    "deep objects": b'{"thread":' * DEEP,
    "the same key twice": b'{"thread": "case", "thread": 5}',
    "a number as a key": b'{5: "case"}',
}


@pytest.mark.parametrize("route", sorted(STEERINGS))
def test_a_body_that_is_no_request_is_refused(viewer: Asked, route):
    kind = {"Content-Type": "application/json"}
    for what, body in BODIES.items():
        for given in (body, iter([body[:5], body[5:]])):
            answered = viewer.send("POST", f"/api/1/{route}", kind, given)
            assert answered.status == 400, (what, answered.status, answered.body[:300])
            assert answered.document["error"]["message"], what


def test_a_stored_text_that_is_no_unicode_hides_no_other_thread(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        store.thread("fine").save({"n": 1})
        said = {"role": "user", "content": "half \ud800 of a pair"}
        spent = {"usage": {"input_tokens": 2**70}}
        thread = store.thread("odd")
        head = thread.save({"title": "\ud800", "messages": [said]}, metadata=spent)

    with asked(path) as viewer:
        threads = viewer.get("threads")["threads"]
        [shown] = viewer.get("messages", checkpoint=head.id)["messages"]
        [row] = viewer.get("log", thread="odd")["rows"]
        page = viewer.send("GET", "/api/1/export?thread=odd")

    assert {thread["id"] for thread in threads} == {"fine", "odd"}
    assert shown["text"] == "half \ud800 of a pair"
    assert row["tokens"] == 2**70
    assert page.status == 200
