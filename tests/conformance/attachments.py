"""Attachments of messages: unchanged, and stored once if they are large."""

from __future__ import annotations

from base64 import b64encode
from random import Random

from holdfast.agents import Agent
from holdfast.messages import AnyMessage, Attachment, Message
from holdfast.testing.conformance.cases import Cases

# Random bytes, which cannot be compressed.
NOISE = Random(1).randbytes(60_000)
TEXT = b64encode(NOISE).decode()
LARGE = 40_000


class AttachmentTests(Cases):
    """A conversation stores equal large contents once."""

    def stored(self) -> int:
        """How many bytes everything takes."""
        return self.store.stats().stored_bytes

    def attachments(self, id_: str = "c") -> list[Attachment]:
        """All attachments of a conversation."""
        messages = self.store.conversations.load(id_).messages
        ours = [m for m in messages if isinstance(m, Message)]
        return [attachment for m in ours for attachment in m.attachments]

    def test_contents_of_every_kind_and_size_are_given_back(self) -> None:
        contents = [None, "", b"", "short", b"\0\xff", "x" * 1023, "x" * 1024, TEXT]
        contents += [b"x" * 1024, NOISE, "\ud800" * 2000, "\0" * 2000, "\u6f22" * 2000]
        files = [Attachment(name=f"{n}", content=c) for n, c in enumerate(contents)]
        files.append(Attachment(kind="image", url="https://example.org/x.png", size=5))

        self.store.conversations.create("c")
        self.store.conversations.add("c", Message.user("m", attachments=files))

        assert self.attachments() == files
        for found, given in zip(self.attachments(), files, strict=True):
            assert type(found.content) is type(given.content)

    def test_a_small_content_stays_in_its_message(self) -> None:
        talks = self.store.conversations
        small, large = Attachment(content="x" * 1023), Attachment(content="x" * 1024)
        talks.create("c", messages=[Message.user("m", attachments=[small])])
        assert "contents" not in talks.thread("c").load()

        talks.add("c", Message.user("m", attachments=[large]))

        assert talks.thread("c").load()["contents"] == ["x" * 1024]

    def test_the_same_content_again_is_not_stored_again(self) -> None:
        talks = self.store.conversations
        file = Attachment(content=NOISE)
        talks.create("c", messages=[Message.user("m", attachments=[file])])
        before = self.stored()
        assert before > LARGE

        talks.add(
            "c", Message.user("again", attachments=[file, Attachment(content=NOISE)])
        )
        talks.add(
            "c", Message.assistant("and", attachments=[Attachment(content=NOISE)])
        )

        assert self.stored() - before < 3000
        assert [a.content for a in self.attachments()] == [NOISE] * 4

    def test_text_and_bytes_are_not_the_same_content(self) -> None:
        files = [Attachment(content="x" * 2000), Attachment(content=b"x" * 2000)]
        self.store.conversations.create("c")
        for file in files:
            self.store.conversations.add("c", Message.user("m", attachments=[file]))

        assert self.attachments() == files

    def test_a_fork_does_not_store_an_attachment_again(self) -> None:
        talks = self.store.conversations
        file = Attachment(content=TEXT)
        talks.create("c", messages=[Message.user("m", attachments=[file])])
        before = self.stored()

        talks.thread("c").fork("conversation:d")
        talks.add("d", Message.user("on the fork", attachments=[file]))
        talks.add("c", Message.user("on the line", attachments=[file]))

        assert self.stored() - before < 3000
        assert self.attachments("c") == self.attachments("d") == [file, file]

    def test_saving_the_whole_again_does_not_store_an_attachment_again(self) -> None:
        talks = self.store.conversations
        file = Attachment(content=NOISE)
        talks.create("c", messages=[Message.user("m", attachments=[file])])
        for n in range(20):
            talks.add("c", Message.user(f"{n}"))
        before = self.stored()

        for n in range(5):
            loaded = talks.load("c")
            loaded.title = f"{n}"
            loaded.add(Message.assistant(f"{n}", attachments=[file]))
            talks.save(loaded)

        assert self.stored() - before < 10_000
        assert [a.content for a in self.attachments()] == [NOISE] * 6

    def test_editing_around_an_attachment_does_not_store_it_again(self) -> None:
        talks = self.store.conversations
        noises = [Random(n).randbytes(30_000) for n in range(5)]
        files = [Attachment(content=noise) for noise in noises]
        messages: list[AnyMessage] = [
            Message.user(f"{n}", attachments=[f]) for n, f in enumerate(files)
        ]
        talks.create("c", messages=messages)
        before = self.stored()

        loaded = talks.load("c")
        del loaded.messages[2]
        loaded.messages.insert(0, Message.system("new"))
        first = loaded.messages[1]
        assert isinstance(first, Message)
        first.content, first.attachments[0].name = "edited", "renamed"
        loaded.messages.reverse()
        talks.save(loaded)

        assert self.stored() - before < 5000
        kept = [a.content for a in self.attachments()]
        assert kept == [noises[n] for n in (4, 3, 1, 0)]
        assert talks.load("c", "@^").messages == messages

    def test_an_agents_checkpoint_does_not_store_an_attachment_again(self) -> None:
        talks = self.store.conversations
        self.store.agents.save(Agent(id="a"))
        file = Attachment(content=TEXT)
        talks.create("c", agent="a", messages=[Message.user("m", attachments=[file])])
        before = self.stored()

        for n in range(3):
            self.store.agents.checkpoint("a")
            talks.add("c", Message.user(f"{n}", attachments=[file]))
        talks.delete("c")
        self.store.agents.restore("a", "manual")

        assert self.stored() - before < 5000
        assert self.attachments() == [file] * 3

    def test_what_no_message_has_any_more_goes_with_its_checkpoints(self) -> None:
        talks = self.store.conversations
        message = Message.user("m", attachments=[Attachment(content=NOISE)])
        talks.create("c", messages=[message])
        loaded = talks.load("c")
        loaded.messages = [Message.user("without")]
        talks.save(loaded)
        assert self.stored() > LARGE

        talks.thread("c").delete("@^")

        assert self.stored() < LARGE
        assert talks.thread("c").load().keys() == {"messages", "counts", "created_at"}
        assert self.store.verify()

    def test_an_attachment_is_there_after_rewinding_and_adding_it_again(self) -> None:
        talks = self.store.conversations
        one, two = Attachment(content=TEXT), Attachment(content=NOISE)
        talks.create("c")
        empty = talks.thread("c").get()
        talks.add("c", Message.user("1", attachments=[one]))
        talks.add("c", Message.user("2", attachments=[two]))
        talks.thread("c").rewind(empty)

        talks.add("c", Message.user("2", attachments=[two]))
        talks.add("c", Message.user("1", attachments=[one, two]))

        assert self.attachments() == [two, one, two]

    def test_a_content_that_looks_like_a_reference_is_kept(self) -> None:
        talks = self.store.conversations
        talks.create("c")
        talks.add("c", Message.user("m", attachments=[Attachment(content=TEXT)]))
        [digest] = talks.thread("c").load()["content_ids"]
        looks = Attachment(name="x", extra={"stored": digest})

        talks.add("c", Message.user("m", attachments=[looks]))

        assert self.attachments()[1] == looks
