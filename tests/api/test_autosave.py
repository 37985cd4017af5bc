"""Automatic checkpoints in a thread: what their hook for errors may do."""

from threading import Event

from holdfast import Agent

PATIENCE = 120


def test_the_hook_for_errors_may_stop_the_loop(memory):
    memory.agents.save(Agent(id="a"))
    stopped = Event()
    calls = []

    def stop(agent, error):
        calls.append(agent)
        saving.stop()
        stopped.set()

    saving = memory.agents.autosave("ghost", "a", every=0.001, on_error=stop)
    saving.start()
    assert stopped.wait(PATIENCE)
    saving.stop()

    # Once in the loop, and once for the last checkpoint that stopping takes.
    assert calls == ["ghost", "ghost"]
    assert len(memory.agents.checkpoints("a")) == 1
