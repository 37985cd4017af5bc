"""Loading runs no code, whatever the stored bytes say."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

import holdfast
from holdfast.backends import Segment
from holdfast.operations.values import codec
from holdfast.selftest._hostile import PAYLOADS
from inner.sqlite import connect, page_checksums, segment_row

PROGRAM = """
import sys, orjson
from holdfast import errors
from holdfast.operations.values import codec as _codec
watching = False
def hook(event, arguments):
    if watching and event in {"import", "exec", "compile", "os.system", "open",
                              "subprocess.Popen", "os.exec", "ctypes.dlopen"}:
        print("RAN", event, arguments)
sys.addaudithook(hook)
_codec.decode(_codec.encode({"warm": (1, b"x", {2.5})}))
payloads = orjson.loads(sys.stdin.buffer.read())
watching = True
for payload in payloads:
    try:
        _codec.decode(payload.encode())
    except errors.Corrupt:
        pass
watching = False
print("decoded", len(payloads))
"""


def test_no_payload_makes_the_decoder_import_open_or_call_anything():
    texts = [orjson.dumps(payload).decode() for payload in PAYLOADS]
    texts += [f'{{"a":[{text}]}}' for text in texts]

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=orjson.dumps(texts),
        check=True,
        capture_output=True,
    )

    assert ran.stdout.decode().splitlines() == [f"decoded {len(texts)}"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_such_data_from_a_caller_is_only_data(payload):
    with holdfast.open(":memory:") as store:
        store.thread("t").save({"state": payload, "list": [payload]})

        assert store.thread("t").load() == {"state": payload, "list": [payload]}


def test_a_row_changed_by_hand_is_refused_not_obeyed(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("t").save({"x": ["y" * 400]})
    db = connect(str(path), read_only=False, busy_timeout=1, vfs=page_checksums())
    evil = orjson.dumps({"$hf.object": "os.system"}).ljust(405)
    db.execute("update segment set data = ?", (evil,))
    db.close()

    with holdfast.open(path) as store:
        with pytest.raises(holdfast.Corrupt, match="segment"):
            store.thread("t").load()
        assert not store.verify().ok


def test_a_history_rewritten_with_right_checksums_breaks_the_chain(tmp_path):
    """An earlier system's mistake 3.2: a checksum beside the data is no evidence."""
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("t").save({"x": ["y" * 400]})
        store.thread("t").append(x=["z" * 400])
    db = connect(str(path), read_only=False, busy_timeout=1, vfs=page_checksums())
    [(key, data)] = db.execute("select key, data from segment order by key limit 1")
    forged = bytes(data).replace(b"y", b"n")
    row = segment_row(key >> 32, Segment(key & 0xFFFF_FFFF, forged))
    db.execute("replace into segment values (?, ?, ?, ?, ?)", row)
    db.close()

    with holdfast.open(path) as store:
        assert store.thread("t").load()["x"][0] == "n" * 400
        problems = store.verify().problems

    assert any("not what was saved" in str(problem) for problem in problems)


def test_unstorable_values_are_refused_with_their_path_and_change_nothing():
    with holdfast.open(":memory:") as store:
        chat = store.thread("t")
        chat.save({"messages": [1]})

        with pytest.raises(holdfast.Unstorable) as caught:
            chat.save({"messages": [{}, {}, {}, {"callback": print}]})

        assert caught.value.path == "state.messages[3].callback"
        assert chat.step == 1
        assert chat.load() == {"messages": [1]}


def test_the_marker_of_tags_is_never_written_for_plain_data():
    assert codec.MARKER not in codec.encode({"a": [{"$ref": "#"}, {"$hfx": 1}]})
