"""Runs a session's operations: changes are finished even if the caller is cancelled."""

from __future__ import annotations

from typing import Concatenate, ParamSpec, TypeVar

from holdfast.errors import Closed
from holdfast.operations import Named, Operation
from holdfast.operations.stores import AnyStore, settled

P = ParamSpec("P")
T = TypeVar("T")


class SessionClosed(Closed, RuntimeError):
    """The session is closed; a `RuntimeError`, as the SDK's own sessions raise."""

    def __init__(self) -> None:
        super().__init__("the session is closed; make a new HoldfastSession of its id")


class SessionRunner:
    """Runs operations over a store of either kind; changes are not interrupted."""

    def __init__(self, store: AnyStore) -> None:
        self._runner = store.runner.for_async()
        self._is_closed = False

    def close(self) -> None:
        """Refuse all later operations."""
        self._is_closed = True

    def be_open(self) -> None:
        """Raise `SessionClosed` after `close`."""
        if self._is_closed:
            raise SessionClosed

    async def read(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of an operation that changes nothing."""
        self.be_open()
        return await self._runner.run(operation, *args, **kwargs)

    async def change(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of a change, which is finished even if the caller is cancelled."""
        self.be_open()
        return await settled(self._runner.run(operation, *args, **kwargs))

    async def save(
        self,
        operation: Operation[Concatenate[Named, P], T],
        thread: Named,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Like `change`, for a change of one thread; saves are committed together."""
        self.be_open()
        return await settled(self._runner.save(operation, thread, *args, **kwargs))
