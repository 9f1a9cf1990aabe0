"""Likelihoods from a server: a stand-in answers in the forms that servers have, with a real model's numbers.

No such server installs here without a GPU or a compiler, so its place is taken by some lines that send the
log-probabilities of a tiny model in this process, as the sources of vLLM, SGLang and llama-cpp-python do it.
"""

import json
import math
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.evaluation.task_results import evaluate_task
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import Prompt
from giccs.models.served.completions import CompletionsModel
from giccs.models.served.server import Limits, find_server
from giccs.tasks import TaskOptions, open_tasks

from ..causal_models import make_model, naive, torch, transformers
from ..deferred import requires
from ..listening import Listening

pytestmark = requires("openai")

QUICK = Limits(seconds=30.0, retries=1, pause=0.0)
CONTEXT = 3000
UMLAUTS = "Größe 😀: „Ich möchte Äpfel“, sagte er"
PROMPTS = [
    Prompt(
        "Frage: Wie weit?\nAntwort:", (" Zehn Minuten.", " Zehn Äpfel 😀", " Ja", " Nein danke“")
    ),
    Prompt(UMLAUTS, (" über Übergröße.", " 😀😀!", " Öl “")),
    Prompt("Wie weit ist das Hotel", (" vom Bahnhof", "vom Bahnhof", "s", " vom Bahnhof")),
]


class Weights:
    """A model that reads texts and tells the log-probability of each token."""

    def __init__(self, folder):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        self.lock = threading.Lock()
        if "<0xC3>" in self.tokenizer.get_vocab():  # read as Llama's is
            from tokenizers import decoders

            parts = decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()
            decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
            self.tokenizer.backend_tokenizer.decoder = decoder

    def read(self, text):
        """Return (ids, ln p of each but the first, the likeliest next id, its ln p)."""
        ids = self.tokenizer(text)["input_ids"]
        with self.lock, torch.no_grad():
            result = torch.log_softmax(self.model(torch.tensor([ids])).logits[0].float(), -1)
        logprobs = result[range(len(ids) - 1), ids[1:]].tolist()
        return ids, [None, *logprobs], int(result[-1].argmax()), float(result[-1].max())


def vllm(server, text):
    """Each token by itself, what stands before the text and what was written behind it; offsets add up."""
    weights = server.weights
    ids, logprobs, written, likely = weights.read(text)
    tokens = [weights.tokenizer.decode([one]) for one in (*ids, written)]
    ends = [sum(map(len, tokens[:n])) for n in range(len(tokens))]
    return answer(text, tokens, [*logprobs, likely], len(ids), offsets=ends)


def sglang(server, text):
    """The same without offsets."""
    result = vllm(server, text)
    result["choices"][0]["logprobs"]["text_offset"] = [-1] * result["usage"]["total_tokens"]
    return result


def sentencepiece(server, text):
    """vLLM of 2024: the pieces as they stand in the vocabulary."""
    result = vllm(server, text)
    ids, _, written, _ = server.weights.read(text)
    result["choices"][0]["logprobs"]["tokens"] = server.weights.tokenizer.convert_ids_to_tokens(
        [*ids, written]
    )
    return result


def byte_offsets(server, text):
    """As vLLM, but offsets count bytes."""
    result = vllm(server, text)
    logprobs = result["choices"][0]["logprobs"]
    logprobs["text_offset"] = [
        len("".join(logprobs["tokens"][:n]).encode()) for n in range(len(logprobs["tokens"]))
    ]
    return result


def untold(server, text):
    """As vLLM, but nobody counts."""
    result = vllm(server, text)
    del result["usage"]
    return result


def llama_cpp_python(server, text):
    """Without the BOS, parts of letters as nothing; where there is no BOS, each number is its neighbour's."""
    weights = server.weights
    ids, logprobs, written, likely = weights.read(text)
    tokens = [weights.tokenizer.decode([one]).replace("\ufffd", "") for one in (*ids, written)]
    logprobs = [*logprobs, likely]
    if ids[0] == weights.tokenizer.bos_token_id:
        tokens, logprobs = tokens[1:], [None, *logprobs[2:]]
    else:
        tokens, logprobs = tokens[:-1], [None, *logprobs[2:]]
    return answer(text, tokens, logprobs, len(ids))


def answer(text, tokens, logprobs, read, offsets=()):
    result = {
        "tokens": tokens,
        "token_logprobs": logprobs,
        "text_offset": list(offsets),
        "top_logprobs": None,
    }
    choice = {
        "index": 0,
        "text": f"{text}{tokens[-1]}",
        "logprobs": result,
        "finish_reason": "length",
    }
    usage = {"prompt_tokens": read, "completion_tokens": 1, "total_tokens": read + 1}
    return {
        "id": "x",
        "object": "text_completion",
        "model": "tiny-v1",
        "choices": [choice],
        "usage": usage,
    }


class StandIn(Listening):
    """Answers in the form of `style`; before that, whatever stands in `script`."""

    def __init__(self):
        super().__init__(Handler)
        self.style, self.weights, self.context = vllm, None, CONTEXT


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append((self.path, body))
            act = self.server.script.pop(0) if self.server.script else completed
        act(self, body)

    def send(self, content, status=200, **headers):
        content = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": len(content),
            **headers,
        }.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def completed(handler, body):
    server, text = handler.server, body["prompt"]
    if (
        length := len(server.weights.tokenizer(text)["input_ids"]) + body["max_tokens"]
    ) > server.context:
        message = (  # vLLM's words
            f"This model's maximum context length is {server.context} tokens. However, you requested "
            f"{length} tokens ({length - 1} in the messages, 1 in the completion). Please reduce the length."
        )
        handler.send({"error": {"message": message, "type": "BadRequestError", "code": 400}}, 400)
    else:
        handler.send(server.style(server, text))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tokenizer -> a tiny model with it."""
    architectures = {"bytes": "gpt2", "pieces": "llama", "merging": "gpt2", "closing": "llama"}
    return {
        tokenizer: make_model(
            tmp_path_factory.mktemp(tokenizer), architecture, tokenizer,
            **{"n_positions" if architecture == "gpt2" else "max_position_embeddings": CONTEXT},
        )
        for tokenizer, architecture in architectures.items()
    }  # fmt: skip


@pytest.fixture(scope="module")
def weights(folders):
    return {tokenizer: Weights(folder) for tokenizer, folder in folders.items()}


@pytest.fixture
def server(weights, monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with StandIn().serving() as server:
        server.weights = weights["bytes"]
        yield server


def opened(server, limits=QUICK, name="tiny", **options):
    options = ModelOptions(**{"base_url": server.url, "concurrency": 2, **options})
    return CompletionsModel(
        f"completions:{name}", name, find_server(name, server.url), options, limits
    )


def failure(model, prompts=PROMPTS[:1]):
    with pytest.raises(InputError) as caught:
        model.score(prompts)
    return str(caught.value)


def same(found, expected):
    assert found.prompts == expected.prompts
    assert found.cut == expected.cut
    for ours, theirs in zip(found.options, expected.options, strict=True):
        assert [(our.tokens, our.bytes) for our in ours] == [
            (their.tokens, their.bytes) for their in theirs
        ]
        assert [our.logprob for our in ours] == pytest.approx(
            [their.logprob for their in theirs], abs=1e-4
        )


@pytest.mark.parametrize(
    ("tokenizer", "style"),
    [
        ("bytes", vllm), ("bytes", sglang), ("bytes", byte_offsets), ("bytes", untold),
        ("pieces", vllm), ("pieces", sentencepiece), ("pieces", llama_cpp_python), ("merging", vllm),
    ],
)  # fmt: skip
def test_a_server_gives_the_numbers_of_the_same_model_here(
    server, folders, weights, tokenizer, style
):
    """Among them umlauts and emoji in several tokens, a BOS, options whose letters join the prompt's."""
    server.weights, server.style = weights[tokenizer], style
    prompts = PROMPTS
    if tokenizer == "merging":  # it knows the letters of its texts alone
        prompts = [Prompt("Frage: Ich möchte Äuß", (" Ja", "erung", " Nein")), *PROMPTS[2:]]
    if style is llama_cpp_python:  # half a letter at the end of a text may be a lost token
        prompts = [
            Prompt(
                prompt.text,
                tuple(text for text in prompt.options if not text.endswith(("😀", "“"))),
            )
            for prompt in PROMPTS
        ]
    expected = open_model(f"causal:{folders[tokenizer]}").score(prompts)
    same(opened(server).score(prompts), expected)
    assert {path for path, _ in server.seen} == {"/v1/completions"}
    sent = len(server.seen)
    assert sent == len({body["prompt"] for _, body in server.seen})
    same(opened(server).score(prompts), expected)
    assert len(server.seen) == sent


ODD = [
    Prompt(
        "Frage: Ja oder Nein?", (" Ja", " Ja.", " Ja. Ja", " J")
    ),  # each begins as the next one does
    Prompt("A", (" A", " B", " C")),
    Prompt("ja ja ja ja ja", (" ja", " ja ja", " ja ja ja")),
    Prompt("Antwort: 😀😀", (" 😀", " 😀😀", " 👩\u200d🚀 😃")),
    Prompt("Antwort:\n", ("Ä", "Äpfel", "e\u0301")),
    Prompt("Sagte sie: „", ("Öl.“", "Über“", "öl")),
]


@pytest.mark.parametrize("tokenizer", ["bytes", "pieces"])
def test_options_are_as_likely_as_the_plainest_scorer_finds_them(
    server, folders, weights, tokenizer
):
    """It reads each option by itself with its prompt, and counts the prompt's tokens to find the option's."""
    server.weights = weights[tokenizer]
    result = opened(server).score(ODD)
    for ours, theirs in zip(result.options, naive(folders[tokenizer], ODD), strict=True):
        assert [our.tokens for our in ours] == [tokens for _, tokens in theirs]
        assert [our.logprob for our in ours] == pytest.approx(
            [logprob for logprob, _ in theirs], abs=1e-4
        )


def test_a_token_that_holds_the_end_of_the_prompt_counts_for_the_option(server, folders, weights):
    """All options are scored from the first place at which one parts from the prompt."""
    server.weights = weights["merging"]
    prompt = Prompt("Frage: Welche Äußerung ist der letz", ("ten am", "t", "en"))
    local = open_model(f"causal:{folders['merging']}").score([prompt])
    same(opened(server).score([prompt]), local)
    tokenizer = server.weights.tokenizer
    whole = tokenizer.tokenize(prompt.text + prompt.options[0])
    assert len(prompt.text) not in [
        len("".join(whole[:n])) for n in range(len(whole))
    ]  # it straddles


def test_on_the_sample_accuracies_are_those_of_the_model_here(server, folders):
    benchmark = read_benchmark("giccs-sample").first(8)
    (task,) = open_tasks("multiple-choice-sts", TaskOptions())
    assert set(task.histories) == {"without", "with"}
    here = evaluate_task(task, open_model(f"causal:{folders['bytes']}"), benchmark)
    served = evaluate_task(task, opened(server, concurrency=4, price=(1.0, 1.0)), benchmark)
    for ours, theirs in zip(served.groups, here.groups, strict=True):
        assert ours.by == theirs.by
        for name, metric in theirs.metrics.items():
            assert ours.metrics[name].value == pytest.approx(metric.value, abs=1e-9)
    columns = [
        "dialogue_id",
        "utterance_id",
        "history",
        "prompt",
        "tokens",
        "bytes",
        "chosen",
        "gold",
    ]
    assert served.predictions.select(columns).equals(here.predictions.select(columns))
    for column in ("logprob", "logprob_alone"):
        pairs = zip(served.predictions[column], here.predictions[column], strict=True)
        assert all(math.isclose(one, other, abs_tol=1e-4) for one, other in pairs)
    assert served.signature["kind"] == "completions"
    assert served.environment["answered_by"] == ["tiny-v1"]
    assert served.environment["requests"] == len(server.seen)
    sent = len(server.seen)
    again = evaluate_task(task, opened(server), benchmark)
    assert len(server.seen) == sent
    assert again.predictions.equals(served.predictions)


def test_a_prompt_without_room_gives_way_to_a_shorter_one(server, folders):
    prompts = [
        Prompt("sehr " * 60 + "lang:", (" Ja", " Nein danke"), ("sehr " * 30 + "lang:", "lang:")),
        Prompt("kurz:", (" Ja", " Nein")),
    ]
    size = len(server.weights.tokenizer(prompts[0].shorter[0] + " Nein danke")["input_ids"])
    server.context = size + 1
    result = opened(server).score(prompts)
    assert result.prompts == (prompts[0].shorter[0], "kurz:")
    assert result.cut == 1
    local = open_model(f"causal:{folders['bytes']}").score(
        [Prompt(result.prompts[0], prompts[0].options)]
    )
    assert result.options[0][1].logprob == pytest.approx(local.options[0][1].logprob, abs=1e-4)
    server.context = 3
    message = failure(opened(server, name="b"), prompts)
    assert "prompt 2: is too long for the server's model in its shortest form" in message


WORDS = [
    (400, "This model's maximum context length is 8 tokens. However, you requested 9 tokens."),
    (400, "The input (9 tokens) is longer than the model's context length (8 tokens)."),
    (400, "Requested tokens (9) exceed context window of 8"),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8. Given: 9"),
    (413, "prompt too large"),
]


@pytest.mark.parametrize(("status", "words"), WORDS)
def test_how_servers_say_that_a_prompt_is_too_long(server, status, words):
    server.script = [lambda handler, body: handler.send({"error": {"message": words}}, status)]
    result = opened(server, concurrency=1).score([Prompt("Lang:", (" Ja",), ("L:",))])
    assert (result.prompts, result.cut) == (("L:",), 1)


def test_another_refusal_is_no_matter_of_length(server):
    server.script = [
        lambda handler, body: handler.send({"error": {"message": "no such model"}}, 404)
    ]
    assert "prompt 1: the server rejected the request (404: no such model)" in failure(
        opened(server)
    )


def changed(**changes):
    """A form of answer with other things in its choice, or in its log-probabilities."""

    def style(server, text):
        result = vllm(server, text)
        choice = result["choices"][0]
        for name, change in changes.items():
            place = choice if name in ("text", "logprobs") else choice["logprobs"]
            place[name] = change(place[name])
        return result

    return style


def cut_short(server, text):
    """A server that drops the beginning of a prompt without a word."""
    result = vllm(server, text[5:])
    result["choices"][0]["text"] = text
    return result


NO_ECHO = (
    "does not echo the prompt; expected a server whose /v1/completions supports echo and logprobs"
)
NOT_THE_TEXT = "the tokens are not those of the whole prompt"
NO_NUMBER = "; expected a number up to 0"
USELESS = {
    "written alone": (changed(text=lambda text: text[-1:]), NO_ECHO),
    "no text": (changed(text=lambda text: None), NO_ECHO),
    "no logprobs": (changed(logprobs=lambda found: None), "returns no log-probabilities of tokens"),
    "as in a chat": (
        changed(logprobs=lambda found: {"content": []}),
        "returns no log-probabilities",
    ),
    "no tokens": (changed(tokens=lambda found: []), "returns no log-probabilities of tokens"),
    "one number less": (
        changed(token_logprobs=lambda found: found[:-1]),
        "the numbers of tokens and log-probabilities differ",
    ),
    "ids": (
        changed(tokens=lambda found: [f"token_id:{n}" for n in range(len(found))]),
        NOT_THE_TEXT,
    ),
    "numbers for tokens": (
        changed(tokens=lambda found: [*range(len(found))]),
        "the numbers of tokens and log-probabilities differ",
    ),
    "null": (
        changed(token_logprobs=lambda found: [*found[:3], None, *found[4:]]),
        f"token 4 is None{NO_NUMBER}",
    ),
    "NaN": (
        changed(token_logprobs=lambda found: [*found[:3], math.nan, *found[4:]]),
        f"nan{NO_NUMBER}",
    ),
    "infinite": (
        changed(token_logprobs=lambda found: [*found[:3], -math.inf, *found[4:]]),
        f"-inf{NO_NUMBER}",
    ),
    "positive": (
        changed(token_logprobs=lambda found: [*found[:3], 0.1, *found[4:]]),
        f"0.1{NO_NUMBER}",
    ),
    "cut": (cut_short, NOT_THE_TEXT),
    "shifted": (llama_cpp_python, NOT_THE_TEXT),
}


@pytest.mark.parametrize("case", USELESS)
def test_a_server_that_cannot_do_it_is_refused_in_a_sentence(server, case):
    server.style, expected = USELESS[case]
    message = failure(opened(server))
    assert message.startswith("completions:tiny: prompt 1: ")
    assert expected in message
    assert len(server.seen) <= 2  # asking again does not help
    server.style = vllm
    assert opened(server).score(PROMPTS[:1]).cut == 0  # and nothing of it was kept


def test_tokens_that_end_in_a_shift_are_refused_also_behind_a_quotation_mark(server):
    """The lost last token is no sign of ASCII: only the text's end tells that it is missing."""
    server.style = llama_cpp_python
    assert NOT_THE_TEXT in failure(opened(server), [Prompt("Er sagte: „Ja.“", (" Nein.",))])


def test_tokens_behind_every_text_are_refused(server, weights):
    server.weights = weights["closing"]
    assert NOT_THE_TEXT in failure(opened(server))


def test_two_models_behind_one_address_are_found_out(server, weights):
    other = Weights.__new__(Weights)
    other.tokenizer, other.lock = server.weights.tokenizer, server.weights.lock
    torch.manual_seed(5)
    other.model = transformers.AutoModelForCausalLM.from_config(server.weights.model.config).eval()

    def in_turns(server, text):
        server.weights = other if text == PROMPTS[0].text else weights["bytes"]
        return vllm(server, text)

    server.style = in_turns
    message = failure(opened(server, concurrency=1))
    assert "different log-probabilities for the same tokens" in message


def test_rounding_above_zero_is_zero(server):
    server.style = changed(token_logprobs=lambda found: [None, *(5e-4 for _ in found[1:])])
    (options,) = opened(server).score(PROMPTS[:1]).options
    assert [option.logprob for option in options] == [0.0] * 4


def redirected(handler, body):
    handler.send({}, 307, Location="http://127.0.0.1:1/v1/completions")


def dripping(handler, body):
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    while not handler.server.released.wait(0.01):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def test_what_passes_is_survived_and_what_does_not_is_said(server):
    expected = opened(server).score(PROMPTS)

    def busy(handler, body):
        handler.send({"error": {"message": "slow down"}}, 429, Retry_After="0.01")

    def broken(handler, body):
        handler.send([1])

    server.script = [busy, completed, broken, completed, dripping]
    patient = opened(server, Limits(seconds=2.0, retries=2, pause=0.0), name="b", concurrency=1)
    same(patient.score(PROMPTS), expected)
    server.script = [redirected] * 3
    assert "which is not followed; check the address" in failure(opened(server, name="c"))
    server.script = [dripping] * 4
    late = opened(server, Limits(seconds=1.0, retries=0), name="d", concurrency=1)
    assert "no answer within 1 seconds" in failure(late)


def test_a_failure_loses_no_answer_and_counts_go_on(server):
    server.script = [completed, completed, *([lambda handler, body: handler.send({}, 401)] * 9)]
    message = failure(opened(server, concurrency=1), PROMPTS)
    total = len({one for p in PROMPTS for one in (p.text, *(p.text + o for o in p.options))})
    assert f"2 of {total} answers are stored; the next run continues from there" in message
    server.script.clear()
    sent = len(server.seen)
    model = opened(server, price=(2.0, 3.0))
    model.score(PROMPTS)
    assert len(server.seen) == sent + total - 2
    assert model.usage().startswith(f"{total} requests, 2 from the cache; ")
    counts = model.environment()
    cost = 2 * counts["prompt_tokens"] + 3 * counts["completion_tokens"]
    assert float(counts["cost_usd"]) == pytest.approx(cost / 1e6)
    assert counts["completion_tokens"] == total - 2


def test_killed_in_the_middle_no_answer_is_lost(server, tmp_path):
    code = """
import sys
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import Prompt
model = open_model("completions:tiny", ModelOptions(base_url=sys.argv[1], concurrency=1))
model.score([Prompt("Frage:", tuple(f" Antwort {n}" for n in range(20)))])
"""
    answered = threading.Event()

    def held(handler, body):
        answered.set()
        handler.server.released.wait()

    server.script = [completed] * 7 + [held]
    process = subprocess.Popen([sys.executable, "-c", code, server.url])
    assert answered.wait(120)
    process.kill()
    process.wait()
    sent = len(server.seen)
    model = opened(server)
    model.score([Prompt("Frage:", tuple(f" Antwort {n}" for n in range(20)))])
    assert model.environment()["cached"] == 7
    assert len(server.seen) == sent + 21 - 7


def test_the_command_says_nothing_of_prompts_and_key_and_asks_nothing_twice(
    server, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", key := "sk-0123456789abcdef")
    call = ["completions:tiny", "--base-url", server.url, "--data", "giccs-sample", "--verbose"]
    call += ["--json", "-o", str(tmp_path / "results"), "--limit"]
    first, more = (CliRunner().invoke(evaluate, [*call, limit]) for limit in ("2", "3"))
    assert (first.exit_code, more.exit_code) == (0, 0), first.stderr + more.stderr
    (result,) = json.loads(more.stdout)["results"]
    counts = result["environment"]
    assert counts["requests"] == len({body["prompt"] for _, body in server.seen}) == 3 * 3 * 6
    assert counts["cached"] == 2 * 3 * 6
    assert len(server.seen) == 3 * 3 * 6
    assert "completions:tiny: 54 requests, 36 stored in completions-tokens.sqlite" in more.stderr
    message = first.stderr + more.stderr
    assert key not in message + first.stdout + more.stdout
    options = {body["prompt"].splitlines()[-1] for _, body in server.seen}
    assert not [text for text in options if len(text) > len("Antwort:") and text in message]


def test_what_is_sent_and_what_results_depend_on(server):
    model = opened(server, concurrency=1)
    model.score([Prompt("Ja „ä“:", (" Nein",))])
    assert server.seen[0][1] == {
        "model": "tiny", "prompt": "Ja „ä“:", "echo": True, "logprobs": 1, "max_tokens": 1,
        "temperature": 0.0,
    }  # fmt: skip
    opened_by_name = open_model(
        "completions:tiny", ModelOptions(base_url=server.url, seed=3, price=(1.0, 1.0))
    )
    assert opened_by_name.identity == model.identity == {
        "kind": "completions", "base_url": server.url, "served_model": "tiny",
    }  # fmt: skip
    assert not hasattr(model, "generate")


def test_what_cannot_be_asked_is_refused_before_anything_is_sent(server):
    with pytest.raises(InputError, match="missing model name; expected completions:NAME"):
        open_model("completions:", ModelOptions(base_url=server.url))
    (templated,) = open_tasks("multiple-choice-sts", TaskOptions(chat_template=True))
    assert "omit --chat-template" in templated.refuses(opened(server))
    message = failure(opened(server), [Prompt(" ", (" Ja",)), Prompt("a", ()), Prompt("a", (" ",))])
    assert "prompt 2 has no options" in message
    assert "prompt 3 has the empty option ' '" in message
    assert "prompt 1: is empty" in failure(opened(server), [Prompt("\n", (" Ja",))])
    assert server.seen == []
