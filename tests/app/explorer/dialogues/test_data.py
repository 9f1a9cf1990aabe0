"""The data behind the page "Dialogues"."""

import polars as pl
import pytest

from bws.files import judgments_from_records
from bws.records import Judgment
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs_app.explorer.dialogues import data as dialogues
from giccs_app.explorer.dialogues.data import DialogueFilter
from giccs_app.explorer.study import Study, items_of, load


@pytest.fixture(scope="module")
def sample():
    return load()


@pytest.fixture(scope="module")
def every(sample):
    return dialogues.dialogues(sample)


def ids(found):
    return found["dialogue_id"].to_list()


def test_each_dialogue_is_a_row_in_the_order_of_the_file(sample, every):
    assert ids(every) == list(sample.benchmark.dialogue_ids)
    first = every.row(0, named=True)
    own = sample.items.filter(pl.col("dialogue_id") == first["dialogue_id"])
    assert first["candidates"] == 5
    assert first["spread"] == own["score"].max() - own["score"].min()
    assert first["disagreement"] == pytest.approx(own["disagreement"].mean())
    assert "guten tag, womit" in first["text"]


def test_an_empty_wish_asks_for_all(sample, every):
    matches = dialogues.matching(every, sample.items, DialogueFilter())
    assert matches.drop("hits").equals(every)
    assert matches["hits"].sum() == 0


@pytest.mark.parametrize(
    ("criteria", "fits"),
    [
        (DialogueFilter(domains=("find_hotel",)), lambda one: one["domain"] == "find_hotel"),
        (DialogueFilter(sources=("spoken",)), lambda one: one["source"] == "spoken"),
        (DialogueFilter(lengths=(5,)), lambda one: one["n_turns"] == 5),
        (DialogueFilter(words="ROLLSTUHL"), lambda one: "rollstuhl" in one["text"]),
        (DialogueFilter(domains=("find_hotel", "find_cinema"), lengths=(3,)),
         lambda one: one["domain"] in ("find_hotel", "find_cinema") and one["n_turns"] == 3),
    ],
)  # fmt: skip
def test_a_filter_finds_what_fits_and_nothing_else(sample, every, criteria, fits):
    result = dialogues.matching(every, sample.items, criteria)
    assert ids(result) == [
        iter_row["dialogue_id"] for iter_row in every.iter_rows(named=True) if fits(iter_row)
    ]
    assert 0 < len(result) < len(every)


def test_search_takes_no_pattern(sample, every):
    assert dialogues.matching(every, sample.items, DialogueFilter(words=".*")).is_empty()


def test_score_and_disagreement_hold_for_the_same_candidate():
    turns = (Turn("user", "a"), Turn("user", "b"))
    items = [Item(f"{d}{u}", d, "", "", turns, u, u, 0.5) for d in "de" for u in "xy"]
    benchmark = Benchmark("b", tuple(items))
    frame = items_of(benchmark).with_columns(
        score=pl.Series([0.1, 0.9, 0.1, 0.9]), disagreement=pl.Series([0.6, 0.0, 0.0, 0.6])
    )
    study = Study(benchmark, frame)
    criteria = DialogueFilter(score=(0.8, 1.0), disagreement=(0.5, 1.0))
    assert ids(dialogues.matching(dialogues.dialogues(study), frame, criteria)) == ["e"]


def test_the_order_can_be_by_disagreement(sample, every):
    result = dialogues.matching(every, sample.items, DialogueFilter(order="disagreement"))
    assert result["disagreement"].is_sorted(descending=True)
    assert sorted(ids(result)) == sorted(ids(every))


def test_candidates_have_letters_in_the_files_order_and_come_by_score(sample):
    own = dialogues.candidates(sample.items, "restaurant-01")
    assert own["score"].is_sorted(descending=True)
    assert all(
        row["item_id"].endswith(f"-{row['letter'].lower()}") for row in own.iter_rows(named=True)
    )


def test_single_judgments_name_items_by_letter_in_the_order_shown(sample):
    rows = dialogues.single_judgments(sample, "restaurant-01")
    assert len(rows) == 50  # ten tuples, five annotators
    first = rows.row(0, named=True)
    # t001,restaurant-01,…-c,…-d,…-e, best …-d, worst …-c, shown …-e;…-d;…-c
    expected = {
        "tuple": "t001",
        "annotator": "simulated-1",
        "items": "E D C",
        "best": "D",
        "worst": "C",
    }
    assert expected.items() <= first.items()


def judged(rows):
    turns = (Turn("user", "a"), Turn("user", "b"))
    items = tuple(Item(name, "d", "s", "", turns, name, name, 0.5) for name in "abc")
    benchmark = Benchmark("b", items)
    return Study(benchmark, items_of(benchmark), judgments_from_records(rows))


def test_who_is_alone_with_an_answer_is_marked():
    rows = [Judgment(("a", "b", "c"), "a", worst, f"w{n}", "d") for n, worst in enumerate("ccb")]
    result = dialogues.single_judgments(judged(rows), "d")
    assert result["alone"].to_list() == [False, False, True]
    alone = [Judgment(("a", "b", "c"), "a", "c", "w1", "d")]
    assert dialogues.single_judgments(judged(alone), "d")["alone"].to_list() == [False]


def test_an_item_that_is_not_the_benchmarks_keeps_its_id():
    result = dialogues.single_judgments(
        judged([Judgment(("a", "b", "z"), "a", "z", "w", "d")]), "d"
    )
    assert result.row(0, named=True)["items"] == "A B z"


def test_a_dialogue_without_judgments_has_no_rows(sample):
    other = judged([Judgment(("x", "y", "z"), "x", "z", "w", "other")])
    assert dialogues.single_judgments(other, "d").is_empty()
    bare = Study(other.benchmark, other.items)
    assert dialogues.single_judgments(bare, "d").is_empty()
