"""Consent, withdrawal, questions before a study, and the codes for its ends."""

import csv
import hashlib
import io
import json
import threading

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from bws.base.problems import InputError
from mturk.answers import WITHDRAWN_ANSWER
from mturk.cli import main
from mturk.service.site.studies import PanelStudy, read_studies
from mturk.service.store.schema import (
    assignment,
    consent,
    consent_wording,
    hit,
    participation,
    worker,
)
from tests.mturk.service.site.questions import read_questions
from tests.mturk.service.site.test_browser import our_question
from tests.mturk.service.site.test_participants import (
    ANNA,
    BEN,
    CARL,
    command,
    visit,  # noqa: F401 - a fixture
)
from tests.nightly import first_in_ci

STUDY = PanelStudy(
    "pilot", "C0DE", information={"en": "About you.\n\nAbout us.", "de": "Über uns."}
)
AGE = {"id": "age", "minimum": 18}
DIALECT = {
    "id": "dialect", "type": "choice", "text": {"en": "Do you speak a dialect?"}, "accept": ["yes"],
    "choices": [{"value": "yes", "en": "Yes", "de": "Ja"}, {"value": "no", "en": "No", "de": "Nein"}],
}  # fmt: skip


def asking(*questions, **settings):
    return PanelStudy(
        "pilot", "C0DE", screened_out_code="SCREEN", country=False,
        questions=read_questions(questions), **settings,
    )  # fmt: skip


def rows(service, table):
    with service.database.read() as connection:
        return connection.execute(select(table)).all()


def listed(service):
    return list(csv.DictReader(io.StringIO(command(service, "participants"))))


def test_a_consent_is_recorded_with_its_wording(service, visit):  # noqa: F811
    service.publish()
    anna, ben = visit(STUDY), visit(STUDY)
    anna.begin(service)
    ben.begin(service, BEN, session="x2")
    german = visit(STUDY)
    german.headers["accept-language"] = "de"
    german.begin(service, CARL, session="x3")
    first, second, third = rows(service, consent)
    assert (first.study, first.version, first.language) == ("pilot", "1", "en")
    assert first.at == service.clock.now()
    assert first.digest == second.digest != third.digest
    assert third.language == "de"
    wordings = {row.digest: row.text for row in rows(service, consent_wording)}
    assert len(wordings) == 2
    for digest, text in wordings.items():
        assert hashlib.sha256(text.encode()).hexdigest() == digest
    shown = visit(STUDY).join(service, "d" * 24, session="x4").text
    for paragraph in wordings[first.digest].split("\n\n"):
        assert paragraph in shown
    row = listed(service)[0]
    assert row["consent_digest"] == first.digest
    assert (row["consent_version"], row["consent_language"], row["withdrawn"]) == ("1", "en", "")
    assert row["participant_id"] == ANNA


def test_a_changed_wording_is_asked_for_again_and_only_once(service, visit):  # noqa: F811
    for _ in range(3):
        service.publish()
    anna = visit(STUDY)
    anna.begin(service)
    changed = PanelStudy("pilot", "C0DE", information=STUDY.information, version="2")
    again = visit(changed)
    page = again.join(service)
    assert 'name="consent"' in page.text
    assert 'name="country"' not in page.text
    refused = again.submit("/work/start", text="/work/start")
    assert refused.status_code == 422
    assert again.submit("/work/start", text="/work/start", consent="yes").status_code == 200
    assert [row.version for row in rows(service, consent)] == ["1", "2"]
    assert 'name="consent"' not in visit(changed).join(service).text


def test_the_page_before_another_study_names_a_signed_in_participant_once(service, visit):  # noqa: F811
    service.publish()
    anna = visit(STUDY, PanelStudy("second", "C0DE2"))
    anna.begin(service)
    page = anna.join(service, study="second").text
    assert f"You are signed in as {ANNA}." in page
    assert "signs you in" not in page
    assert "will be signed out" not in page
    ben = anna.join(service, BEN, study="second", session="x2").text
    assert f"This link signs you in as {BEN}." in ben
    assert f"You are currently signed in as {ANNA} and will be signed out." in ben


def test_without_consent_nothing_is_stored(service, visit):  # noqa: F811
    study = PanelStudy("pilot", "C0DE", no_consent_code="NOPE")
    anna = visit(study)
    anna.join(service)
    page = anna.submit("/work/start", text="/work/start", decline="yes")
    assert "NOPE" in page.text
    assert "cc=NOPE" in page.text
    assert "C0DE" not in page.text
    assert "NOPE" in anna.submit("/work/start", text="/work/start", decline="yes").text  # reloaded
    assert not rows(service, participation)
    assert not rows(service, worker)
    without_code = visit()
    without_code.join(service)
    page = without_code.submit("/work/start", text="/work/start", decline="yes")
    assert "Return submission" in page.text


def withdrawn(service, visitor):
    """Submit a task, accept another one and withdraw; return the last page."""
    for _ in range(3):
        service.publish()
    page = visitor.finish(visitor.begin(service))
    assert "/work/withdraw" in page.text
    confirmation = visitor.get("/work/withdraw")
    assert "cannot be undone" in confirmation.text
    return visitor.submit("/work/withdraw", text="/work/withdraw")


def test_who_withdraws_leaves_no_answers_but_is_paid(service, visit):  # noqa: F811
    anna = visit(STUDY)
    page = withdrawn(service, anna)
    assert "answers in this study were deleted" in page.text
    assert "C0DE" in page.text
    assert "cc=C0DE" in page.text
    assert "Return submission" not in page.text
    done, begun = rows(service, assignment)
    assert (done.status, done.answer) == ("Submitted", None)
    assert begun.status == "Returned"
    assert sum(row.withdrawn for row in rows(service, hit)) == 1
    [record] = rows(service, consent)
    assert record.withdrawn == service.clock.now()
    assert rows(service, participation)[0].outcome == "withdrawn"
    service.clock.advance(86_401)
    service.work.offers("AX")  # automatic approval
    assert rows(service, assignment)[0].status == "Approved"


@pytest.mark.parametrize("code", ["", "OUT"])
def test_who_has_withdrawn_gets_the_code_again_and_can_write(service, visit, code):  # noqa: F811
    study = PanelStudy("pilot", "C0DE", withdrawn_code=code)
    anna = visit(study)
    withdrawn(service, anna)
    for visitor in (anna, visit(study)):
        start = visitor.join(service)
        assert 'name="consent"' not in start.text
        if visitor is not anna:
            start = visitor.submit("/work/start", text="/work/start")
        assert (code or "C0DE") in start.text
        assert 'href="/work/messages"' in start.text
        for path in ("/work/next", "/work/withdraw", "/work/"):
            assert "You have withdrawn" in visitor.get(path).text
        fields = {
            "csrf": visitor.token("/work/messages"),
            "subject": "Pay",
            "text": "Is it counted?",
        }
        sent = visitor.post("/work/messages", data=fields)
        assert "has been sent" in sent.text
    assert len(rows(service, assignment)) == 2  # no further task


def test_who_withdraws_before_submitting_is_not_told_of_pay(service, visit):  # noqa: F811
    service.publish()
    anna = visit(STUDY)
    anna.begin(service)
    page = anna.submit("/work/withdraw", text="/work/history").text
    assert "not submitted any task" in page
    assert "Return submission" in page
    assert "C0DE" not in page


def test_withdrawn_answers_are_not_in_the_files_of_the_database(service, visit):  # noqa: F811
    service.publish()
    anna = visit(STUDY)
    page = anna.begin(service)
    anna.finish(page)
    secret = "MY SECRET ANSWER"
    with service.database.write() as connection:
        connection.execute(assignment.update().values(answer=secret * 300))
    anna.submit("/work/withdraw", text="/work/history")
    service.database.close()
    path = service.database.url.database
    for suffix in ("", "-wal"):
        try:
            with open(f"{path}{suffix}", "rb") as file:
                assert secret.encode() not in file.read()
        except FileNotFoundError:
            assert suffix


def test_who_has_withdrawn_can_come_back_when_released(service, visit):  # noqa: F811
    withdrawn(service, visit(STUDY))
    command(service, "release", ANNA, "--study", "pilot")
    again = visit(STUDY)
    assert again.begin(service, session="x9").url.path.startswith("/work/assignment/")
    assert [row.outcome for row in rows(service, participation)] == ["withdrawn", None]


@pytest.mark.parametrize("number", first_in_ci(range(6), 2))
def test_no_answer_survives_a_withdrawal_during_a_submission(service, visit, number):  # noqa: F811
    service.publish()
    anna, copy = visit(STUDY), visit(STUDY)
    address = anna.answer_address(anna.begin(service))
    token = anna.token("/work/withdraw")
    statuses = []

    def submit():
        statuses.append(copy.post(address, data={"answer": "private"}).status_code)

    def withdraw():
        statuses.append(anna.post("/work/withdraw", data={"csrf": token}).status_code)

    threads = [
        threading.Thread(target=act) for act in (submit, withdraw)[:: 1 if number % 2 else -1]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    submit()  # a page that is still open
    assert set(statuses) <= {200, 410}
    (row,) = rows(service, assignment)
    assert row.status in ("Submitted", "Returned")
    assert "private" not in (row.answer or "")


def test_the_requester_withdraws_a_participant(service, visit):  # noqa: F811
    service.publish()
    anna = visit(STUDY)
    anna.finish(anna.begin(service))
    output = command(service, "withdraw", ANNA, "--study", "pilot", "--yes", "--json")
    assert json.loads(output) == {"deleted": 1}
    with service.database.read() as connection:
        connection.execute(select(assignment)).all()  # a snapshot that needs the log
        arguments = ["withdraw", ANNA, "--study", "pilot", "--yes", "--db"]
        again = CliRunner().invoke(main, [*arguments, str(service.database.url.database)])
    assert "the data are deleted, but remain in" in again.stderr
    assert rows(service, assignment)[0].answer is None
    assert "Signed in" not in anna.get("/work/").text
    problem = command(service, "withdraw", BEN, "--study", "pilot", "--yes", code=2)
    assert f"{BEN} did not take part in study 'pilot'" in problem
    assert [row["outcome"] for row in listed(service)] == ["withdrawn"]


def test_questions_are_asked_after_the_consent_and_stored(service, visit):  # noqa: F811
    service.publish()
    anna = visit(asking(AGE, DIALECT, {"id": "first_language", "required": False}))
    page = anna.join(service).text
    assert page.index('name="consent"') < page.index('name="question-age"')
    assert "How old are you (in years)?" in page
    assert 'name="country"' not in page
    assert "your country" not in page
    given = {"consent": "yes", "question-age": "old", "question-dialect": "perhaps"}
    refused = anna.submit("/work/start", text="/work/start", **given)
    assert refused.status_code == 422
    assert "whole number" in refused.text
    assert 'value="old"' in refused.text
    assert not rows(service, participation)
    given |= {"question-age": " 18 ", "question-dialect": "yes"}
    assert "/work/assignment/" in str(anna.submit("/work/start", text="/work/start", **given).url)
    assert rows(service, participation)[0].answers == {
        "age": "18", "dialect": "yes", "first_language": "",
    }  # fmt: skip
    row = listed(service)[0]
    assert (row["question_age"], row["question_dialect"]) == ("18", "yes")
    anna.submit("/work/withdraw", text="/work/history")
    assert rows(service, participation)[0].answers is None


@pytest.mark.parametrize(
    ("accepted", "path", "stored"),
    [("de", "/work/assignment/", {"first_language": "de"}), ("nl", "/work/next", None)],
)
def test_a_first_language_is_chosen_and_screened_by_its_code(
    service, visit, accepted, path, stored  # noqa: F811
):  # fmt: skip
    service.publish()
    anna = visit(asking({"id": "first_language", "accept": [accepted]}))
    assert '<option value="de">German</option>' in anna.join(service).text
    answer = {"consent": "yes", "question-first_language": "Klingonese"}
    assert anna.submit("/work/start", text="/work/start", **answer).status_code == 422
    answer["question-first_language"] = "de"
    page = anna.submit("/work/start", text="/work/start", **answer)
    assert page.url.path.startswith(path)
    assert [row.answers for row in rows(service, participation)] == [stored]


def test_another_session_in_the_same_browser_is_no_second_try(service, visit):  # noqa: F811
    service.publish()
    anna = visit(asking(AGE, participants=1))
    anna.join(service)
    fields = {"consent": "yes", "question-age": "17"}
    anna.submit("/work/start", text="/work/start", **fields)
    anna.submit("/work/leave", text="/work/history")
    page = anna.join(service, session="x2")
    assert "question-age" not in page.text
    assert "SCREEN" in anna.submit("/work/start", text="/work/start").text
    [row] = rows(service, participation)
    assert (row.outcome, row.answers) == ("screened_out", None)


def test_who_is_released_after_the_screening_needs_a_free_place(service, visit):  # noqa: F811
    service.publish()
    study = asking(AGE, participants=1)
    anna, ben = visit(study), visit(study)
    for visitor, participant, session, age in ((anna, ANNA, "x1", "17"), (ben, BEN, "x2", "18")):
        visitor.join(service, participant, session=session)
        fields = {"consent": "yes", "question-age": age}
        visitor.submit("/work/start", text="/work/start", **fields)
    command(service, "release", ANNA, "--study", "pilot")
    assert visit(study).join(service).status_code == 409


def test_answers_cannot_command_a_terminal(service, visit):  # noqa: F811
    anna = visit(asking({"id": "job", "text": {"en": "What is your job?"}}))
    anna.join(service)
    fields = {"consent": "yes", "question-job": "clerk\x1b[2J"}
    assert anna.submit("/work/start", text="/work/start", **fields).status_code == 422
    fields["question-job"] = "עובדת 🙂\u200e"
    anna.submit("/work/start", text="/work/start", **fields)
    assert listed(service)[0]["question_job"] == "עובדת 🙂\u200e"


@pytest.mark.parametrize(
    "answers", [{"age": "17", "dialect": "yes"}, {"age": "30", "dialect": "no"}]
)
def test_who_is_screened_out_gets_its_code_and_no_second_try(service, visit, answers):  # noqa: F811
    hit_id = service.publish()
    study = asking(AGE, DIALECT, participants=1)
    anna = visit(study)
    anna.join(service)
    fields = {f"question-{name}": answer for name, answer in answers.items()}
    page = anna.submit("/work/start", text="/work/start", consent="yes", **fields)
    assert "SCREEN" in page.text
    assert "C0DE" not in page.text
    assert rows(service, participation)[0].answers is None
    assert rows(service, participation)[0].outcome == "screened_out"
    token = anna.token("/work/history")
    anna.post("/work/accept", data={"csrf": token, "hit": hit_id})
    assert not rows(service, assignment)
    again = visit(study)
    assert 'name="question-age"' not in again.join(service).text
    assert "SCREEN" in again.submit("/work/start", text="/work/start").text
    ben = visit(study)  # the only place is still free
    ben.join(service, BEN, session="x2")
    good = {"question-age": "30", "question-dialect": "yes"}
    page = ben.submit("/work/start", text="/work/start", consent="yes", **good)
    assert "/work/assignment/" in str(page.url)


def test_the_time_of_a_study_ends(service, visit):  # noqa: F811
    for _ in range(3):
        service.publish()
    study = PanelStudy("pilot", "C0DE", minutes=10, timed_out_code="LATE")
    anna = visit(study)
    page = anna.begin(service)
    service.clock.advance(599)
    page = anna.finish(page)
    assert page.url.path.startswith("/work/assignment/")
    service.clock.advance(2)
    page = anna.finish(page)  # a task that was begun in time counts
    assert "LATE" in page.text
    assert [row.status for row in rows(service, assignment)] == ["Submitted", "Submitted"]
    assert "LATE" in visit(study).begin(service).text
    assert rows(service, participation)[0].outcome == "timed_out"


def test_who_returns_a_task_after_the_time_gets_the_code(service, visit):  # noqa: F811
    for _ in range(3):
        service.publish()
    anna = visit(PanelStudy("pilot", "C0DE", minutes=10, timed_out_code="LATE"))
    page = anna.finish(anna.begin(service))
    service.clock.advance(601)
    assert "LATE" not in page.text
    page = anna.submit("/work/return", assignment=page.url.path.rpartition("/")[2])
    assert "LATE" in page.text
    assert rows(service, participation)[0].outcome == "timed_out"


@pytest.mark.parametrize("minutes", [1, 30])
def test_the_time_of_a_study_is_stated_and_checked_against_the_expected_one(
    service, visit, caplog, minutes  # noqa: F811
):  # fmt: skip
    for _ in range(3):
        service.publish(our_question())
    study = PanelStudy("pilot", "C0DE", minutes=minutes, timed_out_code="LATE", hits=3)
    page = visit(study).join(service).text
    assert "consists of 3 tasks and takes about 3\u00a0minutes" in page
    assert f"Time for the whole study: {minutes}\u00a0minute" in page
    assert any("before the expected 3 minutes" in one for one in caplog.messages) == (minutes < 3)


def test_who_has_finished_in_time_gets_the_completion_code_later(service, visit):  # noqa: F811
    for _ in range(3):
        service.publish()
    study = PanelStudy("pilot", "C0DE", minutes=10, timed_out_code="LATE", hits=1)
    anna = visit(study)
    page = anna.begin(service)
    service.clock.advance(590)
    assert "C0DE" in anna.finish(page).text
    service.clock.advance(1000)
    assert "C0DE" in anna.get("/work/next").text
    assert rows(service, participation)[0].outcome == "finished"


def test_impossible_numbers_are_corrected_and_do_not_screen_out(service, visit):  # noqa: F811
    service.publish()
    year = {"id": "year", "type": "number", "text": {"en": "Year?"}, "range": [1900, 2030]}
    anna = visit(
        asking({**AGE, "maximum": 99}, year, {"id": "n", "type": "number", "text": {"en": "N?"}})
    )
    anna.join(service)

    def start(age, year):
        given = {"question-age": age, "question-year": year, "question-n": "999999999"}
        return anna.submit("/work/start", text="/work/start", consent="yes", **given)

    for age in ("300", "0", "-5"):
        refused = start(age, "2000")
        assert refused.status_code == 422
        assert "Please enter a whole number from 1 to 120." in refused.text
    assert "Please enter a whole number from 1900 to 2030." in start("20", "20").text
    assert not rows(service, participation)
    assert "/work/assignment/" in str(start("20", "1999").url)
    assert listed(service)[0]["question_year"] == "1999"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ('[[a.questions]]\nid = "Age"', "4: a.questions.1.id is 'Age'; expected lower-case letters"),
        ('[[a.questions]]\nid = "x"', "3: a.questions.1.text is missing; expected texts by language"),
        ('[[a.questions]]\nid = "age"\nwhy = 1', "5: unknown key a.questions.1.why; expected"),
        ('[[a.questions]]\nid = "age"\ntype = "date"', "5: a.questions.1.type is 'date'; expected 'choice'"),
        ('[[a.questions]]\nid = "age"\nminimum = "18"', "a.questions.1.minimum is '18'; expected an int"),
        ('[[a.questions]]\nid = "first_language"\nmaximum = 3', "maximum belongs to type number"),
        ('[[a.questions]]\nid = "age"\n[[a.questions]]\nid = "age"', "3: a.questions has the id 'age' twice"),
        ('[[a.questions]]\nid = "age"\ntype = "choice"', "choices belong to type choice"),
        ('[[a.questions]]\nid = "first_language"\naccept = ["German"]', "expected ISO 639 codes"),
        ('[[a.questions]]\nid = "age"\nminimum = 9\nmaximum = 8', "minimum is 9; expected at most the"),
        ('[[a.questions]]\nid = "age"\nrange = [3]', "range is [3]; expected two integers such as [1, 120]"),
        ('[[a.questions]]\nid = "age"\nrange = [9, 8]', "range is [9, 8]; expected two integers"),
        ('[[a.questions]]\nid = "age"\nminimum = 150', "minimum is 150; expected a number in the range"),
        ('[[a.questions]]\nid = "first_language"\nrange = [1, 2]', "range belongs to type number"),
        ('[[a.questions]]\nid = "x"\ntext = { de = "?" }\nchoices = 3', "choices is 3; expected a list"),
        (
            '[[a.questions]]\nid = "x"\ntext = { de = "?" }\ntype = "choice"\n'
            'choices = [{ value = "y", de = "Ja" }, { value = "y", de = "Nein" }]',
            "7: a.questions.1.choices has a value twice",
        ),
        ("minutes = 0", "3: a.minutes is 0; expected 1 or more"),
        ('country = "no"', "3: a.country is 'no'; expected true or false"),
    ],
)  # fmt: skip
def test_faults_of_the_settings_are_named(tmp_path, settings, problem):
    path = tmp_path / "studies.toml"
    path.write_text(f'[a]\ncompletion_code = "C"\n{settings}\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_studies(str(path))
    assert problem in str(caught.value)


def test_choices_accept_only_their_values(tmp_path):
    path = tmp_path / "studies.toml"
    path.write_text(
        '[a]\ncompletion_code = "C"\n[[a.questions]]\nid = "x"\ntype = "choice"\naccept = ["maybe"]\n'
        'text = { de = "?" }\nchoices = [{ value = "yes", de = "Ja" }]\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="expected values of the choices"):
        read_studies(str(path))


def test_a_withdrawn_answer_is_not_an_empty_one():
    from mturk.answers import from_xml, to_xml

    assert from_xml(WITHDRAWN_ANSWER) == from_xml(to_xml([])) == []
    assert to_xml([]) != WITHDRAWN_ANSWER
