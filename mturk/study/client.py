"""Which service is meant, and a client of it. The only module that imports boto3."""

from __future__ import annotations

import ipaddress
import logging
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

__all__ = [
    "LOCAL",
    "PRODUCTION",
    "SANDBOX",
    "Endpoint",
    "ServiceError",
    "connect",
    "error_code",
    "resolve",
    "translate_errors",
]

log = logging.getLogger(__name__)

LOCAL = "http://127.0.0.1:8765"
SANDBOX = "https://mturk-requester-sandbox.us-east-1.amazonaws.com"
PRODUCTION = "https://mturk-requester.us-east-1.amazonaws.com"
NAMES = {"local": LOCAL, "sandbox": SANDBOX, "production": PRODUCTION}
REGION = "us-east-1"  # in any other the service has no host
STATIC = ("env", "shared-credentials-file", "config-file")
CLOSED = (
    "Amazon Mechanical Turk closed on 2026-09-30. Run a service of your own with `mturk-hits serve` "
    "and name it with --endpoint local or its address; --confirm-production calls the old address all "
    "the same, where every assignment would cost real money"
)


class ServiceError(OSError):
    """The service could not be reached, or refused a call; the text is for people."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the calls go."""

    url: str
    loopback: bool
    """On this machine: the balance is imaginary, and keys are needed only where the service has some."""

    @property
    def amazon(self) -> bool:
        """Whether it is Mechanical Turk itself or its sandbox."""
        return (urlsplit(self.url).hostname or "").endswith(".amazonaws.com")


def resolve(endpoint: str, *, insist_on_production: bool = False) -> Endpoint:
    """Return what ``local``, ``sandbox``, ``production`` or an address means.

    Raises ValueError for anything else, and for production unless one insists: it closed.

    >>> resolve("local")
    Endpoint(url='http://127.0.0.1:8765', loopback=True)
    >>> resolve("https://study.example.org/").url
    'https://study.example.org'
    """
    try:
        parts = urlsplit(NAMES.get(endpoint, endpoint))
        host = parts.hostname if _is_origin(parts) else None
    except ValueError:
        host = None
    if not host:
        raise ValueError(
            f"the endpoint is {endpoint!r}; local, sandbox, production or an address such as {LOCAL} "
            "is allowed"
        )
    if host == urlsplit(PRODUCTION).hostname and not insist_on_production:
        raise ValueError(CLOSED)
    return Endpoint(f"{parts.scheme}://{parts.netloc}", _is_loopback(host))


def _is_origin(parts: SplitResult) -> bool:
    """Tell whether an address is a scheme, a host and perhaps a port; ValueError where the port is none."""
    extra = (parts.path.strip("/"), parts.query, parts.fragment)
    has_valid_port = parts.port is None or parts.port > 0
    return (
        parts.scheme in ("http", "https")
        and not any(extra)
        and "@" not in parts.netloc
        and has_valid_port
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def connect(endpoint: Endpoint, *, timeout: float = 60.0, max_attempts: int = 10) -> Any:
    """Return a boto3 client of the service.

    timeout: seconds to wait for an answer. attempts: how often a call is made before it fails; between
        them the waiting grows, and adapts where the service throttles.

    Raises ServiceError where there is no such client, there are no credentials, or nobody listens on
    this machine. Calls with this client raise botocore's errors; run them in `translate_errors`.
    """
    if endpoint.loopback:
        _check_listening(endpoint)
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, UnknownServiceError

    config = Config(
        region_name=REGION,
        connect_timeout=min(timeout, 10.0),
        read_timeout=timeout,
        retries={"mode": "adaptive", "total_max_attempts": max_attempts},
        proxies={} if endpoint.loopback else None,  # a proxy cannot reach this machine's loopback
    )
    try:
        session = boto3.Session(botocore_session=_session(endpoint))
        # an explicit address, so that AWS_ENDPOINT_URL_MTURK counts for nothing
        client = session.client(
            "mturk", config=config, endpoint_url=endpoint.url, **_keys(session, endpoint)
        )
    except UnknownServiceError:
        raise ServiceError(
            f"boto3 {boto3.__version__} has no client for Mechanical Turk any more; "
            "install one that has, such as the version in giccs's constraints.txt"
        ) from None
    except BotoCoreError as error:  # a broken ~/.aws/config, an unknown AWS_PROFILE
        raise ServiceError(f"the AWS settings cannot be used: {error}") from None
    client.meta.events.register("before-call.mturk", _record_start)
    client.meta.events.register("after-call.mturk", _log_call)
    client.meta.events.register("after-call-error.mturk", _log_failure)
    client.meta.events.register("after-call.mturk", _check_response)
    log.debug(
        "client of %s: boto3 %s, %d attempts a call", endpoint.url, boto3.__version__, max_attempts
    )
    return client


def _record_start(*, context: dict[str, Any], **_: Any) -> None:
    context["giccs_began"] = time.perf_counter()


def _log_call(
    *, model: Any, parsed: Mapping[str, Any], context: Mapping[str, Any], **_: Any
) -> None:
    """Log a call and how it ended: nothing of what was sent or answered, which is about people."""
    about = parsed.get("ResponseMetadata", {})
    log.debug(
        "%s: %s, %.3f s, request %s, tried again %d times", model.name,
        parsed.get("Error", {}).get("Code", "done"), time.perf_counter() - context["giccs_began"],
        about.get("RequestId", "without id"), about.get("RetryAttempts", 0),
    )  # fmt: skip


def _log_failure(*, exception: Exception, context: Mapping[str, Any], **_: Any) -> None:
    seconds = time.perf_counter() - context["giccs_began"]
    log.debug("no answer after %.3f s: %s", seconds, type(exception).__name__)


def _check_response(*, parsed: Mapping[str, Any], model: Any, http_response: Any, **_: Any) -> None:
    """Refuse a good answer that broke off: botocore reads it as one that says nothing."""
    expected_members = model.output_shape.members if model.output_shape else {}
    if (
        http_response.status_code < 300
        and expected_members
        and not expected_members.keys() & parsed.keys()
    ):
        raise ServiceError(
            f"{model.name}: the answer of the service broke off; what it did is unknown"
        )


def _check_listening(endpoint: Endpoint) -> None:
    """Say at once what botocore would say after many attempts."""
    parts = urlsplit(endpoint.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=10.0).close()
    except OSError as error:
        message = f"{endpoint.url} does not answer ({error.strerror or error})"
        raise ServiceError(f"{message}; start the service with `mturk-hits serve`") from None


def _session(endpoint: Endpoint) -> Any:
    """Return a session that for this machine looks up keys only where no network is asked."""
    from botocore.session import get_session

    session = get_session()
    if endpoint.loopback:
        resolver = session.get_component("credential_provider")
        for name in [provider.METHOD for provider in resolver.providers]:
            if name not in STATIC:
                resolver.remove(name)
    return session


def _keys(session: Any, endpoint: Endpoint) -> dict[str, str]:
    """Return stand-in keys for a service on this machine where none are configured."""
    if endpoint.loopback and session.get_credentials() is None:
        return {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return {}


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn botocore's errors into ServiceError with a sentence for people."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except NoCredentialsError:
        raise ServiceError(
            "there are no keys for the service; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or AWS_PROFILE"
        ) from None
    except ClientError as error:
        message = error.response.get("Error", {}).get("Message") or "no reason is given"
        code = error_code(error)
        raise ServiceError(f"{error.operation_name} was refused: {message} ({code})") from error
    except BotoCoreError as error:
        raise ServiceError(f"the service does not answer: {error}") from error


def error_code(error: Any) -> str:
    """Return the service's own code of a botocore ClientError, or the general one where it has none."""
    response = error.response
    return str(response.get("TurkErrorCode") or response.get("Error", {}).get("Code", ""))
