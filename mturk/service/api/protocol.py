"""Wire protocol: JSON over POST, with the operation in a header and two error shapes."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mturk.service.api.authentication import SignatureError, verify
from mturk.service.api.call import Answer, Call
from mturk.service.api.model import validate
from mturk.service.api.operations import OPERATIONS, READ_ONLY_OPERATIONS
from mturk.service.clock import Clock
from mturk.service.errors import ApiError, RequestError, validation_error
from mturk.service.monitoring.requests import annotate_request, request_id
from mturk.service.rules import lifecycle
from mturk.service.store.database import Database
from mturk.service.store.schema import new_id

__all__ = ["Api"]

log = logging.getLogger("mturk.api")
TARGET_PREFIX = "MTurkRequesterServiceV20170117."
CONTENT_TYPE = "application/x-amz-json-1.1"
MAX_BODY_BYTES = 1_000_000
UNKNOWN_OPERATION = "unknown"
"""Name of requests without a known operation, in logs and metrics."""


class Api:
    """The requester API; with `keys` (access key -> secret) every request must be signed."""

    def __init__(self, database: Database, clock: Clock, keys: Mapping[str, str]) -> None:
        self.database = database
        self.clock = clock
        self.keys = keys

    async def __call__(self, request: Request) -> Response:
        """Handle a request; every response, errors included, is JSON that AWS clients can parse."""
        annotate_request(operation=UNKNOWN_OPERATION)
        try:
            body = await _read_body(request)
            return await run_in_threadpool(self._respond, request, body)
        except ApiError as error:
            return _error_response(error)
        except ClientDisconnect:
            return Response(status_code=400)

    def _respond(self, request: Request, body: bytes) -> Response:
        operation = UNKNOWN_OPERATION
        try:
            self._check_signature(request, body)
            operation = _parse_operation(request)
            annotate_request(operation=operation)
            return _response(200, self.call(operation, _parse_json(body)))
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

    def _check_signature(self, request: Request, body: bytes) -> None:
        if not self.keys:  # without keys, every local client is accepted
            return
        request_headers = request.headers
        # Repeated headers are signed as one joined value: an unsigned duplicate invalidates the signature.
        headers = {name: ",".join(request_headers.getlist(name)) for name in request_headers.keys()}  # noqa: SIM118
        verify(self.keys, request.method, request.url.path, headers, body, self.clock.now())

    def call(self, operation: str, parameters: Any) -> Answer:
        """Execute an operation in one transaction; raise ApiError if it fails."""
        values = validate(operation, parameters)
        now = self.clock.now()
        if operation in READ_ONLY_OPERATIONS:
            with self.database.read() as connection:
                if not lifecycle.has_due_changes(connection, now):
                    return OPERATIONS[operation](Call(operation, connection, now), values)
        with self.database.write() as connection:
            lifecycle.apply_due_changes(connection, now)
            return OPERATIONS[operation](Call(operation, connection, now), values)


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
    return _response(400 if error.shape == "RequestError" else 500, document)


def _response(status: int, document: Mapping[str, Any]) -> Response:
    body = json.dumps(document, ensure_ascii=True)
    headers = {"x-amzn-RequestId": request_id() or new_id(), "Cache-Control": "no-store"}
    return Response(body, status, headers, media_type=CONTENT_TYPE)
