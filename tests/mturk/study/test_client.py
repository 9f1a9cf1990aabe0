import pytest

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

from mturk.study.client import (
    LOCAL,
    PRODUCTION,
    SANDBOX,
    Endpoint,
    ServiceError,
    connect,
    resolve,
    translate_errors,
)


def test_endpoint_names_and_addresses():
    assert resolve("local") == Endpoint(LOCAL, loopback=True)
    assert resolve("sandbox") == Endpoint(SANDBOX, loopback=False)
    assert resolve("https://study.example.org:8443/") == Endpoint(
        "https://study.example.org:8443", loopback=False
    )
    for here in ("http://localhost:9", "http://127.0.0.2:9", "http://[::1]:9"):
        assert resolve(here).loopback
    for there in ("http://192.0.2.1", "http://localhost.example.org", "http://0.0.0.0:8765"):
        assert not resolve(there).loopback
    assert resolve("sandbox").amazon
    assert not resolve("https://amazonaws.com.example.org").amazon


@pytest.mark.parametrize(
    "wrong",
    [
        "prod", "", "127.0.0.1:8765", "ftp://127.0.0.1", "http://", "http://h/path", "http://h?q",
        "http://user:secret@h", "http://h:port", "http://[::1",
    ],
)  # fmt: skip
def test_invalid_endpoints_are_refused(wrong):
    with pytest.raises(ValueError, match="local, sandbox, production or an address"):
        resolve(wrong)


@pytest.mark.parametrize(
    "name", ["production", PRODUCTION, f"{PRODUCTION.upper()[:5]}{PRODUCTION[5:]}/"]
)
def test_production_requires_confirmation(name):
    with pytest.raises(ValueError, match="closed on 2026-09-30"):
        resolve(name)
    assert resolve("production", insist_on_production=True) == Endpoint(PRODUCTION, loopback=False)


def test_local_service_needs_no_keys_region_or_proxy(running, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL_MTURK", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    client = connect(resolve(running.url))
    assert client.get_account_balance()["AvailableBalance"] == "100000.00"
    assert client.meta.region_name == "us-east-1"
    assert client.meta.endpoint_url == running.url


def test_configured_keys_are_used(running, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAMINE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    seen = []
    client = connect(resolve(running.url))
    client.meta.events.register(
        "before-send.mturk", lambda request, **_: seen.append(request.headers["Authorization"])
    )
    client.get_account_balance()
    assert b"Credential=AKIAMINE/" in seen[0]
    assert b"/us-east-1/mturk-requester/aws4_request" in seen[0]


def test_remote_service_requires_keys():
    client = connect(Endpoint("http://192.0.2.1", loopback=False), timeout=0.2, max_attempts=1)
    with pytest.raises(ServiceError, match="expected AWS_ACCESS_KEY_ID"), translate_errors():
        client.get_account_balance()


def test_missing_service_is_reported_immediately():
    with pytest.raises(
        ServiceError, match=r"does not respond .*start the service with `giccs annotate serve`"
    ):
        connect(Endpoint("http://127.0.0.1:1", loopback=True))


def test_boto3_without_mturk_is_reported(running, monkeypatch):
    """botocore removes discontinued services; this loader lists all services except mturk."""
    from botocore.loaders import Loader

    listed = Loader.list_available_services
    monkeypatch.setattr(
        Loader, "list_available_services",
        lambda self, type_name: [name for name in listed(self, type_name) if name != "mturk"],
    )  # fmt: skip
    with pytest.raises(ServiceError, match="has no client for Mechanical Turk"):
        connect(resolve(running.url))


def test_invalid_aws_settings_are_reported(running, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ServiceError, match=r"the AWS settings are invalid: .*nobody"):
        connect(resolve(running.url))


def test_refusals_and_timeouts_are_reported(running):
    client = connect(resolve(running.url), max_attempts=1)
    unknown = r"GetHIT was refused: .*3NONE.* \(AWS.MechanicalTurk.HITDo"
    with pytest.raises(ServiceError, match=unknown), translate_errors():
        client.get_hit(HITId="3NONE")
    running.faults.choose = lambda operation, number: "hang before"
    impatient = connect(resolve(running.url), timeout=1.0, max_attempts=1)
    with (
        pytest.raises(ServiceError, match="the service does not respond: Read timeout"),
        translate_errors(),
    ):
        impatient.get_account_balance()


def test_truncated_response_is_an_error(running):
    """botocore itself parses it as an empty response."""
    client = connect(resolve(running.url), max_attempts=1)
    running.faults.choose = lambda operation, number: "drop after"
    with pytest.raises(ServiceError, match="GetAccountBalance: the response was truncated"):
        client.get_account_balance()
