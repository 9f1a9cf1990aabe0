"""Prompts letter by letter, examples by the paper's rules, and what becomes of a model's answers."""

import json
import math
import random
import re
from dataclasses import replace

import numpy as np
import polars
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.csts.data import Dataset, Instance, read_csts, write_csts
from giccs.csts.prompting import Examples, Prompting
from giccs.csts.prompts import NAMES, text
from giccs.csts.task_data import TaskData
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.comparison import wilson
from giccs.measures.results import Result, Store, digest
from giccs.models import open_model
from giccs.tasks import TaskOptions, open_tasks

from .tabled import Tabled, TabledChat

BUSES = (
    "A bunch of blue buses parked in a parking lot in front of a housing community.",
    "Two buses, one blue and one red and white, are going to different destinations.",
)
SKATERS = (
    "The skater is descending the wooden wall beside the slope .",
    "A boy skateboards off a ramp covered in graffiti .",
)
MEN = (
    "Elderly man sitting on a blue couch reading a paper.",
    "Older man riding public transportation while reading a newspaper.",
)
FIGURE_5 = f"""On a scale between 1 and 5, how similar are the following two sentences with respect to the \
condition provided? Respond only with a score between 1 and 5.
Input: Sentence 1: {BUSES[0]} Sentence 2: {BUSES[1]} Condition: The type of transportation. Output: 4.0
Input: Sentence 1: {BUSES[0]} Sentence 2: {BUSES[1]} Condition: The number of buses. Output: 1.0
Input: Sentence 1: {SKATERS[0]} Sentence 2: {SKATERS[1]} Condition: The location. Output:"""
FIGURE_6 = f"""Definition: Evaluate the similarity between the two sentences, with respect to the condition. \
Assign the pair a score between 1 and 5 as follows: \
1 : The two sentences are completely dissimilar with respect to the condition. \
2 : The two sentences are dissimilar, but are on a similar topic with respect to the condition. \
3 : The two sentences are roughly equivalent, but some important information differs or is missing with \
respect to the condition. \
4 : The two sentences are mostly equivalent, but some unimportant details differ with respect to the \
condition. \
5 : The two sentences are completely equivalent with respect to the condition.
Input: Sentence 1: {MEN[0]} Sentence 2: {MEN[1]} Condition: The location of the man. Output:"""
FIGURE_9 = """On a scale between 1 and 5, how similar are the following two answers with respect to the \
condition provided? Respond only with a score between 1 and 5.
Input: Answer 1: On a couch Answer 2: In public transportation Condition: The location of the man. Output:"""
FIGURE_7 = f"""Your task is to answer a question based on the information provided from the given sentence. \
Your should summarize your answer into a word or a phrase that is clear and concise.
Sentence: {MEN[0]}
Question: What is the location of the man?
Answer:"""

SAMPLE = Prompting().read("csts-sample")
TRAIN = read_csts("csts-sample", "train")
LABEL = {(instance.sentence1, instance.condition): instance.label for instance in SAMPLE.instances}


def row(sentences, condition, label=None, pair=0, uid=None):
    return Instance(uid or f"{sentences[0]}{condition}", *sentences, condition, label, pair)


def asked(*rows, **more):
    return TaskData(Dataset("rows", rows), **more)


def query_of(prompt):
    """Return sentence 1 and condition of the question, which is the last line."""
    result = re.search(r"Sentence 1: (.*) Sentence 2: .* Condition: (.*) Output:$", prompt)
    return result[1], result[2]


def truthful(prompt):
    return f"I would say {LABEL[query_of(prompt.splitlines()[-1])]}."


# prompts


def test_figure_5_of_c_sts():
    pool = Dataset("pool", (
        row(BUSES, "The number of buses.", 1), row(BUSES, "The type of transportation.", 4),
        *(row(SKATERS, condition, 3, pair) for condition in "ab" for pair in [1]),
        *(row(SKATERS[::-1], condition, 3, pair) for condition in "ab" for pair in [2]),
    ))  # fmt: skip
    data = asked(row(SKATERS, "The location.", 2), examples=pool)
    assert Prompting("short", 2).prompts(data) == [FIGURE_5]


def test_figure_6_of_c_sts():
    data = asked(row(MEN, "The location of the man.", 1))
    assert Prompting("long").prompts(data) == [FIGURE_6]
    assert Prompting("none").prompts(data) == [FIGURE_6.splitlines()[1]]


def test_figures_7_and_9_of_l_csts():
    one = row(MEN, "The location of the man.", 1, uid="7")
    data = asked(one, answers={"7": ("On a couch", "In public transportation")})
    assert Prompting(answers="answers.csv").prompts(data) == [FIGURE_9]
    asking = {"sentence": MEN[0], "question": "What is the location of the man?"}
    assert text("question-1").fill(**asking) == FIGURE_7


def test_texts_that_have_shipped_are_never_changed():
    assert {name: text(name).document["sha256"][:12] for name in NAMES} == {
        "short-1": "b545aacb7af8",
        "long-1": "dc2701b1f189",
        "query-1": "faa3addfcb82",
        "answers-short-1": "fe885d7f9cd5",
        "answers-query-1": "e6c8c2a8dfd0",
        "question-1": "62c98b1a7d1e",
        "sts-short-1": "2c6de1d1f24b",
        "sts-long-1": "f3be64234081",
        "sts-query-1": "6209e5e41b41",
    }


def test_braces_and_breaks_of_a_sentence_stay_its_own():
    data = asked(row((" A {red} kite.\n", "Two\n{sentence1}s"), "The {color}.", 1))
    assert Prompting("none").prompts(data) == [
        "Input: Sentence 1: A {red} kite. Sentence 2: Two\n{sentence1}s Condition: The {color}. Output:"
    ]


# examples


@pytest.mark.parametrize("shots", [2, 4, 6])
def test_examples_are_whole_sentence_pairs_with_the_higher_label_first(shots):
    examples = Examples(TRAIN, shots, seed=3)
    for instance in SAMPLE.instances:
        drawn = examples.of(instance)
        assert len(drawn) == shots == len({each.uid for each in drawn})
        for high, low in zip(drawn[::2], drawn[1::2], strict=True):
            assert high.pair == low.pair
            assert high.label >= low.label


def test_examples_are_never_of_the_sentence_pair_that_is_asked_about():
    pool = Dataset("pool", TRAIN.instances[:8])  # four sentence pairs: three others each
    examples = Examples(pool, 4)
    for instance in pool.instances:
        turned = replace(instance, sentence1=instance.sentence2, sentence2=instance.sentence1)
        for query in (instance, turned):
            drawn = {each.pair for each in examples.of(query)}
            assert len(drawn) == 2
            assert instance.pair not in drawn


def test_examples_depend_on_the_seed_and_the_row_alone():
    first = SAMPLE.instances[0]
    drawn = [Examples(TRAIN, 4, seed).of(first) for seed in range(3)]
    assert drawn[0] != drawn[1] != drawn[2]
    assert Examples(TRAIN, 4, 1).of(replace(first, condition="other")) == drawn[1]
    apart = {
        tuple(each.uid for each in Examples(TRAIN, 4).of(instance)) for instance in SAMPLE.instances
    }
    assert len(apart) > 100
    half = Prompting(shots=2).read("csts-sample").first(5)
    whole = Prompting(shots=2).read("csts-sample")
    assert Prompting(shots=2).prompts(half) == Prompting(shots=2).prompts(whole)[:10]


def test_too_few_sentence_pairs_to_draw_from():
    pool = Dataset("pool", (*TRAIN.instances[:4], replace(TRAIN.instances[4], label=None)))
    with pytest.raises(
        InputError, match="pool: has 2 sentence pairs of two labelled rows; 2 examp"
    ):
        Examples(pool, 2)


# what is asked for


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shots": 3}, "3 examples requested; expected an even number"),
        ({"answers": "a.csv", "shots": 2}, "require the short instruction and no examples"),
        ({"answers": "a.csv", "instruction": "long"}, "require the short instruction"),
    ],
)
def test_what_cannot_be_asked_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        open_tasks("csts-prompt", TaskOptions(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shots": -2}, "shots is -2; expected an integer from 0 to 1000"),
        ({"instruction": "medium"}, "instruction is 'medium'; expected one of none, short, long"),
    ],
)
def test_values_that_no_option_has_are_refused(options, message):
    for make, error in ((TaskOptions, ValueError), (Prompting, InputError)):
        with pytest.raises(error, match=message):
            make(**options)


def test_a_model_must_write():
    assert "requires a text generation model" in Prompting().refuses(object())
    assert Prompting().refuses(Tabled(str)) == ""
    assert "omit --chat-template" in Prompting(chat_template=True).refuses(Tabled(str))
    assert Prompting(chat_template=True).refuses(TabledChat(str)) == ""


def test_a_chat_template_is_put_around_the_prompt():
    model = TabledChat(lambda prompt: "3")
    result = evaluate_task(Prompting(chat_template=True, resamples=5), model, SAMPLE.first(1))
    assert model.asked[0].startswith("<user>On a scale")
    assert model.asked[0].endswith("Output:<assistant>")
    assert result.predictions["prompt"].to_list() == model.asked


def test_every_option_is_in_the_signature(tmp_path):
    answers = tmp_path / "answers.csv"
    answers.write_text(
        "uid,answer1,answer2\n" + "".join(f"{n},a{n},b\n" for n in range(120)), "utf-8"
    )
    model = Tabled(str)
    tasks = [
        Prompting(), Prompting("long"), Prompting("none"), Prompting(shots=2), Prompting(shots=4),
        Prompting(shots=4, seed=1), Prompting(seed=1), Prompting(chat_template=True),
        Prompting(split="test"), Prompting(max_tokens=5), Prompting(resamples=10),
        Prompting(answers=str(answers)), Prompting(shots=2, examples=str(write(tmp_path, 20))),
    ]  # fmt: skip
    signatures = [signature_of(task, model, task.read("csts-sample")) for task in tasks]
    assert len(set(map(digest, signatures))) == len(tasks)
    assert [signature["setting"] for signature in signatures[:4]] == [
        "short, no examples", "long, no examples", "none, no examples", "short, 2 examples",
    ]  # fmt: skip
    assert signatures[7]["setting"] == "short, no examples, chat template"
    assert signatures[11]["setting"] == "short, answers"


def write(folder, rows):
    path = folder / "examples.csv"
    write_csts(TRAIN.instances[:rows], path)
    return path


# answers


def test_a_model_that_knows_the_labels_has_no_fault():
    result = evaluate_task(Prompting(resamples=20), Tabled(truthful), SAMPLE)
    values = {name: one.value for name, one in result.metrics.items()}
    assert values == pytest.approx({"spearman": 1, "pearson": 1, "pair_accuracy": 1, "invalid": 0})
    invalid = result.metrics["invalid"]
    assert (invalid.low, invalid.high) == pytest.approx(
        wilson(0, 60)
    )  # as many pairs, two rows each
    assert result.predictions["value"].to_list() == [
        instance.label for instance in SAMPLE.instances
    ]


def test_twenty_tokens_are_asked_for():
    model = Tabled(truthful)
    evaluate_task(Prompting(resamples=5), model, SAMPLE.first(2))
    assert model.max_tokens == [20]


def silent_about(conditions):
    return lambda prompt: (
        "" if query_of(prompt.splitlines()[-1])[1] in conditions else truthful(prompt)
    )


def test_invalid_answers_are_counted_and_replaced():
    conditions = {instance.condition for instance in SAMPLE.instances[:30:3]}
    result = evaluate_task(Prompting(resamples=50), Tabled(silent_about(conditions)), SAMPLE)
    lost = result.predictions.filter(~polars.col("valid"))
    invalid = result.metrics["invalid"]
    assert invalid.value == len(lost) / 120
    assert invalid.n == 120
    assert 0 < invalid.low < invalid.value < invalid.high < 1
    assert lost["answer"].to_list() == [""] * len(lost)
    assert lost["value"].is_between(1, 5).all()
    assert lost["value"].n_unique() == len(lost)
    kept = result.predictions.filter("valid")
    assert kept["value"].to_list() == kept["label"].to_list()
    remark = f"{len(lost)} of 120 answers contain no number and are replaced by random scores"
    assert [metric.reason for metric in result.metrics.values()] == ["", "", "", remark]
    assert invalid.extra == {"outside": 0, "after_words": 120 - len(lost)}


def test_a_replacement_is_of_the_row_and_the_seed_not_of_its_place():
    def values(data, seed=0):
        table = evaluate_task(
            Prompting(seed=seed, resamples=5), Tabled(lambda prompt: "?"), data
        ).predictions
        return dict(zip(table["uid"], table["value"], strict=True))

    turned = replace(SAMPLE, dataset=replace(SAMPLE.dataset, instances=SAMPLE.instances[::-1]))
    assert values(turned) == values(SAMPLE)
    assert values(SAMPLE.first(3)).items() <= values(SAMPLE).items()
    assert values(SAMPLE, seed=1) != values(SAMPLE)


def test_replacements_are_uniform_from_1_to_5():
    rows = tuple(
        replace(SAMPLE.instances[0], uid=str(n), pair=n, label=1 + n % 5) for n in range(2000)
    )
    table = evaluate_task(
        Prompting(resamples=2), Tabled(lambda prompt: ""), asked(*rows)
    ).predictions
    counts = np.histogram(table["value"], bins=8, range=(1, 5))[0]
    assert counts.sum() == 2000
    assert (
        (counts - 250) ** 2 / 250
    ).sum() < 24.3  # chi squared with 7 degrees of freedom, p = 0.001


def test_values_outside_the_scale_stay_and_are_counted():
    def answer(prompt):
        return {1: "0", 5: "10"}.get(LABEL[query_of(prompt)], "3")

    result = evaluate_task(Prompting("none", resamples=5), Tabled(answer), SAMPLE)
    extremes = sum(instance.label in (1, 5) for instance in SAMPLE.instances)
    assert result.metrics["invalid"].value == 0
    assert result.metrics["invalid"].extra["outside"] == extremes
    assert result.metrics["invalid"].reason == f"{extremes} of 120 answers are outside 1 to 5"
    assert sorted(result.predictions["value"].unique()) == [0, 3, 10]


def test_one_answer_to_everything_correlates_with_nothing():
    result = evaluate_task(Prompting(resamples=5), Tabled(lambda prompt: "3"), SAMPLE).metrics
    assert math.isnan(result["spearman"].value)
    assert result["spearman"].reason == "all predictions are equal"
    assert (result["pair_accuracy"].value, result["pair_accuracy"].extra["ties"]) == (0.5, 60)


def test_all_answers_invalid_is_chance():
    result = evaluate_task(Prompting(), Tabled(lambda prompt: "no idea"), SAMPLE).metrics
    invalid = result["invalid"]
    assert (invalid.value, invalid.low, invalid.high) == pytest.approx((1, *wilson(60, 60)))
    assert result["spearman"].low < 0 < result["spearman"].high
    assert (
        result["invalid"].reason
        == "120 of 120 answers contain no number and are replaced by random scores"
    )


def test_answers_take_the_place_of_the_sentences(tmp_path):
    path = tmp_path / "answers.csv"
    lines = [
        f"{instance.uid},{instance.label},about {instance.uid}" for instance in SAMPLE.instances
    ]
    path.write_text("\n".join(["uid,answer1,answer2", *lines]), "utf-8")
    task = Prompting(answers=str(path), resamples=5)
    model = Tabled(lambda prompt: re.search("Answer 1: (.*) Answer 2", prompt)[1])
    result = evaluate_task(task, model, task.read("csts-sample"))
    assert result.metrics["spearman"].value == pytest.approx(1)
    assert all("Sentence 1" not in prompt for prompt in model.asked)


def test_a_result_is_kept_and_found_again(tmp_path):
    task = Prompting(shots=2, resamples=20)
    data = task.read("csts-sample").first(6)
    model = Tabled(lambda prompt: random.Random(prompt).choice(["", "1", "3.0", "7"]))
    result = evaluate_task(task, model, data)
    store = Store(tmp_path)
    store.add(result)
    found = store.find(model.name, task.name, signature_of(task, model, data))
    assert isinstance(found, Result)
    assert found.metrics == result.metrics
    assert json.loads(json.dumps(found.signature)) == found.signature
    table = store.predictions(found)
    assert table.columns == ["uid", "prompt", "answer", "value", "valid", "label"]
    assert table.equals(result.predictions)


# real models, with random weights: what they write is not sense, but the code is what a real call runs


@pytest.fixture(scope="module")
def tiny_t5(tmp_path_factory):
    torch = pytest.importorskip("torch")
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    from ..causal_models import bytes_tokenizer

    folder = tmp_path_factory.mktemp("tiny-t5")
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=384, d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4, pad_token_id=0,
        eos_token_id=1, decoder_start_token_id=0, initializer_factor=4.0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer = bytes_tokenizer()
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    tokenizer.save_pretrained(folder)
    return folder


def test_giccs_eval_prompts_real_models(tiny_t5, tiny_gpt, tmp_path):
    models = [f"seq2seq:{tiny_t5}", f"causal:{tiny_gpt}"]
    how = ["--task", "csts-prompt", "--shots", "2", "--limit", "4", "-o", str(tmp_path / "results"),
           "--device", "cpu"]  # fmt: skip
    done = CliRunner().invoke(evaluate, [*models, *how, "--json"])
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)["results"]
    assert [result["signature"]["setting"] for result in results] == ["short, 2 examples"] * 2
    store = Store(tmp_path / "results")
    for name, result in zip(
        models,
        sorted(store.results(), key=lambda one: one.model != results[0]["model"]),
        strict=True,
    ):
        table = store.predictions(result)
        model = open_model(name)
        assert table["answer"].to_list() == model.generate(table["prompt"].to_list(), 20)
        assert len(table) == 8
        assert result.metrics["invalid"].value == 1 - table["valid"].mean()
    again = CliRunner().invoke(evaluate, [*models, *how])
    assert again.stderr.count("existing result") == 2
    assert "csts-prompt" in again.stdout


def test_an_encoder_is_told_what_to_use(static_encoder, tmp_path):
    done = CliRunner().invoke(
        evaluate, [f"encoder:{static_encoder}", "--task", "csts-prompt", "-o", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert (
        "does not generate text; csts-prompt requires a text generation model: seq2seq:FOLDER"
        in done.stderr
    )
