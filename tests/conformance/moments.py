"""References by time."""

from __future__ import annotations

from datetime import timedelta

from holdfast.errors import NotFound
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases


class MomentTests(Cases):
    """``@{5 minutes ago}``, ``@{2026-11-15 10:00}``: the newest on the line by then."""

    def _every_minute(self, count: int) -> None:
        """Steps 1 to ``count``, from 2023-11-15 00:00 on, then a minute more."""
        for n in range(1, count + 1):
            self.thread().save({"n": n})
            self.clock.advance(timedelta(minutes=1))

    def test_the_newest_that_is_old_enough(self) -> None:
        self._every_minute(4)
        chat = self.thread()

        assert chat.get("@{1 minute ago}").step == 4
        assert chat.get("@{2 minutes ago}").step == 3
        assert chat.get("@{61 seconds ago}").step == 3
        assert chat.get("@{0 seconds ago}").step == 4
        assert chat.get("@{2m}").step == 3
        assert chat.get("@{2 minutes}").step == 3
        with raises(NotFound):
            chat.get("@{1 hour ago}")

    def test_a_time_means_the_newest_by_then(self) -> None:
        self._every_minute(4)
        chat = self.thread()

        assert chat.get("@{2023-11-15}").step == 1
        assert chat.get("@{2023-11-15 00:02}").step == 3
        assert chat.get("@{2023-11-15T00:02:59.5}").step == 3
        assert chat.get("@{2023-11-15T00:02:00Z}").step == 3
        assert chat.get("@{2023-11-15 02:02+02:00}").step == 3
        assert chat.get("@{2099-01-01}").step == 4
        assert chat.get("@{0:02}").step == 3
        assert chat.get("@{today}").step == 1
        with raises(NotFound):
            chat.get("@{2023-11-14 23:59}")

    def test_days_and_weeks_go_by_the_clock_of_the_store(self) -> None:
        self._every_minute(1)
        self.clock.advance(timedelta(days=7))
        self._every_minute(1)
        self.clock.advance(timedelta(hours=30))
        self._every_minute(1)
        chat = self.thread()

        assert chat.get("@{yesterday}").step == 2
        assert chat.get("@{25 hours ago}").step == 2
        assert chat.get("@{3 days ago}").step == 1
        assert chat.get("@{1 week ago}").step == 1

    def test_only_the_line_of_the_head_counts(self) -> None:
        self._every_minute(4)
        chat = self.thread()
        chat.rewind("@1")
        chat.save({"n": "later"})

        assert chat.get("@{2 minutes ago}").step == 1

    def test_a_clock_that_went_back_hides_nothing(self) -> None:
        self._every_minute(2)
        self.clock.advance(timedelta(hours=-1))
        self._every_minute(1)
        chat = self.thread()

        assert chat.get("@{2023-11-14 23:30}").step == 3
        assert chat.get("@{2023-11-15 00:00}").step == 3

    def test_a_long_line_is_walked_to_its_end(self) -> None:
        self._every_minute(205)

        assert self.thread().get("@{2023-11-15}").step == 1
        assert self.thread().get("@{2023-11-15 01:00}").step == 61
