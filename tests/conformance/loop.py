"""What a recorder was given is not lost, and calls are told apart after a kill."""

from __future__ import annotations

from typing import Any

from conformance.effects import Killed, PaymentCases
from holdfast.errors import Conflict, Unstorable
from holdfast.strategy import after_reply, every, never
from holdfast.testing import raises
from support.payments import asking_to_pay, make, pay

HI = {"role": "user", "content": "Hi."}


class DurableLoopTests(PaymentCases):
    """Every step is durable when its method returns."""

    def test_a_message_is_there_before_the_model_answers(self) -> None:
        self.run().add(HI)

        assert self.run().messages == [HI]
        assert self.run().pending == 1

    def test_it_survives_the_process(self) -> None:
        self.run().add(HI)

        reopened = self.reopen()

        assert reopened.conversations.recorder("c").messages == [HI]

    def test_a_reply_and_a_result_are_there_too(self) -> None:
        run = self.run(save=never())
        run.add(HI)
        run.iteration()
        run.llm_response(asking_to_pay("call-1", "a1"), usage={"tokens": 3})
        run.metadata["mood"] = "good"
        make(run, "call-1")

        again = self.run(save=never())

        assert again.messages == run.messages
        assert (again.iterations, again.usage) == (1, {"tokens": 3})
        assert again.metadata == {"mood": "good"}
        assert again.open_calls == []

    def test_never_makes_no_checkpoints(self) -> None:
        run = self.run(save=never())
        run.add(HI)
        pay(run, "call-1", "a1")
        pay(run, "call-2", "a2")

        assert self.store.threads().items == ()
        saved = run.save()
        assert len(self.store.conversations.thread("c").history()) == 1
        assert saved.step == 1

    def test_iterations_are_counted_over_all_recorders(self) -> None:
        for n in range(7):
            run = self.run(save=every(3))
            run.add({"role": "user", "content": f"question {n}"})
            assert run.iteration() == n + 1
            run.llm_response({"role": "assistant", "content": f"answer {n}"})

        found = self.store.conversations.thread("c").history(order="oldest")
        kept = [self.store.conversations.load("c", save) for save in found]
        assert [c.run["iteration"] for c in kept] == [3, 6]
        assert [len(c.messages) for c in kept] == [5, 11]

    def test_an_iteration_of_two_recorders_at_once_counts_for_the_first(self) -> None:
        self.run(save=every(2)).add(HI)
        first, second = self.run(save=every(2)), self.run(save=every(2))
        reply = {"role": "assistant", "content": "Hello."}
        first.iteration()
        first.llm_response(reply)
        with raises(Conflict, "transcript_moved"):
            second.iteration()

        second.resume(discard=True)

        assert second.iteration() == 2
        assert second.checkpoint.step == 1
        assert second.messages == [HI, reply]

    def test_a_save_leaves_nothing_of_it_in_the_journal(self) -> None:
        run = self.run(save=never())
        run.add(HI)
        run.llm_response({"role": "assistant", "content": "Hello."})
        thread = self.store.conversations.thread("c")
        assert len(thread.journal()) == 2

        run.save()

        assert thread.journal() == {}
        assert self.run().messages == run.messages

    def test_a_rewind_goes_to_the_state_of_a_checkpoint(self) -> None:
        run = self.run()
        run.add(HI)
        run.save(label="hi")
        run.add({"role": "user", "content": "And?"})

        with raises(Conflict, "unsaved"):
            run.resume(at="label:hi")
        run.resume(at="label:hi", discard=True)

        assert run.messages == self.run().messages == [HI]

    def test_two_recorders_do_not_overwrite_one_another(self) -> None:
        one, other = self.run(), self.run()
        one.add({"role": "user", "content": "one"})

        with raises(Conflict, "transcript_moved"):
            other.add({"role": "user", "content": "other"})

        assert [m["content"] for m in self.run().messages] == ["one"]
        other.resume(discard=True)

    def test_discarding_forgets_what_this_recorder_sees(self) -> None:
        run = self.run()
        run.add(HI)
        run.resume(discard=True)

        assert run.messages == self.run().messages == []

    def test_a_recorder_that_comes_too_late_is_told(self) -> None:
        one, other = self.run(), self.run()
        one.add(HI)
        one.save()

        with raises(Conflict, "transcript_moved"):
            other.add({"role": "user", "content": "other"})

    def test_messages_that_another_writer_passed_over_are_reported(self) -> None:
        self.store.conversations.create("c", messages=[HI])
        self.run().add({"role": "user", "content": "lost?"})
        self.store.conversations.add("c", {"role": "user", "content": "other"})

        run = self.run()

        assert [m["content"] for m in run.messages] == ["Hi.", "other"]
        assert [m["content"] for m in run.passed_over] == ["lost?"]
        run.save()
        run.add(HI)
        assert self.run().passed_over == []

    def test_a_new_system_prompt_stays_with_what_follows(self) -> None:
        run = self.run()
        run.add(HI)
        run.llm_response({"role": "assistant", "content": "Hello."})
        run = self.run(system="Be brief.")
        run.add({"role": "user", "content": "So?"})

        again = self.run()

        assert again.messages == run.messages
        assert again.messages[0] == {"role": "system", "content": "Be brief."}

    def test_options_and_words_that_do_not_exist_are_refused(self) -> None:
        wrong: list[dict[str, Any]] = [
            {"sav": never()},
            {"save": "often"},
            {"repair": "drpo"},
            {"effects": "perhaps"},
        ]
        for options in wrong:
            with raises((Unstorable, TypeError)):
                self.run(**options)


class OpenCallTests(PaymentCases):
    """After a kill there are three kinds of open calls."""

    def killed_in_the_first(self) -> Any:
        """Two payments were asked for; the process died within the first."""
        run = self.asked()
        one = asking_to_pay("call-1", "a1")
        two = asking_to_pay("call-2", "b1", to="eve")
        run.llm_response({**one, "tool_calls": one["tool_calls"] + two["tool_calls"]})

        def die(to: str, amount: int, ref: str) -> None:
            self.bank.paid.append((to, amount, ref))
            raise Killed

        with raises(Killed):
            run.call("call-1", die)
        return self.run()

    def test_only_what_began_is_unknown(self) -> None:
        run = self.killed_in_the_first()

        assert [call.id for call in run.open_calls] == ["call-2"]
        assert [call.id for call in run.interrupted()] == ["call-1"]

    def test_a_finished_call_has_its_result(self) -> None:
        run = self.killed_in_the_first()
        run.call("call-2")

        again = self.run()

        assert again.open_calls == []
        assert again.messages[2]["content"] == '{"receipt":"b1"}'
        assert self.references == ["a1", "b1"]

    def test_the_unknown_is_answered_only_when_the_loop_goes_on(self) -> None:
        run = self.killed_in_the_first()
        make(run, "call-2")
        assert "may or may not" in str(run.messages)
        assert "may or may not" not in str(self.run()._recording.messages)

        run.iteration()
        run.llm_response({"role": "assistant", "content": "Done."})

        assert str(self.store.conversations.load("c").messages).count("may not") == 1
        assert [call.id for call in self.run().interrupted()] == ["call-1"]

    def test_a_result_takes_the_place_of_the_placeholder(self) -> None:
        run = self.killed_in_the_first()
        make(run, "call-2")
        run.iteration()
        run.llm_response({"role": "assistant", "content": "Done."})

        run.resolve("call-1", {"receipt": "a1"})

        assert run.interrupted() == []
        assert "may or may not" not in str(run.messages)
        assert run.messages[-1]["content"] == "Done."
        assert self.run().messages == run.messages
        run.save()
        assert self.store.conversations.load("c").messages == run.messages

    def test_a_call_made_again_does_too(self) -> None:
        run = self.killed_in_the_first()
        run.iteration()

        assert run.call("call-1", again=True) == {"receipt": "a1"}
        run.tool_result("call-1", {"receipt": "a1"})

        assert self.run().messages == run.messages
        assert "may or may not" not in str(run.messages)
        assert self.references == ["a1", "a1"]

    def test_a_call_can_be_resolved_before_the_loop_goes_on(self) -> None:
        run = self.killed_in_the_first()
        run.resolve("call-1", {"receipt": "a1"})
        make(run, "call-2")

        answered = [m["tool_call_id"] for m in run.messages if m["role"] == "tool"]
        assert answered == ["call-1", "call-2"]
        assert self.references == ["a1", "b1"]

    def test_another_result_for_an_answered_call_is_refused(self) -> None:
        run = self.paid()

        run.tool_result("call-1", {"receipt": "a1"})
        with raises(Conflict, "call_answered"):
            run.tool_result("call-1", "another")

    def test_a_call_of_a_saved_reply_is_the_very_call_after_a_rewind(self) -> None:
        run = self.asked(save=after_reply(), effects="refuse")
        pay(run, "call-1", "a1")
        run.save()
        run.resume(at="@~1")

        assert run.open_calls == []
        assert run.messages[-1]["tool_call_id"] == "call-1"
