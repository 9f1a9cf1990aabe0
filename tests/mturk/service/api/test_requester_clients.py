"""Calls in the order in which common requester clients make them."""

from datetime import UTC, datetime


def test_otree_and_mephisto_read_until_an_empty_page(requester):
    hits = [requester.hit() for _ in range(5)]
    found, token = [], {}
    while True:
        page = requester.boto.list_hits(MaxResults=5, **token)
        if not page["HITs"]:
            break
        found += [hit["HITId"] for hit in page["HITs"]]
        token = {"NextToken": page["NextToken"]}
    assert found == hits[::-1]


def test_amti_lists_while_there_is_a_token(requester):
    hit_id = requester.hit(MaxAssignments=3)
    done = [requester.submit(worker, hit_id) for worker in ("A1", "A2", "A3")]
    pages = [requester.boto.list_assignments_for_hit(HITId=hit_id, MaxResults=2)]
    while pages[-1].get("NextToken"):
        pages.append(
            requester.boto.list_assignments_for_hit(
                HITId=hit_id, MaxResults=2, NextToken=pages[-1]["NextToken"]
            )
        )
    assert [row["AssignmentId"] for page in pages for row in page["Assignments"]] == done
    assert pages[-1]["NumResults"] == 0


def test_psiturk_reviews_with_empty_feedback_and_pays_a_bonus(requester):
    hit_id = requester.hit(MaxAssignments=2, UniqueRequestToken="psiturk")
    good, bad = (requester.submit(worker, hit_id) for worker in ("A1", "A2"))
    requester.boto.approve_assignment(
        AssignmentId=good, RequesterFeedback="", OverrideRejection=False
    )
    requester.boto.reject_assignment(AssignmentId=bad, RequesterFeedback="")
    requester.boto.send_bonus(WorkerId="A1", AssignmentId=good, BonusAmount="0.5", Reason="Thanks")
    (bonus,) = requester.boto.list_bonus_payments(AssignmentId=good)["BonusPayments"]
    assert bonus["BonusAmount"] == "0.50"
    statuses = [
        row["AssignmentStatus"]
        for page in requester.boto.get_paginator("list_assignments_for_hit").paginate(HITId=hit_id)
        for row in page["Assignments"]
    ]
    assert statuses == ["Approved", "Rejected"]


def test_dallinger_disables_a_hit_twice(requester):
    hit_id = requester.hit()

    def disable():
        requester.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=datetime(1970, 1, 1))
        return requester.unchecking.delete_hit(HITId=hit_id)

    assert disable()["ResponseMetadata"]["HTTPStatusCode"] == 200
    requester.boto.update_expiration_for_hit(
        HITId=hit_id, ExpireAt=datetime(2000, 1, 1, tzinfo=UTC)
    )
    assert "currently in the state 'Disposed'" in requester.refused("delete_hit", HITId=hit_id)[1]


def test_simple_amt_disables_all_hits_of_all_pages(requester):
    for _ in range(12):
        requester.hit()
    page = requester.boto.list_hits()
    while page["NumResults"]:
        for hit in page["HITs"]:
            requester.boto.update_expiration_for_hit(HITId=hit["HITId"], ExpireAt=0)
            requester.boto.delete_hit(HITId=hit["HITId"])
        page = requester.boto.list_hits(NextToken=page["NextToken"])
    assert requester.boto.list_hits()["HITs"] == []
