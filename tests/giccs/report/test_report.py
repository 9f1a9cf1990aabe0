"""The report of pairwise results beside the noise ceiling, in every format."""

import csv
import io
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.comparison import share
from giccs.measures.results import Group, Result
from giccs.models import open_model
from giccs.report import choice_breakdown, long_csv, main_table, report, turns_table
from giccs.tasks.pairwise import PairwiseSTS
from tests.stacked_cells import on_one_line


@pytest.fixture
def benchmark(benchmark_file):
    return read_benchmark(benchmark_file)


@pytest.fixture
def results(benchmark):
    task = PairwiseSTS(resamples=20)
    names = ("baseline:chance", "baseline:char-ngram")
    return [evaluate_task(task, open_model(name), benchmark) for name in names]


@pytest.fixture
def ceiling(benchmark):
    extra = {"reliability": 0.81, "data": benchmark.fingerprint}
    return {
        "pearson": Estimate(0.9, 0.85, 0.95, 30, extra=extra),
        "spearman": Estimate(
            math.nan, math.nan, math.nan, 30, "halves contradict", extra | {"reliability": math.nan}
        ),
    }


def choice(model, **accuracies):
    """A multiple-choice result; accuracies are right answers of 30, named with3, without5 and so on."""
    groups = [
        Group(
            {"history": name[:-1], "n_turns": int(name[-1])}, {"accuracy": share(np.arange(30) < n)}
        )
        for name, n in accuracies.items()
    ]
    part = Group({"history": "with", "domain": "tv"}, {"accuracy": share(np.arange(9) < 3)})
    signature = {
        "history": "both", "template": {"name": "figure2-de-1"}, "answer": "sentence",
        "chat_template": False, "permutations": 1,
    }  # fmt: skip
    whole = {"accuracy": share(np.arange(60) < 9)}
    return Result(
        model, "multiple-choice-sts", whole, (*groups, part), signature, {"data": "made-up"}, 0.0
    )


def test_table_6_has_the_columns_and_decimals_of_the_paper():
    """The published row: 4, 5, 3 and 2 of 30 questions right."""
    paper = choice("mGPT", without5=2, with3=4, with5=3, without3=5)
    lines = turns_table([paper, choice("other", with3=30)]).text().splitlines()
    columns = ["model", "prompt", "3-turn w/ history", "3-turn w/o history", "5-turn w/ history",
               "5-turn w/o history"]  # fmt: skip
    assert [cell.strip() for cell in lines[0].split("  ") if cell.strip()] == columns
    cells = [cell.strip() for cell in lines[2].split("  ") if cell.strip()]
    assert cells == [
        "mGPT", "figure2-de-1", "0.133 ± 0.063", "0.167 ± 0.069", "0.100 ± 0.056", "0.067 ± 0.046",
    ]  # fmt: skip
    assert "1.000 ± 0.000" in lines[3]
    assert "n_turns" not in choice_breakdown([paper]).text()
    assert "domain=tv" in choice_breakdown([paper]).text()
    (group,) = choice("fewer", with3=3).groups[:1]
    fewer = replace(paper, groups=(replace(group, metrics={"accuracy": share(np.arange(20) < 3)}),))
    assert turns_table([paper, fewer]).title.endswith(
        "questions: 20 or 30 of 3 turns, 30 of 5 turns"
    )
    alone = replace(paper, groups=())
    assert turns_table([alone]) is choice_breakdown([alone]) is None


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_the_ceiling_is_the_last_row_and_is_explained(results, ceiling, form):
    table = main_table(results, ceiling).text(form)
    last = [line for line in table.splitlines() if "noise ceiling" in line]
    assert len(last) == 1
    assert table.index("noise ceiling") > table.index("baseline:chance")
    assert "0.900 [0.850, 0.950]" in on_one_line(last[0])
    assert "undefined" in last[0]
    text = report(results, form, ceiling)
    assert "reliability is 0.810 (Pearson r)" in text
    assert "noise ceiling: Spearman ρ: halves contradict" in text
    for line in text.splitlines():
        if "reliability is" in line or "contradict" in line:
            assert line.startswith("%") == (form == "latex")


def test_sentences_stand_apart_from_a_markdown_table(results, ceiling):
    """A line right below a table would be read as its next row."""
    lines = report(results, "markdown", ceiling).splitlines()
    for above, line in pairwise(lines):
        if line and not line.startswith("|"):
            assert not above.startswith("|")


def test_csv_has_the_ceiling_once(results, ceiling, benchmark):
    rows = list(csv.DictReader(io.StringIO(report(results, "csv", ceiling))))
    of_ceiling = [row for row in rows if row["model"] == "noise ceiling"]
    assert [(row["metric"], row["value"], row["reason"]) for row in of_ceiling] == [
        ("pearson", "0.9", ""),
        ("spearman", "", "halves contradict"),
    ]
    assert {(row["task"], row["data"]) for row in of_ceiling} == {("pairwise-sts", benchmark.name)}
    assert report(results, "csv") == long_csv(results)
    assert "noise ceiling" not in long_csv(results)


def test_the_ceiling_stands_only_beside_results_on_its_data(results, ceiling, benchmark):
    part = evaluate_task(
        PairwiseSTS(resamples=5), open_model("baseline:chance"), benchmark.first(4)
    )
    of_whole, of_part = report([*results, part], "table", ceiling).split("\npairwise-sts on ")
    assert "noise ceiling" in of_whole
    assert "noise ceiling" not in of_part
    assert "noise ceiling" not in report([part], "table", ceiling)
    assert "noise ceiling" not in report([part], "csv", ceiling)


def test_without_a_ceiling_nothing_is_said_of_one(results):
    for form in ("table", "markdown", "latex", "csv"):
        assert "noise ceiling" not in report(results, form)


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_intervals_of_few_dialogues_are_dashes_with_one_note(results, form):
    """Each part of the benchmark has two or three dialogues."""
    text = report(results, form)
    assert "[–]" in text
    *_, few, approximate, population = text.splitlines()
    assert "no interval, which needs 5" in few
    assert text.count("no interval") == 1
    assert approximate.endswith("6 dialogues: the interval is approximate below 20")
    assert population.endswith("generalise to other dialogues of the same domains.")
    assert text.count("interval is approximate") == 1
    rows = list(csv.DictReader(io.StringIO(report(results, "csv"))))
    parts = [row for row in rows if row["part"] and row["value"]]
    assert {(row["low"], row["high"]) for row in parts} == {("", "")}
    assert all("no interval, which needs 5" in row["reason"] for row in parts)


def test_every_number_of_the_table_is_in_the_csv(results):
    rows = list(csv.DictReader(io.StringIO(long_csv(results))))
    table = main_table(results).text()
    for result in results:
        for name, estimate in result.metrics.items():
            (row,) = [
                row
                for row in rows
                if (row["model"], row["metric"], row["part"]) == (result.model, name, "")
            ]
            assert float(row["value"]) == estimate.value
            assert f"{estimate.value:.3f}" in table


def measured_result(model, values, reasons=(), data="d" * 64, n=100, name="accuracy"):
    whole = {
        what: Estimate(value, math.nan, math.nan, 2, *reasons) for what, value in values[0].items()
    }
    groups = tuple(
        Group(
            {"set": of},
            {name: Estimate(value, math.nan, math.nan, n, "" if value == value else "too few")},
        )
        for of, value in values[1].items()
    )
    environment = {"data": "folder"}
    return Result(model, "classification", whole, groups, {"data": data}, environment, 0.0, None)


def test_many_models_stand_below_each_other_and_many_parts_too():
    sets = {"MR": 0.5, "CR": 0.25}
    few = [measured_result("model", ({"accuracy": 0.375}, sets))]
    many = [measured_result(f"model-{n}", ({"accuracy": n / 10}, sets)) for n in range(9)]
    rows = [line.split() for line in report(few, "table").splitlines()]
    assert ["set=MR", "100", "0.50", "[–]"] in rows
    assert ["model", "setting", "accuracy", "[95", "%]", "sets"] in rows
    rows = [line.split() for line in report(many, "table").splitlines()]
    assert ["model", "set=MR", "(n=100)", "set=CR", "(n=100)"] in rows
    assert ["model-3", "0.50", "[–]", "0.25", "[–]"] in rows


def test_a_part_that_rests_on_less_says_so():
    both = [
        measured_result("knows", ({"accuracy": 0.5}, {"MR": 0.5})),
        measured_result("guesses", ({"accuracy": 0.25}, {"MR": 0.25}), n=40),
    ]
    rows = [line.split() for line in report(both, "table").splitlines()]
    assert ["knows", "0.50", "[–]"] in rows
    assert ["guesses", "0.25", "[–]", "n=40"] in rows


def test_a_reason_is_said_once_a_model_and_of_parts_without_a_number():
    values = {"mrr": 0.5, "hits@1": 0.25}, {"MR": 0.5, "TREC": math.nan}
    one = measured_result("model", values, ["3 pairs are misses"], name="mrr")
    said = report([one], "table").splitlines()[-2:]
    assert said == ["model: MRR, Hits@1: 3 pairs are misses", "model: set=TREC: too few"]


def test_tables_of_other_content_have_other_titles():
    two = [measured_result("model", ({"accuracy": 0.5}, {}), data=mark * 64) for mark in "ab"]
    titles = [line for line in report(two, "table").splitlines() if " on folder" in line]
    assert titles == [f"classification on folder (content {mark * 6})" for mark in "ab"]
    assert "content" not in report(two[:1], "table")


@pytest.mark.parametrize("task", ["classification", "pairwise-sts"])
def test_a_step_that_could_not_be_done_as_asked_is_said(task, results):
    how = {"postprocess": [{"step": "pcr"}, {"step": "whitening:40", "warning": "12 of 40"}]}
    base = (
        measured_result("m+w", ({"accuracy": 0.5}, {})) if task == "classification" else results[0]
    )
    one = replace(base, model="m+w", environment={**base.environment, **how})
    assert "m+w: whitening:40: 12 of 40" in report([one], "table").splitlines()


def test_ties_are_told_with_what_they_would_cost(tmp_path):
    extra = {"pessimistic": 0.25, "ties": 3}
    ranked = Result("m", "evalrank-word", {"mrr": Estimate(0.5, 0.4, 0.6, 10, extra=extra)}, (),
                    {"setting": "cos"}, {"own_copy_above": 2}, 0.0)  # fmt: skip
    text = report([ranked], "table")
    assert "m (cos): 3 of 10 have ties; MRR with all ties counted against it: 0.250" in text
    assert "m (cos): 2 positives rank below their own copy" in text


def test_a_quantised_model_is_told_apart_from_the_plain_one(results):
    plain = results[0]
    said = plain.signature | {"quantised": "bitsandbytes NF4, 4 bits"}
    both = [plain, replace(plain, signature=said)]
    assert "baseline:chance, 4 bits" in main_table(both).text()
    models = {row["model"] for row in csv.DictReader(io.StringIO(long_csv(both)))}
    assert models == {"baseline:chance", "baseline:chance, 4 bits"}
