"""Ours beside theirs: what is inside, what is outside, and what is no comparison at all."""

import csv
import io
import json
import math

import numpy as np
import pytest

from bws.stats.estimates import Estimate
from giccs.csts.encoders.settings import Settings
from giccs.evaluation.recipe import PublishedNumber, Recipe, Run
from giccs.measures.comparison import share
from giccs.measures.results import Group, Result
from giccs.report.published import compare_with_published, published_table
from tests.stacked_cells import on_one_line


def correlation(value, low, high, n=300):
    return Estimate(value, low, high, n)


def pairwise(model="m", data="owner/set", history="without", **metrics):
    signature = {"history": history, "data": f"sha of {data}", "revision": "abc"}
    return Result(model, "pairwise-sts", metrics, (), signature, {"data": data}, 0.0)


def choice(model="gpt", data="owner/set", right=(4, 5, 3, 2), n=30):
    """A multiple-choice result of n questions of either length, with and without history."""
    parts = [(3, "with"), (3, "without"), (5, "with"), (5, "without")]
    groups = tuple(
        Group({"history": history, "n_turns": turns}, {"accuracy": share(np.arange(n) < count)})
        for (turns, history), count in zip(parts, right, strict=True)
    )
    signature = {
        "history": "both", "data": data, "template": {"name": "figure2-de-1"}, "answer": "sentence",
        "chat_template": False, "permutations": 1,
    }  # fmt: skip
    whole = {"accuracy": share(np.arange(2 * n) < right[0] + right[2])}
    return Result(model, "multiple-choice-sts", whole, groups, signature, {"data": data}, 0.0)


TABLE_5 = Run(
    "m", "abc", "pairwise-sts", {"history": "without"},
    (PublishedNumber("pearson", 0.8, n=300), PublishedNumber("spearman", 0.5, n=300)),
)  # fmt: skip
TABLE_6 = Run(
    "gpt", None, "multiple-choice-sts", {"history": "both"},
    (
        PublishedNumber("accuracy", 0.133, {"n_turns": 3, "history": "with"}, 0.063, 30),
        PublishedNumber("accuracy", 0.166, {"n_turns": 3, "history": "without"}, 0.069, 30),
    ),
)  # fmt: skip
RECIPE = Recipe("r.toml", "A paper", "https://example.org", "owner/set@abc", (TABLE_5, TABLE_6))


def test_a_recipe_may_leave_out_a_default_that_the_name_of_a_result_states():
    numbers = (PublishedNumber("spearman", 0.5, n=300),)
    run = Run("static:g.txt+abtt", None, "pairwise-sts", {"history": "without"}, numbers)
    ours = pairwise("static:g.txt+abtt:2", spearman=correlation(0.5, 0.4, 0.6))
    (line,) = compare_with_published([ours], Recipe("r.toml", "", "", "owner/set", (run,))).lines
    assert line.verdict == "inside"


def test_the_published_number_is_inside_or_outside_our_interval():
    ours = pairwise(pearson=correlation(0.82, 0.79, 0.85), spearman=correlation(0.81, 0.78, 0.84))
    inside, outside, *_ = compare_with_published([ours], RECIPE).lines
    assert inside.verdict == "inside"
    assert inside.difference == pytest.approx(0.02)
    assert outside.verdict == "outside"
    assert outside.difference == pytest.approx(0.31)


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        (correlation(0.82, 0.80, 0.85), "inside"),  # the ends belong to the interval
        (correlation(0.82, math.nan, math.nan), "no interval"),
        (
            Estimate(math.nan, math.nan, math.nan, 300, "all predictions are equal"),
            "not computed",
        ),
        (correlation(0.82, 0.79, 0.85, n=30), "other items"),
        (None, "not computed"),
    ],
)
def test_what_is_no_comparison_gets_no_verdict(estimate, verdict):
    metrics = {"pearson": estimate} if estimate else {}
    line = compare_with_published([pairwise(**metrics)], RECIPE).lines[0]
    assert line.verdict == verdict
    assert math.isnan(line.difference) == (verdict == "not computed")


def test_results_on_other_data_are_no_reproduction():
    numbers = {"pearson": correlation(0.8, 0.7, 0.9), "spearman": correlation(0.5, 0.4, 0.6)}
    result = compare_with_published([pairwise(data="giccs-sample", **numbers)], RECIPE)
    assert {line.verdict for line in result.lines if line.result} == {"other items"}
    said = "on giccs-sample; published on owner/set@abc: different items; not a reproduction."
    assert said in result.notes()
    copy = compare_with_published([pairwise(data="./copy", **numbers)], RECIPE)
    assert any("different items, unless ./copy is a copy" in note for note in copy.notes())
    said_so = compare_with_published(
        [pairwise(data="./copy", **numbers)], RECIPE, local_name="./copy"
    )
    assert {line.verdict for line in said_so.lines if line.result} == {"inside"}
    part = compare_with_published([pairwise(pearson=correlation(0.8, 0.7, 0.9, n=30))], RECIPE)
    assert any("the numbers of items differ" in note for note in part.notes())
    pinned = compare_with_published([pairwise(data="owner/set@other", **numbers)], RECIPE)
    assert not any("reproduction" in note for note in pinned.notes())


def test_what_is_missing_on_either_side_is_counted_and_named():
    result = compare_with_published(
        [pairwise(), pairwise("other"), pairwise("m", history="with")], RECIPE
    )
    assert "2 published numbers have no result: gpt." in result.notes()
    assert (
        "2 published numbers are not in the results of their models: not computed."
        in result.notes()
    )
    assert "2 results have no published number: other, m." in result.notes()
    assert [line.verdict for line in result.lines] == ["not computed"] * 2 + ["no result"] * 2


def test_another_revision_is_told():
    other = pairwise(pearson=correlation(0.8, 0.7, 0.9))
    other.signature["revision"] = "def"
    (note,) = [
        note for note in compare_with_published([other], RECIPE).notes() if "revision" in note
    ]
    assert note == "m: revision def instead of abc in the recipe."


def test_accuracies_of_30_questions_say_what_a_question_is_worth():
    result = compare_with_published([choice()], RECIPE)
    first, second = (line for line in result.lines if line.result)
    assert (first.verdict, second.verdict) == ("inside", "inside")
    assert first.ours.low == pytest.approx(0.0531, abs=1e-4)  # Wilson, 4 of 30
    assert any("One question of 30 is 3.3 points" in note for note in result.notes())
    assert any("sqrt(p(1-p)/(n-1))" in note for note in result.notes())
    far = compare_with_published([choice(right=(28, 5, 3, 2))], RECIPE).lines[2]
    assert far.verdict == "outside"


def test_a_run_takes_only_results_that_were_asked_as_it_says():
    """What it does not say is the default, for a task and for a training."""
    prompted = Run("m", None, "csts-prompt", {"shots": 2}, (PublishedNumber("spearman", 0.4),))
    trained = Run("m", None, "csts-train", {"encoding": "tri"}, (PublishedNumber("spearman", 0.3),))
    recipe = Recipe("r.toml", "", "", "owner/set", (prompted, trained))
    metrics = {"spearman": correlation(0.41, 0.3, 0.5)}

    def result(task, **signature):
        return Result("m", task, metrics, (), signature, {"data": "owner/set (validation)"}, 0.0)

    def asked(**how):
        own = {"instruction": "short", "shots": 0, "answers": False, "split": "validation"}
        return result("csts-prompt", asked=own | how)

    def training(**how):
        return result("csts-train", settings={**Settings("m", seeds=(1, 2), **how).document()})

    right = [asked(shots=2), training(encoding="tri")]
    wrong = [
        asked(), asked(shots=2, answers=True), asked(shots=2, instruction="long"), training(),
        training(encoding="tri", condition=True, texts="answers"), training(encoding="tri", batch=16),
    ]  # fmt: skip
    found = compare_with_published([*wrong, *right], recipe)
    assert [line.result for line in found.lines] == right
    assert [line.same_data for line in found.lines] == [True, True]
    assert found.unpublished == tuple(wrong)


def test_only_one_history_here_leaves_the_other_not_computed():
    one = choice()
    one.signature["history"] = "with"
    kept = tuple(group for group in one.groups if group.by["history"] == "with")
    half = Result(one.model, one.task, one.metrics, kept, one.signature, one.environment, 0.0)
    verdicts = [
        line.verdict for line in compare_with_published([half], RECIPE).lines if line.result
    ]
    assert verdicts == ["inside", "not computed"]


@pytest.fixture
def comparison():
    numbers = {"pearson": correlation(0.82, 0.79, 0.85), "spearman": correlation(0.81, 0.78, 0.84)}
    return compare_with_published([pairwise(**numbers), choice()], RECIPE)


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_tables_hold_every_compared_number(comparison, form):
    text = on_one_line(published_table(comparison, form)).replace(r"$\pm$", "±")
    assert "A paper" in text
    for cell in ("0.800", "0.820 [0.790, 0.850]", "+0.020", "inside", "+0.310", "outside"):
        assert cell in text
    assert "0.133 ± 0.063" in text
    assert "0.133 ± 0.063 [0.053, 0.297]" in text
    assert "figure2-de-1" in text
    if form == "latex":
        outside_table = text.partition("\\end{tabular}")[2].lstrip("}").strip().splitlines()
        assert all(line.startswith("%") for line in outside_table)


@pytest.mark.parametrize("form", ["table", "latex", "markdown"])
def test_results_without_a_published_number_are_named_below_no_table(form):
    text = published_table(compare_with_published([pairwise("other")], RECIPE), form)
    assert "4 published numbers have no result: m, gpt." in text
    assert "1 results have no published number: other." in text


def test_csv_has_a_row_a_published_number_also_without_a_result(comparison):
    text = published_table(comparison, "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["verdict"] for row in rows] == ["inside", "outside", "inside", "inside"]
    assert float(rows[0]["difference"]) == pytest.approx(0.02)
    assert rows[2]["part"] == "n_turns=3;history=with"
    assert rows[2]["published_stderr"] == "0.063"
    nothing = list(
        csv.DictReader(io.StringIO(published_table(compare_with_published([], RECIPE), "csv")))
    )
    assert [(row["verdict"], row["ours"], row["n"]) for row in nothing] == [
        ("no result", "", "")
    ] * 4


def test_json_holds_the_same_numbers(comparison):
    document = json.loads(json.dumps(comparison.document()))
    first = document["against"][0]
    assert first["published"] == {"value": 0.8, "stderr": None, "n": 300}
    assert first["ours"]["low"] == 0.79
    assert first["verdict"] == "inside"
    assert document["against"][2]["by"] == {"n_turns": 3, "history": "with"}
    assert document["notes"] == comparison.notes()
