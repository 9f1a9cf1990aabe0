"""lm-evaluation-harness: multiple-choice questions as its task, and results in its JSON.

The prompts are exported as text, so that the harness scores exactly the same text. Its ``acc`` is `accuracy`
here, and its ``acc_bytes`` is `accuracy_bytes`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bws.base.commands import json_ready
from bws.base.text import write_atomic
from bws.stats.estimates import Estimate
from giccs.benchmark import Benchmark
from giccs.evaluation.interop.metadata import (
    PAPER_LINK,
    PAPER_TITLE,
    Provenance,
    path_component,
    read_provenance,
    task_name,
)
from giccs.measures.results import Result, digest
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.questions import Question, QuestionRenderer

METRIC_NAMES = {
    "accuracy": "acc",
    "accuracy_bytes": "acc_bytes",
    "accuracy_tokens": "acc_per_token",
    "accuracy_pmi": "acc_pmi",
    "rank_spearman": "rank_spearman",
}
"""Metric -> name in the harness; metrics without a counterpart (per token, PMI, ranks) get a similar name."""
TASK_YAML = """\
# Written by giccs eval export-lm-eval. Run: lm_eval --include_path FOLDER --tasks {name} ...
{terms}\
task: {name}
tag: {loader}
custom_dataset: !function {loader}.{history}_history
test_split: test
output_type: multiple_choice
doc_to_text: prompt
doc_to_choice: choices
doc_to_target: gold
target_delimiter: {delimiter}
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_bytes
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
  license: {license}
  annotators: {annotators}
  language: {language}
"""
README = """\
# {loader}

### Paper

Title: {title}

Abstract: {paper}

Which of the candidate utterances of a dialogue is most similar to its last turn? The task is that of the
paper. The questions are made from the {n_dialogues} dialogues of {data} (fingerprint {fingerprint},
language: {language}, annotators: {annotators}).{description}

Homepage: {homepage}

### Citation

```bibtex
{citation}```

### Licence

{terms}

`{licence_file}` is part of every copy of this folder.

### Groups, Tags, and Tasks

#### Groups

None.

#### Tags

* `{loader}`: all tasks in this folder

#### Tasks

{tasks}

The prompts are those of the template {template} of giccs, with the options in an order drawn with seed
{seed}. `acc` and `acc_bytes` are `accuracy` and `accuracy_bytes` of giccs eval.

### Checklist

For adding novel benchmarks/datasets to the library:
* [x] Is the task an existing benchmark in the literature? The task is; the data are named above.
  * [x] Have you referenced the original paper that introduced the task?
  * [x] If yes, does the original paper provide a reference implementation? If so, have you checked against
    the reference implementation and documented how to run such a test? The paper provides none. The tests of
    giccs, which exported these tasks, compare its log-likelihoods and accuracies with those of the harness.
    This command evaluates a model on the same questions:

        giccs eval causal:MODEL --task multiple-choice-sts --data {data} \\
            --template {template} --answer {answer} --seed {seed}

If other tasks on this dataset are already supported:
* [x] Is the "Main" variant of this task clearly denoted? It is `{main}`.
* [x] Have you provided a short sentence in a README on what each new variant adds / evaluates?
* [x] Have you noted which, if any, published evaluation setups are matched by this variant? With the
  published GiCCS data, that of the paper's section 5.1.2.

### Changelog

* 1.0: first version
"""
TASK_DESCRIPTIONS = {
    "with": "the prompt contains the turns before the last one",
    "without": "the prompt contains the last turn only",
}
LOADER_MODULE = '''\
"""Written by giccs eval export-lm-eval: gives lm-evaluation-harness the questions in this folder."""

from pathlib import Path

import datasets


def load(name):
    path = Path(__file__).parent / f"{name}.jsonl"
    return datasets.load_dataset("json", data_files={"test": str(path)})


def with_history(**_):
    return load("WITH")


def without_history(**_):
    return load("WITHOUT")
'''


def export_task(
    benchmark: Benchmark,
    task: MultipleChoice,
    folder: str | os.PathLike[str],
    provenance: Provenance | None = None,
) -> list[Path]:
    """Write a folder as in lm_eval/tasks: README, licence, loader, and a YAML and a JSONL file per history.

    The folder is in `folder` and named after the benchmark. provenance: stated information on the texts; None
    for that of the benchmark. The harness uses one order of the options and applies chat templates itself, so
    `permutations` and `chat_template` have no effect. Returns the paths.
    """
    provenance = provenance or read_provenance(benchmark)
    questions = task.questions_for(benchmark)[0]
    renderer = QuestionRenderer(task.template_for(benchmark), task.answer_kind("likelihood"))
    names = {
        history: task_name(benchmark.name, "multiple_choice", history)
        for history in ("with", "without")
    }
    loader = names["with"].removesuffix("_with_history")
    code = LOADER_MODULE.replace("WITHOUT", names["without"]).replace("WITH", names["with"])
    files = {
        "README.md": _readme(task, benchmark, provenance, loader, names),
        f"{loader}.py": code,
        provenance.file: provenance.notice(),
    }
    for history in task.histories:
        name = names[history]
        delimiter = json.dumps(_delimiter(renderer, questions[0]))
        files[f"{name}.yaml"] = TASK_YAML.format(
            name=name,
            loader=loader,
            history=history,
            delimiter=delimiter,
            **_metadata_fields(provenance),
        )
        lines = (
            json.dumps(_row(renderer, question, history), ensure_ascii=False)
            for question in questions
        )
        files[f"{name}.jsonl"] = "".join(f"{line}\n" for line in lines)
    target = Path(folder) / loader
    target.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_atomic(target / file, content)
    return [target / file for file in files]


def _readme(
    task: MultipleChoice,
    benchmark: Benchmark,
    provenance: Provenance,
    loader: str,
    names: Mapping[str, str],
) -> str:
    """Return the README in the form of the harness's template, templates/new_yaml_task/README.md.

    names: history -> name of its task.
    """
    description = provenance.card.text("description")
    return README.format(
        loader=loader,
        title=PAPER_TITLE,
        paper=PAPER_LINK,
        n_dialogues=len(benchmark.dialogue_ids),
        data=provenance.data,
        fingerprint=provenance.fingerprint[:12],
        language=provenance.language or "unknown",
        annotators=provenance.terms.annotators,
        description=f"\n\n{description}" if description else "",
        homepage=provenance.card.text("homepage") or "not stated",
        citation=provenance.citation,
        terms="\n".join(f"* {line}" for line in provenance.terms.lines()),
        licence_file=provenance.file,
        tasks="\n".join(f"* `{names[key]}`: {TASK_DESCRIPTIONS[key]}" for key in task.histories),
        template=task.template_for(benchmark).name,
        answer=task.answer_kind("likelihood"),
        seed=task.seed,
        main=names[task.histories[0]],
    )


def _metadata_fields(provenance: Provenance) -> dict[str, str]:
    """Return the terms as a comment, and the metadata as JSON, which is valid YAML."""
    document = {key: json.dumps(value) for key, value in provenance.document().items()}
    names = ("license", "annotators", "language")
    return {"terms": provenance.comment(), **{name: document[name] for name in names}}


def _row(renderer: QuestionRenderer, question: Question, history: str) -> dict[str, Any]:
    rendered = renderer.render(question, 0, history)
    return {
        "dialogue_id": question.dialogue_id,
        "utterance_ids": [option.utterance_id for option in question.options],
        "prompt": rendered.prompt,
        "choices": [answer.lstrip() for answer in rendered.answers],
        "gold": [index for index, is_gold in enumerate(question.gold) if is_gold],
    }


def _delimiter(renderer: QuestionRenderer, question: Question) -> str:
    """Return the white space between a prompt and its answer in the template."""
    answer = renderer.render(question, 0, "without").answers[0]
    return answer[: len(answer) - len(answer.lstrip())]


def write_results(results: Iterable[Result], folder: str | os.PathLike[str]) -> list[Path]:
    """Write one file per multiple-choice result in the folder structure of the harness; return the paths."""
    paths = []
    for relative_path, document in _result_documents(results):
        path = Path(folder) / relative_path
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, f"{json.dumps(json_ready(document), ensure_ascii=False, indent=2)}\n")
        paths.append(path)
    return paths


def _result_documents(results: Iterable[Result]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path, document) for every multiple-choice result."""
    for result in results:
        if result.task == "multiple-choice-sts":
            folder, file = _sanitized_name(result.model), f"results_{_timestamp(result)}.json"
            yield f"{path_component(folder)}/{path_component(file)}", _result_document(result)


def _timestamp(result: Result) -> str:
    """Return the time in the format of the harness, with microseconds derived from the signature.

    Results of the same second with different options thus have different files.
    """
    second = str(result.environment["when"]).partition("+")[0].replace(":", "-")
    return f"{second}.{int(digest(result.signature), 16) % 10**6:06}"


def _result_document(result: Result) -> dict[str, Any]:
    data = str(result.environment["data"])
    tasks = {
        task_name(data, "multiple_choice", group.by["history"]): group.metrics
        for group in result.groups
        if set(group.by) == {"history"}
    }
    return {
        "results": {name: _metric_values(name, metrics) for name, metrics in tasks.items()},
        "group_subtasks": {name: [] for name in tasks},
        "configs": {name: {"task": name, "metadata": dict(result.signature)} for name in tasks},
        "versions": dict.fromkeys(tasks, 1.0),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {
            name: {METRIC_NAMES[metric]: True for metric in metrics if metric in METRIC_NAMES}
            for name, metrics in tasks.items()
        },
        "n-samples": {
            name: {"original": metrics["accuracy"].n, "effective": metrics["accuracy"].n}
            for name, metrics in tasks.items()
        },
        "config": {"model": "giccs", "model_args": {"pretrained": result.model}, "limit": None},
        "model_source": "giccs",
        "model_name": result.model,
        "model_name_sanitized": _sanitized_name(result.model),
        "total_evaluation_time_seconds": str(result.seconds),
    }


def _metric_values(name: str, metrics: Mapping[str, Estimate]) -> dict[str, Any]:
    numbers: dict[str, Any] = {"alias": name}
    for ours, theirs in METRIC_NAMES.items():
        if ours in metrics:
            numbers[f"{theirs},none"] = metrics[ours].value
            numbers[f"{theirs}_stderr,none"] = metrics[ours].extra["stderr"]
    return numbers


def _sanitized_name(model: str) -> str:
    """Return a model's name as the harness converts it to a folder name."""
    return re.sub(r"[\"<>:/|\\?*\[\]]+", "__", model)
