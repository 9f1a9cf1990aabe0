"""Edge cases of API calls, which must be refused without breaking the service for workers."""

import json

import pytest
from sqlalchemy import insert, select

from mturk.question_xml import write_html_question
from mturk.service.api.protocol import Api
from mturk.service.clock import ManualClock
from mturk.service.errors import ApiError
from mturk.service.rules import lifecycle
from mturk.service.rules.work import WorkerService
from mturk.service.store.schema import hit_type, worker
from tests.mturk.new_database import new_database

DAY = 86_400
HIT = {
    "Title": "t",
    "Description": "d",
    "Reward": "0.01",
    "AssignmentDurationInSeconds": 600,
    "LifetimeInSeconds": 90 * DAY,
    "Question": write_html_question("<p>hi</p>"),
}
KEY = (
    "<AnswerKey><Question><QuestionIdentifier>q</QuestionIdentifier><AnswerOption>"
    "<SelectionIdentifier>a</SelectionIdentifier><AnswerScore>{}</AnswerScore></AnswerOption>"
    "</Question></AnswerKey>"
)
FORM = (
    '<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
    '2017-11-06/QuestionForm.xsd"><Question><QuestionIdentifier>q</QuestionIdentifier>'
    "<QuestionContent><Text>?</Text></QuestionContent><AnswerSpecification><FreeTextAnswer/>"
    "</AnswerSpecification></Question></QuestionForm>"
)
QUALIFICATION = {"Name": "n", "Description": "d", "QualificationTypeStatus": "Active"}


@pytest.fixture
def clock():
    return ManualClock(1.8e9)


@pytest.fixture
def database(tmp_path):
    database = new_database(tmp_path / "hits.db")
    yield database
    database.close()


@pytest.fixture
def api(database, clock):
    return Api(database, clock, {})


@pytest.fixture
def work(database, clock):
    return WorkerService(database, clock)


def refusal(api, operation, **parameters):
    with pytest.raises(ApiError) as refused:
        api.call(operation, parameters)
    assert refused.value.shape == "RequestError"
    return refused.value


def code(api, operation, **parameters):
    return refusal(api, operation, **parameters).code.removeprefix("AWS.MechanicalTurk.")


def submitted(api, work, worker="A1", **more):
    hit_id = api.call("CreateHIT", HIT | more)["HIT"]["HITId"]
    work.register(worker)
    assignment_id = work.accept(worker, hit_id).assignment_id
    work.submit(assignment_id, worker, [("q", "a")])
    return hit_id, assignment_id


@pytest.mark.parametrize("digits", [19, 400])
@pytest.mark.parametrize("sign", ["", "-"])
def test_numbers_of_any_length_are_refused(api, digits, sign):
    number = json.loads(sign + "9" * digits)
    assert (
        code(api, "UpdateExpirationForHIT", HITId="A", ExpireAt=number)
        == "ParameterValidationError"
    )
    assert code(api, "ListHITs", MaxResults=number) == "ParameterValidationError"
    assert (
        code(api, "CreateHIT", **HIT | {"LifetimeInSeconds": number}) == "ParameterValidationError"
    )


def test_a_price_beyond_every_balance_is_a_lack_of_funds(api):
    dear = HIT | {"Reward": "999999999.99", "MaxAssignments": 10**9}  # 10^18 dollars and fees
    assert code(api, "CreateHIT", **dear) == "InsufficientFunds"


@pytest.mark.parametrize("worker", ["1anna", "an na", "", "A1\n", "A" * 65, "🙂"])
def test_a_worker_id_has_its_form(api, worker):
    refused = code(api, "CreateWorkerBlock", WorkerId=worker, Reason="r")
    assert refused == "ParameterValidationError"


@pytest.mark.parametrize(
    ("its_id", "values"),
    [
        ("00000000000000000040", {"Comparator": "EqualTo", "LocaleValues": [{"Country": "DE"}]}),
        ("00000000000000000040", {"Comparator": "In", "LocaleValues": [{"Country": "DE"}]}),
        ("00000000000000000071", {"Comparator": "EqualTo", "IntegerValues": [1]}),
        ("00000000000000000071", {"Comparator": "GreaterThan", "IntegerValues": [1]}),
    ],
)
def test_places_and_numbers_are_not_mixed_up(api, work, its_id, values):
    parameters = HIT | {"QualificationRequirements": [{"QualificationTypeId": its_id, **values}]}
    assert code(api, "CreateHIT", **parameters) == "ParameterValidationError"
    work.register("A1", country="DE")
    assert work.offers("A1") == []  # one bad HIT would keep all workers from all work


def test_all_that_is_overdue_is_settled_before_anybody_looks(api, database, clock):
    hit_id = api.call("CreateHIT", HIT | {"MaxAssignments": 600})["HIT"]["HITId"]
    with database.write() as connection:  # one transaction: 600 would take seconds
        kind = connection.execute(select(hit_type)).one()
        for number in range(600):
            connection.execute(insert(worker).values(worker_id=f"A{number}", registered=0.0))
            row = lifecycle.hit_row(connection, hit_id)
            lifecycle.accept(connection, row, kind, f"A{number}", clock.now())
    clock.advance(600)
    hit = api.call("GetHIT", {"HITId": hit_id})["HIT"]
    assert hit["NumberOfAssignmentsPending"] == 0
    assert hit["NumberOfAssignmentsAvailable"] == 600


def test_an_assignment_at_work_is_there_but_in_another_state(api, work):
    hit_id = api.call("CreateHIT", HIT)["HIT"]["HITId"]
    work.register("A1")
    assignment_id = work.accept("A1", hit_id).assignment_id
    refused = refusal(api, "GetAssignment", AssignmentId=assignment_id)
    assert refused.code == "AWS.MechanicalTurk.InvalidAssignmentState"
    assert "can be called with a status of: Reviewable,Approved,Rejected" in refused.message


@pytest.mark.parametrize(("days", "possible"), [(30, True), (30 + 1 / DAY, False)])
def test_a_rejection_is_taken_back_within_thirty_days(api, work, clock, days, possible):
    _, assignment_id = submitted(api, work)
    api.call("RejectAssignment", {"AssignmentId": assignment_id, "RequesterFeedback": "no"})
    clock.advance(days * DAY)
    again = {"AssignmentId": assignment_id, "OverrideRejection": True}
    if possible:
        api.call("ApproveAssignment", again)
    else:
        assert code(api, "ApproveAssignment", **again) == "InvalidAssignmentState"


def test_a_rejection_stands_when_the_hit_is_deleted(api, work):
    hit_id, assignment_id = submitted(api, work)
    api.call("RejectAssignment", {"AssignmentId": assignment_id, "RequesterFeedback": "no"})
    api.call("DeleteHIT", {"HITId": hit_id})
    again = {"AssignmentId": assignment_id, "OverrideRejection": True}
    assert code(api, "ApproveAssignment", **again) == "InvalidAssignmentState"


def made(api, **more):
    answer = api.call("CreateQualificationType", QUALIFICATION | more)
    return answer["QualificationType"]["QualificationTypeId"]


def test_a_score_that_never_was_and_one_that_was_revoked(api):
    parameters = {"QualificationTypeId": made(api), "WorkerId": "A1"}
    never = refusal(api, "GetQualificationScore", **parameters)
    assert never.code == "AWS.MechanicalTurk.QualificationDoesNotExist"
    assert never.message.startswith("You requested a Qualification that does not exist.")
    api.call("AssociateQualificationWithWorker", parameters)
    api.call("DisassociateQualificationFromWorker", parameters)
    revoked = refusal(api, "GetQualificationScore", **parameters)
    assert revoked.code == "AWS.MechanicalTurk.InvalidQualificationState"
    assert "can be called with a status of: Granted" in revoked.message


def test_a_worker_reads_of_what_was_granted_or_refused(api, work):
    its_id = made(api)
    granted = {"QualificationTypeId": its_id, "WorkerId": "A1", "SendNotification": True}
    api.call("AssociateQualificationWithWorker", granted)
    api.call("AssociateQualificationWithWorker", granted | {"SendNotification": False})
    work.request_qualification("A2", its_id)
    parameters = api.call("ListQualificationRequests", {})["QualificationRequests"][0]
    api.call(
        "RejectQualificationRequest",
        {"QualificationRequestId": parameters["QualificationRequestId"], "Reason": "not yet"},
    )
    assert [message.subject for message in work.messages("A1")] == ["n"]
    assert [message.text for message in work.messages("A2")] == ["not yet"]


@pytest.mark.parametrize("score", ["1e400", "NaN", "many"])
def test_an_answer_key_that_cannot_be_scored_is_refused_when_it_is_set(api, score):
    test = {"Test": FORM, "TestDurationInSeconds": 60, "AnswerKey": KEY.format(score)}
    refused = code(api, "CreateQualificationType", **QUALIFICATION | test)
    assert refused == "XMLParseError"
