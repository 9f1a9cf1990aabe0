"""What a link or a form's address may do: signed tokens for entering, joining, a question and an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from itsdangerous import BadSignature, URLSafeSerializer

__all__ = [
    "NOT_AVAILABLE",
    "LinkError",
    "Shown",
    "frame_link",
    "read_frame_token",
    "read_study_token",
    "read_submit_token",
    "read_worker_token",
    "recruited_worker",
    "study_link",
    "submit_address",
    "worker_link",
]

NOT_AVAILABLE = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""What stands for the assignment in a preview, as on Mechanical Turk."""
RECRUITED = "APROLIFIC"
"""How the ids of workers start who came by a recruiting link; nobody is invited under such an id."""
PARTICIPANT = re.compile("[0-9a-fA-F]{24}")


class LinkError(ValueError):
    """A token that was not made here, was changed, or is no longer valid."""


def worker_link(
    site_url: str, secret: bytes, worker_id: str, *, expires: float | None = None
) -> str:
    """Return a worker's personal link; who has it works under this id.

    `expires` is seconds since the epoch; None: the link stays valid. Raises ValueError where the id is
    one that only recruiting links give.
    """
    if worker_id.upper().startswith(RECRUITED):
        raise ValueError(
            f"worker id {worker_id!r} starts with {RECRUITED}, which is kept for recruited participants"
        )
    return f"{site_url}/enter?{urlencode({'token': _write(secret, 'enter', [worker_id, expires])})}"


def read_worker_token(secret: bytes, token: str, now: float) -> str:
    """Return the worker's id; LinkError where the token is not valid (any more)."""
    worker_id, expires = _read(secret, "enter", token, 2)
    if expires is not None and now >= expires:
        raise LinkError("the personal link has expired")
    return str(worker_id)


def study_link(site_url: str, secret: bytes, name: str) -> str:
    """Return a study's recruiting link, to which the panel appends who comes.

    On Prolific: ``?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}``.
    """
    return f"{site_url}/join/{_write(secret, 'join', [name])}"


def read_study_token(secret: bytes, token: str) -> str:
    """Return the study's name; LinkError where the token is not valid."""
    return str(_read(secret, "join", token, 1)[0])


def recruited_worker(participant: str) -> str:
    """Return the worker id of a panel's participant; LinkError where it is not 24 hexadecimal digits.

    >>> recruited_worker("5f3c1a2b4d5e6f708192a3b4")
    'APROLIFIC5F3C1A2B4D5E6F708192A3B4'
    """
    if not PARTICIPANT.fullmatch(participant):
        raise LinkError("PROLIFIC_PID is not 24 hexadecimal digits")
    return RECRUITED + participant.upper()


def submit_address(
    site_url: str, secret: bytes, *, assignment_id: str, worker_id: str, language: str
) -> str:
    """Return the ``turkSubmitTo`` of an assignment; the token in it is what authenticates the answer."""
    if assignment_id == NOT_AVAILABLE:
        return f"{site_url}/submit/preview"
    return f"{site_url}/submit/{_write(secret, 'submit', [assignment_id, worker_id, language])}"


def read_submit_token(secret: bytes, token: str) -> tuple[str, str, str]:
    """Return (assignment id, worker id, language); LinkError where the token is not valid."""
    assignment_id, worker_id, language = map(str, _read(secret, "submit", token, 3))
    return assignment_id, worker_id, language


@dataclass(frozen=True, slots=True)
class Shown:
    """A question as it is shown to one worker."""

    hit_id: str
    assignment_id: str
    """NOT_AVAILABLE in a preview."""
    worker_id: str
    language: str

    def parameters(self, site_url: str, secret: bytes) -> dict[str, str]:
        """Return the query that every question is opened with, as on Mechanical Turk."""
        submit_to = submit_address(
            site_url, secret, assignment_id=self.assignment_id, worker_id=self.worker_id,
            language=self.language,
        )  # fmt: skip
        return {
            "assignmentId": self.assignment_id,
            "hitId": self.hit_id,
            "workerId": self.worker_id,
            "turkSubmitTo": submit_to,
        }


def frame_link(frame_url: str, site_url: str, secret: bytes, shown: Shown) -> str:
    """Return where a worker's question frame is; nobody can guess another worker's."""
    names = [shown.hit_id, shown.assignment_id, shown.worker_id, shown.language]
    query = urlencode(shown.parameters(site_url, secret))
    return f"{frame_url}/question/{_write(secret, 'frame', names)}?{query}"


def read_frame_token(secret: bytes, token: str) -> Shown:
    """Return what the frame shows; LinkError where the token is not valid."""
    return Shown(*map(str, _read(secret, "frame", token, 4)))


def _write(secret: bytes, purpose: str, values: Sequence[Any]) -> str:
    return str(URLSafeSerializer(secret, salt=f"mturk.{purpose}").dumps(list(values)))


def _read(secret: bytes, purpose: str, token: str, length: int) -> list[Any]:
    try:
        values = URLSafeSerializer(secret, salt=f"mturk.{purpose}").loads(token)
    except BadSignature:
        raise LinkError(f"the {purpose} token is not one of ours") from None
    if not isinstance(values, list) or len(values) != length:
        raise LinkError(f"the {purpose} token is of another version")
    return values
