"""Scoring a qualification test by its answer key (the service's AnswerKey XML)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from xml.etree.ElementTree import Element

from mturk.question_xml import local_name, parse_xml

NUMBERS = (
    "AnswerScore", "DefaultScore", "MaximumSummedScore", "SummedScoreMultiplier",
    "InclusiveLowerBound", "InclusiveUpperBound", "QualificationValue", "OutOfRangeQualificationValue",
)  # fmt: skip
NUMBER = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?")
MAX_VALUE = 2**31 - 1
"""Largest absolute value of a qualification; larger scores are clipped."""


def check(answer_key: str) -> None:
    """Raise ValueError unless the XML is a valid answer key."""
    root = parse_xml(answer_key)
    if local_name(root) != "AnswerKey":
        raise ValueError(f"the root element is {local_name(root)}; expected AnswerKey")
    for element in root.iter():
        if local_name(element) in NUMBERS:
            _checked_number(local_name(element), (element.text or "").strip())
    score(answer_key, [])


def score(answer_key: str, fields: Sequence[tuple[str, str]]) -> int:
    """Return the qualification value of the answers to a test; `fields` are (question id, answer) pairs.

    A question scores the AnswerScore of the option whose selections equal the answers, else its
    DefaultScore. The sum is mapped by QualificationValueMapping (percentage, scale or range), if present.

    >>> score('<AnswerKey><Question><QuestionIdentifier>q</QuestionIdentifier><AnswerOption>'
    ...       '<SelectionIdentifier>a</SelectionIdentifier><AnswerScore>5</AnswerScore></AnswerOption>'
    ...       '</Question></AnswerKey>', [("q", "a")])
    5
    """
    root = parse_xml(answer_key)
    total = sum(
        (_question_score(question, fields) for question in _children(root, "Question")), Decimal(0)
    )
    mapping = next(_children(root, "QualificationValueMapping"), None)
    mapped = total if mapping is None else _map_total(mapping, total)
    within = max(Decimal(-MAX_VALUE), min(Decimal(MAX_VALUE), mapped))
    return int(within.quantize(Decimal(1), ROUND_HALF_UP))


def _question_score(question: Element, fields: Sequence[tuple[str, str]]) -> Decimal:
    name = _text(question, "QuestionIdentifier")
    selected = {value for field, value in fields if field == name}
    for option in _children(question, "AnswerOption"):
        if {
            (selection.text or "").strip() for selection in _children(option, "SelectionIdentifier")
        } == selected:
            return _number(option, "AnswerScore", "0")
    return _number(question, "DefaultScore", "0")


def _map_total(mapping: Element, total: Decimal) -> Decimal:
    for element in mapping:
        if local_name(element) == "PercentageMapping":
            max_score = _number(element, "MaximumSummedScore", "0")
            return 100 * total / max_score if max_score else Decimal(0)
        if local_name(element) == "ScaleMapping":
            return total * _number(element, "SummedScoreMultiplier", "1")
        if local_name(element) == "RangeMapping":
            return _map_range(element, total)
    return total


def _map_range(mapping: Element, total: Decimal) -> Decimal:
    for score_range in _children(mapping, "SummedScoreRange"):
        low, high = (
            _number(score_range, "InclusiveLowerBound", "0"),
            _number(score_range, "InclusiveUpperBound", "0"),
        )
        if low <= total <= high:
            return _number(score_range, "QualificationValue", "0")
    return _number(mapping, "OutOfRangeQualificationValue", "0")


def _children(element: Element, name: str) -> filter[Element]:
    return filter(lambda one: local_name(one) == name, element)


def _text(element: Element, name: str, default: str = "") -> str:
    child = next(_children(element, name), None)
    return default if child is None or child.text is None else child.text.strip()


def _number(element: Element, name: str, default: str) -> Decimal:
    return _checked_number(name, _text(element, name, default))


def _checked_number(name: str, text: str) -> Decimal:
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{name} is {text!r}; expected a number below 1000000000")
    return Decimal(text)
