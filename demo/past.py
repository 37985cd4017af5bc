"""Chapters 5, 6 and 8: a fork and its difference, a rewind, a verification."""

from __future__ import annotations

import os

import holdfast
from demo import agent
from demo.agent import THREAD
from demo.screen import Screen, Session, cut
from demo.shop import Shop
from demo.stage import Stage
from holdfast.diff import Change


def fork(stage: Stage, store: holdfast.Store) -> None:
    screen = stage.screen
    thread = store.thread(THREAD)
    head, effects = thread.head, stage.shop.effects()
    screen.heading(5, "What if? A fork shares the past and copies nothing")
    screen.say(
        "The last order was outside the refund window of 30 days and got store credit. "
        "And with 60 days? Go back two steps, before the agent decided, and let it try "
        "with play money."
    )
    session = Session(screen, thread=thread)
    stored = store.stats().stored_bytes
    trial = session.run("trial = thread.fork('what-if', at='@~2')")
    copied = store.stats().stored_bytes - stored
    session.run("trial.save(trial.load() | {'refund_days': 60}).step")
    play_money = Shop(os.path.join(stage.folder, "what-if.jsonl"))
    for _ in agent.work(trial, play_money):
        pass
    screen.pause(1.5)
    show_difference(screen, session)
    screen.claim(f"the fork copied {copied} bytes of state", holds=copied == 0)
    screen.claim(
        "the original and the real ledger are untouched",
        holds=thread.head == head and stage.shop.effects() == effects,
    )
    screen.pause(2.2)


def show_difference(screen: Screen, session: Session) -> None:
    difference: holdfast.Diff = session.run("found = thread.diff('@', trial.head)")
    session.run("len(found)")
    for change in difference.changes:
        for line in folded(change):
            screen.line(f"  {line}")
    screen.gap()
    by = ("closed", 11, "by")
    screen.claim(
        "with 60 days the customer gets the money instead of store credit",
        holds=[(c.old, c.new) for c in difference.changed if c.path == by]
        == [("issue_credit", "issue_refund")],
    )


def folded(change: Change) -> list[str]:
    """The change on one line if it fits, else its old and its new value on two."""
    text = str(change)
    if len(text) <= 80:
        return [text]
    old, _, new = text.partition(" -> ")
    return [cut(old, 80), cut(f"    -> {new}", 80)]


def rewind(stage: Stage, store: holdfast.Store) -> None:
    screen = stage.screen
    thread = store.thread(THREAD)
    head, state = thread.head, thread.load()
    screen.heading(6, "Rewind, and undo the rewind")
    session = Session(screen, thread=thread)
    session.run("thread.rewind('label:closed-4814').step")
    earlier = session.run("len(thread.load()['closed'])")
    screen.pause(1)
    session.run("thread.undo().step")
    later = session.run("len(thread.load()['closed'])")
    screen.gap()
    screen.claim(
        f"{earlier} orders closed, then {later} again: the same checkpoint and state",
        holds=(earlier, later) == (3, stage.orders)
        and (thread.head, thread.load()) == (head, state),
    )
    screen.pause(1.5)


def verify(stage: Stage, store: holdfast.Store) -> None:
    screen = stage.screen
    screen.heading(8, "Check every checksum, digest and reference")
    found = Session(screen, store=store).run("store.verify().ok")
    screen.gap()
    screen.claim("the store is sound, after kill, fork, rewind and undo", holds=found)
    screen.pause(1)
