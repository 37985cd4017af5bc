"""Effects survive a rewind, a fork, a restore, a prune and a copy."""

from __future__ import annotations

import io
from datetime import timedelta
from functools import cached_property
from typing import Any

import holdfast
from holdfast.errors import Conflict, Unstorable
from holdfast.retention import Retention
from holdfast.testing import raises
from holdfast.testing.conformance.archive import exported
from holdfast.testing.conformance.cases import Cases
from support.payments import World, asking_to_pay, make, pay

ASKED = {"role": "user", "content": "Pay Bob 500."}


class Killed(BaseException):
    """The process died here."""


class PaymentCases(Cases):
    """A conversation in which Bob was asked to be paid, at the label ``asked``."""

    @cached_property
    def bank(self) -> World:
        """The world of this test."""
        return World()

    def run(self, id_: str = "c", **options: Any) -> Any:
        options.setdefault("tools", self.bank.tools())
        return self.store.conversations.recorder(id_, **options)

    def asked(self, **options: Any) -> Any:
        run = self.run(**options)
        run.add(ASKED)
        run.save(label="asked")
        return run

    def paid(self, **options: Any) -> Any:
        """As `asked`, then paid with the reference a1."""
        run = self.asked(**options)
        pay(run, "call-1", "a1")
        run.save()
        return run

    @property
    def references(self) -> list[str]:
        """The references of the payments that were made."""
        return [ref for _, _, ref in self.bank.paid]

    def killed_paying(self, run: Any, call: str, ref: str) -> None:
        """The process dies within a payment, after it was made."""

        @holdfast.once
        def dying(to: str, amount: int, ref: str) -> None:
            self.bank.paid.append((to, amount, ref))
            raise Killed

        run.llm_response(asking_to_pay(call, ref))
        with raises(Killed):
            run.call(call, dying)


class RewoundEffectTests(PaymentCases):
    """A call that means an effect which a rewind has left behind."""

    def test_a_payment_is_not_made_again_after_a_rewind(self) -> None:
        run = self.paid()
        run.resume(at="label:asked")

        assert pay(run, "call-2", "f9") == {"receipt": "a1"}

        assert self.references == ["a1"]
        [taken_over] = self.store.conversations.thread("c").effects()
        assert (taken_over.call_id, taken_over.result) == ("call-2", {"receipt": "a1"})
        assert taken_over.replays == ("conversation:c", "0:call-1", 1)

    def test_the_same_holds_after_a_rewind_of_the_thread(self) -> None:
        self.paid()
        self.store.conversations.thread("c").rewind("label:asked")
        run = self.run()

        assert pay(run, "call-2", "f9") == {"receipt": "a1"}

        assert self.references == ["a1"]

    def test_an_id_that_a_model_uses_again_is_not_the_same_call(self) -> None:
        run = self.paid(effects="refuse")
        run.resume(at="label:asked")
        run.llm_response(asking_to_pay("call-1", "a1", to="eve"))
        make(run, "call-1")
        run.resume(at="label:asked", discard=True)
        run.llm_response(asking_to_pay("call-1", "b2"))

        with raises(Conflict, "effect_happened"):
            run.call("call-1")

        assert [to for to, _, _ in self.bank.paid] == ["bob", "eve"]

    def test_an_effect_can_be_refused(self) -> None:
        run = self.paid(effects="refuse")
        run.resume(at="label:asked")
        run.llm_response(asking_to_pay("call-2", "f9"))

        with raises(Conflict, "effect_happened") as refused:
            run.call("call-2")

        assert "call-1" in str(refused.error)
        assert "a1" in str(refused.error)
        assert run.resolve("call-2", {"receipt": "a1"}) == {"receipt": "a1"}
        assert run.messages[-1]["tool_call_id"] == "call-2"
        assert self.references == ["a1"]

    def test_an_effect_can_be_repeated_knowingly(self) -> None:
        run = self.paid(effects="run")
        run.resume(at="label:asked")

        assert pay(run, "call-2", "f9") == {"receipt": "f9"}

        assert self.references == ["a1", "f9"]

    def test_a_tool_can_declare_its_policy(self) -> None:
        run = self.paid(tools=self.bank.tools(policy="refuse"))
        run.resume(at="label:asked")
        run.llm_response(asking_to_pay("call-2", "f9"))

        with raises(Conflict, "effect_happened"):
            run.call("call-2")

    def test_two_equal_orders_placed_on_purpose_stay_two(self) -> None:
        run = self.paid()
        pay(run, "call-2", "a2")
        run.save()
        run.resume(at="label:asked")

        taken_over = [pay(run, f"call-{n}", f"b{n}") for n in (3, 4)]
        assert taken_over == [{"receipt": "a1"}, {"receipt": "a2"}]
        assert pay(run, "call-5", "b5") == {"receipt": "b5"}

        assert self.references == ["a1", "a2", "b5"]

    def test_equal_calls_on_one_line_are_simply_two_calls(self) -> None:
        run = self.paid()

        assert pay(run, "call-2", "a2") == {"receipt": "a2"}

        assert self.references == ["a1", "a2"]

    def test_another_decision_is_what_rewinding_is_for(self) -> None:
        run = self.paid()
        run.resume(at="label:asked")

        pay(run, "call-2", "f9", to="eve")
        pay(run, "call-3", "f9", amount=5)

        assert self.references == ["a1", "f9", "f9"]

    def test_a_declared_key_decides_what_is_the_same(self) -> None:
        tools = self.bank.tools(key=("to",))
        run = self.paid(tools=tools)
        run.resume(at="label:asked")

        assert pay(run, "call-2", "f9", amount=7) == {"receipt": "a1"}

    def test_equal_arguments_come_before_the_order_of_effects(self) -> None:
        run = self.asked()
        first = "019a86b5-2f40-7008-8000-0004f1bbcd88"
        second = "019a86b5-2f40-7008-8000-0004f1bbcd99"
        pay(run, "call-1", "r", to=first)
        pay(run, "call-2", "s", to=second)
        run.save()
        run.resume(at="label:asked")

        assert pay(run, "call-3", "s", to=second) == {"receipt": "s"}
        assert pay(run, "call-4", "x", to=first) == {"receipt": "r"}

    def test_an_effect_on_a_line_that_was_taken_up_again_is_there(self) -> None:
        run = self.paid()
        paid = run.checkpoint
        run.resume(at="label:asked")
        run.resume(at=paid, discard=True)

        assert pay(run, "call-2", "a2") == {"receipt": "a2"}

    def test_a_call_that_failed_is_no_effect(self) -> None:
        run = self.asked()
        run.llm_response(asking_to_pay("call-1", "a1"))

        def fail(**arguments: object) -> None:
            raise ValueError("no money")

        with raises(ValueError):
            run.call("call-1", fail)
        run.resume(at="label:asked", discard=True)

        assert pay(run, "call-2", "f9") == {"receipt": "f9"}

    def test_what_is_unknown_is_not_repeated_by_any_policy_but_run(self) -> None:
        self.killed_paying(self.asked(), "call-1", "a1")
        for policy in ("replay", "refuse"):
            run = self.run(effects=policy)
            run.resume(at="label:asked", discard=True)
            run.llm_response(asking_to_pay("call-2", "f9"))

            with raises(Conflict, "call_interrupted"):
                run.call("call-2")

        assert self.references == ["a1"]
        run = self.run(effects="run")
        run.resume(at="label:asked", discard=True)
        assert pay(run, "call-3", "f9") == {"receipt": "f9"}

    def test_what_is_unknown_can_be_resolved_on_the_new_line(self) -> None:
        run = self.asked()
        self.killed_paying(run, "call-1", "a1")
        run = self.run()
        run.resume(at="label:asked", discard=True)
        run.llm_response(asking_to_pay("call-2", "f9"))

        run.resolve("call-2", {"receipt": "a1"})

        assert run.messages[-1]["content"] == '{"receipt":"a1"}'
        assert run.call("call-2") == {"receipt": "a1"}

    def test_repeatable_tools_run_whenever_they_are_called(self) -> None:
        run = self.asked()
        function = {"name": "look", "arguments": "{}"}
        call = {"id": "call-1", "type": "function", "function": function}
        run.llm_response({"role": "assistant", "content": None, "tool_calls": [call]})

        assert [run.call("call-1"), run.call("call-1")] == [1, 2]
        assert self.store.conversations.thread("c").effects() == []


class ForkedEffectTests(PaymentCases):
    """Effects on another fork of the family."""

    def test_a_fork_takes_over_what_its_origin_did(self) -> None:
        self.paid()
        self.fork()

        assert pay(self.run("f"), "call-9", "f9") == {"receipt": "a1"}

        assert self.references == ["a1"]

    def fork(self, **options: Any) -> None:
        thread = self.store.conversations.thread("c")
        thread.fork("conversation:f", "label:asked", **options)

    def test_a_fork_may_run_them_again(self) -> None:
        self.paid()
        self.fork(effects="run")

        assert pay(self.run("f"), "call-9", "f9") == {"receipt": "f9"}

    def test_a_fork_may_be_denied_any_effect(self) -> None:
        self.paid()
        self.fork(effects="deny")
        run = self.run("f", effects="run")
        run.llm_response(asking_to_pay("call-9", "f9", to="eve"))

        with raises(Conflict, "effect_denied"):
            run.call("call-9")

        assert self.references == ["a1"]

    def test_a_fork_of_a_fork_inherits_the_policy(self) -> None:
        self.paid()
        self.fork(effects="deny")
        forked = self.store.thread("conversation:f")
        forked.describe(metadata={"why": "a trial"})
        forked.fork("conversation:g")

        run = self.run("g")
        run.llm_response(asking_to_pay("call-9", "f9"))

        with raises(Conflict, "effect_denied"):
            run.call("call-9")
        shown = {t.id: (t.effects, t.metadata) for t in self.store.threads()}
        assert shown["conversation:g"] == ("deny", {"why": "a trial"})
        assert shown["conversation:c"] == (None, {})

    def test_an_unknown_policy_is_refused(self) -> None:
        self.paid()

        with raises(Unstorable):
            self.fork(effects="perhaps")

    def test_a_fork_with_the_request_has_the_very_call(self) -> None:
        run = self.asked(effects="refuse")
        run.llm_response(asking_to_pay("call-1", "a1"))
        run.save(label="requested")
        make(run, "call-1")
        run.save()
        thread = self.store.conversations.thread("c")
        thread.fork("conversation:f", "label:requested")

        forked = self.run("f", effects="refuse")

        assert [call.id for call in forked.open_calls] == ["call-1"]
        assert make(forked, "call-1") == {"receipt": "a1"}
        assert self.references == ["a1"]

    def test_a_fork_knows_that_a_call_of_its_origin_began_and_did_not_end(
        self,
    ) -> None:
        run = self.asked()
        self.killed_paying(run, "call-1", "a1")
        run.save(label="requested")
        thread = self.store.conversations.thread("c")
        thread.fork("conversation:f", "label:requested")
        thread.fork("conversation:g", "label:requested", effects="run")

        forked, free = self.run("f"), self.run("g")

        assert [call.id for call in forked.open_calls] == []
        assert [call.id for call in forked.interrupted()] == ["call-1"]
        with raises(Conflict, "call_interrupted"):
            forked.call("call-1")
        assert forked.resolve("call-1", {"receipt": "a1"}) == {"receipt": "a1"}
        assert forked.interrupted() == []
        assert [call.id for call in free.open_calls] == ["call-1"]
        assert free.interrupted() == []


class MergedEffectTests(PaymentCases):
    """Effects of a fork that was merged."""

    def fork_of_talk(self, name: str = "f") -> Any:
        """The thread of a new fork of ``c``, at its head."""
        return self.forked_talk("c").fork(f"conversation:{name}")

    def forked_talk(self, id_: str) -> Any:
        return self.store.conversations.thread(id_)

    def pay_and_save(self, id_: str, call: str, ref: str, **arguments: Any) -> Any:
        run = self.run(id_)
        result = pay(run, call, ref, **arguments)
        run.save()
        return result

    def calls_on_line(self, id_: str = "c", **options: Any) -> list[str]:
        return [effect.call_id for effect in self.forked_talk(id_).effects(**options)]

    def merged_payment(self) -> Any:
        """A conversation that has merged a fork which paid Bob."""
        self.asked()
        fork = self.fork_of_talk()
        self.pay_and_save("f", "call-1", "a1")
        self.forked_talk("c").merge(fork)
        return self.forked_talk("c")

    def test_what_a_merged_fork_paid_is_on_the_line(self) -> None:
        self.merged_payment()

        assert self.calls_on_line() == ["call-1"]
        assert self.calls_on_line(left_behind=True) == []
        assert self.pay_and_save("c", "call-2", "a2") == {"receipt": "a2"}
        assert self.references == ["a1", "a2"]
        assert self.run().compensate().undone == ()

    def test_rewound_to_before_the_merge_it_is_left_behind_again(self) -> None:
        chat = self.merged_payment()
        after = chat.head

        chat.rewind("label:asked")

        assert self.calls_on_line(left_behind=True) == ["call-1"]
        assert self.pay_and_save("c", "call-2", "f9") == {"receipt": "a1"}
        chat.rewind(after)
        assert self.calls_on_line() == ["call-1"]

    def test_a_fork_and_a_merge_of_what_was_merged_have_it(self) -> None:
        self.asked()
        other = self.fork_of_talk("g")
        self.fork_of_talk("f")
        self.pay_and_save("f", "call-1", "a1")
        other.merge(self.forked_talk("f"))

        self.forked_talk("c").merge(other)
        self.forked_talk("c").fork("conversation:h")

        assert (
            self.calls_on_line("h")
            == self.calls_on_line()
            == self.calls_on_line("g")
            == ["call-1"]
        )
        assert self.pay_and_save("h", "call-2", "a2") == {"receipt": "a2"}

    def test_lines_that_merge_one_another_again_and_again_have_all(self) -> None:
        self.asked()
        self.fork_of_talk("f")
        for n in range(12):
            self.pay_and_save("f", f"call-{n}", f"a{n}")
            self.forked_talk("c").merge(self.forked_talk("f"))
            self.run("c").add({"role": "user", "content": f"And {n}?"})
            self.run("c").save()
            self.forked_talk("f").merge(self.forked_talk("c"))

        assert (
            self.calls_on_line()
            == self.calls_on_line("f")
            == [f"call-{n}" for n in range(12)]
        )

    def test_what_the_fork_pays_later_is_not_on_the_line(self) -> None:
        self.merged_payment()
        self.pay_and_save("f", "call-2", "a2", to="eve")

        assert self.calls_on_line() == ["call-1"]
        assert self.calls_on_line(left_behind=True) == ["call-2"]

    def test_a_call_that_ends_after_the_merge_is_on_the_line(self) -> None:
        self.asked()
        fork = self.fork_of_talk()
        run = self.run("f")
        run.llm_response(asking_to_pay("call-1", "a1"))
        run.save()
        self.forked_talk("c").merge(fork)
        make(run, "call-1")

        assert self.calls_on_line() == ["call-1"]
        assert make(self.run(), "call-1") == {"receipt": "a1"}
        assert self.references == ["a1"]

    def test_pruning_what_was_merged_does_not_leave_it_behind(self) -> None:
        self.asked()
        fork = self.fork_of_talk()
        self.pay_and_save("f", "call-1", "a1")
        self.forked_talk("c").merge(fork)
        self.pay_and_save("f", "call-2", "a2", to="eve")
        self.pay_and_save("c", "call-3", "a3", to="ann")
        self.store.prune(Retention(last=1, labelled=False))
        assert self.calls_on_line() == ["call-1", "call-3"]
        assert self.calls_on_line("f") == ["call-1", "call-2"]

        self.pay_and_save("c", "call-4", "a4", to="zoe")
        self.store.prune(Retention(last=1, labelled=False))

        assert self.calls_on_line() == ["call-1", "call-3", "call-4"]
        assert self.pay_and_save("c", "call-5", "a5") == {"receipt": "a5"}

    def test_removing_the_end_of_a_merged_fork_does_not_either(self) -> None:
        self.asked()
        fork = self.fork_of_talk()
        self.pay_and_save("f", "call-1", "a1")
        paid = fork.head
        run = self.run("f")
        run.add({"role": "user", "content": "Thanks."})
        run.save()
        self.forked_talk("c").merge(fork)

        fork.rewind(paid, hard=True)

        assert self.calls_on_line() == ["call-1"]
        fork.rewind("label:asked", hard=True)
        assert self.calls_on_line() == ["call-1"]

    def test_deleting_the_thread_that_merged_leaves_its_forks_the_merge(self) -> None:
        self.merged_payment().fork("conversation:h")

        self.store.conversations.delete("c")

        assert self.calls_on_line("h") == ["call-1"]

    def test_an_archive_has_the_merge(self) -> None:
        self.merged_payment()
        archive = io.BytesIO(exported(self.store))
        with holdfast.open(":memory:") as other:
            other.import_archive(archive)
            assert len(other.conversations.thread("c").effects()) == 1

    def test_restoring_an_agent_knows_what_was_merged(self) -> None:
        agents = self.store.agents
        agents.save(holdfast.Agent(id="shop"))
        self.asked(agent="shop")
        before = agents.checkpoint("shop")
        fork = self.fork_of_talk()
        self.pay_and_save("f", "call-1", "a1")
        self.forked_talk("c").merge(fork)
        after = agents.checkpoint("shop")

        agents.restore("shop", before)

        assert self.calls_on_line(left_behind=True) == ["call-1"]
        agents.restore("shop", after)
        assert self.calls_on_line() == ["call-1"]
        assert self.calls_on_line(left_behind=True) == []


class KeptEffectTests(PaymentCases):
    """The ledger outlives the checkpoints that its effects belong to."""

    def test_pruning_does_not_make_a_line_forget_its_effects(self) -> None:
        run = self.paid()
        for n in range(5):
            run.add({"role": "user", "content": f"And {n}?"})
            run.save()
        self.store.prune(Retention(last=1, labelled=False))

        run = self.run()
        assert pay(run, "call-2", "a2") == {"receipt": "a2"}
        assert self.references == ["a1", "a2"]

    def test_pruning_twice_does_not_either(self) -> None:
        run = self.paid()
        for n in range(3):
            run.add({"role": "user", "content": f"And {n}?"})
            run.save()
            run.add({"role": "user", "content": "So?"})
            run.save()
            self.store.prune(Retention(last=1, labelled=False))

        assert [e.call_id for e in self.effects()] == ["call-1"]
        assert pay(self.run(), "call-2", "a2") == {"receipt": "a2"}

    def effects(self, **options: Any) -> list[holdfast.Effect]:
        return self.store.conversations.thread("c").effects(**options)

    def test_an_effect_whose_checkpoints_are_gone_is_still_left_behind(
        self,
    ) -> None:
        run = self.paid()
        run.resume(at="label:asked")
        run.add({"role": "user", "content": "Go on."})
        run.save()
        self.store.prune(Retention(last=1))

        assert [e.call_id for e in self.effects(left_behind=True)] == ["call-1"]
        assert pay(self.run(), "call-2", "f9") == {"receipt": "a1"}

    def test_the_ledger_has_an_age_of_its_own(self) -> None:
        run = self.paid()
        self.killed_paying(run, "call-2", "b1")
        self.clock.advance(timedelta(hours=2))
        pay(self.run(), "call-3", "c1", to="eve")
        self.run().resume(at="label:asked", discard=True)

        self.store.prune(Retention(effects=timedelta(hours=3)))
        assert len(self.effects(left_behind=True)) == 3
        self.store.prune(Retention(effects=timedelta(hours=1)))

        left = self.effects(left_behind=True)
        assert [(e.call_id, e.status) for e in left] == [
            ("call-2", "unknown"),
            ("call-3", "completed"),
        ]
        keys = self.store.conversations.thread("c").journal()
        assert not [key for key in keys if "call-1" in key]

    def test_a_hard_rewind_leaves_effects_behind_too(self) -> None:
        self.paid()
        self.store.conversations.thread("c").rewind("label:asked", hard=True)

        assert pay(self.run(), "call-2", "f9") == {"receipt": "a1"}

    def test_an_archive_has_the_ledger(self) -> None:
        run = self.paid()
        run.resume(at="label:asked")
        archive = io.BytesIO(exported(self.store))
        with holdfast.open(":memory:") as other:
            other.import_archive(archive)
            run = other.conversations.recorder("c", tools=self.bank.tools())
            assert pay(run, "call-2", "f9") == {"receipt": "a1"}
        assert self.references == ["a1"]

    def test_deleting_a_thread_removes_its_own_effects(self) -> None:
        self.paid()
        thread = self.store.conversations.thread("c")
        thread.fork("conversation:f", "label:asked")
        self.store.conversations.delete("c")

        forked = self.store.thread("conversation:f")
        assert forked.effects(left_behind=True) == []

    def test_effects_are_listed_by_line(self) -> None:
        run = self.paid()
        pay(run, "call-2", "a2", to="eve")
        second = run.save()

        assert [e.call_id for e in self.effects()] == ["call-1", "call-2"]
        assert [e.arguments["to"] for e in self.effects(since="label:asked")] == [
            "bob",
            "eve",
        ]
        assert self.effects(since=second) == []
        assert self.effects(at="label:asked") == []
        assert self.effects(left_behind=True) == []
        run.resume(at="label:asked")
        assert self.effects() == []
        behind = self.effects(left_behind=True)
        assert [(e.status, e.result) for e in behind] == [
            ("completed", {"receipt": "a1"}),
            ("completed", {"receipt": "a2"}),
        ]


class ToldEffectTests(PaymentCases):
    """Going back tells which effects it leaves behind."""

    def test_the_model_is_told_what_stays_in_force(self) -> None:
        run = self.paid()
        run.resume(at="label:asked")

        [effect] = run.left_behind
        assert (effect.tool, effect.arguments["to"]) == ("pay", "bob")
        [asked, note] = run.messages
        assert (asked, note["role"]) == (ASKED, "user")
        assert "pay" in note["content"]
        assert "a1" in note["content"]

    def test_it_is_told_once(self) -> None:
        run = self.paid()
        run.resume(at="label:asked")
        pay(run, "call-2", "f9")
        run.save()

        assert str(self.run().messages).count("from an earlier point") == 1

    def test_it_is_not_told_if_that_is_not_wanted(self) -> None:
        run = self.paid()
        run.resume(at="label:asked", tell=False)

        assert run.messages == [ASKED]
        assert len(run.left_behind) == 1

    def test_it_is_told_before_calls_that_are_still_open(self) -> None:
        run = self.asked()
        run.llm_response(asking_to_pay("call-1", "a1", to="eve"))
        run.save(label="open")
        run.tool_result("call-1", "not now")
        pay(run, "call-2", "a2")
        run.save()
        run.resume(at="label:open")

        assert [m["role"] for m in run.messages] == ["user", "user", "assistant"]
        assert [call.id for call in run.open_calls] == ["call-1"]

    def test_a_recorder_that_opens_after_a_rewind_is_told(self) -> None:
        self.paid()
        self.store.conversations.thread("c").rewind("label:asked")

        run = self.run()

        assert [effect.call_id for effect in run.left_behind] == ["call-1"]
        assert "from an earlier point" in str(run.messages)


class UndoneEffectTests(PaymentCases):
    """Undoing what was left behind."""

    def test_effects_left_behind_are_undone_newest_first(self) -> None:
        run = self.paid()
        pay(run, "call-2", "a2", to="eve")
        run.save()

        run.resume(at="label:asked", compensate=True)

        assert self.bank.cancelled == ["a2", "a1"]
        assert run.left_behind == ()
        assert run.messages == [ASKED]
        assert pay(run, "call-3", "f9") == {"receipt": "f9"}

    def test_what_has_no_undo_is_listed(self) -> None:
        run = self.paid(tools=self.bank.tools(undo=None))
        run.resume(at="label:asked")

        found = run.compensate()

        assert [e.call_id for e in found.kept] == ["call-1"]
        assert (found.undone, found.unknown) == ((), ())

    def test_an_undo_is_not_repeated(self) -> None:
        run = self.paid()
        run.resume(at="label:asked")

        assert [e.call_id for e in run.compensate().undone] == ["call-1"]
        assert run.compensate().undone == ()

        assert self.bank.cancelled == ["a1"]

    def test_an_undo_that_raised_may_be_tried_again(self) -> None:
        run = self.paid(tools=self.bank.tools(undo=self.fail_once))
        run.resume(at="label:asked")
        with raises(ValueError):
            run.compensate()

        assert [e.call_id for e in run.compensate().undone] == ["call-1"]

    failed = False

    def fail_once(self, effect: holdfast.Effect) -> None:
        if not self.failed:
            self.failed = True
            raise ValueError("try again")

    def test_a_kill_within_an_undo_leaves_it_unknown(self) -> None:
        run = self.paid()
        pay(run, "call-2", "a2", to="eve")
        run.save()

        def die(effect: holdfast.Effect) -> None:
            raise Killed

        run = self.run(tools=self.bank.tools(undo=die))
        run.resume(at="label:asked")
        with raises(Killed):
            run.compensate()

        found = self.run().compensate()
        assert [e.call_id for e in found.unknown] == ["call-2"]
        assert [e.call_id for e in found.undone] == ["call-1"]

    def test_what_another_fork_has_is_not_undone(self) -> None:
        self.paid()
        thread = self.store.conversations.thread("c")
        thread.fork("conversation:f", "label:asked")

        assert self.run("f").compensate() == holdfast.effects.Compensation()

        assert self.bank.cancelled == []


class GrantTests(PaymentCases):
    """Permissions that are used up once."""

    def test_a_grant_is_used_up_once(self) -> None:
        thread = self.thread()
        thread.save({"n": 1})

        assert [thread.consume("approval:42"), thread.consume("approval:42")] == [
            True,
            False,
        ]
        assert thread.consume("approval:43")

    def test_a_rewind_does_not_bring_it_back(self) -> None:
        thread = self.thread()
        first = thread.save({"n": 1})
        thread.save({"n": 2})
        assert thread.consume("approval:42")
        thread.rewind(first)

        assert not thread.consume("approval:42")

    def test_a_fork_does_not_have_it_again(self) -> None:
        thread = self.thread()
        thread.save({"n": 1})
        before = thread.fork("before")
        assert thread.consume("approval:42")

        assert not before.consume("approval:42")
        assert not thread.fork("after").consume("approval:42")

    def test_it_stays_used_when_its_thread_is_deleted(self) -> None:
        thread = self.thread()
        thread.save({"n": 1})
        assert thread.consume("approval:42")
        fork = thread.fork("fork")
        thread.delete()

        assert not fork.consume("approval:42")

    def test_restoring_an_agent_does_not_bring_it_back(self) -> None:
        self.store.agents.save(holdfast.Agent(id="a"))
        self.store.conversations.create("c", agent="a", messages=[ASKED])
        checkpoint = self.store.agents.checkpoint("a")
        assert self.store.conversations.thread("c").consume("approval:42")
        self.store.conversations.delete("c")

        self.store.agents.restore("a", checkpoint)

        assert not self.store.conversations.thread("c").consume("approval:42")

    def test_threads_of_other_families_have_their_own(self) -> None:
        assert self.thread("one").consume("approval:42")
        assert self.thread("two").consume("approval:42")

    def test_a_thread_that_was_never_saved_has_grants(self) -> None:
        thread = self.thread()
        assert thread.consume("approval:42")
        thread.save({"n": 1})

        assert not thread.consume("approval:42")
        assert not thread.fork("fork").consume("approval:42")

    def test_an_archive_has_the_grants_that_were_used(self) -> None:
        thread = self.thread()
        thread.save({"n": 1})
        assert thread.consume("approval:42")
        archive = io.BytesIO(exported(self.store))
        with holdfast.open(":memory:") as other:
            other.import_archive(archive)

            assert not other.thread("chat").consume("approval:42")

    def test_a_grant_has_a_name(self) -> None:
        for name in ("", "x" * 600, 7):
            with raises(Unstorable):
                self.thread().consume(name)
