"""Service endpoints and the boto3 client; the only module that imports boto3."""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

log = logging.getLogger(__name__)

LOCAL = "http://127.0.0.1:8765"
SANDBOX = "https://mturk-requester-sandbox.us-east-1.amazonaws.com"
PRODUCTION = "https://mturk-requester.us-east-1.amazonaws.com"
NAMES = {"local": LOCAL, "sandbox": SANDBOX, "production": PRODUCTION}
REGION = "us-east-1"  # the service exists in this region only
STATIC = ("env", "shared-credentials-file", "config-file")
CLOSED = (
    "Amazon Mechanical Turk closed on 2026-09-30. Run your own annotation service with "
    "`giccs annotate serve` and select it with --endpoint local or its address; "
    "--confirm-production uses the old address nevertheless, where every assignment would cost real money"
)


class ServiceError(OSError):
    """The service is unreachable or refused a call; the message is shown to the user."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a service."""

    url: str
    loopback: bool
    """Whether the service runs on this machine: its balance is simulated, and keys are needed only if it has
    keys."""

    @property
    def amazon(self) -> bool:
        """Whether this is Mechanical Turk or its sandbox."""
        return (urlsplit(self.url).hostname or "").endswith(".amazonaws.com")


def resolve(endpoint: str, *, insist_on_production: bool = False) -> Endpoint:
    """Return the endpoint for ``local``, ``sandbox``, ``production`` or an address.

    Raises ValueError for anything else, and for production unless `insist_on_production`, since it closed.

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
            f"the endpoint is {endpoint!r}; expected local, sandbox, production or an address such as "
            f"{LOCAL}"
        )
    if host == urlsplit(PRODUCTION).hostname and not insist_on_production:
        raise ValueError(CLOSED)
    return Endpoint(f"{parts.scheme}://{parts.netloc}", _is_loopback(host))


def _is_origin(parts: SplitResult) -> bool:
    """Return whether an address has a scheme, a host and optionally a port only; ValueError for an invalid
    port."""
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


WITHDRAWN = "NumberOfAssignmentsWithdrawn"
"""Number of submitted assignments of a HIT whose answers were withdrawn; a field of this service only."""


def _add_withdrawn(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Add the numbers of withdrawn answers, which the parser of botocore omits, to listed HITs."""
    if f'"{WITHDRAWN}"'.encode() not in http_response.content:
        return
    try:
        listed = {hit["HITId"]: hit for hit in json.loads(http_response.content)["HITs"]}
    except (ValueError, RecursionError):  # botocore reports it
        return
    for hit in parsed.get("HITs", ()):
        hit[WITHDRAWN] = listed[hit["HITId"]].get(WITHDRAWN, 0)


def connect(endpoint: Endpoint, *, timeout: float = 60.0, max_attempts: int = 10) -> Any:
    """Return a boto3 client of the service.

    timeout: seconds to wait for a response. max_attempts: attempts per call, with increasing delays that
        adapt to throttling.

    Raises ServiceError if boto3 has no such client, the AWS settings are invalid, or no service listens on
    this machine. Calls raise botocore's errors; make them within `translate_errors`.
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
        # an explicit address overrides AWS_ENDPOINT_URL_MTURK
        client = session.client(
            "mturk", config=config, endpoint_url=endpoint.url, **_keys(session, endpoint)
        )
    except UnknownServiceError:
        raise ServiceError(
            f"boto3 {boto3.__version__} has no client for Mechanical Turk; "
            "expected a version that has one, such as the version in giccs's constraints.txt"
        ) from None
    except BotoCoreError as error:  # a broken ~/.aws/config, an unknown AWS_PROFILE
        raise ServiceError(f"the AWS settings are invalid: {error}") from None
    client.meta.events.register("before-call.mturk", _record_start)
    client.meta.events.register("after-call.mturk", _log_call)
    client.meta.events.register("after-call-error.mturk", _log_failure)
    client.meta.events.register("after-call.mturk", _check_response)
    client.meta.events.register("after-call.mturk.ListHITs", _add_withdrawn)
    log.debug(
        "client of %s: boto3 %s, at most %d attempts per call",
        endpoint.url,
        boto3.__version__,
        max_attempts,
    )
    return client


def _record_start(*, context: dict[str, Any], **_: Any) -> None:
    context["giccs_began"] = time.perf_counter()


def _log_call(
    *, model: Any, parsed: Mapping[str, Any], context: Mapping[str, Any], **_: Any
) -> None:
    """Log a call and its result, but not its content, which may be personal data."""
    metadata = parsed.get("ResponseMetadata", {})
    log.debug(
        "%s: %s, %.3f s, request %s, %d retries", model.name,
        parsed.get("Error", {}).get("Code", "done"), time.perf_counter() - context["giccs_began"],
        metadata.get("RequestId", "without id"), metadata.get("RetryAttempts", 0),
    )  # fmt: skip


def _log_failure(*, exception: Exception, context: Mapping[str, Any], **_: Any) -> None:
    seconds = time.perf_counter() - context["giccs_began"]
    log.debug("no response after %.3f s: %s", seconds, type(exception).__name__)


def _check_response(*, parsed: Mapping[str, Any], model: Any, http_response: Any, **_: Any) -> None:
    """Raise ServiceError for a truncated response, which botocore parses as an empty one."""
    expected_members = model.output_shape.members if model.output_shape else {}
    if (
        http_response.status_code < 300
        and expected_members
        and not expected_members.keys() & parsed.keys()
    ):
        raise ServiceError(
            f"{model.name}: the response was truncated; the result of the call is unknown"
        )


def _check_listening(endpoint: Endpoint) -> None:
    """Raise ServiceError immediately if the service is not listening; botocore would retry many times."""
    parts = urlsplit(endpoint.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=10.0).close()
    except OSError as error:
        message = f"{endpoint.url} does not respond ({error.strerror or error})"
        raise ServiceError(
            f"{message}; start the service with `giccs annotate serve`, or name its new address with "
            "--endpoint"
        ) from None


def _session(endpoint: Endpoint) -> Any:
    """Return a session; for a service on this machine, without credential providers that use the network."""
    from botocore.session import get_session

    session = get_session()
    if endpoint.loopback:
        resolver = session.get_component("credential_provider")
        for name in [provider.METHOD for provider in resolver.providers]:
            if name not in STATIC:
                resolver.remove(name)
    return session


def _keys(session: Any, endpoint: Endpoint) -> dict[str, str]:
    """Return placeholder keys for a service on this machine if no keys are configured."""
    if endpoint.loopback and session.get_credentials() is None:
        return {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return {}


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert botocore's errors to ServiceError with a message for users."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except NoCredentialsError:
        raise ServiceError(
            "missing keys for the service; expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or AWS_PROFILE"
        ) from None
    except ClientError as error:
        message = error.response.get("Error", {}).get("Message") or "no reason given"
        code = error_code(error)
        if code == "404":
            raise ServiceError(
                f"{error.operation_name}: nothing answers requests of the API at this address; expected "
                "the one that `giccs annotate serve` prints as API, not that of the site or of frames"
            ) from error
        raise ServiceError(f"{error.operation_name} was refused: {message} ({code})") from error
    except BotoCoreError as error:
        message = (
            f"the service does not respond: {error}; if its address has changed, use --endpoint"
        )
        raise ServiceError(message) from error


def error_code(error: Any) -> str:
    """Return the error code of a botocore ClientError: TurkErrorCode if present, else the general code."""
    response = error.response
    return str(response.get("TurkErrorCode") or response.get("Error", {}).get("Code", ""))
