"""Limits of requester API requests, and the messages for values outside them.

boto3 does not check these limits. The publisher checks them before the first call, the service on every
call. Characters are Unicode code points; the length of a question is in bytes of UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """Minimum and maximum length of a text.

    >>> LengthLimit("Title", 128).problem("x" * 129)
    'Title has 129 characters; expected 1 to 128'
    >>> LengthLimit("Question", 65_535, unit="bytes").problem("ü" * 40_000)
    'Question has 80000 bytes; expected 1 to 65535'
    """

    name: str
    maximum: int
    minimum: int = 1
    unit: str = "characters"

    def length(self, text: str) -> int:
        """Return the length of a text in this limit's unit."""
        return len(text.encode("utf-8", "surrogatepass")) if self.unit == "bytes" else len(text)

    def problem(self, text: str) -> str | None:
        """Return the problem of a text, or None."""
        length = self.length(text)
        if self.minimum <= length <= self.maximum:
            return None
        return f"{self.name} has {length} {self.unit}; expected {self.minimum} to {self.maximum}"

    def check(self, text: str) -> None:
        """Raise ValueError if the text is too long or too short."""
        _raise_problem(self.problem(text))


@dataclass(frozen=True, slots=True)
class RangeLimit:
    """Minimum and maximum of an integer.

    >>> RangeLimit("LifetimeInSeconds", 30, 31_536_000, "seconds").problem(1)
    'LifetimeInSeconds is 1; expected 30 to 31536000 seconds'
    """

    name: str
    minimum: int
    maximum: int
    unit: str = ""

    def problem(self, value: int) -> str | None:
        """Return the problem of a number, or None."""
        if self.minimum <= value <= self.maximum:
            return None
        bounds = f"{self.minimum} to {self.maximum} {self.unit}".rstrip()
        return f"{self.name} is {value}; expected {bounds}"

    def check(self, value: int) -> None:
        """Raise ValueError if the number is out of range."""
        _raise_problem(self.problem(value))


def _raise_problem(problem: str | None) -> None:
    if problem:
        raise ValueError(problem)


YEAR = 31_536_000

QUESTION = LengthLimit("Question", 65_535, unit="bytes")
TOKEN = LengthLimit("UniqueRequestToken", 64)
ANNOTATION = LengthLimit("RequesterAnnotation", 255, minimum=0)
TITLE = LengthLimit("Title", 128)
DESCRIPTION = LengthLimit("Description", 2_000)
KEYWORDS = LengthLimit("Keywords", 1_000, minimum=0)
FEEDBACK = LengthLimit("RequesterFeedback", 1_024, minimum=0)
BONUS_REASON = LengthLimit("Reason", 4_096)
MESSAGE_SUBJECT = LengthLimit("Subject", 200)
MESSAGE_TEXT = LengthLimit("MessageText", 4_096)

WORKER_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""Ids of workers: more than Mechanical Turk's ``A[A-Z0-9]+``, so that names such as ``anna`` are possible."""
RECRUITED_PREFIX = "APROLIFIC"
"""Start of the ids of workers from recruiting links of Prolific; not allowed in personal links."""
MESSAGE_WORKERS = RangeLimit("the number of WorkerIds", 1, 100)
LIFETIME = RangeLimit("LifetimeInSeconds", 30, YEAR, "seconds")
ASSIGNMENT_DURATION = RangeLimit("AssignmentDurationInSeconds", 30, YEAR, "seconds")
AUTO_APPROVAL_DELAY = RangeLimit("AutoApprovalDelayInSeconds", 0, 2_592_000, "seconds")
AUTO_APPROVAL_DELAY_DEFAULT = 2_592_000
MAX_ASSIGNMENTS = RangeLimit("MaxAssignments", 1, 1_000_000_000)
ADDITIONAL_ASSIGNMENTS = RangeLimit("NumberOfAdditionalAssignments", 1, 1_000_000_000)
PAGE_SIZE = RangeLimit("MaxResults", 1, 100)
QUALIFICATIONS = RangeLimit("the number of QualificationRequirements", 0, 10)
INTEGERS_IN = RangeLimit("the number of IntegerValues", 1, 15)
LOCALES_IN = RangeLimit("the number of LocaleValues", 1, 30)

MANY_ASSIGNMENTS = 10
"""Assignments per HIT from which a further fee applies; a HIT created with fewer cannot be extended to this
number."""
TOKEN_LIFETIME_SECONDS = 86_400
"""Seconds for which the service remembers a UniqueRequestToken."""
ACTIONS_GUARDED = ("Accept", "PreviewAndAccept", "DiscoverPreviewAndAccept")

LOCALE = "00000000000000000071"
"""Id of the qualification type whose values are locales."""
AMOUNT = re.compile(r"[0-9]+(\.[0-9]{0,2})?")
LISTS = ("In", "NotIn")
NO_VALUE = ("Exists", "DoesNotExist")
NUMBERS_ONLY = ("LessThan", "LessThanOrEqualTo", "GreaterThan", "GreaterThanOrEqualTo")
COMPARATORS = (*NUMBERS_ONLY, "EqualTo", "NotEqualTo", *NO_VALUE, *LISTS)


def reward_problem(text: str, name: str = "Reward") -> str | None:
    """Return the problem of an amount of US dollars, a string as in a request, or None.

    >>> reward_problem("0.25"), reward_problem("0.00")
    (None, None)
    >>> reward_problem("0,25")
    "Reward is '0,25'; expected dollars with at most two decimals, such as '0.25'"
    """
    if AMOUNT.fullmatch(text) and len(text) <= 12:
        return None
    return f"{name} is {text!r}; expected dollars with at most two decimals, such as '0.25'"


def assignments_increase_problem(current: int, additional: int) -> str | None:
    """Return why a HIT with `now` assignments cannot get `additional` ones, or None.

    The corresponding error of the service is InvalidMaximumAssignmentsIncrease: the fee changes at ten.

    >>> assignments_increase_problem(5, 4)
    >>> assignments_increase_problem(5, 5)
    'a HIT created with fewer than 10 assignments (5) cannot be extended to 10 or more (10)'
    """
    total = current + additional
    if current < MANY_ASSIGNMENTS <= total:
        return (
            f"a HIT created with fewer than {MANY_ASSIGNMENTS} assignments ({current}) cannot be extended "
            f"to {MANY_ASSIGNMENTS} or more ({total})"
        )
    return ADDITIONAL_ASSIGNMENTS.problem(additional) or MAX_ASSIGNMENTS.problem(total)


def qualification_problems(requirements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the problems of the QualificationRequirements of a HIT, in boto3's form.

    >>> qualification_problems([{"QualificationTypeId": "00000000000000000071", "Comparator": "EqualTo"}])
    ['QualificationRequirements[0]: EqualTo takes one IntegerValue or one LocaleValue; got 0 and 0']
    """
    problems = [QUALIFICATIONS.problem(len(requirements))]
    for index, requirement in enumerate(requirements):
        problem = _requirement_problem(requirement)
        problems.append(problem and f"QualificationRequirements[{index}]: {problem}")
    return [problem for problem in problems if problem]


def _requirement_problem(requirement: Mapping[str, Any]) -> str | None:
    comparator = requirement.get("Comparator")
    numbers = len(requirement.get("IntegerValues") or ())
    locales = len(requirement.get("LocaleValues") or ())
    value_counts = f"got {numbers} and {locales}"
    if not requirement.get("QualificationTypeId"):
        return "QualificationTypeId is missing"
    if comparator not in COMPARATORS:
        return f"Comparator is {comparator!r}; expected one of {', '.join(COMPARATORS)}"
    if comparator in NO_VALUE:
        return f"{comparator} takes no values; {value_counts}" if numbers or locales else None
    if comparator in NUMBERS_ONLY and (numbers != 1 or locales):
        return f"{comparator} takes one IntegerValue; {value_counts}"
    if bool(numbers) == bool(locales) or (comparator not in LISTS and numbers + locales > 1):
        expected_values = "one IntegerValue or one LocaleValue"
        if comparator in LISTS:
            expected_values = "IntegerValues or LocaleValues, not both"
        return f"{comparator} takes {expected_values}; {value_counts}"
    type_id = requirement["QualificationTypeId"]
    if (type_id == LOCALE) != bool(locales):
        locale_field, integer_field = "LocaleValues", "IntegerValues"
        expected_field, unexpected_field = (
            (locale_field, integer_field) if type_id == LOCALE else (integer_field, locale_field)
        )
        return f"QualificationType {type_id} takes {expected_field}, not {unexpected_field}"
    return INTEGERS_IN.problem(numbers) if numbers else LOCALES_IN.problem(locales)
