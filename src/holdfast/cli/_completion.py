"""Arguments that name threads and checkpoints, and their completion from the store.

Completion has a budget: a store that does not answer in time completes nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import CompletionItem

import holdfast
from holdfast._api.store import Store
from holdfast.cli._session import Session

BUDGET_SECONDS = 0.05
MOST = 50


if TYPE_CHECKING:  # generic for type checkers, but not in every release of click
    TextParameter: TypeAlias = click.ParamType[str]
else:
    TextParameter = click.ParamType


class Completed(TextParameter):
    """A text that the store may know how to go on with."""

    def __init__(self, name: str, find: Callable[[Store, str], Iterator[str]]) -> None:
        self.name, self._find = name, find

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's
        incomplete: str,
    ) -> list[CompletionItem]:
        return _complete(ctx, lambda store: self._find(store, incomplete))


def _complete(
    ctx: click.Context, find: Callable[[Store], Iterator[str]]
) -> list[CompletionItem]:
    session = ctx.ensure_object(Session)
    session.settings.wait = BUDGET_SECONDS
    found: list[str] = []

    def look() -> None:
        # Whatever is wrong with the store, a half-typed line is no place to say so.
        with contextlib.suppress(Exception), session.reading() as store:
            found.extend(find(store))

    # Loads what any store needs, which is not what the budget is for.
    holdfast.open(":memory:").close()
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(BUDGET_SECONDS)
    return [CompletionItem(text) for text in tuple(found)]


def _threads(store: Store, prefix: str) -> Iterator[str]:
    return (record.id for record in store.threads(prefix=prefix, limit=MOST))


def _references(store: Store, incomplete: str) -> Iterator[str]:
    """Threads, and behind an ``@`` the marks and steps of a thread's last part."""
    name, at, _ = incomplete.rpartition("@")
    found = _marked(store, name) if at else _threads(store, incomplete)
    return (text for text in found if text.startswith(incomplete))


def _marked(store: Store, name: str) -> Iterator[str]:
    for checkpoint in store.thread(name).history(MOST):
        if checkpoint.label:
            yield f"{name}@label:{checkpoint.label}"
        yield from (f"{name}@tag:{tag}" for tag in checkpoint.tags)
        yield f"{name}@{checkpoint.step}"


THREAD = Completed("thread", _threads)
# A checkpoint, as `holdfast.cli._names` reads it.
REFERENCE = Completed("reference", _references)
