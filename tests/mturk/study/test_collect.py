import csv
from collections import Counter

import pytest
from click.testing import CliRunner

from bws.cli import score
from bws.files import read_judgments
from mturk.answers import WITHDRAWN_ANSWER
from mturk.kinds.tuples.form import best_field, worst_field
from mturk.study.client import ServiceError
from mturk.study.collect import update_hit, worker_ids
from mturk.study.ledger import Ledger
from mturk.study.privacy import worker_namer
from mturk.study.valid_answers import read_valid_answers, write_answers

HEADER = "tuple_id,group,item1,item2,item3,best,worst,annotator,assignment_id,seconds,comment,shown"


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_bws_reads_collected_judgments(study, tmp_path):
    submitted = study.submit_all(["A1", "A2"], comment='„Käse“, "x";\n=1+1')
    result = study.collect()
    assert (result.n_hits_read, result.n_new, result.n_changed, result.deleted_hits) == (
        2,
        4,
        0,
        (),
    )
    write_answers(read_valid_answers(study.book), tmp_path / "j.csv")
    assert (tmp_path / "j.csv").read_text("utf-8").startswith(f"{HEADER}\n")
    rows = rows_of(tmp_path / "j.csv")
    assert len(rows) == 8  # 2 workers x 2 HITs x 2 tuples
    assert Counter(row["tuple_id"] for row in rows) == dict.fromkeys(("t1", "t2", "t3", "t4"), 2)
    for row in rows:
        items = [row["item1"], row["item2"], row["item3"]]
        assert (row["best"], row["worst"]) == (items[0], items[2])
        assert row["shown"] == ";".join(items[::-1])
        assert row["seconds"] == "7.5"
        assert row["comment"] == '„Käse“, "x";\n=1+1'
        assert row["assignment_id"] in submitted.values()
    read = read_judgments(tmp_path / "j.csv", "csv")
    assert (len(read), len(read.annotators), read.left_out) == (8, 2, ())
    done = CliRunner().invoke(score, [str(tmp_path / "j.csv")])
    assert done.exit_code == 0
    # d3-1 is best of t1 (2 judgments) and neither in t3 (2): (2 - 0) / 4
    assert "d3-1,d3,0.5,4,2,0" in done.stdout.splitlines()


def test_repeated_collection_reads_changed_hits_only(study):
    first, second = study.hit_ids()
    one = study.submit("A1", first)
    assert study.collect().n_new == 1
    study.running.faults.calls.clear()
    again = study.collect()
    assert (again.n_hits_read, again.n_new, again.n_changed) == (0, 0, 0)
    assert study.running.faults.calls == ["ListHITs"] * 2  # the second page is empty
    study.submit("A1", second)
    assert (study.collect().n_hits_read, study.collect().n_hits_read) == (1, 0)
    study.client.approve_assignment(AssignmentId=one)
    reviewed = study.collect()
    assert (reviewed.n_hits_read, reviewed.n_new, reviewed.n_changed) == (1, 0, 1)
    assert [a.status for a in study.book.assignments()] == ["Approved", "Submitted"]


def test_overridden_rejection_is_detected(study):
    one = study.submit("A1", study.hit_ids()[0])
    study.client.reject_assignment(AssignmentId=one, RequesterFeedback="no")
    study.collect()
    study.client.approve_assignment(AssignmentId=one, OverrideRejection=True)
    assert study.collect().n_changed == 1  # no count of the HIT has changed
    (kept,) = study.book.assignments()
    assert (kept.status, kept.rejection_time) == ("Approved", None)


def test_automatic_approval_is_detected(study):
    study.submit("A1", study.hit_ids()[0])
    study.collect()
    study.running.clock.advance(study.settings.auto_approval_delay + 1)
    assert study.collect().n_changed == 1


def test_several_pages_of_assignments_are_collected(make_study):
    study = make_study(assignments=205)
    hit_id = study.hit_ids()[0]
    fields = study.fields(hit_id)
    ids = {study.submit(f"A{n}", hit_id, fields) for n in range(205)}
    study.running.faults.calls.clear()
    assert study.collect().n_new == 205
    assert study.running.faults.calls.count("ListAssignmentsForHIT") == 4  # 100, 100, 5, 0
    assert {assignment.assignment_id for assignment in study.book.assignments()} == ids
    assert study.collect().n_hits_read == 0


def test_answers_are_stored_unchanged(study):
    one = study.submit("A1", study.hit_ids()[0], comment="<b>&amp; \r\n🙂")
    study.collect()
    (kept,) = study.book.assignments()
    assert kept.answer_xml == study.assignment(one)["Answer"]
    assert (kept.accept_time, kept.submit_time) == (study.now() - 60, study.now())
    assert kept.auto_approval_time == study.now() + study.settings.auto_approval_delay


@pytest.mark.parametrize("operation", ["ListHITs", "ListAssignmentsForHIT"])
@pytest.mark.parametrize("fault", ["error", "drop after"])
def test_collection_continues_after_service_failure(study, operation, fault):
    study.submit_all(["A1"])
    study.running.faults.choose = lambda called, number: fault if called == operation else None
    with pytest.raises(ServiceError):
        study.collect()
    study.running.faults.choose = lambda called, number: None
    study.collect()
    assert len(study.book.assignments()) == 2


def test_deleted_hits_are_kept_and_reported(study):
    first = study.hit_ids()[0]
    one = study.submit("A1", first)
    study.collect()
    study.client.approve_assignment(AssignmentId=one)
    study.client.update_expiration_for_hit(HITId=first, ExpireAt=0)
    study.client.delete_hit(HITId=first)
    result = study.collect()
    assert first not in result.hits
    assert len(study.book.assignments()) == 1


def test_invalid_answers_are_excluded_and_counted(study, tmp_path):
    first, second = study.hit_ids()
    rejected = study.submit("A1", first)
    study.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="guessing")
    fields = dict(study.fields(first))
    tuple_id = next(name for name in fields if name.startswith("best-")).removeprefix("best-")
    fields[worst_field(tuple_id)] = fields[best_field(tuple_id)]
    wrong = study.submit("A2", first, list(fields.items()))
    empty = study.submit("A3", second, [])
    study.collect()
    result = read_valid_answers(study.book)
    assert result.counts == {"rejected": 1, "invalid": 3}
    assert {(out.assignment_id, out.tuple_id, out.reason) for out in result.excluded} >= {
        (rejected, "", "rejected"),
        (wrong, tuple_id, "invalid"),
    }
    assert sum(out.assignment_id == empty for out in result.excluded) == 2
    assert len(result.judgments) == 1  # A2's other tuple counts
    assert sum(result.answers_per_tuple.values()) == 1
    assert result.notes() == [
        "excluded: 1 assignments were rejected",
        "excluded: 3 answers to a tuple are missing or invalid",
    ]


def test_unreadable_answer_is_excluded(study):
    study.submit("A1", study.hit_ids()[0])
    study.collect()
    with study.book.transaction() as connection:  # the service itself sends no such answer
        connection.execute("UPDATE assignment SET answer_xml = '<a'")
    result = read_valid_answers(study.book)
    assert (result.judgments, result.counts) == (None, {"unreadable": 1})


def test_missing_order_drops_order_of_all_rows(study, tmp_path):
    first, second = study.hit_ids()
    study.submit("A1", first)
    study.submit(
        "A1", second, [(n, v) for n, v in study.fields(second) if not n.startswith("shown-")]
    )
    study.collect()
    result = read_valid_answers(study.book)
    assert result.n_without_order == 2
    write_answers(result, tmp_path / "j.csv")
    assert "shown" not in rows_of(tmp_path / "j.csv")[0]
    assert len(read_judgments(tmp_path / "j.csv")) == 4


def test_without_answers_file_has_header_only(study, tmp_path):
    study.collect()
    write_answers(read_valid_answers(study.book), tmp_path / "j.csv")
    assert (tmp_path / "j.csv").read_text() == f"{HEADER}\n"


def test_worker_ids_are_written_on_request_only(study):
    submitted = study.submit_all(["A1", "A2"])
    study.collect()
    assert worker_ids(study.client, study.book) == {
        assignment_id: worker for (worker, _), assignment_id in submitted.items()
    }
    assert b"A1" not in b"".join(
        assignment.worker.encode() + assignment.answer_xml.encode()
        for assignment in study.book.assignments()
    )


def test_unknown_hit_is_lookup_error(study):
    with pytest.raises(LookupError):
        update_hit(study.client, study.book, "3" + "A" * 29, worker_namer(study.book))


def test_concurrent_collectors_store_once(study):
    study.submit_all(["A1"])
    with Ledger.open(study.path) as other:
        assert study.collect().n_new == 2
        name = worker_namer(other)
        counts = [update_hit(study.client, other, hit_id, name) for hit_id in study.hit_ids()]
    assert counts == [(0, 0), (0, 0)]


def test_withdrawn_answers_leave_the_ledger(study, tmp_path):
    from sqlalchemy import insert, update

    from mturk.service.rules.participation import Participants
    from mturk.service.store.schema import assignment, participation

    first, second = study.hit_ids()
    kept = study.submit("A2", first)
    gone = [study.submit("A1", hit_id, comment="my secret remark") for hit_id in (first, second)]
    study.collect()
    study.client.approve_assignment(AssignmentId=gone[0])
    study.collect()
    with study.running.database.write() as connection:
        values = {"study": "pilot", "worker_id": "A1", "panel_study": "", "panel_session": "",
                  "browser": "b", "joined": 1.0}  # fmt: skip
        number = connection.execute(
            insert(participation).values(**values).returning(participation.c.number)
        ).scalar_one()
        connection.execute(
            update(assignment).where(assignment.c.worker_id == "A1").values(participation=number)
        )
    assert Participants(study.running.database, study.running.clock).withdraw("A1", "pilot") == 2
    assert study.assignment(gone[1])["Answer"] == WITHDRAWN_ANSWER
    result = study.collect()
    assert (result.n_hits_read, result.n_new, result.n_changed) == (2, 0, 0)
    answers = read_valid_answers(study.book)
    assert answers.counts == {"withdrawn": 2}
    assert {row.assignment.assignment_id for row in answers.answers} == {kept}
    assert any("withdrawn by their participants" in note for note in answers.notes())
    with open(study.path, "rb") as file:
        assert b"my secret remark" not in file.read()
    assert study.collect().n_hits_read == 0
    study.client.approve_assignment(AssignmentId=gone[1])
    assert study.assignment(gone[1])["AssignmentStatus"] == "Approved"


def test_a_person_is_exported_from_and_erased_in_ledgers(study, tmp_path):
    import json

    from mturk.cli import main

    first, second = study.hit_ids()
    study.submit("A2", first, comment="of another person")
    ids = [study.submit("A1", hit_id, comment="my secret remark") for hit_id in (first, second)]
    study.collect()
    for assignment_id in ids:
        study.client.approve_assignment(AssignmentId=assignment_id)
    study.book.close()
    path = tmp_path / "person.json"
    where = ["A1", "--db", study.running.database.url.database, "--ledger", study.path]
    result = CliRunner().invoke(main, ["person", "export", *where, "-o", str(path)])
    assert result.exit_code == 0, result.output
    rows = json.loads(path.read_text("utf-8"))["ledgers"][study.path]
    assert sorted(row["assignment_id"] for row in rows) == sorted(ids)
    assert "of another person" not in path.read_text("utf-8")
    result = CliRunner().invoke(main, ["person", "erase", *where, "--yes"])
    assert result.exit_code == 0, result.output
    with open(study.path, "rb") as file:
        content = file.read()
    assert b"my secret remark" not in content
    assert b"of another person" in content
    listed = CliRunner().invoke(main, ["audit", *where[1:], "--json"])
    rows = json.loads(listed.stdout)["entries"]
    acts = [(row["action"], row["subject"], row["details"]) for row in rows]
    assert sorted(act for act in acts if act[0] != "ApproveAssignment") == [
        ("person erase", "", {"keep_answers": False}),
        ("person export", "", {}),
        ("purge", study.path, {"assignments": 2}),
    ]
    assert "A1" not in listed.stdout
    again = CliRunner().invoke(main, ["person", "erase", *where, "--yes"])
    assert again.exit_code == 2
    assert "nothing is stored about A1" in again.output
