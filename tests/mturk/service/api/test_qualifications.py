"""Qualification types, grants and requests through unmodified boto3."""

from datetime import UTC, datetime

import pytest

from mturk.answers import from_xml

FORM = (
    '<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
    '2017-11-06/QuestionForm.xsd"><Question><QuestionIdentifier>q</QuestionIdentifier>'
    "<QuestionContent><Text>Wie?</Text></QuestionContent><AnswerSpecification><FreeTextAnswer/>"
    "</AnswerSpecification></Question></QuestionForm>"
)
KEY = (
    "<AnswerKey><Question><QuestionIdentifier>q</QuestionIdentifier><AnswerOption>"
    "<SelectionIdentifier>so</SelectionIdentifier><AnswerScore>7</AnswerScore></AnswerOption>"
    "</Question></AnswerKey>"
)
TEST = {"Test": FORM, "TestDurationInSeconds": 300}


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def test_a_type_comes_back_with_all_that_was_said(shared, examples):
    values = examples.QUALIFICATION | TEST | {
        "Name": "whole", "Keywords": "German, test", "AnswerKey": KEY, "RetryDelayInSeconds": 60,
    }  # fmt: skip
    qualification_type = shared.boto.create_qualification_type(**values)["QualificationType"]
    assert {name: qualification_type[name] for name in values} == values
    assert qualification_type["CreationTime"] == at(shared.clock.now())
    assert (qualification_type["IsRequestable"], qualification_type["AutoGranted"]) == (True, False)
    its_id = qualification_type["QualificationTypeId"]
    again = shared.boto.get_qualification_type(QualificationTypeId=its_id)
    assert again["QualificationType"] == qualification_type


@pytest.mark.parametrize(
    ("its_id", "name"),
    [
        ("000000000000000000L0", "Worker_PercentAssignmentsApproved"),
        ("00000000000000000040", "Worker_NumberHITsApproved"),
        ("00000000000000000071", "Worker_Locale"),
    ],
)
def test_types_of_the_system_are_there_and_stay(shared, its_id, name):
    of = {"QualificationTypeId": its_id}
    qualification_type = shared.boto.get_qualification_type(**of)["QualificationType"]
    assert (qualification_type["Name"], qualification_type["IsRequestable"]) == (name, False)
    assert shared.code("delete_qualification_type", **of) == "QualificationTypeDoesNotExist"
    assert shared.code("update_qualification_type", **of) == "QualificationTypeDoesNotExist"


def test_a_name_is_used_once(shared, examples):
    shared.qualification(Name="once")
    parameters = examples.QUALIFICATION | {"Name": "once"}
    assert (
        shared.code("create_qualification_type", **parameters) == "QualificationTypeAlreadyExists"
    )


def test_types_are_found_by_words_and_by_whether_one_can_ask(requester):
    types = [
        requester.qualification(Name="Deutsch 100%"),
        requester.qualification(Name="b", Keywords="deutsch"),
        requester.qualification(Name="c", QualificationTypeStatus="Inactive"),
    ]

    def response(requestable=False, **more):
        answer = requester.boto.list_qualification_types(MustBeRequestable=requestable, **more)
        return [
            qualification["QualificationTypeId"] for qualification in answer["QualificationTypes"]
        ]

    assert response(MustBeOwnedByCaller=True) == types
    assert response(True) == types[:2]
    assert response(Query="DEUTSCH") == types[:2]
    assert response(Query="100%") == types[:1]
    assert response(Query="%", MustBeOwnedByCaller=True) == types[:1]  # no pattern


def test_a_type_is_changed(shared):
    its_id = shared.qualification(Name="changed", AutoGranted=True, AutoGrantedValue=5)
    of = {"QualificationTypeId": its_id}

    def change(**values):
        return shared.boto.update_qualification_type(**of, **values)["QualificationType"]

    assert change(Description="new", RetryDelayInSeconds=9)["Description"] == "new"
    assert change(AutoGrantedValue=0)["AutoGrantedValue"] == 0
    assert change()["RetryDelayInSeconds"] == 9
    assert change(AutoGranted=False)["AutoGranted"] is False
    assert change(**TEST, AnswerKey=KEY)["AnswerKey"] == KEY
    assert "AnswerKey" not in change(**TEST)  # a new test has its own key or none
    assert change(QualificationTypeStatus="Inactive")["IsRequestable"] is False
    for wrong in ({"AutoGranted": True}, {"AnswerKey": KEY}, {"TestDurationInSeconds": 9}):
        refused = shared.code("update_qualification_type", **of, **wrong)
        assert refused == "ParameterValidationError"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"Test": FORM}, "TestDurationInSeconds"),
        ({"AnswerKey": KEY}, "AnswerKey requires a Test"),
        (TEST | {"AutoGranted": True}, "AutoGranted"),
        ({"QualificationTypeStatus": "Open"}, "Active, Inactive"),
    ],
)
def test_a_type_that_contradicts_itself(shared, examples, wrong, reason):
    parameters = examples.QUALIFICATION | {"Name": "wrong"} | wrong
    code, message = shared.refused("create_qualification_type", **parameters)
    assert code == "ParameterValidationError"
    assert reason in message


@pytest.mark.parametrize("name", ["Test", "AnswerKey"])
def test_a_test_that_violates_the_schema(shared, examples, name):
    parameters = examples.QUALIFICATION | {"Name": "wrong"} | TEST | {name: "<a/>"}
    code, message = shared.refused("create_qualification_type", **parameters)
    assert code == "XMLParseError"
    assert name in message


def test_a_question_of_another_kind_is_no_test(shared, examples):
    parameters = examples.QUALIFICATION | {"Name": "html"} | TEST | {"Test": examples.QUESTION}
    assert "QuestionForm" in shared.refused("create_qualification_type", **parameters)[1]


def test_a_worker_is_given_a_qualification_and_loses_it(shared):
    its_id = shared.qualification(Name="given")
    who = {"QualificationTypeId": its_id, "WorkerId": "A1"}
    shared.boto.associate_qualification_with_worker(**who, IntegerValue=80, SendNotification=False)
    score = {"IntegerValue": 80, "Status": "Granted", "GrantTime": at(shared.clock.now())}
    assert shared.boto.get_qualification_score(**who)["Qualification"] == who | score
    shared.boto.associate_qualification_with_worker(**who, IntegerValue=90, SendNotification=False)
    assert shared.boto.get_qualification_score(**who)["Qualification"]["IntegerValue"] == 90

    def listed(**status):
        of = {"QualificationTypeId": its_id}
        response = shared.boto.list_workers_with_qualification_type(**of, **status)
        return [qualification["WorkerId"] for qualification in response["Qualifications"]]

    assert (listed(), listed(Status="Revoked")) == (["A1"], [])
    shared.boto.disassociate_qualification_from_worker(**who, Reason="too many errors")
    assert (listed(), listed(Status="Revoked")) == ([], ["A1"])
    assert shared.code("get_qualification_score", **who) == "InvalidQualificationState"
    assert [message.text for message in shared.work.messages("A1")] == ["too many errors"]
    shared.grant("A1", its_id)
    assert listed() == ["A1"]


def test_a_request_is_accepted(shared):
    its_id = shared.qualification(Name="asked", **TEST)
    shared.work.register("A2")
    assert shared.work.request_qualification("A2", its_id, [("q", "so?")]) == "Pending"
    response = shared.boto.list_qualification_requests(QualificationTypeId=its_id)
    (request,) = response["QualificationRequests"]
    assert from_xml(request.pop("Answer")) == [("q", "so?")]
    request_id = request.pop("QualificationRequestId")
    assert request == {
        "QualificationTypeId": its_id, "WorkerId": "A2", "Test": FORM,
        "SubmitTime": at(shared.clock.now()),
    }  # fmt: skip
    shared.boto.accept_qualification_request(QualificationRequestId=request_id, IntegerValue=42)
    who = {"QualificationTypeId": its_id, "WorkerId": "A2"}
    assert shared.boto.get_qualification_score(**who)["Qualification"]["IntegerValue"] == 42
    left = shared.boto.list_qualification_requests(QualificationTypeId=its_id)
    assert left["QualificationRequests"] == []
    for operation in ("accept_qualification_request", "reject_qualification_request"):
        again = shared.code(operation, QualificationRequestId=request_id)
        assert again == "QualificationRequestDoesNotExist"


def test_a_request_is_rejected(shared):
    its_id = shared.qualification(Name="refused")
    shared.work.register("A3")
    shared.work.request_qualification("A3", its_id)
    response = shared.boto.list_qualification_requests(QualificationTypeId=its_id)
    (request,) = response["QualificationRequests"]
    shared.boto.reject_qualification_request(
        QualificationRequestId=request["QualificationRequestId"], Reason="no more places"
    )
    who = {"QualificationTypeId": its_id, "WorkerId": "A3"}
    assert shared.code("get_qualification_score", **who) == "QualificationDoesNotExist"
    assert [message.text for message in shared.work.messages("A3")] == ["no more places"]


def test_a_deleted_type_keeps_the_hits_that_require_it_as_they_were(requester, examples):
    its_id = requester.qualification()
    requirements = [{"QualificationTypeId": its_id, "Comparator": "Exists"}]
    hit_id = requester.hit(QualificationRequirements=requirements, MaxAssignments=2)
    kind = requester.get(hit_id)["HITTypeId"]
    requester.grant("A1", its_id)
    requester.work.register("A2")
    requester.work.request_qualification("A2", its_id)
    requester.boto.delete_qualification_type(QualificationTypeId=its_id)
    assert requester.accept("A1", hit_id)
    assert [offer.eligible for offer in requester.work.offers("A2")] == [False]
    assert requester.boto.list_qualification_requests()["QualificationRequests"] == []
    gone = "QualificationTypeDoesNotExist"
    assert requester.code("get_qualification_type", QualificationTypeId=its_id) == gone
    new = examples.HIT | {"QualificationRequirements": requirements}
    assert requester.code("create_hit", **new) == gone
    of_type = {"HITTypeId": kind, "LifetimeInSeconds": 60, "Question": examples.QUESTION}
    assert requester.code("create_hit_with_hit_type", **of_type) == gone
    assert requester.qualification() != its_id  # the name is free


def test_an_inactive_type_is_required_by_no_new_hit(shared, examples):
    its_id = shared.qualification(Name="idle", QualificationTypeStatus="Inactive")
    requirements = [{"QualificationTypeId": its_id, "Comparator": "Exists"}]
    refused = shared.code(
        "create_hit", **examples.HIT | {"QualificationRequirements": requirements}
    )
    assert refused == "InvalidQualificationTypeState"


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("get_qualification_type", {}),
        ("update_qualification_type", {}),
        ("delete_qualification_type", {}),
        ("list_workers_with_qualification_type", {}),
        ("list_qualification_requests", {}),
        ("get_qualification_score", {"WorkerId": "A1"}),
        ("associate_qualification_with_worker", {"WorkerId": "A1"}),
        ("disassociate_qualification_from_worker", {"WorkerId": "A1"}),
    ],
)
def test_a_type_that_is_not_there(shared, operation, more):
    code, message = shared.refused(operation, QualificationTypeId="3NO", **more)
    assert code == "QualificationTypeDoesNotExist"
    assert "3NO" in message
