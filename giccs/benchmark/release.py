"""The published GiCCS release: two TSV files, one with three-turn and one with five-turn dialogues.

The release names neither dialogues nor sources. Rows with the same turns form a dialogue, numbered in the
order of the file. The source follows from the original domain: according to the paper (section 3.1), cinema,
fax, navigation, phone, tourist and tv are from BAS SmartKom, and the restaurant dialogues from CROWDSS.
"""

from __future__ import annotations

import csv
import io
import string
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bws.base.problems import Location, Problem
from bws.base.text import read_text
from bws.files.schema import LocatedRecord
from giccs.benchmark.items import Item, Turn
from giccs.benchmark.terms import Terms

RELEASE_TERMS = Terms(
    "cc-by-nc-nd-3.0",
    "https://creativecommons.org/licenses/by-nc-nd/3.0/",
    "human",
    "GiCCS: A German in-Context Conversational Similarity Benchmark (Asaadi et al. 2022)",
)

N_TURNS = (3, 5)
LANGUAGE = "de"
SMARTKOM_DOMAINS = ("cinema", "fax", "navigation", "phone", "tourist", "tv")
SCORE_DENOMINATOR = 60
"""Five annotations of six tuples: (best - worst) / 30, mapped to [0, 1], is a multiple of 1/60."""
DIALOGUE_SCORE_SUM = 2.5
"""Each judgment adds one best and one worst, so the signed scores of a dialogue sum to 0."""
CANDIDATES_PER_DIALOGUE = 5
DIALOGUES_PER_FILE = 30


def is_release(folder: Path) -> bool:
    """Return whether both files of the release are in the folder."""
    return all(_file(folder, n_turns).is_file() for n_turns in N_TURNS)


def read_release(folder: Path) -> tuple[list[LocatedRecord[Item]], list[Problem], list[Problem]]:
    """Return (location and item) pairs, problems, and warnings about violated invariants of the design."""
    located: list[LocatedRecord[Item]] = []
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for n_turns in N_TURNS:
        path = _file(folder, n_turns)
        rows, file_problems = _parse_file(path, n_turns)
        problems += file_problems
        located += [row for row, _ in rows]
        if not file_problems:
            warnings += _invariant_warnings(path, rows)
    return located, problems, warnings


def _file(folder: Path, n_turns: int) -> Path:
    stem = f"{n_turns}_turn_dialogues"
    return folder / stem / f"GiCCS_dataset_{stem}.tsv"


def _parse_file(
    path: Path, n_turns: int
) -> tuple[list[tuple[LocatedRecord[Item], str]], list[Problem]]:
    """Return (item and its location, score as text) per row."""
    problems: list[Problem] = []
    turn_columns = [f"turn_{number}" for number in range(1, n_turns + 1)]
    columns = [
        "original_domain", "suggested_domain", *turn_columns, "paired_utterance", "similarity_score"
    ]  # fmt: skip
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter="\t")
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        message = f"missing columns {', '.join(missing)}; expected {', '.join(columns)}"
        return [], [Problem(str(path), 1, message)]
    dialogue_numbers: dict[tuple[str, ...], int] = {}
    candidate_counts: dict[int, int] = defaultdict(int)
    rows = []
    last_line = reader.line_num
    for row in reader:
        first_line, last_line = last_line + 1, reader.line_num
        location = Location(str(path), last_line)
        if any("\t" in (cell or "") for cell in _cells(row)):
            problems.append(
                Problem(str(path), first_line, _stray_quote_message(first_line, last_line))
            )
            continue
        empty = [column for column in columns if not (row[column] or "").strip()]
        score = _parse_score(row["similarity_score"])
        if empty:
            problems.append(location.problem(f"empty: {', '.join(empty)}"))
        elif score is None:
            message = f"similarity_score is {row['similarity_score']!r}; it must be from 0 to 1"
            problems.append(location.problem(message))
        else:
            turns = tuple(row[column] for column in turn_columns)
            dialogue_number = dialogue_numbers.setdefault(turns, len(dialogue_numbers) + 1)
            dialogue_id = f"{n_turns}-turn-{dialogue_number:02}"
            letter = string.ascii_lowercase[candidate_counts[dialogue_number] % 26]
            candidate_counts[dialogue_number] += 1
            item = Item(
                item_id=f"{dialogue_id}-{letter}",
                dialogue_id=dialogue_id,
                source=_source_of_domain(row["original_domain"]),
                domain=row["suggested_domain"],
                turns=tuple(Turn("", text) for text in turns),
                utterance_id=f"{dialogue_id}-{letter}",
                utterance=row["paired_utterance"],
                score=score,
                original_domain=row["original_domain"],
                language=LANGUAGE,
            )
            rows.append((LocatedRecord(item, location), row["similarity_score"].strip()))
    return rows, problems


def _cells(row: dict[str | None, Any]) -> list[str | None]:
    """Return all fields of a row, including those beyond the header."""
    return [cell for key, value in row.items() for cell in (value if key is None else [value])]


def _stray_quote_message(first_line: int, last_line: int) -> str:
    """Return the problem of a row in which a quoted field contains a tab."""
    lines = f"lines {first_line} to {last_line}" if last_line > first_line else f"line {first_line}"
    return (
        f"a quote at the beginning of a field makes one field of {lines}, tabs included; expected a quote "
        'at both ends of the field and each quote inside it doubled ("")'
    )


def _parse_score(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _source_of_domain(original_domain: str) -> str:
    domain = original_domain.casefold()
    if "restaurant" in domain:
        return "CROWDSS"
    return "BAS SmartKom" if any(name in domain for name in SMARTKOM_DOMAINS) else ""


def _invariant_warnings(
    path: Path, rows: Sequence[tuple[LocatedRecord[Item], str]]
) -> Iterator[Problem]:
    dialogues: dict[str, list[tuple[Item, float]]] = defaultdict(list)
    for row, score_text in rows:
        item = row.record
        rounding = 0.5 * 10.0 ** -len(score_text.partition(".")[2]) + 1e-9
        dialogues[item.dialogue_id].append((item, rounding))
        if abs(item.score - round(item.score * SCORE_DENOMINATOR) / SCORE_DENOMINATOR) > rounding:
            message = f"score {score_text} is not a multiple of 1/{SCORE_DENOMINATOR}, as the design implies"
            yield row.location.problem(message)
    for dialogue_id, items in dialogues.items():
        total = sum(item.score for item, _ in items)
        if len(items) != CANDIDATES_PER_DIALOGUE:
            message = (
                f"dialogue {dialogue_id} has {len(items)} utterances instead of "
                f"{CANDIDATES_PER_DIALOGUE}"
            )
            yield Problem(str(path), None, message)
        elif abs(total - DIALOGUE_SCORE_SUM) > sum(rounding for _, rounding in items):
            message = f"scores of dialogue {dialogue_id} sum to {total:.3f} instead of {DIALOGUE_SCORE_SUM}"
            yield Problem(str(path), None, message)
    if len(dialogues) != DIALOGUES_PER_FILE:
        yield Problem(
            str(path), None, f"contains {len(dialogues)} dialogues instead of {DIALOGUES_PER_FILE}"
        )
