"""The viewer's documents over a real store: what each route answers."""

from __future__ import annotations

import pytest
from asking import asked

import holdfast

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_order", "arguments": '{"id": 4812}'},
}
OPENING = [
    {"role": "user", "content": "I want my money back"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "get_order", "content": "delivered"},
]
USAGE = {"input_tokens": 400, "output_tokens": 12, "cost": 0.5}


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A viewer over a thread that denied a refund, and a fork that approved it."""
    path = str(tmp_path_factory.mktemp("viewer") / "agents.db")
    with holdfast.open(path) as store:
        thread = store.thread("case", owner="ada", agent="helper")
        thread.save({"messages": OPENING[:1], "plan": {"step": 1}}, kind="input")
        thread.save(
            {"messages": OPENING[:2], "plan": {"step": 1}},
            kind="llm",
            metadata={"usage": USAGE, "took_ms": 1800},
        )
        thread.append(messages=OPENING[2:])
        fork = thread.fork("fixed")
        thread.append(messages=[{"role": "assistant", "content": "Refund denied."}])
        thread.save({**thread.load(), "plan": {"step": 2}})
        fork.append(messages=[{"role": "assistant", "content": "Refund approved."}])
        thread.label("bad", "@~1")
        thread.tag("golden", "reviewed", ref="@~2")
    with asked(path) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def rows(story):
    return story.get("log", thread="case")["rows"]


def test_the_store_is_told_in_numbers(story):
    about = story.get("store")

    assert (about["threads"], about["checkpoints"]) == (2, 6)
    assert (about["backend"], about["write"], about["encrypted"]) == (
        "sqlite",
        False,
        False,
    )


def test_a_card_tells_what_is_going_on(story):
    cards = {card["id"]: card for card in story.get("threads")["threads"]}

    card = cards["case"]
    assert (card["owner"], card["agent"], card["steps"], card["forks"]) == (
        "ada",
        "helper",
        5,
        1,
    )
    assert card["last"] == {"role": "assistant", "text": "Refund denied."}
    assert card["state"] == "done"
    assert cards["fixed"]["forked_from"]["thread"] == "case"


def test_cards_come_in_pages_and_by_their_state(story):
    first = story.get("threads", limit=1)
    second = story.get("threads", limit=1, cursor=first["next"])

    names = [page["threads"][0]["id"] for page in (first, second)]
    assert names == ["case", "fixed"]
    assert story.get("threads", state="failed")["threads"] == []
    assert story.get("thread", thread="case")["family"][0]["id"] == "case"


def test_a_log_has_lanes_that_one_page_hands_on_to_the_next(story, rows):
    paged, cursor = [], None
    while True:
        page = story.get(
            "log", thread="case", limit=2, **({"cursor": cursor} if cursor else {})
        )
        paged += page["rows"]
        cursor = page["next"]
        if cursor is None:
            break

    assert paged == rows
    assert [row["lane"] for row in rows] == [0, 1, 1, 0, 0, 0]
    assert rows[3]["ending"] == [1]
    assert [row["on_line"] for row in rows] == [False, *[True] * 5]
    assert rows[0]["heads"] == ["fixed"]


def test_a_row_tells_what_was_said_and_what_it_took(rows):
    llm, denied, changed = rows[4], rows[2], rows[1]

    assert (llm["tool"], llm["tokens"], llm["cost"], llm["took_ms"]) == (
        "get_order",
        412,
        0.5,
        1800,
    )
    assert (denied["role"], denied["text"]) == ("assistant", "Refund denied.")
    assert denied["label"] == "bad"
    assert (changed["role"], changed["text"]) == (None, "plan")


def test_a_page_can_begin_at_a_checkpoint_and_knows_its_position(story, rows):
    page = story.get("log", thread="case", at=rows[4]["id"], limit=6)
    line = story.get("log", thread="case", scope="line", at="@~3", limit=1)

    assert rows[4]["id"] in [row["id"] for row in page["rows"]]
    assert page["rows"] == rows[page["position"] :]
    assert (line["position"], line["rows"][0]["step"]) == (3, 2)


def test_the_line_is_read_from_the_root_in_stretches(story, rows):
    line = story.get("line", thread="case", first=1, limit=2)
    older = story.get("line", thread="case", tip=rows[3]["id"])

    assert (line["length"], [item["step"] for item in line["items"]]) == (5, [2, 3])
    assert [item["step"] for item in older["items"]] == [1, 2, 3]
    assert [(i["tokens"], i["cost"]) for i in line["items"]] == [
        (412, 0.5),
        (None, None),
    ]


def test_the_minimap_counts_rows_forks_and_heads(story):
    buckets = story.get("minimap", thread="case", buckets=3)["buckets"]

    assert [bucket["count"] for bucket in buckets] == [2, 2, 2]
    assert sum(bucket["heads"] for bucket in buckets) == 2
    assert sum(bucket["forks"] for bucket in buckets) == 1


def test_a_checkpoint_has_its_lineage_and_its_commands(story, rows):
    about = story.get("checkpoint", id=rows[3]["id"])
    fork = story.get("checkpoint", id=rows[0]["id"])

    assert {child["thread"] for child in about["children"]} == {"case", "fixed"}
    assert about["tags"] == ["golden", "reviewed"]
    assert about["commands"]["show"] == f"holdfast show {about['id']}"
    assert fork["lineage"] == [{"thread": "case", "checkpoint": about["id"], "step": 3}]


def test_messages_have_each_call_with_its_result(story, rows):
    page = story.get("messages", checkpoint=rows[1]["id"], limit=3)
    asking = story.get("messages", checkpoint=rows[1]["id"], first=1, limit=1)

    [call] = asking["messages"][0]["calls"]
    assert (page["total"], page["first"], len(page["messages"])) == (4, 1, 3)
    assert (call["name"], call["arguments"], call["result"]) == (
        "get_order",
        {"id": 4812},
        "delivered",
    )
    assert (call["status"], call["position"]) == ("done", 2)


def test_what_the_model_saw_has_the_calls_it_made(story, rows):
    items = story.get("context", checkpoint=rows[1]["id"])["items"]

    assert [[call["name"] for call in item["calls"]] for item in items] == [
        [],
        ["get_order"],
        [],
        [],
    ]
    assert items[1]["calls"][0]["arguments"] == {"id": 4812}


def test_a_state_opens_node_by_node(story, rows):
    root = story.get("state", checkpoint=rows[1]["id"])["value"]
    plan = story.get("state", checkpoint=rows[1]["id"], path="/plan")["value"]
    some = story.get(
        "state", checkpoint=rows[1]["id"], path="/messages", offset=1, limit=2
    )["value"]

    assert [(n["key"], n["type"]) for n in root["children"]] == [
        ("messages", "array"),
        ("plan", "object"),
    ]
    assert plan["children"][0]["preview"] == "2"
    assert ([n["key"] for n in some["children"]], some["next"]) == ([1, 2], 3)


def test_differences_and_comparisons_tell_where_branches_part(story, rows):
    changes = story.get("diff", **{"from": rows[1]["id"], "to": rows[0]["id"]})
    compared = story.get("compare", at=[rows[1]["id"], rows[0]["id"]])

    assert changes["ancestor"]["id"] == rows[3]["id"]
    assert (changes["messages"]["shared"], changes["counts"]["changed"]) == (3, 2)
    assert [row["same"] for row in compared["rows"]] == [True, True, True, False]
    assert compared["parts_at"] == 3


def test_blame_search_and_parts_find_one_thing(story, rows):
    head = rows[1]["id"]
    blame = story.get("blame", checkpoint=head, path="/plan/step")
    hits = story.get("search", q="refund")["hits"]
    inside = story.get("search", q="REFUND", thread="case")["hits"]

    assert blame["checkpoint"] == head
    assert {hit["thread"] for hit in hits} == {"case", "fixed"}
    assert (inside[0]["position"], inside[0]["marks"]) == (3, [[0, 6]])
    assert story.get("part", checkpoint=head, path="/plan")["value"] == {"step": 2}
    assert story.get("part", checkpoint=head, position=0)["text"] == (
        "I want my money back"
    )


def test_charts_follow_the_line(story):
    charts = story.get("charts", thread="case")

    assert charts["steps"] == [1, 2, 3, 4, 5]
    assert charts["tokens"] == [0, 412, 0, 0, 0]
    assert charts["values"]["messages"] == sorted(charts["values"]["messages"])


def test_a_rewind_is_shown_before_it_is_made(story, rows):
    preview = story.get("rewind", thread="case", to=rows[3]["id"])

    assert preview["steps"] == 2
    assert preview["counts"] == {"added": 0, "removed": 1, "changed": 1}


@pytest.mark.parametrize(
    ("route", "status", "code"),
    [
        ("thread?thread=nobody", 404, "not_found"),
        ("checkpoint?id=nothing", 404, "not_found"),
        ("log?thread=case&cursor=nonsense", 400, "unstorable"),
        ("log?thread=case&at=%00", 400, "unstorable"),
        ("log?thread=case&at=nothing", 404, "not_found"),
        ("log?thread=case&scope=world", 400, "bad_request"),
        ("log?thread=case&limit=100000", 400, "bad_request"),
        ("log", 400, "bad_request"),
        ("threads?color=red", 400, "bad_request"),
        ("search?q=", 400, "unstorable"),
        ("nothing", 404, "not_found"),
    ],
)
def test_what_cannot_be_answered_says_so_in_a_document(story, route, status, code):
    answered = story.send("GET", f"/api/1/{route}")

    assert (answered.status, answered.code) == (status, code)
