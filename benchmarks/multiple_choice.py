"""Likelihood of options after a shared prompt: giccs beside lm-evaluation-harness, one thread, CPU seconds.

Twelve questions of five options, a prompt of 180 tokens and options of 16, on a random GPT-2 of 12
layers, 768 wide, with a vocabulary of 100,000; each program in a process of its own, timed from the
loaded model on. The harness runs in an environment of its own, since it asks for other packages than
we do: ``LM_EVAL_PYTHON=…/bin/python``, where lm_eval 0.4.13 is installed. Without it ours runs alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import ONE_THREAD

QUESTIONS, OPTIONS, PROMPT, OPTION = 12, 5, 180, 16
LAYERS, WIDTH, VOCABULARY = 12, 768, 100_000

MEASURED = """
import json, resource, sys, time
folder, questions = sys.argv[1], json.load(open(sys.argv[2]))
{work}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
json.dump({{"cpu": cpu, "peak": peak, "scores": scores, **more}}, open(sys.argv[3], "w"))
"""
HARNESS = """
import torch; torch.set_num_threads(1)
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
model = HFLM(pretrained=folder, device="cpu", batch_size=1, dtype="float32")
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
from giccs.models.causal import Prompt, open_causal
model = open_causal(folder)
asked = [Prompt(prompt, tuple(options)) for prompt, options in questions]
model.context  # loads
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
more = {"again": again, "rate": max(rates), "forward": model.environment()["forward"]}
"""


def make_model(folder: str) -> None:
    """Save a random GPT-2 whose tokenizer has a word a token."""
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


def make_questions(draw: random.Random) -> list[tuple[str, list[str]]]:
    def text(words: int) -> str:
        return " ".join(f"w{draw.randrange(1, VOCABULARY)}" for _ in range(words))

    return [
        (text(PROMPT), [f" {text(OPTION)}" for _ in range(OPTIONS)]) for _ in range(QUESTIONS)
    ]


def run(python: str, work: str, folder: str, questions: Path) -> dict[str, Any]:
    answer = questions.with_suffix(".answer")
    code = MEASURED.format(work=work)
    environment = os.environ | ONE_THREAD | {"HF_HUB_OFFLINE": "1"}
    arguments = [python, "-c", code, folder, str(questions), str(answer)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


def flops() -> float:
    """Multiplications and additions of the tree of each question: matrices, attention, head."""
    tokens = PROMPT + OPTIONS * (OPTION - 1)  # an option's last token is predicted, never read
    rows = 1 + OPTIONS * (OPTION - 1)
    body = LAYERS * (2 * 12 * WIDTH**2 * tokens + 4 * WIDTH * tokens**2)
    return float(QUESTIONS * (body + 2 * WIDTH * VOCABULARY * rows))


def main(peer: str | None = os.environ.get("LM_EVAL_PYTHON")) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_model(folder)
        questions = Path(folder, "questions")
        questions.write_text(json.dumps(make_questions(random.Random(0))))
        ours = run(sys.executable, OURS, folder, questions)
        theirs = run(peer, HARNESS, folder, questions) if peer else None
    bound = flops() / ours["rate"]
    print("                                       CPU s   peak MiB")
    print(f"giccs ({ours['forward']}), self-check included {ours['cpu']:>4.2f} {ours['peak']:>8.0f}")
    print(f"giccs, asked again                    {ours['again']:>6.2f}")
    print(
        f"arithmetic bound                      {bound:>6.2f}            {ours['rate'] / 1e9:.0f} GFLOP/s"
    )
    print(
        f"bound over giccs: {bound / ours['cpu']:.0%} with the self-check, {bound / ours['again']:.0%} without"
    )
    if theirs is None:
        print("lm-evaluation-harness: not measured; LM_EVAL_PYTHON names no environment that has it")
        return
    print(f"lm-evaluation-harness, batch size 1   {theirs['cpu']:>6.2f} {theirs['peak']:>10.0f}")
    pairs = list(zip(ours["scores"], theirs["scores"], strict=True))
    far = max(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))
    same = sum(max(one) - one[other.index(max(other))] == 0 for one, other in pairs)
    print(f"harness over giccs: {theirs['cpu'] / ours['cpu']:.2f}")
    print(f"largest difference of a log-likelihood: {far:.1e}; same choice in {same} of {len(pairs)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", default=os.environ.get("LM_EVAL_PYTHON"), metavar="PYTHON")
    main(parser.parse_args().peer)
