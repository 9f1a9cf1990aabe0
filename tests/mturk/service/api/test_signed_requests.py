"""A service with keys: accepted and refused requests, error messages and log."""

import datetime
import logging

import pytest
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from mturk.service.monitoring.logs import formatter
from mturk.service.server import ServerOptions

KEY, SECRET = "LABORATORY", "a secret of the laboratory"
WRONG = "what somebody guessed instead"
TARGET = "MTurkRequesterServiceV20170117."


@pytest.fixture(scope="module")
def guarded(endpoint_running, tmp_path_factory):
    """A service with one key and the system clock."""
    now = datetime.datetime.now(datetime.UTC).timestamp()
    folder = tmp_path_factory.mktemp("guarded")
    with endpoint_running(folder, ServerOptions(port=0, keys={KEY: SECRET}), now) as service:
        yield service


def client(service, key=KEY, secret=SECRET):
    return service.client(aws_access_key_id=key, aws_secret_access_key=secret)


def refusal(service, **keys):
    with pytest.raises(ClientError) as caught:
        client(service, **keys).get_account_balance()
    return caught.value.response["Error"]["Code"]


def signed(service, operation, body=b"{}"):
    """Return the headers of a request signed by botocore."""
    headers = {"X-Amz-Target": TARGET + operation, "Content-Type": "application/x-amz-json-1.1"}
    request = AWSRequest("POST", f"{service.api}/", data=body, headers=headers)
    SigV4Auth(Credentials(KEY, SECRET), "mturk-requester", "us-east-1").add_auth(request)
    return [(name, str(value)) for name, value in request.headers.items()]


def post(service, headers, body=b"{}"):
    """Send raw headers, including repeated ones; return the JSON of the response."""
    sent = urllib3.HTTPHeaderDict()
    for name, value in headers:
        sent.add(name, value)
    return urllib3.request("POST", f"{service.api}/", headers=sent, body=body, timeout=300).json()


def test_who_has_the_key_is_let_in(guarded):
    assert client(guarded).get_account_balance()["AvailableBalance"] == "10000.00"


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"secret": WRONG}, "InvalidSignatureException"),
        ({"key": "NOBODY"}, "UnrecognizedClientException"),
    ],
)
def test_others_are_refused_in_amazons_words(guarded, keys, code):
    assert refusal(guarded, **keys) == code


def test_credentials_of_another_region_are_refused(guarded):
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    with pytest.raises(ClientError, match="'eu-west-1'; use us-east-1") as caught:
        guarded.client(region_name="eu-west-1", **keys).get_account_balance()
    assert caught.value.response["Error"]["Code"] == "InvalidSignatureException"


def test_a_request_is_good_for_a_quarter_of_an_hour_of_the_services_clock(guarded):
    began = guarded.clock.now()
    headers = signed(guarded, "ListHITs")
    try:
        for late in (-890, 890):
            guarded.clock.time = began + late
            assert post(guarded, headers)["NumResults"] == 0
        for late in (-910, 910):
            guarded.clock.time = began + late
            assert post(guarded, headers)["__type"] == "InvalidSignatureException"
    finally:
        guarded.clock.time = began


def test_what_is_not_signed_is_refused(guarded):
    plain = [("X-Amz-Target", f"{TARGET}ListHITs")]
    assert post(guarded, plain)["__type"] == "MissingAuthenticationTokenException"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("X-Amz-Target", "InvalidSignatureException"),
        ("X-Amz-Date", "InvalidSignatureException"),
        ("Authorization", "MissingAuthenticationTokenException"),
    ],
)
def test_a_signed_header_that_is_left_out_is_refused(guarded, name, code):
    headers = [(key, value) for key, value in signed(guarded, "ListHITs") if key != name]
    assert post(guarded, headers)["__type"] == code


def test_a_signed_request_does_not_become_another_one(guarded):
    headers = signed(guarded, "ListHITs")
    other = ("X-Amz-Target", f"{TARGET}GetAccountBalance")
    changed = [other if name == other[0] else (name, value) for name, value in headers]
    for forged in (
        changed,
        [other, *headers],
        [*headers, other],
    ):  # in its place, before and after it
        assert post(guarded, forged)["__type"] == "InvalidSignatureException"
    assert post(guarded, headers, b'{"MaxResults": 1}')["__type"] == "InvalidSignatureException"
    assert post(guarded, headers)["NumResults"] == 0


def test_no_secret_is_logged(guarded, caplog):
    with caplog.at_level(logging.DEBUG, "mturk"):
        client(guarded).get_account_balance()
        refusal(guarded, secret=WRONG)
        post(guarded, signed(guarded, "ListHITs"))
    lines = "\n".join(map(formatter("json").format, caplog.records))
    assert '"operation": "GetAccountBalance"' in lines
    assert '"outcome": "InvalidSignatureException"' in lines
    authorization = dict(signed(guarded, "ListHITs"))["Authorization"]
    for private in (KEY, SECRET, WRONG, authorization.rpartition("=")[2]):
        assert private not in lines
