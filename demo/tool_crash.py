"""Chapter 4: killed inside the first of two tools that the model asked for at once."""

from __future__ import annotations

from typing import Any

import holdfast
from demo import clerk
from demo.agent import Event
from demo.clerk import CONVERSATION, ORDERS
from demo.process import Worker
from demo.screen import Session, line_of
from demo.shop import customer, price
from demo.stage import Stage

FIRST, SECOND = ORDERS


def tell(stage: Stage) -> None:
    screen = stage.screen
    screen.heading(4, "Killed inside a tool, with another one to come")
    screen.say(
        "And if it dies after paying, before the payment is recorded? A second agent "
        "works in a loop with a recorder. Its model asks for two refunds in one reply, "
        "and the process dies inside the first."
    )
    first = killed_inside(stage)
    look_at_what_is_left(stage)
    second = go_on(stage)
    prove_once(stage, first, second)
    screen.pause(2.2)


def killed_inside(stage: Stage) -> int:
    """Let a process die when the money has moved and the tool has not returned."""
    screen = stage.screen
    with Worker(stage.clerks_path, stage.clerks_shop.ledger, "demo.clerk") as worker:
        for event in worker.events():
            if event.kind == "inside":
                break
        worker.kill()
    screen.line(f"{refund(FIRST)}   {screen.style('✖ kill -9', 'bad')}")
    screen.line(f"{refund(SECOND)}   {screen.style('not begun', 'dim')}")
    screen.gap()
    screen.pause(1.5)
    return worker.pid


def look_at_what_is_left(stage: Stage) -> None:
    screen = stage.screen
    with holdfast.open(stage.clerks_path, read_only=True) as store:
        session = Session(screen, store=store)
        session.run(f"run = store.conversations.recorder({CONVERSATION!r})")
        begun = session.run("[call.id for call in run.interrupted()]")
        left = session.run("[call.id for call in run.open_calls]")
    screen.gap()
    screen.claim(
        f"the journal knows: {begun[0]} began, {left[0]} never did",
        holds=(begun, left) == ([f"refund-{FIRST}"], [f"refund-{SECOND}"]),
    )
    screen.pause(1.8)


def go_on(stage: Stage) -> int:
    screen = stage.screen
    screen.gap()
    screen.code(line_of(clerk.work, "shop.find("), "did it? Ask the bank")
    screen.code(line_of(clerk.work, "run.resolve("), "if so, its result")
    screen.code(line_of(clerk.work, "run.call(call))"), "what never began is made")
    screen.gap()
    screen.pause(1)
    with Worker(stage.clerks_path, stage.clerks_shop.ledger, "demo.clerk") as worker:
        for event in worker.events():
            follow(stage, event)
    screen.gap()
    return worker.pid


def follow(stage: Stage, event: Event) -> None:
    screen = stage.screen
    done = screen.style("✓", "good")
    if event.kind == "unknown":
        found = screen.style("asked about, the bank has it", "good")
        screen.line(f"{refund(event.order)} {found} {done}")
    elif event.kind == "recorded":
        screen.line(f"{refund(event.order)} {done}")
    screen.pause(0.8)


def refund(order: int) -> str:
    return f"{order}  {customer(order):16}  refund {price(order):6.2f}"


def prove_once(stage: Stage, first: int, second: int) -> None:
    """Hold the transcript against the ledger, which knows nothing of Holdfast."""
    screen, effects = stage.screen, stage.clerks_shop.effects()
    made = [(effect.key, effect.process) for effect in effects]
    keys = [clerk.refund_call(order).key for order in ORDERS]
    screen.claim(
        f"{len(made)} refunds in the tools' ledger, one by {first}, one by {second}",
        holds=made == list(zip(keys, (first, second), strict=True)),
    )
    with holdfast.open(stage.clerks_path, read_only=True) as store:
        messages: list[Any] = store.conversations.load(CONVERSATION).messages
    told = [str(m["content"]) for m in messages if m["role"] == "tool"]
    receipts = [effect.receipt for effect in effects]
    screen.claim(
        f"the model heard of both: {' and '.join(receipts)}",
        holds=len(told) == len(receipts)
        and all(r in text for r, text in zip(receipts, told, strict=True)),
    )
