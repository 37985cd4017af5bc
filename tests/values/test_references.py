"""References to checkpoints: the one parser, and what they lead to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import NotFound, Retention, Unstorable
from holdfast.operations.values import checked_id
from holdfast.testing import raises
from inner.values import (
    Ago,
    Back,
    Clock,
    Labelled,
    Moved,
    Named,
    Parsed,
    Step,
    Tagged,
    Until,
    Upstream,
    parse,
)

NAMES = st.text(st.characters(exclude_characters="\0\x1f", codec="utf-8"), min_size=1)


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "meaning"),
        [
            ("@", Back(0)),
            ("@~", Back(1)),
            ("@~0", Back(0)),
            ("@~1", Back(1)),
            ("@~007", Back(7)),
            ("@~999999999999999999", Back(999999999999999999)),
            ("@^", Back(1)),
            ("@^^^", Back(3)),
            ("@12", Step(12)),
            ("@0", Step(0)),
            ("@007", Step(7)),
            ("@{0}", Moved(0)),
            ("@{12}", Moved(12)),
            ("@{ 12 }", Moved(12)),
            ("@{upstream}", Upstream()),
            ("@{1 second ago}", Ago(1_000_000)),
            ("@{5 minutes ago}", Ago(300_000_000)),
            ("@{2 hours ago}", Ago(7_200_000_000)),
            ("@{1 day ago}", Ago(86_400_000_000)),
            ("@{yesterday}", Ago(86_400_000_000)),
            ("@{2 weeks ago}", Ago(14 * 86_400_000_000)),
            ("@{2h}", Ago(7_200_000_000)),
            ("@{2h ago}", Ago(7_200_000_000)),
            ("@{90m}", Ago(5_400_000_000)),
            ("@{90 min}", Ago(5_400_000_000)),
            ("@{5s}", Ago(5_000_000)),
            ("@{5 minutes}", Ago(300_000_000)),
            ("@{3 days}", Ago(3 * 86_400_000_000)),
            ("@{now}", Ago(0)),
            ("@{today}", Clock(0)),
            ("@{10:00}", Clock(36_000_000_000)),
            ("@{9:05:01}", Clock(32_701_000_000)),
            ("@{1970-01-02}", Until(86_400_000_000)),
            ("@{1970-01-01 00:01}", Until(60_000_000)),
            ("@{1970-01-01T00:00:01.5}", Until(1_500_000)),
            ("@{1970-01-01T02:00+02:00}", Until(0)),
            ("@{1970-01-01T00:00:00Z}", Until(0)),
            ("@{1969-12-31}", Until(-86_400_000_000)),
            ("label:x", Labelled("x")),
            ("label:a b:c", Labelled("a b:c")),
            ("label:@", Labelled("@")),
            ("label:tag:x", Labelled("tag:x")),
            ("tag:x", Tagged("x")),
            ("tag::", Tagged(":")),
            ("label:", Named("label:")),
            ("tag:", Named("tag:")),
            ("Label:x", Named("Label:x")),
            ("labels:x", Named("labels:x")),
            (" @", Named(" @")),
            ("01a1dee5", Named("01a1dee5")),
            ("~1", Named("~1")),
        ],
    )
    def test_a_text_means_one_thing(self, text, meaning):
        assert parse(text) == meaning

    @pytest.mark.parametrize(
        "text",
        [
            *("@x", "@~x", "@~-1", "@~1.5", "@^1", "@ ", "@@", "@~1~1", "@\n"),
            *("@-1", "@1.5", "@1~1", "@9999999999999999999", "@\u0661", "@{", "@{}"),
            *("@{ }", "@{-1}", "@{1}~1", "@{{1}}", "@{tomorrow}", "@{5 metres}"),
            *("@{-5 minutes ago}", "@{5 months ago}", "@{2026-13-01}", "@{25:00}"),
            *("@{10:0}", "@{10:60}", "@{ago}", "@{h}", "@{999999999 weeks}"),
            *("@{9999999999 days ago}", "@{Upstream}", "@1\n", "@{1}\n"),
        ],
    )
    def test_what_begins_like_the_head_but_is_not_is_refused(self, text):
        with raises(Unstorable) as refused:
            parse(text)

        assert "@~n" in str(refused.error)

    def test_a_time_of_day_is_the_last_one_that_has_passed(self):
        noon, day = 43_200_000_000, 86_400_000_000

        assert Clock(noon).when(7 * day + noon) == 7 * day + noon
        assert Clock(noon).when(7 * day + noon + 1) == 7 * day + noon
        assert Clock(noon).when(7 * day + noon - 1) == 6 * day + noon

    @pytest.mark.parametrize(
        "wrong", ["", "a\0b", "x" * 1000, "\ud800", None, 5, b"@", ["@"], 1.5, True]
    )
    def test_what_is_no_text_is_refused(self, wrong):
        with raises(Unstorable):
            parse(wrong)

    @given(NAMES)
    def test_every_label_and_tag_can_be_referred_to(self, name):
        if len(name.encode()) <= 512:
            assert parse(f"label:{name}") == Labelled(name)
            assert parse(f"tag:{name}") == Tagged(name)

    @given(NAMES)
    def test_every_id_means_itself(self, name):
        try:
            id_ = checked_id(name)
        except Unstorable:
            return

        assert parse(id_) == Named(name)

    @given(st.text())
    def test_any_text_is_parsed_or_refused(self, text):
        try:
            parsed = parse(text)
        except Unstorable:
            return

        assert isinstance(parsed, Parsed)

    def test_longer_distances_than_any_history_are_not_found(self, memory):
        memory.thread("chat").save({})

        for reference in ("@~1", "@~999999999999999999", "@" + "^" * 500):
            with raises(NotFound):
                memory.thread("chat").get(reference)


class TestIds:
    def test_wildcards_are_plain_characters(self, memory):
        chat = memory.thread("chat")
        for name in ("a%c", "a_c", "abc", "a*c", "a[b]c"):
            chat.save({}, id=name)

        for name in ("a%", "a_", "a*", "a["):
            assert chat.get(name).id.startswith(name)
        with raises(NotFound):
            chat.get("%")

    def test_case_and_form_matter(self, memory):
        chat = memory.thread("chat")
        chat.save({}, id="Abc")
        chat.save({}, id="e\u0301a")

        for name in ("abc", "ab", "\u00e9a"):
            with raises(NotFound):
                chat.get(name)
        assert chat.get("e").id == "e\u0301a"

    @given(st.lists(NAMES.filter(lambda n: len(n.encode()) <= 512), max_size=8))
    def test_a_beginning_means_what_begins_with_it(self, names):
        with holdfast.open(":memory:") as store:
            chat = store.thread("chat")
            chat.save({}, id="\U0010ffff")
            saved = {"\U0010ffff"}
            for name in names:
                if name not in saved and not name.startswith(("@", "label:", "tag:")):
                    chat.save({}, id=name)
                    saved.add(name)
            for beginning in {name[:2] for name in saved}:
                matching = {n for n in saved if n.startswith(beginning)}
                if beginning in saved or len(matching) == 1:
                    found = beginning if beginning in saved else matching.pop()
                    assert chat.get(beginning).id == store.get(beginning).id == found
                else:
                    with raises(NotFound, "ambiguous") as refused:
                        chat.get(beginning)
                    assert set(refused.error.matches) == matching

    def test_an_ambiguous_beginning_lists_no_more_than_can_be_read(self, memory):
        chat = memory.thread("chat")
        for n in range(50):
            chat.save({}, id=f"turn-{n:02}")

        with raises(NotFound, "ambiguous") as refused:
            chat.get("turn-")

        assert 2 <= len(refused.error.matches) <= 50
        assert len(str(refused.error)) < 500
        assert refused.error.reference == "turn-"

    def test_the_beginning_of_what_was_removed_is_free(self, memory):
        chat = memory.thread("chat")
        first = chat.save({}, id="abc")
        chat.save({}, id="abd")
        with raises(NotFound, "ambiguous"):
            chat.get("ab")

        chat.delete(first)

        assert chat.get("ab").id == "abd"

    def test_an_id_of_the_default_kind_is_found_by_its_end_only_as_a_whole(self):
        with holdfast.open(":memory:") as store:
            saved = store.thread("chat").save({})

            assert store.thread("chat").get(saved.id[:13]).id == saved.id
            with raises(NotFound):
                store.thread("chat").get(saved.id[-12:])


class TestForks:
    def test_the_distance_goes_on_into_the_source(self, memory):
        chat = memory.thread("chat")
        saved = [chat.save({"n": n}) for n in range(5)]
        fork = chat.fork("fork", at=saved[2])
        own = fork.save({"n": "own"})
        chat.save({"n": 5})

        assert [fork.get(f"@~{n}").id for n in range(4)] == [
            own.id,
            saved[2].id,
            saved[1].id,
            saved[0].id,
        ]

    def test_what_the_source_saved_later_is_foreign(self, memory):
        chat = memory.thread("chat")
        chat.save({"n": 1}, id="a1")
        fork = chat.fork("fork")
        later = chat.save({"n": 2}, id="a2", label="x", tags=["t"])

        for reference in (later, "a2"):
            with raises(NotFound, "foreign") as refused:
                fork.get(reference)
            assert "'chat'" in str(refused.error)
        for reference in ("label:x", "tag:t"):
            with raises(NotFound):
                fork.get(reference)
        assert fork.get("a").id == "a1"

    def test_a_mark_means_the_newest_that_can_be_seen(self, memory):
        chat = memory.thread("chat")
        chat.save({"n": 1}, label="x")
        fork = chat.fork("fork")
        fork.save({"n": 2}, label="x")
        chat.save({"n": 3}, label="x")

        assert fork.load("label:x") == {"n": 2}
        assert chat.load("label:x") == {"n": 3}


class TestMarks:
    def test_a_mark_means_the_newest_even_if_it_was_rewound(self, memory):
        chat = memory.thread("chat")
        first = chat.save({"n": 1}, label="x")
        chat.save({"n": 2}, label="x")
        chat.rewind(first)

        assert chat.load("label:x") == {"n": 2}
        assert [c.step for c in chat.history(label="x")] == [1]

    def test_a_mark_that_moved_means_its_new_place(self, memory):
        chat = memory.thread("chat")
        first, second = chat.save({"n": 1}, label="x"), chat.save({"n": 2})

        chat.label("x", second)
        chat.label(None, first)

        assert chat.load("label:x") == {"n": 2}
        assert len(chat.history(label="x")) == 1

    def test_an_older_checkpoint_marked_later_is_not_newer(self, memory):
        chat = memory.thread("chat")
        first, second = chat.save({"n": 1}), chat.save({"n": 2})
        chat.tag("t", ref=second)
        chat.tag("t", ref=first)

        assert chat.load("tag:t") == {"n": 2}

    def test_marks_of_what_was_pruned_are_gone(self, memory):
        chat = memory.thread("chat")
        chat.save({"n": 1}, label="x", tags=["t"])
        chat.save({"n": 2})

        memory.prune(Retention(last=1, labelled=False, tagged=False))

        assert (chat.find(label="x"), chat.find(tag="t")) == (None, None)
        with raises(NotFound):
            chat.get("label:x")


class TestEverywhere:
    @pytest.mark.parametrize(
        "reference", ["@~1", "@1", "@{1}", "label:x", "tag:t", "first", "fir"]
    )
    def test_every_method_takes_every_kind_of_reference(self, memory, reference):
        chat = memory.thread("chat")
        first = chat.save({"n": 1}, id="first", label="x", tags=["t"])
        second = chat.save({"n": 2}, id="second")

        assert chat.get(reference) == first
        assert chat.load(reference) == {"n": 1}
        assert len(chat.diff(reference).changes) == 1
        assert len(chat.diff("@", reference).changes) == 1
        assert len(chat.history(before=reference)) == 0
        assert chat.fork("fork", at=reference).head == first
        assert chat.tag("u", ref=reference).id == "first"
        assert chat.untag("u", ref=reference).id == "first"
        assert chat.label("x", reference).id == "first"
        with raises(holdfast.Conflict, "head_moved") as refused:
            chat.save({"n": 3}, expect=reference)
        assert refused.error.found == second
        assert chat.rewind(reference) == first

    def test_a_checkpoint_record_is_a_reference_too(self, memory):
        chat = memory.thread("chat")
        first = chat.save({"n": 1})
        chat.save({"n": 2})

        assert chat.get(first) == first
        assert chat.load(first) == {"n": 1}
        assert chat.delete(first) == 1
        with raises(NotFound):
            chat.get(first)

    def test_a_record_of_another_store_is_not_taken_for_one_of_ours(self):
        with holdfast.open(":memory:") as one, holdfast.open(":memory:") as other:
            theirs = other.thread("chat").save({"n": "theirs"})
            one.thread("chat").save({"n": "ours"})

            with raises(NotFound):
                one.thread("chat").load(theirs)
            with raises(NotFound):
                one.load(theirs)
            with raises(NotFound):
                one.thread("chat").diff(theirs)
