"""The session cookie: signed, expiring, and inaccessible to scripts and other sites."""

import time

import pytest
from starlette.responses import Response

from mturk.service.site import sessions
from mturk.service.site.sessions import Session

SECRET = b"s" * 32


def cookie(session, *, secure):
    response = Response()
    sessions.write_session(response, session, SECRET, secure=secure)
    return response.headers["set-cookie"]


def jar(header):
    name, _, value = header.partition(";")[0].partition("=")
    return {name: value}


@pytest.mark.parametrize("secure", [False, True])
def test_a_session_comes_back_as_it_was(secure):
    session = Session(worker="AALICE1", study="pilot", language="de", automatic=True)
    header = cookie(session, secure=secure)
    assert sessions.read_session(jar(header), SECRET, secure=secure) == session
    attributes = {part.strip().lower() for part in header.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/"} <= attributes
    assert ("secure" in attributes) is secure
    assert header.startswith("__Host-") is secure


@pytest.mark.parametrize(
    ("seconds", "valid"),
    [(-61, False), (-59, True), (30 * 86_400 - 1, True), (30 * 86_400 + 2, False)],
)
def test_a_session_expires_but_tolerates_a_minute_of_clock_skew(monkeypatch, seconds, valid):
    good = jar(cookie(Session(worker="AALICE1"), secure=False))
    at = int(time.time()) + seconds
    monkeypatch.setattr(time, "time", lambda: at)
    assert (sessions.read_session(good, SECRET, secure=False) is not None) is valid


def test_a_changed_or_foreign_cookie_is_nobody():
    good = jar(cookie(Session(worker="AALICE1"), secure=False))
    ((name, value),) = good.items()
    assert sessions.read_session({name: value + "x"}, SECRET, secure=False) is None
    assert sessions.read_session({name: value}, b"other", secure=False) is None
    assert sessions.read_session({}, SECRET, secure=False) is None
    assert sessions.read_session(good, SECRET, secure=True) is None


def test_a_form_token_belongs_to_one_session_and_secret():
    mine, other = Session(), Session()
    token = sessions.csrf_token(mine, SECRET)
    assert sessions.csrf_matches(mine, SECRET, token)
    for session, secret, given in (
        (other, SECRET, token), (mine, b"other", token), (mine, SECRET, ""), (mine, SECRET, "ü"),
    ):  # fmt: skip
        assert not sessions.csrf_matches(session, secret, given)
