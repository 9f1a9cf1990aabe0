import json
import math

import pytest

from bws.annotators import annotator_report
from bws.base.commands import json_ready
from bws.files import read_judgments
from bws.split_half import reliability
from mturk.study.status import AssignmentCounts, estimate_pace, study_status
from mturk.study.valid_answers import read_valid_answers, write_answers

OPEN = AssignmentCounts(20, open=10, closed=0, accepted=2, submitted=5, approved=2, rejected=1)


def status_of(study, **options):
    hits = study.collect().hits
    return study_status(
        study.book, hits, read_valid_answers(study.book), now=study.now(), **options
    )


def test_status_without_answers_states_reasons(study):
    result = status_of(study)
    assert result.hits == {"planned": 0, "offered": 2, "full": 0, "closed": 0, "gone": 0}
    assert result.counts == AssignmentCounts(10, 10, 0, 0, 0, 0, 0)
    assert result.answers_per_tuple == dict.fromkeys(("t1", "t2", "t3", "t4"), 0)
    assert (result.share, result.complete) == (0.0, False)
    assert math.isnan(result.pace.per_hour)
    assert result.pace.reason == "too few answers"
    assert result.reasons == dict.fromkeys(
        ("reliability", "annotators"), "there are no judgments yet"
    )
    document = json.loads(json.dumps(json_ready(result.document())))
    assert (document["reliability"], document["pace"]["per_hour"]) == (None, None)
    assert "reliability  there are no judgments yet" in result.table()


def test_assignments_are_counted_by_state(study):
    first, second = study.hit_ids()
    ids = [study.submit(f"A{n}", first) for n in range(4)]
    study.client.approve_assignment(AssignmentId=ids[0])
    study.client.reject_assignment(AssignmentId=ids[1], RequesterFeedback="no")
    study.work.accept("A0", second)
    result = status_of(study)
    # 10 wanted: 4 came back, 1 is at work, 5 are free
    assert result.counts == AssignmentCounts(10, 5, 0, 1, 2, 1, 1)
    assert sorted(result.answers_per_tuple.values()) == [0, 0, 3, 3]
    assert result.share == 6 / 20
    assert result.notes == ["excluded: 1 assignments were rejected"]
    assert "10 required: 5 open, 1 in progress, 2 pending review, 1 approved, 1 rejected" in (
        result.table()
    )
    study.client.update_expiration_for_hit(HITId=second, ExpireAt=0)
    result = status_of(study)
    assert (result.counts.open, result.counts.closed) == (1, 4)
    assert result.hits == {"planned": 0, "offered": 1, "full": 0, "closed": 1, "gone": 0}


def test_statistics_match_bws(study, tmp_path):
    study.submit_all(["A1", "A2", "A3"])
    study.submit_all(["A4", "A5"], best=2, worst=0)
    result = status_of(study, trials=20)
    write_answers(read_valid_answers(study.book), tmp_path / "j.csv")
    judgments = read_judgments(tmp_path / "j.csv")
    expected = reliability(judgments, trials=20, split="annotation")
    assert result.reliability.document() == expected.document()
    assert repr(result.annotators) == repr(
        annotator_report(judgments)
    )  # NaN is not equal to itself.
    assert (result.complete, result.share) == (True, 1.0)
    assert len(result.annotators.annotators) == 5
    table = result.table()
    assert "100.0 % of 5 judgments for each of 4 tuples" in table
    assert "Split-half reliability" in table
    document = result.document()
    assert document["tuples"]["with"] == {5: 4}
    assert document["reliability"]["annotations"] == 20


def test_no_reliability_without_halves(study):
    study.submit("A1", study.hit_ids()[0])
    result = status_of(study)
    assert result.reliability is None
    assert "2 of 2 tuples have one judgment, which cannot be split" in result.reasons["reliability"]
    assert result.annotators is not None


def test_surplus_judgments_do_not_replace_missing_ones(make_study):
    study = make_study(assignments=2)
    first = study.hit_ids()[0]
    study.client.create_additional_assignments_for_hit(HITId=first, NumberOfAdditionalAssignments=2)
    for n in range(4):
        study.submit(f"A{n}", first)
    result = status_of(study)
    assert (result.share, result.complete) == (0.5, False)


def test_pace_of_last_hour():
    submitted = [0.0, *(9_000.0 + 100 * n for n in range(10))]
    result = estimate_pace(submitted, OPEN, 10_000.0)
    assert result.per_hour == 10  # ten in the last hour; the one at 0 is older
    assert result.end == 10_000 + 12 * 360  # ten open ones and two at work, six minutes each


def test_slow_pace_since_first_answer():
    result = estimate_pace([0.0, 3_600.0, 7_200.0, 7_300.0], OPEN, 14_400.0)
    assert result.per_hour == 1  # four in four hours


@pytest.mark.parametrize(
    ("submitted", "now", "reason"),
    [
        ([], 1.0, "too few answers"),
        ([5.0], 10.0, "too few answers"),
        ([50.0, 60.0], 10.0, "answers have future times: the clocks differ"),
    ],
)
def test_missing_pace_has_reason(submitted, now, reason):
    result = estimate_pace(submitted, OPEN, now)
    assert math.isnan(result.per_hour)
    assert math.isnan(result.end)
    assert result.reason == reason


def test_no_expected_end_without_open_assignments():
    result = estimate_pace([0.0, 10.0], AssignmentCounts(2, 0, 0, 0, 2, 0, 0), 20.0)
    assert (result.per_hour, result.reason) == (360.0, "no open assignments")
    assert math.isnan(result.end)
