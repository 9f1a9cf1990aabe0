"""The sheet for writers of candidates, with one row per candidate: export and import."""

from __future__ import annotations

import os
import string
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bws.base.file_uses import unprotected
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.text import display_name, read_toml
from bws.files.schema import Field, Schema
from bws.files.table import read_table
from giccs.benchmark.candidates import LEVELS, comparable_text, missing_levels
from giccs.benchmark.items import Candidate, Dialogue
from giccs.benchmark.languages import base_language


@dataclass(frozen=True, slots=True)
class SheetTexts:
    """Instructions and speaker names of the sheet in one language."""

    criteria: Mapping[int, str]
    """Criterion of each level, 5 to 1."""
    speakers: Mapping[str, str]
    """Names of ``user`` and ``system``."""


CRITERIA: Mapping[str, Mapping[int, str]] = {
    "en": {
        5: "Paraphrase: means the same as the last turn.",
        4: "Differs from the last turn in unimportant details.",
        3: "Differs from the last turn in important details.",
        2: "Shares some details with the last turn, need not be on the same topic.",
        1: "Unrelated: has nothing to do with the last turn.",
    },
    "de": {
        5: "Paraphrase: bedeutet dasselbe wie die letzte Äußerung.",
        4: "Weicht von der letzten Äußerung in unwichtigen Einzelheiten ab.",
        3: "Weicht von der letzten Äußerung in wichtigen Einzelheiten ab.",
        2: "Teilt einige Einzelheiten mit der letzten Äußerung, muss aber nicht vom selben Thema sein.",
        1: "Ohne Bezug: hat mit der letzten Äußerung nichts zu tun.",
    },
}
"""Criteria by language and level (paper, section 3.1, after Cer et al. 2017)."""
SPEAKERS = {
    "de": {"user": "Nutzer", "system": "System"},
    "en": {"user": "User", "system": "System"},
}
COLUMNS = ("dialogue_id", "level", "criterion", "text", "last_turn", "dialogue")


def default_sheet_texts(language: str) -> SheetTexts:
    """Return the built-in texts of a language, ignoring the region of the tag; ValueError if there are none.

    >>> default_sheet_texts("de-AT").speakers["user"]
    'Nutzer'
    """
    base = base_language(language)
    if base not in CRITERIA:
        message = f"the sheet has no texts in {language}; expected --texts FILE.toml with criteria"
        raise ValueError(f"{message} (built in: {', '.join(sorted(CRITERIA))})")
    return SheetTexts(CRITERIA[base], SPEAKERS[base])


def read_sheet_texts(path: str | os.PathLike[str], language: str) -> SheetTexts:
    """Read the tables ``criteria`` (levels 5 to 1) and ``speakers`` (user, system) of a TOML file.

    Other keys are ignored, so the file may contain the texts of the worker page as well. Raises InputError
    with all missing texts, and if the key ``language`` of the file is not `language`.
    """
    table = read_toml(path)
    texts: dict[str, Mapping[str, str]] = {}
    problems = []
    for name, keys in (("criteria", [*map(str, LEVELS)]), ("speakers", ["user", "system"])):
        value = table.get(name)
        texts[name] = value if isinstance(value, dict) else {}
        problems += [
            f"{name}.{key} is missing; expected a text"
            for key in keys
            if not isinstance(texts[name].get(key), str) or not texts[name][key].strip()
        ]
    stated = table.get("language")
    if not isinstance(stated, str) or base_language(stated) != base_language(language):
        problems.append(f"language is {stated!r}; expected {language!r}, the language of the data")
    if problems:
        raise InputError(Problem(display_name(path), None, problem) for problem in problems)
    criteria = {level: texts["criteria"][str(level)] for level in LEVELS}
    return SheetTexts(criteria, texts["speakers"])


def make_sheet(dialogues: Sequence[Dialogue], texts: SheetTexts) -> str:
    """Return the sheet as CSV: five rows per dialogue, with an empty column ``text``.

    >>> from giccs.benchmark.items import Turn
    >>> dialogue = Dialogue("d1", "", "", (Turn("user", "Wann?"), Turn("system", "Um 9.")), ())
    >>> print(make_sheet([dialogue], default_sheet_texts("en")).splitlines()[1])
    d1,5,Paraphrase: means the same as the last turn.,,Um 9.,"User: Wann?
    """
    rows: list[Sequence[object]] = []
    for dialogue in dialogues:
        dialogue_text = "\n".join(
            ": ".join(filter(None, (texts.speakers.get(turn.speaker, turn.speaker), turn.text)))
            for turn in dialogue.turns
        )
        for level in LEVELS:
            criterion = texts.criteria[level]
            last = dialogue.turns[-1].text
            rows.append((dialogue.dialogue_id, level, criterion, "", last, dialogue_text))
    return csv_text(rows, COLUMNS)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of a completed sheet."""

    line: int
    dialogue_id: str
    level: str
    text: str


TEXT_FIELD = Field(str.strip, "")
SHEET_SCHEMA = Schema(
    SheetRow, {"dialogue_id": TEXT_FIELD, "level": TEXT_FIELD, "text": TEXT_FIELD}, located=True
)


def read_sheet(path: str | os.PathLike[str]) -> tuple[str, list[SheetRow]]:
    """Return the display name and the rows of a sheet; additional columns are ignored."""
    records = SHEET_SCHEMA.read(read_table(path))
    return records.file, list(records.checked())


def check_not_completed(path: str) -> None:
    """Raise InputError if a file is a sheet in which writers have entered texts."""
    if not os.path.isfile(path):
        return
    try:
        with unprotected():
            n_texts = sum(bool(row.text) for row in read_sheet(path)[1])
    except InputError:  # Not a sheet.
        return
    if n_texts:
        message = f"contains {n_texts} texts of writers, which would be lost; expected another file"
        raise InputError(Problem(path, None, message))


def add_candidates(
    dialogues: Sequence[Dialogue], file: str, rows: Sequence[SheetRow], n_candidates: int, seed: int
) -> tuple[list[Dialogue], list[Problem]]:
    """Return the dialogues with the candidates of the sheet, and warnings.

    The candidates of a dialogue are shuffled with `seed`, and their ids consist of the dialogue id and a
    letter for the position, so neither reveals the level. Raises InputError with all problems: rows of
    unknown dialogues, invalid levels, empty and repeated texts, numbers of candidates other than
    `n_candidates`.
    """
    by_dialogue: dict[str, list[SheetRow]] = defaultdict(list)
    for row in rows:
        by_dialogue[row.dialogue_id].append(row)
    problems = list(_row_problems(dialogues, file, rows))
    for dialogue in dialogues:
        problems += _dialogue_problems(
            dialogue, file, by_dialogue[dialogue.dialogue_id], n_candidates
        )
    if problems:
        raise InputError(sorted(problems, key=lambda problem: (problem.line is None, problem.line)))
    rng = np.random.default_rng(seed)
    completed_dialogues = [
        _fill_dialogue(dialogue, by_dialogue[dialogue.dialogue_id], rng) for dialogue in dialogues
    ]
    warnings = []
    for dialogue in completed_dialogues:
        if missing := missing_levels(dialogue.candidates):
            levels = ", ".join(map(str, missing))
            message = f"dialogue {dialogue.dialogue_id} has no candidate of level {levels}"
            warnings.append(Problem(file, by_dialogue[dialogue.dialogue_id][0].line, message))
    return completed_dialogues, warnings


def _row_problems(
    dialogues: Sequence[Dialogue], file: str, rows: Sequence[SheetRow]
) -> Iterator[Problem]:
    dialogue_by_id = {dialogue.dialogue_id: dialogue for dialogue in dialogues}
    first: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.dialogue_id not in dialogue_by_id:
            yield Problem(file, row.line, f"unknown dialogue {row.dialogue_id!r}")
            continue
        if row.level not in map(str, LEVELS):
            message = f"level is {row.level!r}; expected an integer from 1 to 5"
            yield Problem(file, row.line, message)
        if not row.text:
            yield Problem(file, row.line, f"the text of level {row.level} is missing")
            continue
        if comparable_text(row.text) == comparable_text(
            dialogue_by_id[row.dialogue_id].turns[-1].text
        ):
            yield Problem(
                file, row.line, "the text is identical to the last turn; expected another text"
            )
        earlier = first.setdefault((row.dialogue_id, comparable_text(row.text)), row.line)
        if earlier != row.line:
            yield Problem(file, row.line, f"the text repeats the text of line {earlier}")


def _dialogue_problems(
    dialogue: Dialogue, file: str, rows: Sequence[SheetRow], n_candidates: int
) -> Iterator[Problem]:
    if dialogue.candidates:
        message = f"dialogue {dialogue.dialogue_id} already has candidates; expected none"
        yield Problem(file, None, message)
    if len(rows) != n_candidates:
        line = rows[-1].line if rows else None
        message = f"dialogue {dialogue.dialogue_id} has {len(rows)} rows; expected {n_candidates}"
        yield Problem(file, line, message)


def _fill_dialogue(
    dialogue: Dialogue, rows: Sequence[SheetRow], rng: np.random.Generator
) -> Dialogue:
    shuffled = [rows[int(index)] for index in rng.permutation(len(rows))]
    candidates = tuple(
        Candidate(candidate_id(dialogue.dialogue_id, index), row.text, int(row.level))
        for index, row in enumerate(shuffled)
    )
    return replace(dialogue, candidates=candidates)


def candidate_id(dialogue_id: str, position: int) -> str:
    """Return the utterance id of a dialogue's candidate at a position, counted from 0.

    >>> candidate_id("d1", 2)
    'd1-c'
    """
    return f"{dialogue_id}-{_letters(position)}"


def _letters(index: int) -> str:
    """Return a, b, ..., z, aa, ab, ... for 0, 1, ....

    >>> _letters(0), _letters(25), _letters(26)
    ('a', 'z', 'aa')
    """
    quotient, remainder = divmod(index, 26)
    return (_letters(quotient - 1) if quotient else "") + string.ascii_lowercase[remainder]
