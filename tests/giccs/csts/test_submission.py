"""Rows with hidden labels are predicted, in the form that the server of C-STS takes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.csts.data import read_csts, write_csts
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store
from giccs.measures.submission import scores_by_index, write_submission
from giccs.models import open_model
from giccs.tasks import TaskOptions, open_tasks

HIDDEN = ["-1", "", "hidden", None]
"""What a file has in place of labels; None is no column."""


def hidden_file(path, rows, label="-1"):
    """Write rows without uids and labels, as the published test split is."""
    names = ["sentence1", "sentence2", "condition"]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    table = polars.DataFrame(columns | ({} if label is None else {"label": [label] * len(rows)}))
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_csv(path)
    return path


@pytest.fixture
def rows():
    """Rows of which the first and the last are a sentence pair, so that their pairs are not in order."""
    first, *others = read_csts("csts-sample", "test").instances[:8]
    return [*others, first]


@pytest.fixture
def folder(rows, tmp_path):
    hidden_file(tmp_path / "c-sts" / "csts_test.csv", rows)
    return tmp_path / "c-sts"


def call(command, *arguments):
    return CliRunner().invoke(command, [*map(str, arguments)])


def official(path):
    """Read predictions as the authors' make_test_submission.py does: their order is that of the indices."""
    predictions = json.loads(path.read_text("utf-8"))
    keys, values = zip(*sorted(predictions.items(), key=lambda item: int(item[0])), strict=True)
    assert [*keys] == [str(index) for index in range(len(keys))]
    return [*values]


@pytest.mark.parametrize("label", HIDDEN)
def test_csts_predicts_rows_with_hidden_labels(rows, tmp_path, label):
    path = hidden_file(tmp_path / "csts_test.csv", rows, label)
    done = call(
        evaluate, "baseline:char-ngram", "--task", "csts", "--data", path, "-o", tmp_path / "out"
    )
    assert done.exit_code == 0, done.output
    (written,) = (tmp_path / "out" / "submissions").rglob("test_predictions.json")
    assert f"predictions for the server of C-STS: {written}" in done.stderr
    left, right = ([f"{getattr(row, side)} {row.condition}" for row in rows]
                   for side in ("sentence1", "sentence2"))  # fmt: skip
    expected = open_model("baseline:char-ngram").pair_scores(left, right, lambda work, *_: work)
    assert official(written) == pytest.approx(expected)
    (result,) = Store(tmp_path / "out").results()
    assert {np.isnan(metric.value) for metric in result.metrics.values()} == {True}
    assert {metric.reason for metric in result.metrics.values()} == {"labels are hidden"}
    assert "labels are hidden" in done.stdout


def test_a_split_of_a_folder_is_predicted_and_an_existing_result_is_written_again(folder, tmp_path):
    command = ["baseline:char-ngram", "--task", "csts", "--split", "test", "--data", folder]
    first = json.loads(call(evaluate, *command, "-o", tmp_path / "out", "--json").stdout)
    (path,) = first["submissions"]
    (tmp_path / "out" / "submissions").rename(tmp_path / "removed")
    again = call(evaluate, *command, "-o", tmp_path / "out", "--json")
    assert "existing result" in again.stderr
    assert json.loads(again.stdout)["submissions"] == [path]
    (removed,) = (tmp_path / "removed").rglob("*.json")
    assert removed.read_text() == Path(path).read_text()


def test_labelled_rows_are_measured_and_not_submitted(tmp_path):
    done = call(
        evaluate, "baseline:char-ngram", "--task", "csts", "--limit", 4, "-o", tmp_path, "--json"
    )
    assert "submissions" not in json.loads(done.stdout)
    assert not (tmp_path / "submissions").exists()


def test_some_of_the_rows_keep_the_indices_of_all(folder, rows, tmp_path):
    """--limit 1 takes the sentence pair of the first row, whose partner is the last one or the next."""
    done = call(
        evaluate, "baseline:char-ngram", "--task", "csts", "--split", "test", "--data", folder,
        "--limit", 1, "-o", tmp_path / "out", "--json",
    )  # fmt: skip
    (path,) = json.loads(done.stdout)["submissions"]
    pair = (rows[0].sentence1, rows[0].sentence2)
    expected = [
        str(index) for index, row in enumerate(rows) if (row.sentence1, row.sentence2) == pair
    ]
    assert [*json.loads(Path(path).read_text())] == expected == ["0", "7"]


class Writer:
    name, identity = "writer", {"kind": "test"}

    def generate(self, prompts, max_tokens, progress):
        return [f"{index % 5 + 1}.0" if index else "no number" for index, _ in enumerate(prompts)]

    def environment(self):
        return {}


def test_prompting_predicts_them_too(folder, rows, tmp_path):
    (task,) = open_tasks("csts-prompt", TaskOptions(split="test"))
    result = evaluate_task(task, Writer(), task.read(str(folder)))
    store = Store(tmp_path / "out")
    store.add(result)
    written = write_submission(store, next(store.results()))
    scores = official(written)
    assert scores[1:] == [index % 5 + 1 for index in range(1, len(rows))]
    assert 1 <= scores[0] <= 5  # drawn, as in the paper
    assert result.metrics["spearman"].reason == "labels are hidden"
    assert result.metrics["invalid"].value == pytest.approx(1 / len(rows))


def test_a_score_that_is_not_finite_is_not_submitted(folder, tmp_path):
    class Undefined(Writer):
        def pair_scores(self, left, right, progress):
            return np.array([np.nan, *[0.5] * (len(left) - 1)])

    (task,) = open_tasks("csts", TaskOptions(split="test"))
    result = evaluate_task(task, Undefined(), task.read(str(folder)))
    with pytest.raises(InputError, match="1 of 8 scores are not finite"):
        write_submission(Store(tmp_path / "out"), result)
    assert not (tmp_path / "out").exists()


def test_a_table_without_hidden_rows_has_no_scores_to_submit():
    assert scores_by_index(polars.DataFrame({"uid": ["0"], "prediction": [0.5]})) == {}


# Training


def test_training_predicts_the_test_split_with_every_seed(rows, tmp_path):
    pytest.importorskip("accelerate")
    from giccs.csts.cli import main
    from giccs.csts.encoders.scorer import load_trained

    from . import tiny_bert

    model, data, out = tiny_bert.make(tmp_path / "bert"), tmp_path / "c-sts", tmp_path / "out"
    for split in ("train", "validation"):
        write_csts(read_csts("csts-sample", split).instances[:16], data / f"csts_{split}.csv")
    hidden_file(data / "csts_test.csv", rows)
    command = [
        "train", data, "--model", model, "--epochs", 1, "--batch-size", 8, "--learning-rate", 0.001,
        "--seed", 1, "--seed", 2, "-o", out, "--json",
    ]  # fmt: skip
    done = call(main, *command)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["split"] == "validation"
    assert len(document["submissions"]) == len(document["models"]) == 2
    assert "the labels of test are hidden; metrics are of validation" in done.stderr
    written = [*sorted((out / "submissions").rglob("test_predictions.json"))]
    assert sorted(map(str, written)) == sorted(document["submissions"])
    for path in written:
        digest = path.parent.name.rpartition("--")[2]
        trained = load_trained(out / "models" / digest)
        assert official(path) == pytest.approx(trained.predict(rows), abs=1e-6)
    one, two = map(official, written)
    assert one != two
    groups = document["results"][0]["groups"]
    assert [group["by"]["split"] for group in groups] == ["validation"]
    (out / "submissions").rename(tmp_path / "removed")
    again = call(main, *command)
    assert "existing result" in again.stderr
    assert json.loads(again.stdout)["submissions"] == document["submissions"]


def test_the_rows_of_test_are_part_of_the_signature(rows, tmp_path):
    from giccs.csts.encoders.splits import read_splits

    for split in ("train", "validation"):
        write_csts(read_csts("csts-sample", split).instances[:16], tmp_path / f"csts_{split}.csv")
    without = read_splits(tmp_path)
    hidden_file(tmp_path / "csts_test.csv", rows)
    with_test = read_splits(tmp_path)
    assert (with_test.test, len(with_test.hidden)) == ((), len(rows))
    assert (with_test.reported, with_test.predicted) == ("validation", ("validation", "hidden"))
    assert "8 rows with hidden labels" in with_test.described()
    assert without.fingerprint != with_test.fingerprint


def test_answers_that_lack_the_hidden_rows_leave_them_out_with_a_warning(rows, tmp_path):
    from giccs.csts.encoders.splits import read_splits

    data = tmp_path / "c-sts"
    lines = ["uid,answer1,answer2"]
    for split in ("train", "validation"):
        kept = read_csts("csts-sample", split).instances[:8]
        write_csts(kept, data / f"csts_{split}.csv")
        lines += [f"{split}:{row.uid},one,two" for row in kept]
    hidden_file(data / "csts_test.csv", rows)
    (tmp_path / "answers.csv").write_text("\n".join(lines), "utf-8")
    splits = read_splits(data, answers=tmp_path / "answers.csv")
    assert splits.hidden == ()
    assert any("test is not predicted" in str(warning) for warning in splits.warnings)
    lines += [f"test:{index},one,two" for index in range(len(rows))]
    (tmp_path / "answers.csv").write_text("\n".join(lines), "utf-8")
    answered = read_splits(data, answers=tmp_path / "answers.csv").hidden
    assert {replace(row, uid="", condition="", pair=0) for row in answered} == {
        replace(rows[0], sentence1="one", sentence2="two", label=None, uid="", condition="", pair=0)
    }
