"""The simulated balance after every step, and after random steps in any order."""

import shutil
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from mturk.money import bonus_fee
from mturk.question_xml import write_html_question
from mturk.service.api.protocol import Api
from mturk.service.clock import ManualClock
from mturk.service.errors import RequestError
from mturk.service.rules.person import erase
from mturk.service.rules.work import WorkError, WorkerService
from mturk.service.store.schema import account, assignment, hit
from tests.mturk.new_database import new_database

QUESTION = write_html_question("<p>?</p>")
KIND = {"Title": "t", "Description": "d", "Reward": "1.00", "AssignmentDurationInSeconds": 60}


def test_every_step(requester, examples):
    seen = [requester.balance()]
    hit_id = requester.hit(Reward="1.00", MaxAssignments=5)  # 5 of 1.00 and 0.20
    seen.append(requester.balance())
    ids = [requester.submit(f"A{number}", hit_id) for number in range(3)]
    seen.append(requester.balance())  # work changes nothing
    requester.boto.approve_assignment(AssignmentId=ids[0])
    seen.append(requester.balance())
    requester.boto.reject_assignment(AssignmentId=ids[1], RequesterFeedback="no")
    seen.append(requester.balance())
    requester.boto.approve_assignment(AssignmentId=ids[1], OverrideRejection=True)
    seen.append(requester.balance())
    bonus_of = {"WorkerId": "A0", "AssignmentId": ids[0], "Reason": "r"}
    requester.boto.send_bonus(**bonus_of, BonusAmount="0.03")  # 0.01 is the smallest fee
    seen.append(requester.balance())
    requester.boto.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    seen.append(requester.balance())  # only the one that is not reviewed stays
    requester.clock.advance(31 * 86_400)
    seen.append(requester.balance())
    assert seen == [
        ("10000.00", "0.00"),
        ("9994.00", "6.00"),
        ("9994.00", "6.00"),
        ("9994.00", "4.80"),
        ("9995.20", "3.60"),
        ("9994.00", "3.60"),
        ("9993.96", "3.60"),
        ("9996.36", "1.20"),
        ("9996.36", "0.00"),
    ]


@pytest.mark.parametrize(
    ("reward", "assignments", "on_hold"),
    [("0.25", 5, "1.50"), ("0.25", 10, "3.50"), ("0", 3, "0.03"), ("0.01", 1, "0.02")],
)
def test_what_a_hit_holds(requester, reward, assignments, on_hold):
    requester.hit(Reward=reward, MaxAssignments=assignments)
    assert requester.balance()[1] == on_hold


def test_places_and_types_that_change_change_what_is_held(requester, examples):
    hit_id = requester.hit(Reward="1.00", MaxAssignments=2)
    requester.boto.create_additional_assignments_for_hit(
        HITId=hit_id, NumberOfAdditionalAssignments=2
    )
    assert requester.balance()[1] == "4.80"
    requester.accept("A1", hit_id)
    dear = requester.boto.create_hit_type(**examples.KIND | {"Reward": "2.00"})["HITTypeId"]
    requester.boto.update_hit_type_of_hit(HITId=hit_id, HITTypeId=dear)
    assert requester.balance()[1] == "8.40"  # one of 1.20, three of 2.40
    requester.clock.advance(600)
    assert requester.balance()[1] == "9.60"


def test_masters_cost_more(requester):
    masters = {"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists"}
    requester.hit(Reward="1.00", QualificationRequirements=[masters])
    assert requester.balance()[1] == "1.25"


def test_without_funds_nothing_happens(requester, examples):
    hit_id = requester.hit(Reward="8000")
    assignment_id = requester.submit("A1", hit_id)
    before = requester.balance()
    bonus_of = {"WorkerId": "A1", "AssignmentId": assignment_id, "Reason": "r"}
    for operation, asked in (
        ("create_hit", examples.HIT | {"Reward": "400", "UniqueRequestToken": "t"}),
        ("send_bonus", bonus_of | {"BonusAmount": "333.34", "UniqueRequestToken": "t"}),
        (
            "create_additional_assignments_for_hit",
            {"HITId": hit_id, "NumberOfAdditionalAssignments": 1},
        ),
    ):
        assert requester.code(operation, **asked) == "InsufficientFunds"
        assert requester.balance() == before
    assert requester.get(hit_id)["MaxAssignments"] == 1
    requester.hit(Reward="1", UniqueRequestToken="t")  # the token was not used
    requester.boto.send_bonus(**bonus_of, BonusAmount="332.00", UniqueRequestToken="t")
    assert requester.balance() == ("0.40", "9601.20")


def test_an_overridden_rejection_needs_funds(requester):
    assignment_id = requester.submit("A1", requester.hit(Reward="8000"))
    requester.boto.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="no")
    requester.hit(Reward="8000")
    again = {"AssignmentId": assignment_id, "OverrideRejection": True}
    assert requester.code("approve_assignment", **again) == "InsufficientFunds"
    assignment = requester.boto.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert assignment["AssignmentStatus"] == "Rejected"


PICK = st.integers(0, 30)


class Studies(RuleBasedStateMachine):
    """Random actions of a requester and four workers, compared with a model.

    The model tracks each assignment's state; money and HIT states follow from it.
    """

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.database = new_database(self.folder / "hits.db", balance=5_000)
        with self.database.engine.connect() as connection:  # no power fails here
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA synchronous = OFF")
        self.clock = ManualClock(1.8e9)
        self.api, self.work = (
            Api(self.database, self.clock, {}),
            WorkerService(self.database, self.clock),
        )
        self.hits, self.done, self.paid = {}, {}, 0
        for worker in range(4):
            self.work.register(f"A{worker}")

    def teardown(self):
        self.database.close()
        shutil.rmtree(self.folder)

    def call(self, operation, **parameters):
        """Return the response, or None if refused."""
        try:
            return self.api.call(operation, parameters)
        except RequestError:
            return None

    def hit(self, pick):
        return list(self.hits)[pick % len(self.hits)] if self.hits else "3NONE"

    def record(self, pick):
        return list(self.done)[pick % len(self.done)] if self.done else "3NONE"

    @rule(most=st.sampled_from([1, 2, 3, 10]), delay=st.sampled_from([0, 50, 5_000]), life=PICK)
    def create(self, most, delay, life):
        made = self.call("CreateHIT", **KIND, LifetimeInSeconds=30 + 10 * life, MaxAssignments=most,
                         Question=QUESTION, AutoApprovalDelayInSeconds=delay)  # fmt: skip
        if made:
            self.hits[made["HIT"]["HITId"]] = {
                "most": most, "ends": self.clock.now() + 30 + 10 * life, "delay": delay,
                "unit": 120 if most < 10 else 140, "state": "open",
            }  # fmt: skip

    @rule(pick=PICK, more=st.integers(1, 9))
    def add_places(self, pick, more):
        its_id = self.hit(pick)
        added = self.call("CreateAdditionalAssignmentsForHIT", HITId=its_id,
                          NumberOfAdditionalAssignments=more)  # fmt: skip
        if added is not None:
            assert self.hits[its_id]["state"] != "deleted"
            assert not self.hits[its_id]["most"] < 10 <= self.hits[its_id]["most"] + more
            self.hits[its_id]["most"] += more

    @rule(pick=PICK, seconds=st.integers(-50, 300))
    def move_expiration(self, pick, seconds):
        its_id, at = self.hit(pick), self.clock.now() + seconds
        if self.call("UpdateExpirationForHIT", HITId=its_id, ExpireAt=at) is not None:
            self.hits[its_id]["ends"] = max(at, self.clock.now())

    @rule(pick=PICK)
    def delete(self, pick):
        its_id = self.hit(pick)
        if self.call("DeleteHIT", HITId=its_id) is not None:
            states = [record["state"] for record in self.done.values() if record["hit"] == its_id]
            assert not {"Accepted", "Submitted"}.intersection(states)
            self.hits[its_id]["state"] = "deleted"

    @rule(pick=PICK, revert=st.booleans())
    def review(self, pick, revert):
        self.call("UpdateHITReviewStatus", HITId=self.hit(pick), Revert=revert)

    @rule(pick=PICK, worker=st.integers(0, 3))
    def accept(self, pick, worker):
        its_id = self.hit(pick)
        try:
            result = self.work.accept(f"A{worker}", its_id)
        except WorkError:
            assert self.refusal_is_right(its_id, worker)
            return
        again = self.done.get(result.assignment_id)
        assert again is None or (again["state"], again["worker"]) == ("Accepted", worker)
        now, hit = self.clock.now(), self.hits[its_id]
        fresh = {"hit": its_id, "worker": worker, "state": "Accepted", "due": now + 60,
                 "unit": hit["unit"]}  # fmt: skip
        self.done.setdefault(result.assignment_id, fresh)

    def refusal_is_right(self, its_id, worker):
        if its_id not in self.hits:
            return True
        live = self.live(its_id)
        hit = self.hits[its_id]
        full = len(live) >= hit["most"] or self.clock.now() >= hit["ends"]
        return full or hit["state"] == "deleted" or worker in [record["worker"] for record in live]

    @rule(pick=PICK)
    def submit(self, pick):
        its_id = self.record(pick)
        if its_id in self.done:
            record = self.done[its_id]
            try:
                new = self.work.submit(its_id, f"A{record['worker']}", [("a", "b")])
            except WorkError:
                assert record["state"] in ("Returned", "Abandoned")
                return
            assert new == (record["state"] == "Accepted")
            if new:
                due = self.clock.now() + self.hits[record["hit"]]["delay"]
                record.update(state="Submitted", due=due)

    @rule(pick=PICK)
    def give_back(self, pick):
        its_id = self.record(pick)
        if its_id in self.done and self.done[its_id]["state"] == "Accepted":
            self.work.return_assignment(its_id, f"A{self.done[its_id]['worker']}")
            self.done[its_id]["state"] = "Returned"

    @rule(pick=PICK, override=st.booleans())
    def approve(self, pick, override):
        its_id = self.record(pick)
        before = self.done.get(its_id, {}).get("state")
        if (
            self.call("ApproveAssignment", AssignmentId=its_id, OverrideRejection=override)
            is not None
        ):
            assert before == "Submitted" or (override and before == "Rejected")
            self.approved(its_id)

    def approved(self, its_id):
        self.done[its_id]["state"] = "Approved"
        self.paid += self.done[its_id]["unit"]

    @rule(pick=PICK)
    def reject(self, pick):
        its_id = self.record(pick)
        if self.call("RejectAssignment", AssignmentId=its_id, RequesterFeedback="no") is not None:
            assert self.done[its_id]["state"] == "Submitted"
            self.done[its_id]["state"] = "Rejected"

    @rule(pick=PICK, cents=st.integers(1, 900))
    def pay_bonus(self, pick, cents):
        its_id = self.record(pick)
        worker = self.done.get(its_id, {}).get("worker", 0)
        paid = self.call("SendBonus", AssignmentId=its_id, WorkerId=f"A{worker}", Reason="r",
                         BonusAmount=f"{cents / 100:.2f}")  # fmt: skip
        if paid is not None:
            self.paid += cents + int(bonus_fee(Decimal(cents) / 100) * 100)

    @rule(worker=st.integers(0, 3))
    def erase(self, worker):
        with self.database.write() as connection:
            erase(connection, f"A{worker}", self.clock.now(), actor="test", approve=True)
            rows = connection.execute(select(assignment.c.assignment_id, assignment.c.worker_id))
            names = dict(map(tuple, rows))
        self.work.register(f"A{worker}")
        for its_id, record in self.done.items():
            if record["worker"] == worker:
                record["worker"] = names[its_id].removeprefix("A")
                if record["state"] == "Accepted":
                    record["state"] = "Returned"
                elif record["state"] == "Submitted":
                    self.approved(its_id)

    @rule(seconds=st.sampled_from([1, 10, 60, 400, 6_000]))
    def wait(self, seconds):
        self.clock.advance(seconds)

    def live(self, its_id):
        gone = ("Returned", "Abandoned")
        return [
            record
            for record in self.done.values()
            if record["hit"] == its_id and record["state"] not in gone
        ]

    @invariant()
    def all_is_as_it_must_be(self):
        now = self.clock.now()
        for its_id, record in self.done.items():
            if record["state"] in ("Accepted", "Submitted") and record["due"] <= now:
                if record["state"] == "Accepted":
                    record["state"] = "Abandoned"
                else:
                    self.approved(its_id)
        self.call("GetAccountBalance")  # settles what is due
        with self.database.read() as connection:
            money = connection.execute(select(account)).one()
            rows = connection.execute(select(hit)).all()
            result = connection.execute(
                select(assignment.c.assignment_id, assignment.c.status)
            ).all()
        assert dict(map(tuple, result)) == {
            its_id: record["state"] for its_id, record in self.done.items()
        }
        for row in rows:
            self.check_hit(row, now)
        assert money.available + money.on_hold + self.paid == 5_000
        assert money.on_hold == sum(row.held for row in rows)

    def check_hit(self, row, now):
        model, live = self.hits[row.hit_id], self.live(row.hit_id)
        assert len(live) <= model["most"] == row.max_assignments
        assert len({record["worker"] for record in live}) == len(live)
        states = [record["state"] for record in live]
        pending, submitted = states.count("Accepted"), states.count("Submitted")
        assert (row.pending, row.submitted) == (pending, submitted)
        assert row.completed == len(live) - pending - submitted
        free = model["most"] - len(live) if now < model["ends"] else 0
        if model["state"] == "deleted":
            allowed, free = {"Disposed"}, 0
        elif free:
            allowed = {"Assignable"}
        else:
            allowed = {"Unassignable"} if pending else {"Reviewable", "Reviewing"}
        assert row.status in allowed
        assert row.held == model["unit"] * (free + pending + submitted)


def run_studies(examples):
    steps = settings(max_examples=examples, stateful_step_count=40, deadline=None, derandomize=True)
    run_state_machine_as_test(Studies, settings=steps)


def test_some_orders():
    run_studies(6)


@pytest.mark.nightly
def test_many_orders():
    run_studies(60)
