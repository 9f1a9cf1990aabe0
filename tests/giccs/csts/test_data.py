"""C-STS files: read, checked, paired, relabelled. The examples are invented, in the published format."""

import gzip
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.base.problems import InputError
from giccs.csts.data import (
    INVALID,
    Dataset,
    Instance,
    check_csts,
    merged,
    pairs,
    read_csts,
    read_relabelled,
    write_csts,
)

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
REANNOTATED = SHARED / "data" / "l-csts" / "csts-val-reannotated.tsv"
HEADER = "sentence1,sentence2,condition,label"
KITES = "A red kite flies over the beach.,A red bus stops at the corner."
DOGS = '"A man said, ""Hello""\nto two dogs.",A woman feeds three dogs.'
GOOD = [
    f"{KITES},The color of the object.,5",
    f"{KITES},The type of object.,1",
    f"{DOGS},The animal.,4",
    f"{DOGS},The number of dogs.,2",
]


def write(path, *lines, header=HEADER):
    path.write_text("\n".join([header, *lines, ""]), "utf-8")
    return path


@pytest.fixture
def good(tmp_path):
    return write(tmp_path / "csts_validation.csv", *GOOD)


def problems_of(path, **options):
    return [str(one).removeprefix(f"{path}") for one in check_csts(path, **options)[1]]


def test_rows_are_read_as_they_stand(good):
    dataset = read_csts(good)
    assert [instance.uid for instance in dataset.instances] == ["0", "1", "2", "3"]
    assert [instance.label for instance in dataset.instances] == [5, 1, 4, 2]
    assert [instance.pair for instance in dataset.instances] == [0, 0, 1, 1]
    assert dataset.instances[2].sentence1 == 'A man said, "Hello"\nto two dogs.'
    assert dataset.instances[2].condition == "The animal."
    assert dataset.name == str(good)
    assert check_csts(good) == (dataset, [])


def test_a_packed_file_with_a_byte_order_mark_is_the_same(good, tmp_path):
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + good.read_bytes().replace(b"\n", b"\r\n")))
    assert read_csts(packed).instances == read_csts(good).instances
    assert read_csts(packed).fingerprint == read_csts(good).fingerprint


@pytest.mark.parametrize("name", ["uid", "index", "", "Unnamed: 0"])
def test_a_file_may_bring_its_own_uids(tmp_path, name):
    lines = [f"{7 + number},{line}" for number, line in enumerate(GOOD)]
    dataset = read_csts(write(tmp_path / "a.csv", *lines, header=f"{name},{HEADER}"))
    assert [instance.uid for instance in dataset.instances] == ["7", "8", "9", "10"]
    assert dataset.warnings == ()


@pytest.mark.parametrize("hidden", ["-1", "", "hidden", "-1.0"])
def test_the_test_split_is_not_labelled(tmp_path, hidden):
    path = write(tmp_path / "csts_test.csv", *(line[:-1] + hidden for line in GOOD))
    dataset = read_csts(path)
    assert {instance.label for instance in dataset.instances} == {None}
    assert dataset.labelled().instances == ()
    # the rule that C-High comes first is all there is without labels
    assert [(high.uid, low.uid) for high, low in pairs(dataset)] == [("0", "1"), ("2", "3")]


def test_minus_one_is_invalid_in_a_relabelled_set_only(tmp_path):
    path = write(tmp_path / "a.csv", *GOOD[:3], f"{DOGS},The number of dogs.,-1")
    assert problems_of(path) == [
        ":6: label is '-1'; expected 1, 2, 3, 4 or 5 (-1 only in a reannotation)"
    ]
    dataset = read_csts(path, relabelled=True)
    assert [instance.label for instance in dataset.instances] == [5, 1, 4, INVALID]
    assert [instance.label for instance in dataset.labelled().instances] == [5, 1, 4]
    assert [(high.uid, low.uid) for high, low in pairs(dataset)] == [("0", "1")]


def test_all_problems_are_found_with_their_lines(tmp_path):
    lines = [
        "1,A dog.,A cat.,The animal,6",
        "2,A dog.,A cat.,the animal ,3.5",
        "2, ,A cat.,The size,2",
        " ,A cow.,A cat.,,2",
        "5,A dog.,too few,2",
    ]
    path = write(tmp_path / "a.csv", *lines, header=f"uid,{HEADER}")
    assert problems_of(path) == [
        ":2: label is '6'; expected 1, 2, 3, 4 or 5 (-1 only in a reannotation)",
        ":3: label is '3.5'; expected 1, 2, 3, 4 or 5 (-1 only in a reannotation)",
        ":3: repeats the condition of line 2; expected different conditions within a pair",
        ":4: sentence1 is empty; expected text",
        ":4: repeats the uid '2' of line 3; each must be unique",
        ":4: its sentence pair has one row; expected two, with one condition each",
        ":5: uid is empty; expected a unique uid",
        ":5: condition is empty; expected text",
        ":5: its sentence pair has one row; expected two, with one condition each",
        ":6: 4 fields; expected 5, as in the first row",
    ]
    with pytest.raises(InputError) as error:
        read_csts(path)
    # what can be used in spite of it is no reason to refuse a file
    assert [problem.line for problem in error.value.problems] == [2, 3, 4, 4, 5, 6]


def test_what_is_against_the_design_can_be_read_but_is_said(tmp_path):
    lines = [GOOD[0], GOOD[2], GOOD[1], GOOD[3], "A cow.,A cat.,,2"]
    lines += [f"A cow.,A dog.,the {part},3" for part in ("head", "tail", "leg")]
    dataset = read_csts(write(tmp_path / "a.csv", *lines))
    assert [str(warning).partition("a.csv:")[2] for warning in dataset.warnings] == [
        "5: the other row of its sentence pair is line 2; the two rows must be adjacent",
        "6: the other row of its sentence pair is line 3; the two rows must be adjacent",
        "8: condition is empty; expected text",
        "8: its sentence pair has one row; expected two, with one condition each",
        "9: its sentence pair has 3 rows; expected two, with one condition each",
    ]
    # as the authors' programs have it: by the sentences, wherever they stand, and exactly two
    assert [(high.uid, low.uid) for high, low in pairs(dataset)] == [("0", "2"), ("1", "3")]


def test_duplicates_and_missing_labels_are_warnings(tmp_path):
    path = write(tmp_path / "a.csv", *GOOD, GOOD[3][:-1], GOOD[3])
    dataset, problems = check_csts(path)
    assert [problem.line for problem in problems] == [4]
    assert [str(warning).removeprefix(str(path)) for warning in dataset.warnings] == [
        ": 1 of 6 rows have no label",
        ":10: repeats line 6, with the same label",
    ]


def test_columns_that_nobody_reads_are_named(tmp_path):
    lines = [f"{line},x" for line in GOOD]
    dataset = read_csts(write(tmp_path / "a.csv", *lines, header=f"{HEADER},remark"))
    assert [warning.message for warning in dataset.warnings] == ["columns ignored: remark"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "a,b\n1,2\n",
            ":1: no column sentence1, sentence2, condition, label; existing columns are a, b",
        ),
        (f"{HEADER}\n", ": no rows; expected sentence pairs"),
        ("", ": empty; expected rows"),
        (f'{HEADER}\n"A dog,A cat,the animal,1\n', ":2: cannot parse the row"),
    ],
)
def test_what_is_no_table_of_pairs_is_refused(tmp_path, content, message):
    path = tmp_path / "a.csv"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError) as error:
        read_csts(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_the_high_row_is_the_one_with_the_higher_label(tmp_path):
    lines = [
        f"A cow.,A cat {n}.,{c},{label}"
        for n, c, label in zip("112233", "ababab", "122134", strict=True)
    ]
    path = write(tmp_path / "a.csv", *lines)
    assert [(high.uid, low.uid) for high, low in pairs(read_csts(path))] == [
        ("1", "0"),
        ("2", "3"),
        ("5", "4"),
    ]
    equal = write(tmp_path / "b.csv", "A.,B.,the one,3", "A.,B.,the other,3")
    assert [(high.uid, low.uid) for high, low in pairs(read_csts(equal))] == [("0", "1")]


def test_a_folder_is_read_as_one_or_by_its_splits(tmp_path, good):
    write(tmp_path / "csts_train.csv", GOOD[0], GOOD[1], "A.,B.,the one,3", "A.,B.,the other,3")
    whole = read_csts(tmp_path)
    uids = [instance.uid for instance in whole.instances]
    assert uids == [f"train:{n}" for n in range(4)] + [f"validation:{n}" for n in range(4)]
    assert [instance.pair for instance in whole.instances] == [0, 0, 1, 1, 2, 2, 3, 3]
    train = tmp_path / "csts_train.csv"
    assert list(map(str, whole.warnings)) == [
        f"{good}: 1 of its sentence pairs are also in {train}"
    ]
    assert read_csts(tmp_path, "validation").instances == read_csts(good).instances
    with pytest.raises(InputError, match=r"contains none of csts_test\.csv"):
        read_csts(tmp_path, "test")
    with pytest.raises(ValueError, match="'dev'; expected one of train, validation, test"):
        read_csts(tmp_path, "dev")


def test_a_packed_split_is_found_in_a_folder(tmp_path, good):
    (tmp_path / "csts_test.csv.gz").write_bytes(gzip.compress(good.read_bytes()))
    assert read_csts(tmp_path, "test").instances == read_csts(good).instances


def test_the_fingerprint_is_of_the_content(good, tmp_path):
    dataset = read_csts(good)
    write_csts(reversed(dataset.instances), tmp_path / "turned.csv")
    assert read_csts(tmp_path / "turned.csv").fingerprint == dataset.fingerprint
    first = replace(dataset.instances[0], label=4)
    changed = replace(dataset, instances=(first, *dataset.instances[1:]))
    assert changed.fingerprint != dataset.fingerprint


TEXTS = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), min_size=1)
ROWS = st.lists(
    st.tuples(TEXTS, TEXTS, TEXTS, st.sampled_from([1, 2, 3, 4, 5, INVALID])), min_size=1
)


@given(rows=ROWS)
@settings(max_examples=30)
def test_what_is_written_is_read_again(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "a.csv"
    rows = [row for row in rows if all(text.strip() for text in row[:3])] or [("a", "b", "c", 1)]
    numbers = {}
    instances = [
        Instance(f"u{place}", *row, numbers.setdefault(row[:2], len(numbers)))
        for place, row in enumerate(rows)
    ]
    write_csts(instances, path)
    assert list(read_csts(path, relabelled=True).instances) == instances


def test_rows_that_are_not_labelled_are_written_without_a_label(tmp_path):
    rows = (Instance("a", "One.", "Two.", "the number", None, 0),)
    write_csts(rows, tmp_path / "a.csv")
    assert read_csts(tmp_path / "a.csv").instances == rows


def test_second_labels_are_joined_by_uid(good, tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_bytes(b"uid\treannotated-label\r\n3\t-1\r\n0\t2\r\n17\t5\r\n")
    labels = read_relabelled(path)
    assert labels == {"3": INVALID, "0": 2, "17": 5}
    dataset = read_csts(good)
    both = merged(dataset, labels)
    assert [(instance.uid, instance.label) for instance in both.dataset.instances] == [
        ("0", 2),
        ("3", INVALID),
    ]
    assert both.without_label == ("1", "2")
    assert both.without_row == ("17",)
    assert both.dataset.instances[0].condition == dataset.instances[0].condition
    assert both.dataset.fingerprint != dataset.fingerprint


def test_second_labels_are_checked(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("uid\treannotated-label\n0\t0\n1\t5\n1\t4\n\t2\n", "utf-8")
    with pytest.raises(InputError) as error:
        read_relabelled(path)
    assert [str(problem).removeprefix(str(path)) for problem in error.value.problems] == [
        ":2: reannotated-label is '0'; it must be 1, 2, 3, 4 or 5, or -1 for an invalid condition",
        ":4: repeats the uid '1' of line 3; each must be unique",
        ":5: uid is empty; expected text",
    ]


@pytest.fixture
def reannotated():
    if not REANNOTATED.is_file():
        pytest.skip(f"{REANNOTATED} is not there; set GICCS_SHARED")
    return read_relabelled(REANNOTATED)


def test_the_published_reannotation(reannotated):
    assert list(reannotated) == list(map(str, range(2834)))
    # L-CSTS, 3.3: 214 instances with invalid conditions, 2,620 remain
    assert Counter(reannotated.values())[INVALID] == 214
    assert sum(label != INVALID for label in reannotated.values()) == 2620


def test_its_order_shows_where_the_pairs_are(reannotated):
    def compared(start):
        labels = list(reannotated.values())[start:]
        both = [two for two in zip(labels[::2], labels[1::2], strict=False) if INVALID not in two]
        return sum(one > two for one, two in both), sum(one < two for one, two in both)

    # rows 2i and 2i+1 are C-High and C-Low; shifted by one row it is the other way round
    assert compared(0) == (791, 255)
    assert compared(1) == (201, 752)


def test_it_is_joined_with_a_validation_split_of_its_size(reannotated, tmp_path):
    rows = [Instance(str(n), f"A {n // 2}.", "B.", f"the {n % 2}", 3, n // 2) for n in range(2834)]
    both = merged(Dataset("invented", tuple(rows)), reannotated)
    assert (both.without_label, both.without_row) == ((), ())
    assert len(both.dataset.labelled().instances) == 2620
    write_csts(both.dataset.instances, tmp_path / "both.csv")
    again = read_csts(tmp_path / "both.csv", relabelled=True)
    assert again.fingerprint == both.dataset.fingerprint
