"""Files, plans and scores of anchors: what is refused, what is balanced, and the scale beside its truth."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.signal import lfilter
from scipy.stats import ttest_ind

from bws import cli
from bws.absolute.design import plan_anchors
from bws.absolute.files import (
    Anchor,
    Anchors,
    read_anchors,
    read_plan,
    write_anchors,
    write_plan,
)
from bws.absolute.regression import mean_regression
from bws.absolute.scores import _monte_carlo_error, absolute_scale
from bws.absolute.simulation import simulate_anchors
from bws.base.problems import InputError
from bws.design import make_tuples
from bws.files import read_scores, without_annotators, write_scores
from bws.scoring import score
from bws.simulation import simulate
from bws.stats.estimates import Estimate

HEADER = "group,item,annotator,kind,answer,position,seconds,assignment_id\n"


def design(n_groups=12, items="abcde"):
    groups = [f"d{n}" for n in range(n_groups) for _ in items]
    return make_tuples([*items] * n_groups, 3, count=10, groups=groups)


def study(kind="rating:2", n_groups=12, people=5, offset_sd=0.7, seed=1, **settings):
    """Judgments, and simulated anchors with their truth."""
    tuples = design(n_groups)
    truth = 3 * np.random.default_rng([seed, 49]).standard_normal(len(tuples.items))
    judgments = simulate(tuples, truth, people, noise=1.0, disagreement=0.7, seed=seed)
    plan = plan_anchors(tuples, kind, seed=seed)
    simulated = simulate_anchors(
        judgments,
        truth,
        plan,
        noise=1.0,
        disagreement=0.7,
        offset_sd=offset_sd,
        seed=seed,
        **settings,
    )
    return judgments, simulated


def problems(call, *arguments):
    with pytest.raises(InputError) as caught:
        call(*arguments)
    return [str(problem) for problem in caught.value.problems]


def run(command, *arguments):
    """Run a command; return standard output."""
    result = CliRunner().invoke(getattr(cli, command), arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_anchors_are_written_and_read(tmp_path):
    rows = [
        Anchor("d1", "a", "p1", "rating", 0, 1, 5.5, "x"),
        Anchor("d1", "b", "p1", "rating", 100),
    ]
    write_anchors(rows, tmp_path / "anchors.csv")
    assert (tmp_path / "anchors.csv").read_text() == (
        HEADER + "d1,a,p1,rating,0,1,5.5,x\nd1,b,p1,rating,100,,,\n"
    )
    read = read_anchors(tmp_path / "anchors.csv")
    assert [replace(row, line=None) for row in read.rows] == rows
    assert [row.line for row in read.rows] == [2, 3]


def test_every_fault_of_a_file_has_its_line_and_an_expectation(tmp_path):
    path = tmp_path / "anchors.csv"
    path.write_text(
        HEADER
        + "d1,a,p1,rating,101,,,\nd1,b,p1,slider,5,,,\nd1,c,p1,rating,5.5,,,\nd1,d,,rating,5,,-1,\n"
        "d1,e,p1,rating,5,,,\nd1,e,p1,rating,6,,,\n"
    )
    assert problems(read_anchors, path) == [
        f"{path}:2: answer is 101; expected a whole number from 0 to 100 for kind rating",
        f"{path}:3: kind is 'slider'; it must be rating or mark",
        f"{path}:4: answer is '5.5'; it must be a whole number from 0",
        f"{path}:5: annotator is empty; expected text",
        f"{path}:5: seconds is '-1'; it must be a number of seconds from 0, or empty",
        f"{path}:7: repeats the answer of an annotator to an item 'd1', 'e', 'p1' of line 6; each must be "
        "unique",
    ]
    path.write_text(HEADER + "d1,a,p1,rating,5,,,\nd1,b,p1,mark,1,,,\n")
    assert problems(read_anchors, path) == [
        f"{path}:3: kind is rating in earlier rows and another here; expected one kind of anchor"
    ]
    path.write_text(HEADER + "d1,b,p1,mark,2,,,\n")
    assert problems(read_anchors, path) == [f"{path}:2: answer is 2; expected 0 or 1 for kind mark"]


def test_anchors_of_unknown_groups_and_items_are_refused():
    judgments, simulated = study(n_groups=3)
    rows = [
        Anchor("d9", "a", "simulated-1", "rating", 5, line=2),
        Anchor("d1", "z", "simulated-1", "rating", 5, line=3),
    ]
    assert problems(absolute_scale, judgments, Anchors([*rows, *simulated.rows])) == [
        "anchors:2: group 'd9' has no judgments; expected a group of the judgments",
        "anchors:3: item 'z' of group 'd1' has no judgments; expected an item of the judgments",
    ]


def test_people_of_separate_groups_are_refused():
    judgments, simulated = study(n_groups=4)
    nested = [
        row for row in simulated.rows
        if (row.group in ("d0", "d1")) == (row.annotator in ("simulated-1", "simulated-2"))
    ]  # fmt: skip
    (message,) = problems(absolute_scale, judgments, Anchors(nested))
    assert "fall into 2 separate sets, such as those of groups 'd0' and 'd2'" in message
    constant = [
        replace(row, answer=50) for row in simulated.rows if row.annotator == "simulated-3"
    ]  # who is left out
    linked = [row for row in nested if row.annotator != "simulated-3"] + constant
    assert problems(absolute_scale, judgments, Anchors(linked)) == [message]


def test_groups_without_planned_anchors_have_no_simulated_answers():
    judgments, _ = study(n_groups=4)
    plan = [row for row in plan_anchors(judgments.tuples, "rating:2") if row.group != "d2"]
    simulated = simulate_anchors(judgments, np.zeros(20), tuple(plan))
    assert {row.group for row in simulated.rows} == {"d0", "d1", "d3"}


def test_a_copy_of_the_scores_is_refused():
    judgments, simulated = study(n_groups=4)
    scores = score(judgments, scale="unit")
    of = dict(zip(zip(scores.groups, scores.items, strict=True), scores.score, strict=True))
    rows = [replace(row, answer=round(100 * of[row.group, row.item])) for row in simulated.rows]
    (message,) = problems(absolute_scale, judgments, Anchors(rows))
    assert message.startswith("anchors: the answers repeat the scores of the judgments; expected")


@pytest.mark.parametrize("step", [1, 5, 10])
def test_a_rounded_copy_of_the_scores_is_refused(step):
    judgments, simulated = study()
    of_item = scores_of(judgments)
    rows = [
        replace(row, answer=int(step * round((of_item[row.group, row.item] + 1) * 50 / step)))
        for row in simulated.rows
    ]
    (problem,) = problems(absolute_scale, judgments, Anchors(rows))
    assert "repeat the scores" in problem


def test_marks_by_a_threshold_of_the_scores_are_refused():
    judgments, simulated = study("mark")
    of_item = scores_of(judgments)
    rows = [replace(row, answer=int(of_item[row.group, row.item] > 0)) for row in simulated.rows]
    (problem,) = problems(absolute_scale, judgments, Anchors(rows))
    assert "repeat the scores" in problem


def scores_of(judgments):
    scores = score(judgments)
    return dict(zip(zip(scores.groups, scores.items, strict=True), scores.score, strict=True))


def test_anchors_of_excluded_people_are_left_out():
    """The scale is that of the anchors of the people in the judgments; other names are refused."""
    judgments, simulated = study(n_groups=8)
    first = judgments.annotators[0]
    excluded = without_annotators(judgments, [first])
    own = [row for row in simulated.rows if row.annotator != first]
    scale = absolute_scale(excluded, Anchors(simulated.rows), draws=50)
    assert np.array_equal(scale.score, absolute_scale(excluded, Anchors(own), draws=50).score)
    assert first not in scale.lapses
    n_left_out = len(simulated.rows) - len(own)
    assert f"{n_left_out} anchors of 1 annotators without judgments are left out" in scale.notes
    renamed = [replace(row, annotator=f"X{row.annotator}") for row in simulated.rows]
    (problem,) = problems(absolute_scale, judgments, Anchors(renamed))
    assert "no annotator of the judgments" in problem


def test_anchors_that_do_not_agree_with_the_scores_are_refused():
    judgments, simulated = study(n_groups=6)
    opposite = [replace(row, answer=100 - row.answer) for row in simulated.rows]
    (message,) = problems(absolute_scale, judgments, Anchors(opposite))
    assert "mean correlation of the answers with the scores within groups is -0." in message
    assert "expected at least 0.5" in message


@pytest.mark.parametrize("items", ["ab", "abc", "abcd", "abcde", "abcdef"])
def test_ratings_rotate_and_are_balanced(items):
    tuples = make_tuples([*items] * 4, 2, groups=[f"d{n}" for n in range(4) for _ in items])
    plan = plan_anchors(tuples, "rating:2", seed=3)
    for group in tuples.groups:
        rows = [row for row in plan if row.group == group]
        assert [row.anchor for row in rows] == [*range(1, len(items) + 1)]
        for n in range(1, len(rows) + 1):
            counts = Counter(dict.fromkeys(items, 0))
            counts.update(item for row in rows[:n] for item in row.items)
            assert max(counts.values()) - min(counts.values()) <= 1
        for position in (0, 1):
            assert sorted(row.items[position] for row in rows) == sorted(items)


def test_marks_show_all_items_at_each_position_once(tmp_path):
    plan = plan_anchors(design(2), "mark")
    for group in ("d0", "d1"):
        rows = [row.items for row in plan if row.group == group]
        assert all(sorted(column) == [*"abcde"] for column in zip(*rows, strict=True))
    write_plan(plan, tmp_path / "plan.csv")
    assert read_plan(tmp_path / "plan.csv", design(2)) == plan


def test_faults_of_a_plan(tmp_path):
    path = tmp_path / "plan.csv"
    path.write_text("group,anchor,kind,item1,item2\nd0,1,rating,a,a\nd0,1,rating,a,z\n")
    assert problems(read_plan, path, design(1)) == [
        f"{path}:2: items are 'a', 'a'; expected different items",
        f"{path}:3: item 'z' of group 'd0' is in no tuple; expected one",
        f"{path}:3: repeats the anchor of a group 'd0', '1' of line 2; each must be unique",
    ]


@pytest.mark.parametrize("kind", ["rating:2", "mark"])
def test_the_scale_and_its_ceiling_are_near_the_truth(kind):
    judgments, simulated = study(kind, n_groups=40)
    scale = absolute_scale(judgments, Anchors(simulated.rows), draws=200)
    true = dict(zip(judgments.tuples.item_keys, simulated.true_scores(kind != "mark"), strict=True))
    truth = np.array([true[key] for key in scale.keys])
    r = np.corrcoef(truth, scale.score)[0, 1]
    assert r > 0.94
    assert scale.ceiling.low < r < scale.ceiling.high
    assert abs(scale.ceiling.value - r) < 0.02
    assert 0.85 < np.mean((scale.low < truth) & (truth < scale.high)) <= 1
    published = score(judgments)
    of = dict(
        zip(zip(published.groups, published.items, strict=True), published.score, strict=True)
    )
    actual = np.corrcoef(truth, [of[key] for key in scale.keys])[0, 1]
    assert abs(scale.ipsative_limit.value - actual) < 0.05
    assert actual < r - 0.1
    assert scale.ratio.low < 0.9
    assert scale.ratio.high > 0.5
    means = truth.reshape(-1, 5).mean(axis=1)
    order = [group for group, _ in scale.keys[::5]]
    assert np.corrcoef(means, [scale.groups[group].value for group in order])[0, 1] > 0.85


def test_a_careless_person_and_a_constant_one_are_found():
    judgments, simulated = study(n_groups=20, careless=np.array([0, 1, 0, 0, 0]))
    at_random = np.flatnonzero(judgments.annotator_of == 1)
    random = np.random.default_rng(0)
    best, worst = judgments.best.copy(), judgments.worst.copy()
    for row in at_random:
        best[row], worst[row] = random.permutation(3)[:2]
    judgments = replace(judgments, best=best, worst=worst)
    rows = [
        replace(row, answer=50) if row.annotator == "simulated-3" else row for row in simulated.rows
    ]
    scale = absolute_scale(judgments, Anchors(rows), draws=100)
    assert scale.lapses["simulated-2"].low > 0.6
    assert max(scale.lapses[f"simulated-{n}"].value for n in (1, 3, 4, 5)) < 0.1
    assert "the 40 ratings of simulated-3 are all 50 and are left out" in scale.notes


def test_the_same_seed_gives_the_same_scores():
    judgments, simulated = study(n_groups=4)
    first, second = (absolute_scale(judgments, Anchors(simulated.rows), draws=40) for _ in range(2))
    assert first.score.tolist() == second.score.tolist()
    assert first.document() == second.document()
    assert json.dumps(first.document())


def test_monte_carlo_error_of_dependent_draws():
    noise = np.random.default_rng(0).standard_normal((2000, 400))
    draws = lfilter(
        [1], [1, -0.5], noise, axis=0
    )  # an autoregressive process, whose error is known
    expected = 1 / (1 - 0.5) / np.sqrt(2000)
    assert _monte_carlo_error(draws) == pytest.approx(expected, rel=0.05)
    assert _monte_carlo_error(noise) == pytest.approx(1 / np.sqrt(2000), rel=0.05)
    assert math.isnan(_monte_carlo_error(draws[:39]))
    judgments, simulated = study(n_groups=4)
    scale = absolute_scale(judgments, Anchors(simulated.rows), draws=40)
    assert f"{scale.monte_carlo_error:.4f}" in scale.notes[-1]


def test_absolute_scores_are_columns_of_scores(tmp_path):
    judgments, simulated = study(n_groups=4)
    scale = absolute_scale(judgments, Anchors(simulated.rows), draws=40)
    scores = scale.added_to(score(judgments))
    write_scores(scores, tmp_path / "scores.csv")
    read = read_scores(tmp_path / "scores.csv")
    of = dict(zip(scale.keys, scale.score, strict=True))
    expected = [of[key] for key in zip(read.groups, read.items, strict=True)]
    assert read.absolute_score.tolist() == [round(value, 4) for value in expected]
    assert (read.absolute_low <= read.absolute_score).all()
    assert score(judgments).absolute_score is None


def test_regression_on_a_domain_is_a_difference_of_means(tmp_path):
    domains = ["x", "y", "x", "y", "x", "x", "y"]
    path = tmp_path / "dialogues.jsonl"
    rows = [
        {"dialogue_id": f"d{n}", "turns": [{"text": "a b"}], "domain": domain}
        for n, domain in enumerate(domains)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    values = np.random.default_rng(0).random(7)
    means = {f"d{n}": Estimate(value) for n, value in enumerate(values)}
    ((name, estimate),) = mean_regression(means, path).rows
    of_x, of_y = ([v for v, d in zip(values, domains, strict=True) if d == which] for which in "xy")
    test = ttest_ind(of_y, of_x).confidence_interval()
    assert name == "domain y"
    assert estimate.value == pytest.approx(np.mean(of_y) - np.mean(of_x))
    assert (estimate.low, estimate.high) == pytest.approx((test.low, test.high))
    assert problems(mean_regression, {"d9": Estimate(0.5)}, path) == [
        f"{path}: no dialogue 'd9' (1 of 1 groups); expected all groups of the judgments"
    ]


def test_commands_from_plan_to_scores(tmp_path):
    items = tmp_path / "items.csv"
    items.write_text("item,group\n" + "".join(f"{i},d{n}\n" for n in range(6) for i in "abcde"))
    tuples, plan, answers, anchors, scores = (
        str(tmp_path / name)
        for name in ("tuples.csv", "plan.csv", "judgments.csv", "anchors.csv", "scores.csv")
    )
    run(
        "make_tuples", str(items), "-k", "3", "--tuples", "10", "--group-column", "group",
        "--anchors", "rating:2", "--anchors-output", plan, "-o", tuples,
    )  # fmt: skip
    truth = tmp_path / "truth.csv"
    values = np.random.default_rng(0).normal(size=30)
    lines = (f"{i},d{n},{values[5 * n + j]}\n" for n in range(6) for j, i in enumerate("abcde"))
    truth.write_text("item,group,score\n" + "".join(lines))
    run(
        "simulate", tuples, "--truth", str(truth), "--anchors", plan, "--anchors-output", anchors,
        "-o", answers,
    )  # fmt: skip
    assert len(read_anchors(anchors)) == 6 * 5 * 2
    assert {row.annotator for row in read_anchors(anchors).rows} == {
        f"simulated-{n}" for n in range(1, 6)
    }
    run("score", answers, "--absolute", anchors, "-o", scores)
    assert read_scores(scores).absolute_score.min() > 0
    document = json.loads(run("reliability", answers, "--absolute", anchors, "--json"))
    assert (
        0
        < document["absolute"]["ipsative_limit"]["value"]
        < document["absolute"]["ceiling"]["value"]
        < 1
    )


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        (
            "make_tuples",
            "{items} -k 3 --tuples 9 --anchors mark --anchors-output p.csv",
            "expected several",
        ),
        ("make_tuples", "{items} -k 3 --tuples 9 --anchors mark", "--anchors-output"),
        ("simulate", "{items} --truth {items} --offset-sd 1", "--offset-sd requires --anchors"),
        ("simulate", "{items} --truth {items} --studies 3", "--studies requires --anchor-designs"),
        ("reliability", "{items} --dialogues {items}", "--dialogues requires --absolute"),
    ],
)
def test_options_of_anchors_that_would_have_no_effect_are_refused(
    tmp_path, name, arguments, problem
):
    items = tmp_path / "items.csv"
    items.write_text("item\na\nb\nc\nd\ne\n")
    done = CliRunner().invoke(getattr(cli, name), arguments.format(items=items).split())
    assert done.exit_code == 2
    assert problem in done.stderr


def test_absolute_scores_beyond_0_and_1_are_refused(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("item,group,score,absolute_score\na,d,0.5,1.3\nb,d,0.1,-0.2\nc,d,0.2,\n")
    assert problems(read_scores, path) == [
        f"{path}:2: absolute_score is 1.3; expected a number from 0 to 1, or empty",
        f"{path}:3: absolute_score is -0.2; expected a number from 0 to 1, or empty",
    ]
