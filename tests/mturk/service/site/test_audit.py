"""The audit log of what happens to participants, and what an erased participant can still do."""

import re
from urllib.parse import parse_qs, urlsplit

from mturk.cli.audit import command_user
from mturk.service.rules.audit import entries
from mturk.service.rules.inquiries import Inquiries
from mturk.service.rules.person import erase
from mturk.service.store.schema import assignment
from tests.mturk.service.site.test_participants import (
    ANNA,
    BEN,
    command,
    visit,  # noqa: F401 - a fixture
)


def test_withdrawals_releases_and_lists_are_recorded(service, visit):  # noqa: F811
    service.publish()
    anna, ben = visit(), visit()
    anna.finish(anna.begin(service))
    anna.submit("/work/withdraw", text="/work/history")
    ben.begin(service, BEN, session="x2")
    command(service, "release", BEN, "--study", "pilot")
    command(service, "release", "AUNKNOWN", "--study", "pilot", code=2)
    command(service, "withdraw", BEN, "--study", "pilot", "--yes")
    command(service, "participants")
    Inquiries(service.database, service.clock).send(f"APROLIFIC{ANNA.upper()}", "pilot", "A", "B")
    command(service, "messages")
    command(service, "reply", "1", "C")
    with service.database.read() as connection:
        rows = entries(connection)
    user = command_user()
    assert [(row.actor, row.action, row.subject, row.details) for row in rows] == [
        ("participant", "withdraw", "pilot", {"answers": 1}),
        (user, "release", "pilot", {}),
        (user, "withdraw", "pilot", {"answers": 0}),
        (user, "participants", "", {"workers": 2}),
        (user, "messages", "", {"workers": 1}),
        (user, "reply", "pilot", {"number": 1}),
    ]
    assert not [row for row in rows if ANNA.upper() in str(row).upper()]


def test_who_is_erased_is_signed_out_and_cannot_submit(service, visit):  # noqa: F811
    service.publish()
    anna = visit()
    page = anna.begin(service)
    worker_id = f"APROLIFIC{ANNA.upper()}"
    assert "Signed in" in page.text
    with service.database.write() as connection:
        erase(connection, worker_id, service.clock.now(), actor="test")
    frame = re.search(r'<iframe[^>]* src="([^"]+)"', page.text)[1].replace("&amp;", "&")
    (address,) = parse_qs(urlsplit(frame).query)["turkSubmitTo"]
    refused = anna.post(f"{address}/mturk/externalSubmit", data={"answer": "yes"})
    assert refused.status_code >= 400
    assert "Signed in" not in anna.get("/work/").text
    with service.database.read() as connection:
        [row] = connection.execute(assignment.select()).all()
    assert (row.status, row.answer) == ("Returned", None)
