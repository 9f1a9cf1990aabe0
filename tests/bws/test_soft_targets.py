"""Soft targets: counted as a slow program counts, written, read again, refused where inconsistent."""

import csv
import gzip
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from bws.cli.scores import score
from bws.design import make_tuples
from bws.files import (
    judgments_from_records,
    read_judgments,
    read_soft_targets,
    write_judgments,
    write_soft_targets,
)
from bws.files.soft_targets import soft_targets
from bws.records import Judgment, Judgments
from bws.scoring import score as scored
from bws.simulation import simulate

HEADER = "tuple_id,group,item,annotations,best,worst,p_best,p_worst\n"


@pytest.fixture
def judgments() -> Judgments:
    design = make_tuples([f"i{n}" for n in range(12)], 4, factor=2)
    return simulate(design, np.linspace(-1, 1, 12), 5, noise=1.0)


def test_soft_targets_are_those_of_a_slow_program(judgments):
    rows = list(judgments.records())
    n = Counter(row.tuple_id for row in rows)
    best = Counter((row.tuple_id, row.best) for row in rows)
    worst = Counter((row.tuple_id, row.worst) for row in rows)
    targets = soft_targets(judgments)
    assert len(targets) == len(judgments.tuples) * 4
    for row in range(len(targets)):
        key = targets.tuple_ids[row], targets.items[row]
        assert targets.annotations[row] == n[key[0]]
        assert targets.p_best[row] == best[key] / n[key[0]]
        assert targets.p_worst[row] == worst[key] / n[key[0]]


def test_the_counting_score_follows_from_soft_targets(judgments):
    targets, scores = soft_targets(judgments), scored(judgments)
    for item, value in zip(scores.items, scores.score, strict=True):
        of_item = targets.items == item
        balance = (targets.best - targets.worst)[of_item].sum()
        assert balance / targets.annotations[of_item].sum() == pytest.approx(value)


def test_tuples_without_judgments_have_no_rows(judgments):
    some = judgments.select(judgments.tuple_of != 0)
    targets = soft_targets(some)
    assert judgments.tuples.ids[0] not in targets.tuple_ids
    assert len(targets) == (len(judgments.tuples) - 1) * 4


@pytest.mark.parametrize("name", ["soft.csv", "soft.csv.gz"])
def test_written_and_read_again(judgments, tmp_path, name):
    targets = soft_targets(judgments)
    write_soft_targets(targets, tmp_path / name)
    again = read_soft_targets(tmp_path / name)
    for column in ("tuple_ids", "groups", "items", "annotations", "best", "worst", "p_best"):
        assert getattr(again, column).tolist() == getattr(targets, column).tolist()


def test_groups_are_written(tmp_path):
    row = Judgment(("a", "b"), "a", "b", group="g,1", tuple_id="t")
    write_soft_targets(soft_targets(judgments_from_records([row])), tmp_path / "soft.csv")
    assert (tmp_path / "soft.csv").read_text() == (
        HEADER + 't,"g,1",a,1,1,0,1.0,0.0\nt,"g,1",b,1,0,1,0.0,1.0\n'
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            "t,,a,2,2,0,1,0\nt,,b,2,0,1,0,.5\n",
            ":2: tuple 't' has 2 best and 1 worst answers; expected 2",
        ),
        ("t,,a,1,1,0,1,0\nt,,b,1,0,1,0,.5\n", ":3: p_worst is '.5'; expected 1, the share of the"),
        ("t,,a,1,1,0,1,0\nt,,a,1,0,1,0,1\n", ":3: repeats the item 'a' of tuple 't' of line 2"),
        ("t,,a,1,1,0,1,0\nt,g,b,1,0,1,0,1\n", ":3: tuple 't' has another group in line 2"),
        ("t,,a,1,1,0,1,0\nt,,b,2,0,1,0,.5\n", ":3: tuple 't' has other annotations in line 2"),
        ("t,,a,0,1,0,1,0\n", ":2: annotations is '0'; expected an integer of at least 1"),
        ("t,,a,1,1.5,0,1,0\n", ":2: best is '1.5'; expected an integer of at least 0"),
        (",,a,1,1,1,1,1\n", ":2: tuple_id is empty"),
        ("t,,,1,1,1,1,1\n", ":2: item is empty"),
        ("t,,a,1,1,1,x,1\n", ":2: p_best is 'x'; expected 1"),
        ("", "soft targets"),
    ],
)
def test_contradictions_are_refused(tmp_path, rows, message):
    (tmp_path / "soft.csv").write_text(HEADER + rows)
    with pytest.raises(InputError) as error:
        read_soft_targets(tmp_path / "soft.csv")
    assert message in str(error.value)


def test_files_of_other_kinds_are_told_apart(judgments, tmp_path):
    write_soft_targets(soft_targets(judgments), tmp_path / "soft.csv")
    with pytest.raises(InputError, match="this is a soft targets file"):
        read_judgments(tmp_path / "soft.csv")
    write_judgments(judgments, tmp_path / "judgments.csv")
    with pytest.raises(InputError, match="this is a judgments file"):
        read_soft_targets(tmp_path / "judgments.csv")


def test_the_command_writes_them_beside_the_scores(judgments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_judgments(judgments, "judgments.csv")
    call = CliRunner().invoke(score, ["judgments.csv", "--soft-targets", "soft.csv.gz", "--json"])
    assert call.exit_code == 0, call.output
    with gzip.open("soft.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert {row["annotations"] for row in rows} == {"5"}
    for name, expected in (("-", "expected a file"), ("scores.csv", "are the same file")):
        arguments = ["judgments.csv", "--soft-targets", name, "-o", "scores.csv"]
        call = CliRunner().invoke(score, arguments)
        assert call.exit_code == 2
        assert expected in call.stderr
