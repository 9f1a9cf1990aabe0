"""Multiple choice, encoders, EvalRank and training on one device, beside other programs.

``python -m benchmarks.gpu`` measures on the GPU, in bfloat16, with random weights: multiple choice at the
shapes of mGPT and of Llama 7B with prompts of one length, of giccs-sample and of many lengths; encoders at
the shapes of MiniLM, BERT-large and Qwen3-Embedding; training at that of BERT-base. giccs chooses its batch
sizes itself. The most important measurements come first: with ``--minutes 5``, none begins later than that.
Each line is printed, and appended to ``--output`` as JSON, when it is known. ``--device cpu --size tiny``
runs the same code anywhere, and its figures mean nothing.

Tokens per second count the tokens that have to be read at least once: for multiple choice, for all programs,
those of the token trees. The share of the peak is the arithmetic on these tokens, divided by that of a large
product of normal random matrices in the format of ``--dtype`` on the same device in the same run. The harness
needs its own environment, as in `benchmarks.multiple_choice`: ``LM_EVAL_PYTHON=…/bin/python``. It is measured
with logarithms of probabilities in its default format and in float32.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import provenance

PROMPT, OPTION, OPTIONS = 180, 16, 5
LONG = 248, 1088
"""Fewest and most tokens of a long prompt."""
BATCHES = 32, 128, 512, 1024, 4096
"""Batch sizes of which the best is the bound of encoders."""
HARNESS = """
import json, sys, time
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
folder, questions, device, dtype, softmax, answer = sys.argv[1:]
questions = json.load(open(questions))
model = HFLM(
    pretrained=folder, device=device, batch_size="auto", dtype=dtype, softmax_dtype=softmax or None
)
asked = [
    Instance("loglikelihood", {}, (prompt, option), n)
    for prompt, options in questions for n, option in enumerate(options)
]
seconds = []
for _ in range(2):
    start = time.perf_counter()
    found = model.loglikelihood(asked, disable_tqdm=True)
    seconds.append(time.perf_counter() - start)
scores = [score for score, _ in found]
json.dump({"seconds": seconds, "scores": scores, "batch": model.batch_sizes}, open(answer, "w"))
"""
Questions = list[tuple[str, list[str]]]


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; `mlp` is None for those of GPT-2 and BERT, and the width of Llama's or Qwen3's."""

    name: str
    layers: int
    width: int
    heads: int
    mlp: int | None = None


@dataclass(frozen=True)
class Size:
    """Models and amounts of work."""

    causal: tuple[Shape, ...]
    encoders: tuple[Shape, ...]
    trained: Shape
    vocabulary: int
    questions: int
    """Prompts of one length."""
    dialogues: int | None
    """Dialogues of giccs-sample; None for all."""
    long: int
    """Prompts of many lengths."""
    texts: int
    training_rows: int | None
    matrix: int
    """Rows and columns of the matrices whose product measures the peak."""
    ranked: tuple[int, int, int]
    """Texts, pairs and width of EvalRank."""


SIZES = {
    "card": Size(
        (Shape("mGPT shape", 24, 2048, 16), Shape("Llama 7B shape", 32, 4096, 32, 11008)),
        (
            Shape("MiniLM shape", 6, 384, 12),
            Shape("BERT-large shape", 24, 1024, 16),
            Shape("Qwen3-Embedding shape", 28, 1024, 16, 3072),
        ),
        Shape("BERT-base shape", 12, 768, 12),
        100_000, 320, None, 192, 8192, None, 8192, (100_000, 10_000, 768),
    ),
    "tiny": Size(
        (Shape("tiny GPT-2", 2, 32, 2), Shape("tiny Llama", 2, 32, 2, 64)),
        (Shape("tiny BERT", 2, 32, 2), Shape("tiny Qwen3", 2, 32, 2, 64)),
        Shape("tiny BERT", 2, 32, 2),
        3000, 3, 2, 3, 16, 8, 64, (50, 20, 4),
    ),
}  # fmt: skip


class Run:
    """Prints each line and appends it to a file; begins no measurement after the time is over."""

    def __init__(self, peak: float, minutes: float | None, output: Path | None) -> None:
        self._peak, self._output = peak, output
        self._end = float("inf") if minutes is None else time.perf_counter() + 60 * minutes
        self._part = ""

    def begins(self, part: str) -> bool:
        """Print the title of a measurement and return whether there is time for it."""
        self._part = part
        has_time = time.perf_counter() < self._end
        self.say(f"\n{part}" if has_time else f"\n{part}: not measured, the time is over")
        return has_time

    def line(self, program: str, seconds: float, tokens: float, flops: float, **more: Any) -> None:
        """Record the seconds of a program for an amount of work."""
        share = flops / seconds / self._peak
        details = ", ".join(f"{name} {value}" for name, value in more.items())
        print(
            f"{program:<44}{seconds:>10.5f} s {tokens / seconds:>12,.0f} tokens/s {share:>7.1%}  {details}"
        )
        self._append(
            {"program": program, "seconds": seconds, "tokens": tokens, "share": share} | more
        )

    def say(self, text: str) -> None:
        """Print and record a remark."""
        print(text, flush=True)
        self._append({"remark": text.strip()})

    def _append(self, row: dict[str, Any]) -> None:
        if self._output is not None:
            with self._output.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"part": self._part} | row, default=str) + "\n")


def measured_peak(device: str, dtype: str, size: int) -> float:
    """Return the highest rate of eight products of square normal random matrices, in FLOP/s."""
    import torch

    a, b = (torch.randn(size, size, device=device, dtype=getattr(torch, dtype)) for _ in range(2))
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
    """Return unused memory to the GPU."""
    import gc

    import torch

    if device.startswith("cuda"):
        gc.collect()
        torch.cuda.empty_cache()


def layer_parameters(model: Any) -> int:
    """Return the number of parameters of the layers: all but embeddings and the output matrix."""
    outside = ("embed", "wte", "wpe", "lm_head")
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if not any(part in name for part in outside)
    )


def transformer_flops(
    parameters: int, layers: int, width: int, tokens: float, squares: float
) -> float:
    """Return the operations of the layers: two for a parameter and token, attention for squared lengths."""
    return 2 * parameters * tokens + 4 * layers * width * squares


def make_causal(
    folder: str, shape: Shape, vocabulary: Sequence[str], device: str, dtype: str
) -> int:
    """Save a random model whose tokenizer has one token per word; return `layer_parameters`."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
    )

    torch.manual_seed(0)
    common: dict[str, Any] = {"vocab_size": len(vocabulary), "bos_token_id": 0, "eos_token_id": 0}
    with torch.device(device):
        if shape.mlp is None:
            model: Any = GPT2LMHeadModel(
                GPT2Config(
                    n_embd=shape.width,
                    n_layer=shape.layers,
                    n_head=shape.heads,
                    n_positions=2048,
                    **common,
                )
            )
        else:
            model = LlamaForCausalLM(
                LlamaConfig(
                    hidden_size=shape.width, num_hidden_layers=shape.layers, intermediate_size=shape.mlp,
                    num_attention_heads=shape.heads, max_position_embeddings=4096, **common,
                )
            )  # fmt: skip
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    words = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(vocabulary)}, unk_token="w0")
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w0").save_pretrained(folder)
    return layer_parameters(model)


def make_encoder(folder: str, shape: Shape) -> None:
    """Save a random encoder with the words of csts-sample."""
    import torch
    from transformers import (  # type: ignore[attr-defined]
        BertConfig,
        BertModel,
        BertTokenizerFast,
        Qwen3Config,
        Qwen3Model,
    )

    from giccs.csts.data import read_csts

    rows = read_csts("csts-sample").instances
    texts = " ".join(f"{row.sentence1} {row.sentence2} {row.condition}" for row in rows).lower()
    words = dict.fromkeys(texts.replace(".", " ").replace(",", " ").split())
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    path = Path(folder, "vocab.txt")
    path.write_text("\n".join(vocabulary), "utf-8")
    torch.manual_seed(0)
    common: dict[str, Any] = {
        "vocab_size": len(vocabulary),
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
    }
    if shape.mlp is None:
        model: Any = BertModel(BertConfig(intermediate_size=4 * shape.width, **common))
    else:
        heads = max(1, shape.heads // 2)
        model = Qwen3Model(
            Qwen3Config(intermediate_size=shape.mlp, num_key_value_heads=heads, **common)
        )
    model.save_pretrained(folder)
    BertTokenizerFast(str(path)).save_pretrained(folder)


def vocabulary_of(size: Size) -> list[str]:
    """Return ``w0``, ``w1``, ..., and at the end the words of the prompts of giccs-sample."""
    texts = [" ".join((prompt, *options)) for prompt, options in sample_questions(size)]
    words = dict.fromkeys(" ".join(texts).split())
    return [*(f"w{n}" for n in range(size.vocabulary - len(words))), *words]


def random_text(draw: random.Random, words: int) -> str:
    return " ".join(f"w{draw.randrange(1, 1000)}" for _ in range(words))


def equal_questions(size: Size) -> Questions:
    """Return prompts of one length."""
    draw = random.Random(0)
    return [
        (random_text(draw, PROMPT), [f" {random_text(draw, OPTION)}" for _ in range(OPTIONS)])
        for _ in range(size.questions)
    ]


def long_questions(size: Size) -> Questions:
    """Return prompts of many lengths."""
    draw = random.Random(1)
    return [
        (
            random_text(draw, draw.randint(*LONG)),
            [f" {random_text(draw, OPTION)}" for _ in range(OPTIONS)],
        )
        for _ in range(size.long)
    ]


def sample_questions(size: Size) -> Questions:
    """Return the questions of giccs-sample with and without history, by the prompt of Figure 2."""
    from giccs.benchmark import read_benchmark
    from giccs.prompts import open_template

    template = open_template("figure2-de-1")
    items = read_benchmark("giccs-sample").items
    dialogues = [list(group) for _, group in groupby(items, key=lambda item: item.dialogue_id)]
    return [
        (template.render(turns, options), [f" {option}" for option in options])
        for group in dialogues[: size.dialogues]
        for turns in (group[0].turns, group[0].turns[-1:])
        for options in [[item.utterance for item in group]]
    ]


def trees_of(model: Any, asked: Sequence[Any]) -> list[int]:
    """Return the number of tokens of each question's tree."""
    from giccs.models.causal.tokens import grow

    return [len(grow(model._boundary.encode(prompt.text, prompt.options))) for prompt in asked]


def multiple_choice(
    run: Run, shape: Shape, folder: str, parameters: int, work: str, questions: Questions,
    options: argparse.Namespace, rows: int,
) -> None:  # fmt: skip
    """Measure the log-likelihoods of options, twice, and those of the harness; `rows`: of the head."""
    from giccs.models import ModelOptions
    from giccs.models.abilities import Prompt
    from giccs.models.causal import open_causal

    if not run.begins(f"multiple choice, {shape.name}, {len(questions)} prompts, {work}"):
        return
    device, dtype = options.device, options.dtype
    asked = [Prompt(prompt, tuple(texts)) for prompt, texts in questions]
    model: Any = open_causal(folder, folder, ModelOptions(device=device, dtype=dtype))
    model.context  # Loads the weights.  # noqa: B018
    first, found = timed(lambda: model.score(asked), device)
    again, _ = timed(lambda: model.score(asked), device)
    used, trees = model.environment(), trees_of(model, asked)
    body = transformer_flops(
        parameters, shape.layers, shape.width, sum(trees), sum(tree**2 for tree in trees)
    )
    words = sum(len(text.split()) for _, texts in questions for text in texts)
    flops = body + 2 * shape.width * rows * words  # A row of the head for each token of an option.
    details = {name: used.get(name) for name in ("forward", "batch_size", "batch_deviation")}
    run.line("giccs, with its checks", first, sum(trees), flops, **details)
    run.line("giccs, again", again, sum(trees), flops)
    model = None  # Its memory is free for the other program.
    release(device)
    if not options.peer:
        run.say(
            "lm-evaluation-harness: not measured, LM_EVAL_PYTHON names no environment that has it"
        )
        return
    ours = [option.logprob for choices in found.options for option in choices]
    for softmax in ("", "float32"):
        theirs = of_harness(options.peer, folder, questions, device, dtype, softmax)
        name = f"lm-evaluation-harness{', softmax in float32' if softmax else ''}"
        for label, seconds in zip(("", ", again"), theirs["seconds"], strict=True):
            run.line(name + label, seconds, sum(trees), flops, batch=theirs["batch"])
        far = max(abs(a - b) for a, b in zip(ours, theirs["scores"], strict=True))
        other = differing_choices(ours, theirs["scores"], questions)
        one, two = (theirs["seconds"][n] / (first, again)[n] for n in range(2))
        run.say(
            f"{name} over giccs: {one:.2f}, again {two:.2f}; log-likelihoods differ by {far:.1e} at most; "
            f"other choices in {other} of {len(questions)}"
        )


def differing_choices(ours: Sequence[float], theirs: Sequence[float], questions: Questions) -> int:
    """Return the number of questions for which two programs find other options most likely."""
    places: Iterator[int] = iter(range(len(ours)))
    groups = [[next(places) for _ in texts] for _, texts in questions]
    return sum(
        max(group, key=ours.__getitem__) != max(group, key=theirs.__getitem__) for group in groups
    )


def of_harness(
    python: str, folder: str, questions: Questions, device: str, dtype: str, softmax: str
) -> dict[str, Any]:
    """Run the harness in its own environment; return its seconds, scores and batch size."""
    with tempfile.TemporaryDirectory() as workdir:
        file, answer = Path(workdir, "questions.json"), Path(workdir, "answer.json")
        file.write_text(json.dumps(questions))
        arguments = [python, "-c", HARNESS, folder, str(file), device, dtype, softmax, str(answer)]
        environment = os.environ | {"HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        result: dict[str, Any] = json.loads(answer.read_text())
        return result


def encoders(run: Run, shape: Shape, size: Size, device: str, dtype: str) -> None:
    """Measure the vectors of sentences, by giccs and by `encode` of sentence-transformers.

    The latter has its default batch size, and the best one of `BATCHES`.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    from giccs.csts.data import read_csts
    from giccs.models import ModelOptions, open_model
    from giccs.progress import silent

    if not run.begins(f"encoder, {shape.name}, {size.texts} texts"):
        return
    rows = read_csts("csts-sample").instances
    draw = random.Random(0)
    texts = [
        f"{draw.choice(rows).sentence1} {draw.choice(rows).sentence2} {n}"
        for n in range(size.texts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        make_encoder(folder, shape)
        options = ModelOptions(device=device, dtype=dtype, pooling="mean")
        model: Any = open_model(f"encoder:{folder}", options)
        model.vectors(texts[:8], silent)
        first, _ = timed(lambda: model.vectors(texts, silent), device)
        again, _ = timed(lambda: model.vectors(texts, silent), device)
        bare = SentenceTransformer(folder, device=device).to(getattr(torch, dtype))
        lengths = [len(ids) for ids in bare.tokenizer(texts)["input_ids"]]
        parameters = layer_parameters(bare)
        seconds = {}
        for batch in BATCHES:
            bare.encode(texts[: 2 * batch], batch_size=batch)
            seconds[batch] = timed(partial(bare.encode, texts, batch_size=batch), device)[0]
    tokens, squares = sum(lengths), sum(length**2 for length in lengths)
    flops = transformer_flops(parameters, shape.layers, shape.width, tokens, squares)
    best = min(seconds, key=seconds.__getitem__)
    run.line("giccs", first, tokens, flops, batch_size=model.environment()["batch_size"])
    run.line("giccs, again", again, tokens, flops)
    run.line("sentence-transformers", seconds[BATCHES[0]], tokens, flops, batch_size=BATCHES[0])
    run.line("sentence-transformers, best", seconds[best], tokens, flops, batch_size=best)
    run.say(
        f"giccs over the best bare encode: {first / seconds[best]:.2f}, again {again / seconds[best]:.2f}"
    )


def ranking(run: Run, size: Size, device: str) -> None:
    """Measure the ranks of EvalRank on the device, twice, and on the host, and compare them."""
    import numpy as np

    from giccs.evalrank.ranking import compute_ranks

    texts, pairs, width = size.ranked
    if not run.begins(f"EvalRank, {pairs} pairs among {texts} texts of {width} numbers"):
        return
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((texts, width), dtype=np.float32)
    rows = draw.integers(texts, size=(pairs, 2))
    flops = 2 * len(np.unique(rows[:, 0])) * texts * width
    first, _ = timed(lambda: compute_ranks(vectors, rows, device=device), device)
    again, ranks = timed(lambda: compute_ranks(vectors, rows, device=device), device)
    host, expected = timed(lambda: compute_ranks(vectors, rows), device)
    for program, seconds in (("giccs", first), ("giccs, again", again), ("giccs, host", host)):
        run.line(program, seconds, texts, flops)
    run.say(f"different ranks: {np.count_nonzero(ranks.rank != expected.rank)}")


def training(run: Run, size: Size, device: str, precision: str) -> None:
    """Measure the steps of giccs csts train, and what it does outside them, in two precisions."""
    from giccs.csts.encoders.settings import Machine, Settings
    from giccs.csts.encoders.splits import read_splits
    from giccs.csts.encoders.training import cpu_has_bf16, fit

    shape = size.trained
    if not run.begins(f"training, {shape.name}"):
        return
    precisions = ["no", precision]
    if device == "cpu" and not cpu_has_bf16():
        precisions = ["no"]
        run.say(f"mixed precision {precision}: not measured, this CPU does not support it")
    seconds: dict[str, float] = {}
    machine = Machine("cpu" if device == "cpu" else "auto")
    with tempfile.TemporaryDirectory() as folder:
        make_encoder(folder, shape)
        splits = read_splits("csts-sample")
        for name in precisions:
            settings = Settings(
                folder,
                pooling="mean",
                epochs=3,
                train_rows=size.training_rows,
                mixed_precision=name,
            )
            steps = StepTimes(device)
            with tempfile.TemporaryDirectory() as workdir:
                total, fitted = timed(
                    partial(fit, settings, splits, Path(workdir), machine, steps),
                    device,
                )
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
            parameters = 12 * shape.width**2 * shape.layers
            passes = 3  # Forward, and twice as much backward.
            flops = passes * transformer_flops(
                parameters, shape.layers, shape.width, tokens, squares
            )
            label = "float32" if name == "no" else f"mixed precision {name}"
            run.line(
                f"giccs csts train, {label}", steps.seconds, tokens, flops,
                outside_the_steps=f"{max(0.0, total - steps.seconds):.2f} s",
            )  # fmt: skip
    if precision in seconds:
        run.say(f"float32 over {precision}: {seconds['no'] / seconds[precision]:.2f}")


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", choices=SIZES, default="card")
    parser.add_argument("--dtype", choices=("bfloat16", "float16", "float32"), default="bfloat16")
    parser.add_argument("--peer", default=os.environ.get("LM_EVAL_PYTHON"), metavar="PYTHON")
    parser.add_argument("--minutes", type=float, help="begin no measurement later")
    parser.add_argument("--output", type=Path, help="append each line as JSON")
    options = parser.parse_args(arguments)
    device, dtype, size = options.device, options.dtype, SIZES[options.size]
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit("no CUDA device; use --device cpu --size tiny to run the same code")
    peak = measured_peak(device, dtype, size.matrix)
    run = Run(peak, options.minutes, options.output)
    run.say(provenance(f"python -m benchmarks.gpu --device {device} --size {options.size}"))
    if device.startswith("cuda"):
        run.say(f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}")
    run.say(f"{dtype}, peak of matrix products {peak / 1e12:.2f} TFLOP/s")
    works = {
        "one length": equal_questions(size),
        "giccs-sample with and without history": sample_questions(size),
        "many lengths": long_questions(size),
    }
    vocabulary = vocabulary_of(size)
    for number, causal in enumerate(size.causal):
        with tempfile.TemporaryDirectory() as folder:
            parameters = make_causal(folder, causal, vocabulary, device, dtype)
            release(device)
            for work, questions in works.items():
                multiple_choice(
                    run, causal, folder, parameters, work, questions, options, len(vocabulary)
                )
        if number == 0:
            for encoder in size.encoders:
                encoders(run, encoder, size, device, dtype)
            ranking(run, size, device)
            training(run, size, device, "fp16" if dtype == "float16" else "bf16")


if __name__ == "__main__":
    main()
