"""Hostile bytes run no code, and hostile names reach no other data."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from holdfast import Corrupt, NotFound, Store, Unstorable
from holdfast._values import codec
from holdfast.testing.trials.scenario import problems_of
from holdfast.testing.trials.task import Task, Trials

# Texts that make other stores import or call something when they are loaded.
PAYLOADS: tuple[object, ...] = (
    {"lc": 2, "type": "constructor", "id": ["os", "system"], "kwargs": {"a": "id"}},
    {"lc": 1, "type": "secret", "id": ["HOME"]},
    {"__reduce__": ["os.system", ["id"]]},
    {"py/object": "os.system", "py/reduce": [{"py/function": "os.system"}, ["id"]]},
    {"!!python/object/apply:os.system": ["id"]},
    {"__type__": "os.system", "value": "id"},
    {"__af_model__": "os:system"},
    {"$hf.object": ["os", "system", "id"]},
    {"$hf.tuple": {"$hf.call": "os.system"}},
    {"$hf.uuid": "__import__('os').system('id')"},
    {"$hf.decimal": "os.system"},
    "cos\nsystem\n(S'id'\ntR.",
)
EVENTS = (
    *("import", "exec", "compile", "open", "ctypes.dlopen", "marshal.loads"),
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen"),
    *("socket.connect", "socket.getaddrinfo", "pickle.find_class"),
)
TAGS = (b"tuple", b"bytes", b"uuid", b"decimal", b"object", b"call", b"set", b"dict")


class AuditWatch:
    """Collects the interpreter's audit events while some work is done."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._is_on = False
        # An audit hook cannot be removed; it ends with the process of the row.
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_on and event in EVENTS:
            self.seen.append(f"{event} {arguments!r}")

    def run(self, work: Callable[[], object]) -> None:
        """Do some work while its audit events are collected."""
        self._is_on = True
        try:
            work()
        finally:
            self._is_on = False


def code_execution(task: Task) -> Trials:
    """Decode hostile and fuzzed bytes; the interpreter tells if anything is run."""
    seeds = [orjson.dumps(payload) for payload in PAYLOADS]
    seeds.append(codec.encode({"warm": (1, b"x", {2.5}, 2**70), 3: [None, "é"]}))
    _decoded(seeds[-1])
    for seed in seeds:  # decoding imports modules on first use
        _decoded(seed)
    watch = AuditWatch()
    wrong: list[str] = []
    for n in range(task.count):
        data = seeds[n] if n < len(seeds) else _fuzzed(task.chance, seeds)
        try:
            watch.run(partial(_decoded, data))
        except Exception as error:  # noqa: BLE001 - any other error is what is looked for
            wrong.append(f"{data[:80]!r} gave {error!r}")
        task.done(n + 1)
    return Trials(task.count, wrong + watch.seen)


def _decoded(data: bytes) -> None:
    try:
        codec.decode(data)
    except Corrupt:
        return


def _fuzzed(chance: random.Random, seeds: list[bytes]) -> bytes:
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        change = chance.randrange(4)
        if change == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif change == 1:
            data[at:at] = chance.randbytes(chance.randint(1, 4))
        elif change == 2:  # noqa: PLR2004 - one of four
            data[at:at] = b'{"$hf.' + chance.choice(TAGS) + b'":' + seeds[0] + b"}"
        else:
            del data[at : at + chance.randint(1, 8)]
    return bytes(data)


# --- names ----------------------------------------------------------------------------

# Ids that would go wrong as paths, queries, patterns or references.
HOSTILE = (
    "../../etc/passwd",
    "/absolute",
    "a/b",
    "a\\b",
    "..",
    "foo",
    "foo.json",
    "CON",
    "a:b",
    "agent:a",
    "pin:a",
    " ",
    "a\nb",
    "'; drop table thread; --",
    "%",
    "*",
    "@",
    "label:x",
    "-rf",
    "\u00e9",
    "e\u0301",
    "\U0001f3f4\u200d\u2620\ufe0f",
)
PARTS = (
    *("a", "A", "b", "ß", "é", "e\u0301", "ﬁ", "İ", "😀", "\u202e", "\0", "\ud800"),
    *(".", "..", "/", "\\", ":", "%", "_", "'", '"', ";", "--", "\n", " ", "~", "\x7f"),
)
# How many names are in the store before all of them are compared.
BATCH = 100


def names(task: Task) -> Trials:
    """Save under hostile names, and compare everything with a plain dict."""
    wrong: list[str] = []
    for number, first in enumerate(range(0, task.count, BATCH)):
        target = task.target.at(f"names{number}")
        model: dict[str, int] = {}
        with target.open("store", durability="normal", cache_size=0) as store:
            for n in range(first, min(first + BATCH, task.count)):
                name = HOSTILE[n] if n < len(HOSTILE) else _name(task.chance)
                _save(store, model, name, n)
            wrong += _differences(store, model)
        outside = [name for name in os.listdir(target.folder) if name[:5] != "store"]
        wrong += [f"{name!r} was made outside of the store" for name in outside]
        target.discard("store")
        task.done(first + BATCH)
    return Trials(task.count, wrong)


def _name(chance: random.Random) -> str:
    return "".join(chance.choices((*PARTS, *HOSTILE), k=chance.randint(1, 4)))


def _save(store: Store, model: dict[str, int], name: str, n: int) -> None:
    try:
        store.thread(name, owner=name).save({"n": n})
    except Unstorable:
        return
    model[name] = n


def _holds(store: Store, name: str, state: object) -> bool:
    try:
        return bool(store.thread(name).load() == state)
    except NotFound:
        return False


def _differences(store: Store, model: dict[str, int]) -> list[str]:
    wrong = [
        f"{name!r} holds another state"
        for name, n in model.items()
        if not _holds(store, name, {"n": n})
    ]
    if {thread.id for thread in store.threads(limit=None)} != model.keys():
        wrong.append("the listing has other threads")
    for name in model:
        if [t.id for t in store.threads(owner=name, limit=None)] != [name]:
            wrong.append(f"owner {name!r} has other threads")
        found = {t.id for t in store.threads(prefix=name, limit=None)}
        if found != {other for other in model if other.startswith(name)}:
            wrong.append(f"prefix {name!r} has other threads")
    return wrong + problems_of(store)
