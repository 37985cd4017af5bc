"""Texts are cut in one way, with one sign."""

from hypothesis import given
from hypothesis import strategies as st

from inner.values import ELLIPSIS, shortened
from support.folders import ROOT

LETTERS = ["a", " ", "é", "e\u0301", "👩\u200d👧", "🇫🇷"]
texts = st.lists(st.sampled_from(LETTERS)).map("".join)


@given(texts, st.integers(2, 12))
def test_a_text_is_as_it_is_or_its_beginning_and_the_sign(text, longest):
    found = shortened(text, longest)

    assert len(found) <= longest
    if len(text) <= longest:
        assert found == text
    else:
        assert found.endswith(ELLIPSIS)
        assert text.startswith(found.removesuffix(ELLIPSIS))


def test_nothing_is_cut_within_a_character():
    assert shortened("ab👩\u200d👧cdef", 5) == "ab…"
    assert shortened("ab🇫🇷cdef", 4) == "ab…"
    assert shortened("abce\u0301f", 5) == "abc…"
    assert shortened("ab  cdef", 5) == "ab…"


def test_no_other_module_has_a_sign_of_its_own():
    files = (ROOT / "src").rglob("*.py")

    found = [file.name for file in files if '"…"' in file.read_text()]

    assert found == ["shortening.py"]
