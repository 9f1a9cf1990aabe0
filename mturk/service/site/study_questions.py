"""Questions to participants before a study, and screening by their answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from bws.base.settings_files import Checked, Table, TableError
from giccs.benchmark.languages import language_tag
from mturk.catalogues import SOURCE_LANGUAGE, best_language, locale
from mturk.service.site.languages import language_names
from mturk.service.site.texts import text

ID = re.compile(r"[a-z][a-z0-9_]{0,31}")
MAX_ANSWER_CHARACTERS = 500
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
NUMBER = re.compile(r"-?[0-9]{1,9}")
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


def read_language(language: str) -> str:
    """Return a language tag; raise ValueError if it is invalid or unknown."""
    try:
        tag = language_tag(language)
        locale(tag)
    except ValueError as error:
        raise ValueError(f"has a wrong language: {error}") from None
    return tag


def check_texts_by_language(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts by language tag; raise ValueError for an invalid tag or an empty text."""
    if empty := [language for language, text in texts.items() if not text.strip()]:
        raise ValueError(f"is empty in {empty[0]}; expected a text")
    by_tag = {read_language(language): text for language, text in texts.items()}
    if len(by_tag) < len(texts):
        raise ValueError(f"has {', '.join(texts)}; expected each language once")
    return by_tag


def check_id(name: str) -> str:
    """Return the id of a question; raise ValueError for another form."""
    if not ID.fullmatch(name):
        raise ValueError(f"is {name!r}; expected lower-case letters, digits and '_', up to 32")
    return name


Texts = Annotated[Mapping[str, str], Checked(check_texts_by_language)]
"""Language -> text."""


@dataclass(frozen=True, slots=True)
class Choice(Table):
    """An option of a question."""

    value: Annotated[str, MinLen(1)]
    text: Texts


@dataclass(frozen=True, slots=True)
class StudyQuestion(Table):
    """A question before a study; an answer that is not accepted ends the participation."""

    id: Annotated[str, Checked(check_id)]
    text: Texts = field(default_factory=dict)
    """Empty for the text of the catalogues."""
    type: Literal["choice", "language", "number", "text"] = "text"
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
        if messages := dict(self._problems()):
            raise TableError(messages)

    def _problems(self) -> Iterator[tuple[str, str]]:
        if not self.text and self.id not in READY_MADE:
            yield "text", 'is missing; expected texts by language, such as en = "..."'
        values = {choice.value for choice in self.choices}
        if (self.type == "choice") != bool(self.choices):
            yield "choices", "belong to type choice, which needs some"
        elif len(values) < len(self.choices):
            yield "choices", "has a value twice; expected each once"
        if self.type == "choice" and not values.issuperset(self.accept):
            yield "accept", f"is {list(self.accept)}; expected values of the choices"
        if self.type == "language" and not set(self.accept) <= language_names("en").keys():
            yield "accept", f'is {list(self.accept)}; expected ISO 639 codes such as "de"'
        yield from self._number_problems()

    def _number_problems(self) -> Iterator[tuple[str, str]]:
        numbers = {"minimum": self.minimum, "maximum": self.maximum, "range": self.range or None}
        stated = [key for key, value in numbers.items() if value is not None]
        if self.type != "number":
            yield from ((key, f"belongs to type number, not {self.type}") for key in stated)
            return
        low, high = self.minimum, self.maximum
        if low is not None and high is not None and low > high:
            yield "minimum", f"is {low}; expected at most the maximum, {high}"
        if self.range and (len(self.range) != 2 or self.range[0] > self.range[1]):
            yield "range", f"is {list(self.range)}; expected two integers such as [1, 120], or []"
        elif self.range:
            for key, number in (("minimum", low), ("maximum", high)):
                if number is not None and not self._is_possible(number):
                    yield key, f"is {number}; expected a number in the range {list(self.range)}"

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


def questions_with_presets(tables: Any) -> Any:
    """Return the questions of a settings file with the presets of ready-made ones, and texts of choices as
    tables."""
    return [*map(_with_presets, tables)] if isinstance(tables, list) else tables


def _with_presets(table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    preset = dict(READY_MADE.get(str(table.get("id")), {}))
    if table.get("type", preset.get("type")) != "number":
        preset.pop("range", None)
    values = {**preset, **table}
    if isinstance(values.get("choices"), list):
        values["choices"] = [*map(_with_texts, values["choices"])]
    return values


def _with_texts(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    texts = {key: text for key, text in choice.items() if key != "value"}
    return {key: text for key, text in choice.items() if key == "value"} | {"text": texts}


def language_of(texts: Mapping[str, str], language: str) -> str:
    """Return the language of texts for a reader: the one that fits best, else English, else the first."""
    return best_language([language, SOURCE_LANGUAGE], texts) or next(iter(texts))


def _wording(texts: Mapping[str, str], language: str) -> Wording:
    tag = language_of(texts, language)
    return Wording(tag, texts[tag])
