"""Scoring a qualification test by its answer key (the service's AnswerKey XML)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from xml.etree.ElementTree import Element

from mturk.question_xml import local_name, parse_xml

__all__ = ["check", "score"]

NUMBERS = (
    "AnswerScore", "DefaultScore", "MaximumSummedScore", "SummedScoreMultiplier",
    "InclusiveLowerBound", "InclusiveUpperBound", "QualificationValue", "OutOfRangeQualificationValue",
)  # fmt: skip
NUMBER = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?")
MOST = 2**31 - 1
"""The largest value of a qualification; scores beyond it count as it."""


def check(answer_key: str) -> None:
    """Raise ValueError where the XML is no answer key that can be scored."""
    root = parse_xml(answer_key)
    if local_name(root) != "AnswerKey":
        raise ValueError(f"the root element is {local_name(root)}; AnswerKey is allowed")
    for element in root.iter():
        if local_name(element) in NUMBERS:
            _checked_number(local_name(element), (element.text or "").strip())
    score(answer_key, [])


def score(answer_key: str, fields: Sequence[tuple[str, str]]) -> int:
    """Return the value that answers to a test earn; `fields` are question ids with what was answered.

    A question earns the score of the option whose selections are exactly those answered, else its
    DefaultScore. The sum is mapped by QualificationValueMapping (percentage, scale or range), where
    there is one.

    >>> score('<AnswerKey><Question><QuestionIdentifier>q</QuestionIdentifier><AnswerOption>'
    ...       '<SelectionIdentifier>a</SelectionIdentifier><AnswerScore>5</AnswerScore></AnswerOption>'
    ...       '</Question></AnswerKey>', [("q", "a")])
    5
    """
    root = parse_xml(answer_key)
    total = sum((_earned(one, fields) for one in _all(root, "Question")), Decimal(0))
    mapping = next(_all(root, "QualificationValueMapping"), None)
    mapped = total if mapping is None else _mapped(mapping, total)
    within = max(Decimal(-MOST), min(Decimal(MOST), mapped))
    return int(within.quantize(Decimal(1), ROUND_HALF_UP))


def _earned(question: Element, fields: Sequence[tuple[str, str]]) -> Decimal:
    name = _text(question, "QuestionIdentifier")
    given = {value for field, value in fields if field == name}
    for option in _all(question, "AnswerOption"):
        if {(one.text or "").strip() for one in _all(option, "SelectionIdentifier")} == given:
            return _number(option, "AnswerScore", "0")
    return _number(question, "DefaultScore", "0")


def _mapped(mapping: Element, total: Decimal) -> Decimal:
    for one in mapping:
        if local_name(one) == "PercentageMapping":
            most = _number(one, "MaximumSummedScore", "0")
            return 100 * total / most if most else Decimal(0)
        if local_name(one) == "ScaleMapping":
            return total * _number(one, "SummedScoreMultiplier", "1")
        if local_name(one) == "RangeMapping":
            return _in_range(one, total)
    return total


def _in_range(mapping: Element, total: Decimal) -> Decimal:
    for one in _all(mapping, "SummedScoreRange"):
        low, high = (
            _number(one, "InclusiveLowerBound", "0"),
            _number(one, "InclusiveUpperBound", "0"),
        )
        if low <= total <= high:
            return _number(one, "QualificationValue", "0")
    return _number(mapping, "OutOfRangeQualificationValue", "0")


def _all(element: Element, name: str) -> filter[Element]:
    return filter(lambda one: local_name(one) == name, element)


def _text(element: Element, name: str, default: str = "") -> str:
    found = next(_all(element, name), None)
    return default if found is None or found.text is None else found.text.strip()


def _number(element: Element, name: str, default: str) -> Decimal:
    return _checked_number(name, _text(element, name, default))


def _checked_number(name: str, text: str) -> Decimal:
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{name} is {text!r}; a number below 1000000000 is allowed")
    return Decimal(text)
