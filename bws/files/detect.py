"""Which format a file has, by its header first and by its answers where the header leaves a choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bws.file_kinds import remark
from bws.files.answers import right_answers
from bws.files.rows import Rows
from bws.files.table import Table
from bws.problems import InputError, Problem

__all__ = ["TabularFormat", "detect"]

SAMPLE = 200


class TabularFormat(Protocol):
    """A format that is a table, as its module describes it."""

    EXPECTED: str

    def fits(self, columns: list[str]) -> bool:
        """Tell whether a header is of this format."""

    def rows(self, table: Table) -> Rows:
        """Return the rows."""


def detect(table: Table, formats: Mapping[str, TabularFormat]) -> str:
    """Return the name of the format that the table has.

    Where the header fits several, the one in which most of the first rows are right. Raises InputError
    that lists the candidates where that leaves more than one, and the known formats where none fits.
    """
    fitting = [name for name, form in formats.items() if form.fits(table.frame.columns)]
    if not fitting:
        header = ", ".join(table.frame.columns[:20])
        known = "; ".join(f"{name}: {form.EXPECTED}" for name, form in formats.items())
        message = f"has the columns {header}, which is no format of judgments; known are {known}"
        message += remark(table.frame.columns)
        raise InputError(Problem(table.file, None, message))
    if len(fitting) == 1:
        return fitting[0]
    head = Table(table.file, table.frame.head(SAMPLE), table.lines[:SAMPLE])
    right = {name: right_answers(formats[name].rows(head)) for name in fitting}
    best = [name for name in fitting if right[name] == max(right.values())]
    if len(best) > 1 and max(right.values()) > 0:
        message = f"may be of format {' or '.join(best)}; say which"
        raise InputError(Problem(table.file, None, message))
    return best[0]  # nothing is right: the most special header counts, which stands first
