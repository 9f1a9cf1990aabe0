"""Qualification tests: file, XML, and qualified workers at a running service."""

import re

import pytest

from bws.base.problems import InputError
from mturk.question_xml import parse_xml
from mturk.service.rules.answer_key import score
from mturk.service.rules.work import WorkError, WorkerService
from mturk.service.site.question_form import FormQuestion, find_problems, read_form
from mturk.study.qualification import answer_key_xml, built_in_test, question_form_xml, read_test
from mturk.study.settings import Settings
from mturk.study.settings_file import default_settings

KINDS = ("conditions", "relabel", "verification")
OWN = """\
name = "Own test"
description = "Two questions"
seconds = 600
pass_at = 60
[[questions]]
text = ["<b> & ]]>", "Which?"]
options = ["a", "b"]
scores = [0, 3]
[[questions]]
text = ["Which?"]
options = ["a", "b", "c"]
scores = [1, 2, 0]
"""


@pytest.fixture
def own(tmp_path):
    def write(text=OWN):
        path = tmp_path / "test.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def best(test):
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        (f"q{n}", letters[one.scores.index(max(one.scores))])
        for n, one in enumerate(test.questions, start=1)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_percentage_of_best_and_empty_answers(kind):
    test = built_in_test(default_settings(kind, "en"))
    key = answer_key_xml(test)
    assert score(key, best(test)) == 100
    assert score(key, []) == 0
    assert 0 < score(key, best(test)[:1]) < test.pass_at
    assert all(len(question.options) == len(set(question.options)) for question in test.questions)


@pytest.mark.parametrize("kind", KINDS)
def test_form_contains_questions_without_scores(kind):
    test = built_in_test(default_settings(kind, "en"))
    asked = [
        one
        for one in read_form(parse_xml(question_form_xml(test)))
        if isinstance(one, FormQuestion)
    ]
    assert [one.kind for one in asked] == ["one"] * len(test.questions)
    assert [tuple(text for _, text in one.choices) for one in asked] == [
        question.options for question in test.questions
    ]
    assert find_problems(asked, best(test), "en") == []
    assert len(find_problems(asked, [], "en")) == len(asked)
    assert "Score" not in question_form_xml(test)


def test_custom_test(own):
    test = read_test(own())
    assert (test.retry_after, test.keywords, test.overview) == (None, "", ())
    assert score(answer_key_xml(test), [("q1", "b"), ("q2", "a")]) == 80
    [first, _] = read_form(parse_xml(question_form_xml(test)))
    assert first.content[0].lines == ("<b> & ]]>",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('name = "Own test"\n', ""), "name is missing"),
        (("seconds = 600", 'seconds = "x"'), "seconds is 'x'; expected an integer"),
        (
            ("seconds = 600", "second = 600\nhint = 1"),
            "unknown key second; expected one of name",
        ),
        (("pass_at = 60", "pass_at = 0"), "pass_at is 0; expected 1 or more"),
        (
            ("scores = [0, 3]", "scores = [0, 0]"),
            "questions.1.scores is [0, 0]; expected 2 integers, not all 0",
        ),
        (("scores = [0, 3]", "scores = [3]"), "questions.1.scores is [3]; expected 2 integers"),
        (
            ('options = ["a", "b"]', 'options = ["a"]'),
            "questions.1.options is ['a']; expected 2 or more entries",
        ),
        (('["Which?"]', "[]"), "questions.2.text is []; expected 1 or more entries"),
        (("scores = [1, 2, 0]", ""), "questions.2.scores is missing; expected a value"),
        (("name = ", "name = ="), "not valid TOML"),
    ],
)
def test_invalid_tests_are_refused(own, change, message):
    with pytest.raises(InputError) as caught:
        read_test(own(OWN.replace(*change)))
    assert any(problem.message.startswith(message) for problem in caught.value.problems)


def test_tuples_have_no_built_in_test():
    with pytest.raises(InputError, match="no built-in test for kind 'tuples' in language 'de'"):
        built_in_test(Settings())


def made(study, *arguments):
    return re.search(r'own_qualifications = \["(.*)"\]', study.run("qualify", *arguments))[1]


@pytest.mark.parametrize("kind", KINDS)
def test_only_qualified_workers_may_work(study, pairs_csv, triplets_csv, kind):
    arguments = ("--config", study.config(kind), "--endpoint", study.url)
    required = made(study, *arguments)
    assert made(study, *arguments) == required  # found, not made again
    assert len(study.running.rows("SELECT number FROM qualification_type")) == 1
    table = pairs_csv if kind == "conditions" else triplets_csv
    study.publish(kind, table, own_qualifications=[required])
    work, its_id = (
        WorkerService(study.running.database, study.running.clock),
        required.partition(">=")[0],
    )
    right = best(built_in_test(default_settings(kind, "en")))
    for worker, answers in (("AGOOD", right), ("APOOR", [(name, "z") for name, _ in right])):
        work.register(worker, country="DE")
        assert work.request_qualification(worker, its_id, answers) == "Granted"
    work.register("ANEW", country="DE")
    [hit_id] = [row[0] for row in study.running.rows("SELECT hit_id FROM hit")]
    for worker in ("APOOR", "ANEW"):
        with pytest.raises(WorkError) as caught:
            work.accept(worker, hit_id)
        assert caught.value.code == "NotEligible"
    assert work.accept("AGOOD", hit_id).hit_id == hit_id


def test_different_test_with_same_name_is_refused(study, own):
    made(study, "--test", own(), "--endpoint", study.url)
    changed = own(OWN.replace("scores = [0, 3]", "scores = [3, 0]"))
    study.run("qualify", "--test", changed, "--endpoint", study.url, code=1)
    assert "has a different test named 'Own test'" in study.stderr


def test_writers_can_be_excluded_from_verification(study, pairs_csv, triplets_csv):
    study.publish("conditions", pairs_csv)
    study.simulate("--workers", "1")
    excluded = made(study, "--workers-of", study.ledger)
    assert excluded.startswith("!")
    assert made(study, "--workers-of", study.ledger) == excluded
    study.ledger = str(study.folder / "v.db")
    study.publish("verification", triplets_csv, own_qualifications=[excluded])
    work = WorkerService(study.running.database, study.running.clock)
    work.register("AOTHER", country="DE")
    [hit_id] = [
        row[0] for row in study.running.rows("SELECT hit_id FROM hit ORDER BY number DESC LIMIT 1")
    ]
    with pytest.raises(WorkError):
        work.accept("ASIMULATED1", hit_id)
    assert work.accept("AOTHER", hit_id)


def test_options_are_mutually_exclusive(study):
    study.run("qualify", code=2)
    study.run("qualify", "--config", "a", "--test", "b", code=2)
