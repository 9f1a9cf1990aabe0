"""The data behind the page "Overview"."""

import pytest

from bws.chance_agreement import agreement
from bws.files import judgments_from_records
from bws.records import Judgment
from bws.split_half import reliability
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs_app.explorer.overview import data as overview
from giccs_app.explorer.study import Study, items_of, load


@pytest.fixture(scope="module")
def sample():
    return load()


def judged(rows):
    turns = (Turn("user", "a"), Turn("user", "b"))
    items = tuple(Item(name, "d", "s", "", turns, name, name, 0.5) for name in "abc")
    benchmark = Benchmark("b", items)
    return Study(benchmark, items_of(benchmark), judgments_from_records(rows))


def test_facts_count_judgments_only_where_there_are_some(sample):
    assert overview.counts(sample) == {
        "items": 300, "dialogues": 60, "domains": 6, "judgments": 3000, "annotators": 5
    }  # fmt: skip
    assert "judgments" not in overview.counts(Study(sample.benchmark, sample.items))


def test_sizes_add_up(sample):
    sizes = overview.sizes(sample.items)
    assert (sizes["items"].sum(), sizes["dialogues"].sum()) == (300, 60)


def test_tables_are_those_of_the_commands_whole_and_by_part(sample):
    tables = overview.consistency(sample, trials=5)
    halves, agreed = (tables[name].to_frame("polars") for name in ("reliability", "agreement"))
    assert halves["split"].unique(maintain_order=True).to_list() == [
        "annotation",
        "annotator",
    ]
    halves = halves.filter(split="annotation")
    assert halves.select("source", "n_turns").rows() == [
        (None, None), ("spoken", 3), ("spoken", 5), ("written", 3), ("written", 5)
    ]  # fmt: skip
    whole = reliability(sample.judgments, trials=5).groups[0]
    assert halves["pearson"][0] == whole.pearson.mean
    assert halves["spearman_full"][0] == whole.spearman.spearman_brown
    assert halves["annotations"][1:].sum() == 3000
    whole = agreement(sample.judgments).groups[0]
    assert agreed["alpha_both"][0] == whole.alpha["both"].value
    assert agreed["strong_worst"][0] == whole.strong["worst"].value
    assert agreed["tuples"][1:].sum() == 600


def test_judgments_of_other_items_count_in_no_table(sample):
    rows = [Judgment(("x", "y", "z"), "x", "z", f"w{n}", "other") for n in range(3)]
    mine = [Judgment(("a", "b", "c"), "a", "c", f"w{n}", "d") for n in range(2)]
    table = overview.consistency(judged([*rows, *mine]))["agreement"].to_frame("polars")
    assert table["annotations"].to_list() == [2, 2]
    assert overview.consistency(judged(rows)) == {}
