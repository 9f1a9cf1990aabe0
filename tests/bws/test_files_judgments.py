"""Our own judgments in and out: what is the same tuple, what is wrong, and on which line."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bws.base.problems import InputError
from bws.files import judgments_from_records, read_judgments, write_judgments
from bws.records import Judgment
from bws.scoring import score

HEADER = "tuple_id,group,item1,item2,item3,best,worst,annotator\n"


def read(tmp_path, text, name="j.csv", **options):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_judgments(path, **options)


def problems(tmp_path, text, **options):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, **options)
    return [f"{p.line}: {p.message}" for p in caught.value.problems]


def test_what_is_read(tmp_path):
    text = HEADER + "t1,g,a,b,c,a,c,w1\nt2,g,b,c,d,d,b,w1\nt1,g,a,b,c,b,c,w2\nt1,g,a,b,c,b,a,\n"
    result = read(tmp_path, text)
    assert result.tuples.ids.tolist() == ["t1", "t2"]
    assert result.tuples.items.tolist() == ["a", "b", "c", "d"]
    assert result.tuples.members.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert result.tuples.groups.tolist() == ["g"]
    assert result.tuple_of.tolist() == [0, 1, 0, 0]
    assert result.best.tolist() == [0, 2, 1, 1]
    assert result.worst.tolist() == [2, 0, 2, 0]
    assert result.annotators.tolist() == ["w1", "w2"]
    assert result.annotator_of.tolist() == [0, 0, 1, -1]
    assert result.shown is None
    assert result.left_out == ()


def test_rows_of_a_tuple_may_order_its_items_differently(tmp_path):
    text = HEADER + "t1,,a,b,c,a,c,w1\nt1,,c,a,b,a,c,w2\n"
    result = read(tmp_path, text)
    assert len(result.tuples) == 1
    assert result.best.tolist() == [0, 0]  # a, in the first row's order
    assert result.worst.tolist() == [2, 2]  # c


def test_without_tuple_ids_a_tuple_is_its_group_and_set_of_items(tmp_path):
    text = "group,item1,item2,best,worst\ng,a,b,a,b\nh,a,b,a,b\ng,b,a,b,a\n"
    result = read(tmp_path, text)
    assert result.tuples.ids.tolist() == ["t1", "t2"]
    assert result.tuple_of.tolist() == [0, 1, 0]
    assert result.best.tolist() == [0, 0, 1]


def test_an_item_in_two_groups_is_two_items(tmp_path):
    text = HEADER + "t1,g,a,b,c,a,c,w1\nt2,h,a,b,c,a,c,w1\n"
    result = read(tmp_path, text)
    assert result.tuples.items.tolist() == ["a", "b", "c", "a", "b", "c"]
    assert result.tuples.group_of_item.tolist() == [0, 0, 0, 1, 1, 1]
    assert result.tuples.members.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_ids_are_compared_in_nfc_without_outer_white_space(tmp_path):
    text = HEADER + "t1,,u\u0308ber, b ,c,über,b,w1\nt1,,über,b,c, über ,c,w2 \n"
    result = read(tmp_path, text)
    assert result.tuples.items.tolist() == ["über", "b", "c"]
    assert result.best.tolist() == [0, 0]
    assert result.annotators.tolist() == ["w1", "w2"]


def test_ids_with_commas_quotes_and_line_breaks(tmp_path):
    text = HEADER + 't1,,"a,1","say ""b""","c\nd","a,1","c\nd",w1\nt1,,x,b,c,x,b,w2\n'
    assert problems(tmp_path, text) == [
        "5: this tuple_id has another group or other items in line 2; expected the same"
    ]
    result = read(tmp_path, text, on_invalid="skip")
    assert result.tuples.items.tolist() == ["a,1", 'say "b"', "c\nd"]


def test_further_columns_are_kept(tmp_path):
    text = HEADER.replace("\n", ",seconds,mood\n") + "t1,,a,b,c,a,c,w1,12,fine\n"
    result = read(tmp_path, text)
    assert {name: column.tolist() for name, column in result.columns.items()} == {
        "seconds": ["12"],
        "mood": ["fine"],
    }


def test_every_problem_of_every_row_is_told_with_its_line(tmp_path):
    text = (
        HEADER
        + "t1,,a,b,c,,c,w1\n"  # 2
        + "t1,,a,b,c,a,a,w1\n"  # 3
        + "t1,,a,b,c,x,,w1\n"  # 4
        + "t2,,a,b,b,a,b,w1\n"  # 5
        + "t3,,a,b,,a,b,w1\n"  # 6
        + '"t3",,"a\n",b,c,a,b,w1\n'  # 7 and 8
        + "t3,,a,b,c,a,b,w1\n"  # 9
        + "t3,,a,b\n"  # 10
        + "t3,,a,b,c,a,b,w1,more\n"  # 11
        + ",,a,b,c,a,b,w1\n"  # 12
        + "t3,g,x,y,z,x,y,w2\n"  # 13
        + "t3,,a,b,d,a,b,w2\n"  # 14
    )
    assert problems(tmp_path, text) == [
        "2: best is empty; it must be one of the row's items",
        "3: best and worst are both 'a'; expected different items",
        "4: best is 'x'; it must be one of the row's items",
        "4: worst is empty; it must be one of the row's items",
        "5: item2 and item3 are both 'b'; expected distinct items, except control items (--control)",
        "6: item3 is empty; every row must have 3 items",
        "9: annotator 'w1' has judged this tuple in line 7; expected one judgment per annotator and tuple",
        "10: 4 fields; expected 8, as in the first row",
        "11: 9 fields; expected 8, as in the first row; put texts with commas in double quotes",
        "12: tuple_id is empty; expected in all rows or in none",
        "13: this tuple_id has another group or other items in line 7; expected the same",
        "14: this tuple_id has another group or other items in line 7; expected the same",
    ]


def test_an_empty_answer_is_no_empty_item(tmp_path):
    assert problems(tmp_path, HEADER + "t1,,a,b,,,b,w1\n") == [
        "2: item3 is empty; every row must have 3 items",
        "2: best is empty; it must be one of the row's items",
    ]


def test_skip_leaves_out_what_error_would_name(tmp_path):
    text = HEADER + "t1,,a,b,c,a,c,w1\nt1,,a,b,c,,c,w2\nt2,,b,c,d,x,c,w2\nt3,,a,b\n"
    named = problems(tmp_path, text)
    result = read(tmp_path, text, on_invalid="skip")
    assert [f"{p.line}: {p.message}" for p in result.left_out] == named
    assert [p.line for p in result.left_out] == [3, 4, 5]
    assert len(result) == 1
    # what is in rows that were left out only is named, and is neither an item nor a tuple
    assert result.tuples.items.tolist() == ["a", "b", "c"]
    assert result.tuples.ids.tolist() == ["t1"]
    assert result.annotators.tolist() == ["w1"]
    assert (result.n_left_out, result.items_left_out) == (3, ("d",))


def test_a_repeated_header_leaves_nothing_behind(tmp_path):
    text = HEADER + "t1,,a,b,c,a,c,w1\n" + HEADER + "t1,,a,b,c,,c,w2\nt2,,b,c,d,b,d,w2\n"
    result = read(tmp_path, text, on_invalid="skip")
    assert result.tuples.items.tolist() == ["a", "b", "c", "d"]
    assert result.annotators.tolist() == ["w1", "w2"]
    assert result.n_left_out == 1
    assert result.items_left_out == ()
    whole = read(tmp_path, HEADER + "t1,,a,b,c,a,c,w1\nt2,,b,c,d,b,d,w2\n")
    assert list(result.records()) == list(whole.records())
    assert result.tuples.members.tolist() == whole.tuples.members.tolist()
    assert result.annotator_of.tolist() == whole.annotator_of.tolist()
    notes = score(result).notes
    assert notes == [
        "1 rows of the judgments were skipped",
        "1 line repeats the header and was skipped (3)",
        "skipped rows: 3 of 4 items lost more than 5 % of their judgments",
    ]


def test_a_group_that_only_invalid_rows_have_is_not_there(tmp_path):
    text = HEADER + "t1,g,a,b,c,,c,w1\nt2,h,a,b,c,a,c,\nt3,h,a,b,d,a,d,w3\n"
    result = read(tmp_path, text, on_invalid="skip")
    assert (result.tuples.groups.tolist(), result.tuples.items.tolist()) == (["h"], list("abcd"))
    assert [(r.group, r.annotator, r.best) for r in result.records()] == [
        ("h", "", "a"),
        ("h", "w3", "a"),
    ]
    assert result.annotator_of.tolist() == [-1, 0]


def test_nothing_valid_is_an_error_also_with_skip(tmp_path):
    text = HEADER + "t1,,a,b,c,,c,w1\n"
    assert problems(tmp_path, text, on_invalid="skip") == [
        "2: best is empty; it must be one of the row's items"
    ]
    assert problems(tmp_path, HEADER) == ["None: no judgments"]


def test_mixed_tuple_sizes_are_named_by_row(tmp_path):
    text = "item1,item2,item3,item4,best,worst\na,b,c,d,a,b\na,b,c,,a,b\n"
    assert problems(tmp_path, text) == ["3: item4 is empty; every row must have 4 items"]


def test_a_judgment_without_annotator_may_come_again(tmp_path):
    text = "item1,item2,best,worst\na,b,a,b\na,b,a,b\n"
    assert len(read(tmp_path, text)) == 2


def test_a_tuple_has_two_to_twelve_items(tmp_path):
    thirteen = ",".join(f"item{n}" for n in range(1, 14)) + ",best,worst\n"
    row = ",".join("abcdefghijklm") + ",a,b\n"
    assert problems(tmp_path, thirteen + row) == ["None: 13 items per row; expected 2 to 12"]


def test_the_order_shown(tmp_path):
    text = "item1,item2,item3,best,worst,shown\na,b,c,a,c,c;a;b\na,b,c,b,c,a; b;c\n"
    result = read(tmp_path, text)
    assert result.shown.tolist() == [[2, 0, 1], [0, 1, 2]]
    assert [record.items for record in result.records()] == [("c", "a", "b"), ("a", "b", "c")]


def test_the_order_shown_where_rows_order_the_tuple_differently(tmp_path):
    text = "tuple_id,item1,item2,item3,best,worst,shown\nt,a,b,c,a,c,c;a;b\nt,c,a,b,a,c,b;c;a\n"
    result = read(tmp_path, text)
    assert result.tuples.members.tolist() == [[0, 1, 2]]
    assert result.shown.tolist() == [[2, 0, 1], [1, 2, 0]]


def test_the_order_shown_of_ids_with_semicolons(tmp_path):
    text = "item1,item2,best,worst,shown\na;b,b,b,a;b,b;a;b\na;b,b,b,a;b,a;b;b\n"
    result = read(tmp_path, text)
    assert result.shown.tolist() == [[1, 0], [0, 1]]


def test_the_order_shown_must_be_of_the_items(tmp_path):
    text = "item1,item2,best,worst,shown\na,b,b,a,b;a\na,b,a,b,\na,b,a,b,a;a\n"
    message = (
        "it must be the items of the row in display order, separated by ;, in all rows or in none"
    )
    assert problems(tmp_path, text) == [
        f"3: shown is ''; {message}",
        f"4: shown is 'a;a'; {message}",
    ]


def test_unknown_values_of_arguments_are_named(tmp_path):
    with pytest.raises(ValueError, match="on_invalid is 'drop'; expected 'error' or 'skip'"):
        read(tmp_path, HEADER + "t1,,a,b,c,a,c,w1\n", on_invalid="drop")
    with pytest.raises(ValueError, match="unknown form 'tsv'; expected one of auto, csv"):
        read(tmp_path, HEADER, form="tsv")
    with pytest.raises(ValueError, match="column value is of the form 'long'; form is 'csv'"):
        read(tmp_path, HEADER, form="csv", parts={"value": "best"})
    with pytest.raises(ValueError, match="column best has two roles; expected one"):
        read(tmp_path, HEADER, parts={"best": "best", "worst": "best"})
    with pytest.raises(
        InputError, match=r"j\.csv:1: no column b; existing columns are tuple_id, gr"
    ):
        read(tmp_path, HEADER, parts={"best": "b"})


def test_records_are_checked_as_files_are():
    given = [
        Judgment(("a", "b"), "a", "b", annotator="w1"),
        Judgment(("b", "a"), "a", "b", annotator="w1"),
        Judgment(("a", "b", "c"), "a", "b"),
        Judgment(("a", "b"), "c", "b"),
    ]
    with pytest.raises(InputError) as caught:
        judgments_from_records(given)
    assert str(caught.value).split("\n") == [
        "records:2: annotator 'w1' has judged this tuple in line 1; expected one judgment per annotator "
        "and tuple; without tuple ids, rows with the same items are one tuple",
        "records:3: 3 items; the first record has 2",
        "records:4: best is 'c'; it must be one of the row's items",
    ]
    with pytest.raises(InputError, match="records: no records"):
        judgments_from_records([])


def test_records_tell_the_order_shown():
    given = [Judgment(("b", "a"), "a", "b", "w1"), Judgment(("a", "b"), "a", "b", "w2")]
    result = judgments_from_records(given)
    assert result.tuples.items.tolist() == ["b", "a"]
    assert result.shown.tolist() == [[0, 1], [1, 0]]
    assert list(result.records()) == [
        Judgment(("b", "a"), "a", "b", "w1", "", "t1"),
        Judgment(("a", "b"), "a", "b", "w2", "", "t1"),
    ]


IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=3)


@st.composite
def records(draw):
    """Judgments of K items of one of two groups, by people who never judge a tuple twice."""
    k = draw(st.integers(2, 4))
    items = draw(st.lists(IDS, min_size=k, max_size=6, unique_by=lambda text: _normal(text)))
    items = [_normal(item) or f"x{n}" for n, item in enumerate(items)]
    people = draw(st.lists(st.sampled_from(["", "w1", "w 2", "w;3"]), min_size=1, max_size=8))
    groups = draw(st.sampled_from([[""], ["g", 'h,"']]))
    made, seen = [], set()
    for person in people:
        chosen = tuple(draw(st.permutations(items))[:k])
        group = draw(st.sampled_from(groups))
        best, worst = draw(st.permutations(chosen))[:2]
        if person and (person, group, frozenset(chosen)) in seen:
            continue
        seen.add((person, group, frozenset(chosen)))
        made.append(Judgment(chosen, best, worst, person, group))
    return made


def _normal(text):
    from bws.base.ids import normal_id

    return normal_id(text)


@given(records())
def test_what_is_written_is_read_again(tmp_path_factory, given_records):
    given_judgments = judgments_from_records(given_records)
    path = tmp_path_factory.mktemp("round") / "j.csv"
    write_judgments(given_judgments, path)
    result = read_judgments(path, "csv")
    assert list(result.records()) == list(given_judgments.records())
    assert result.tuples.ids.tolist() == given_judgments.tuples.ids.tolist()
    np.testing.assert_array_equal(result.shown, given_judgments.shown)


@given(records(), st.builds(random.Random, st.integers(0, 2**32)))
def test_the_order_of_rows_changes_no_answer(given_records, random):
    shuffled = random.sample(given_records, len(given_records))
    one, other = judgments_from_records(given_records), judgments_from_records(shuffled)

    def rows(judgments):
        return sorted(
            (r.group, sorted(r.items), r.best, r.worst, r.annotator) for r in judgments.records()
        )

    assert rows(one) == rows(other)
    assert len(one.tuples) == len(other.tuples)
    assert len(one.tuples.items) == len(other.tuples.items)


@given(records())
def test_tuples_are_what_a_slow_reading_finds(given_records):
    result = judgments_from_records(given_records)
    sets = list(dict.fromkeys((r.group, frozenset(r.items)) for r in given_records))
    items = {(r.group, item) for r in given_records for item in r.items}
    assert len(result.tuples) == len(sets)
    assert [
        sets.index((r.group, frozenset(r.items))) for r in given_records
    ] == result.tuple_of.tolist()
    groups = result.tuples.groups[result.tuples.group_of_item]
    assert set(zip(groups, result.tuples.items, strict=True)) == items
    assert len(result.tuples.items) == len(items)
