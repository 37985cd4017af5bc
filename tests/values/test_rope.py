"""The rope keeps what it can of an old value and never changes a byte of the new."""

from __future__ import annotations

from hashlib import sha256

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.backends import Run
from holdfast.operations.values import Blocks
from inner.values import (
    BLOCK,
    FINE_ELEMENTS,
    MOST_RUNS,
    Body,
    Rope,
    append,
    chain_of,
    numbers,
    splice,
    write,
)

messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "tool"]), "content": st.text(max_size=200)}
)
values = st.one_of(
    st.lists(messages, max_size=30),
    st.lists(st.integers(-(2**63), 2**63), max_size=300),
    st.dictionaries(st.text(max_size=8), st.text(max_size=400), max_size=20),
    st.text(max_size=3000),
)


class Family:
    """The segments a family would hold, to read ropes back from."""

    def __init__(self) -> None:
        self.segments: dict[int, bytes] = {}
        self.blocks = Blocks(0)

    def add(self, spliced):
        for segment in spliced.segments:
            assert segment.number not in self.segments, "a number was used twice"
            self.segments[segment.number] = segment.data
        return spliced

    def text(self, rope: Rope) -> bytes:
        parts = [self.segments[number] for number in numbers(rope.runs)]
        joint = b",".join(parts) if rope.is_list else b"".join(parts)
        return b"[%b]" % joint if rope.is_list else joint


def check(family: Family, spliced, text: bytes) -> None:
    rope, body = spliced.rope, spliced.body
    assert family.text(rope) == text
    assert body.text == text
    assert rope.size == len(text)
    hashes = (sha256(family.segments[n]).digest() for n in numbers(rope.runs))
    assert rope.chain == chain_of(hashes)


@given(st.lists(values, min_size=1, max_size=8))
def test_every_version_of_a_value_reads_back_as_it_was_written(versions):
    family = Family()
    texts = [orjson.dumps(version) for version in versions]

    spliced = family.add(write(texts[0], family.blocks))
    check(family, spliced, texts[0])
    old = [(spliced.rope, texts[0])]
    for text in texts[1:]:
        spliced = family.add(splice(spliced.rope, spliced.body, text, family.blocks))
        check(family, spliced, text)
        old.append((spliced.rope, text))

    for rope, text in old:
        assert family.text(rope) == text


@given(st.lists(messages, min_size=3, max_size=40), st.data())
def test_edits_of_a_long_list_write_little_more_than_what_changed(chat, data):
    family = Family()
    chat = [{**message, "pad": "x" * 300} for message in chat]
    spliced = family.add(write(orjson.dumps(chat), family.blocks))
    index = data.draw(st.integers(0, min(len(chat), FINE_ELEMENTS) - 1))

    edited = [*chat]
    edited[index] = {"role": "user", "content": "changed"}
    spliced = family.add(
        splice(spliced.rope, spliced.body, orjson.dumps(edited), family.blocks)
    )

    written = sum(len(segment.data) for segment in spliced.segments)
    assert written <= len(orjson.dumps(edited[index]))


def chat_of(count: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"message {i} " * 20} for i in range(count)]


def grow(family: Family, spliced, text: bytes):
    return family.add(splice(spliced.rope, spliced.body, text, family.blocks))


def test_appending_keeps_the_manifest_at_one_run():
    family, chat = Family(), chat_of(300)
    spliced = family.add(write(orjson.dumps(chat[:2]), family.blocks))

    for count in range(3, 301):
        spliced = grow(family, spliced, orjson.dumps(chat[:count]))

    assert len(spliced.rope.runs) == 1
    assert family.text(spliced.rope) == orjson.dumps(chat)


def test_a_system_prompt_that_always_changes_does_not_scatter_the_list():
    family, chat = Family(), chat_of(200)
    chat[0] = {"role": "system", "content": "turn 0 " * 30}
    spliced = family.add(write(orjson.dumps(chat[:3]), family.blocks))

    written = 0
    for count in range(4, 200):
        chat[0] = {"role": "system", "content": f"turn {count} " * 30}
        spliced = grow(family, spliced, orjson.dumps(chat[:count]))
        written += sum(len(segment.data) for segment in spliced.segments)

    assert len(spliced.rope.runs) <= 4
    each = len(orjson.dumps(chat[0])) + len(orjson.dumps(chat[5]))
    assert written < 1.2 * 196 * each


def test_a_sliding_window_writes_only_what_comes_in():
    family, chat = Family(), chat_of(300)
    spliced = family.add(write(orjson.dumps(chat[:100]), family.blocks))

    written = 0
    for start in range(1, 200):
        spliced = grow(family, spliced, orjson.dumps(chat[start : start + 100]))
        written += sum(len(segment.data) for segment in spliced.segments)

    assert written < 2 * len(orjson.dumps(chat[100:]))
    assert family.text(spliced.rope) == orjson.dumps(chat[199:299])


def test_a_value_scattered_over_too_many_runs_is_written_anew():
    family, chat = Family(), chat_of(400)
    spliced = family.add(write(orjson.dumps(chat[:1]), family.blocks))
    for count in range(2, 401):
        spliced = grow(family, spliced, orjson.dumps(chat[:count]))

    for index in range(0, 400, 3):
        chat[index] = {"role": "user", "content": f"edited {index} " * 20}
        spliced = grow(family, spliced, orjson.dumps(chat))
        assert len(spliced.rope.runs) <= MOST_RUNS

    assert family.text(spliced.rope) == orjson.dumps(chat)


def test_appending_reads_nothing_of_what_is_there():
    family, chat = Family(), chat_of(10)
    spliced = family.add(write(orjson.dumps(chat), family.blocks))

    grown = family.add(append(spliced.rope, None, b'{"more":1}', family.blocks))

    assert family.text(grown.rope) == orjson.dumps([*chat, {"more": 1}])


def grown_past_a_block(family):
    spliced = family.add(write(orjson.dumps(["a" * 300]), family.blocks))
    rope, body = spliced.rope, Body()
    yield rope
    for i in range(BLOCK):
        grown = family.add(append(rope, body, orjson.dumps(i), family.blocks))
        rope = grown.rope
    assert family.text(rope) == orjson.dumps(["a" * 300, *range(BLOCK)])
    yield rope


def test_a_value_that_grows_alone_stays_one_run():
    _, rope = grown_past_a_block(Family())

    assert rope.runs == (Run(1, BLOCK + 1),)


def test_a_full_block_is_followed_by_one_that_nobody_has():
    family = Family()
    growing = grown_past_a_block(family)
    next(growing)
    other = family.add(write(orjson.dumps(["b" * 300]), family.blocks)).rope

    rope = next(growing)

    assert other.runs == (Run(BLOCK + 1, BLOCK + 1),)
    assert rope.runs == (Run(1, BLOCK - 1), Run(2 * BLOCK + 1, 2 * BLOCK + 2))


@pytest.mark.parametrize("text", [b'"one"', b"{}", b"[]", b"[[],[]]", b'["a,b","[c]"]'])
def test_small_and_tricky_texts_survive(text):
    family = Family()

    spliced = family.add(write(text, family.blocks))

    check(family, spliced, text)
