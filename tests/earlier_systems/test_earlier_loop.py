"""What broke in the loops of earlier systems, each mistake by its number."""

from datetime import timedelta

import pytest

import holdfast
from holdfast import HoldfastError, Retention, Unstorable
from holdfast.strategy import after_reply, after_tool_call, every
from holdfast.testing import raises
from inner.messages import NOT_MADE
from support.earlier_systems import watched
from support.programs import run_program
from support.recorders import HELLO, HI, asking, recorder, saves, stored_of
from support.transcripts import DIALECTS, problems


def fail():
    raise HoldfastError("the disk does not answer; look at it", code="io_error")


@pytest.mark.processes
def test_0_14_a_loop_killed_in_the_middle_of_a_run_resumes(tmp_path):
    [report] = run_program("agent_loop", tmp_path, "chat", 75)

    assert report["wrong"] == []
    assert report["killed"] > 12


def test_0_14_a_conversation_that_cannot_be_loaded_is_not_taken_for_empty(memory):
    recorder(memory).llm_response({"role": "assistant", "content": "Hello." * 100})
    store, backend = watched(memory)
    assert len(recorder(store).messages) == 1
    verbs = set(backend.asked)

    for verb in verbs:
        store, backend = watched(memory)
        backend.before[verb] = fail
        with raises(HoldfastError, "io_error"):
            recorder(store)

    assert verbs


def test_2_8_every_saves_once_in_so_many_iterations(store):
    loop = recorder(store, save=every(5))
    for n in range(20):
        loop.iteration()
        loop.llm_response(asking("chat", f"{n}a", f"{n}b"))
        loop.tool_result(f"{n}a", "one")
        loop.tool_result(f"{n}b", "two")

    runs = [store.conversations.load("chat", save).run for save in saves(store)]
    assert [run["iteration"] for run in runs] == [5, 10, 15, 20]


@pytest.mark.parametrize("n", [0, -1])
def test_2_8_every_none_is_refused(n):
    with raises(Unstorable):
        every(n)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_2_9_a_save_within_a_batch_resumes_with_the_calls_left_to_make(
    memory, dialect, done
):
    loop = recorder(memory, save=after_reply() | after_tool_call())
    loop.add(HI)
    loop.llm_response(asking(dialect, "a", "b", "c"))
    for call in loop.open_calls[:done]:
        loop.tool_result(call, "found")

    resumed = recorder(memory)
    left = [call.id for call in resumed.open_calls]
    for call in resumed.open_calls:
        resumed.tool_result(call, "found")

    assert left == ["a", "b", "c"][done:]
    assert problems(stored_of(resumed)) == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("done", [0, 1, 2])
def test_2_9_a_loop_that_goes_on_within_a_batch_has_a_valid_transcript(
    memory, dialect, done
):
    loop = recorder(memory, save=after_reply() | after_tool_call())
    loop.add(HI)
    loop.llm_response(asking(dialect, "a", "b", "c"))
    for call in loop.open_calls[:done]:
        loop.tool_result(call, "found")

    resumed = recorder(memory)
    resumed.add(HI)

    assert resumed.open_calls == []
    assert problems(stored_of(resumed)) == []
    assert str(stored_of(resumed)).count(NOT_MADE) == 3 - done


def test_2_10_a_resumed_loop_goes_on_with_its_count_cost_and_budget(path):
    with holdfast.open(path) as store:
        store.conversations.create("chat", agent="helper", owner="ann", budget=9000)
        loop = recorder(store)
        loop.metadata["task"] = {"step": 1}
        for _ in range(3):
            loop.iteration()
            loop.llm_response(HELLO, usage={"cost": 0.25})

    with holdfast.open(path) as store:
        loop = recorder(store)
        assert loop.iteration() == 4
        loop.llm_response(HELLO, usage={"cost": 0.25})

        found = store.conversations.load("chat")
        assert found.run["iteration"] == 4
        assert loop.usage == found.run["usage"] == {"cost": 1.0}
        assert loop.metadata == found.run["metadata"] == {"task": {"step": 1}}
        assert (found.agent, found.owner, found.budget) == ("helper", "ann", 9000)


def test_2_10_the_system_prompt_is_as_stored_or_as_given(store):
    recorder(store, system="Old.").llm_response(HELLO)

    assert recorder(store).messages[0]["content"] == "Old."
    assert recorder(store, system="New.").messages[0]["content"] == "New."


def test_2_11_an_error_of_a_save_is_raised_and_what_was_told_is_kept(memory):
    store, backend = watched(memory)
    loop = recorder(store)
    backend.before["commit"] = fail

    with raises(HoldfastError, "io_error"):
        loop.llm_response(HELLO)

    assert loop.pending == 1
    loop.save()
    assert memory.conversations.load("chat").messages == [HELLO]


def test_2_11_a_loop_that_runs_long_is_pruned(path):
    keep = Retention(last=3)
    with holdfast.open(path, retention=keep, prune_every=timedelta(0)) as store:
        loop = recorder(store)
        for _ in range(50):
            loop.llm_response(HELLO)

        assert len(saves(store)) <= 4
        assert len(store.conversations.load("chat").messages) == 50
