"""Sheets on which people rate answers, and their summary: by hand and by statistics of the library."""

import csv
import json
import statistics

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.csts.answer_quality import quality, rater_agreement, read_ratings, write_sheets
from giccs.csts.cli import main
from giccs.csts.data import read_csts

DATA = read_csts("csts-sample", "validation")


@pytest.fixture
def answers(tmp_path):
    def write(name, rows=DATA.instances):
        path = tmp_path / name
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["uid", "label", "answer1", "answer2"])
            writer.writerows(
                [row.uid, 1, f"{name} {row.uid} 1", f"{name} {row.uid} 2"] for row in rows
            )
        return path

    return write


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def rate(path, rating):
    """Fill in a sheet: `rating` is a function of a row."""
    rows = rows_of(path)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "rating": rating(row)} for row in rows)


def good_or_bad(row):
    number = int(row["id"][1:])
    return 5 if row["answer"].startswith("good") else 2 + number % 3


def test_sheets_contain_the_sentences_and_answers_and_hide_the_models(tmp_path, answers):
    files = write_sheets(tmp_path / "r", DATA, [answers("good.csv"), answers("bad.csv")], 10)
    assert [path.name for path in files] == ["key.csv", "rater-1.csv", "rater-2.csv"]
    key = {row["id"]: row for row in rows_of(files[0])}
    sheets = [rows_of(path) for path in files[1:]]
    assert len(key) == 10 * 2 * 2
    assert [sorted(row["id"] for row in sheet) for sheet in sheets] == [sorted(key)] * 2
    assert [row["id"] for row in sheets[0]] != [row["id"] for row in sheets[1]]
    by_uid = {row.uid: row for row in DATA.instances}
    for row in sheets[0]:
        known = key[row["id"]]
        instance = by_uid[known["uid"]]
        assert (
            row["sentence"] == (instance.sentence1, instance.sentence2)[int(known["sentence"]) - 1]
        )
        assert row["answer"] == f"{known['answers']} {known['uid']} {known['sentence']}"
        assert int(known["pair"]) == instance.pair
        assert (row["rating"], set(row)) == ("", {"id", "sentence", "question", "answer", "rating"})


def test_numbers_are_those_of_the_ratings(tmp_path, answers):
    _, *sheets = write_sheets(tmp_path / "r", DATA, [answers("bad.csv"), answers("good.csv")], 30)
    for sheet in sheets:
        rate(sheet, good_or_bad)
    bad, good = quality(read_ratings(tmp_path / "r"))
    ratings = [good_or_bad(row) for row in rows_of(sheets[0]) if row["answer"].startswith("bad")]
    assert bad.mean.value == pytest.approx(statistics.mean(ratings))
    assert bad.mean.low < bad.mean.value < bad.mean.high
    assert (bad.accuracy.value, bad.difference) == (0, None)
    assert (good.mean.value, good.accuracy.value) == (5, 1)
    assert good.difference.value == pytest.approx(5 - statistics.mean(ratings))
    assert good.difference.low < good.difference.value < good.difference.high
    assert (good.mean.n, good.difference.n) == (60, 60)
    kappa, equal = rater_agreement(read_ratings(tmp_path / "r"))
    assert (kappa.value, equal.value, equal.n) == (1, 1, 120)


def test_the_interval_is_over_sentence_pairs(tmp_path, answers):
    """With one pair per cluster mean, the jackknife is the standard error of a ratio of sums."""
    write_sheets(tmp_path / "r", DATA, [answers("a.csv")], 40, raters=1)
    rate(tmp_path / "r" / "rater-1.csv", lambda row: 1 + int(row["id"][1:]) % 5)
    ratings = read_ratings(tmp_path / "r")
    (only,) = quality(ratings)
    pairs = np.array([answer.pair for answer in ratings.answers])
    values = ratings.values[:, 0].astype(float)
    left_out = [values[pairs != pair].mean() for pair in np.unique(pairs)]
    n = len(left_out)
    stderr = np.sqrt((n - 1) * np.var(left_out))
    assert (only.mean.high - only.mean.low) / 2 == pytest.approx(2.02 * stderr, rel=0.1)


def test_answers_that_are_not_rated_are_counted_and_not_used(tmp_path, answers):
    *_, first, second = write_sheets(tmp_path / "r", DATA, [answers("a.csv")], 10)
    ids = [row["id"] for row in rows_of(first)]
    rate(first, lambda row: 4 if row["id"] in ids[:8] else "")
    (only,) = quality(read_ratings(tmp_path / "r"))
    assert (only.mean.value, only.mean.n) == (4, 8)
    kappa, equal = rater_agreement(read_ratings(tmp_path / "r"))
    assert np.isnan(kappa.value)
    assert kappa.reason == equal.reason == "no answer is rated by two raters"
    assert rate(second, lambda row: 4) is None
    done = CliRunner().invoke(main, ["quality", str(tmp_path / "r"), "--json"])
    assert json.loads(done.output)["raters"] == {"rater-1": 8, "rater-2": 20}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].update(rating="6"), "rater-1.csv:2: rating is '6'; it must be 1, 2, 3"),
        (lambda rows: rows[0].update(id="x"), "id 'x' is not in key.csv"),
        (lambda rows: rows.pop(), "1 ids of the key are missing"),
        (lambda rows: rows[0].update(id=rows[1]["id"]), "rater-1.csv"),
        (lambda rows: None, "the sheets contain no ratings yet"),
    ],
)  # fmt: skip
def test_wrong_sheets_are_refused(tmp_path, answers, change, message):
    _, sheet, *_ = write_sheets(tmp_path / "r", DATA, [answers("a.csv")], 3)
    rows = rows_of(sheet)
    change(rows)
    with open(sheet, "w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "sentence", "question", "answer", "rating"])
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(InputError, match=message):
        read_ratings(tmp_path / "r")


def test_a_folder_with_ratings_is_not_overwritten(tmp_path, answers):
    path = answers("a.csv")
    write_sheets(tmp_path / "r", DATA, [path], 3)
    with pytest.raises(InputError, match="its sheets may contain ratings"):
        write_sheets(tmp_path / "r", DATA, [path], 3)
    with pytest.raises(InputError, match="two files of answers have this name"):
        write_sheets(tmp_path / "q", DATA, [path, path], 3)
    empty = tmp_path / "b.csv"
    empty.write_text("uid,answer1,answer2\nnone,x,y\n")
    with pytest.raises(InputError, match="no instance has a condition and answers in all files"):
        write_sheets(tmp_path / "q", DATA, [path, empty], 3)
    assert not (tmp_path / "q").exists()


def test_commands(tmp_path, answers):
    folder = str(tmp_path / "r")
    words = ["rating-sheets", "csts-sample", str(answers("a.csv")), str(answers("b.csv"))]
    done = CliRunner().invoke(
        main, [*words, "--split", "validation", "--instances", "20", "-o", folder]
    )
    assert done.exit_code == 0, done.output
    for sheet in (tmp_path / "r").glob("rater-*.csv"):
        rate(sheet, lambda row: 1 + int(row["id"][1:]) % 5)
    done = CliRunner().invoke(main, ["quality", folder])
    assert done.exit_code == 0, done.output
    assert "80 answers; rated: rater-1 80, rater-2 80" in done.output
    assert "Fleiss' kappa" in done.output
