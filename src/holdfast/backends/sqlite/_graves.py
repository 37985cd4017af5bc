"""Tombstones that have a digest instead of a name: making and finding them."""

from __future__ import annotations

import os

import apsw

from holdfast._values.graves import SALT_NAME, SALT_SIZE, grave_name
from holdfast._values.records import ThreadRecord
from holdfast.backends._sql.conflicts import stale_plan
from holdfast.backends._sql.rows import Row
from holdfast.backends.sqlite._statements import row, rows


def erase_name(db: apsw.Connection, tombstone: ThreadRecord) -> None:
    """Leave no more of a deleted thread than a digest of its name."""
    rows(db, "insert_setting", name=SALT_NAME, value=os.urandom(SALT_SIZE))
    grave = _grave_of(db, tombstone.id)
    place = {"number": tombstone.number, "changed": tombstone.changed}
    if row(db, "erase_name", grave=grave, **place) is None:
        raise stale_plan()
    rows(db, "seal_thread", number=tombstone.number)


def find_tombstone(db: apsw.Cursor, name: str) -> Row | None:
    """The tombstone of a deleted or erased thread, ``None`` if there is none."""
    found = row(db, "tombstone", name=name)
    if found is None:
        grave = _grave_of(db, name)
        found = row(db, "tombstone", name=grave) if grave else None
    return found


def find_thread(db: apsw.Connection | apsw.Cursor, name: str) -> Row | None:
    """A thread, or what is left of it."""
    found = row(db, "thread_by_name", name=name)
    if found is None:
        grave = _grave_of(db, name)
        found = row(db, "thread_by_name", name=grave) if grave else None
    return found


def _grave_of(db: apsw.Connection | apsw.Cursor, name: str) -> str | None:
    """The digest in place of a name, ``None`` if nothing was ever erased."""
    salt = row(db, "setting", name=SALT_NAME)
    return None if salt is None else grave_name(salt[0], name)
