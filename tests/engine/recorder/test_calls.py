"""A tool call is made once, whatever happens in between."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import holdfast
from holdfast import Conflict, NotFound, Store, Unstorable
from holdfast.strategy import before
from holdfast.testing import raises
from support.earlier_systems import watched
from support.effort import THOROUGH
from support.programs import run_program
from support.recorders import HI, Tool, asking, called, messages_of, recorder, saves
from support.transcripts import DIALECTS


def test_a_call_runs_once_however_often_it_is_asked_for(store):
    told, tool = called(store), Tool({"n": 1})

    results = [
        told.call("a", tool),
        told.call(told.open_calls[0], tool),
        recorder(store, repair=None).call("a", tool),
    ]

    assert results == [{"n": 1}] * 3
    assert tool.ran == 1


def test_a_tool_gets_the_arguments_of_the_call(memory):
    told = recorder(memory)
    entry = {"id": "a", "function": {"name": "add", "arguments": '{"x": 1, "y": 2}'}}
    told.llm_response({"role": "assistant", "tool_calls": [entry]})

    assert told.call(entry, lambda x, y: x + y) == 3


def test_what_led_to_a_call_is_durable_before_it_runs(store):
    told = called(store)
    seen = []

    def look(n):
        seen.append(len(memory_of(store)))

    told.call("a", look)

    assert seen == [2]


def memory_of(store):
    """Through another door, since this may run in the event loop of the first."""
    context = getattr(store, "_target", store).runner.context
    return Store(context).conversations.recorder("chat", repair=None).messages


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_a_call_that_was_interrupted_is_not_run_again_unasked(memory, end):
    told = called(memory)
    with pytest.raises(end):
        told.call("a", Tool(end()))
    told, tool = recorder(memory, repair=None), Tool()

    with raises(Conflict, "call_interrupted") as refused:
        told.call("a", tool)

    assert "again=True" in str(refused.error)
    assert "resolve('a'" in str(refused.error)
    assert tool.ran == 0
    [call] = told.interrupted()
    assert (call.id, call.name, call.arguments) == ("a", "look", {"n": 0})
    assert told.call("a", tool, again=True) == "found"
    assert told.interrupted() == []


def test_an_interrupted_call_can_be_resolved(memory):
    told = called(memory)
    with pytest.raises(KeyboardInterrupt):
        told.call("a", Tool(KeyboardInterrupt()))
    tool = Tool()

    assert told.resolve("a", "it was done") == "it was done"

    assert told.call("a", tool) == "it was done"
    assert told.resolve("a", "no") == "it was done"
    assert (tool.ran, told.interrupted()) == (0, [])


@pytest.mark.parametrize("repair", ["drop", "propose", "interrupted"])
def test_an_interrupted_call_is_known_after_a_repair(memory, repair):
    told = called(memory)
    with pytest.raises(KeyboardInterrupt):
        told.call("a", Tool(KeyboardInterrupt()))

    told = recorder(memory, repair=repair)

    assert [call.arguments for call in told.interrupted()] == [{"n": 0}]
    told.save()
    told.resolve("a", "it was done")
    assert recorder(memory).interrupted() == []


def test_a_proposed_call_that_was_interrupted_is_still_the_same_call(memory):
    told = called(memory)
    with pytest.raises(KeyboardInterrupt):
        told.call("a", Tool(KeyboardInterrupt()))
    told = recorder(memory, repair="propose")
    [repair] = told.repairs
    told.llm_response(repair.message)

    with raises(Conflict, "call_interrupted"):
        told.call("a", Tool())


def test_a_call_nobody_began_can_be_resolved(memory):
    told = called(memory)
    told.resolve("a", "by hand")

    assert told.call("a", Tool()) == "by hand"
    with raises(NotFound):
        told.resolve("nobody", 1)


def test_a_call_that_raised_may_run_again(store):
    told = called(store)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            told.call("a", Tool(ZeroDivisionError()))
    told, tool = recorder(store, repair=None), Tool()

    assert told.interrupted() == []
    assert told.call("a", tool) == "found"


@pytest.mark.parametrize(
    "other",
    [
        {"id": "a", "name": "look", "arguments": {"n": 1}},
        {"id": "a", "name": "leap", "arguments": {"n": 0}},
    ],
)
def test_an_id_belongs_to_one_call(store, other):
    told = called(store)
    told.call("a", Tool())

    with raises(Conflict, "call_differs"):
        told.call(other, Tool())


def test_the_order_of_arguments_makes_no_other_call(memory):
    told = recorder(memory)
    told.call({"id": "a", "name": "f", "arguments": {"x": 1, "y": 2}}, Tool())

    tool = Tool()
    assert (
        told.call({"id": "a", "name": "f", "arguments": {"y": 2, "x": 1}}, tool)
        == "found"
    )
    assert tool.ran == 0


def test_arguments_need_not_be_json(memory):
    told, tool = recorder(memory), Tool()
    call = {"id": "a", "name": "f", "arguments": {"x": {1, 2}, "y": (3,)}}

    assert [told.call(call, tool), told.call(call, tool)] == ["found", "found"]
    assert tool.ran == 1


def test_a_call_need_not_be_in_the_transcript(memory):
    told = recorder(memory)
    call = {"id": "step", "name": "deploy", "arguments": {}}
    memory.conversations.thread("chat").record("something else", 1)
    with pytest.raises(KeyboardInterrupt):
        told.call(call, Tool(KeyboardInterrupt()))

    assert [(c.id, c.name) for c in told.interrupted()] == [("step", "deploy")]
    told.resolve(call, "deployed")
    assert told.call(call, Tool()) == "deployed"


def test_ids_that_a_model_uses_every_turn_are_other_calls(store):
    told, tool = recorder(store), Tool()
    for _ in range(3):
        told.llm_response(asking("chat", "call_0"))
        told.tool_result("call_0", told.call("call_0", tool))

    assert tool.ran == 3


def test_of_two_workers_one_runs_a_call(path):
    with holdfast.open(path) as here, holdfast.open(path) as there:
        called(here).save()
        workers = [recorder(store, repair=None) for store in (here, there) * 2]
        tool, ready = Tool(), Barrier(len(workers))

        def work(worker):
            ready.wait()
            try:
                return worker.call("a", tool)
            except Conflict as conflict:
                return conflict.code

        with ThreadPoolExecutor(len(workers)) as pool:
            outcomes = list(pool.map(work, workers))

        assert tool.ran == 1
        assert set(outcomes) <= {"found", "call_interrupted"}
        assert "found" in outcomes


def test_a_result_that_cannot_be_stored_leaves_the_call_to_be_resolved(memory):
    told = called(memory)
    with raises(Unstorable):
        told.call("a", Tool(object()))

    with raises(Conflict, "call_interrupted"):
        told.call("a", Tool())

    told.resolve("a", "found")
    assert told.call("a", Tool()) == "found"


def test_a_result_that_could_not_be_journalled_is_not_lost(memory):
    store, backend = watched(memory)
    told, tool = called(store), Tool()
    told.save()

    def fail():
        raise holdfast.HoldfastError("no room", code="disk_full")

    def run(**arguments):
        backend.before["commit"] = fail
        return tool()

    with raises(holdfast.HoldfastError, "disk_full"):
        told.call("a", run)

    assert told.call("a", run) == "found"
    assert tool.ran == 1
    assert recorder(memory, repair=None).call("a", tool) == "found"


def test_a_tools_own_error_is_raised_even_if_it_cannot_be_journalled(memory):
    store, backend = watched(memory)
    told = called(store)
    told.save()

    def fail():
        raise holdfast.HoldfastError("no room", code="disk_full")

    def run(**arguments):
        backend.before["commit"] = fail
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        told.call("a", run)

    assert "no room" in raised.value.__notes__[0]


def test_arguments_that_are_no_object_reach_no_tool(memory):
    told, tool = recorder(memory), Tool()
    entry = {"id": "a", "function": {"name": "look", "arguments": '{"n": '}}
    told.llm_response({"role": "assistant", "tool_calls": [entry]})

    with raises(Unstorable) as refused:
        told.call("a", tool)

    assert "tool_result" in str(refused.error)
    assert tool.ran == 0


def test_something_that_is_no_call_is_refused(memory):
    with raises(Unstorable):
        recorder(memory).call({"name": "look"}, Tool())


@pytest.mark.parametrize("id_", ["x" * 5_000, "日" * 400, "a\0b", "\ud800"])
def test_any_id_can_be_called(memory, id_):
    told, tool = recorder(memory), Tool()
    call = {"id": id_, "name": "look", "arguments": {}}

    assert [told.call(call, tool), told.call(call, tool)] == ["found", "found"]
    assert tool.ran == 1


def test_a_blocking_recorder_runs_no_coroutine(memory):
    told = called(memory)

    async def look(n):
        return n

    with raises(Unstorable):
        told.call("a", look)


class Later:
    """What can be awaited and is no coroutine, such as a future."""

    def __await__(self):
        yield


def test_a_tool_that_returns_a_future_is_refused_by_the_sync_api(memory):
    told = called(memory)

    with raises(Unstorable) as refused:
        told.call("a", Tool(Later()))

    assert "open_async()" in str(refused.error)


def test_a_late_failure_does_not_end_the_attempt_after_it(memory):
    told = called(memory)

    def fail_late(n):
        other = recorder(memory, repair=None)
        with pytest.raises(KeyboardInterrupt):
            other.call("a", Tool(KeyboardInterrupt()), again=True)
        raise ValueError("the first attempt")

    with pytest.raises(ValueError, match="the first attempt"):
        told.call("a", fail_late)

    assert [call.id for call in told.interrupted()] == ["a"]
    with raises(Conflict, "call_interrupted"):
        told.call("a", Tool())


def test_each_of_several_calls_that_were_dropped_can_be_resolved(memory):
    told = recorder(memory, repair=None)
    told.add(HI)
    told.llm_response(asking("chat", "a", "b"))
    told.save()
    dropped = recorder(memory, repair="drop")
    assert [repair.call_id for repair in dropped.repairs] == ["a", "b"]

    assert dropped.resolve("b", "second") == "second"

    assert recorder(memory, repair=None).call("b", Tool()) == "second"
    with raises(NotFound):
        dropped.resolve("c", "third")


# --- before an operation --------------------------------------------------------------


def test_a_checkpoint_is_made_before_a_named_tool(store):
    told = recorder(store, save=before("look"))
    told.llm_response(asking("chat", "a"))
    told.tool_call("a")
    told.tool_call({"id": "z", "name": "other", "arguments": {}})

    [save] = saves(store)
    assert (save.kind, save.label) == ("pre_operation", "look")
    assert len(messages_of(store, save)) == 1


def test_a_call_makes_its_checkpoint_once(store):
    told = recorder(store, save=before("look"))
    told.llm_response(asking("chat", "a"))
    told.call("a", lambda n: "found")
    told.call("a", lambda n: "found")

    assert [save.kind for save in saves(store)] == ["pre_operation"]


def test_an_agent_is_checkpointed_with_all_its_conversations(store):
    store.agents.save(holdfast.agents.Agent(id="helper"))
    store.conversations.create("other", agent="helper", messages=[HI])
    told = recorder(store, save=before("look"), agent="helper")
    told.llm_response(asking("chat", "a"))
    told.tool_call("a")

    [checkpoint] = store.agents.checkpoints("helper")
    assert (checkpoint.kind, checkpoint.name) == ("pre_operation", "look")
    assert (checkpoint.conversations, checkpoint.messages) == (2, 2)


def test_an_agent_is_checkpointed_without_saving_what_is_saved(store):
    store.agents.save(holdfast.agents.Agent(id="helper"))
    told = recorder(store, save=before("look"), agent="helper")
    told.llm_response(asking("chat", "a"))
    saved = told.save()
    told.tool_call("a")

    assert [save.id for save in saves(store)] == [saved.id]
    [checkpoint] = store.agents.checkpoints("helper")
    assert checkpoint.messages == 1


def test_an_agent_that_was_never_saved_has_no_checkpoints(store):
    told = recorder(store, save=before("look"), agent="nobody")
    told.llm_response(asking("chat", "a"))
    told.tool_call("a")

    assert saves(store)[-1].kind == "pre_operation"


# --- killed ---------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_loop_killed_anywhere_resumes_and_runs_every_tool_once(dialect, tmp_path):
    [report] = run_program("agent_loop", tmp_path, dialect, 1 if THOROUGH else 18)

    assert report["wrong"] == []
    assert report["killed"] > 20
