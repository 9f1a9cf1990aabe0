"""What a form says: its fields in order, within limits that no honest answer reaches."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from urllib.parse import parse_qsl

from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

__all__ = ["BODY_BYTES", "FIELDS", "BodyError", "read_fields"]

BODY_BYTES = 1_000_000
FIELDS = 1_000


class BodyError(ValueError):
    """A body that is not a form, too large, or holds files; `status` is what HTTP calls it."""

    def __init__(self, status: int, key: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = key
        """Which text says it (texts.py)."""


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """Return a form's fields, (name, value) each; BodyError where it is none or too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("", "application/x-www-form-urlencoded", "multipart/form-data"):
        raise BodyError(415, "error.not_a_form")
    body = await _read(request)
    return await _multipart(request, body) if kind == "multipart/form-data" else _urlencoded(body)


async def _read(request: Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES:
                raise BodyError(413, "error.too_large")
    except ClientDisconnect:  # who went away reads no answer; it is no failure of ours
        raise BodyError(400, "error.not_a_form") from None
    return bytes(body)


def _urlencoded(body: bytes) -> list[tuple[str, str]]:
    text = body.decode("utf-8", "replace")
    if text.count("&") >= FIELDS:
        raise BodyError(413, "error.too_large")
    return parse_qsl(text, keep_blank_values=True, errors="replace")


async def _multipart(request: Request, body: bytes) -> list[tuple[str, str]]:
    async def once() -> AsyncGenerator[bytes]:
        yield body

    parser = MultiPartParser(
        request.headers, once(), max_files=FIELDS, max_fields=FIELDS, max_part_size=BODY_BYTES
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError):  # KeyError: no boundary
        raise BodyError(400, "error.not_a_form") from None
    try:
        items = form.multi_items()
        if any(not isinstance(value, str) and (value.filename or value.size) for _, value in items):
            raise BodyError(422, "error.files")
        return [(name, value) for name, value in items if isinstance(value, str)]
    finally:
        await form.close()
