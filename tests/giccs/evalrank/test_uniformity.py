"""Alignment and uniformity against SciPy's distances, and as a task on words, sentences and a benchmark."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from giccs.evalrank import uniformity as module
from giccs.evalrank.uniformity import alignment, normalize_vectors, open_tasks, read, uniformity
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks import TaskOptions


@pytest.fixture
def units():
    draw = np.random.default_rng(3)
    return normalize_vectors(draw.normal(size=(70, 8)).astype(np.float32))[0]


def test_uniformity_is_the_log_mean_over_scipys_distances(units, monkeypatch):
    expected = math.log(np.exp(-2 * pdist(units.astype(np.float64)) ** 2).mean())
    for block in (2048, 70, 16, 7):
        monkeypatch.setattr(module, "BLOCK_SIZE", block)
        assert uniformity(units).value == pytest.approx(expected, abs=1e-6)


def test_alignment_is_the_mean_squared_distance(units):
    pairs = np.array([[0, 1], [1, 0], [2, 3], [3, 4], [5, 5], [0, 6], [7, 8]])
    a, b = units[[0, 2, 3, 0, 7]].astype(float), units[[1, 3, 4, 6, 8]].astype(float)
    result = alignment(units, pairs)
    assert result.value == pytest.approx(np.mean(np.sum((a - b) ** 2, axis=1)))
    assert result.n == 5
    assert result.low < result.value < result.high
    few = alignment(units, pairs[:5])
    assert math.isnan(few.low)
    assert few.reason == "3 pairs: no interval, which needs 5"
    assert math.isnan(uniformity(units[:4]).low)
    assert uniformity(units[:4]).reason == "4 texts: no interval, which needs 5"


def test_copies_of_one_text_and_opposite_vectors_are_the_ends():
    same = np.ones((5, 4), np.float32) / 2
    assert uniformity(same).value == pytest.approx(0)
    assert alignment(same, np.array([[0, 1]])).value == 0
    opposite = np.array([[1, 0], [-1, 0]], np.float32)
    assert alignment(opposite, np.array([[0, 1]])).value == 4
    assert uniformity(opposite).value == pytest.approx(-8)


def test_the_uniform_circle_is_more_uniform_than_half_of_it():
    angles = np.linspace(0, 2 * np.pi, 500, endpoint=False)
    circle, half = (
        np.stack([np.cos(a), np.sin(a)], axis=1).astype(np.float32) for a in (angles, angles / 2)
    )
    assert uniformity(circle).value < uniformity(half).value


def test_the_interval_of_uniformity_covers_other_draws():
    """Nineteen of twenty intervals should hold the value of a much larger draw; at least 88 of 100 do."""
    draw = np.random.default_rng(0)

    def sample(n):
        vectors = draw.normal(size=(n, 4))
        vectors[:, 0] += 1
        return normalize_vectors(vectors.astype(np.float32))[0]

    truth = uniformity(sample(6000)).value
    result = [uniformity(sample(60)) for _ in range(100)]
    assert sum(one.low <= truth <= one.high for one in result) >= 88


def test_texts_without_a_vector_are_left_out():
    vectors = np.array([[1, 0], [np.nan, np.nan], [0, 0], [0, 3]], np.float32)
    units, known = normalize_vectors(vectors)
    assert known.tolist() == [True, False, False, True]
    result = alignment(units, np.array([[0, 1], [0, 3], [2, 3]]), known)
    assert (result.value, result.n) == (2.0, 1)
    assert (
        result.reason
        == "2 of 3 pairs excluded: a text has no vector; 1 pairs: no interval, which needs 5"
    )
    assert math.isnan(alignment(units, np.array([[0, 1]]), known).value)
    assert "requires two" in uniformity(units[:1]).reason


def test_it_is_a_task(tmp_path, static_encoder):
    for name, files in {
        "sentences": {"background_sent.txt": "ein Tisch\nam Fenster\nheute gern\n"},
        "words": {"basic_vocab.txt": "ein Tisch\nam Fenster\nheute gern\n"},
    }.items():
        (tmp_path / name).mkdir()
        for file, text in {**files, "pos_pair.txt": "ein Tisch\tam Fenster\n"}.items():
            (tmp_path / name / file).write_text(text)
    model = open_model(str(static_encoder))
    (task,) = open_tasks(TaskOptions())
    assert task.refuses(model) == ""
    assert "requires an encoder" in task.refuses(open_model("baseline:chance"))
    results = []
    for name in (str(tmp_path / "sentences"), str(tmp_path / "words"), "giccs-sample"):
        data = task.read(name)
        result = evaluate_task(task, model, data)
        Store(tmp_path / "results").add(result)
        results.append(result)
        assert 0 <= result.metrics["alignment"].value <= 4
        assert -8 <= result.metrics["uniformity"].value <= 0
        assert result.metrics["uniformity"].n == len(data.texts)
    assert [result.signature["setting"] for result in results] == ["sentence", "word", "sentence"]
    assert results[0].metrics == results[1].metrics
    assert len(list(Store(tmp_path / "results").results())) == 3
    assert read("giccs-sample").fingerprint == results[2].signature["data"]


def test_how_many_texts_are_left_out_is_said(tmp_path):
    (tmp_path / "basic_vocab.txt").write_text("car\nbus\ntea\n")
    (tmp_path / "pos_pair.txt").write_text("car\tbus\n")
    (tmp_path / "vectors.txt").write_text("car 1 0\nbus 0 1\n")
    (task,) = open_tasks(TaskOptions())
    model = open_model(f"static:{tmp_path / 'vectors.txt'}")
    result = evaluate_task(task, model, task.read(str(tmp_path))).metrics["uniformity"]
    few = "2 texts: no interval, which needs 5"
    assert (result.n, result.reason) == (2, f"{few}; 1 of 3 texts excluded: no vector")
