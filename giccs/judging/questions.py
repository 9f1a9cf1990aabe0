"""Questions about tuples: the dialogue, if any, the items, and the orders in which they are shown."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bws.base.problems import InputError, Problem
from bws.base.rows import json_lines_text
from bws.base.text import display_name
from bws.records import Tuples
from giccs.benchmark.assemble import is_dialogues_file, read_dialogues
from giccs.benchmark.dialogue_tuples import dialogue_tuples, dialogues_of_items
from giccs.benchmark.files import read_benchmark
from giccs.benchmark.items import Dialogue, Turn


@dataclass(frozen=True, slots=True)
class TupleQuestion:
    """A tuple of utterances with their dialogue, or of plain items. Positions are those of the items."""

    tuple_id: str
    item_ids: tuple[str, ...]
    turns: tuple[Turn, ...]
    """Turns of the dialogue; empty for plain items."""
    utterances: tuple[str, ...]
    """Texts of the items, without surrounding white space."""
    first_order: tuple[int, ...]
    """The position shown at each place, in the first order."""

    def order(self, number: int) -> tuple[int, ...]:
        """Return the position shown at each place in the cyclic order with this number, from 0.

        >>> TupleQuestion("t1", ("a", "b", "c"), (), ("A", "B", "C"), (2, 0, 1)).order(1)
        (0, 1, 2)
        """
        start = number % len(self.first_order)
        return self.first_order[start:] + self.first_order[:start]


def read_judged_dialogues(data: str | os.PathLike[str]) -> list[Dialogue]:
    """Return the dialogues of a dialogues file, or of a benchmark; raise InputError with every problem.

    >>> len(read_judged_dialogues("giccs-sample"))
    60
    """
    if is_dialogues_file(data):
        return read_dialogues(data)
    return dialogues_of_items(read_benchmark(data).items)


def tuple_questions(
    tuples: Tuples, dialogues: Sequence[Dialogue], seed: int, name: str | os.PathLike[str]
) -> list[TupleQuestion]:
    """Return a question per tuple, in the order of the tuples.

    The random first order depends on the tuple id, its items and the seed only, not on the order of the
    file. name: the tuples file in messages. Raises InputError with every item that is missing in the
    dialogues.
    """
    joined, problems = dialogue_tuples(tuples, dialogues)
    if problems:
        raise InputError(Problem(display_name(name), None, message) for message in problems)
    return [
        make_question(
            part.tuple_id,
            part.dialogue.turns,
            {item.utterance_id: item.text for item in part.items},
            seed,
        )
        for part in joined
    ]


def make_question(
    tuple_id: str, turns: tuple[Turn, ...], texts: Mapping[str, str], seed: int
) -> TupleQuestion:
    """Return the question about a tuple; texts: item id -> text, in the order of the tuple."""
    item_ids = tuple(texts)
    by_id = sorted(range(len(item_ids)), key=item_ids.__getitem__)
    id_digest = hashlib.blake2b(tuple_id.encode("utf-8"), digest_size=8).digest()
    order = np.random.default_rng([seed, int.from_bytes(id_digest)]).permutation(len(by_id))
    return TupleQuestion(
        tuple_id,
        item_ids,
        turns,
        tuple(text.strip() for text in texts.values()),
        tuple(by_id[index] for index in order),
    )


def digest_of(questions: Sequence[TupleQuestion]) -> dict[str, str]:
    """Return SHA-256 of the tuples and of their texts, independent of the order of rows and items."""
    tuples = [
        {"tuple_id": question.tuple_id, "items": sorted(question.item_ids)}
        for question in questions
    ]
    texts = [
        {
            "turns": [[turn.speaker, turn.text] for turn in question.turns],
            "utterances": dict(zip(question.item_ids, question.utterances, strict=True)),
        }
        for question in questions
    ]
    return {"tuples": _digest(tuples), "data": _digest(texts)}


def _digest(objects: Iterable[Mapping[str, Any]]) -> str:
    lines = sorted(json_lines_text([value]) for value in objects)
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()
