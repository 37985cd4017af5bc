"""A session in the hands of the framework, which knows what it was loaded from."""

from __future__ import annotations

import asyncio

from google.adk.sessions import Session
from pydantic import PrivateAttr

from holdfast import Checkpoint


class _Turns(asyncio.Lock):
    """Lets appends to one object take turns; no part of what the object says."""

    def __deepcopy__(self, memo: object) -> _Turns:
        return _Turns()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Turns)

    def __hash__(self) -> int:
        return hash(_Turns)


class HeldSession(Session):
    """A session with the checkpoint whose state it has."""

    _head: Checkpoint = PrivateAttr()
    _turns: _Turns = PrivateAttr(default_factory=_Turns)

    @property
    def turns(self) -> asyncio.Lock:
        """Held while an event is appended, because the next one needs its head."""
        return self._turns

    @property
    def head(self) -> Checkpoint:
        """The checkpoint that the next event must follow."""
        return self._head

    @head.setter
    def head(self, head: Checkpoint) -> None:
        self._head = head
