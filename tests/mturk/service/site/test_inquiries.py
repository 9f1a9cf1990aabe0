"""Messages from participants to the requester, and replies."""

import csv
import json
import re

import pytest
from sqlalchemy import select

from mturk.service.site.links import worker_link
from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import inquiry
from tests.mturk.service.site.test_participants import (
    ANNA,
    SITE,
    STUDY,
    command,
    visit,  # noqa: F401 - a fixture
)

WORKER = "APROLIFIC" + ANNA.upper()


@pytest.fixture
def anna(service, visit):  # noqa: F811
    """A participant of a study, whose method `write` sends a message."""
    service.publish()
    visitor = visit()
    visitor.begin(service)

    def write(subject="The page", text="It is\r\nbroken."):
        fields = {"csrf": visitor.token("/work/messages"), "subject": subject, "text": text}
        return visitor.post("/work/messages", data=fields)

    visitor.write = write
    return visitor


def stored(service):
    with service.database.read() as connection:
        return connection.execute(select(inquiry).order_by(inquiry.c.number)).all()


def test_a_message_is_stored_listed_and_answered(service, anna):
    page = anna.write()
    assert "Your message has been sent." in page.text
    [row] = stored(service)
    assert (row.worker_id, row.study, row.subject) == (WORKER, "pilot", "The page")
    assert (row.text, row.at, row.answered) == ("It is\nbroken.", service.clock.now(), None)
    listed = command(service, "messages", "--open")
    assert listed.splitlines()[0].split() == [
        "1", "2027-01-15T08:00:00Z", ANNA, "study", "pilot",
    ]  # fmt: skip
    assert listed.splitlines()[1:] == ["    The page", "", "    It is", "    broken."]
    assert "reply sent" in command(service, "reply", "1", "Repaired <b>now</b>.")
    page = anna.get("/work/messages")
    assert "Re: The page" in page.text
    assert "Repaired &lt;b&gt;now&lt;/b&gt;." in page.text
    assert "no messages" in command(service, "messages", "--open")
    [document] = json.loads(command(service, "messages", "--json"))["messages"]
    assert document["answered"]
    assert document["participant_id"] == ANNA
    problem = command(service, "reply", "7", "Hello", code=2)
    assert "there is no message 7; see giccs annotate messages" in problem
    huge = command(service, "reply", str(10**20), "Hello", code=2)
    assert "Invalid value for 'NUMBER'" in huge
    assert "is empty" in command(service, "reply", "1", " ", code=2)


def test_messages_are_written_to_a_file(service, anna, tmp_path):
    anna.write(text='One, "two"\n\nthree')
    path = tmp_path / "messages.csv"
    assert "1 messages" in command(service, "messages", "-o", str(path))
    with open(path, encoding="utf-8", newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["text"], row["worker_id"], row["answered"]) == ('One, "two"\n\nthree', WORKER, "")


def test_a_message_can_neither_command_the_terminal_nor_pretend_to_be_another(service, anna):
    anna.write(subject="a\n2  2027", text="b\x1b[2J\x9b\n2  2027-01-15T08:00:00Z  root\u2028x")
    out = command(service, "messages")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out)
    assert "\\u001b[2J" in out
    assert [line for line in out.splitlines() if line and not line.startswith("    ")] == [
        out.splitlines()[0]
    ]
    page = anna.write(subject='<script>"', text="</textarea><script>" + "x" * 5000)
    assert page.status_code == 422
    assert "<script>" not in re.sub(r"<script src=[^>]*>", "", page.text)


@pytest.mark.parametrize(
    ("subject", "text"), [("", "x"), ("s" * 101, "x"), ("s", " \n"), ("s", "x" * 5001)]
)
def test_a_refused_message_keeps_what_was_typed(service, anna, subject, text):
    page = anna.write(subject, text)
    assert page.status_code == 422
    assert 'aria-invalid="true"' in page.text
    assert f'value="{subject}"' in page.text
    assert text.strip() in page.text
    assert not stored(service)


def test_the_number_of_messages_is_limited_per_hour(service, anna):
    for number in range(5):
        assert "has been sent" in anna.write(text=f"Message {number}").text
    assert "has been sent" in anna.write(text="Message 0").text  # a form that is sent twice
    refused = anna.write(text="One more")
    assert "already sent 5 messages" in refused.text
    assert "One more" in refused.text
    assert len(stored(service)) == 5
    service.clock.advance(3601)
    assert "has been sent" in anna.write(text="One more").text


def test_those_with_a_personal_link_can_write_and_strangers_cannot(service, visit):  # noqa: F811
    assert "Write to the researchers" not in visit().get("/work/messages").text
    service.work.register("ABOB", country="DE")
    bob = visit()
    bob.get(worker_link(SITE, service.database.secret(), "ABOB"))
    bob.submit("/work/start", text="/work/start")
    page = bob.submit("/work/messages", text="/work/messages", subject="Hello")
    assert page.status_code == 422
    without_token = bob.post("/work/messages", data={"subject": "a", "text": "b"})
    assert without_token.status_code == 403
    assert not stored(service)


def test_the_form_is_reachable_from_every_page_of_a_study(service, visit):  # noqa: F811
    service.publish()
    study = PanelStudy("pilot", STUDY.completion_code, hits=1)
    anna = visit(study)
    page = anna.begin(service)
    assert '<a href="/work/messages" target="_blank" rel="noopener">Write' in page.text
    finished = anna.finish(page)
    assert "C0DE" in finished.text
    assert '<a href="/work/messages">Write to the researchers</a>' in finished.text
