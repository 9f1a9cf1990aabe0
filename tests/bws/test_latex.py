"""LaTeX of tables, typeset by pdflatex and read back from the PDF."""

import csv
import math
import re

import pytest
from click.testing import CliRunner

from bws.base.latex import SPECIAL, latex_text, tabular
from bws.base.tables import Column, ResultTable, remarks, tabulated
from bws.chance_agreement import Estimate
from bws.cli import agreement, reliability, score

NASTY = r"a_b&c%d#e{f}~g^h\i$j--k"
NAMES = (NASTY, "ρ-Modell †", "Größe übt", "[x] first", "*starred", "<s>|</s>", "čéßøñ – 1…")
CONTROL = "two\n\x1b lines\x00\u2028"


def squeezed(text):
    return "".join(text.replace("…", "...").replace("_", "").split())


def is_unsupported(character):
    return tabular([[character]], ["x"]).startswith("% typeset with")


def test_names_are_read_back_as_they_were(typeset):
    table = ResultTable(
        [Column("model", "model"), Column("x", f"ρ {NASTY}", ".3f"), Column("y", "± 5 %", "+.2f")],
        [(name, Estimate(-0.5, -0.25, 0.75), -0.125) for name in (*NAMES, CONTROL)],
    )
    text = typeset(table.latex(f"Caption: {NASTY}", "tab:a_b"))
    assert squeezed(f"Table 1: Caption: {NASTY}") in text
    for name in NAMES:
        assert squeezed(name) in text
    assert text.count("\u22120.500[\u22120.250,0.750]") == len(NAMES) + 1
    assert "twolines" in text
    assert squeezed(f"ρ{NASTY}") in text
    assert "±5%" in text


def test_long_texts_have_several_lines_and_numbers_stay_on_the_page(overfull_lines):
    sentence = (
        "We would like a table for two people in the garden, as near to the river as possible."
    )
    columns = [Column("item", "item"), Column("text", "text"), Column("score", "score")]
    table = ResultTable(
        columns, [(f"i{n}", sentence * 2, Estimate(0.5, 0.25, 0.75)) for n in range(60)]
    )
    latex = table.latex()
    assert re.search(r"\\begin{longtable}{lp{\d+pt}r}", latex)
    assert overfull_lines(latex) == []
    short = ResultTable(columns, [("i1", "short", 0.5)]).latex()
    assert "p{" not in short


def test_columns_of_a_wide_table_are_closer(overfull_lines):
    """Without a column of texts, smaller letters are not enough for 14 columns."""
    columns = [Column("model", "model"), *(Column(f"c{n}", f"c{n}", "+.3f") for n in range(13))]
    table = ResultTable(columns, [("an-encoder-of-texts", *[-0.125] * 13)])
    latex = table.latex()
    assert r"\scriptsize\setlength{\tabcolsep}{3pt}" in latex
    assert "wider than 17 cm" not in latex
    assert overfull_lines(latex) == []
    wider = ResultTable([*columns, *columns[1:]], [("m", *[-0.125] * 26)]).latex()
    assert "wider than 17 cm" in wider


def test_many_rows_are_broken_into_pages_with_the_header_on_each(typeset):
    def table(rows):
        columns = [Column("item", "head"), Column("x", "score", ".2f")]
        return ResultTable(columns, [(f"n{i}n", i / 8) for i in range(rows)])

    assert "\\begin{tabular}" in table(45).latex()
    text = typeset(table(600).latex("All scores", "tab:all"))
    assert text.count("AllScores".replace("S", "s")) == 1
    pages = text.count("headscore")
    assert pages > 1
    assert all(f"n{i}n" in text for i in range(600))
    assert typeset(table(46).latex()).count("headscore") == 1


@pytest.mark.parametrize(
    ("command", "options", "names"),
    [
        (score, [], NAMES),
        (score, ["--intervals", "--columns", "high,item,low"], NAMES),
        (reliability, ["--trials", "3"], ["Pearson", "Spearman"]),
        (agreement, [], ["best", "worst"]),
        (agreement, ["--annotators"], ["Jörg & Söhne", "b_%"]),
    ],
)
def test_tables_of_commands_are_typeset(command, options, names, tmp_path, typeset):
    rows = [["tuple_id", "item1", "item2", "item3", "item4", "best", "worst", "annotator"]]
    for n in range(len(NAMES)):
        items = (NAMES * 2)[n : n + 4]
        for a, annotator in enumerate(("Jörg & Söhne", "b_%", "ρ")):
            rows.append([f"t{n}", *items, items[a], items[(a + 2) % 4], annotator])
    path = tmp_path / "judgments.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    arguments = [str(path), "--format", "latex", "--caption", "ρ & 5 %", "--label", "tab:a_b"]
    done = CliRunner().invoke(command, [*arguments, *options])
    assert done.exit_code == 0, done.output
    text = typeset(done.stdout)
    assert "Table1:ρ&5%" in text
    for name in names:
        assert squeezed(name) in text


def test_every_character_of_the_map_is_typeset(typeset):
    characters = [*SPECIAL, *(c for c in map(chr, range(0xC0, 0x250)) if not is_unsupported(c))]
    assert {*"äöüßéÅçčğőŠŽ"} <= {*characters}
    rows = [[latex_text(f"x{character}y")] for character in characters]
    text = tabular(rows, ["c"])
    assert typeset(f"\\tiny\n{text}").count("x") >= len(characters)


def test_what_pdflatex_cannot_typeset_is_listed():
    text = tabulated([["日本 models", "0.5"], ["Жук", "1"]], ["model", "score"], "latex")
    assert text.splitlines()[0].startswith("% typeset with LuaLaTeX or XeLaTeX")
    assert text.splitlines()[0].endswith(": Ж к у 日 本")
    assert "日本 models & 0.5" in text


def test_numbers_are_on_the_right():
    rows = [
        ["7b", "0.51 [0.1, 0.2]", "-0.1", "3-turn", "–"],
        ["x", "undefined", "+5 %", "", "<0.001"],
    ]
    text = tabulated(rows, "abcde", "latex")
    assert "{lrrlr}" in text
    assert r"7b & 0.51 [0.1, 0.2] & $-$0.1 & 3-turn & --" in text


def test_shared_titles_span_their_columns(typeset):
    groups = ["", "alpha", "alpha", "strong"]
    columns = [
        Column(key, key, ".2f", group=group) for key, group in zip("abcd", groups, strict=True)
    ]
    text = ResultTable(columns, [(1, 2, math.nan, 4)]).latex()
    head = [
        r" & \multicolumn{2}{c}{alpha} &  \\",
        r"\cmidrule(lr){2-3}",
        r"a & b & c & strong d \\",
    ]
    assert text.splitlines()[2:5] == head
    assert "alphaabcstrongd" in typeset(text)


@pytest.mark.parametrize("line", ["50 % & more", "two\nlines"])
def test_notes_are_comments(line):
    assert all(text.startswith("% ") for text in "\n".join(remarks([line], "latex")).splitlines())
