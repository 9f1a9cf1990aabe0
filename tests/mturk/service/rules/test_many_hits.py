"""Queries for workers do not scan all HITs."""

import re

import pytest
from sqlalchemy import event, insert
from starlette.testclient import TestClient

from mturk.service.rules import work
from mturk.service.site.app import build_site
from mturk.service.site.links import worker_link
from mturk.service.store.schema import assignment

SITE, FRAME = "http://site.test:8765", "http://site.test:8766"


@pytest.fixture
def plans(requester):
    """Return SQLite's query plans of a call."""
    engine = requester.service.database.engine

    def planned(call, *arguments):
        asked = []

        def listen(connection, *_):
            connection.set_trace_callback(asked.append)

        event.listen(engine, "checkout", listen)
        try:
            call(*arguments)
        finally:
            event.remove(engine, "checkout", listen)
        statements = [statement for statement in asked if statement.startswith("SELECT")]
        engine.dispose()  # these connections are no longer traced
        with engine.connect() as connection:
            return [
                row[-1]
                for statement in statements
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")
            ]

    return planned


def test_a_place_is_found_by_its_own_index_and_no_table_of_hits_is_read_through(requester, plans):
    hit = requester.hit()
    requester.work.register("AONE")
    group = requester.get(hit)["HITGroupId"]
    for result in (
        plans(requester.work.offers, "AONE"),
        plans(requester.work.accept, "AONE", None, group),
    ):
        assert any("one_of_worker_and_hit (hit_id=? AND worker_id=?)" in line for line in result)
        assert not [line for line in result if line in ("SCAN hit", "SCAN assignment")]
        assert [line for line in result if line.startswith("SEARCH hit USING INDEX hit_of_type")]
    assert not any("hit_of_status" in line for line in result)


def test_the_assignments_of_a_hit_are_found_by_its_index(requester, plans):
    # A scan of all assignments made collecting a study of 1,000 HITs ten times as slow as the rest of it.
    hit = requester.hit()
    requester.submit("AONE", hit)
    calls = (
        (requester.boto.list_assignments_for_hit, {}),
        (
            requester.boto.list_assignments_for_hit,
            {"AssignmentStatuses": ["Submitted", "Rejected"]},
        ),
    )
    for call, options in calls:
        result = plans(lambda call=call, options=options: call(HITId=hit, **options))
        assert any("one_of_worker_and_hit (hit_id=?)" in line for line in result), result
        assert not any(line.startswith("SCAN assignment") for line in result)


def test_hits_are_counted_up_to_a_number(requester, monkeypatch):
    monkeypatch.setattr(work, "MAX_COUNTED_HITS", 3)
    requester.work.register("AONE")
    for _ in range(3):
        requester.hit()
    (offer,) = requester.work.offers("AONE")
    assert (offer.hits_available, offer.has_more) == (3, False)
    last = requester.hit()
    (offer,) = requester.work.offers("AONE")
    assert (offer.hits_available, offer.has_more) == (3, True)
    requester.accept("AONE", last)
    (offer,) = requester.work.offers("AONE")
    assert (offer.hits_available, offer.has_more) == (3, False)
    assert offer.sample_hit_id != last


def test_what_was_given_back_can_be_had_again(requester):
    hit = requester.hit()
    requester.work.register("AONE")
    requester.work.return_assignment(requester.accept("AONE", hit), "AONE")
    (offer,) = requester.work.offers("AONE")
    assert offer.sample_hit_id == hit
    with requester.service.database.write() as connection:
        mine = connection.execute(assignment.select()).one()._asdict()
        again = mine | {"number": 2, "assignment_id": "3X", "status": "Rejected"}
        connection.execute(insert(assignment), [again])
    assert requester.work.offers("AONE") == []  # rejected work has taken its place


def test_the_list_of_work_says_that_there_are_more(requester, monkeypatch):
    monkeypatch.setattr(work, "MAX_COUNTED_HITS", 2)
    service = requester.service
    requester.work.register("AONE", country="DE")
    site = build_site(service.work, service.database.secret(), frame_url=FRAME, site_url=SITE,
                      open_entry=False, now=service.clock.now)  # fmt: skip
    reader = TestClient(site, base_url=SITE, headers={"accept-language": "en"})
    reader.get(worker_link(SITE, service.database.secret(), "AONE"))
    csrf = re.search(r'name="csrf" value="(\w+)"', reader.get("/work/start").text)[1]
    reader.post("/work/start", data={"csrf": csrf})
    for _ in range(2):
        requester.hit()
    assert "<dd>2 tasks</dd>" in reader.get("/work/").text
    requester.hit()
    assert "<dd>&gt; 2 tasks</dd>" in reader.get("/work/").text
