"""Tables of results and their renderers."""

import math
from dataclasses import replace

import pytest

from bws.base.tables import Column, ResultTable, TableStyle, part_name, rendered
from bws.chance_agreement import Estimate

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
    ("form", "start"), [("markdown", "|"), ("latex", "\\begin{tabular}{lrrr}")]
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
    frame = TABLE.to_frame("polars")
    assert frame["source"].to_list() == [None, "a"]
    assert frame["n_turns"].to_list() == [None, 3]
    assert frame["alpha_worst"].to_list() == [0.125, None]
    assert frame["alpha_best_low"].to_list() == [0.25, None]


def test_a_table_without_rows():
    table = ResultTable([Column("item", "item"), Column("score", "score")], [])
    assert table.csv() == "item,score\n"
    assert table.to_frame("polars").columns == ["item", "score"]
    assert table.text().splitlines()[0] == "item    score"


def test_part_name():
    assert part_name({"source": "spoken", "n_turns": "3"}) == "source=spoken, n_turns=3"
    assert part_name({}) == "all"


INTERVALS = ResultTable(
    [
        Column("model", "model"),
        *(Column(name, f"{name} [95 %]", ".3f", best="max") for name in ("pearson", "spearman", "rho")),
        Column("setting", "setting"),
        Column("error", "error", ".2f", best="min"),
    ],
    [
        ["package:a-long-name_of_a_model", *[Estimate(0.5, 0.25, 0.75)] * 3, "without history", 0.2],
        ["m", *[Estimate(0.50004, -0.25, 0.75)] * 2, Estimate(0.4, -0.2, 0.6), "with", 0.1],
        ["ceiling", *[Estimate(0.9, 0.8, 1.0)] * 3, "", None],
    ],
    ["A note on all of these numbers, which is long enough for more than a single line of a terminal "
     "of one hundred characters."],
    "Correlations",
    reference_rows=1,
)  # fmt: skip


def test_a_wide_table_is_wrapped_without_dividing_names_and_intervals(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = str(INTERVALS)
    assert max(map(len, text.splitlines())) <= 100
    assert "package:a-long-name_of_a_model" in text
    assert text.count("[0.250, 0.750]") == 3
    monkeypatch.setenv("COLUMNS", "250")
    wide = str(INTERVALS)
    assert len(wide.splitlines()) == 6
    words = [sorted(word for word in each.split() if "--" not in word) for each in (text, wide)]
    assert words[0] == words[1]


@pytest.mark.parametrize("form", ["markdown", "csv", "html"])
def test_other_formats_are_not_wrapped(monkeypatch, form):
    monkeypatch.setenv("COLUMNS", "250")
    wide = INTERVALS.text(form)
    monkeypatch.setenv("COLUMNS", "100")
    assert INTERVALS.text(form) == wide


def test_the_best_values_are_bold_also_if_several_look_equal():
    latex = rendered([INTERVALS], TableStyle("latex", bold_best=True))
    lines = [line for line in latex.splitlines() if "&" in line]
    assert lines[1].count(r"\textbf") == 3
    assert lines[2].count(r"\textbf") == 3  # Two equal ones, and the lower error.
    assert r"\textbf{0.10}" in lines[2]
    assert r"\textbf" not in lines[3]


def test_columns_are_selected_and_only_tables_with_the_most_of_them_are_printed():
    other = ResultTable([Column("model", "model"), Column("n", "n")], [["a", 3]], title="Other")
    text = rendered([INTERVALS, other], TableStyle("table", ["rho", "model"]))
    assert text.splitlines()[2].split() == ["rho", "[95", "%]", "model"]
    assert "Other" not in text
    assert rendered([INTERVALS, other], TableStyle("csv", ["n"])) == "n\n3\n"
    with pytest.raises(ValueError, match="no column 'modle'; did you mean 'model'"):
        rendered([other], TableStyle("table", ["modle"]))
    with pytest.raises(ValueError, match="CSV has a single table, not 2"):
        rendered([INTERVALS, other], TableStyle("csv"))


def test_captions_and_labels_of_several_tables_differ():
    style = TableStyle("latex", caption="Results", label="tab:r")
    latex = rendered([INTERVALS, replace(INTERVALS, title="Errors")], style)
    assert r"\caption{Results}" in latex
    assert r"\caption{Results: Errors}" in latex
    assert r"\label{tab:r}" in latex
    assert r"\label{tab:r-2}" in latex


def test_intervals_are_divided_only_if_the_table_would_not_fit(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    columns = [Column("part"), *(Column("score", "score", ".3f") for _ in range(9))]
    text = ResultTable(columns, [["all", *[Estimate(0.057, -0.002, 0.117)] * 9]]).text()
    assert max(map(len, text.splitlines())) <= 100
    assert set(text.split()[-28:]) == {"all", "0.057", "[-0.002,", "0.117]"}


def test_the_best_values_are_those_of_each_family():
    columns = [Column("model"), Column("history"), Column("score", spec=".1f", best="max")]
    rows = [["a", "with", 0.9], ["a", "without", 0.5], ["b", "with", 0.2], ["b", "without", 0.5]]
    table = ResultTable(columns, rows, families=[row[1] for row in rows])
    marked = [getattr(row[2], "emphasis", "") == "bold" for row in table.with_best().rows]
    assert marked == [True, True, False, True]
    titles = [Column(name, spec=".1f", best="max", family=name[0]) for name in ("w1", "w2", "o1")]
    rows = [["x", 0.9, 0.3, 0.1]]
    by_row = ResultTable([Column("subset"), *titles], rows, compares_rows=True).with_best()
    assert [getattr(cell, "emphasis", "") for cell in by_row.rows[0][1:]] == ["bold", "", "bold"]
