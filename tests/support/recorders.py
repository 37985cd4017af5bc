"""What the tests of recorders share."""

from holdfast.operations.transcripts import calls_of
from support.transcripts import TURNS

HI = {"role": "user", "content": "Hi."}
HELLO = {"role": "assistant", "content": "Hello."}


def recorder(store, id="chat", **options):
    return store.conversations.recorder(id, **options)


def asking(dialect, *ids):
    """What a model replies that calls tools."""
    turn = TURNS[dialect](list(ids))
    return [m for m in turn if calls_of(m) or m.get("type") == "reasoning"]


def saves(store, id="chat"):
    return list(store.conversations.thread(id).history(order="oldest"))


def messages_of(store, checkpoint, id="chat"):
    return store.conversations.load(id, checkpoint).messages


def stored_of(told):
    target = getattr(told, "_target", told)
    return list(target._recording.messages)


class Tool:
    """A tool that counts how often it was run."""

    def __init__(self, result="found"):
        self.ran, self.result = 0, result

    def __call__(self, **arguments):
        self.ran += 1
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def called(store, **options):
    """A recorder of a conversation in which a tool is called."""
    told = recorder(store, repair=None, **options)
    told.add(HI)
    told.llm_response(asking("chat", "a"))
    return told
