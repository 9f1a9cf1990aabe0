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


def test_names_and_addresses():
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
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match="local, sandbox, production or an address"):
        resolve(wrong)


@pytest.mark.parametrize(
    "name", ["production", PRODUCTION, f"{PRODUCTION.upper()[:5]}{PRODUCTION[5:]}/"]
)
def test_production_closed_and_is_only_called_where_one_insists(name):
    with pytest.raises(ValueError, match="closed on 2026-09-30"):
        resolve(name)
    assert resolve("production", insist_on_production=True) == Endpoint(PRODUCTION, loopback=False)


def test_the_service_is_reached_without_keys_region_or_proxy(running, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL_MTURK", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    client = connect(resolve(running.url))
    assert client.get_account_balance()["AvailableBalance"] == "100000.00"
    assert client.meta.region_name == "us-east-1"
    assert client.meta.endpoint_url == running.url


def test_keys_that_are_configured_are_used(running, monkeypatch):
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


def test_without_keys_a_service_elsewhere_is_not_called():
    client = connect(Endpoint("http://192.0.2.1", loopback=False), timeout=0.2, max_attempts=1)
    with pytest.raises(ServiceError, match="expected AWS_ACCESS_KEY_ID"), translate_errors():
        client.get_account_balance()


def test_nobody_listening_is_said_at_once():
    with pytest.raises(
        ServiceError, match=r"does not respond .*start the service with `mturk-hits serve`"
    ):
        connect(Endpoint("http://127.0.0.1:1", loopback=True))


def test_a_boto3_without_mturk_is_explained(running, monkeypatch):
    """botocore drops services that are gone; the loader here lists what it has, less this one."""
    from botocore.loaders import Loader

    listed = Loader.list_available_services
    monkeypatch.setattr(
        Loader, "list_available_services",
        lambda self, type_name: [name for name in listed(self, type_name) if name != "mturk"],
    )  # fmt: skip
    with pytest.raises(ServiceError, match="has no client for Mechanical Turk"):
        connect(resolve(running.url))


def test_settings_that_cannot_be_used_are_explained(running, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ServiceError, match=r"the AWS settings are invalid: .*nobody"):
        connect(resolve(running.url))


def test_a_refusal_and_silence_are_sentences(running):
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


def test_an_answer_that_broke_off_is_none(running):
    """botocore itself takes it for an empty answer."""
    client = connect(resolve(running.url), max_attempts=1)
    running.faults.choose = lambda operation, number: "drop after"
    with pytest.raises(ServiceError, match="GetAccountBalance: the response was truncated"):
        client.get_account_balance()
