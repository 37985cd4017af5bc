"""Search by meaning in LangGraph's long-term memory."""

import asyncio
import math
import sys

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import holdfast
from adapters.langgraph.test_store import keys
from holdfast.adapters.langgraph import HoldfastStore

SUBJECTS = ("food", "sport", "music")
WORDS = {"pasta": 0, "rice": 0, "tennis": 1, "chess": 1, "opera": 2}


class Meaning(Embeddings):
    """A vector says how often a text names each subject; a model in five lines."""

    def __init__(self):
        self.asked = []

    def embed_documents(self, texts):
        self.asked += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        words = text.casefold().replace('"', " ").split()
        found = [WORDS[word] for word in words if word in WORDS]
        return [found.count(n) + 0.01 for n in range(len(SUBJECTS))]


def index(**more):
    return {"dims": 3, "embed": Meaning(), **more}


@pytest.fixture
def memory(place):
    url, options = place
    with holdfast.open(url, **options) as store:
        yield HoldfastStore(store, index=index())


def test_a_query_finds_what_is_near_in_meaning(memory):
    memory.put(("likes",), "ann", {"text": "rice rice"})
    memory.put(("likes",), "bob", {"text": "tennis rice"})
    memory.put(("likes",), "cat", {"text": "opera"})
    memory.put(("other",), "dan", {"text": "pasta"})

    found = memory.search(("likes",), query="pasta", limit=2)

    assert keys(found) == ["ann", "bob"]
    assert found[0].score > 0.99 > found[1].score
    assert found[0].value == {"text": "rice rice"}
    assert keys(memory.search((), query="pasta", filter={"text": "pasta"})) == ["dan"]
    assert keys(memory.search(("likes",), query="chess", offset=1, limit=1)) != ["bob"]


def test_the_scores_are_those_of_langgraph(memory):
    theirs = InMemoryStore(index=index())
    items = {"a": "rice chess", "b": "opera opera rice", "c": "nothing", "d": "chess"}
    for store in (memory, theirs):
        for key, text in items.items():
            store.put(("t",), key, {"text": text})

    ours, others = (s.search(("t",), query="tennis pasta") for s in (memory, theirs))

    assert keys(ours) == keys(others)
    for item, other in zip(ours, others, strict=True):
        assert math.isclose(item.score, other.score, abs_tol=1e-5)


def test_paths_say_what_is_embedded(memory):
    value = {"title": "opera", "body": ["rice", "chess"]}
    memory.put(("t",), "title", value, index=["title"])
    memory.put(("t",), "body", value, index=["body[*]"])
    memory.put(("t",), "none", value, index=False)

    assert keys(memory.search(("t",), query="opera")) == ["title", "body"]
    assert keys(memory.search(("t",), query="tennis")) == ["body", "title"]
    assert len(memory.search(("t",))) == 3


def test_the_fields_of_the_index_are_embedded(place):
    url, options = place
    with HoldfastStore(url, index=index(fields=["title"]), **options) as memory:
        memory.put(("t",), "a", {"title": "opera", "body": "rice"})
        memory.put(("t",), "b", {"title": "chess", "body": "opera"})

        assert keys(memory.search(("t",), query="opera")) == ["a", "b"]


def test_a_batch_embeds_each_text_once(memory):
    model = memory._index._embeddings
    same = {"text": "rice"}

    memory.batch([PutOp(("t",), key, same) for key in "abc"])

    assert len(model.asked) == 1


def test_an_item_that_changes_has_a_new_vector(memory):
    memory.put(("t",), "a", {"text": "rice"})
    memory.put(("t",), "b", {"text": "opera"})

    memory.put(("t",), "a", {"text": "opera"})
    memory.put(("t",), "b", {"text": "rice"})

    assert keys(memory.search(("t",), query="pasta", limit=1)) == ["b"]


def test_coroutines_embed_and_search(place):
    url, options = place

    async def embed(texts):
        return [Meaning().embed_query(text) for text in texts]

    async def work():
        opened = HoldfastStore.from_conn_string(
            url, index={"dims": 3, "embed": embed}, **options
        )
        async with opened as memory:
            await memory.aput(("t",), "a", {"text": "rice"})
            await memory.aput(("t",), "b", {"text": "opera"})
            [found] = await memory.abatch([SearchOp(("t",), query="pasta", limit=1)])
            return keys(found)

    assert asyncio.run(work()) == ["a"]


def test_a_memory_without_an_index_reads_the_same_items(tmp_path):
    with holdfast.open(tmp_path / "agents.db") as store:
        HoldfastStore(store, index=index()).put(("t",), "a", {"text": "rice"})
        plain = HoldfastStore(store)
        plain.put(("t",), "b", {"text": "rice"})

        assert plain.get(("t",), "a").value == {"text": "rice"}
        assert keys(plain.search(("t",), query="rice")) == ["b", "a"]
        found = HoldfastStore(store, index=index()).search(("t",), query="rice")
        assert keys(found) == ["a"]


def test_vectors_of_another_length_are_refused_and_never_near(tmp_path):
    with holdfast.open(tmp_path / "agents.db") as store:
        with pytest.raises(holdfast.Unstorable, match="dims 4"):
            HoldfastStore(store, index=index(dims=4)).put(("t",), "a", {})
        HoldfastStore(store, index=index()).put(("t",), "old", {"text": "rice"})
        longer = {"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}
        newer = HoldfastStore(store, index=longer)
        newer.put(("t",), "new", {"text": "rice"})

        assert [(i.key, i.score) for i in newer.search(("t",), query="rice")] == [
            ("new", 1.0),
            ("old", 0.0),
        ]


def test_without_sqlite_vec_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)

    with pytest.raises(holdfast.Unsupported, match="pip install sqlite-vec"):
        HoldfastStore(":memory:", index=index())


def test_what_cannot_be_indexed_is_refused(memory):
    with pytest.raises(holdfast.Unstorable, match="dims"):
        HoldfastStore(":memory:", index={"embed": Meaning()})
    with pytest.raises(holdfast.Unsupported, match="cosine"):
        HoldfastStore(":memory:", index=index(distance_type="l2"))
    with pytest.raises(holdfast.Unstorable, match="__vectors__"):
        memory.put(("t",), "a", {"__vectors__": 1})
