"""Progress from a file and from the ledger of a study at a real service that listens here."""

import hashlib
import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bws.adaptive import stopping
from bws.base.problems import InputError
from bws.files import judgments_from_records
from bws.records import Judgment
from giccs_app.explorer.annotation.data import (
    from_judgments,
    from_ledger,
    ledger_version,
)
from giccs_app.explorer.study import under_pseudonyms

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")


def said(*annotators):
    rows = [Judgment(("a", "b", "c"), "a", "c", tuple_id="t", annotator=a) for a in annotators]
    return judgments_from_records(rows)


def state_of(path):
    """Every file of a ledger, by content; readers lock each other out in the one that is left out."""
    files = sorted(Path(path).parent.glob(f"{Path(path).name}*"))
    kept = [file for file in files if file.suffix != ".db-shm"]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in kept}


def test_names_that_are_no_pseudonyms_are_numbered_as_they_appear():
    judgments = said("ZOE", "w-00000000000000ab", "simulated-3", "A2XB81TEST", "model:m@1")
    shown, replaced = under_pseudonyms(judgments)
    assert replaced == 2
    assert [record.annotator for record in shown.records()] == [
        "#1", "w-00000000000000ab", "simulated-3", "#4", "model:m@1",
    ]  # fmt: skip
    assert next(record.annotator for record in judgments.records()) == "ZOE"


def test_a_file_tells_what_most_tuples_have():
    rows = [
        Judgment(("a", "b", "c"), "a", "c", tuple_id=name, annotator=str(n))
        for name, many in (("t1", 3), ("t2", 3), ("t3", 1))
        for n in range(many)
    ]
    result = from_judgments(judgments_from_records(rows))
    assert result.n_by_tuple == {"t1": 3, "t2": 3, "t3": 1}
    assert (result.requested, result.judgments_per_tuple, result.submitted) == (None, 3, None)
    assert not result.simulated
    assert from_judgments(said("simulated-1")).simulated


def test_a_running_study_is_read_and_not_touched(study):
    first, second = study.hit_ids()
    study.submit("AALICE1", first, after=100.0)
    study.submit("ABERND1", first, after=50.0)
    study.submit("AALICE1", second, after=10.0)
    study.collect()
    before, version = state_of(study.path), ledger_version(study.path)
    result = from_ledger(study.path)
    assert state_of(study.path) == before
    assert sorted(result.n_by_tuple) == ["t1", "t2", "t3", "t4"]
    assert sorted(result.n_by_tuple.values()) == [1, 1, 2, 2]
    assert result.requested == result.judgments_per_tuple == study.settings.assignments
    assert dict(result.hits) == {"created": 2}
    assert dict(result.assignments) == {"Submitted": 3}
    start = result.submitted.min()
    assert sorted(result.submitted - start) == [0, 0, 50, 50, 60, 60]
    # 3 answers in 60 seconds, and what is left of 2 HITs
    left = 2 * study.settings.assignments - 3
    assert result.pace.per_hour == pytest.approx(180)
    assert result.pace.end == pytest.approx(start + 60 + left * 20)
    assert set(result.judgments.annotators) == {
        assignment.worker for assignment in study.book.assignments()
    }
    assert not any("ALICE" in name for name in result.judgments.annotators)
    assert not result.simulated
    study.submit("ACARLA1", second)
    study.collect()
    assert ledger_version(study.path) != version
    assert len(from_ledger(study.path).judgments) == 8


def test_one_state_is_seen_while_another_process_writes(study):
    study.submit("AALICE1", study.hit_ids()[0])
    study.collect()
    with study.book.transaction() as connection:
        connection.execute("DELETE FROM assignment")
        assert len(from_ledger(study.path).judgments) == 2
    assert from_ledger(study.path).judgments is None


def test_a_closed_ledger_stays_as_it_is(study):
    study.submit("AALICE1", study.hit_ids()[0])
    study.collect()
    study.book.close()
    content = Path(study.path).read_bytes()
    assert len(from_ledger(study.path).judgments) == 2
    assert Path(study.path).read_bytes() == content
    assert not [name for name in os.listdir(study.folder) if name.endswith("-journal")]


def test_rejected_and_repeated_answers_are_counted_as_left_out(study):
    first = study.hit_ids()[0]
    rejected = study.submit("AALICE1", first)
    study.submit("ABERND1", first, best=0, worst=0)
    study.submit("ACARLA1", first)
    study.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="no")
    study.collect()
    result = from_ledger(study.path)
    assert dict(result.assignments) == {"Submitted": 2, "Rejected": 1}
    assert result.left_out["rejected"] == 1
    assert result.left_out["invalid"] == 2
    assert len(result.judgments) == 2


def test_a_rehearsal_is_known_by_its_key(study):
    from mturk.study.simulated_workers import simulated_worker_ids

    study.submit(simulated_worker_ids(3)[2], study.hit_ids()[0])
    study.collect()
    assert from_ledger(study.path).simulated


def test_real_ids_that_a_study_keeps_are_not_shown(make_study):
    study = make_study(pseudonyms=False)
    study.submit("AALICE1", study.hit_ids()[0])
    study.collect()
    assert study.book.assignments()[0].worker == "AALICE1"
    result = from_ledger(study.path)
    assert result.judgments.annotators.tolist() == ["#1"]
    assert result.replaced == 1


def test_a_study_without_answers(study):
    result = from_ledger(study.path)
    assert result.judgments is None
    assert result.submitted is None
    assert result.n_by_tuple == dict.fromkeys(("t1", "t2", "t3", "t4"), 0)
    assert result.collected is None
    assert np.isnan(result.pace.per_hour)


@pytest.mark.parametrize("content", [None, b"", b"no database", "other"])
def test_what_is_no_ledger_is_a_sentence(tmp_path, content):
    path = tmp_path / "x.db"
    if content == "other":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (a)")
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="ledger"):
        from_ledger(str(path))


def test_a_study_in_rounds_has_the_tuples_that_nobody_judged(study):
    study.submit("AALICE1", study.hit_ids()[0])
    study.collect()
    assert from_ledger(study.path).tuples is None
    purposes = ("warmup", "adaptive", "audit", "adaptive")
    names = [part.tuple_id for part in study.book.parts()]
    rounds = {name: ("2", purpose, "0") for name, purpose in zip(names, purposes, strict=True)}
    study.book.set_note("rounds", json.dumps(rounds))
    result = from_ledger(study.path)
    assert len(result.tuples) == 4
    assert len(result.judgments.tuples) == 2
    longer = replace(result.tuples, items=np.append(result.tuples.items, "new"))
    longer = replace(longer, group_of_item=np.append(longer.group_of_item, 0).astype(np.int32))
    texts = [str(stopping(result.judgments, each).result_table()) for each in (None, longer)]
    assert ["at least 0 judgments" in text for text in texts] == [False, True]
