"""What a recorder got stays whole whatever comes between two steps."""

import asyncio

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Store
from holdfast.strategy import never
from holdfast.testing import raises
from support.recorders import HELLO, HI, Tool, asking, recorder
from support.stores import backend_of


def said(told):
    return [message["content"] for message in told.messages]


def user(text):
    return {"role": "user", "content": text}


@pytest.mark.parametrize("strategy", [None, never()])
def test_others_may_change_the_title_between_two_messages(store, strategy):
    options = {"save": strategy} if strategy else {}
    told = recorder(store, **options)
    told.add(HI)
    told.llm_response(HELLO)
    told.save()
    told.add(user("one"))
    store.conversations.update("chat", title="Greeting")
    told.add(user("two"))
    store.conversations.update("chat", title="Greetings")
    told.add(user("three"))

    again = recorder(store)

    assert said(told) == said(again) == ["Hi.", "Hello.", "one", "two", "three"]
    assert again.passed_over == []
    told.save()
    loaded = store.conversations.load("chat")
    assert (loaded.title, len(loaded.messages)) == ("Greetings", 5)
    assert store.conversations.thread("chat").journal() == {}


def test_a_call_belongs_to_the_line_after_the_title_was_changed(store):
    told, tool = recorder(store, save=never(), effects="refuse"), Tool()
    told.add(HI)
    told.save()
    told.llm_response(asking("chat", "a"))
    store.conversations.update("chat", title="Greeting")

    told.tool_result("a", told.call("a", tool))

    assert recorder(store, effects="refuse").call("a", tool) == "found"
    assert tool.ran == 1


class Forgetful:
    """A backend that does what it is asked, and now and then says that it failed."""

    blocking = True

    def __init__(self, backend):
        self.backend, self.forgets = backend, False

    def __getattr__(self, name):
        return getattr(self.backend, name)

    async def commit(self, writes):
        receipts = await self.backend.commit(writes)
        if self.forgets:
            self.forgets = False
            raise holdfast.HoldfastError("who knows", code="io_error")
        return receipts


@pytest.mark.parametrize("has_head", [False, True])
def test_a_message_that_was_kept_after_all_is_kept_once(memory, has_head):
    backend = Forgetful(backend_of(memory))
    store = Store(replace(memory.runner.context, backend=backend))
    told = recorder(store, save=never())
    if has_head:
        told.add(HELLO)
        told.save()
    backend.forgets = True
    with raises(holdfast.HoldfastError, "io_error"):
        told.add(user("one"))
    told.add(user("two"))
    told.add(user("three"))

    again = recorder(memory)

    assert said(again) == said(told)
    assert said(told)[-3:] == ["one", "two", "three"]
    assert again.passed_over == []
    told.save()
    assert memory.conversations.thread("chat").journal() == {}


def test_a_cancelled_add_does_not_stop_the_recorder(path):
    texts = [str(n) for n in range(20)]

    async def main():
        async with holdfast.open_async(path, durability="normal") as store:
            told = await recorder(store, save=never())
            for text in texts:
                adding = asyncio.create_task(told.add(user(text)))
                await asyncio.sleep(0)
                adding.cancel()
                await asyncio.wait([adding])
            await told.add(user("last"))
            again = await recorder(store, save=never())
            return said(told), said(again)

    told, again = asyncio.run(main())

    assert told == again
    assert [text for text in texts if text in told] == told[:-1]


def test_hundreds_of_messages_stay_in_order_without_a_checkpoint(store):
    told = recorder(store, save=never())
    for n in range(300):
        told.add(user(str(n)))

    assert said(recorder(store)) == [str(n) for n in range(300)]
    told.save()
    assert store.conversations.thread("chat").journal() == {}


def test_a_new_system_prompt_stays_when_the_title_is_changed(store):
    told = recorder(store)
    told.llm_response(HELLO)
    told = recorder(store, system="Be brief.")
    told.add(user("one"))
    store.conversations.update("chat", title="Greeting")
    told.add(user("two"))

    assert said(recorder(store)) == ["Be brief.", "Hello.", "one", "two"]


def test_a_recorder_whose_messages_were_discarded_does_not_mix_in(store):
    one = recorder(store, save=never())
    one.add(HI)
    one.save()
    one.add(user("one"))
    other = recorder(store, save=never())
    other.resume(discard=True)
    other.add(user("other"))
    one.add(user("late"))

    again = recorder(store, save=never())

    assert said(again) == ["Hi.", "other"]
    assert [message["content"] for message in again.passed_over] == ["late"]
