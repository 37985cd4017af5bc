"""Real file systems that stop as in a power cut: on an image, in a loop device."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import struct
import subprocess
import sys
from functools import partial

from holdfast import HoldfastError
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.scenario import lost_appends
from holdfast.testing.trials.task import Target, Task

FILE_SYSTEMS = ("ext4", "xfs")
# The smallest that all of them accept; the image has holes.
IMAGE_BYTES = 320 << 20
# Ends a file system at once: nothing that waits in memory is written any more.
SHUT_DOWN = 0x8004587D
WITHOUT_LOG = struct.pack("I", 2)
# A name space of mounts that ends with the process, and the mounts with it.
OWN_MOUNTS = 0x00020000
MOST_SAVES = 40


def obstacle(kind: str) -> str:
    """The reason for which a file system cannot be tried here; ``""`` if it can."""
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists("/dev/loop-control"):
        return "there are no loop devices"
    if shutil.which(f"mkfs.{kind}") is None:
        return f"mkfs.{kind} is not installed"
    return ""


def cut_file_systems(task: Task, count: int) -> tuple[list[str], str]:
    """Cut each file system so many times; returns the problems, and what was tried.

    The mounts are seen by this process alone and go when it ends.
    """
    wrong: list[str] = []
    notes: list[str] = []
    for kind in FILE_SYSTEMS:
        why = obstacle(kind) or mounted(task.target, kind)
        if why:
            notes.append(f"{kind} not cut: {why}")
            continue
        for n in range(count):
            wrong += [f"{kind}: {what}" for what in _cut(task, kind, n)]
        _run("umount", mount_point(task.target, kind))
        notes.append(f"{kind} cut {count} times")
    return wrong, ", ".join(notes)


def mounted(target: Target, kind: str) -> str:
    """Make and mount a file system; returns the error of the system, or ``""``."""
    image = target.path(f"{kind}.image")
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    os.makedirs(mount_point(target, kind), exist_ok=True)
    if ctypes.CDLL(None, use_errno=True).unshare(OWN_MOUNTS) != 0:
        return os.strerror(ctypes.get_errno())
    return (
        _run("mount", "--make-rprivate", "/")
        or _run(f"mkfs.{kind}", "-q", image)
        or mount(target, kind)
    )


def mount(target: Target, kind: str) -> str:
    """Mount a file system that was made; returns the error of the system, or ``""``."""
    image = target.path(f"{kind}.image")
    return _run("mount", "-o", "loop", image, mount_point(target, kind))


def mounted_again(target: Target, kind: str) -> str:
    """Unmount and mount, as after a restart; returns the error, or ``""``."""
    return _run("umount", mount_point(target, kind)) or mount(target, kind)


def shut_down(place: str) -> None:
    """Cut the power of the file system that is mounted at a place."""
    import fcntl  # noqa: PLC0415 - Windows has none

    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUT_DOWN, WITHOUT_LOG)
    finally:
        os.close(descriptor)


def mount_point(target: Target, kind: str) -> str:
    """The folder in which a file system is mounted."""
    return target.path(kind)


def _run(*command: str) -> str:
    """Run a command; returns its error if it fails, otherwise ``""``."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    said = ended.stderr.strip() or f"{command[0]} failed"
    return said if ended.returncode else ""


def _cut(task: Task, kind: str, n: int) -> list[str]:
    """Cut the power in the middle of saves; the problems of the store that is left."""
    place = mount_point(task.target, kind)
    target = type(task.target)(task.target.address, place)
    name = f"store{n}"
    writer = Child(partial(_save, target, name))
    acknowledged = 0
    for _ in range(task.chance.randint(1, MOST_SAVES)):
        acknowledged = writer.report() or acknowledged
    shut_down(place)
    writer.kill()
    writer.wait()
    said = mounted_again(task.target, kind)
    return [said] if said else _lost(target, name, acknowledged)


def _save(target: Target, name: str, tell: Tell) -> None:
    """In a child: save until the file system is gone, and tell of every save made."""
    with contextlib.suppress(HoldfastError):
        thread = target.open(name).thread("chat")
        for n in range(1, 10_000):
            thread.append(log=[{"n": n, "text": "x" * 200}])
            tell(n)


def _lost(target: Target, name: str, acknowledged: int) -> list[str]:
    try:
        with target.open(name, cache_size=0) as store:
            wrong = lost_appends(store, acknowledged)
    except HoldfastError as error:
        return [repr(error)]
    target.discard(name)
    return wrong
