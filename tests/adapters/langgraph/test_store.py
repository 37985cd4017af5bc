"""LangGraph's long-term memory: items in namespaces, filters, time to live, words."""

import asyncio
import datetime as dt

import msgspec
import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

import holdfast
from adapters.langgraph.graphs import say, thread
from holdfast.adapters.langgraph import HoldfastSaver, HoldfastStore
from holdfast.backends import Layer, run
from holdfast.testing import FakeClock
from inner.langgraph import Types, memory_batch
from support.outages import wait_until

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def memory(place):
    url, options = place
    with holdfast.open(url, **options) as store:
        yield HoldfastStore(store)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def aging(clock):
    with HoldfastStore(":memory:", clock=clock, ttl={"default_ttl": 10}) as memory:
        yield memory


def keys(items):
    return [item.key for item in items]


def test_an_item_is_kept_changed_and_deleted(memory):
    memory.put(("users", "ann"), "likes", {"food": "pasta", "at": (1, 2)})
    first = memory.get(("users", "ann"), "likes")
    memory.put(("users", "ann"), "likes", {"food": "rice"})
    second = memory.get(("users", "ann"), "likes")
    memory.delete(("users", "ann"), "likes")

    assert first.value == {"food": "pasta", "at": (1, 2)}
    assert (first.namespace, first.key) == (("users", "ann"), "likes")
    assert second.value == {"food": "rice"}
    assert second.created_at == first.created_at <= second.updated_at
    assert second.updated_at.tzinfo is dt.UTC
    assert memory.get(("users", "ann"), "likes") is None
    assert memory.get(("users",), "ann") is None


def test_a_deleted_item_can_be_put_again(memory):
    memory.put(("a",), "k", {"n": 1})
    memory.delete(("a",), "k")

    memory.put(("a",), "k", {"n": 2})

    assert memory.get(("a",), "k").value == {"n": 2}


ODD = ["a/b", "a%2fb", "#", "\0", "\ud800", "å", " ", "item:x", ""]


@pytest.mark.parametrize("key", ODD)
def test_any_text_is_a_key(memory, key):
    memory.put(("a", "b/c"), key, {"key": key})
    memory.put(("a",), "b/c", {"key": "another"})

    assert memory.get(("a", "b/c"), key).value == {"key": key}
    assert keys(memory.search(("a", "b/c"))) == [key]


def test_a_search_is_confined_to_a_namespace_and_what_is_below(memory):
    memory.put(("test", "docs"), "doc1", {})
    memory.put(("test", "docs", "old"), "doc2", {})
    memory.put(("test", "documents"), "doc3", {})

    assert set(keys(memory.search(("test", "docs")))) == {"doc1", "doc2"}
    assert len(memory.search(())) == 3
    assert memory.search(("nothing",)) == []


def test_what_was_put_last_is_found_first_page_by_page(memory):
    for n in range(5):
        memory.put(("a",), f"{n}", {"n": n})
    memory.put(("a",), "0", {"n": 5})

    assert keys(memory.search(("a",), limit=2)) == ["0", "4"]
    assert keys(memory.search(("a",), limit=2, offset=2)) == ["3", "2"]
    assert keys(memory.search(("a",), filter={"n": {"$gt": 1}}, limit=2, offset=1)) == [
        "4",
        "3",
    ]


FILTERS = [
    ({"colour": "red"}, ["a"]),
    ({"size": {"$eq": 2}}, ["b"]),
    ({"size": {"$ne": 2}}, ["a", "c"]),
    ({"size": {"$gt": 1}}, ["b", "c"]),
    ({"size": {"$gte": 2, "$lt": 3}}, ["b"]),
    ({"size": {"$lte": 1.5}}, ["a"]),
    ({"colour": {"$gt": "blue"}}, ["a"]),
    ({"colour": {"$gt": 1}}, []),
    ({"missing": {"$lt": 1}}, []),
    ({"missing": None}, ["a", "b", "c"]),
    ({"size": 1, "colour": "blue"}, []),
    ({"deep": {"er": {"$gt": 0}}}, ["b"]),
    ({"deep.er": 1}, ["b"]),
    ({"tags": ["x", "y"]}, ["c"]),
    ({"x') or '1'='1": 1}, []),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS, ids=repr)
def test_items_are_filtered_by_their_values(memory, wanted, found):
    memory.put(("t",), "a", {"colour": "red", "size": 1})
    memory.put(("t",), "b", {"colour": "blue", "size": 2, "deep": {"er": 1}})
    memory.put(("t",), "c", {"colour": "blue", "size": 3, "tags": ("x", "y")})

    assert sorted(keys(memory.search(("t",), filter=wanted))) == found


def test_an_unknown_operator_is_refused(memory):
    memory.put(("t",), "a", {"size": 1})

    with pytest.raises(holdfast.Unstorable, match=r"\$gt"):
        memory.search(("t",), filter={"size": {"$in": [1]}})


def test_a_query_finds_items_by_their_words_the_best_first(memory):
    memory.put(("t",), "a", {"text": "Ann likes PASTA with basil"})
    memory.put(("t",), "b", {"text": "Bob likes rice", "more": [{"n": "and pasta"}]})
    memory.put(("t",), "c", {"text": "nothing of the kind"})

    found = memory.search(("t",), query="ann pasta")

    assert [(item.key, item.score) for item in found] == [("a", 1.0), ("b", 0.5)]


def test_a_query_looks_where_the_index_says(memory):
    value = {"title": "hidden", "body": {"text": "shown"}, "tags": ["t1", "t2"]}
    memory.put(("t",), "all", value)
    memory.put(("t",), "some", value, index=["body.text", "tags[*]"])
    memory.put(("t",), "none", value, index=False)

    assert keys(memory.search(("t",), query="hidden")) == ["all"]
    assert set(keys(memory.search(("t",), query="t2"))) == {"all", "some"}
    assert len(memory.search(("t",))) == 3


def test_namespaces_are_listed(memory):
    for namespace in [
        ("test", "documents", "public"),
        ("test", "documents", "private"),
        ("test", "images", "public"),
        ("prod", "documents", "public"),
    ]:
        memory.put(namespace, "x", {})

    assert memory.list_namespaces()[0] == ("prod", "documents", "public")
    assert len(memory.list_namespaces(prefix=["test"])) == 3
    assert len(memory.list_namespaces(suffix=["public"])) == 3
    assert memory.list_namespaces(prefix=["*", "images"]) == [
        ("test", "images", "public")
    ]
    assert memory.list_namespaces(max_depth=1) == [("prod",), ("test",)]
    assert len(memory.list_namespaces(limit=2, offset=3)) == 1
    assert memory.list_namespaces(prefix=["test"], suffix=["private"]) == [
        ("test", "documents", "private")
    ]


def test_operations_in_a_batch_are_made_one_after_the_other(memory):
    results = memory.batch(
        [
            PutOp(("a",), "k", {"n": 1}),
            GetOp(("a",), "k"),
            SearchOp(("a",)),
            ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
            PutOp(("a",), "k", None),
            GetOp(("a",), "k"),
        ]
    )

    put, got, found, namespaces, deleted, gone = results
    assert (put, deleted, gone) == (None, None, None)
    assert got.value == {"n": 1}
    assert keys(found) == ["k"]
    assert namespaces == [("a",)]


def test_an_item_is_gone_when_its_time_is_over(aging, clock):
    aging.put(("a",), "short", {}, ttl=1)
    aging.put(("a",), "default", {})
    aging.put(("b",), "always", {}, ttl=None)

    clock.advance(2 * MINUTE)
    soon = [aging.get(("a",), "short"), *aging.search(("a",), refresh_ttl=False)]
    clock.advance(9 * MINUTE)

    assert soon[0] is None
    assert keys(soon[1:]) == ["default"]
    assert aging.get(("a",), "default") is None
    assert aging.list_namespaces() == [("b",)]
    assert aging.sweep_ttl() == 2
    assert asyncio.run(aging.asweep_ttl()) == 0
    assert keys(aging.search(())) == ["always"]


def test_reading_an_item_lets_its_time_begin_again(aging, clock):
    for key in ("got", "found", "only seen"):
        aging.put(("a",), key, {"key": key})

    clock.advance(8 * MINUTE)
    aging.get(("a",), "got")
    aging.search(("a",), filter={"key": "found"})
    aging.get(("a",), "only seen", refresh_ttl=False)
    clock.advance(8 * MINUTE)

    assert sorted(keys(aging.search(("a",)))) == ["found", "got"]


def test_putting_an_item_lets_its_time_begin_again(aging, clock):
    aging.put(("a",), "k", {"n": 1})
    clock.advance(8 * MINUTE)

    aging.put(("a",), "k", {"n": 2})
    clock.advance(8 * MINUTE)

    assert aging.get(("a",), "k").value == {"n": 2}


def test_a_read_restarts_a_lifetime_only_as_the_config_or_the_caller_says(clock):
    lasting = {"default_ttl": 10, "refresh_on_read": False}
    with HoldfastStore(":memory:", clock=clock, ttl=lasting) as memory:
        for key in ("got", "found", "asked for"):
            memory.put(("a",), key, {"key": key})

        clock.advance(8 * MINUTE)
        memory.get(("a",), "got")
        memory.search(("a",), filter={"key": "found"})
        memory.list_namespaces()
        memory.get(("a",), "asked for", refresh_ttl=True)
        clock.advance(8 * MINUTE)

        assert keys(memory.search(("a",))) == ["asked for"]


def test_a_search_restarts_the_lifetime_of_what_it_returns_only(aging, clock):
    for key in ("a", "b", "c"):
        aging.put(("t",), key, {})

    clock.advance(8 * MINUTE)
    aging.search(("t",), limit=1, offset=1)
    clock.advance(8 * MINUTE)

    assert keys(aging.search(("t",))) == ["b"]


def test_items_are_swept_until_the_sweeper_is_stopped(tmp_path, clock):
    lasting = {"default_ttl": 10, "sweep_interval_minutes": 0.0001}
    with (
        holdfast.open(tmp_path / "agents.db", clock=clock) as store,
        HoldfastStore(store, ttl=lasting) as memory,
    ):
        memory.put(("a",), "k", {})
        clock.advance(11 * MINUTE)

        sweeping = memory.start_ttl_sweeper()
        wait_until(lambda: not store.threads(kind="item"))

        assert memory.start_ttl_sweeper() is sweeping
        assert memory.stop_ttl_sweeper(timeout=60)
        assert sweeping.done()
        assert memory.stop_ttl_sweeper()


def test_items_of_a_store_that_is_awaited_are_swept_too(place):
    url, options = place
    lasting = {"default_ttl": 1e-6, "sweep_interval_minutes": 0.0001}

    async def work():
        async with await holdfast.open_async(url, **options) as store:
            memory = HoldfastStore(store, ttl=lasting)
            await memory.aput(("a",), "k", {})
            await memory.start_ttl_sweeper()
            async with asyncio.timeout(60):
                while await store.threads(kind="item"):
                    await asyncio.sleep(0.005)
            return await memory.stop_ttl_sweeper(timeout=60)

    assert asyncio.run(work())


def test_the_sweeper_ends_with_the_store_or_when_it_is_cancelled(tmp_path):
    lasting = {"default_ttl": 10, "sweep_interval_minutes": 0.0001}
    place = tmp_path / "agents.db"
    with HoldfastStore.from_conn_string(place, ttl=lasting) as memory:
        cancelled = memory.start_ttl_sweeper()
        cancelled.cancel()
        closed = memory.start_ttl_sweeper()
    without = HoldfastStore(":memory:").start_ttl_sweeper()

    assert closed is not cancelled
    assert closed.result(timeout=60) is None
    assert without.done()


def test_what_tutorials_await_can_be_awaited(place):
    url, options = place
    lasting = {"default_ttl": 1e-6, "sweep_interval_minutes": 60}

    async def work():
        opened = HoldfastStore.from_conn_string(url, ttl=lasting, **options)
        async with opened as memory:
            await memory.setup()
            await memory.aput(("a",), "k", {})
            sweeping = await memory.start_ttl_sweeper()
            swept = await memory.sweep_ttl()
            stopped = await memory.stop_ttl_sweeper(timeout=60)
            return swept, stopped, sweeping.done()

    with HoldfastStore(url, **options) as memory:
        memory.setup()
        swept = memory.sweep_ttl()

    assert asyncio.run(work()) == (1, True, True)
    assert swept == 0


def test_a_batch_refuses_labels_that_langgraph_refuses(memory):
    bad = [
        GetOp(("a.b",), "k"),
        PutOp(("a", ""), "k", {}),
        SearchOp(("a\0",)),
        ListNamespacesOp((MatchCondition("prefix", ("a.b",)),)),
        PutOp(("a", 1), "k", {}),
    ]

    for op in bad:
        with pytest.raises(InvalidNamespaceError):
            memory.batch([PutOp(("a",), "first", {}), op])
        with pytest.raises(InvalidNamespaceError):
            asyncio.run(memory.abatch([op]))

    assert memory.search(()) == []


def test_the_awaited_methods_do_the_same(place):
    url, options = place

    async def work():
        async with HoldfastStore.from_conn_string(url, **options) as memory:
            await memory.aput(("a",), "k", {"text": "some words"})
            found = await memory.asearch(("a",), query="words")
            namespaces = await memory.alist_namespaces()
            await memory.adelete(("a",), "k")
            return found, namespaces, await memory.aget(("a",), "k")

    found, namespaces, gone = asyncio.run(work())

    assert keys(found) == ["k"]
    assert namespaces == [("a",)]
    assert gone is None


def test_messages_can_be_remembered(memory):
    memory.put(("a",), "k", {"last": HumanMessage("hello", id="1")})

    assert memory.get(("a",), "k").value == {"last": HumanMessage("hello", id="1")}


def test_an_item_has_a_history(tmp_path):
    with holdfast.open(tmp_path / "agents.db") as store:
        memory = HoldfastStore(store)
        memory.put(("users", "ann"), "likes", {"food": "pasta"})
        memory.put(("users", "ann"), "likes", {"food": "rice"})

        item = store.thread("item:users/ann/likes")
        memory.close()

        assert item.load("@~1") == {"food": "pasta"}
        assert item.step == 2


def test_a_graph_remembers_across_threads(tmp_path):
    with holdfast.open(tmp_path / "agents.db") as store:
        builder = StateGraph(MessagesState)

        def note(state, *, store):
            before = len(store.search(("notes",)))
            store.put(("notes",), f"{before}", {"text": state["messages"][-1].content})
            return {"messages": [("ai", f"{before} notes before")]}

        builder.add_node("note", note)
        builder.add_edge(START, "note")
        graph = builder.compile(
            checkpointer=HoldfastSaver(store), store=HoldfastStore(store)
        )
        graph.invoke(say("one"), thread("a"))
        state = graph.invoke(say("two"), thread("b"))

    assert state["messages"][-1].content == "1 notes before"


class Counting(Layer):
    """Counts the requests for parts of states."""

    requests = 0

    async def read(self, keys):
        self.requests += 1
        return await super().read(keys)

    async def segments(self, family, runs):
        self.requests += 1
        return await super().segments(family, runs)


def test_a_search_reads_all_items_in_one_request(tmp_path):
    large = "pasta " * 100
    puts = [PutOp(("t",), f"{n}", {"text": large, "n": n}) for n in range(20)]
    HoldfastStore(tmp_path / "agents.db").batch(puts)

    with holdfast.open(tmp_path / "agents.db") as store:
        context = store.runner.context
        counting = Counting(context.backend)
        seen = msgspec.structs.replace(context, backend=counting)
        asked = [SearchOp(("t",), query="pasta", limit=30)]
        [found] = run(memory_batch(seen, Types(()), asked))

    assert keys(found) == [f"{n}" for n in reversed(range(20))]
    assert counting.requests == 1
