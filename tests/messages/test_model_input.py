"""How the parts of messages go to each provider."""

import holdfast
from holdfast import Message, ToolCall, Unstorable
from holdfast.messages import to_anthropic, to_openai, to_openai_responses, to_plain
from holdfast.testing import raises
from support.model_input import everywhere

# --- calls and results ----------------------------------------------------------------


def test_arguments_that_are_no_object_are_wrapped_for_anthropic():
    calls = [
        ToolCall(id="a", name="look", arguments="{oops"),
        ToolCall(id="b", name="look", arguments=[1]),
        ToolCall(id="c", name="look", arguments=None),
    ]
    chat, responses, anthropic = everywhere(Message.assistant(tool_calls=calls))

    entries = [call["function"]["arguments"] for call in chat[0]["tool_calls"]]
    assert (
        entries == [item["arguments"] for item in responses] == ["{oops", "[1]", "{}"]
    )
    inputs = [block["input"] for block in anthropic[0]["content"]]
    assert inputs == [{"arguments": "{oops"}, {"arguments": [1]}, {}]


def test_arguments_stay_as_the_model_wrote_them():
    written = '{ "b": 1,\n "a": 2 }'
    item = {"type": "function_call", "call_id": "a", "name": "n", "arguments": written}

    [message] = to_openai([item])
    assert message["tool_calls"][0]["function"]["arguments"] == written


def test_a_call_as_block_and_in_the_list_is_one_call():
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    entry = {"id": "a", "name": "look", "arguments": {"at": "sea"}}
    message = {"role": "assistant", "content": [use], "tool_calls": [entry]}

    chat, responses, anthropic = everywhere(message)

    assert len(chat[0]["tool_calls"]) == len(responses) == 1
    assert anthropic[0]["content"] == [{**use, "input": {"at": "sea"}}]


def test_a_failed_call_is_an_error_for_anthropic():
    call = ToolCall(id="a", name="look", status="failed", result="storm")
    result = {"type": "tool_result", "tool_use_id": "a", "content": "storm"}
    failed = {**result, "is_error": True}
    inside = Message.assistant(tool_calls=[call])

    assert to_anthropic([inside])["messages"][1]["content"] == [failed]
    [plain] = to_plain([{"role": "user", "content": [failed]}])
    assert to_anthropic([plain])["messages"][0]["content"] == [failed]


def test_a_result_inside_a_call_is_told_once():
    call = ToolCall(id="a", name="look", status="completed", result="seen")
    messages = [Message.assistant(tool_calls=[call]), Message.tool_result(call, "seen")]

    for made in everywhere(*messages):
        assert len(made) == 2


def test_a_call_without_a_result_stays_without_one():
    call = ToolCall(id="a", name="look")

    for made in everywhere(Message.assistant(tool_calls=[call])):
        assert len(made) == 1


def test_a_result_without_a_call_is_told_by_the_user():
    said = [{"role": "user", "content": "lost"}]

    assert everywhere({"role": "tool", "content": "lost"}) == (said, said, said)


def test_a_result_of_any_type_is_text():
    results = [{"n": 1}, [1, "a"], 5, True, None, {"type": "cat"}]
    messages = [Message.tool_result("a", result) for result in results]

    texts = [item["output"] for item in to_openai_responses(messages)]
    assert texts == ['{"n":1}', '[1,"a"]', "5", "true", "", '{"type":"cat"}']


def test_ids_and_names_that_anthropic_refuses_are_replaced_in_calls_and_results():
    call = {"name": "my.look", "arguments": "{}"}
    entry = {"id": "functions.look:0", "type": "function", "function": call}
    result = {"role": "tool", "tool_call_id": "functions.look:0", "content": "seen"}
    asked = {"role": "assistant", "content": None, "tool_calls": [entry]}

    [use], [told] = (
        message["content"] for message in to_anthropic([asked, result])["messages"]
    )

    assert use["id"] == told["tool_use_id"]
    assert use["id"].isidentifier()
    assert use["name"] == "my_look"
    assert to_openai([asked, result]) == [asked, result]


def test_results_come_first_for_anthropic():
    result = {"type": "tool_result", "tool_use_id": "a", "content": "seen"}
    parts = [{"type": "text", "text": "Also:"}, result]

    [message] = to_anthropic([{"role": "user", "content": parts}])["messages"]
    assert message["content"] == parts[::-1]


def test_the_old_function_calls_of_openai_are_told_to_others():
    call = {"name": "look", "arguments": "{}"}
    asked = {"role": "assistant", "content": None, "function_call": call}
    told = {"role": "function", "name": "look", "content": "seen"}

    chat, *others = everywhere(asked, told)

    assert chat == [asked, told]
    for made in others:
        assert "look" in made[0]["content"]
        assert made[1] == {"role": "user", "content": "seen"}


def test_a_call_that_was_put_together_from_a_stream_can_be_sent():
    function = {"name": "look", "arguments": "{}"}
    entry = {"id": "a", "type": "function", "function": function}
    streamed = {"role": "assistant", "tool_calls": [{**entry, "index": 0}], "n": 1}

    [message] = to_openai([streamed])
    assert message["tool_calls"] == [entry]


def test_an_empty_text_beside_calls_is_not_said():
    call = ToolCall(id="a", name="look")

    assert len(to_openai_responses([Message.assistant("", tool_calls=[call])])) == 1
    assert to_openai_responses([Message.assistant("")]) == [
        {"role": "assistant", "content": ""}
    ]
    nothing = {"role": "assistant", "content": None}
    assert to_openai_responses([nothing]) == to_openai([nothing])


def test_a_result_keeps_its_fields_beside_others():
    cached = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "seen", **cached}

    made = to_anthropic([{"role": "user", "content": [result], "at": 5}])
    assert made["messages"] == [{"role": "user", "content": [result]}]


# --- words ----------------------------------------------------------------------------


def test_all_system_messages_are_the_system_of_anthropic():
    cached = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}
    messages = [
        {"role": "developer", "content": "a"},
        Message.user("Hi."),
        {"role": "system", "content": [cached]},
    ]

    assert to_anthropic(messages[:2])["system"] == "a"
    assert to_anthropic(messages) == {
        "system": [{"type": "text", "text": "a"}, cached],
        "messages": [{"role": "user", "content": "Hi."}],
    }
    assert to_openai(messages[:1]) == messages[:1]
    assert to_openai(messages)[2] == {"role": "system", "content": "b"}
    assert "system" not in to_anthropic(messages[1:2])


def test_neighbours_of_one_role_are_one_message_for_anthropic():
    messages = [Message.user("a"), {"role": "user", "content": "b"}, Message.user(" ")]

    [message] = to_anthropic(messages)["messages"]
    assert [block["text"] for block in message["content"]] == ["a", "b"]
    assert len(to_openai(messages)) == len(to_openai_responses(messages)) == 3


def test_reasoning_goes_only_to_the_provider_it_came_from():
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    unsigned = {"type": "thinking", "thinking": "hm"}
    said = {"type": "text", "text": "Yes."}
    chat, responses, anthropic = everywhere(
        {"role": "assistant", "content": [thinking, hidden, unsigned, said]}
    )

    assert chat == responses == [{"role": "assistant", "content": "Yes."}]
    assert anthropic[0]["content"] == [thinking, hidden, said]
    only = [
        Message.assistant(reasoning="hm"),
        {"role": "assistant", "content": [hidden]},
    ]
    assert to_openai(only) == to_openai_responses(only) == []


def test_reasoning_that_nothing_follows_is_left_out():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "status": None}
    said = {"role": "assistant", "content": "Yes."}
    asked = {"role": "user", "content": "?"}

    told = {"type": "function_call_output", "call_id": "a", "output": "seen"}

    made = to_openai_responses([item, said, item, asked, item, told, item])

    kept = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert made == [kept, said, asked, told]


def test_a_compatible_server_gets_its_reasoning_back():
    reply = {"role": "assistant", "content": "Yes.", "reasoning_content": "hm"}

    chat, responses, anthropic = everywhere(reply)

    assert chat == [reply]
    assert responses == anthropic == [{"role": "assistant", "content": "Yes."}]
    [plain] = to_plain([reply])
    assert (plain.content, plain.reasoning) == ("Yes.", "hm")


def test_a_summary_of_reasoning_is_the_reasoning_of_a_record():
    summary = [{"type": "summary_text", "text": "I looked."}]
    item = {"type": "reasoning", "id": "rs_1", "summary": summary}

    [plain] = to_plain(
        [item, {"type": "message", "role": "assistant", "content": "Yes."}]
    )
    assert (plain.reasoning, plain.content) == ("I looked.", "Yes.")


def test_a_refusal_is_said():
    message = {"role": "assistant", "content": None, "refusal": "No."}
    said = [{"role": "assistant", "content": "No."}]

    assert everywhere(message) == ([message], said, said)
    part = {"type": "refusal", "refusal": "No."}
    assert to_openai([{**message, "parsed": None}])[0]["content"] == [part]
    assert everywhere({"role": "assistant", "content": [part]})[1:] == (said, said)


def test_parts_that_only_one_provider_knows_become_text():
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    search = {
        "type": "web_search_call",
        "id": "ws",
        "status": "completed",
        "action": {},
    }

    chat, responses, anthropic = everywhere({"role": "assistant", "content": [use]})
    assert chat == responses
    assert "web_search" in chat[0]["content"]
    assert anthropic == [{"role": "assistant", "content": [use]}]
    chat, responses, anthropic = everywhere(search)
    assert chat == anthropic
    assert "web_search_call" in chat[0]["content"]
    assert responses == [search]


def test_fields_that_no_provider_knows_are_left_out():
    message = {"role": "user", "content": "Hi.", "timestamp": 5, "name": "a b"}
    said = [{"role": "user", "content": "Hi."}]

    assert everywhere(message) == (said, said, said)


def test_names_are_kept_where_there_are_names():
    named = {"role": "user", "content": "Hi.", "name": "ann"}
    said = [{"role": "user", "content": "Hi."}]

    assert everywhere(Message.user("Hi.", name="ann")) == ([named], said, said)
    assert to_plain([named])[0].name == "ann"


def test_dumps_of_the_providers_objects_can_be_sent_again():
    chat = {"role": "assistant", "content": "Hi.", "refusal": None, "annotations": []}
    chat |= {"audio": None, "function_call": None, "tool_calls": None}
    block = {"type": "text", "text": "Hi.", "citations": None}
    about = {"id": "msg_1", "type": "message", "model": "m", "usage": {"in": 1}}
    anthropic = {**about, "role": "assistant", "content": [block]}
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}

    assert to_openai([chat]) == [{"role": "assistant", "content": "Hi."}]
    assert to_anthropic([anthropic])["messages"] == [
        {"role": "assistant", "content": [block]}
    ]
    dumped = {**call, "id": None, "status": None, "namespace": None}
    assert to_openai_responses([dumped]) == [call]


def test_roles_of_others_become_those_of_the_provider():
    messages = [
        {"role": "human", "content": "a"},
        {"role": "model", "parts": [{"text": "b"}]},
        {"role": "narrator", "verses": ["c"]},
        "d",
    ]
    told = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": '{"verses":["c"]}'},
        {"role": "user", "content": "d"},
    ]

    assert to_openai(messages) == to_openai_responses(messages) == told
    assert [message.role for message in to_plain(messages)] == [
        "user", "assistant", "user", "user",
    ]  # fmt: skip


def test_values_that_have_no_json_are_sent_as_json():
    arguments = {"n": 2**80, "b": b"x", "f": float("nan"), 3: (1,)}
    message = Message.assistant(
        "\ud800", tool_calls=[ToolCall(id="a", name="n", arguments=arguments)]
    )

    [made] = to_anthropic([message])["messages"]

    said, use = made["content"]
    assert said["text"] == "?"
    assert use["input"] == {"n": 2**80, "b": "eA==", "f": None, "3": [1]}


def test_a_value_too_deep_for_json_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    with raises(Unstorable) as refused:
        to_openai([{"role": "user", "content": [{"type": "deep", "value": deep}]}])
    assert "nested too deeply" in refused.error.reason


def test_something_that_is_no_message_is_refused():
    with raises(Unstorable):
        to_openai([5])


# --- conversations and windows --------------------------------------------------------


def test_a_conversation_and_a_window_go_to_every_provider(memory):
    messages = [Message.system("Be brief."), {"role": "user", "content": "Hi."}]
    memory.conversations.create("c", messages=messages)
    chat = memory.conversations.load("c")
    window = memory.conversations.context_window("c", 100)

    assert chat.to_openai() == to_openai(window) == to_openai(messages)
    assert chat.to_openai_responses() == to_openai_responses(messages)
    assert chat.to_anthropic() == to_anthropic(window)
    assert chat.to_plain()[0] == chat.messages[0]
    assert [message.content for message in chat.to_plain()] == ["Be brief.", "Hi."]


def test_what_a_recorder_holds_goes_to_every_provider(path):
    with holdfast.open(path) as store:
        run = store.conversations.recorder("c", system="Be brief.")
        run.add(Message.user("Hi."))

        assert to_anthropic(run.messages) == {
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Hi."}],
        }
