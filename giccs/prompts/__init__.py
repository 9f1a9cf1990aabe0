"""Prompt templates: rendering of a dialogue and its options as a prompt.

A template is a text file with the layout of the prompt. A line with ``{turn}``, ``{number}`` or ``{speaker}``
is repeated for every turn of the dialogue, and a line with ``{option}`` or ``{letter}`` for every option;
adjacent lines of the same kind are repeated together. ``{last}`` is the text of the last turn, for a line
that emphasises it. ``{{`` is a literal brace. Released templates never change: a new wording is a new file
with a new number. The first line of a user's file may state its language, as in ``# language: fr``; this line
is not part of the prompt.
"""

from __future__ import annotations

import hashlib
import os
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import groupby
from pathlib import Path

from bws.base.problems import InputError, Problem
from bws.base.text import read_text
from giccs.benchmark.items import Dialogue, Item, Turn
from giccs.benchmark.languages import base_language, language_tag

__all__ = [
    "LETTERS", "TEMPLATES", "Template", "default_template", "language_warnings", "open_template",
    "stated_language", "template_problems", "template_text",
]  # fmt: skip

TEMPLATES = {"figure2-de-1": "de", "figure2-en-1": "en"}
"""The built-in templates with their languages: Figure 2 of the paper, and its English translation."""
DEFAULT_TEMPLATES = {"de": "figure2-de-1", "en": "figure2-en-1"}
"""Language -> default template."""
LANGUAGE_LINE = re.compile(r"# *language: *(.*?) *\n")
LETTERS = string.ascii_uppercase
TURN_FIELDS = frozenset(["turn", "number", "speaker"])
OPTION_FIELDS = frozenset(["option", "letter"])
SINGLE_FIELDS = frozenset(["last"])


@dataclass(frozen=True)
class Template:
    """A prompt with placeholders for turns and options; see the module docstring for the syntax."""

    name: str
    text: str
    language: str | None = None
    """BCP 47 tag; None if the file states none."""

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    @property
    def lists_options(self) -> bool:
        """Return whether the prompt contains the options."""
        return any(fields & OPTION_FIELDS for _, fields in self._lines)

    def render(self, turns: Sequence[Turn], options: Sequence[str]) -> str:
        """Return the prompt; turns are numbered from 1, options lettered from A.

        >>> template = open_template("figure2-en-1")
        >>> print(template.render([Turn("user", "A table for two?")], ["Two of us.", "No."]))
        Dialogue:
        Utterance 1: A table for two?
        <BLANKLINE>
        Question: Choose the utterance that is most similar to the last utterance of the dialogue.
        Choices:
        A. Two of us.
        B. No.
        Answer:
        """
        turn_values = [
            {"number": str(number), "speaker": turn.speaker, "turn": turn.text.strip()}
            for number, turn in enumerate(turns, start=1)
        ]
        option_values = [
            {"letter": letter, "option": option}
            for letter, option in zip(LETTERS, options, strict=False)
        ]
        return "\n".join(self._render_lines(turn_values, option_values))

    def _render_lines(
        self, turns: Sequence[Mapping[str, str]], options: Sequence[Mapping[str, str]]
    ) -> Iterator[str]:
        for kind, lines in groupby(self._lines, key=lambda line: _block_kind(line[1])):
            block = [line for line, _ in lines]
            last = turns[-1]["turn"] if turns else ""
            rows = {"turn": turns, "option": options}.get(kind, [{"last": last}])
            yield from (line.format_map(values) for values in rows for line in block)

    @cached_property
    def _lines(self) -> list[tuple[str, frozenset[str]]]:
        return [(line, frozenset(_fields(line))) for line in self.text.split("\n")]


def open_template(name: str | os.PathLike[str]) -> Template:
    """Return the built-in template with this name, or the one in a file.

    The line that states the language and the final line break are not part of the prompt. Raises InputError
    with every invalid line.
    """
    name = os.fspath(name)
    text = template_text(name, TEMPLATES)
    language = TEMPLATES.get(name)
    first_line = 1
    if language_line := LANGUAGE_LINE.match(text):
        language = stated_language(name, 1, language_line[1])
        text, first_line = text[language_line.end() :], 2
    if problems := list(template_problems(name, text, first_line)):
        raise InputError(problems)
    return Template(name, text, language)


def template_text(name: str, built_in: Iterable[str]) -> str:
    """Return the text of a built-in template or of a file, without the final line break.

    Raises InputError if there is neither.
    """
    if name in built_in:
        text = (resources.files("giccs.prompts") / f"{name}.txt").read_text("utf-8")
    elif Path(name).is_file():
        text = read_text(name)
    else:
        message = f"is neither a file nor a built-in template; expected {' or '.join(built_in)}"
        raise InputError(Problem(name, None, message))
    return text.replace("\r\n", "\n").removesuffix("\n")


def stated_language(name: str, line: int, tag: str) -> str:
    """Return the language that a line of a file states; raise InputError for an invalid tag."""
    try:
        return language_tag(tag)
    except ValueError as error:
        raise InputError(Problem(name, line, str(error))) from None


def default_template(language: str) -> Template:
    """Return the built-in template of a language, ignoring the region; raise ValueError if there is none.

    >>> default_template("de-AT").name, default_template("en").name
    ('figure2-de-1', 'figure2-en-1')
    """
    name = DEFAULT_TEMPLATES.get(base_language(language))
    if name is None:
        built_in = ", ".join(DEFAULT_TEMPLATES)
        message = f"there is no prompt template in {language} (built in: {built_in})"
        raise ValueError(f"{message}; expected --template FILE")
    return open_template(name)


def language_warnings(
    template: Template,
    records: Sequence[Dialogue | Item],
    data: str,
    language: str | None = None,
) -> list[Problem]:
    """Return a warning if the language of a template is not that of the data.

    data: name of the data in the message. language: that of records that state none.
    """
    languages = {record.language or language for record in records} - {None}
    mismatched = sorted(
        tag
        for tag in languages
        if tag and template.language and base_language(tag) != base_language(template.language)
    )
    if not mismatched:
        return []
    message = f"the template is in {template.language}, but {data} is in {', '.join(mismatched)}"
    return [Problem(template.name, None, message)]


def template_problems(name: str, text: str, first_line: int) -> Iterator[Problem]:
    """Yield the problems of a template; first_line: number of the line with which `text` begins."""
    used_fields: set[str] = set()
    for line_number, line in enumerate(text.split("\n"), start=first_line):
        try:
            fields = set(_fields(line))
        except ValueError as error:
            yield Problem(name, line_number, f"{error}; a literal brace must be doubled")
            continue
        used_fields |= fields
        if unknown := fields - TURN_FIELDS - OPTION_FIELDS - SINGLE_FIELDS:
            known = sorted(TURN_FIELDS | OPTION_FIELDS | SINGLE_FIELDS)
            expected = ", ".join(f"{{{field}}}" for field in known)
            unknown_names = ", ".join(f"{{{field}}}" for field in sorted(unknown))
            yield Problem(
                name, line_number, f"unknown field {unknown_names}; expected one of {expected}"
            )
        elif sum(bool(fields & f) for f in (TURN_FIELDS, OPTION_FIELDS, SINGLE_FIELDS)) > 1:
            message = "has fields of a turn, of an option or {last}; expected separate lines"
            yield Problem(name, line_number, message)
    if "turn" not in used_fields:
        yield Problem(name, None, "has no dialogue; expected a line with {turn}")


def _fields(line: str) -> Iterator[str]:
    for _, field, form, conversion in string.Formatter().parse(line):
        if field is not None:
            yield field + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")


def _block_kind(fields: frozenset[str]) -> str:
    if fields & TURN_FIELDS:
        return "turn"
    return "option" if fields & OPTION_FIELDS else ""
