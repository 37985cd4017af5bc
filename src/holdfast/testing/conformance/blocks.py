"""Blocks: many segments stored as one, which cannot be told from the outside."""

from __future__ import annotations

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import LONG, Cases


def _message(n: int | str) -> str:
    return f"{n} {LONG}"


class BlockTests(Cases):
    """After `compact` neighbouring segments are one block; everything else stays."""

    def grown(self, count: int = 12) -> tuple[Thread, list[Checkpoint]]:
        """A thread that got a long message with each of so many saves."""
        chat = self.thread()
        return chat, [chat.append(m=[_message(n)]) for n in range(count)]

    def compacted(self) -> Store:
        """The store after its segments were joined."""
        self.must_be_able("compact")
        self.store.compact()
        return self.store

    def check_steps(self, chat: Thread, saved: list[Checkpoint]) -> None:
        """Every save is there, and all segments are in use."""
        for checkpoint in saved:
            expected = [_message(n) for n in range(checkpoint.step)]
            assert chat.load(checkpoint) == {"m": expected}
        assert self.store.verify().problems == ()

    def test_a_compacted_store_has_every_step(self) -> None:
        chat, saved = self.grown()
        before = self.store.stats()

        after = self.compacted().stats()

        self.check_steps(chat, saved)
        assert after.segments == before.segments
        assert after.checkpoints == before.checkpoints

    def test_it_is_read_from_the_disk_too(self) -> None:
        self.must_reopen()
        _, saved = self.grown()
        self.compacted()
        self.reopen()

        self.check_steps(self.thread(), saved)

    def test_it_goes_on_growing_and_is_compacted_again(self) -> None:
        chat, saved = self.grown()
        for n in range(12, 36):
            if n % 5 == 0:
                self.compacted()
            saved.append(chat.append(m=[_message(n)]))
        self.compacted()

        self.check_steps(chat, saved)

    def test_forks_that_begin_inside_of_a_block_go_their_own_ways(self) -> None:
        chat, saved = self.grown()
        self.compacted()
        fork = chat.fork("fork", at=saved[5])
        fork.append(m=["other"])
        chat.rewind(saved[3])
        chat.append(m=["else"])

        assert fork.load()["m"] == [*map(_message, range(6)), "other"]
        assert chat.load()["m"] == [*map(_message, range(4)), "else"]
        assert chat.load(saved[-1])["m"] == [*map(_message, range(12))]
        assert self.store.verify().problems == ()

    def test_a_prune_that_needs_a_part_of_a_block_keeps_that_part(self) -> None:
        chat, saved = self.grown()
        short = chat.fork("short", at=saved[4])
        short.label("kept")
        self.compacted()
        before = self.store.stats()

        chat.delete()

        assert short.load()["m"] == [*map(_message, range(5))]
        assert self.store.verify().problems == ()
        after = self.store.stats()
        assert after.segments == before.segments - 7
        assert after.stored_bytes < before.stored_bytes

    def test_what_a_prune_would_free_is_counted_before(self) -> None:
        chat, _ = self.grown()
        chat.save({"m": [_message(n) for n in range(3, 12)]})
        self.compacted()
        policy = Retention(last=1)

        expected = self.store.prune(policy, dry_run=True)
        pruned = self.store.prune(policy)

        assert (pruned.checkpoints, pruned.segments) == (12, 3)
        assert expected == pruned
        assert chat.load()["m"] == [_message(n) for n in range(3, 12)]
        assert self.store.verify().problems == ()

    def test_an_edit_in_the_middle_of_a_block(self) -> None:
        chat, saved = self.grown()
        self.compacted()
        state = chat.load()
        state["m"][4] = "edited"
        chat.save(state)
        self.compacted()

        assert chat.load()["m"][3:6] == [_message(3), "edited", _message(5)]
        self.check_steps(chat, saved)

    def test_nothing_is_left_to_do_after_a_compact(self) -> None:
        self.grown()
        first = self.compacted().stats()
        second = self.compacted().stats()

        assert second.stored_bytes == first.stored_bytes

    def test_a_deleted_thread_takes_its_blocks_along(self) -> None:
        chat, _ = self.grown()
        self.compacted()
        chat.delete()

        assert self.store.stats().segments == 0

    def test_a_long_list_is_joined_while_it_grows(self) -> None:
        chat = self.compressed().thread("chat")
        saved = [chat.append(m=[_message(n)]) for n in range(150)]
        self.must_be_able("reuse")
        alone = len(_message(0)) * 0.5 * 150

        self.check_steps(chat, saved[::20])
        assert self.store.stats().stored_bytes < alone

    def test_a_rival_goes_on_with_what_was_joined(self) -> None:
        chat, saved = self.grown()
        rival = self.rival().thread("chat")
        assert rival.load() == chat.load()
        self.compacted()
        saved.append(rival.append(m=[_message(12)]))
        saved.append(chat.append(m=[_message(13)]))

        self.check_steps(chat, saved)
