"""What only the people behind a data set can say of it: card.toml."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bws.problems import InputError, Problem
from bws.textio import display_name, parse_toml, read_text
from giccs.benchmark.terms import Annotators, Terms

__all__ = ["QUESTIONS", "Question", "Stated", "read_stated", "template", "with_stated"]

Kind = Literal["text", "texts", "yes or no"]
ALLOWED = {"text": "a text in quotes", "texts": "a list of texts", "yes or no": "true or false"}


@dataclass(frozen=True, slots=True)
class Question:
    """A key of card.toml."""

    kind: Kind
    asks: str
    example: str
    """As TOML."""
    form: str = ""
    """What a text must match in full; empty where anything will do."""


QUESTIONS: Mapping[str, Question] = {
    "title": Question("text", "What is the data set called?", '"A benchmark of …"'),
    "description": Question(
        "text", "What is it, in a few sentences? (Markdown)", '"""\nDialogues about …\n"""'
    ),
    "language": Question(
        "texts", "Which languages? ISO 639 codes.", '["de"]', form=r"[a-z]{2,3}"
    ),
    "license": Question(
        "text", "Under which licence? The id that the hub uses, or other.", '"cc-by-4.0"',
        form=r"[a-z0-9][a-z0-9.+-]*",
    ),
    "license_link": Question(
        "text", "Where does the licence's text stand?",
        '"https://creativecommons.org/licenses/by/4.0/"', form=r"https?://\S+",
    ),
    "authors": Question("texts", "Who made it?", '["First Last", "…"]'),
    "citation": Question("text", "How is it to be cited? (BibTeX or text)", '"""\n@misc{…}\n"""'),
    "homepage": Question("text", "Where is it?", '"https://…"', form=r"https?://\S+"),
    "version": Question("text", "Which version is this?", '"1.0.0"'),
    "published": Question(
        "text", "On which day was this version published?", '"2026-01-31"', form=r"\d{4}-\d\d-\d\d"
    ),
    "simulated": Question("yes or no", "Did a program give the judgments, not people?", "false"),
    "source": Question(
        "text", "Where do the dialogues come from, and under which licence? Who wrote the utterances?",
        '"""\n…\n"""',
    ),
    "annotators": Question(
        "text", "Who judged? How were they recruited, instructed and paid; did they consent?",
        '"""\n…\n"""',
    ),
    "intended_use": Question("text", "What is it for, and what not?", '"""\n…\n"""'),
    "limits": Question("text", "What should a user be careful about?", '"""\n…\n"""'),
    "personal_data": Question(
        "text", "Is there personal data in it, and what was done about it?", '"""\n…\n"""'
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stated:
    """What card.toml says; a key that it leaves out is not here and will not be invented."""

    answers: Mapping[str, Any]

    def text(self, key: str) -> str:
        """Return a text; empty where it is not stated."""
        return str(self.answers.get(key, ""))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; empty where it is not stated."""
        return tuple(self.answers.get(key, ()))

    @property
    def simulated(self) -> bool | None:
        """Return whether the judgments are simulated; None where it is not stated."""
        found: bool | None = self.answers.get("simulated")
        return found

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the keys that are not stated."""
        return tuple(key for key in QUESTIONS if key not in self.answers)


def template() -> str:
    """Return a card.toml to fill in: every key with its question, commented out.

    >>> print(template().partition("\\n\\n")[2].partition("\\n\\n")[0])
    # What is the data set called?
    # title = "A benchmark of …"
    """
    asked = [
        f"# {question.asks}\n" + _commented(f"{key} = {question.example}")
        for key, question in QUESTIONS.items()
    ]
    head = (
        "# What giccs-card cannot know. Take away the # before what you answer; "
        'what you leave is "not stated"\n# in the card.'
    )
    return "\n\n".join([head, *asked]) + "\n"


def _commented(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.split("\n"))


def read_stated(path: str | os.PathLike[str]) -> Stated:
    """Read card.toml; InputError with every key that is unknown or of the wrong kind or form.

    An empty text or list is not an answer.
    """
    text, name = read_text(path), display_name(path)
    given = parse_toml(text, name)
    faults = {key: _fault(key, value) for key, value in given.items()}
    problems = [Problem(name, _line(text, key), fault) for key, fault in faults.items() if fault]
    if problems:
        raise InputError(problems)
    answers = {key: _stripped(value) for key, value in given.items()}
    return Stated({key: value for key, value in answers.items() if value not in ("", ())})


def _stripped(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(text.strip() for text in value if text.strip())
    return value.strip() if isinstance(value, str) else value


def _line(text: str, key: str) -> int | None:
    found = re.search(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*[=.\]]", text, re.M)
    return text.count("\n", 0, found.end()) + 1 if found else None


def _fault(key: str, value: Any) -> str:
    question = QUESTIONS.get(key)
    if question is None:
        return f"{key} is no key of card.toml; there are {', '.join(QUESTIONS)}"
    answers = value if question.kind == "texts" else [value]
    right: type = bool if question.kind == "yes or no" else str
    if not isinstance(answers, list) or not all(isinstance(one, right) for one in answers):
        return f"{key} is {value!r}; it must be {ALLOWED[question.kind]}"
    texts = [one.strip() for one in answers if isinstance(one, str) and one.strip()]
    wrong = [one for one in texts if question.form and not re.fullmatch(question.form, one)]
    wrong += [one for one in texts if key == "published" and not wrong and not _is_a_day(one)]
    return f"{key} is {wrong[0]!r}; an answer looks like {question.example}" if wrong else ""


def _is_a_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def with_stated(known: Terms, stated: Stated, name: str) -> Terms:
    """Return terms completed by those of card.toml; InputError where both are known and differ.

    name: the benchmark, as error messages call it.
    """
    people: dict[bool | None, Annotators] = {True: "simulated", False: "human", None: "unknown"}
    licence, annotators = stated.text("license"), people[stated.simulated]
    faults = []
    if licence and known.license not in ("", licence):
        faults.append(f"the licence is {known.license}, but card.toml states {licence}")
    if "unknown" not in (annotators, known.annotators) and annotators != known.annotators:
        faults.append(f"the annotators are {known.annotators}, but card.toml states {annotators}")
    if faults:
        raise InputError([Problem(name, None, fault) for fault in faults])
    return Terms(
        licence or known.license,
        stated.text("license_link") or known.license_link,
        known.annotators if annotators == "unknown" else annotators,
        ", ".join(stated.texts("authors")) or known.attribution,
    )
