"""HITs in which conditions are written: one under which two sentences are alike, one under which not.

C-STS, section 2.2.2 (stage 2) and appendix C.1; what the page says of it is worded anew.
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
from mturk.kinds.sentence_pairs import SentenceKind, answer_context, read_pairs, write_rows
from mturk.kinds.texts import languages_of, texts_of

if TYPE_CHECKING:
    from mturk.study.plan import PlannedStudy

__all__ = ["INVENTED", "KIND", "remark_on", "words_of"]

INTENDED = ("high", "low")
LONGEST = 200
"""Characters of a condition; those of C-STS have 5 words on average."""
COLUMNS = ("uid", "pair_id", "sentence1", "sentence2", "condition", "intended", "remark")
WORD = re.compile(r"[^\W_]+")
SAID = {
    "about": "speaks of the sentences themselves",
    "value": "may say how things are",
    "vague": "leaves much open",
}
INVENTED = (
    "the number of people", "the place", "the time of day", "the mood of the people", "the weather",
    "the means of transport", "the age of the person", "the purpose of what they do",
)  # fmt: skip
"""What simulated workers write where they know nothing of a pair."""


class Conditions(SentenceKind):
    """Two conditions of a sentence pair: of high and of low similarity."""

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
        """Return the study of a table of sentence pairs, in the language of the settings or of `language`."""
        self.check_no_dialogues(file, dialogues, settings)
        pairs, chosen = read_pairs(file), settings.settings(language)
        return self.plan_pages(pairs, chosen, file, words=json.dumps(_lists()), longest=LONGEST)

    def columns(self, part_id: str) -> dict[str, str]:
        """Return what the batch file calls the answer's fields -> the names of these fields.

        >>> KIND.columns("p1")
        {'high': 'high-p1', 'low': 'low-p1', 'seconds': 'seconds-p1'}
        """
        written = {which: f"{which}-{part_id}" for which in INTENDED}
        return {**written, "seconds": answers.seconds_field(part_id)}

    def problems(self, one: ExpectedTuple, fields: Fields) -> list[str]:
        """Return all that keeps the fields from being two conditions: they must be there, short and differ.

        >>> KIND.problems(ExpectedTuple("p1", "p1", ()), [("high-p1", "The size."), ("low-p1", "the size")])
        ['p1: both conditions are the same; they must differ in their words']
        """
        values, names = dict(fields), self.columns(one.tuple_id)
        found = answers.repeated(list(names.values()), Counter(name for name, _ in fields))
        written = {which: values.get(names[which], "") for which in INTENDED}
        for which, text in written.items():
            found += [f"{one.tuple_id}: {said}" for said in _wrong(which, text)]
        if not found and words_of(written["high"]) == words_of(written["low"]):
            found.append(
                f"{one.tuple_id}: both conditions are the same; they must differ in their words"
            )
        return [*found, *answers.seconds_problems(one.tuple_id, values.get(names["seconds"], ""))]

    def remarks(self, one: ExpectedTuple, fields: Fields) -> list[str]:
        """Return what a reviewer should look at."""
        return [
            f"{text!r}: {said}"
            for text in _written(one, fields).values()
            if (said := _said(text, one.items))
        ]

    def simulate(
        self, one: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the known conditions of highest and lowest similarity of the pair, or invented ones.

        A careless worker writes invented ones. What is invented says so.
        """
        seed = json.dumps([behaviour.seed, worker, one.tuple_id])
        generator = random.Random(hashlib.sha256(seed.encode()).digest())  # noqa: S311 - drawn again by its seed, no secret
        known = sorted(
            (value, condition) for (pair, condition), value in truth.items() if pair == one.group
        )
        careless = generator.random() < behaviour.careless
        invented = [f"{text} (simulated)" for text in generator.sample(INVENTED, 2)]
        if len(known) < 2 or careless:
            high, low = invented
        else:
            high, low = known[-1][1], known[0][1]
        names = self.columns(one.tuple_id)
        return [(names["high"], high), (names["low"], low)]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write two rows for each answer, the condition of high similarity and that of low."""
        rows = sorted(answers, key=lambda row: row.asked.tuple_id)
        each = (
            (row, which, text)
            for row in rows
            for which, text in _written(row.asked, row.fields).items()
        )
        write_rows(COLUMNS, ([*_cells(*one), *answer_context(one[0])] for one in each), path)


def _wrong(which: str, text: str) -> list[str]:
    if not words_of(text):
        return [f"the condition of {which} similarity is missing; a short phrase is needed"]
    if len(text.strip()) > LONGEST or len(text.strip().splitlines()) > 1:
        return [
            f"the condition of {which} similarity has {len(text.strip())} characters or several lines; "
            f"one line of at most {LONGEST} is allowed"
        ]
    return []


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, without punctuation.

    >>> words_of("The person's AGE.")
    ['the', 'person', 's', 'age']
    """
    return WORD.findall(text.lower())


def remark_on(condition: str, sentences: Sequence[str]) -> tuple[str, str] | None:
    """Return why a condition should be looked at again, and the word that is the reason; or None.

    ``about``: it speaks of the sentences. ``value``: it names a colour, number, size or likeness, or says
    after "is" what stands in a sentence. ``vague``: it is one of the general words alone. The page has the
    same rules. They are hints; good conditions may be among what they find.

    >>> remark_on("The size is large.", ["A large ball.", "A small fruit."])
    ('value', 'large')
    """
    words, lists = words_of(condition), _lists()
    stands = set(words_of(" ".join(sentences)))
    for word in words:
        if word in lists["about"]:
            return "about", word
    for before, word in zip(["", *words], words, strict=False):
        stated = before in lists["copulas"] and word in stands
        if stated or word in lists["values"] or word.isnumeric():
            return "value", word
    left = [word for word in words if word not in lists["articles"]]
    return ("vague", left[0]) if len(left) == 1 and left[0] in lists["vague"] else None


@cache
def _lists() -> Mapping[str, tuple[str, ...]]:
    """Return the words of all languages together: a condition need not be in the page's."""
    languages = languages_of(KIND.package, "words")
    each = [texts_of(KIND.package, language, "words") for language in languages]
    return {name: tuple(word for one in each for word in one[name]) for name in each[0]}


def _said(text: str, sentences: Sequence[str]) -> str:
    remark = remark_on(text, sentences)
    return f"{remark[1]!r} {SAID[remark[0]]}" if remark else ""


def _written(one: ExpectedTuple, fields: Fields) -> dict[str, str]:
    values, names = dict(fields), KIND.columns(one.tuple_id)
    return {which: " ".join(values[names[which]].split()) for which in INTENDED}


def _cells(row: ValidAnswer, which: str, text: str) -> list[str]:
    said = _said(text, row.asked.items)
    return [_uid(row, which), row.asked.tuple_id, *row.asked.items, text, which, said]


def _uid(row: ValidAnswer, which: str) -> str:
    """Return a name that stays the same when more answers come, and does not tell what was intended."""
    name = json.dumps([row.assignment.assignment_id, row.asked.tuple_id, which])
    return f"c{hashlib.sha256(name.encode('ascii')).hexdigest()[:12]}"


KIND: HitKind = Conditions()
