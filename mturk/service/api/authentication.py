"""Access keys of requesters, and verification of request signatures (AWS Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bws.base.problems import InputError, Problem
from bws.base.text import parse_toml, read_text

KEYS_VARIABLE = "GICCS_KEYS"
"""Environment variable with a JSON object of access keys and secrets."""
MIN_SECRET_CHARACTERS = 16
OWNER, ANALYST = "owner", "analyst"
"""Roles of keys."""
SERVICE = "mturk-requester"
REGION = "us-east-1"
"""The only region of Mechanical Turk."""
ALGORITHM = "AWS4-HMAC-SHA256"
MAX_SKEW_SECONDS = 15 * 60
"""Maximum difference between the time of a request and the server time."""
AUTHORIZATION = re.compile(
    rf"{ALGORITHM} +Credential=(?P<key>[^/,\s]+)/(?P<date>\d{{8}})/(?P<region>[\w-]+)/(?P<service>[\w-]+)"
    r"/aws4_request, *SignedHeaders=(?P<signed>[\w;-]+), *Signature=(?P<signature>[0-9a-f]{64})"
)
REQUIRED_SIGNED_HEADERS = {"host", "x-amz-date", "x-amz-target"}


class SignatureError(Exception):
    """A missing or invalid request signature; ``code`` is the AWS error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """The access keys of a service."""

    secrets: Mapping[str, str] = field(default_factory=dict)
    """Access key -> secret."""
    analysts: frozenset[str] = frozenset()
    """Access keys with the role analyst; the others belong to owners."""


def read_keys(path: str | None, environment: Mapping[str, str]) -> AccessKeys:
    """Return the access keys of a TOML file or of GICCS_KEYS; none if neither is set.

    A key is ``access_key = "secret"``, or a table with ``secret`` and ``role`` (owner or analyst). Raises
    InputError if other users can read the file, a secret is too short or a role is unknown.
    """
    if path is not None:
        _check_private(path)
        return _validate_keys(path, _parse_toml_keys(path))
    if KEYS_VARIABLE in environment:
        return _validate_keys(KEYS_VARIABLE, _parse_json_keys(environment[KEYS_VARIABLE]))
    return AccessKeys()


def _check_private(path: str) -> None:
    file = Path(path)
    if (
        os.name == "posix"
        and file.is_file()
        and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ):
        raise InputError(Problem(path, None, f"readable by other users; run chmod 600 {path}"))


def _parse_toml_keys(path: str) -> Any:
    text = read_text(path)
    try:
        return parse_toml(text, path)
    except InputError as error:  # its message may quote a secret
        message = 'invalid TOML; expected lines access_key = "secret"'
        raise InputError(Problem(path, error.problems[0].line, message)) from None


def _parse_json_keys(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        message = 'invalid JSON; expected {"access_key": "secret"}'
        raise InputError(Problem(KEYS_VARIABLE, None, message)) from None


def _validate_keys(source: str, values: Any) -> AccessKeys:
    if not isinstance(values, dict) or not values:
        raise InputError(
            Problem(
                source, None, "contains no keys; expected at least one access key and its secret"
            )
        )
    tables = {
        str(key): value if isinstance(value, dict) else {"secret": value}
        for key, value in values.items()
    }
    if problems := [
        Problem(source, None, text) for key in tables for text in _key_problems(key, tables[key])
    ]:
        raise InputError(problems)
    secrets = {key: table["secret"] for key, table in tables.items()}
    analysts = frozenset(key for key, table in tables.items() if table.get("role") == ANALYST)
    return AccessKeys(secrets, analysts)


def _key_problems(key: str, table: Mapping[str, Any]) -> Iterator[str]:
    secret, role = table.get("secret"), table.get("role", OWNER)
    if not isinstance(secret, str) or len(secret) < MIN_SECRET_CHARACTERS:
        yield f"the secret of {key} must be a string of at least {MIN_SECRET_CHARACTERS} characters"
    if role not in (OWNER, ANALYST):
        yield f"the role of {key} must be {OWNER} or {ANALYST}"
    if unknown := table.keys() - {"secret", "role"}:
        yield f"{key} has {len(unknown)} unknown settings; expected secret and role"


def verify(
    keys: Mapping[str, str], method: str, path: str, headers: Mapping[str, str], body: bytes,
    now: float,
) -> str:  # fmt: skip
    """Return the access key that signed the request; raise SignatureError if none of `keys` did.

    `keys` maps access keys to secret keys, `headers` lower-case names to values. Signatures are compared in
    constant time. Source: "Signature Version 4 signing process", AWS General
    Reference.
    """
    match = AUTHORIZATION.fullmatch(headers.get("authorization", "").strip())
    if not match:
        raise SignatureError("MissingAuthenticationTokenException", "Missing Authentication Token")
    secret = keys.get(match["key"])
    if secret is None or match["service"] != SERVICE:
        message = "The security token included in the request is invalid."
        raise SignatureError("UnrecognizedClientException", message)
    if match["region"] != REGION:
        message = (
            f"Credential should be scoped to a valid region, not '{match['region']}'; use {REGION}."
        )
        raise SignatureError("InvalidSignatureException", message)
    signed = match["signed"].split(";")
    _check_time(headers.get("x-amz-date", ""), match["date"], now)
    if not REQUIRED_SIGNED_HEADERS.issubset(signed):
        raise SignatureError(
            "IncompleteSignatureException", "Host, date and target must be signed."
        )
    request = _canonical_request(method, path, headers, signed, body)
    scope = f"{match['date']}/{match['region']}/{match['service']}/aws4_request"
    text = f"{ALGORITHM}\n{headers['x-amz-date']}\n{scope}\n{_sha256(request.encode())}"
    expected = hmac.new(_signing_key(secret, scope), text.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, match["signature"]):
        message = "The request signature we calculated does not match the signature you provided."
        raise SignatureError("InvalidSignatureException", message)
    return match["key"]


def _check_time(text: str, date: str, now: float) -> None:
    try:
        timestamp = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        timestamp = float("-inf")
    if not text.startswith(date) or abs(timestamp - now) > MAX_SKEW_SECONDS:
        message = f"Signature expired: {text or 'no date'} is more than 15 minutes from now."
        raise SignatureError("InvalidSignatureException", message)


def _canonical_request(
    method: str, path: str, headers: Mapping[str, str], signed: list[str], body: bytes
) -> str:
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed]
    return "\n".join(
        [method, quote(path or "/"), "", "".join(lines), ";".join(signed), _sha256(body)]
    )


def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
