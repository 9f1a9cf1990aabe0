"""Anchors of a study of tuples: their plan, their page, and the fields of the form."""

from dataclasses import replace
from pathlib import Path

import pytest

from bws.absolute.design import plan_anchors as design
from bws.absolute.files import write_plan
from bws.base.problems import InputError
from bws.files import read_tuples
from mturk.answers import expected_tuples
from mturk.catalogues import available_languages
from mturk.cli.publish import plan_of
from mturk.kinds import Behaviour, ExpectedTuple, find_problems
from mturk.kinds.tuples import form
from mturk.kinds.tuples.anchors import MARK, RATING, count_skipped
from mturk.kinds.tuples.anchors.plan import plan_anchors
from mturk.question_xml import read_question
from mturk.study.settings_file import default_settings

RATED = ExpectedTuple("anchor:d", "d", ("a", "b", "c", "a"), "rating")
MARKED = ExpectedTuple("anchor:d", "d", ("a", "b", "c", "b", "c", "a"), "mark")
RATINGS = {"slot-anchor:d": "2", "rating-3-anchor:d": "0", "rating-1-anchor:d": "100"}
MARKS = {"slot-anchor:d": "2", "mark-anchor:d": "c"}


@pytest.fixture
def study(files):
    return plan_of(str(files.tuples), str(files.dialogues), None, None)


@pytest.fixture
def plan_file(files, tmp_path):
    def write(name):
        path = tmp_path / "plan.csv"
        write_plan(design(read_tuples(files.tuples), name), path)
        return path

    return write


@pytest.mark.parametrize(("name", "slots"), [("rating:2", 3), ("mark", 3)])
def test_each_dialogue_is_one_part_of_hits_of_their_own(study, plan_file, name, slots):
    planned = plan_anchors(plan_file(name), study)
    kind = name.partition(":")[0]
    (hit,) = planned.hits
    assert hit.number == len(study.hits) + 1
    assert {part.tuple_id for part in hit.parts} == {"anchor:d3", "anchor:d5"}
    expected = expected_tuples(hit.question)
    assert [one.kind for one in expected] == [kind] * 2
    sizes = {len(one.items) for one in expected}
    assert sizes == {slots * (2 if kind == "rating" else 3)}
    assert not {hit.annotation} & {other.annotation for other in study.hits}
    html = read_question(hit.question).html
    assert "Nein ${B}" in html
    assert "Aha &lt;b&gt;" in html
    assert "Letzter Redebeitrag" in html


def test_tuples_are_planned_as_without_anchors(study, plan_file):
    hits = study.hits
    planned = replace(study, anchors=plan_anchors(plan_file("mark"), study))
    assert planned.hits == hits
    assert planned.all_hits[: len(hits)] == hits


@pytest.mark.parametrize("language", ["en", *available_languages(())])
def test_every_language_has_all_texts(study, plan_file, language):
    settings = replace(default_settings("tuples", "de"), language=language)
    for name in ("rating:2", "mark"):
        (hit,) = plan_anchors(plan_file(name), replace(study, settings=settings)).hits
        html = read_question(hit.question).html
        assert f'<html lang="{language}"' in html
        if language != "en":
            assert "replace the last turn" not in html


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["d3,1,rating,d3-1,d3-9"], "item 'd3-9' is in no tuple of the group; expected one of"),
        (["d9,1,rating,a,b"], "group 'd9' has no tuples"),
        (["d3,2,rating,d3-1,d3-2"], "has the anchors [2]; expected 1, 2, ... without gaps"),
        (["d3,1,rating,d3-1,"], "anchor 1 of group 'd3' has 1 items; expected 2 to be rated"),
        (["d3,1,mark,d3-1,d3-2", "d3,2,mark,d3-1,d3-3"], "other items than anchor 1"),
        (["d3,1,rating,d3-1,d3-2", "d3,1,rating,d3-1,d3-2"], "anchor of a group"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(study, tmp_path, rows, problem):
    path = tmp_path / "plan.csv"
    path.write_text("\n".join(["group,anchor,kind,item1,item2", *rows, ""]))
    with pytest.raises(InputError, match="plan") as error:
        plan_anchors(path, study)
    assert problem in str(error.value)


def test_other_kinds_and_ids_of_tuples_are_refused(study, plan_file):
    path = plan_file("mark")
    with pytest.raises(InputError, match="kind is 'items'; expected kind tuples"):
        plan_anchors(path, replace(study, settings=replace(study.settings, kind="items")))
    part = replace(study.hits[0].parts[0], tuple_id="anchor:d3")
    hits = (replace(study.hits[0], parts=(part, *study.hits[0].parts[1:])), *study.hits[1:])
    with pytest.raises(InputError, match="'anchor:d3' is the id of a tuple"):
        plan_anchors(path, replace(study, hits=hits))
    with pytest.raises(InputError, match="anchors have no texts in 'sw'"):
        plan_anchors(path, replace(study, settings=replace(study.settings, language="sw")))


def test_remarks_on_missing_dialogues_and_other_questions(study, tmp_path):
    path = tmp_path / "plan.csv"
    path.write_text("group,anchor,kind,item1,item2\nd3,1,rating,d3-1,d3-2\n")
    notes = ("1 of 3 HITs have anchors of 1 dialogues", "1 of 2 dialogues have no anchor")
    assert plan_anchors(path, study).notes == notes
    texts = (Path(form.__file__).parent / "texts.en.toml").read_text(encoding="utf-8")
    settings = replace(study.settings, texts=texts, language="en")
    (*_, note) = plan_anchors(path, replace(study, settings=settings)).notes
    assert "scores and anchors must mean the same" in note


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"rating-3-anchor:d": None, "skip-3-anchor:d": "yes"}, None),
        ({"slot-anchor:d": "3"}, "slot is '3'; expected a number from 1 to 2"),
        ({"slot-anchor:d": None}, "slot is ''; expected"),
        ({"slot-anchor:d": "1"}, "the answer to 'b' is missing"),
        ({"rating-1-anchor:d": "101"}, "the answer to 'a' is '101'"),
        ({"rating-1-anchor:d": "-1"}, "the answer to 'a' is '-1'"),
        ({"rating-1-anchor:d": "5.5"}, "the answer to 'a' is '5.5'"),
        ({"rating-1-anchor:d": "٥"}, "the answer to 'a' is '٥'"),
        ({"rating-1-anchor:d": ""}, "the answer to 'a' is missing"),
        ({"skip-1-anchor:d": "yes"}, "is '100', and skip is 'yes'"),
        ({"rating-1-anchor:d": "", "skip-1-anchor:d": "no"}, "skip is 'no'"),
        ({"seconds-anchor:d": "-3"}, "seconds is '-3'"),
    ],
)
def test_ratings_are_checked(changes, problem):
    fields = [(name, value) for name, value in (RATINGS | changes).items() if value is not None]
    problems = RATING.problems(RATED, fields)
    assert (problem is None) == (problems == [])
    assert problem is None or problem in problems[0]
    assert find_problems([RATED], fields) == problems


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([("mark-anchor:d", "a"), ("mark-anchor:d", "c")], None),
        ([("none-anchor:d", "yes")], None),
        ([("skip-anchor:d", "yes")], None),
        ([], "0 marks, not none, not skipped; expected"),
        ([("mark-anchor:d", "a"), ("skip-anchor:d", "yes")], "1 marks, not none, skipped"),
        ([("none-anchor:d", "yes"), ("skip-anchor:d", "yes")], "0 marks, none, skipped"),
        ([("mark-anchor:d", "x")], "the marks are ['x']; expected some of 'a', 'b', 'c'"),
        ([("mark-anchor:d", "a"), ("mark-anchor:d", "a")], "each once"),
        ([("none-anchor:d", "")], "none-anchor:d is ''; expected 'yes'"),
        ([("none-anchor:d", "yes"), ("none-anchor:d", "yes")], "occurs 2 times"),
    ],
)
def test_marks_are_checked(fields, problem):
    problems = MARK.problems(MARKED, [("slot-anchor:d", "1"), *fields])
    assert (problem is None) == (problems == [])
    assert problem is None or any(problem in one for one in problems)


def test_answers_are_those_of_the_slot():
    assert RATING.answers(RATED, list(RATINGS.items())) == {"c": 0, "a": 100}
    assert RATING.slot_items(RATED, list(RATINGS.items())) == ("c", "a")
    assert MARK.answers(MARKED, list(MARKS.items())) == {"b": 0, "c": 1, "a": 0}
    assert count_skipped([]) == 0


def test_simulated_workers_answer_by_the_truth_at_random_or_in_the_middle():
    truth = {("d", "a"): 1.0, ("d", "b"): -1.0, ("d", "c"): 0.5}

    def answers(kind, expected, number=0, **behaviour):
        expected = replace(expected, assignment_number=number)
        fields = kind.simulate(expected, truth, Behaviour(**{"noise": 0} | behaviour), "A1")
        assert kind.problems(expected, fields) == []
        return kind.answers(expected, fields)

    assert answers(RATING, RATED) == {"a": 100, "b": 0}
    assert answers(RATING, RATED, number=3) == {"c": 75, "a": 100}
    assert answers(RATING, RATED, middle=1) == {"a": 50, "b": 50}
    assert answers(MARK, MARKED, number=1) == {"b": 0, "c": 1, "a": 1}
    assert answers(MARK, MARKED, middle=1) == {"a": 0, "b": 0, "c": 0}
    drawn = [answers(RATING, RATED, careless=1, seed=seed)["a"] for seed in range(200)]
    assert 40 < sum(drawn) / 200 < 60
    with pytest.raises(ValueError, match="careless plus middle"):
        Behaviour(careless=0.6, middle=0.6)


def test_simulated_ratings_of_scores_from_0_to_1_have_the_whole_range():
    expected = ExpectedTuple("anchor:d1", "d1", ("a", "b", "b", "a"), "rating")
    levels = {("d1", "a"): -1.0, ("d1", "b"): 0.5}
    unit = {key: (score + 1) / 2 for key, score in levels.items()}
    behaviour = Behaviour(noise=0)
    ratings = RATING.simulate(expected, levels, behaviour, "W1")
    assert ratings == RATING.simulate(expected, unit, replace(behaviour, is_unit_truth=True), "W1")
    assert {value for name, value in ratings if name.startswith("rating")} == {"0", "75"}
