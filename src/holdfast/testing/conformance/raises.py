"""Expecting an error, without a test framework."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

E = TypeVar("E", bound=BaseException)


class Raised(Generic[E]):
    """Holds the error once the block of `raises` is over."""

    error: E


@contextmanager
def raises(kind: type[E], code: str | None = None) -> Generator[Raised[E]]:
    """Expect the block to raise a ``kind``, and with a ``code`` one that carries it."""
    raised = Raised[E]()
    try:
        yield raised
    except kind as error:
        raised.error = error
    else:
        raise AssertionError(f"nothing was raised, where {kind.__name__} was due")
    found = getattr(raised.error, "code", None)
    assert code in (None, found), f"the code is {found!r}, not {code!r}"
