"""Table 2's numbers: worked out by hand, and against another program of the same definition."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexicalrichness import LexicalRichness

from giccs.benchmark import read_benchmark
from giccs.benchmark.items import Candidate, Dialogue, Item, Turn
from giccs.description.statistics import Description, describe, richness, statistics_table

from ..deferred import requires

pytestmark = requires("lexicalrichness")


class Words:
    """Stands for a lemmatiser where lemmas are not the question: each word is its own lemma."""

    def lemmas(self, texts):
        for text in texts:
            yield text.lower().split()


def dialogue(name, *texts, domain="hotel", source="phone", original=""):
    turns = tuple(Turn("user", text) for text in texts)
    candidates = (Candidate(f"{name}-a", "zählt nicht mit"), Candidate(f"{name}-b", "auch nicht"))
    return Dialogue(name, source, domain, turns, candidates, original)


def test_a_small_dialogue_worked_out_by_hand():
    [whole] = describe([dialogue("d", "Ja, das ja.", "Geht ja das heute? Ja!")], Words(), by=())
    assert (whole.dialogues, whole.turns) == (1, 2)
    assert whole.tokens == 3 + 5
    assert whole.mean_turn_length == 8 / 2
    # words: ja das ja geht ja das heute ja; types: ja das geht heute
    assert whole.rttr == pytest.approx(4 / math.sqrt(8))
    # forwards: ja 1/1, das 2/2, ja 2/3 = .667 <= .72: one factor;
    #   geht 1/1, ja 2/2, das 3/3, heute 4/4, ja 4/5: (1 - .8) / (1 - .72) = .714 of one
    #   8 words / 1.714 factors = 4.667
    # backwards: ja 1/1, heute 2/2, das 3/3, ja 3/4, geht 4/5, ja 4/6 = .667 <= .72: one factor;
    #   das 1/1, ja 2/2: (1 - 1) / .28 = 0 of one
    #   8 words / 1 factor = 8
    forwards, backwards = 8 / (1 + 0.2 / 0.28), 8 / 1
    assert forwards == pytest.approx(4.667, abs=5e-4)
    assert whole.mtld == pytest.approx((forwards + backwards) / 2)
    assert whole.reasons == {
        "mtld": "of 8 words only; MTLD is stable from 100 on (Koizumi 2012)"
    }  # fmt: skip
    # "ja," "das" "ja." "geht" "ja" "heute?" "ja!" for these Words, which know no punctuation
    assert whole.lemmas == 7


def test_the_published_example_of_mtld():
    # McCarthy and Jarvis (2010, p. 384): "of the people by the people for the people" reaches the
    # threshold at its sixth word (4 types / 6 words = .667), where counting begins anew
    count = richness("of the people by the people for the people")
    # forwards: 6 words; then for the people 3/3: nothing of a factor: 9 / 1
    # backwards: people the for people(3/4) the(3/5 = .6): 5 words; by people the of 4/4: 9 / 1
    assert count.mtld == 9
    assert count.rttr == 5 / 3


def slow_mtld(words):
    """MTLD as the paper describes it, in fractions; None where a pass completes no factor."""
    passes = []
    for order in (words, words[::-1]):
        rest, complete = order, 0
        while ends := [n for n in range(1, len(rest) + 1) if ratio(rest[:n]) <= Fraction(72, 100)]:
            rest, complete = rest[ends[0] :], complete + 1
        if not complete:
            return None
        share = (1 - ratio(rest)) / (1 - Fraction(72, 100)) if rest else 0
        passes.append(len(order) / (complete + share))
    return float(sum(passes) / 2)


def ratio(words):
    return Fraction(len(set(words)), len(words))


@given(st.lists(st.sampled_from([2 * letter for letter in "abcdefghijkl"]), max_size=70))
@settings(max_examples=200, deadline=None)
def test_mtld_is_what_the_description_gives_or_nan_with_a_reason(words):
    result = richness(" ".join(words))
    expected = slow_mtld(words)
    if expected is None:
        assert math.isnan(result.mtld)
        assert result.reasons["mtld"]
    else:
        assert result.mtld == pytest.approx(expected)
    if words:
        assert result.rttr == pytest.approx(len(set(words)) / math.sqrt(len(words)))


def test_the_threshold_itself_completes_a_factor():
    # 25 words of 18 types: 18 / 25 = .72 exactly, at the last word and not before
    words = [f"{letter}{letter}" for letter in "abcdefghijklmnopqr"]
    words += words[:7]
    assert ratio(words) == Fraction(72, 100)
    assert richness(" ".join(words)).mtld == 25


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "alle Wörter hier sind verschieden",
            "too short: read forwards and backwards, its 5 words (5 different) complete no factor",
        ),
        # forwards ja ja is 1/2; backwards 1/1 2/2 3/3 4/4 4/5 = .8
        (
            "ja ja das geht heute",
            "too short: read backwards, its 5 words (4 different) complete no factor",
        ),
    ],
)
def test_what_is_too_short_for_mtld_is_nan_and_says_why(text, reason):
    result = richness(text)
    assert math.isnan(result.mtld)
    assert result.reasons == {"mtld": reason}
    assert not math.isnan(result.rttr)


@pytest.mark.parametrize("text", ["alle Wörter hier sind verschieden", "ja ja das geht heute"])
def test_what_is_too_short_has_the_value_of_lexicalrichness_on_request(text):
    result = richness(text, "lexicalrichness")
    assert result.mtld == LexicalRichness(text).mtld(threshold=0.72)
    assert result.reasons["mtld"].startswith("value of LexicalRichness; read ")
    assert result.reasons["mtld"].endswith("MTLD is stable from 100 on (Koizumi 2012)")
    with pytest.raises(
        ValueError, match="unknown mtld 'own'; expected one of strict, lexicalrichness"
    ):
        richness(text, "own")


def test_a_text_without_words_has_no_richness():
    # LexicalRichness drops digits and ASCII punctuation
    [whole] = describe([dialogue("d", "20:15", "3, 4!")], Words(), by=())
    assert whole.tokens == 3
    assert math.isnan(whole.rttr)
    assert math.isnan(whole.mtld)
    assert whole.reasons == dict.fromkeys(["rttr", "mtld"], "the text has no words")
    assert math.isnan(richness("20:15", "lexicalrichness").mtld)
    assert whole.document()["reasons"] == whole.reasons


def test_tokens_are_what_whitespace_separates():
    [whole] = describe([dialogue("d", " Um 20 Uhr – ja\t!\n", "Gut\u00a0so.")], Words(), by=())
    assert whole.tokens == 6 + 2
    assert whole.mean_turn_length == 4


def test_groups_are_in_order_and_the_whole_is_last():
    result = describe(
        [
            dialogue("a", "eins zwei", "drei", "vier", "fünf", "sechs"),
            dialogue("b", "eins", "zwei drei", "vier", domain="tv"),
            dialogue("c", "eins", "zwei", "sieben acht neun"),
            dialogue("d", "zehn", "zwei", "eins"),
        ],
        Words(),
    )
    table = [(dict(one.by), one.dialogues, one.turns, one.tokens, one.lemmas) for one in result]
    assert table == [
        ({"n_turns": 3, "domain": "hotel"}, 2, 6, 8, 6),
        ({"n_turns": 3, "domain": "tv"}, 1, 3, 4, 4),
        ({"n_turns": 5, "domain": "hotel"}, 1, 5, 6, 6),
        ({}, 4, 14, 18, 10),
    ]


def test_every_column_groups():
    some = [
        dialogue("a", "x", "y", source="phone", original="tv"),
        dialogue("b", "x", "y", source="chat", original="cinema"),
    ]
    by = ("source", "original_domain")
    assert [dict(one.by) for one in describe(some, Words(), by)] == [
        {"source": "chat", "original_domain": "cinema"},
        {"source": "phone", "original_domain": "tv"},
        {},
    ]
    with pytest.raises(ValueError, match="unknown by 'level'; expected one of n_turns, domain"):
        describe(some, Words(), ("level",))


def test_a_dialogue_counts_once_and_its_candidates_not_at_all():
    turns = (Turn("user", "Hallo du"), Turn("system", "Ja bitte"))
    items = [Item(f"i{k}", "d", "phone", "tv", turns, f"u{k}", f"Etwas {k}", 0.5) for k in range(5)]
    as_dialogue = Dialogue("d", "phone", "tv", turns, (Candidate("u1", "Etwas anderes"),))
    of_items, of_dialogues = describe(items, Words()), describe([as_dialogue], Words())
    assert [of_item.document() for of_item in of_items] == [
        of_dialogue.document() for of_dialogue in of_dialogues
    ]
    assert (of_items[-1].dialogues, of_items[-1].tokens, of_items[-1].lemmas) == (1, 4, 4)


def test_nothing_cannot_be_described():
    with pytest.raises(ValueError, match="no dialogues"):
        describe([], Words())


def test_the_sample_gives_the_shape_of_table_2():
    *parts, whole = describe(read_benchmark("giccs-sample").items, Words())
    of_length = {n: [part for part in parts if part.by["n_turns"] == n] for n in (3, 5)}
    assert [sum(one.dialogues for one in of) for of in of_length.values()] == [30, 30]
    assert [len(of) for of in of_length.values()] == [6, 6]
    assert whole.dialogues == 60
    assert whole.turns == 30 * 3 + 30 * 5
    assert whole.tokens == sum(part.tokens for part in parts)
    for one in [*parts, whole]:
        assert one.mean_turn_length == one.tokens / one.turns
        assert math.isnan(one.mtld) == ("too short" in one.reasons.get("mtld", ""))


def test_table_2_has_reasons_for_what_is_not_defined():
    by = {"n_turns": 3, "domain": ""}
    part = Description(by, 1, 3, 9, 2.5, math.nan, 8, 3.0, {"mtld": "short"})
    table = statistics_table([part, Description({}, 1, 3, 9, 2.5, 40.0, 8, 3.0)])
    assert table.text_rows() == [
        ["3-turn", "(none)", "1", "2.50", "undefined", "9", "8", "3.00"],
        ["all", "", "1", "2.50", "40.00", "9", "8", "3.00"],
    ]
    assert table.notes == ["MTLD of 3-turn (none): short."]
    frame = table.to_frame("polars")
    assert frame["mtld"].to_list() == [None, 40.0]
    assert frame["n_turns"].to_list() == [3, None]
    assert frame["reasons"].to_list() == ["mtld: short", ""]
