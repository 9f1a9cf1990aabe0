"""Roles of access keys: all operations, pseudonyms, and the audit log of what keys did."""

import csv
import io
import json
import time

import pytest
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner
from sqlalchemy import select

from bws.base.problems import InputError
from mturk.cli import main
from mturk.pseudonyms import pseudonym
from mturk.service.api.access import ACCESS
from mturk.service.api.authentication import AccessKeys, read_keys
from mturk.service.api.operations import OPERATIONS, READ_ONLY_OPERATIONS
from mturk.service.server import ServerOptions
from mturk.service.store.schema import audit

KEYS = {"OWNER": "a secret of the laboratory", "ANALYST": "another secret, of an assistant"}
ANALYST_OPERATIONS = {
    "GetAccountBalance", "GetAssignment", "GetFileUploadURL", "GetHIT", "GetQualificationType",
    "ListAssignmentsForHIT", "ListBonusPayments", "ListHITs", "ListHITsForQualificationType",
    "ListQualificationTypes", "ListReviewPolicyResultsForHIT", "ListReviewableHITs",
    "ListWorkersWithQualificationType",
}  # fmt: skip
WORKER = "AWORKERONE"


@pytest.fixture
def guarded(endpoint_running, tmp_path):
    options = ServerOptions(port=0, keys=KEYS, analysts={"ANALYST"})
    with endpoint_running(tmp_path, options, time.time()) as service:
        yield service


def client(service, key):
    config = Config(parameter_validation=False)
    return service.client(aws_access_key_id=key, aws_secret_access_key=KEYS[key], config=config)


def submitted(service, examples):
    """Return the ids of a HIT and its submitted assignment."""
    hit_id = client(service, "OWNER").create_hit(**examples.HIT)["HIT"]["HITId"]
    service.work.register(WORKER)
    assignment_id = service.work.accept(WORKER, hit_id).assignment_id
    service.work.submit(assignment_id, WORKER, [("answer", "yes")])
    return hit_id, assignment_id


def entries(service):
    with service.database.read() as connection:
        return connection.execute(select(audit).order_by(audit.c.number)).all()


def test_the_table_contains_every_operation(examples):
    assert ACCESS.keys() == OPERATIONS.keys()
    assert len(ACCESS) == 39
    for name, access in ACCESS.items():
        shape = examples.service_model().operation_model(name).input_shape
        assert set(access.subject) <= set(shape.members)
        if access.role == "analyst":
            assert name in READ_ONLY_OPERATIONS
            assert not {"WorkerId", "WorkerIds"} & set(shape.members)


def test_analysts_only_read_and_owners_do_everything(guarded):
    def code(key, operation):
        try:
            getattr(client(guarded, key), xform_name(operation))()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            assert status == 400
            return error.response["Error"]["Code"]
        return ""

    refused = {name for name in OPERATIONS if code("ANALYST", name) == "AccessDeniedException"}
    assert refused == OPERATIONS.keys() - ANALYST_OPERATIONS
    assert not [name for name in OPERATIONS if code("OWNER", name) == "AccessDeniedException"]


def test_analysts_see_pseudonyms_and_owners_ids(guarded, examples):
    owner, analyst = client(guarded, "OWNER"), client(guarded, "ANALYST")
    hit_id, assignment_id = submitted(guarded, examples)
    owner.send_bonus(
        WorkerId=WORKER, AssignmentId=assignment_id, BonusAmount="0.10", Reason="good",
        UniqueRequestToken="once",
    )  # fmt: skip
    qualification = owner.create_qualification_type(**examples.QUALIFICATION)["QualificationType"]
    type_id = qualification["QualificationTypeId"]
    owner.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId=WORKER)

    def ids(client):
        listed = client.list_assignments_for_hit(HITId=hit_id)["Assignments"]
        assert listed[0]["Answer"]
        return [
            listed[0]["WorkerId"],
            client.get_assignment(AssignmentId=assignment_id)["Assignment"]["WorkerId"],
            client.list_bonus_payments(HITId=hit_id)["BonusPayments"][0]["WorkerId"],
            client.list_workers_with_qualification_type(QualificationTypeId=type_id)[
                "Qualifications"
            ][0]["WorkerId"],
        ]

    assert ids(owner) == [WORKER] * 4
    [name] = set(ids(analyst))
    assert name.startswith("w-")
    assert name != pseudonym(guarded.database.secret(), WORKER)  # the key of links is not reused
    assert set(ids(analyst)) == {name}
    for key in ("OWNER", "ANALYST"):
        actions = [row for row in entries(guarded) if row.actor == key]
        assert ("ListAssignmentsForHIT", hit_id, {"workers": 1}) in [
            (row.action, row.subject, row.details) for row in actions
        ]


def test_analysts_see_pseudonyms_in_reasons_and_feedback(guarded, examples):
    """Of all workers, in any case, and of recruited ones the id at Prolific."""
    owner, analyst = client(guarded, "OWNER"), client(guarded, "ANALYST")
    hit_id, assignment_id = submitted(guarded, examples)
    recruited = "5f3c1a2b4d5e6f708192a3b4"
    guarded.work.register(f"APROLIFIC{recruited.upper()}")
    guarded.work.register("bea.2")
    text = (
        f"Bonus for {WORKER}, aworkerone: better than bea.2. See ({recruited}); thanks, AWORKERTWO"
    )
    owner.approve_assignment(AssignmentId=assignment_id, RequesterFeedback=text)
    owner.send_bonus(
        WorkerId=WORKER, AssignmentId=assignment_id, BonusAmount="0.10", Reason=text,
        UniqueRequestToken="once",
    )  # fmt: skip

    def texts(client):
        return [
            client.list_bonus_payments(HITId=hit_id)["BonusPayments"][0]["Reason"],
            client.get_assignment(AssignmentId=assignment_id)["Assignment"]["RequesterFeedback"],
            client.list_assignments_for_hit(HITId=hit_id)["Assignments"][0]["RequesterFeedback"],
        ]

    assert texts(owner) == [text] * 3
    (seen,) = set(texts(analyst))
    name = analyst.get_assignment(AssignmentId=assignment_id)["Assignment"]["WorkerId"]
    assert seen.startswith(f"Bonus for {name}, {name}: better than w-")
    assert seen.endswith("); thanks, AWORKERTWO")  # an id of nobody here
    assert not [one for one in (WORKER, recruited, "bea.2") if one.lower() in seen.lower()]


def test_decisions_and_reads_are_recorded_once(guarded, examples):
    owner = client(guarded, "OWNER")
    hit_id, assignment_id = submitted(guarded, examples)
    owner.list_hits()
    owner.get_hit(HITId=hit_id)
    page = owner.list_assignments_for_hit(HITId=hit_id)
    owner.list_assignments_for_hit(HITId=hit_id, NextToken=page["NextToken"])  # an empty page
    owner.approve_assignment(AssignmentId=assignment_id, RequesterFeedback="a private remark")
    with pytest.raises(ClientError):
        owner.approve_assignment(AssignmentId=assignment_id)
    owner.create_worker_block(WorkerId=WORKER, Reason="a private reason")
    rows = entries(guarded)
    assert [(row.actor, row.action, row.subject, row.details) for row in rows] == [
        ("OWNER", "ListAssignmentsForHIT", hit_id, {"workers": 1}),
        ("OWNER", "ApproveAssignment", assignment_id, {}),
        ("OWNER", "CreateWorkerBlock", "", {}),
    ]
    assert {row.at for row in rows} == {guarded.clock.now()}


def test_a_read_that_applies_due_changes_is_recorded(guarded, examples):
    hit_id, _ = submitted(guarded, examples)
    guarded.clock.advance(60)
    client(guarded, "OWNER").create_hit(**examples.HIT | {"LifetimeInSeconds": 30})
    guarded.clock.advance(31)
    client(guarded, "ANALYST").list_assignments_for_hit(HITId=hit_id)
    assert [(row.actor, row.action) for row in entries(guarded)] == [
        ("ANALYST", "ListAssignmentsForHIT")
    ]


def test_a_refused_call_leaves_no_entry_and_no_change(guarded, examples):
    _, assignment_id = submitted(guarded, examples)
    with pytest.raises(ClientError, match="AccessDeniedException"):
        client(guarded, "ANALYST").approve_assignment(AssignmentId=assignment_id)
    with guarded.database.read() as connection:
        assert connection.execute(select(audit)).all() == []
    assert guarded.work.history(WORKER)[0].status == "Submitted"


def test_decisions_without_keys_are_recorded_too(requester):
    hit_id = requester.hit()
    assignment_id = requester.submit(WORKER, hit_id)
    requester.boto.list_assignments_for_hit(HITId=hit_id)
    requester.boto.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="no")
    assert [(row.actor, row.action) for row in entries(requester.service)] == [
        ("unsigned", "RejectAssignment")
    ]


def test_the_log_is_a_table_without_people(guarded, examples, tmp_path):
    owner = client(guarded, "OWNER")
    _, assignment_id = submitted(guarded, examples)
    owner.get_assignment(AssignmentId=assignment_id)
    start = guarded.clock.now()
    guarded.clock.advance(100)
    owner.create_worker_block(WorkerId=WORKER, Reason="a private reason")
    path = tmp_path / "audit.csv"
    db = ["--db", guarded.database.url.database]
    done = CliRunner().invoke(main, ["audit", *db, "-o", str(path)])
    assert done.stdout == f"{path}: 2 entries\n"
    text = path.read_text("utf-8")
    assert not [secret for secret in (WORKER, "yes", "private", *KEYS.values()) if secret in text]
    first, second = csv.DictReader(io.StringIO(text))
    assert first["subject"] == assignment_id
    assert json.loads(first["details"]) == {"workers": 1}
    assert (second["actor"], second["action"]) == ("OWNER", "CreateWorkerBlock")
    since = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(start + 50))
    recent = CliRunner().invoke(main, ["audit", *db, "--since", since, "--json"])
    assert [row["action"] for row in json.loads(recent.stdout)["entries"]] == ["CreateWorkerBlock"]
    wrong = CliRunner().invoke(main, ["audit", *db, "--since", "yesterday"])
    assert wrong.exit_code == 2
    assert "expected a date such as 2026-11-01" in wrong.stderr


def keys_of(tmp_path, text):
    path = tmp_path / "keys.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return read_keys(str(path), {})


def test_a_key_has_a_role(tmp_path):
    text = (
        'lab = "a secret of the laboratory"\n'
        '[assistant]\nsecret = "another secret of theirs"\nrole = "analyst"\n'
        '[boss]\nsecret = "the third secret of all"\n'
    )
    keys = keys_of(tmp_path, text)
    assert keys.secrets.keys() == {"lab", "assistant", "boss"}
    assert keys.analysts == {"assistant"}
    document = '{"one": {"secret": "another secret of theirs", "role": "analyst"}}'
    in_environment = read_keys(None, {"GICCS_KEYS": document})
    assert in_environment == AccessKeys({"one": "another secret of theirs"}, frozenset({"one"}))


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('secret = "another secret of theirs"\nrole = "admin"', "the role of a must be owner or analyst"),
        ('role = "analyst"', "the secret of a must be a string of at least 16 characters"),
        ('secret = "another secret of theirs"\nroles = "x"', "a has 1 unknown settings"),
    ],
)  # fmt: skip
def test_faults_of_a_key_are_named(tmp_path, table, problem):
    with pytest.raises(InputError, match=problem) as caught:
        keys_of(tmp_path, f"[a]\n{table}\n")
    assert "another secret" not in str(caught.value)
