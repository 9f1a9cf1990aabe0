"""Control items: their declaration by option or by the column ``control``, and the answers expected.

A declaration is the id of an item, optionally with the expected answer: ``ID``, ``ID=best`` or ``ID=worst``.
A cell of the column has those of its tuple, separated by semicolons. An item that is declared in one row is
a control item in all rows of its group.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.files.columns import Faults, quoted
from bws.record_columns import cell_controls, control_declaration
from bws.records import Ints, Tuples

if TYPE_CHECKING:
    import polars as pl

PLACEHOLDER = re.compile(
    r"(gold|control|catch|attention)[\W_]+\w.*|.*\w[\W_]+(gold|control|catch)", re.I
)
"""Ids under which published judgments list all their control items, such as ``gold_comment`` of Ruddit."""


def name_list(names: Iterable[str]) -> list[str]:
    """Return the names of control items, of which one may be given as a text."""
    return [names] if isinstance(names, str) else list(names)


def placeholders(items: Sequence[pl.Series]) -> list[str]:
    """Return the ids that occur several times in a row, if all of them are names of control items.

    >>> import polars as pl
    >>> first = pl.Series(["a", "gold_comment"])
    >>> placeholders([first, pl.Series(["b", "gold_comment"])]), placeholders([first, first])
    (['gold_comment'], [])
    """
    repeated = {text for a, b in combinations(items, 2) for text in a.filter(a == b).unique()} - {
        ""
    }
    return sorted(repeated) if all(map(PLACEHOLDER.fullmatch, repeated)) else []


def named_controls(
    names: Iterable[str], items: Collection[str], file: str, *, optional: bool = False
) -> dict[str, str]:
    """Return the expected answer, or an empty string, by id.

    optional: whether names that are no item are ignored. Raises InputError for them otherwise, and for an
    item with both answers.

    >>> named_controls(["gold=best", "a=b"], ["gold", "a=b"], "judgments.csv")
    {'gold': 'best', 'a=b': ''}
    """
    names = name_list(names)
    found = {name: control_declaration(name, items) for name in names}
    unknown = [name for name, control in found.items() if control is None]
    if unknown and not optional:
        message = (
            f"control item {quoted(unknown[0])} is no item of the judgments; expected the id of an item, "
            "optionally with =best or =worst"
        )
        raise InputError(Problem(file, None, message))
    return _joined((control for control in found.values() if control), file)


def with_named_controls(
    tuples: Tuples, names: Iterable[str], file: str, *, optional: bool = False
) -> Tuples:
    """Return the tuples with further control items, with names and errors of `named_controls`."""
    named = named_controls(names, set(tuples.items), file, optional=optional)
    if not named:
        return tuples
    earlier = [(item, answer) for (_, item), answer in tuples.controls.items()]
    answers = _joined([*earlier, *named.items()], file)
    keys = [key for key in tuples.item_keys if key in tuples.controls or key[1] in named]
    return tuples.with_controls({key: answers[key[1]] for key in keys})


def _joined(controls: Iterable[tuple[str, str]], file: str) -> dict[str, str]:
    """Return the expected answer of each control item, if any declaration has one; InputError for two.

    >>> _joined([("gold", "best"), ("gold", "")], "judgments.csv")
    {'gold': 'best'}
    """
    answers: dict[str, str] = {}
    for item, answer in controls:
        earlier = answers.get(item, "")
        if earlier and answer and earlier != answer:
            message = (
                f"control item {quoted(item)} is declared with ={earlier} and ={answer}; "
                "expected one answer"
            )
            raise InputError(Problem(file, None, message))
        answers[item] = earlier or answer
    return answers


def declared_controls(
    faults: Faults,
    codes: Ints,
    ids: NDArray[np.object_],
    group_of_row: Ints,
    names: Iterable[str],
    column: pl.Series | None,
    *,
    optional: bool = False,
) -> tuple[dict[tuple[int, int], str], NDArray[np.bool_]]:
    """Return the control items of R rows as (group, code) with their expected answer, and where they are.

    The answer expected by the column is that of its own row, see `bws.control_quality`. The mask is (K, R).
    optional: as in `named_controls`.
    """
    names = name_list(names)
    if not names and column is None:
        return {}, np.zeros(codes.shape, bool)
    code_of = {identity: code for code, identity in enumerate(ids.tolist())}
    controls = {
        (group, code_of[item]): answer
        for item, answer in named_controls(names, code_of, faults.file, optional=optional).items()
        for group in np.unique(group_of_row[(codes == code_of[item]).any(axis=0)]).tolist()
    }
    wrong = np.zeros(codes.shape[1], bool)
    has_cell = wrong if column is None else (column != "").to_numpy()
    rows = np.flatnonzero(has_cell).tolist()
    for row in rows:
        declared = cell_controls(str(column[row]), ids[codes[:, row]].tolist())  # type: ignore[index]
        wrong[row] = declared is None
        for item in declared or ():
            controls.setdefault((int(group_of_row[row]), code_of[item]), "")
    faults.add(
        wrong,
        lambda row: (
            f"control is {quoted(str(column[row]))}; expected items of the row, separated by ;, each "  # type: ignore[index]
            "optionally with =best or =worst, but not with both"
        ),
    )
    keys = np.array([group * len(ids) + code for group, code in controls], np.int64)
    return controls, np.isin(codes + group_of_row.astype(np.int64) * len(ids), keys)


def number_occurrences(codes: Ints, n_ids: int, is_control: NDArray[np.bool_]) -> Ints:
    """Return codes in which the second occurrence of a control item in a row is its code plus `n_ids`, ...

    codes: (K, R); all occurrences of an item have its code modulo `n_ids`.

    >>> codes = np.array([[0, 0], [1, 1], [0, 1]], np.int32)
    >>> number_occurrences(codes, 2, codes == 0).tolist()
    [[0, 0], [1, 1], [2, 1]]
    """
    if not is_control.any():
        return codes
    earlier = np.zeros_like(codes)
    for position in range(1, len(codes)):
        earlier[position] = (codes[:position] == codes[position]).sum(axis=0)
    return codes + n_ids * np.where(is_control, earlier, 0).astype(codes.dtype)
