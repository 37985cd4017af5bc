"""The oracle: what a store has to do, written with dicts and lists."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Line:
    """A thread; ``past`` and ``future`` are the heads to undo and redo to."""

    head: str | None = None
    origin: str | None = None
    past: list = field(default_factory=list)
    future: list = field(default_factory=list)
    journal: dict = field(default_factory=dict)
    # After a removal undo may lead elsewhere: only that it leads somewhere is known.
    is_doubtful: bool = False


@dataclass
class Saved:
    state: Any
    parent: str | None
    step: int
    line: Line
    label: str | None = None
    tags: tuple = ()


class Model:
    def __init__(self):
        self.saved: dict[str, Saved] = {}  # in the order of the saves
        self.threads: dict[str, Line] = {}
        self.deleted: set[str] = set()

    @property
    def started(self):
        return [name for name, line in self.threads.items() if line.head]

    def thread(self, name):
        self.deleted.discard(name)
        return self.threads.setdefault(name, Line())

    def save(self, name, id_, state):
        line = self.thread(name)
        step = self.saved[line.head].step + 1 if line.head else 1
        self.saved[id_] = Saved(state, line.head, step, line)
        self.move(name, id_)

    def move(self, name, id_):
        line = self.threads[name]
        if line.head is not None:
            line.past.append(line.head)
        line.head, line.future = id_, []

    def turn(self, name, start, end):
        """Undo takes the head from the past to the future, redo back."""
        line = self.threads[name]
        getattr(line, end).append(line.head)
        line.head = getattr(line, start).pop()

    def fork(self, new, id_):
        self.deleted.discard(new)
        self.threads[new] = Line(head=id_, origin=id_)

    def history(self, name):
        return self.ancestors(self.threads[name].head)

    def everything(self, name):
        """What was saved in a thread, then what it inherited, each newest first."""
        line = self.threads[name]
        own = [i for i, saved in self.saved.items() if saved.line is line]
        inherited = self.ancestry([line.head, line.origin, *own]) - {*own}
        return own[::-1] + [i for i in reversed(self.saved) if i in inherited]

    def ancestors(self, id_):
        """A checkpoint and all before it, newest first."""
        found = []
        while id_ is not None:
            found.append(id_)
            id_ = self.saved[id_].parent
        return found

    def ancestry(self, ids):
        return {ancestor for id_ in ids for ancestor in self.ancestors(id_)}

    def needed_by(self, lines):
        """What some threads saved, stand on, or began with."""
        own = [i for i, saved in self.saved.items() if saved.line in lines]
        return self.ancestry([*own, *(i for n in lines for i in (n.head, n.origin))])

    def rewind_hard(self, name, id_):
        self.move(name, id_)
        line, order = self.threads[name], list(self.saved)
        later = {i for i in order[order.index(id_) :] if self.saved[i].line is line}
        others = {saved.line for saved in self.saved.values()}
        others |= {*self.threads.values()}
        self.remove(later - self.needed_by(others - {line}) - self.ancestry([id_]))

    def delete(self, name):
        gone = self.threads.pop(name)
        gone.head = gone.origin = None
        self.deleted.add(name)
        self.remove(self.saved.keys() - self.needed_by({*self.threads.values()}))

    def prune(self, last):
        kept = {i for line in self.threads.values() for i in (line.head, line.origin)}
        kept |= {i for i, saved in self.saved.items() if saved.label or saved.tags}
        for line in {saved.line for saved in self.saved.values()}:
            kept |= {*[i for i, s in self.saved.items() if s.line is line][-last:]}
        self.remove(self.saved.keys() - kept)

    def remove(self, ids):
        for line in self.threads.values():
            line.is_doubtful |= not ids.isdisjoint([*line.past, *line.future])
            line.origin = None if line.origin in ids else line.origin
        for saved in self.saved.values():
            left = (i for i in self.ancestors(saved.parent) if i not in ids)
            saved.parent = next(left, None)
        self.saved = {i: saved for i, saved in self.saved.items() if i not in ids}
