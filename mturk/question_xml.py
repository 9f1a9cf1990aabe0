"""Write and parse the question XML of HITs."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
HTML_QUESTION = f"{SCHEMAS}/2011-11-11/HTMLQuestion.xsd"
NAME = re.compile(rf"\{{{re.escape(SCHEMAS)}/\d{{4}}-\d{{2}}-\d{{2}}/(\w+)\.xsd\}}(\w+)")
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ABOVE_PLANE_0 = re.compile("[\U00010000-\U0010ffff]")
HOST_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.(?!-)[a-z0-9_-]{1,63})*\.?")
NOT_IN_URL = re.compile(r"[\s;\\\x00-\x1f\x7f]")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
USES_ASSIGNMENT_NUMBER = '<meta name="giccs-assignment-number" content="used">'
"""Element of a page whose questions depend on the number of the assignment among those of its HIT."""
EXPECTED_SECONDS = re.compile(r'<meta name="giccs-expected-seconds" content="([1-9]\d{0,7})">')
DEFAULT_PORTS = {"http": 80, "https": 443}
CACHED_QUESTIONS = 128
"""Number of parsed questions that are kept, some 60 kB each."""
URL_SAFE = "%/:=&?~#+!$,'@()*[]-._"
"""Characters that are kept in the path, query and fragment of an address."""


@dataclass(frozen=True, slots=True)
class HTMLQuestion:
    """A page hosted by the service."""

    html: str
    frame_height: int
    """Height in pixels; 0 is the height of the window."""


@dataclass(frozen=True, slots=True)
class ExternalQuestion:
    """A page of the requester's site, displayed in a frame."""

    url: str
    """Normalised address; see `normalise_url`."""
    frame_height: int


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """A form in the QuestionForm vocabulary."""

    root: Element


Question = HTMLQuestion | ExternalQuestion | QuestionForm


def write_html_question(html: str, frame_height: int = 0) -> str:
    """Return the HTMLQuestion XML of a page.

    Characters that XML forbids are dropped (`forbidden_in_xml` lists them). Characters above U+FFFF become
    numeric entities, because the service refuses four-byte UTF-8; so do carriage returns, which XML reads
    as line feeds. Raises ValueError if the page contains ``]]>``: text must be escaped as HTML before.

    >>> read_question(write_html_question("<p>a&amp;b \U0001f642</p>")).html
    '<p>a&amp;b &#128578;</p>'
    """
    html = FORBIDDEN.sub("", html).replace("\r", "&#13;")
    html = ABOVE_PLANE_0.sub(lambda match: f"&#{ord(match[0])};", html)
    if "]]>" in html:
        raise ValueError(
            "the page contains ']]>', which would end its CDATA section; expected ]]&gt;"
        )
    return (
        f'<HTMLQuestion xmlns="{HTML_QUESTION}"><HTMLContent><![CDATA[{html}]]></HTMLContent>'
        f"<FrameHeight>{frame_height}</FrameHeight></HTMLQuestion>"
    )


def forbidden_in_xml(text: str) -> list[str]:
    """Return the characters of a text that XML forbids: controls, lone surrogates, U+FFFE, U+FFFF.

    >>> forbidden_in_xml("a\\x00b\\tc")
    ['\\x00']
    """
    return FORBIDDEN.findall(text)


@functools.lru_cache(maxsize=CACHED_QUESTIONS)
def read_question(question_xml: str) -> Question:
    """Parse question XML; ValueError if it is invalid.

    The last questions are cached, because several requests per assignment read the same one; do not change
    the element tree of a form.

    All published dates of a schema are accepted. Document type definitions are refused.
    """
    root = parse_xml(question_xml)
    match = NAME.fullmatch(root.tag)
    kind = match[1] if match and match[1] == match[2] else None
    if kind == "HTMLQuestion":
        return HTMLQuestion(_element_text(root, "HTMLContent", strip=False), _frame_height(root))
    if kind == "ExternalQuestion":
        return ExternalQuestion(_external_url(root), _frame_height(root))
    if kind == "QuestionForm":
        return QuestionForm(root)
    raise ValueError(
        f"the root element is {root.tag}; expected HTMLQuestion, ExternalQuestion or QuestionForm, "
        f"each in its namespace, such as {HTML_QUESTION}"
    )


def expected_seconds(question_xml: str) -> int | None:
    """Return the expected time of an assignment that a page states; None if it states none.

    >>> expected_seconds(write_html_question('<meta name="giccs-expected-seconds" content="90">'))
    90
    """
    match = EXPECTED_SECONDS.search(question_xml)
    return int(match[1]) if match else None


def uses_assignment_number(question_xml: str) -> bool:
    """Return whether a page uses the number of the assignment, which is then added to its address."""
    return USES_ASSIGNMENT_NUMBER in question_xml


def selection_questions(question: Question) -> frozenset[str]:
    """Return the identifiers of the multiple-choice questions of a form; empty for other questions."""
    return frozenset(
        _element_text(element, "QuestionIdentifier")
        for element in (question.root if isinstance(question, QuestionForm) else ())
        if any(local_name(child) == "SelectionAnswer" for child in element.iter())
    )


def parse_xml(xml: str) -> Element:
    """Return the root element; ValueError if the XML is not well-formed or has a document type.

    An encoding declaration is ignored, because the argument is text.
    """
    # without a document type, no entities can be declared
    parser = ElementTree.XMLParser(target=_WithoutDoctype(), encoding="utf-8")  # noqa: S314
    try:
        parser.feed(xml.encode("utf-8"))
        root: Element = parser.close()
    except ElementTree.ParseError as error:
        raise ValueError(f"the XML is not well-formed: {error}") from None
    except UnicodeEncodeError:
        raise ValueError("the XML contains a lone surrogate; expected valid Unicode") from None
    return root


class _WithoutDoctype(ElementTree.TreeBuilder):
    def doctype(self, name: Any, public: Any, system: Any) -> None:
        """Refuse document types: entities can expand without bound or read files."""
        raise ValueError("the XML has a document type definition; expected none")


def local_name(element: Element) -> str:
    """Return an element's name without its namespace.

    >>> local_name(Element("{urn:x}Answer"))
    'Answer'
    """
    return element.tag.rpartition("}")[2]


def _element_text(root: Element, name: str, *, strip: bool = True) -> str:
    elements = [child for child in root if local_name(child) == name]
    if len(elements) != 1:
        raise ValueError(f"{local_name(root)} has {len(elements)} {name} elements; expected one")
    text = elements[0].text or ""
    if len(elements[0]):
        raise ValueError(f"{name} contains elements; expected text (use a CDATA section)")
    if not text.strip():
        raise ValueError(f"{name} is empty")
    return text.strip() if strip else text


def _frame_height(root: Element) -> int:
    text = _element_text(root, "FrameHeight")
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise ValueError(
            f"FrameHeight is {text!r}; expected an integer number of pixels, 0 for the window's height"
        )
    return int(text)


def _external_url(root: Element) -> str:
    url = _element_text(root, "ExternalURL")
    try:
        return normalise_url(url)
    except ValueError as error:
        raise ValueError(
            f"ExternalURL is {url!r}: {error}; expected an https address, such as https://example.org/task"
        ) from None


def normalise_url(url: str) -> str:
    """Return an https address in ASCII: IDNA host name, percent-encoded path, no default port.

    http is accepted for this machine only. Raises ValueError for anything else, and for credentials,
    spaces, control characters, backslashes and semicolons, which have a meaning in headers of the page
    that embeds the address.

    >>> normalise_url("HTTPS://例え.jp:443/ä?x=1")
    'https://xn--r8jz45g.jp/%C3%A4?x=1'
    """
    if match := NOT_IN_URL.search(url):
        raise ValueError(f"it contains {match[0]!r}")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("it contains credentials")
    scheme = parts.scheme
    if scheme not in DEFAULT_PORTS:
        raise ValueError(f"the scheme is {scheme!r}")
    host = _ascii_host(parts.hostname or "")
    if scheme == "http" and host not in LOCAL_HOSTS:
        raise ValueError("the scheme is 'http'")
    port = "" if parts.port in (None, DEFAULT_PORTS[scheme]) else f":{parts.port}"
    path, query, fragment = (quote(text, URL_SAFE) for text in parts[2:])
    return urlunsplit((scheme, host + port, path or "/", query, fragment))


def _ascii_host(host: str) -> str:
    """Return a host name as browsers look it up; IDNAError, a ValueError, if it is invalid."""
    if ":" in host:
        if "%" in host:
            raise ValueError("the address has a scope")
        return f"[{IPv6Address(host)}]"
    if not host.isascii():
        import idna

        host = idna.encode(host, uts46=True).decode()
    if not HOST_NAME.fullmatch(host):
        raise ValueError(f"the host name is {host!r}")
    return host
