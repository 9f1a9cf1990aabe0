"""Assignments and bonuses through unmodified boto3."""

from datetime import UTC, datetime

import pytest

from mturk.answers import from_xml

HOUR = 3600


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def test_an_assignment_from_accepting_to_approval(requester):
    hit_id = requester.hit(AutoApprovalDelayInSeconds=HOUR)
    begin = requester.clock.now()
    assignment_id = requester.accept("A1", hit_id)
    assert requester.boto.list_assignments_for_hit(HITId=hit_id)["Assignments"] == []
    requester.clock.advance(60)
    fields = [("best-t1", "ä <&> 🙂"), ("comment", "a\nb")]
    requester.work.submit(assignment_id, "A1", fields)
    (assignment,) = requester.boto.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    assert from_xml(assignment.pop("Answer")) == fields
    assert assignment == {
        "AssignmentId": assignment_id,
        "WorkerId": "A1",
        "HITId": hit_id,
        "AssignmentStatus": "Submitted",
        "AcceptTime": at(begin),
        "Deadline": at(begin + 600),
        "SubmitTime": at(begin + 60),
        "AutoApprovalTime": at(begin + 60 + HOUR),
    }
    requester.clock.advance(60)
    requester.boto.approve_assignment(AssignmentId=assignment_id, RequesterFeedback="gut")
    answer = requester.boto.get_assignment(AssignmentId=assignment_id)
    assert answer["HIT"] == requester.get(hit_id)
    assert answer["Assignment"]["AssignmentStatus"] == "Approved"
    assert answer["Assignment"]["ApprovalTime"] == at(begin + 120)
    assert answer["Assignment"]["RequesterFeedback"] == "gut"
    assert "RejectionTime" not in answer["Assignment"]


def test_a_rejection_says_when_and_why(shared):
    assignment_id = shared.submit("A1", shared.hit())
    shared.boto.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="empty answer")
    assignment = shared.boto.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert assignment["AssignmentStatus"] == "Rejected"
    assert assignment["RejectionTime"] == at(shared.clock.now())
    assert assignment["RequesterFeedback"] == "empty answer"
    (done,) = [
        assignment
        for assignment in shared.work.history("A1")
        if assignment.assignment_id == assignment_id
    ]
    assert (done.status, done.feedback) == ("Rejected", "empty answer")


@pytest.mark.parametrize(
    ("operation", "status"), [("approve_assignment", "Approved"), ("reject_assignment", "Rejected")]
)
def test_feedback_may_be_empty(shared, operation, status):
    assignment_id = shared.submit("A1", shared.hit())
    getattr(shared.boto, operation)(AssignmentId=assignment_id, RequesterFeedback="")
    assignment = shared.boto.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert (assignment["AssignmentStatus"], assignment["RequesterFeedback"]) == (status, "")


def test_assignments_by_status(shared):
    hit_id = shared.hit(MaxAssignments=4)
    ids = [shared.submit(f"A{number}", hit_id) for number in range(1, 4)]
    shared.accept("A4", hit_id)
    shared.boto.approve_assignment(AssignmentId=ids[0])
    shared.boto.reject_assignment(AssignmentId=ids[1], RequesterFeedback="no")

    def listed(*states):
        parameters = {"AssignmentStatuses": list(states)} if states else {}
        assignments = shared.boto.list_assignments_for_hit(HITId=hit_id, **parameters)
        assert assignments["NumResults"] == len(assignments["Assignments"])
        return [assignment["AssignmentId"] for assignment in assignments["Assignments"]]

    assert listed() == ids
    assert listed("Approved", "Rejected") == ids[:2]
    assert [listed(assignment_id) for assignment_id in ("Approved", "Rejected", "Submitted")] == [
        [one] for one in ids
    ]


@pytest.mark.parametrize("operation", ["approve_assignment", "reject_assignment"])
@pytest.mark.parametrize("reviewed", ["approve_assignment", "reject_assignment"])
def test_a_review_stands(shared, operation, reviewed):
    assignment_id = shared.submit("A1", shared.hit())
    texts = {"AssignmentId": assignment_id, "RequesterFeedback": "so"}
    getattr(shared.boto, reviewed)(**texts)
    code, message = shared.refused(operation, **texts)
    assert code == "InvalidAssignmentState"
    assert "can be called with a status of: Submitted" in message


def test_a_rejection_is_overridden(shared):
    assignment_id = shared.submit("A1", shared.hit())
    shared.boto.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="no")
    assert shared.code("approve_assignment", AssignmentId=assignment_id) == "InvalidAssignmentState"
    shared.boto.approve_assignment(
        AssignmentId=assignment_id, OverrideRejection=True, RequesterFeedback="sorry"
    )
    assignment = shared.boto.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert assignment["AssignmentStatus"] == "Approved"
    assert assignment["RequesterFeedback"] == "sorry"


def test_bonuses(shared):
    hit_id = shared.hit(MaxAssignments=2)
    ids = [shared.submit(worker, hit_id) for worker in ("A1", "A2")]
    for number, (worker, assignment_id) in enumerate(zip(("A1", "A2"), ids, strict=True)):
        shared.boto.send_bonus(
            WorkerId=worker, AssignmentId=assignment_id, BonusAmount=f"{number + 1}", Reason="quick"
        )
    response = shared.boto.list_bonus_payments(HITId=hit_id)
    assert [bonus["WorkerId"] for bonus in response["BonusPayments"]] == ["A1", "A2"]
    (one,) = shared.boto.list_bonus_payments(AssignmentId=ids[1])["BonusPayments"]
    assert one == {
        "WorkerId": "A2",
        "AssignmentId": ids[1],
        "BonusAmount": "2.00",
        "Reason": "quick",
        "GrantTime": at(shared.clock.now()),
    }
    (told,) = [message for message in shared.work.messages("A2") if "2.00" in message.subject]
    assert told.text == "quick"
    assert shared.work.progress("A2").earned >= 2


def test_a_bonus_is_paid_once_for_a_token(shared):
    assignment_id = shared.submit("A1", shared.hit())
    bonus = {"WorkerId": "A1", "AssignmentId": assignment_id, "BonusAmount": "1", "Reason": "r"}
    shared.boto.send_bonus(**bonus, UniqueRequestToken="b-1")
    code, message = shared.refused("send_bonus", **bonus, UniqueRequestToken="b-1")
    assert code == "DuplicateRequest"
    assert "b-1" in message
    assert shared.boto.list_bonus_payments(AssignmentId=assignment_id)["NumResults"] == 1


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"BonusAmount": "0"}, "expected 0.01 or more"),
        ({"BonusAmount": "-1"}, "BonusAmount"),
        ({"BonusAmount": "1.001"}, "BonusAmount"),
        ({"Reason": ""}, "Reason"),
        ({"WorkerId": "A9"}, "does not belong to worker A9"),
    ],
)
def test_a_bonus_that_is_not_paid(shared, wrong, reason):
    assignment_id = shared.submit("A1", shared.hit())
    bonus = {"WorkerId": "A1", "AssignmentId": assignment_id, "BonusAmount": "1", "Reason": "r"}
    code, message = shared.refused("send_bonus", **bonus | wrong)
    assert code == "ParameterValidationError"
    assert reason in message
    assert shared.boto.list_bonus_payments(AssignmentId=assignment_id)["BonusPayments"] == []


def test_bonuses_are_listed_for_one_thing(shared):
    hit_id = shared.hit()
    both = {"HITId": hit_id, "AssignmentId": shared.submit("A1", hit_id)}
    assert shared.code("list_bonus_payments") == "ParameterValidationError"
    assert shared.code("list_bonus_payments", **both) == "ParameterValidationError"


def test_there_are_no_uploaded_files(shared):
    parameters = {"AssignmentId": shared.submit("A1", shared.hit()), "QuestionIdentifier": "q"}
    assert shared.code("get_file_upload_url", **parameters) == "ParameterValidationError"


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("get_assignment", {}),
        ("approve_assignment", {}),
        ("reject_assignment", {"RequesterFeedback": "no"}),
        ("list_bonus_payments", {}),
        ("get_file_upload_url", {"QuestionIdentifier": "q"}),
        ("send_bonus", {"WorkerId": "A1", "BonusAmount": "1", "Reason": "r"}),
    ],
)
def test_an_assignment_that_is_not_there_or_not_yet_submitted(shared, operation, more):
    assert shared.code(operation, AssignmentId="3NO", **more) == "AssignmentDoesNotExist"
    at_work = shared.accept("A1", shared.hit())
    assert shared.code(operation, AssignmentId=at_work, **more) == "InvalidAssignmentState"
