"""Which of a row's items an answer names, however the format writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.files.assemble import MAX_K, Assembled, assemble_tuples
from bws.files.faults import Faults, quoted
from bws.files.rows import Rows
from bws.files.vocabulary import encode

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LETTERS", "chosen_places", "right_answers"]

LETTERS = "ABCDEFGHIJKL"
POSITION = r"^(\d{1,2})(?:\.0)?$"  # spreadsheets write 2 as 2.0
ALLOWED = {
    "item": "one of the row's items",
    "position": "a position from 1 to {k}",
    "letter": "a letter from A to {last}",
}


def chosen_places(
    faults: Faults, rows: Rows, what: str, answers: pl.Series, found: Assembled
) -> NDArray[np.int8]:
    """Return (J,) the place in the row of each answer, -1 and a fault where it names none of the items.

    what: how messages call the answers: best or worst.
    """
    place = PLACE[rows.answers](rows, answers, found)
    k = len(rows.items)
    allowed = ALLOWED[rows.answers].format(k=k, last=LETTERS[k - 1])

    def message(row: int) -> str:
        written = str(answers[row])
        said = f"is {quoted(written)}" if written.strip() else "is empty"
        return f"{what} {said}; it must be {allowed}"

    faults.add(place < 0, message)
    return place


def right_answers(rows: Rows) -> int:
    """Return how many rows name two of their items as best and worst, as the format says."""
    if not len(rows.lines) or len(rows.items) > MAX_K:
        return 0
    faults = Faults(rows.file, rows.lines)
    found = assemble_tuples(faults, rows.items, rows.group, rows.tuple_id)
    best, worst = (PLACE[rows.answers](rows, a, found) for a in (rows.best, rows.worst))
    right = (best >= 0) & (worst >= 0) & (best != worst) & ~faults.wrong
    return int(np.count_nonzero(right))


def _place_of_item(rows: Rows, answers: pl.Series, found: Assembled) -> NDArray[np.int8]:
    place = np.full(len(answers), -1, np.int8)
    for position, column in enumerate(rows.items):
        place[(answers == column).to_numpy()] = position
    unlike = np.flatnonzero(place < 0)  # empty, foreign, or written in another Unicode form
    if len(unlike):
        (code_of_answer,), written = encode([answers.gather(unlike)])
        code_of_id = {identity: code for code, identity in enumerate(found.ids)}
        chosen = np.array([code_of_id.get(text, -1) for text in written])[code_of_answer]
        equal = found.codes[:, found.row_of[unlike]] == chosen
        place[unlike] = np.where(equal.any(axis=0), equal.argmax(axis=0), -1)
    place[(answers == "").to_numpy()] = -1
    return place


def _place_of_position(rows: Rows, answers: pl.Series, found: Assembled) -> NDArray[np.int8]:
    import polars as pl

    digits = answers.str.strip_chars().str.extract(POSITION)
    place = digits.cast(pl.Int8).fill_null(0).to_numpy() - 1
    return np.where(place < len(rows.items), place, -1).astype(np.int8)


def _place_of_letter(rows: Rows, answers: pl.Series, found: Assembled) -> NDArray[np.int8]:
    import polars as pl

    letters = answers.str.strip_chars().str.to_uppercase()
    old, new = list(LETTERS[: len(rows.items)]), list(range(len(rows.items)))
    return letters.replace_strict(old, new, default=-1, return_dtype=pl.Int8).to_numpy()


PLACE = {"item": _place_of_item, "position": _place_of_position, "letter": _place_of_letter}
