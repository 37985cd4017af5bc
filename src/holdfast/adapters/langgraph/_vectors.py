"""Search by meaning: the vectors of items, and their nearness to a query.

The vectors of an item are stored with it, so every backend can have them. This process
compares them, one by one, by a function of the package sqlite-vec.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import apsw
import msgspec
from langgraph.store.base import (
    IndexConfig,
    Op,
    PutOp,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
)

from holdfast.errors import MissingExtra, Unstorable, Unsupported

_WHOLE = "$"
_DISTANCE = "select vec_distance_cosine(?, ?)"


class Texts(msgspec.Struct, frozen=True):
    """The texts to embed for a batch of operations, each text once."""

    of_items: list[str]
    of_queries: list[str]


class Embedded(msgspec.Struct, frozen=True):
    """The vectors of a batch of operations, by text."""

    index: VectorIndex
    of_items: Mapping[str, bytes]
    of_queries: Mapping[str, bytes]

    def vectors(self, op: PutOp) -> dict[str, bytes]:
        """The vectors of an item, by the path of the text and its number there."""
        return {path: self.of_items[text] for path, text in self.index.texts(op)}

    def score(self, vectors: Iterable[bytes], query: str) -> float | None:
        """The nearness of the nearest vector to a query, or ``None`` without any.

        It is the cosine of the angle between them, at most 1.
        """
        wanted = self.of_queries[query]
        found = [self.index.cosine(vector, wanted) for vector in vectors]
        return max(found, default=None)


class VectorIndex:
    """LangGraph's ``index=``: paths of an item to embed, and the function for it."""

    def __init__(self, config: IndexConfig) -> None:
        self._dims = config.get("dims")
        if not isinstance(self._dims, int) or self._dims < 1:
            raise Unstorable("index", "needs dims, the length of the vectors")
        distance = cast("dict[str, object]", config).get("distance_type", "cosine")
        if distance != "cosine":
            raise Unsupported(
                f"distance_type {distance!r} is not supported; leave it out for cosine"
            )
        self._fields: Sequence[str] = config.get("fields") or [_WHOLE]
        self._embeddings = ensure_embeddings(config.get("embed"))
        self._connection, self._lock = _connected(), threading.Lock()

    def embedded(self, ops: Sequence[Op]) -> Embedded:
        """The vectors of a batch of operations."""
        texts = self._texts(ops)
        items = texts.of_items and self._embeddings.embed_documents(texts.of_items)
        queries = map(self._embeddings.embed_query, texts.of_queries)
        return self._paired(texts, items, queries)

    async def aembedded(self, ops: Sequence[Op]) -> Embedded:
        texts, model = self._texts(ops), self._embeddings
        items = texts.of_items and await model.aembed_documents(texts.of_items)
        queries = [await model.aembed_query(query) for query in texts.of_queries]
        return self._paired(texts, items, queries)

    def texts(self, op: PutOp) -> Iterator[tuple[str, str]]:
        """The texts of an item to embed, with their path and their number there."""
        if op.index is False or op.value is None:
            return
        for path in self._fields if op.index is None else op.index:
            for n, text in enumerate(get_text_at_path(op.value, path)):
                yield f"{path}#{n}", text

    def cosine(self, one: bytes, other: bytes) -> float:
        """The cosine: 1 for vectors of one direction, 0 for orthogonal ones."""
        with self._lock:
            try:
                [(distance,)] = self._connection.execute(_DISTANCE, (one, other))
            except apsw.SQLError:  # vectors of another length, made by another model
                return 0.0
        return 0.0 if distance is None else 1.0 - cast("float", distance)

    def _texts(self, ops: Sequence[Op]) -> Texts:
        puts = [op for op in ops if isinstance(op, PutOp)]
        asked = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
        texts = [text for op in puts for _, text in self.texts(op)]
        return Texts(list(dict.fromkeys(texts)), list(dict.fromkeys(asked)))

    def _paired(
        self, texts: Texts, items: Iterable[Any], queries: Iterable[Any]
    ) -> Embedded:
        found = map(self._packed, items), map(self._packed, queries)
        return Embedded(
            self,
            dict(zip(texts.of_items, found[0], strict=True)),
            dict(zip(texts.of_queries, found[1], strict=True)),
        )

    def _packed(self, vector: Sequence[float]) -> bytes:
        if len(vector) != self._dims:
            text = f"has dims {self._dims}, but embed gave a vector of {len(vector)}"
            raise Unstorable("index", f"{text}; correct one of them")
        return array("f", vector).tobytes()


def _connected() -> apsw.Connection:
    """A database without tables, for the functions of sqlite-vec."""
    try:
        extension: Any = import_module("sqlite_vec")
        connection = apsw.Connection(":memory:")
        connection.enable_load_extension(True)
        connection.load_extension(extension.loadable_path())
        connection.enable_load_extension(False)
    except (ImportError, AttributeError, apsw.Error) as error:
        raise MissingExtra(
            "index= needs the package sqlite-vec: pip install sqlite-vec; or leave"
            " index= out, and queries find items by the words in them"
        ) from error
    return connection
