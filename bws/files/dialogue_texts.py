"""Dialogues that have the same text under different ids."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bws.base.problems import Location, Problem
from bws.base.text import display_name
from bws.files.schema import json_objects


class DialogueTexts(NamedTuple):
    """The texts of a dialogue."""

    location: Location
    dialogue_id: str
    turns: Sequence[str]
    candidates: Sequence[str]


def equal_form(text: str) -> str:
    """Return a text that is equal for texts which differ only in Unicode form (NFC) and white space.

    >>> equal_form(" um  acht") == equal_form("um acht"), equal_form("Um acht") == equal_form("um acht")
    (True, False)
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def repeated_dialogues(dialogues: Iterable[DialogueTexts]) -> Iterator[Problem]:
    """Yield a problem for each dialogue whose turns are those of an earlier one, in `equal_form`.

    >>> location = Location("d.jsonl", 1), Location("d.jsonl", 2)
    >>> for problem in repeated_dialogues([
    ...     DialogueTexts(location[0], "d1", ["Hi."], ["Hello.", "Bye."]),
    ...     DialogueTexts(location[1], "d2", ["Hi. "], ["Bye."]),
    ... ]):
    ...     print(problem)
    d.jsonl:2: dialogue 'd2' has the turns of dialogue 'd1' in line 1, and 1 of its candidates; analyses \
count both as independent
    """
    first: dict[tuple[str, ...], DialogueTexts] = {}
    for dialogue in dialogues:
        earlier = first.setdefault(tuple(map(equal_form, dialogue.turns)), dialogue)
        if earlier is not dialogue:
            texts = set(map(equal_form, earlier.candidates))
            n_equal = sum(equal_form(text) in texts for text in dialogue.candidates)
            candidates = f", and {n_equal} of its candidates" if dialogue.candidates else ""
            yield dialogue.location.problem(
                f"dialogue {dialogue.dialogue_id!r} has the turns of dialogue {earlier.dialogue_id!r} in "
                f"{earlier.location.as_seen_from(dialogue.location)}{candidates}; "
                "analyses count both as independent"
            )


def repeated_dialogues_of_file(path: str | os.PathLike[str]) -> Iterator[Problem]:
    """Yield the problems of `repeated_dialogues` of a file of dialogues that was read before."""
    name = display_name(path)
    return repeated_dialogues(
        DialogueTexts(
            Location(name, line),
            str(value.get("dialogue_id")),
            _texts(value.get("turns")),
            _texts(value["candidates"]),
        )
        for line, value in json_objects(path)
        if "turns" in value and "candidates" in value
    )


def _texts(objects: Any) -> list[str]:
    """Return the texts of turns or candidates; an object without text has that of its JSON."""
    values = objects if isinstance(objects, list) else []
    return [str(v.get("text", v) if isinstance(v, Mapping) else v) for v in values]
