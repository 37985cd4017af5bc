"""The port over one schema of a PostgreSQL database.

Written once, as coroutines over sessions; over blocking sessions they never suspend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from holdfast._port import (
    Admission,
    Adoption,
    Facts,
    IndexBatch,
    Key,
    Outdated,
    Prune,
    Pruned,
    Query,
    Receipt,
    Write,
)
from holdfast._values.records import Change, Page, Run, Segment
from holdfast.backends.postgres import _migrations, _outcome, _search, _write
from holdfast.backends.postgres._adopt import admit, adopt
from holdfast.backends.postgres._commit import Commits
from holdfast.backends.postgres._connections import (
    Borrowed,
    Connections,
    borrowed,
    checked_conninfo,
    use,
)
from holdfast.backends.postgres._errors import NOT_ALLOWED
from holdfast.backends.postgres._inspection import PostgresInspection
from holdfast.backends.postgres._listener import follow
from holdfast.backends.postgres._pools import BlockingConnections, NativeConnections
from holdfast.backends.postgres._prune import DryRun, PostgresPrune
from holdfast.backends.postgres._read import (
    FeedPage,
    read_all,
    read_changes,
    read_page,
    read_segments,
    reads_all,
)
from holdfast.backends.postgres._retry import Attempts, RetryingSessions
from holdfast.backends.postgres._server import (
    Pooler,
    Settings,
    check_path,
    read_only,
    refusal,
)
from holdfast.backends.postgres._session import Session
from holdfast.backends.postgres._statements import (
    Statements,
    checked_schema,
    statements,
)
from holdfast.backends.postgres._timeout import Limit
from holdfast.errors import Unstorable, Unsupported

R = TypeVar("R")

ABILITIES = frozenset({"compact", "pack"})
TABLES = ("directory", "thread", "checkpoint", "segment", "journal", "move")


class PostgresBackend:
    """The port over one schema of a database."""

    def __init__(
        self, connections: Connections, schema: str, settings: Settings
    ) -> None:
        self.blocking = connections.blocking
        self.abilities = ABILITIES
        self._connections = connections
        self._schema = schema
        self._settings = settings
        self._statements = {
            **statements(schema, "shared.sql"),
            **statements(schema),
            **statements(schema, "search.sql"),
        }
        self._is_borrowed = isinstance(connections, Borrowed)
        # The caller decides how durable the caller's transaction is.
        own = _write.AT_ONCE if settings.durable else _write.NOT_AT_ONCE
        self._durable = _write.BY_CALLER if self._is_borrowed else own
        self._sessions = RetryingSessions(connections, settings, self._statements)
        self._commits = Commits(self._sessions, self._durable)

    async def ready(self) -> None:
        """Make or check the tables."""
        try:
            await self._sessions.retry(
                lambda t: use(self._connections, self._prepare, t.limit, t.deadline),
                Limit.ANSWER,
            )
        except BaseException:
            await self.close()
            raise

    async def _prepare(self, session: Session) -> None:
        can_search = await self._examine(session)
        if self._settings.read_only:
            await _migrations.check(session, self._schema)
        else:
            parts = self._settings.partitions
            await _migrations.migrate(session, self._schema, partitions=parts)
        if can_search:
            self.abilities = ABILITIES | {"search"}

    async def _examine(self, session: Session) -> bool:
        """Find out about the server and poolers; returns whether search is possible."""
        # By itself: another server may not understand the next one.
        [(number, version)] = await session.rows(self._statements["server"], {})
        refused = refusal(number, version)
        if refused is not None:
            raise Unsupported(refused)
        [found] = await session.rows(self._statements["around"], {})
        process, encoding, can_search, has_citus, *server, path = found
        # A pooler reports another process than the one that runs the statement.
        if process != session.process:
            self._settings.pooler.in_use = True
        check_path(path)
        reads_only, is_standby, is_reserved = server
        if reads_only and not self._settings.read_only:
            raise read_only(is_standby=is_standby)
        if is_reserved:
            text = f"{self._schema!r} is a word that SQL reserves; name another"
            raise Unstorable("schema", text)
        if encoding != "UTF8":
            raise Unsupported(
                f"the database is encoded in {encoding}; create one with UTF8"
            )
        if has_citus:
            self._statements.update(statements(self._schema, "citus.sql"))
        return bool(can_search)

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        if self._settings.read_only:
            self._check_writable()
        return await self._commits.commit(writes)

    async def prune(self, plan: Prune) -> Pruned:
        self._check_writable()

        async def count(db: Statements) -> Pruned:
            counts = DryRun(db, plan)
            await counts.carry_out()
            return counts.pruned

        if plan.dry_run:
            return await self._sessions.use(count, Limit.STATEMENT)
        done: list[PostgresPrune] = []

        async def carry_out(db: Statements) -> Pruned:
            pruning = PostgresPrune(db, plan, self._durable)
            async with db.transaction():
                await pruning.carry_out()
                done.append(pruning)
            return pruning.pruned

        async def find(db: Statements) -> Pruned | None:
            for pruning in done:
                if await _outcome.was_committed(db, pruning.trace, self._durable):
                    return pruning.pruned
            return None

        return await self._sessions.use(_outcome.Once(carry_out, find), Limit.STATEMENT)

    async def adopt(self, adoption: Adoption) -> None:
        self._check_writable()

        async def take_over(db: Statements) -> None:
            async with db.transaction():
                await adopt(db, adoption)

        await self._sessions.use(take_over, Limit.STATEMENT)

    async def admit(self, admission: Admission) -> None:
        self._check_writable()

        traces: list[_outcome.Trace | None] = []

        async def take_in(db: Statements) -> bool:
            async with db.transaction():
                traces.append(await admit(db, admission, self._durable))
            return True

        async def find(db: Statements) -> bool | None:
            for trace in traces:
                if await _outcome.was_committed(db, trace, self._durable):
                    return True
            return None

        await self._sessions.use(_outcome.Once(take_in, find), Limit.STATEMENT)

    async def compact(self) -> None:
        self._check_writable()
        if self._is_borrowed:
            raise Unsupported("a transaction cannot be compacted in; use the store")

        async def shrink(db: Statements) -> None:
            refused = await db.rows("refused_vacuum", tables=[*TABLES])
            if refused:
                names = ", ".join(name for (name,) in refused)
                raise Unsupported(
                    f"the role may not vacuum the tables {names}, so nothing would be"
                    " freed; compact as their owner",
                    code=NOT_ALLOWED,
                )
            # Limit the wait for the lock: all other transactions would wait behind it.
            if not self._settings.pooler.in_use:
                milliseconds = round(self._settings.timeout * 1000)
                await db.run(f"set lock_timeout = {milliseconds}")
            await db.rows("drop_dictionary")
            try:
                for table in TABLES:
                    await db.run(f"vacuum full {self._schema}.{table}")
            finally:
                if not self._settings.pooler.in_use:
                    await db.run("reset lock_timeout")

        await self._sessions.use(shrink, Limit.ANSWER)

    async def scrub(self) -> None:
        self._check_writable()
        if self._is_borrowed:
            raise Unsupported("a transaction cannot be scrubbed in; use the store")

        async def vacuum(db: Statements) -> None:
            await db.rows("drop_dictionary")
            # Not `full`, which would block all readers. Tables that the role may not
            # vacuum are left to autovacuum, with a warning.
            # A role that is bound to a scope leaves the index as it is.
            searched = _search.TABLES if await _search.is_readable(db) else ()
            if searched:
                async with db.transaction():
                    await _search.drop_gone(db)
            for table in (*TABLES, "setting", *searched):
                await db.run(f"vacuum {self._schema}.{table}")

        await self._sessions.use(vacuum, Limit.ANSWER)

    def _check_writable(self) -> None:
        if self._settings.read_only:
            text = f"schema {self._schema!r} is open for reading only"
            raise Unsupported(text, code="read_only")

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        return await self._sessions.use(lambda db: read_all(db, keys))

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        return await self._sessions.use(lambda db: read_segments(db, family, runs))

    async def scan(self, query: Query[R]) -> Page[R]:
        # In a caller's transaction, the index would be locked until the caller ends it.
        cannot_index = self._settings.read_only or self._is_borrowed
        if cannot_index and isinstance(query, Outdated):
            return Page(())
        limit = Limit.ANSWER if reads_all(query) else Limit.CALL
        return await self._sessions.use(lambda db: read_page(db, query), limit)

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        in_one_view = self._is_borrowed

        async def read(db: Statements) -> FeedPage:
            return await read_changes(db, after, limit, in_one_view=in_one_view)

        return await follow(
            lambda: self._sessions.use(read), self._connections.listener, timeout
        )

    # --- search -----------------------------------------------------------------------

    async def index(self, batch: IndexBatch) -> None:
        self._check_writable()

        async def catch_up(db: Statements) -> bool:
            async with db.transaction():
                is_whole = await _search.create(db)
                await _search.write(db, batch)
                return is_whole

        async def complete(db: Statements) -> None:
            async with db.transaction():
                await _search.create_text_index(db, self._schema)

        is_whole = await self._sessions.use(catch_up, Limit.STATEMENT)
        if batch.is_last and not is_whole:
            await self._sessions.use(complete, Limit.ANSWER)

    async def mend(self) -> bool:
        return False

    # --- lifecycle --------------------------------------------------------------------

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        if value is not None:
            self._check_writable()

        async def settle(db: Statements) -> bytes | None:
            if value is not None:
                store = "replace_setting" if replace else "insert_setting"
                await db.rows(store, name=name, value=value)
            found = await db.row("setting", name=name)
            return found[0] if found else None

        return await self._sessions.use(settle)

    async def facts(self) -> Facts:
        [counts] = await self._sessions.use(lambda db: db.rows("facts"), Limit.ANSWER)
        threads, checkpoints, segments, entries, logical, stored, file = counts
        return Facts(
            threads=threads,
            checkpoints=checkpoints,
            segments=segments,
            journal_entries=entries,
            logical_bytes=logical,
            stored_bytes=stored,
            file_bytes=file,
            format=_migrations.FORMAT,
            abilities=self.abilities,
        )

    async def inspect(self) -> PostgresInspection:
        async def begin(attempts: Attempts) -> PostgresInspection:
            session = await self._connections.take_separate(attempts.limit)
            db = Statements(session, self._statements)
            view = PostgresInspection(db, session.close)
            try:
                await db.run("begin isolation level repeatable read, read only")
            except BaseException:
                await session.close()
                raise
            return view

        return await self._sessions.retry(begin, Limit.ANSWER)

    async def check(self) -> list[str]:
        return []

    async def backup(self, path: str) -> None:
        raise Unsupported(
            f"{path}: a database is backed up with pg_dump, or copied with copy_to()"
        )

    async def close(self) -> None:
        await self._connections.close()

    def using(self, connection: object) -> PostgresBackend:
        """The same store as part of the caller's transaction."""
        lent = borrowed(connection)
        if lent.blocking != self.blocking:
            kind = "Connection" if self.blocking else "AsyncConnection"
            raise Unstorable("connection", f"must be a psycopg.{kind} for this store")
        return PostgresBackend(lent, self._schema, self._settings)


def open_blocking(conninfo: str, **options: Any) -> PostgresBackend:
    """A backend whose coroutines never suspend."""
    schema, settings = _settings(conninfo, options)
    connections = BlockingConnections(settings, f"{schema}.changes")
    return PostgresBackend(connections, schema, settings)


def open_native(conninfo: str, **options: Any) -> PostgresBackend:
    """A backend that is awaited."""
    schema, settings = _settings(conninfo, options)
    connections = NativeConnections(settings, f"{schema}.changes")
    return PostgresBackend(connections, schema, settings)


def _settings(conninfo: str, options: dict[str, Any]) -> tuple[str, Settings]:
    smallest, largest = options.get("pool", (1, 10))
    return checked_schema(options.get("schema", "holdfast")), Settings(
        conninfo=checked_conninfo(conninfo),
        smallest=smallest,
        largest=largest,
        timeout=options.get("busy_timeout", 5.0),
        read_only=options.get("read_only", False),
        durable=options.get("durability", "full") == "full",
        pooler=Pooler(options.get("pgbouncer", False)),
        partitions=options.get("partitions"),
    )
