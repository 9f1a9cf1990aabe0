import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bws.files import read_judgments
from mturk.study.batch_csv import FIXED, batch_csv, pacific
from mturk.study.review import read_decisions
from mturk.study.valid_answers import read_valid_answers, write_answers


def exported(study, worker=lambda one: one.worker):
    hits = study.collect().hits
    return batch_csv(study.book, hits, worker, now=study.now())


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_columns_match_requester_website(study):
    study.submit_all(["A1"])
    text, unreadable = exported(study)
    header = next(csv.reader(io.StringIO(text)))
    parts = [
        f"{kind}.{part}.{name}"
        for kind, names in (
            ("Input", ("tuple_id", "group", "item1", "item2", "item3")),
            ("Answer", ("best", "worst", "shown", "seconds")),
        )
        for part in (1, 2)
        for name in names
    ]
    assert header == [*FIXED, *parts, "Answer.comment", "Approve", "Reject"]
    assert len(FIXED) == 27  # with Approve and Reject the 29 that are always there
    assert unreadable == []


def test_one_row_per_assignment(study):
    first = study.hit_ids()[0]
    study.work.register("A1", country="DE")
    its_id = study.submit("A1", first, comment='a "b",\nc; =1', after=61.6)
    study.client.approve_assignment(AssignmentId=its_id, RequesterFeedback="gut")
    (row,) = rows_of(exported(study)[0])
    there, hit = study.assignment(its_id), study.hit(first)
    assert (row["HITId"], row["AssignmentId"], row["HITTypeId"]) == (
        first,
        its_id,
        hit["HITTypeId"],
    )
    assert (row["Title"], row["Keywords"]) == (study.settings.title, study.settings.keywords)
    assert (row["Reward"], row["MaxAssignments"]) == ("$0.30", "5")
    assert row["RequesterAnnotation"] == hit["RequesterAnnotation"]
    assert row["CreationTime"] == pacific(hit["CreationTime"].timestamp())
    assert row["Expiration"] == pacific(hit["Expiration"].timestamp())
    assert row["SubmitTime"] == pacific(there["SubmitTime"].timestamp())
    assert row["ApprovalTime"] == pacific(there["ApprovalTime"].timestamp())
    assert (row["RejectionTime"], row["NumberOfSimilarHITs"], row["LifetimeInSeconds"]) == ("",) * 3
    assert (row["AssignmentStatus"], row["RequesterFeedback"]) == ("Approved", "gut")
    assert row["WorkTimeInSeconds"] == "62"
    assert row["WorkerId"].startswith("w-")
    assert [row[f"L{period}ApprovalRate"] for period in ("ifetime", "ast30Days", "ast7Days")] == [
        "100% (1/1)"
    ] * 3
    assert row["Answer.comment"] == 'a "b",\nc; =1'
    assert (row["Approve"], row["Reject"]) == ("", "")


def test_approval_rates_per_period_and_worker(study):
    first, second = study.hit_ids()
    old = study.submit("A1", first)
    study.client.approve_assignment(AssignmentId=old)
    study.running.clock.advance(8 * 86_400)
    for hit_id in study.hit_ids():
        study.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=study.now() + 3600)
    study.client.reject_assignment(AssignmentId=study.submit("A1", second), RequesterFeedback="no")
    study.submit("A2", second)
    rows = rows_of(exported(study)[0])
    one, _, other = sorted(rows, key=lambda row: row["AssignmentStatus"] == "Submitted")
    assert (one["LifetimeApprovalRate"], one["Last30DaysApprovalRate"], one["Last7DaysApprovalRate"]) == (
        "50% (1/2)", "50% (1/2)", "0% (0/1)"
    )  # fmt: skip
    assert other["LifetimeApprovalRate"] == "0% (0/0)"


def test_bws_reads_same_judgments(study, tmp_path):
    study.submit_all(["A1", "A2"], comment='„x“, "y"\nz')
    text, _ = exported(study)
    (tmp_path / "batch.csv").write_text(text, encoding="utf-8")
    write_answers(read_valid_answers(study.book), tmp_path / "judgments.csv")
    ours, theirs = (read_judgments(tmp_path / name) for name in ("judgments.csv", "batch.csv"))
    assert theirs.source.endswith("(mturk-batch)")
    assert _said(ours) == _said(theirs)


def _said(found):
    columns = [found.columns[name].tolist() for name in ("assignment_id", "seconds", "comment")]
    return sorted(zip(map(str, found.records()), *columns, strict=True))


def test_marked_file_is_review_sheet(study, tmp_path):
    ids = study.submit_all(["A1", "A2"])
    text, _ = exported(study)
    rows = rows_of(text)
    rows[0]["Approve"] = "x"
    rows[1] |= {"Reject": "x", "RequesterFeedback": "zu schnell"}
    with open(tmp_path / "b.csv", "w", encoding="utf-8-sig", newline="") as file:
        marked = csv.DictWriter(file, rows[0], delimiter=";")
        marked.writeheader()
        marked.writerows(rows)
    result = read_decisions(tmp_path / "b.csv")
    assert [
        (decision.assignment_id, decision.kind, decision.feedback) for decision in result.decisions
    ] == [
        (rows[0]["AssignmentId"], "approve", ""),
        (rows[1]["AssignmentId"], "reject", "zu schnell"),
    ]
    assert result.unmarked == len(ids) - 2


def test_deleted_hit_is_taken_from_ledger(study):
    first = study.hit_ids()[0]
    one = study.submit("A1", first)
    study.collect()
    study.client.approve_assignment(AssignmentId=one)
    study.collect()
    (before,) = rows_of(exported(study)[0])
    study.client.update_expiration_for_hit(HITId=first, ExpireAt=0)
    study.client.delete_hit(HITId=first)
    (after,) = rows_of(exported(study)[0])
    different = {name for name in before if before[name] != after[name]}
    assert different == {"Expiration"}
    assert after["Expiration"] == ""


def test_unreadable_answer_is_reported(study):
    its_id = study.submit("A1", study.hit_ids()[0])
    study.collect()
    with study.book.transaction() as connection:  # the service itself sends no such answer
        connection.execute("UPDATE assignment SET answer_xml = '<a'")
    text, unreadable = exported(study)
    assert unreadable == [its_id]
    (row,) = rows_of(text)
    assert row["Input.1.tuple_id"]
    assert not any(value for name, value in row.items() if name.startswith("Answer."))


@given(
    st.integers(
        int(datetime(2007, 1, 1, tzinfo=UTC).timestamp()),
        int(datetime(2037, 1, 1, tzinfo=UTC).timestamp()),
    )
)
def test_pacific_time(at):
    # summer time from the second Sunday in March to the first in November, 2 o'clock, since 2007
    utc = datetime.fromtimestamp(at, UTC)
    begins = sunday(utc.year, 3, 8) + timedelta(hours=10)  # 2 o'clock PST
    ends = sunday(utc.year, 11, 1) + timedelta(hours=9)  # 2 o'clock PDT
    zone, hours = ("PDT", 7) if begins <= utc < ends else ("PST", 8)
    local = utc - timedelta(hours=hours)
    assert pacific(float(at)) == f"{local:%a %b %d %H:%M:%S} {zone} {local.year}"


def sunday(year, month, day):
    first = datetime(year, month, day, tzinfo=UTC)
    return first + timedelta(days=6 - first.weekday())


@pytest.mark.parametrize(
    ("utc", "text"),
    [
        (datetime(2026, 3, 8, 9, 59, 59), "Sun Mar 08 01:59:59 PST 2026"),
        (datetime(2026, 3, 8, 10), "Sun Mar 08 03:00:00 PDT 2026"),
        (datetime(2026, 11, 1, 8, 59, 59), "Sun Nov 01 01:59:59 PDT 2026"),
        (datetime(2026, 11, 1, 9), "Sun Nov 01 01:00:00 PST 2026"),
        (datetime(2026, 1, 1, 3), "Wed Dec 31 19:00:00 PST 2025"),
    ],
)
def test_daylight_saving_changes_at_two(utc, text):
    assert pacific(utc.replace(tzinfo=UTC).timestamp()) == text
