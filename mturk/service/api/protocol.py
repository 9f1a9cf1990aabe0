"""Wire protocol: JSON over POST, with the operation in a header and two error shapes."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mturk.pseudonyms import pseudonym
from mturk.service.api.access import (
    ACCESS,
    Role,
    check_access,
    count_worker_ids,
    replace_ids_in_texts,
    replace_worker_ids,
    subject_of,
)
from mturk.service.api.authentication import SignatureError, verify
from mturk.service.api.call import Answer, Call, Parameters
from mturk.service.api.model import validate
from mturk.service.api.operations import OPERATIONS, READ_ONLY_OPERATIONS
from mturk.service.clock import Clock
from mturk.service.errors import ApiError, RequestError, validation_error
from mturk.service.monitoring.requests import annotate_request, request_id
from mturk.service.rules import audit, lifecycle
from mturk.service.store.database import Database
from mturk.service.store.schema import new_id
from mturk.service.threads import run_in_request_thread

log = logging.getLogger("mturk.api")
TARGET_PREFIX = "MTurkRequesterServiceV20170117."
CONTENT_TYPE = "application/x-amz-json-1.1"
MAX_BODY_BYTES = 1_000_000
UNKNOWN_OPERATION = "unknown"
"""Name of requests without a known operation, in logs and metrics."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls an operation."""

    actor: str = audit.UNSIGNED
    """Access key that signed the request."""
    role: Role = "owner"


class Api:
    """The requester API; with `keys` (access key -> secret) every request must be signed.

    analysts: access keys that may only read, and see pseudonyms instead of worker ids.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        keys: Mapping[str, str],
        analysts: Container[str] = (),
    ) -> None:
        self.database = database
        self.clock = clock
        self.keys = keys
        self.analysts = analysts

    async def __call__(self, request: Request) -> Response:
        """Handle a request; every response, errors included, is JSON that AWS clients can parse."""
        annotate_request(operation=UNKNOWN_OPERATION)
        try:
            body = await _read_body(request)
            return await run_in_request_thread(self._respond, request, body)
        except ApiError as error:
            return _error_response(error)
        except ClientDisconnect:
            return Response(status_code=400)

    def _respond(self, request: Request, body: bytes) -> Response:
        operation = UNKNOWN_OPERATION
        try:
            caller = self._authenticate(request, body)
            operation = _parse_operation(request)
            annotate_request(operation=operation)
            return _response(200, self.call(operation, _parse_json(body), caller))
        except ApiError as error:
            return _error_response(error)
        except SignatureError as error:
            log.warning("request refused: %s", error.code)
            annotate_request(outcome=error.code)
            return _response(400, {"__type": error.code, "message": str(error)})
        except Exception:
            log.exception("%s failed", operation)
            return _error_response(
                ApiError("ServiceFault", "The service failed; the request may be repeated.")
            )

    def _authenticate(self, request: Request, body: bytes) -> Caller:
        if not self.keys:  # without keys, every local client is accepted
            return Caller()
        request_headers = request.headers
        # Repeated headers are signed as one joined value: an unsigned duplicate invalidates the signature.
        headers = {name: ",".join(request_headers.getlist(name)) for name in request_headers.keys()}  # noqa: SIM118
        key = verify(self.keys, request.method, request.url.path, headers, body, self.clock.now())
        return Caller(key, "analyst" if key in self.analysts else "owner")

    def call(self, operation: str, parameters: Any, caller: Caller = Caller()) -> Answer:
        """Execute an operation in one transaction; raise ApiError if it fails.

        Decisions are recorded in that transaction; reads of worker ids with a key are recorded before the
        response is sent.
        """
        check_access(caller.role, operation)
        values = validate(operation, parameters)
        now = self.clock.now()
        answer = self._read(operation, values, now)
        if answer is None:
            with self.database.write() as connection:
                lifecycle.apply_due_changes(connection, now)
                answer = OPERATIONS[operation](Call(operation, connection, now), values)
                if _is_recorded(caller, operation, answer):
                    _record(connection, caller, operation, values, answer, now)
        elif _is_recorded(caller, operation, answer):
            with self.database.write() as connection:
                _record(connection, caller, operation, values, answer, now)
        if caller.role == "analyst":
            self._replace_ids(answer)
        return answer

    def _replace_ids(self, answer: Answer) -> None:
        """Replace ids of workers in the response to an analyst by pseudonyms."""

        def name(worker_id: str) -> str:
            return pseudonym(self._pseudonym_key, worker_id)

        with self.database.read() as connection:
            replace_ids_in_texts(connection, answer, name)
        replace_worker_ids(answer, name)

    def _read(self, operation: str, values: Parameters, now: float) -> Answer | None:
        """Return the response of a read-only operation; None if there are changes to be made first."""
        if operation not in READ_ONLY_OPERATIONS:
            return None
        with self.database.read() as connection:
            if lifecycle.has_due_changes(connection, now):
                return None
            return OPERATIONS[operation](Call(operation, connection, now), values)

    @cached_property
    def _pseudonym_key(self) -> bytes:
        return hmac.digest(self.database.secret(), b"mturk.pseudonym", "sha256")


def _is_recorded(caller: Caller, operation: str, answer: Answer) -> bool:
    if operation not in READ_ONLY_OPERATIONS:
        return ACCESS[operation].audited
    is_signed = caller.actor != audit.UNSIGNED
    return is_signed and ACCESS[operation].audited and count_worker_ids(answer) > 0


def _record(
    connection: Connection, caller: Caller, operation: str, values: Parameters, answer: Answer,
    now: float,
) -> None:  # fmt: skip
    is_read = operation in READ_ONLY_OPERATIONS
    details = {"workers": count_worker_ids(answer)} if is_read else {}
    subject = subject_of(operation, values)
    audit.record(connection, now, caller.actor, operation, subject, **details)


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise RequestError(
                "RequestEntityTooLarge", f"The request is larger than {MAX_BODY_BYTES} bytes."
            )
    return bytes(body)


def _parse_operation(request: Request) -> str:
    target = request.headers.get("x-amz-target", "")
    name = target.removeprefix(TARGET_PREFIX)
    if name == target or name not in OPERATIONS:
        raise RequestError("UnknownOperationException", f"There is no operation {target[:100]!r}.")
    return name


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise validation_error("the body must be JSON in UTF-8") from None


def _error_response(error: ApiError) -> Response:
    annotate_request(outcome=error.code)
    document = {"__type": error.shape, "Message": error.message, "TurkErrorCode": error.code}
    return _response(500 if error.shape == ApiError.shape else 400, document)


def _response(status: int, document: Mapping[str, Any]) -> Response:
    body = json.dumps(document, ensure_ascii=True)
    headers = {"x-amzn-RequestId": request_id() or new_id(), "Cache-Control": "no-store"}
    return Response(body, status, headers, media_type=CONTENT_TYPE)
