"""Erased text is in no file any more; encrypted text is in no file at any time."""

from __future__ import annotations

import importlib.util
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

from holdfast import HoldfastError, Store
from holdfast._api.options import OpenOptions
from holdfast.testing.faults import Call, kill
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.task import NotRun, Target, Task, Trials

LATE_WRITES = 10
KEY_SIZE = 32
# How many nonces are counted for each store: a million in a full run.
NONCES = 5_000
THREADS = 4


def _fill(store: Store, name: str, canary: str) -> None:
    """Put a text that is found nowhere else into everything that takes a text."""
    thread = store.thread(f"{name} {canary}", owner=canary, metadata={"m": canary})
    for n in range(4):
        thread.append(messages=[f"{n} {canary} " + "x" * 300])
    thread.save({canary: canary * 20}, label=canary, tags=[canary])
    thread.record(canary, {"paid": canary})


def _copies(folder: str, canary: str) -> list[str]:
    """One message for each file of a folder that has a text in its content or name."""
    found: list[str] = []
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                count = file.read().count(canary.encode())
            if count or canary in name:
                found.append(f"{name} has {count} copies of what must not be there")
    return found


# --- erasure --------------------------------------------------------------------------


def erasure(task: Task) -> Trials:
    """Erase a thread and crash: no byte is left, and late writers are refused."""
    wrong: list[str] = []
    for n in range(task.count):
        target, canary = task.target.at(f"erased{n}"), secrets.token_hex(12)
        child = Child(partial(_erase, target, canary))
        child.wait()
        if not child.was_killed:
            wrong.append(f"the erasure ended with status {child.status}")
        # The log is searched too: closing the store would have removed it.
        wrong += _copies(target.folder, canary)
        with target.open("store") as store:
            wrong += _revived(store, canary)
        wrong += _copies(target.folder, canary)
        task.done(n + 1)
    return Trials(task.count, wrong)


def _erase(target: Target, canary: str, _: Tell) -> None:
    """In a child: erase a thread, and close nothing."""
    store = target.open("store")
    store.thread("kept").save({"text": "kept " * 200})
    thread = store.thread(canary, metadata={"m": canary})
    for turn in range(5):
        thread.append(messages=[f"{turn} {canary} " + "x" * 300])
    thread.record("paid", {"text": canary})
    thread.label(canary)
    store.erase(thread=canary)
    kill(Call("write", canary))


def _revived(store: Store, name: str) -> list[str]:
    """Late writes that were not refused."""
    revived = 0
    for n in range(LATE_WRITES):
        try:
            store.thread(name).append(messages=[f"late {n}"])
        except HoldfastError:
            continue
        revived += 1
    return [f"{revived} late writes revived what was erased"] if revived else []


# --- encryption -----------------------------------------------------------------------


def key_option(key: bytes) -> OpenOptions:
    """The option of opening with a key; raises `NotRun` where there are no keys."""
    if "key" not in OpenOptions.__annotations__:
        raise NotRun("this version has no keys")
    if importlib.util.find_spec("cryptography") is None:
        raise NotRun("needs the extra: pip install 'holdfast[keys]'")
    return cast("OpenOptions", {"key": key})


def encryption(task: Task) -> Trials:
    """Write with a key and crash: no text is readable, and no other key opens it."""
    wrong: list[str] = []
    for n in range(task.count):
        key, canary = secrets.token_bytes(KEY_SIZE), secrets.token_hex(12)
        target = task.target.at(f"encrypted{n}")
        Child(partial(_crash, target, key, canary)).wait()
        wrong += _copies(target.folder, canary)
        with target.open("store", **key_option(key)) as store:
            if store.thread(f"secret {canary}").load() != {canary: canary * 20}:
                wrong.append("with the right key the state is another")
        wrong += _copies(target.folder, canary)
        others = [key_option(secrets.token_bytes(KEY_SIZE)), OpenOptions()]
        wrong += [what for options in others for what in _opens(target, options)]
        task.done(n + 1)
    counted = task.count * NONCES
    if repeated := repeated_nonces(counted):
        wrong.append(f"{repeated:,} of {counted:,} nonces came twice")
    return Trials(task.count, wrong, f"{counted:,} nonces counted")


def repeated_nonces(count: int) -> int:
    """Encrypt ``count`` contents on several threads; the number of repeated nonces."""
    # The package that it needs is optional.
    from holdfast.keys._ciphers import (  # noqa: PLC0415
        ID,
        ContentCipher,
        ContentKey,
        nonce_of,
    )

    cipher, key = ContentCipher(), ContentKey(bytes(ID), secrets.token_bytes(KEY_SIZE))

    def work(share: int) -> list[bytes]:
        return [nonce_of(cipher.encode(b"", b"", key)) for _ in range(share)]

    with ThreadPoolExecutor(THREADS) as pool:
        parts = pool.map(work, [count // THREADS] * THREADS)
        found = [nonce for part in parts for nonce in part]
    return len(found) - len(set(found))


def _crash(target: Target, key: bytes, canary: str, _: Tell) -> None:
    """In a child: leave files behind as a crash does."""
    _fill(target.open("store", **key_option(key)), "secret", canary)
    kill(Call("write", canary))


def _opens(target: Target, options: OpenOptions) -> list[str]:
    try:
        target.open("store", **options).close()
    except HoldfastError:
        return []
    return ["it was opened without the right key"]
