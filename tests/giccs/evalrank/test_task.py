"""EvalRank as a task: from a model's vectors to a result that is stored and read again."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest

from giccs.evalrank.task import EvalRank
from giccs.evalrank.uniformity import Uniformity
from giccs.evalrank.vector_cache import cached_vectors
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.models.postprocess import wrapped
from giccs.progress import silent
from giccs.tasks import TaskOptions, open_tasks

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
SENTENCES = SHARED / "data" / "evalrank" / "sent_evalrank"
VECTORS = ROOT / ".cache" / "evalrank" / "minilm.npy"


class Table:
    """Stands for a model: vectors written down, one a text, so that ranks can be worked out by hand."""

    name = "table"

    def __init__(self, table):
        self._table = table

    @property
    def identity(self):
        return {"kind": "table", "similarity": "cosine"}

    def vectors(self, texts, progress):
        return np.array([self._table[text] for text in texts], np.float32)

    def environment(self):
        return {}


WORDS = {"car": [1, 0], "bus": [4, 3], "bike": [3, 4], "tea": [0, 1], "milk": [math.nan] * 2}


@pytest.fixture
def words(tmp_path):
    (tmp_path / "basic_vocab.txt").write_text("car\nbus\nbike\ntea\nmilk\n")
    (tmp_path / "pos_pair.txt").write_text("car\tbus\nbus\tcar\ntea\tbus\ntea\tmilk\n")
    return str(tmp_path)


def test_ranks_by_hand(words):
    # cosines: car-bus .8, car-bike .6, bus-bike .96, tea-bike .8, tea-bus .6
    (task,) = open_tasks("evalrank-word")
    result = evaluate_task(task, Table(WORDS), task.read(words), silent)
    assert result.predictions.rows() == [
        ("car", "bus", 1, 1, pytest.approx(0.8)),
        ("bus", "car", 2, 2, pytest.approx(0.8)),
        ("tea", "bus", 2, 2, pytest.approx(0.6)),
        ("tea", "milk", None, None, None),
    ]
    mrr = result.metrics["mrr"]
    assert (mrr.value, mrr.n) == (0.5, 4)  # (1 + 1/2 + 1/2 + 0) / 4
    assert mrr.extra["known"] == pytest.approx(2 / 3)
    assert mrr.reason == (
        "1 of 4 pairs are misses: a text has no vector; "
        "1 background texts have no vector and are excluded; 3 pairs: no interval, which needs 5"
    )
    assert result.metrics["mean_rank"].value == pytest.approx(5 / 3)
    assert result.environment["background_without_vector"] == 1


def test_a_signature_tells_how_it_was_asked(words):
    signatures = []
    for options in (
        TaskOptions(),
        TaskOptions(similarity="l2"),
        TaskOptions(similarity="cos-centred"),
        TaskOptions(reference=True),
        TaskOptions(seed=1),
    ):
        (task,) = open_tasks("evalrank-word", options)
        signatures.append(signature_of(task, Table(WORDS), task.read(words)))
    settings = [signature["setting"] for signature in signatures]
    assert settings == ["cos", "l2", "cos-centred", "cos, published program", "cos"]
    assert signatures[0]["similarity"] == "cos"  # and not what the model compares pairs with
    assert len({repr(signature) for signature in signatures}) == 5


def test_the_published_program_s_way_says_how_often_a_copy_wins(words):
    task = EvalRank("word", reference=True)
    result = evaluate_task(task, Table(WORDS), task.read(words))
    assert result.environment["own_copy_above"] in (0, 1, 2, 3)
    assert result.predictions["rank"].null_count() == 0  # unknown words have the mean vector there
    assert result.metrics["mrr"].n == 4


def test_texts_are_encoded_once_for_all_similarities_and_steps(words):
    class Counted(Table):
        asked = 0

        def vectors(self, texts, progress):
            Counted.asked += len(texts)
            return super().vectors(texts, progress)

    model = Counted(WORDS)
    changed = wrapped(model, "abtt:1")
    for one in (model, changed, wrapped(model, "pcr:1")):
        for similarity in ("cos", "l2"):
            task = EvalRank("word", similarity)
            result = evaluate_task(task, one, task.read(words))
    assert Counted.asked == len(WORDS)
    fresh = wrapped(Counted(WORDS), "abtt:1")  # a later call, whose vectors are kept already
    result = evaluate_task(Uniformity(), fresh, task.read(words))
    assert Counted.asked == len(WORDS)
    assert result.environment["postprocess"] == [{"step": "abtt:1", "fitted_on": "texts", "n": 4}]
    kept = cached_vectors(fresh, [*WORDS], silent)
    np.testing.assert_array_equal(kept, changed.vectors([*WORDS], silent))


def test_who_has_no_vectors_is_refused():
    task = EvalRank("sentence")
    assert task.refuses(Table(WORDS)) == ""
    assert task.refuses(open_model("baseline:char-ngram")) == (
        "returns no vectors; evalrank-sentence requires an encoder: "
        "encoder:FOLDER, package:minilm or static:FILE"
    )


def test_data_of_its_own():
    (sentences,), (words) = open_tasks("evalrank-sentence"), open_tasks("evalrank-word")
    assert (sentences.default_data, words[0].default_data) == ("giccs-sample", "")
    assert sentences.read == EvalRank("sentence", "l2").read != words[0].read


def test_a_real_encoder_on_a_benchmark_and_through_the_store(
    static_encoder, benchmark_file, tmp_path
):
    model = open_model(str(static_encoder))
    task = EvalRank("sentence", resamples=50)
    data = task.read(str(benchmark_file))
    result = evaluate_task(task, model, data)
    assert result.metrics["mrr"].n == len(data.pairs) == 6
    assert 0 < result.metrics["mrr"].low <= result.metrics["mrr"].value <= 1
    store = Store(tmp_path / "results")
    store.add(result)
    found = store.find(result.model, result.task, signature_of(task, model, data))
    assert found.metrics == result.metrics
    assert store.predictions(found).equals(result.predictions)
    again = evaluate_task(EvalRank("sentence", resamples=50), open_model(str(static_encoder)), data)
    assert again.metrics == result.metrics


def test_first_takes_pairs_and_leaves_the_background(static_encoder):
    task = EvalRank("sentence", resamples=10)
    data = task.read("giccs-sample")
    model = open_model(str(static_encoder))
    few, whole = (evaluate_task(task, model, some).predictions for some in (data.first(5), data))
    assert few.equals(whole.head(5))


def test_real_weights_on_the_published_sentences():
    """From vectors that the benchmark computes and keeps: two to four minutes on one core."""
    if not (VECTORS.exists() and SENTENCES.is_dir()):
        command = "python -m benchmarks.evalrank --vectors .cache/evalrank/minilm.npy"
        pytest.skip(f"{VECTORS} or {SENTENCES} is not there; set GICCS_SHARED and run {command}")
    task = EvalRank("sentence", resamples=50)
    data = task.read(str(SENTENCES))
    model = Table(dict(zip(data.texts, np.load(VECTORS), strict=True)))
    result = evaluate_task(task, model, data)
    assert result.metrics["mrr"].value == pytest.approx(0.837, abs=0.001)
    assert result.metrics["mrr"].extra["ties"] == pytest.approx(405, abs=20)
    assert result.environment["compared_in_float64"] < 200_000  # of 174 million
    assert isinstance(result.predictions, polars.DataFrame)
    some = replace(data, pairs=data.pairs[::10])
    reference = evaluate_task(EvalRank("sentence", reference=True, resamples=50), model, some)
    assert reference.metrics["mrr"].value == pytest.approx(0.748, abs=0.03)
    assert reference.environment["own_copy_above"] == pytest.approx(155, abs=50)
