"""API operations on qualification types, qualifications and qualification requests."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, update

from mturk import limits, question_xml
from mturk.question_form_schema import check_question
from mturk.service.api.call import Answer, Call, Parameters, check, page
from mturk.service.api.workers import send_message
from mturk.service.errors import does_not_exist, request_error, wrong_state, xml_error
from mturk.service.rules import answer_key, qualification_requests
from mturk.service.rules.eligibility import SYSTEM_TYPES
from mturk.service.store.schema import (
    new_id,
    qualification,
    qualification_request,
    qualification_type,
)

COLUMN_BY_PARAMETER = {
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
    """CreateQualificationType: create a type with a unique name."""
    values = {"keywords": "", "auto_granted": False} | _values(parameters)
    _check_type(values)
    same = select(qualification_type.c.number).where(qualification_type.c.name == values["name"])
    if call.connection.scalar(same) is not None:
        message = f"You have already created a QualificationType with this name: {values['name']}"
        raise request_error("QualificationTypeAlreadyExists", message)
    type_id = new_id()
    call.connection.execute(
        insert(qualification_type).values(
            qualification_type_id=type_id, created=call.now, **values
        )
    )  # fmt: skip
    return {"QualificationType": _type_document(_type_row(call, type_id))}


def update_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """UpdateQualificationType: replace the given properties; a new test removes the old answer key."""
    row = _type_row(call, parameters["QualificationTypeId"])
    if "Test" not in parameters:
        dependent = {"TestDurationInSeconds", "AnswerKey"}.intersection(parameters)
        check(*(f"{name} requires a Test in the same request" for name in sorted(dependent)))
    reset_columns = {"answer_key": None, "test_duration": None} if "Test" in parameters else {}
    changes = reset_columns | _values(parameters)
    _check_type({name: row._mapping[name] for name in COLUMN_BY_PARAMETER.values()} | changes)
    if changes:
        call.connection.execute(
            update(qualification_type)
            .where(qualification_type.c.number == row.number)
            .values(**changes)
        )
    return {"QualificationType": _type_document(_type_row(call, row.qualification_type_id))}


def _values(parameters: Parameters) -> dict[str, Any]:
    return {
        column: parameters[name]
        for name, column in COLUMN_BY_PARAMETER.items()
        if name in parameters
    }


def _check_type(values: dict[str, Any]) -> None:
    test, key = values.get("test"), values.get("answer_key")
    is_automatic = values.get("auto_granted")
    check(
        NAME.problem(values["name"]),
        limits.DESCRIPTION.problem(values["description"]),
        limits.KEYWORDS.problem(values["keywords"]),
        _range_problem(RETRY_DELAY, values.get("retry_delay")),
        _range_problem(TEST_DURATION, values.get("test_duration")),
        _range_problem(VALUE, values.get("auto_granted_value")),
        "Test requires TestDurationInSeconds"
        if test and values.get("test_duration") is None
        else None,
        "AnswerKey requires a Test" if key and not test else None,
        "AutoGranted cannot be combined with a Test" if is_automatic and test else None,
        test and limits.QUESTION.problem(test),
        key and limits.QUESTION.problem(key),
    )
    if test:
        _check_test(test)
    if key:
        _check_key(key)


def _range_problem(limit: limits.RangeLimit, number: int | None) -> str | None:
    return None if number is None else limit.problem(number)


def _check_test(test: str) -> None:
    try:
        form = check_question(test)
    except ValueError as error:
        raise xml_error("Test", error) from None
    if not isinstance(form, question_xml.QuestionForm):
        raise xml_error("Test", "expected a QuestionForm")


def _check_key(key: str) -> None:
    try:
        answer_key.check(key)
    except ValueError as error:
        raise xml_error("AnswerKey", error) from None


def get_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """GetQualificationType: return a type of the requester or of the system."""
    type_id = parameters["QualificationTypeId"]
    if type_id in SYSTEM_TYPES:
        return {"QualificationType": _system_type_document(type_id)}
    return {"QualificationType": _type_document(_type_row(call, type_id))}


def delete_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """DeleteQualificationType: delete a type and reject pending requests; granted values remain."""
    row = _type_row(call, parameters["QualificationTypeId"])
    of_type = qualification_request.c.qualification_type_id == row.qualification_type_id
    call.connection.execute(
        update(qualification_request)
        .where(of_type, qualification_request.c.status == "Pending")
        .values(status="Rejected")
    )
    is_type = qualification_type.c.number == row.number
    call.connection.execute(delete(qualification_type).where(is_type))
    return {}


def list_qualification_types(call: Call, parameters: Parameters) -> Answer:
    """ListQualificationTypes: list types whose name, description or keywords contain the query.

    System types are not listed: workers cannot request them, and all other types belong to the caller.
    """
    query = select(qualification_type)
    if parameters.get("Query"):
        matches = [
            column.icontains(parameters["Query"], autoescape=True)
            for column in (
                qualification_type.c.name,
                qualification_type.c.description,
                qualification_type.c.keywords,
            )
        ]
        query = query.where(matches[0] | matches[1] | matches[2])
    if parameters["MustBeRequestable"]:
        query = query.where(qualification_type.c.status == "Active")
    return page(
        call, parameters, query, qualification_type.c.number, "QualificationTypes", _type_document
    )


def associate_qualification_with_worker(call: Call, parameters: Parameters) -> Answer:
    """AssociateQualificationWithWorker: grant a value (default 1), also to an unknown worker."""
    row = _type_row(call, parameters["QualificationTypeId"])
    value = parameters.get("IntegerValue", 1)
    check(VALUE.problem(value))
    qualification_requests.grant(
        call.connection, parameters["WorkerId"], row.qualification_type_id, value, call.now
    )
    if parameters.get("SendNotification", True):
        text = f"You have been granted this qualification with the value {value}."
        send_message(call, parameters["WorkerId"], row.name, text)
    return {}


def disassociate_qualification_from_worker(call: Call, parameters: Parameters) -> Answer:
    """DisassociateQualificationFromWorker: revoke a qualification."""
    row = _granted_row(call, parameters)
    call.connection.execute(
        update(qualification).where(qualification.c.number == row.number).values(status="Revoked")
    )
    if parameters.get("Reason"):
        name = _type_row(call, row.qualification_type_id).name
        send_message(call, row.worker_id, name, parameters["Reason"])
    return {}


def get_qualification_score(call: Call, parameters: Parameters) -> Answer:
    """GetQualificationScore: return a worker's qualification."""
    return {"Qualification": _qualification_document(_granted_row(call, parameters))}


def list_workers_with_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """ListWorkersWithQualificationType: list granted or revoked qualifications of a type."""
    row = _type_row(call, parameters["QualificationTypeId"])
    query = select(qualification).where(
        qualification.c.qualification_type_id == row.qualification_type_id,
        qualification.c.status == parameters.get("Status", "Granted"),
    )
    return page(
        call, parameters, query, qualification.c.number, "Qualifications", _qualification_document
    )


def list_qualification_requests(call: Call, parameters: Parameters) -> Answer:
    """ListQualificationRequests: list pending requests."""
    query = _select_pending()
    if "QualificationTypeId" in parameters:
        row = _type_row(call, parameters["QualificationTypeId"])
        query = query.where(
            qualification_request.c.qualification_type_id == row.qualification_type_id
        )
    number = qualification_request.c.number
    return page(call, parameters, query, number, "QualificationRequests", _request_document)


def accept_qualification_request(call: Call, parameters: Parameters) -> Answer:
    """AcceptQualificationRequest: grant the requested qualification (default value 1)."""
    row = _pending_request(call, parameters)
    value = parameters.get("IntegerValue", 1)
    check(VALUE.problem(value))
    qualification_requests.grant(
        call.connection, row.worker_id, row.qualification_type_id, value, call.now
    )
    _decide(call, row, "Granted")
    return {}


def reject_qualification_request(call: Call, parameters: Parameters) -> Answer:
    """RejectQualificationRequest: reject a pending request."""
    row = _pending_request(call, parameters)
    _decide(call, row, "Rejected")
    if parameters.get("Reason"):
        send_message(
            call,
            row.worker_id,
            _type_row(call, row.qualification_type_id).name,
            parameters["Reason"],
        )
    return {}


def _decide(call: Call, row: Row[Any], status: str) -> None:
    call.connection.execute(
        update(qualification_request)
        .where(qualification_request.c.number == row.number)
        .values(status=status)
    )


def _select_pending() -> Select[Any]:
    return select(qualification_request).where(qualification_request.c.status == "Pending")


def _pending_request(call: Call, parameters: Parameters) -> Row[Any]:
    request_id = parameters["QualificationRequestId"]
    query = _select_pending().where(qualification_request.c.request_id == request_id)
    row = call.connection.execute(query).first()
    if row is None:
        raise does_not_exist("QualificationRequest", request_id)
    return row


def _type_row(call: Call, type_id: str) -> Row[Any]:
    query = select(qualification_type).where(qualification_type.c.qualification_type_id == type_id)
    row = call.connection.execute(query).first()
    if row is None:
        raise does_not_exist("QualificationType", type_id)
    return row


def _granted_row(call: Call, parameters: Parameters) -> Row[Any]:
    row = _type_row(call, parameters["QualificationTypeId"])
    qualification_row = call.connection.execute(
        select(qualification).where(
            qualification.c.qualification_type_id == row.qualification_type_id,
            qualification.c.worker_id == parameters["WorkerId"],
        )
    ).first()
    if qualification_row is None:
        message = "You requested a Qualification that does not exist."
        raise request_error("QualificationDoesNotExist", message)
    if qualification_row.status != "Granted":
        raise wrong_state("Qualification", qualification_row.status, ["Granted"])
    return qualification_row


def _type_document(row: Row[Any]) -> Answer:
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


def _system_type_document(type_id: str) -> Answer:
    return {
        "QualificationTypeId": type_id,
        "CreationTime": CREATED_BY_SYSTEM,
        "Name": SYSTEM_TYPES[type_id],
        "Description": "Maintained by the service for every worker.",
        "QualificationTypeStatus": "Active",
        "IsRequestable": False,
        "AutoGranted": False,
    }


def _qualification_document(row: Row[Any]) -> Answer:
    return {
        "QualificationTypeId": row.qualification_type_id,
        "WorkerId": row.worker_id,
        "GrantTime": row.granted,
        "IntegerValue": row.value,
        "Status": row.status,
    }


def _request_document(row: Row[Any]) -> Answer:
    answer = {
        "QualificationRequestId": row.request_id,
        "QualificationTypeId": row.qualification_type_id,
        "WorkerId": row.worker_id,
        "Test": row.test,
        "Answer": row.answer,
        "SubmitTime": row.at,
    }
    return {name: value for name, value in answer.items() if value is not None}
