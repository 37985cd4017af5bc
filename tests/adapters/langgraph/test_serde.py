"""A serializer of the caller's, also one that encrypts, instead of our own types."""

import asyncio
import dataclasses
import itertools

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import put, say, thread
from adapters.langgraph.test_conformance import CAPABILITIES
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.cli import main


class Cipher:
    def __init__(self, key):
        self.cipher, self.numbers = AESGCM(key), itertools.count(1)

    def encrypt(self, plaintext):
        nonce = next(self.numbers).to_bytes(12, "big")
        return "gcm", nonce + self.cipher.encrypt(nonce, plaintext, None)

    def decrypt(self, ciphername, ciphertext):
        assert ciphername == "gcm"
        return self.cipher.decrypt(ciphertext[:12], ciphertext[12:], None)


def encrypting(key=b"k" * 32):
    return EncryptedSerializer(Cipher(key))


@dataclasses.dataclass
class Plan:
    steps: list[str]


def test_all_conformance_tests_pass_with_encryption():
    @checkpointer_test(name="encrypted")
    async def saver():
        opened = HoldfastSaver.from_conn_string(":memory:", serde=encrypting())
        async with opened as saver:
            yield saver

    results = asyncio.run(validate(saver)).to_dict()["results"]

    assert {name: r["tests_passed"] for name, r in results.items()} == CAPABILITIES


def test_what_was_said_is_stored_encrypted_only(tmp_path):
    file = tmp_path / "agents.db"
    with HoldfastSaver(file, serde=encrypting(), compress=False) as saver:
        graph = graphs.chat().compile(checkpointer=saver)
        graph.invoke(say("a secret"), thread("t"))
        state = graph.invoke(say("another secret"), thread("t"))

    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with HoldfastSaver(file, serde=encrypting()) as saver:
        again = graphs.chat().compile(checkpointer=saver)
        found = again.get_state(thread("t")).values

    assert b"secret" not in stored
    assert graphs.texts(found) == graphs.texts(state)


def test_a_saver_without_the_serializer_says_what_to_do(quick, quick_store):
    config = put(HoldfastSaver(quick_store, serde=encrypting()), thread("t"), {"x": 1})

    with pytest.raises(holdfast.FormatMismatch, match="serde="):
        quick.get_tuple(config)
    with pytest.raises(InvalidTag):
        HoldfastSaver(quick_store, serde=encrypting(b"x" * 32)).get_tuple(config)


def test_what_was_stored_before_is_still_loaded(quick, quick_store):
    graph = graphs.chat().compile(checkpointer=quick)
    graph.invoke(say("before"), thread("t"))

    later = HoldfastSaver(quick_store, serde=encrypting())
    graph = graphs.chat().compile(checkpointer=later)
    state = graph.invoke(say("after"), thread("t"))

    assert graphs.texts(state)[::2] == ["before", "after"]


def test_a_serializer_decides_what_can_be_stored(quick_store):
    saver = HoldfastSaver(quick_store, serde=JsonPlusSerializer())

    config = put(saver, thread("t"), {"x": Plan(["one"])})

    assert saver.get_tuple(config).checkpoint["channel_values"]["x"] == Plan(["one"])
    with pytest.raises(holdfast.Unstorable, match="JsonPlusSerializer"):
        put(saver, thread("u"), {"x": object()})


def test_a_put_that_is_repeated_is_made_once(quick_store):
    saver = HoldfastSaver(quick_store, serde=encrypting())
    config = put(saver, thread("t"), {"x": 1})
    stored = saver.get_tuple(config)

    again = put(saver, thread("t"), {"x": 1}, checkpoint=stored.checkpoint)

    assert again == config


@pytest.mark.skipif(
    not hasattr(BaseCheckpointSaver, "with_allowlist"),
    reason="this LangGraph has no such lists",
)
def test_strict_lists_of_langgraph_reach_its_serializers(quick_store):
    saver = HoldfastSaver(quick_store, serde=JsonPlusSerializer())

    strict = saver.with_allowlist({(__name__, "Plan")})
    config = put(strict, thread("t"), {"x": Plan(["one"])})

    assert strict.get_tuple(config).checkpoint["channel_values"]["x"] == Plan(["one"])


def test_the_command_line_shows_steps_without_their_content(tmp_path, capsysbinary):
    file = tmp_path / "agents.db"
    with HoldfastSaver(file, serde=encrypting()) as saver:
        graph = graphs.asking().compile(checkpointer=saver)
        graph.invoke({"log": []}, thread("t"))
        for command in (["log", "t"], ["show", "t"], ["diff", "t@1", "t@2"], []):
            assert main(["--store", str(file), *command]) == 0
        resumed = graph.invoke(Command(resume="yes"), thread("t"))

    said = capsysbinary.readouterr().out.decode()
    assert "before" in said
    assert "interrupt" in said
    assert resumed["log"] == ["before", "yes", "after"]
