"""Every limit of the service, at and beyond the limit, through unmodified boto3."""

from datetime import UTC, datetime

import pytest

from mturk.question_xml import write_html_question

YEAR = 31_536_000
REFUSED = "ParameterValidationError"
DAYS_30 = 2_592_000
FORM = (
    '<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
    '2017-11-06/QuestionForm.xsd"><Question><QuestionIdentifier>q</QuestionIdentifier><QuestionContent>'
    "<Text>{}</Text></QuestionContent><AnswerSpecification><FreeTextAnswer/></AnswerSpecification>"
    "</Question></QuestionForm>"
)


def question(size):
    """Return a question of `size` bytes with many multi-byte characters."""
    empty = len(write_html_question("<p>").encode())
    umlauts, remainder = divmod(size - empty, 2)
    return write_html_question("<p>" + "ü" * umlauts + "x" * remainder)


def form(size):
    return FORM.format("x" * (size - len(FORM.format(""))))


def numbers(count):
    values = {"Comparator": "In", "IntegerValues": list(range(count))}
    return [{"QualificationTypeId": "00000000000000000040", **values}]


def places(count):
    values = {"Comparator": "NotIn", "LocaleValues": [{"Country": "DE"}] * count}
    return [{"QualificationTypeId": "00000000000000000071", **values}]


def requirements(count):
    return [
        {
            "QualificationTypeId": "00000000000000000040",
            "Comparator": "GreaterThan",
            "IntegerValues": [number],
        }
        for number in range(count)
    ]


def texts(name, most, least=1):
    return (
        name,
        ["x" * least, "ü" * most],
        [*(["x" * (least - 1)] if least else []), "x" * (most + 1)],
    )


def ranged(name, low, high):
    return (name, [low, high], [low - 1, high + 1])


OF_A_HIT = [
    ("Question", [question(65_535)], [question(65_536), ""]),
    ("UniqueRequestToken", ["t" * 64], ["t" * 65]),
    texts("RequesterAnnotation", 255, least=0),
    texts("Title", 128),
    texts("Description", 2_000),
    texts("Keywords", 1_000, least=0),
    ranged("LifetimeInSeconds", 30, YEAR),
    ranged("AssignmentDurationInSeconds", 30, YEAR),
    ranged("AutoApprovalDelayInSeconds", 0, DAYS_30),
    ("Reward", ["0", "0.01", "999"], ["-1", "1.001", "1,00", "$1", "", "1e3", " 1"]),
    ("MaxAssignments", [1, 9, 10], [0, -1, 10**9 + 1]),
    ("QualificationRequirements", [[], requirements(10)], [requirements(11)]),
    ("QualificationRequirements", [numbers(1), numbers(15)], [numbers(0), numbers(16)]),
    ("QualificationRequirements", [places(1), places(30)], [places(0), places(31)]),
]


def cases(table, which):
    return [
        pytest.param(name, value, id=f"{name}-{number}")
        for name, *values in table
        for number, value in enumerate(values[which])
    ]


@pytest.mark.parametrize(("name", "value"), cases(OF_A_HIT, 0))
def test_a_hit_at_a_limit(shared, name, value):
    hit = shared.get(shared.hit(Title="at", **{name: value}) if name != "Title" else
                       shared.hit(Title=value))  # fmt: skip
    if name not in ("UniqueRequestToken", "LifetimeInSeconds", "Reward"):
        assert hit.get(name, "") == value


@pytest.mark.parametrize(("name", "value"), cases(OF_A_HIT, 1))
def test_a_hit_beyond_a_limit(shared, examples, name, value):
    code, message = shared.refused("create_hit", **examples.HIT | {name: value})
    assert code == REFUSED
    assert name in message or "Values" in message


def test_a_billion_assignments_are_a_question_of_money_only(shared, examples):
    parameters = examples.HIT | {
        "Reward": "0",
        "MaxAssignments": 10**9,
    }  # a fee of ten million dollars
    assert shared.code("create_hit", **parameters) == "InsufficientFunds"


@pytest.mark.parametrize("size", [0, 101, -1, 1000])
def test_pages_hold_one_to_a_hundred(shared, size):
    code, message = shared.refused("list_hits", MaxResults=size)
    assert code == REFUSED
    assert "expected 1 to 100" in message


def test_feedback(shared):
    for operation in ("approve_assignment", "reject_assignment"):
        its_id = shared.submit("A1", shared.hit())
        long = {"AssignmentId": its_id, "RequesterFeedback": "ü" * 1_025}
        assert shared.code(operation, **long) == REFUSED
        getattr(shared.boto, operation)(**long | {"RequesterFeedback": "ü" * 1_024})


@pytest.mark.parametrize(
    ("first", "more", "code"),
    [
        (9, 1, "InvalidMaximumAssignmentsIncrease"),
        (1, 9, "InvalidMaximumAssignmentsIncrease"),
        (1, 10**8, "InvalidMaximumAssignmentsIncrease"),
        (1, 0, REFUSED),
        (1, -1, REFUSED),
        (10, 10**9, "InvalidMaximumAssignmentsIncrease"),
        (1, 8, None),
        (10, 1, None),
    ],
)
def test_a_hit_of_nine_never_becomes_one_of_ten(shared, first, more, code):
    hit_id = shared.hit(MaxAssignments=first)
    parameters = {"HITId": hit_id, "NumberOfAdditionalAssignments": more}
    operation = "create_additional_assignments_for_hit"
    if code is None:
        shared.boto.create_additional_assignments_for_hit(**parameters)
    else:
        assert shared.code(operation, **parameters) == code
    assert shared.get(hit_id)["MaxAssignments"] == first + (0 if code else more)


def test_a_hit_is_extended_by_a_year_at_most(shared):
    hit_id, latest = shared.hit(), int(shared.clock.now()) + YEAR
    shared.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=latest)
    assert shared.code("update_expiration_for_hit", HITId=hit_id, ExpireAt=latest + 1) == REFUSED
    assert shared.get(hit_id)["Expiration"] == datetime.fromtimestamp(latest, UTC)


@pytest.mark.parametrize(
    ("name", "fits", "beyond"),
    [
        texts("Subject", 200),
        texts("MessageText", 4_096),
        ("WorkerIds", [["A1"] * 100, [f"A{n}" for n in range(100)]], [[], ["A1"] * 101]),
    ],
)
def test_messages(shared, name, fits, beyond):
    message = {"Subject": "s", "MessageText": "m", "WorkerIds": ["A1"]}
    for value in fits:
        shared.boto.notify_workers(**message | {name: value})
    for value in beyond:
        assert shared.code("notify_workers", **message | {name: value}) == REFUSED


@pytest.mark.parametrize(
    ("name", "fits", "beyond"),
    [
        texts("Name", 200),
        texts("Description", 2_000),
        texts("Keywords", 1_000, least=0),
        ranged("RetryDelayInSeconds", 0, YEAR),
        ranged("TestDurationInSeconds", 1, YEAR),
        ("Test", [form(65_535)], [form(65_536)]),
    ],
)
def test_qualification_types(shared, examples, name, fits, beyond):
    test = {"Test": form(200), "TestDurationInSeconds": 60}
    parameters = examples.QUALIFICATION | {"Name": f"limit of {name}"} | test
    for value in beyond:
        assert shared.code("create_qualification_type", **parameters | {name: value}) == REFUSED
    for value in fits:
        its_id = shared.qualification(**parameters | {name: value})
        shared.boto.delete_qualification_type(QualificationTypeId=its_id)


def test_values_of_qualifications_have_32_bits(shared):
    who = {"QualificationTypeId": shared.qualification(Name="32 bits"), "WorkerId": "A1"}
    for value in (-(2**31), 2**31 - 1):
        shared.grant("A1", who["QualificationTypeId"], value)
        assert shared.boto.get_qualification_score(**who)["Qualification"]["IntegerValue"] == value
    for value in (-(2**31) - 1, 2**31, 2**70):
        parameters = who | {"IntegerValue": value}
        assert shared.code("associate_qualification_with_worker", **parameters) == REFUSED


def test_reasons(shared):
    its_id = shared.submit("A1", shared.hit())
    bonus = {"WorkerId": "A1", "AssignmentId": its_id, "BonusAmount": "0.01"}
    shared.boto.send_bonus(**bonus, Reason="ü" * 4_096)
    shared.boto.create_worker_block(WorkerId="A5", Reason="ü" * 4_096)
    for reason in ("", "x" * 4_097):
        assert shared.code("send_bonus", **bonus, Reason=reason) == REFUSED
        assert shared.code("create_worker_block", WorkerId="A5", Reason=reason) == REFUSED


@pytest.mark.parametrize("operation", ["create_additional_assignments_for_hit", "send_bonus"])
def test_tokens_of_other_operations(shared, operation):
    hit_id = shared.hit(MaxAssignments=2)
    parameters = {
        "create_additional_assignments_for_hit": {
            "HITId": hit_id, "NumberOfAdditionalAssignments": 1,
        },
        "send_bonus": {
            "WorkerId": "A1", "AssignmentId": shared.submit("A1", hit_id), "BonusAmount": "1",
            "Reason": "r",
        },
    }[operation]  # fmt: skip
    assert shared.code(operation, **parameters, UniqueRequestToken="t" * 65) == REFUSED
    getattr(shared.boto, operation)(**parameters, UniqueRequestToken="t" * 64)


@pytest.mark.parametrize(
    "place", [{"Country": "D"}, {"Country": "DEU"}, {"Country": "US", "Subdivision": "NYC"}, {}]
)
def test_places_have_two_letters(shared, examples, place):
    locale = {"QualificationTypeId": "00000000000000000071", "Comparator": "EqualTo"}
    parameters = examples.HIT | {"QualificationRequirements": [locale | {"LocaleValues": [place]}]}
    assert shared.code("create_hit", **parameters) == REFUSED
