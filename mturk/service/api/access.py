"""Access to the API: roles of keys, pseudonyms for analysts, and what is written to the audit log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from mturk.limits import RECRUITED_PREFIX
from mturk.service.api.call import Answer, Parameters
from mturk.service.errors import AccessDeniedError
from mturk.service.store.schema import worker

Role = Literal["owner", "analyst"]
REQUESTER_TEXTS = frozenset(["Reason", "RequesterFeedback"])
"""Fields of documents of workers with texts of requesters."""
WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
"""An id within a text, without punctuation at its end."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call an operation, and what it writes to the audit log."""

    role: Role
    """The least privileged role: analysts may call what is marked ``analyst``, owners everything."""
    audited: bool = False
    """Whether calls are recorded; reads only if the response contains worker ids."""
    subject: tuple[str, ...] = ()
    """Parameters with the id of the subject; the first one that is present is recorded."""


_HIT, _ASSIGNMENT, _TYPE = ("HITId",), ("AssignmentId",), ("QualificationTypeId",)

ACCESS: Mapping[str, Access] = {
    "AcceptQualificationRequest": Access("owner", True, ("QualificationRequestId",)),
    "ApproveAssignment": Access("owner", True, _ASSIGNMENT),
    "AssociateQualificationWithWorker": Access("owner", True, _TYPE),
    "CreateAdditionalAssignmentsForHIT": Access("owner"),
    "CreateHIT": Access("owner"),
    "CreateHITType": Access("owner"),
    "CreateHITWithHITType": Access("owner"),
    "CreateQualificationType": Access("owner"),
    "CreateWorkerBlock": Access("owner", True),
    "DeleteHIT": Access("owner", True, _HIT),
    "DeleteQualificationType": Access("owner", True, _TYPE),
    "DeleteWorkerBlock": Access("owner", True),
    "DisassociateQualificationFromWorker": Access("owner", True, _TYPE),
    "GetAccountBalance": Access("analyst"),
    "GetAssignment": Access("analyst", True, _ASSIGNMENT),
    "GetFileUploadURL": Access("analyst"),
    "GetHIT": Access("analyst"),
    "GetQualificationScore": Access("owner", True, _TYPE),
    "GetQualificationType": Access("analyst"),
    "ListAssignmentsForHIT": Access("analyst", True, _HIT),
    "ListBonusPayments": Access("analyst", True, (*_HIT, *_ASSIGNMENT)),
    "ListHITs": Access("analyst"),
    "ListHITsForQualificationType": Access("analyst"),
    "ListQualificationRequests": Access("owner", True, _TYPE),
    "ListQualificationTypes": Access("analyst"),
    "ListReviewPolicyResultsForHIT": Access("analyst"),
    "ListReviewableHITs": Access("analyst"),
    "ListWorkerBlocks": Access("owner", True),
    "ListWorkersWithQualificationType": Access("analyst", True, _TYPE),
    "NotifyWorkers": Access("owner", True),
    "RejectAssignment": Access("owner", True, _ASSIGNMENT),
    "RejectQualificationRequest": Access("owner", True, ("QualificationRequestId",)),
    "SendBonus": Access("owner", True, _ASSIGNMENT),
    "SendTestEventNotification": Access("owner"),
    "UpdateExpirationForHIT": Access("owner"),
    "UpdateHITReviewStatus": Access("owner"),
    "UpdateHITTypeOfHIT": Access("owner"),
    "UpdateNotificationSettings": Access("owner"),
    "UpdateQualificationType": Access("owner"),
}
"""Access to each operation. Operations that take a worker id are for owners: the answer would tell an analyst
whose pseudonym it is."""


def check_access(role: Role, operation: str) -> None:
    """Raise AccessDeniedError if the operation is not allowed for the role."""
    if role == "analyst" and ACCESS[operation].role == "owner":
        raise AccessDeniedError(f"A key with the role {role} is not authorized for {operation}.")


def subject_of(operation: str, parameters: Parameters) -> str:
    """Return the id of the subject of a call; empty if there is none."""
    names = ACCESS[operation].subject
    return next((str(parameters[name]) for name in names if name in parameters), "")


def count_worker_ids(answer: Answer) -> int:
    """Return the number of different worker ids in a response.

    >>> count_worker_ids({"Assignments": [{"WorkerId": "A1"}, {"WorkerId": "A1"}, {"WorkerId": "A2"}]})
    2
    """
    return len({document["WorkerId"] for document in _documents_of_workers(answer)})


def replace_worker_ids(answer: Answer, name: Callable[[str], str]) -> None:
    """Replace the worker ids of a response."""
    for document in _documents_of_workers(answer):
        document["WorkerId"] = name(document["WorkerId"])


def replace_ids_in_texts(
    connection: Connection, answer: Answer, name: Callable[[str], str]
) -> None:
    """Replace ids of workers, also those at Prolific, in what requesters wrote: reasons and feedback."""
    documents = list(_documents_of_workers(answer))
    words = {
        word.casefold()
        for document in documents
        for key in REQUESTER_TEXTS
        for word in WORD.findall(document.get(key, ""))
    }
    prefixes = ("", RECRUITED_PREFIX.casefold())
    candidates = {prefix + word: word for word in words for prefix in prefixes}
    if not candidates:
        return
    lower_id = func.lower(worker.c.worker_id)
    query = select(worker.c.worker_id).where(lower_id.in_(candidates))
    names = {
        candidates[worker_id.casefold()]: name(worker_id) for worker_id in connection.scalars(query)
    }
    for document in documents:
        for key in REQUESTER_TEXTS & document.keys():
            document[key] = WORD.sub(
                lambda word: names.get(word[0].casefold(), word[0]), document[key]
            )


def _documents_of_workers(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for element in value:
            yield from _documents_of_workers(element)
    elif isinstance(value, dict):
        if "WorkerId" in value:
            yield value
        yield from _documents_of_workers(list(value.values()))
