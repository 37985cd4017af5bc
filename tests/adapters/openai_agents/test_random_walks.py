"""Sessions that go anywhere, against a world that counts the payments.

A payment that the model knows of is on the line of its session. One more of the same
kind is made only if no earlier one was left behind: so a family has made as many as its
sessions ever knew of at one time, with the one being made.
"""

import asyncio
import os
import random
from collections import Counter
from contextlib import suppress

import pytest
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.openai_agents.bank import Bank, Cut, wants
from adapters.openai_agents.sessions import user
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.retention import Retention

set_tracing_disabled(True)

SEEDS = range(400 if os.environ.get("HOLDFAST_THOROUGH") else 8)
STEPS = 30
PEOPLE = ("ann", "bob")


class Walk:
    """Sessions of one family, and what their payments must come to."""

    def __init__(self, store, seed):
        self.store, self.choose = store, random.Random(seed)
        self.bank, self.expected = Bank(), Counter()
        self.sessions = [HoldfastSession("0", store)]
        self.session = self.sessions[0]
        self.number = 0
        self.log = []

    async def run(self):
        actions = (
            [self.pay] * 6
            + [self.pay_two, self.pay_in_vain, self.pay_cut_off] * 2
            + [self.rewind, self.undo, self.pop, self.fork, self.switch] * 2
            + [self.clear, self.summarize, self.summarize_end, self.prune]
        )
        for _ in range(STEPS):
            action = self.choose.choice(actions)
            self.log.append(action.__name__)
            await action()
            assert self.made == self.expected, self.log
            await self.check_listing()

    async def check_listing(self):
        """The thread lists as its own what the items tell of, and nothing else."""
        thread = self.store.conversations.thread(self.session.session_id)
        if thread.about is None:
            return
        listed = Counter(effect.arguments["to"] for effect in thread.effects())
        told = {to: await self.known(to) for to in PEOPLE}
        assert {to: listed[to] for to in PEOPLE} == told, self.log

    @property
    def made(self):
        return Counter(ref.split("-")[0] for ref in self.bank.paid)

    async def known(self, to):
        """How many payments to someone the items of the session tell of."""
        items = await self.session.get_items()
        told = [str(i.get("output", "")) for i in items]
        told += [i["content"] for i in items if i.get("role") == "user"]
        return sum(text.count(f"receipt {to}") for text in told)

    def wanted(self, to):
        self.number += 1
        return wants(f"{to}-{self.number}", to=to)

    async def expect(self, *people):
        for to, count in Counter(people).items():
            at_one_time = await self.known(to) + count
            self.expected[to] = max(self.expected[to], at_one_time)

    # --- paying -----------------------------------------------------------------------

    async def pay(self):
        to = self.choose.choice(PEOPLE)
        await self.expect(to)
        await self.bank.pay(self.session, self.wanted(to))

    async def pay_two(self):
        people = self.choose.choices(PEOPLE, k=2)
        await self.expect(*people)
        await self.bank.pay(self.session, [self.wanted(to) for to in people])

    async def pay_in_vain(self):
        """In a transaction that is given up."""
        to = self.choose.choice(PEOPLE)
        await self.expect(to)
        with suppress(ZeroDivisionError):
            async with self.session.transaction():
                await self.bank.pay(self.session, self.wanted(to))
                raise ZeroDivisionError

    async def pay_cut_off(self):
        """By a process that ends within the payment; someone looks what happened."""
        to = self.choose.choice(PEOPLE)
        await self.expect(to)
        before, asked = len(self.bank.paid), self.wanted(to)
        self.bank.cut = True
        try:
            await self.bank.pay(self.session, asked)
        except Cut:
            [ref] = self.bank.paid[before:]
            await self.session.resolve(asked.call_id, f"receipt {ref}")
        self.bank.cut = False

    # --- going somewhere --------------------------------------------------------------

    async def rewind(self):
        history = await self.session.history()
        if history:
            await self.session.rewind(self.choose.choice(list(history)))

    async def undo(self):
        try:
            await self.session.undo()
        except holdfast.NotFound:
            self.log.append("nothing to undo")

    async def pop(self):
        for _ in range(self.choose.randint(1, 6)):
            await self.session.pop_item()

    async def clear(self):
        await self.session.clear_session()

    async def fork(self):
        history = list(await self.session.history())
        if not history:
            return
        name, at = str(len(self.sessions)), self.choose.choice(history)
        self.session = await self.session.fork(name, at=at)
        self.sessions.append(self.session)

    async def switch(self):
        """To another session, as another process has it."""
        chosen = self.choose.choice(self.sessions)
        self.session = HoldfastSession(chosen.session_id, self.store)

    async def summarize(self):
        await self.session._atomic_replace_items([await self.summary(None)])

    async def summarize_end(self):
        found = await self.session._get_compaction_snapshot(4)
        if found.items:
            summary = await self.summary(found.items)
            await found.replace_suffix(0, [summary])

    async def summary(self, items):
        if items is None:
            items = await self.session.get_items()
        return user(f"There was {items!r}".replace("'ref'", ""))

    async def prune(self):
        self.store.prune(Retention(last=3))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_payment_is_made_twice_or_lost_wherever_a_session_goes(seed):
    with holdfast.open(":memory:") as store:
        asyncio.run(Walk(store, seed).run())
        assert store.verify().ok
