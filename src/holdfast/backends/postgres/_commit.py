"""Commits: in one statement where possible, alone or with others, and made once."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial

from holdfast._port import Receipt, Write
from holdfast.backends.postgres import _outcome, _write
from holdfast.backends.postgres._batch import BatchedSavesByLoop, NotSaved
from holdfast.backends.postgres._errors import NOT_TRANSLATED, Lost, Unreached
from holdfast.backends.postgres._retry import RetryingSessions
from holdfast.backends.postgres._statements import Statements
from holdfast.backends.postgres._timeout import Limit
from holdfast.backends.postgres._write import Durable
from holdfast.errors import Conflict, HoldfastError


class Commits:
    """The commits of a backend."""

    def __init__(self, sessions: RetryingSessions, durable: Durable) -> None:
        self._sessions = sessions
        self._durable: Durable = durable
        self._batches: BatchedSavesByLoop | None = None
        if not sessions.blocking and not sessions.is_borrowed:
            timeout = sessions.settings.timeout
            self._batches = BatchedSavesByLoop(self._save_together, timeout)

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        """Apply all writes or none."""
        try:
            if len(writes) == 1 and _write.can_stand_alone(writes[0]):
                alone = await self._commit_one(writes[0])
                if alone is not None:
                    return [alone]
            return await self._commit_all(writes)
        except Conflict as conflict:
            if conflict.code == "id_taken":
                # An earlier attempt may have made it; the engine then acknowledges that
                # save.
                await self._confirm(conflict.thread or "")
            raise

    async def _confirm(self, thread: str) -> None:
        async def confirm(db: Statements) -> None:
            if place := await db.row("place", name=thread):
                await _outcome.confirm(db, place[0], self._durable)

        await self._sessions.use(confirm)

    async def _commit_all(self, writes: Sequence[Write]) -> list[Receipt]:
        # Attempts that made all writes, and so may have been committed.
        attempts: list[list[Receipt]] = []

        async def commit_all(db: Statements) -> list[Receipt]:
            async with db.transaction():
                made = await _write.apply_together(db, writes, self._durable)
                attempts.append(made)
            return attempts[-1]

        async def find(db: Statements) -> list[Receipt] | None:
            for receipts in attempts:
                trace = _outcome.trace_of(writes, receipts)
                if await _outcome.was_committed(db, trace, self._durable):
                    return receipts
            return None

        limit = Limit.CALL if len(writes) == 1 else Limit.STATEMENT
        return await self._sessions.use(_outcome.Once(commit_all, find), limit)

    def _commit_one(self, write: Write) -> Awaitable[Receipt | None]:
        """The receipt of a write in one statement, ``None`` if it could not be done."""
        if self._batches is not None and _write.is_plain_save(write):
            return self._batches.here().save(write, partial(self._apply, write))
        return self._apply(write)

    def _apply(
        self,
        write: Write,
        tried: NotSaved | None = None,
        deadline: float | None = None,
    ) -> Awaitable[Receipt | None]:
        once = _outcome.Once(
            partial(_write.apply_alone, write=write, durable=self._durable),
            partial(_outcome.find_save, write=write, durable=self._durable),
            tried is not None and tried.is_doubtful,
        )
        return self._sessions.use(once, Limit.CALL, deadline)

    async def _save_together(
        self, writes: Sequence[Write], deadline: float
    ) -> list[Receipt | NotSaved]:
        async def save(db: Statements) -> list[Receipt | NotSaved]:
            found = await _write.save_each(db, writes, self._durable)
            return [receipt or NotSaved(is_doubtful=False) for receipt in found]

        try:
            return await self._sessions.use_once(save, deadline)
        except (*NOT_TRANSLATED, Lost) as error:
            is_cut_short = isinstance(error, Lost) and not isinstance(error, Unreached)
            return [NotSaved(is_doubtful=is_cut_short)] * len(writes)
        except HoldfastError as error:
            if error.code != "database":
                raise
            # Not every server takes rows of several families in one statement.
            self._batches = None
            return [NotSaved(is_doubtful=False)] * len(writes)
