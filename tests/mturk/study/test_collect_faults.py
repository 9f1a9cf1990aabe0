"""Processes killed at any step and restarted: each answer is stored once, each action executed once."""

import os
import shutil
from collections import Counter

import pytest

from mturk.study.ledger import Ledger
from tests.mturk.study.killable_process import first_of_each
from tests.nightly import first_in_ci

EXTENT = pytest.mark.parametrize("is_all", first_in_ci([False, True]))
"""Whether to kill at all steps, or at the first of each kind."""
YEAR = 31_536_000  # the service's clock is ahead of this machine's


class Killed:
    """Runs giccs annotate in processes that kill themselves at a given step; see killable_process.py."""

    def __init__(self, process, url):
        self.process, self.url = process, url

    def run(self, *arguments, kill=0):
        done = self.process.run(*arguments, endpoint=self.url, kill=kill)
        assert done["status"] == (-9 if kill else 0), (arguments, done)
        return done["steps"]


@pytest.fixture
def killable(killable_process, running):
    return Killed(killable_process, running.url)


def kills(steps, is_all):
    return range(1, len(steps) + 1) if is_all else first_of_each(steps)


def kept(path):
    with Ledger.open(path) as book:
        return {
            (assignment.assignment_id, assignment.status, assignment.answer_xml)
            for assignment in book.assignments()
        }


@EXTENT
def test_collecting(study, killable, tmp_path, is_all):
    study.submit_all(["A1", "A2"], comment="ü")
    study.book.close()
    whole = tmp_path / "whole.db"
    shutil.copy(study.path, whole)
    steps = killable.run("collect", "--ledger", whole, "-o", tmp_path / "whole.csv")
    assert Counter(steps)["before ListAssignmentsForHIT"] == 4
    expected = (tmp_path / "whole.csv").read_text("utf-8")
    assert len(kept(whole)) == 4
    for kill in kills(steps, is_all):
        path, output = tmp_path / f"{kill}.db", tmp_path / f"{kill}.csv"
        shutil.copy(study.path, path)
        if kill > 1:  # the pseudonyms are to be the same
            shutil.copy(f"{whole}.key", f"{path}.key")
            os.chmod(f"{path}.key", 0o600)
        killable.run("collect", "--ledger", path, "-o", output, kill=kill)
        assert not output.exists()
        killable.run("collect", "--ledger", path, "-o", output)
        assert kept(path) == kept(whole), steps[:kill]
        if kill > 1:
            assert output.read_text("utf-8") == expected


@EXTENT
def test_bonuses(study, killable, tmp_path, is_all):
    ids = [study.submit("A1", study.hit_ids()[0])]

    def file(number):
        path = tmp_path / f"{number}.csv"
        rows = [f"{one},0.{place}0,kill {number}" for place, one in enumerate(ids, start=1)]
        path.write_text("\n".join(["assignment_id,amount,reason", *rows, ""]))
        return path

    steps = killable.run("bonus", file(0), "--ledger", study.path)
    assert Counter(steps)["before SendBonus"] == 1
    # from the second command on nothing is new to collect, so that there are fewer steps
    steps = killable.run("bonus", file(999), "--ledger", study.path)
    for kill in kills(steps, is_all):
        killable.run("bonus", file(kill), "--ledger", study.path, kill=kill)
        study.running.clock.advance((kill % 2) * 90_000)  # every other time the token is forgotten
        killable.run("bonus", file(kill), "--ledger", study.path)
    paid = Counter(
        (bonus["AssignmentId"], bonus["BonusAmount"], bonus["Reason"])
        for hit_id in study.hit_ids()
        for bonus in study.bonuses(hit_id)
    )
    assert paid == {
        (one, f"0.{place}0", f"kill {kill}"): 1
        for kill in (0, 999, *kills(steps, is_all))
        for place, one in enumerate(ids, start=1)
    }
    assert {action.state for action in study.book.actions()} == {"done"}


@EXTENT
def test_decisions(make_study, killable, tmp_path, is_all):
    study = make_study(assignments=100)
    ids = list(study.submit_all([f"A{n}" for n in range(45 if is_all else 15)]).values())

    def file(number):
        path = tmp_path / f"{number}.csv"
        rows = [f"{ids[2 * number]},x,,", f"{ids[2 * number + 1]},,x,nein {number}"]
        path.write_text("\n".join(["AssignmentId,Approve,Reject,RequesterFeedback", *rows, ""]))
        return path

    killable.run("review", file(0), "--ledger", study.path)
    steps = killable.run("review", file(1), "--ledger", study.path)
    assert steps.count("before ApproveAssignment") == steps.count("before RejectAssignment") == 1
    assert len(kills(steps, is_all)) + 2 <= len(ids) // 2
    for number, kill in enumerate(kills(steps, is_all), start=2):
        killable.run("review", file(number), "--ledger", study.path, kill=kill)
        killable.run("review", file(number), "--ledger", study.path)
        approved, rejected = (study.assignment(one) for one in ids[2 * number : 2 * number + 2])
        assert approved["AssignmentStatus"] == "Approved"
        assert rejected["AssignmentStatus"] == "Rejected"
        assert rejected["RequesterFeedback"] == f"nein {number}"
    here = {assignment.assignment_id: assignment.status for assignment in study.book.assignments()}
    assert here == {
        assignment_id: study.assignment(assignment_id)["AssignmentStatus"] for assignment_id in ids
    }
    assert {action.state for action in study.book.actions()} == {"done"}


@EXTENT
@pytest.mark.parametrize("assignments", [1, 9])
def test_topping_up(make_study, killable, assignments, is_all):
    """With 1 assignment, a HIT is extended and the expired one reopened; with 9, the page is republished."""

    def lacking(seed):
        study = make_study(name=f"s{seed}", seed=seed, assignments=assignments, lifetime=YEAR)
        first, second = study.hit_ids()
        one = study.submit("A1", first)
        study.client.reject_assignment(AssignmentId=one, RequesterFeedback="no")
        if assignments == 1:
            study.client.update_expiration_for_hit(HITId=second, ExpireAt=0)
        return study

    def check(study):
        digest = study.book.hits()[0].annotation.split(":")[1]
        pages = study.client.get_paginator("list_hits").paginate()
        listed = [hit for page in pages for hit in page["HITs"]]
        there = [hit for hit in listed if digest in hit["RequesterAnnotation"]]
        most = sorted(hit["MaxAssignments"] for hit in there)
        assert most == ([1, 2] if assignments == 1 else [1, 9, 9])
        assert {hit["HITStatus"] for hit in there} == {"Assignable"}

    steps = killable.run("top-up", "--ledger", lacking(1000).path)
    for kill in kills(steps, is_all):
        study = lacking(kill)
        killable.run("top-up", "--ledger", study.path, kill=kill)
        killable.run("top-up", "--ledger", study.path)
        check(study)
