"""Every public call with arguments that make no sense: an error of Holdfast or none.

The calls are found by their signatures, so a new method or option is tried by itself.
Whatever a call accepted, the store is whole afterwards and everything can be read.
"""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import inspect
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import Any

import pytest

import holdfast
from holdfast import (
    Agent,
    Attachment,
    Conversation,
    HoldfastError,
    Message,
    Retention,
    ToolCall,
    Unstorable,
    Workspace,
    diff,
    effects,
    messages,
    strategy,
    tools,
)
from holdfast.operations.threads import save
from holdfast.recorder import RecorderOptions
from holdfast.testing import blocking, raises
from holdfast.workspace import HowToRestore
from inner.api import (
    conversations,
    explore,
    keywords,
    options,
    plugins,
    query,
    transfer,
)
from support.effort import THOROUGH, seed_of

UTC = dt.UTC
SAID = {"role": "user", "content": "Hi."}
CALL = {"id": "call-1", "name": "look", "arguments": {}}


class Forgotten:
    """The result of an async function that the caller forgot to await."""

    def __await__(self) -> Iterator[None]:
        yield


def elsewhere() -> holdfast.Checkpoint:
    """A checkpoint of another store."""
    with holdfast.open(":memory:") as store:
        return store.thread("elsewhere").save({"messages": [SAID]})


FOREIGN = elsewhere()

# Each makes a new value, because a call may use up or change the one it gets.
ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "empty": lambda: "",
    "text": lambda: "text",
    "NUL": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "long": lambda: "x" * 10_000,
    "bytes": lambda: b"text",
    "bool": lambda: True,
    "zero": lambda: 0,
    "negative": lambda: -1,
    "float": lambda: 1.5,
    "huge": lambda: 10**30,
    "int64": lambda: 2**63 - 1,
    "nan": lambda: float("nan"),
    "infinite": lambda: float("inf"),
    "naive": lambda: dt.datetime(2026, 1, 1),  # noqa: DTZ001
    "first": lambda: dt.datetime.min.replace(tzinfo=UTC),
    "last": lambda: dt.datetime.max.replace(tzinfo=UTC),
    "zone": lambda: dt.datetime.max.replace(
        tzinfo=dt.timezone(dt.timedelta(hours=-23))
    ),
    "age": lambda: dt.timedelta.max,
    "past": lambda: dt.timedelta.min,
    "list": list,
    "names": lambda: ["text"],
    "numbers": lambda: [1],
    "nested": lambda: [["text"]],
    "set": lambda: {"text"},
    "pair": lambda: ("a", "b"),
    "dict": dict,
    "mapping": lambda: {"text": "text"},
    "keys": lambda: {1: 2},
    "generator": lambda: (name for name in ["text"]),
    "object": object,
    "class": lambda: int,
    "function": lambda: lambda *_, **__: None,
    "module": lambda: dt,
    "awaitable": Forgotten,
    "store": lambda: holdfast.Store,
    "slice": lambda: slice(1),
    "checkpoint": lambda: FOREIGN,
    "policy": lambda: holdfast.Retention(last=1),
}


# Values for the other parameters, by name; a function makes a new one for each call.
GOOD: dict[str, Any] = {
    "a": "@",
    "agent": lambda: Agent(id="planner"),
    "agent_id": "planner",
    "b": "@",
    "call": CALL,
    "checkpoint": "@",
    "checkpoints": list,
    "connection": None,
    "content": "text",
    "conversation": lambda: Conversation(id="c"),
    "count": 2,
    "event": {"n": 1},
    "expect": "@",
    "function": lambda: lambda: 1,
    "grant": "approval",
    "id": "t",
    "key": "key",
    "lists": {"messages": [SAID]},
    "message": SAID,
    "messages": lambda: [SAID],
    "n": 2,
    "name": "n",
    "new": {"n": 2},
    "new_id": "new",
    "old": {"n": 1},
    "other": lambda: holdfast.open(":memory:"),
    "path": ".",
    "paths": ["x"],
    "planned": None,
    "policy": lambda: Retention(last=5),
    "query": "Hi",
    "receipt": "{}",
    "ref": "@",
    "result": "found",
    "role": "user",
    "seconds": 1,
    "source": BytesIO,
    "state": {"messages": [SAID]},
    "step": lambda: lambda _branch: None,
    "store": lambda: holdfast.open(":memory:"),
    "thread": "t",
    "to": BytesIO,
    "url": ":memory:",
    "user_id": "ann",
    "value": 1,
    "values": {"key": 1},
}
# A caller's function is called, and what it raises is the caller's.
CALLED = {"function", "on_error", "progress", "resolve", "score", "step", "clock"}
CALLED |= {"new_id"}

# A call waits for so many seconds, if there is nothing to be given at once.
LONG = {"float", "huge", "int64", "infinite"}

DECLARING = (conversations, explore, keywords, options, plugins, query, save, transfer)
OPTIONS = {
    name: found
    for place in DECLARING
    for name, found in vars(place).items()
    if hasattr(found, "__optional_keys__")
} | {"RecorderOptions": RecorderOptions, "HowToRestore": HowToRestore}

Parameters = dict[str, inspect.Parameter]


def filled(store: Any) -> Any:
    """A store with something of everything."""
    thread = store.thread("t")
    thread.save({"messages": [SAID], "n": 1}, label="l", tags=["tag"])
    thread.append(messages=[SAID])
    if store.thread("u").head is None:
        thread.fork("u").save({"messages": [SAID], "n": 3})
    store.agents.save(Agent(id="planner", name="P"))
    store.conversations.get_or_create("ann", "c", agent="planner")
    store.conversations.add("c", SAID)
    store.documents.save("n", "text")
    store.stream("n").append({"n": 1})
    store.agents.checkpoint("planner", "first")
    return store


def planning(store: Any) -> Any:
    """A transaction that is open."""
    transaction = store.transaction()
    transaction.__enter__()
    return transaction


# Everything that has methods.
TARGETS: dict[str, Callable[[Any], Any]] = {
    "Store": lambda store: store,
    "Thread": lambda store: store.thread("t"),
    "Conversations": lambda store: store.conversations,
    "Agents": lambda store: store.agents,
    "Documents": lambda store: store.documents,
    "Stream": lambda store: store.stream("n"),
    "Recorder": lambda store: store.conversations.recorder("c", tools={"look": str}),
    "Transaction": planning,
    "ThreadChange": lambda store: planning(store).thread("t"),
    "StreamChange": lambda store: planning(store).stream("n"),
}


def parameters(call: Any) -> Parameters:
    """The parameters of a call, with the options that it takes as keywords."""
    found: Parameters = {}
    for each in inspect.signature(call).parameters.values():
        if each.kind is not each.VAR_KEYWORD:
            found[each.name] = each
            continue
        named = [o for name, o in OPTIONS.items() if name in str(each.annotation)]
        for name in sorted(named[0].__optional_keys__) if named else ["any"]:
            found[name] = inspect.Parameter(name, each.KEYWORD_ONLY, default=None)
    found.pop("self", None)
    return found


def given(known: Parameters, odd: str, value: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments with an odd one; what a call does not need is left out."""
    positions: list[Any] = []
    keywords: dict[str, Any] = {}
    has_more = any(each.kind is each.VAR_POSITIONAL for each in known.values())
    for name, each in known.items():
        is_more = each.kind in (each.VAR_POSITIONAL, each.POSITIONAL_ONLY)
        if name != odd and (is_more or each.default is not each.empty):
            continue
        good = GOOD.get(name)
        argument = value if name == odd else good() if callable(good) else good
        if is_more or (has_more and each.kind is each.POSITIONAL_OR_KEYWORD):
            positions.append(argument)
        else:
            keywords[name] = argument
    return positions, keywords


def chosen(call: str, parameter: str) -> dict[str, Callable[[], Any]]:
    """The odd values for one parameter: all, or some that differ from call to call."""
    is_called, waits = parameter in CALLED, parameter == "timeout"
    values = [
        (kind, make)
        for kind, make in ODD.items()
        if not (is_called and callable(make()) and kind != "function")
        and not (waits and kind in LONG)
    ]
    if THOROUGH:
        return dict(values)
    start = seed_of(f"{call} {parameter}")
    return {k: m for n, (k, m) in enumerate(values) if (n + start) % 6 == 0}


def attempt(name: str, call: Any, known: Parameters, odd: str) -> Iterator[str]:
    """What goes wrong when a parameter of a call gets odd values."""
    for kind, make in chosen(name, odd).items():
        positions, keywords = given(known, odd, make())
        try:
            call()(*positions, **keywords)
        except HoldfastError:
            pass
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            yield f"{name}({odd}={kind}): {error!r}"


def read_everything(store: Any) -> None:
    """Read and list what a store has; whatever was accepted can be read again."""
    assert store.verify().ok
    for thread in store.threads(limit=None):
        store.thread(thread.id).load()
        store.thread(thread.id).effects()
    for one in store.conversations.list(limit=None):
        store.conversations.load(one.id)
        store.conversations.recorder(one.id)
    for agent in store.agents.list(limit=None):
        store.agents.load(agent.id)
        store.agents.checkpoints(agent.id)
    store.documents.list(limit=None)
    store.search("Hi")


@pytest.mark.parametrize("door", ["sync", "awaited"])
def test_no_method_ends_with_an_error_of_python(door, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def opened() -> Any:
        if door == "sync":
            return filled(holdfast.open(":memory:"))
        return filled(blocking(holdfast.open_async(":memory:")))

    wrong: list[str] = []
    for place, target in TARGETS.items():
        store = opened()
        kind = type(getattr(target(store), "_target", target(store)))
        for method in dir(kind):
            if method.startswith("_") or method == "close":
                continue
            if not callable(inspect.getattr_static(kind, method)):
                continue
            known = parameters(getattr(kind, method))
            call = partial(called, store, target, method)
            for odd in known:
                wrong += attempt(f"{place}.{method}", call, known, odd)
        read_everything(store)
        store.close()

    assert not wrong, "\n".join(wrong)


def called(store: Any, target: Callable[[Any], Any], method: str) -> Any:
    """A method of a new handle; what an odd value has removed is there again."""
    if store.thread("t").head is None or store.conversations.find("c") is None:
        filled(store)
    return getattr(target(store), method)


FUNCTIONS = [
    (holdfast, ["Retention", "Thin", "Workspace", "open", "salvage", "once"]),
    (holdfast, ["repeatable", "Recorder", "Store", "AsyncStore"]),
    (messages, ["to_anthropic", "to_openai", "to_openai_responses", "to_plain"]),
    (strategy, sorted(set(strategy.__all__) - {"Event", "Strategy", "Wish"})),
    (diff, ["excerpt", "render_path", "diff"]),
    (effects, ["checked"]),
    (tools, ["Toolset", "AsyncToolset"]),
]


def test_no_function_ends_with_an_error_of_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    wrong: list[str] = []
    for place, names in FUNCTIONS:
        for name in names:
            call = getattr(place, name)
            known = parameters(call)
            for odd in known:
                wrong += attempt(name, lambda call=call: call, known, odd)

    assert not wrong, "\n".join(wrong)


RECORDS: list[tuple[Callable[..., Any], dict[str, Any], Callable[[Any, Any], Any]]] = [
    (Conversation, {"id": "c"}, lambda store, each: store.conversations.save(each)),
    (Agent, {"id": "planner"}, lambda store, each: store.agents.save(each)),
    (Message, {"role": "user"}, lambda store, each: store.conversations.add("c", each)),
    (
        lambda **fields: Message(role="user", attachments=[Attachment(**fields)]),
        {"kind": "image"},
        lambda store, each: store.conversations.add("c", each),
    ),
    (
        lambda **fields: Message(role="assistant", tool_calls=[ToolCall(**fields)]),
        {"id": "call-1", "name": "look"},
        lambda store, each: store.conversations.add("c", each),
    ),
]
FIELDS = [Conversation, Agent, Message, Attachment, ToolCall]


def test_a_record_with_odd_fields_is_refused_or_can_be_read_again():
    wrong: list[str] = []
    with filled(holdfast.open(":memory:")) as store:
        for (make, needed, keep), kind in zip(RECORDS, FIELDS, strict=True):
            for field in kind.__struct_fields__:
                for odd, value in chosen(kind.__name__, field).items():
                    try:
                        keep(store, make(**needed | {field: value()}))
                        read_everything(store)
                    except HoldfastError:
                        pass
                    except Exception as error:  # noqa: BLE001 - as above
                        wrong.append(f"{kind.__name__}({field}={odd}): {error!r}")
                store.conversations.delete("c")
                filled(store)

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("mistake", "advice"),
    [
        (lambda store: store.thread("t").merge("u"), r"pass store.thread('u')"),
        (
            lambda store: store.conversations.recorder("c", tools=["pay"]),
            "pass {'name': function}",
        ),
        (lambda _: Retention(thin="daily"), "such as Thin(daily=7)"),
        (lambda store: store.prune("daily"), "must be a Retention, not str"),
        (lambda store: store.import_archive(b"archive"), "open for reading, not bytes"),
        (lambda store: store.copy_to("copy.db"), "must be a Store, not str"),
        (lambda store: holdfast.Recorder(store, "c"), "store.conversations.recorder"),
        (lambda _: holdfast.Store("agents.db"), "holdfast.open(...)"),
        (lambda store: store.export_to("a", since=dt.date(2026, 1, 1)), "a datetime"),
    ],
)
def test_a_likely_mistake_says_what_to_write(mistake, advice):
    with filled(holdfast.open(":memory:")) as store:
        with raises(Unstorable) as refused:
            mistake(store)
        assert advice in str(refused.error)


def test_an_awaitable_that_was_not_awaited_is_refused_as_such():
    async def steps() -> list[str]:
        refused = []
        async with holdfast.open_async(":memory:") as store:
            thread = store.thread("t")
            await thread.save({"n": 1})
            for call in (thread.get, thread.record_all, thread.rewind, store.thread):
                forgotten = thread.load()
                with raises(Unstorable) as error:
                    found = call(forgotten)
                    await found
                refused.append(str(error.error))
                forgotten.close()
        return refused

    assert all("await it first" in text for text in asyncio.run(steps()))


def test_what_belongs_to_a_process_is_not_pickled(tmp_path):
    with filled(holdfast.open(":memory:")) as store:
        run = store.conversations.recorder("c")
        handles = [target(store) for target in TARGETS.values()]
        for handle in [*handles, run, Workspace(tmp_path)]:
            for copied in (pickle.dumps, copy.deepcopy):
                with raises(Unstorable) as refused:
                    copied(handle)
                assert "open it there with holdfast.open(...)" in str(refused.error)
    awaited: Any = blocking(holdfast.open_async(":memory:"))
    with raises(Unstorable):
        pickle.dumps(awaited._target)
