"""Qualification types of a study: tests for workers, and marks for participants."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Annotated, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from annotated_types import Ge, Le, MaxLen, MinLen

from bws.base.problems import InputError, Problem
from bws.base.settings_files import SettingsText, Table, TableError, Text, read_settings_text
from mturk import limits
from mturk.kinds import get_kind
from mturk.kinds.texts import built_in_texts
from mturk.study.client import ServiceError, error_code, translate_errors
from mturk.study.collect import worker_ids
from mturk.study.ledger import Ledger
from mturk.study.settings import Settings

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
EXISTS = "QualificationTypeAlreadyExists"


@dataclass(frozen=True, slots=True)
class TestQuestion(Table):
    """A multiple-choice question with one answer."""

    text: Annotated[tuple[Text, ...], MinLen(1)]
    """Paragraphs; the last is the question."""
    options: Annotated[tuple[Text, ...], MinLen(2), MaxLen(len(ascii_lowercase))]
    scores: tuple[Annotated[int, Ge(0), Le(1000)], ...]
    """Points per option."""

    def __post_init__(self) -> None:
        count = len(self.options)
        if len(self.scores) != count or not any(self.scores):
            message = f"is {list(self.scores)}; expected {count} integers, not all 0"
            raise TableError({"scores": message})


@dataclass(frozen=True, slots=True)
class QualificationTest(Table):
    """A qualification test; its value is the percentage of points, 0 to 100."""

    name: str
    description: str
    seconds: int
    """Time limit in seconds."""
    pass_at: Annotated[int, Ge(1), Le(100)]
    """Minimum percentage for workers to qualify."""
    questions: Annotated[tuple[TestQuestion, ...], MinLen(1)]
    keywords: str = ""
    retry_after: int | None = None
    """Seconds after which the test can be repeated; None: never."""
    overview: tuple[Text, ...] = ()


def built_in_test(settings: Settings) -> QualificationTest:
    """Return the built-in test of a kind of HIT; InputError if it is missing."""
    try:
        texts = built_in_texts(get_kind(settings.kind).package, settings.language, "test")
    except FileNotFoundError:
        message = f"no built-in test for kind {settings.kind!r} in language {settings.language!r}"
        raise InputError(Problem("settings", None, f"{message}; expected a test file")) from None
    return SettingsText("test", texts, {}).parsed(QualificationTest)


def read_test(path: str | os.PathLike[str]) -> QualificationTest:
    """Read a test from a TOML file in the format of the built-in tests; InputError with all problems."""
    return read_settings_text(path).parsed(QualificationTest)


def question_form_xml(test: QualificationTest) -> str:
    """Return the test as QuestionForm XML, without the scores."""
    root = Element("QuestionForm", xmlns=f"{SCHEMAS}/2017-11-06/QuestionForm.xsd")
    if test.overview:
        _add_paragraphs(SubElement(root, "Overview"), test.overview)
    for number, test_question in enumerate(test.questions, start=1):
        question = SubElement(root, "Question")
        _add_element(question, "QuestionIdentifier", f"q{number}")
        _add_element(question, "DisplayName", f"{number} / {len(test.questions)}")
        _add_element(question, "IsRequired", "true")
        _add_paragraphs(SubElement(question, "QuestionContent"), test_question.text)
        selection = SubElement(SubElement(question, "AnswerSpecification"), "SelectionAnswer")
        _add_element(selection, "StyleSuggestion", "radiobutton")
        selections = SubElement(selection, "Selections")
        for letter, option in zip(ascii_lowercase, test_question.options, strict=False):
            choice = SubElement(selections, "Selection")
            _add_element(choice, "SelectionIdentifier", letter)
            _add_element(choice, "Text", option)
    return tostring(root, encoding="unicode")


def answer_key_xml(test: QualificationTest) -> str:
    """Return the scores as AnswerKey XML; the value is the percentage of the maximum sum."""
    root = Element("AnswerKey", xmlns=f"{SCHEMAS}/2005-10-01/AnswerKey.xsd")
    for number, test_question in enumerate(test.questions, start=1):
        question = SubElement(root, "Question")
        _add_element(question, "QuestionIdentifier", f"q{number}")
        for letter, score in zip(ascii_lowercase, test_question.scores, strict=False):
            option = SubElement(question, "AnswerOption")
            _add_element(option, "SelectionIdentifier", letter)
            _add_element(option, "AnswerScore", str(score))
    mapping = SubElement(SubElement(root, "QualificationValueMapping"), "PercentageMapping")
    _add_element(
        mapping,
        "MaximumSummedScore",
        str(sum(max(test_question.scores) for test_question in test.questions)),
    )
    return tostring(root, encoding="unicode")


def _add_element(parent: Element, name: str, text: str) -> None:
    SubElement(parent, name).text = text


def _add_paragraphs(parent: Element, texts: Sequence[str]) -> None:
    for text in texts:
        _add_element(parent, "Text", text)


def create_qualification_type(client: Any, test: QualificationTest) -> tuple[str, bool]:
    """Create the test's qualification type; return its id and whether it is new.

    An existing type with the same name and test is reused; ServiceError if its test differs.
    """
    form_xml, key = question_form_xml(test), answer_key_xml(test)
    for xml in (form_xml, key):
        limits.QUESTION.check(xml)
    retry = {} if test.retry_after is None else {"RetryDelayInSeconds": test.retry_after}
    with translate_errors():
        try:
            response = client.create_qualification_type(
                Name=test.name, Description=test.description, Keywords=test.keywords,
                QualificationTypeStatus="Active", Test=form_xml, AnswerKey=key,
                TestDurationInSeconds=test.seconds, **retry,
            )  # fmt: skip
        except client.exceptions.RequestError as error:
            if error_code(error).rpartition(".")[2] != EXISTS:
                raise
            existing_type = _find_qualification_type(client, test.name)
            if (existing_type.get("Test"), existing_type.get("AnswerKey")) != (form_xml, key):
                raise ServiceError(_name_conflict(test.name)) from None
            return str(existing_type["QualificationTypeId"]), False
    return str(response["QualificationType"]["QualificationTypeId"]), True


def _find_qualification_type(client: Any, name: str) -> Mapping[str, Any]:
    """Return the requester's qualification type with exactly this name; ServiceError if it is missing."""
    pages = client.get_paginator("list_qualification_types").paginate(
        Query=name, MustBeRequestable=False, MustBeOwnedByCaller=True
    )
    for page in pages:
        for qualification_type in page["QualificationTypes"]:
            if qualification_type["Name"] == name:
                match: Mapping[str, Any] = qualification_type
                return match
    raise ServiceError(f"the service reports that {name!r} exists, but does not list it")


def _name_conflict(name: str) -> str:
    return f"the service has a different test named {name!r}; expected another name"


def mark_workers(client: Any, ledger: Ledger) -> tuple[str, int]:
    """Assign a qualification to all workers who submitted; return its id and the number of workers.

    Call `collect` first. A repeated call adds new workers. Requests of workers for the type wait for the
    requester, as with every type without a test. Raises ServiceError.
    """
    its_id = _participant_qualification(client, ledger)
    workers = sorted(set(worker_ids(client, ledger).values()))
    for worker in workers:
        with translate_errors():
            client.associate_qualification_with_worker(
                QualificationTypeId=its_id, WorkerId=worker, IntegerValue=1, SendNotification=False
            )
    return its_id, len(workers)


def _participant_qualification(client: Any, ledger: Ledger) -> str:
    study = ledger.study()
    name = f"Has worked on study {ledger.hits()[0].annotation.split(':')[1][:16]}"
    with translate_errors():
        try:
            qualification_type = client.create_qualification_type(
                Name=name, Description=study.settings.title, QualificationTypeStatus="Active"
            )["QualificationType"]
        except client.exceptions.RequestError as error:
            if error_code(error).rpartition(".")[2] != EXISTS:
                raise
            qualification_type = _find_qualification_type(client, name)
    return str(qualification_type["QualificationTypeId"])
