"""Errors of the API: two shapes, codes, and valid responses in every case."""

import json

import pytest

JSON = "application/x-amz-json-1.1"
TARGET = "MTurkRequesterServiceV20170117."


def refusal(answer):
    """Check the form of an error response; return its code."""
    status, headers, body = answer
    result = json.loads(body)
    assert status == 400
    assert headers["content-type"] == JSON
    assert set(result) == {"__type", "Message", "TurkErrorCode"}
    assert result["__type"] == "RequestError"
    return result["TurkErrorCode"]


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"null", b'"x"', b"1", b"\xff\xfe\xfa", b"{" * 100_000, b"[" * 100_000,
     b'{"MaxResults": NaN}', b'{"MaxResults": 1e999}', b'{"MaxResults": ' + b"9" * 5_000 + b"}",
     b'{"MaxResults": ' + b"9" * 400 + b"}", b'{"MaxResults": "5"}', b'{"MaxResults": true}',
     b'{"MaxResults": 5.0}', b'{"MaxResults": {}}', b'{"\\ud800": 1}', b'{"Nothing": 1}',
     b'{"NextToken": "\\ud800"}', b'{"NextToken": "\\u0000"}', b'{"NextToken": []}'],
)  # fmt: skip
def test_bodies_that_are_no_request(shared, body):
    assert refusal(shared.post("ListHITs", body)) == "ParameterValidationError"


def test_an_empty_body_and_nothing_are_nothing(shared):
    for body in (b"", b"{}", b'{"NextToken": null}', b' {"MaxResults": 5} '):
        assert shared.post("ListHITs", body)[0] == 200


def test_a_body_beyond_a_megabyte(shared):
    body = b'{"Question": "' + b"x" * 1_000_000 + b'"}'
    assert refusal(shared.post("CreateHIT", body)) == "RequestEntityTooLarge"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Amz-Target": ""},
        {"X-Amz-Target": "ListHITs"},
        {"X-Amz-Target": TARGET},
        {"X-Amz-Target": f"{TARGET}listhits"},
        {"X-Amz-Target": f"{TARGET}ListHITs\xe9"},
        {"X-Amz-Target": "Other.ListHITs"},
        {"X-Amz-Target": f"{TARGET}__init__"},
    ],
)
def test_operations_that_are_none(shared, headers):
    assert refusal(shared.post("", b"{}", headers)) == "UnknownOperationException"


@pytest.mark.parametrize(
    "headers",
    [{"Content-Type": "text/html"}, {"Authorization": "Basic YTpi"}, {"X-Amz-Date": "yesterday"},
     {"Content-Encoding": "gzip"}, {"X-Amz-Security-Token": "x"}],
)  # fmt: skip
def test_other_headers_do_not_matter_here(shared, headers):
    sent = {"X-Amz-Target": f"{TARGET}GetAccountBalance"} | headers
    status, _, body = shared.post("", b"{}", sent)
    assert status == 200
    assert json.loads(body)["OnHoldBalance"]


def test_all_that_is_wrong_is_named_at_once(shared):
    code, message = shared.refused("create_hit", Title="t" * 200, Reward="much")
    assert code == "ParameterValidationError"
    for name in ("Reward", "Description", "LifetimeInSeconds", "AssignmentDurationInSeconds"):
        assert f"CreateHIT.{name}" in message


def test_a_long_value_is_not_repeated_whole(shared):
    body = json.dumps({"Status": "x" * 100_000, "y" * 100_000: 1}).encode()
    answer = shared.post("ListReviewableHITs", body)
    assert refusal(answer) == "ParameterValidationError"
    assert len(answer[2]) < 2_000


def test_every_operation_of_botocore_is_there_and_no_other(examples):
    from mturk.service.api.operations import OPERATIONS

    assert set(OPERATIONS) == set(examples.service_model().operation_names)
    assert len(OPERATIONS) == 39


def test_a_failure_of_the_service_is_a_fault_that_boto3_tries_again(requester, monkeypatch):
    from mturk.service.api.operations import OPERATIONS

    working, calls = OPERATIONS["GetAccountBalance"], []

    def failing(call, parameters):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a secret")
        return working(call, parameters)

    monkeypatch.setitem(OPERATIONS, "GetAccountBalance", failing)
    assert requester.balance() == ("10000.00", "0.00")
    assert len(calls) == 2
    calls.clear()
    status, _, body = requester.post("GetAccountBalance", b"{}")
    assert status == 500
    assert json.loads(body)["__type"] == json.loads(body)["TurkErrorCode"] == "ServiceFault"
    assert b"secret" not in body


def test_a_failed_call_leaves_nothing_behind(requester, examples, monkeypatch):
    from mturk.service.api.operations import OPERATIONS

    working = OPERATIONS["CreateHIT"]

    def failing(call, parameters):
        working(call, parameters)
        raise RuntimeError

    monkeypatch.setitem(OPERATIONS, "CreateHIT", failing)
    body = json.dumps(examples.HIT | {"UniqueRequestToken": "t"}).encode()
    assert requester.post("CreateHIT", body)[0] == 500
    monkeypatch.undo()
    assert requester.boto.list_hits()["HITs"] == []
    assert requester.balance() == ("10000.00", "0.00")
    assert requester.hit(UniqueRequestToken="t")
