"""Up to which change the index is complete: what a search has to look at again."""

import holdfast
from holdfast.testing import raises
from holdfast.testing._search import places, user
from inner.engine import index


class Killed(BaseException):
    """What no code catches."""


def _talk(store, *names):
    for name in names:
        store.conversations.create(name, messages=[user(f"needle in {name}")])


def _found(store, text="needle"):
    return sorted(name for name, _ in places(store.search(text, limit=None)))


def test_the_next_search_goes_on_where_one_was_killed(store, monkeypatch):
    monkeypatch.setattr(index, "PAGE", 3)
    monkeypatch.setattr(index, "BATCH", 1)
    names = [f"{n}" for n in range(10)]
    _talk(store, *names)
    first, second = [], []

    def kill(done, total):
        first.append((done, total))
        if done == 6:
            raise Killed

    with raises(Killed):
        store.search("needle", progress=kill)
    found = store.search("needle", progress=lambda *told: second.append(told))

    assert first == [(done, 10) for done in range(7)]
    # The seventh was committed, too.
    assert second == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert sorted(match.conversation for match in found) == names
    assert store.verify().problems == ()


def test_what_was_adopted_behind_the_last_search_is_found(store, memory):
    """A copy takes family by family, so an older change can come after a newer."""
    _talk(memory, "a", "b")
    memory.conversations.add("a", user("more"))

    def stop(done, total):
        if done == 1:
            raise Killed

    target = holdfast.Store(store.runner.context)  # a sync one, also of an AsyncStore
    with raises(Killed):
        memory.copy_to(target, progress=stop)
    assert _found(store) == ["a"]
    memory.copy_to(target)

    assert _found(store) == ["a", "b"]


def test_a_rewind_whose_move_was_pruned_is_noticed(store):
    """Neither the feed nor the log says any more that the fork was rewound."""
    thread = store.thread("a")
    thread.append(messages=[user("first")])
    thread.append(messages=[user("needle")])
    thread.fork("b")
    assert _found(store) == ["a", "b"]

    store.thread("b").rewind("@~1")
    thread.rewind("@~1", hard=True)

    assert _found(store) == []
    assert _found(store, "first") == ["a", "b"]
