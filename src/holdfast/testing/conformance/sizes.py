"""The space that threads take."""

from __future__ import annotations

from holdfast.testing.conformance.cases import LONG, Cases


class WeightTests(Cases):
    """Threads by the space that they and their forks take."""

    def test_the_heaviest_come_first_with_their_forks(self) -> None:
        self.thread("light").save({"n": 1})
        chat = self.thread()
        for n in range(5):
            chat.append(messages=[f"{n} {LONG}"])
        chat.fork("fork").save({"messages": [LONG * 9], "n": 1})

        heavy, light = self.store.heaviest()

        assert heavy.threads == ("chat", "fork")
        assert (heavy.checkpoints, light.checkpoints) == (6, 1)
        assert heavy.logical_bytes > heavy.stored_bytes > light.stored_bytes > 0
        assert list(heavy.values) == ["messages", "n"]
        assert light.values == {"n": 1}
        assert self.store.heaviest(1) == (heavy,)

    def test_nothing_takes_no_space(self) -> None:
        assert self.store.heaviest() == ()
        self.thread().save([LONG])
        assert list(self.store.heaviest(None)[0].values) == ["(root)"]
        self.thread().delete()
        assert self.store.heaviest() == ()
