"""The task csts: what an encoder is given, what is measured, what is left out."""

import json

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from bws.base.problems import InputError
from giccs.csts.data import pairs, read_csts
from giccs.csts.similarity import ConditionalSimilarity, hadamard_cosines
from giccs.evaluation.run import run
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks import TaskOptions, open_tasks


class Recorder:
    """Stands for a model: says what it was given, and answers with what was set."""

    name = "recorder"
    identity = {"kind": "recorder"}  # noqa: RUF012

    def __init__(self, scores=None):
        self.scores, self.seen = scores, None

    def pair_scores(self, left, right, progress):
        self.seen = [*zip(left, right, strict=True)]
        return self.scores

    def environment(self):
        return {}


def task(**options):
    (result,) = open_tasks("csts", TaskOptions(**options))
    return result


def data_file(tmp_path, *rows):
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["sentence1,sentence2,condition,label", *rows]) + "\n", "utf-8")
    return str(path)


KITES = ("A kite.,A bus.,The color.,5", "A kite.,A bus.,The size.,1", "A cat.,A dog.,The age.,3")


def test_the_condition_stands_behind_each_sentence(tmp_path):
    model, asked = Recorder(np.array([0.9, 0.1, 0.5])), task()
    result = evaluate_task(asked, model, asked.read(data_file(tmp_path, *KITES)))
    assert model.seen == [
        ("A kite. The color.", "A bus. The color."), ("A kite. The size.", "A bus. The size."),
        ("A cat. The age.", "A dog. The age."),
    ]  # fmt: skip
    assert result.signature["template"] == "{sentence} {condition}"
    assert result.signature["setting"] == "bi"
    assert result.metrics["spearman"].value == pytest.approx(1)
    assert (result.metrics["pair_accuracy"].value, result.metrics["pair_accuracy"].n) == (1, 1)


def test_without_the_condition_the_sentences_are_compared(tmp_path):
    model, asked = Recorder(np.array([0.9, 0.9, 0.5])), task(condition=False)
    result = evaluate_task(asked, model, asked.read(data_file(tmp_path, *KITES)))
    assert model.seen[:2] == [("A kite.", "A bus.")] * 2
    assert result.signature["setting"] == "bi, no condition"
    accuracy = result.metrics["pair_accuracy"]
    assert (accuracy.value, accuracy.extra["ties"]) == (0.5, 1)  # a tie counts half


def test_answers_take_the_place_of_the_sentences(tmp_path):
    answers = tmp_path / "answers.csv"
    answers.write_text("uid,answer1,answer2\n0,red,green\n1,small,large\n2,old,young\n", "utf-8")
    model = Recorder(np.array([0.9, 0.1, 0.5]))
    path = data_file(tmp_path, *KITES)
    asked = task(answers=str(answers), condition=False)
    result = evaluate_task(asked, model, asked.read(path))
    assert model.seen == [("red", "green"), ("small", "large"), ("old", "young")]
    assert result.signature["setting"] == "bi, no condition, QA answers"
    assert result.signature["data"] != task().read(path).fingerprint


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    path = data_file(tmp_path, *KITES, "A cat.,A dog.,The fur.,-1", "A hat.,A cap.,The use.,")
    data = task().read(path)
    assert [instance.label for instance in data.instances] == [5, 1, 3]
    message = " ".join(map(str, data.warnings))
    assert "1 rows are skipped: their label is -1" in message
    assert "1 of 5 rows have no label" in message
    model = Recorder(np.array([0.9, 0.1, 0.5]))
    table = evaluate_task(task(), model, data).predictions
    texts = ["sentence1", "sentence2", "condition"]
    assert table.columns == ["uid", "prediction", "label", *texts]
    assert table["sentence2"].to_list() == [row.sentence2 for row in data.instances]
    assert table[:, :3].rows() == [("0", 0.9, 5), ("1", 0.1, 1), ("2", 0.5, 3)]


def test_only_the_split_is_read():
    first, second = (task(split=split).read("csts-sample") for split in ("train", "test"))
    assert (len(first.instances), len(second.instances)) == (380, 120)
    assert task().read("csts-sample").first(3).described() == "3 sentence pairs, 6 rows"


def test_numbers_are_scipy_s_and_pairs_are_counted(static_encoder):
    asked = task()
    data = asked.read("csts-sample").first(20)
    result = evaluate_task(asked, open_model(f"encoder:{static_encoder}"), data)
    table = result.predictions
    for name, of in (("spearman", spearmanr), ("pearson", pearsonr)):
        found = result.metrics[name]
        expected = of(table["prediction"], table["label"]).statistic
        assert found.value == pytest.approx(expected, abs=1e-12)
        assert found.low <= found.value <= found.high
    said = dict(zip(table["uid"], table["prediction"], strict=True))
    apart = [two for two in pairs(data.dataset) if two[0].label != two[1].label]
    right = [said[high.uid] > said[low.uid] for high, low in apart]
    assert result.metrics["pair_accuracy"].value == pytest.approx(np.mean(right))


def test_three_vectors_are_multiplied_and_compared(static_encoder):
    model = open_model(f"encoder:{static_encoder}")
    asked = task(encoding="tri")
    data = asked.read("csts-sample").first(4)
    result = evaluate_task(asked, model, data).predictions["prediction"].to_list()
    for one, value in zip(data.instances, result, strict=True):
        a, b, c = model.vectors([one.sentence1, one.sentence2, one.condition], silent).astype(float)
        expected = (a * c) @ (b * c) / np.linalg.norm(a * c) / np.linalg.norm(b * c)
        assert value == pytest.approx(expected, abs=1e-6)
    assert signature_of(asked, model, data)["setting"] == "tri"


def test_a_product_of_zero_has_no_cosine():
    x, y, c = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]])
    assert np.isnan(hadamard_cosines(x, y, c)).tolist() == [True]


def test_a_model_that_has_no_answer_gives_a_reason_and_no_number(tmp_path):
    model, asked = Recorder(np.array([0.9, np.nan, 0.5])), task()
    result = evaluate_task(asked, model, asked.read(data_file(tmp_path, *KITES)))
    assert np.isnan(result.metrics["spearman"].value)
    assert result.metrics["spearman"].reason == "1 predictions are NaN"


def test_what_a_model_cannot_do_is_said():
    writer = type("Writer", (), {"name": "writer", "score": None})()
    assert "csts-prompt" in task().refuses(writer)
    assert "returns no vectors" in task(encoding="tri").refuses(Recorder())
    assert task().refuses(Recorder()) == ""


def test_a_tri_encoder_without_condition_is_refused():
    with pytest.raises(InputError, match="separately and requires it"):
        task(encoding="tri", condition=False)


def test_a_result_is_kept_and_found_again(static_encoder, tmp_path):
    model, asked = open_model(f"encoder:{static_encoder}"), task()
    data, store = asked.read("csts-sample").first(5), Store(tmp_path)
    (before,) = run([model], [asked], data, store)
    notes = []
    (after,) = run([model], [asked], data, store, note=notes.append)
    assert "existing result" in notes[0]
    assert after.document() == json.loads(json.dumps(before.document()))


def test_the_signature_tells_settings_apart(static_encoder):
    model, data = open_model(f"encoder:{static_encoder}"), task().read("csts-sample")
    ways = [{}, {"condition": False}, {"encoding": "tri"}, {"seed": 1}]
    result = {json.dumps(signature_of(task(**way), model, data), sort_keys=True) for way in ways}
    assert len(result) == len(ways)
    assert ConditionalSimilarity().default_data == "csts-sample"
    assert read_csts("csts-sample", "validation").fingerprint == data.fingerprint
