"""Effects: tool calls that change something outside the store.

A tool says what it is where it is defined::

    @holdfast.once(key=("to", "amount"), undo=cancel)
    def pay(to, amount, ref): ...

    @holdfast.repeatable
    def lookup(order): ...

A tool that says nothing is taken as ``once``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, overload

import msgspec

from holdfast._messages.identity import arguments_named, identity, masked
from holdfast._messages.transcript import as_text
from holdfast._values.records import checked_name
from holdfast._values.shortening import ELLIPSIS, shortened
from holdfast.errors import Unstorable

__all__ = ["Compensation", "Effect", "Policy", "once", "repeatable"]

F = TypeVar("F", bound=Callable[..., Any])

# What happens when a call means an effect that was left behind by a rewind or stands on
# another fork: its result is used, the call is refused, or the effect happens again.
# ``deny`` refuses every call of a tool that is not repeatable.
Policy: TypeAlias = Literal["replay", "refuse", "run", "deny"]
Status: TypeAlias = Literal["completed", "failed", "unknown"]
Place: TypeAlias = tuple[str, str, int]
Key: TypeAlias = Sequence[str] | Callable[..., object]

LONGEST_SHOWN = 200
_MARK = "__holdfast_tool__"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the ledger has it.

    ``status`` is ``unknown`` if the call began and its end was never recorded.
    ``checkpoint`` is the id of the first checkpoint whose state has the call, which may
    not be saved yet. With ``in_items`` a session made the call, which can take it back
    without leaving that checkpoint. A call that took over the effect of another has
    that one's `place` as ``replays``; one that was made knowingly although another may
    have taken effect has it as ``settles``. ``at`` is the time of its beginning in
    microseconds UTC.
    """

    thread: str
    call_id: str
    tool: str
    arguments: Any = None
    status: Status
    result: Any = None
    error: str | None = None
    at: int
    checkpoint: str | None = None
    in_items: bool = False
    replays: Place | None = None
    settles: Place | None = None
    undone: bool = False
    key: str
    attempt: int
    seq: int

    @property
    def place(self) -> Place:
        """The thread, the key in its journal, and the attempt."""
        return self.thread, self.key, self.attempt

    def __str__(self) -> str:
        given = as_text(self.arguments) if self.arguments is not None else ELLIPSIS
        is_known = self.status == "completed"
        end = as_text(self.result) if is_known else self.status
        shown = (shortened(text, LONGEST_SHOWN) for text in (given, end))
        return f"{self.tool} {' → '.join(shown)}"


class Compensation(msgspec.Struct, frozen=True):
    """The effects left behind that were undone, newest first, and the others.

    ``kept`` have no ``undo``; of ``unknown`` it is not known whether they, or their
    undoing, took effect.
    """

    undone: tuple[Effect, ...] = ()
    kept: tuple[Effect, ...] = ()
    unknown: tuple[Effect, ...] = ()


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a tool: repeatable, or once by a key, with its undo."""

    is_repeatable: bool = False
    key: Key | None = None
    undo: Callable[[Effect], Any] | None = None
    policy: Policy | None = None

    def identity(self, tool: str, arguments: Any) -> str:
        """A text that is equal for two calls that mean the same effect."""
        if self.key is None:
            return identity(tool, masked(arguments))
        if callable(self.key):
            return identity(tool, [self.key(**arguments)])
        return identity(tool, arguments_named(self.key, arguments))


UNDECLARED = Declaration()


@overload
def once(function: F, /) -> F: ...
@overload
def once(
    *,
    key: Key | None = None,
    undo: Callable[[Effect], Any] | None = None,
    policy: Policy | None = None,
) -> Callable[[F], F]: ...
def once(
    function: Callable[..., Any] | None = None,
    /,
    *,
    key: Key | None = None,
    undo: Callable[[Effect], Any] | None = None,
    policy: Policy | None = None,
) -> Any:
    """A tool that changes something in the world, and must not do so twice.

    ``key`` says which calls mean the same effect: the names of the arguments that
    matter, or a function of the arguments. Without it all arguments matter except
    values that look generated. ``undo`` gets the `Effect` and reverts it. ``policy`` is
    what happens when the effect was left behind by a rewind; ``"replay"`` by default.
    """
    declared = Declaration(key=_checked_key(key), undo=undo, policy=checked(policy))
    if undo is not None and not callable(undo):
        raise Unstorable("undo", f"must be a function of an Effect, not {undo!r}")

    def declare(tool: F) -> F:
        return _declared(tool, declared)

    return declare if function is None else declare(function)


def repeatable(function: F) -> F:
    """A tool that only reads, or can be repeated: its calls are not recorded."""
    return _declared(function, Declaration(is_repeatable=True))


def _declared(function: F, declared: Declaration) -> F:
    if not callable(function):
        raise Unstorable("tool", f"must be a function, not {function!r}")
    try:
        setattr(function, _MARK, declared)
    except (AttributeError, TypeError):
        text = f"{function!r} cannot be declared; wrap it in a function of your own"
        raise Unstorable("tool", text) from None
    return function


def declaration_of(function: object) -> Declaration:
    """The declaration of a tool; `UNDECLARED` if it has none."""
    found = getattr(function, _MARK, UNDECLARED)
    return cast("Declaration", found)


def _checked_key(key: Any) -> Key | None:
    if key is None or callable(key):
        return cast("Key | None", key)
    if isinstance(key, str) or not isinstance(key, Sequence) or not key:
        text = f"must name arguments, such as ('to', 'amount'), not {key!r}"
        raise Unstorable("key", text)
    names = cast("Sequence[object]", key)
    return tuple(checked_name(name, "key") for name in names)


def checked(policy: Any) -> Policy | None:
    """A policy if it is one; refuses any other value."""
    if policy is not None and policy not in get_args(Policy):
        raise Unstorable("effects", f"is one of {get_args(Policy)}, not {policy!r}")
    return cast("Policy | None", policy)
