"""The worker site over HTTP: sign-in, pages and refusals."""

import logging
import re
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from mturk import question_xml
from mturk.answers import from_xml
from mturk.service.site.app import build_site
from mturk.service.site.links import study_link, worker_link
from mturk.service.site.question_frame import build_frame
from mturk.service.site.rate_limits import RateLimit, RateLimits
from mturk.service.site.request_handling import MAX_BODY_BYTES, MAX_FIELDS
from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import assignment

SITE, FRAME = "http://site.test:8765", "http://site.test:8766"
STUDY = PanelStudy(
    "pilot", "C0DE", hits=2, information={"de": "Erstens.\n\nZweitens.", "en": "First."}
)
PARTICIPANT = "5f3c1a2b4d5e6f708192a3b4"


class Browser(TestClient):
    """A client that submits the forms of received pages."""

    def token(self, path="/work/"):
        return re.search(r'name="csrf" value="(\w+)"', self.get(path).text)[1]

    def submit(self, path, *, text="/work/", **fields):
        return self.post(path, data={"csrf": self.token(text), **fields})

    def enter(self, worker, country="DE"):
        assert self.submit("/work/enter", worker=worker).url.path in ("/work/start", "/work/")
        page = self.submit("/work/start", text="/work/start", country=country)
        assert page.url.path == "/work/", page.text
        return page

    def accept(self, hit_id):
        page = self.submit("/work/accept", hit=hit_id)
        assert page.url.path.startswith("/work/assignment/"), page.text
        return page


def site_of(service, **options):
    settings = {"open_entry": True, "studies": (STUDY,), "now": service.clock.now} | options
    return build_site(
        service.work, service.database.secret(), frame_url=FRAME, site_url=SITE, **settings
    )


def browser(application):
    return Browser(application, base_url=SITE, headers={"accept-language": "en"})


@pytest.fixture
def app(service):
    return site_of(service)


@pytest.fixture
def alice(app):
    one = browser(app)
    one.enter("AALICE1")
    return one


def frame_of(page):
    """Return the frame's address in a page, and its query."""
    address = re.search(r'<iframe[^>]* src="([^"]+)"', page.text)[1].replace("&amp;", "&")
    return address, {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def answer(client, page, fields=(), **more):
    _, query = frame_of(page)
    address = query["turkSubmitTo"].removeprefix(SITE) + "/mturk/externalSubmit"
    data = {"assignmentId": query["assignmentId"], "answer": "yes", **dict(fields), **more}
    return client.post(address, data=data)


def stored(service):
    with service.database.read() as connection:
        rows = connection.execute(assignment.select().order_by(assignment.c.number)).all()
    return [(row.worker_id, row.status, row.answer and from_xml(row.answer)) for row in rows]


# entering


def test_nobody_sees_work_before_entering(app, service):
    hit = service.publish()
    stranger = browser(app)
    for path in ("/", "/work/history", "/work/messages", f"/work/preview/{hit}", "/work/next"):
        assert stranger.get(path).url.path == "/work/"
    assert "Sign in" in stranger.get("/work/").text
    assert stranger.submit("/work/accept", hit=hit).url.path == "/work/"
    assert stored(service) == []


def test_open_entry_is_off_unless_the_operator_opens_it(service):
    closed = browser(site_of(service, open_entry=False))
    page = closed.get("/work/")
    assert "personal link" in page.text
    assert "/work/enter" not in page.text
    assert "Dry run" not in page.text
    token = re.search("value=.(\\w{64})", browser(site_of(service)).get("/work/").text)[1]
    assert closed.post("/work/enter", data={"csrf": token, "worker": "AX1"}).status_code == 403


def test_open_entry_says_that_it_is_a_rehearsal_and_checks_the_id(app):
    page = browser(app).submit("/work/enter", worker="<script>")
    assert page.status_code == 422
    assert 'value="&lt;script&gt;"' in page.text
    assert 'aria-invalid="true"' in page.text
    assert "Dry run" in page.text


def test_a_personal_link_enters_after_the_country_and_only_once_asks_for_it(service):
    app = site_of(service, open_entry=False)
    link = worker_link(SITE, service.database.secret(), "ABOB22")
    bob = browser(app)
    assert bob.get(link).url.path == "/work/start"
    wrong = bob.submit("/work/start", text="/work/start", country="XX")
    assert wrong.status_code == 422
    assert "Please choose a country." in wrong.text
    assert bob.submit("/work/start", text="/work/start", country="AT").url.path == "/work/"
    assert service.work.country("ABOB22") == "AT"
    again = browser(app)
    assert 'name="country"' not in again.get(link).text
    assert again.submit("/work/start", text="/work/start").url.path == "/work/"


def test_a_link_that_was_changed_expired_or_is_of_another_service_is_refused_and_logged(
    service, caplog
):
    app, secret = site_of(service, open_entry=False), service.database.secret()
    good = worker_link(SITE, secret, "ABOB22")
    expired = worker_link(SITE, secret, "ABOB22", expires=service.clock.now())
    foreign = worker_link(SITE, b"another", "ABOB22")
    with caplog.at_level(logging.WARNING, "mturk.site"):
        for link in (good[:-3], expired, foreign, f"{SITE}/enter"):
            page = browser(app).get(link)
            assert page.status_code == 403
            assert "not valid or has expired" in page.text
    assert len(caplog.records) == 4
    token = good.partition("token=")[2]
    assert token not in caplog.text
    assert service.work.country("ABOB22") is None


def test_entering_as_somebody_else_leaves_the_first_one_behind(app, service):
    secret, one = service.database.secret(), browser(app)
    one.enter("AALICE1")
    before = one.token()
    service.work.register("ABOB22", country="DE")
    page = one.get(worker_link(SITE, secret, "ABOB22"))
    assert "signs you in as ABOB22" in page.text
    assert "Signed in as AALICE1" in one.get("/work/").text  # a link alone signs nobody in or out
    cookie = one.cookies["mturk-worker"]
    assert "Signed in as ABOB22" in one.submit("/work/start", text="/work/start").text
    stolen = browser(app)
    stolen.cookies.set("mturk-worker", cookie)
    assert "Signed in as" not in stolen.get("/work/").text
    assert one.post("/work/leave", data={"csrf": before}).status_code == 403
    assert "Sign in" in one.submit("/work/leave").text


# forms


def test_every_form_needs_the_token_of_its_session(app, service, alice):
    hit = service.publish()
    other = browser(app)
    other.enter("ABOB22")
    posts = [
        ("/work/accept", {"hit": hit}), ("/work/return", {"assignment": "3X"}),
        ("/work/continue", {"assignment": "3X"}), ("/work/leave", {}), ("/work/enter", {}),
        ("/work/start", {"country": "DE"}), ("/work/qualification/3Q", {}),
    ]  # fmt: skip
    for path, fields in posts:
        for token in (None, "", "0" * 64, other.token()):
            data = fields if token is None else fields | {"csrf": token}
            assert alice.post(path, data=data).status_code == 403, (path, token)
    assert stored(service) == []


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{}", "application/json", 415),
        (b"a=" + b"x" * MAX_BODY_BYTES, "application/x-www-form-urlencoded", 413),
        (b"a=1&" * MAX_FIELDS, "application/x-www-form-urlencoded", 413),
        (b"nonsense", "multipart/form-data", 400),
        (b"nonsense", "multipart/form-data; boundary=x", 400),
    ],
)
def test_what_is_no_form_or_too_large_is_refused(alice, service, content, kind, status):
    page = alice.accept(service.publish())
    _, query = frame_of(page)
    address = query["turkSubmitTo"].removeprefix(SITE) + "/mturk/externalSubmit"
    for path in ("/work/accept", address):
        refused = alice.post(path, content=content, headers={"content-type": kind})
        assert refused.status_code == status
        assert refused.headers["content-type"].startswith("text/html")
    assert stored(service) == [("AALICE1", "Accepted", None)]


def test_files_are_refused_in_words_and_the_assignment_stays_open(alice, service):
    _, query = frame_of(alice.accept(service.publish()))
    address = query["turkSubmitTo"].removeprefix(SITE) + "/mturk/externalSubmit"
    refused = alice.post(address, data={"answer": "x"}, files={"scan": ("a.png", b"png")})
    assert refused.status_code == 422
    assert "does not accept files" in refused.text
    part = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    nothing_chosen = (
        part.format("answer", "", "x") + part.format("scan", '; filename=""', "") + "--x--"
    )
    kind = {"content-type": "multipart/form-data; boundary=x"}
    empty = alice.post(address, content=nothing_chosen, headers=kind)
    assert empty.status_code == 200
    assert stored(service) == [("AALICE1", "Submitted", [("answer", "x")])]


# working


def test_from_the_list_to_the_answer_and_the_record(alice, service):
    hit = service.publish(title="Judge <b>utterances</b> & ${B} ]]>")
    listed = alice.get("/work/").text
    assert "Judge &lt;b&gt;utterances&lt;/b&gt; &amp; ${B} ]]&gt;" in listed
    assert "<dd>$0.25</dd>" in listed
    assert "<dd>1 task</dd>" in listed
    assert "<dd>30\u00a0minutes</dd>" in listed
    page = alice.accept(hit)
    assert "until 08:30 (UTC)" in page.text  # START is 08:00 UTC
    assert "Continue working" in alice.get("/work/").text
    done = answer(alice, page, answer="${B} ]]> <script>&\r\n\u200f🙂")
    assert done.status_code == 200
    assert "has been received" in done.text
    assert stored(service) == [
        ("AALICE1", "Submitted", [("answer", "${B} ]]> <script>&\r\n\u200f🙂")])
    ]
    record = alice.get("/work/history").text
    assert "Judge &lt;b&gt;utterances" in record
    assert re.search(r"Pending</dt><dd>1</dd>", record)
    assert re.search(r"Earned</dt><dd>\$0.00</dd>", record)


def test_a_second_submission_changes_nothing_and_says_so(alice, service):
    page = alice.accept(service.publish())
    answer(alice, page, answer="first")
    again = answer(alice, page, answer="second")
    assert again.status_code == 200
    assert "already been received" in again.text
    assert stored(service) == [("AALICE1", "Submitted", [("answer", "first")])]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"best-t1": "a", "worst-t1": "a"}, "best and worst are both"),
        ({"best-t1": "a"}, "worst is missing"),
        ({"best-t1": "a", "worst-t1": "<z>"}, "worst is &#39;&lt;z&gt;&#39;"),
        ({"best-t1": "a", "worst-t1": "b", "shown-t1": "a;b"}, "in any order"),
    ],
)
def test_an_answer_that_is_none_is_refused_and_the_assignment_stays_open(
    alice, service, pages, fields, words
):
    page = alice.accept(service.publish(pages.best_worst))
    refused = answer(alice, page, fields)
    assert refused.status_code == 422
    assert words in refused.text
    assert stored(service) == [("AALICE1", "Accepted", None)]
    assert answer(alice, page, {"best-t1": "a", "worst-t1": "b"}).status_code == 200


def test_the_answers_token_is_the_only_way_in(app, alice, service, caplog):
    page = alice.accept(service.publish())
    bob = browser(app)
    bob.enter("ABOB22")
    bobs_page = bob.accept(service.publish())
    _, mine = frame_of(page)
    _, bobs = frame_of(bobs_page)
    token = mine["turkSubmitTo"].rpartition("/")[2]
    with caplog.at_level(logging.WARNING, "mturk.site"):
        for path in (f"/submit/{token[:-2]}/mturk/externalSubmit", "/submit/x/mturk/externalSubmit",
                     "/submit/preview/mturk/externalSubmit", "/mturk/externalSubmit"):  # fmt: skip
            refused = bob.post(
                path, data={"assignmentId": mine["assignmentId"], "answer": "forged"}
            )
            assert refused.status_code == 403, path
        crossed = answer(bob, bobs_page, assignmentId=mine["assignmentId"])
        assert crossed.status_code == 403
    assert [status for _, status, _ in stored(service)] == ["Accepted", "Accepted"]
    assert token not in caplog.text
    assert bobs["turkSubmitTo"] != mine["turkSubmitTo"]


def test_another_workers_assignment_does_not_exist(app, alice, service):
    page = alice.accept(service.publish(places=2))
    theirs = page.url.path.rpartition("/")[2]
    bob = browser(app)
    bob.enter("ABOB22")
    unknown = bob.get("/work/assignment/3NONE")
    assert bob.get(page.url.path).status_code == unknown.status_code == 404
    assert bob.get(page.url.path).text == unknown.text.replace("3NONE", theirs)
    for path in ("/work/return", "/work/continue"):
        assert bob.submit(path, assignment=theirs).status_code == 404
    assert stored(service) == [("AALICE1", "Accepted", None)]


def test_returning_frees_the_hit_for_others(app, alice, service):
    hit = service.publish(places=1)
    page = alice.accept(hit)
    bob = browser(app)
    bob.enter("ABOB22")
    assert bob.submit("/work/accept", hit=hit).status_code == 409
    returned = alice.submit("/work/return", assignment=page.url.path.rpartition("/")[2])
    assert "The task has been returned." in returned.text
    assert answer(alice, page).status_code == 410
    bob.accept(hit)
    assert [(who, status) for who, status, _ in stored(service)] == [
        ("AALICE1", "Returned"), ("ABOB22", "Accepted"),
    ]  # fmt: skip


def test_after_the_deadline_nothing_is_taken(alice, service):
    page = alice.accept(service.publish())
    service.clock.advance(1801)
    late = answer(alice, page)
    assert late.status_code == 410
    assert "The time for this task has expired." in late.text
    for again in (
        alice.get(page.url.path),
        alice.submit("/work/continue", assignment=page.url.path.rpartition("/")[2]),
    ):
        assert again.status_code == 200
        assert again.url.path == "/work/"
        assert "it was not submitted" in again.text
    assert stored(service) == [("AALICE1", "Abandoned", None)]


def test_the_next_one_is_accepted_when_that_was_chosen(alice, service):
    for _ in range(2):
        service.publish()
    group = re.search(r'name="group" value="(\w+)"', alice.get("/work/").text)[1]
    page = alice.submit("/work/accept", group=group)
    first = page.url.path.rpartition("/")[2]
    early = alice.submit("/work/continue", assignment=first, automatic="yes")
    assert early.url.path == page.url.path
    assert "has not been submitted yet" in early.text
    answer(alice, page)
    second = alice.submit("/work/continue", assignment=first, automatic="yes")
    assert second.url.path.startswith("/work/assignment/")
    assert second.url.path != page.url.path
    assert re.search(r'name="automatic" value="yes" checked', second.text)
    answer(alice, second)
    end = alice.submit(
        "/work/continue", assignment=second.url.path.rpartition("/")[2], automatic="yes"
    )
    assert end.url.path == "/work/"
    assert "no more tasks of this kind" in end.text


def test_going_back_to_an_old_assignment_accepts_nothing(alice, service):
    for _ in range(3):
        service.publish()
    page = alice.submit("/work/accept", group="3GROUP0")
    answer(alice, page)
    alice.submit("/work/continue", assignment=page.url.path.rpartition("/")[2], automatic="yes")
    assert alice.get(page.url.path).url.path == "/work/"
    assert [status for _, status, _ in stored(service)] == ["Submitted", "Accepted"]


def test_one_after_another_is_not_forced(alice, service):
    for _ in range(2):
        service.publish()
    page = alice.submit("/work/accept", group="3GROUP0")
    answer(alice, page)
    after = alice.submit("/work/continue", assignment=page.url.path.rpartition("/")[2])
    assert after.url.path == "/work/"
    assert len(stored(service)) == 1


def test_what_one_lacks_is_said_and_cannot_be_accepted(app, service):
    hit = service.publish(qualifications=[GERMAN_ONLY])
    carol = browser(app)
    carol.enter("ACAROL3", country="FR")
    page = carol.get("/work/")
    assert "Unmet requirements" in page.text
    assert "Germany" in page.text
    assert 'action="/work/accept"' not in page.text
    assert carol.submit("/work/accept", hit=hit).status_code == 403
    assert "Deutschland" in carol.get("/work/?lang=de").text


def test_messages_and_qualifications(alice, service):
    service.write("AALICE1", "Thanks <3", "Line one\nLine two")
    service.write("ABOB22", "Not hers", "secret")
    page = alice.get("/work/messages").text
    assert "Thanks &lt;3" in page
    assert "secret" not in page
    automatic = service.qualify("Auto", automatic=True)
    service.qualify("Asked")
    assert "You have been granted" in alice.submit(f"/work/qualification/{automatic}").text
    pending = alice.submit("/work/qualification/3QAsked")
    assert "will decide on it" in pending.text
    assert alice.submit("/work/qualification/3QAsked").status_code == 409
    assert alice.submit("/work/qualification/3QNone").status_code == 404


TEST = (
    '<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2017-11-06/'
    'QuestionForm.xsd"><Question><QuestionIdentifier>q1</QuestionIdentifier><IsRequired>true</IsRequired>'
    "<QuestionContent><Text>Is it {kind}?</Text></QuestionContent><AnswerSpecification><SelectionAnswer>"
    "<Selections><Selection><SelectionIdentifier>a</SelectionIdentifier><Text>Yes</Text></Selection>"
    "<Selection><SelectionIdentifier>b</SelectionIdentifier><Text>No</Text></Selection></Selections>"
    "</SelectionAnswer></AnswerSpecification></Question></QuestionForm>"
)


def test_a_test_is_shown_checked_and_sent(alice, service):
    type_id = service.qualify("German", test=TEST)
    path = f"/work/qualification/{type_id}"
    assert "Is it {kind}?" in alice.get(path).text
    wrong = alice.submit(path, shown=path)
    assert wrong.status_code == 422
    assert "has not been answered" in wrong.text
    assert "will decide on it" in alice.submit(path, shown=path, q1="b").text


SURVEY = TEST.replace(
    "<SelectionAnswer>", "<SelectionAnswer><MaxSelectionCount>3</MaxSelectionCount>"
)
SURVEY = (
    SURVEY.replace("</Selections>", "<OtherSelection/></Selections>")
    .replace(
        "</QuestionForm>",
        "<Question><QuestionIdentifier>zip</QuestionIdentifier><QuestionContent><Text>Zip</Text>"
        "</QuestionContent><AnswerSpecification><FreeTextAnswer><Constraints>"
        '<AnswerFormatRegex regex="^[0-9]{{5}}$" errorText="Five digits, please."/>'
        "</Constraints></FreeTextAnswer></AnswerSpecification></Question></QuestionForm>",
    )
    .format(kind="red")
)


def test_selections_come_back_in_one_answer_and_formats_are_enforced(alice, service):
    page = alice.accept(service.publish(SURVEY))
    assert answer(alice, page, q1="a", zip="1234").status_code == 422
    assert "Five digits, please." in answer(alice, page, q1="a", zip="1234").text
    fields = {"q1": ["a", "b"], "q1-other": "<i>", "zip": "12345"}
    assert answer(alice, page, **fields).status_code == 200
    with service.database.read() as connection:
        xml = connection.scalar(select(assignment.c.answer))
    assert (
        "<Answer><QuestionIdentifier>q1</QuestionIdentifier><SelectionIdentifier>a"
        "</SelectionIdentifier><SelectionIdentifier>b</SelectionIdentifier><OtherSelectionText>"
        "&lt;i&gt;</OtherSelectionText></Answer><Answer><QuestionIdentifier>zip"
        "</QuestionIdentifier><FreeText>12345</FreeText></Answer>"
    ) in xml


# studies


def join(client, service, participant=PARTICIPANT, study="pilot"):
    link = study_link(SITE, service.database.secret(), study)
    return client.get(f"{link}?PROLIFIC_PID={participant}&STUDY_ID=s1&SESSION_ID=x1")


def test_a_participant_works_through_a_study_and_gets_the_code_at_the_end(service):
    for _ in range(3):
        service.publish()
    client = browser(site_of(service, open_entry=False))
    start = join(client, service)
    assert start.url.path == "/work/start"
    assert "First." in start.text
    unwilling = client.submit("/work/start", text="/work/start", country="DE")
    assert unwilling.status_code == 422
    assert "without giving your consent" in unwilling.text
    page = client.submit("/work/start", text="/work/start", country="DE", consent="yes")
    for _ in range(2):
        assert page.url.path.startswith("/work/assignment/")
        for path in ("/work/", "/work/next", "/work/history"):
            assert "C0DE" not in client.get(path).text
        answer(client, page)
        page = client.submit("/work/continue", assignment=page.url.path.rpartition("/")[2])
    assert page.url.path == "/work/next"
    assert "C0DE" in page.text
    assert 'href="https://app.prolific.com/submissions/complete?cc=C0DE"' in page.text
    worker = "APROLIFIC" + PARTICIPANT.upper()
    assert [(who, status) for who, status, _ in stored(service)] == [(worker, "Submitted")] * 2


def test_without_work_there_is_no_code(service):
    client = browser(site_of(service, open_entry=False))
    join(client, service)
    page = client.submit("/work/start", text="/work/start", country="DE", consent="yes")
    assert page.url.path == "/work/next"
    assert "Return submission" in page.text
    assert "C0DE" not in page.text


def test_a_study_ends_when_its_work_is_done(service):
    study = PanelStudy("all", "DONE!", return_url="")
    service.publish()
    client = browser(site_of(service, studies=(study,)))
    join(client, service, study="all")
    page = client.submit("/work/start", text="/work/start", country="DE", consent="yes")
    answer(client, page)
    end = client.submit("/work/continue", assignment=page.url.path.rpartition("/")[2])
    assert "DONE!" in end.text
    assert "prolific" not in end.text


@pytest.mark.parametrize("participant", ["", "AALICE1", "5f3c1a2b4d5e6f708192a3b4'--"])
def test_a_participant_id_that_is_none_is_refused(service, participant):
    assert join(browser(site_of(service)), service, participant).status_code == 403


def test_a_study_that_is_not_offered_is_refused(service):
    assert join(browser(site_of(service, studies=())), service).status_code == 403


# headers, languages, limits


def test_every_page_has_a_strict_policy(alice, service):
    hit = service.publish()
    accepted = alice.accept(hit)
    for page in (
        alice.get("/work/"),
        accepted,
        alice.get("/work/none"),
        alice.post("/work/accept"),
    ):
        policy = dict(
            part.strip().partition(" ")[::2]
            for part in page.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cross-origin-opener-policy"] == "same-origin"
        assert page.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]* src=)|\son\w+=|style=", page.text)
    assert f"frame-src {FRAME}/ {SITE}/submit/" in accepted.headers["content-security-policy"]
    assert "frame-src" not in alice.get("/work/").headers["content-security-policy"]


def test_an_external_question_is_framed_from_its_own_origin_for_that_page_only(alice, service):
    xml = (
        '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
        '2006-07-14/ExternalQuestion.xsd"><ExternalURL>https://lab.example/task?x=1#y</ExternalURL>'
        "<FrameHeight>400</FrameHeight></ExternalQuestion>"
    )
    page = alice.accept(service.publish(xml))
    address, query = frame_of(page)
    assert address.startswith("https://lab.example/task?x=1&assignmentId=")
    assert address.endswith("#y")
    assert query["workerId"] == "AALICE1"
    assert query["turkSubmitTo"].startswith(f"{SITE}/submit/")
    assert (
        f"frame-src https://lab.example {SITE}/submit/" in page.headers["content-security-policy"]
    )
    assert answer(alice, page).status_code == 200


@pytest.mark.parametrize("address", ["https://例え.jp/", "https://xn--r8jz45g.jp:443"])
def test_a_foreign_host_name_is_shown_in_ascii(alice, service, address):
    xml = (
        '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
        f'2006-07-14/ExternalQuestion.xsd"><ExternalURL>{address}</ExternalURL>'
        "<FrameHeight>0</FrameHeight></ExternalQuestion>"
    )
    page = alice.accept(service.publish(xml))
    assert page.status_code == 200
    assert f"frame-src https://xn--r8jz45g.jp {SITE}" in page.headers["content-security-policy"]


def test_our_own_origin_never_gets_the_sandbox_of_another_site(alice, service, monkeypatch):
    monkeypatch.setattr(question_xml, "LOCAL_HOSTS", [urlsplit(SITE).hostname])  # http is accepted
    xml = (
        '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
        f'2006-07-14/ExternalQuestion.xsd"><ExternalURL>{SITE}/work/</ExternalURL>'
        "<FrameHeight>0</FrameHeight></ExternalQuestion>"
    )
    page = alice.accept(service.publish(xml))
    assert "allow-same-origin" not in page.text


def test_a_stored_question_with_an_address_that_is_refused_now_is_explained(
    alice, service, monkeypatch
):
    xml = (
        '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
        '2006-07-14/ExternalQuestion.xsd"><ExternalURL>http://lab.example/task</ExternalURL>'
        "<FrameHeight>0</FrameHeight></ExternalQuestion>"
    )
    with monkeypatch.context() as earlier:
        earlier.setattr(question_xml, "LOCAL_HOSTS", ["lab.example"])  # http is accepted
        hit_id = service.publish(xml)
    for page in (alice.get(f"/work/preview/{hit_id}"), alice.accept(hit_id)):
        assert page.status_code == 409
        assert "its address is not valid" in page.text
        assert "lab.example" not in page.text


def test_languages_are_the_browsers_until_one_is_chosen(app):
    german = Browser(app, base_url=SITE, headers={"accept-language": "de-DE,en;q=0.5"})
    assert '<html lang="de" ' in german.get("/work/").text
    assert '<html lang="en" ' in german.get("/work/?lang=en").text
    assert '<html lang="en" ' in german.get("/work/").text
    assert '<html lang="en" ' in german.get("/work/?lang=cy").text


def test_too_many_requests_have_to_wait_each_worker_for_himself(service):
    rates = RateLimits(
        worker=RateLimit(6, 0.1), address=RateLimit(40, 1), refusals=RateLimit(2, 0.1)
    )
    app = site_of(service, rates=rates)
    alice, bob = browser(app), browser(app)
    alice.enter("AALICE1")
    bob.enter("ABOB22")
    statuses = [alice.get("/work/").status_code for _ in range(7)]
    assert statuses[0] == 200
    assert statuses[-1] == 429
    waiting = alice.get("/work/")
    assert waiting.headers["retry-after"] == "10"
    assert "Please wait 10 seconds" in waiting.text
    assert bob.get("/work/").status_code == 200
    service.clock.advance(10)
    assert alice.get("/work/").status_code == 200


def test_guessing_links_is_slowed_down(service):
    app = site_of(service, rates=RateLimits(refusals=RateLimit(3, 0.01)))
    statuses = [browser(app).get(f"/enter?token=guess{n}").status_code for n in range(5)]
    assert statuses == [403, 403, 403, 429, 429]


def test_an_address_must_be_an_origin_and_the_frame_another_one(service):
    for options in ({"site_url": SITE + "/"}, {"frame_url": FRAME + "/x"}, {"frame_url": SITE}):
        settings = {"site_url": SITE, "frame_url": FRAME} | options
        with pytest.raises(ValueError, match=r"expected|different origins"):
            build_site(service.work, b"x", open_entry=False, **settings)
    with pytest.raises(ValueError, match="same name"):
        site_of(service, studies=(STUDY, STUDY))


def test_behind_tls_the_cookie_is_secure(service):
    app = build_site(
        service.work, b"x" * 32, frame_url="https://frame.test", site_url="https://site.test",
        open_entry=True,
    )  # fmt: skip
    page = TestClient(app, base_url="https://site.test").get("/work/")
    assert "Secure" in page.headers["set-cookie"]
    assert page.headers["set-cookie"].startswith("__Host-")


# the frame


@pytest.fixture
def frames(service):
    app = build_frame(service.work, service.database.secret(), site_url=SITE, frame_url=FRAME)
    return TestClient(app, base_url=FRAME)


def test_the_frame_shows_the_question_as_it_is_with_one_script_before_it(
    alice, frames, service, pages
):
    address, query = frame_of(alice.accept(service.publish()))
    page = frames.get(address)
    assert page.status_code == 200
    script = re.search(r"<script src=[^>]*></script>", page.text)[0]
    assert page.text.replace(script, "") == pages.ordinary
    assert f'data-assignment="{query["assignmentId"]}"' in script
    policy = page.headers["content-security-policy"]
    assert "connect-src 'none'" in policy
    assert f"form-action {SITE}/submit/" in policy
    assert f"frame-ancestors {SITE}" in policy
    assert "https:" not in policy
    assert "set-cookie" not in page.headers


def test_the_frame_opens_with_its_own_token_and_query_only(alice, frames, service, caplog):
    address, query = frame_of(alice.accept(service.publish()))
    path, _, params = address.partition("?")
    with caplog.at_level(logging.WARNING, "mturk.site"):
        for wrong in (path, f"{path}x?{params}", f"{FRAME}/question/x?{params}",
                      address.replace(query["hitId"], "3OTHER"), f"{FRAME}/question/?{params}"):  # fmt: skip
            assert frames.get(wrong).status_code in (403, 404)
    assert path.rpartition("/")[2] not in caplog.text


def test_a_preview_in_the_frame(alice, frames, service):
    hit = service.publish()
    address, query = frame_of(alice.get(f"/work/preview/{hit}"))
    assert query["assignmentId"] == "ASSIGNMENT_ID_NOT_AVAILABLE"
    assert query["turkSubmitTo"] == f"{SITE}/submit/preview"
    assert frames.get(address).status_code == 200
    assert stored(service) == []


def test_the_operator_may_let_questions_load_from_elsewhere(alice, service):
    address, _ = frame_of(alice.accept(service.publish()))
    app = build_frame(
        service.work, service.database.secret(), site_url=SITE, frame_url=FRAME, allow_external=True
    )
    policy = TestClient(app, base_url=FRAME).get(address).headers["content-security-policy"]
    assert "img-src data: blob: http://site.test:8766 https:" in policy
    assert "connect-src 'none'" in policy


def test_a_question_form_is_shown_plainly_and_checked(alice, frames, service):
    page = alice.accept(service.publish(TEST))
    address, query = frame_of(page)
    text = frames.get(address).text
    assert "Is it {kind}?" in text
    assert f'action="{query["turkSubmitTo"]}/mturk/externalSubmit"' in text
    refused = answer(alice, page)
    assert refused.status_code == 422
    assert "has not been answered" in refused.text
    assert answer(alice, page, q1="a").status_code == 200


def test_what_was_earned_is_approved_rewards(alice, service):
    answer(alice, alice.accept(service.publish(auto_approval_delay=60)))
    service.clock.advance(61)
    assert service.work.progress("AALICE1").earned == Decimal("0.25")
    assert re.search(r"Earned</dt><dd>\$0.25</dd>", alice.get("/work/history").text)


GERMAN_ONLY = {"QualificationTypeId": "00000000000000000071", "Comparator": "EqualTo",
               "LocaleValues": [{"Country": "DE"}]}  # fmt: skip


def begin(service, study, country="DE", participant=PARTICIPANT):
    client = browser(site_of(service, studies=(study,), open_entry=False))
    join(client, service, participant, study.name)
    page = client.submit("/work/start", text="/work/start", country=country, consent="yes")
    return client, page


def test_who_may_not_do_the_studys_work_gets_neither_work_nor_code(service):
    service.publish(qualifications=[GERMAN_ONLY])
    _, page = begin(service, PanelStudy("s", "C0DE", group_id="3GROUP0"), country="FR")
    assert page.status_code == 200
    assert "Return submission" in page.text
    assert "C0DE" not in page.text


def test_coming_back_in_another_browser_does_not_begin_a_study_anew(service):
    for _ in range(3):
        service.publish()
    study = PanelStudy("s", "C0DE", group_id="3GROUP0", hits=1)
    client, page = begin(service, study)
    answer(client, page)
    _, again = begin(service, study)
    assert "C0DE" in again.text
    assert len(stored(service)) == 1


def test_what_was_done_for_another_study_does_not_count(service):
    service.publish(title="first")
    client, page = begin(service, PanelStudy("one", "C0DE1", group_id="3GROUP0", hits=1))
    answer(client, page)
    for study in (
        PanelStudy("two", "C0DE2", group_id="3GROUP9", hits=1),
        PanelStudy("any", "C0DE3"),
    ):
        _, second = begin(service, study)
        assert "Return submission" in second.text
        assert "C0DE" not in second.text


def test_a_participant_who_returns_a_task_decides_what_comes_next(service):
    service.publish()
    client, page = begin(service, PanelStudy("s", "C0DE"))
    after = client.submit(
        "/work/return", text=page.url.path, assignment=page.url.path.rpartition("/")[2]
    )
    assert after.url.path == "/work/returned"
    assert 'href="/work/next"' in after.text
    assert [status for _, status, _ in stored(service)] == ["Returned"]


def test_a_forged_session_is_nobody_and_logged(alice, caplog):
    (name,) = [cookie.name for cookie in alice.cookies.jar]
    value = alice.cookies[name]
    alice.cookies.clear()
    with caplog.at_level(logging.WARNING, "mturk.site"):
        page = alice.get("/work/history", headers={"cookie": f"{name}={value[:-1]}"})
    assert page.url.path == "/work/"
    assert "session cookie refused" in caplog.text
    assert value[:20] not in caplog.text
