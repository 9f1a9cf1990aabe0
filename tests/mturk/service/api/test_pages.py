"""Pagination: botocore's nine paginators, and modified tokens."""

import base64

import pytest

from tests.nightly import first_in_ci

COUNT = 7


@pytest.fixture(scope="module")
def full(shared):
    """Create COUNT entries in every list; return the parameters and expected results of the lists."""
    type_id = shared.qualification(Name="listed")
    requirements = [{"QualificationTypeId": type_id, "Comparator": "Exists"}]
    workers = [f"A{number}" for number in range(COUNT)]
    for worker in workers:
        shared.grant(worker, type_id)
    hits = [shared.hit(QualificationRequirements=requirements) for _ in range(COUNT)]
    many = shared.hit(MaxAssignments=COUNT)
    done = [shared.submit(worker, many) for worker in workers]
    for worker, assignment_id in zip(workers, done, strict=True):
        bonus = {"WorkerId": worker, "AssignmentId": assignment_id, "Reason": "r"}
        shared.boto.send_bonus(**bonus, BonusAmount="0.01")
    ready = [shared.hit() for _ in range(COUNT - 1)]
    for hit_id in ready:
        shared.submit("A1", hit_id)
    others = [shared.qualification(Name=f"other {number}") for number in range(COUNT - 1)]
    for worker in workers:
        shared.work.register(worker)
        shared.work.request_qualification(worker, others[0])
        shared.boto.create_worker_block(WorkerId=worker, Reason=worker)
    return {
        "list_hits": ({}, "HITId", [*hits, many, *ready][::-1]),
        "list_reviewable_hits": ({}, "HITId", [many, *ready][::-1]),
        "list_hits_for_qualification_type": (
            {"QualificationTypeId": type_id}, "HITId", hits[::-1],
        ),
        "list_assignments_for_hit": ({"HITId": many}, "AssignmentId", done),
        "list_bonus_payments": ({"HITId": many}, "AssignmentId", done),
        "list_worker_blocks": ({}, "WorkerId", workers),
        "list_workers_with_qualification_type": (
            {"QualificationTypeId": type_id}, "WorkerId", workers,
        ),
        "list_qualification_requests": ({}, "WorkerId", workers),
        "list_qualification_types": (
            {"MustBeRequestable": True}, "QualificationTypeId", [type_id, *others],
        ),
    }  # fmt: skip


LISTS = (
    "list_assignments_for_hit", "list_bonus_payments", "list_hits", "list_hits_for_qualification_type",
    "list_qualification_requests", "list_qualification_types", "list_reviewable_hits",
    "list_worker_blocks", "list_workers_with_qualification_type",
)  # fmt: skip


def test_these_are_all_lists_that_botocore_turns_pages_of(shared):
    lists = [name for name in dir(shared.boto) if name.startswith("list_")]
    assert [name for name in lists if shared.boto.can_paginate(name)] == list(LISTS)


@pytest.mark.parametrize("size", first_in_ci([3, 100, 1, COUNT], 2))
@pytest.mark.parametrize("operation", LISTS)
def test_a_paginator_finds_all_in_order(shared, full, operation, size):
    parameters, its_id, expected = full[operation]
    paginator = shared.boto.get_paginator(operation)
    pages = list(paginator.paginate(**parameters, PaginationConfig={"PageSize": size}))
    (key,) = (result_key.expression for result_key in paginator.result_keys)
    assert [row[its_id] for page in pages for row in page.get(key, ())] == expected
    assert [page["NumResults"] for page in pages] == [len(page[key]) for page in pages]
    assert len(pages) == -(-len(expected) // size) + 1
    assert pages[-1][key] == []
    assert ["NextToken" in page for page in pages] == [True] * (len(pages) - 1) + [False]


@pytest.mark.parametrize("operation", LISTS)
def test_ten_are_on_a_page_unless_asked(shared, full, operation):
    parameters, its_id, expected = full[operation]
    (key,) = (
        result_key.expression for result_key in shared.boto.get_paginator(operation).result_keys
    )
    result = getattr(shared.boto, operation)(**parameters)
    assert [row[its_id] for row in result[key]] == expected[:10]


def test_what_is_added_between_pages_neither_hides_nor_doubles(requester):
    ids = [requester.hit() for _ in range(4)]
    first = requester.boto.list_hits(MaxResults=2)
    requester.hit()
    requester.boto.update_expiration_for_hit(HITId=ids[3], ExpireAt=0)
    requester.boto.delete_hit(HITId=ids[3])
    remainder = requester.boto.list_hits(NextToken=first["NextToken"])
    result = [hit["HITId"] for hit in [*first["HITs"], *remainder["HITs"]]]
    assert result == ids[::-1]


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "MQ==",
        "ä",
        "=" * 200,
        encoded("ListHITs:"),
        encoded("ListHITs:-1"),
        encoded("ListHITs:01"),
        encoded("ListHITs:1 "),
        encoded("ListHITs:١"),
        encoded("ListHITs:" + "9" * 19),
        encoded("ListHITs:" + "9" * 150),
        encoded("ListWorkerBlocks:1"),
        encoded("ListHITs:1") + "!",
        encoded("ListHITs:1; DROP TABLE hit"),
    ],
)
@pytest.mark.parametrize("operation", ["list_hits", "list_worker_blocks"])
def test_a_token_that_was_not_given_is_refused(shared, operation, token):
    if token == encoded("ListWorkerBlocks:1") and operation == "list_worker_blocks":
        operation = "list_reviewable_hits"
    code, message = shared.refused(operation, NextToken=token)
    assert code == "ParameterValidationError"
    assert "NextToken" in message


def test_results_of_review_policies_have_no_pages(shared):
    parameters = {"HITId": shared.hit(), "NextToken": "MQ=="}
    assert (
        shared.code("list_review_policy_results_for_hit", **parameters)
        == "ParameterValidationError"
    )
