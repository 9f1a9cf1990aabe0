"""HITs that label the similarity of two sentences under a condition again, by the rules of L-CSTS.

L-CSTS, section 3.3: annotators follow the guideline of C-STS and four more rules. A binary condition, such as
a number, permits the labels 1, 3 and 5 only (unequal, possibly equal, equal). A condition without a feature
asks for the type of its entity. Only direct inference with high confidence is allowed. An invalid condition
has the label -1. The paper says "1, 5, or 3 ... representing equal, unequal and possible equal"; its examples
and data have 5 for equal. The texts of the page are our own.
"""

from __future__ import annotations

from collections.abc import Sequence

from mturk.kinds import Behaviour, ExpectedTuple, Fields, HitKind, Truth, ValidAnswer
from mturk.kinds.similarity import LABELS, TICKED, SimilarityKind, box_problems

__all__ = ["KIND"]

BINARY_LABELS = ("1", "3", "5")
SIMULATED_BINARY_WORDS = frozenset(["number", "gender", "age"])
"""Features that the paper names as binary; simulated workers regard conditions with them as binary."""


class Relabel(SimilarityKind):
    """HITs with the similarity of two sentences under a graded or binary condition, unless it is invalid."""

    file = "relabel.csv"
    output_columns: Sequence[str] = (*SimilarityKind.output_columns, "binary")

    def columns(self, part_id: str) -> dict[str, str]:
        """Return column of the batch file -> name of the form field.

        >>> KIND.columns("17")["binary"]
        'binary-17'
        """
        return {**super().columns(part_id), "binary": f"binary-{part_id}"}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as a permitted label, or as an invalid condition.

        >>> KIND.problems(ExpectedTuple("17", "p1", ()), [("label-17", "4"), ("binary-17", "yes")])
        ['17: the label is 4 for a binary condition; expected one of 1, 3, 5']
        """
        values, names = dict(fields), self.columns(expected.tuple_id)
        label, binary = values.get(names["label"], ""), values.get(names["binary"], "")
        problems = [*super().problems(expected, fields), *box_problems(expected, binary)]
        if binary and values.get(names["not_applicable"]):
            message = f"{expected.tuple_id}: the condition is binary and does not apply"
            problems.append(f"{message}; expected only one")
        elif binary and label in LABELS and label not in BINARY_LABELS:
            message = f"{expected.tuple_id}: the label is {label} for a binary condition"
            problems.append(f"{message}; expected one of {', '.join(BINARY_LABELS)}")
        return problems

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return an answer of `SimilarityKind`; labels of a binary condition are 1, 3 or 5."""
        [(name, value)] = super().simulate(expected, truth, behaviour, worker)
        names = self.columns(expected.tuple_id)
        words = expected.items[2].lower().split()
        if name != names["label"] or SIMULATED_BINARY_WORDS.isdisjoint(words):
            return [(name, value)]
        label = {"2": "1", "4": "5"}.get(value, value)
        return [(name, label), (names["binary"], TICKED)]

    def cells(self, row: ValidAnswer) -> list[str]:
        """Return the columns of an answer in the output file; binary is empty for an invalid condition."""
        *cells, applies = super().cells(row)
        binary = dict(row.fields).get(self.columns(row.expected.tuple_id)["binary"]) or "no"
        return [*cells, applies, binary if applies == TICKED else ""]


KIND: HitKind = Relabel()
