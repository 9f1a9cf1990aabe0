from decimal import Decimal

import pytest

from mturk.study.top_up import execute_top_up, plan_republished_hits, plan_top_up
from mturk.study.valid_answers import read_valid_answers


def planned(study):
    hits = study.collect().hits
    return plan_top_up(study.book, hits, read_valid_answers(study.book))


def execute(study):
    plan = planned(study)
    done = execute_top_up(study.client, study.book, plan, study.now() + 3600)
    assert done.refused == ()
    return plan


def reject(study, assignment_id):
    study.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="no")


def test_expected_answers_are_not_missing(study):
    assert planned(study).is_empty
    study.submit("A1", study.hit_ids()[0])
    study.work.accept("A1", study.hit_ids()[1])
    plan = planned(study)
    assert plan.is_empty
    assert plan.missing_judgments == {}


def test_rejected_answers_extend_hit(study):
    first = study.hit_ids()[0]
    ids = [study.submit(f"A{n}", first) for n in range(5)]
    reject(study, ids[0])
    reject(study, ids[1])
    plan = planned(study)
    assert sorted(plan.missing_judgments.values()) == [2, 2]
    assert [(extension.target, extension.amount) for extension in plan.extensions] == [(first, "7")]
    assert (plan.reopen, plan.republish) == ((), ())
    assert plan.cost == Decimal("0.72")  # 2 x (0.30 + 0.06)
    execute(study)
    assert study.hit(first)["MaxAssignments"] == 7
    assert study.hit(first)["HITStatus"] == "Assignable"
    assert study.book.hits()[0].max_assignments == 7
    assert planned(study).is_empty  # they are on their way
    study.submit("A8", first)
    study.submit("A9", first)
    assert planned(study).is_empty


def test_expired_assignments_are_reopened(study):
    first = study.hit_ids()[0]
    study.submit("A1", first)
    study.client.update_expiration_for_hit(HITId=first, ExpireAt=0)
    plan = execute(study)
    assert sorted(plan.missing_judgments.values()) == [4, 4]
    assert ([hit.hit_id for hit in plan.reopen], plan.extensions, plan.republish) == (
        [first],
        (),
        (),
    )
    assert plan.cost == Decimal("1.44")  # 4 x 0.36: the service gave the money back
    assert study.hit(first)["HITStatus"] == "Assignable"
    assert planned(study).is_empty


def test_expired_hit_with_rejection_is_reopened_and_extended(study):
    first = study.hit_ids()[0]
    for n in range(4):
        reject(study, study.submit(f"A{n}", first))
    study.client.update_expiration_for_hit(HITId=first, ExpireAt=0)
    plan = execute(study)
    assert [hit.hit_id for hit in plan.reopen] == [first]
    assert [extension.amount for extension in plan.extensions] == [
        "9"
    ]  # 1 place is left, 4 more are needed
    assert study.hit(first)["NumberOfAssignmentsAvailable"] == 5
    assert planned(study).is_empty


def test_extended_expired_hit_is_offered_again(study):
    first = study.hit_ids()[0]
    ids = [study.submit(f"A{n}", first) for n in range(5)]
    study.client.update_expiration_for_hit(HITId=first, ExpireAt=0)
    reject(study, ids[0])
    plan = execute(study)
    assert (plan.reopen, [extension.amount for extension in plan.extensions]) == ((), ["6"])
    there = study.hit(first)
    assert (there["HITStatus"], there["NumberOfAssignmentsAvailable"]) == ("Assignable", 1)
    assert there["Expiration"].timestamp() == study.now() + 3600


def test_hit_that_cannot_be_extended_is_republished(study):
    first, second = study.hit_ids()
    for n in range(5):
        reject(study, study.submit(f"A{n}", first))
    plan = planned(study)  # 5 more would make 10
    assert ([one[1] for one in plan.republish], plan.extensions) == ([5], ())
    assert plan.cost == Decimal("1.80")
    execute(study)
    *_, new = study.book.hits()
    assert new.max_assignments == 5
    there, before = study.hit(new.hit_id), study.hit(first)
    assert there["Question"] == before["Question"]
    assert there["HITTypeId"] == before["HITTypeId"]
    _, digest, _, number = before["RequesterAnnotation"].split(":")
    assert there["RequesterAnnotation"] == f"giccs:{digest}:1:{number}"
    assert planned(study).is_empty
    for n in range(10, 15):
        study.submit(f"A{n}", new.hit_id)
    study.submit_all([])
    for n in range(5):
        study.submit(f"B{n}", second)
    assert planned(study).is_empty
    assert all(n == 5 for n in read_valid_answers(study.book).answers_per_tuple.values())


def test_deleted_hit_is_republished(study):
    first = study.hit_ids()[0]
    reject(study, study.submit("A1", first))
    study.client.update_expiration_for_hit(HITId=first, ExpireAt=0)
    study.collect()
    study.client.delete_hit(HITId=first)
    plan = execute(study)
    assert ([number for _, number in plan.republish], plan.reopen, plan.extensions) == ([5], (), ())
    assert planned(study).is_empty


def test_worker_counts_once_over_rounds(study):
    first = study.hit_ids()[0]
    for n in range(4):
        reject(study, study.submit(f"A{n}", first))
    study.submit("A4", first)
    study.client.create_additional_assignments_for_hit(HITId=first, NumberOfAdditionalAssignments=4)
    for n in range(5, 9):
        reject(study, study.submit(f"A{n}", first))
    execute(study)  # the HIT has 9 assignments, so there is a second one of 4
    new = study.book.hits()[-1]
    study.submit("A4", new.hit_id)
    study.collect()
    result = read_valid_answers(study.book)
    assert result.counts["again"] == 2
    assert sorted(result.answers_per_tuple.values()) == [0, 0, 1, 1]
    plan = planned(study)
    assert sorted(plan.missing_judgments.values()) == [1, 1]
    assert [(extension.target, extension.amount) for extension in plan.extensions] == [
        (new.hit_id, "5")
    ]


def test_tuple_with_most_missing_judgments_determines_extension(study):
    first = study.hit_ids()[0]
    good = study.fields(first)
    half = [good[0], *good[2:]]  # the first tuple has no worst item
    for n in range(5):
        study.submit(f"A{n}", first, half if n == 0 else good)
    plan = planned(study)
    assert list(plan.missing_judgments.values()) == [1]
    assert [extension.amount for extension in plan.extensions] == ["6"]


def test_unpublished_hits_count_as_expected(study):
    first = study.hit_ids()[0]
    for n in range(5):
        reject(study, study.submit(f"A{n}", first))
    plan = planned(study)
    ((new, assignments),) = plan_republished_hits(study.book, plan.republish)
    study.book.add_hits([new], assignments)  # and here it was interrupted
    left = execute(study)
    assert (left.missing_judgments, left.n_unpublished, left.cost) == ({}, 1, Decimal("1.80"))
    assert planned(study).is_empty
    assert len(study.running.annotations()) == 3


@pytest.mark.parametrize("fault", ["error after", "drop after"])
def test_extension_with_lost_response_is_executed_once(study, fault):
    first = study.hit_ids()[0]
    for n in range(5):
        one = study.submit(f"A{n}", first)
    reject(study, one)
    lost = [fault]
    study.running.faults.choose = lambda operation, number: (
        lost.pop() if lost and operation == "CreateAdditionalAssignmentsForHIT" else None
    )
    execute(study)
    assert study.hit(first)["MaxAssignments"] == 6
    assert [action.state for action in study.book.actions()] == ["done"]
