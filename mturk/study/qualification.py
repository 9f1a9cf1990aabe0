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
from mturk.kinds.texts import texts_of
from mturk.study.client import ServiceError, error_code, explained
from mturk.study.collect import worker_ids
from mturk.study.ledger import Ledger
from mturk.study.settings import Settings

__all__ = [
    "QualificationTest",
    "answer_key",
    "create",
    "form",
    "mark_workers",
    "read_test",
    "shipped_test",
]  # fmt: skip

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
EXISTS = "QualificationTypeAlreadyExists"
KEYS = {
    "name": str, "description": str, "keywords": str, "seconds": int, "retry_after": int,
    "pass_at": int, "overview": list, "questions": list,
}  # fmt: skip
OPTIONAL = ("keywords", "retry_after", "overview")


@dataclass(frozen=True, slots=True)
class Question:
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
    questions: tuple[Question, ...]


def shipped_test(settings: Settings) -> QualificationTest:
    """Return the test that comes with a kind of study; InputError where there is none."""
    try:
        return _test(texts_of(get_kind(settings.kind).package, settings.language, "test"), "test")
    except FileNotFoundError:
        message = f"no test comes with kind {settings.kind!r} in language {settings.language!r}"
        raise InputError(Problem("settings", None, f"{message}; name one of your own")) from None


def read_test(path: str | os.PathLike[str]) -> QualificationTest:
    """Read a test from TOML, as the ones that come with giccs have it; InputError with every fault."""
    return _test(read_toml(path), display_name(path))


def _test(table: Mapping[str, Any], name: str) -> QualificationTest:
    problems = [*_wrong_keys(table)]
    if not problems:
        problems = [*_wrong_values(table)]
    if problems:
        raise InputError(Problem(name, None, said) for said in problems)
    questions = (
        Question(tuple(one["text"]), tuple(one["options"]), tuple(one["scores"]))
        for one in table["questions"]
    )
    return QualificationTest(
        table["name"], table["description"], table.get("keywords", ""), table["seconds"],
        table.get("retry_after"), table["pass_at"], tuple(table.get("overview", ())), tuple(questions),
    )  # fmt: skip


def _wrong_keys(table: Mapping[str, Any]) -> Iterator[str]:
    if unknown := sorted(table.keys() - KEYS.keys()):
        yield f"{', '.join(unknown)} is no part of a test; allowed: {', '.join(KEYS)}"
    for key, kind in KEYS.items():
        if key not in table and key not in OPTIONAL:
            yield f"{key} is missing"
        elif key in table and type(table[key]) is not kind:
            yield f"{key} is {table[key]!r}; {kind.__name__} is allowed"


def _wrong_values(table: Mapping[str, Any]) -> Iterator[str]:
    if not 1 <= table["pass_at"] <= 100:
        yield f"pass_at is {table['pass_at']}; 1 to 100 percent are allowed"
    if not _texts(table.get("overview", [])):
        yield "overview is no list of texts"
    if not table["questions"]:
        yield "there are no questions"
    for number, one in enumerate(table["questions"], start=1):
        yield from (f"question {number}: {said}" for said in _wrong_question(one))


def _wrong_question(one: Any) -> Iterator[str]:
    if not isinstance(one, dict) or one.keys() != {"text", "options", "scores"}:
        yield "text, options and scores are needed, and nothing else"
        return
    if not one["text"] or not _texts(one["text"]) or not _texts(one["options"]):
        yield "text and options are lists of texts; at least one text is needed"
        return
    scores, count = one["scores"], len(one["options"])
    if not 2 <= count <= len(ascii_lowercase):
        yield f"has {count} options; 2 to {len(ascii_lowercase)} are allowed"
    whole = isinstance(scores, list) and all(type(n) is int and 0 <= n <= 1000 for n in scores)
    if not whole or len(scores) != count or not any(scores):
        yield f"scores is {scores!r}; {count} whole numbers from 0 to 1000, not all 0, are allowed"


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)


def form(test: QualificationTest) -> str:
    """Return the test as QuestionForm XML; nothing in it tells which answers are right."""
    root = Element("QuestionForm", xmlns=f"{SCHEMAS}/2017-11-06/QuestionForm.xsd")
    if test.overview:
        _paragraphs(SubElement(root, "Overview"), test.overview)
    for number, one in enumerate(test.questions, start=1):
        question = SubElement(root, "Question")
        _leaf(question, "QuestionIdentifier", f"q{number}")
        _leaf(question, "DisplayName", f"{number} / {len(test.questions)}")
        _leaf(question, "IsRequired", "true")
        _paragraphs(SubElement(question, "QuestionContent"), one.text)
        selection = SubElement(SubElement(question, "AnswerSpecification"), "SelectionAnswer")
        _leaf(selection, "StyleSuggestion", "radiobutton")
        selections = SubElement(selection, "Selections")
        for letter, option in zip(ascii_lowercase, one.options, strict=False):
            choice = SubElement(selections, "Selection")
            _leaf(choice, "SelectionIdentifier", letter)
            _leaf(choice, "Text", option)
    return tostring(root, encoding="unicode")


def answer_key(test: QualificationTest) -> str:
    """Return the scores as AnswerKey XML; the value is the percentage of the highest sum."""
    root = Element("AnswerKey", xmlns=f"{SCHEMAS}/2005-10-01/AnswerKey.xsd")
    for number, one in enumerate(test.questions, start=1):
        question = SubElement(root, "Question")
        _leaf(question, "QuestionIdentifier", f"q{number}")
        for letter, score in zip(ascii_lowercase, one.scores, strict=False):
            option = SubElement(question, "AnswerOption")
            _leaf(option, "SelectionIdentifier", letter)
            _leaf(option, "AnswerScore", str(score))
    mapping = SubElement(SubElement(root, "QualificationValueMapping"), "PercentageMapping")
    _leaf(mapping, "MaximumSummedScore", str(sum(max(one.scores) for one in test.questions)))
    return tostring(root, encoding="unicode")


def _leaf(parent: Element, name: str, text: str) -> None:
    SubElement(parent, name).text = text


def _paragraphs(parent: Element, texts: Sequence[str]) -> None:
    for text in texts:
        _leaf(parent, "Text", text)


def create(client: Any, test: QualificationTest) -> tuple[str, bool]:
    """Return the id of the test's qualification type, and whether it was made just now.

    A type of this name that has the same test is taken; ServiceError where its test is another.
    """
    asked, key = form(test), answer_key(test)
    for xml in (asked, key):
        limits.QUESTION.check(xml)
    retry = {} if test.retry_after is None else {"RetryDelayInSeconds": test.retry_after}
    with explained():
        try:
            made = client.create_qualification_type(
                Name=test.name, Description=test.description, Keywords=test.keywords,
                QualificationTypeStatus="Active", Test=asked, AnswerKey=key,
                TestDurationInSeconds=test.seconds, **retry,
            )  # fmt: skip
        except client.exceptions.RequestError as error:
            if error_code(error).rpartition(".")[2] != EXISTS:
                raise
            there = _named(client, test.name)
            if (there.get("Test"), there.get("AnswerKey")) != (asked, key):
                raise ServiceError(_another(test.name)) from None
            return str(there["QualificationTypeId"]), False
    return str(made["QualificationType"]["QualificationTypeId"]), True


def _named(client: Any, name: str) -> Mapping[str, Any]:
    """Return the requester's qualification type of exactly this name; ServiceError where there is none."""
    pages = client.get_paginator("list_qualification_types").paginate(
        Query=name, MustBeRequestable=False, MustBeOwnedByCaller=True
    )
    for one in (one for page in pages for one in page["QualificationTypes"]):
        if one["Name"] == name:
            found: Mapping[str, Any] = one
            return found
    raise ServiceError(f"the service says that {name!r} is there, but does not list it")


def _another(name: str) -> str:
    return f"the service has another test of the name {name!r}; give yours another name"


def mark_workers(client: Any, ledger: Ledger) -> tuple[str, int]:
    """Return the id of a qualification type that all who submitted have, and how many they are.

    `collect` first. The same again marks those who have come since. A worker who asks for the type waits
    for the requester, as with every type without a test. Raises ServiceError.
    """
    its_id = _marker(client, ledger)
    workers = sorted(set(worker_ids(client, ledger).values()))
    for worker in workers:
        with explained():
            client.associate_qualification_with_worker(
                QualificationTypeId=its_id, WorkerId=worker, IntegerValue=1, SendNotification=False
            )
    return its_id, len(workers)


def _marker(client: Any, ledger: Ledger) -> str:
    study = ledger.study()
    name = f"Has worked on study {ledger.hits()[0].annotation.split(':')[1][:16]}"
    with explained():
        try:
            made = client.create_qualification_type(
                Name=name, Description=study.settings.title, QualificationTypeStatus="Active"
            )["QualificationType"]
        except client.exceptions.RequestError as error:
            if error_code(error).rpartition(".")[2] != EXISTS:
                raise
            made = _named(client, name)
    return str(made["QualificationTypeId"])
