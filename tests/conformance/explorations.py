"""Explorations: branches that run side by side, their results, and adopting one."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import holdfast
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases


# The functions of branches are the same text for both APIs: over a blocking backend
# nothing that they await suspends.
async def done(result: Any) -> Any:
    """What a method of either API returns."""
    return await result if inspect.isawaitable(result) else result


async def propose(branch: Any) -> None:
    """Each branch saves its own number twice."""
    await done(branch.thread.amend(values={"plan": branch.number}))
    await done(branch.thread.append(messages=[f"by {branch.number}"]))
    branch.spend(tokens=100 * branch.number)


async def by_plan(branch: Any) -> int:
    """The second of three plans is the best."""
    return {1: 5, 2: 9, 3: 1}[(await done(branch.thread.load()))["plan"]]


class ExplorationTests(Cases):
    """What an exploration tries, and in which order it lists the results."""

    def begun(self) -> Any:
        chat = self.thread()
        chat.save({"plan": 0, "messages": ["hi"]})
        return chat

    def test_branches_are_forks_and_are_ranked_by_their_scores(self) -> None:
        chat = self.begun()

        found = chat.explore(propose, n=3, score=by_plan)

        assert [one.number for one in found.branches] == [2, 1, 3]
        assert [one.score for one in found.branches] == [9, 5, 1]
        assert [one.tokens for one in found.branches] == [200, 100, 300]
        assert {one.status for one in found.branches} == {"finished"}
        best = found.best
        assert (best.steps, best.differs) == (2, "~plan, messages +1")
        assert chat.load() == {"plan": 0, "messages": ["hi"]}
        fork = self.thread(best.thread)
        assert fork.load() == {"plan": 2, "messages": ["hi", "by 2"]}
        assert (fork.about.forked_from.thread, fork.about.effects) == ("chat", "deny")

    def test_an_exploration_prints_as_a_table(self) -> None:
        found = self.begun().explore(propose, n=2, score=lambda branch: branch.tokens)

        assert str(found).splitlines() == [
            "#  branch            status    score  steps  tokens  differs",
            "2  chat/explore-1/2  finished  200    2      200     ~plan, messages +1",
            "1  chat/explore-1/1  finished  100    2      100     ~plan, messages +1",
        ]

    def test_a_branch_that_fails_is_one_result_among_others(self) -> None:
        async def fail_once(branch: Any) -> None:
            await propose(branch)
            if branch.number == 1:
                raise ValueError("no such city\nand more")

        found = self.begun().explore(fail_once, n=2, score=by_plan)

        assert [(one.number, one.status) for one in found.branches] == [
            (2, "finished"),
            (1, "failed"),
        ]
        assert found.branches[1].error == "ValueError: no such city"
        assert found.branches[1].score is None
        assert found.branches[1].steps == 2

    def test_a_score_that_is_no_number_fails_its_branch(self) -> None:
        found = self.begun().explore(propose, n=1, score=lambda _: float("nan"))

        assert found.branches[0].status == "failed"
        assert found.best is None
        with raises(NotFound, "no_branch"):
            found.adopt()

    def test_a_function_that_returns_true_is_called_again(self) -> None:
        async def go_on(branch: Any) -> bool:
            made = await done(branch.thread.append(messages=["more"]))
            return made.step < 4

        found = self.begun().explore(go_on, n=1)

        assert (found.best.status, found.best.steps) == ("finished", 3)

    def test_a_budget_ends_a_branch_and_its_state_is_still_scored(self) -> None:
        async def never_done(branch: Any) -> bool:
            await done(branch.thread.append(messages=["more"]))
            branch.spend(tokens=10)
            return True

        chat = self.begun()

        steps = chat.explore(never_done, n=1, steps=3, score=lambda _: 1, name="steps")
        tokens = chat.explore(never_done, n=1, tokens=20, name="tokens")
        time = chat.explore(never_done, n=1, seconds=1e-9, name="time")

        assert (steps.best.status, steps.best.steps, steps.best.score) == (
            "stopped",
            3,
            1,
        )
        assert steps.best.error == "made 3 of 3 steps"
        assert (tokens.best.steps, tokens.best.error) == (2, "used 20 of 20 tokens")
        assert (time.best.steps, time.best.status) == (0, "stopped")

    def test_a_branch_that_has_found_it_stops_the_others(self) -> None:
        async def search(branch: Any) -> bool:
            await done(branch.thread.append(messages=["more"]))
            if branch.number == 2:
                branch.stop_others()
            return branch.number != 2

        found = self.begun().explore(search, n=3, score=lambda branch: branch.number)

        ends = {one.number: (one.status, one.error) for one in found.branches}
        assert ends[2] == ("finished", None)
        assert ends[1] == ends[3] == ("stopped", "stopped by branch 2")

    def test_branches_run_at_the_same_time_unless_told_otherwise(self) -> None:
        running, most, lock = [0], [0], threading.Lock()

        async def count(branch: Any) -> None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            await done(branch.thread.append(messages=["more"]))
            with lock:
                running[0] -= 1

        self.begun().explore(count, n=4, at_once=1)

        assert most == [1]

    def test_the_best_are_kept_and_the_results_of_all(self) -> None:
        chat = self.begun()

        found = chat.explore(propose, n=3, score=by_plan, keep=1)

        names = [one.thread for one in found.branches]
        assert [self.thread(name).about is not None for name in names] == [
            True,
            False,
            False,
        ]
        again = chat.explore(propose, n=3, score=by_plan, keep=1)
        assert again.branches == found.branches

    def test_tools_with_effects_do_not_run_in_a_branch_unless_allowed(self) -> None:
        chat = self.begun()

        found = chat.explore(propose, n=1, effects="run", name="bold")

        assert self.thread(found.best.thread).about.effects == "run"

    def test_an_exploration_that_makes_no_sense_is_refused(self) -> None:
        chat = self.begun()
        before = self.store.changes().cursor

        for wrong in (
            {"n": 0},
            {"n": 101},
            {"n": True},
            {"keep": 0},
            {"steps": "3"},
            {"seconds": 0},
            {"effects": "maybe"},
            {"name": ""},
        ):
            with raises(Unstorable):
                chat.explore(propose, **wrong)
        with raises(TypeError):
            chat.explore(propose, budget=3)
        with raises(NotFound):
            self.thread("nobody").explore(propose)
        assert self.store.changes().cursor == before


class ResumedExplorationTests(Cases):
    """What is recorded of an exploration, and what is not repeated."""

    def test_an_exploration_that_ended_is_not_repeated(self) -> None:
        chat = self.thread()
        chat.save({"plan": 0})
        first = chat.explore(propose, n=2, score=lambda branch: branch.number)
        before = self.store.changes().cursor

        again = chat.explore(self.refuse, n=2)

        assert again.branches == first.branches
        assert self.store.changes().cursor == before

    async def refuse(self, branch: Any) -> None:
        raise AssertionError(f"branch {branch.number} ran again")

    def test_explorations_of_other_heads_have_other_names(self) -> None:
        chat = self.thread()
        chat.save({"plan": 0})
        first = chat.explore(propose, n=1)
        chat.save({"plan": 7})
        second = chat.explore(propose, n=1)
        chat.rewind("@~1")
        chat.save({"plan": 8})
        third = chat.explore(propose, n=1)

        assert [one.name for one in (first, second, third)] == [
            "explore-1",
            "explore-2",
            "explore-2-2",
        ]

    def test_an_exploration_has_as_many_branches_as_it_was_begun_with(self) -> None:
        chat = self.thread()
        chat.save({"plan": 0})
        chat.explore(propose, n=2, name="a")

        with raises(Conflict, "exploration_differs"):
            chat.explore(propose, n=3, name="a")


class AdoptedBranchTests(Cases):
    """Moving the head of a thread to a branch of it."""

    def explored(self) -> tuple[Any, Any]:
        chat = self.thread()
        chat.save({"plan": 0, "messages": []})
        return chat, chat.explore(propose, n=3, score=by_plan)

    def test_adopting_moves_the_head_to_the_best_branch(self) -> None:
        chat, found = self.explored()

        adopted = found.adopt()

        assert adopted.id == chat.head.id == found.best.head
        assert chat.load() == {"plan": 2, "messages": ["by 2"]}
        assert chat.count() == 3
        chat.append(messages=["on"])
        assert chat.load()["messages"] == ["by 2", "on"]
        assert self.thread(found.best.thread).load()["messages"] == ["by 2"]
        assert self.store.verify().ok

    def test_adopting_is_undone_and_redone_like_any_move(self) -> None:
        chat, found = self.explored()
        found.adopt()

        chat.undo()
        assert chat.load() == {"plan": 0, "messages": []}
        chat.redo()
        assert chat.load() == {"plan": 2, "messages": ["by 2"]}
        assert chat.get("@{1}").id == chat.get("@1").id

    def test_the_other_branches_stay_and_are_tagged(self) -> None:
        _, found = self.explored()

        found.adopt(3)

        tags = {one.number: self.thread(one.thread).head.tags for one in found.branches}
        assert tags == {1: ("not-adopted",), 2: ("not-adopted",), 3: ()}

    def test_a_branch_that_saved_nothing_is_not_tagged(self) -> None:
        chat = self.thread()
        chat.save({"plan": 0})
        found = chat.explore(self.only_the_first, n=2)

        found.adopt(1)

        assert chat.get("@~1").tags == ()

    async def only_the_first(self, branch: Any) -> None:
        if branch.number == 1:
            await done(branch.thread.amend(values={"plan": 1}))

    def test_a_head_that_moved_is_not_moved_again(self) -> None:
        chat, found = self.explored()
        chat.amend(values={"mine": 1})

        with raises(Conflict, "head_moved"):
            found.adopt()
        assert chat.load() == {"plan": 0, "messages": [], "mine": 1}
        chat.merge(self.thread(found.best.thread))
        assert chat.load() == {"plan": 2, "messages": ["by 2"], "mine": 1}

    def test_adopting_twice_changes_nothing_more(self) -> None:
        chat, found = self.explored()
        found.adopt()
        moves = len(chat.moves())

        found.adopt()

        assert len(chat.moves()) == moves

    def test_what_was_adopted_outlives_the_threads_of_all_branches(self) -> None:
        chat, found = self.explored()
        found.adopt()

        for one in found.branches:
            self.thread(one.thread).delete()
        chat.prune(holdfast.Retention(last=1))

        assert chat.load() == {"plan": 2, "messages": ["by 2"]}
        assert self.store.verify().ok
