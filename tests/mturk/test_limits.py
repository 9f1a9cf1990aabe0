"""Limits: values at and beyond the bounds, in the units of the service."""

import pytest

from mturk import limits

DE = {"Country": "DE"}


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        (limits.QUESTION, 65_535),
        (limits.TOKEN, 64),
        (limits.ANNOTATION, 255),
        (limits.TITLE, 128),
        (limits.DESCRIPTION, 2_000),
        (limits.KEYWORDS, 1_000),
        (limits.FEEDBACK, 1_024),
        (limits.MESSAGE_SUBJECT, 200),
        (limits.MESSAGE_TEXT, 4_096),
    ],
)
def test_text_length_limits(limit, most):
    limit.check("x" * most)
    with pytest.raises(ValueError, match=f"has {most + 1} {limit.unit}; expected .* to {most}"):
        limit.check("x" * (most + 1))


def test_units_of_length_limits():
    assert limits.QUESTION.problem("ü" * 32_767) is None  # 65,534 bytes
    assert "65536 bytes" in limits.QUESTION.problem("ü" * 32_768)
    assert limits.TITLE.problem("ü" * 128) is None


def test_empty_texts():
    assert limits.TITLE.problem("") == "Title has 0 characters; expected 1 to 128"
    assert limits.KEYWORDS.problem("") is None


@pytest.mark.parametrize(
    ("limit", "low", "high"),
    [
        (limits.LIFETIME, 30, 31_536_000),
        (limits.ASSIGNMENT_DURATION, 30, 31_536_000),
        (limits.AUTO_APPROVAL_DELAY, 0, 2_592_000),
        (limits.MAX_ASSIGNMENTS, 1, 10**9),
        (limits.PAGE_SIZE, 1, 100),
    ],
)
def test_ranges(limit, low, high):
    limit.check(low)
    limit.check(high)
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"is {value}; expected {low} to {high}"):
            limit.check(value)


@pytest.mark.parametrize("text", ["0.25", "1", "1.", "1.5", "0", "1000.00"])
def test_rewards(text):
    assert limits.reward_problem(text) is None


@pytest.mark.parametrize(
    "text", ["", "0,25", "-1", "0.255", "$1", ".5", "1e3", "٣", "1\n", "9" * 13]
)
def test_invalid_rewards(text):
    assert "at most two decimals" in limits.reward_problem(text)


@pytest.mark.parametrize(("now", "more"), [(5, 4), (10, 1), (12, 500)])
def test_valid_assignment_increases(now, more):
    assert limits.assignments_increase_problem(now, more) is None


@pytest.mark.parametrize(("now", "more"), [(9, 1), (5, 5), (1, 100), (5, 0), (10, 10**9)])
def test_invalid_assignment_increases(now, more):
    assert limits.assignments_increase_problem(now, more)


def requirement(comparator, **values):
    which = limits.LOCALE if "LocaleValues" in values else "00000000000000000040"
    return {"QualificationTypeId": which, "Comparator": comparator, **values}


@pytest.mark.parametrize(
    "fine",
    [
        requirement("Exists"),
        requirement("GreaterThan", IntegerValues=[98]),
        requirement("EqualTo", LocaleValues=[DE]),
        requirement("In", IntegerValues=[*range(15)]),
        requirement("NotIn", LocaleValues=[DE] * 30),
    ],
)
def test_qualifications(fine):
    assert limits.qualification_problems([fine]) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"Comparator": "Exists"}, "QualificationTypeId is missing"),
        (requirement("Like"), "Comparator is 'Like'; expected one of LessThan, "),
        (requirement("Exists", IntegerValues=[1]), "takes no values; got 1 and 0"),
        (requirement("GreaterThan", LocaleValues=[DE]), "takes one IntegerValue; got 0 and 1"),
        (requirement("GreaterThan", IntegerValues=[1, 2]), "takes one IntegerValue; got 2 and 0"),
        (
            requirement("EqualTo", IntegerValues=[1], LocaleValues=[DE]),
            "or one LocaleValue; got 1 and 1",
        ),
        (requirement("In", IntegerValues=[1], LocaleValues=[DE]), "not both; got 1 and 1"),
        (requirement("In", IntegerValues=[*range(16)]), "IntegerValues is 16; expected 1 to 15"),
        (requirement("In", LocaleValues=[DE] * 31), "LocaleValues is 31; expected 1 to 30"),
    ],
)
def test_invalid_qualifications(wrong, message):
    problems = limits.qualification_problems([requirement("Exists"), wrong])
    assert len(problems) == 1
    assert problems[0].startswith("QualificationRequirements[1]: ")
    assert message in problems[0]


def test_maximum_number_of_qualifications():
    assert limits.qualification_problems([requirement("Exists")] * 10) == []
    assert (
        "is 11; expected 0 to 10" in limits.qualification_problems([requirement("Exists")] * 11)[0]
    )


@pytest.mark.parametrize(
    ("which", "values", "message"),
    [
        ("00000000000000000071", {"IntegerValues": [1]}, "takes LocaleValues, not IntegerValues"),
        ("00000000000000000040", {"LocaleValues": [{"Country": "DE"}]}, "takes IntegerValues, not"),
    ],
)
def test_locale_and_integer_values(which, values, message):
    one = {"QualificationTypeId": which, "Comparator": "EqualTo", **values}
    (problem,) = limits.qualification_problems([one])
    assert message in problem
