"""Transliterations without their markers: every marker of the convention, and strange texts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giccs.preparation.transcripts.smartkom import find_leftovers, strip_markers


@pytest.mark.parametrize(
    ("written", "message", "kinds"),
    [
        ("ja <A> <P> gut <PP> .", "ja gut.", {"breathing": 1, "pause": 2}),
        ("<#Klicken> also <#> gut <Ger\"ausch>", "also gut", {"noise": 3}),
        ("den <:<#Mikrofon> zw\"olften bitte:> .", "den zwölften bitte.",
         {"noise over words": 1, "umlaut": 1}),
        ("<:<Lachen> das <:<#> ist:> gut:>", "das ist gut", {"noise over words": 2}),
        ("<\"ahm> <hm> <h\"as> <\"ah> gut", "gut", {"hesitation": 4}),
        ("und<Z> dann<Z> nichts", "und dann nichts", {"lengthening": 2}),
        ("was +/machen s=/+ machst du ?", "was machst du?", {"repetition or correction": 1}),
        ("+/ich +/ich/+ will/+ ich will heim", "ich will heim", {"repetition or correction": 2}),
        ("-/kannst du/- wo ist das ?", "wo ist das?", {"false start": 1}),
        ("-/ich +/das/+ den/- wo ?", "wo?", {"false start": 1, "repetition or correction": 1}),
        ("ich such= suche Kino= .", "ich suche.", {"broken-off word": 2}),
        ("heute a_ <A> _bend", "heute abend", {"breathing": 1, "interrupted word joined": 1}),
        ("un_ +/b=/+ <P> _glaublich", "unglaublich",
         {"repetition or correction": 1, "pause": 1, "interrupted word joined": 1}),
        ("das ist <!1 is'> so", "das ist so", {"pronunciation": 1}),
        ("gut <;lacht dabei> so", "gut so", {"comment": 1}),
        ("ja@1 nein@ @2doch 3@aber", "ja nein doch aber", {"overlap": 4}),
        ("~Heidelberg *Smartakusfan %vielleicht gut% #zw\"olf $A-$G",
         "Heidelberg Smartakusfan vielleicht gut zwölf A-G", {"word marker": 7, "umlaut": 1}),
        ("!KEYSmartakus , hilf", "Smartakus, hilf", {"keyword": 1}),
        ("das<OOT> da<ROT> <*tOOT> ~<*IT>Roma<POT>", "das da Roma",
         {"off-talk": 4, "language": 1, "word marker": 1}),
        ("brauch <*T>t <T_>noch so<_T>", "brauch noch so", {"technical break": 3}),
        ("den [B2] Film [PA] da [B3 fall] ? ja [B3 rise] [NA] [EK] [B9]", "den Film da? ja",
         {"prosodic label": 7}),
        ('"Ol f"ur S"u"se , "Arger', "Öl für Süße, Ärger", {"umlaut": 5}),
        ("<%> so <Schmatzen>", "so", {"unintelligible": 1, "noise": 1}),
        ("wie geht 's Ihnen , gut ?", "wie geht's Ihnen, gut?", {}),
    ],
)  # fmt: skip
def test_each_marker_goes_and_is_counted(written, message, kinds):
    assert strip_markers(written) == (message, Counter(kinds))


def test_a_line_break_within_a_marker_does_no_harm():
    assert strip_markers("was +/machen\n s=/+ machst\n du ?")[0] == "was machst du?"


@pytest.mark.parametrize(
    "plain",
    [
        "Um 20.15 Uhr, im Kino „Gloria“ – 3:0, 50 % billiger?",
        "Das E-Mail-Konto kostet 4,50 € (ohne Gebühr).",
        "Öffnet's um 9 oder 10/11 Uhr!",
    ],
)
def test_plain_text_stays_as_it_is(plain):
    assert strip_markers(plain) == (plain, Counter())
    assert find_leftovers("Um acht, im „Gloria“?") == []


PIECES = st.sampled_from(
    ['<"ahm>', "<A>", "<:<#>", ":>", "+/", "/+", "-/", "/-", "a_ ", " _b", "=", "wort=", "@1", "%", "~",
     "#", "$", '"a', '"', "<", ">", "[B3 fall]", "[", "]", "<!1 ", " ", "\n", ".", " 's", "ja", "!KEY",
     "<*T>t", "<Z>", "1", ","]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join)))
def test_stripping_again_changes_nothing(text):
    once, _ = strip_markers(text)
    again, result = strip_markers(once)
    assert again == once
    assert not result
    assert len(once) <= len(text)


@given(st.lists(st.sampled_from(["Kino", "heute", "Plätze", "geht's", "zwanzig"]), min_size=1))
def test_words_between_markers_all_stay(words):
    """Noise and prosody around words takes no word away."""
    written = " <P> ".join(f"~{word}<Z> [PA] <#Rascheln>" for word in words)
    assert strip_markers(written)[0] == " ".join(words)
