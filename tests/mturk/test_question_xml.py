"""Question XML: round trip, and messages for invalid XML."""

import html
from xml.dom import minidom

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import characters

from mturk.question_xml import (
    ExternalQuestion,
    HTMLQuestion,
    QuestionForm,
    forbidden_in_xml,
    read_question,
    write_html_question,
)

BASE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
ANY_TEXT = st.text(characters(), max_size=60)  # surrogates and controls too


def html_question(content="<![CDATA[<p>a</p>]]>", height="<FrameHeight>0</FrameHeight>"):
    name = f'<HTMLQuestion xmlns="{BASE}/2011-11-11/HTMLQuestion.xsd">'
    return f"{name}<HTMLContent>{content}</HTMLContent>{height}</HTMLQuestion>"


@given(ANY_TEXT)
@example("\x00\ufffe\r\n\t]]>&amp;<b>\U0001f642\ud800")
def test_escaped_text_round_trip(text):
    xml = write_html_question(f"<p>{html.escape(text)}</p>", 400)
    assert max(xml) <= "\uffff"  # the service refuses four-byte UTF-8
    question = read_question(xml)
    back = html.unescape(question.html.removeprefix("<p>").removesuffix("</p>"))
    lost = forbidden_in_xml(text)
    assert back == "".join(c for c in text if c not in lost)
    assert question.frame_height == 400


@given(ANY_TEXT)
def test_other_parser_reads_same_text(text):
    xml = write_html_question(html.escape(text) or "x")
    content = minidom.parseString(xml.encode("utf-8")).getElementsByTagName("HTMLContent")[0]
    whole = "".join(node.data for node in content.childNodes)
    if whole.strip():
        assert whole == read_question(xml).html


def test_cdata_end_is_refused():
    with pytest.raises(ValueError, match="]]&gt;"):
        write_html_question("<script>a[b[0]]>c</script>")


def test_dropped_characters_cannot_form_cdata_end():
    with pytest.raises(ValueError, match="CDATA"):
        write_html_question("]\x00]>")


def test_content_without_cdata_and_other_schema_dates():
    assert read_question(html_question("&lt;p&gt;")) == HTMLQuestion("<p>", 0)
    assert read_question(html_question().replace("2011-11-11", "2016-01-01")).frame_height == 0


@pytest.mark.parametrize("encoding", ["UTF-16", "latin-1", "nonsense"])
def test_declared_encoding_is_ignored(encoding):
    declared = f'<?xml version="1.0" encoding="{encoding}"?>' + html_question("ü€")
    assert read_question(declared) == HTMLQuestion("ü€", 0)


def external(url):
    name = f'<ExternalQuestion xmlns="{BASE}/2006-07-14/ExternalQuestion.xsd">'
    return (
        f"{name}<ExternalURL>{url}</ExternalURL><FrameHeight> 600 </FrameHeight></ExternalQuestion>"
    )


def test_external_question():
    url = "https://example.org/a?b=1&amp;c=2"
    assert read_question(external(url)) == ExternalQuestion("https://example.org/a?b=1&c=2", 600)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "http://[", "a"]
)
def test_invalid_external_addresses(url):
    with pytest.raises(ValueError, match=r"ExternalURL is .*; expected an http or https address"):
        read_question(external(url))


def test_question_form():
    xml = f'<QuestionForm xmlns="{BASE}/2017-11-06/QuestionForm.xsd"><Overview/></QuestionForm>'
    result = read_question(xml)
    assert isinstance(result, QuestionForm)
    assert len(result.root) == 1


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("", "not well-formed"),
        ("<HTMLQuestion>", "not well-formed"),
        (
            "<HTMLQuestion/>",
            "the root element is HTMLQuestion; expected HTMLQuestion, ExternalQuestion",
        ),
        (f'<HTMLQuestion xmlns="{BASE}/2011-11-11/ExternalQuestion.xsd"/>', "the root element is"),
        (f'<Other xmlns="{BASE}/2011-11-11/Other.xsd"/>', "the root element is"),
        (BOMB + html_question("&b;"), "document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd">' + html_question(), "document type"),
        (html_question(" "), "HTMLContent is empty"),
        (html_question("<p/>"), "HTMLContent contains elements"),
        (html_question(height=""), "has 0 FrameHeight elements; expected one"),
        (html_question(height="<FrameHeight>-1</FrameHeight>"), "FrameHeight is '-1'"),
        (html_question(height="<FrameHeight>٣</FrameHeight>"), "FrameHeight is"),
        (html_question("\x00"), "not well-formed"),
        (html_question("\ud800"), "surrogate"),
    ],
)
def test_invalid_questions_are_refused(xml, message):
    with pytest.raises(ValueError, match=message):
        read_question(xml)


@given(ANY_TEXT)
def test_arbitrary_input_raises_value_error_at_most(text):
    with pytest.raises(ValueError, match=r"XML|root element"):
        read_question(text)
