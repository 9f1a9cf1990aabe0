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
    normalise_url,
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
    ("url", "normalised"),
    [
        ("https://例え.jp/", "https://xn--r8jz45g.jp/"),
        ("https://straße.example/", "https://xn--strae-oqa.example/"),
        ("HTTPS://Example.ORG:443", "https://example.org/"),
        ("https://example.org:8443/ä?q=%20&amp;r=ü#x", "https://example.org:8443/%C3%A4?q=%20&r=%C3%BC#x"),
        ('https://example.org/"&lt;x>', "https://example.org/%22%3Cx%3E"),
        ("https://[2001:DB8:0::1]/x", "https://[2001:db8::1]/x"),
        ("http://localhost:8000/task?set=1", "http://localhost:8000/task?set=1"),
    ],
)  # fmt: skip
def test_external_addresses_are_normalised(url, normalised):
    assert read_question(external(url)).url == normalised
    assert normalise_url(normalised) == normalised


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("javascript:alert(1)", "scheme is 'javascript'"),
        ("file:///etc/passwd", "scheme is 'file'"),
        ("http://example.org/", "scheme is 'http'"),
        ("a", "scheme is ''"),
        ("https://", "host name is ''"),
        ("https://[", ""),
        ("https://[fe80::1%25eth0]/", "scope"),
        ("https://example.org; script-src-elem * 'unsafe-inline'", "contains ';'"),
        ("https://example.org/a;b", "contains ';'"),
        ("https://example.org/a b", "contains ' '"),
        ("https://example.org/a\nb", r"contains '\\n'"),
        ("https://example.org\\@evil.example/", "contains"),
        ("https://user:secret@example.org/", "credentials"),
        ("https://example.org:99999/", "Port out of range"),
        ("https://*.example.org/", "host name is '*.example.org'".replace("*", r"\*")),
        ("https://exam%70le.org/", "host name is"),
        ("https://a..b/", "host name is"),
        ("https://\u0640\u0640.example/", ""),
    ],
)
def test_invalid_external_addresses(url, reason):
    with pytest.raises(
        ValueError, match=rf"ExternalURL is .*{reason}.*; expected an https address"
    ):
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
