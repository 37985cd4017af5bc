"""Sentences for what belongs to the other API, where Python's own would not help.

The methods are hidden from type checkers, which report these mistakes by themselves.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.errors import Unstorable


class OfThisProcess:
    """An object that only this process can use, such as a connection; not pickled."""

    if not TYPE_CHECKING:

        def __reduce_ex__(self, _protocol: int) -> NoReturn:
            """Refuse `pickle`, and `copy.deepcopy`."""
            raise Unstorable(
                "pickle",
                "a store, and what is made of it, belongs to this process; pass the"
                " address and open it there with holdfast.open(...)",
            )


class SyncOnly:
    """A part of the sync API."""

    if not TYPE_CHECKING:

        def __aenter__(self) -> None:
            """Refuse ``async with``."""
            raise TypeError(
                f"{type(self).__name__} is a part of the sync API; write `with`, or"
                " open the store by `async with holdfast.open_async(...)`"
            )

        __aexit__ = __aenter__


class AsyncOnly:
    """A part of the async API."""

    if not TYPE_CHECKING:

        def __enter__(self) -> None:
            """Refuse ``with``."""
            raise TypeError(
                f"{type(self).__name__} is a part of the async API; write `async with`,"
                " or open the store by `with holdfast.open(...)`"
            )

        __exit__ = __enter__


class _Reading(Coroutine[Any, Any, Any]):
    """A coroutine that refuses to be called."""

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._name, self._coroutine = name, coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __call__(self) -> NoReturn:
        self.close()
        raise TypeError(
            f"{self._name} is a property; write `await thread.{self._name}`, without"
            " parentheses"
        )


if TYPE_CHECKING:
    awaited_property = property
else:

    class awaited_property(property):  # noqa: N801 - a decorator
        """A property of the async API: what it gives is awaited, and not called."""

        def __get__(self, owner: object, kind: object = None) -> Any:
            if owner is None:
                return self
            return _Reading(self.fget.__name__, super().__get__(owner, kind))
