"""Qualification types, who has them, and requests for them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, update

from mturk import limits, question_xml
from mturk.service.api.call import Answer, Call, Parameters, check, page
from mturk.service.api.workers import tell
from mturk.service.errors import does_not_exist, fault, invalid, wrong_state
from mturk.service.rules import answer_key, qualification_requests
from mturk.service.rules.eligibility import SYSTEM_TYPES
from mturk.service.store.schema import (
    new_id,
    qualification,
    qualification_request,
    qualification_type,
)

__all__ = [
    "accept_qualification_request",
    "associate_qualification_with_worker",
    "create_qualification_type",
    "delete_qualification_type",
    "disassociate_qualification_from_worker",
    "get_qualification_score",
    "get_qualification_type",
    "list_qualification_requests",
    "list_qualification_types",
    "list_workers_with_qualification_type",
    "reject_qualification_request",
    "update_qualification_type",
]

COLUMNS = {
    "Name": "name",
    "Keywords": "keywords",
    "Description": "description",
    "QualificationTypeStatus": "status",
    "RetryDelayInSeconds": "retry_delay",
    "Test": "test",
    "AnswerKey": "answer_key",
    "TestDurationInSeconds": "test_duration",
    "AutoGranted": "auto_granted",
    "AutoGrantedValue": "auto_granted_value",
}
NAME = limits.LengthLimit("Name", 200)
TEST_DURATION = limits.RangeLimit("TestDurationInSeconds", 1, 31_536_000, "seconds")
RETRY_DELAY = limits.RangeLimit("RetryDelayInSeconds", 0, 31_536_000, "seconds")
VALUE = limits.RangeLimit("IntegerValue", -(2**31), 2**31 - 1)
CREATED_BY_SYSTEM = 0.0


def create_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """CreateQualificationType: its name must be new."""
    values = {"keywords": "", "auto_granted": False} | _values(parameters)
    _check_type(values)
    same = select(qualification_type.c.number).where(qualification_type.c.name == values["name"])
    if call.connection.scalar(same) is not None:
        message = f"You have already created a QualificationType with this name: {values['name']}"
        raise fault("QualificationTypeAlreadyExists", message)
    its_id = new_id()
    call.connection.execute(
        insert(qualification_type).values(
            qualification_type_id=its_id, created=call.now, **values
        )
    )  # fmt: skip
    return {"QualificationType": _written(_own(call, its_id))}


def update_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """UpdateQualificationType: what is given replaces what was; a new test replaces its answer key."""
    row = _own(call, parameters["QualificationTypeId"])
    if "Test" not in parameters:
        needing = {"TestDurationInSeconds", "AnswerKey"}.intersection(parameters)
        check(*(f"{name} needs a Test in the same request" for name in sorted(needing)))
    fresh = {"answer_key": None, "test_duration": None} if "Test" in parameters else {}
    changes = fresh | _values(parameters)
    _check_type({name: row._mapping[name] for name in COLUMNS.values()} | changes)
    if changes:
        call.connection.execute(
            update(qualification_type)
            .where(qualification_type.c.number == row.number)
            .values(**changes)
        )
    return {"QualificationType": _written(_own(call, row.qualification_type_id))}


def _values(parameters: Parameters) -> dict[str, Any]:
    return {column: parameters[name] for name, column in COLUMNS.items() if name in parameters}


def _check_type(values: dict[str, Any]) -> None:
    test, key = values.get("test"), values.get("answer_key")
    automatic = values.get("auto_granted")
    check(
        NAME.problem(values["name"]),
        limits.DESCRIPTION.problem(values["description"]),
        limits.KEYWORDS.problem(values["keywords"]),
        _in(RETRY_DELAY, values.get("retry_delay")),
        _in(TEST_DURATION, values.get("test_duration")),
        _in(VALUE, values.get("auto_granted_value")),
        "Test needs TestDurationInSeconds"
        if test and values.get("test_duration") is None
        else None,
        "AnswerKey needs a Test" if key and not test else None,
        "AutoGranted is not possible with a Test" if automatic and test else None,
        test and limits.QUESTION.problem(test),
        key and limits.QUESTION.problem(key),
    )
    if test:
        _check_test(test)
    if key:
        _check_key(key)


def _in(limit: limits.RangeLimit, value: int | None) -> str | None:
    return None if value is None else limit.problem(value)


def _check_test(test: str) -> None:
    try:
        form = question_xml.read_question(test)
    except ValueError as error:
        raise invalid(f"Test: {error}") from None
    if not isinstance(form, question_xml.QuestionForm):
        raise invalid("Test is not a QuestionForm")


def _check_key(key: str) -> None:
    try:
        answer_key.check(key)
    except ValueError as error:
        raise invalid(f"AnswerKey: {error}") from None


def get_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """GetQualificationType: one of the requester's, or of the system's."""
    its_id = parameters["QualificationTypeId"]
    if its_id in SYSTEM_TYPES:
        return {"QualificationType": _system(its_id)}
    return {"QualificationType": _written(_own(call, its_id))}


def delete_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """DeleteQualificationType: requests are refused; what was granted stays, HITs may require it."""
    row = _own(call, parameters["QualificationTypeId"])
    asked = qualification_request.c.qualification_type_id == row.qualification_type_id
    call.connection.execute(
        update(qualification_request)
        .where(asked, qualification_request.c.status == "Pending")
        .values(status="Rejected")
    )
    its_row = qualification_type.c.number == row.number
    call.connection.execute(delete(qualification_type).where(its_row))
    return {}


def list_qualification_types(call: Call, parameters: Parameters) -> Answer:
    """ListQualificationTypes: those whose name, description or keywords hold the query.

    The system's types are not listed: workers cannot ask for them, and all others are the caller's.
    """
    query = select(qualification_type)
    if parameters.get("Query"):
        holds = [
            column.icontains(parameters["Query"], autoescape=True)
            for column in (
                qualification_type.c.name,
                qualification_type.c.description,
                qualification_type.c.keywords,
            )
        ]
        query = query.where(holds[0] | holds[1] | holds[2])
    if parameters["MustBeRequestable"]:
        query = query.where(qualification_type.c.status == "Active")
    return page(
        call, parameters, query, qualification_type.c.number, "QualificationTypes", _written
    )


def associate_qualification_with_worker(call: Call, parameters: Parameters) -> Answer:
    """AssociateQualificationWithWorker: also one who was never here; the value is 1 if none is given."""
    row = _own(call, parameters["QualificationTypeId"])
    value = parameters.get("IntegerValue", 1)
    check(VALUE.problem(value))
    qualification_requests.grant(
        call.connection, parameters["WorkerId"], row.qualification_type_id, value, call.now
    )
    if parameters.get("SendNotification", True):
        said = f"You have been granted this qualification with the value {value}."
        tell(call, parameters["WorkerId"], row.name, said)
    return {}


def disassociate_qualification_from_worker(call: Call, parameters: Parameters) -> Answer:
    """DisassociateQualificationFromWorker: revoke it."""
    row = _granted(call, parameters)
    call.connection.execute(
        update(qualification).where(qualification.c.number == row.number).values(status="Revoked")
    )
    if parameters.get("Reason"):
        name = _own(call, row.qualification_type_id).name
        tell(call, row.worker_id, name, parameters["Reason"])
    return {}


def get_qualification_score(call: Call, parameters: Parameters) -> Answer:
    """GetQualificationScore."""
    return {"Qualification": _score(_granted(call, parameters))}


def list_workers_with_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """ListWorkersWithQualificationType: those who have it, or from whom it was revoked."""
    row = _own(call, parameters["QualificationTypeId"])
    query = select(qualification).where(
        qualification.c.qualification_type_id == row.qualification_type_id,
        qualification.c.status == parameters.get("Status", "Granted"),
    )
    return page(call, parameters, query, qualification.c.number, "Qualifications", _score)


def list_qualification_requests(call: Call, parameters: Parameters) -> Answer:
    """ListQualificationRequests: those that wait for a decision."""
    query = _pending()
    if "QualificationTypeId" in parameters:
        row = _own(call, parameters["QualificationTypeId"])
        query = query.where(
            qualification_request.c.qualification_type_id == row.qualification_type_id
        )
    number = qualification_request.c.number
    return page(call, parameters, query, number, "QualificationRequests", _request)


def accept_qualification_request(call: Call, parameters: Parameters) -> Answer:
    """AcceptQualificationRequest: grant it; the value is 1 if none is given."""
    row = _asked(call, parameters)
    value = parameters.get("IntegerValue", 1)
    check(VALUE.problem(value))
    qualification_requests.grant(
        call.connection, row.worker_id, row.qualification_type_id, value, call.now
    )
    _decide(call, row, "Granted")
    return {}


def reject_qualification_request(call: Call, parameters: Parameters) -> Answer:
    """RejectQualificationRequest."""
    row = _asked(call, parameters)
    _decide(call, row, "Rejected")
    if parameters.get("Reason"):
        tell(call, row.worker_id, _own(call, row.qualification_type_id).name, parameters["Reason"])
    return {}


def _decide(call: Call, row: Row[Any], status: str) -> None:
    call.connection.execute(
        update(qualification_request)
        .where(qualification_request.c.number == row.number)
        .values(status=status)
    )


def _pending() -> Select[Any]:
    return select(qualification_request).where(qualification_request.c.status == "Pending")


def _asked(call: Call, parameters: Parameters) -> Row[Any]:
    its_id = parameters["QualificationRequestId"]
    query = _pending().where(qualification_request.c.request_id == its_id)
    found = call.connection.execute(query).first()
    if found is None:
        raise does_not_exist("QualificationRequest", its_id)
    return found


def _own(call: Call, its_id: str) -> Row[Any]:
    query = select(qualification_type).where(qualification_type.c.qualification_type_id == its_id)
    found = call.connection.execute(query).first()
    if found is None:
        raise does_not_exist("QualificationType", its_id)
    return found


def _granted(call: Call, parameters: Parameters) -> Row[Any]:
    row = _own(call, parameters["QualificationTypeId"])
    found = call.connection.execute(
        select(qualification).where(
            qualification.c.qualification_type_id == row.qualification_type_id,
            qualification.c.worker_id == parameters["WorkerId"],
        )
    ).first()
    if found is None:
        message = "You requested a Qualification that does not exist."
        raise fault("QualificationDoesNotExist", message)
    if found.status != "Granted":
        raise wrong_state("Qualification", found.status, ["Granted"])
    return found


def _written(row: Row[Any]) -> Answer:
    answer = {
        "QualificationTypeId": row.qualification_type_id,
        "CreationTime": row.created,
        "Name": row.name,
        "Description": row.description,
        "Keywords": row.keywords,
        "QualificationTypeStatus": row.status,
        "Test": row.test,
        "TestDurationInSeconds": row.test_duration,
        "AnswerKey": row.answer_key,
        "RetryDelayInSeconds": row.retry_delay,
        "IsRequestable": row.status == "Active",
        "AutoGranted": row.auto_granted,
        "AutoGrantedValue": row.auto_granted_value,
    }
    return {name: value for name, value in answer.items() if value is not None}


def _system(its_id: str) -> Answer:
    return {
        "QualificationTypeId": its_id,
        "CreationTime": CREATED_BY_SYSTEM,
        "Name": SYSTEM_TYPES[its_id],
        "Description": "Kept by the service for every worker.",
        "QualificationTypeStatus": "Active",
        "IsRequestable": False,
        "AutoGranted": False,
    }


def _score(row: Row[Any]) -> Answer:
    return {
        "QualificationTypeId": row.qualification_type_id,
        "WorkerId": row.worker_id,
        "GrantTime": row.granted,
        "IntegerValue": row.value,
        "Status": row.status,
    }


def _request(row: Row[Any]) -> Answer:
    answer = {
        "QualificationRequestId": row.request_id,
        "QualificationTypeId": row.qualification_type_id,
        "WorkerId": row.worker_id,
        "Test": row.test,
        "Answer": row.answer,
        "SubmitTime": row.at,
    }
    return {name: value for name, value in answer.items() if value is not None}
