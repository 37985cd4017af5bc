"""A session that the framework holds, with the checkpoint it was loaded from."""

from __future__ import annotations

import asyncio

from google.adk.sessions import Session
from pydantic import PrivateAttr

from holdfast import Checkpoint


class _Turns(asyncio.Lock):
    """The lock for appends to one object; not part of the object's dump."""

    def __deepcopy__(self, memo: object) -> _Turns:
        return _Turns()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Turns)

    def __hash__(self) -> int:
        return hash(_Turns)


class HeldSession(Session):
    """A session with the checkpoint that its state was loaded from."""

    _head: Checkpoint = PrivateAttr()
    _turns: _Turns = PrivateAttr(default_factory=_Turns)

    @property
    def turns(self) -> asyncio.Lock:
        """The lock held during an append, because the next event needs its head."""
        return self._turns

    @property
    def head(self) -> Checkpoint:
        """The checkpoint that the next event must follow."""
        return self._head

    @head.setter
    def head(self, head: Checkpoint) -> None:
        self._head = head
