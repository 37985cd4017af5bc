"""Every store of the benchmark keeps a conversation, and goes on with it later."""

from __future__ import annotations

import pytest
from benchmarks.contest.peers import TABLE, Peer, opened
from benchmarks.contest.workload import growing

INSTALLED = [peer for peer in TABLE if not peer.install]


def texts(messages):
    return [m["content"] if isinstance(m, dict) else m.content for m in messages]


@pytest.mark.parametrize("peer", INSTALLED, ids=lambda peer: peer.key)
def test_a_store_gives_back_what_was_saved_before_and_after_it_was_closed(
    peer, tmp_path
):
    path = str(tmp_path / "chat")
    *before, last = growing(4)

    first = opened(peer.opens, path)
    for turn in before:
        first.save(turn)
    first.close()
    second = opened(peer.opens, path)
    second.save(last)
    second.close()
    third = opened(peer.opens, path)
    found, tail = texts(third.load()), texts(third.last(3))
    third.close()

    assert found == texts(last.messages)
    assert tail == found[-3:]


def test_the_first_of_every_group_is_ours():
    assert all(PEER.is_ours for PEER in TABLE if PEER.ours == PEER.key)
    assert {peer.ours for peer in TABLE} == {p.key for p in TABLE if p.ours == p.key}


def test_what_is_not_installed_says_how_to_install_it():
    package = Peer("x", "g", "X", "x:X", packages=("orjson", "no-such-package"))
    program = Peer("y", "g", "Y", "y:Y", program="no-such-program")

    assert package.install == "pip install orjson no-such-package"
    assert program.install == "install no-such-program"
