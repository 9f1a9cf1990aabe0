"""Studies in which conditions are written: one under which two sentences are alike, one under which not.

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
from functools import cache
from typing import TYPE_CHECKING

from mturk import answers
from mturk.answers import ExpectedTuple, Fields

if TYPE_CHECKING:
    from mturk.csts.sentences import SentencePart
    from mturk.judged import Answered, Judged
    from mturk.records import PlannedStudy
    from mturk.settings import SettingsFile
    from mturk.simulate import Behaviour, Truth

__all__ = [
    "ANSWER", "FILE", "INTENDED", "PART", "columns", "planned", "problems", "remark_on", "remarks",
    "simulated", "write",
]  # fmt: skip

PART = "pair"
ANSWER = "answer"
FILE = "conditions.csv"
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


def columns(part_id: str) -> dict[str, str]:
    """Return what the batch file calls the answer's fields -> the names of these fields.

    >>> columns("p1")
    {'high': 'high-p1', 'low': 'low-p1', 'seconds': 'seconds-p1'}
    """
    written = {which: f"{which}-{part_id}" for which in INTENDED}
    return {**written, "seconds": answers.seconds_field(part_id)}


def problems(one: ExpectedTuple, fields: Fields) -> list[str]:
    """Return all that keeps the fields from being two conditions: they must be there, short and differ.

    >>> problems(ExpectedTuple("p1", "p1", ()), [("high-p1", "The size."), ("low-p1", "the size")])
    ['p1: both conditions are the same; they must differ in their words']
    """
    values, names = dict(fields), columns(one.tuple_id)
    found = answers.repeated(list(names.values()), Counter(name for name, _ in fields))
    written = {which: values.get(names[which], "") for which in INTENDED}
    for which, text in written.items():
        found += [f"{one.tuple_id}: {said}" for said in _wrong(which, text)]
    if not found and words_of(written["high"]) == words_of(written["low"]):
        found.append(
            f"{one.tuple_id}: both conditions are the same; they must differ in their words"
        )
    return [*found, *answers.seconds_problems(one.tuple_id, values.get(names["seconds"], ""))]


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
    from mturk.texts import LANGUAGES, texts_of

    each = [texts_of("words", language) for language in LANGUAGES]
    return {name: tuple(word for one in each for word in one[name]) for name in each[0]}


def remarks(one: ExpectedTuple, fields: Fields) -> list[str]:
    """Return what a reviewer should look at."""
    return [
        f"{text!r}: {said}"
        for text in _written(one, fields).values()
        if (said := _said(text, one.items))
    ]


def _said(text: str, sentences: Sequence[str]) -> str:
    remark = remark_on(text, sentences)
    return f"{remark[1]!r} {SAID[remark[0]]}" if remark else ""


def _written(one: ExpectedTuple, fields: Fields) -> dict[str, str]:
    values, names = dict(fields), columns(one.tuple_id)
    return {which: " ".join(values[names[which]].split()) for which in INTENDED}


def planned(
    file: str, dialogues: str | None, settings: SettingsFile, language: str | None
) -> PlannedStudy:
    """Return the study of a table of sentence pairs, in the language of the settings or of `language`."""
    from mturk.csts.planning import plan
    from mturk.csts.sentences import no_dialogues, read_pairs

    no_dialogues(file, dialogues, settings.kind)

    def names(part: SentencePart) -> dict[str, str]:
        return {f"{name}_field": field for name, field in columns(part.tuple_id).items()}

    words = json.dumps(_lists())
    pairs, chosen = read_pairs(file), settings.settings(language)
    return plan(pairs, chosen, names, file, words=words, longest=LONGEST)


def simulated(
    one: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
) -> list[tuple[str, str]]:
    """Return two conditions: those of highest and lowest similarity that are known of the pair, or invented.

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
    names = columns(one.tuple_id)
    return [(names["high"], high), (names["low"], low)]


def write(found: Judged, path: str | os.PathLike[str]) -> None:
    """Write two rows for each answer, the condition of high similarity and that of low."""
    from mturk.csts.collected import context, write_rows

    rows = sorted(found.answered, key=lambda row: row.asked.tuple_id)
    each = (
        (row, which, text)
        for row in rows
        for which, text in _written(row.asked, row.fields).items()
    )
    write_rows(COLUMNS, ([*_cells(*one), *context(one[0])] for one in each), path)


def _cells(row: Answered, which: str, text: str) -> list[str]:
    said = _said(text, row.asked.items)
    return [_uid(row, which), row.asked.tuple_id, *row.asked.items, text, which, said]


def _uid(row: Answered, which: str) -> str:
    """Return a name that stays the same when more answers come, and does not tell what was intended."""
    name = json.dumps([row.assignment.assignment_id, row.asked.tuple_id, which])
    return f"c{hashlib.sha256(name.encode('ascii')).hexdigest()[:12]}"
