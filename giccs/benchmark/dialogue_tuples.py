"""Tuples of candidates joined with their dialogues by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bws.base.ids import normal_id
from bws.records import Tuples
from giccs.benchmark.items import Candidate, Dialogue, Item


@dataclass(frozen=True, slots=True)
class DialogueTuple:
    """A tuple of candidates of a dialogue, with the ids of the tuples file."""

    tuple_id: str
    dialogue: Dialogue
    items: tuple[Candidate, ...]
    """In the order of the tuple."""


def dialogue_tuples(
    tuples: Tuples, dialogues: Sequence[Dialogue]
) -> tuple[list[DialogueTuple], list[str]]:
    """Return the tuples whose group is a dialogue with all their items, and the problems of the others.

    Ids are compared as `bws.records.normal_id`.
    """
    by_id = {normal_id(dialogue.dialogue_id): dialogue for dialogue in dialogues}
    problems = (
        []
        if len(by_id) == len(dialogues)
        else [f"{len(dialogues) - len(by_id)} dialogues have the id of another one"]
    )
    joined = []
    for tuple_id, group, items in tuples.rows():
        dialogue = by_id.get(group)
        candidates = {normal_id(c.utterance_id): c for c in dialogue.candidates} if dialogue else {}
        tuple_problems = list(_tuple_problems(group, items, dialogue, candidates))
        problems += [f"tuple {tuple_id!r}: {message}" for message in tuple_problems]
        if dialogue and not tuple_problems:
            tuple_items = tuple(replace(candidates[item], utterance_id=item) for item in items)
            joined.append(
                DialogueTuple(tuple_id, replace(dialogue, dialogue_id=group), tuple_items)
            )
    if not joined and not problems:
        problems.append("contains no tuples")
    return joined, problems


def _tuple_problems(
    group: str,
    items: Sequence[str],
    dialogue: Dialogue | None,
    candidates: Mapping[str, Candidate],
) -> Iterator[str]:
    if dialogue is None:
        yield f"unknown group {group!r}; expected a dialogue_id of the dialogues file"
        return
    for item in items:
        if item not in candidates:
            candidate_ids = ", ".join(map(repr, candidates))
            yield f"item {item!r} is not a candidate of dialogue {group!r}; expected one of {candidate_ids}"


def dialogues_of_items(items: Sequence[Item]) -> list[Dialogue]:
    """Return the dialogues of a benchmark's items, whose utterances are their candidates."""
    by_dialogue: dict[str, list[Item]] = {}
    for item in items:
        by_dialogue.setdefault(item.dialogue_id, []).append(item)
    return [
        Dialogue(
            dialogue_id=dialogue_id,
            source=first.source,
            domain=first.domain,
            turns=first.turns,
            candidates=tuple(Candidate(item.utterance_id, item.utterance) for item in members),
            original_domain=first.original_domain,
            language=first.language,
        )
        for dialogue_id, members in by_dialogue.items()
        for first in members[:1]
    ]
