"""Short definitions of tools for MCP clients.

A client puts the definitions of all tools before every request of its model, beside
those of other servers. Rules for all tools are in the instructions of the server,
arguments with telling names have no description, and results have notes how to go on.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.tools._schemas import Schema

# Arguments that need no description: the instructions explain the last three.
EVIDENT = frozenset(
    {
        *("agent_id", "conversation_id", "name", "title", "tags", "tag", "summary"),
        *("messages", "description", "system_prompt", "capabilities", "metadata"),
        *("config", "owner", "thread", "kind", "prefix", "part", "limit", "cursor"),
    }
)
_TYPES = {
    "s": "string",
    "n": "integer",
    "b": "boolean",
    "a": "array",
    "o": "object",
}


class Brief(NamedTuple):
    """A description, and the fields of the result with the first letters of types.

    A field that may be null or anything has none. Results can have more fields.
    """

    text: str
    gives: str

    @property
    def output(self) -> Schema:
        """The schema of the result."""
        fields = [field.partition(":") for field in self.gives.split()]
        types = {name: {"type": _TYPES[t]} if t else {} for name, _, t in fields}
        return {"type": "object", "properties": types}


BRIEF = {
    "agent_save": Brief(
        "Create or change an agent. What is left out stays, an empty value clears;"
        " state is replaced unless merge_state.",
        "agent_id:s created:b version:n",
    ),
    "agent_load": Brief("Read an agent, or one part of it.", "agent_id:s state"),
    "agent_delete": Brief(
        "Delete an agent with its conversations and checkpoints, for good. Only if the"
        " user asked for exactly this.",
        "deleted:n",
    ),
    "agent_list": Brief("List agents, last used first.", "agents:a cursor"),
    "conversation_save": Brief(
        "Create or change a conversation and append messages; those that are its last"
        " already are not added again. What is left out stays, an empty value clears;"
        " context and metadata are replaced unless merge.",
        "conversation_id:s created:b added:n message_count:n",
    ),
    "conversation_load": Brief(
        "Read a conversation with its newest messages, or one part of it; part effects"
        " gives the tool calls it made.",
        "conversation_id:s messages:a cursor",
    ),
    "conversation_delete": Brief(
        "Delete a conversation. Only if the user asked for it; archived of"
        " conversation_save puts it away.",
        "deleted:n",
    ),
    "conversation_list": Brief(
        "List conversations, last used first.", "conversations:a cursor"
    ),
    "conversation_search": Brief(
        "Find messages of conversations that have all words. Use few distinctive words."
        " conversation_load with part messages.<position> gives one.",
        "matches:a cursor",
    ),
    "checkpoint_create": Brief(
        "Keep an agent with all its conversations as they are now, for"
        " checkpoint_restore. Use it before anything risky.",
        "checkpoint_id:s",
    ),
    "checkpoint_restore": Brief(
        "Put an agent and all its conversations back to a checkpoint. Restoring undo"
        " takes it back; left_behind are tool calls that stay in force.",
        "undo rewound revived removed left_behind",
    ),
    "checkpoint_list": Brief(
        "List an agent's checkpoints, newest first.", "checkpoints:a cursor"
    ),
    "checkpoint_delete": Brief(
        "Delete a checkpoint, for good; agent and conversations stay.", "deleted:n"
    ),
    "persistence_stats": Brief("Count what the store holds.", "messages:n"),
    "thread_list": Brief(
        "List threads of every kind, last used first: also sessions of frameworks.",
        "threads:a cursor",
    ),
    "thread_load": Brief(
        "Read the state of a thread, also at an earlier step, or one part of it.",
        "thread:s step:n state",
    ),
    "thread_search": Brief(
        "Find messages in threads of every kind that have all words. thread_load with"
        " part messages.<position> gives one.",
        "matches:a cursor",
    ),
    "document_list": Brief(
        "List documents, last used first, or those with words.", "documents:a cursor"
    ),
    "document_load": Brief("Read a document.", "name:s version:n"),
}
