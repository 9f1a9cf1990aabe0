"""Answers: XML round trip, expected tuples of a question, and invalid answers."""

from xml.dom import minidom

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import characters

from mturk.answers import expected_tuples, expected_tuples_in_page, from_xml, read_comment, to_xml
from mturk.question_xml import forbidden_in_xml, write_html_question

ANY_TEXT = st.text(characters(), max_size=40)
FIELDS = st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=8)


@given(FIELDS)
@example([("a\r\n\t", "\r\n]]>&amp;<!--\u2028\x85\x00\U0001f642\ufffe\ud800")])
def test_fields_round_trip(fields):
    def carried(text):
        lost = forbidden_in_xml(text)
        return "".join("\ufffd" if c in lost else c for c in text)

    xml = to_xml(fields)
    assert from_xml(xml) == [(carried(name), carried(value)) for name, value in fields]
    others = minidom.parseString(xml.encode("utf-8")).getElementsByTagName("FreeText")
    texts = ["".join(node.data for node in other.childNodes) for other in others]
    assert texts == [carried(value) for _, value in fields]


def test_other_answer_elements_are_read():
    xml = to_xml([("q", "x")]).replace(
        "</Answer>",
        "</Answer><Answer><QuestionIdentifier>r</QuestionIdentifier><SelectionIdentifier>s1"
        "</SelectionIdentifier><SelectionIdentifier>s2</SelectionIdentifier></Answer>",
    )
    assert from_xml(xml) == [("q", "x"), ("r", "s1"), ("r", "s2")]


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("", "not well-formed"),
        ("<a/>", "root element is a; expected QuestionFormAnswers"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + to_xml([]).partition("?>")[2], "document type"),
        (
            "<QuestionFormAnswers><Answer/></QuestionFormAnswers>",
            "unexpected element Answer; expected an Answer with a",
        ),
        (
            "<QuestionFormAnswers><Reply/></QuestionFormAnswers>",
            "unexpected element Reply; expected an Answer with a",
        ),
    ],
)
def test_invalid_answer_xml(xml, message):
    with pytest.raises(ValueError, match=message):
        from_xml(xml)


def test_a_comment_is_stripped():
    assert read_comment([("comment", " gut \r\n")]) == "gut"
    assert read_comment([]) == ""


@pytest.mark.parametrize(
    "script",
    [
        "",
        "nonsense",
        "{}",
        "[1]",
        "null",
        '[{"tuple_id": "t", "group": "g"}]',
        '[{"tuple_id": "t", "group": "g", "items": "ab"}]',
        '[{"tuple_id": "t", "group": "g", "items": [1]}]',
        "[" * 100_000,
    ],
)
def test_foreign_pages_have_no_tuples(script):
    assert expected_tuples_in_page(f'<p><script id="giccs-tuples">{script}</script>') == ()


def test_foreign_questions_have_no_tuples():
    assert expected_tuples(write_html_question("<form><input name=a></form>")) == ()
    base = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
    form = f'<QuestionForm xmlns="{base}/2017-11-06/QuestionForm.xsd"/>'
    assert expected_tuples(form) == ()
