"""Questions to participants before a study, and screening by their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from giccs.benchmark.languages import language_tag
from mturk.catalogues import SOURCE_LANGUAGE, best_language, locale
from mturk.service.site.languages import language_names
from mturk.service.site.texts import text

__all__ = ["Choice", "StudyQuestion", "Wording", "language_of", "read_language", "read_questions"]

ID = re.compile(r"[a-z][a-z0-9_]{0,31}")
TYPES = ("choice", "language", "number", "text")
MAX_ANSWER_CHARACTERS = 500
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
NUMBER = re.compile(r"-?[0-9]{1,9}")
KEYS = ("id", "text", "type", "choices", "required", "accept", "minimum", "maximum", "range")
READY_MADE: Mapping[str, Mapping[str, Any]] = {
    "age": {"type": "number", "range": [1, 120]},
    "first_language": {"type": "language"},
}
"""Id of a question whose text is in the catalogues, as ``start.ID`` -> its settings, unless the configuration
has others."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A text and its language."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a question."""

    value: str
    text: Mapping[str, str]
    """Language -> text."""


@dataclass(frozen=True, slots=True)
class StudyQuestion:
    """A question before a study; an answer that is not accepted ends the participation."""

    id: str
    text: Mapping[str, str]
    """Language -> text; empty: that of the catalogues."""
    type: str = "text"
    """One of `TYPES`."""
    choices: Sequence[Choice] = ()
    required: bool = True
    accept: Sequence[str] = ()
    """Accepted answers, for languages ISO 639 codes; compared without case; empty: all."""
    minimum: int | None = None
    """Smallest accepted number."""
    maximum: int | None = None
    range: Sequence[int] = ()
    """Smallest and largest possible number; participants are asked to correct others. Empty: any number."""
    field_name: str = field(init=False)
    """Name of the form field."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "field_name", f"question-{self.id}")

    def label(self, language: str) -> Wording:
        """Return the text for a reader of a language: in this language, else in English, else in the first.

        >>> StudyQuestion("q", {"en": "Why?", "es": "¿Por qué?"}).label("es-MX").text
        '¿Por qué?'
        """
        if not self.text:
            return Wording(language, text(language, f"start.{self.id}"))
        return _wording(self.text, language)

    def options(self, language: str) -> Mapping[str, Wording]:
        """Return value -> text of the answers to choose from; empty for numbers and texts."""
        if self.type == "language":
            names = language_names(language)
            return {code: Wording(language, name) for code, name in names.items()}
        return {choice.value: _wording(choice.text, language) for choice in self.choices}

    def is_valid(self, answer: str) -> bool:
        """Return whether an answer can be stored."""
        if not answer:
            return not self.required
        if self.type == "number":
            return NUMBER.fullmatch(answer) is not None and self._is_possible(int(answer))
        if self.type in ("choice", "language"):
            return answer in self.options(SOURCE_LANGUAGE)
        return len(answer) <= MAX_ANSWER_CHARACTERS and not CONTROL_CHARACTER.search(answer)

    def _is_possible(self, number: int) -> bool:
        return not self.range or self.range[0] <= number <= self.range[1]

    def is_accepted(self, answer: str) -> bool:
        """Return whether a valid answer passes the screening.

        >>> age = StudyQuestion("age", {"en": "How old are you?"}, "number", minimum=18)
        >>> age.is_accepted("17"), age.is_accepted("18")
        (False, True)
        """
        if self.accept and answer.casefold() not in {text.casefold() for text in self.accept}:
            return False
        if self.minimum is None and self.maximum is None:
            return True
        if not answer:
            return False
        low = self.minimum is None or int(answer) >= self.minimum
        return low and (self.maximum is None or int(answer) <= self.maximum)


def read_questions(tables: Sequence[Any]) -> tuple[StudyQuestion, ...]:
    """Return the questions of a study's settings; raise ValueError for the first faulty one."""
    questions = tuple(_read_question(table) for table in tables)
    ids = [question.id for question in questions]
    if repeated := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(f"question id {min(repeated)!r} occurs twice; expected each once")
    return questions


def _read_question(table: Any) -> StudyQuestion:
    if not isinstance(table, dict) or not isinstance(table.get("id"), str):
        raise ValueError(f"question {table!r}; expected a table with an id")
    name = table["id"]
    if not ID.fullmatch(name):
        raise ValueError(
            f"question id {name!r}; expected lower-case letters, digits and '_', up to 32"
        )
    if unknown := sorted(table.keys() - set(KEYS)):
        raise ValueError(
            f"question {name!r}: unknown setting {unknown[0]}; expected {', '.join(KEYS)}"
        )
    values = {**READY_MADE.get(name, {}), **table}
    kind = values.setdefault("type", "text")
    if kind not in TYPES:
        raise ValueError(f"question {name!r}: type is {kind!r}; expected {', '.join(TYPES)}")
    if kind != "number" and "range" not in table:
        values.pop("range", None)
    is_ready_made = name in READY_MADE and "text" not in table
    values["text"] = {} if is_ready_made else _read_text(table.get("text"), f"question {name!r}")
    values["choices"] = _read_choices(values.get("choices", []), name)
    if (kind == "choice") != bool(values["choices"]):
        raise ValueError(f"question {name!r}: choices belong to type choice, and it needs some")
    _check_screening(name, values)
    _check_range(name, values)
    return StudyQuestion(**values)


def _check_screening(name: str, values: Mapping[str, Any]) -> None:
    if not isinstance(values.get("required", True), bool):
        raise ValueError(
            f"question {name!r}: required is {values['required']!r}; expected true or false"
        )
    accept = values.get("accept", [])
    if not isinstance(accept, list) or not all(isinstance(text, str) for text in accept):
        raise ValueError(f"question {name!r}: accept is {accept!r}; expected a list of texts")
    choice_values = {choice.value for choice in values["choices"]}
    if values["type"] == "choice" and not set(accept) <= choice_values:
        raise ValueError(f"question {name!r}: accept is {accept!r}; expected values of its choices")
    if values["type"] == "language" and not set(accept) <= language_names("en").keys():
        raise ValueError(
            f'question {name!r}: accept is {accept!r}; expected ISO 639 codes such as "de"'
        )
    for bound in ("minimum", "maximum"):
        number = values.get(bound)
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise ValueError(f"question {name!r}: {bound} is {number!r}; expected an integer")
        if number is not None and values["type"] != "number":
            raise ValueError(f"question {name!r}: {bound} belongs to type number")
    low, high = values.get("minimum"), values.get("maximum")
    if low is not None and high is not None and low > high:
        raise ValueError(f"question {name!r}: minimum {low} is greater than maximum {high}")


def _check_range(name: str, values: Mapping[str, Any]) -> None:
    bounds = values.get("range", [])
    if "range" in values and values["type"] != "number":
        raise ValueError(f"question {name!r}: range belongs to type number")
    is_pair = isinstance(bounds, list) and [type(bound) for bound in bounds] in ([], [int, int])
    if not is_pair or (bounds and bounds[0] > bounds[1]):
        raise ValueError(
            f"question {name!r}: range is {bounds!r}; expected two integers such as [1, 120], or []"
        )
    for bound in ("minimum", "maximum"):
        number = values.get(bound)
        if bounds and number is not None and not bounds[0] <= number <= bounds[1]:
            raise ValueError(f"question {name!r}: {bound} {number} is outside the range {bounds}")


def _read_choices(tables: Any, name: str) -> tuple[Choice, ...]:
    if not isinstance(tables, list):
        raise ValueError(f"question {name!r}: choices is {tables!r}; expected a list of tables")
    choices = tuple(_read_choice(table, name) for table in tables)
    if len({choice.value for choice in choices}) < len(choices):
        raise ValueError(f"question {name!r}: two choices have the same value; expected each once")
    return choices


def _read_choice(table: Any, name: str) -> Choice:
    if not isinstance(table, dict) or not isinstance(table.get("value"), str) or not table["value"]:
        raise ValueError(
            f"question {name!r}: choice {table!r}; expected a table with a value and texts"
        )
    texts = {key: text for key, text in table.items() if key != "value"}
    return Choice(
        table["value"], _read_text(texts, f"question {name!r}: choice {table['value']!r}")
    )


def _read_text(texts: Any, location: str) -> dict[str, str]:
    """Return language -> text."""
    valid = isinstance(texts, dict) and texts
    if not valid or not all(isinstance(text, str) and text.strip() for text in texts.values()):
        message = f'text is {texts!r}; expected texts by language, such as en = "..."'
        raise ValueError(f"{location}: {message}")
    return {read_language(language, location): text for language, text in texts.items()}


def read_language(language: str, location: str) -> str:
    """Return a language tag; raise ValueError if it is invalid or unknown."""
    try:
        tag = language_tag(language)
        locale(tag)
    except ValueError as error:
        raise ValueError(f"{location}: {error}; expected a tag such as en, es or pt-BR") from None
    return tag


def language_of(texts: Mapping[str, str], language: str) -> str:
    """Return the language of texts for a reader: the one that fits best, else English, else the first."""
    return best_language([language, SOURCE_LANGUAGE], texts) or next(iter(texts))


def _wording(texts: Mapping[str, str], language: str) -> Wording:
    tag = language_of(texts, language)
    return Wording(tag, texts[tag])
