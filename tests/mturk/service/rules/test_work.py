"""Operations of workers: offers, history, and two processes on one file."""

import os
from decimal import Decimal

import pytest

from mturk.service.rules.work import WorkError

FIGHT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from mturk.service.clock import ManualClock
from mturk.service.store.database import Database
from mturk.service.rules.work import WorkerService, WorkError

path, hit, side, now = sys.argv[1:]
database = Database(path)
work = WorkerService(database, ManualClock(float(now)))
workers = [f"A{side}{number}" for number in range(25)]
for worker in workers:
    work.register(worker)

def take(worker):
    try:
        return work.accept(worker, hit).assignment_id
    except WorkError as error:
        return error.code

print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(25) as pool:
    print(*pool.map(take, workers))
database.close()
"""


def group_of(requester, hit):
    return requester.get(hit)["HITGroupId"]


def refused(action, *arguments):
    with pytest.raises(WorkError) as caught:
        action(*arguments)
    return caught.value.code


def test_two_processes_give_ten_places_once(requester, commands):
    hit = requester.hit(MaxAssignments=10)
    arguments = [requester.service.database.url.database, hit]
    reading, writing = os.pipe()
    with open(reading) as start:
        fighters = [
            commands.start("-c", FIGHT, *arguments, side, requester.clock.now(), stdin=start)
            for side in "XY"
        ]
    for fighter in fighters:
        assert fighter.stdout.readline() == "ready\n"
    os.close(writing)
    found = " ".join(fighter.communicate(timeout=300)[0] for fighter in fighters).split()
    assert [fighter.returncode for fighter in fighters] == [0, 0]
    accepted = [result for result in found if result != "Full"]
    assert (len(found), len(accepted), len(set(accepted))) == (50, 10, 10)
    assert requester.get(hit)["NumberOfAssignmentsPending"] == 10
    assert requester.get(hit)["NumberOfAssignmentsAvailable"] == 0


def test_offers_are_one_a_type_the_newest_first(requester):
    requester.work.register("AONE")
    old = [requester.hit(Title="old"), requester.hit(Title="old")]
    new = requester.hit(Title="new", Reward="1.50")
    first, second = requester.work.offers("AONE")
    assert (first.title, first.hits_available, first.sample_hit_id) == ("new", 1, new)
    assert (first.reward, first.duration, first.eligible) == (Decimal("1.50"), 600, True)
    assert (second.title, second.hits_available) == ("old", 2)
    requester.accept("AONE", old[0])
    assert [offer.hits_available for offer in requester.work.offers("AONE")] == [1, 1]
    assert [offer.title for offer in requester.work.offers("AONE", limit=1)] == ["new"]
    requester.clock.advance(86_400)
    assert requester.work.offers("AONE") == []


def test_the_next_hit_of_a_group_until_there_is_none(requester):
    hits = {requester.hit() for _ in range(4)}
    group = group_of(requester, min(hits))
    requester.work.register("AONE")
    done = []
    for _ in hits:
        offered = requester.work.next_hit("AONE", group)
        taken = requester.work.accept("AONE", None, group)
        assert taken.hit_id == offered
        assert requester.work.accept("AONE", None, group).assignment_id == taken.assignment_id
        assert requester.work.submit(taken.assignment_id, "AONE", [("q", "a")])
        done.append(taken.hit_id)
    assert set(done) == hits
    assert requester.work.next_hit("AONE", group) is None
    assert refused(requester.work.accept, "AONE", None, group) == "NoWork"


def test_what_there_is_not_is_refused(requester):
    work, hit = requester.work, requester.hit()
    assert refused(work.accept, "ANOBODY", hit) == "Unknown"
    work.register("AONE")
    assert refused(work.accept, "AONE", "3NONE") == "Unknown"
    assert refused(work.preview, "AONE", "3NONE") == "Unknown"
    assert refused(work.assignment, "3NONE") == "Unknown"
    assignment = requester.submit("AONE", hit)
    assert refused(work.accept, "AONE", hit) == "AlreadyDone"
    assert refused(work.return_assignment, assignment, "AONE") == "Closed"
    assert refused(work.submit, assignment, "ATWO", []) == "NotYours"
    requester.boto.create_worker_block(WorkerId="ATHREE", Reason="r")
    work.register("ATHREE")
    assert refused(work.preview, "ATHREE", hit) == "Blocked"
    assert work.offers("ATHREE") == []


def test_history_and_progress_are_ones_own(requester):
    hits = [requester.hit(Reward="0.25") for _ in range(4)]
    ids = []
    for hit in hits:
        ids.append(requester.submit("AONE", hit))
        requester.clock.advance(1)
    approved, rejected, waiting, paid = ids
    requester.boto.approve_assignment(AssignmentId=approved, RequesterFeedback="gut")
    requester.boto.reject_assignment(AssignmentId=rejected, RequesterFeedback="leer")
    requester.boto.approve_assignment(AssignmentId=paid)
    requester.boto.send_bonus(
        WorkerId="AONE", BonusAmount="1.10", AssignmentId=paid, Reason="Danke"
    )
    done = requester.work.history("AONE")
    assert [(assignment.assignment_id, assignment.status, assignment.feedback) for assignment in done] == [
        (paid, "Approved", ""), (waiting, "Submitted", ""), (rejected, "Rejected", "leer"),
        (approved, "Approved", "gut"),
    ]  # fmt: skip
    assert requester.work.history("AONE", limit=2) == done[:2]
    progress = requester.work.progress("AONE")
    assert (progress.submitted, progress.approved, progress.rejected, progress.pending) == (
        4,
        2,
        1,
        1,
    )
    assert progress.earned == Decimal("1.60")
    requester.work.register("ATWO")
    assert requester.work.history("ATWO") == []
    assert requester.work.progress("ATWO").earned == 0


def test_open_work_until_it_is_returned_submitted_or_over(requester):
    ids = [requester.accept("AONE", requester.hit()) for _ in range(3)]
    work = requester.work
    assert [assignment.assignment_id for assignment in work.open_assignments("AONE")] == ids
    work.return_assignment(ids[0], "AONE")
    work.return_assignment(ids[0], "AONE")
    work.submit(ids[1], "AONE", [])
    assert [assignment.assignment_id for assignment in work.open_assignments("AONE")] == [ids[2]]
    requester.clock.advance(600)
    assert work.open_assignments("AONE") == []
    assert work.assignment(ids[2]).status == "Abandoned"


def test_messages_reach_whom_they_are_for_the_newest_first(requester):
    for worker in ("AONE", "ATWO"):
        requester.submit(worker, requester.hit())
    for subject, workers in (("erste", ["AONE", "ATWO"]), ("zweite", ["AONE"])):
        requester.boto.notify_workers(Subject=subject, MessageText="„Hallo“", WorkerIds=workers)
    messages = requester.work.messages("AONE")
    assert [(result.subject, result.text) for result in messages] == [
        ("zweite", "„Hallo“"),
        ("erste", "„Hallo“"),
    ]
    assert [message.subject for message in requester.work.messages("ATWO")] == ["erste"]


def test_a_country_stays_until_another_is_given(requester):
    work = requester.work
    work.register("AONE")
    assert work.country("AONE") is None
    work.register("AONE", country="DE")
    work.register("AONE")
    assert work.country("AONE") == "DE"
    work.register("AONE", country="AT")
    assert work.country("AONE") == "AT"
