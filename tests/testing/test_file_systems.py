"""Real file systems are cut: a sound store keeps what it acknowledged."""

from __future__ import annotations

import pytest

from holdfast.testing.trials.children import Child
from holdfast.testing.trials.file_systems import (
    FILE_SYSTEMS,
    cut_file_systems,
    obstacle,
)
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.task import Target, Task
from support.effort import QUICK

WHY = ", ".join(filter(None, map(obstacle, FILE_SYSTEMS)))
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(QUICK or bool(WHY), reason=WHY or "mounts: make test"),
]


class NotSynced(Target):
    """Stores that do not wait for the disk."""

    def open(self, name, **options):
        return super().open(name, **{"durability": "normal", **options})


def cut(kind, folder, count, target=Target):
    def work(tell):
        ignore_repairs()
        tell(cut_file_systems(Task(target(kind, str(folder)), count), count))

    [result] = Child(work).finish()
    return result


@pytest.mark.parametrize("kind", ["file", "dir"])
def test_nothing_acknowledged_is_lost(kind, tmp_path):
    wrong, note = cut(kind, tmp_path, 3)

    assert wrong == []
    assert note == "ext4 cut 3 times, xfs cut 3 times"


def test_a_store_that_does_not_sync_is_noticed(tmp_path):
    wrong, _ = cut("file", tmp_path, 3, NotSynced)

    assert {what.partition(":")[0] for what in wrong} == {"ext4", "xfs"}


def test_mounts_are_gone_with_the_process_that_made_them(tmp_path):
    cut("file", tmp_path, 1)

    with open("/proc/mounts") as file:
        assert str(tmp_path) not in file.read()
