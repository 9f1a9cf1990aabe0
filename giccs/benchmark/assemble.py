"""Reading and writing of dialogues with candidates, and joining them with scores."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bws.base.problems import Problem
from bws.base.rows import json_lines_text
from bws.base.text import display_name, write_atomic
from bws.files.dialogue_texts import DialogueTexts, repeated_dialogues
from bws.files.schema import (
    ANY_TEXT,
    OBJECTS,
    OPTIONAL_TEXT,
    TEXT,
    LocatedRecord,
    Row,
    Unique,
    json_rows,
    records,
)  # fmt: skip
from giccs.benchmark.candidates import MIN_SCORE_RANGE, candidate_problems
from giccs.benchmark.fields import LANGUAGE, LEVEL, TURNS, turn_problems
from giccs.benchmark.items import Candidate, Dialogue, Item

DIALOGUE_ID = Unique[Dialogue]("dialogue_id", lambda dialogue: dialogue.dialogue_id)


def read_dialogues(path: str | os.PathLike[str], *, candidates: bool = True) -> list[Dialogue]:
    """Read dialogues from JSONL; raise InputError with every problem.

    candidates: whether each dialogue must have candidates. Before they are written (``giccs import``
    and
        ``select``), the key may be absent or its list empty.
    """
    return [row.record for row in read_located_dialogues(path, candidates=candidates)]


def is_dialogues_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file exists whose first line is a dialogue, not an item of a benchmark."""
    first = next(json_rows(path), None) if Path(path).is_file() else None
    return first is not None and "turns" in first.values and "utterance" not in first.values


def read_located_dialogues(
    path: str | os.PathLike[str], *, candidates: bool = True
) -> Sequence[LocatedRecord[Dialogue]]:
    """Read dialogues like `read_dialogues`, each with its location."""
    make = partial(_parse_dialogue, candidates=candidates)
    parsed = records(display_name(path), json_rows(path, "dialogues"), make, [DIALOGUE_ID])
    parsed.checked("dialogues")
    return parsed.rows


def repeated_dialogue_warnings(located: Iterable[LocatedRecord[Dialogue]]) -> Iterator[Problem]:
    """Yield a warning for each dialogue that has the turns of an earlier one."""
    return repeated_dialogues(
        DialogueTexts(
            row.location,
            row.record.dialogue_id,
            [turn.text for turn in row.record.turns],
            [candidate.text for candidate in row.record.candidates],
        )
        for row in located
    )


def write_dialogues(dialogues: Iterable[Dialogue], path: str | os.PathLike[str]) -> None:
    """Write dialogues as JSONL, atomically; empty optional fields are omitted."""
    write_atomic(path, json_lines_text(map(_row, dialogues)))


def _row(dialogue: Dialogue) -> dict[str, Any]:
    original = {"original_domain": dialogue.original_domain} if dialogue.original_domain else {}
    language = {"language": dialogue.language} if dialogue.language else {}
    return {
        "dialogue_id": dialogue.dialogue_id,
        "source": dialogue.source,
        "domain": dialogue.domain,
        **original,
        **language,
        "turns": [{"speaker": turn.speaker, "text": turn.text} for turn in dialogue.turns],
        "candidates": [
            {"utterance_id": candidate.utterance_id, "text": candidate.text}
            | ({} if candidate.intended is None else {"intended": candidate.intended})
            for candidate in dialogue.candidates
        ],
    }


def _parse_dialogue(row: Row, *, candidates: bool) -> Dialogue:
    raw_candidates = row.values.get("candidates")
    if candidates and raw_candidates in (None, []):
        row.wrong("no candidates; add them with giccs build candidates")
    dialogue = Dialogue(
        dialogue_id=row.get("dialogue_id", TEXT),
        source=row.get("source", ANY_TEXT),
        domain=row.get("domain", ANY_TEXT),
        turns=row.get("turns", TURNS),
        candidates=_parse_candidates(row) if raw_candidates is not None else (),
        original_domain=row.get("original_domain", OPTIONAL_TEXT),
        language=row.get("language", LANGUAGE),
    )
    for message in turn_problems(row):
        row.wrong(message)
    return dialogue


def _parse_candidates(row: Row) -> tuple[Candidate, ...]:
    candidate_rows = [Row(row.location, values) for values in row.get("candidates", OBJECTS)]
    unique: list[Unique[Candidate]] = [
        Unique("candidate utterance_id", lambda candidate: candidate.utterance_id),
        Unique("candidate text", lambda candidate: candidate.text),
    ]
    parsed = records(row.location.file, candidate_rows, _parse_candidate, unique)
    row.problems += parsed.problems
    return tuple(row.record for row in parsed.rows)


def _parse_candidate(row: Row) -> Candidate:
    return Candidate(
        row.get("utterance_id", TEXT), row.get("text", TEXT), row.get("intended", LEVEL)
    )


def assemble(
    dialogues: Sequence[Dialogue],
    scores: Mapping[tuple[str, str], float],
    absolute_scores: Mapping[tuple[str, str], float] | None = None,
) -> tuple[Item, ...]:
    """Join candidates with their scores; return one benchmark item per candidate.

    The id of an item is its utterance id, or ``dialogue/utterance`` if several dialogues have a candidate
    with the same id.

    `scores` maps (dialogue id, utterance id) to a score in [0, 1]; best–worst scores s in [-1, 1] must have
    been mapped by (s + 1) / 2 (paper section 3.4). `absolute_scores` has the same keys. Raises ValueError
    with the candidates without a score and the scores without a candidate.
    """
    absolute = absolute_scores or {}
    keys = {(d.dialogue_id, c.utterance_id) for d in dialogues for c in d.candidates}
    unscored = sorted(key for key in keys if math.isnan(scores.get(key, math.nan)))
    unknown = sorted(scores.keys() - keys)
    not_absolute = sorted(
        key for key in keys if absolute and math.isnan(absolute.get(key, math.nan))
    )
    messages = [f"{d}, {u}: no score for this candidate" for d, u in unscored]
    messages += [f"{d}, {u}: no candidate for this score" for d, u in unknown]
    messages += [f"{d}, {u}: no absolute score for this candidate" for d, u in not_absolute]
    if messages:
        raise ValueError("\n".join(messages))
    ids = [utterance_id for _, utterance_id in keys]
    has_unique_ids = len(set(ids)) == len(ids)
    return tuple(
        Item(
            item_id=candidate.utterance_id
            if has_unique_ids
            else f"{dialogue.dialogue_id}/{candidate.utterance_id}",
            dialogue_id=dialogue.dialogue_id,
            source=dialogue.source,
            domain=dialogue.domain,
            turns=dialogue.turns,
            utterance_id=candidate.utterance_id,
            utterance=candidate.text,
            score=scores[dialogue.dialogue_id, candidate.utterance_id],
            original_domain=dialogue.original_domain,
            language=dialogue.language,
            absolute_score=absolute.get((dialogue.dialogue_id, candidate.utterance_id)),
        )
        for dialogue in dialogues
        for candidate in dialogue.candidates
    )


def dialogue_warnings(
    located: Sequence[LocatedRecord[Dialogue]],
    items: Sequence[Item],
    last_turn: str,
    n_candidates: int,
) -> Iterator[tuple[Problem, str]]:
    """Yield warnings about joined dialogues, each with the dialogue's id.

    last_turn: expected speaker of the last turn: ``any``, ``user`` or ``system``.
    n_candidates: expected number of candidates of a dialogue.
    """
    scores: dict[str, list[float]] = {}
    for item in items:
        scores.setdefault(item.dialogue_id, []).append(item.score)
    repeated = {problem.line: problem for problem in repeated_dialogue_warnings(located)}
    for row in located:
        dialogue = row.record
        dialogue_id = dialogue.dialogue_id
        messages = list(candidate_problems(dialogue, n_candidates))
        speaker = dialogue.turns[-1].speaker
        if last_turn not in ("any", speaker):
            messages.append(f"ends with a turn by {speaker or 'nobody'} instead of {last_turn}")
        span = max(scores[dialogue_id]) - min(scores[dialogue_id])
        if span < MIN_SCORE_RANGE:
            messages.append(
                f"has scores with a range of only {span:.2f}; candidates should differ more"
            )
        for message in messages:
            yield row.location.problem(f"dialogue {dialogue_id}: {message}"), dialogue_id
        if row.location.line in repeated:
            yield repeated[row.location.line], dialogue_id
