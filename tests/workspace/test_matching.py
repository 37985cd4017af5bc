"""Rules are matched as pathspec matches them, in a time that no pattern makes long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from inner.workspace import bounded, matcher, recorded_rules

PARTS = [
    "*",
    "*",
    "a",
    "b",
    "?",
    "/",
    "/",
    "**",
    "[ab]",
    "\\*",
    "**/",
    "/**/",
    "(",
    ".",
]
rules = st.lists(st.sampled_from(PARTS), min_size=1, max_size=9).map("".join)
paths = st.lists(st.sampled_from(["a", "b", "*", "/", "ab", "("]), min_size=1).map(
    "".join
)


@given(rules, st.lists(paths, min_size=1, max_size=20))
def test_a_bounded_pattern_matches_what_the_pattern_matches(rule, found):
    try:
        pattern = GitIgnoreSpecPattern(rule).regex
    except ValueError:
        return
    if pattern is None:
        return
    other = re.compile(bounded(pattern.pattern))

    for path in found:
        assert bool(other.search(path)) == bool(pattern.search(path)), path


@pytest.mark.parametrize(
    "rule", ["*a" * 40 + "b", "**/a/" * 30 + "b", "a" + "/**/a" * 40 + "/b", "*" * 3000]
)
def test_no_pattern_takes_long(rule):
    path = "a" * 200 + "/a" * 100
    begin = time.process_time()

    recorded_rules(["# .gitignore", rule]).ignores(path)

    assert time.process_time() - begin < 2


@pytest.mark.parametrize("rule", ["!", "a\\", "[z-a]", "[", "", "[]"])
def test_a_rule_that_git_does_not_understand_leaves_nothing_out(rule):
    assert matcher([rule]).check_file("a").include is None


def test_no_set_of_letters_has_the_slash():
    assert matcher(["/a[!b]c"]).check_file("a/c").include is None
    assert matcher(["/a[!b]c"]).check_file("axc").include is True
