"""bwsTools' long form: a row an item, ``id,block,item,value`` with 1 best, -1 worst, 0 neither."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bws.files.faults import quoted
from bws.files.rows import Format, Rows
from bws.files.table import Table
from bws.files.writing import series
from bws.problems import InputError, Problem

__all__ = ["FORMAT"]

PARTS = ("id", "block", "item", "value")
VALUES = {
    "1": "best", "+1": "best", "1.0": "best", "-1": "worst", "-1.0": "worst", "0": "", "0.0": "",
}  # fmt: skip


def rows(table: Table) -> Rows:
    """Return a row for each id and block.

    A block in which more than one item is best or worst, or which has not as many items as the first, is a
    problem.
    """
    named = {column.lower(): column for column in table.frame.columns}
    written = [table.frame[named[part]].str.strip_chars() for part in PARTS]
    blocks: dict[tuple[str, str], _Block] = {}
    problems = list(table.problems)
    for line, person, block, item, value in zip(table.lines.tolist(), *written, strict=True):
        found = blocks.setdefault((person, block), _Block(line, person))
        if value in VALUES:
            found.add(item, VALUES[value])
        else:
            message = f"value is {quoted(value)}; it must be 1 (best), -1 (worst) or 0"
            problems.append(Problem(table.file, line, message))
            found.broken = True
    return _of_blocks(table.file, list(blocks.values()), problems)


class _Block:
    """The items that one person saw together."""

    def __init__(self, line: int, annotator: str) -> None:
        self.line, self.annotator, self.broken = line, annotator, False
        self.items: list[str] = []
        self.chosen: dict[str, list[str]] = {"best": [], "worst": [], "": []}

    def add(self, item: str, role: str) -> None:
        self.items.append(item)
        self.chosen[role].append(item)

    def faults(self, k: int) -> list[str]:
        found = []
        if len(self.items) != k:
            found.append(f"{len(self.items)} items in this block; the first block has {k}")
        for role in ("best", "worst"):
            if len(self.chosen[role]) > 1:
                found.append(
                    f"{len(self.chosen[role])} items of this block are {role}; one is allowed"
                )
        return found


def _of_blocks(file: str, blocks: Sequence[_Block], problems: list[Problem]) -> Rows:
    if not blocks:
        raise InputError(Problem(file, None, "holds no judgments"))
    k = len(blocks[0].items)
    right = []
    for block in blocks:
        faults = block.faults(k) if not block.broken else []
        problems += [Problem(file, block.line, fault) for fault in faults]
        if not faults and not block.broken:
            right.append(block)

    return Rows(
        file=file,
        form="long",
        lines=np.array([block.line for block in right], np.int64),
        items=[series([block.items[place] for block in right]) for place in range(k)],
        best=series(["".join(block.chosen["best"]) for block in right]),
        worst=series(["".join(block.chosen["worst"]) for block in right]),
        annotator=series([block.annotator for block in right]),
        problems=tuple(problems),
    )


FORMAT = Format(
    "long",
    ", ".join(PARTS),
    lambda columns: set(PARTS) <= {column.lower() for column in columns},
    rows,
)
