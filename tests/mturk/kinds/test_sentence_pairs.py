"""Files of sentence pairs and triplets, and the truth of simulated workers."""

import pytest

from bws.base.problems import InputError
from mturk.kinds.sentence_pairs import pair_id, read_pairs, read_triplets, sentence_truth
from mturk.study.simulated_workers import read_truth


@pytest.fixture
def written(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def said(read, path):
    with pytest.raises(InputError) as caught:
        read(path)
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_pair_ids_do_not_depend_on_order(written):
    one = read_pairs(written("sentence1,sentence2\nA,B\nC,D\n"))
    other = read_pairs(written("source,sentence2,sentence1\nx,D,C\ny,B,A\n"))
    assert one == other[::-1]
    assert one[0].tuple_id == one[0].group == pair_id("A", "B") != pair_id("B", "A")


def test_texts_are_unchanged(written):
    [part] = read_pairs(written('sentence1,sentence2\n"  A ""b"", ü ",B\u202e🙂\n'))
    assert part.item_ids == ('  A "b", ü ', "B\u202e🙂")


def test_all_problems_of_pairs_are_reported(written):
    result = said(read_pairs, written("sentence1,sentence2\nA,B\n ,B\nA, A\nA,B\nA\n"))
    assert [line for line, _ in result] == [3, 4, 5, 6]
    assert [message.partition(";")[0] for _, message in result[:3]] == [
        "sentence1 is empty",
        "the two sentences are equal",
        "the sentence pair repeats line 2",
    ]


def test_missing_columns_are_reported(written):
    [(_, message)] = said(read_triplets, written("sentence1,condition\nA,B\n"))
    assert message == "no column sentence2; existing columns are sentence1, condition"
    [(_, message)] = said(read_pairs, written("sentence1,sentence2\n"))
    assert message == "has no rows; expected sentence pairs"


def test_triplet_uids_default_to_row_numbers(written):
    with_uids = read_triplets(written("uid,sentence1,sentence2,condition\nu7,A,B,c\nu8,A,B,d\n"))
    assert [with_uid.tuple_id for with_uid in with_uids] == ["u7", "u8"]
    assert {with_uid.group for with_uid in with_uids} == {pair_id("A", "B")}
    without = read_triplets(written("sentence1,sentence2,condition,label\nA,B,c,\nA,B,d,\n"))
    assert [one.tuple_id for one in without] == ["0", "1"]
    assert without[1].item_ids == ("A", "B", "d")


def test_all_problems_of_triplets_are_reported(written):
    text = "uid,sentence1,sentence2,condition\nu,A,B,\nu,A,B,c\n,A,B,c\n" + f"{'x' * 101},A,B,c\n"
    assert [message.partition(";")[0] for _, message in said(read_triplets, written(text))] == [
        "condition is empty",
        "the uid repeats line 2",
        "the uid is ''",
        f"the uid is '{'x' * 101}'",
    ]


def test_truth_from_labels_or_intended_similarity(written):
    labels = written("sentence1,sentence2,condition,label\nA,B,c,4\nA,B,d,\n")
    assert read_truth(labels) == {(pair_id("A", "B"), "c"): 4.0}
    intended = written("sentence1,sentence2,condition,intended\nA,B,c,high\nA,B,d,low\n")
    assert set(sentence_truth(intended).values()) == {5.0, 1.0}
    wrong = written("sentence1,sentence2,condition,label\nA,B,c,6\nA,B,d,nan\n")
    assert [line for line, _ in said(sentence_truth, wrong)] == [2, 3]
    [(_, message)] = said(sentence_truth, written("sentence1,sentence2,condition\nA,B,c\n"))
    assert message.startswith("has neither a column label nor a column intended")
    assert sentence_truth(written("item,score\na,1\n")) is None


def test_truth_of_a_condition_that_does_not_apply(written):
    labels = written("sentence1,sentence2,condition,label\nA,B,c,4\nA,B,d,-1\n")
    assert set(read_truth(labels).values()) == {4.0, -1.0}
    hidden = written("sentence1,sentence2,condition,label\nA,B,c,-1\nA,B,d,-1\n")
    [(line, message)] = said(sentence_truth, hidden)
    assert line is None
    assert message == (
        "label is -1 in all rows, which is a hidden label; expected labels from 1 to 5"
    )
