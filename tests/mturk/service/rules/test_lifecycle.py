"""States of HITs and assignments over time, with a manual clock."""

import pytest

from mturk.service.rules.work import WorkError

DAY = 86_400


def state(requester, hit_id):
    """Return a HIT's status and how many assignments are pending, available, completed."""
    hit = requester.get(hit_id)
    counts = ("Pending", "Available", "Completed")
    return hit["HITStatus"], *(hit[f"NumberOfAssignments{name}"] for name in counts)


def status(requester, assignment_id):
    return requester.work.assignment(assignment_id).status


def refused(act, *arguments):
    """Return the error code of a refused action of a worker."""
    with pytest.raises(WorkError) as caught:
        act(*arguments)
    return caught.value.code


def test_a_hit_from_assignable_to_disposed(requester):
    hit_id = requester.hit(MaxAssignments=2)
    seen = [state(requester, hit_id)]
    first = requester.submit("A1", hit_id)
    seen.append(state(requester, hit_id))
    second = requester.accept("A2", hit_id)
    seen.append(state(requester, hit_id))
    requester.work.submit(second, "A2", [])
    seen.append(state(requester, hit_id))
    requester.boto.update_hit_review_status(HITId=hit_id)
    seen.append(state(requester, hit_id))
    requester.boto.approve_assignment(AssignmentId=first)
    requester.boto.reject_assignment(AssignmentId=second, RequesterFeedback="empty")
    requester.boto.delete_hit(HITId=hit_id)
    seen.append(state(requester, hit_id))
    assert seen == [
        ("Assignable", 0, 2, 0),
        ("Assignable", 0, 1, 0),
        ("Unassignable", 1, 0, 0),
        ("Reviewable", 0, 0, 0),
        ("Reviewing", 0, 0, 0),
        ("Disposed", 0, 0, 2),
    ]


def test_returning_gives_the_place_back(requester):
    hit_id = requester.hit()
    assignment_id = requester.accept("A1", hit_id)
    requester.work.register("A2")
    assert refused(requester.work.accept, "A2", hit_id) == "Full"
    requester.work.return_assignment(assignment_id, "A1")
    requester.work.return_assignment(assignment_id, "A1")  # as good as once
    assert status(requester, assignment_id) == "Returned"
    assert state(requester, hit_id) == ("Assignable", 0, 1, 0)
    assert refused(requester.work.submit, assignment_id, "A1", []) == "Expired"
    assert requester.accept("A2", hit_id)


def test_work_is_abandoned_at_the_deadline_and_no_second_earlier(requester):
    hit_id = requester.hit(AssignmentDurationInSeconds=60)
    assignment_id = requester.accept("A1", hit_id)
    requester.clock.advance(59)
    assert status(requester, assignment_id) == "Accepted"
    requester.clock.advance(1)
    assert refused(requester.work.submit, assignment_id, "A1", []) == "Expired"
    assert status(requester, assignment_id) == "Abandoned"
    assert state(requester, hit_id) == ("Assignable", 0, 1, 0)
    again = requester.accept("A1", hit_id)
    assert again != assignment_id


def test_the_last_moment_counts(requester):
    assignment_id = requester.accept("A1", requester.hit(AssignmentDurationInSeconds=60))
    requester.clock.advance(59.75)
    assert requester.work.submit(assignment_id, "A1", [("a", "b")])


def test_submitting_twice_changes_nothing(requester):
    hit_id = requester.hit()
    assignment_id = requester.submit("A1", hit_id, [("answer", "first")])
    before = requester.boto.get_assignment(AssignmentId=assignment_id)["Assignment"]
    requester.clock.advance(5)
    assert not requester.work.submit(assignment_id, "A1", [("answer", "second")])
    assert requester.boto.get_assignment(AssignmentId=assignment_id)["Assignment"] == before
    assert refused(requester.work.return_assignment, assignment_id, "A1") == "Closed"
    requester.boto.approve_assignment(AssignmentId=assignment_id)
    assert not requester.work.submit(assignment_id, "A1", [("answer", "third")])


def test_nobody_touches_anothers_work(requester):
    assignment_id = requester.accept("A1", requester.hit())
    requester.work.register("A2")
    assert refused(requester.work.submit, assignment_id, "A2", []) == "NotYours"
    assert refused(requester.work.return_assignment, assignment_id, "A2") == "NotYours"


def test_one_assignment_for_a_worker_and_hit(requester):
    hit_id = requester.hit(MaxAssignments=3)
    first = requester.accept("A1", hit_id)
    assert requester.accept("A1", hit_id) == first  # the open one comes back
    requester.work.submit(first, "A1", [])
    assert refused(requester.work.accept, "A1", hit_id) == "AlreadyDone"
    requester.boto.reject_assignment(AssignmentId=first, RequesterFeedback="no")
    assert refused(requester.work.accept, "A1", hit_id) == "AlreadyDone"
    assert state(requester, hit_id) == ("Assignable", 0, 2, 1)


@pytest.mark.parametrize("delay", [0, 3600, 30 * DAY])
def test_approval_comes_by_itself(requester, delay):
    hit_id = requester.hit(AutoApprovalDelayInSeconds=delay)
    assignment_id = requester.submit("A1", hit_id)
    due = requester.clock.now() + delay
    if delay:
        requester.clock.advance(delay - 1)
        assert status(requester, assignment_id) == "Submitted"
        requester.clock.advance(1 + DAY)  # nobody looks at the moment itself
    assignment = requester.boto.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert assignment["AssignmentStatus"] == "Approved"
    assert (
        assignment["ApprovalTime"].timestamp() == assignment["AutoApprovalTime"].timestamp() == due
    )
    assert (
        requester.code("approve_assignment", AssignmentId=assignment_id) == "InvalidAssignmentState"
    )


def test_a_rejected_one_is_not_approved_by_time(requester):
    assignment_id = requester.submit("A1", requester.hit(AutoApprovalDelayInSeconds=60))
    requester.boto.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="no")
    requester.clock.advance(DAY)
    assert status(requester, assignment_id) == "Rejected"


def test_a_hit_expires(requester):
    hit_id = requester.hit(LifetimeInSeconds=60, MaxAssignments=3)
    requester.submit("A1", hit_id)
    at_work = requester.accept("A2", hit_id)
    requester.clock.advance(60)
    assert state(requester, hit_id) == ("Unassignable", 1, 1, 0)
    requester.work.register("A3")
    assert refused(requester.work.accept, "A3", hit_id) == "Expired"
    assert requester.work.offers("A3") == []
    assert requester.work.submit(at_work, "A2", [])  # who was at work may finish
    assert state(requester, hit_id) == ("Reviewable", 0, 1, 0)


def test_an_expired_hit_whose_worker_leaves_is_reviewable(requester):
    hit_id = requester.hit(LifetimeInSeconds=60)
    assignment_id = requester.accept("A1", hit_id)
    requester.clock.advance(60)
    requester.work.return_assignment(assignment_id, "A1")
    assert state(requester, hit_id)[0] == "Reviewable"


def test_extending_makes_an_expired_hit_assignable_again(requester):
    hit_id = requester.hit(LifetimeInSeconds=60)
    requester.clock.advance(60)
    requester.boto.update_hit_review_status(HITId=hit_id)
    assert requester.get(hit_id)["HITReviewStatus"] == "MarkedForReview"
    later = requester.clock.now() + 60
    requester.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=later)
    assert state(requester, hit_id) == ("Assignable", 0, 1, 0)
    assert requester.get(hit_id)["HITReviewStatus"] == "NotReviewed"
    requester.submit("A1", hit_id)
    requester.clock.advance(61)
    assert state(requester, hit_id)[0] == "Reviewable"


def test_further_places_reopen_a_hit_that_is_not_expired(requester):
    hit_id = requester.hit(LifetimeInSeconds=60)
    requester.submit("A1", hit_id)
    more = {"HITId": hit_id, "NumberOfAdditionalAssignments": 1}
    requester.boto.create_additional_assignments_for_hit(**more)
    assert state(requester, hit_id) == ("Assignable", 0, 1, 0)
    requester.clock.advance(60)
    requester.boto.create_additional_assignments_for_hit(**more)
    assert state(requester, hit_id) == ("Reviewable", 0, 2, 0)


def test_expiring_at_once(requester):
    hit_id = requester.hit(MaxAssignments=2)
    assignment_id = requester.accept("A1", hit_id)
    requester.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    assert state(requester, hit_id)[0] == "Unassignable"
    requester.work.submit(assignment_id, "A1", [])
    assert state(requester, hit_id)[0] == "Reviewable"


def test_review_status_goes_there_and_back(requester):
    hit_id = requester.hit()
    review = requester.boto.update_hit_review_status
    assert requester.code("update_hit_review_status", HITId=hit_id) == "InvalidHITState"
    requester.submit("A1", hit_id)
    back = {"HITId": hit_id, "Revert": True}
    assert requester.code("update_hit_review_status", **back) == "InvalidHITState"
    review(HITId=hit_id)
    assert requester.code("update_hit_review_status", HITId=hit_id) == "InvalidHITState"
    review(**back)
    hit = requester.get(hit_id)
    assert (hit["HITStatus"], hit["HITReviewStatus"]) == ("Reviewable", "NotReviewed")


def test_only_a_hit_that_is_done_with_is_deleted(requester):
    hit_id = requester.hit()
    assert requester.code("delete_hit", HITId=hit_id) == "InvalidHITState"
    assignment_id = requester.accept("A1", hit_id)
    assert requester.code("delete_hit", HITId=hit_id) == "InvalidHITState"
    requester.work.submit(assignment_id, "A1", [])
    code, message = requester.refused("delete_hit", HITId=hit_id)
    assert code == "InvalidHITState"
    assert "not yet reviewed" in message
    requester.boto.approve_assignment(AssignmentId=assignment_id)
    requester.boto.delete_hit(HITId=hit_id)
    assert refused(requester.work.preview, "A1", hit_id) == "Unknown"


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("delete_hit", {}),
        ("update_hit_review_status", {}),
        ("create_additional_assignments_for_hit", {"NumberOfAdditionalAssignments": 1}),
        ("update_hit_type_of_hit", {"HITTypeId": None}),
    ],
)
def test_a_deleted_hit_stays_deleted(requester, operation, more):
    hit_id = requester.hit()
    if "HITTypeId" in more:
        more = {"HITTypeId": requester.get(hit_id)["HITTypeId"]}
    requester.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    requester.boto.delete_hit(HITId=hit_id)
    assert requester.code(operation, HITId=hit_id, **more) == "InvalidHITState"
    requester.clock.advance(365 * DAY)
    assert state(requester, hit_id)[0] == "Disposed"


def test_expiring_a_deleted_hit_again_changes_nothing(requester):
    hit_id = requester.hit()
    requester.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    requester.boto.delete_hit(HITId=hit_id)
    deleted = requester.get(hit_id)
    for when in (0, requester.clock.now() + DAY):
        requester.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=when)
        assert requester.get(hit_id) == deleted


def test_a_type_that_changes_counts_for_those_who_accept_later(requester, examples):
    hit_id = requester.hit(MaxAssignments=2)
    first = requester.accept("A1", hit_id)
    kind = requester.boto.create_hit_type(**examples.KIND | {
        "Reward": "0.50", "AssignmentDurationInSeconds": 60, "AutoApprovalDelayInSeconds": 60,
    })  # fmt: skip
    requester.boto.update_hit_type_of_hit(HITId=hit_id, HITTypeId=kind["HITTypeId"])
    second = requester.accept("A2", hit_id)
    requester.clock.advance(60)
    assert status(requester, second) == "Abandoned"
    assert status(requester, first) == "Accepted"
    requester.work.submit(first, "A1", [])
    requester.clock.advance(60)
    assert status(requester, first) == "Submitted"
    assert [str(assignment.reward) for assignment in requester.work.history("A1")] == ["0.25"]


def test_tokens_are_forgotten_after_a_day(requester, examples):
    parameters = examples.HIT | {"UniqueRequestToken": "t"}
    first = requester.hit(**parameters)
    requester.clock.advance(DAY - 1)
    assert first in requester.refused("create_hit", **parameters)[1]
    requester.clock.advance(1)
    assert requester.hit(**parameters) != first


def test_what_was_due_while_nobody_looked_is_settled_in_its_order(requester):
    hit_id = requester.hit(LifetimeInSeconds=3600, AssignmentDurationInSeconds=60, MaxAssignments=3,
                           AutoApprovalDelayInSeconds=120)  # fmt: skip
    begin = requester.clock.now()
    submitted = requester.submit("A1", hit_id)
    abandoned = requester.accept("A2", hit_id)
    requester.clock.advance(365 * DAY)
    assert state(requester, hit_id) == ("Reviewable", 0, 2, 1)
    assert status(requester, abandoned) == "Abandoned"
    assignment = requester.boto.get_assignment(AssignmentId=submitted)["Assignment"]
    assert assignment["ApprovalTime"].timestamp() == begin + 120
