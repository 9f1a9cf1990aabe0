"""Random requests from botocore's shapes, valid and invalid: botocore can parse every response.

All go over the wire. A status of 500 is a failure of the service and fails the test.
"""

import json

import pytest
from botocore.parsers import create_parser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mturk.service.api.operations import OPERATIONS
from tests.nightly import first_in_ci

NUMBERS = st.one_of(
    st.integers(-2, 40),
    st.sampled_from([100, 3600, 86_400, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, 10**30]),
    st.integers(),
)
STRANGE = st.sampled_from(
    ["", " ", "\0", "\ud800", "🙂", "\u202e", "]]>", "${B}", "<script>", "'; DROP TABLE hit; --", "%",
     "NaN", "null", "0", "-0", "1.00", "A" * 70, "ä" * 300, "3" + "0" * 29, "../../etc/passwd"]
)  # fmt: skip
WRONG = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), STRANGE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRANGE, inner, max_size=3),
    max_leaves=5,
)

SANE = {
    "LifetimeInSeconds": (30, 9_000), "AssignmentDurationInSeconds": (30, 9_000),
    "AutoApprovalDelayInSeconds": (1_000, 9_000), "MaxAssignments": (1, 9), "MaxResults": (1, 100),
    "RetryDelayInSeconds": (0, 99),
}  # fmt: skip
NEVER = ("NextToken", "Test")
LAST = ("DisassociateQualificationFromWorker", "DeleteQualificationType", "DeleteHIT")
ORDER = sorted(OPERATIONS, key=lambda name: LAST.index(name) if name in LAST else -1)
"""Operations that delete objects are last."""
REFUSED = {
    "DeleteHIT": "the HIT is not done with",
    "GetFileUploadURL": "no answer holds a file",
    "ListBonusPayments": "of a HIT or of an assignment; what is optional is drawn or not",
    "RejectAssignment": "it is approved by then",
    "RejectQualificationRequest": "it is accepted by then",
    "UpdateHITReviewStatus": "the HIT is not reviewable",
    "UpdateNotificationSettings": "what is needed is optional in the model",
}


class Shapes:
    """Strategies for botocore's shapes; ids are existing or unknown.

    With `sane`, required members have valid values, so that operations are executed.
    """

    def __init__(self, model, known, texts, *, sane=False):
        self.model, self.known, self.texts, self.sane = model, known, texts, sane

    def of(self, shape, name=""):
        return getattr(self, shape.type_name)(shape, name)

    def structure(self, shape, name):
        members = {name: self.of(inner, name) for name, inner in shape.members.items()}
        needed = {name: members[name] for name in shape.required_members}
        remainder = {name: inner for name, inner in members.items() if name not in needed}
        if self.sane:
            chosen_names = [
                name
                for name in remainder
                if name in self.texts or name in SANE or name in self.known
            ]
            remainder = {name: remainder[name] for name in chosen_names if name not in NEVER}
        return st.fixed_dictionaries(needed, optional=remainder)

    def list(self, shape, name):
        inner = self.of(shape.member, name.removesuffix("s"))
        return st.lists(inner, min_size=int(self.sane), max_size=3)

    def string(self, shape, name):
        if shape.enum:
            return st.sampled_from(shape.enum)
        if name in self.known:
            return st.sampled_from(self.known[name][: 1 if self.sane else None])
        if self.sane:
            return self.texts.get(name, st.text("äbc 🙂", min_size=1, max_size=20))
        if name in self.texts:
            return st.one_of(self.texts[name], st.text(max_size=40))
        return st.one_of(st.text(max_size=40), STRANGE)

    def integer(self, shape, name):
        return st.integers(*SANE.get(name, (1, 9))) if self.sane else NUMBERS

    long = integer

    def boolean(self, shape, name):
        return st.booleans()

    def timestamp(self, shape, name):
        soon = st.just(1.8e9 + 60)
        return soon if self.sane else st.one_of(st.floats(), st.integers(0, 2**40), soon)


@pytest.fixture(scope="module")
def shapes(shared, examples):
    """The strategies, for a service with an object of every kind."""
    type_id = shared.qualification(Name="fuzz")
    hits = [shared.hit(MaxAssignments=3) for _ in range(2)]
    done = [shared.submit(worker, hits[0]) for worker in ("A1", "A2")]
    done.append(shared.accept("A3", hits[0]))
    shared.work.request_qualification("A1", type_id)
    request = shared.boto.list_qualification_requests()["QualificationRequests"][0]
    token = shared.boto.list_hits(MaxResults=1)["NextToken"]
    known = {
        "HITId": [*hits, "3NONE"],
        "HITTypeId": [shared.get(hits[0])["HITTypeId"], "3NONE"],
        "AssignmentId": [*done, "3NONE"],
        "QualificationTypeId": [
            type_id, "00000000000000000040", "00000000000000000071", "000000000000000000L0", "3NONE",
        ],
        "WorkerId": ["A1", "A2", "A9"],
        "QualificationRequestId": [request["QualificationRequestId"], "3NONE"],
        "NextToken": [token, "MQ=="],
        "Country": ["DE", "US"],
        "Subdivision": ["NY"],
    }  # fmt: skip
    texts = {
        "Question": st.just(examples.QUESTION),
        "Test": st.just(examples.QUESTION),
        "Reward": st.sampled_from(["0.01", "1", "999999999999"]),
        "BonusAmount": st.sampled_from(["0.01", "0", "999999999999"]),
    }
    shared.grant("A1", type_id)
    return Shapes(examples.service_model(), known, texts)


def read(model, operation, answer):
    """Parse a response by botocore's parser; fail for wrong members and types."""
    status, headers, body = answer
    assert status in (200, 400), body
    json.loads(body, parse_constant=pytest.fail)
    shape = model.operation_model(operation).output_shape
    parser = create_parser(model.metadata["protocol"])
    result = parser.parse({"status_code": status, "headers": headers, "body": body}, shape)
    if status == 200:
        fits(shape, json.loads(body))
    else:
        assert result["Error"]["Code"] == "RequestError"
        assert json.loads(body)["TurkErrorCode"]
    return status


TYPES = {"string": str, "integer": int, "long": int, "boolean": bool, "timestamp": (int, float)}


def fits(shape, value):
    """Fail if a value does not match its shape, since botocore's parser is lenient."""
    if shape.type_name == "structure":
        assert set(value) <= set(shape.members)
        for name, one in value.items():
            fits(shape.members[name], one)
    elif shape.type_name == "list":
        for one in value:
            fits(shape.member, one)
    else:
        assert isinstance(value, TYPES[shape.type_name]), (shape, value)
        assert isinstance(value, bool) == (shape.type_name == "boolean")
        assert value in (getattr(shape, "enum", None) or [value])


def bounded(examples):
    return settings(
        max_examples=examples, deadline=None, derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )  # fmt: skip


def written(parameters):
    return json.dumps(parameters).encode()  # NaN and lone surrogates pass, as senders may let them


@pytest.mark.parametrize("operation", ORDER)
def test_requests_that_are_carried_out(shared, shapes, operation):
    sane = Shapes(shapes.model, shapes.known, shapes.texts, sane=True)
    strategy = sane.of(shapes.model.operation_model(operation).input_shape)
    seen = []

    @bounded(6)
    @given(strategy)
    def run(parameters):
        seen.append(read(shapes.model, operation, shared.post(operation, written(parameters))))

    run()
    assert 200 in seen or operation in REFUSED


@pytest.mark.parametrize("operation", ORDER)
@pytest.mark.parametrize("n_requests", first_in_ci([5, 50]))
def test_whole_requests(shared, shapes, operation, n_requests):
    strategy = shapes.of(shapes.model.operation_model(operation).input_shape)

    @bounded(n_requests)
    @given(strategy)
    def run(parameters):
        read(shapes.model, operation, shared.post(operation, written(parameters)))

    run()


@pytest.mark.parametrize("operation", ORDER)
@pytest.mark.parametrize("n_requests", first_in_ci([5, 50]))
def test_broken_requests(shared, shapes, operation, n_requests):
    strategy = shapes.of(shapes.model.operation_model(operation).input_shape)

    @bounded(n_requests)
    @given(strategy, st.data())
    def run(parameters, data):
        names = [*parameters, data.draw(STRANGE)]
        parameters[data.draw(st.sampled_from(names))] = data.draw(WRONG)
        body = written(parameters)
        if data.draw(st.booleans()):
            cut = data.draw(st.integers(0, len(body)))
            body = body[:cut] + data.draw(st.binary(max_size=3)) + body[cut:]
        read(shapes.model, operation, shared.post(operation, body))

    run()


HEADERS = st.dictionaries(
    st.sampled_from(["Content-Type", "X-Amz-Date", "Authorization", "X-Amz-User-Agent", "Accept"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40).map(str.strip),
)


@bounded(60)
@given(HEADERS, st.sampled_from([*OPERATIONS, "Nothing", ""]), st.binary(max_size=60))
def test_any_bytes_under_any_headers(shared, shapes, headers, operation, body):
    target = {"X-Amz-Target": f"MTurkRequesterServiceV20170117.{operation}"}
    known = operation if operation in OPERATIONS else "GetAccountBalance"
    read(shapes.model, known, shared.post(operation, body, headers | target))


def test_it_still_works_after_all_this(shared):
    available, on_hold = shared.balance()
    assert float(on_hold) >= 0
    assert available
    assert shared.hit(Title="after")
