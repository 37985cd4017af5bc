"""The threads that a prune is limited to."""

from __future__ import annotations

import msgspec

from holdfast._values.records import ThreadRecord, check_filter


class PruneScope(msgspec.Struct, frozen=True, kw_only=True):
    """The threads that a prune is limited to: those that match all that is given."""

    thread: str | None = None
    agent: str | None = None
    owner: str | None = None
    prefix: str | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_filter(getattr(self, name), name)

    @property
    def is_limited(self) -> bool:
        """Whether there can be threads outside of it."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def has(self, thread: ThreadRecord) -> bool:
        """Whether a thread is in it."""
        return (
            self.thread in (None, thread.id)
            and self.agent in (None, thread.agent)
            and self.owner in (None, thread.owner)
            and (self.prefix is None or thread.id.startswith(self.prefix))
        )


EVERYTHING = PruneScope()
