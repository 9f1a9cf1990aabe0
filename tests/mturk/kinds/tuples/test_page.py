"""Page of tuples: hostile texts are literal, ids round-trip, both languages have the same texts."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import characters

from giccs.benchmark.items import Candidate, Dialogue, Turn
from mturk import answers, question_xml
from mturk.kinds import ExpectedTuple
from mturk.kinds.pages import preview_page
from mturk.kinds.texts import built_in_texts
from mturk.kinds.tuples import form
from mturk.kinds.tuples.language_check import check_cloze, cloze_for, load_clozes
from mturk.kinds.tuples.page import Part, count_dropped_characters, render
from mturk.kinds.tuples.page import question_xml as question_of
from mturk.limits import QUESTION
from mturk.study.plan import HitPlan
from mturk.study.settings import Settings

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "${B} {{ 7*7 }} {% raw %} {# x #} %s %(a)s",
    "]]><!--&amp;&lt;",
    "\"double\" 'single' `back` „deutsch“",
    "\u202erechts nach links\u202c \u200f\u200b",
    "🙂👩‍👩‍👧 𝔘𝔪𝔩𝔞𝔲𝔱",
    "zwei\r\nZeilen\tund\u2028mehr\u0085",
]
IDENTITY = st.text(characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12).filter(
    lambda text: not question_xml.forbidden_in_xml(text)
)


class Page(HTMLParser):
    """Parsed page: texts by class, inputs, and all tag names."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.inputs, self.attributes, self.texts = [], [], set(), []
        self.collecting = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        result = dict(attrs)
        self.tags.append(tag)
        self.attributes |= result.keys()
        self.inputs += [result] if tag == "input" else []
        self.collecting = result.get("class") in ("utterance", "text", "speaker", "as-written")
        self.texts += [""] if self.collecting else []

    def handle_endtag(self, tag):
        self.collecting = False

    def handle_data(self, data):
        if self.collecting:
            self.texts[-1] += data


def part(texts, tuple_id="t1", names=("a", "b", "c"), group="d1"):
    turns = tuple(Turn("user", text) for text in texts)
    items = tuple(Candidate(name, f"{texts[0]}{n}") for n, name in enumerate(names))
    return Part(tuple_id, Dialogue(group, "", "", turns, items), items)


def page_of(*parts, **kwargs):
    return Page(question_xml.read_question(question_of(parts, Settings(**kwargs))).html)


def test_hostile_texts_are_displayed_literally():
    page = page_of(part(HOSTILE), consent=HOSTILE[0])
    plain = page_of(part(["gut"] * len(HOSTILE)), consent="gut")
    assert set(HOSTILE) <= set(page.texts)
    assert page.tags == plain.tags
    assert page.attributes == plain.attributes


def test_speaker_names_are_escaped():
    dialogue = Dialogue("d", "", "", (Turn("<b>Eva</b>", "Hallo"),), ())
    page = page_of(Part("t1", dialogue, ()))
    assert "<b>Eva</b>" in page.texts
    assert "b" not in page.tags


@given(st.text(characters(), min_size=1, max_size=60))
@example("\x00\ud800\ufffe\r")
@settings(max_examples=50, deadline=None)
def test_any_text_is_displayed_except_forbidden_characters(text):
    one = part([text])
    lost = question_xml.forbidden_in_xml(text)
    shown = "".join(c for c in text if c not in lost)
    assert {shown, f"{shown}0", f"{shown}1", f"{shown}2"} <= set(page_of(one).texts)
    counted = count_dropped_characters([one], Settings())
    assert set(counted.values()) == ({len(lost)} if lost else set())
    assert len(counted) == (4 if lost else 0)  # a turn and three candidates


@given(IDENTITY, st.lists(IDENTITY, min_size=2, max_size=4, unique=True), IDENTITY)
@example("</script>", ["a;b", "a%3Bb", "]]>", '"><b>'], "${B}")
@settings(max_examples=50, deadline=None)
def test_ids_round_trip(tuple_id, names, group):
    one = part(["x"], tuple_id, names, group)
    xml = question_of([one], Settings())
    assert answers.expected_tuples(xml) == (ExpectedTuple(tuple_id, group, tuple(names)),)
    inputs = Page(question_xml.read_question(xml).html).inputs
    values = {result["value"] for result in inputs if result.get("name") == f"best-{tuple_id}"}
    assert values == set(names)
    [shown] = [result["value"] for result in inputs if result.get("data-role") == "shown"]
    assert form.split_shown(shown) == tuple(names)


def test_page_fields_match_expected_fields():
    page = page_of(part(["x"]), part(["y"], "t2"), language_check=False)
    names = {result.get("name") for result in page.inputs}
    assert names == {"assignmentId", None} | {
        f"{field}-{t}" for field in ("best", "worst", "shown", "seconds") for t in ("t1", "t2")
    }


def test_page_has_no_external_resources():
    page = render([part(["x"])], Settings())
    assert not {"src", "href", "srcset", "action"} & Page(page).attributes
    assert "@import" not in page
    assert "url(" not in page


def test_size_is_measured_in_bytes():
    empty = len(question_of([part(["", "x"])], Settings()).encode())
    room = (QUESTION.maximum - empty) // 2
    fits = [Turn("user", "ü" * room)]
    one = part(["", "x"])
    one = Part("t1", Dialogue("d1", "", "", (*fits, one.dialogue.turns[1]), one.items), one.items)
    assert len(question_of([one], Settings()).encode()) <= QUESTION.maximum
    more = (Turn("user", "ü" * (room + 1)), one.dialogue.turns[1])
    with pytest.raises(ValueError, match=r"Question has \d+ bytes"):
        question_of([Part("t1", Dialogue("d1", "", "", more, one.items), one.items)], Settings())


def test_preview_equals_page():
    xml = question_of([part(["x"])], Settings())
    assert preview_page(HitPlan(1, (), xml, "", "")) == question_xml.read_question(xml).html


def test_comment_box_and_consent_are_optional():
    assert "textarea" in page_of(part(["x"])).tags
    assert "textarea" not in page_of(part(["x"]), comment_box=False).tags
    assert page_of(part(["x"]), consent="Wir").tags.count("details") == 2
    assert page_of(part(["x"])).tags.count("details") == 1


def shape(value):
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return value if isinstance(value, int) else str


def test_texts_of_both_languages_have_same_structure():
    de, en = (built_in_texts("mturk.kinds.tuples", language) for language in ("de", "en"))
    assert shape(de) == shape(en)
    page = render([part(["x"])], Settings(language="en"))
    assert '<html lang="en">' in page
    assert "Which utterance is <em>most similar</em> to the last utterance?" in page
    assert 'lang="de" dir="auto">x</p>' in page


def words_of(page):
    return [result for result in page.inputs if result.get("name", "").startswith("german-")]


def test_german_language_check():
    assert len(words_of(page_of(part(["x"])))) == 4
    assert len(words_of(page_of(part(["x"]), dialogue_language="de-AT", language="en"))) == 4
    assert words_of(page_of(part(["x"]), dialogue_language="en")) == []
    assert words_of(page_of(part(["x"]), dialogue_language="fr")) == []
    assert words_of(page_of(part(["x"]), language_check=False)) == []


def test_page_does_not_contain_right_word():
    words = words_of(page_of(part(["x"])))
    assert {frozenset(result) for result in words} == {
        frozenset(["type", "name", "value", "required"])
    }


@pytest.mark.parametrize("language", ["de", "en"])
def test_each_cloze_has_one_right_word(language):
    clozes = load_clozes(Settings(dialogue_language=language))
    assert len({cloze.field for cloze in clozes}) == len(clozes) == 8
    for cloze in clozes:
        assert cloze.sentence.count("___") == 1
        assert [check_cloze([(cloze.field, word)], clozes) for word in cloze.options].count(
            True
        ) == 1
    assert check_cloze([(clozes[0].field, "")], clozes) is False
    assert {cloze_for(f"t{n}", clozes) for n in range(100)} == {*clozes}


def test_english_language_check():
    page = page_of(part(["x"]), dialogue_language="en-GB")
    words = [field for field in page.inputs if field.get("name", "").startswith("cloze-en-")]
    assert len(words) == 4
    settings = Settings(dialogue_language="en", language_check=False)
    assert "cloze-" not in render([part(["x"])], settings)
