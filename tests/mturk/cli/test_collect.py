import csv
import os
from pathlib import Path

import pytest

from bws.files import read_judgments
from mturk.pseudonyms import pseudonym
from mturk.study.actions import make_action
from mturk.study.ledger import Ledger
from mturk.study.privacy import key_path


@pytest.fixture
def answered(study):
    study.ids = list(study.submit_all(["A1", "A2"], comment="Name: Erika Mustermann").values())
    return study


def test_collect_writes_judgments_and_says_what_it_did(answered, tmp_path):
    output = tmp_path / "j.csv"
    said = answered.run("collect", "-o", str(output))
    assert said == f"{output}: 8 judgments by 2 annotators from 4 assignments, 4 of them new\n"
    document = answered.json("collect", "-o", str(output))
    assert (document["new"], document["judgments"], document["left_out"]) == (0, 8, {})
    assert {a.startswith("w-") for a in read_judgments(output).annotators} == {True}


def test_worker_ids_are_real_only_on_request_and_never_in_the_ledger(answered, tmp_path):
    output = tmp_path / "j.csv"
    answered.submit_all(["AERIKAMUSTERMANN"])
    answered.run("collect", "-o", str(output), "--worker-ids", "real")
    assert sorted(read_judgments(output).annotators) == ["A1", "A2", "AERIKAMUSTERMANN"]
    assert b"AERIKAMUSTERMANN" not in bytes_of(answered)
    answered.run("collect", "-o", str(output), "--worker-ids", "pseudonyms")
    assert all(name.startswith("w-") for name in read_judgments(output).annotators)


def test_a_study_that_keeps_ids_can_still_give_pseudonyms(make_study, tmp_path):
    study = make_study(pseudonyms=False)
    study.submit_all(["A1"])
    output = tmp_path / "j.csv"
    study.run("collect", "-o", str(output))
    assert read_judgments(output).annotators.tolist() == ["A1"]
    study.run("collect", "-o", str(output), "--worker-ids", "pseudonyms")
    (name,) = read_judgments(output).annotators
    assert name.startswith("w-")


def test_judgments_can_be_written_without_the_service(answered, tmp_path):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    answered.run("collect", "-o", str(first))
    answered.running.faults.calls.clear()
    answered.run("collect", "-o", str(second), "--offline")
    assert answered.running.faults.calls == []
    assert first.read_bytes() == second.read_bytes()
    answered.run("collect", "-o", str(second), "--offline", "--worker-ids", "real", code=2)
    assert "requires the service" in answered.stderr


def test_judgments_go_to_standard_output_alone(answered):
    out = answered.run("collect", "-o", "-")
    assert out.startswith("tuple_id,group,item1")
    assert len(out.splitlines()) == 9
    answered.run("collect", "-o", "-", "--json", code=2)


def test_status_shows_how_far_it_is(answered):
    out = answered.run("status")
    assert "10 required: 6 open" in out
    assert "40.0 % of 5 judgments for each of 4 tuples" in out
    document = answered.json("status", "--trials", "5")
    assert document["assignments"]["submitted"] == 4
    assert document["reliability"]["trials"] == 5


def test_watching_ends_when_every_tuple_has_its_judgments(answered, monkeypatch):
    naps = []

    def work(seconds):
        naps.append(seconds)
        answered.submit_all([f"B{len(naps)}"])

    monkeypatch.setattr("time.sleep", work)
    out = answered.run("status", "--watch", "30")
    assert naps == [30.0] * 3  # two workers had answered, five are wanted
    assert [f"{share}.0 % of 5" in out for share in (40, 60, 80, 100)] == [True] * 4
    answered.run("status", "--watch", "30", "--json", code=2)


def test_review_lists_what_waits_and_decides_nothing(answered, tmp_path):
    out = answered.run("review")
    assert "4 assignments are pending" in out
    assert all(its_id in out for its_id in answered.ids)
    document = answered.json("review")
    assert len(document["waiting"]) == 4
    assert len(document["annotators"]["annotators"]) == 2
    output = tmp_path / "d.csv"
    answered.run("review", "-o", str(output))
    assert {answered.assignment(its_id)["AssignmentStatus"] for its_id in answered.ids} == {
        "Submitted"
    }
    assert answered.json("review", str(output))["without_mark"] == 4
    assert {answered.assignment(its_id)["AssignmentStatus"] for its_id in answered.ids} == {
        "Submitted"
    }


def test_a_marked_sheet_is_carried_out_once(answered, tmp_path):
    output = tmp_path / "d.csv"
    answered.run("review", "-o", str(output))
    with open(output, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:2]:
        row["Approve"] = "x"
    rows[2] |= {"Reject": "x", "RequesterFeedback": "geraten"}
    with open(output, "w", encoding="utf-8", newline="") as file:
        sheet = csv.DictWriter(file, rows[0])
        sheet.writeheader()
        sheet.writerows(rows)
    document = answered.json("review", str(output))
    assert {key: document[key] for key in ("approved", "rejected", "without_mark", "refused")} == {
        "approved": 2, "rejected": 1, "without_mark": 1, "refused": 0
    }  # fmt: skip
    again = answered.json("review", str(output))
    assert (again["approved"], again["rejected"], again["decided_before"]) == (0, 0, 3)
    answered.run("review", "-o", str(output))  # all marks are carried out
    statuses = [assignment.status for assignment in answered.book.assignments()]
    assert sorted(statuses) == ["Approved", "Approved", "Rejected", "Submitted"]


def test_decisions_by_options(answered):
    first, second = answered.ids[:2]
    answered.run("review", "--reject", first, code=2)
    assert "--reject requires --feedback" in answered.stderr
    answered.run("review", "--approve", first, "--reject", first, "--feedback", "x", code=2)
    answered.run("review", "--reject", first, "--feedback", "nein")
    assert answered.assignment(first)["RequesterFeedback"] == "nein"
    answered.run("review", "--approve", first, code=2)
    answered.run("review", "--approve", first, "--override-rejections")
    assert answered.json("review", "--approve-submitted")["approved"] == 3
    assert {answered.assignment(its_id)["AssignmentStatus"] for its_id in answered.ids} == {
        "Approved"
    }
    assert "RequesterFeedback" not in answered.assignment(second)
    assert answered.run("review", "--approve-submitted") == "assignments: nothing to do\n"
    answered.run("review", "--feedback", "x", code=2)


def test_a_comment_cannot_steer_the_terminal(study):
    study.submit("A1", study.hit_ids()[0], comment="a\n\x9b31mb\u202ec")
    assert r"a \u009b31mb\u202ec" in study.run("review")
    (row,) = study.json("review")["waiting"]
    assert row["comment"] == "a\n\x9b31mb\u202ec"


def test_unfinished_decisions_are_carried_out_unless_something_else_is_decided(answered):
    answered.collect()
    first, second, third = answered.ids[:3]
    answered.book.plan_actions([make_action("approve", one) for one in (first, second)], 0.0)
    answered.run("review")
    assert "2 decisions are unfinished" in answered.stderr
    document = answered.json("review", "--reject", first, "--feedback", "no")
    assert (document["approved"], document["rejected"], document["refused"]) == (1, 1, 0)
    statuses = [answered.assignment(one)["AssignmentStatus"] for one in (first, second, third)]
    assert statuses == ["Rejected", "Approved", "Submitted"]
    answered.run("review")
    assert "unfinished" not in answered.stderr


def test_what_was_refused_is_said_and_ends_with_an_error(answered):
    first = answered.ids[0]
    answered.run("collect", "-o", str(answered.folder / "j.csv"))
    racing = iter([None])

    def choose(operation, number):
        if operation == "RejectAssignment" and next(racing, 0) is None:
            with answered.running.database.write() as connection:
                from sqlalchemy import text

                connection.execute(
                    text("UPDATE assignment SET status = 'Approved' WHERE assignment_id = :a"),
                    {"a": first},
                )

    answered.running.faults.choose = choose
    answered.run("review", "--reject", first, "--feedback", "no", code=1)
    assert f"{first}: reject was refused" in answered.stderr


def test_while_another_command_decides_nothing_is_decided(answered):
    path = bonus_file(answered, f"{answered.ids[0]},0.50,gut")
    answered.collect()
    with answered.book.exclusive_lock():
        for arguments in (
            ["bonus", path],
            ["review", "--approve-submitted"],
            ["close"],
            ["top-up"],
        ):
            answered.run(*arguments, code=2)
            assert "another giccs annotate process uses this ledger" in answered.stderr
    assert answered.book.actions() == ()
    assert answered.bonuses(answered.assignment(answered.ids[0])["HITId"]) == []


def bonus_file(study, *rows):
    path = study.folder / "bonuses.csv"
    path.write_text("\n".join(["assignment_id,amount,reason", *rows, ""]), encoding="utf-8")
    return str(path)


def test_bonuses_are_priced_and_paid_once(answered):
    path = bonus_file(answered, f"{answered.ids[0]},0.50,gut", f"{answered.ids[1]},0.05,auch")
    document = answered.json("bonus", path)
    assert "2 bonuses: $0.66 including fees" in answered.stderr  # 0.50 + 0.10 and 0.05 + 0.01
    assert (document["paid"], document["total"], document["fees"]) == (2, "0.66", "0.11")
    again = answered.json("bonus", path)
    assert (again["paid"], again["paid_before"], again["total"]) == (0, 2, "0.00")
    assert sum(len(answered.bonuses(hit_id)) for hit_id in answered.hit_ids()) == 2


def test_beyond_this_machine_the_amount_is_typed(answered, monkeypatch):
    from mturk.study import client

    real = client.resolve

    def elsewhere(
        endpoint, **options
    ):  # the test's service is on this machine; act as if it was not
        result = real(endpoint, **options)
        return client.Endpoint(result.url, loopback=False)

    monkeypatch.setattr(client, "resolve", elsewhere)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    path = bonus_file(answered, f"{answered.ids[0]},0.50,gut")
    answered.run("bonus", path, typed="0.5\n", code=2)
    assert "'0.5' is not 0.60; nothing was done" in answered.stderr
    assert answered.book.actions() == ()
    answered.run("bonus", path, typed="0.60\n")
    assert answered.json("bonus", path)["paid_before"] == 1


def test_too_small_a_balance_is_said_before_anything_is_paid(answered):
    path = bonus_file(answered, *(f"{its_id},99999.99,gut" for its_id in answered.ids))
    answered.run("bonus", path, code=1)
    assert "$479999.96 including fees is required, but the balance is $" in answered.stderr
    assert answered.book.actions() == ()


def test_hits_are_offered_longer_and_to_more_workers(answered):
    first, second = answered.hit_ids()
    document = answered.json("extend", first, "--assignments", "7")
    assert (document["raised"], document["cost"]) == (1, "0.72")
    assert (answered.hit(first)["MaxAssignments"], answered.hit(second)["MaxAssignments"]) == (7, 5)
    again = answered.json("extend", "--assignments", "7")
    assert (again["raised"], again["had_as_many"]) == (1, 1)
    answered.run("extend", "--assignments", "10", code=2)
    assert answered.stderr.count("cannot be extended to 10 or more") == 2
    answered.run("extend", code=2)
    answered.run("extend", "--hours", "99999", code=2)
    answered.run("extend", "3NONE", "--hours", "1", code=2)
    assert "3NONE: unknown HIT; expected a HIT in" in answered.stderr


def test_closed_hits_are_offered_no_more_until_they_are_extended(answered):
    assert answered.run("close") == "2 HITs closed\n"
    assert {answered.hit(hit_id)["HITStatus"] for hit_id in answered.hit_ids()} == {"Reviewable"}
    assert {hit.state for hit in answered.book.hits()} == {"closed"}
    assert answered.json("status")["assignments"]["closed"] == 6
    # the service's clock of the test is ahead of this machine's by some months
    answered.run("extend", "--hours", "8000")
    assert {answered.hit(hit_id)["HITStatus"] for hit_id in answered.hit_ids()} == {"Assignable"}
    assert {hit.state for hit in answered.book.hits()} == {"created"}


def test_a_hit_that_was_deleted_stops_neither_closing_nor_extending(answered):
    first, second = answered.hit_ids()
    answered.run("review", "--approve-submitted")
    answered.run("close", first)
    answered.client.delete_hit(HITId=first)
    assert answered.run("close") == "2 HITs closed, 1 of them deleted\n"
    assert answered.hit(second)["HITStatus"] == "Reviewable"
    document = answered.json("extend", "--hours", "8000")
    assert (document["extended"], document["deleted_there"]) == (1, 1)
    assert answered.hit(second)["HITStatus"] == "Assignable"
    answered.run("extend", "--assignments", "6", code=1)
    assert f"{first}: extend was refused" in answered.stderr
    assert answered.hit(second)["MaxAssignments"] == 6


def test_top_up_asks_for_what_is_lacking(answered):
    assert answered.run("top-up") == "no judgments are missing; open assignments are counted\n"
    first = answered.hit_ids()[0]
    for n in range(3, 6):
        answered.submit(f"A{n}", first)
    mine = next(
        assignment_id
        for assignment_id in answered.ids
        if answered.assignment(assignment_id)["HITId"] == first
    )
    answered.run("review", "--reject", mine, "--feedback", "no")
    out = answered.run("top-up", "--dry-run")
    assert "2 judgments of 2 tuples are missing; planned HITs: 1 with more" in out
    assert answered.hit(first)["MaxAssignments"] == 5
    document = answered.json("top-up")
    assert (document["raised"], document["cost"]) == ({first: 6}, "0.36")
    assert answered.hit(first)["MaxAssignments"] == 6
    assert not answered.json("top-up")["done"]


@pytest.mark.parametrize("command", ["review", "batch"])
def test_marks_that_are_not_carried_out_are_kept(answered, tmp_path, command):
    output = tmp_path / "d.csv"
    for _ in range(2):  # a file without marks is replaced
        answered.run(command, "-o", str(output))
    with open(output, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["Approve"] = rows[1]["Reject"] = "x"  # without feedback, which the rejection requires
    with open(output, "w", encoding="utf-8", newline="") as file:
        sheet = csv.DictWriter(file, rows[0])
        sheet.writeheader()
        sheet.writerows(rows)
    before = output.read_bytes()
    answered.run(command, "-o", str(output), code=2)
    expected = f"{output}: contains 2 marks that are not carried out; expected another file"
    assert expected in answered.stderr
    assert output.read_bytes() == before


@pytest.mark.parametrize("command", ["collect", "batch"])
def test_answers_of_simulated_workers_do_not_replace_those_of_people(study, tmp_path, command):
    study.submit_all(["ASIMULATED1"], comment="simulated")  # with a pseudonym in the files
    output = tmp_path / "answers.csv"
    for _ in range(2):
        study.run(command, "-o", str(output))
    assert output.read_text("utf-8").count("simulated") == {"collect": 4, "batch": 2}[command]
    output.write_text(output.read_text("utf-8").replace("simulated", "Why?", 1), encoding="utf-8")
    before = output.read_bytes()
    study.run(command, "-o", str(output), code=2)
    assert "answers of people, which would be lost; expected another file" in study.stderr
    assert output.read_bytes() == before


def test_a_batch_file_is_written_marked_and_carried_out(answered, tmp_path):
    output = tmp_path / "batch.csv"
    answered.run("batch", "-o", str(output), "--worker-ids", "real")
    with open(output, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["WorkerId"] for row in rows} == {"A1", "A2"}
    text = output.read_text("utf-8").replace('"",""\n', '"x",""\n')  # Approve of every row
    output.write_text(text, encoding="utf-8")
    assert answered.json("review", str(output))["approved"] == 4
    assert answered.run("batch", "-o", "-").count("w-") == 4


# Deleting


def bytes_of(study):
    folder = Path(study.path).parent
    return b"".join(path.read_bytes() for path in folder.glob("ledger.db*") if path.is_file())


def test_a_purged_worker_leaves_no_trace_and_does_not_come_back(answered):
    mine = [own_id for own_id in answered.ids if answered.assignment(own_id)["WorkerId"] == "A1"]
    answered.run("review", "--reject", mine[0], "--feedback", "Herr Purgemann, das war geraten")
    answered.run("bonus", bonus_file(answered, f"{mine[1]},0.10,Danke Purgemann"))
    (worker,) = {a.worker for a in answered.book.assignments() if a.assignment_id in mine}
    answered.book.close()
    before = bytes_of(answered)
    traces = [worker.encode(), b"Purgemann", *(own_id.encode() for own_id in mine)]
    assert all(trace in before for trace in traces)
    answered.run("purge", "--worker", "A1", typed="n\n", code=1)
    assert bytes_of(answered) == before
    assert answered.json("purge", "--worker", "A1", "--yes")["assignments"] == 2
    after = bytes_of(answered)
    assert [trace for trace in traces if trace in after] == []
    answered.book = Ledger.open(answered.path)
    assert answered.json("collect", "-o", str(answered.folder / "j.csv"))["new"] == 0
    assert {a.assignment_id for a in answered.book.assignments()} == set(answered.ids) - set(mine)
    assert [(action.kind, action.amount, action.target) for action in answered.book.actions()] == [
        ("reject", "", ""), ("bonus", "0.10", "")
    ]  # fmt: skip
    answered.run("purge", "--worker", "A1", "--yes", code=2)
    assert "A1: no assignments in" in answered.stderr


def test_what_was_not_yet_paid_to_a_purged_worker_is_given_up(answered):
    answered.collect()
    mine, other = (
        next(
            assignment_id
            for assignment_id in answered.ids
            if answered.assignment(assignment_id)["WorkerId"] == worker
        )
        for worker in ("A1", "A2")
    )
    answered.book.plan_actions([make_action("bonus", mine, "0.10", "x")], 0.0)
    answered.run("purge", "--worker", "A1", "--yes")
    document = answered.json("bonus", bonus_file(answered, f"{other},0.20,y"))
    assert (document["paid"], document["refused"]) == (1, 0)


def test_where_a_reader_keeps_what_was_deleted_in_the_file_it_is_said(answered, monkeypatch):
    monkeypatch.setattr("mturk.study.ledger.BUSY_SECONDS", 0.1)
    answered.collect()
    with Ledger.open(answered.path) as reader:
        reader.connection.execute("BEGIN")
        reader.assignments()
        answered.run("purge", "--worker", "A1", "--yes", code=2)
        assert "remain in the file until other processes close it" in answered.stderr
        reader.connection.execute("COMMIT")
    worker = pseudonym(bytes.fromhex(key_path(answered.book).read_text()), "A1")
    answered.book.close()
    assert worker.encode() not in bytes_of(answered)


def test_ids_that_are_kept_can_be_purged(make_study):
    study = make_study(pseudonyms=False)
    study.submit_all(["A1", "A2"])
    study.run("collect", "-o", str(study.folder / "j.csv"))
    assert study.json("purge", "--worker", "A1", "--yes") == {
        "assignments": 2, "workers": 1, "key": False
    }  # fmt: skip
    assert {assignment.worker for assignment in study.book.assignments()} == {"A2"}


def test_a_worker_is_purged_by_pseudonym_too(answered):
    answered.collect()
    worker = answered.book.assignments()[0].worker
    answered.run("purge", "--worker", worker, typed="y\n")
    assert worker not in {assignment.worker for assignment in answered.book.assignments()}
    assert len(answered.book.assignments()) == 2


def test_without_the_key_nothing_is_collected_but_the_judgments_stay(answered):
    output = str(answered.folder / "j.csv")
    answered.run("collect", "-o", output)
    assert answered.json("purge", "--key", "--yes")["key"] is True
    assert not os.path.exists(key_path(answered.book))
    answered.run("collect", "-o", output, code=2)
    assert "the key is missing, so pseudonyms cannot be computed" in answered.stderr
    assert answered.json("collect", "-o", output, "--offline")["judgments"] == 8
    answered.run("purge", code=2)


def test_a_ledger_that_is_none_is_refused(study, tmp_path):
    study.path = str(tmp_path / "none.db")
    for arguments in (["status"], ["review"], ["collect"], ["close"], ["purge", "--key"]):
        study.run(*arguments, code=2)
        assert "none.db: ledger not found" in study.stderr
