"""The history in the texts of encoders, other similarities of vectors, and what both change."""

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks import TaskOptions, open_tasks
from giccs.tasks.history_encoding import TEMPLATES, mean_of_turns
from giccs.tasks.pairwise import PairwiseSTS


def reference(folder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu")


def predictions(task, model, benchmark):
    return task.measure(model, benchmark).predictions["prediction"].to_numpy()


def test_texts_of_a_pair_by_hand(benchmark_file):
    item = read_benchmark(benchmark_file).items[0]
    before = item.turns[:-1]
    joined = "\n".join(turn.text for turn in before)
    labelled = "\n".join(f"{turn.speaker}: {turn.text}" for turn in before)
    speaker = item.turns[-1].speaker
    expected = {
        "joined": lambda text: f"{joined}\n{text}",
        "speakers": lambda text: f"{labelled}\n{speaker}: {text}",
        "instruction": lambda text: (
            "Represent the last utterance in the context of its dialogue.\n"
            f"Dialogue:\n{joined}\nLast utterance: {text}"
        ),
    }
    for encoding, text in expected.items():
        pair = PairwiseSTS("with", history_encoding=encoding).pair_texts(item)
        assert pair == (text(item.turns[-1].text), text(item.utterance))
    assert PairwiseSTS("without", history_encoding="speakers").pair_texts(item) == (
        item.turns[-1].text,
        item.utterance,
    )


def test_the_mean_of_turns_is_that_of_sentence_transformers(benchmark_file, plain_encoder):
    benchmark = read_benchmark(benchmark_file)
    model = reference(plain_encoder)
    expected = []
    for item in benchmark.items:
        context = [turn.text for turn in item.turns[:-1]]
        a, b = (
            model.encode([*context, text]).mean(axis=0) for text in (item.last_turn, item.utterance)
        )
        expected.append(float(model.similarity(a, b)))
    task = PairwiseSTS("with", history_encoding="mean")
    np.testing.assert_allclose(
        predictions(task, open_model(str(plain_encoder)), benchmark), expected, atol=1e-5
    )


def test_turns_without_a_vector_are_not_part_of_the_mean():
    nothing = [np.nan, np.nan]
    vectors = np.array([[2, 0], nothing, [0, 4], [1, 1], nothing], dtype=np.float32)
    means = mean_of_turns(vectors, [3, 2])
    assert means[0].tolist() == [1, 2]
    assert np.isnan(means[1]).all()  # The utterance itself has no vector.


@pytest.mark.parametrize(("similarity", "name"), [("dot", "dot"), ("l2", "euclidean")])
@pytest.mark.parametrize("encoder", ["plain_encoder", "static_encoder"])
def test_similarities_are_those_of_sentence_transformers(
    benchmark_file, encoder, similarity, name, request
):
    folder = request.getfixturevalue(encoder)
    benchmark = read_benchmark(benchmark_file)
    model = reference(folder)
    model.similarity_fn_name = name
    sides = zip(*((item.last_turn, item.utterance) for item in benchmark.items), strict=True)
    expected = model.similarity_pairwise(*(model.encode(list(side)) for side in sides))
    task = PairwiseSTS(similarity=similarity)
    found = predictions(task, open_model(str(folder)), benchmark)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-4)


def test_tasks_of_the_options():
    def settings(**options):
        return [
            (task.history, task.history_encoding, task.similarity)
            for task in open_tasks("pairwise-sts", TaskOptions(**options))
        ]

    assert settings() == [("without", "joined", None)]
    assert settings(history="both", similarity="dot") == [
        ("without", "joined", "dot"),
        ("with", "joined", "dot"),
    ]
    assert settings(history_encoding=("speakers", "mean")) == [
        ("without", "joined", None),
        ("with", "speakers", None),
        ("with", "mean", None),
    ]
    assert settings(history="with", history_encoding=("mean",)) == [("with", "mean", None)]


def test_signatures_state_what_differs_from_the_default(benchmark_file, static_encoder):
    model, benchmark = open_model(str(static_encoder)), read_benchmark(benchmark_file)
    parameters = PairwiseSTS("with").parameters(model, benchmark)
    assert parameters.keys() == {"history", "template", "interval"}
    other = PairwiseSTS("with", similarity="l2", history_encoding="mean")
    assert other.parameters(model, benchmark) == {
        **parameters,
        "template": TEMPLATES["mean"],
        "history_encoding": "mean",
        "similarity": "l2",
    }


def test_contradictions_and_unsuitable_models_are_refused(benchmark_file, static_encoder):
    with pytest.raises(InputError, match="--history-encoding: requires a history"):
        open_tasks("pairwise-sts", TaskOptions(history="without", history_encoding=("mean",)))
    for name, similarity in (("pairwise-sts", "cos-centred"), ("evalrank-sentence", "dot")):
        with pytest.raises(InputError, match=f"{similarity}: unsupported by {name}; expected cos"):
            open_tasks(name, TaskOptions(similarity=similarity))
    chance = open_model("baseline:chance")
    reason = "returns no vectors; pairwise-sts --history-encoding mean requires an encoder"
    assert PairwiseSTS("with", history_encoding="mean").refuses(chance).startswith(reason)
    reason = "returns no vectors; pairwise-sts --similarity dot requires an encoder"
    assert PairwiseSTS(similarity="dot").refuses(chance).startswith(reason)
    assert not PairwiseSTS("with", history_encoding="speakers").refuses(chance)


def test_speakers_must_be_stated(benchmark_file, static_encoder, tmp_path):
    path = tmp_path / "unstated.jsonl"
    path.write_text(benchmark_file.read_text().replace('"system"', '""'), "utf-8")
    task = PairwiseSTS("with", history_encoding="speakers")
    with pytest.raises(InputError, match=r"turns have no speaker; expected another"):
        task.measure(open_model(str(static_encoder)), read_benchmark(path), silent)
