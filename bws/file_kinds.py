"""The kinds of files that a study has, what their columns are called, and which command reads each."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from bws.column_names import BEST, ITEM, SCORE, WORST, first_of, numbered

__all__ = ["KINDS", "FileKind", "kind_of", "kind_of_header", "remark"]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file."""

    name: str
    title: str
    """What messages call it."""
    readers: str
    """Which command reads it, or makes what of it."""
    columns: frozenset[str] = frozenset()
    """Columns (or keys) that it always has and no other kind has together; empty where names vary."""


KINDS = {
    kind.name: kind
    for kind in (
        FileKind("judgments", "a judgments file", "bws-score makes scores of it"),
        FileKind("tuples", "a tuples file", "bws-simulate and mturk-hits publish read it"),
        FileKind(
            "benchmark", "a benchmark", "giccs-eval --data reads it",
            frozenset({"item_id", "utterance", "score"}),
        ),
        FileKind(
            "dialogues", "a dialogues file", "giccs-build makes a benchmark of it",
            frozenset({"dialogue_id", "turns"}),
        ),
        FileKind(
            "soft-targets", "a soft targets file", "giccs-card --soft-targets publishes it",
            frozenset({"tuple_id", "item", "p_best", "p_worst"}),
        ),
        FileKind("scores", "a scores file", "giccs-build --scores reads it"),
        FileKind(
            "csts", "a C-STS file", "giccs-csts and giccs-eval --task csts read it",
            frozenset({"sentence1", "sentence2", "condition"}),
        ),
        FileKind(
            "dialogue-table", "a table of dialogues", "giccs-build import makes a dialogues file of it",
            frozenset({"context", "candidates"}),
        ),
    )
}  # fmt: skip
"""By name; of several that fit, the first."""


def kind_of(columns: Iterable[str]) -> FileKind | None:
    """Return the kind of file that has these columns or keys; None where none is recognised.

    >>> kind_of(["item", "group", "score", "best", "worst"]).name
    'scores'
    >>> kind_of(["dialogue_id", "turns", "candidates"]).title
    'a dialogues file'
    >>> kind_of(["word", "frequency"])
    """
    names = [str(column) for column in columns]
    return next((kind for kind in KINDS.values() if _fits(kind, names)), None)


def _fits(kind: FileKind, columns: Collection[str]) -> bool:
    if kind.columns:
        return kind.columns <= set(columns)
    if kind.name == "judgments":
        return bool(numbered(columns) and first_of(columns, BEST) and first_of(columns, WORST))
    if kind.name == "tuples":
        answers = first_of(columns, (*BEST, *WORST))
        return len(numbered(columns, "item")) > 1 and answers is None
    return bool(first_of(columns, ITEM) and first_of(columns, SCORE))


def kind_of_header(line: str) -> FileKind | None:
    """Return the kind of delimited file that has this first line; None where none is recognised.

    >>> kind_of_header("item,group,score").name
    'scores'
    """
    for separator in (",", "\t", ";"):
        try:
            kind = kind_of(next(csv.reader([line], delimiter=separator), []))
        except csv.Error:
            continue
        if kind:
            return kind
    return None


def remark(columns: Iterable[str], expected: str = "") -> str:
    """Return the end of a message about a file with these columns: its kind, and what reads it.

    expected: the name of the kind that the command expects; of such a file nothing is said, nor of one
        that has some of its columns and may have lost the others.

    >>> remark(["dialogue_id", "turns"])
    '; this is a dialogues file; giccs-build makes a benchmark of it'
    >>> remark(["dialogue_id", "turns"], "dialogues"), remark(["a"])
    ('', '')
    >>> remark(["dialogue_id", "turns", "item_id"], "benchmark")
    ''
    """
    names = [str(column) for column in columns]
    kind, wanted = kind_of(names), KINDS.get(expected)
    if kind is None or kind is wanted:
        return ""
    order = list(KINDS.values())
    if wanted and wanted.columns & set(names) and order.index(kind) > order.index(wanted):
        return ""
    return f"; this is {kind.title}; {kind.readers}"
