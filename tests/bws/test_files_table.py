"""Delimited text: every row with its true line, or a problem with its true line."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bws.base.problems import InputError
from bws.files.table import _careful, _fast, read_table, table_of, text_bytes


def rows(data, **options):
    table = table_of(text_bytes(data, "f"), "f", **options)
    return table.frame.rows(), table.lines.tolist(), [str(p) for p in table.problems]


def test_plain_rows():
    assert rows(b"a,b\n1,2\n3,4\n") == ([("1", "2"), ("3", "4")], [2, 3], [])


def test_line_ends_of_all_systems_and_no_last_one():
    expected = ([("1", "2"), ("3", "4")], [2, 3], [])
    assert rows(b"a,b\r\n1,2\r\n3,4\r\n") == expected
    assert rows(b"a,b\r1,2\r3,4") == expected
    assert rows(b"a,b\n1,2\n3,4") == expected


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_empty_lines_are_no_rows_but_count_as_lines(quote):
    one = quote + b"1" + quote
    data = b"\n\na,b\n\n" + one + b",2\n,\n\n3,\n\n"
    #       1 2 header 3, empty 4, row 5, fields empty 6, empty 7, row 8
    assert rows(data) == ([("1", "2"), ("3", "")], [5, 8], [])


def test_quotes_commas_and_line_breaks_in_fields():
    data = b'a,b\n"x, ""y""","1\n2\n3"\nz,4\n'
    assert rows(data) == ([('x, "y"', "1\n2\n3"), ("z", "4")], [2, 5], [])


@pytest.mark.parametrize("first", [b"1,2", b'"1",2'])
def test_rows_of_another_width_are_problems(first):
    result, lines, problems = rows(b"a,b\n" + first + b"\n3\n4,5,6\n7,8\n")
    assert (result, lines) == ([("1", "2"), ("7", "8")], [2, 5])
    assert problems == [
        "f:3: 1 fields; expected 2, as in the first row",
        "f:4: 3 fields; expected 2, as in the first row; put texts with commas in double quotes",
    ]


def test_columns_that_are_missing_are_told_with_what_else_is_wrong():
    table = table_of(b"a,b\n1\n2,3\n", "f")
    table.need(["b", "a"])
    with pytest.raises(InputError) as caught:
        table.need(["c", "a", "d"])
    assert [str(problem) for problem in caught.value.problems] == [
        "f:1: no column c, d; existing columns are a, b",
        "f:2: 1 fields; expected 2, as in the first row",
    ]


def test_a_short_row_is_seen_among_rows_with_empty_last_fields():
    _, lines, problems = rows(b"a,b\n1,\n2\n3,\n")
    assert lines == [2, 4]
    assert problems == ["f:3: 1 fields; expected 2, as in the first row"]


def test_separators_are_found():
    expected = [("1", "2,5")]
    assert rows(b"a;b\n1;2,5\n")[0] == expected
    assert rows(b"a\tb\n1\t2,5\n")[0] == expected


def test_without_header_nothing_is_quoted():
    result = rows(b'a\t"b\nc\td\n', separator="\t", header=False)
    assert result == ([("a", '"b'), ("c", "d")], [1, 2], [])


def test_a_quote_amid_a_field_is_a_character():
    assert rows(b'a,b\n1,5" pipe\n')[0] == [("1", '5" pipe')]


def test_byte_order_mark_gz_and_standard_input(tmp_path, monkeypatch):
    data = "\ufeffa,b\nä,2\n".encode()
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(data))
    assert read_table(tmp_path / "f.csv.gz").frame.rows() == [("ä", "2")]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    table = read_table("-")
    assert (table.file, table.frame.columns) == ("<stdin>", ["a", "b"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f: empty; expected rows"),
        (b"\n \n", "f: empty; expected rows"),
        (
            b"a,b\n1,\xff\n",
            "f:2: byte 0xff is not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8); in Windows-1252 it "
            "is 'ÿ'",
        ),
        (b"a\n\n\0\n", "f:3: NUL byte; expected UTF-8 text"),
        (b"a,b,a\n", "f:1: the header repeats a; expected unique names"),
        (
            b'a,b\n1,2\n3,"4\n5',
            "f:3: cannot parse the row (unexpected end of data); check its quotes",
        ),
        (b"," * 1000, "f:1: 1001 columns; expected at most 1000"),
    ],
)
def test_text_that_is_no_table(data, message):
    with pytest.raises(InputError) as caught:
        rows(data)
    assert str(caught.value) == message


def test_columns_without_a_name_are_called_by_their_place():
    table = table_of(b",a,\n1,2,3\n", "f")
    assert table.frame.columns == ["column 1", "a", "column 3"]


def test_an_empty_field_too_many_at_the_very_end_is_seen():
    _, lines, problems = rows(b"a,b\n1,2\n3,4,")
    assert lines == [2]
    assert problems == ["f:3: 3 fields; expected 2, as in the first row"]


PIECES = st.lists(
    st.sampled_from(["a", "ü", " ", ",", '"', '""', "\n", ',"', '",', '"\n']), max_size=14
)


@given(PIECES)
def test_both_ways_of_reading_find_the_same(pieces):
    body = ("x,y\n" + "".join(pieces) + "\n").encode()
    names = ["x", "y"]
    fast = _fast("f", body, 1, ",", names, header=True, quoted=b'"' in body)
    if fast is not None:
        careful = _careful("f", body, 1, ",", names, header=True)
        assert fast.frame.rows() == careful.frame.rows()
        assert fast.lines.tolist() == careful.lines.tolist()
        assert careful.problems == ()


@pytest.mark.parametrize("text", ["x,y\na,b\n\n1,2\n", 'x,y\n"a,""",b\n\n"1\n",2\n'])
def test_regular_text_is_read_fast(text):
    body = text.encode()
    assert _fast("f", body, 1, ",", ["x", "y"], header=True, quoted=b'"' in body) is not None


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=4)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_what_polars_writes_is_read_again(cells):
    import polars as pl

    text = pl.DataFrame(cells, schema=["a", "b"], orient="row").write_csv()
    expected = [row for row in cells if any(row)]
    assert rows(text.encode())[0] == expected


@pytest.mark.parametrize(
    ("text", "separator", "columns"),
    [
        (
            '"Datum, Uhrzeit";"A, B, C, D, E";best;worst\n1;"x, y";a;b\n', ";",
            ["Datum, Uhrzeit", "A, B, C, D, E", "best", "worst"],
        ),
        ('"Word, A";"Most, really";"a ""b, c"""\nx;y;z\n', ";", ["Word, A", "Most, really", 'a "b, c"']),
        ("A, B, C, D; h; j; k\titem1\titem2\nx, y\ta\tb\n", "\t", ["A, B, C, D; h; j; k", "item1", "item2"]),
        ('"two\nlines, a, b, c";d\n1;2\n', ";", ["two\nlines, a, b, c", "d"]),
        ('a "b,c",d;e\n1,2,3\n', ",", ['a "b', 'c"', "d;e"]),
    ],
)  # fmt: skip
def test_the_separator_is_not_guessed_from_texts_of_the_header(text, separator, columns):
    table = table_of(text.encode(), "a.csv")
    assert (table.separator, table.frame.columns) == (separator, columns)
    assert table.problems == ()


def test_vertical_bars_are_refused():
    with pytest.raises(InputError, match=r"^a\.csv:1: separator \| is not supported; expected com"):
        table_of(b"item1|item2|best|worst\na|b|a|b, c\n", "a.csv")


def test_separators_at_the_end_of_all_rows_are_ignored():
    table = table_of(b"a,b,c\n1,2,3,,\n4,5,,,\n", "a.csv")
    assert (table.frame.rows(), table.problems) == ([("1", "2", "3"), ("4", "5", "")], ())


@pytest.mark.parametrize("rows", ["1,2,3\n4,5, 6,\n", "1,2,3,\n4,5,6,7\n"])
def test_rows_with_other_numbers_of_fields_are_problems(rows):
    """The empty field may be the last column of a row in which a comma is not quoted."""
    table = table_of(f"a,b,c\n{rows}".encode(), "a.csv")
    assert table.problems
