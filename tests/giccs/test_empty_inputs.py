"""Empty inputs, and data of a type that a task does not read, are refused with a sentence."""

import pandas as pd
import pytest

import giccs
from bws.base.problems import InputError

MODEL = "baseline:char-ngram"
NO_PAIRS = {"text1": [], "text2": [], "score": []}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: giccs.evaluate([], "giccs-sample"), "no models; expected one or more"),
        (lambda: giccs.evaluate(MODEL, "giccs-sample", []), "no tasks; expected one or more"),
        (lambda: giccs.evaluate(MODEL, "giccs-sample", limit=0), "limit is 0; expected at least 1"),
        (lambda: giccs.evaluate(MODEL, []), "no items"),
        (lambda: giccs.load_benchmark(pd.DataFrame()), "no items"),
        (lambda: giccs.noise_ceiling("giccs-sample", []), "empty; expected rows"),
        (lambda: giccs.compare(), "There are no results."),
    ],
)
def test_nothing_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("data", [[], pd.DataFrame(), pd.DataFrame(NO_PAIRS)])
def test_no_pairs_are_refused(data):
    with pytest.raises(InputError, match="no pairs; expected at least one"):
        giccs.evaluate(MODEL, data, "sentence-similarity")


@pytest.mark.parametrize("text", ["", "[]", "text1,text2,score\n"])
@pytest.mark.parametrize("name", ["p.csv", "p.jsonl", "p.json"])
def test_files_without_pairs_are_refused(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=rf"{name}"):
        giccs.evaluate(MODEL, path, "sentence-similarity")


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no results; create them"):
        giccs.Results.load(tmp_path)


@pytest.mark.parametrize("task", ["csts", "evalrank-sentence", "evalrank-word", "uniformity"])
def test_a_frame_for_a_task_that_reads_files_is_refused(task):
    model = "package:minilm"
    with pytest.raises(
        TypeError, match=f"{task} reads its data from a file or folder; .* not DataFrame"
    ):
        giccs.evaluate(model, pd.DataFrame({"sentence1": ["x"]}), task)


@pytest.mark.parametrize("task", ["sentence-similarity", "csts"])
def test_a_benchmark_for_another_task_is_refused(task):
    with pytest.raises(TypeError, match="expected its path, not Benchmark"):
        giccs.evaluate(MODEL, giccs.load_benchmark("giccs-sample"), task)
