"""The long form of bwsTools: a row per item of a block, with 1 for the best item, -1 for the worst, else 0.

Source: R package bwsTools, data sets ``agg``, ``indiv`` and ``vdata``, whose columns have different names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bws.base.file_kinds import GROUP, LONG, first_of, plain
from bws.base.problems import InputError, Problem
from bws.files.columns import quoted
from bws.files.rows import Format, Rows, column_of
from bws.files.table import Table
from bws.record_columns import series

if TYPE_CHECKING:
    import polars as pl

NAME = "long"
SIGN_OF_WORD = {"best": "1", "most": "1", "worst": "-1", "least": "-1", "": "0"}
ROLE_OF_VALUE = {"1": "best", "+1": "best", "-1": "worst", "\u22121": "worst", "0": ""}


def _fits(columns: Sequence[str]) -> bool:
    found = [first_of(columns, names) for names in LONG.values()]
    return None not in found and len({*found}) == len(found)


def _rows(table: Table) -> Rows:
    """Return one row per annotator and block.

    Blocks with several best or worst items, or with another number of items than the first block, are
    problems.
    """
    names = [_column(table, role) for role in LONG]
    *texts, values = (table.frame[name].str.strip_chars() for name in names)
    values = with_signs(values)
    group = column_of(table, GROUP)
    groups = [""] * len(values) if group is None else group.to_list()
    blocks: dict[tuple[str, str], _Block] = {}
    problems = list(table.problems)
    for line, annotator, block, item, value, group_id in zip(
        table.lines.tolist(), *texts, values, groups, strict=True
    ):
        items = blocks.setdefault((annotator, block), _Block(line, annotator, group_id))
        if value in ROLE_OF_VALUE:
            items.add(item, ROLE_OF_VALUE[value])
        else:
            message = f"value is {quoted(value)}; it must be 1 (best), -1 (worst) or 0"
            problems.append(Problem(table.file, line, message))
            items.broken = True
    return _of_blocks(table, list(blocks.values()), problems)


def with_signs(values: pl.Series) -> pl.Series:
    """Return the column with 1, -1 and 0 for decimal numbers, or for best, worst and empty cells.

    >>> import polars as pl
    >>> with_signs(pl.Series(["Best", "", "worst"])).to_list()
    ['1', '0', '-1']
    """
    values = values.str.strip_chars().str.replace(r"^([+\-\x{2212}]?[01])[.,]0+$", "$1")
    words = values.str.to_lowercase()
    return (
        words.replace(SIGN_OF_WORD)
        if {"1", "-1"} <= {*words.replace(SIGN_OF_WORD)} - {*values}
        else values
    )


def _column(table: Table, role: str) -> str:
    """Return the column of a role; InputError if several have one of its names, and none the first one."""
    names = LONG[role]
    columns = [column for column in table.frame.columns if plain(column) in names]
    own = [column for column in columns if plain(column) == names[0]]
    if len(columns) > 1 and len(own) != 1:
        options = " or ".join(f"--column {role}={column}" for column in columns)
        raise InputError(Problem(table.file, 1, f"ambiguous columns; specify {options}"))
    return (own or columns)[0]


class _Block:
    """The items shown to an annotator together."""

    def __init__(self, line: int, annotator: str, group: str) -> None:
        self.line, self.annotator, self.group, self.broken = line, annotator, group, False
        self.items: list[str] = []
        self.chosen: dict[str, list[str]] = {"best": [], "worst": [], "": []}

    def add(self, item: str, role: str) -> None:
        self.items.append(item)
        self.chosen[role].append(item)

    def faults(self, k: int) -> list[str]:
        block_faults = []
        if len(self.items) != k:
            block_faults.append(f"{len(self.items)} items in this block; the first block has {k}")
        for role in ("best", "worst"):
            if len(self.chosen[role]) > 1:
                block_faults.append(
                    f"{len(self.chosen[role])} items of this block are {role}; expected one"
                )
        return block_faults


def _of_blocks(table: Table, blocks: Sequence[_Block], problems: list[Problem]) -> Rows:
    if not blocks:
        raise InputError(problems or Problem(table.file, None, "no judgments"))
    k = len(blocks[0].items)
    right = []
    for block in blocks:
        faults = block.faults(k) if not block.broken else []
        problems += [Problem(table.file, block.line, fault) for fault in faults]
        if not faults and not block.broken:
            right.append(block)

    return Rows(
        file=table.file,
        form=NAME,
        lines=np.array([block.line for block in right], np.int64),
        items=[series([block.items[index] for block in right]) for index in range(k)],
        best=series(["".join(block.chosen["best"]) for block in right]),
        worst=series(["".join(block.chosen["worst"]) for block in right]),
        annotator=series([block.annotator for block in right]),
        group=series([block.group for block in right]),
        problems=tuple(problems),
    )


FORMAT = Format(
    NAME,
    ", ".join(names[0] for names in LONG.values()),
    _fits,
    _rows,
    column_names={"annotator": "id", "tuple_id": "block", "items": "item", "value": "value"},
)
