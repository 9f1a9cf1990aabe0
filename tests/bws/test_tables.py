"""Tables of results and their renderers."""

import math

import pytest

from bws.agreement import Estimate
from bws.tables import Column, ResultTable, part_name

PARTS = (Column("source", "Source"), Column("n_turns", "Turns", unit="-turn"))
TABLE = ResultTable(
    [
        Column("part"),
        Column("items", "items", align="right"),
        Column("alpha_best", "best", ".2f", group="alpha"),
        Column("alpha_worst", "worst", ".2f", group="alpha"),
        Column("observed", "observed", ".1f", is_detail=True),
    ],
    [
        ({}, 12, Estimate(0.5, 0.25, 0.75), 0.125, 0.75),
        ({"source": "a", "n_turns": 3}, 5, Estimate(0.5), math.nan, math.nan),
    ],
    notes=("all: a note",),
)


def test_a_group_title_is_above_its_first_column_and_notes_are_below():
    assert str(TABLE) == (
        "                       items  alpha best         worst\n"
        "-------------------  -------  -----------------  ---------\n"
        "all                       12  0.50 [0.25, 0.75]  0.12\n"
        "source=a, n_turns=3        5  0.50 [–]           undefined\n"
        "all: a note"
    )
    assert [column.header for column in TABLE.text_columns()][2:] == ["alpha best", "alpha worst"]
    assert TABLE.text_rows("–")[1][3] == "–"


def test_parts_can_have_a_column_each():
    first, *others = TABLE.columns
    columns = [Column(first.key, parts=PARTS), *others]
    table = ResultTable(columns, [*TABLE.rows, ({"source": "", "n_turns": 5}, 1, 1, 0, 0)])
    assert [column.header for column in table.text_columns()][:3] == ["Source", "Turns", "items"]
    rows = [["all", "", "12"], ["a", "3-turn", "5"], ["(none)", "5-turn", "1"]]
    assert [row[:3] for row in table.text_rows()] == rows


@pytest.mark.parametrize(
    ("form", "start"), [("markdown", "|"), ("latex", "\\begin{tabular}{lrll}")]
)
def test_other_formats(form, start):
    assert TABLE.text(form).startswith(start)


def test_csv_has_details_limits_and_all_digits():
    assert TABLE.csv() == (
        "source,n_turns,items,alpha_best,alpha_best_low,alpha_best_high,alpha_worst,observed\n"
        ",,12,0.5,0.25,0.75,0.125,0.75\n"
        "a,3,5,0.5,,,,\n"
    )
    assert TABLE.select("observed", "items").csv() == "observed,items\n0.75,12\n,5\n"


def test_a_data_frame_has_null_for_nan():
    frame = TABLE.frame()
    assert frame["source"].to_list() == [None, "a"]
    assert frame["n_turns"].to_list() == [None, 3]
    assert frame["alpha_worst"].to_list() == [0.125, None]
    assert frame["alpha_best_low"].to_list() == [0.25, None]


def test_a_table_without_rows():
    table = ResultTable([Column("item", "item"), Column("score", "score")], [])
    assert table.csv() == "item,score\n"
    assert table.frame().columns == ["item", "score"]
    assert table.text().splitlines()[0] == "item    score"


def test_part_name():
    assert part_name({"source": "spoken", "n_turns": "3"}) == "source=spoken, n_turns=3"
    assert part_name({}) == "all"
