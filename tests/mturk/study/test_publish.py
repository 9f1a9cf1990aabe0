import time
from decimal import Decimal

import pytest

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

from mturk.limits import RangeLimit
from mturk.study.client import ServiceError, connect, resolve
from mturk.study.ledger import Ledger
from mturk.study.publish import (
    adopt_hits,
    available_balance,
    create_hits,
    unpublished_cost,
    unpublished_hits,
)
from mturk.study.settings import Settings


class Publisher:
    """A study, its ledger and a boto3 client of the service."""

    def __init__(self, running, files, folder):
        self.running, self.plans, self.folder = running, files.plans(Settings()), folder
        self.client = connect(resolve(running.url), timeout=20.0, max_attempts=3)

    def now(self):
        return self.running.clock.now()

    def ledger(self, name="ledger.db"):
        book = Ledger.open(self.folder / name, create=True)
        book.start_study(self.running.url, Settings(), self.plans, self.now())
        return book

    def publish(self, book):
        result = adopt_hits(self.client, book, clock=self.now)
        return result, create_hits(self.client, book, clock=self.now)

    def listed(self):
        """Return annotation -> HIT as listed by the service."""
        return {
            hit["RequesterAnnotation"]: hit for hit in self.client.list_hits(MaxResults=100)["HITs"]
        }


@pytest.fixture
def publisher(running, files, tmp_path):
    return Publisher(running, files, tmp_path)


def test_all_planned_hits_are_published(publisher):
    with publisher.ledger() as book:
        assert unpublished_cost(book) == Decimal("3.60")  # 2 HITs x 5 x (0.30 + 0.06)
        result, made = publisher.publish(book)
        assert (result.n_adopted, result.duplicates, made) == (0, (), 2)
        assert unpublished_hits(book) == []
        assert unpublished_cost(book) == 0
        listed = publisher.listed()
        for plan, hit in zip(publisher.plans, book.hits(), strict=True):
            there = listed[plan.annotation]
            assert there["HITId"] == hit.hit_id
            assert there["Question"] == plan.question
            assert there["MaxAssignments"] == 5
            assert there["Reward"] == "0.30"
            assert there["HITTypeId"] == book.study().hit_type_id
            lifetime = there["Expiration"] - there["CreationTime"]
            assert lifetime.total_seconds() == Settings().lifetime
            assert (hit.first_sent, hit.created_at) == (publisher.now(), publisher.now())


def test_published_qualifications_match_paper(publisher):
    with publisher.ledger() as book:
        publisher.publish(book)
        hit = publisher.client.get_hit(HITId=book.hits()[0].hit_id)["HIT"]
    rate, approved, place = hit["QualificationRequirements"]
    assert (approved["Comparator"], approved["IntegerValues"]) == ("GreaterThanOrEqualTo", [0])
    assert (rate["Comparator"], rate["IntegerValues"]) == ("GreaterThan", [98])
    assert (place["Comparator"], place["LocaleValues"]) == ("EqualTo", [{"Country": "DE"}])


def test_repeated_publication_makes_no_calls(publisher):
    with publisher.ledger() as book:
        publisher.publish(book)
        calls = len(publisher.running.faults.calls)
        assert publisher.publish(book)[1] == 0
        assert len(publisher.running.faults.calls) == calls


def test_all_hits_share_one_hit_type(publisher):
    with publisher.ledger() as book:
        publisher.publish(book)
    assert publisher.running.faults.calls == [
        "ListHITs", "CreateHITType", "CreateHITWithHITType", "CreateHITWithHITType",
    ]  # fmt: skip


def test_hits_of_lost_ledger_are_adopted(publisher):
    with publisher.ledger() as book:
        publisher.publish(book)
        before = book.hits(), book.study().hit_type_id
    with publisher.ledger("new.db") as book:
        result, made = publisher.publish(book)
        assert (result.n_adopted, made) == (2, 0)
        assert [hit.hit_id for hit in book.hits()] == [hit.hit_id for hit in before[0]]
        assert book.study().hit_type_id == before[1]
    assert len(publisher.running.annotations()) == 2


def test_lost_ledger_of_partly_published_study_continues(publisher):
    with publisher.ledger() as book:
        adopt_hits(publisher.client, book)
        create_hits(publisher.client, book, progress=lambda hits: hits[:1])
        assert len(unpublished_hits(book)) == 1
    with publisher.ledger("new.db") as book:
        result, made = publisher.publish(book)
        assert (result.n_adopted, made) == (1, 1)
    assert sorted(publisher.running.annotations()) == sorted(p.annotation for p in publisher.plans)


def test_adopted_hit_keeps_number_of_assignments(publisher):
    with publisher.ledger() as book:
        publisher.publish(book)
        hit_id = book.hits()[0].hit_id
    publisher.client.create_additional_assignments_for_hit(
        HITId=hit_id, NumberOfAdditionalAssignments=2
    )
    with publisher.ledger("new.db") as book:
        publisher.publish(book)
        assert [hit.max_assignments for hit in book.hits()] == [7, 5]


def test_all_pages_of_hits_are_searched(publisher, monkeypatch):
    monkeypatch.setattr("mturk.study.publish.PAGE_SIZE", RangeLimit("MaxResults", 1, 2))
    with publisher.ledger() as book:
        adopt_hits(publisher.client, book)
        create_hits(publisher.client, book, progress=lambda hits: hits[:1])
        hit_type_id, question = book.study().hit_type_id, publisher.plans[0].question
        mine = book.hits()[0].hit_id
    for number in range(5):  # newer ones of somebody else push ours off the first page
        publisher.client.create_hit_with_hit_type(
            HITTypeId=hit_type_id, Question=question, MaxAssignments=1, LifetimeInSeconds=600,
            RequesterAnnotation=f"else {number}",
        )  # fmt: skip
    publisher.running.clock.advance(100_000)
    with publisher.ledger("new.db") as book:
        result, _ = publisher.publish(book)
        assert result.n_adopted == 1
        assert book.hits()[0].hit_id == mine


def test_oldest_of_duplicate_hits_is_adopted(publisher):
    hit_type_id = publisher.client.create_hit_type(**Settings().hit_type())["HITTypeId"]
    plan, made = publisher.plans[0], []
    for _ in range(2):
        answer = publisher.client.create_hit_with_hit_type(
            HITTypeId=hit_type_id, Question=plan.question, MaxAssignments=5, LifetimeInSeconds=600,
            RequesterAnnotation=plan.annotation,
        )  # fmt: skip
        made.append(answer["HIT"]["HITId"])
        publisher.running.clock.advance(10)
    with publisher.ledger() as book:
        result, _ = publisher.publish(book)
        assert result.duplicates == ((plan.annotation, made[1]),)
        assert book.hits()[0].hit_id == made[0]


def lose_response(publisher, book):
    """Send the first HIT; the service creates it, but the response is lost and the publisher stops."""
    adopt_hits(publisher.client, book, clock=publisher.now)
    publisher.running.faults.choose = lambda operation, number: (
        "drop after" if operation == "CreateHITWithHITType" else None
    )
    impatient = connect(resolve(publisher.running.url), timeout=20.0, max_attempts=1)
    with pytest.raises(ServiceError):
        create_hits(impatient, book, clock=publisher.now)
    publisher.running.faults.choose = lambda operation, number: None
    assert [hit.state for hit in book.hits()] == ["sent", "sent"]
    assert len(publisher.running.annotations()) == 1


def test_hit_is_found_after_token_expired(publisher):
    with publisher.ledger() as book:
        lose_response(publisher, book)
        publisher.running.clock.advance(25 * 3600)
        result, made = publisher.publish(book)
        assert (result.n_adopted, made) == (1, 1)
    assert sorted(publisher.running.annotations()) == sorted(p.annotation for p in publisher.plans)


def test_expired_token_without_search_makes_duplicate(publisher):
    """The preceding test without the search."""
    with publisher.ledger() as book:
        lose_response(publisher, book)
        publisher.running.clock.advance(25 * 3600)
        create_hits(publisher.client, book, clock=publisher.now)
    assert len(publisher.running.annotations()) == 3


def test_token_prevents_duplicate_with_stale_list(publisher):
    """After a crash, the list may lack the HIT; sending it again must not create a duplicate."""
    with publisher.ledger() as book:
        lose_response(publisher, book)
        create_hits(publisher.client, book, clock=publisher.now)  # nothing was searched
        assert unpublished_hits(book) == []
    assert sorted(publisher.running.annotations()) == sorted(p.annotation for p in publisher.plans)
    assert publisher.running.faults.calls[-3:] == [
        "CreateHITWithHITType", "GetHIT", "CreateHITWithHITType",
    ]  # fmt: skip


def test_deleted_hit_is_not_adopted(publisher):
    with publisher.ledger() as book:
        publisher.publish(book)
        hit_id = book.hits()[0].hit_id
    publisher.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=1)
    publisher.client.delete_hit(HITId=hit_id)
    with publisher.ledger("new.db") as book:
        with pytest.raises(
            ServiceError, match="If you deleted it, wait 24 hours, or set another seed"
        ):
            publisher.publish(book)
        assert [hit.state for hit in book.hits()] == ["sent", "created"]


def test_refusal_states_call_and_reason(publisher):
    with publisher.ledger() as book:
        with book.transaction() as connection:
            connection.execute("UPDATE hit SET question = '<no/>' WHERE number = 1")
        with pytest.raises(
            ServiceError, match=r"CreateHITWithHITType was refused: .*XMLParseError"
        ):
            publisher.publish(book)


def test_available_balance(publisher):
    before = available_balance(publisher.client)
    with publisher.ledger() as book:
        publisher.publish(book)
    assert before - available_balance(publisher.client) == Decimal("3.60")


def test_added_hits_are_published_with_their_size(publisher, files):
    with publisher.ledger() as book:
        publisher.publish(book)
        from bws.files import read_tuples
        from giccs.benchmark.assemble import read_dialogues
        from mturk.kinds.tuples.plan import plan

        more = plan(
            read_tuples(files.tuples), read_dialogues(files.dialogues), Settings(), round_number=1
        )
        book.add_hits(more, 2)
        result, made = publisher.publish(book)
        assert (result.n_adopted, made) == (0, 2)
        assert [hit.max_assignments for hit in book.hits()] == [5, 5, 2, 2]
    assert len(set(publisher.running.annotations())) == 4


def test_hits_are_marked_sent_before_calls(publisher, monkeypatch):
    """HITs are marked in batches, because each commit waits for the disk."""
    monkeypatch.setattr("mturk.study.publish.COMMIT_BATCH_SIZE", 1)
    seen = []
    with publisher.ledger() as book:
        publisher.client.meta.events.register(
            "before-send.mturk", lambda **_: seen.append([hit.state for hit in book.hits()])
        )
        create_hits(publisher.client, book)
        assert seen == [["meant", "meant"], ["sent", "meant"], ["created", "sent"]]
        assert [hit.state for hit in book.hits()] == ["created", "created"]


def test_default_clock_is_system_time(publisher):
    with publisher.ledger() as book:
        before = time.time()
        create_hits(publisher.client, book)
        assert before <= book.hits()[0].first_sent <= time.time()
