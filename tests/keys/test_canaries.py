"""Nothing that a caller gave a store stands in its files."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import holdfast
from holdfast import Agent, Message, ToolCall
from inner.keys import NONCE, ContentCipher, ContentKey, nonce_of
from support.children import Child
from support.effort import THOROUGH

KEY = bytes(range(32))
CANARY = "canary"


def fill(store):
    """A store that has a canary in every field that a caller can fill."""
    names = (f"{CANARY}-{n}-" for n in iter(int, 1))
    c = lambda what: f"{next(names)}{what} " + CANARY  # noqa: E731 - a name each
    chat = store.thread(
        c("thread"), kind=c("kind"), owner=c("owner"), agent=c("agent"),
        metadata={c("key"): c("metadata")},
    )  # fmt: skip
    chat.save({c("name"): c("value")}, kind=c("kind"), label=c("label"))
    for n in range(4):
        chat.append(**{CANARY: [c("element") * 20 + str(n)]})
    chat.save({"n": c("v")}, metadata={c("k"): c("v")}, journal={c("key"): c("v")})
    chat.tag("@2", c("tag"))
    chat.fork(c("fork"), at="@2").record(c("record"), {c("k"): c("refund")})
    chat.describe(metadata={c("more"): c("more")})
    chat.rewind("@1")
    store.agents.save(Agent(id=c("agent"), name=c("name")))
    talk = store.conversations.create(c("id"), messages=[Message.user(c("message"))])
    store.conversations.update(talk.id, title=c("title"))
    store.documents.save(c("document"), {"text": c("text")})
    who = {"agent": c("agent"), "owner": c("owner")}
    recorder = store.conversations.recorder(c("loop"), **who)
    recorder.add(Message.user(c("input")))
    call = ToolCall(id=c("id"), name=c("tool"), arguments={c("k"): c("argument")})
    recorder.llm_response(Message.assistant(c("text"), tool_calls=[call]))
    recorder.call(call, lambda **_: c("result"))
    store.search(CANARY)
    store.thread(c("gone")).save({"n": c("deleted")})
    store.delete(prefix=f"{CANARY}-0")
    store.prune(holdfast.Retention(last=2))
    growing = store.thread(c("growing"))
    for n in range(100):
        growing.append(messages=[c("message") * 9 + str(n)])
    store.compact()


@pytest.mark.parametrize("place", ["{}/store.db", "dir:{}/store"])
def test_no_canary_is_in_any_file(place, tmp_path):
    url = place.format(tmp_path)
    with holdfast.open(url, key=KEY) as store:
        fill(store)
        found = [p for p in Path(tmp_path).rglob("*") if p.is_file()]
        left = {p: p.read_bytes().count(CANARY.encode()) for p in found}
    found = [p for p in Path(tmp_path).rglob("*") if p.is_file()]
    names = [str(p.relative_to(tmp_path)) for p in found]

    assert +Counter(left) == {}
    assert [p for p in found if CANARY.encode() in p.read_bytes()] == []
    assert [name for name in names if CANARY in name] == []
    with holdfast.open(url, key=KEY) as store:
        assert store.verify().ok


def test_no_nonce_comes_twice_in_threads_and_after_a_fork():
    cipher = ContentCipher()
    key = ContentKey(bytes(9), KEY)
    each = 125_000 if THOROUGH else 10_000

    def nonces(count):
        return {nonce_of(cipher.encode(b"", b"", key)) for _ in range(count)}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(nonces, [each] * 8))
    here = set.union(*found)
    [there] = Child(lambda tell: tell([n.hex() for n in nonces(50)])).finish()
    more = nonces(50)

    assert len(here) == 8 * each
    assert len({*here, *more, *map(bytes.fromhex, there)}) == 8 * each + 100
    assert len({n[:-NONCE] for n in here}) == 1  # the nonces differ, not their session
