"""The wire: a POST with an operation's name and JSON in, JSON or one of the two error shapes out."""

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
from mturk.service.api.model import checked
from mturk.service.api.operations import LOOKS, OPERATIONS
from mturk.service.clock import Clock
from mturk.service.errors import RequestError, ServiceError, invalid
from mturk.service.monitoring.requests import note, request_id
from mturk.service.rules import lifecycle
from mturk.service.store.database import Database
from mturk.service.store.schema import new_id

__all__ = ["Api"]

log = logging.getLogger("mturk.api")
TARGET = "MTurkRequesterServiceV20170117."
CONTENT_TYPE = "application/x-amz-json-1.1"
BODY_BYTES = 1_000_000
UNKNOWN = "unknown"
"""What a request is called that names no operation."""


class Api:
    """The requester's API; with `keys` (access key -> secret) every request must be signed."""

    def __init__(self, database: Database, clock: Clock, keys: Mapping[str, str]) -> None:
        self.database = database
        self.clock = clock
        self.keys = keys

    async def __call__(self, request: Request) -> Response:
        """Answer a request; whatever it holds, the answer is JSON that AWS clients read."""
        note(operation=UNKNOWN)
        try:
            body = await _body(request)
            return await run_in_threadpool(self._answer, request, body)
        except ServiceError as error:
            return _error(error)
        except ClientDisconnect:
            return Response(status_code=400)

    def _answer(self, request: Request, body: bytes) -> Response:
        operation = UNKNOWN
        try:
            self._check_signature(request, body)
            operation = _operation(request)
            note(operation=operation)
            return _response(200, self.call(operation, _json(body)))
        except ServiceError as error:
            return _error(error)
        except SignatureError as error:
            log.warning("request refused: %s", error.code)
            note(outcome=error.code)
            return _response(400, {"__type": error.code, "message": str(error)})
        except Exception:
            log.exception("%s failed", operation)
            return _error(
                ServiceError("ServiceFault", "The service failed; the request may be repeated.")
            )

    def _check_signature(self, request: Request, body: bytes) -> None:
        if not self.keys:  # anybody on this machine
            return
        given = request.headers
        # A header that comes twice is signed as one: a second one, not signed, must not be obeyed.
        headers = {name: ",".join(given.getlist(name)) for name in given.keys()}  # noqa: SIM118
        verify(self.keys, request.method, request.url.path, headers, body, self.clock.now())

    def call(self, operation: str, parameters: Any) -> Answer:
        """Carry out an operation in one transaction; ServiceError where it is refused."""
        values = checked(operation, parameters)
        now = self.clock.now()
        if operation in LOOKS:
            with self.database.read() as connection:
                if not lifecycle.something_due(connection, now):
                    return OPERATIONS[operation](Call(operation, connection, now), values)
        with self.database.write() as connection:
            lifecycle.settle(connection, now)
            return OPERATIONS[operation](Call(operation, connection, now), values)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise RequestError(
                "RequestEntityTooLarge", f"The request is larger than {BODY_BYTES} bytes."
            )
    return bytes(body)


def _operation(request: Request) -> str:
    target = request.headers.get("x-amz-target", "")
    name = target.removeprefix(TARGET)
    if name == target or name not in OPERATIONS:
        raise RequestError("UnknownOperationException", f"There is no operation {target[:100]!r}.")
    return name


def _json(body: bytes) -> Any:
    try:
        return json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise invalid("the body is not JSON in UTF-8") from None


def _error(error: ServiceError) -> Response:
    note(outcome=error.code)
    document = {"__type": error.shape, "Message": error.message, "TurkErrorCode": error.code}
    return _response(400 if error.shape == "RequestError" else 500, document)


def _response(status: int, document: Mapping[str, Any]) -> Response:
    body = json.dumps(document, ensure_ascii=True)
    headers = {"x-amzn-RequestId": request_id() or new_id(), "Cache-Control": "no-store"}
    return Response(body, status, headers, media_type=CONTENT_TYPE)
