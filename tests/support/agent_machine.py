"""Agents, conversations and checkpoints against plain copies of what was saved."""

import contextlib
import os
from collections import Counter
from copy import deepcopy
from datetime import timedelta
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

import holdfast
from holdfast import Agent, Attachment, Conflict, Message, NotFound, Retention
from holdfast.testing import FakeClock, blocking, ids, raises
from inner.messages import KINDS

AGENTS = st.sampled_from(["a", "b"])
TALKS = st.sampled_from(["x", "y", "z"])
OWNERS = st.sampled_from([None, "ann", "bob"])
FILE = Attachment(id="f", content="f" * 3000)
# By name, so that a failure can be read.
MESSAGES = {
    "short": Message.user("hi", id="1", at=1),
    "long": Message.assistant("x" * 300, id="2", at=2),
    "file": Message.user("see", id="3", at=3, attachments=[FILE]),
    "call": {"role": "assistant", "tool_calls": [{"id": "c", "name": "look"}]},
    "result": {"role": "tool", "tool_call_id": "c", "content": "y" * 300},
}
message_names = st.lists(st.sampled_from(list(MESSAGES)), max_size=4)


def told(names):
    return [deepcopy(MESSAGES[name]) for name in names]


class Pinned(msgspec.Struct):
    """A checkpoint of the model: copies of everything it holds."""

    record: object
    agent: object
    talks: dict


class Machine(RuleBasedStateMachine):
    """A file, by the sync API."""

    reopens = True
    options = {}  # noqa: RUF012 - never changed

    @initialize()
    def begin(self):
        self.agents, self.talks, self.pinned = {}, {}, {}
        self.documents = {}
        # Every conversation as it was at each checkpoint, by the checkpoint's id.
        self.saved = {}
        self.folder = TemporaryDirectory()
        self.clock, self.new_id = FakeClock(), ids()
        self.open()

    def open(self):
        url = os.path.join(self.folder.name, "store.db")
        self.store = self.open_store(
            url,
            durability="normal",
            clock=self.clock,
            new_id=self.new_id,
            **self.options,
        )

    def open_store(self, url, **options):
        return holdfast.open(url, **options)

    def teardown(self):
        if hasattr(self, "store"):
            with contextlib.closing(self.store), self.folder:
                assert self.store.verify().problems == ()
                for agent, pins in self.pinned.items():
                    for pin in list(pins):
                        self.restore_one(agent, pin)
                        self.compare()
                assert self.store.verify().problems == ()

    def keep_agent(self, agent):
        """Note an agent as it is in the store now."""
        self.agents[agent.id] = deepcopy(replace(agent, active_conversations=()))

    def keep(self, talk):
        """Note a conversation as it is in the store now."""
        self.talks[talk.id] = deepcopy(talk)
        self.saved[talk.checkpoint] = deepcopy(talk)

    def draw_talk(self, data):
        return data.draw(st.sampled_from(sorted(self.talks)))

    def draw_pin(self, data):
        agent = data.draw(st.sampled_from(sorted(a for a in self.pinned)))
        return agent, data.draw(st.sampled_from(self.pinned[agent]))

    def has_talks(self):
        return bool(self.talks)

    def has_pins(self):
        return bool(self.pinned)

    # --- agents -----------------------------------------------------------------------

    @rule(id=AGENTS, n=st.integers(0, 3))
    def save_agent(self, id, n):
        self.keep_agent(
            self.store.agents.save(Agent(id=id, state={"n": "x" * 200 * n}))
        )

    @precondition(lambda self: self.agents)
    @rule(data=st.data(), n=st.integers(0, 3))
    def change_agent(self, data, n):
        id_ = data.draw(st.sampled_from(sorted(self.agents)))
        loaded, stale = self.store.agents.load(id_), self.store.agents.load(id_)
        loaded.config = {"n": n}

        self.keep_agent(self.store.agents.save(loaded))

        with raises(Conflict, "head_moved"):
            self.store.agents.save(stale)

    @rule(id=AGENTS)
    def delete_agent(self, id):
        belongs = [t.id for t in self.talks.values() if t.agent == id]

        assert self.store.agents.delete(id) == (id in self.agents)

        self.agents.pop(id, None)
        self.pinned.pop(id, None)
        for talk in belongs:
            del self.talks[talk]

    # --- conversations ----------------------------------------------------------------

    @rule(
        id=TALKS, agent=st.sampled_from([None, "a", "b"]), owner=OWNERS, m=message_names
    )
    def create_talk(self, id, agent, owner, m):
        create = self.store.conversations.create
        if id in self.talks:
            with raises(Conflict, "conversation_exists"):
                create(id, agent=agent, owner=owner, messages=told(m))
            return
        self.keep(create(id, agent=agent, owner=owner, messages=told(m)))

    @precondition(has_talks)
    @rule(data=st.data(), m=message_names)
    def add(self, data, m):
        id_ = self.draw_talk(data)
        self.clock.advance(timedelta(seconds=1))

        saved = self.store.conversations.add(id_, *told(m))

        talk = self.talks[id_]
        talk.messages += told(m)
        talk.checkpoint, talk.updated_at = saved.id, self.clock.now
        self.keep(talk)

    @precondition(has_talks)
    @rule(
        data=st.data(),
        title=st.sampled_from([None, "t", "u" * 300]),
        away=st.booleans(),
    )
    def update(self, data, title, away):
        id_ = self.draw_talk(data)

        saved = self.store.conversations.update(id_, title=title, archived=away)

        talk = self.talks[id_]
        talk.title, talk.archived = title, away
        talk.checkpoint, talk.updated_at = saved.id, saved.saved_at
        self.keep(talk)

    @precondition(has_talks)
    @rule(data=st.data(), at=st.integers(0, 5), m=message_names)
    def edit(self, data, at, m):
        id_ = self.draw_talk(data)
        loaded, stale = (self.store.conversations.load(id_) for _ in range(2))
        loaded.messages[at : at + 1] = told(m)

        self.keep(self.store.conversations.save(loaded))

        with raises(Conflict, "head_moved"):
            self.store.conversations.save(stale)

    @precondition(has_talks)
    @rule(data=st.data(), new=TALKS)
    def fork(self, data, new):
        id_ = self.draw_talk(data)
        thread = self.store.conversations.thread(id_)
        at = data.draw(st.sampled_from([c.id for c in thread.history()]))
        if new in self.talks:
            with raises(Conflict, "thread_exists"):
                thread.fork(f"conversation:{new}", at=at)
            return
        thread.fork(f"conversation:{new}", at=at)
        self.place(new, at, self.talks[id_])

    @precondition(has_talks)
    @rule(data=st.data())
    def rewind(self, data):
        id_ = self.draw_talk(data)
        thread = self.store.conversations.thread(id_)
        at = data.draw(st.sampled_from([c.id for c in thread.history(all=True)]))

        thread.rewind(at)

        self.place(id_, at, self.talks[id_])

    def place(self, id_, checkpoint, like):
        """A conversation is now what was saved as a checkpoint."""
        talk = deepcopy(self.saved[checkpoint])
        talk.id, talk.owner, talk.agent = id_, like.owner, like.agent
        self.talks[id_] = talk

    @precondition(has_talks)
    @rule(data=st.data(), owner=OWNERS)
    def hand_over(self, data, owner):
        id_ = self.draw_talk(data)

        self.store.conversations.thread(id_).describe(owner=owner)

        self.talks[id_].owner = owner

    @rule(id=TALKS)
    def delete_talk(self, id):
        assert self.store.conversations.delete(id) == (id in self.talks)

        self.talks.pop(id, None)

    # --- checkpoints ------------------------------------------------------------------

    def present(self, record):
        agent = record.agent_id
        theirs = {t.id: deepcopy(t) for t in self.talks.values() if t.agent == agent}
        return Pinned(record, deepcopy(self.agents.get(agent)), theirs)

    @rule(
        id=AGENTS, kind=st.sampled_from(KINDS), keep=st.sampled_from([None, None, 1, 2])
    )
    def checkpoint(self, id, kind, keep):
        if id not in self.agents:
            with raises(NotFound):
                self.store.agents.checkpoint(id, kind=kind)
            return
        made = self.store.agents.checkpoint(id, kind=kind, keep=keep)
        pins = self.pinned.setdefault(id, [])
        pins.append(self.present(made))
        if keep is not None:
            of_kind = [pin for pin in pins if pin.record.kind == kind]
            gone = [pin.record.id for pin in of_kind[:-keep]]
            self.pinned[id] = [pin for pin in pins if pin.record.id not in gone]

    @precondition(lambda self: self.agents)
    @rule(data=st.data())
    def take_automatic(self, data):
        id_ = data.draw(st.sampled_from(sorted(self.agents)))
        pins = self.pinned.get(id_, [])

        self.store.agents.autosave(id_, keep=None).take()

        newest = self.store.agents.checkpoints(id_, limit=1)[0]
        if not pins or pins[-1].record != newest:
            assert newest.kind == "automatic"
            self.pinned.setdefault(id_, []).append(self.present(newest))
        # Whether it was taken or not, the newest one holds what there is.
        held, now = self.pinned[id_][-1], self.present(newest)
        assert (held.agent, held.talks) == (now.agent, now.talks)

    @precondition(has_pins)
    @rule(data=st.data())
    def look_into_a_checkpoint(self, data):
        agent, pin = self.draw_pin(data)

        found = self.store.agents.load_checkpoint(agent, pin.record)

        assert found.checkpoint == pin.record
        assert replace(found.agent, active_conversations=()) == pin.agent
        assert {talk.id for talk in found.conversations} == pin.talks.keys()
        for id_, talk in pin.talks.items():
            held = self.store.agents.load_conversation(agent, pin.record, id_)
            assert held == talk

    @precondition(has_pins)
    @rule(data=st.data())
    def restore(self, data):
        self.restore_one(*self.draw_pin(data))

    def restore_one(self, agent, pin):
        foreign = [
            i for i in pin.talks if i in self.talks and self.talks[i].agent != agent
        ]
        if foreign:
            with raises(Conflict, "foreign"):
                self.store.agents.restore(agent, pin.record)
            return
        done = self.store.agents.restore(agent, pin.record)
        self.pinned[agent].append(self.present(done.recovery))
        before = {i for i, talk in self.talks.items() if talk.agent == agent}
        assert set(done.removed) == before - pin.talks.keys()
        assert set(done.revived) | set(done.rewound) <= pin.talks.keys()
        self.talks = {i: t for i, t in self.talks.items() if t.agent != agent}
        self.talks |= deepcopy(pin.talks)
        self.agents.pop(agent, None)
        if pin.agent is not None:
            self.agents[agent] = deepcopy(pin.agent)

    @precondition(has_pins)
    @rule(data=st.data())
    def delete_checkpoint(self, data):
        agent, pin = self.draw_pin(data)

        assert self.store.agents.delete_checkpoint(agent, pin.record) == 1

        left = [p for p in self.pinned[agent] if p is not pin]
        self.pinned[agent] = left
        if not left:
            del self.pinned[agent]

    # --- everything else --------------------------------------------------------------

    @rule(
        name=st.sampled_from(["n/a", "n/b"]), content=st.sampled_from(["", "x" * 300])
    )
    def save_document(self, name, content):
        self.documents[name] = deepcopy(self.store.documents.save(name, content))

    @rule(name=st.sampled_from(["n/a", "n/b"]))
    def delete_document(self, name):
        assert self.store.documents.delete(name) == (name in self.documents)

        self.documents.pop(name, None)

    @rule(last=st.integers(1, 3), labelled=st.booleans(), forks=st.booleans())
    def thin(self, last, labelled, forks):
        self.store.prune(Retention(last=last, labelled=labelled, forks=forks))

    @rule(last=st.integers(1, 2), agent=AGENTS, forks=st.booleans())
    def thin_an_agent(self, last, agent, forks):
        others = [t.id for t in self.talks.values() if t.agent != agent]
        before = {id_: self.store.conversations.thread(id_).count() for id_ in others}

        self.store.prune(Retention(last=last, forks=forks), agent=agent)

        for id_, count in before.items():
            assert self.store.conversations.thread(id_).count() == count

    @rule(per_owner=st.integers(1, 2))
    def prune_sessions(self, per_owner):
        used, gone = Counter(), []
        for talk in self.store.conversations.list(limit=None):
            used[talk.owner] += 1
            if talk.owner is not None and used[talk.owner] > per_owner:
                gone.append(talk.id)

        pruned = self.store.conversations.prune(per_owner=per_owner)

        assert pruned.threads == len(gone)
        for id_ in gone:
            del self.talks[id_]

    @rule()
    def compact(self):
        self.store.compact()

    @rule()
    def reopen(self):
        if self.reopens:
            self.store.close()
            self.open()

    # --- comparing --------------------------------------------------------------------

    @invariant()
    def compare(self):
        if not hasattr(self, "agents"):
            return
        assert {a.id for a in self.store.agents.list()} == self.agents.keys()
        for id_, agent in self.agents.items():
            active = {
                t.id for t in self.talks.values() if t.agent == id_ and not t.archived
            }
            loaded = self.store.agents.load(id_)
            assert {*loaded.active_conversations} == active
            assert replace(loaded, active_conversations=()) == agent
        listed = {summary.id: summary for summary in self.store.conversations.list()}
        assert listed.keys() == self.talks.keys()
        for id_, talk in self.talks.items():
            assert self.store.conversations.load(id_) == talk
            assert listed[id_].messages == talk.message_count
            assert listed[id_].exchanges == talk.exchange_count
            assert listed[id_].owner == talk.owner
        for agent in ("a", "b"):
            pins = self.pinned.get(agent, [])
            found = list(self.store.agents.checkpoints(agent))
            assert found == [pin.record for pin in reversed(pins)]
        for name, document in self.documents.items():
            assert self.store.documents.load(name) == document


class MemoryMachine(Machine):
    """Memory, by the async API, with a cache that never holds anything."""

    reopens = False
    options = {"cache_size": 0}  # noqa: RUF012 - never changed

    def open_store(self, url, **options):
        return blocking(holdfast.open_async(":memory:", **options))


class DirectoryMachine(Machine):
    """A folder."""

    def open_store(self, url, **options):
        return holdfast.open(f"dir:{url}", **options)
