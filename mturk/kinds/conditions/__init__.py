"""HITs that collect conditions: one of high and one of low similarity per sentence pair.

C-STS, section 2.2.2 (stage 2) and appendix C.1; the texts of the page are our own.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from mturk import answers
from mturk.kinds import (
    Behaviour,
    ExpectedTuple,
    Fields,
    HitKind,
    StatedSettings,
    Truth,
    ValidAnswer,
)
from mturk.kinds.sentence_pairs import (
    INVALID,
    SentenceKind,
    answer_context,
    read_pairs,
    write_rows,
)
from mturk.kinds.texts import built_in_languages, built_in_texts

if TYPE_CHECKING:
    from mturk.study.plan import PlannedStudy

__all__ = ["KIND", "SIMULATED_CONDITIONS", "find_remark", "split_words"]

INTENDED = ("high", "low")
MAX_CONDITION_CHARACTERS = 200
"""Maximum number of characters of a condition; those of C-STS have 5 words on average."""
COLUMNS = ("uid", "pair_id", "sentence1", "sentence2", "condition", "intended", "remark")
WORD = re.compile(r"[^\W_]+")
REMARK_TEXTS = {
    "about": "refers to the sentences themselves",
    "value": "may be a value of the condition",
    "vague": "is very general",
}
SIMULATED_CONDITIONS = (
    "the number of people", "the place", "the time of day", "the mood of the people", "the weather",
    "the means of transport", "the age of the person", "the purpose of what they do",
)  # fmt: skip
"""Conditions written by simulated workers for pairs without true conditions."""


class Conditions(SentenceKind):
    """HITs with two conditions per sentence pair: of high and of low similarity."""

    part = "pair"
    answer = "answer"
    file = "conditions.csv"
    defaults: Mapping[str, Any] = {
        **SentenceKind.defaults,
        "reward": Decimal("1.20"),
        "assignments": 1,
        "dialogues_per_hit": 3,
        "expected_seconds": 240,
        "duration": 3_600,
    }

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Plan the study of a table of sentence pairs, in the language of the settings or `language`."""
        self.check_no_dialogues(file, dialogues, settings)
        pairs, study_settings = read_pairs(file), settings.settings(language)
        return self.plan_pages(
            pairs,
            study_settings,
            file,
            words=json.dumps(_word_lists()),
            longest=MAX_CONDITION_CHARACTERS,
        )

    def columns(self, part_id: str) -> dict[str, str]:
        """Return column of the batch file -> name of the form field.

        >>> KIND.columns("p1")
        {'high': 'high-p1', 'low': 'low-p1', 'seconds': 'seconds-p1'}
        """
        field_names = {level: f"{level}-{part_id}" for level in INTENDED}
        return {**field_names, "seconds": answers.seconds_field(part_id)}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as two conditions, which must be present, short and different.

        >>> KIND.problems(ExpectedTuple("p1", "p1", ()), [("high-p1", "The size."), ("low-p1", "the size")])
        ['p1: both conditions are the same; expected different words']
        """
        values, names = dict(fields), self.columns(expected.tuple_id)
        problems = answers.repeated_field_problems(
            list(names.values()), Counter(name for name, _ in fields)
        )
        conditions = {level: values.get(names[level], "") for level in INTENDED}
        for level, text in conditions.items():
            problems += [
                f"{expected.tuple_id}: {problem}" for problem in _condition_problems(level, text)
            ]
        if not problems and split_words(conditions["high"]) == split_words(conditions["low"]):
            problems.append(
                f"{expected.tuple_id}: both conditions are the same; expected different words"
            )
        return [
            *problems,
            *answers.seconds_problems(expected.tuple_id, values.get(names["seconds"], "")),
        ]

    def remarks(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return remarks on the conditions for the reviewer."""
        return [
            f"{text!r}: {remark}"
            for text in _conditions(expected, fields).values()
            if (remark := _remark_text(text, expected.items))
        ]

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the pair's conditions of highest and lowest true similarity, or invented ones.

        Careless workers write invented conditions, which are marked as simulated.
        """
        seed = json.dumps([behaviour.seed, worker, expected.tuple_id])
        generator = random.Random(hashlib.sha256(seed.encode()).digest())  # noqa: S311 - reproducible, not a secret
        known_conditions = sorted(
            (value, condition)
            for (pair, condition), value in truth.items()
            if pair == expected.group and value != INVALID
        )
        careless = generator.random() < behaviour.careless
        invented = [f"{text} (simulated)" for text in generator.sample(SIMULATED_CONDITIONS, 2)]
        if len(known_conditions) < 2 or careless:
            high, low = invented
        else:
            high, low = known_conditions[-1][1], known_conditions[0][1]
        names = self.columns(expected.tuple_id)
        return [(names["high"], high), (names["low"], low)]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write two rows per answer: the conditions of high and of low similarity."""
        rows = sorted(answers, key=lambda row: row.expected.tuple_id)
        records = (
            (row, level, text)
            for row in rows
            for level, text in _conditions(row.expected, row.fields).items()
        )
        write_rows(
            COLUMNS, ([*_cells(*record), *answer_context(record[0])] for record in records), path
        )


def _condition_problems(level: str, text: str) -> list[str]:
    if not split_words(text):
        return [f"the condition of {level} similarity is missing; expected a short phrase"]
    if len(text.strip()) > MAX_CONDITION_CHARACTERS or len(text.strip().splitlines()) > 1:
        return [
            f"the condition of {level} similarity has {len(text.strip())} characters or several lines; "
            f"expected one line of at most {MAX_CONDITION_CHARACTERS} characters"
        ]
    return []


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation.

    >>> split_words("The person's AGE.")
    ['the', 'person', 's', 'age']
    """
    return WORD.findall(text.lower())


def find_remark(condition: str, sentences: Sequence[str]) -> tuple[str, str] | None:
    """Return a reason to check a condition, and the word that triggers it; or None.

    ``about``: it refers to the sentences. ``value``: it contains a colour, number, size or degree of
    similarity, or a word of a sentence after "is". ``vague``: it is a single general word. The page
    implements the same rules. They are hints; good conditions may match.

    >>> find_remark("The size is large.", ["A large ball.", "A small fruit."])
    ('value', 'large')
    """
    words, word_lists = split_words(condition), _word_lists()
    sentence_words = set(split_words(" ".join(sentences)))
    for word in words:
        if word in word_lists["about"]:
            return "about", word
    for previous, word in zip(["", *words], words, strict=False):
        is_stated = previous in word_lists["copulas"] and word in sentence_words
        if is_stated or word in word_lists["values"] or word.isnumeric():
            return "value", word
    content_words = [word for word in words if word not in word_lists["articles"]]
    return (
        ("vague", content_words[0])
        if len(content_words) == 1 and content_words[0] in word_lists["vague"]
        else None
    )


@cache
def _word_lists() -> Mapping[str, tuple[str, ...]]:
    """Return the words of all languages, since conditions need not be in the language of the page."""
    languages = built_in_languages(KIND.package, "words")
    tables = [built_in_texts(KIND.package, language, "words") for language in languages]
    return {name: tuple(word for table in tables for word in table[name]) for name in tables[0]}


def _remark_text(text: str, sentences: Sequence[str]) -> str:
    remark = find_remark(text, sentences)
    return f"{remark[1]!r} {REMARK_TEXTS[remark[0]]}" if remark else ""


def _conditions(expected: ExpectedTuple, fields: Fields) -> dict[str, str]:
    values, names = dict(fields), KIND.columns(expected.tuple_id)
    return {level: " ".join(values[names[level]].split()) for level in INTENDED}


def _cells(row: ValidAnswer, level: str, text: str) -> list[str]:
    remark = _remark_text(text, row.expected.items)
    return [_uid(row, level), row.expected.tuple_id, *row.expected.items, text, level, remark]


def _uid(row: ValidAnswer, level: str) -> str:
    """Return a uid that does not depend on other answers or reveal the intended similarity."""
    name = json.dumps([row.assignment.assignment_id, row.expected.tuple_id, level])
    return f"c{hashlib.sha256(name.encode('ascii')).hexdigest()[:12]}"


KIND: HitKind = Conditions()
