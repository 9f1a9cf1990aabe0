"""An answer that was received is said to be, without the session; submissions by redirect."""

import pytest

from mturk.answers import from_xml
from mturk.service.site.links import worker_link
from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import assignment
from tests.mturk.service.site.test_participants import (
    ANNA,
    BEN,
    SITE,
    visit,  # noqa: F401 - a fixture
)
from tests.mturk.service.site.test_study_outcomes import rows

SURVEY = (
    '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/'
    'ExternalQuestion.xsd"><ExternalURL>https://survey.example/s</ExternalURL>'
    "<FrameHeight>600</FrameHeight></ExternalQuestion>"
)
FORBIDDEN = ("Access denied", "try again", "This form has expired")


def task_id(page):
    return page.url.path.rpartition("/")[2]


def form_of(visitor, page):
    """Return the fields of the form below a task."""
    return {"csrf": visitor.token(page.url.path), "assignment": task_id(page)}


def lose_cookie(visitor, page):
    visitor.cookies.clear()


def open_a_second_tab(visitor, page):
    """The response to a second tab arrives late, and replaces the cookie."""
    visitor.cookies.clear()


def sign_out_elsewhere(visitor, page):
    visitor.submit("/work/leave", text="/work/history")


@pytest.mark.parametrize("lose", [lose_cookie, open_a_second_tab, sign_out_elsewhere])
@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("language", ["en", "de"])
def test_without_the_session_the_page_says_what_was_received(
    service, visit, lose, sent, language  # noqa: F811
):  # fmt: skip
    service.publish()
    anna = visit()
    page = anna.begin(service)
    anna.headers["accept-language"] = language
    fields, address = form_of(anna, page), anna.answer_address(page)
    lose(anna, page)
    if lose is open_a_second_tab:
        anna.join(service)
    if sent:
        assert anna.post(address, data={"answer": "yes"}).status_code == 200
    result = anna.post("/work/continue", data=fields)
    assert result.status_code == 200
    for words in FORBIDDEN:
        assert words not in result.text
    stored = {
        "en": "Your answer is stored and counts",
        "de": "Ihre Antwort ist gespeichert und zählt",
    }
    assert (stored[language] in result.text) == sent
    assert {"en": "open the link of the study", "de": "öffnen Sie den Link der Studie"}[
        language
    ] in " ".join(result.text.split())
    anna.join(service)
    again = anna.submit("/work/start", text="/work/start")
    assert ("C0DE" in again.text) == sent
    assert (again.url.path == page.url.path) != sent


def test_another_tab_of_the_same_worker_continues(service, visit):  # noqa: F811
    for _ in range(2):
        service.publish()
    anna = visit()
    page = anna.begin(service)
    fields = form_of(anna, page)
    anna.post(anna.answer_address(page), data={"answer": "yes"})
    anna.submit("/work/leave", text="/work/history")
    anna.join(service)
    anna.submit("/work/start", text="/work/start")
    result = anna.post("/work/continue", data=fields)  # the token of the earlier session
    assert result.url.path.startswith("/work/assignment/")
    assert result.url.path != page.url.path


def test_somebody_else_in_this_browser_learns_and_changes_nothing(service, visit):  # noqa: F811
    for _ in range(2):
        service.publish()
    anna, ben = visit(), visit()
    page = anna.begin(service)
    ben.begin(service, BEN, session="x2")
    before = rows(service, assignment)
    result = ben.post("/work/continue", data={"csrf": "0", "assignment": task_id(page)})
    assert ANNA not in result.text
    assert "Judge utterances" not in result.text
    assert rows(service, assignment) == before
    assert ben.post("/work/continue", data={"assignment": "3NONE"}).status_code == 403


def test_outside_studies_the_personal_link_is_named(service, visit):  # noqa: F811
    hit_id = service.publish()
    ben = visit()
    ben.get(worker_link(SITE, service.database.secret(), "ben"))
    ben.submit("/work/start", text="/work/start", country="DE")
    page = ben.submit("/work/accept", text="/work/history", hit=hit_id)
    fields = form_of(ben, page)
    ben.post(ben.answer_address(page), data={"answer": "yes"})
    ben.cookies.clear()
    assert "open your personal link again" in ben.post("/work/continue", data=fields).text


@pytest.fixture
def survey(service, visit):  # noqa: F811
    """A worker in a task on another site, and the address to which the survey redirects."""
    service.publish(SURVEY)
    anna = visit()
    page = anna.begin(service)
    return anna, anna.answer_address(page), task_id(page)


def test_a_redirect_of_a_survey_submits_the_answer_once(service, survey):
    anna, address, assignment_id = survey
    answers = {"assignmentId": assignment_id, "code": "R_1ü", "score": "3"}
    first = anna.get(address, params=answers)
    assert first.status_code == 200
    assert "Your answer has been received" in first.text
    assert first.headers["cache-control"] == "no-store"
    assert "had already been received" in anna.get(address, params=answers | {"code": "R_2"}).text
    [row] = rows(service, assignment)
    assert sorted(from_xml(row.answer)) == [("code", "R_1ü"), ("score", "3")]
    assert "C0DE" in anna.get("/work/next").text


def test_an_address_that_is_only_looked_at_submits_nothing(service, survey):
    anna, address, assignment_id = survey
    answers = {"assignmentId": assignment_id, "code": "R_1"}
    bare = anna.get(address)
    assert bare.status_code == 405
    assert "Nothing was submitted" in bare.text
    assert anna.head(address, params=answers).status_code == 405
    for name in ("sec-purpose", "purpose"):
        prefetched = anna.get(address, params=answers, headers={name: "prefetch"})
        assert prefetched.status_code == 405
    assert anna.get(address, params=answers | {"assignmentId": "3OTHER"}).status_code == 403
    assert [row.status for row in rows(service, assignment)] == ["Accepted"]


@pytest.mark.parametrize("path", ["/mturk/externalSubmit", "/submit/preview/mturk/externalSubmit"])
def test_an_address_without_a_token_explains_itself(visit, path):  # noqa: F811
    page = visit(PanelStudy("pilot", "C1")).get(path, params={"assignmentId": "3X", "code": "1"})
    assert page.status_code == 403
    assert ("turkSubmitTo" in page.text) == path.startswith("/mturk")
