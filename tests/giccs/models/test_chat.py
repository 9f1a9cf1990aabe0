"""Models behind servers: a real one, and one that does whatever a server may do to its clients."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
import threading
from decimal import Decimal

import pytest

from bws.base.problems import InputError
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs.evaluation.task_results import evaluate_task
from giccs.models import ModelOptions, open_model
from giccs.models.served.cache import Answer, Cache
from giccs.models.served.chat import FILE, ChatModel
from giccs.models.served.server import Limits, Price, Usage, find_price, find_server
from giccs.prompts import Template
from giccs.tasks.multiple_choice import MultipleChoice

from ..deferred import Deferred
from ..hostile import (
    Hostile,
    broken,
    closed,
    cut,
    dripping,
    half,
    list_of_nothing,
    packed,
    page,
    rate_limited,
    send,
    stalled,
)  # fmt: skip

openai = Deferred("openai")

KEY = "sk-test-0123456789abcdef"
QUICK = Limits(seconds=20.0, retries=1, pause=0.0)
PROMPTS = [f"Frage {n}: Wie weit ist es?" for n in range(6)]
USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def document(text, **message):
    choice = {"index": 0, "finish_reason": "stop"}
    choice["message"] = {"role": "assistant", "content": text, **message}
    return {"id": "x", "model": "tiny-0314", "choices": [choice], "usage": USAGE}


def fine(handler):
    send(handler, document(f"Antwort auf {handler.body['messages'][0]['content']}"))


def no_choices(handler):
    send(handler, {"choices": [], "usage": USAGE})


def no_text(handler):
    send(handler, document(None))


def huge(handler):
    send(handler, b" " * 200_000 + json.dumps(document("Ja")).encode())


@pytest.fixture
def hostile():
    with Hostile(fine).serving() as server:
        yield server


def chat(server, limits=QUICK, name="tiny", **options):
    options = ModelOptions(**{"base_url": server.url, "concurrency": 2, **options})
    return ChatModel(f"chat:{name}", name, find_server(name, server.url), options, limits)


def failure(model, prompts=PROMPTS):
    with pytest.raises(InputError) as caught:
        model.generate(prompts, 5)
    return str(caught.value)


EXPECTED = [f"Antwort auf {prompt}" for prompt in PROMPTS]
SHORT = Limits(seconds=1.0, retries=1, pause=0.0)
LONG = Limits(seconds=6.0, retries=1, pause=0.0)
"""Longer than an answer takes that is not delayed on purpose, on a busy machine too."""
FAULTS = {
    rate_limited: "the server was busy or failed, 2 times (429: slow down; requested delay: 0.01)",
    broken: "the server was busy or failed, 2 times (500: Ausfall)",
    closed: "the connection failed, 2 times (",
    cut: "the connection failed, 2 times (",
    half: "the server answered, but not with a JSON object, 2 times",
    page: "the server answered, but not with a JSON object, 2 times",
    list_of_nothing: "the server answered, but not with a JSON object, 2 times",
    no_choices: "the server answered, but without a choice, 2 times",
    no_text: "the server answered, but without text, 2 times",
    stalled: "no answer within 1 seconds, 2 times",
    dripping: "no answer within 1 seconds, 2 times",
}
LATE = (stalled, dripping)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_survived(hostile, fault):
    hostile.script = [fine, fault]
    model = chat(hostile, LONG if fault in LATE else QUICK)
    assert model.generate(PROMPTS, 5) == EXPECTED
    assert len(hostile.seen) == len(PROMPTS) + 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_loses_no_answer(hostile, fault):
    hostile.script, hostile.always = [fine] * 3, fault
    model = chat(hostile, SHORT if fault in LATE else QUICK, concurrency=1)
    message = failure(model)
    assert message.startswith(f"chat:tiny: prompt 4: {FAULTS[fault]}")
    assert message.endswith("; 3 of 6 answers are stored; the next run continues from there")
    assert len(hostile.seen) == 3 + 2
    hostile.always = fine
    assert model.generate(PROMPTS, 5) == EXPECTED
    assert [seen[2]["messages"][0]["content"] for seen in hostile.seen[5:]] == PROMPTS[3:]
    assert model.environment()["cached"] == 3


def test_an_answer_without_end_is_not_read(hostile):
    hostile.always = huge
    model = chat(hostile, Limits(seconds=20.0, retries=3, largest=100_000))
    assert "the answer is longer than 100,000 bytes; 0 of 1 answers" in failure(model, PROMPTS[:1])
    assert len(hostile.seen) == 1
    hostile.always = packed
    assert "compresses its answers although this was disabled" in failure(model, PROMPTS[:1])


def test_no_redirection_is_followed(hostile, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Hostile(fine) as other:  # it serves nobody; who calls is seen at its door
        place = f"http://localhost:{other.server_port}/v1/chat/completions"
        for status in (301, 302, 307, 308):
            hostile.always = lambda handler, status=status: send(
                handler, b"", status, Location=place
            )
            assert f"the server redirects to {place}, which is not followed" in failure(
                chat(hostile, SHORT)
            )
        other.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.socket.accept()


def test_no_request_is_begun_after_a_failure(hostile):
    hostile.always = lambda handler: send(handler, {"error": {"message": "who are you?"}}, 401)
    prompts = [f"Frage {n}" for n in range(50)]
    message = failure(chat(hostile), prompts)
    assert "the server rejected the key (401: who are you?); set OPENAI_API_KEY" in message
    assert "0 of 50 answers are stored" in message
    assert len(hostile.seen) <= 2


def test_a_refused_prompt_is_named(hostile):
    def pedantic(handler):
        if handler.body["messages"][0]["content"] == PROMPTS[2]:
            send(handler, {"detail": "too\nlong\x1b[31m " + "x" * 500}, 422)
        else:
            fine(handler)

    hostile.always = pedantic
    message = failure(chat(hostile, concurrency=1), [PROMPTS[0], PROMPTS[0], *PROMPTS[1:]])
    assert "prompt 4: the server rejected the request (422: too long[31m xxx" in message
    assert len(message) < 500


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(hostile):
    hostile.always = lambda handler: send(handler, {}, 429, Retry_After="3600")
    message = failure(chat(hostile))
    assert "busy or failed (429: Too Many Requests; requested delay: 3600)" in message


def test_faults_of_several_kinds_share_the_tries(hostile):
    hostile.script = [rate_limited, no_text, broken, page]
    model = chat(hostile, Limits(seconds=20.0, retries=3, pause=0.0))
    assert "not with a JSON object, 4 times" in failure(model, PROMPTS[:1])
    hostile.script = [rate_limited, no_text, page, broken]
    assert "busy or failed, 4 times (500: Ausfall)" in failure(model, PROMPTS[:1])


def test_half_a_letter_is_kept_as_a_mark(hostile):
    hostile.script = [lambda handler: send(handler, document("gut \ud83d\ude00 \ud83d!"))]
    assert chat(hostile).generate(["Ja"], 5) == ["gut 😀 \ufffd!"]


def test_refusals_and_filtered_answers_are_answers(hostile):
    def filtered(handler):
        answer = document(None)
        answer["choices"][0]["finish_reason"] = "content_filter"
        send(handler, answer)

    hostile.script = [
        filtered,
        lambda handler: send(handler, document(None, refusal="Das sage ich nicht.")),
        lambda handler: send(handler, document("")),
    ]
    model = chat(hostile, concurrency=1)
    assert model.generate(PROMPTS[:4], 5) == ["", "Das sage ich nicht.", "", EXPECTED[3]]


def test_what_is_sent(hostile, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # none stands before this machine itself
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    chat(hostile).generate(["Ja\n„ä“"], 5)
    chat(hostile, seed=7).generate(["Ja\n„ä“"], 5)
    (path, headers, body), (_, _, seeded) = hostile.seen
    message = {"role": "user", "content": "Ja\n„ä“"}
    assert path == "/v1/chat/completions"
    assert body == {"model": "tiny", "messages": [message], "temperature": 0.0, "max_tokens": 5}
    assert seeded == {**body, "seed": 7}
    assert headers["Authorization"] == "Bearer none"
    assert headers["Accept-Encoding"] == "identity"


def test_the_same_request_is_never_sent_twice(hostile):
    prompts = [*PROMPTS, PROMPTS[0]]
    first = chat(hostile)
    assert first.generate(prompts, 5) == [*EXPECTED, EXPECTED[0]]
    assert len(hostile.seen) == 6
    again = chat(hostile)
    assert again.generate(prompts, 5) == [*EXPECTED, EXPECTED[0]]
    assert len(hostile.seen) == 6
    assert again.environment()["answered_by"] == ["tiny-0314"]
    assert again.usage() == "6 requests, 6 from the cache; 0 + 0 tokens; 0.00 USD"
    assert again.generate([], 5) == []
    for other, max_tokens in ((chat(hostile, seed=1), 5), (chat(hostile, name="b"), 5), (again, 6)):
        sent = len(hostile.seen)
        other.generate(PROMPTS[:1], max_tokens)
        assert len(hostile.seen) == sent + 1


def test_as_many_requests_at_a_time_as_are_allowed(hostile):
    """No answer comes before three requests are there; a fourth at the same time would be seen."""
    three, under_way, most = threading.Barrier(3, timeout=120), [], []

    def together(handler):
        under_way.append(1)
        most.append(len(under_way))
        three.wait()
        under_way.pop()
        three.wait()
        fine(handler)

    hostile.always = together
    assert chat(hostile, concurrency=3).generate(PROMPTS, 5) == EXPECTED
    assert max(most) == 3


def test_what_was_answered_before_ctrl_c_is_kept(hostile):
    def interrupted(work, label, total=None):
        for n, one in enumerate(work):
            if n == 2:
                raise KeyboardInterrupt
            yield one

    model = chat(hostile, concurrency=1)
    with pytest.raises(KeyboardInterrupt):
        model.generate(PROMPTS, 5, interrupted)
    assert model.generate(PROMPTS, 5) == EXPECTED
    assert model.environment()["cached"] >= 3


def test_the_key_is_nowhere_but_in_the_requests(hostile, monkeypatch, caplog, tmp_path):
    """Not even where the server sends it back."""
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("OPENAI_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    hostile.script = [
        lambda handler: send(handler, document(f"Ihr Schlüssel: {KEY}")),
        lambda handler: send(handler, {"error": {"message": f"Bearer {KEY} is wrong"}}, 400),
    ]
    model = chat(hostile, concurrency=1)
    message = failure(model)
    assert "(400: Bearer [key] is wrong)" in message
    answers = model.generate(PROMPTS, 5)
    assert answers[0] == "Ihr Schlüssel: [key]"
    said = [message, *answers, model.usage(), repr(model), repr(vars(model)), caplog.text]
    said += [json.dumps(dict(model.identity)), json.dumps(dict(model.environment()))]
    hostile.always = lambda handler: closed(handler)
    said.append(failure(model, ["anders"]))
    assert hostile.seen[0][1]["Authorization"] == f"Bearer {KEY}"
    kept = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert "Ihr Schlüssel: [key]".encode() in kept
    assert KEY.encode() not in kept
    assert not any(KEY in text for text in said)


def test_a_word_for_a_key_is_left_in_answers(hostile, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "Wie")
    assert chat(hostile).generate(PROMPTS, 5) == EXPECTED


def test_tokens_and_cost(hostile):
    model = chat(hostile, price=(0.5, 1.5))
    model.generate(PROMPTS[:4], 5)
    # 4 requests of 10 and 2 tokens: (40 * 0.5 + 8 * 1.5) / 1,000,000
    assert model.environment() == {
        "openai": openai.__version__, "answered_by": ["tiny-0314"], "requests": 4, "cached": 0,
        "prompt_tokens": 40, "completion_tokens": 8, "cost_usd": "0.000032",
    }  # fmt: skip
    assert model.usage() == "4 requests, 0 from the cache; 40 + 8 tokens; 0.000032 USD"
    hostile.script = [
        lambda handler: send(handler, {**document("Ja"), "usage": {"total_tokens": 3}})
    ]
    model.generate(PROMPTS, 5)
    assert model.environment()["cost_usd"] is None
    told = "6 requests, 4 from the cache; 10 + 2 tokens; the server did not report the tokens of 1"
    assert model.usage() == told
    assert chat(hostile).environment()["cost_usd"] == "0"  # nothing was sent yet
    hostile.script = [no_text]  # no answer, but paid for
    model.generate(["anders"], 5)
    assert model.environment()["prompt_tokens"] == 20


def test_tokens_that_are_no_counts_are_untold():
    for told in (None, [], {"prompt_tokens": -1, "completion_tokens": 2},
                 {"prompt_tokens": True, "completion_tokens": 2},
                 {"prompt_tokens": 2**60, "completion_tokens": 2},
                 {"prompt_tokens": "9", "completion_tokens": 2}):  # fmt: skip
        usage = Usage(Price(Decimal(1), Decimal(1)))
        usage.add(told)
        assert (usage.untold, usage.prompt_tokens, usage.cost) == (1, 0, None)


def test_no_price_is_no_zero(hostile):
    model = chat(hostile)
    model.generate(["Ja"], 5)
    assert model.environment()["cost_usd"] is None
    assert model.usage() == "1 requests, 0 from the cache; 10 + 2 tokens; no known price"


def test_prices(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    official, local = find_server("a", None), find_server("a", "http://localhost:1/v1")
    assert find_price("a", "gpt-4-0125-preview", official, None) == Price(Decimal(10), Decimal(30))
    assert find_price("a", "gpt-4-0125-preview", local, None) is None
    assert find_price("a", "gpt-4-0125-preview", official, (0.1, 0)).read == Decimal("0.1")
    for wrong in ((-1.0, 2.0), (float("nan"), 2.0), (1.0, float("inf"))):
        with pytest.raises(InputError, match="US dollars per million tokens, 0 or more"):
            find_price("a", "b", local, wrong)


def refused(url, key=None):
    os.environ.pop("OPENAI_API_KEY", None)
    if key:
        os.environ["OPENAI_API_KEY"] = key
    with pytest.raises(InputError) as caught:
        open_model("chat:gpt", ModelOptions(base_url=url))
    return str(caught.value)


def test_where_requests_go_and_where_the_key_does_not(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert "requires a key for OpenAI's server; set OPENAI_API_KEY" in refused(None)
    assert "would be sent to http://10.0.0.7:8000/v1 unencrypted" in refused(
        "http://10.0.0.7:8000/v1", KEY
    )
    assert "unencrypted" in refused("http://localhost.example.org/v1", KEY)
    assert "must begin with http:// or https://" in refused("ftp://a/v1", KEY)
    assert "must begin with http:// or https://" in refused("localhost:8000", KEY)
    assert "is invalid" in refused("http://a:99999999/v1", KEY)
    for url in ("https://ich:geheim@a/v1", "https://a/v1?api-key=geheim", "https://a/v1#geheim"):
        message = refused(url, KEY)
        assert "must not contain user, password, query or fragment" in message
        assert "geheim" not in message
    assert "contains invalid characters" in refused("https://a/v1", "Schlüssel")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert find_server("a", "http://10.0.0.7:8000/v1/").key == "none"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://[::1]:8000/v1/")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert find_server("a", None).base_url == "http://[::1]:8000/v1"
    assert find_server("a", "HTTPS://Example.ORG/v1").base_url == "https://example.org/v1"
    assert KEY not in repr(find_server("a", None))


def test_identity_is_what_answers_depend_on():
    options = ModelOptions(base_url="http://localhost:1/v1/", seed=3, concurrency=5, price=(1, 2))
    assert open_model("chat:gpt", options).identity == {
        "kind": "chat", "base_url": "http://localhost:1/v1", "served_model": "gpt", "temperature": 0.0,
        "model_seed": 3,
    }  # fmt: skip
    with pytest.raises(ValueError, match="concurrency is 0; expected an integer from 1 to 1000"):
        ModelOptions(base_url="http://localhost:1/v1", concurrency=0)
    with pytest.raises(InputError, match="missing model name"):
        open_model("chat:", options)
    with pytest.raises(ValueError, match="max_tokens is 0; expected 1 or more"):
        open_model("chat:gpt", options).generate(["Ja"], 0)


def test_openais_own_server_has_a_newer_name_for_the_limit(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    official = ChatModel("chat:gpt", "gpt", find_server("a", None), ModelOptions())
    body = official._request("Ja", 9).body
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body


# The cache


def test_the_first_answer_stands_and_many_are_found(tmp_path):
    cache = Cache(tmp_path / "a.sqlite")
    for n in range(520):
        cache.keep(f"request {n}", Answer(f"Antwort {n}", "gpt"))
    cache.keep("request 7", Answer("anders"))
    assert len(cache.find([f"request {n}" for n in range(999)])) == 520
    assert cache.find(["request 7"]) == {"request 7": Answer("Antwort 7", "gpt")}
    cache.close()


def test_several_processes_keep_answers_at_once(tmp_path):
    code = """
import sys
from pathlib import Path
from giccs.models.served.cache import Answer, Cache
cache = Cache(Path(sys.argv[1]))
for n in range(25):
    cache.keep(f"{sys.argv[2]}-{n}", Answer("ä"))
    cache.keep(f"both-{n}", Answer(sys.argv[2]))
"""
    path = tmp_path / "a.sqlite"
    command = [sys.executable, "-c", code, str(path)]
    processes = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait(120) for process in processes] == [0, 0]
    cache = Cache(path)
    names = [f"{name}-{n}" for name in ("a", "b", "both") for n in range(25)]
    assert list(cache.find(names)) != []
    assert set(cache.find(names)) == set(names)
    cache.close()


def test_a_damaged_cache_is_told_before_anything_is_paid_for(hostile, tmp_path):
    model = chat(hostile)
    model.generate(PROMPTS, 5)
    (file,) = (tmp_path / "cache").glob("*.sqlite")
    assert file.name == FILE
    file.write_bytes(b"no database" * 500)
    message = failure(model)
    assert f"{file}: the file of stored answers is damaged" in message
    assert "move it away and run again" in message
    assert len(hostile.seen) == len(PROMPTS)
    file.unlink()
    file.mkdir()
    assert "set GICCS_CACHE to a writable folder on a disk" in failure(model)
    file.rmdir()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE answers (something INTEGER)")
    other.close()
    assert f"{file}: " in failure(model)


def test_an_answer_that_cannot_be_kept_ends_the_work(hostile, monkeypatch):
    """The disk is full: that is said here, no disk is filled."""

    def full(self, request, answer):
        with self._explain_errors():
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Cache, "keep", full)
    assert "cannot read or write answers (database or disk is full)" in failure(chat(hostile))


# A real server


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """transformers' own server with a tiny model: (folder of the model, address, process)."""
    pytest.importorskip("fastapi")
    from ..causal_models import make_model, transformers

    folder = make_model(tmp_path_factory.mktemp("served"), "llama", "pieces")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = (
        "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    program = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", program, "serve", str(folder), "--device", "cpu"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    watchdog = threading.Timer(120, process.kill)  # a server that never comes up ends its log
    watchdog.start()
    said = []
    for line in process.stderr:
        said.append(line)
        if "Uvicorn running on " in line:
            break
    watchdog.cancel()
    if process.poll() is not None:
        pytest.fail("".join(said))
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield folder, said[-1].split("running on ")[1].split()[0], process
    process.kill()
    process.wait()


@pytest.mark.nightly
def test_multiple_choice_by_a_real_server_and_by_its_model_here_is_the_same(served):
    folder, address, _ = served
    texts = {"a": 0.1, "b": 0.5, "c": 0.9}
    benchmark = Benchmark(
        "short",
        tuple(
            Item(
                f"{d}{text}",
                d,
                "",
                "",
                (Turn("", f"Frage {d}?"),),
                f"{d}{text}",
                f"Ja, {text}.",
                score,
            )
            for d in "xyz"
            for text, score in texts.items()
        ),
    )
    template = Template("short", "{turn}\n{letter}. {option}", "en")  # The model reads 256 tokens.
    results = []
    for name, with_template in ((f"chat:{folder}", False), (f"causal:{folder}", True)):
        model = open_model(name, ModelOptions(base_url=f"{address}/v1"))
        task = MultipleChoice(
            template,
            choose_by="generation",
            histories=("without",),
            max_tokens=3,
            chat_template=with_template,
        )
        results.append(evaluate_task(task, model, benchmark))
    first, second = (result.predictions for result in results)
    for column in ("response", "end", "outcome", "chosen", "gold"):
        assert first[column].to_list() == second[column].to_list()
    assert results[0].metrics["invalid"].value == results[1].metrics["invalid"].value
    assert results[0].signature["choice"] == "generation"


@pytest.mark.nightly
def test_a_real_server_answers_as_its_model_does_here(served):
    folder, address, process = served
    local = open_model(f"causal:{folder}")
    expected = local.generate([local.render_chat(prompt) for prompt in PROMPTS], 9)
    assert len(set(expected)) > 1
    options = ModelOptions(base_url=f"{address}/v1", concurrency=3, price=(1.0, 2.0))
    model = open_model(f"chat:{folder}", options)
    assert model.generate([*PROMPTS, PROMPTS[1]], 9) == [*expected, expected[1]]
    environment = model.environment()
    assert (environment["requests"], environment["cached"]) == (6, 0)
    assert environment["prompt_tokens"] > 6 * 10
    assert 6 <= environment["completion_tokens"] <= 6 * 9
    cost = environment["prompt_tokens"] + 2 * environment["completion_tokens"]
    assert Decimal(environment["cost_usd"]) == Decimal(cost) / 1_000_000
    with pytest.raises(InputError, match=r"the server rejected the request.*pinned to"):
        open_model("chat:another", options).generate(["Ja"], 9)
    process.kill()
    process.wait()
    again = open_model(f"chat:{folder}", options)
    assert again.generate(PROMPTS, 9) == expected  # and nobody was there to be asked
    assert again.usage() == "6 requests, 6 from the cache; 0 + 0 tokens; 0.00 USD"
