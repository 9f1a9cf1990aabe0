"""Histories that are too long for a model: whole turns are removed from the beginning, never the utterance.

The expected similarities are those of the library for texts that are shortened here by hand.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import spearmanr

torch = pytest.importorskip("torch")
library = pytest.importorskip("sentence_transformers")
from giccs.benchmark import read_benchmark  # noqa: E402
from giccs.cli.evaluation import evaluate  # noqa: E402
from giccs.evaluation.engines.local import EvaluationJob, run_locally  # noqa: E402
from giccs.evaluation.task_results import evaluate_task  # noqa: E402
from giccs.measures.results import Store  # noqa: E402
from giccs.models import ModelOptions, open_model  # noqa: E402
from giccs.models.objects import model_of_object  # noqa: E402
from giccs.report.model_comparison import compare  # noqa: E402
from giccs.tasks.pairwise import PairwiseSTS  # noqa: E402

from ..conftest import rows, write  # noqa: E402

LIMIT = 128  # plain_encoder: a letter is a token, and there are 2 special tokens


def long_rows(n_turns=8, dialogues=6):
    """Dialogues of different lengths; the first utterance of the second dialogue is too long by itself."""
    for n, line in enumerate(rows(dialogues)):
        earlier = line["turns"][0]
        texts = [f"{earlier['text'][:20]} {k}" for k in range(n_turns + n // 5)]
        line["turns"] = [{**earlier, "text": text} for text in texts] + line["turns"]
        line["n_turns"] = len(line["turns"])
        if line["item_id"] == "d1-0":
            line["utterance"] = "abcdefgh " * 20
        yield line


@pytest.fixture
def long_file(tmp_path):
    return write(tmp_path / "long.jsonl", long_rows())


def letters(text):
    return sum(not letter.isspace() for letter in text)


def by_hand(item, limit=LIMIT - 2, text=lambda turns, utterance: "\n".join([*turns, utterance])):
    """The texts of a pair with the longest history with which both have at most `limit` letters."""
    turns = [turn.text for turn in item.turns]
    for start in range(len(turns)):
        sides = [text(turns[start:-1], each) for each in (turns[-1], item.utterance)]
        if max(map(letters, sides)) <= limit:
            return sides, start
    return None, len(turns)


def measured(task, model, benchmark):
    result = evaluate_task(task, model, benchmark)
    return result, result.predictions["prediction"].to_numpy()


def test_the_cosines_are_those_of_texts_shortened_by_hand(long_file, plain_encoder):
    benchmark = read_benchmark(long_file)
    result, prediction = measured(
        PairwiseSTS("with", resamples=10), open_model(str(plain_encoder)), benchmark
    )
    own = library.SentenceTransformer(str(plain_encoder), device="cpu")
    expected, n_shortened = [], 0
    for item in benchmark.items:
        sides, start = by_hand(item)
        expected.append(np.nan if sides is None else own.similarity_pairwise(*map(own.encode, [[s] for s in sides])).item())
        n_shortened += sides is not None and start > 0
    np.testing.assert_allclose(prediction, expected, atol=1e-5)
    assert n_shortened > 20
    assert np.nanmax(prediction) < 0.999
    assert result.environment["tokens"]["shortened"] == n_shortened
    assert result.environment["tokens"]["too_long"] == 1
    assert not {"cut", "full"} & result.environment["tokens"].keys()
    kept = np.isfinite(expected)
    scores = np.array([item.score for item in benchmark.items])
    rho = result.metrics["spearman"]
    assert rho.value == pytest.approx(spearmanr(np.array(expected)[kept], scores[kept])[0])
    assert rho.n == 29
    assert "1 pairs excluded: an utterance is too long for the model" in rho.reason
