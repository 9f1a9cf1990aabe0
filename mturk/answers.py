"""What a worker's form says: the names of its fields, their XML, and whether they answer the question."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from mturk.question_xml import HTMLQuestion, forbidden_in_xml, local_name, parse, read
from mturk.records import TupleAnswer
from mturk.settings import KINDS

__all__ = [
    "COMMENT",
    "TUPLES_SCRIPT",
    "ExpectedTuple",
    "Fields",
    "best_field",
    "check",
    "comment",
    "expected",
    "expected_in_page",
    "from_xml",
    "join_shown",
    "read_seconds",
    "repeated",
    "seconds_field",
    "seconds_problems",
    "shown_field",
    "split_shown",
    "to_xml",
    "tuple_answers",
    "worst_field",
]

SCHEMA = (
    "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/"
    "QuestionFormAnswers.xsd"
)
COMMENT = "comment"
TUPLES_SCRIPT = "giccs-tuples"
"""Id of the page's script element that tells which tuples it asks about."""
VALUES = ("FreeText", "SelectionIdentifier", "OtherSelectionText", "UploadedFileKey")
Fields = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ExpectedTuple:
    """A tuple that a question asks about; or a sentence pair, or a triplet of one with a condition."""

    tuple_id: str
    group: str
    """The dialogue's id, or the sentence pair's."""
    items: tuple[str, ...]
    """Item ids in the order of the tuple; or the two sentences, and the condition."""
    kind: str = "tuples"
    """Which kind of study asks; see `mturk.kinds`."""


def best_field(tuple_id: str) -> str:
    """Return the name of the field with the item that was chosen best."""
    return f"best-{tuple_id}"


def worst_field(tuple_id: str) -> str:
    """Return the name of the field with the item that was chosen worst."""
    return f"worst-{tuple_id}"


def shown_field(tuple_id: str) -> str:
    """Return the name of the field with the order in which the items were shown."""
    return f"shown-{tuple_id}"


def seconds_field(tuple_id: str) -> str:
    """Return the name of the field with the seconds spent on the tuple."""
    return f"seconds-{tuple_id}"


def join_shown(items: Sequence[str]) -> str:
    """Write an order of items as one value.

    >>> join_shown(["a", "b;c", "100%"])
    'a;b%3Bc;100%25'
    """
    return ";".join(item.replace("%", "%25").replace(";", "%3B") for item in items)


def split_shown(value: str) -> tuple[str, ...]:
    """Read what `join_shown` wrote.

    >>> split_shown("a;b%3Bc;100%25")
    ('a', 'b;c', '100%')
    """
    if not value:
        return ()
    return tuple(part.replace("%3B", ";").replace("%25", "%") for part in value.split(";"))


def expected(question_xml: str) -> tuple[ExpectedTuple, ...]:
    """Return the tuples that a question asks about; none where the question is not one of ours."""
    question = read(question_xml)
    return expected_in_page(question.html) if isinstance(question, HTMLQuestion) else ()


def expected_in_page(html: str) -> tuple[ExpectedTuple, ...]:
    """Return the tuples that a page asks about; none where the page is not one of ours."""
    begin = html.rfind("<script", 0, max(0, html.find(f'id="{TUPLES_SCRIPT}"')))
    if begin < 0:
        return ()
    finder = _ScriptFinder()  # fed that element alone: pages are long, and each answer is checked
    finder.feed(html[begin : html.find("</script", begin) + len("</script>")])
    try:
        rows = json.loads("".join(finder.found))
        return tuple(_expected(row) for row in rows)
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()


class _ScriptFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script" and ("id", TUPLES_SCRIPT) in attrs

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found.append(data)


def _expected(row: Mapping[str, Any]) -> ExpectedTuple:
    kind = dict(row).get("kind", "tuples")
    texts = [row["tuple_id"], row["group"], kind, *row["items"]]
    whole = isinstance(row["items"], list) and all(isinstance(text, str) for text in texts)
    if not whole or kind not in KINDS:
        raise TypeError
    return ExpectedTuple(row["tuple_id"], row["group"], tuple(row["items"]), kind)


def check(tuples: Sequence[ExpectedTuple], fields: Fields) -> list[str]:
    """Return all that keeps the fields from being an answer; fields of other names are let be.

    The order shown and the seconds may be missing (a page without scripts), but not be wrong.

    >>> asked = [ExpectedTuple("t1", "d1", ("a", "b", "c"))]
    >>> check(asked, [("best-t1", "a"), ("worst-t1", "a")])
    ["t1: best and worst are both 'a'; they must be different items"]
    """
    values = dict(fields)
    times = Counter(name for name, _ in fields)
    return [problem for one in tuples for problem in _tuple_problems(one, values, times)]


def _tuple_problems(
    one: ExpectedTuple, values: Mapping[str, str], times: Mapping[str, int]
) -> list[str]:
    best, worst = (values.get(name(one.tuple_id), "") for name in (best_field, worst_field))
    shown = values.get(shown_field(one.tuple_id), "")
    seconds = values.get(seconds_field(one.tuple_id), "")
    names = (best_field, worst_field, shown_field, seconds_field)
    problems = repeated([name(one.tuple_id) for name in names], times)
    for which, answer in (("best", best), ("worst", worst)):
        if not answer:
            problems.append(f"{one.tuple_id}: {which} is missing; choose one of {_list(one.items)}")
        elif answer not in one.items:
            problems.append(f"{one.tuple_id}: {which} is {answer!r}; allowed: {_list(one.items)}")
    if best and best == worst:
        problems.append(
            f"{one.tuple_id}: best and worst are both {best!r}; they must be different items"
        )
    if shown and sorted(split_shown(shown)) != sorted(one.items):
        problems.append(
            f"{one.tuple_id}: shown is {shown!r}; it must be {_list(one.items)} in some order"
        )
    return [*problems, *seconds_problems(one.tuple_id, seconds)]


def repeated(names: Sequence[str], times: Mapping[str, int]) -> list[str]:
    """Return which fields are there more than once, which nothing in a page does."""
    return [
        f"{name} is there {times[name]} times; once is allowed"
        for name in names
        if times.get(name, 0) > 1
    ]


def _list(items: Sequence[str]) -> str:
    return ", ".join(map(repr, items))


def seconds_problems(part_id: str, seconds: str) -> list[str]:
    """Return what is wrong with the seconds spent on a part; they may be missing."""
    if not seconds or read_seconds(seconds) is not None:
        return []
    return [f"{part_id}: seconds is {seconds!r}; a number from 0 is allowed"]


def read_seconds(text: str) -> float | None:
    """Return a number of seconds; None where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def tuple_answers(tuples: Sequence[ExpectedTuple], fields: Fields) -> tuple[TupleAnswer, ...]:
    """Return the answers to the tuples; ValueError with all that `check` finds.

    >>> tuple_answers([ExpectedTuple("t1", "d1", ("a", "b"))], [("best-t1", "a"), ("worst-t1", "b")])
    (TupleAnswer(tuple_id='t1', best='a', worst='b', shown=(), seconds=None),)
    """
    problems = check(tuples, fields)
    if problems:
        raise ValueError("; ".join(problems))
    values = dict(fields)
    return tuple(
        TupleAnswer(
            one.tuple_id,
            values[best_field(one.tuple_id)],
            values[worst_field(one.tuple_id)],
            split_shown(values.get(shown_field(one.tuple_id), "")),
            read_seconds(values.get(seconds_field(one.tuple_id), "")),
        )
        for one in tuples
    )


def comment(fields: Fields) -> str:
    """Return what the worker wrote in the comment box; empty where there is nothing."""
    return dict(fields).get(COMMENT, "").strip()


def to_xml(fields: Fields) -> str:
    """Return the QuestionFormAnswers XML of a form's fields, in their order.

    Characters that XML cannot carry (a browser sends them only when made to) become U+FFFD.
    """
    answers = "".join(
        f"<Answer><QuestionIdentifier>{_escaped(name)}</QuestionIdentifier>"
        f"<FreeText>{_escaped(value)}</FreeText></Answer>"
        for name, value in fields
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<QuestionFormAnswers xmlns="{SCHEMA}">{answers}</QuestionFormAnswers>'
    )


def _escaped(text: str) -> str:
    for character in set(forbidden_in_xml(text)):
        text = text.replace(character, "\ufffd")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")  # XML reads a bare carriage return as a line feed


def from_xml(xml: str) -> list[tuple[str, str]]:
    """Return the fields of QuestionFormAnswers XML, (name, value) each; several values are several fields.

    Raises ValueError where the XML is not well-formed, has a document type, or is something else.

    >>> from_xml(to_xml([("best-t1", "a"), ("comment", "\U0001f642 < & ]]>\\r\\n")]))
    [('best-t1', 'a'), ('comment', '🙂 < & ]]>\\r\\n')]
    """
    root = parse(xml)
    if local_name(root) != "QuestionFormAnswers":
        raise ValueError(f"the root element is {root.tag}; QuestionFormAnswers is allowed")
    fields = []
    for answer in root:
        name = next((e.text or "" for e in answer if local_name(e) == "QuestionIdentifier"), None)
        if local_name(answer) != "Answer" or name is None:
            raise ValueError(f"{local_name(answer)} is no Answer with a QuestionIdentifier")
        fields += [(name, e.text or "") for e in answer if local_name(e) in VALUES]
    return fields
