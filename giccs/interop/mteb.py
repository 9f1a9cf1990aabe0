"""mteb: our pairs as a task of its own kind (STS), our results in its JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bws.command import json_ready
from bws.textio import write_atomic
from giccs.benchmark import Benchmark
from giccs.interop.names import in_a_path, task_name
from giccs.report.place import compares_pairs
from giccs.results import Result
from giccs.tasks.pairwise import PairwiseSTS

__all__ = ["export_task", "write_results"]

FORMAT = "2.26.24"
"""The version of mteb whose format the results follow."""
MODULE = '''\
"""Written by giccs-eval export-mteb. Run: mteb.evaluate(model, [task() for task in TASKS])."""

from pathlib import Path

from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

FOLDER = Path(__file__).parent
'''
TASK = """

class {kind}(AbsTaskSTS):
    min_score = 0
    max_score = 1
    metadata = TaskMetadata(
        name={name!r},
        description="Similarity of an utterance to the last turn of a dialogue, {history} its history.",
        dataset={{"path": str(FOLDER / {name!r}), "revision": {revision!r}}},
        type="STS",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=[{language!r}],
        main_score="cosine_spearman",
        domains=["Spoken"],
        license="not specified",  # mteb's list of licences does not have that of GiCCS, CC BY-NC-ND 3.0
        annotations_creators="human-annotated",
        sample_creation="created",
    )
"""


def export_task(
    benchmark: Benchmark,
    histories: Iterable[str],
    folder: str | os.PathLike[str],
    language: str = "deu-Latn",
) -> list[Path]:
    """Write a module with a task a history, and the pairs of each; return the paths.

    `language` is an ISO 639-3 code and a script, as mteb has them.
    """
    target, kinds, code = Path(folder), [], [MODULE]
    files: dict[Path, str] = {}
    for history in histories:
        name = task_name(benchmark.name, "pairwise", history)
        kinds.append("".join(part.capitalize() for part in name.split("_")))
        code.append(
            TASK.format(
                kind=kinds[-1], name=name, history=history, language=language,
                revision=benchmark.fingerprint[:12],
            )
        )  # fmt: skip
        files[target / name / "test.jsonl"] = "".join(_lines(benchmark, PairwiseSTS(history)))
    code.append(f"\n\nTASKS = [{', '.join(kinds)}]\n")
    files[target / f"{name.rpartition('_pairwise_')[0]}_pairwise.py"] = "".join(code)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    return list(files)


def _lines(benchmark: Benchmark, task: PairwiseSTS) -> Iterable[str]:
    for item in benchmark.items:
        left, right = task.sides(item)
        row = {"id": item.item_id, "sentence1": left, "sentence2": right, "score": item.score}
        yield f"{json.dumps(row, ensure_ascii=False)}\n"


def write_results(
    results: Iterable[Result], folder: str | os.PathLike[str], language: str = "deu-Latn"
) -> list[Path]:
    """Write a file a pairwise result, where mteb keeps its own below a cache folder; return the paths."""
    written = []
    for result in results:
        if not compares_pairs(result):
            continue
        name = task_name(str(result.environment["data"]), "pairwise", result.signature["history"])
        revision = str(result.signature.get("revision", "no_revision_available"))
        place = (result.model.replace("/", "__").replace(" ", "_"), revision.replace(":", "-"))
        path = Path(folder, "results", *map(in_a_path, (*place, f"{name}.json")))
        path.parent.mkdir(parents=True, exist_ok=True)
        document = json_ready(_document(result, name, language))
        write_atomic(path, f"{json.dumps(document, ensure_ascii=False, indent=2)}\n")
        written.append(path)
    return written


def _document(result: Result, name: str, language: str) -> dict[str, Any]:
    pearson, spearman = (result.metrics[metric].value for metric in ("pearson", "spearman"))
    cosine = result.signature.get("similarity") == "cosine"
    scores = {"pearson": pearson, "spearman": spearman, "main_score": spearman}
    if cosine:
        scores |= {"cosine_pearson": pearson, "cosine_spearman": spearman}
    return {
        "dataset_revision": str(result.signature["data"])[:12],
        "task_name": name,
        "mteb_version": FORMAT,
        "scores": {"test": [{**scores, "hf_subset": "default", "languages": [language]}]},
        "evaluation_time": result.seconds,
        "kg_co2_emissions": None,
    }
