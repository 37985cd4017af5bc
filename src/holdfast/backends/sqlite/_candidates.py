"""The threads in which some texts may stand, as the index for searching proposes them.

There are three ways. The stretches that match are sorted by the last use of their
threads; or the threads used last are looked up among the stretches that match; or they
are read, without the index. Measured for a share of all stretches that match: a match
takes 5 µs to be sorted and 0.25 µs to be looked up among, a thread 1 µs to be looked up
and 80 µs to be read, and a page takes about 20 matches. The quickest way depends on
share * share * stretches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

import apsw
import orjson

from holdfast._port import Candidate, Candidates
from holdfast._values.records import Page
from holdfast.backends._sql.reads import LATEST
from holdfast.backends._sql.rows import Row
from holdfast.backends.sqlite._rows import CODEC
from holdfast.backends.sqlite._search import as_json, position, rows
from holdfast.errors import Corrupt

GRAM = 3
# Each trigram is one more list to walk through, and so many seldom occur together by
# chance.
FEW_GRAMS, MOST_GRAMS = 8, 32
# Up to so many matches are sorted in any case.
FEW = 200
# The share of matches is estimated among so many stretches indexed last.
SAMPLE = 1024
# Frequencies from which on threads are looked up and are read. With an owner or agent
# they are read sooner: no index has those by use.
LOOKED_UP, READ, READ_FILTERED = 10, 2000, 500
# So many matches are expected among the threads that are looked up.
ENOUGH = 25

# Places of possible matches in a thread: the first and last message of each stretch.
Places = list[tuple[int, int]]


def read_candidates(db: apsw.Connection, query: Candidates) -> Page[Candidate] | None:
    """The threads in which some texts may stand; ``None`` to read those used last."""
    grams = _grams(query.texts)
    found = rows(db, "matching", grams=grams, after=0, limit=FEW)
    if len(found) == FEW:
        if query.quick:
            share, frequency = _frequency(db, grams)
            is_filtered = query.owner is not None or query.agent is not None
            if frequency >= (READ_FILTERED if is_filtered else READ):
                return None
            if frequency >= LOOKED_UP and not is_filtered:
                return _looked_up(db, query, grams, share)
        found += rows(db, "matching", grams=grams, after=found[-1][0], limit=LATEST)
    return _sorted(db, query, _by_thread(found))


def _frequency(db: apsw.Connection, grams: str) -> tuple[float, float]:
    """The share of stretches that match, and what decides about the way."""
    [(last,)] = rows(db, "last_stretch")
    [(matches,)] = rows(db, "frequency", grams=grams, after=last - SAMPLE)
    share = matches / min(SAMPLE, last)
    return share, share * share * last


def _by_thread(found: Iterable[Row]) -> dict[int, Places]:
    where: defaultdict[int, Places] = defaultdict(list)
    for _, thread, first, last in found:
        if thread is None:
            raise Corrupt("the search index", "it holds a text of no thread")
        where[thread].append((first, last))
    return where


def _sorted(
    db: apsw.Connection, query: Candidates, where: dict[int, Places]
) -> Page[Candidate]:
    values = _values(db, query)
    found = rows(db, "candidates", matching=as_json([*where]), **values)
    items: list[Candidate] = []
    for is_indexed, *columns in found:
        thread = CODEC.thread(tuple(columns))
        places = where[thread.number] if is_indexed else None
        items.append(Candidate(thread, _ranges(places)))
    is_full = bool(items) and len(items) == query.limit
    return Page(tuple(items), items[-1].thread.changed if is_full else None)


def _looked_up(
    db: apsw.Connection, query: Candidates, grams: str, share: float
) -> Page[Candidate]:
    """The threads that match among so many used last that a page may be filled."""
    values = _values(db, query)
    reach = ceil(ENOUGH / share)
    [(down_to, count)] = rows(db, "reach", after=values["after"], reach=reach)
    found = rows(db, "looked_up", grams=grams, down_to=down_to, **values)
    items: list[Candidate] = []
    for places, *columns in found:
        thread = CODEC.thread(tuple(columns))
        known = None if places is None else orjson.loads(places)
        items.append(Candidate(thread, _ranges(known)))
    if len(items) == query.limit:
        return Page(tuple(items), items[-1].thread.changed)
    return Page(tuple(items), down_to if count == reach else None)


def _values(db: apsw.Connection, query: Candidates) -> dict[str, Any]:
    """The values for the statements about the threads."""
    return {
        "position": position(db, query.form),
        "kind": query.kind,
        "without": query.without,
        "form": query.form,
        "owner": query.owner,
        "agent": query.agent,
        "after": LATEST if query.after is None else query.after,
        "limit": LATEST if query.limit is None else query.limit,
    }


def _ranges(places: Places | None) -> tuple[range, ...] | None:
    if places is None:
        return None
    return tuple([range(first, last + 1) for first, last in sorted(places)])


def _grams(texts: Sequence[str]) -> str:
    """The trigrams of some texts as an FTS5 expression that asks for all of them."""
    found = dict.fromkeys(
        text[n : n + GRAM] for text in texts for n in range(len(text) - GRAM + 1)
    )
    # Every other trigram tells nearly as much, for half of the lists.
    step = max(len(found) // MOST_GRAMS + 1, 1 + (len(found) > FEW_GRAMS))
    chosen = [*found][::step]
    quoted = (gram.replace('"', '""') for gram in chosen)
    return " AND ".join(f'"{gram}"' for gram in quoted)
