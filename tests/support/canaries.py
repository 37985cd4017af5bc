"""A store in which everything of a person, an agent and a document has a canary."""

from __future__ import annotations

import itertools

import holdfast
from holdfast import Agent, Attachment, Message, ToolCall
from support.snapshots import MemorySnapshot

CANARY = "canary"
OWNER, AGENT, DOCUMENT = f"{CANARY}-owner", f"{CANARY}-agent", f"{CANARY}-document"
# What is erased, one after the other.
SUBJECTS = ({"owner": OWNER}, {"agent": AGENT}, {"thread": f"document:{DOCUMENT}"})
KEPT = {"text": "kept " * 100}
_numbers = itertools.count()


def _c(what):
    """A text with a canary that is found nowhere else."""
    return f"{CANARY} {next(_numbers)} {what}"


def fill(store):
    """Put a canary into every field that a caller can fill, beside what is to stay."""
    store.thread("kept", owner="other").save(KEPT)
    _fill_thread(store)
    store.agents.save(Agent(id="bot", name="shared"))
    _fill_conversation(store, "of-bot", agent="bot", owner=OWNER)
    store.conversations.create("staying", agent="bot", messages=[Message.user("hi")])
    store.agents.checkpoint("bot", "before")
    store.agents.save(Agent(id=AGENT, name=_c("name"), metadata={"k": _c("v")}))
    _fill_conversation(store, _c("id"), agent=AGENT)
    store.agents.checkpoint(AGENT, _c("name"), description=_c("text"))
    store.documents.save(DOCUMENT, {"text": _c("text") * 30})
    store.search(CANARY)
    store.thread(_c("deleted"), owner=OWNER, kind=_c("kind")).save({"n": _c("v")})
    store.delete(prefix=CANARY)


def _fill_thread(store):
    chat = store.thread(
        f"chat of {CANARY}", kind=_c("kind"), owner=OWNER, agent=_c("agent"),
        metadata={_c("key"): _c("metadata")},
    )  # fmt: skip
    files = MemorySnapshot({_c("path"): _c("content").encode() * 30})
    marks = {"kind": _c("kind"), "label": _c("label")}
    chat.save({_c("name"): _c("value")}, files=files, **marks)
    for _ in range(40):
        chat.append(messages=[{"role": "user", "content": _c("message") * 20}])
    chat.save({"n": _c("v")}, metadata={_c("k"): _c("v")}, journal={_c("k"): _c("v")})
    chat.tag("@2", _c("tag"))
    chat.fork(f"fork of {CANARY}", at="@20").record(_c("record"), {_c("k"): _c("v")})
    chat.rewind("@30")


def _fill_conversation(store, id_, **who):
    @holdfast.once
    def tool(text: str) -> str:
        return _c(text)

    recorder = store.conversations.recorder(id_, tools=[tool], **who)
    image = Attachment(name=_c("file"), content=_c("content") * 200)
    recorder.add(Message.user(_c("input"), attachments=[image]))
    call = ToolCall(id=_c("id"), name="tool", arguments={"text": _c("argument")})
    recorder.llm_response(Message.assistant(_c("text"), tool_calls=[call]))
    recorder.call(call, tool)
    recorder.save()
    recorder.add(Message.user(_c("pending")))
    store.conversations.update(id_, title=_c("title"))
