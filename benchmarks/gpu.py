"""Multiple choice, encoders and training on one device, beside the harness and sentence-transformers.

``python -m benchmarks.gpu`` runs on the GPU, at the shapes of mGPT (multiple choice) and BERT-base (encoders
and training), in bfloat16, with random weights. Batch sizes are those that giccs and lm-evaluation-harness
find by memory. ``--device cpu --size tiny`` runs the same code anywhere, and its figures mean nothing.

Tokens per second count the tokens that have to be read at least once: for multiple choice, for all programs,
those of the token trees. The share of the peak is the arithmetic on these tokens, divided by that of a large
matrix product in the format of ``--dtype`` on the same device in the same run. The harness needs its own
environment, as in `benchmarks.multiple_choice`: ``LM_EVAL_PYTHON=…/bin/python``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import provenance

PROMPT, OPTION, OPTIONS = 180, 16, 5
HARNESS = """
import json, sys, time
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
folder, questions, device, dtype, answer = sys.argv[1:]
questions = json.load(open(questions))
model = HFLM(pretrained=folder, device=device, batch_size="auto", dtype=dtype)
asked = [
    Instance("loglikelihood", {}, (prompt, option), n)
    for prompt, options in questions for n, option in enumerate(options)
]
model.loglikelihood(asked, disable_tqdm=True)
# The search for the batch size is not measured.
model.batch_size_per_gpu = model.batch_sizes.get(0) or model._detect_batch_size()
start = time.perf_counter()
found = model.loglikelihood(asked, disable_tqdm=True)
seconds = time.perf_counter() - start
scores = [score for score, _ in found]
json.dump({"seconds": seconds, "scores": scores, "batch": model.batch_size}, open(answer, "w"))
"""


@dataclass(frozen=True)
class Shape:
    """Sizes of the models and the work."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    """Of the causal model."""
    questions: int
    encoder_layers: int
    encoder_width: int
    encoder_heads: int
    texts: int
    training_rows: int | None
    matrix: int
    """Rows and columns of the matrices whose product measures the peak."""


SHAPES = {
    "mgpt": Shape(24, 2048, 16, 100_000, 512, 12, 768, 12, 8192, None, 8192),
    "tiny": Shape(2, 32, 2, 500, 3, 2, 32, 2, 16, 8, 64),
}


def measured_peak(device: str, dtype: str, size: int) -> float:
    """Return the highest rate of eight products of square matrices, in FLOP/s."""
    import torch

    a, b = (torch.rand(size, size, device=device, dtype=getattr(torch, dtype)) for _ in range(2))
    rates = []
    for _ in range(8):
        seconds = timed(lambda: [a @ b for _ in range(10)], device)[0]
        rates.append(10 * 2 * size**3 / seconds)
    return max(rates)


def timed(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Return the wall seconds of a piece of work, including what it queued on the device, and its value."""
    import torch

    start = time.perf_counter()
    value = work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start, value


def release(device: str) -> None:
    """Return unused memory to the device."""
    import gc

    import torch

    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def transformer_flops(layers: int, width: int, tokens: float, squares: float) -> float:
    """Return the operations of the layers: matrices for each token, attention for its squared lengths."""
    return layers * (24 * width**2 * tokens + 4 * width * squares)


def make_causal(folder: str, shape: Shape, dtype: str) -> None:
    """Save a random GPT-2 whose tokenizer has one token per word."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=shape.vocabulary, n_embd=shape.width, n_layer=shape.layers, n_head=shape.heads,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(config).to(getattr(torch, dtype)).save_pretrained(folder)
    vocabulary = {f"w{n}": n for n in range(shape.vocabulary)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w0").save_pretrained(folder)


def make_encoder(folder: str, shape: Shape) -> None:
    """Save a random BERT with the words of csts-sample."""
    import torch
    from transformers import (  # type: ignore[attr-defined]
        BertConfig,
        BertModel,
        BertTokenizerFast,
    )

    from giccs.csts.data import read_csts

    rows = read_csts("csts-sample").instances
    texts = " ".join(f"{row.sentence1} {row.sentence2} {row.condition}" for row in rows).lower()
    words = dict.fromkeys(texts.replace(".", " ").replace(",", " ").split())
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    path = Path(folder, "vocab.txt")
    path.write_text("\n".join([*special, *words]), "utf-8")
    torch.manual_seed(0)
    width = shape.encoder_width
    config = BertConfig(
        vocab_size=len(special) + len(words), hidden_size=width, intermediate_size=4 * width,
        num_hidden_layers=shape.encoder_layers, num_attention_heads=shape.encoder_heads,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(str(path)).save_pretrained(folder)


def make_questions(shape: Shape) -> list[tuple[str, list[str]]]:
    draw = random.Random(0)

    def text(words: int) -> str:
        return " ".join(f"w{draw.randrange(1, shape.vocabulary)}" for _ in range(words))

    return [
        (text(PROMPT), [f" {text(OPTION)}" for _ in range(OPTIONS)]) for _ in range(shape.questions)
    ]


@dataclass(frozen=True)
class Report:
    """Prints a line per program."""

    peak: float

    def line(
        self, program: str, seconds: float, tokens: float, flops: float, more: str = ""
    ) -> None:
        share = flops / seconds / self.peak
        print(
            f"{program:<42}{seconds:>10.5f} s {tokens / seconds:>12,.0f} tokens/s {share:>7.1%}{more}"
        )


def multiple_choice(
    report: Report, shape: Shape, device: str, dtype: str, peer: str | None
) -> None:
    """Measure the log-likelihoods of options after a shared prompt."""
    from giccs.models import ModelOptions
    from giccs.models.abilities import Prompt
    from giccs.models.causal import open_causal

    questions = make_questions(shape)
    asked = [Prompt(prompt, tuple(options)) for prompt, options in questions]
    tree = PROMPT + OPTIONS * (OPTION - 1)  # The last token of an option is predicted, never read.
    tokens, head_rows = len(asked) * tree, len(asked) * (1 + OPTIONS * (OPTION - 1))
    body = transformer_flops(shape.layers, shape.width, tokens, len(asked) * tree**2)
    flops = body + 2 * shape.width * shape.vocabulary * head_rows
    with tempfile.TemporaryDirectory() as folder:
        make_causal(folder, shape, dtype)
        model: Any = open_causal(folder, folder, ModelOptions(device=device, dtype=dtype))
        first, found = timed(lambda: model.score(asked), device)
        seconds, _ = timed(lambda: model.score(asked), device)
        used = model.environment()
        report.line("giccs, with the check of the forward pass", first, tokens, flops)
        more = f"  {used['forward']}, batch size {used['batch_size']}"
        report.line("giccs, repeated", seconds, tokens, flops, more)
        model = None  # Its memory is free for the other program.
        release(device)
        if not peer:
            print(
                "lm-evaluation-harness: not measured, LM_EVAL_PYTHON names no environment that has it"
            )
            return
        theirs = of_harness(peer, folder, questions, device, dtype)
    more = f"  batch size {theirs['batch']}, found by memory"
    report.line("lm-evaluation-harness", theirs["seconds"], tokens, flops, more)
    ours = [option.logprob for options in found.options for option in options]
    far = max(abs(a - b) for a, b in zip(ours, theirs["scores"], strict=True))
    print(
        f"harness over giccs: {theirs['seconds'] / seconds:.2f}; log-likelihoods differ by {far:.1e} at most"
    )


def of_harness(
    python: str, folder: str, questions: Any, device: str, dtype: str
) -> dict[str, Any]:  # fmt: skip
    """Run the harness in its own environment; return its seconds and scores."""
    with tempfile.TemporaryDirectory() as workdir:
        file, answer = Path(workdir, "questions.json"), Path(workdir, "answer.json")
        file.write_text(json.dumps(questions))
        arguments = [python, "-c", HARNESS, folder, str(file), device, dtype, str(answer)]
        environment = os.environ | {"HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        result: dict[str, Any] = json.loads(answer.read_text())
        return result


def encoders(report: Report, shape: Shape, device: str, dtype: str) -> None:
    """Measure the vectors of sentences, by giccs and by sentence-transformers with its default batch size."""
    import torch
    from sentence_transformers import SentenceTransformer

    from giccs.csts.data import read_csts
    from giccs.models import ModelOptions, open_model
    from giccs.progress import silent

    rows = read_csts("csts-sample").instances
    draw = random.Random(0)
    texts = [
        f"{draw.choice(rows).sentence1} {draw.choice(rows).sentence2}" for _ in range(shape.texts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        make_encoder(folder, shape)
        model: Any = open_model(f"encoder:{folder}", ModelOptions(device=device, dtype=dtype))
        model.vectors(texts[:8], silent)
        seconds, _ = timed(lambda: model.vectors(texts, silent), device)
        peer = SentenceTransformer(folder, device=device).to(getattr(torch, dtype))
        lengths = [len(ids) for ids in peer.tokenizer(texts)["input_ids"]]
        peer.encode(texts[:8])
        of_peer, _ = timed(lambda: peer.encode(texts), device)
    tokens, squares = sum(lengths), sum(length**2 for length in lengths)
    flops = transformer_flops(shape.encoder_layers, shape.encoder_width, tokens, squares)
    more = f"  batch size {model.environment()['batch_size']}"
    report.line("giccs", seconds, tokens, flops, more)
    report.line("sentence-transformers, batch size 32", of_peer, tokens, flops)
    print(f"sentence-transformers over giccs: {of_peer / seconds:.2f}")


def training(report: Report, shape: Shape, device: str, precision: str) -> None:
    """Measure the steps of giccs csts train in float32 and in mixed precision."""
    from giccs.csts.encoders.settings import Machine, Settings
    from giccs.csts.encoders.splits import read_splits
    from giccs.csts.encoders.training import cpu_has_bf16, fit

    precisions = ["no", precision]
    if device == "cpu" and not cpu_has_bf16():
        precisions = ["no"]
        print(f"mixed precision {precision}: not measured, this CPU does not support it")
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        make_encoder(folder, shape)
        splits = read_splits("csts-sample")
        for name in precisions:
            settings = Settings(
                folder,
                pooling="mean",
                epochs=3,
                train_rows=shape.training_rows,
                mixed_precision=name,
            )
            steps = StepTimes(device)
            machine = Machine("cpu" if device == "cpu" else "auto")
            with tempfile.TemporaryDirectory() as run:
                fitted = fit(settings, splits, Path(run), machine, steps)
            seconds[name] = steps.seconds
            tokenizer = fitted.tokens.tokenizer
            texts = [
                f"{sentence} {row.condition}"
                for row in splits.train[: fitted.rows["trained"]]
                for sentence in (row.sentence1, row.sentence2)
            ]
            lengths = [len(ids) for ids in tokenizer(texts)["input_ids"]]
            tokens = settings.epochs * sum(lengths)
            squares = settings.epochs * sum(length**2 for length in lengths)
            passes = 3  # Forward, and twice as much backward.
            flops = passes * transformer_flops(
                shape.encoder_layers, shape.encoder_width, tokens, squares
            )
            label = "float32" if name == "no" else f"mixed precision {name}"
            report.line(f"giccs csts train, {label}", steps.seconds, tokens, flops)
    if precision in seconds:
        print(f"float32 over {precision}: {seconds['no'] / seconds[precision]:.2f}")


class StepTimes:
    """Progress that measures the steps of a training."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._steps: list[float] = []

    def __call__(self, work: Any, label: str, total: int | None = None) -> Any:
        start = time.perf_counter()
        for item in work:
            yield item
            timed(lambda: None, self._device)
            now = time.perf_counter()
            self._steps.append(now - start)
            start = now

    @property
    def seconds(self) -> float:
        """The number of steps times the median of their durations; evaluations make the last step of an epoch
        longer."""
        return len(self._steps) * median(self._steps)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", choices=SHAPES, default="mgpt")
    parser.add_argument("--dtype", choices=("bfloat16", "float16", "float32"), default="bfloat16")
    parser.add_argument("--peer", default=os.environ.get("LM_EVAL_PYTHON"), metavar="PYTHON")
    options = parser.parse_args(arguments)
    device, dtype, shape = options.device, options.dtype, SHAPES[options.size]
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit("no CUDA device; use --device cpu --size tiny to run the same code")
    print(provenance(f"python -m benchmarks.gpu --device {device} --size {options.size}"))
    if device.startswith("cuda"):
        print(f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}")
    report = Report(measured_peak(device, dtype, shape.matrix))
    print(f"{dtype}, peak of matrix products {report.peak / 1e12:.2f} TFLOP/s\n\nmultiple choice")
    multiple_choice(report, shape, device, dtype, options.peer)
    print("\nencoders")
    encoders(report, shape, device, dtype)
    print("\ntraining")
    training(report, shape, device, "fp16" if dtype == "float16" else "bf16")


if __name__ == "__main__":
    main()
