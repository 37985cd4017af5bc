"""Several workers on one conversation: none loses or repeats what another one did."""

from __future__ import annotations

from typing import Any

import holdfast
from conformance.effects import ASKED, Killed, PaymentCases
from holdfast.errors import Conflict
from holdfast.retention import Retention
from holdfast.strategy import never
from holdfast.testing import raises
from support.payments import asking_to_pay, make, pay

MORE = {"role": "user", "content": "And?"}


class SeveralWorkersTests(PaymentCases):
    """What a worker does while another one is at work, or after it was killed."""

    def test_a_payment_made_by_another_worker_is_not_undone(self) -> None:
        self.asked()
        late = self.run()
        pay(self.run(), "call-1", "a1")

        assert late.compensate() == holdfast.effects.Compensation()

        assert self.bank.cancelled == []

    def test_a_payment_is_not_repeated_when_the_worker_before_saves(self) -> None:
        one = self.asked(save=never())
        pay(one, "call-1", "a1")
        other = self.run(save=never())
        pay(other, "call-2", "a2", to="eve")

        one.save()

        with raises(Conflict, "transcript_moved"):
            other.add(MORE)
        assert pay(self.run(), "call-3", "a3", to="eve") == {"receipt": "a2"}
        assert self.references == ["a1", "a2"]

    def test_a_payment_is_not_lost_when_the_worker_after_saves(self) -> None:
        one = self.asked(save=never())
        one.llm_response(asking_to_pay("call-1", "a1"))
        other = self.run(save=never())
        make(one, "call-1")

        with raises(Conflict, "transcript_moved"):
            other.save(label="other")

        assert self.run().messages == one.messages
        assert pay(self.run(), "call-2", "a2") == {"receipt": "a2"}

    def test_a_worker_that_lost_discards_only_its_own_messages(self) -> None:
        one, other = self.asked(save=never()), self.run(save=never())
        one.add(MORE)
        with raises(Conflict, "transcript_moved"):
            other.add({"role": "user", "content": "other"})

        other.resume(discard=True)

        assert other.messages == self.run().messages == [ASKED, MORE]

    def test_messages_stay_when_the_title_changes_before_a_kill(self) -> None:
        killed = self.asked(save=never())
        self.killed_paying(killed, "call-1", "a1")
        self.store.conversations.update("c", title="Payments")

        run = self.run()

        assert [call.id for call in run.interrupted()] == ["call-1"]
        assert run.passed_over == []
        assert run.resolve("call-1", {"receipt": "a1"}) == {"receipt": "a1"}
        assert self.run().messages == run.messages

    def test_a_result_is_not_kept_without_its_discarded_call(self) -> None:
        one = self.asked(save=never())
        one.llm_response(asking_to_pay("call-1", "a1"))
        other = self.run(save=never())
        other.resume(discard=True)
        make(one, "call-1")

        run = self.run()

        assert [m["role"] for m in run.passed_over] == ["tool"]
        assert pay(run, "call-2", "a2") == {"receipt": "a1"}
        assert self.references == ["a1"]

    def test_a_checkpoint_is_resumed_without_what_was_recorded_after_it(self) -> None:
        run = self.asked(save=never())
        thread = self.store.conversations.thread("c")
        thread.save({**thread.load(), "title": "elsewhere"}, label="elsewhere")
        thread.rewind("label:asked")
        self.run(save=never()).add(MORE)
        thread.rewind("label:elsewhere")

        run.resume(at="label:asked", discard=True)

        run.add({"role": "user", "content": "again"})
        assert [m["content"] for m in self.run().messages][1:] == ["again"]

    def test_a_call_made_after_its_checkpoint_was_pruned_is_on_the_line(self) -> None:
        run = self.asked()
        run.llm_response(asking_to_pay("call-1", "a1"))
        run.save()
        self.store.conversations.update("c", title="Payments")
        self.store.prune(Retention(last=1, labelled=False))

        run.call("call-1")

        made = self.store.conversations.thread("c").effects()
        assert [effect.call_id for effect in made] == ["call-1"]
        assert self.run().compensate() == holdfast.effects.Compensation()

    def test_an_effect_is_not_taken_over_while_it_is_undone(self) -> None:
        run = self.paid(tools=self.bank.tools(undo=self.die))
        run.resume(at="label:asked")
        with raises(Killed):
            run.compensate()
        run = self.run()
        run.llm_response(asking_to_pay("call-2", "a2"))

        with raises(Conflict, "call_interrupted"):
            run.call("call-2")

        assert run.resolve("call-2", {"receipt": "a1"}) == {"receipt": "a1"}
        assert run.compensate() == holdfast.effects.Compensation()

    def die(self, effect: holdfast.Effect) -> Any:
        raise Killed
