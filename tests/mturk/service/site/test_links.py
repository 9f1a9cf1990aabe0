"""Tokens that were modified, or have another purpose or secret, are refused."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from itsdangerous import URLSafeSerializer

from mturk.service.site import links

SECRET, OTHER = b"s" * 32, b"o" * 32
SITE, FRAME = "https://site.example", "https://frame.example"


def token_of(link):
    return parse_qs(urlsplit(link).query)["token"][0]


def test_a_personal_link_names_its_worker_until_it_expires():
    for_ever = token_of(links.worker_link(SITE, SECRET, "AALICE1"))
    assert links.read_worker_token(SECRET, for_ever, now=1e12) == "AALICE1"
    short = token_of(links.worker_link(SITE, SECRET, "AALICE1", expires=100.0))
    assert links.read_worker_token(SECRET, short, now=99.9) == "AALICE1"
    with pytest.raises(links.LinkError, match="expired"):
        links.read_worker_token(SECRET, short, now=100.0)


def test_nobody_is_invited_under_an_id_of_recruited_participants():
    recruited = links.recruited_worker("5f3c1a2b4d5e6f708192a3b4")
    with pytest.raises(ValueError, match="reserved for recruited participants"):
        links.worker_link(SITE, SECRET, recruited)


@pytest.mark.parametrize("participant", ["", "5f3c", "5f3c1a2b4d5e6f708192a3b4\n", "x" * 24])
def test_a_participant_is_24_hexadecimal_digits(participant):
    with pytest.raises(links.LinkError, match="24 hexadecimal digits"):
        links.recruited_worker(participant)


def test_any_changed_character_makes_a_token_invalid():
    token = token_of(links.worker_link(SITE, SECRET, "AALICE1"))
    for index in range(len(token) - 1):  # the last character's lowest bits carry nothing
        changed = token[:index] + ("A" if token[index] != "A" else "B") + token[index + 1 :]
        with pytest.raises(links.LinkError):
            links.read_worker_token(SECRET, changed, now=0)


def test_a_token_of_another_purpose_or_secret_is_refused():
    entering = token_of(links.worker_link(SITE, SECRET, "AALICE1"))
    submitting = links.submit_address(
        SITE, SECRET, assignment_id="3X", worker_id="AALICE1", language="en"
    ).rpartition("/")[2]
    assert links.read_submit_token(SECRET, submitting) == ("3X", "AALICE1", "en")
    with pytest.raises(links.LinkError):
        links.read_submit_token(OTHER, submitting)
    for token in (entering, "", "x", "a.b", "é.ü"):
        with pytest.raises(links.LinkError):
            links.read_submit_token(SECRET, token)
        with pytest.raises(links.LinkError):
            links.read_frame_token(SECRET, token)
        with pytest.raises(links.LinkError):
            links.read_study_token(SECRET, token, now=0)


def test_a_frame_is_opened_with_the_query_that_requesters_pages_expect():
    view = links.QuestionView("3HIT", "3ASSIGNMENT", "AALICE1", "de")
    link = urlsplit(links.frame_link(FRAME, SITE, SECRET, view))
    query = {name: values[0] for name, values in parse_qs(link.query).items()}
    assert set(query) == {"assignmentId", "hitId", "workerId", "turkSubmitTo"}
    assert (query["assignmentId"], query["hitId"], query["workerId"]) == (
        "3ASSIGNMENT", "3HIT", "AALICE1",
    )  # fmt: skip
    assert query["turkSubmitTo"].startswith(f"{SITE}/submit/")
    assert links.read_frame_token(SECRET, link.path.rpartition("/")[2]) == view


def test_a_preview_has_no_address_that_takes_answers():
    view = links.QuestionView("3HIT", links.NOT_AVAILABLE, "AALICE1", "de")
    assert view.parameters(SITE, SECRET)["turkSubmitTo"] == f"{SITE}/submit/preview"


@pytest.mark.parametrize("values", [["AÄ1", None], ["x" * 60, "y", "de"]])
def test_tokens_are_those_of_itsdangerous(values):
    oracle = URLSafeSerializer(SECRET, salt="mturk.frame")
    token = links._sign(SECRET, "frame", values)
    assert oracle.loads(token) == values
    assert links._verify(SECRET, "frame", oracle.dumps(values), len(values)) == values
    assert len(values[0]) > 9 or token == oracle.dumps(values)  # longer ones are compressed there


@pytest.mark.parametrize("worker", ["AALICE1", "A b&ä", "a-b_c.d"])
@pytest.mark.parametrize("assignment", ["3ASSIGNMENT", links.NOT_AVAILABLE])
def test_the_address_of_a_question_has_its_parameters(worker, assignment):
    view = links.QuestionView("3HIT", assignment, worker, "de")
    query = urlsplit(links.frame_link(FRAME, SITE, SECRET, view)).query
    assert query == urlencode(view.parameters(SITE, SECRET))
