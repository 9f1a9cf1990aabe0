"""Base of the kinds of HIT about sentence pairs: tables, settings, pages, truth, output files."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.base.text import display_name, write_atomic
from bws.files.answers_of_people import keep_answers_of_people
from mturk import answers
from mturk.kinds import ExpectedTuple, HitKind, StatedSettings, Truth, ValidAnswer
from mturk.question_xml import forbidden_in_xml

if TYPE_CHECKING:
    from bws.files.table import Table
    from mturk.study.plan import PlannedStudy
    from mturk.study.settings import Settings

CONTEXT = ("annotator", "assignment_id", "seconds", "comment")


class SentenceKind(HitKind):
    """A kind of HIT about sentence pairs; its page extends ``sentences.html``."""

    defaults: Mapping[str, Any] = {"language_check": False, "countries": ()}
    setting_names: Mapping[str, str] = {
        "dialogues_per_hit": "pairs_per_hit",
        "dialogue_language": "sentence_language",
    }
    setting_comments: Mapping[str, str] = {
        "dialogue_language": 'Language of the sentences, a BCP 47 tag: "en", "de", "en-GB".\n'
        "Default: that of --language.",
        "language": "Language of the page texts. Default: the language of the sentences.",
        "dialogues_per_hit": "Sentence pairs per page, drawn at random.",
        "countries": "Countries of workers, as stated by themselves; not a test of their language.\n"
        "`giccs annotate qualify` creates such a test. [] for all.",
    }
    unused_settings: Sequence[str] = ("language_check",)
    no_judgments_note = (
        "not available; requires judgments of tuples (agreement of labels: giccs csts verified)"
    )

    def read_truth(self, path: str | os.PathLike[str]) -> Truth | None:
        """Return the similarities in a table of sentence pairs with conditions; None for other tables."""
        return sentence_truth(path)

    def check_no_dialogues(
        self, file: str, dialogues: str | None, settings: StatedSettings
    ) -> None:
        """Raise InputError if dialogues are given."""
        if dialogues is not None:
            message = f"kind is {settings.kind!r}, which has no dialogues; expected no --dialogues"
            raise InputError(Problem(file, None, message))

    def part_values(self, part: SentencePart) -> Mapping[str, str]:
        """Return the values of a part for the page besides its sentences: the names of its fields."""
        return {f"{name}_field": field for name, field in self.columns(part.tuple_id).items()}

    def plan_pages(
        self, parts: Sequence[SentencePart], settings: Settings, file: str, **texts: Any
    ) -> PlannedStudy:
        """Plan a study of sentence pairs.

        The parts are distributed at random, seeded by the settings. If possible, a page contains only one
        condition of a sentence pair. Repeating the call after a crash gives the same HITs.

        texts: further values for the page template.
        """
        from mturk.kinds.pages import build_question
        from mturk.study.plan import PlannedStudy, plan_hits

        pages = _pages(parts, settings)

        def question(page: Sequence[SentencePart], page_settings: Settings) -> str:
            return build_question(self.render(page, page_settings, **texts))

        plans = plan_hits(pages, settings, _digest(pages, settings), question, display_name(file))
        return PlannedStudy(settings, tuple(plans), tuple(_notes(parts, pages, settings)))

    def render(self, page: Sequence[SentencePart], settings: Settings, **texts: Any) -> str:
        """Render the page of a HIT as HTML, with every text escaped once."""
        from mturk.kinds.pages import render_page

        parts = [{"sentences": part.item_ids[:2], **self.part_values(part)} for part in page]
        rows = [
            ExpectedTuple(part.tuple_id, part.group, part.item_ids, settings.kind) for part in page
        ]
        return render_page(
            self.package, settings, rows, lang=settings.dialogue_language, parts=parts, **texts
        )


def answer_context(row: ValidAnswer) -> list[str]:
    """Return annotator, assignment id, seconds and comment of an answer."""
    seconds = dict(row.fields).get(answers.seconds_field(row.expected.tuple_id), "")
    context = row.assignment.assignment_id, seconds, answers.read_comment(row.fields)
    return [row.annotator, *context]


def write_rows(
    header: Sequence[str], rows: Iterable[Sequence[str]], path: str | os.PathLike[str]
) -> None:
    """Write the columns of a kind and those of `answer_context`, atomically.

    Raises InputError if none of the answers is people's, but those of an existing file are or may be.
    """
    rows = list(rows)
    keep_answers_of_people(path, [(row[-len(CONTEXT)], row[-1]) for row in rows])
    write_atomic(path, csv_text(rows, [*header, *CONTEXT]))


def _pages(parts: Sequence[SentencePart], settings: Settings) -> list[list[SentencePart]]:
    from mturk.study.plan import separate_groups, shuffle_parts

    order, size = _separate_pairs(shuffle_parts(parts, settings.seed)), settings.dialogues_per_hit
    pages = [order[start : start + size] for start in range(0, len(order), size)]
    last_page = [pages.pop()] if pages and len(pages[-1]) < size else []
    separate_groups(pages)
    return pages + last_page


def _separate_pairs(parts: Sequence[SentencePart]) -> list[SentencePart]:
    """Return the parts in rounds: the first part of every sentence pair, then the second, and so on."""
    part_counts: Counter[str] = Counter()
    rounds = []
    for part in parts:
        rounds.append(part_counts[part.group])
        part_counts[part.group] += 1
    return [part for _, part in sorted(zip(rounds, parts, strict=True), key=lambda entry: entry[0])]


def _digest(pages: Sequence[Sequence[SentencePart]], settings: Settings) -> str:
    from mturk.study.plan import study_digest

    page_contents = [[[part.tuple_id, *part.item_ids] for part in page] for page in pages]
    page = (
        settings.kind, settings.language, settings.dialogue_language, settings.consent,
        settings.comment_box,
    )  # fmt: skip
    return study_digest(page_contents, settings, page)


def _notes(
    parts: Sequence[SentencePart], pages: Sequence[Sequence[SentencePart]], settings: Settings
) -> Iterator[str]:
    from mturk.kinds.pages import count_forbidden_characters
    from mturk.study.plan import has_repeated_group

    if pages and len(pages[-1]) < settings.dialogues_per_hit:
        yield f"HIT {len(pages)} has {len(pages[-1])} of {settings.dialogues_per_hit} sentence pairs"
    if n_repeating := sum(map(has_repeated_group, pages)):
        yield f"{n_repeating} of {len(pages)} HITs ask about the same sentence pair more than once"
    if n_duplicates := sum(n - 1 for n in Counter(part.item_ids for part in parts).values()):
        yield f"{n_duplicates} of {len(parts)} rows repeat the sentences and the condition of another"
    forbidden_counts = count_forbidden_characters(
        {part.tuple_id: "".join(part.item_ids) for part in parts}
    )
    for name, count in forbidden_counts.items():
        yield f"{name}: {count} characters cannot be displayed and are omitted"


SENTENCES = ("sentence1", "sentence2")
CONDITION = "condition"
UID_COLUMNS = ("uid", "index", "Unnamed: 0", "column 1")
"""Names of the uid column, as in `giccs.csts.data`."""
MAX_UID_CHARACTERS = 100
INTENDED_VALUES = {"high": 5.0, "low": 1.0}
"""Intended similarity of collected conditions."""
INVALID = -1.0
"""True label of a condition that does not apply (L-CSTS, 3.3)."""


@dataclass(frozen=True, slots=True)
class SentencePart:
    """A sentence pair or a triplet (pair and condition) of a HIT."""

    tuple_id: str
    """Id of the pair, or uid of the triplet."""
    group: str
    """Id of the pair."""
    item_ids: tuple[str, ...]
    """The two sentences, and the condition of a triplet, as in the file."""


def pair_id(sentence1: str, sentence2: str) -> str:
    """Return the id of a sentence pair, which depends on the two sentences only.

    >>> pair_id("A kite.", "A bus.")
    'p77535d1a75c5'
    """
    text = json.dumps([sentence1, sentence2])
    return f"p{hashlib.sha256(text.encode('ascii')).hexdigest()[:12]}"


def read_pairs(path: str) -> list[SentencePart]:
    """Read the columns sentence1 and sentence2; other columns are ignored.

    Raises InputError with all problems: an empty sentence, two equal sentences, a repeated pair.
    """
    table = _table(path, SENTENCES)
    rows = list(_rows(table, SENTENCES))
    parts = [SentencePart(pair_id(*texts), pair_id(*texts), texts) for _, texts in rows]
    problems = list(table.problems)
    for (line, texts), row_problems in zip(rows, map(_row_problems, rows), strict=True):
        problems += [Problem(table.file, line, text) for text in row_problems]
        if texts[0].strip() and texts[0].split() == texts[1].split():
            message = "the two sentences are equal; expected different sentences"
            problems.append(Problem(table.file, line, message))
    problems += _duplicate_problems(table, parts, "the sentence pair")
    return _check_parts(table, parts, problems)


def read_triplets(path: str) -> list[SentencePart]:
    """Read the columns sentence1, sentence2, condition and uid (default: row number); others are ignored.

    Raises InputError with all problems: an empty text, an empty or repeated uid, a uid that a form cannot
    contain.
    """
    columns = (*SENTENCES, CONDITION)
    table = _table(path, columns)
    rows = list(_rows(table, columns))
    parts = [
        SentencePart(uid, pair_id(*texts[:2]), texts)
        for uid, (_, texts) in zip(_uids(table), rows, strict=True)
    ]
    problems = list(table.problems)
    for part, row in zip(parts, rows, strict=True):
        row_problems = [*_row_problems(row), *_uid_problems(part.tuple_id)]
        problems += [Problem(table.file, row[0], text) for text in row_problems]
    problems += _duplicate_problems(table, parts, "the uid")
    return _check_parts(table, parts, problems)


Row = tuple[int, tuple[str, ...]]


def _table(path: str, columns: Sequence[str]) -> Table:
    from bws.files.table import read_table

    table = read_table(path, columns)
    table.need(columns)
    return table


def _rows(table: Table, columns: Sequence[str]) -> Iterator[Row]:
    cells = [table.frame[name].to_list() for name in columns]
    for line, *texts in zip(table.lines.tolist(), *cells, strict=True):
        yield line, tuple(texts)


def _row_problems(row: Row) -> list[str]:
    return [
        f"{name} is empty; expected a text"
        for name, text in zip((*SENTENCES, CONDITION), row[1], strict=False)
        if not text.strip()
    ]


def _uids(table: Table) -> list[str]:
    column = next((name for name in UID_COLUMNS if name in table.frame.columns), None)
    if column is None:
        return list(map(str, range(len(table.lines))))
    return [cell.strip() for cell in table.frame[column].to_list()]


def _uid_problems(uid: str) -> Iterator[str]:
    plain = not any(c in "\t\r\n" or "\x7f" <= c <= "\x9f" for c in uid)
    if not uid or len(uid) > MAX_UID_CHARACTERS or forbidden_in_xml(uid) or not plain:
        yield f"the uid is {uid!r}; expected 1 to {MAX_UID_CHARACTERS} characters of plain text"


def _duplicate_problems(
    table: Table, parts: Sequence[SentencePart], label: str
) -> Iterator[Problem]:
    first_lines: dict[str, int] = {}
    for line, part in zip(table.lines.tolist(), parts, strict=True):
        if first_lines.setdefault(part.tuple_id, line) != line:
            message = f"{label} repeats line {first_lines[part.tuple_id]}; expected each once"
            yield Problem(table.file, line, message)


def _check_parts(
    table: Table, parts: list[SentencePart], problems: list[Problem]
) -> list[SentencePart]:
    if not parts and not problems:
        problems = [Problem(table.file, None, "has no rows; expected sentence pairs")]
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return parts


def sentence_truth(path: str | os.PathLike[str]) -> dict[tuple[str, str], float] | None:
    """Return (pair id, condition) -> similarity from 1 to 5, or -1; None if the table has no sentence pairs.

    The similarity is read from the column label (rows without a label are skipped) or, in collected
    conditions, from intended: high is 5 and low is 1. The label -1 is a condition that does not apply, unless
    all labels are -1, which are hidden. Raises InputError with all invalid values.
    """
    from bws.files.table import read_table

    names = (*SENTENCES, CONDITION, "label", "intended")
    table = read_table(path, names).with_decimal_points(names[-2:])
    if not {*SENTENCES, CONDITION} <= set(table.frame.columns):
        return None
    column = next((name for name in ("label", "intended") if name in table.frame.columns), None)
    if column is None:
        message = "has neither a column label nor a column intended; expected one of them"
        raise InputError(Problem(table.file, 1, message))
    truth: dict[tuple[str, str], float] = {}
    problems = list(table.problems)
    cells = [table.frame[name].to_list() for name in (*SENTENCES, CONDITION, column)]
    for line, sentence1, sentence2, condition, cell in zip(
        table.lines.tolist(), *cells, strict=True
    ):
        value = _parse_similarity(cell.strip())
        if value is not None:
            truth[pair_id(sentence1, sentence2), condition] = value
        elif cell.strip():
            message = f"{column} is {cell!r}; expected 1 to 5, -1, high or low"
            problems.append(Problem(table.file, line, message))
    if {*truth.values()} == {INVALID}:
        message = (
            f"{column} is -1 in all rows, which is a hidden label; expected labels from 1 to 5"
        )
        problems.append(Problem(table.file, None, message))
    if problems:
        raise InputError(problems)
    return truth


def _parse_similarity(text: str) -> float | None:
    if text in INTENDED_VALUES:
        return INTENDED_VALUES[text]
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 1 <= value <= 5 or value == INVALID else None
