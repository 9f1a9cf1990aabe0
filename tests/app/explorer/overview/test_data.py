"""The data behind the page "Overview"."""

import math

import pytest

from app.explorer.overview import data as overview
from app.explorer.study import Study, items_of, load
from bws.agreement import agreement
from bws.records import Judgment, Judgments
from bws.split_half import reliability
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs.description.distribution import distribution
from giccs.description.statistics import Description


@pytest.fixture(scope="module")
def sample():
    return load()


def judged(rows):
    turns = (Turn("user", "a"), Turn("user", "b"))
    items = tuple(Item(name, "d", "s", "", turns, name, name, 0.5) for name in "abc")
    benchmark = Benchmark("b", items)
    return Study(benchmark, items_of(benchmark), Judgments.from_records(rows))


def test_facts_count_judgments_only_where_there_are_some(sample):
    assert overview.facts(sample) == {
        "items": 300, "dialogues": 60, "domains": 6, "judgments": 3000, "annotators": 5
    }  # fmt: skip
    assert "judgments" not in overview.facts(Study(sample.benchmark, sample.items))


def test_sizes_add_up(sample):
    sizes = overview.sizes(sample.items)
    assert (sizes["items"].sum(), sizes["dialogues"].sum()) == (300, 60)


def test_bins_are_those_of_figure_1(sample):
    table = overview.bins_table(distribution(sample.items["score"].to_list()))
    assert table["items"].sum() == 300
    assert table["low"].to_list() == [0.0, 0.2, 0.4, 0.6, 0.8]


def test_reliability_is_that_of_the_command_whole_and_by_part(sample):
    table = overview.reliability_table(sample, trials=5)
    assert table.select("source", "n_turns").rows() == [
        (None, None), ("spoken", 3), ("spoken", 5), ("written", 3), ("written", 5)
    ]  # fmt: skip
    whole = reliability(sample.judgments, trials=5).groups[0]
    assert table["pearson"][0] == whole.pearson.mean
    assert table["spearman_full"][0] == whole.spearman.spearman_brown
    assert table["annotations"][1:].sum() == 3000


def test_agreement_is_that_of_the_command_whole_and_by_part(sample):
    table = overview.agreement_table(sample)
    whole = agreement(sample.judgments).groups[0]
    assert table["alpha_both"][0] == whole.alpha["both"].value
    assert table["strong_worst"][0] == whole.strong["worst"].value
    assert table["tuples"][1:].sum() == 600


def test_judgments_of_other_items_count_in_no_table(sample):
    rows = [Judgment(("x", "y", "z"), "x", "z", f"w{n}", "other") for n in range(3)]
    mine = [Judgment(("a", "b", "c"), "a", "c", f"w{n}", "d") for n in range(2)]
    table = overview.agreement_table(judged([*rows, *mine]))
    assert table["annotations"].to_list() == [2, 2]
    assert overview.agreement_table(judged(rows)).is_empty()
    assert overview.reliability_table(judged(rows)).is_empty()


def test_table_2_has_nulls_and_reasons_for_what_is_no_number():
    part = Description(
        {"n_turns": 3, "domain": "x"}, 1, 3, 9, 2.5, math.nan, 8, 3.0, {"mtld": "short"}
    )
    whole = Description({}, 1, 3, 9, 2.5, 40.0, 8, 3.0)
    table = overview.description_table([part, whole])
    assert table["mtld"].to_list() == [None, 40.0]
    assert table["n_turns"].to_list() == [3, None]
    assert table["remarks"].to_list() == ["mtld: short", None]
