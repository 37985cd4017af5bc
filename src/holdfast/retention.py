"""Retention policies as values, and the pure functions that apply them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import cast

import msgspec

from holdfast._values.arguments import checked_flags
from holdfast._values.keywords import OptionsMeta
from holdfast._values.records import PIN, ThreadRecord
from holdfast.errors import Unstorable

HOUR = 3_600_000_000
DAY = 24 * HOUR
WEEK = 7 * DAY
# The first day of 1970 was a Thursday; weeks begin on Mondays.
MONDAY = 3 * DAY
# The kind of the threads that keep the checkpoints of agents.
AGENT_CHECKPOINTS = "checkpoints"
# Threads of these kinds are removed only by deleting them, not for being idle or many.
LASTING = frozenset({"agent", AGENT_CHECKPOINTS, PIN, "document"})
# These are removed only with an agent or its checkpoints, whatever a policy says.
HELD = frozenset({AGENT_CHECKPOINTS, PIN})


class Thin(msgspec.Struct, frozen=True, kw_only=True, metaclass=OptionsMeta):
    """Keep the newest checkpoint of each of the last hours, days and weeks.

    The numbers are how many of them; only hours, days and weeks (UTC) in which
    something was saved are counted.
    """

    hourly: int = 0
    daily: int = 0
    weekly: int = 0

    def __post_init__(self) -> None:
        for name in ("hourly", "daily", "weekly"):
            if getattr(self, name) is None:
                raise Unstorable(name, "must be a number; 0 keeps none")
        _check_counts(self, ("hourly", "daily", "weekly"), least=0)


class Retention(msgspec.Struct, frozen=True, kw_only=True, metaclass=OptionsMeta):
    """Rules of a prune: it keeps all that at least one of the rules keeps.

    Of each thread's checkpoints: the ``last`` n, those saved ``within`` an age, and a
    ``thin`` selection; without any of the three, all of them. A thread's head is always
    kept, and so are labelled and tagged checkpoints and fork points, unless that is
    switched off here.

    Of the threads: those used within ``idle``, of each owner the ``threads_per_owner``
    used last, and of these the ``threads_in_all`` used last; a thread that breaks one
    of these rules is removed as a whole.

    With ``kinds`` all rules apply to threads of these kinds only. Without, whole
    threads of every kind may be removed except agents, their checkpoints and
    documents. Agents' checkpoints, and what they pin, are kept whatever ``kinds`` says.

    The ledger of effects outlives the checkpoints: calls are forgotten only if they are
    older than ``effects``, and never while their outcome is unknown.

    ``at_most`` is the share (0 to 1) of the checkpoints that one prune may remove, of
    all in the store or in the threads it is limited to. A prune that would remove more
    is refused: a clock that jumped would otherwise empty the store.
    """

    last: int | None = None
    within: timedelta | None = None
    thin: Thin | None = None
    labelled: bool = True
    tagged: bool = True
    forks: bool = True
    idle: timedelta | None = None
    threads_per_owner: int | None = None
    threads_in_all: int | None = None
    kinds: tuple[str, ...] | None = None
    effects: timedelta | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        _check_counts(self, ("last", "threads_per_owner", "threads_in_all"), least=1)
        for name in ("within", "idle", "effects"):
            age = getattr(self, name)
            if age is not None and (
                not isinstance(age, timedelta) or age < timedelta(0)
            ):
                raise Unstorable(name, f"must be a timedelta or None, not {age!r}")
        checked_flags(labelled=self.labelled, tagged=self.tagged, forks=self.forks)
        if self.thin is not None and not isinstance(cast("object", self.thin), Thin):
            text = f"must be a Thin, such as Thin(daily=7), not {self.thin!r}"
            raise Unstorable("thin", text)
        if self.kinds is not None and not _are_names(self.kinds):
            text = f"must be names such as ('conversation',), not {self.kinds!r}"
            raise Unstorable("kinds", text)
        if self.at_most is not None and not _is_share(self.at_most):
            text = f"must be a share from 0 to 1, not {self.at_most!r}"
            raise Unstorable("at_most", text)

    @property
    def thins_threads(self) -> bool:
        """True if checkpoints of threads that stay may be removed."""
        return (self.last, self.within, self.thin) != (None, None, None)

    def oldest_kept(self, now: int) -> int | None:
        """The oldest time of saves kept for their age, ``None`` without a rule."""
        return None if self.within is None else now - _microseconds(self.within)

    def may_thin(self, kind: str) -> bool:
        """True if checkpoints of threads of this kind may be removed."""
        # An agent's checkpoint has pins, which are removed only by deleting it.
        return self.thins_threads and self.is_for(kind) and kind != AGENT_CHECKPOINTS

    def is_for(self, kind: str) -> bool:
        """True if the rules apply to threads of this kind."""
        return self.kinds is None or kind in self.kinds

    @property
    def drops_threads(self) -> bool:
        """True if whole threads may be removed."""
        rules = (self.idle, self.threads_per_owner, self.threads_in_all)
        return rules != (None, None, None)

    def may_drop(self, kind: str) -> bool:
        """True if threads of this kind may be removed."""
        if self.kinds is None:
            return kind not in LASTING
        return kind in self.kinds and kind not in HELD


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= 1


def _are_names(value: object) -> bool:
    if not isinstance(value, tuple | list):
        return False
    return all(isinstance(name, str) for name in cast("Sequence[object]", value))


def _check_counts(rule: object, names: Iterable[str], *, least: int) -> None:
    for name in names:
        count = getattr(rule, name)
        if count is not None and (type(count) is not int or count < least):
            raise Unstorable(name, f"must be at least {least}, not {count!r}")


class ThreadRules:
    """The rules of a policy for whole threads, asked for one after the other."""

    def __init__(self, policy: Retention, now: int) -> None:
        self._policy = policy
        age = policy.idle
        self._oldest = None if age is None else now - _microseconds(age)
        self._used: dict[str | None, int] = defaultdict(int)
        self._kept = 0

    def drops(self, thread: ThreadRecord) -> bool:
        """True if the thread is not kept; callers ask in the order of last use."""
        policy = self._policy
        if not policy.drops_threads or not policy.may_drop(thread.kind):
            return False
        self._used[thread.owner] += 1
        is_idle = self._oldest is not None and thread.updated_at < self._oldest
        own = None if thread.owner is None else policy.threads_per_owner
        is_extra = _exceeds(self._used[thread.owner], own)
        # A thread that is removed anyway takes no place of another.
        if is_idle or is_extra or _exceeds(self._kept + 1, policy.threads_in_all):
            return True
        self._kept += 1
        return False


def _exceeds(number: int, most: int | None) -> bool:
    return most is not None and number > most


def places_kept(policy: Retention, saved_at: Sequence[int], now: int) -> Iterator[int]:
    """The saves of a thread that its rules keep, by their places from the oldest on.

    One that several rules keep is given several times.
    """
    count = len(saved_at)
    yield from range(max(0, count - (policy.last or 0)), count)
    oldest = policy.oldest_kept(now)
    if oldest is not None:
        yield from (place for place, at in enumerate(saved_at) if at >= oldest)
    if policy.thin is not None:
        yield from _newest_by(saved_at, HOUR, 0, policy.thin.hourly)
        yield from _newest_by(saved_at, DAY, 0, policy.thin.daily)
        yield from _newest_by(saved_at, WEEK, MONDAY, policy.thin.weekly)


def _newest_by(
    saved_at: Sequence[int], period: int, shift: int, count: int
) -> Iterator[int]:
    """The newest of each of the last ``count`` periods, in the order of saving."""
    found: set[int] = set()
    for place in range(len(saved_at) - 1, -1, -1):
        if len(found) == count:
            return
        number = (saved_at[place] + shift) // period
        if number not in found:
            found.add(number)
            yield place


def _microseconds(age: timedelta) -> int:
    return age // timedelta(microseconds=1)
