"""An analysis of judgments for giccs, in a package of its own: the tuples on which annotators agree least."""

from dataclasses import dataclass

import altair as alt
import numpy as np

from bws.analysis.analysis import Analysis, Drawing, Picture
from bws.base.options import option
from bws.base.tables import Column, ResultTable


@dataclass(frozen=True)
class Settings:
    """Each field is an option of the command."""

    minimum: int = option(2, "Minimum number of judgments of a tuple.", bounds=(1, None))


class HardTuples:
    """The share of the most frequent best item of each tuple, lowest first."""

    def __init__(self, rows):
        self.rows = sorted(rows, key=lambda row: row["share"])

    def document(self):
        """Return the content of --json."""
        return {"tuples": self.rows}

    def result_table(self):
        """Return the table of the terminal, files, the report and the explorer."""
        columns = [
            Column("tuple", "tuple"),
            Column("judgments", "judgments", source="judgments"),
            Column("share", "most frequent answer", ".2f", source="share"),
        ]
        rows = [[row["tuple"], row["judgments"], row["share"]] for row in self.rows]
        sources = [f"/tuples/{number}" for number in range(len(rows))]
        return ResultTable(columns, rows, title="Least agreement first", sources=sources)


def run(answers):
    """Compute the result from `answers.judgments` and `answers.settings`."""
    judgments = answers.judgments
    counts = np.zeros(judgments.tuples.members.shape, dtype=int)
    np.add.at(counts, (judgments.tuple_of, judgments.best), 1)
    n, share = counts.sum(axis=1), counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return HardTuples(
        {"tuple": str(tuple_id), "judgments": int(number), "share": float(value)}
        for tuple_id, number, value in zip(judgments.tuples.ids, n, share, strict=True)
        if number >= answers.settings.minimum
    )


def draw(result, t):
    """Return the picture; t translates titles."""
    x = alt.X("share:Q", title=t("most frequent answer"))
    y = alt.Y("tuple:N", title=t("tuple"), sort=None)
    chart = alt.Chart(alt.Data(values=result.rows)).mark_point(filled=True).encode(x, y)
    return Drawing(
        chart,
        "Agreement on each tuple",
        result.rows,
        alternative=f"Chart of the agreement on {len(result.rows)} tuples.",
        opens={"tuple": "tuple"},
    )


HARD_TUPLES = Analysis(
    "hard-tuples", run, Settings,
    pictures=[Picture("tuples", "the agreement on each tuple", draw)],
    title="Hard tuples",
    text="The share of annotators who chose the most frequent best item of a tuple.",
    summary="List the tuples on which annotators agree least.",
    max_rows=10,
)  # fmt: skip
