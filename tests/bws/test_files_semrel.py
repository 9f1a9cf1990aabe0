"""Real judgments of SemRel-2024: the published scores, and files with typos."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from bws.files import read_judgments
from bws.files.pairs import BETWEEN, pair_id
from bws.scoring import score

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[2] / ".." / "shared"))
DATA = SHARED / "data" / "semrel2024"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the SemRel-2024 data are not here (GICCS_SHARED)"
)


def bare(first, second):
    """The pair without the quotes that stand around some sentences of either file."""
    return pair_id(first.strip(' "'), second.strip(' "'))


def test_scores_equal_the_published_ones():
    judgments = read_judgments(DATA / "hi_dev.csv")
    assert judgments.source.endswith("hi_dev.csv (semeval)")
    assert (len(judgments), len(judgments.tuples), len(judgments.tuples.items)) == (2400, 600, 300)
    result = score(judgments, scale="unit")
    ours = {
        bare(*item.split(BETWEEN)): value
        for item, value in zip(result.items, result.score, strict=True)
    }
    with open(DATA / "hin_dev_with_labels.csv", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    published = {bare(*row["Text"].split("\n")): float(row["Score"]) for row in rows}
    both = ours.keys() & published.keys()
    assert len(published) == 288
    assert len(both) >= 270
    # they are rounded to two places
    np.testing.assert_allclose(
        [ours[key] for key in both], [published[key] for key in both], rtol=0, atol=0.005 + 1e-9
    )


def test_typos_in_the_header_and_a_second_header_amid_the_rows():
    judgments = read_judgments(DATA / "arq_bws.csv", on_invalid="skip")
    assert judgments.source.endswith("arq_bws.csv (semeval)")
    text = (DATA / "arq_bws.csv").read_text(encoding="utf-8")
    assert text.startswith("SentPair1,SentPair2,SentPair3,SemPair4,Best,Worst")
    with open(DATA / "arq_bws.csv", encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    # the second header is no judgment; it is the only row without positions
    assert [row[4:] for row in rows if not row[4].isdecimal()] == [
        ["Most related", "Least related"]
    ]
    second_header = 2 + [row[4] for row in rows].index("Most related")
    assert judgments.notes == [f"1 line repeats the header and was skipped ({second_header})"]
    assert (len(judgments), judgments.left_out) == (len(rows) - 1, ())
