"""Eligibility for HITs, and qualification requests."""

import itertools

import pytest

from mturk.service.rules import answer_key
from mturk.service.rules.eligibility import WorkerQualifications, unmet_requirements
from mturk.service.rules.work import WorkError

LOCALE = "00000000000000000071"
APPROVED_PERCENT = "000000000000000000L0"
HITS_APPROVED = "00000000000000000040"
BERLIN = {"Country": "DE"}
NEW_YORK = {"Country": "US", "Subdivision": "NY"}
USA = {"Country": "US"}
FORM = (
    '<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
    '2017-11-06/QuestionForm.xsd"><Question><QuestionIdentifier>q</QuestionIdentifier>'
    "<QuestionContent><Text>?</Text></QuestionContent><AnswerSpecification><FreeTextAnswer/>"
    "</AnswerSpecification></Question></QuestionForm>"
)


def refused(act, *arguments):
    with pytest.raises(WorkError) as caught:
        act(*arguments)
    return caught.value.code


def may(requirement, *, value=None, country=None, subdivision=None, wish="accept"):
    """Return whether a worker with this value and location meets a requirement."""
    values = {} if value is None else {"3Q": value}
    return not unmet_requirements(
        [requirement], WorkerQualifications(values, {}, country, subdivision), wish
    )


NUMBERS = [
    ("LessThan", [5], {4}),
    ("LessThanOrEqualTo", [5], {4, 5}),
    ("GreaterThan", [5], {6}),
    ("GreaterThanOrEqualTo", [5], {5, 6}),
    ("EqualTo", [5], {5}),
    ("NotEqualTo", [5], {4, 6}),
    ("In", [4, 6], {4, 6}),
    ("NotIn", [4, 6], {5}),
    ("Exists", None, {4, 5, 6}),
    ("DoesNotExist", None, {None}),
]


@pytest.mark.parametrize(("comparator", "values", "meet"), NUMBERS)
def test_every_comparator_of_numbers(comparator, values, meet):
    parameters = {"QualificationTypeId": "3Q", "Comparator": comparator}
    parameters |= {"IntegerValues": values} if values else {}
    assert {value for value in (None, 4, 5, 6) if may(parameters, value=value)} == meet


PLACES = {"nowhere": (None, None), "DE": ("DE", None), "NY": ("US", "NY"), "CA": ("US", "CA"),
          "US": ("US", None)}  # fmt: skip


@pytest.mark.parametrize(
    ("comparator", "locales", "meet"),
    [
        ("EqualTo", [BERLIN], {"DE"}),
        ("EqualTo", [USA], {"NY", "CA", "US"}),
        ("EqualTo", [NEW_YORK], {"NY"}),
        ("NotEqualTo", [BERLIN], {"NY", "CA", "US"}),
        ("NotEqualTo", [NEW_YORK], {"DE", "CA", "US"}),
        ("In", [BERLIN, NEW_YORK], {"DE", "NY"}),
        ("NotIn", [BERLIN, NEW_YORK], {"CA", "US"}),
        ("Exists", None, {"DE", "NY", "CA", "US"}),
        ("DoesNotExist", None, {"nowhere"}),
    ],
)
def test_every_comparator_of_places(comparator, locales, meet):
    parameters = {"QualificationTypeId": LOCALE, "Comparator": comparator}
    parameters |= {"LocaleValues": locales} if locales else {}
    result = {
        name
        for name, (country, subdivision) in PLACES.items()
        if may(parameters, country=country, subdivision=subdivision)
    }
    assert result == meet


GUARDS = [
    ({}, ("see", "preview")),
    ({"ActionsGuarded": "Accept"}, ("see", "preview")),
    ({"ActionsGuarded": "PreviewAndAccept"}, ("see",)),
    ({"ActionsGuarded": "DiscoverPreviewAndAccept"}, ()),
    ({"RequiredToPreview": True}, ("see",)),
    ({"RequiredToPreview": False}, ("see", "preview")),
    ({"RequiredToPreview": True, "ActionsGuarded": "Accept"}, ("see", "preview")),
]


@pytest.mark.parametrize(("guard", "allowed"), GUARDS)
def test_what_a_requirement_guards(shared, guard, allowed):
    country = {"QualificationTypeId": LOCALE, "Comparator": "EqualTo", "LocaleValues": [BERLIN]}
    title = f"guarded {sorted(guard.items())}"
    hit_id = shared.hit(Title=title, QualificationRequirements=[country | guard])
    shared.work.register("A1", country="AT")
    offers = [offer for offer in shared.work.offers("A1") if offer.title == title]
    assert bool(offers) == ("see" in allowed)
    assert not any(offer.eligible for offer in offers)
    if "preview" in allowed:
        assert "<p>" in shared.work.preview("A1", hit_id)
    else:
        assert refused(shared.work.preview, "A1", hit_id) == "NotEligible"
    assert refused(shared.work.accept, "A1", hit_id) == "NotEligible"
    shared.work.register("A2", country="DE")
    (offer,) = [offer for offer in shared.work.offers("A2") if offer.title == title]
    assert offer.eligible
    assert shared.work.accept("A2", hit_id)


def test_all_requirements_must_be_met(requester):
    types = [requester.qualification(Name=name) for name in "ab"]
    asked = [
        {"QualificationTypeId": its_id, "Comparator": "GreaterThan", "IntegerValues": [50]}
        for its_id in types
    ]
    hit_id = requester.hit(QualificationRequirements=asked)
    requester.work.register("A1")
    for values in ((51, 50), (50, 51)):
        for its_id, value in zip(types, values, strict=True):
            requester.grant("A1", its_id, value)
        assert refused(requester.work.accept, "A1", hit_id) == "NotEligible"
    requester.grant("A1", types[0], 51)
    assert requester.work.accept("A1", hit_id)


def test_revoking_takes_effect_at_once(requester):
    its_id = requester.qualification()
    parameters = [{"QualificationTypeId": its_id, "Comparator": "Exists"}]
    hits = [requester.hit(QualificationRequirements=parameters) for _ in range(2)]
    requester.grant("A1", its_id)
    requester.submit("A1", hits[0])
    requester.boto.disassociate_qualification_from_worker(QualificationTypeId=its_id, WorkerId="A1")
    assert refused(requester.work.accept, "A1", hits[1]) == "NotEligible"


def test_system_values_follow_what_became_of_the_work(requester):
    def asks(type_id, comparator, value):
        one = {"QualificationTypeId": type_id, "Comparator": comparator, "IntegerValues": [value]}
        return [one]

    def eligible(*requirement):
        hit_id = requester.hit(QualificationRequirements=asks(*requirement))
        try:
            requester.work.return_assignment(requester.accept("A1", hit_id), "A1")
        except WorkError:
            return False
        return True

    assert eligible(APPROVED_PERCENT, "EqualTo", 100)  # nothing was submitted yet
    assert eligible(HITS_APPROVED, "EqualTo", 0)
    done = [requester.submit("A1", requester.hit(Reward="0")) for _ in range(100)]
    for assignment_id in done[:97]:
        requester.boto.approve_assignment(AssignmentId=assignment_id)
    assert eligible(HITS_APPROVED, "EqualTo", 97)
    assert eligible(APPROVED_PERCENT, "GreaterThan", 98)
    for assignment_id in done[97:]:
        requester.boto.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="no")
    assert eligible(APPROVED_PERCENT, "EqualTo", 97)
    assert not eligible(APPROVED_PERCENT, "GreaterThan", 98)
    assert eligible("000000000000000000S0", "EqualTo", 3)


def test_few_rejections_of_few_do_not_count(requester):
    assignment_id = requester.submit("A1", requester.hit())
    requester.boto.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="no")
    parameters = {"QualificationTypeId": APPROVED_PERCENT, "Comparator": "GreaterThan"}
    hit_id = requester.hit(QualificationRequirements=[parameters | {"IntegerValues": [98]}])
    assert requester.accept("A1", hit_id)


def key(mapping="", default=""):
    """Return an answer key: q1 is worth 10 for a and 5 for b with c, q2 is worth 6 for y."""

    def option(score, *answers):
        selections_xml = "".join(
            f"<SelectionIdentifier>{answer}</SelectionIdentifier>" for answer in answers
        )
        return f"<AnswerOption>{selections_xml}<AnswerScore>{score}</AnswerScore></AnswerOption>"

    first = option(10, "a") + option(5, "b", "c") + default
    return (
        "<AnswerKey>"
        f"<Question><QuestionIdentifier>q1</QuestionIdentifier>{first}</Question>"
        f"<Question><QuestionIdentifier>q2</QuestionIdentifier>{option(6, 'y')}</Question>"
        f"{mapping and f'<QualificationValueMapping>{mapping}</QualificationValueMapping>'}"
        "</AnswerKey>"
    )


RANGES = (
    "<RangeMapping><SummedScoreRange><InclusiveLowerBound>5</InclusiveLowerBound>"
    "<InclusiveUpperBound>9</InclusiveUpperBound><QualificationValue>1</QualificationValue>"
    "</SummedScoreRange><SummedScoreRange><InclusiveLowerBound>10</InclusiveLowerBound>"
    "<InclusiveUpperBound>16</InclusiveUpperBound><QualificationValue>2</QualificationValue>"
    "</SummedScoreRange><OutOfRangeQualificationValue>-1</OutOfRangeQualificationValue>"
    "</RangeMapping>"
)
PERCENT = "<PercentageMapping><MaximumSummedScore>16</MaximumSummedScore></PercentageMapping>"
SCALE = "<ScaleMapping><SummedScoreMultiplier>1.5</SummedScoreMultiplier></ScaleMapping>"
DEFAULT = "<DefaultScore>2</DefaultScore>"
NOTHING, BEST = [], [("q1", "a"), ("q2", "y")]


@pytest.mark.parametrize(
    ("mapping", "default", "fields", "value"),
    [
        ("", "", BEST, 16),
        ("", "", NOTHING, 0),
        ("", "", [("q1", "c"), ("q1", "b")], 5),
        ("", "", [("q1", "b")], 0),
        ("", "", [("q1", "a"), ("q1", "b")], 0),
        ("", DEFAULT, NOTHING, 2),
        ("", DEFAULT, BEST, 16),
        (PERCENT, "", BEST, 100),
        (PERCENT, "", [("q1", "a")], 63),  # 62.5, half up
        (SCALE, "", [("q1", "b"), ("q1", "c")], 8),  # 7.5
        (SCALE, "", BEST, 24),
        (RANGES, "", BEST, 2),
        (RANGES, "", [("q2", "y")], 1),
        (RANGES, "", NOTHING, -1),
    ],
)
def test_answer_keys(mapping, default, fields, value):
    written = key(mapping, default)
    answer_key.check(written)
    assert answer_key.score(written, fields) == value


@pytest.mark.parametrize(
    "number", ["", "x", "1e9", "1e-999999", "NaN", "Infinity", "1000000000", "٣", "1,5", "--1"]
)
@pytest.mark.parametrize("where", ["MaximumSummedScore", "AnswerScore"])
def test_numbers_that_an_answer_key_cannot_have(number, where):
    written = key(PERCENT).replace({"AnswerScore": ">6<", "MaximumSummedScore": ">16<"}[where],
                                   f">{number}<")  # fmt: skip
    with pytest.raises(ValueError, match=where):
        answer_key.check(written)


def test_a_test_is_scored_at_once(requester):
    its_id = requester.qualification(Test=FORM, TestDurationInSeconds=60, AnswerKey=key(PERCENT))
    requester.work.register("A1")
    assert requester.work.request_qualification("A1", its_id, BEST) == "Granted"
    who = {"QualificationTypeId": its_id, "WorkerId": "A1"}
    assert requester.boto.get_qualification_score(**who)["Qualification"]["IntegerValue"] == 100
    assert requester.boto.list_qualification_requests()["QualificationRequests"] == []


@pytest.mark.parametrize(("message", "value"), [({}, 1), ({"AutoGrantedValue": 7}, 7),
                                             ({"AutoGrantedValue": 0}, 0)])  # fmt: skip
def test_what_is_granted_without_asking(requester, message, value):
    its_id = requester.qualification(AutoGranted=True, **message)
    requester.work.register("A1")
    assert requester.work.request_qualification("A1", its_id) == "Granted"
    who = {"QualificationTypeId": its_id, "WorkerId": "A1"}
    assert requester.boto.get_qualification_score(**who)["Qualification"]["IntegerValue"] == value


def test_asking_again(requester):
    once = requester.qualification(
        Name="once", Test=FORM, TestDurationInSeconds=60, AnswerKey=key()
    )
    often = requester.qualification(
        Name="often", Test=FORM, TestDurationInSeconds=60, AnswerKey=key(), RetryDelayInSeconds=600
    )
    waiting = requester.qualification(Name="waiting", RetryDelayInSeconds=0)
    ask = requester.work.request_qualification
    requester.work.register("A1")
    for its_id in (once, often):
        assert ask("A1", its_id, NOTHING) == "Granted"
        assert refused(ask, "A1", its_id, BEST) == "NotEligible"
    assert ask("A1", waiting) == "Pending"
    assert refused(ask, "A1", waiting) == "NotEligible"
    requester.clock.advance(600)
    assert refused(ask, "A1", once, BEST) == "NotEligible"
    assert ask("A1", often, BEST) == "Granted"
    who = {"QualificationTypeId": often, "WorkerId": "A1"}
    assert requester.boto.get_qualification_score(**who)["Qualification"]["IntegerValue"] == 16
    (request,) = requester.boto.list_qualification_requests()["QualificationRequests"]
    request_id = request["QualificationRequestId"]
    requester.boto.reject_qualification_request(QualificationRequestId=request_id)
    assert ask("A1", waiting) == "Pending"


def test_what_cannot_be_asked_for(requester):
    idle = requester.qualification(QualificationTypeStatus="Inactive")
    active = requester.qualification(Name="active")
    ask = requester.work.request_qualification
    requester.work.register("A1")
    for its_id in (idle, HITS_APPROVED, "3NO"):
        assert refused(ask, "A1", its_id) == "NotEligible"
    assert [qualification.name for qualification in requester.work.requestable("A1")] == ["active"]
    requester.boto.create_worker_block(WorkerId="A1", Reason="r")
    assert refused(ask, "A1", active) == "NotEligible"


def test_a_block_stops_new_work_and_keeps_the_old(requester):
    hit_id = requester.hit(MaxAssignments=2)
    at_work = requester.accept("A1", hit_id)
    requester.boto.create_worker_block(WorkerId="A1", Reason="r")
    assert requester.work.offers("A1") == []
    assert refused(requester.work.preview, "A1", hit_id) == "Blocked"
    assert refused(requester.work.accept, "A1", requester.hit(Title="new")) == "Blocked"
    assert requester.work.submit(at_work, "A1", [("a", "b")])


def test_every_comparator_is_tried():
    from mturk.limits import COMPARATORS

    assert sorted(name for name, *_ in NUMBERS) == sorted(COMPARATORS)
    assert len(set(itertools.chain(*(meet for *_, meet in NUMBERS)))) == 4
