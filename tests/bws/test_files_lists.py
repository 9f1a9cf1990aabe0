"""Items, tuples and scores in and out."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bws.base.problems import InputError
from bws.files import (
    judgments_from_records,
    read_item_sets,
    read_items,
    read_judgments,
    read_scores,
    read_tuples,
    write_scores,
    write_tuples,
)
from bws.metadata import read_metadata
from bws.records import Judgment, Scores


def file(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def lines_of(error):
    return [f"{p.line}: {p.message}" for p in error.value.problems]


# items


def test_items_a_line(tmp_path):
    path = file(tmp_path, "i.txt", "\ufeffa,1\r\n\r\n über \r\nc")
    assert read_items(path) == (["a,1", "über", "c"], None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("i.csv", 'group,item,text\ng,"a,1",x\nh,b,y\n'),
        ("i.tsv", "dialogue_id\tutterance_id\ng\ta,1\nh\tb\n"),
        ("i.jsonl", '{"item": "a,1", "group": "g"}\n\n{"item": "b", "group": "h"}\n'),
    ],
)
def test_items_in_columns_with_groups(tmp_path, name, text):
    assert read_items(file(tmp_path, name, text)) == (["a,1", "b"], ["g", "h"])


def test_columns_can_be_named(tmp_path):
    path = file(tmp_path, "i.csv", "word,set,note\na,s,\nb,t,\n")
    assert read_items(path, "word", "set") == (["a", "b"], ["s", "t"])
    assert read_items(path, item_column="word") == (["a", "b"], None)
    with pytest.raises(InputError, match="ambiguous item column"):
        read_items(path)
    with pytest.raises(InputError, match="no column 'x'; expected one of word, set, note"):
        read_items(path, "x")


def test_the_only_column_holds_the_items(tmp_path):
    assert read_items(file(tmp_path, "i.csv", "word\na\nb\n")) == (["a", "b"], None)


def test_dialogues_are_groups_of_candidates(tmp_path):
    dialogues = [
        {
            "dialogue_id": "d1",
            "turns": [],
            "candidates": [{"utterance_id": "a"}, {"utterance_id": "b"}],
        },
        {"dialogue_id": "d2", "turns": [], "candidates": [{"utterance_id": "a"}]},
    ]
    path = file(tmp_path, "d.jsonl", "".join(json.dumps(d) + "\n" for d in dialogues))
    assert read_items(path) == (["a", "b", "a"], ["d1", "d1", "d2"])


def test_every_item_that_cannot_be_used_is_named(tmp_path):
    path = file(tmp_path, "i.csv", "item,group\na,g\n,g\na,h\na ,g\nü,g\nu\u0308,g\na,g\n")
    with pytest.raises(InputError) as caught:
        read_items(path)
    note = "(they differ only in Unicode normalisation or surrounding white space)"
    assert lines_of(caught) == [
        "3: the item is empty; expected an id",
        f"5: repeats the item 'a ', 'g' of line 2; each must be unique {note}",
        f"7: repeats the item 'u\u0308', 'g' of line 6; each must be unique {note}",
        "8: repeats the item 'a', 'g' of line 2; each must be unique",
    ]


def test_broken_lines_and_dialogues_are_named(tmp_path):
    with pytest.raises(InputError) as caught:
        read_items(file(tmp_path, "i.jsonl", '{"item": "a"}\n[1]\n{"item"\n'))
    assert [line.partition(":")[0] for line in lines_of(caught)] == ["2", "3"]
    with pytest.raises(InputError) as caught:
        read_items(file(tmp_path, "d.jsonl", '{"candidates": []}\n{"dialogue_id": "d"}\n'))
    assert [line.partition(":")[0] for line in lines_of(caught)] == ["1", "2"]


def test_files_without_items_are_refused(tmp_path):
    for name, text in (("i.txt", "\n \n"), ("i.csv", "item\n")):
        with pytest.raises(InputError, match="no items"):
            read_items(file(tmp_path, name, text))


DIALOGUES = 'id,context,candidates\nd1,Hello there,a|b\nd2,"Hi, you",c|d\nd3,Hey,e|f\n'
LINES = '{"item": "a", "text": "x"}\n{"item": "b", "text": "y"}\n'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "d.csv",
            DIALOGUES,
            r"ambiguous item column; specify one of id, context, candidates",
        ),
        ("d.csv", DIALOGUES, r"this is a table of dialogues; giccs import"),
        ("d.csv", "item,context\n1,x\n", r"specify one of item, context \(--item-column\)"),
        ("d.csv", "id,item_id\n1,x\n", "specify one of id, item_id"),
        ("d.jsonl", LINES, "specify one of item, text"),
        ("d.txt", LINES, "is JSON, not a list of items; names of JSON Lines must end in .jsonl"),
        ("d", '[\n"a",\n"b"]\n', "is JSON, not a list of items"),
        (
            "d.xlsx",
            DIALOGUES,
            r"is a table, not a list of items: its first line has commas; name it .csv",
        ),
        ("d.txt", DIALOGUES.replace(",", "\t"), "its first line has tabs; name it .tsv"),
        ("d.txt", "word;frequency\na;1\nb;2\n", "its first line has semicolons; name it .csv"),
        ("d.txt", "x1,y1\nx2,y2\n", "its first line has commas"),
        ("d.tsv", DIALOGUES, "its first line has commas; name it .csv"),
        (
            "d.csv",
            "word|frequency\na|1\nb|2\n",
            "its first line has vertical bars; save it with commas",
        ),
        ("d.xlsx", "a\nb\nc\n", r"is named .xlsx but contains text; expected .txt for a list"),
        (
            "d.txt",
            "<!DOCTYPE html>\n<table><tr><td>a</td></tr></table>\n",
            "is an HTML or XML page",
        ),
        ("d.csv", "<html><body>\n", "is an HTML or XML page"),
        ("d.jsonl", "item,score\n" + "a,1\n" * 80, "this is a scores file"),
    ],
)
def test_a_table_or_another_format_is_no_list_of_items(tmp_path, name, text, message):
    with pytest.raises(InputError, match=message):
        read_items(file(tmp_path, name, text))


@pytest.mark.parametrize(
    "text",
    ["yes, please\nno, thanks\n", "a,b\nc\n", '"quoted, text"\n"and, more"\n', "a;b\nc;d;e\n"],
)
def test_lists_of_texts_may_have_commas(tmp_path, text):
    assert read_items(file(tmp_path, "i.txt", text)).items == text.splitlines()


def test_our_scores_and_a_named_column_hold_items(tmp_path):
    path = file(tmp_path, "s.csv", "item,group,score,appearances,best,worst\na,g,0.5,2,1,0\n")
    assert read_items(path) == (["a"], ["g"])
    assert read_items(file(tmp_path, "k.csv", "item,score\na,0.5\n")) == (["a"], None)
    assert read_items(file(tmp_path, "d.csv", DIALOGUES), "context").items[1] == "Hi, you"


def test_columns_of_a_list_and_groups_of_dialogues_are_refused(tmp_path):
    with pytest.raises(InputError, match="has no columns: a list of items has one per line"):
        read_items(file(tmp_path, "i.txt", "a\nb\n"), item_column="word")
    path = file(
        tmp_path, "d.jsonl", '{"dialogue_id": "d", "candidates": [{"utterance_id": "a"}]}\n'
    )
    with pytest.raises(InputError, match="contains dialogues, which are the groups"):
        read_items(path, group_column="source")


READERS = {
    "items.csv": read_items,
    "items.txt": read_items,
    "judgments.csv": read_judgments,
    "tuples.csv": read_tuples,
    "scores.csv": read_scores,
    "metadata.csv": read_metadata,
    "sets.csv": read_item_sets,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x14\0\x06\0", "is a ZIP archive, as written by Excel .*; save the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is a Microsoft Office file; save the sheet as CSV"),
        ("item,score\na,1\n".encode("utf-16")[:-1], "is not complete UTF-16 text"),
        ("item,score\na,1\n".encode("utf-16-le"), "NUL byte; expected UTF-8 text"),
        (b"PAR1\x15\x04", "is a Parquet file"),
    ],
)  # fmt: skip
def test_every_reader_refuses_other_formats_with_the_remedy(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"sets.csv", "items.txt"}))
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html>\n<body>\n<table>\n", "is an HTML or XML page; download the data itself"),
        ('{"item": "a", "score": 1}\n{"item": "b", "score": 2}\n', "is JSON, not a table"),
    ],
)
def test_every_reader_of_tables_refuses_pages_and_json(tmp_path, name, text, message):
    with pytest.raises(InputError, match=message):
        READERS[name](file(tmp_path, name, text))


FOREIGN = {
    "items.csv": "Item;Group\na;g\nb;g\n",
    "judgments.csv": " ITEM 1;Item_2;Best;WORST\na;b;a;b\n",
    "tuples.csv": "Tuple ID;Group;Item 1;Item 2;Round;Purpose;Seed\nt1;;a;b;1;warmup;0\n",
    "scores.csv": "Item;Group;SCORE;Low;High\na;;0,5;-0,1;0,9\n",
    "metadata.csv": "Item ID;source\na;x\n".replace("Item ID", "ITEM"),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_every_reader_takes_the_header_and_the_encoding_of_a_spreadsheet(tmp_path, name, encoding):
    plain = (
        FOREIGN[name]
        .lower()
        .replace(",", ".")
        .replace("item ", "item")
        .replace("tuple id", "tuple_id")
    )
    plain = plain.replace(" item", "item").replace("item_2", "item2")
    expected = READERS[name](file(tmp_path, name, plain))
    text = f"SEP=;\r\n{FOREIGN[name]}".replace("\n", "\r\n").replace("\r\r", "\r")
    header = FOREIGN[name].partition("\n")[0]
    path = tmp_path / f"foreign-{name}"
    path.write_bytes(f"{text}{header}\r\n".encode(encoding))
    found = READERS[name](path)
    if name == "scores.csv":
        assert (found.score.tolist(), found.low.tolist()) == ([0.5], [-0.1])
    if name == "tuples.csv":
        assert found.columns["round"].tolist() == ["1"]
    show = {"judgments.csv": lambda j: [*j.records()], "tuples.csv": lambda t: [*t.rows()]}
    fields = show.get(name, lambda value: str(value).replace(f"foreign-{name}", name))
    if name != "metadata.csv":
        assert fields(found) == fields(expected)
    else:
        assert (found.key, found.columns) == (expected.key, expected.columns)


def test_every_reader_of_tables_takes_semicolons(tmp_path):
    tables = {
        "items.csv": "item;group\na;g\nb;g\n",
        "judgments.csv": "item1;item2;best;worst\na;b;a;b\n",
        "tuples.csv": "tuple_id;group;item1;item2\nt1;;a;b\n",
        "scores.csv": "item;group;score\na;;0.5\n",
        "metadata.csv": "item;source\na;x\n",
    }
    for name, text in tables.items():
        assert READERS[name](file(tmp_path, name, text))
    decimal = read_scores(file(tmp_path, "s.csv", "item;group;score\na;;0,5\n"))
    assert decimal.score.tolist() == [0.5]
    with pytest.raises(InputError, match="score is '0,5'; it must be a number"):
        read_scores(file(tmp_path, "s.csv", 'item,group,score\na,,"0,5"\n'))


@pytest.mark.parametrize(
    ("column", "value", "least"),
    [("appearances", "1.5", 0), ("best", "-1", 0), ("rank_low", "0", 1)],
)
def test_counts_and_ranks_that_are_not_whole_are_refused(tmp_path, column, value, least):
    path = file(tmp_path, "s.csv", f"item,score,{column}\na,0.5,2\nb,0.5,{value}\n")
    message = rf":3: {column} is {value}; expected a whole number from {least}, or empty"
    with pytest.raises(InputError, match=message):
        read_scores(path)


# tuples


def test_a_table_with_tabs_and_another_header_is_no_tuples_file(tmp_path):
    for text in ("item\tscore\na\t1\nb\t2\n", "id\tcontext\tcandidates\nd1\tx\ta|b\nd2\ty\tc|d\n"):
        with pytest.raises(InputError, match=r"item1, item2, \.\.\.; this is a"):
            read_tuples(file(tmp_path, "t.tsv", text))
    with pytest.raises(InputError, match=r"it has the columns id, word, x; expected "):
        read_tuples(file(tmp_path, "t.tsv", "id\tword\tx\n1\ta\tb\n2\tc\td\n"))
    path = file(tmp_path, "t.tsv", "text\tscore\tb\nscore\tb\tc\ntext\tb\tc\n")  # a list of words
    assert len(read_tuples(path)) == 3


def test_our_tuples(tmp_path):
    path = file(
        tmp_path, "t.csv", 'tuple_id,group,item1,item2\nx,g,a,"b,1"\ny,g,"b,1",c\nz,h,a,b\n'
    )
    result = read_tuples(path)
    assert list(result.rows()) == [
        ("x", "g", ("a", "b,1")),
        ("y", "g", ("b,1", "c")),
        ("z", "h", ("a", "b")),
    ]
    assert result.members.tolist() == [[0, 1], [1, 2], [3, 4]]
    write_tuples(result, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == path.read_text()


def test_km_tuples_have_no_header_and_may_repeat(tmp_path):
    path = file(tmp_path, "t.tsv", 'a\t"b\tc, d\nb\ta\tc\na\t"b\tc, d\n')
    result = read_tuples(path)
    assert list(result.rows()) == [
        ("t1", "", ("a", '"b', "c, d")),
        ("t2", "", ("b", "a", "c")),
        ("t3", "", ("a", '"b', "c, d")),
    ]
    write_tuples(result, tmp_path / "out.tsv", "km")
    assert (tmp_path / "out.tsv").read_text() == path.read_text()


def test_km_cannot_carry_tabs(tmp_path):
    tuples = judgments_from_records([Judgment(("a\tb", "c"), "c", "a\tb")]).tuples
    with pytest.raises(InputError, match="contains a tab or a line break"):
        write_tuples(tuples, tmp_path / "out.tsv", "km")
    assert not (tmp_path / "out.tsv").exists()


def test_every_tuple_that_cannot_be_used_is_named(tmp_path):
    text = "tuple_id,group,item1,item2\nx,,a,b\nx,,a,b\ny,,a,a\n,,a,b\nz,,a,\nw,,a\n"
    with pytest.raises(InputError) as caught:
        read_tuples(file(tmp_path, "t.csv", text))
    assert lines_of(caught) == [
        "3: repeats the tuple_id 'x' of line 2; each must be unique",
        "4: item1 and item2 are both 'a'; expected distinct items, except control items (--control)",
        "5: tuple_id is empty; expected in all rows or in none",
        "6: item2 is empty; every row must have 2 items",
        "7: 3 fields; expected 4, as in the first row",
    ]


def test_rows_of_km_with_another_number_of_items_are_named(tmp_path):
    with pytest.raises(InputError) as caught:
        read_tuples(file(tmp_path, "t.tsv", "a\tb\tc\na\tb\nc\td\te\tf\n"))
    assert lines_of(caught) == [
        "2: 2 fields; expected 3, as in the first row",
        "3: 4 fields; expected 3, as in the first row",
    ]


def test_a_table_that_holds_no_tuples_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"expected tuple_id, group, item1, item2, \.\.\."):
        read_tuples(file(tmp_path, "t.csv", "a,b\n1,2\n"))
    with pytest.raises(InputError, match="no tuples"):
        read_tuples(file(tmp_path, "t.csv", "tuple_id,group,item1,item2\n"))


# scores


def scores(items, score, groups=None, **interval):
    ones = np.arange(len(items))
    groups = groups or [""] * len(items)
    return Scores(
        np.array(items, dtype=object), np.array(groups, dtype=object), np.array(score, float),
        ones + 3, ones, ones * 2, **{name: np.array(end, float) for name, end in interval.items()},
    )  # fmt: skip


def test_our_scores(tmp_path):
    given_scores = scores(["a,1", "b"], [0.1 + 0.2, np.nan], ["g", "h"], low=[-1, 0], high=[0.5, 1])
    write_scores(given_scores, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text() == (
        "item,group,score,appearances,best,worst,low,high\n"
        '"a,1",g,0.30000000000000004,3,0,0,-1.0,0.5\n'
        "b,h,,4,1,2,0.0,1.0\n"
    )
    result = read_scores(tmp_path / "s.csv")
    for name in ("items", "groups", "score", "appearances", "best", "worst", "low", "high"):
        np.testing.assert_array_equal(getattr(result, name), getattr(given_scores, name), name)


def test_km_scores_are_the_highest_first(tmp_path):
    write_scores(
        scores(["a", "b", "c", "d"], [-0.25, 0.9996, np.nan, -0.25]), tmp_path / "s.tsv", "km"
    )
    assert (tmp_path / "s.tsv").read_text() == "b\t1.000\na\t-0.250\nd\t-0.250\nc\tnan\n"
    result = read_scores(tmp_path / "s.tsv")
    assert result.items.tolist() == ["b", "a", "d", "c"]
    np.testing.assert_array_equal(result.score, [1, -0.25, -0.25, np.nan])
    assert result.appearances.tolist() == [0, 0, 0, 0]


def test_km_scores_that_are_equal_keep_the_order_of_the_items(tmp_path):
    items = [f"i{n:02}" for n in range(60)]
    write_scores(scores(items, [n % 2 for n in range(60)]), tmp_path / "s.tsv", "km")
    result = [line.split("\t")[0] for line in (tmp_path / "s.tsv").read_text().splitlines()]
    assert result == items[1::2] + items[::2]


def test_semrel_scores_have_a_pair_on_two_lines(tmp_path):
    write_scores(scores(["x. ||| y.", "z"], [0.5, 0.125]), tmp_path / "s.csv", "semrel")
    assert (
        tmp_path / "s.csv"
    ).read_text() == 'PairID,Text,Score\n00001,"x.\ny.",0.50\n00002,z,0.12\n'


def test_scores_that_cannot_be_used_are_named(tmp_path):
    text = (
        "item,group,score,appearances\na,g,0.5,1\na,h,1,1\na,g,nan,1\n,g,1,1\nb,g,x,1\nc,g,inf,1\n"
    )
    with pytest.raises(InputError) as caught:
        read_scores(file(tmp_path, "s.csv", text))
    assert lines_of(caught) == [
        "4: repeats the item 'a' of group 'g' of line 2; each must be unique",
        "5: item is empty; expected in every row",
        "6: score is 'x'; it must be a number, or empty",
        "7: score is 'inf'; it must be a number, or empty",
    ]
    with pytest.raises(InputError, match="expected item, group, score"):
        read_scores(file(tmp_path, "s.csv", "a,b\n1,2\n"))


@given(st.lists(st.floats(allow_infinity=False), min_size=1, max_size=5))
def test_scores_lose_nothing_in_a_file(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("scores") / "s.csv"
    write_scores(scores([f"i{n}" for n in range(len(values))], values), path)
    np.testing.assert_array_equal(read_scores(path).score, values)


@pytest.mark.parametrize("write", [write_tuples, write_scores])
def test_unknown_formats_are_named(tmp_path, write):
    tuples = judgments_from_records([Judgment(("a", "b"), "a", "b")]).tuples
    given_data = tuples if write is write_tuples else scores(["a"], [1])
    with pytest.raises(ValueError, match="form is 'xml'; expected 'csv'"):
        write(given_data, tmp_path / "x", "xml")
