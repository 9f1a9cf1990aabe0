"""Hits of the search, and texts in which they are marked."""

import re

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs_app.explorer.search import fold, hits, mark_hits


def marks(text):
    return re.findall("<mark>(.*?)</mark>", text)


@pytest.mark.parametrize(
    "text", ["İstanbul und ISTANBUL", "Straße", "ΟΔΟΣ, ὁδός", "שלום עולם", "مرحبا", "e\u0301", "𝕏"]
)
def test_folding_keeps_the_positions(text):
    assert len(fold(text)) == len(text)
    for start in range(len(text)):
        words = text[start : start + 3]
        assert any(found == start for found, _ in hits(text, words)) or text.find(words) < start


def test_case_is_ignored_and_accents_are_not():
    assert hits("HOTEL Hôtel hotel", "Hotel") == [(0, 5), (12, 17)]
    assert marks(mark_hits("Σίσυφος ΟΔΟΣ", "οδος")) == ["ΟΔΟΣ"]
    assert marks(mark_hits("İstanbul, ISTANBUL", "istanbul")) == ["ISTANBUL"]


@pytest.mark.parametrize("words", ["<b>", "&", "mark", '"', "b", "amp"])
def test_a_text_is_never_rendered_whatever_is_searched(words):
    import html

    text = '<b onclick="x">&amp; mark</b>'
    result = mark_hits(text, words)
    assert html.unescape(re.sub("</?mark>", "", result)) == text
    assert not re.search("<(?!/?mark>)", result)
    assert [html.unescape(hit) for hit in marks(result)] == [words] * text.count(words)


def test_words_from_right_to_left_are_found():
    assert marks(mark_hits("שלום עולם", "עולם")) == ["עולם"]
