"""Models that giccs csts train made are applied by giccs eval, and refused where they cannot be used."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.csts.cli import main
from giccs.csts.data import read_csts, write_csts
from giccs.measures.results import Store
from giccs.models import ModelOptions, open_model
from tests.nightly import others_nightly

from ..deferred import Deferred, requires
from . import tiny_bert, tiny_roberta

pytestmark = requires("torch", "accelerate")
torch = Deferred("torch")
scorers = Deferred("giccs.csts.encoders.scorer")
safetensors = Deferred("safetensors.torch")

SPLITS = {"train": 16, "validation": 12, "test": 20}
SHORT = ["--epochs", 1, "--batch-size", 8, "--learning-rate", 0.001, "--device", "cpu"]
WAYS = {
    "bi": ["--encoding", "bi", "--pooling", "mean"],
    "tri": ["--encoding", "tri", "--operation", "concatenation", "--transform"],
    "cross": ["--encoding", "cross"],
    "no condition": ["--encoding", "bi", "--no-condition"],
}


def call(command, *arguments):
    return CliRunner().invoke(command, [*map(str, arguments)])


def document_of(command, *arguments):
    done = call(command, *arguments, "--json")
    assert done.exit_code == 0, f"{done.output}\n{done.exception}"
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data, answers to all of them, and two base encoders."""
    place = tmp_path_factory.mktemp("applying")
    lines = ["uid,answer1,answer2"]
    for split, count in SPLITS.items():
        rows = read_csts("csts-sample", split).instances[:count]
        write_csts(rows, place / "c-sts" / f"csts_{split}.csv")
        lines += [f"{split}:{row.uid},a {n % 5} man,a {n % 3} bus" for n, row in enumerate(rows)]
    (place / "answers.csv").write_text("\n".join(lines), "utf-8")
    tiny_bert.make(place / "bert")
    tiny_roberta.make(place / "roberta")
    return place


@pytest.fixture(scope="module")
def trained(place):
    """Train by the command; return the folder of the model and the training's result."""
    known = {}

    def train(base, way, *options):
        if (base, way) not in known:
            out = place / f"{base} {way}"
            command = ["train", place / "c-sts", "--model", place / base, "-o", out, *SHORT]
            document = document_of(main, *command, *WAYS.get(way, ()), *options)
            known[base, way] = Path(document["models"][0]), document["results"][0]
        return known[base, way]

    return train


def applied(place, folder, *options, split="test"):
    command = [folder, "--task", "csts", "--data", place / "c-sts", "--split", split]
    return document_of(evaluate, *command, "-o", place / "results", "--device", "cpu", *options)


def assert_same_numbers(found, expected):
    assert found.keys() == expected.keys() == {"spearman", "pearson", "pair_accuracy"}
    for name, metric in expected.items():
        for number in ("value", "low", "high", "n"):
            assert found[name][number] == pytest.approx(metric[number], abs=1e-5), name


@pytest.mark.parametrize(
    ("base", "way"),
    others_nightly(
        itertools.product(["bert", "roberta"], WAYS),
        *(("bert", way) for way in WAYS),
        ("roberta", "cross"),
    ),
)
def test_a_trained_model_gives_the_numbers_of_its_training(place, trained, base, way):
    folder, training = trained(base, way)
    (result,) = applied(place, folder)["results"]
    assert_same_numbers(result["metrics"], training["metrics"])
    assert result["signature"]["setting"] == f"trained: {training['signature']['setting']}"
    assert result["signature"]["template"] == training["signature"]["template"]
    (validation,) = applied(place, folder, split="validation")["results"]
    assert_same_numbers(validation["metrics"], training["groups"][0]["metrics"])
    results = {result.signature["asked"]["split"]: result for result in Store(place / "results").results()
               if result.model == str(folder)}  # fmt: skip
    predictions = Store(place / "results").predictions(results["test"])["prediction"].to_numpy()
    expected = Store(folder.parents[1])
    kept = expected.predictions(next(expected.results()))["prediction"].to_numpy()
    assert predictions == pytest.approx(kept, abs=1e-6)
    assert np.ptp(kept) > 0


def test_a_model_trained_on_answers_needs_answers(place, trained):
    answers = ["--answers", place / "answers.csv"]
    folder, training = trained("bert", "answers", *answers)
    (result,) = applied(place, folder, *answers)["results"]
    assert_same_numbers(result["metrics"], training["metrics"])
    done = call(evaluate, folder, "--task", "csts", "--data", place / "c-sts")
    assert done.exit_code == 2
    assert "was trained on answers instead of sentences; add --answers FILE" in done.stderr


def test_a_batch_size_changes_nothing_but_rounding(place, trained):
    folder, training = trained("bert", "bi")
    (result,) = applied(place, folder, "--batch-size", 3, "--force")["results"]
    assert_same_numbers(result["metrics"], training["metrics"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--encoding", "tri"], "was trained as a bi-encoder; omit --encoding"),
        (["--no-condition"], "was trained with the condition; omit --no-condition"),
        (["--answers", "answers.csv"], "was trained on sentences; omit --answers"),
        (["--dtype", "bfloat16"], "runs in float32, as in its training"),
        (["--quantise", "4bit"], "omit --quantise"),
        (["--device-map", "auto"], "omit --device-map"),
    ],
)
def test_options_that_contradict_the_training_are_refused(place, trained, options, why):
    folder, _ = trained("bert", "bi")
    done = call(evaluate, folder, "--task", "csts", *options, "-o", place / "refused")
    assert done.exit_code == 2, done.output
    assert why in done.stderr
    assert not (place / "refused").exists()


@pytest.mark.parametrize(
    "task", [["--task", "pairwise-sts"], [], ["--task", "csts-prompt"], ["--task", "uniformity"]]
)
@pytest.mark.parametrize("kind", ["", "encoder:"])
def test_other_tasks_say_what_the_folder_is(place, trained, task, kind):
    folder, _ = trained("bert", "tri")
    done = call(evaluate, f"{kind}{folder}", *task, "-o", place / "refused")
    assert done.exit_code == 2, done.output
    assert "is a tri-encoder trained by giccs csts train, for --task csts only" in done.stderr
    assert "Traceback" not in done.output


def test_steps_are_refused(trained):
    folder, _ = trained("bert", "bi")
    with pytest.raises(InputError, match="steps require an encoder"):
        open_model(f"{folder}+whitening")


def test_training_does_not_start_from_a_trained_model(place, trained):
    folder, _ = trained("bert", "cross")
    done = call(main, "train", place / "c-sts", "--model", folder, "-o", place / "refused")
    assert done.exit_code == 2
    assert "is a cross-encoder trained by giccs csts train, for --task csts only" in done.stderr
    assert f"train its base encoder {place / 'bert'} instead" in done.stderr


def test_mining_says_what_the_folder_is(place, trained, tmp_path):
    folder, _ = trained("bert", "bi")
    (tmp_path / "captions.csv").write_text(
        "source_id,caption\na,A man walks.\na,A dog runs.\nb,A bus stops.\nb,A cat sits.\n"
    )
    done = call(
        main, "pairs", tmp_path / "captions.csv", "--model", folder, "-o", tmp_path / "pairs.csv"
    )
    assert done.exit_code == 2
    assert "is a bi-encoder trained by giccs csts train" in done.stderr


def rename(folder):
    weights = safetensors.load_file(folder / "model.safetensors")
    safetensors.save_file(
        {f"x.{name}": one for name, one in weights.items()}, folder / "model.safetensors"
    )


def leave_out(folder):
    weights = safetensors.load_file(folder / "model.safetensors")
    weights.pop(sorted(weights)[0])
    safetensors.save_file(weights, folder / "model.safetensors")


def reshape(folder):
    weights = safetensors.load_file(folder / "model.safetensors")
    name = sorted(weights)[0]
    safetensors.save_file(
        weights | {name: weights[name][:-1].contiguous()}, folder / "model.safetensors"
    )


def as_bi(folder):
    """The settings of another encoding: the head is then unexpected."""
    settings = json.loads((folder / "settings.json").read_text())
    changes = {"encoding": "bi", "template": "pair({sentence}, {condition})"}
    (folder / "settings.json").write_text(json.dumps(settings | changes))


def cut_off(folder):
    (folder / "model.safetensors").write_bytes(b"cut off")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (rename, "missing"), (leave_out, "1 tensor is missing"), (reshape, "of another shape"),
        (as_bi, "its weights do not match the bi-encoder of settings.json: head (2 tensors)"),
        (cut_off, "cannot be loaded"),
    ],
)  # fmt: skip
def test_weights_that_do_not_match_the_settings_are_refused(place, trained, tmp_path, damage, why):
    shutil.copytree(trained("bert", "cross")[0], tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(InputError) as caught:
        scorers.load_trained(tmp_path / "model")
    assert why in str(caught.value)
    done = call(
        evaluate, tmp_path / "model", "--task", "csts", "--data", place / "c-sts", "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == 2
    assert why in done.stderr


def test_settings_that_are_damaged_are_refused(place, trained, tmp_path):
    shutil.copytree(trained("bert", "bi")[0], tmp_path / "model")
    settings = json.loads((tmp_path / "model" / "settings.json").read_text())
    (tmp_path / "model" / "settings.json").write_text(json.dumps(settings | {"pooling": "max"}))
    done = call(evaluate, tmp_path / "model", "--task", "csts", "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert "cannot be used with its settings.json: pooling is 'max'" in done.stderr


def test_a_model_whose_inputs_had_another_form_is_refused(place, trained, tmp_path):
    """As one that an earlier version trained, which had no separators of the tokenizer."""
    shutil.copytree(trained("bert", "bi")[0], tmp_path / "model")
    settings = json.loads((tmp_path / "model" / "settings.json").read_text())
    assert settings.pop("template") == "pair({sentence}, {condition})"
    (tmp_path / "model" / "settings.json").write_text(json.dumps(settings))
    done = call(evaluate, tmp_path / "model", "--task", "csts", "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert "the form of the inputs changed since the training; train the model again" in done.stderr
    with pytest.raises(InputError, match="the form of the inputs changed"):
        scorers.load_trained(tmp_path / "model")


def test_hidden_labels_are_predicted_by_a_trained_model(place, trained, tmp_path):
    folder, _ = trained("bert", "bi")
    rows = read_csts(place / "c-sts", "test").instances
    text = (place / "c-sts" / "csts_test.csv").read_text("utf-8").splitlines()
    hidden = [text[0], *(f"{line.rpartition(',')[0]},-1" for line in text[1:])]
    (tmp_path / "csts_test.csv").write_text("\n".join(hidden), "utf-8")
    command = [folder, "--task", "csts", "--data", tmp_path, "--split", "test", "-o", tmp_path]
    (path,) = document_of(evaluate, *command, "--device", "cpu")["submissions"]
    scores = json.loads(Path(path).read_text())
    assert [*scores.values()] == pytest.approx(scorers.load_trained(folder).predict(rows), abs=1e-6)


def test_the_device_follows_the_options(trained):
    folder, _ = trained("bert", "bi")
    assert open_model(str(folder), ModelOptions(device="cpu")).environment()["device"] == "cpu"
    auto = "cuda" if torch.cuda.is_available() else "cpu"
    assert open_model(str(folder)).device == auto
