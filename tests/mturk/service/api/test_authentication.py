"""Signatures by botocore are accepted; every modification of a signed request is refused."""

import datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from mturk.service.api.authentication import SignatureError, verify

KEY, SECRET = "AKIDEXAMPLE", "a secret that only the laboratory has"
KEYS = {KEY: SECRET, "OTHER": "another secret of the laboratory"}
URL = "http://127.0.0.1:8765/"
BODY = b'{"HITId": "3ABC"}'


@pytest.fixture
def signed(monkeypatch):
    """Return (headers, time) of a request signed by botocore `ago` seconds before now."""

    def make(key=KEY, secret=SECRET, service="mturk-requester", ago=0, token=None, extra=None):
        now = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.UTC)
        then = now - datetime.timedelta(seconds=ago)
        monkeypatch.setattr(
            "botocore.auth.get_current_datetime",
            lambda remove_tzinfo=True: then.replace(tzinfo=None) if remove_tzinfo else then,
        )
        headers = {
            "X-Amz-Target": "MTurkRequesterServiceV20170117.GetHIT",
            "Content-Type": "application/x-amz-json-1.1",
        } | (extra or {})
        request = AWSRequest("POST", URL, data=BODY, headers=headers)
        SigV4Auth(Credentials(key, secret, token), service, "us-east-1").add_auth(request)
        result = {name.lower(): str(value) for name, value in request.headers.items()}
        return result | {"host": "127.0.0.1:8765"}, now.timestamp()

    return make


def refusal(headers, now, body=BODY, method="POST", path="/"):
    with pytest.raises(SignatureError) as caught:
        verify(KEYS, method, path, headers, body, now)
    assert SECRET not in str(caught.value)
    return caught.value.code


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"ago": 14 * 60},
        {"ago": -14 * 60},
        {"token": "a session's token"},
        {"extra": {"X-Amz-Something": "a   b"}},
        {"key": "OTHER", "secret": KEYS["OTHER"]},
    ],
)
def test_what_botocore_signs_is_accepted(signed, how):
    headers, now = signed(**how)
    assert verify(KEYS, "POST", "/", headers, BODY, now) == how.get("key", KEY)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"secret": "wrong"}, "InvalidSignatureException"),
        ({"key": "NOBODY"}, "UnrecognizedClientException"),
        ({"service": "s3"}, "UnrecognizedClientException"),
        ({"ago": 16 * 60}, "InvalidSignatureException"),
        ({"ago": -16 * 60}, "InvalidSignatureException"),
    ],
)
def test_what_others_sign_or_is_old_is_refused(signed, how, code):
    assert refusal(*signed(**how)) == code


@pytest.mark.parametrize("name", ["x-amz-target", "x-amz-date", "host"])
def test_a_signed_header_that_was_changed_is_refused(signed, name):
    headers, now = signed()
    changed = headers[name].replace("0", "1") if name == "x-amz-date" else headers[name] + "x"
    assert refusal(headers | {name: changed}, now) == "InvalidSignatureException"


def test_a_changed_body_method_or_path_is_refused(signed):
    headers, now = signed()
    for change in ({"body": b"{}"}, {"method": "GET"}, {"path": "/other"}):
        assert refusal(headers, now, **change) == "InvalidSignatureException"


def test_what_must_be_signed_is_asked_for(signed):
    headers, now = signed()
    without = headers["authorization"].replace(";x-amz-target", "")
    assert without != headers["authorization"]
    assert refusal(headers | {"authorization": without}, now) == "IncompleteSignatureException"


@pytest.mark.parametrize(
    "authorization", ["", "Basic eDp5", "AWS4-HMAC-SHA256 Credential=é", "AWS4-HMAC-SHA256 " * 1000]
)
def test_no_signature_or_none_that_can_be_read_is_refused(signed, authorization):
    headers, now = signed()
    result = refusal(headers | {"authorization": authorization}, now)
    assert result == "MissingAuthenticationTokenException"
