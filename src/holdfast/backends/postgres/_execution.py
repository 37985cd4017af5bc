"""Statements run on a connection of ours, below the driver's cursors.

A cursor asks of every value how it is sent, and makes for that an object for every
statement: a quarter of what the client does for a save. Here the types of values choose
a form that is kept with the connection.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult
from xxhash import xxh3_64_hexdigest

from holdfast.backends._sql.rows import Row
from holdfast.backends.postgres._arrays import Byteas, Int2s, Int8s, Texts
from holdfast.backends.postgres._settings import Pooler

# A statement is prepared after so many runs: preparing it earlier costs a round trip.
PREPARED_AFTER = 2
# So many prepared statements are kept; then all are forgotten.
MOST_PREPARED = 200

_PARAMETER = re.compile(rb"%\((\w+)\)s")

Encode = Callable[[Any], bytes]
# The values of a statement: by name, or in the order in which it names them first.
Values = Mapping[str, Any] | list[Any]


# The type that the server is told, and what makes the binary form of a value, unless it
# is sent as it is. All integers are of one type: a statement is not prepared again for
# every size. Functions written in C take half as long here as ours would.
_ENCODED: dict[type, tuple[int, Encode | None]] = {
    type(None): (0, None),
    bool: (16, {False: b"\0", True: b"\1"}.__getitem__),
    bytes: (17, None),
    int: (20, struct.Struct(">q").pack),
    str: (25, str.encode),
    Byteas: (1001, attrgetter("data")),
    Int2s: (1005, attrgetter("data")),
    Texts: (1009, attrgetter("data")),
    Int8s: (1016, attrgetter("data")),
}


@lru_cache(1024)
def numbered(statement: bytes) -> tuple[bytes, tuple[str, ...]]:
    """A statement with numbers for its parameters, and their names."""
    names = list(dict.fromkeys(_PARAMETER.findall(statement)))
    text = _PARAMETER.sub(lambda p: b"$%d" % (names.index(p[1]) + 1), statement)
    return text, tuple(name.decode() for name in names)


def named(statement: bytes, values: Values) -> Mapping[str, Any]:
    """The values of a statement by name."""
    if isinstance(values, list):
        return dict(zip(numbered(statement)[1], values, strict=True))
    return values


class Form:
    """A statement with values of certain types, on one connection."""

    __slots__ = ("encoders", "formats", "name", "oids", "runs", "text")

    def __init__(self, text: bytes, types: Sequence[type]) -> None:
        self.text = text
        self.oids = [_ENCODED[found][0] for found in types]
        self.encoders = [
            (place, encode)
            for place, found in enumerate(types)
            if (encode := _ENCODED[found][1]) is not None
        ]
        self.formats = [Format.BINARY] * len(types)
        self.runs = 0
        # Empty unless the statement is prepared.
        self.name = b""


class Execution:
    """Runs statements on one connection, and knows what is prepared there."""

    def __init__(self, connection: Any, pooler: Pooler) -> None:
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._pooler = pooler
        self._attempts = 0
        self._forms: dict[tuple[bytes, tuple[type, ...]], Form] = {}

    def rows(self, statement: bytes, values: Values) -> PQGen[list[Row]]:
        """All rows of a statement; the connection waits for it.

        Values that are given in order may be changed.
        """
        text, names = numbered(statement)
        given = values
        if not isinstance(given, list):
            given = [given[name] for name in names]
        types = tuple(map(type, given))
        form = self._forms.get((statement, types)) or self._form(statement, types)
        if form is None:
            self._send_by_the_driver(text, given)
        else:
            is_plain = not (form.name or self._pooler.in_use)
            if is_plain and form.runs >= PREPARED_AFTER:
                yield from self._prepare(form)
            self._send(form, given)
        return self._loaded((yield from execute(self._pgconn)))

    def _form(self, statement: bytes, types: tuple[type, ...]) -> Form | None:
        if not _ENCODED.keys() >= set(types):
            return None
        text, _ = numbered(statement)
        form = self._forms[statement, types] = Form(text, types)
        return form

    def _send(self, form: Form, given: list[Any]) -> None:
        for place, encode in form.encoders:
            given[place] = encode(given[place])
        formats = form.formats
        if form.name and not self._pooler.in_use:
            self._pgconn.send_query_prepared(form.name, given, formats, Format.BINARY)
            return
        form.runs += 1
        self._pgconn.send_query_params(
            form.text, given, form.oids, formats, Format.BINARY
        )

    def _send_by_the_driver(self, text: bytes, given: list[Any]) -> None:
        """For values that are rarely sent, such as lists."""
        driver = Transformer(self._connection)
        sent = driver.dump_sequence(given, [PyFormat.AUTO] * len(given))
        self._pgconn.send_query_params(
            text, sent, driver.types, driver.formats, Format.BINARY
        )

    def _prepare(self, form: Form) -> PQGen[None]:
        prepared = [other for other in self._forms.values() if other.name]
        if len(prepared) >= MOST_PREPARED:
            self._pgconn.send_query_params(b"deallocate all", None)
            _checked((yield from execute(self._pgconn)))
            for other in prepared:
                other.name = b""
        # By its content: behind a pooler that was not noticed, what another program
        # prepared under this name is the same. And never the same twice: an attempt
        # that was cancelled may have prepared it.
        self._attempts += 1
        content = xxh3_64_hexdigest(b"%s %a" % (form.text, form.oids))
        name = f"holdfast_{content}_{self._attempts}".encode()
        self._pgconn.send_prepare(name, form.text, form.oids)
        _checked((yield from execute(self._pgconn)))
        form.name = name

    def _loaded(self, results: list[PGresult]) -> list[Row]:
        result = _checked(results)
        if result.status != ExecStatus.TUPLES_OK:
            return []
        transformer = self._transformer
        transformer.set_pgresult(result, format=Format.BINARY)
        rows = transformer.load_rows(0, result.ntuples, tuple)
        transformer.set_pgresult(None, set_loaders=False)
        return rows


def _checked(results: list[PGresult]) -> PGresult:
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
    return results[-1]
