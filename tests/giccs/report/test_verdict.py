"""The verdict finds what was planted: annotators of several kinds, equal items, equal models."""

import csv
import json
import random
from dataclasses import dataclass
from importlib import resources
from itertools import combinations

import numpy as np
import pytest

import giccs
from bws.files import judgments_from_records
from bws.records import Judgment
from giccs.benchmark import read_benchmark
from giccs.report.verdict import QUESTIONS, findings
from giccs_app.explorer.labels.remarks import local_remark
from tests import in_process

TUPLE_SIZE = 4
SPACING = 1.5
"""Difference of the utilities of neighbouring items, in logits."""


@dataclass(frozen=True)
class Planted:
    """A study with known annotators and items."""

    judgments: object
    guessing: frozenset
    reversed: frozenset
    one_position: frozenset
    twins: frozenset
    """Triples of dialogue, first and second item with equal utilities."""


def planted_study(
    n_dialogues, n_items, n_careful, n_guessing, n_reversed, n_one_position, n_twins, per_annotator, seed=0
):  # fmt: skip
    rng = np.random.default_rng(seed)
    dialogues = [f"d{d:02}" for d in range(n_dialogues)]
    utilities, twins = {}, set()
    for d, dialogue in enumerate(dialogues):
        levels = np.arange(n_items, dtype=float)
        if d < n_twins:  # the items in the middle are equal
            levels[n_items // 2] = levels[n_items // 2 - 1]
        names = [f"{dialogue}-{letter}" for letter in "abcdefghijklmnop"[:n_items]]
        values = SPACING * rng.permutation(levels)
        utilities[dialogue] = dict(zip(names, values, strict=True))
        twins |= {
            (dialogue, *pair)
            for pair in combinations(names, 2)
            if utilities[dialogue][pair[0]] == utilities[dialogue][pair[1]]
        }
    drawn = {
        (dialogue, tuple(sorted(rng.permutation(list(items))[:TUPLE_SIZE].tolist())))
        for dialogue, items in utilities.items()
        for _ in range(6 * n_items)
    }
    tuples = sorted(drawn)
    kinds = (
        ["careful"] * n_careful + ["guessing"] * n_guessing + ["reversed"] * n_reversed
        + ["one position"] * n_one_position
    )  # fmt: skip
    names = {f"w{n:03}": kind for n, kind in enumerate(rng.permutation(kinds))}
    rows = []
    for name, kind in names.items():
        for t in rng.choice(len(tuples), per_annotator, replace=False):
            dialogue, members = tuples[t]
            shown = rng.permutation(members)
            noise = rng.gumbel(size=(2, TUPLE_SIZE))
            truth = np.array([utilities[dialogue][item] for item in shown])
            factor = {"careful": 1, "guessing": 0, "reversed": -1, "one position": 0}[kind]
            best = 0 if kind == "one position" else int((factor * truth + noise[0]).argmax())
            against = -factor * truth + noise[1]
            against[best] = -np.inf
            worst = 1 if kind == "one position" else int(against.argmax())
            rows.append(Judgment(tuple(shown), shown[best], shown[worst], name, group=dialogue))
    found = {kind: frozenset(n for n in names if names[n] == kind) for kind in kinds}
    return Planted(
        judgments_from_records(rows),
        found["guessing"], found["reversed"], found["one position"], frozenset(twins),
    )  # fmt: skip


SMALL = {
    "n_dialogues": 8, "n_items": 6, "n_careful": 40, "n_guessing": 3, "n_reversed": 2, "n_one_position": 2,
    "n_twins": 3, "per_annotator": 60,
}  # fmt: skip
LARGE = {
    "n_dialogues": 40, "n_items": 12, "n_careful": 276, "n_guessing": 9, "n_reversed": 8,
    "n_one_position": 7, "n_twins": 20, "per_annotator": 100,
}  # fmt: skip


@pytest.mark.parametrize(
    "sizes", [SMALL, pytest.param(LARGE, marks=pytest.mark.nightly)], ids=["small", "large"]
)
def test_planted_annotators_and_equal_items_are_found(sizes):
    study = planted_study(**sizes)
    scores, items, annotators, _ = findings(study.judgments, [])
    flags = annotators.numbers["flags"]
    assert set(flags["reversed"]) == study.reversed
    assert set(flags["random"]) >= study.guessing
    assert set(flags["positions"]) | set(flags["same_answer"]) == study.one_position
    careful = set(study.judgments.annotators) - study.guessing - study.reversed - study.one_position
    assert len(careful & {name for names in flags.values() for name in names}) <= 0.02 * len(
        careful
    )
    for name in study.reversed:
        assert name in annotators.text
    sets = {(found["group"], frozenset(found["items"])) for found in items.numbers["sets"]}
    for dialogue, first, second in study.twins:
        assert any(group == dialogue and {first, second} <= names for group, names in sets)
    equal = items.numbers["pairs"] - items.numbers["different_pairs"]
    assert len(study.twins) <= equal < items.numbers["pairs"] / 2
    assert 0.9 < scores.numbers["reliability"]["value"] < 1
    assert "The scores reach the target reliability of 0.9." in scores.text
    for finding in (scores, items, annotators):
        assert finding.draw(str).rows


def test_models_that_tie_with_the_best_are_named():
    benchmark = read_benchmark("giccs-sample")
    truth = {item.utterance: item.score for item in benchmark.items}
    rng = np.random.default_rng(3)

    def model(noise):
        values = {text: score + rng.normal(0, noise) for text, score in truth.items()}
        return lambda left, right: [values[text] for text in right]

    noises = {"good": 0.2, "equal": 0.2, "bad": 0.8, "chance": 50}
    results = [
        result
        for name, noise in noises.items()
        for result in giccs.evaluate(model(noise), benchmark, name=name)
    ]
    *_, models = findings(None, results)
    (board,) = models.numbers["leaderboards"]
    named = {board["leader"]["model"], *(each["model"] for each in board["tied"])}
    assert named == {"good", "equal"}
    assert "not significantly worse: " in "; ".join(models.sentences)
    rows = models.draw(str).rows
    assert [row["ties"] for row in rows] == [True, True, False, False]
    alone = findings(None, [result for result in results if result.model != "equal"])[-1]
    assert alone.sentences[-1] == "all others are significantly worse (Holm, 5 %)"


def test_the_command_prints_the_answers_and_what_is_missing(tmp_path):
    (tmp_path / "results").mkdir()
    done = in_process.run("giccs-report", "results", "--verdict", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [done.stdout.count(question) for question in QUESTIONS.values()] == [1, 1, 1, 1]
    assert "--judgments FILE" in done.stdout
    evaluate = [
        "giccs-eval",
        "baseline:char-ngram",
        "--data",
        "giccs-sample",
        "-o",
        "results",
        "--quiet",
    ]
    assert in_process.run(*evaluate, cwd=tmp_path).returncode == 0
    done = in_process.run("giccs-report", "results", "--verdict", cwd=tmp_path)
    assert "simulated" in done.stdout
    assert "0 of 5 annotators need review" in done.stdout


def judged(rows):
    """Judgments of one group from rows of items, best, worst and annotator."""
    return judgments_from_records(Judgment(tuple(items), *answer) for items, *answer in rows)


def test_reversed_annotators_are_a_negative_correlation_and_not_left_out():
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(60):
        items = sorted(rng.permutation(list("abcdefgh"))[:4].tolist())
        rows += [(items, items[0], items[-1], "up"), (items, items[-1], items[0], "down")]
    study = judged(dict.fromkeys((tuple(row[0]), *row[1:]) for row in rows))
    scores, items, annotators, _ = findings(study, [])
    assert scores.numbers["correlations"]["annotator"] < -0.9
    assert "reach a reliability" not in scores.text.replace("do not reach a reliability", "")
    assert "halves of the annotators: a negative correlation, -" in scores.text
    assert "2 of 2 annotators cannot be assessed" in annotators.text
    assert items.sentences


def test_a_single_judgment_and_adaptive_tuples_have_four_answers():
    rows = [(list("abc"), "a", "c", "w1")]
    answers = findings(judged(rows), [])
    assert [finding.name for finding in answers] == [*QUESTIONS]
    assert "1 of 1 annotators cannot be assessed" in answers[2].text


def test_items_that_no_judgment_connects_are_not_counted_as_pairs():
    rows = []
    for names in ("abcd", "wxyz"):
        for annotator in range(8):
            rows += [(list(names), names[0], names[3], f"w{annotator}")]
    _, items, *_ = findings(judged(rows), [])
    assert items.numbers.get("pairs", 0) in (0, 12)  # not the 28 pairs of all items


def test_models_without_a_test_are_not_called_worse():
    benchmark = read_benchmark("giccs-sample")
    truth = {item.utterance: item.score for item in benchmark.items}
    first = benchmark.items[0].dialogue_id
    of_first = {item.utterance for item in benchmark.items if item.dialogue_id == first}
    models = {
        "good": lambda left, right: [truth[text] for text in right],
        "constant": lambda left, right: [1.0 for _ in right],
        "nearly": lambda left, right: [truth[text] * (text in of_first) for text in right],
    }
    results = [
        result
        for name, model in models.items()
        for result in giccs.evaluate(model, benchmark, name=name)
    ]
    text = findings(None, results)[-1].text
    assert "constant" in text
    assert "significantly worse" not in text or "Not tested" not in text


@pytest.mark.parametrize(
    "options",
    [
        ("--figure", "leaderboard=x.svg"),
        ("--format", "latex"),
        ("--model-name", "baseline:chance=x"),
    ],
)
def test_options_without_effect_are_refused(tmp_path, options):
    (tmp_path / "results").mkdir()
    done = in_process.run("giccs-report", "results", "--verdict", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "--verdict cannot be combined with" in done.stderr


@pytest.mark.parametrize(
    ("header", "row", "unit"),
    [
        ("group,item1,item2,item3,best,worst,annotator", "other,a,b,c,a,c,w1", "dialogues"),
        ("item1,item2,item3,best,worst,annotator", "a,b,c,a,c,w1", "items"),
    ],
)
def test_judgments_of_another_study_are_refused(tmp_path, header, row, unit):
    evaluate = [
        "giccs-eval",
        "baseline:char-ngram",
        "--data",
        "giccs-sample",
        "-o",
        "results",
        "--quiet",
    ]
    assert in_process.run(*evaluate, cwd=tmp_path).returncode == 0
    (tmp_path / "other.csv").write_text(f"{header}\n{row}\n", "utf-8")
    run = ("giccs-report", "results", "--verdict", "--judgments", "other.csv")
    done = in_process.run(*run, cwd=tmp_path)
    assert done.returncode == 2
    assert f"judgments of none of the {unit} of the results" in done.stderr


def test_judgments_of_other_scores_are_refused(tmp_path):
    evaluate = ["giccs-eval", "baseline:char-ngram", "--data", "giccs-sample", "-o", "results"]
    assert in_process.run(*evaluate, "--quiet", cwd=tmp_path).returncode == 0
    rows = list(csv.DictReader(resources.files("giccs.data").joinpath("judgments.csv").open("r")))
    draw = random.Random(0)
    for row in rows:
        row["best"], row["worst"] = draw.sample([row["item1"], row["item2"], row["item3"]], 2)
    with (tmp_path / "random.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    run = ("giccs-report", "results", "--verdict", "--judgments", "random.csv")
    done = in_process.run(*run, cwd=tmp_path)
    assert done.returncode == 2
    assert "expected the judgments behind the scores of giccs-sample" in done.stderr


def test_the_verdict_without_some_annotators_is_that_of_the_others(tmp_path):
    evaluate = ["giccs-eval", "baseline:char-ngram", "--data", "giccs-sample", "-o", "results"]
    assert in_process.run(*evaluate, "--quiet", cwd=tmp_path).returncode == 0
    lines = resources.files("giccs.data").joinpath("judgments.csv").read_text("utf-8").splitlines()
    rows = list(csv.DictReader(lines))
    more = [
        row | {"annotator": "added", "best": row["worst"], "worst": row["best"]} for row in rows
    ]
    with (tmp_path / "more.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([*rows, *more[::5]])
    (tmp_path / "excluded.txt").write_text("added\n", "utf-8")
    run = ("giccs-report", "results", "--verdict", "--json")
    of_sample = in_process.run(*run, cwd=tmp_path)
    options = ("--judgments", "more.csv", "--exclude", "excluded.txt")
    done = in_process.run(*run, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == json.loads(of_sample.stdout)["verdict"]
    assert in_process.run(*run, *options[:2], cwd=tmp_path).returncode == 2  # other scores
    alone = in_process.run(*run, *options[2:], cwd=tmp_path)
    assert "--exclude requires --judgments" in json.loads(alone.stdout)["error"]


def test_a_result_that_is_skipped_by_several_metrics_is_counted_once():
    benchmark = read_benchmark("giccs-sample")

    def constant(left, right):
        return np.full(len(left), 0.5)

    names = [f"constant-{n}" for n in range(2)]
    results = [
        *giccs.evaluate(["baseline:char-ngram", "baseline:chance"], benchmark, task="pairwise-sts"),
        *(
            result
            for name in names
            for result in giccs.evaluate(constant, benchmark, task="pairwise-sts", name=name)
        ),
    ]
    *_, models = findings(None, results)
    assert all(sum(name in text for text in models.sentences) == 1 for name in names)
    assert "further results" not in models.text


def test_results_that_are_not_compared_are_named_in_german_too():
    benchmark = read_benchmark("giccs-sample").first(60)
    results = giccs.evaluate("baseline:char-ngram", benchmark)
    *_, models = findings(None, results)
    german = [local_remark(text, "de") for text in models.sentences]
    assert german[0] == "keine zwei Ergebnisse lassen sich vergleichen"
    assert german[1].startswith("Nicht verglichen: baseline:char-ngram")
    assert ".." not in models.text
