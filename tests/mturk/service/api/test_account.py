"""Balance, blocks, messages and notifications through unmodified boto3."""

import csv
import io
import json

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from mturk.cli import main
from mturk.service.store.schema import event

SPECIFICATION = {
    "Destination": "arn:aws:sns:us-east-1:1:topic",
    "Transport": "SNS",
    "Version": "2006-05-05",
    "EventTypes": ["AssignmentSubmitted", "HITReviewable"],
}


def events(requester):
    with requester.service.database.read() as connection:
        rows = connection.execute(select(event).order_by(event.c.number)).all()
    return [(row.kind, row.hit_id, row.assignment_id) for row in rows]


def test_the_balance_begins_with_ten_thousand_dollars(requester):
    assert requester.balance() == ("10000.00", "0.00")


def test_a_blocked_worker_gets_no_work_until_unblocked(requester):
    hit_id = requester.hit()
    requester.work.register("A1")
    requester.boto.create_worker_block(WorkerId="A1", Reason="scripts")
    requester.boto.create_worker_block(WorkerId="A1", Reason="many scripts")
    response = requester.boto.list_worker_blocks()
    assert response["WorkerBlocks"] == [{"WorkerId": "A1", "Reason": "many scripts"}]
    assert requester.work.offers("A1") == []
    requester.boto.delete_worker_block(WorkerId="A1", Reason="a mistake")
    requester.boto.delete_worker_block(WorkerId="A1")  # as good as the first time
    assert requester.boto.list_worker_blocks()["WorkerBlocks"] == []
    assert [offer.sample_hit_id for offer in requester.work.offers("A1")] == [hit_id]


def test_messages_reach_workers_and_failures_are_named(shared):
    shared.work.register("A1")
    response = shared.boto.notify_workers(
        Subject="Thanks", MessageText="More is there.\nGrüße", WorkerIds=["A1", "ANOBODY", "A1"]
    )
    (failure,) = response["NotifyWorkersFailureStatuses"]
    assert failure["WorkerId"] == "ANOBODY"
    assert failure["NotifyWorkersFailureCode"] == "HardFailure"
    assert "ANOBODY" in failure["NotifyWorkersFailureMessage"]
    values = [(message.subject, message.text) for message in shared.work.messages("A1")]
    assert values == [("Thanks", "More is there.\nGrüße")]


def test_events_are_recorded_as_asked_for(requester):
    hit_id = requester.hit()
    kind = requester.get(hit_id)["HITTypeId"]
    requester.boto.update_notification_settings(HITTypeId=kind, Notification=SPECIFICATION)
    assignment_id = requester.submit("A1", hit_id)
    expected = [("HITReviewable", hit_id, None), ("AssignmentSubmitted", hit_id, assignment_id)]
    assert sorted(events(requester)) == sorted(expected)
    db = str(requester.service.database.url.database)
    done = CliRunner().invoke(main, ["notifications", "--db", db], catch_exceptions=False)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["event"], row["hit_id"], row["assignment_id"] or None) for row in rows] == events(
        requester
    )
    assert {row["destination"] for row in rows} == {SPECIFICATION["Destination"]}
    late = CliRunner().invoke(
        main, ["notifications", "--db", db, "--since", "2090-01-01", "--json"]
    )
    assert json.loads(late.stdout)["notifications"] == []
    requester.boto.update_notification_settings(HITTypeId=kind, Active=False)
    requester.submit("A1", requester.hit())
    assert len(events(requester)) == 2
    requester.boto.update_notification_settings(HITTypeId=kind, Active=True)
    requester.submit("A1", requester.hit())
    assert len(events(requester)) == 4


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({}, "ParameterValidationError"),
        ({"Active": True}, "ParameterValidationError"),  # there is no specification yet
        ({"Notification": SPECIFICATION | {"EventTypes": ["Ping"]}}, "ParameterValidationError"),
        ({"Notification": SPECIFICATION | {"Transport": "Post"}}, "ParameterValidationError"),
        ({"HITTypeId": "3NO", "Notification": SPECIFICATION}, "HITTypeDoesNotExist"),
    ],
)
def test_settings_that_are_refused(shared, settings, code):
    kind = shared.get(shared.hit(Title="unnotified"))["HITTypeId"]
    assert shared.code("update_notification_settings", **{"HITTypeId": kind} | settings) == code


def test_a_test_event_is_recorded(requester):
    requester.boto.send_test_event_notification(Notification=SPECIFICATION, TestEventType="Ping")
    assert events(requester) == [("Ping", None, None)]
