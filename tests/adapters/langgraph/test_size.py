"""An unmodified graph of messages stays small, and a save costs what is new."""

import os
import random

from langchain_core.messages import AIMessage

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import thread
from holdfast.adapters.langgraph import HoldfastSaver

TURNS = 500 if os.environ.get("HOLDFAST_THOROUGH") else 250


class Talk:
    """Text that is as hard to compress as prose: few words often, many words seldom."""

    def __init__(self):
        self.random = random.Random(1)
        letters = "etaoinshrdlucmfwypvbgk"
        self.words = [
            "".join(self.random.choices(letters, k=self.random.randint(2, 9)))
            for _ in range(6000)
        ]
        self.weights = [1 / (rank + 2) for rank in range(6000)]

    def text(self, size):
        words = self.random.choices(self.words, self.weights, k=size // 3)
        return " ".join(words)[:size]


def test_a_chat_takes_at_most_3_megabytes_for_500_turns(tmp_path):
    talk = Talk()
    # What the tasks of a turn wrote fits into one page of the file, also with ids of
    # messages. LangGraph adds these while the writes are saved: beside much other load
    # they are in it. With 100 characters more it depends on the load whether a turn
    # fits, and the file takes up to a third more.
    chat = graphs.chat(lambda _: {"messages": [AIMessage(talk.text(900))]})
    with HoldfastSaver(tmp_path / "agents.db") as saver:
        graph = chat.compile(checkpointer=saver)
        for _ in range(TURNS):
            graph.invoke(graphs.say(talk.text(500)), thread("t"))
        state = graph.get_state(thread("t"))
        count = len(list(saver.list(thread("t"))))

    assert sum(len(text) for text in graphs.texts(state.values)) == TURNS * 1400
    assert count == TURNS * 3
    size = sum(os.path.getsize(file) for file in tmp_path.iterdir())
    assert size <= 3_000_000 * TURNS / 500


def test_a_save_stores_what_is_new_and_not_what_is_there(tmp_path):
    talk = Talk()
    chat = graphs.chat(lambda _: {"messages": [AIMessage(talk.text(1000))]})
    with holdfast.open(tmp_path / "agents.db", compress=False) as store:
        graph = chat.compile(checkpointer=HoldfastSaver(store))
        for _ in range(20):
            graph.invoke(graphs.say(talk.text(500)), thread("t"))
        before = store.stats().stored_bytes

        graph.invoke(graphs.say(talk.text(500)), thread("t"))

        # The question as the input and as a message, the answer, and three records.
        assert store.stats().stored_bytes - before < 2 * 700 + 1200 + 3 * 400
