"""Dialogues with their candidates: read, written, and joined with scores to a benchmark."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import display_name, write_atomic
from giccs.benchmark.candidates import SPREAD, unlike_a_set
from giccs.benchmark.fields import Fields, json_lines
from giccs.benchmark.items import Candidate, Dialogue, Item

__all__ = ["assemble", "oddities", "placed_dialogues", "read_dialogues", "write_dialogues"]


def read_dialogues(path: str | os.PathLike[str], *, candidates: bool = True) -> list[Dialogue]:
    """Read dialogues from JSONL; raise InputError with every problem.

    candidates: whether each dialogue must have some. Before they are written (``giccs-build import`` and
        ``select``) the key may be absent or its list empty.
    """
    return [dialogue for _, dialogue in placed_dialogues(path, candidates=candidates)]


def placed_dialogues(
    path: str | os.PathLike[str], *, candidates: bool = True
) -> list[tuple[Problem, Dialogue]]:
    """Read dialogues as `read_dialogues` does, each with its place (a problem without a message)."""
    placed: list[tuple[Problem, Dialogue]] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for fields in json_lines(path, "dialogues"):
        if fields.values:
            dialogue = _dialogue(fields, candidates=candidates)
            earlier = first.setdefault(dialogue.dialogue_id, fields.line)
            if earlier != fields.line:
                fields.wrong(f"repeats the dialogue_id of line {earlier}; each must be unique")
            placed.append((Problem(fields.file, fields.line, ""), dialogue))
        problems += fields.problems
    if problems:
        raise InputError(problems)
    if not placed:
        raise InputError(Problem(display_name(path), None, "holds no dialogues"))
    return placed


def write_dialogues(dialogues: Iterable[Dialogue], path: str | os.PathLike[str]) -> None:
    """Write dialogues as JSONL, whole or not at all; what is empty and optional is left out."""
    lines = [json.dumps(_row(dialogue), ensure_ascii=False) for dialogue in dialogues]
    write_atomic(path, "".join(f"{line}\n" for line in lines))


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
            {"utterance_id": one.utterance_id, "text": one.text}
            | ({} if one.intended is None else {"intended": one.intended})
            for one in dialogue.candidates
        ],
    }


def _dialogue(fields: Fields, *, candidates: bool) -> Dialogue:
    given = fields.values.get("candidates")
    if candidates and given in (None, []):
        fields.wrong("there are no candidates; giccs-build candidates adds them")
    return Dialogue(
        dialogue_id=fields.text("dialogue_id"),
        source=fields.text("source", empty=True),
        domain=fields.text("domain", empty=True),
        turns=fields.turns(),
        candidates=_candidates(fields) if given is not None else (),
        original_domain=fields.optional_text("original_domain"),
        language=fields.language(),
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
            original_domain=dialogue.original_domain,
            language=dialogue.language,
        )
        for dialogue in dialogues
        for candidate in dialogue.candidates
    )


def oddities(
    placed: Sequence[tuple[Problem, Dialogue]], items: Sequence[Item], last_turn: str, number: int
) -> Iterator[tuple[Problem, str]]:
    """Yield what is odd about dialogues that were joined, each with the dialogue's id.

    last_turn: who is to speak the last turn: ``any``, ``user`` or ``system``.
    number: how many candidates a dialogue is to have.
    """
    scores: dict[str, list[float]] = {}
    for item in items:
        scores.setdefault(item.dialogue_id, []).append(item.score)
    for place, dialogue in placed:
        name = dialogue.dialogue_id
        said = list(unlike_a_set(dialogue, number))
        speaker = dialogue.turns[-1].speaker
        if last_turn not in ("any", speaker):
            said.append(f"ends with a turn by {speaker or 'nobody'} instead of {last_turn}")
        span = max(scores[name]) - min(scores[name])
        if span < SPREAD:
            said.append(f"has scores that span {span:.2f} only; candidates should differ more")
        for message in said:
            yield Problem(place.file, place.line, f"dialogue {name}: {message}"), name
