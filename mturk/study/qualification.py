"""Qualifications that a study requires: tests that workers take, and marks of who has worked on a study."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml
from mturk import limits
from mturk.kinds import get_kind
from mturk.kinds.texts import built_in_texts
from mturk.study.client import ServiceError, error_code, translate_errors
from mturk.study.collect import worker_ids
from mturk.study.ledger import Ledger
from mturk.study.settings import Settings

__all__ = [
    "QualificationTest",
    "answer_key_xml",
    "built_in_test",
    "create_qualification_type",
    "mark_workers",
    "question_form_xml",
    "read_test",
]  # fmt: skip

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
EXISTS = "QualificationTypeAlreadyExists"
KEYS = {
    "name": str, "description": str, "keywords": str, "seconds": int, "retry_after": int,
    "pass_at": int, "overview": list, "questions": list,
}  # fmt: skip
OPTIONAL = ("keywords", "retry_after", "overview")


@dataclass(frozen=True, slots=True)
class TestQuestion:
    """A question with options of which one is to be chosen."""

    text: tuple[str, ...]
    """Paragraphs; the last one is the question."""
    options: tuple[str, ...]
    """At most 26."""
    scores: tuple[int, ...]
    """What each option earns."""


@dataclass(frozen=True, slots=True)
class QualificationTest:
    """A test whose value is the percentage of the points, 0 to 100."""

    name: str
    description: str
    keywords: str
    seconds: int
    """For taking it."""
    retry_after: int | None
    """Seconds after which it can be taken again; None is never."""
    pass_at: int
    """Percent from which a worker may work."""
    overview: tuple[str, ...]
    questions: tuple[TestQuestion, ...]


def built_in_test(settings: Settings) -> QualificationTest:
    """Return the test that comes with a kind of study; InputError where there is none."""
    try:
        return _parse_test(
            built_in_texts(get_kind(settings.kind).package, settings.language, "test"), "test"
        )
    except FileNotFoundError:
        message = f"no test comes with kind {settings.kind!r} in language {settings.language!r}"
        raise InputError(Problem("settings", None, f"{message}; name one of your own")) from None


def read_test(path: str | os.PathLike[str]) -> QualificationTest:
    """Read a test from TOML, as the ones that come with giccs have it; InputError with every fault."""
    return _parse_test(read_toml(path), display_name(path))


def _parse_test(table: Mapping[str, Any], name: str) -> QualificationTest:
    problems = [*_key_problems(table)]
    if not problems:
        problems = [*_value_problems(table)]
    if problems:
        raise InputError(Problem(name, None, message) for message in problems)
    questions = (
        TestQuestion(tuple(question["text"]), tuple(question["options"]), tuple(question["scores"]))
        for question in table["questions"]
    )
    return QualificationTest(
        table["name"], table["description"], table.get("keywords", ""), table["seconds"],
        table.get("retry_after"), table["pass_at"], tuple(table.get("overview", ())), tuple(questions),
    )  # fmt: skip


def _key_problems(table: Mapping[str, Any]) -> Iterator[str]:
    if unknown := sorted(table.keys() - KEYS.keys()):
        yield f"{', '.join(unknown)} is no part of a test; allowed: {', '.join(KEYS)}"
    for key, kind in KEYS.items():
        if key not in table and key not in OPTIONAL:
            yield f"{key} is missing"
        elif key in table and type(table[key]) is not kind:
            yield f"{key} is {table[key]!r}; {kind.__name__} is allowed"


def _value_problems(table: Mapping[str, Any]) -> Iterator[str]:
    if not 1 <= table["pass_at"] <= 100:
        yield f"pass_at is {table['pass_at']}; 1 to 100 percent are allowed"
    if not _is_text_list(table.get("overview", [])):
        yield "overview is no list of texts"
    if not table["questions"]:
        yield "there are no questions"
    for number, question in enumerate(table["questions"], start=1):
        yield from (f"question {number}: {message}" for message in _question_problems(question))


def _question_problems(question: Any) -> Iterator[str]:
    if not isinstance(question, dict) or question.keys() != {"text", "options", "scores"}:
        yield "text, options and scores are needed, and nothing else"
        return
    if (
        not question["text"]
        or not _is_text_list(question["text"])
        or not _is_text_list(question["options"])
    ):
        yield "text and options are lists of texts; at least one text is needed"
        return
    scores, count = question["scores"], len(question["options"])
    if not 2 <= count <= len(ascii_lowercase):
        yield f"has {count} options; 2 to {len(ascii_lowercase)} are allowed"
    valid = isinstance(scores, list) and all(type(n) is int and 0 <= n <= 1000 for n in scores)
    if not valid or len(scores) != count or not any(scores):
        yield f"scores is {scores!r}; {count} whole numbers from 0 to 1000, not all 0, are allowed"


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)


def question_form_xml(test: QualificationTest) -> str:
    """Return the test as QuestionForm XML; nothing in it tells which answers are right."""
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
    """Return the scores as AnswerKey XML; the value is the percentage of the highest sum."""
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
    """Return the id of the test's qualification type, and whether it was made just now.

    A type of this name that has the same test is taken; ServiceError where its test is another.
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
    """Return the requester's qualification type of exactly this name; ServiceError where there is none."""
    pages = client.get_paginator("list_qualification_types").paginate(
        Query=name, MustBeRequestable=False, MustBeOwnedByCaller=True
    )
    for page in pages:
        for qualification_type in page["QualificationTypes"]:
            if qualification_type["Name"] == name:
                match: Mapping[str, Any] = qualification_type
                return match
    raise ServiceError(f"the service says that {name!r} is there, but does not list it")


def _name_conflict(name: str) -> str:
    return f"the service has another test of the name {name!r}; give yours another name"


def mark_workers(client: Any, ledger: Ledger) -> tuple[str, int]:
    """Return the id of a qualification type that all who submitted have, and how many they are.

    `collect` first. The same again marks those who have come since. A worker who asks for the type waits
    for the requester, as with every type without a test. Raises ServiceError.
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
