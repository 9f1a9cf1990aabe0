"""Labelled rows and answers about them: what is read, what is left out and said, what is refused."""

import pytest

from bws.base.problems import InputError
from giccs.csts.data import check_csts
from giccs.csts.task_data import Reading, read_row_answers, read_task_data

from .test_data import GOOD, write

ANSWERS = "uid,answer1,answer2,condition"


@pytest.fixture
def good(tmp_path):
    return write(tmp_path / "kites.csv", *GOOD)


def answers(tmp_path, *lines, header=ANSWERS):
    return write(tmp_path / "answers.csv", *lines, header=header)


FOUR = [f"{uid},one {uid},two {uid}," for uid in range(4)]


def test_a_folder_has_splits_and_a_file_has_none(good):
    sample = read_task_data("csts-sample")
    assert (sample.name, sample.described()) == (
        "csts-sample (validation)", "60 sentence pairs, 120 rows",
    )  # fmt: skip
    assert read_task_data("csts-sample", "train").described() == "190 sentence pairs, 380 rows"
    assert read_task_data(good, "train") == read_task_data(good)
    assert read_task_data(good).name == str(good)


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    lines = [line[: line.rindex(",")] for line in GOOD]
    path = write(
        tmp_path / "a.csv", f"{lines[0]},4", f"{lines[1]},-1", f"{lines[2]},", f"{lines[3]},2"
    )
    asked = read_task_data(path)
    assert [instance.uid for instance in asked.instances] == ["0", "3"]
    assert sorted(warning.message for warning in asked.warnings) == [
        "1 of 4 rows have no label", "1 rows are skipped: their label is -1, hidden or invalid",
    ]  # fmt: skip


def test_rows_of_which_all_labels_are_hidden_are_kept_with_their_indices(tmp_path):
    lines = [line[: line.rindex(",")] for line in GOOD]
    for number, label in enumerate(("-1", "", "hidden")):
        asked = read_task_data(
            write(tmp_path / f"{number}.csv", *[f"{line},{label}" for line in lines])
        )
        assert asked.hidden
        assert {instance.label for instance in asked.instances} == {None}
        assert asked.indices == {str(index): index for index in range(4)}
        assert "no row has a label from 1 to 5" in " ".join(map(str, asked.warnings))
        assert asked.described() == "2 sentence pairs, 4 rows, labels hidden"
        assert asked.first(1).indices == asked.indices
    assert not read_task_data("csts-sample").hidden


def test_without_a_column_of_labels_they_are_hidden(tmp_path):
    lines = [line[: line.rindex(",")] for line in GOOD]
    path = write(tmp_path / "a.csv", *lines, header="sentence1,sentence2,condition")
    asked = read_task_data(path)
    assert asked.hidden
    assert any("no column label" in str(warning) for warning in asked.warnings)
    _, problems = check_csts(path)
    assert [str(problem).partition("a.csv:")[2] for problem in problems] == [
        "1: no column label; all labels are treated as hidden"
    ]
    path = write(tmp_path / "b.csv", *GOOD, header="sentence1,sentence2,condition,score")
    with pytest.raises(InputError, match="label"):  # it may be there by another name
        read_task_data(path)


def test_the_first_sentence_pairs_keep_their_answers_and_have_a_fingerprint_of_their_own(
    good, tmp_path
):
    asked = read_task_data(good, answers=answers(tmp_path, *FOUR))
    first = asked.first(1)
    assert [instance.uid for instance in first.instances] == ["0", "1"]
    assert len({asked.fingerprint, first.fingerprint, read_task_data(good).fingerprint}) == 3
    assert first.first(5) == first
    assert asked.answers["3"] == ("one 3", "two 3")


def test_a_fingerprint_is_of_the_answers_that_are_used(good, tmp_path):
    one = read_task_data(good, answers=answers(tmp_path, *FOUR))
    again = read_task_data(good, answers=answers(tmp_path, *reversed(FOUR), "99,of no,row,"))
    other = read_task_data(good, answers=answers(tmp_path, "0,another,two 0,", *FOUR[1:]))
    assert one.fingerprint == again.fingerprint != other.fingerprint
    assert [str(warning) for warning in again.warnings] == [
        f"{tmp_path / 'answers.csv'}: 1 answers match no row of the data"
    ]


def test_uids_may_have_their_split_before_them(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for split in ("train", "validation"):
        write(folder / f"csts_{split}.csv", *GOOD)
    lines = [f"{split}:{line}" for split in ("train", "validation") for line in FOUR]
    asked = read_task_data(folder, "validation", answers(tmp_path, *lines))
    assert (asked.answers["2"], asked.warnings) == (("one 2", "two 2"), ())


def test_rows_without_answers_are_named(good, tmp_path):
    with pytest.raises(InputError) as error:
        read_task_data(good, answers=answers(tmp_path, FOUR[1]))
    assert str(error.value).endswith(f"no answers for 3 of 4 rows of {good}; their uids: 0, 2, 3")
    with pytest.raises(
        InputError,
        match=r"120 rows of csts-sample \(validation\); their uids: 0, 1, 2, 3, 4, \.\.\.$",
    ):
        read_task_data("csts-sample", answers=answers(tmp_path, "x,a,b,"))


def test_answers_about_another_condition_are_refused(good, tmp_path):
    path = answers(
        tmp_path, "0,red,blue,The  color of the object.", "1,kite,bus,The size.", *FOUR[2:]
    )
    with pytest.raises(
        InputError, match=r"another condition for 1 of 4 rows of .*; their uids: 1$"
    ):
        read_task_data(good, answers=path)


def test_every_fault_of_an_answers_file_is_told(tmp_path):
    path = answers(tmp_path, "0,a,b,", "0,a,b,", ",a,b,", "2, ,b,", "3,a,,")
    with pytest.raises(InputError) as error:
        read_row_answers(path)
    assert [str(problem).removeprefix(str(path)) for problem in error.value.problems] == [
        ":3: repeated uid '0'",
        ":4: uid is empty; expected an answer for every row",
        ":5: answer1 is empty; expected an answer for every row",
        ":6: answer2 is empty; expected an answer for every row",
    ]
    with pytest.raises(InputError, match="no column answer2; existing columns are uid, answer1"):
        read_row_answers(answers(tmp_path, "0,a", header="uid,answer1"))


def test_examples_are_of_the_training_split_or_of_a_file(good, tmp_path):
    read = Reading(with_examples=True)
    assert len(read("csts-sample").examples.instances) == 380
    assert read("csts-sample").first(1).examples == read("csts-sample").examples
    named = Reading(with_examples=True, examples=str(good))
    assert len(named("csts-sample").examples.instances) == 4
    assert Reading()("csts-sample").examples is None
    with pytest.raises(InputError, match="no training split for examples"):
        read(str(good))


def test_data_is_read_alike_where_the_readings_are_equal():
    assert Reading("test", None) == Reading("test", None)
    assert len({Reading(), Reading("test"), Reading(answers="a.csv"), Reading()}) == 3
