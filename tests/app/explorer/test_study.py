"""What the explorer reads: the items with what the judgments say of them, and the results."""

import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bws.base.problems import InputError
from bws.files import judgments_from_records
from bws.records import Judgment
from bws.scoring import score
from giccs.benchmark import Benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs_app.explorer.study import index_in_judgments, load, stamp

TURNS = (Turn("user", "Guten Tag"), Turn("system", "Ja?"))
HEADER = "tuple_id,group,item1,item2,item3,best,worst,annotator\n"
JUDGED = HEADER + "t1,d,a,b,c,a,c,w1\nt1,d,a,b,c,a,c,w2\nt1,d,a,b,c,b,c,w3\nt2,d,a,b,e,a,e,w1\n"


def item(utterance, score, dialogue="d"):
    return Item(f"{dialogue}-{utterance}", dialogue, "s", "x", TURNS, utterance, utterance, score)


@pytest.fixture
def benchmark(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    # counting: a (3 - 0) / 4, b (1 - 0) / 4, c (0 - 3) / 3, e (0 - 1) / 1
    scores = {"a": 0.875, "b": 0.625, "c": 0.0, "e": 0.0}
    write_benchmark([item(name, score) for name, score in scores.items()], path)
    return str(path)


def judgments_file(tmp_path, text):
    path = tmp_path / "judgments.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def column(study, name):
    return dict(zip(study.items["utterance_id"], study.items[name], strict=True))


def test_counts_are_joined_to_the_items(benchmark, tmp_path):
    study = load(benchmark, judgments_file(tmp_path, JUDGED))
    assert column(study, "appearances") == {"a": 4, "b": 4, "c": 3, "e": 1}
    assert column(study, "best") == {"a": 3, "b": 1, "c": 0, "e": 0}
    assert column(study, "worst") == {"a": 0, "b": 0, "c": 3, "e": 1}
    assert study.problems == study.notes == ()


def test_copied_judgments_are_reported(benchmark, tmp_path):
    text = JUDGED + "t3,d,c,b,a,b,c,w3\n"
    study = load(benchmark, judgments_file(tmp_path, text))
    assert [str(problem).partition(" (")[0] for problem in study.problems] == [
        f"{tmp_path}/judgments.csv:6: 1 of 5 judgments repeat annotator, items, best and worst under another "
        "tuple id"
    ]
    assert len(study.judgments) == 5


def test_disagreement_is_the_share_against_the_most_frequent_place(benchmark, tmp_path):
    result = column(load(benchmark, judgments_file(tmp_path, JUDGED)), "disagreement")
    # in t1 one of three takes b for a: it places a and b elsewhere than the others, c not; t2 has one answer
    assert result == {"a": 1 / 4, "b": 1 / 4, "c": 0.0, "e": 0.0}


def test_an_item_that_nobody_judged_has_nulls(benchmark, tmp_path):
    study = load(
        benchmark, judgments_file(tmp_path, HEADER + "t1,d,a,b,c,a,c,w1\nt2,d,a,b,c,a,c,w2\n")
    )
    last = study.items.row(-1, named=True)
    assert last["utterance_id"] == "e"
    assert all(last[name] is None for name in ("low", "high", "appearances", "disagreement"))
    assert set(study.notes) == {"page.not_all_judged", "page.other_scores"}


def test_intervals_are_those_of_bws_score():
    study = load()
    assert study.judgments is not None
    scores = score(study.judgments, scale="unit", interval="model", ranks=True)
    np.testing.assert_allclose(study.items["low"], scores.low[study.index_in_judgments])
    np.testing.assert_allclose(study.items["high"], scores.high[study.index_in_judgments])
    ends = zip(scores.rank_low, scores.rank_high, strict=True)
    texts = ["–".join(f"{end:.0f}" for end in dict.fromkeys(pair)) for pair in ends]
    assert study.items["rank_set"].to_list() == [texts[n] for n in study.index_in_judgments]


def test_judgments_of_one_tuple_leave_the_rest_to_be_seen(benchmark, tmp_path):
    study = load(
        benchmark, judgments_file(tmp_path, HEADER + "t1,d,a,b,c,a,c,w1\nt1,d,a,b,c,a,b,w2\n")
    )
    assert study.items["low"].null_count() == 4  # two annotators are too few
    assert column(study, "best")["a"] == 2


def test_judgments_that_cannot_be_read_are_told_and_left_out(benchmark, tmp_path):
    study = load(benchmark, str(tmp_path / "nowhere.csv"))
    assert study.judgments is None
    assert "nowhere.csv" in study.problems[0].file
    assert "low" not in study.items.columns


def test_rows_that_are_no_judgment_are_told(benchmark, tmp_path):
    study = load(benchmark, judgments_file(tmp_path, JUDGED + "t1,d,a,b,c,a,a,w4\n"))
    assert len(study.judgments) == 4
    assert [problem.line for problem in study.problems] == [6]


def test_a_benchmark_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.jsonl"):
        load(str(tmp_path / "nowhere.jsonl"))


def test_an_utterance_of_two_dialogues_is_not_guessed_where_judgments_have_no_groups():
    rows = [Judgment(("a", "b", "c"), "a", "b")]
    benchmark = Benchmark("b", (item("a", 0.5), item("b", 0.5), item("a", 0.5, "other")))
    assert index_in_judgments(benchmark, judgments_from_records(rows).tuples).tolist() == [
        -1,
        1,
        -1,
    ]


def test_the_sample_is_known_to_be_simulated_and_others_are_by_their_annotators(
    benchmark, tmp_path
):
    assert load().is_simulated
    english = load("giccs-sample-en")
    assert english.is_simulated
    assert len(english.judgments) == 3000
    assert not load(benchmark, judgments_file(tmp_path, JUDGED)).is_simulated
    simulated = re.sub(r",w(?=\d)", ",simulated-", JUDGED)
    assert load(benchmark, judgments_file(tmp_path, simulated)).is_simulated
    assert not load(benchmark).is_simulated


def test_the_key_changes_with_a_file(benchmark, tmp_path):
    path = judgments_file(tmp_path, JUDGED)
    before = stamp(benchmark, path)
    judgments_file(tmp_path, JUDGED + "t2,d,a,b,e,a,e,w2\n")
    assert stamp(benchmark, path) != before
    assert stamp(benchmark, None) == stamp(benchmark)


def test_items_come_in_the_benchmarks_order(benchmark):
    study = load(benchmark)
    lines = Path(benchmark).read_text("utf-8").splitlines()
    assert study.items["item_id"].to_list() == [json.loads(line)["item_id"] for line in lines]
    assert study.items.schema["score"] == pl.Float64
    assert not any(math.isnan(score) for score in study.items["score"])
