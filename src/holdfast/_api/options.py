"""The options of opening a store, and the context that they make."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict, cast

from msgspec.structs import replace

from holdfast._api.address import (
    open_backend,
    open_damaged_backend,
    shown_address,
    store_address,
)
from holdfast._api.plugins import Telemetry, find_encryption, find_telemetry
from holdfast._api.runner import scope_of
from holdfast._engine.cache import Cache
from holdfast._engine.context import Context
from holdfast._engine.packing.layer import Packing
from holdfast._engine.upkeep import erase, erasure, prune
from holdfast._engine.upkeep import seal as seals
from holdfast._port import KEYS, Backend, run
from holdfast._values import caller_key
from holdfast._values.arguments import checked_path, checked_seconds
from holdfast._values.caller_key import CallerKey
from holdfast._values.clock import now, uuid7
from holdfast._values.keywords import choice
from holdfast._values.os_errors import needing_room
from holdfast._values.reference import checked_id
from holdfast._values.scope_name import scope_prefix
from holdfast.errors import (
    Conflict,
    Corrupt,
    FormatMismatch,
    Unstorable,
    Unsupported,
)
from holdfast.retention import Retention

CACHE_SIZE = 64 << 20
# Options of PostgreSQL alone.
SPECIAL = frozenset({"schema", "pool", "partitions", "pgbouncer"})


class OpenOptions(TypedDict, total=False):
    """Options of a store; `holdfast.open` explains each."""

    durability: Literal["full", "normal"]
    compress: bool
    read_only: bool
    cache_size: int
    busy_timeout: float
    accept_loss: bool
    retention: Retention | None
    prune_every: timedelta
    clock: Callable[[], int]
    new_id: Callable[[], str]
    schema: str
    pool: tuple[int, int]
    partitions: int
    pgbouncer: bool
    telemetry: bool | Telemetry | None
    key: CallerKey | None
    seal: str | None
    scope: str | None
    make_folders: bool


def open_context(
    url: str | os.PathLike[str], options: OpenOptions, *, native: bool = False
) -> Context:
    """Open the backend an address names; ``native`` prefers one that is awaited."""
    _check(options)
    special: dict[str, object] = {n: v for n, v in options.items() if n in SPECIAL}
    with needing_room():
        telemetry = find_telemetry(options.get("telemetry"))
        backend = open_backend(
            url,
            native=native,
            special=special,
            read_only=options.get("read_only", False),
            durability=options.get("durability", "full"),
            busy_timeout=checked_seconds(
                options.get("busy_timeout", 5.0), "busy_timeout"
            ),
            compress=options.get("compress", False),
            accept_loss=options.get("accept_loss", False),
            make_folders=options.get("make_folders", False),
        )
    context = replace(context_over(backend, options), address=shown_address(url))
    if telemetry is None:
        return context
    schema = options.get("schema", "holdfast")
    return replace(context, observer=telemetry.observer(store_address(url), schema))


def context_over(backend: Backend, options: OpenOptions) -> Context:
    """The context of the operations, over an open backend."""
    key, keys = options.get("key"), None
    if key is not None:
        read_only = options.get("read_only", False)
        backend = keys = find_encryption()(backend, key, read_only=read_only)
    policy = options.get("retention")
    every = options.get("prune_every", timedelta(hours=1))
    compress = options.get("compress", False)
    return Context(
        backend=Packing(backend, compress=compress, encrypted=keys is not None),
        cache=Cache(options.get("cache_size", CACHE_SIZE)),
        clock=_checked_clock(options["clock"]) if "clock" in options else now,
        new_id=_checked_ids(options["new_id"]) if "new_id" in options else uuid7,
        after_save=prune.Housekeeping(policy, every // timedelta(microseconds=1))
        if policy
        else None,
        keys=keys,
    )


async def make_ready(
    context: Context, seal: str | None = None, scope: str | None = None
) -> Context:
    """Prepare the backend; refuse a store that needs a key, or is older than a seal.

    Gives the context of the scope if there is one: the seal is then the scope's.
    """
    try:
        await context.backend.ready()
        await _check_keys(context)
        if scope is not None:
            context = scope_of(context, scope, is_borrowed=False)
        if seal is not None:
            await seals.check_seal(context, seal)
        if await erasure.has_intent(context):
            await erase.finish(context)
    except BaseException:
        await context.backend.close()
        raise
    return context


async def _check_keys(context: Context) -> None:
    if context.keys is None and await _has_keys(context.backend):
        text = (
            "the store is encrypted; open it with its key: open(..., key=...), or for"
            " the command line HOLDFAST_KEY_FILE or HOLDFAST_PASSPHRASE"
        )
        raise Unsupported(text, code="key_needed")


async def _has_keys(backend: Backend) -> bool:
    try:
        return await backend.setting(KEYS) is not None
    except Corrupt:
        # What can be read must stay readable; `verify` tells what is damaged.
        return False


def over(context: Context, connection: object) -> Context:
    """The same store over a caller's connection.

    Its saves may be rolled back, so it has its own cache and does not prune.
    """
    return replace(
        context,
        backend=context.backend.using(connection),
        cache=Cache(CACHE_SIZE),
        after_save=None,
    )


def open_new(path: str, like: Context) -> Context:
    """Open a store that must not exist yet, encrypted if the other one is."""
    path = checked_path(path, "to")
    # A link that leads nowhere is in the way as well: nothing is written through it.
    if os.path.lexists(path.removeprefix("dir:")):
        text = f"{path} exists; choose the name of a new file"
        raise Conflict(text, code="file_exists")
    context = open_context(path, {"key": like.keys.key if like.keys else None})
    return run(make_ready(context))


def open_damaged(url: str | os.PathLike[str], key: CallerKey | None = None) -> Context:
    """Open a store for salvage, also one that is too damaged for `open_context`."""
    options: OpenOptions = {"read_only": True, "key": key}
    try:
        return open_context(url, options)
    except (Corrupt, FormatMismatch) as error:
        is_cut_short = isinstance(error, Corrupt) and error.lost > 0
        with needing_room():
            backend = open_damaged_backend(url, is_cut_short=is_cut_short)
        if backend is not None:
            return context_over(backend, options)
        if is_cut_short:
            return open_context(url, {**options, "accept_loss": True})
        raise


def _check(options: OpenOptions) -> None:
    if not options.keys() <= _MEANINGS.keys():
        unknown = min(options.keys() - _MEANINGS.keys())
        what_to_do = choice(unknown, _MEANINGS)
        raise Unstorable("open", f"has no option {unknown!r}; {what_to_do}")
    for name, value in options.items():
        makes_sense, meaning = _MEANINGS[name]
        if not makes_sense(value):
            raise Unstorable(name, f"must be {meaning}, not {value!r}")
    scope = options.get("scope")
    if scope is not None:
        scope_prefix(scope)
    key = options.get("key")
    if key is not None:
        caller_key.checked_key(key)
        find_encryption()


def _is_retention(value: Any) -> bool:
    return value is None or isinstance(value, Retention)


def _is_pool(value: Any) -> bool:
    if not isinstance(value, tuple | list):
        return False
    sizes = cast("Sequence[object]", value)
    if len(sizes) != 2 or not all(type(size) is int for size in sizes):  # noqa: PLR2004
        return False
    least, most = cast("Sequence[int]", sizes)
    return 0 <= least <= most and most > 0


_MEANINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "durability": (lambda v: v in ("full", "normal"), "'full' or 'normal'"),
    "compress": (lambda v: isinstance(v, bool), "True or False"),
    "read_only": (lambda v: isinstance(v, bool), "True or False"),
    "cache_size": (lambda v: type(v) is int and v >= 0, "a number of bytes"),
    "busy_timeout": (
        lambda v: not isinstance(v, bool) and isinstance(v, int | float) and v >= 0,
        "a number of seconds",
    ),
    "accept_loss": (lambda v: isinstance(v, bool), "True or False"),
    "retention": (_is_retention, "a Retention"),
    "prune_every": (
        lambda v: isinstance(v, timedelta) and v >= timedelta(0),
        "a timedelta",
    ),
    "schema": (lambda v: isinstance(v, str), "the name of a schema"),
    "pool": (_is_pool, "two numbers, the least and the most connections"),
    "partitions": (lambda v: type(v) is int and v > 1, "a number greater than 1"),
    "pgbouncer": (lambda v: isinstance(v, bool), "True or False"),
    "telemetry": (
        lambda v: v is None or isinstance(v, bool | Telemetry),
        "True, False or a Telemetry",
    ),
    "key": (lambda _: True, "a key"),  # checked apart: the error must not show it
    "seal": (lambda v: v is None or isinstance(v, str), "the text of a seal"),
    "scope": (lambda v: v is None or isinstance(v, str), "the name of a scope"),
    "make_folders": (lambda v: isinstance(v, bool), "True or False"),
    "clock": (callable, "callable"),
    "new_id": (callable, "callable"),
}


def _checked_clock(clock: Callable[[], int]) -> Callable[[], int]:
    """A caller's clock, whose times are checked."""

    def checked() -> int:
        time = clock()
        if type(time) is not int or not -(1 << 63) <= time < 1 << 63:
            raise Unstorable("clock", f"must give microseconds as int, not {time!r}")
        return time

    return checked


def _checked_ids(new_id: Callable[[], str]) -> Callable[[], str]:
    """A caller's source of ids, each of which is checked."""
    return lambda: checked_id(new_id())
