"""An agent's loop is recorded as it goes, and goes on where it stopped."""

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Conflict, NotFound, Store, Unstorable
from holdfast.messages import Attachment, Message, ToolCall
from holdfast.recorder import AsyncRecorder, Recorder
from holdfast.strategy import (
    after_reply,
    after_tool_batch,
    after_tool_call,
    every,
    every_seconds,
    never,
)
from holdfast.testing import raises
from support.earlier_systems import watched
from support.recorders import (
    HELLO,
    HI,
    Tool,
    asking,
    messages_of,
    recorder,
    saves,
    stored_of,
)
from support.stores import backend_of
from support.transcripts import DIALECTS, chat, problems

# --- telling and saving ---------------------------------------------------------------


def test_a_loop_is_saved_after_each_tool_batch(store):
    told = recorder(store)
    told.add(HI)
    told.iteration()
    told.llm_response(asking("chat", "a", "b"))
    told.tool_result("a", "one")
    assert store.conversations.find("chat") is None
    told.tool_result("b", "two")
    told.iteration()
    told.llm_response(HELLO)

    first, second = saves(store)
    assert len(messages_of(store, first)) == 4
    assert messages_of(store, second) == told.messages
    assert told.messages[-1] == HELLO
    assert told.pending == 0
    assert told.checkpoint.id == second.id


@pytest.mark.parametrize(
    ("strategy", "lengths"),
    [
        (after_tool_batch(), [4, 5]),
        (after_tool_call(), [3, 4]),
        (after_reply(), [2, 5]),
        (every(2), [4]),
        (every(1), [1, 4]),
        (after_reply() | after_tool_call(), [2, 3, 4, 5]),
        (never(), []),
    ],
    ids=repr,
)
def test_a_strategy_says_when_to_save(memory, strategy, lengths):
    told = recorder(memory, save=strategy)
    told.add(HI)
    told.iteration()
    told.llm_response(asking("chat", "a", "b"))
    told.tool_result("a", "one")
    told.tool_result("b", "two")
    told.iteration()
    told.llm_response(HELLO)

    assert [len(messages_of(memory, save)) for save in saves(memory)] == lengths


def test_time_passes_between_saves(memory, clock):
    told = recorder(memory, save=every_seconds(30))
    told.llm_response(HELLO)
    clock.advance(timedelta(seconds=29))
    told.llm_response(HELLO)
    assert saves(memory) == []
    clock.advance(timedelta(seconds=1))
    told.llm_response(HELLO)
    told.llm_response(HELLO)

    [save] = saves(memory)
    assert len(messages_of(memory, save)) == 3
    assert told.pending == 1


def test_time_passes_between_saves_of_all_recorders(memory, clock):
    for _ in range(7):
        recorder(memory, save=every_seconds(30)).llm_response(HELLO)
        clock.advance(timedelta(seconds=10))

    assert [len(messages_of(memory, save)) for save in saves(memory)] == [4, 7]


def test_a_recorder_shows_what_it_records_and_when(memory):
    told = recorder(memory, save=every(5))

    assert told.id == "chat"
    assert repr(told) == "Recorder('chat', save=every(5))"


def test_something_that_is_no_strategy_is_refused(memory):
    with raises(Unstorable):
        recorder(memory, save=5)


def test_saving_by_hand_makes_a_checkpoint_of_what_is_new(store):
    told = recorder(store, save=never())
    told.add(HI, HELLO)

    first = told.save("greeting", tags=["start"], metadata={"why": "test"})

    assert (first.label, first.tags, first.metadata) == (
        "greeting",
        ("start",),
        {"why": "test"},
    )
    assert told.save().id == first.id
    assert told.save("again").step == 2
    told.metadata["mood"] = "good"
    assert told.save().step == 3


def test_messages_and_the_run_are_saved_together(store):
    told = recorder(store, save=after_reply())
    told.metadata["goal"] = "greet"
    told.add(HI)
    told.iteration()
    told.llm_response(HELLO, usage={"tokens": 5})

    [save] = saves(store)
    loaded = store.conversations.load("chat", save)
    assert loaded.messages == [HI, HELLO]
    assert loaded.run == {
        "iteration": 1,
        "usage": {"tokens": 5},
        "metadata": {"goal": "greet"},
    }
    [summary] = store.conversations.list()
    assert (summary.messages, summary.exchanges) == (2, 1)


def test_a_save_costs_what_is_new(memory):
    told = recorder(memory, save=after_reply())
    told.add(*[{"role": "user", "content": "x" * 1000} for _ in range(1000)])
    told.save()
    store, backend = watched(memory)
    told = recorder(store, save=after_reply())
    backend.asked.clear()

    told.llm_response(HELLO)

    assert backend.asked == ["commit"]
    assert memory.stats().stored_bytes < 1_100_000


def test_a_new_conversation_gets_its_owner_and_agent(store):
    told = recorder(store, owner="ann", agent="helper")
    told.llm_response(HELLO)

    loaded = store.conversations.load("chat")
    assert (loaded.owner, loaded.agent) == ("ann", "helper")
    assert loaded.created_at == store.conversations.list()[0].created_at > 0
    with raises(NotFound):
        recorder(store, owner="bob")


def test_large_attachments_are_recorded_once(store):
    picture = Attachment(kind="image", content=b"x" * 50_000)
    told = recorder(store, save=after_reply(), system="Be brief.")
    told.add(Message.user("Look.", attachments=[picture]))
    told.llm_response(HELLO)
    told.add(Message.user("Again.", attachments=[picture]))
    told.llm_response(HELLO)
    changed = recorder(store, save=after_reply(), system="Be long.")
    changed.llm_response(HELLO)

    assert store.stats().stored_bytes < 80_000
    looks = [m for m in recorder(store).messages if isinstance(m, Message)]
    assert [m.attachments[0].content for m in looks] == [picture.content] * 2


def test_what_the_caller_does_to_a_message_later_is_not_saved(memory):
    told = recorder(memory, save=never())
    message = {"role": "user", "content": ["Hi."]}
    told.add(message)
    message["content"].append("Ho.")  # type: ignore[attr-defined]
    told.save()

    assert memory.conversations.load("chat").messages[0]["content"] == ["Hi."]


def test_a_message_that_cannot_be_stored_is_refused_and_not_kept(memory):
    told = recorder(memory)
    with raises(Unstorable):
        told.add(HI, {"role": "user", "content": object()})
    with raises(Unstorable):
        told.llm_response(object())

    assert told.messages == []


def test_usage_adds_up_whatever_its_shape(store):
    told = recorder(store)
    for _ in range(2):
        told.llm_response(
            HELLO, usage={"in": 3, "cost": 0.5, "details": {"cached": 1}, "tier": "low"}
        )

    total = {"in": 6, "cost": 1.0, "details": {"cached": 2}, "tier": "low"}
    assert told.usage == total
    assert recorder(store).usage == total


@pytest.mark.parametrize("usage", [5, [1], {"cost": object()}, {"cost": Decimal(1)}])
def test_a_reply_with_usage_that_does_not_add_up_is_refused(memory, usage):
    told = recorder(memory)
    told.llm_response(HELLO, usage={"cost": 0.5})

    with raises(Unstorable):
        told.llm_response(HELLO, usage=usage)

    assert (told.messages, told.usage) == ([HELLO], {"cost": 0.5})


# --- results --------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", [after_tool_batch(), after_tool_call()], ids=repr)
def test_results_are_made_in_the_dialect_of_the_call(memory, dialect, strategy):
    told = recorder(memory, save=strategy)
    told.add(HI)
    told.llm_response(asking(dialect, "a", "b", "c"))
    for call in told.open_calls:
        told.tool_result(call, {"found": call.id})

    assert problems(stored_of(told)) == []
    assert stored_of(recorder(memory, repair=None)) == stored_of(told)
    assert recorder(memory).repairs == ()


def test_a_result_can_be_a_message_and_can_be_an_error(memory):
    told = recorder(memory)
    told.llm_response(asking("anthropic", "a"))
    told.tool_result("a", "boom", is_error=True)
    told.llm_response(asking("chat", "b"))
    told.tool_result(chat(["b"])[1])

    [block] = told.messages[1]["content"]
    assert (block["content"], block["is_error"]) == ("boom", True)
    assert told.messages[3] == chat(["b"])[1]
    assert told.open_calls == []


def test_our_own_records_take_part(store):
    told = recorder(store)
    call = ToolCall(id="a", name="look", arguments={"at": "sky"})
    told.add(Message.user("Look."))
    told.llm_response(Message.assistant(tool_calls=[call]))
    told.tool_result(call, told.call(call, lambda at: {"seen": at}))

    assert isinstance(told.messages[2], Message)
    assert told.messages[2].content == {"seen": "sky"}
    assert store.conversations.load("chat").messages == told.messages


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nobody", "x"), NotFound),
        (("a",), Unstorable),
        (({"name": "look"}, "x"), Unstorable),
        ((Message.tool_result("a", "x"), "x"), Unstorable),
    ],
)
def test_a_result_of_nothing_is_refused(memory, arguments, error):
    told = recorder(memory)
    told.llm_response(asking("chat", "a"))

    with raises(error):
        told.tool_result(*arguments)

    assert len(told.messages) == 1


def test_a_second_result_is_refused(memory):
    told = recorder(memory)
    told.llm_response(asking("chat", "a"))
    told.tool_result("a", "one")

    with raises(Conflict, "call_answered"):
        told.tool_result("a", "two")

    assert len(told.messages) == 2


# --- resuming -------------------------------------------------------------------------


def test_everything_goes_on_after_a_restart(path):
    with holdfast.open(path) as store:
        told = recorder(store)
        told.metadata["goal"] = "greet"
        told.add(HI)
        told.iteration()
        told.llm_response(HELLO, usage={"tokens": 5})

    with holdfast.open(path) as store:
        told = recorder(store)
        assert told.messages == [HI, HELLO]
        assert told.iteration() == told.iterations == 2
        told.llm_response(HELLO, usage={"tokens": 5})
        assert told.usage == {"tokens": 10}
        assert told.metadata == {"goal": "greet"}


def test_what_a_newer_version_keeps_of_a_run_stays(memory):
    told = recorder(memory)
    told.llm_response(HELLO)
    thread = memory.conversations.thread("chat")
    thread.save({**thread.load(), "run": {"iteration": 3, "newer": [1]}})
    told = recorder(memory)
    told.iteration()
    told.save()

    assert thread.load()["run"] == {"newer": [1], "iteration": 4}


def cut(store, dialect, *, results=1):
    """A conversation whose process ended in the middle of a batch of three."""
    told = recorder(store, save=after_reply() | after_tool_call())
    told.add(HI)
    told.llm_response(asking(dialect, "a", "b", "c"))
    for call in told.open_calls[:results]:
        told.tool_result(call, "found")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("repair", ["drop", "propose"])
def test_a_conversation_cut_in_a_batch_resumes_valid(store, dialect, repair):
    cut(store, dialect)

    told = recorder(store, repair=repair)

    assert problems(stored_of(told)) == []
    assert {repair.call_id for repair in told.repairs} == {"b", "c"}
    told.llm_response(HELLO)
    again = recorder(store)
    assert again.repairs == ()
    assert again.messages == told.messages


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_that_never_began_wait_for_the_loop(store, dialect):
    cut(store, dialect)

    told = recorder(store)

    assert [call.id for call in told.open_calls] == ["b", "c"]
    assert told.interrupted() == []
    for call in told.open_calls:
        told.tool_result(call, told.call(call, Tool("made")))
    told.llm_response(HELLO)
    assert problems(stored_of(told)) == []
    again = recorder(store)
    assert again.repairs == ()
    assert again.messages == told.messages


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_loop_that_goes_on_without_open_calls_has_a_valid_transcript(store, dialect):
    cut(store, dialect)
    told = recorder(store)

    told.iteration()

    assert problems(stored_of(told)) == []
    assert str(told.messages).count("The call was not made") == 2
    assert recorder(store).messages == told.messages


def test_open_calls_can_be_left_to_the_loop(store):
    cut(store, "chat")

    told = recorder(store, repair=None)

    assert [call.id for call in told.open_calls] == ["b", "c"]
    for call in told.open_calls:
        told.tool_result(call, "late")
    assert problems(stored_of(told)) == []


def test_a_result_in_the_journal_is_used_before_any_repair(store):
    cut(store, "chat")
    told = recorder(store, repair=None)
    told.call("b", lambda n: "recorded")

    resumed = recorder(store)

    assert [(r.kind, r.call_id) for r in resumed.repairs] == [("recorded", "b")]
    assert [call.id for call in resumed.open_calls] == ["c"]
    assert resumed.messages[3] == {
        "role": "tool",
        "tool_call_id": "b",
        "content": "recorded",
    }


def test_the_stored_system_prompt_is_kept_unless_another_is_given(store):
    told = recorder(store, system="Be brief.")
    told.add(HI)
    told.llm_response(HELLO)
    first = told.checkpoint

    assert recorder(store).messages[0]["content"] == "Be brief."
    other = recorder(store, system="Be long.")
    assert other.messages == [{"role": "system", "content": "Be long."}, HI, HELLO]
    other.llm_response(HELLO)
    assert store.conversations.load("chat").messages == other.messages
    assert messages_of(store, first)[0]["content"] == "Be brief."


def test_the_same_system_prompt_changes_nothing(memory):
    told = recorder(memory, system="Be brief.")
    told.llm_response(HELLO)

    assert recorder(memory, system="Be brief.").save().id == told.checkpoint.id


def test_a_system_prompt_is_put_before_a_conversation_without_one(memory):
    recorder(memory).llm_response(HELLO)

    told = recorder(memory, system="Be brief.")

    assert told.messages == [{"role": "system", "content": "Be brief."}, HELLO]


def test_the_newest_safe_checkpoint_can_be_resumed_from(store):
    told = recorder(store, save=after_reply() | after_tool_call())
    told.add(HI)
    told.llm_response(HELLO)
    safe = told.checkpoint
    cut(store, "chat")

    told = recorder(store)
    assert told.latest_safe() == safe
    told.resume(told.latest_safe())

    assert told.messages == [HI, HELLO]
    assert told.repairs == ()
    told.llm_response(HELLO)
    assert told.checkpoint.parent == safe.id


def test_a_new_conversation_has_no_safe_checkpoint(memory):
    assert recorder(memory).latest_safe() is None


def test_resuming_does_not_forget_what_is_not_saved(memory):
    told = recorder(memory, save=never())
    told.add(HI)
    told.resume()
    assert told.messages == [HI]

    told.resume(discard=True)

    assert told.messages == []


def test_resuming_at_a_checkpoint_of_no_conversation_is_refused(memory):
    with raises(NotFound):
        recorder(memory).resume("label:safe")


# --- others, errors -------------------------------------------------------------------


def test_two_recorders_do_not_mix_their_messages(store):
    one, other = recorder(store), recorder(store)
    one.llm_response({"role": "assistant", "content": "one"})

    with raises(Conflict, "transcript_moved"):
        other.llm_response({"role": "assistant", "content": "other"})

    assert other.pending == 1
    assert len(store.conversations.load("chat").messages) == 1
    other.resume(discard=True)
    other.llm_response({"role": "assistant", "content": "other"})
    assert [m["content"] for m in other.messages] == ["one", "other"]


def test_others_may_change_what_is_said_about_a_conversation(store):
    told = recorder(store)
    told.llm_response(HELLO)
    store.conversations.update("chat", title="Greeting")
    told.llm_response(HELLO)

    loaded = store.conversations.load("chat")
    assert (loaded.title, len(loaded.messages)) == ("Greeting", 2)


def test_a_conversation_deleted_meanwhile_is_not_brought_back(store):
    told = recorder(store)
    told.llm_response(HELLO)
    store.conversations.delete("chat")

    with raises(Conflict):
        told.llm_response(HELLO)

    assert store.conversations.find("chat") is None
    assert len(told.messages) == 2


def test_another_process_is_noticed_behind_the_cache(path):
    with holdfast.open(path) as here, holdfast.open(path) as there:
        mine = recorder(here)
        mine.llm_response(HELLO)
        theirs = recorder(there)
        theirs.llm_response(HELLO)
        with raises(Conflict, "transcript_moved"):
            mine.llm_response(HELLO)

        mine.resume(discard=True)
        mine.llm_response(HELLO)

        assert len(recorder(there).messages) == 3


def test_a_save_that_fails_raises_and_loses_nothing(memory):
    store, backend = watched(memory)
    told = recorder(store)

    def fail():
        raise holdfast.HoldfastError("no room", code="disk_full")

    for n in range(3):
        backend.before["commit"] = fail
        with raises(holdfast.HoldfastError, "disk_full"):
            told.llm_response({"role": "assistant", "content": str(n)})
    assert told.pending == 3
    told.save()

    loaded = memory.conversations.load("chat")
    assert [m["content"] for m in loaded.messages] == ["0", "1", "2"]


def test_a_conversation_goes_on_after_saves_that_failed(memory):
    store, backend = watched(memory)
    told = recorder(store)
    told.llm_response(HELLO)

    def fail():
        raise holdfast.HoldfastError("no room", code="disk_full")

    for n in range(2):
        backend.before["commit"] = fail
        with raises(holdfast.HoldfastError, "disk_full"):
            told.llm_response({"role": "assistant", "content": str(n)})
    told.save()

    assert told.pending == 0
    assert memory.conversations.load("chat").messages == told.messages
    assert len(saves(memory)) == 2


class Forgetful:
    """A backend that once does what it is asked and says that it failed."""

    blocking = True

    def __init__(self, backend):
        self.backend, self.forgets = backend, False

    def __getattr__(self, name):
        return getattr(self.backend, name)

    async def commit(self, writes):
        receipts = await self.backend.commit(writes)
        if self.forgets:
            self.forgets = False
            raise holdfast.HoldfastError("who knows", code="io_error")
        return receipts


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_save_that_was_made_after_all_is_not_made_twice(memory, dialect):
    backend = Forgetful(backend_of(memory))
    told = recorder(
        Store(replace(memory.runner.context, backend=backend)), save=never()
    )
    told.add(HI)
    told.llm_response(asking(dialect, "a", "b"))
    told.tool_result("a", "one")
    backend.forgets = True
    with raises(holdfast.HoldfastError, "io_error"):
        told.save()
    told.tool_result("b", "two")
    told.save()

    loaded = recorder(memory, repair=None)
    assert stored_of(loaded) == stored_of(told)
    assert problems(stored_of(loaded)) == []
    assert loaded.open_calls == []


# --- the async door -------------------------------------------------------------------


def public(kind):
    return {name: vars(kind)[name] for name in vars(kind) if not name.startswith("_")}


def test_both_doors_have_the_same_methods():
    one, other = public(Recorder), public(AsyncRecorder)

    assert one.keys() == other.keys()
    for name, method in one.items():
        parameters = inspect.signature(method).parameters.values()
        twins = inspect.signature(other[name]).parameters.values()
        assert list(parameters) == list(twins)
        assert inspect.iscoroutinefunction(other[name])
        assert method.__doc__


def test_tools_side_by_side_are_recorded_once_each(path):
    async def main():
        async with holdfast.open_async(path, durability="normal") as store:
            told = await store.conversations.recorder("chat", save=after_tool_call())
            await told.add(HI)
            await told.llm_response(asking("anthropic", *"abcdefgh"))

            async def use(call):
                async def look():
                    await asyncio.sleep(0)
                    return call.id

                await told.tool_result(call.id, await told.call(call, look))

            await asyncio.gather(*map(use, told.open_calls))
            return told

    told = asyncio.run(main())

    assert len(told.messages) == 3
    assert problems(told.messages) == []
    with holdfast.open(path) as store:
        assert recorder(store).messages == told.messages
        assert recorder(store).repairs == ()


def test_tools_in_threads_are_recorded_once_each(path):
    with holdfast.open(path, durability="normal") as store:
        told = recorder(store, save=after_tool_call())
        told.llm_response(asking("chat", *"abcdefgh"))

        def use(call):
            told.tool_result(call.id, told.call(call, lambda n: n))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(use, told.open_calls))

        assert problems(told.messages) == []
        assert recorder(store).messages == told.messages


def test_a_cancelled_save_is_made_once(path):
    async def main():
        async with holdfast.open_async(path, durability="normal") as store:
            told = await store.conversations.recorder("chat", save=never())
            for n in range(20):
                await told.add({"role": "user", "content": str(n)})
                saving = asyncio.create_task(told.save())
                await asyncio.sleep(0)
                saving.cancel()
                await asyncio.wait([saving])
            await told.save()
            return await store.conversations.load("chat")

    loaded = asyncio.run(main())

    assert [m["content"] for m in loaded.messages] == [str(n) for n in range(20)]


@pytest.mark.parametrize("run", [5, None, ["x"], {"iteration": "x", "usage": 5}])
def test_a_run_that_a_program_saved_itself_counts_as_none(memory, run):
    thread = memory.conversations.thread("chat")
    thread.save({"messages": [HI], "run": run})

    told = recorder(memory)
    told.iteration()
    told.llm_response(HELLO, usage={"input": 2})
    told.save()

    assert (told.iterations, told.usage) == (1, {"input": 2})
    assert recorder(memory).messages == [HI, HELLO]


@pytest.mark.parametrize("messages", [5, None, [None], "text"])
def test_what_is_no_transcript_is_not_recorded(memory, messages):
    memory.conversations.thread("chat").save({"messages": messages})

    with raises(holdfast.FormatMismatch):
        recorder(memory)
