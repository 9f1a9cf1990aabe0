"""Inputs from botocore's shapes for every operation: no server error, and every answer fits the model."""

import json
import math

import pytest
from botocore.parsers import create_parser
from botocore.session import get_session
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODEL = get_session().get_service_model("mturk")
PARSER = create_parser("json")
ODD = [
    "",
    "a",
    "x" * 129,
    "ü",
    "🙂",
    "\x00",
    "\ud800",
    "]]>",
    "<",
    "' OR 1=1 --",
    "\u202e",
    "NaN",
    "A1\n",
]
AMOUNTS = ["0.05", "1", "0", "999999999.99", "5.", "-1", "0,05", "٣"]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([10**30, -(10**400), *ODD]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def there(shared, made):
    """What exists: an id of each kind, so that operations get further than to say that there is none."""
    hit, done = shared.hit(MaxAssignments=3), shared.hit()
    assignment = shared.submit("AONE", done)
    kind = shared.qualification(RetryDelayInSeconds=60)
    shared.grant("AONE", kind)
    shared.work.register("ATWO")
    shared.work.request_qualification("ATWO", kind)
    (asked,) = shared.boto.list_qualification_requests()["QualificationRequests"]
    return {
        "HITId": [hit, done],
        "HITTypeId": [shared.get(hit)["HITTypeId"]],
        "AssignmentId": [assignment, shared.accept("ATWO", hit)],
        "QualificationTypeId": [kind, "00000000000000000071", "000000000000000000L0"],
        "QualificationRequestId": [asked["QualificationRequestId"]],
        "WorkerId": ["AONE", "ATWO", "ANOBODY"],
        "WorkerIds": ["AONE", "ANOBODY"],
        "Question": [made.QUESTION, "<a/>", "<!DOCTYPE a>"],
        "Reward": AMOUNTS,
        "BonusAmount": AMOUNTS,
        "Country": ["DE", "US"],
    }


def values(shape, known, name=""):
    """Values of a shape: what could be meant, within its type."""
    if shape.type_name == "structure":
        members = {key: values(inner, known, key) for key, inner in shape.members.items()}
        required = {key: members.pop(key) for key in shape.required_members}
        return st.fixed_dictionaries(required, optional=members)
    if shape.type_name == "list":
        return st.lists(values(shape.member, known, name), max_size=3)
    if shape.type_name == "string":
        if shape.enum:
            return st.sampled_from(shape.enum)
        own = known.get(name, [])
        return st.sampled_from([*own, *own, *own, "some text", *ODD])
    if shape.type_name == "boolean":
        return st.booleans()
    if shape.type_name == "timestamp":
        return st.sampled_from([0, 1_800_000_100, 1.5, 253_402_300_799, 1e300, -1])
    return st.sampled_from([1, 2, 10, 30, 100, 600, 3600, 0, -5, 2**31, 2**63 - 1])


def damaged(parameters):
    """The same with some values that are of no shape at all."""
    return st.tuples(
        parameters, st.dictionaries(st.sampled_from(["HITId", "X", "Title"]), JUNK)
    ).map(lambda pair: pair[0] | pair[1])


def check(shape, value, place):
    """The answer has the members and types of the model, and nothing else."""
    if shape.type_name == "structure":
        assert value.keys() <= shape.members.keys(), place
        assert set(shape.required_members) <= value.keys(), place
        for key, inner in value.items():
            check(shape.members[key], inner, f"{place}.{key}")
    elif shape.type_name == "list":
        for inner in value:
            check(shape.member, inner, place)
    elif shape.type_name in ("string", "boolean"):
        assert type(value) is {"string": str, "boolean": bool}[shape.type_name], place
        assert shape.type_name != "string" or not shape.enum or value in shape.enum, place
    elif shape.type_name == "timestamp":
        assert math.isfinite(value), place
    else:
        assert type(value) is int, place


def answered(shared, operation, body):
    """Send a body as it is, and check the answer; return its status."""
    status, headers, data = shared.post(operation, body)
    assert status in (200, 400), data
    assert headers["content-type"] == "application/x-amz-json-1.1"
    shape = MODEL.operation_model(operation).output_shape
    parsed = PARSER.parse({"status_code": status, "headers": headers, "body": data}, shape)
    document = json.loads(data)
    if status == 400:
        assert document["__type"] == "RequestError"
        assert parsed["Error"]["Code"] == "RequestError"
        assert document["Message"]
        assert document["TurkErrorCode"]
    else:
        check(shape, document, operation)
    return status


@pytest.mark.parametrize("operation", MODEL.operation_names)
def test_whatever_comes_is_answered_in_the_service_s_words(shared, there, operation):
    shape = MODEL.operation_model(operation).input_shape
    meant = values(shape, there)

    @settings(
        max_examples=30, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.one_of(meant, meant, damaged(meant)))
    def send(parameters):
        answered(shared, operation, json.dumps(parameters))

    send()


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"1", b'"a"', b"{", b"\xff", b'{"HITId": 3', b"[" * 100_000, b"NaN"],
)
def test_a_body_that_is_no_object_is_a_parameter_error(shared, body):
    assert answered(shared, "GetHIT", body) == 400


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-Amz-Target": "GetHIT"}, {"X-Amz-Target": "MTurkRequesterServiceV20170117."},
     {"X-Amz-Target": "MTurkRequesterServiceV20170117.DropTables"}, {"X-Amz-Target": "é" * 9000}],
)  # fmt: skip
def test_what_names_no_operation_is_refused_in_json(shared, headers):
    status, _, data = shared.post(
        "GetHIT", b"{}", {k: v.encode("latin-1") for k, v in headers.items()}
    )
    assert status == 400
    assert json.loads(data)["TurkErrorCode"] == "UnknownOperationException"
