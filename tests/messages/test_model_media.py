"""How images, files and sounds go to each provider."""

import base64

import pytest

from holdfast import Attachment, Message, ToolCall
from holdfast.messages import to_openai, to_plain
from support.model_input import everywhere

PNG = b"\x89PNG\r\n\x1a\n"
PNG_TEXT = base64.b64encode(PNG).decode()
PNG_URL = f"data:image/png;base64,{PNG_TEXT}"
SOURCE = {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}

CHAT_IMAGE = {"type": "image_url", "image_url": {"url": PNG_URL}}
RESPONSES_IMAGE = {"type": "input_image", "detail": "auto", "image_url": PNG_URL}
ANTHROPIC_IMAGE = {"type": "image", "source": SOURCE}


def contents(*parts):
    """The contents of a user message with these parts."""
    found = everywhere({"role": "user", "content": list(parts)})
    return [made[0]["content"] for made in found]


def attached(*attachments):
    """The contents of a user message with these attachments, after its text."""
    found = everywhere(Message.user("See:", attachments=list(attachments)))
    return [made[0]["content"][1:] for made in found]


def text(words):
    """A text as part of each provider."""
    part = {"type": "text", "text": words}
    return [[part], [{"type": "input_text", "text": words}], [part]]


@pytest.mark.parametrize(
    "image",
    [
        CHAT_IMAGE,
        RESPONSES_IMAGE,
        ANTHROPIC_IMAGE,
        {"type": "image_url", "image_url": PNG_URL},
        {"type": "input_image", "image_url": PNG_URL},
    ],
)
def test_an_image_goes_to_every_provider(image):
    assert contents(image) == [[CHAT_IMAGE], [RESPONSES_IMAGE], [ANTHROPIC_IMAGE]]


def test_an_attached_image_goes_to_every_provider():
    image = Attachment(kind="image", content=PNG)

    assert attached(image) == [[CHAT_IMAGE], [RESPONSES_IMAGE], [ANTHROPIC_IMAGE]]


@pytest.mark.parametrize("content", [PNG_TEXT, PNG_URL])
def test_an_image_that_was_attached_as_text_does_too(content):
    image = Attachment(kind="image", content=content)

    assert attached(image) == [[CHAT_IMAGE], [RESPONSES_IMAGE], [ANTHROPIC_IMAGE]]


def test_an_image_that_is_a_text_stays_one():
    svg = Attachment(kind="image", name="a.svg", content="<svg/>")

    assert attached(svg) == text("a.svg\n<svg/>")


@pytest.mark.parametrize(
    ("start", "mime_type"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
    ],
)
def test_the_type_of_an_image_is_seen_in_its_content(start, mime_type):
    *_, [part] = attached(Attachment(kind="image", content=start))

    assert part["source"]["media_type"] == mime_type


def test_an_image_at_an_address_stays_there():
    url = "https://example.org/a.png"

    assert attached(Attachment(kind="image", url=url)) == [
        [{"type": "image_url", "image_url": {"url": url}}],
        [{"type": "input_image", "detail": "auto", "image_url": url}],
        [{"type": "image", "source": {"type": "url", "url": url}}],
    ]


PDF = "data:application/pdf;base64,JVBERg=="
CHAT_PDF = {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}}
RESPONSES_PDF = {"type": "input_file", "filename": "a.pdf", "file_data": PDF}
ANTHROPIC_PDF = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
}


@pytest.mark.parametrize(
    "file", [CHAT_PDF, RESPONSES_PDF, {**ANTHROPIC_PDF, "title": "a.pdf"}]
)
def test_a_document_goes_to_every_provider(file):
    chat, responses, [anthropic] = contents(file)

    assert (chat, responses) == ([CHAT_PDF], [RESPONSES_PDF])
    assert anthropic["source"] == ANTHROPIC_PDF["source"]


def test_an_attached_document_goes_to_every_provider():
    file = Attachment(name="a.pdf", content=b"%PDF")

    assert attached(file) == [[CHAT_PDF], [RESPONSES_PDF], [ANTHROPIC_PDF]]


def test_a_document_at_an_address_goes_to_those_who_fetch_it():
    url = "https://example.org/a.pdf"
    chat, responses, anthropic = attached(Attachment(url=url))

    assert chat == [{"type": "text", "text": f"[file: {url}]"}]
    assert responses == [{"type": "input_file", "file_url": url}]
    source = {"type": "url", "url": url}
    assert anthropic == [{"type": "document", "source": source}]


def test_a_document_of_text_is_text_elsewhere():
    source = {"type": "text", "media_type": "text/plain", "data": "words"}
    file = {"type": "document", "source": source}

    assert contents(file) == ["words", "words", [file]]


def test_a_file_that_was_uploaded_to_openai_stays_there():
    chat = {"type": "file", "file": {"file_id": "file-1"}}
    responses = {"type": "input_file", "file_id": "file-1"}

    for given in (chat, responses):
        assert contents(given) == [[chat], [responses], "[file: file-1]"]
    image = {"type": "input_image", "detail": "low", "file_id": "file-2"}
    assert contents(image) == ["[image: file-2]", [image], "[image: file-2]"]
    [image_without_detail] = contents({"type": "input_image", "file_id": "file-2"})[1]
    assert image_without_detail == {**image, "detail": "auto"}


def test_a_file_without_a_known_type_is_passed_or_named():
    raw = {"type": "file", "file": {"file_data": "AAE=", "filename": "a.bin"}}
    url = "data:application/octet-stream;base64,AAE="

    chat, responses, anthropic = contents(raw)

    assert chat == [raw]
    assert responses == [{"type": "input_file", "filename": "a.bin", "file_data": url}]
    assert anthropic == "[file: a.bin, 2 bytes]"


@pytest.mark.parametrize(
    "file",
    [
        Attachment(kind="code", name="a.py", content="print()"),
        Attachment(name="a.py", mime_type="text/x-python", content=b"print()"),
    ],
)
def test_attached_text_is_text(file):
    assert attached(file) == text("a.py\nprint()")


def test_text_that_cannot_be_decoded_is_a_file():
    file = Attachment(name="a.txt", mime_type="text/plain", content=b"\xff")

    chat, *_ = attached(file)
    assert chat[0]["file"]["file_data"] == "data:text/plain;base64,/w=="


def test_what_a_provider_cannot_hear_or_see_is_named():
    sound = {
        "type": "input_audio",
        "input_audio": {"data": "UklGRg==", "format": "wav"},
    }
    named = "[audio: audio/wav, 4 bytes]"

    assert contents(sound) == [[sound], named, named]
    assert attached(Attachment(kind="audio", mime_type="audio/wav", content=b"RIFF"))[
        0
    ] == [sound]
    song = Attachment(kind="audio", mime_type="audio/ogg", content=b"OggS", name="song")
    assert attached(song) == text("[audio: song, audio/ogg, 4 bytes]")
    film = Attachment(kind="video", url="https://example.org/v")
    assert attached(film) == text("[video: https://example.org/v]")
    assert (
        attached(Attachment(kind="image", content=b"?"))[2]
        == text("[image: 1 bytes]")[2]
    )


def test_an_attachment_without_anything_becomes_text():
    [part] = attached(Attachment(id="1", kind="hologram"))[0]

    assert part == {"type": "text", "text": '{"kind":"hologram","id":"1"}'}


def test_a_spoken_reply_is_its_transcript():
    spoken = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    heard = {"id": "audio_1", "data": "UklGRg==", "transcript": "Hi."}
    said = [{"role": "assistant", "content": "Hi."}]

    assert everywhere({**spoken, "audio": heard}) == (said, said, said)
    chat, responses, anthropic = everywhere(spoken)
    assert chat == [spoken]
    assert responses == anthropic
    assert "audio_1" in responses[0]["content"]


def test_a_reply_has_no_images_but_names_them():
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
    item |= {"result": PNG_TEXT}

    chat, responses, anthropic = everywhere(item)

    said = [{"role": "assistant", "content": "[image: image/png, 8 bytes]"}]
    assert (chat, responses, anthropic) == (said, [item], said)
    [plain] = to_plain([item])
    assert plain.attachments[0].content == PNG


def test_images_in_results_follow_all_results_where_a_result_is_text():
    calls = [ToolCall(id=id_, name="look") for id_ in "ab"]
    seen = Message.tool_result("a", [{"type": "text", "text": "Seen:"}, CHAT_IMAGE])
    shown = Message.tool_result(
        "b", "", attachments=[Attachment(kind="image", url="u")]
    )
    chat, responses, anthropic = everywhere(
        Message.assistant(tool_calls=calls), seen, shown, Message.user("Well?")
    )

    assert [message["role"] for message in chat] == [
        "assistant", "tool", "tool", "user", "user",
    ]  # fmt: skip
    assert chat[1]["content"] == "Seen:"
    assert chat[3]["content"] == [
        {"type": "text", "text": "The result of the call a:"},
        CHAT_IMAGE,
        {"type": "text", "text": "The result of the call b:"},
        {"type": "image_url", "image_url": {"url": "u"}},
    ]
    assert responses[2]["output"][1] == RESPONSES_IMAGE
    assert anthropic[1]["content"][0]["content"][1] == ANTHROPIC_IMAGE
    assert to_openai([*to_plain([seen]), shown])[-1]["content"] == chat[3]["content"]


def test_content_that_is_no_base64_is_named_in_a_record():
    source = {**SOURCE, "data": "x"}
    [plain] = to_plain(
        [{"role": "user", "content": [{"type": "image", "source": source}]}]
    )

    assert plain.attachments[0].content == "[image: image/png]"
