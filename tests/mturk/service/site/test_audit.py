"""The audit log of withdrawals, releases and lists of participants."""

from mturk.cli.audit import command_user
from mturk.service.rules.audit import entries
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
    with service.database.read() as connection:
        rows = entries(connection)
    user = command_user()
    assert [(row.actor, row.action, row.subject, row.details) for row in rows] == [
        ("participant", "withdraw", "pilot", {"answers": 1}),
        (user, "release", "pilot", {}),
        (user, "withdraw", "pilot", {"answers": 0}),
        (user, "participants", "", {"workers": 2}),
    ]
    assert not [row for row in rows if ANNA.upper() in str(row).upper()]
