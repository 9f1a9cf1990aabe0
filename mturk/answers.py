"""Form data of all kinds of HIT: shared fields, expected tuples, and the QuestionFormAnswers XML."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Container, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from mturk.kinds import ExpectedTuple, Fields
from mturk.kinds.registry import DEFAULT_KIND, kind_locations
from mturk.question_xml import (
    CACHED_QUESTIONS,
    HTMLQuestion,
    forbidden_in_xml,
    local_name,
    parse_xml,
    read_question,
)

SCHEMA = (
    "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/"
    "QuestionFormAnswers.xsd"
)
COMMENT = "comment"
TUPLES_SCRIPT = "giccs-tuples"
"""Id of the script element that lists the tuples of a page."""
OTHER_SUFFIX = "-other"
"""Suffix of the field name of the free-text option of a multiple-choice question."""
VALUES = ("FreeText", "SelectionIdentifier", "OtherSelectionText", "UploadedFileKey")


def seconds_field(tuple_id: str) -> str:
    """Return the name of the field with the seconds spent on the tuple."""
    return f"seconds-{tuple_id}"


def expected_tuples(question_xml: str) -> tuple[ExpectedTuple, ...]:
    """Return the tuples of a question; empty if the question was not created by this package."""
    question = read_question(question_xml)
    return expected_tuples_in_page(question.html) if isinstance(question, HTMLQuestion) else ()


@functools.lru_cache(maxsize=CACHED_QUESTIONS)
def expected_tuples_in_page(html: str) -> tuple[ExpectedTuple, ...]:
    """Return the tuples of a page; empty if the page was not created by this package."""
    begin = html.rfind("<script", 0, max(0, html.find(f'id="{TUPLES_SCRIPT}"')))
    if begin < 0:
        return ()
    finder = (
        _ScriptParser()
    )  # parses only this element: pages are long, and every answer is checked
    finder.feed(html[begin : html.find("</script", begin) + len("</script>")])
    try:
        rows = json.loads("".join(finder.texts))
        return tuple(_expected_tuple(row) for row in rows)
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()


class _ScriptParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script" and ("id", TUPLES_SCRIPT) in attrs

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts.append(data)


def _expected_tuple(row: Mapping[str, Any]) -> ExpectedTuple:
    kind = dict(row).get("kind", DEFAULT_KIND)
    texts = [row["tuple_id"], row["group"], kind, *row["items"]]
    valid = isinstance(row["items"], list) and all(isinstance(text, str) for text in texts)
    if not valid or kind not in kind_locations():
        raise TypeError
    return ExpectedTuple(row["tuple_id"], row["group"], tuple(row["items"]), kind)


def repeated_field_problems(names: Sequence[str], times: Mapping[str, int]) -> list[str]:
    """Return a message per field that occurs more than once."""
    return [
        f"{name} occurs {times[name]} times; expected once"
        for name in names
        if times.get(name, 0) > 1
    ]


def seconds_problems(part_id: str, seconds: str) -> list[str]:
    """Return the problems of the seconds spent on a part; missing seconds are valid."""
    if not seconds or read_seconds(seconds) is not None:
        return []
    return [f"{part_id}: seconds is {seconds!r}; expected a number of at least 0"]


def read_seconds(text: str) -> float | None:
    """Return a finite number of at least 0; None for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def read_comment(fields: Fields) -> str:
    """Return the worker's comment, stripped; possibly empty."""
    return dict(fields).get(COMMENT, "").strip()


def to_xml(fields: Fields, selections: Container[str] = ()) -> str:
    """Return the QuestionFormAnswers XML of a form's fields, in order.

    Fields of the multiple-choice questions `selections` are joined to one Answer per question. Characters
    that XML cannot represent become U+FFFD; browsers do not send them by themselves.

    >>> xml = to_xml([("q", "a"), ("q", "b")], selections={"q"})
    >>> xml.count("<Answer>"), xml.count("<SelectionIdentifier>")
    (1, 2)
    """
    values_by_question: dict[tuple[object, str], list[str]] = {}
    for index, (name, value) in enumerate(fields):
        question = name.removesuffix(OTHER_SUFFIX)
        key: tuple[object, str]
        if name in selections:
            key, element = (name, name), "SelectionIdentifier"
        elif question in selections:
            key, element = (question, question), "OtherSelectionText"
        else:
            key, element = (index, name), "FreeText"
        if value or element != "OtherSelectionText":
            values = values_by_question.setdefault(key, [])
            values.append(f"<{element}>{_escaped(value)}</{element}>")
    answers = "".join(
        f"<Answer><QuestionIdentifier>{_escaped(name)}</QuestionIdentifier>{''.join(values)}</Answer>"
        for (_, name), values in values_by_question.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<QuestionFormAnswers xmlns="{SCHEMA}">{answers}</QuestionFormAnswers>'
    )


def _escaped(text: str) -> str:
    for character in set(forbidden_in_xml(text)):
        text = text.replace(character, "\ufffd")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")  # XML parsers read a bare carriage return as a line feed


WITHDRAWN_ANSWER = to_xml(()).replace("></", "><!-- withdrawn by the participant --></")
"""XML of an assignment whose answer the participant has withdrawn; different from an empty submission."""


def from_xml(xml: str) -> list[tuple[str, str]]:
    """Return the (name, value) pairs of QuestionFormAnswers XML; several values are several fields.

    Raises ValueError if the XML is not well-formed, has a document type or has another root element.

    >>> from_xml(to_xml([("best-t1", "a"), ("comment", "\U0001f642 < & ]]>\\r\\n")]))
    [('best-t1', 'a'), ('comment', '🙂 < & ]]>\\r\\n')]
    """
    root = parse_xml(xml)
    if local_name(root) != "QuestionFormAnswers":
        raise ValueError(f"the root element is {root.tag}; expected QuestionFormAnswers")
    fields = []
    for answer in root:
        name = next((e.text or "" for e in answer if local_name(e) == "QuestionIdentifier"), None)
        if local_name(answer) != "Answer" or name is None:
            raise ValueError(
                f"unexpected element {local_name(answer)}; expected an Answer with a QuestionIdentifier"
            )
        fields += [(name, e.text or "") for e in answer if local_name(e) in VALUES]
    return fields
