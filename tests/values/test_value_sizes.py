"""What is too large is refused while it is measured, and want of memory is told."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import pytest

import holdfast
from holdfast import Unstorable
from holdfast.operations.values import codec
from holdfast.testing import raises

BLOCK = 8 << 20
# Held once in memory, and more than a gigabyte as JSON.
MANY = 200


def doubled(value, times=40):
    for _ in range(times):
        value = [value, value]
    return value


LARGE = {
    "bytes": lambda: [b"x" * BLOCK] * MANY,
    "text": lambda: [{"content": "x" * BLOCK}] * MANY,
    "parts of several kinds": lambda: [1, None, {"data": [("x" * BLOCK,)]}] * MANY,
    "sets": lambda: [{"x" * BLOCK, b"x"}] * MANY,
    "keys": lambda: [{("x" * BLOCK, 1): 1}] * MANY,
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_value_that_is_too_large_is_not_encoded_first(kind):
    value = LARGE[kind]()
    tracemalloc.start()
    try:
        with raises(Unstorable) as raised:
            codec.encode(value)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "bytes as JSON, and 1,073,741,824 are allowed" in str(raised.error)
    assert peak < 100_000_000


@pytest.mark.parametrize("value", ["x", ("x",)])
def test_lists_that_double_are_refused_as_well(value):
    with raises(Unstorable) as raised:
        codec.encode(doubled(value))

    assert "bytes as JSON" in str(raised.error)


def test_every_call_refuses_it_and_saves_nothing():
    large = [b"x" * BLOCK] * MANY
    with holdfast.open(":memory:") as store:
        thread = store.thread("t")
        for call in (
            lambda: thread.save({"data": large}),
            lambda: thread.append(messages=[large]),
            lambda: thread.record("key", large[:40]),
            lambda: thread.save({}, metadata={"k": large[:3]}),
            lambda: store.conversations.create("c", title=large),
        ):
            with raises(holdfast.HoldfastError):
                call()

        assert store.stats().checkpoints == 0


# What a program does that may take so many megabytes more than it has.
STARVED = """
import resource, sys, holdfast
from holdfast.operations.values import codec
values = {
    "text": "x" * 30_000_000,
    "wide": "\\U0001f600" * 4_000_000,
    "bytes": [b"x" * 20_000_000],
    "parts": [{"a": n, "b": {}, "c": [n]} for n in range(60_000)],
}
value = values[sys.argv[1]]
text = codec.encode(value)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[3]) << 20), -1))
store = holdfast.open(":memory:") if sys.argv[2] == "save" else None
try:
    codec.decode(text) if store is None else store.thread("t").save(value)
except holdfast.HoldfastError as error:
    sys.exit(0 if error.code in {"no_memory", "io_error"} else 3)
except MemoryError:
    sys.exit(0 if store is None else 4)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it limits its memory")
@pytest.mark.parametrize("kind", ["text", "wide", "bytes", "parts"])
@pytest.mark.parametrize("call", ["save", "load"])
def test_a_program_without_memory_is_told_and_does_not_end(kind, call):
    ends = {
        megabytes: subprocess.run(
            [sys.executable, "-c", STARVED, kind, call, str(megabytes)], check=False
        ).returncode
        for megabytes in (30, 120)
    }

    assert set(ends.values()) == {0}
