"""Ids such as anna: links, the requester API, and spellings that differ in case."""

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner

from mturk.cli import main
from mturk.service.rules.admission import Entry, StudyRules
from mturk.service.rules.participation import Participants
from mturk.service.rules.work import WorkError


@pytest.mark.parametrize("worker", ["anna", "Jürgen".replace("ü", "ue"), "p_01.b-2"])
def test_every_operation_accepts_the_id(study, worker):
    [first, second] = study.hit_ids()
    approved, rejected = study.submit(worker, first), study.submit(worker, second)
    client = study.client
    assert client.get_assignment(AssignmentId=approved)["Assignment"]["WorkerId"] == worker
    client.approve_assignment(AssignmentId=approved)
    client.reject_assignment(AssignmentId=rejected, RequesterFeedback="no")
    client.send_bonus(WorkerId=worker, BonusAmount="1.00", AssignmentId=approved, Reason="thanks",
                      UniqueRequestToken="t")  # fmt: skip
    made = client.create_qualification_type(
        Name="q", Description="d", QualificationTypeStatus="Active"
    )
    type_id = made["QualificationType"]["QualificationTypeId"]
    client.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId=worker)
    assert client.get_qualification_score(QualificationTypeId=type_id, WorkerId=worker)
    client.notify_workers(Subject="s", MessageText="m", WorkerIds=[worker])
    client.create_worker_block(WorkerId=worker, Reason="r")
    assert [row["WorkerId"] for row in client.list_worker_blocks()["WorkerBlocks"]] == [worker]
    study.collect()
    assert {one.status for one in study.book.assignments()} == {"Approved", "Rejected"}


@pytest.mark.parametrize("worker", ["1anna", "an na", "anna\n", "é", "a" * 65])
def test_other_ids_are_refused(study, worker):
    with pytest.raises(ClientError, match="WorkerId does not match"):
        study.client.create_worker_block(WorkerId=worker, Reason="r")


def test_links_for_names(study):
    db = study.running.database.url.database
    result = CliRunner().invoke(main, ["invite", "anna", "ben", "--db", db])
    assert result.exit_code == 0
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == ["anna", "ben"]
    for names, problem in (
        (["anna", "Anna"], "Anna and anna differ only in case"),
        (["1a"], "1a: a worker id must be a letter"),
        (["AprolificX"], "reserved for recruited participants"),
    ):
        refused = CliRunner().invoke(main, ["invite", *names, "--db", db])
        assert refused.exit_code == 2
        assert problem in refused.output


def test_another_spelling_is_nobody_new(study):
    participants = Participants(study.running.database, study.running.clock)
    participants.enter(Entry("anna"), "n1", "b", StudyRules())
    participants.enter(Entry("anna"), "n2", "b", StudyRules())
    with pytest.raises(WorkError) as caught:
        participants.enter(Entry("Anna"), "n3", "b", StudyRules())
    assert caught.value.code == "Spelling"
