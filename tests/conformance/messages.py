"""Messages, ours and those of other formats, are given back unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.values import alike
from holdfast.conversations import Conversation
from holdfast.errors import Unstorable
from holdfast.messages import AnyMessage, Attachment, Message, ToolCall
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped

OPENAI_CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {
                "type": "image_url",
                "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"},
            },
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "look", "arguments": '{"at": "sea", "n": 1.0}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "waves"},
    {"role": "assistant", "content": "Waves.", "annotations": []},
]
OPENAI_RESPONSES: list[dict[str, Any]] = [
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "a"}],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "waves"},
    {"type": "item_reference", "id": "msg_1"},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "What is this?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
            {"type": "text", "text": "Let me look."},
            {
                "type": "tool_use",
                "id": "tu_1",
                "name": "look",
                "input": {"at": ["sea"]},
            },
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "tu_1",
                "is_error": False,
                "content": [{"type": "text", "text": "waves"}],
            }
        ],
    },
]
STRANGE: list[dict[str, Any]] = [
    {},
    {"role": "user", "content": {"deep": [None, True, -0.0, 1e300]}},
    {"role": None, "content": ["user", 7, None, [[]]]},
    {"kind": "of tomorrow", "": "", "tool_calls": "none", "attachments": {"a": 1}},
    {"holdfast": 2, "role": "user", "content": "of a newer version"},
    {"holdfast": 1, "content": "without a role"},
    {"holdfast": "x", "role": "user", "attachments": [{"content": {"stored": [1]}}]},
    {"holdfast": None, "attachments": ({"content": "x" * 2000}, None)},
    {"role": "user", "content": ("a", b"\0\xff", {1, 2}, {3: 4}), "at": 10**30},
    {"role": "user", "content": "\0 \ud83d \U0001f600 \u2028 $hf.", "$hf.tuple": [1]},
]


class MessageTests(Cases):
    """A message is a record, or a mapping that is kept as it is."""

    def round_trip(self, *messages: AnyMessage) -> list[AnyMessage]:
        """The messages as the store gives them back."""
        talks = self.store.conversations
        created = talks.create(messages=messages).id
        added = talks.create().id
        talks.add(added, *messages)
        saved = talks.load(created)
        saved.title = "saved again"
        talks.save(saved)
        found = talks.load(created).messages
        assert alike(talks.load(created, "@^").messages, found)
        assert alike(talks.load(added).messages, found)
        return found

    def test_the_constructors_say_who_speaks(self) -> None:
        call = ToolCall(name="look", arguments={"at": "sea"})

        roles = [
            Message.system("s").role,
            Message.user("u").role,
            Message.assistant("a", tool_calls=[call]).role,
            Message.tool_result(call, "r").role,
            Message.tool_result("by id", "r", name="look").role,
        ]

        assert roles == ["system", "user", "assistant", "tool", "tool"]
        assert Message.tool_result(call, "r").tool_call_id == call.id
        assert Message.tool_result("by id", "r").tool_call_id == "by id"
        assert Message.user("u").id != Message.user("u").id
        assert Message.user([{"type": "text", "text": "in parts"}]).text == "in parts"

    def test_every_field_is_given_back(self) -> None:
        call = ToolCall(
            id="call-1",
            name="look",
            arguments={"at": ["sea", None]},
            status="completed",
            result={"seen": ("waves", b"\0")},
            extra={"took": 0.5},
        )
        file = Attachment(
            id="file-1",
            kind="code",
            name="a.py",
            mime_type="text/x-python",
            content="print()",
            url="https://example.org/a.py",
            size=7,
            extra={"lines": 1},
        )
        message = Message(
            id="m-1",
            role="assistant",
            content=[{"type": "text", "text": LONG}],
            at=-5,
            name="scout",
            tool_calls=[call],
            tool_call_id="none",
            attachments=[file],
            reasoning="I thought.",
            tokens=0,
            parent="m-0",
            metadata={"a": {"b": [1, 2.5, None]}},
            extra={"mood": "good"},
        )

        assert self.round_trip(message) == [message]
        assert self.round_trip(Message(role="user", content=None)) != [Message.user("")]

    def test_the_least_of_a_message_is_given_back(self) -> None:
        least = Message(role="user", id="", at=0)

        [found] = self.round_trip(least)

        assert found == least
        assert isinstance(found, Message)

    def test_mappings_of_others_are_given_back_as_they_came(self) -> None:
        for dialect in (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, STRANGE):
            assert alike(self.round_trip(*dialect), dialect)

    def test_ours_and_others_can_be_mixed(self) -> None:
        mixed: list[AnyMessage] = [Message.user("ours"), *ANTHROPIC, *OPENAI_CHAT]

        assert alike(self.round_trip(*mixed), mixed)

    def test_storing_does_not_change_what_was_given(self) -> None:
        file = Attachment(content="x" * 5000)
        message, mapping = Message.user("m", attachments=[file]), dict(ANTHROPIC[1])

        self.round_trip(message, mapping)

        assert message.attachments[0].content == "x" * 5000
        assert mapping == ANTHROPIC[1]

    def test_what_was_loaded_is_the_callers_own(self) -> None:
        talks = self.store.conversations
        talks.create("c", messages=[{"role": "user", "content": ["a"]}])
        first = talks.load("c")
        mapping = first.messages[0]
        assert isinstance(mapping, dict)
        mapping["content"].append("changed")
        first.tags.append("changed")

        assert talks.load("c").messages == [{"role": "user", "content": ["a"]}]
        assert talks.load("c").tags == []

    def test_numbers_that_are_hard_to_keep_are_kept(self) -> None:
        values = [float("nan"), float("inf"), -0.0, 2**64, -(2**63) - 1, 10**700]
        message = Message.user("m", metadata={"values": values}, tokens=2**70)

        [found] = self.round_trip(message)

        assert isinstance(found, Message)
        assert repr(found.metadata) == repr(message.metadata)
        assert found.tokens == 2**70

    def test_text_that_is_hard_to_keep_is_kept(self) -> None:
        texts = ["\0", "a\0b", "\ud800", "\udfff\ud800", "\u2028", "$hf.", '{"$hf.']
        messages = [Message.user(text, name=text, reasoning=text) for text in texts]

        assert self.round_trip(*messages) == messages

    def test_words_of_a_newer_writer_survive(self) -> None:
        stored: dict[str, Any] = {
            "holdfast": 1,
            "id": "m",
            "role": "narrator",
            "at": 5,
            "content": "c",
            "tool_calls": [
                {"id": "c", "name": "n", "status": "asleep", "until": 7},
                "not even a mapping",
            ],
            "attachments": [{"id": "a", "name": "", "kind": "hologram", "depth": 3}],
            "mood": {"of": "tomorrow"},
        }
        talks = self.store.conversations
        talks.create("c")
        thread = talks.thread("c")
        thread.save({**thread.load(), "messages": [stored]})

        [message] = talks.load("c").messages
        assert isinstance(message, Message)
        assert (message.role, message.extra) == (
            "narrator",
            {"mood": {"of": "tomorrow"}},
        )
        assert message.tool_calls[0].status == "asleep"
        assert message.tool_calls[0].extra == {"until": 7}
        assert message.attachments[0].kind == "hologram"
        assert message.attachments[0].extra == {"depth": 3}
        talks.save(talks.load("c"))
        [kept] = thread.load()["messages"]
        assert kept == stored | {
            "attachments": [{"id": "a", "kind": "hologram", "depth": 3}]
        }

    def test_a_new_message_has_a_role_that_is_known(self) -> None:
        talks = self.store.conversations
        chat = talks.create("c")
        run = talks.recorder("c")
        accepting: list[Callable[[Any], object]] = [
            lambda message: talks.add("c", message),
            lambda message: talks.create("d", messages=[message]),
            lambda message: talks.save(Conversation(id="d", messages=[message])),
            chat.add,
            run.add,
            run.llm_response,
        ]
        for wrong in untyped(
            Message(role="usre"), {"role": "usre", "content": "x"}, {"role": ["user"]}
        ):
            for accept in accepting:
                with raises(Unstorable) as refused:
                    accept(wrong)
                assert refused.error.path == "role"

        assert talks.load("c").messages == chat.messages == run.messages == []
        assert talks.find("d") is None

    def test_a_role_that_is_refused_is_told_with_those_that_are_not(self) -> None:
        with raises(Unstorable) as refused:
            self.store.conversations.create(messages=[Message(role="usre")])

        assert "'usre' is no role; did you mean 'user'?" in refused.error.reason
        assert "user, assistant, system, tool" in refused.error.reason

    def test_a_role_that_is_stored_may_be_any(self) -> None:
        talks = self.store.conversations
        talks.create("c")
        thread = talks.thread("c")
        odd = [{"role": "narrator", "content": "Rain."}, {"role": 5}]
        thread.save({**thread.load(), "messages": odd})

        chat = talks.load("c")
        chat.title = "changed"
        talks.save(chat)
        talks.add("c", Message.user("Hm."))
        run = talks.recorder("c", system="Be brief.")
        run.add({"role": "user", "content": "Go on."})
        run.save()

        assert talks.load("c").messages[1:3] == odd
        assert talks.load("c").message_count == 5

    def test_fields_of_another_type_survive(self) -> None:
        stored: dict[str, Any] = {
            "holdfast": 1,
            "id": 5,
            "role": "user",
            "at": "yesterday",
            "tool_calls": {"later": True},
            "attachments": "none",
            "metadata": [1],
        }
        tuples: dict[str, Any] = {
            **stored,
            "tool_calls": (None, "a"),
            "attachments": ("b", 5),
        }
        talks = self.store.conversations
        talks.create("c", messages=[stored, tuples])

        talks.save(talks.load("c"))

        assert talks.thread("c").load()["messages"] == [stored, tuples]

    def test_a_call_is_open_until_it_is_answered(self) -> None:
        talks = self.store.conversations
        calls = [ToolCall(id=f"{n}", name="look") for n in range(3)]
        done = ToolCall(id="done", name="look", status="completed", result="seen")
        talks.create("c", messages=[Message.user("?")])
        safe = talks.thread("c").get()
        talks.add("c", Message.assistant(tool_calls=[*calls, done]))
        assert talks.list()[0].open_calls == ("0", "1", "2")
        assert talks.latest_safe("c") == safe

        talks.add("c", Message.tool_result(calls[1], "b"))
        talks.add("c", Message.tool_result(calls[0], "a"))
        assert talks.list()[0].open_calls == ("2",)
        last = talks.add("c", Message.tool_result(calls[2], "c"))

        assert talks.list()[0].open_calls == ()
        assert talks.latest_safe("c") == last

    def test_a_transcript_that_was_cut_can_be_loaded_repaired(self) -> None:
        talks = self.store.conversations
        call = ToolCall(id="1", name="look")
        talks.create("c", messages=[Message.user("?")])
        talks.add("c", Message.assistant("Looking.", tool_calls=[call]))

        mended = talks.load("c", repair="interrupted")

        assert [repair.kind for repair in mended.repairs] == ["interrupted"]
        assert mended.message_count == 3
        assert talks.load("c").message_count == 2
        talks.save(mended)
        assert talks.list()[0].open_calls == ()
        assert talks.load("c").repairs == ()

    def test_what_cannot_be_kept_is_refused_with_its_place(self) -> None:
        talks = self.store.conversations
        talks.create("c")
        for wrong in untyped(
            Message.user("x", metadata={"f": print}),
            Message.assistant(tool_calls=[ToolCall(name="n", result=object())]),
            {"role": "user", "content": [{"f": print}]},
        ):
            with raises(Unstorable) as refused:
                talks.add("c", wrong)
            assert refused.error.path.startswith("state.messages[0]")
        with raises(Unstorable):
            talks.add("c", Message.user("x", extra={"role": "another"}))
        assert talks.thread("c").step == 1
