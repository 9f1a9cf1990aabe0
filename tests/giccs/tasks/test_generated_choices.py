"""Chat models in multiple choice: what is asked, which option an answer chooses, and what is counted.

The chat server is a small one in this process, which stands for servers that cannot be reached here; its
answers are a function of the prompt. A real server and a real local model are compared in
tests/giccs/models/test_chat.py.
"""

import json
import math
import re
from collections import Counter

import numpy as np
import polars
import pytest
from click.testing import CliRunner
from scipy import stats

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.comparison import clustered_share
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import Response
from giccs.prompts import LETTERS
from giccs.report import report
from giccs.report.model_comparison import compare as compare_results
from giccs.tasks import TaskOptions, open_tasks
from giccs.tasks.answer_parsing import chosen_letter, outcome_of, without_reasoning
from giccs.tasks.generated_choices import (
    Choice,
    ConditionChoices,
    QuestionChoices,
    choice_metrics,
    position_bias,
)
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.questions import make_questions

from ..deferred import requires
from ..hostile import Hostile, broken, closed, cut, half, rate_limited, send

pytestmark = requires("openai")


SAMPLE = read_benchmark("giccs-sample")
OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
USAGE = {"prompt_tokens": 100, "completion_tokens": 3}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def longest(prompt):
    return max(OPTION.findall(prompt), key=lambda option: (len(option[1]), option[1]))[0]


class ChatServer(Hostile):
    """Answers prompts by a function; like OpenAI's, it may reject a temperature or log-probabilities."""

    def __init__(self, answer=longest, logprobs=True, temperature=True):
        super().__init__(self.respond)
        self.answer, self.logprobs, self.temperature = answer, logprobs, temperature
        self.answered = Counter()

    def respond(self, handler):
        body = handler.body
        rejected = [("logprobs", self.logprobs), ("temperature", self.temperature)]
        if names := [name for name, is_accepted in rejected if name in body and not is_accepted]:
            return send(handler, {"error": {"message": f"Unsupported parameter: {names[0]}"}}, 400)
        prompt = body["messages"][0]["content"]
        answer = self.answer(prompt) if OPTION.search(prompt) else "A"
        answer = answer if isinstance(answer, dict) else {"content": answer}
        finish = answer.pop("finish_reason", "stop")
        choice = {"message": answer, "finish_reason": finish}
        if "logprobs" in body:
            letter = answer["content"]
            tokens = [{"token": letter, "logprob": -0.5}, {"token": f" {letter}", "logprob": -3.0},
                      {"token": "the", "logprob": -4.0}]  # fmt: skip
            choice["logprobs"] = {"content": [{**tokens[0], "top_logprobs": tokens}]}
        with self.lock:
            self.answered[prompt] += 1
        return send(handler, {"choices": [choice], "model": "tiny", "usage": USAGE})


def serving(**settings):
    return ChatServer(**settings).serving()


def asked(server, limit=12, **options):
    model = open_model("chat:tiny", ModelOptions(base_url=server.url))
    (task,) = open_tasks("multiple-choice-sts", TaskOptions(**options))
    return evaluate_task(task, model, SAMPLE.first(limit))


# What an answer chooses

TEXTS = ["A table for two?", "No.", "Two of us", "No, thanks."]


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"), (" b. ", "B"), ("**C**", "C"), ("(A)", "A"), ("Antwort: D", "D"), ("answer:\nB", "B"),
        (r"$\boxed{C}$", "C"), ("The answer is **B**.", "B"), ("Die richtige Antwort ist (D).", "D"),
        ("B. No.", "B"), ("A) A table for two?", "A"), ("No.", "B"), ("no", "B"), ("No, thanks", "D"),
        ('The most similar one is "Two of us".', "C"), ("„No, thanks.“ passt am besten.", "D"),
        ("Explanation: both ask.\nAnswer: C", "C"),
        ("", ""), ("E", ""), ("A table", ""), ("B. A table for two?", ""), ("A or B", ""),
        ("Option A. Or option B?", ""), ("Answer: A table", ""), ("I", ""), ("Nein", ""),
        ("No, none of them is similar.", ""), ('"No." and "Two of us"', ""), ("Answer: E", ""),
        ("A difficult question", ""), ("Is it B? Answer: C.", "C"), ("...", ""),
        ("Not option B.", ""), ("The answer isn't option B.", ""), ("Die Antwort ist weder Option A.", ""),
        ("Option A, no.", ""), ("Answer: A\nWait, no. Answer: C", ""),
        ('I thought of "No." but it is unclear.', ""),
        ("B.\n\nIt refuses, which A and C do not.", "B"), ("**B**\nBoth say no. The answer is B.", "B"),
        ("Antwort: C\n\nErklärung: Nur „Two of us“ nennt eine Zahl.", "C"), ("(b)\n- not A: a question", "B"),
        ("B\nNo, wait. It is C.", ""), ("B\nActually it is C.", ""), ("A\nB", ""), ("A.\n\nAnswer: C", ""),
        ("E\nIt is the best.", ""), ("A\nOption B, or option A.", ""), ("B. It refuses.", ""),
        ("A\nEigentlich passt C besser.", ""), ("Sure:\nB", ""),
    ],
)  # fmt: skip
def test_a_choice_is_read_and_never_guessed(answer, letter):
    assert chosen_letter(answer, TEXTS) == letter


def test_equal_options_are_not_chosen_by_their_text():
    assert chosen_letter("Ja", ["Ja", "Nein", "Ja"]) == ""
    assert chosen_letter("C. Ja", ["Ja", "Nein", "Ja"]) == "C"


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (Response("B"), "answered"), (Response("<think>A, or B</think>\n\nC"), "answered"),
        (Response("B", "length"), "cut"), (Response("<think>A, or", "length"), "cut"),
        (Response("B", "refusal"), "refused"), (Response("I'm sorry, I can't help."), "refused"),
        (Response("Das kann ich leider nicht beurteilen."), "refused"), (Response(""), "unparsable"),
        (Response("<think>A"), "unparsable"), (Response("A and B"), "unparsable"),
    ],
)  # fmt: skip
def test_outcomes(response, outcome):
    letter, found = outcome_of(response, TEXTS)
    assert (found, bool(letter)) == (outcome, outcome == "answered")
    assert "A" not in without_reasoning("<THINK>A</THINK>b")


# The numbers


def test_a_server_is_asked_and_the_numbers_are_those_of_the_table():
    with serving(logprobs=False) as server:
        result = asked(server, permutations=3)
    assert result.signature["choice"] == "generation"
    table = result.predictions
    assert table.height == 12 * 5 * 3 * 2
    for history in ("with", "without"):
        rows = table.filter(history=history)
        by_answer = rows.group_by("dialogue_id", "order", maintain_order=True).agg(
            right=(polars.col("chosen") & polars.col("gold")).any(),
            option=polars.col("utterance_id").filter("chosen").first(),
        )
        (group,) = [g for g in result.groups if g.by == {"history": history}]
        right = by_answer.group_by("dialogue_id", maintain_order=True).agg(polars.sum("right"))
        expected = clustered_share(right["right"].to_numpy().astype(float), np.full(12, 3))
        accuracy = group.metrics["accuracy"]
        assert (accuracy.value, accuracy.low, accuracy.high, accuracy.n) == (
            expected.value, expected.low, expected.high, 12,
        )  # fmt: skip
        assert accuracy.value == pytest.approx(by_answer["right"].mean())
        assert (
            group.metrics["consistency"].value == 1
        )  # the longest option is the same in all orders
        assert group.metrics["invalid"].value == 0
        assert accuracy.extra["same_choice"] == 12
    prompt = table["prompt"][0]
    assert prompt.startswith(
        "Antworten Sie nur mit dem Buchstaben der gewählten Äußerung.\n\nDialog:\n"
    )
    assert prompt.endswith("\nAntwort:")
    chosen = table.filter("chosen")
    assert set(chosen["response"]) == set(chosen["letter"])


def test_answers_without_a_choice_are_wrong_counted_and_reported():
    answers = iter(
        [
            {"content": None, "refusal": "No."}, {"content": "A, B", "finish_reason": "length"},
            {"content": "A, or B"}, {"content": None, "finish_reason": "content_filter"},
            {"content": "<think>B?</think>"}, {"content": "", "reasoning": "hm", "finish_reason": "length"},
        ]
    )  # fmt: skip
    with serving(answer=lambda prompt: next(answers), logprobs=False) as server:
        result = asked(server, limit=6, history="with", max_tokens=50)
        assert {seen[2]["max_tokens"] for seen in server.seen[-6:]} == {50}
    accuracy, invalid = result.metrics["accuracy"], result.metrics["invalid"]
    assert (accuracy.value, invalid.value, accuracy.n) == (0, 1, 6)
    assert accuracy.extra["answers"] == {"answered": 0, "refused": 2, "cut": 2, "unparsable": 2}
    assert math.isnan(accuracy.extra["position_bias"])
    text = report([result])
    assert "2 of 6 answers are refusals, 2 of 6 answers were cut at the limit of tokens" in text
    assert "no option [95 %]" in text
    assert result.predictions["chosen"].sum() == 0
    outcomes = result.predictions.unique("dialogue_id")["outcome"].to_list()
    assert Counter(outcomes) == {"refused": 2, "cut": 2, "unparsable": 2}
    assert "hm" in set(result.predictions["reasoning"])


def test_a_preference_for_a_position_shows_and_cancels():
    with serving(answer=lambda prompt: "A", logprobs=False) as server:
        result = asked(server, permutations=5, history="with", limit=20)
    accuracy = result.metrics["accuracy"]
    # each option is A once: the accuracy is that of guessing, with 4 of 5 answers at other positions
    assert accuracy.value == pytest.approx(accuracy.extra["chance"])
    assert accuracy.extra["position_bias"] == pytest.approx(0.8)
    assert accuracy.extra["chosen"] == {"A": 100, "B": 0, "C": 0, "D": 0, "E": 0}
    assert result.metrics["consistency"].value == 0
    assert accuracy.extra["same_choice"] == 0


QUESTIONS, _ = make_questions(SAMPLE, 0)


def choices_of(letters):
    choices = tuple(
        Choice("", Response(letter), letter, "answered" if letter else "cut") for letter in letters
    )
    return lambda question: QuestionChoices(question, choices)


def test_metrics_by_hand():
    """Two questions in two orders; the same letter is another option in the second order."""
    first, second = QUESTIONS[:2]
    gold = int(np.argmax(first.gold))
    letters = [LETTERS[gold], LETTERS[(gold - 1) % 5]]  # the gold option in both orders
    condition = ConditionChoices((choices_of(letters)(first), choices_of(["", ""])(second)))
    metrics = choice_metrics([condition], [0, 1])
    assert (metrics["accuracy"].value, metrics["invalid"].value) == (0.5, 0.5)
    assert metrics["consistency"].value == 0.5  # no choice is not the same choice
    assert metrics["accuracy"].extra["same_choice"] == 1


def test_the_test_of_positions_keeps_its_level_and_equals_a_t_test_for_two_positions():
    rng = np.random.default_rng(5)
    p = [
        position_bias(
            [choices_of([LETTERS[n] for n in rng.integers(0, 5, 2)])(question) for question in QUESTIONS]
        )["position_p"]
        for _ in range(400)
    ]  # fmt: skip
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.085  # 0.05 ± 3 standard errors of 0.011
    assert np.mean(p) == pytest.approx(0.5, abs=0.06)
    two = [type(q)(q.options[:2]) for q in QUESTIONS]
    first = rng.integers(0, 2, len(two))
    found = position_bias([choices_of([LETTERS[n]])(q) for n, q in zip(first, two, strict=True)])
    assert found["position_p"] == pytest.approx(stats.ttest_1samp(first, 0.5).pvalue)
    assert found["position_bias"] == pytest.approx(abs(np.mean(first) - 0.5))


# What is asked


def test_letters_are_chosen_by_their_log_probabilities_where_the_server_has_them():
    with serving() as server:
        result = asked(server, history="with")
        bodies = [seen[2] for seen in server.seen]
    assert result.signature["choice"] == "logprobs"
    assert "max_tokens" not in result.signature
    assert [(body["max_tokens"], body["top_logprobs"]) for body in bodies[1:]] == [(1, 20)] * 12
    assert bodies[0]["messages"][0]["content"] == "Reply with the letter A only."
    chosen = result.predictions.filter("chosen")
    assert chosen["logprob"].to_list() == pytest.approx(
        [math.log(math.exp(-0.5) + math.exp(-3))] * 12
    )
    assert result.predictions.filter(~polars.col("chosen"))["logprob"].null_count() == 48
    assert result.metrics["invalid"].value == 0


def test_the_test_request_finds_what_the_server_accepts_and_is_sent_once():
    (task,) = open_tasks("multiple-choice-sts")
    for settings, choice, others in (
        ({}, "logprobs", {}),
        ({"logprobs": False}, "generation", {}),
        ({"logprobs": False, "temperature": False}, "generation", {"temperature": None}),
    ):
        with serving(**settings) as server:
            for _ in range(2):
                model = open_model("chat:tiny", ModelOptions(base_url=server.url))
                signature = signature_of(task, model, SAMPLE)
                assert signature["choice"] == choice
                assert signature["temperature"] == others.get("temperature", 0.0)
            assert sum(server.answered.values()) == 1
            asked(server, limit=2)
            assert ("temperature" in server.seen[-1][2]) == (not others)


def test_a_model_that_thinks_first_is_not_asked_for_its_first_token():
    def thinking(prompt):
        return f"<think>{'A or B? ' * 9}</think>{longest(prompt)}"

    with serving(answer=thinking) as server:
        server.always = lambda handler: (
            send(handler, {"choices": [{"message": {"content": "<think>"}, "finish_reason": "length",
                 "logprobs": {"content": [{"top_logprobs": [{"token": "<think>", "logprob": 0.0}]}]}}]})
            if "logprobs" in handler.body
            else server.respond(handler)
        )  # fmt: skip
        result = asked(server, limit=6)
        assert result.signature["choice"] == "generation"
        assert result.metrics["invalid"].value == 0
        with pytest.raises(
            InputError, match="returns no log-probabilities of letters; use --choose"
        ):
            asked(server, limit=6, choose_by="logprobs")


def test_sentences_are_asked_for_and_read():
    def sentence(prompt):
        return dict(OPTION.findall(prompt))[longest(prompt)]

    with serving(answer=sentence) as server:
        by_sentence = asked(server, answer="sentence", history="with")
        server.answer = longest
        by_letter = asked(server, history="with", choose_by="generation")
    assert by_sentence.signature["choice"] == "generation"
    assert by_sentence.signature["instruction"].startswith("Antworten Sie nur mit dem Wortlaut")
    assert by_sentence.metrics["accuracy"].value == by_letter.metrics["accuracy"].value > 0
    assert by_sentence.metrics["invalid"].value == 0


def test_no_answer_is_paid_for_twice():
    faults = [rate_limited, broken, closed, cut, half]
    with serving(logprobs=False) as server:
        asked(server, limit=2)
        server.script = [server.respond, *faults, server.respond, *faults]
        first = asked(server, permutations=2)
        sent = len(server.seen)
        again = asked(server, permutations=2)
    assert len(server.seen) == sent
    assert set(server.answered.values()) == {1}
    assert len(server.answered) == 1 + 12 * 2 * 2
    assert again.metrics == first.metrics


def test_several_orders_are_compared_by_a_t_test():
    results = []
    for name, answer in (("a", longest), ("b", lambda prompt: LETTERS[len(prompt) % 5])):
        with serving(answer=answer, logprobs=False) as server:
            model = open_model(f"chat:{name}", ModelOptions(base_url=server.url))
            task = MultipleChoice(histories=("with",), permutations=2, choose_by="generation")
            results.append(evaluate_task(task, model, SAMPLE))
    shares = [
        result.predictions.filter(polars.col("chosen") & polars.col("gold"))
        .group_by("dialogue_id").len().join(
            result.predictions.select("dialogue_id").unique(), on="dialogue_id", how="right")
        .sort("dialogue_id")["len"].fill_null(0).to_numpy() / 2
        for result in results
    ]  # fmt: skip
    (board,) = compare_results(results).leaderboards
    expected = stats.ttest_rel(*shares)
    assert board.pairs[0].p == pytest.approx(expected.pvalue)
    assert abs(board.pairs[0].value) == pytest.approx(abs(shares[0].mean() - shares[1].mean()))


def test_the_command_evaluates_a_chat_model_and_prints_what_happened(tmp_path):
    with serving(logprobs=False) as server:
        call = ["chat:tiny", "--base-url", server.url, "--limit", "8", "--permutations", "5"]
        call += ["--price", "1", "2", "--budget", "5", "-o", str(tmp_path / "r")]
        done = CliRunner().invoke(evaluate, call)
        assert done.exit_code == 0, done.stderr
        again = CliRunner().invoke(evaluate, [*call, "--json"])
    assert "figure2-de-1, letter, generation, 5 orders" in done.stdout
    for text in ("position bias: ", "same choice in all orders: 8 of 8", "letters chosen: A "):
        assert text in done.stdout
    assert re.search(r"80 requests, 0 from the cache; 8,000 \+ 240 tokens; 0.0\d* USD", done.stderr)
    assert "existing result" in again.stderr
    (result,) = json.loads(again.stdout)["results"]
    assert result["signature"]["max_tokens"] == 1024
    assert result["metrics"]["accuracy"]["answers"]["answered"] == 80
