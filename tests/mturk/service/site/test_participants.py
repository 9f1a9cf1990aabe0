"""Participants of studies: return, binding of ids, quotas, exclusion, signed parameters, revoked links."""

import csv
import io
import json
import re
import time
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.testclient import TestClient

from mturk.cli import main
from mturk.service.site.app import build_site
from mturk.service.site.links import study_link, worker_link
from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import assignment

SITE, FRAME = "http://site.test:8765", "http://site.test:8766"
ANNA, BEN, CARL = (digit * 24 for digit in "abc")
STUDY = PanelStudy("pilot", "C0DE")


class Visitor(TestClient):
    """A browser with its own cookies, which submits the forms of received pages."""

    def token(self, path):
        return re.search(r'name="csrf" value="(\w+)"', self.get(path).text)[1]

    def submit(self, path, *, text="/work/", **fields):
        return self.post(path, data={"csrf": self.token(text), **fields})

    def join(self, service, participant=ANNA, study="pilot", session="x1", **parameters):
        link = study_link(SITE, service.database.secret(), study)
        ids = {"PROLIFIC_PID": participant, "STUDY_ID": "s1"}
        if session:
            ids["SESSION_ID"] = session
        return self.get(link, params=parameters or ids)

    def begin(self, service, participant=ANNA, **options):
        self.join(service, participant, **options)
        return self.submit("/work/start", text="/work/start", country="DE", consent="yes")

    def answer_address(self, page):
        frame = re.search(r'<iframe[^>]* src="([^"]+)"', page.text)[1].replace("&amp;", "&")
        (address,) = parse_qs(urlsplit(frame).query)["turkSubmitTo"]
        return f"{address}/mturk/externalSubmit"

    def finish(self, page):
        self.post(self.answer_address(page), data={"answer": "yes"})
        return self.submit("/work/continue", assignment=page.url.path.rpartition("/")[2])


@pytest.fixture
def visit(service):
    def visitor(*studies):
        app = build_site(
            service.work, service.database.secret(), frame_url=FRAME, site_url=SITE, open_entry=False,
            studies=studies or (STUDY,), now=service.clock.now,
        )  # fmt: skip
        return Visitor(app, base_url=SITE, headers={"accept-language": "en"})

    return visitor


def command(service, *arguments, code=0):
    done = CliRunner().invoke(main, [*arguments, "--db", str(service.database.url.database)])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_who_has_finished_gets_the_code_again_without_a_cookie(service, visit):
    service.publish()
    first = visit()
    assert "C0DE" in first.finish(first.begin(service)).text
    service.publish()  # more work does not matter to those who have received the code
    lost = visit()
    page = lost.join(service)
    assert 'name="country"' not in page.text
    page = lost.submit("/work/start", text="/work/start")
    assert "C0DE" in page.text
    assert "Return submission" not in page.text
    with service.database.read() as connection:
        assert len(connection.execute(assignment.select()).all()) == 1


def test_who_leaves_and_returns_gets_the_code_again_also_without_a_session_of_the_panel(
    service, visit
):
    service.publish()
    browser = visit()
    browser.finish(browser.begin(service, session=""))
    browser.submit("/work/leave", text="/work/history")
    assert "C0DE" in browser.begin(service, session="").text


@pytest.mark.parametrize("session", ["x2", ""])
def test_an_id_in_another_browser_and_session_is_refused_until_released(service, visit, session):
    for _ in range(2):
        service.publish()
    victim, stranger = visit(), visit()
    page = victim.begin(service)
    refused = stranger.join(service, session=session)
    assert refused.status_code == 403
    assert "another session" in refused.text
    start = stranger.get("/work/start")
    assert start.status_code == 403
    assert stranger.get("/work/history").url.path in ("/work/", "/work/start")
    worker = "APROLIFIC" + ANNA.upper()
    assert "can enter pilot again" in command(service, "release", worker, "--study", "pilot")
    assert "Signed in" not in victim.get(page.url.path).text
    assert stranger.begin(service, session=session or "x2").url.path.startswith("/work/assignment/")
    assert victim.join(service).status_code == 403  # the binding has moved
    assert "not bound" in command(service, "release", worker, "--study", "other", code=2)


def test_the_country_of_a_participant_is_not_shown_to_strangers(service, visit):
    other = PanelStudy("other", "C1")
    visit(STUDY, other).begin(service)
    assert " selected" not in visit(STUDY, other).join(service, study="other", session="y").text


def test_an_id_of_another_study_shows_and_changes_nothing_there(service, visit):
    """Ids of a panel prove nothing in a study that the participant has not entered yet."""
    one, two = PanelStudy("one", "C1"), PanelStudy("two", "C2")
    for _ in range(3):
        service.publish(title="Secret title")
    victim, stranger = visit(one, two), visit(one, two)
    page = victim.finish(victim.begin(service, study="one"))
    letter = {"csrf": victim.token("/work/messages"), "subject": "Hello", "text": "My name"}
    victim.post("/work/messages", data=letter)
    service.write("APROLIFIC" + ANNA.upper(), "Bonus", "For your good work")
    command(service, "reply", "1", "Dear Anna")
    assert stranger.begin(service, study="two", session="guess").url.path.startswith(
        "/work/assignment/"
    )
    assert "Secret title" not in stranger.get("/work/history").text
    messages = stranger.get("/work/messages").text
    assert "Dear Anna" not in messages
    assert "good work" not in messages
    path = page.url.path
    assert stranger.get(path).status_code == 404
    fields = {"assignment": path.rpartition("/")[2], "csrf": stranger.token("/work/history")}
    for address in ("/work/return", "/work/continue"):
        assert stranger.post(address, data=fields).status_code == 404
    assert victim.get(path).status_code == 200
    assert "Secret title" in victim.get("/work/history").text
    assert "Dear Anna" in victim.get("/work/messages").text


def test_an_id_of_another_study_requests_no_qualification(service, visit):
    one, two = PanelStudy("one", "C1"), PanelStudy("two", "C2")
    service.publish(places=9)
    type_id = service.qualify("Listening", automatic=True)
    victim, stranger = visit(one, two), visit(one, two)
    victim.begin(service, study="one")
    assert "Listening" in victim.get("/work/qualifications").text
    stranger.begin(service, study="two", session="guess")
    assert "Listening" not in stranger.get("/work/qualifications").text
    token = stranger.token("/work/history")
    assert stranger.post(f"/work/qualification/{type_id}", data={"csrf": token}).status_code == 404


def test_a_quota_counts_participants_and_not_entries(service, visit):
    service.publish(places=9)
    study = PanelStudy("pilot", "C0DE", participants=2)
    anna = visit(study)
    anna.finish(anna.begin(service, ANNA))
    visit(study).begin(service, BEN, session="x2")
    full = visit(study).join(service, CARL, session="x3")
    assert full.status_code == 409
    assert "already has all its participants" in full.text
    assert "C0DE" in visit(study).begin(service, ANNA).text


def test_the_last_place_goes_to_the_first_who_confirms(service, visit):
    study = PanelStudy("pilot", "C0DE", participants=1)
    anna, ben = visit(study), visit(study)
    assert anna.join(service, ANNA).status_code == ben.join(service, BEN).status_code == 200
    token = ben.token("/work/start")
    anna.submit("/work/start", text="/work/start", country="DE", consent="yes")
    fields = {"csrf": token, "country": "DE", "consent": "yes"}
    assert ben.post("/work/start", data=fields).status_code == 409


def test_participants_of_another_study_are_visible_and_can_be_excluded(service, visit):
    for _ in range(3):
        service.publish()
    one = PanelStudy("one", "C1", hits=1)
    two = PanelStudy("two", "C2", hits=1, exclude=["one"])
    three = PanelStudy("three", "C3", hits=1)
    anna = visit(one, two, three)
    anna.finish(anna.begin(service, study="one"))
    refused = anna.join(service, study="two", session="x2")
    assert refused.status_code == 403
    assert "related study" in refused.text
    assert "C3" in anna.finish(anna.begin(service, study="three", session="x3")).text
    rows = list(csv.DictReader(io.StringIO(command(service, "participants"))))
    assert [(row["study"], row["study_id"], row["session_id"], row["n_studies"]) for row in rows] == [
        ("one", "s1", "x1", "2"), ("three", "s1", "x3", "2"),
    ]  # fmt: skip
    assert all(row["assignment_id"] and row["status"] == "Submitted" for row in rows)
    assert "'four'; studies: one, three" in command(
        service, "participants", "--study", "four", code=2
    )
    with pytest.raises(ValueError, match="'s' excludes unknown studies: onne"):
        visit(PanelStudy("s", "C", exclude=["one", "onne"]))


def test_a_session_that_was_left_is_ended_on_the_server(service, visit):
    service.publish()
    browser, copy = visit(), visit()
    browser.begin(service)
    copy.cookies.set("mturk-worker", browser.cookies["mturk-worker"])
    assert "Signed in as" in copy.get("/work/history").text
    browser.submit("/work/leave", text="/work/history")
    assert "Signed in as" not in copy.get("/work/history").text


def test_revoked_and_expired_links_are_refused(service, visit):
    secret, now = service.database.secret(), service.clock.now()
    personal = worker_link(SITE, secret, "ABOB", expires=now + 10)
    recruiting = study_link(SITE, secret, "pilot", expires=now + 10)
    ids = f"?PROLIFIC_PID={ANNA}"
    assert visit().get(recruiting + ids).status_code == visit().get(personal).status_code == 200
    for link in (personal, recruiting + ids):
        assert "1 revoked" in command(service, "revoke", link)
        assert visit().get(link).status_code == 403
    for link in ("https://site.test/x", f"{SITE}/join/WyJwaWxvdCJd.x"):
        command(service, "revoke", link, code=2)
    assert visit().get(study_link(SITE, secret, "pilot", expires=now) + ids).status_code == 403


@pytest.fixture
def signed(tmp_path):
    """A study that requires signatures, and a function that signs parameters."""
    key, other = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [{**public, "kid": "k1", "alg": "RS256", "use": "sig"}]}))

    def sign(*, by=key, algorithm="RS256", **changes):
        ids = {"PROLIFIC_PID": ANNA, "STUDY_ID": "s1", "SESSION_ID": "x1"}
        claims = {"aud": SITE, "exp": time.time() + 60, "prolific": ids} | changes
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, by, algorithm, headers={"kid": "k1"})

    return PanelStudy("pilot", "C0DE", prolific_keys=str(file)), sign, other


def test_where_keys_are_configured_only_signed_parameters_enter(service, visit, signed):
    study, sign, other = signed
    assert visit(study).join(service).status_code == 403
    for wrong in (
        sign(by=other), sign(aud="https://other.example"), sign(exp=time.time() - 60), sign(exp=None),
        sign(aud=None), sign(prolific=None), sign(by="k" * 32, algorithm="HS256"),
        sign(by="", algorithm="none"), "x",
    ):  # fmt: skip
        page = visit(study).join(service, PROLIFIC_PID=ANNA, prolific_token=wrong)
        assert page.status_code == 403
    page = visit(study).join(service, PROLIFIC_PID=BEN, prolific_token=sign())
    assert ANNA in page.text
    assert "APROLIFIC" not in page.text


def test_a_key_file_without_keys_is_refused(tmp_path):
    (tmp_path / "keys.json").write_text("{}")
    for name in ("keys.json", "none.json"):
        with pytest.raises(ValueError, match=r"prolific_keys is .*expected a file of public keys"):
            PanelStudy("pilot", "C0DE", prolific_keys=str(tmp_path / name))
