"""mteb: pairs as an STS task, and results in its JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bws.base.commands import json_ready
from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from giccs.benchmark import SAMPLE_TERMS, Benchmark, known_terms
from giccs.benchmark.languages import matches, required_language
from giccs.evaluation.interop.metadata import (
    PAPER_LINK,
    Provenance,
    mteb_language,
    path_component,
    read_provenance,
    task_name,
)
from giccs.measures.results import Result, history_of, model_of
from giccs.tasks.pairwise import PairwiseSTS

MTEB_VERSION = "2.26.24"
"""Version of mteb whose format the results have."""
LICENSES = {
    "mit", "apache-2.0", "cc0-1.0", "odc-by", "openrail", "openrail++", "afl-3.0", "gpl-3.0", "lgpl",
    "lgpl-3.0", "bsd-3-clause", "mpl-2.0", "eupl-1.2", "cdla-sharing-1.0", "msr-la-nc", "gemma",
    "openmdw-1.1", "cc-by-2.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-3.0",
    "cc-by-nc-4.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "cc-by-nd-4.0",
    "cc-by-nd-2.1-jp",
}  # fmt: skip
"""Licences that mteb identifies by name; others are given as addresses."""
UNKNOWN_LICENSE = "not specified"
SAMPLE_DATES = ("2026-11-21", "2026-11-26")
"""Dates between which the dialogues of the samples were written."""
ANNOTATORS = {"human": "human-annotated", "simulated": "derived", "unknown": None}
"""Simulated judgments are derived from the levels intended by writers, or from other scores."""
DOMAINS = {
    "spoken": "Spoken", "written": "Written",  # Of giccs-sample.
    "BAS SmartKom": "Spoken", "CROWDSS": "Written",  # Of the GiCCS release (paper, 3.1).
}  # fmt: skip
"""Source of a dialogue -> mteb's domain; other sources have none."""
MODULE_HEADER = '''\
"""Written by giccs eval export-mteb. Run: mteb.evaluate(model, [task() for task in TASKS])."""

{terms}
from pathlib import Path

from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

FOLDER = Path(__file__).parent
'''
TASK_CLASS = """

class {kind}(AbsTaskSTS):
    min_score = 0
    max_score = 1
    metadata = TaskMetadata(
        name={name!r},
        description={description!r},
        dataset={{"path": str(FOLDER / {name!r}), "revision": {revision!r}}},
        type="STS",
        category="t2t",
        modalities=["text"],
        reference={reference!r},
        date={date!r},
        eval_splits=["test"],
        eval_langs=[{language!r}],
        main_score="cosine_spearman",
        domains={domains!r},
        task_subtypes=[],
        dialect=[],
        license={license!r},
        annotations_creators={annotators!r},
        sample_creation={creation!r},
        bibtex_citation={citation!r},
    )
"""


def export_task(
    benchmark: Benchmark,
    histories: Iterable[str],
    folder: str | os.PathLike[str],
    provenance: Provenance | None = None,
) -> list[Path]:
    """Write a module with one task per history, the pairs of each, and the licence; return the paths.

    provenance: stated information on the texts; None for that of the benchmark. Raises InputError if the
    language or mteb's code for it is unknown.
    """
    provenance = provenance or read_provenance(benchmark)
    metadata = _metadata(benchmark, provenance)
    output, class_names, code = Path(folder), [], [MODULE_HEADER.format(terms=provenance.comment())]
    files: dict[Path, str] = {output / provenance.file: provenance.notice()}
    for history in histories:
        name = task_name(benchmark.name, "pairwise", history)
        class_names.append("".join(part.capitalize() for part in name.split("_")))
        description = _description(provenance, history)
        code.append(
            TASK_CLASS.format(kind=class_names[-1], name=name, description=description, **metadata)
        )
        files[output / name / "test.jsonl"] = "".join(_jsonl_lines(benchmark, PairwiseSTS(history)))
    code.append(f"\n\nTASKS = [{', '.join(class_names)}]\n")
    files[output / f"{name.rpartition('_pairwise_')[0]}_pairwise.py"] = "".join(code)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    return list(files)


def _metadata(benchmark: Benchmark, provenance: Provenance) -> dict[str, Any]:
    """Return the fields of mteb's metadata that describe the data; None for unknown ones."""
    language = required_language(
        benchmark.items, benchmark.name, provenance.language, "mteb's metadata"
    )
    terms = provenance.terms
    is_sample = known_terms(benchmark) == SAMPLE_TERMS
    return {
        "language": _language_code(language, benchmark.name),
        "revision": benchmark.fingerprint[:12],
        "domains": sorted(
            {DOMAINS[item.source] for item in benchmark.items if item.source in DOMAINS}
        )
        or None,
        "license": terms.license
        if terms.license in LICENSES
        else terms.license_link or UNKNOWN_LICENSE,
        "annotators": ANNOTATORS[terms.annotators],
        "creation": "created" if is_sample else None,
        "date": SAMPLE_DATES if is_sample else None,
        "reference": provenance.card.text("homepage") or PAPER_LINK,
        "citation": provenance.citation,
    }


def _language_code(tag: str, data: str) -> str:
    try:
        return mteb_language(tag)
    except ValueError as error:
        raise InputError(Problem(data, None, str(error))) from None


def _description(provenance: Provenance, history: str) -> str:
    pairs = f"Similarity of an utterance to the last turn of a dialogue, {history} its history."
    simulated = "Simulated annotations: " if provenance.terms.annotators == "simulated" else ""
    warning = f" Note: {provenance.terms.warning()}." if provenance.terms.no_derivatives else ""
    return f"{simulated}{pairs}{warning}"


def _jsonl_lines(benchmark: Benchmark, task: PairwiseSTS) -> Iterable[str]:
    for item in benchmark.items:
        left, right = task.pair_texts(item)
        row = {"id": item.item_id, "sentence1": left, "sentence2": right, "score": item.score}
        yield f"{json.dumps(row, ensure_ascii=False)}\n"


def write_results(
    results: Iterable[Result], folder: str | os.PathLike[str], language: str | None = None
) -> list[Path]:
    """Write one file per pairwise result in the structure of mteb's cache folder; return the paths.

    language: BCP 47 tag for results without a stated language. Raises InputError, before writing, with every
    result whose language is unknown or different.
    """
    paths = []
    pairs = [result for result in results if result.task == "pairwise-sts"]
    for result, code in zip(pairs, _language_codes(pairs, language), strict=True):
        history = history_of(result).replace(" (", "_").rstrip(")")
        name = task_name(str(result.environment["data"]), "pairwise", history)
        revision = str(result.signature.get("revision", "no_revision_available"))
        folders = (
            model_of(result).replace("/", "__").replace(" ", "_"),
            revision.replace(":", "-"),
        )
        path = Path(folder, "results", *map(path_component, (*folders, f"{name}.json")))
        path.parent.mkdir(parents=True, exist_ok=True)
        document = json_ready(_result_document(result, name, code))
        write_atomic(path, f"{json.dumps(document, ensure_ascii=False, indent=2)}\n")
        paths.append(path)
    return paths


def _language_codes(results: Sequence[Result], option: str | None) -> list[str]:
    """Return the language of each result's data in the notation of mteb."""
    codes = []
    problems = []
    for result in results:
        data, stated_language = str(result.environment["data"]), result.environment.get("language")
        tag = stated_language or option
        languages: Any = result.signature.get("languages")
        if languages:
            message = f"the data are in several languages ({', '.join(languages)}); expected one"
            problems.append(Problem(data, None, message))
        elif tag is None:
            message = "its results do not state the language of the data; expected --language"
            problems.append(Problem(data, None, message))
        elif option and stated_language and not matches(option, stated_language):
            message = (
                f"the language of the data is {stated_language}, but --language is {option}; expected the "
                "same"
            )
            problems.append(Problem(data, None, message))
        else:
            try:
                codes.append(mteb_language(tag))
            except ValueError as error:
                problems.append(Problem(data, None, str(error)))
    if problems:
        raise InputError(dict.fromkeys(problems))
    return codes


def _result_document(result: Result, name: str, language: str) -> dict[str, Any]:
    pearson, spearman = (result.metrics[metric].value for metric in ("pearson", "spearman"))
    is_cosine = result.signature.get("similarity") == "cosine"
    scores = {"pearson": pearson, "spearman": spearman, "main_score": spearman}
    if is_cosine:
        scores |= {"cosine_pearson": pearson, "cosine_spearman": spearman}
    return {
        "dataset_revision": str(result.signature["data"])[:12],
        "task_name": name,
        "mteb_version": MTEB_VERSION,
        "scores": {"test": [{**scores, "hf_subset": "default", "languages": [language]}]},
        "evaluation_time": result.seconds,
        "kg_co2_emissions": None,
    }
