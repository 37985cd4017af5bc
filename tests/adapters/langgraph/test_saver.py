"""A saver behaves like LangGraph's own SQLite savers."""

import asyncio

import pytest
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint

import holdfast
from adapters.langgraph.graphs import put, thread
from holdfast.adapters.langgraph import HoldfastSaver


@pytest.fixture
def three(saver):
    """Three checkpoints: of one thread, of another, and of a namespace of that."""
    first = empty_checkpoint()
    second = create_checkpoint(first, {}, 1)
    third = empty_checkpoint()
    about = [
        {"source": "input", "step": 2, "writes": {}, "score": 1},
        {"source": "loop", "step": 1, "writes": {"foo": "bar"}, "score": None},
        {},
    ]
    places = [
        thread("thread-1", checkpoint_id="1", checkpoint_ns=""),
        thread("thread-2", checkpoint_id="2", checkpoint_ns=""),
        thread("thread-2", checkpoint_id="2-inner", checkpoint_ns="inner"),
    ]
    for place, checkpoint, metadata in zip(
        places, [first, second, third], about, strict=True
    ):
        saver.put(place, checkpoint, metadata, {})
    return about


def names(items):
    return [item.config["configurable"]["thread_id"] for item in items]


def test_a_parent_that_is_not_there_is_kept_all_the_same(saver, three):
    found = saver.get_tuple(thread("thread-1"))

    assert found.parent_config["configurable"]["checkpoint_id"] == "1"


def test_metadata_of_the_config_are_kept_but_not_its_private_keys(saver):
    config = {
        **thread("t", checkpoint_ns="", user_id="ann", __private="secret"),
        "metadata": {"run_id": "my_run_id"},
    }

    saver.put(config, empty_checkpoint(), {"source": "loop", "step": 1}, {})

    assert saver.get_tuple(config).metadata == {
        "source": "loop",
        "step": 1,
        "run_id": "my_run_id",
        "user_id": "ann",
    }


def test_search_by_one_key_several_keys_and_none(saver, three):
    by_one = list(saver.list(None, filter={"source": "input"}))
    by_two = list(saver.list(None, filter={"step": 1, "writes": {"foo": "bar"}}))
    by_null = list(saver.list(None, filter={"source": "loop", "score": None}))
    by_wrong = list(saver.list(None, filter={"source": "update", "step": 1}))

    assert [item.metadata for item in by_one] == [three[0]]
    assert [item.metadata for item in by_two] == [three[1]]
    assert [item.metadata for item in by_null] == [three[1]]
    assert by_wrong == []
    assert len(list(saver.list(None, filter={}))) == 3


def test_a_thread_is_listed_with_all_its_namespaces_unless_one_is_named(saver, three):
    every = list(saver.list(thread("thread-2")))
    inner = list(saver.list(thread("thread-2", checkpoint_ns="inner")))
    root = list(saver.list(thread("thread-2", checkpoint_ns="")))

    assert names(every) == ["thread-2", "thread-2"]
    assert [item.config["configurable"]["checkpoint_ns"] for item in inner] == ["inner"]
    assert [item.config["configurable"]["checkpoint_ns"] for item in root] == [""]


def test_a_listing_continues_before_a_checkpoint_of_whichever_thread(saver, three):
    _, second = saver.list(thread("thread-2"))

    assert names(saver.list(None, before=second.config)) == ["thread-1"]
    assert names(saver.list(thread("thread-2"), limit=1)) == ["thread-2"]


def test_a_listing_before_an_unknown_id_goes_by_the_ids(saver):
    configs = [put(saver, thread("t")) for _ in range(3)]
    ids = sorted(config["configurable"]["checkpoint_id"] for config in configs)
    unknown = {"configurable": {"checkpoint_id": ids[1] + "-and-more"}}

    found = [item.checkpoint["id"] for item in saver.list(thread("t"), before=unknown)]

    assert found == [ids[1], ids[0]]


def test_one_checkpoint_can_be_listed_by_its_id(saver):
    config = put(saver, thread("t"), {"x": 1})
    put(saver, config, {"x": 2})

    [found] = saver.list(config)

    assert found == saver.get_tuple(config)


def test_what_is_not_there_is_none_and_an_empty_list(saver):
    put(saver, thread("t"))

    assert saver.get_tuple(thread("other")) is None
    assert saver.get_tuple(thread("t", checkpoint_id="1ef")) is None
    assert saver.get(thread("t", checkpoint_ns="inner")) is None
    assert list(saver.list(thread("other"))) == []
    saver.delete_thread("other")


def test_an_id_is_taken_as_it_is_and_never_as_a_reference(saver):
    config = put(saver, thread("t"), {"x": 1})
    id_ = config["configurable"]["checkpoint_id"]

    assert saver.get_tuple(thread("t", checkpoint_id=id_[:-1])) is None
    assert saver.get_tuple(thread("t", checkpoint_id="@")) is None


def test_writes_come_back_in_the_order_in_which_they_are_applied(saver):
    config = put(saver, thread("t"))
    saver.put_writes(config, [("c", 1), ("c", 2)], "task-b", "~1")
    saver.put_writes(config, [("c", 3)], "task-a", "~2")
    saver.put_writes(config, [("c", 4)], "task-c")

    found = saver.get_tuple(config).pending_writes

    assert [value for _, _, value in found] == [4, 1, 2, 3]


def test_a_write_is_kept_once_and_what_is_new_is_added(saver):
    config = put(saver, thread("t"))
    saver.put_writes(config, [("a", 1)], "task")

    saver.put_writes(config, [("a", "other"), ("b", 2)], "task")
    saver.put_writes(config, [("a", "other"), ("b", "other"), ("c", 3)], "task")

    assert saver.get_tuple(config).pending_writes == [
        ("task", "a", 1),
        ("task", "b", 2),
        ("task", "c", 3),
    ]


def test_places_that_marks_had_are_free_for_what_is_written_later(saver):
    config = put(saver, thread("t"))

    saver.put_writes(config, [("__error__", "e"), ("a", 1), ("__resume__", 2)], "task")
    saver.put_writes(config, [("b", 3), ("b", 4), ("b", 5)], "task")

    regular = saver.get_tuple(config).pending_writes[2:]
    assert [write[1:] for write in regular] == [("b", 3), ("a", 1), ("b", 5)]


def test_marks_are_replaced_and_stand_beside_what_was_written(saver):
    config = put(saver, thread("t"))
    saver.put_writes(config, [("__error__", "first")], "task")
    saver.put_writes(config, [("__error__", "second"), ("__resume__", [1])], "task")

    saver.put_writes(config, [("__interrupt__", "x"), ("a", 1)], "task")

    assert saver.get_tuple(config).pending_writes == [
        ("task", "__resume__", [1]),
        ("task", "__interrupt__", "x"),
        ("task", "__error__", "second"),
        ("task", "a", 1),
    ]


def test_writes_may_come_before_their_checkpoint(saver):
    checkpoint = empty_checkpoint()
    config = thread("t", checkpoint_ns="", checkpoint_id=checkpoint["id"])
    saver.put_writes(config, [("a", 1)], "task")
    before = saver.get_tuple(thread("t"))

    put(saver, thread("t"), checkpoint=checkpoint)

    assert before is None
    assert saver.get_tuple(thread("t")).pending_writes == [("task", "a", 1)]


def test_an_empty_channel_stays_empty(saver):
    versions = {"a": 1, "b": 1}
    first = put(saver, thread("t"), {"a": 1, "b": 2})
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"a": 1},
        "channel_versions": {**versions, "b": 2},
    }

    saver.put(first, checkpoint, {"source": "loop", "step": 1}, {"b": 2})

    assert saver.get_tuple(thread("t")).checkpoint["channel_values"] == {"a": 1}


def test_everything_of_a_checkpoint_comes_back(saver):
    checkpoint = {
        "v": 4,
        "id": "1ef4f797-8335-6428-8001-8a1503f9b875",
        "ts": "2024-05-04T06:32:42.235444+00:00",
        "channel_values": {"__checkpoint__": 1, "__checkpoint___": 2, "a": None},
        "channel_versions": {"__checkpoint__": 1, "__checkpoint___": 2, "a": 3},
        "versions_seen": {"node": {"a": 2, "gone": 1}, "__input__": {}},
        "updated_channels": ["a", "elsewhere"],
        "pending_sends": [],
        "from_the_future": {"x": (1,)},
    }

    versions = checkpoint["channel_versions"]
    saver.put(thread("t", checkpoint_ns=""), checkpoint, {}, versions)

    assert saver.get_tuple(thread("t")).checkpoint == checkpoint


def test_versions_grow_as_numbers_and_as_texts(quick):
    one = quick.get_next_version(None, None)
    text = quick.get_next_version("00000000000000000000000000000009.0.5", None)

    assert (one, quick.get_next_version(one, None)) == (1, 2)
    assert text > "00000000000000000000000000000009.1"
    assert text < quick.get_next_version(text, None)


def test_only_channels_that_changed_are_encoded(saver):
    class Unreadable:
        """Would be refused."""

    long = ["x" * 100] * 50
    first = put(saver, thread("t"), {"a": long, "b": 1})
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"a": Unreadable(), "b": 2},
        "channel_versions": {"a": 1, "b": 2},
    }

    saver.put(first, checkpoint, {"source": "loop", "step": 1}, {"b": 2})

    found = saver.get_tuple(thread("t")).checkpoint["channel_values"]
    assert found == {"a": long, "b": 2}


def test_a_value_that_the_parent_does_not_have_is_stored_unasked(saver):
    first = put(saver, thread("t"), {"a": 1})
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"a": 1, "b": 2},
        "channel_versions": {"a": 1, "b": 1},
    }

    saver.put(first, checkpoint, {"source": "fork", "step": 1}, {})

    assert saver.get_tuple(thread("t")).checkpoint["channel_values"] == {"a": 1, "b": 2}


def test_a_saver_over_a_store_leaves_it_open(tmp_path):
    with holdfast.open(tmp_path / "agents.db") as store:
        with HoldfastSaver(store) as saver:
            put(saver, thread("t"))
        saver.setup()

        assert store.thread("t").step == 1


def test_the_scope_of_a_store_that_was_given_is_used(tmp_path):
    with holdfast.open(tmp_path / "agents.db") as store:
        put(HoldfastSaver(store, scope="acme"), thread("t"))

        assert HoldfastSaver(store).get_tuple(thread("t")) is None
        assert HoldfastSaver(store, scope="acme").get_tuple(thread("t"))
        with pytest.raises(holdfast.Unstorable, match="give the address"):
            HoldfastSaver(store, key="secret")


def test_a_saver_that_opened_a_store_closes_it(tmp_path):
    with HoldfastSaver.from_conn_string(str(tmp_path / "agents.db")) as saver:
        put(saver, thread("t"))

    with pytest.raises(holdfast.Closed):
        saver.get_tuple(thread("t"))


def test_the_awaited_methods_do_the_same(quick):
    async def work():
        config = await quick.aput(
            thread("t", checkpoint_ns=""), empty_checkpoint(), {"run_id": "r"}, {}
        )
        await quick.aput_writes(config, [("a", 1)], "task")
        await quick.acopy_thread("t", "copy")
        await quick.aprune(["copy"])
        found = await quick.aget_tuple(thread("copy"))
        await quick.adelete_for_runs(["r"])
        await quick.adelete_thread("t")
        return found, [item async for item in quick.alist(None)]

    found, left = asyncio.run(work())

    assert found.pending_writes == [("task", "a", 1)]
    assert left == []


def test_setup_can_be_called_and_awaited(quick):
    async def awaited():
        return await quick.setup()

    quick.setup()

    assert asyncio.run(awaited()) is None
