"""Metrics: durations, bytes, conflicts, effects that are unknown, the size of a log."""

import os

import pytest

import holdfast
from holdfast import Conflict
from support.stores import opened
from support.telemetry import Exported

PAY = {"id": "1", "name": "pay", "arguments": {"to": "me"}}


@pytest.fixture
def exported():
    return Exported()


@pytest.mark.parametrize("door", ["blocking", "awaited"])
def test_durations_and_bytes_are_counted_by_operation(door, path, exported):
    with opened(door, path, telemetry=exported.telemetry) as store:
        sizes = [store.thread("chat").append(log=["x" * 300]).size for _ in range(3)]
        store.thread("chat").load()
        with pytest.raises(Conflict):
            store.thread("chat").save({}, expect=None)

    found = {
        (
            point.attributes["db.operation.name"],
            point.attributes.get("error.type"),
        ): point.count
        for point in exported.points("db.client.operation.duration")
    }
    assert found == {
        ("append", None): 3,
        ("load", None): 1,
        ("save", "holdfast.errors.Conflict"): 1,
    }
    logical = exported.values("holdfast.bytes.logical", "db.operation.name")
    stored = exported.values("holdfast.bytes.stored", "db.operation.name")
    assert logical == {("append",): sum(sizes)}
    assert 900 < stored["append",] < sum(sizes)


def test_a_call_whose_outcome_is_unknown_is_counted_when_it_is_refused(path, exported):
    class KilledError(BaseException):
        pass

    def kill(to):
        raise KilledError

    with holdfast.open(path, telemetry=exported.telemetry) as store:
        with pytest.raises(KilledError):
            store.conversations.recorder("chat").call(PAY, kill)
        with pytest.raises(Conflict, match="did not end"):
            store.conversations.recorder("chat").call(PAY, lambda to: "paid")

    assert exported.values("holdfast.effects.unknown") == {(): 1}


def test_the_size_of_the_log_is_told_while_the_store_is_open(path, exported):
    with holdfast.open(path, telemetry=exported.telemetry) as store:
        store.thread("chat").save({"text": "x" * 100_000})
        told = exported.values("holdfast.log.size", "db.namespace")
        size = os.path.getsize(f"{path}-wal")

    assert told == {(path,): size}
    assert exported.points("holdfast.log.size") == []
