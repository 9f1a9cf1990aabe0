"""From dialogues and scores to a benchmark."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from bws.problems import InputError, Problem
from bws.textio import display_name
from giccs.fields import Fields, json_lines
from giccs.records import Candidate, Dialogue, Item

__all__ = ["assemble", "read_dialogues"]

KEYS = frozenset(["dialogue_id", "source", "domain", "turns", "candidates"])


def read_dialogues(path: str | os.PathLike[str]) -> list[Dialogue]:
    """Read dialogues with their candidates from JSONL; raise InputError with every problem."""
    dialogues: list[Dialogue] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for fields in json_lines(path):
        if fields.values:
            dialogue = _dialogue(fields)
            earlier = first.setdefault(dialogue.dialogue_id, fields.line)
            if earlier != fields.line:
                fields.wrong(f"repeats the dialogue_id of line {earlier}; each must be unique")
            dialogues.append(dialogue)
        problems += fields.problems
    if problems:
        raise InputError(problems)
    if not dialogues:
        raise InputError(Problem(display_name(path), None, "holds no dialogues"))
    return dialogues


def _dialogue(fields: Fields) -> Dialogue:
    return Dialogue(
        dialogue_id=fields.text("dialogue_id"),
        source=fields.text("source", empty=True),
        domain=fields.text("domain", empty=True),
        turns=fields.turns(),
        candidates=_candidates(fields),
    )


def _candidates(fields: Fields) -> tuple[Candidate, ...]:
    candidates = []
    ids: set[str] = set()
    texts: set[str] = set()
    for values in fields.objects("candidates"):
        inner = Fields(fields.file, fields.line, values)
        candidate = Candidate(
            inner.text("utterance_id"), inner.text("text"), inner.level("intended")
        )
        if candidate.utterance_id in ids or candidate.text in texts:
            inner.wrong(
                f"candidate {candidate.utterance_id} repeats another's utterance_id or text"
            )
        ids.add(candidate.utterance_id)
        texts.add(candidate.text)
        fields.problems += inner.problems
        candidates.append(candidate)
    return tuple(candidates)


def assemble(
    dialogues: Sequence[Dialogue], scores: Mapping[tuple[str, str], float]
) -> tuple[Item, ...]:
    """Join candidates with their scores; a benchmark item a candidate.

    An item is called by its utterance id; where two dialogues have a candidate of the same id, by
    ``dialogue/utterance``.

    `scores` maps (dialogue id, utterance id) to a score in [0, 1], best–worst scores s in [-1, 1] having
    been mapped by (s + 1) / 2 (paper section 3.4). Raises ValueError that names the candidates without
    a score and the scores without a candidate.
    """
    wanted = {(d.dialogue_id, c.utterance_id) for d in dialogues for c in d.candidates}
    unscored = sorted(key for key in wanted if math.isnan(scores.get(key, math.nan)))
    unknown = sorted(scores.keys() - wanted)
    faults = [f"{d}, {u}: this candidate has no score" for d, u in unscored]
    faults += [f"{d}, {u}: this score belongs to no candidate" for d, u in unknown]
    if faults:
        raise ValueError("\n".join(faults))
    ids = [utterance_id for _, utterance_id in wanted]
    unique = len(set(ids)) == len(ids)
    return tuple(
        Item(
            item_id=candidate.utterance_id
            if unique
            else f"{dialogue.dialogue_id}/{candidate.utterance_id}",
            dialogue_id=dialogue.dialogue_id,
            source=dialogue.source,
            domain=dialogue.domain,
            turns=dialogue.turns,
            utterance_id=candidate.utterance_id,
            utterance=candidate.text,
            score=scores[dialogue.dialogue_id, candidate.utterance_id],
        )
        for dialogue in dialogues
        for candidate in dialogue.candidates
    )
