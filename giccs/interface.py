"""Evaluation in Python: the functions behind ``giccs.evaluate``, ``giccs.compare`` and others.

The numbers are those of the commands giccs eval, giccs report and ``giccs compare``.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Unpack, cast, overload

from bws.base.frames import FrameLibrary, Source, Tabular, data_frame, is_path
from bws.base.problems import InputError, Problem, suggestion
from bws.base.tables import Column, ResultTable
from bws.files import as_judgments, as_tuples
from bws.records import Judgments, Tuples
from bws.stats.estimates import Estimate
from giccs.benchmark import Benchmark, read_benchmark
from giccs.evaluation.engines.local import EvaluationJob, distinct_jobs, run_locally
from giccs.evaluation.run import JobGroup, open_each_prompt, supported_jobs
from giccs.judging.judge import open_judge
from giccs.judging.study import open_study
from giccs.keywords import EvaluationKeywords, ModelKeywords
from giccs.measures.ceiling import load_judgments
from giccs.measures.ceiling import noise_ceiling as ceiling_of_judgments
from giccs.measures.clusters import DIALOGUES
from giccs.measures.results import Result, Store, data_of, model_of, setting_of
from giccs.models import ModelOptions, check_server_options
from giccs.progress import Progress, progress_bar, silent
from giccs.report import report
from giccs.report.clustering import over_clusters
from giccs.report.comparison_tables import comparison_rows, comparison_tables
from giccs.report.model_comparison import TARGET_DIFFERENCE, ModelComparison
from giccs.report.model_comparison import compare as compare_results
from giccs.report.rows import HEADER, long_rows
from giccs.tasks import DEFAULT_TASKS, TASKS, Data, Task, TaskOptions, task_names, task_option_names

FRAME_TASKS = (*DEFAULT_TASKS, "sentence-similarity", "word-similarity")
"""Tasks whose data may be a data frame or a list of dicts."""


class Results(Sequence[Result], Tabular):
    """Results of models on tasks, in order of computation; a sequence of `Result`.

    >>> results = evaluate(["baseline:char-ngram", "baseline:chance"], "giccs-sample", limit=10)
    >>> results[:1]
    model                task          setting    metric         value [95 %]          n
    -------------------  ------------  ---------  -------------  --------------------  ---
    baseline:char-ngram  pairwise-sts  without    pearson        0.352 [0.043, 0.600]  50
    baseline:char-ngram  pairwise-sts  without    spearman       0.359 [0.049, 0.606]  50
    baseline:char-ngram  pairwise-sts  without    rank_spearman  0.447 [0.155, 0.667]  10
    >>> results.to_frame("polars").filter(part="", metric="spearman")["model", "low", "high"].height
    2
    """

    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._results = tuple(results)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Results:
        """Read the results in a folder of giccs eval or `save`.

        Raises InputError for damaged results, and without any.
        """
        store = Store(folder)
        results = cls(store.with_predictions(result) for result in store.results())
        if not results:
            message = "contains no results; create them with evaluate or giccs eval -o"
            raise InputError(Problem(os.fspath(folder), None, message))
        return results

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the results to a folder, for giccs report, giccs explore and `load`."""
        store = Store(folder)
        for result in self:
            store.add(result)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    def __getitem__(self, index: int | slice) -> Result | Results:
        """Return a result, or the results of a slice."""
        if isinstance(index, slice):
            return Results(self._results[index])
        return self._results[index]

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self._results)

    def __add__(self, results: Iterable[Result]) -> Results:
        """Return these results and others."""
        return Results([*self, *results])

    def result_table(self) -> ResultTable:
        """Return the metrics over all items, one row each, without those of subsets."""
        rows = [
            (
                model_of(result),
                result.task,
                data_of(result),
                setting_of(result),
                name,
                e,
                e.n,
                e.reason,
            )
            for result in self
            for name, e in result.metrics.items()
        ]
        return ResultTable(
            [
                Column("model", "model"), Column("task", "task"), Column("data", is_detail=True),
                Column("setting", "setting"), Column("metric", "metric"),
                Column("value", "value [95 %]", ".3f"), Column("n", "n"),
                Column("reason", is_detail=True),
            ],
            rows,
        )  # fmt: skip

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Return a data frame with one row per number, also for subsets (``part``), as giccs report's CSV.

        library: ``pandas`` or ``polars``. The columns are model, task, data, history, part, metric, value,
        low, high, n, reason, stderr, p and setting.
        """
        rows = long_rows(self)
        return data_frame(
            {name: [row[n] for row in rows] for n, name in enumerate(HEADER)},
            library or self.frame_library,
        )

    def predictions(self, library: FrameLibrary = "pandas") -> Any:
        """Return a data frame with one row per model and item, with columns for model, task and setting."""
        import polars as pl

        tables = []
        for result in self:
            labels = {"model": model_of(result), "task": result.task, "setting": setting_of(result)}
            if result.predictions is not None:
                columns = [pl.lit(label).alias(name) for name, label in labels.items()]
                tables.append(result.predictions.select(*columns, pl.all()))
        table = pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()
        return data_frame(table.to_dict(as_series=False), library)

    def report(
        self,
        form: str = "table",
        ceiling: Mapping[str, Estimate] | None = None,
        *,
        cluster: str = DIALOGUES,
    ) -> str:
        """Return the tables of giccs report, including subsets.

        form: ``table``, ``markdown``, ``latex`` or ``csv``. ceiling: the return value of `noise_ceiling`.
        cluster: units of the intervals, of `giccs.measures.clusters.CLUSTERS`; ``domain`` generalises to
        other domains.
        """
        return report(over_clusters(list(self), cluster), form, ceiling)


class Comparison(ModelComparison):
    """Pairwise comparisons of models on the same items, with leaderboards."""

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """Return a data frame with one row per pair of models, and per effect of the history on a model.

        ``kind`` is ``pair`` or ``history``. ``value`` is the difference of the first and the second model, or
        with minus without history, with interval (``low``, ``high``) and ``p``; ``p_holm`` and ``p_bh`` are
        adjusted for all pairs of the metric with the same history on the same items, or for the models.
        """
        names = (
            "task", "data", "metric", "model", "history", "second_model", "second_history", "value",
            "low", "high", "n", "stderr", "p", "p_holm", "p_bh", "significant", "detectable", "reason",
            "kind",
        )  # fmt: skip
        rows = [row for row in comparison_rows(self) if row["kind"] in ("pair", "history")]
        return data_frame({name: [row[name] for row in rows] for name in names}, library)

    def report(self, form: str = "table") -> str:
        """Return the tables of ``giccs compare``; form: ``table``, ``markdown``, ``latex`` or ``csv``."""
        return comparison_tables(self, form)

    def __repr__(self) -> str:
        """Return the tables as text."""
        return self.report().rstrip("\n")


def evaluate(
    model: Any,
    data: Data | Source | None = None,
    task: str | Sequence[str] | None = None,
    *,
    name: str = "",
    folder: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    target: str = "score",
    progress: bool | None = None,
    **options: Unpack[EvaluationKeywords],
) -> Results:
    """Evaluate a model, or a list of models, on one or several tasks; return the results.

    model: a name as in giccs eval (a hub id, a folder, ``package:minilm``, ``baseline:chance``), a
    SentenceTransformer, CrossEncoder or MultiVectorEncoder, ``(model, tokenizer)`` of transformers or a
    pipeline with both, an object with a method ``encode(texts)``, or a function, by its required parameters:
    ``f(texts)`` returns (N, D) vectors of N texts, ``f(left, right)`` N similarities, and ``f(prompts,
    options)`` the log-likelihoods of the options of each prompt.
    data: a benchmark of `giccs.load_benchmark`, or what it reads; for sentence-similarity and word-similarity
    a file or data frame of two texts and a score; for other tasks the name of their data. By default, the
    sample of the task.
    task: one or several of `giccs.tasks.task_names`; by default pairwise-sts and multiple-choice-sts, as far
    as the model supports them.
    name: name of a model that is an object, in results.
    folder: results are stored there and existing ones are reused, as by giccs eval; those of a function only
    if it has an attribute ``revision``.
    limit: use only the first dialogues, sentence pairs or similar units.
    target: compare with the published ``score`` of a benchmark of dialogues, or its ``absolute_score``.
    progress: show progress bars; by default on a terminal and in notebooks.
    options: options of tasks and models (`giccs.tasks.TaskOptions`, `giccs.models.ModelOptions`), such as
    ``history="both"``, ``batch_size=64``, ``device="cuda"`` or ``seed=1``.

    Raises InputError for unavailable or unsuitable models and invalid data, TypeError for objects of other
    types and unknown options, and ValueError for invalid values.

    >>> results = evaluate(lambda left, right: [-len(text) for text in right], "giccs-sample", name="length")
    >>> spearman = results[0].metrics["spearman"]
    >>> -0.4 < spearman.low < spearman.value < spearman.high < 0.4
    True
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; expected at least 1")
    names = [task] if isinstance(task, str) else list(task or ())
    if task is not None and not names:
        raise ValueError("no tasks; expected one or more, or None for the default tasks")
    model_options, task_options = _split_options(names, options)
    groups = _models_with_tasks(model, name, names, model_options, task_options)
    tasks = {id(each): each for _, of_model in groups for each in of_model}
    data_of_task = {key: _data_for(each, data, limit, target) for key, each in tasks.items()}
    jobs = distinct_jobs(
        EvaluationJob(each.model, opened_task, data_of_task[id(opened_task)], each.options)
        for opened, of_model in groups
        for each in opened
        for opened_task in of_model
    )
    store = Store(folder) if folder is not None else None
    results = run_locally(jobs, store, progress=_progress(progress))
    return Results(
        store.with_predictions(result) if store and result.predictions is None else result
        for _, result in results
    )


def compare(
    *results: Results | Iterable[Result] | Result,
    detect: float = TARGET_DIFFERENCE,
    cluster: str = DIALOGUES,
) -> Comparison:
    """Compare all pairs of models with results of the same task and history on the same items.

    results: of `evaluate` or `Results.load`. detect: difference for planning the number of dialogues.
    cluster: as in `Results.report`.
    Pairwise STS is compared by Spearman's rho with a paired t-test over dialogues, multiple choice by
    accuracy with the exact McNemar test. The effects of the history on the models are a family of their own
    (``history_effects``). Raises ValueError with the reasons if no two results can be
    compared.

    >>> sample = read_benchmark("giccs-sample")
    >>> comparison = compare(*(evaluate(f"baseline:{name}", sample) for name in ("char-ngram", "chance")))
    >>> comparison.to_frame("polars")["metric", "model", "second_model", "significant"].rows()[0]
    ('spearman', 'baseline:char-ngram', 'baseline:chance', True)
    """
    all_results = [
        result for each in results for result in ([each] if isinstance(each, Result) else each)
    ]
    if wrong := [each for each in all_results if not isinstance(each, Result)]:
        raise TypeError(f"expected Results of giccs.evaluate, not {type(wrong[0]).__name__}")
    comparison = compare_results(over_clusters(all_results, cluster), target=detect)
    if not comparison.leaderboards and not comparison.history_effects:
        reasons = [str(skipped) for skipped in comparison.skipped] or ["There are no results."]
        raise ValueError("\n".join(dict.fromkeys(reasons)))
    return Comparison(comparison.leaderboards, comparison.skipped, comparison.history_effects)


def noise_ceiling(
    data: Benchmark | Source, judgments: Judgments | Source | None = None, *, seed: int = 0
) -> dict[str, Estimate]:
    """Return ``pearson`` and ``spearman`` of a model that predicts the true scores, with intervals.

    data: a benchmark of `giccs.load_benchmark`, or what it reads. judgments: those behind its scores, as for
    `bws.score`; only those of giccs-sample and giccs-sample-en are known. Definition and errors:
    `giccs.measures.ceiling`.

    >>> round(noise_ceiling("giccs-sample")["pearson"].value, 2)
    0.99
    """
    benchmark = data if isinstance(data, Benchmark) else read_benchmark(data)
    score_judgments = load_judgments(benchmark) if judgments is None else as_judgments(judgments)
    if score_judgments is None:
        raise ValueError(f"the judgments of {benchmark.name} are unknown; pass them as judgments")
    return ceiling_of_judgments(score_judgments, benchmark, seed=seed)


def judge(
    tuples: Tuples | Source,
    model: Any,
    data: str | os.PathLike[str],
    *,
    templates: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    language: str | None = None,
    orders: int | None = None,
    repeats: int = 1,
    limit: int | None = None,
    choose_by: str | None = None,
    answer: str = "letter",
    chat_template: bool = False,
    max_tokens: int = 1024,
    progress: bool | None = None,
    **options: Unpack[ModelKeywords],
) -> Judgments:
    """Let a language model judge tuples, as giccs judge; return its judgments.

    tuples: those of `bws.make_tuples`, or a file. model: as for `evaluate`; a language model.
    data: a file of dialogues with candidates, or a benchmark.
    templates: one or several prompts (``bws-de-1``, a file); by default that of the language of the data, or
    of `language` if the data state none.
    orders: number of cyclic orders of the items, by default all. repeats: calls per order, of a model on a
    server. limit: use only the first tuples.
    choose_by, answer, chat_template, max_tokens: see giccs judge.
    options: those of `giccs.models.ModelOptions`, such as ``device`` and ``seed``.

    Answers are not stored, except by models on a server. Invalid ones are listed in `Judgments.left_out`.
    Raises InputError for unsuitable models, for every item that is missing in the data, and if no answer is
    valid.

    >>> from importlib.resources import files
    >>> def longest(prompts, options):  # Finds long utterances similar, and short ones dissimilar.
    ...     signs = [-1 if "unähnlichsten?" in prompt else 1 for prompt in prompts]
    ...     texts = [[t for t in prompt.splitlines() if t[1:3] == ". "] for prompt in prompts]
    ...     return [[s * len(t) - 999 for t in some] for s, some in zip(signs, texts)]
    >>> judge(str(files("giccs.data") / "tuples.csv"), longest, "giccs-sample", limit=2)
    <Judgments: 6 of 2 tuples by 1 annotators>
    """
    names = [templates] if isinstance(templates, (str, os.PathLike)) else list(templates)
    model_options = ModelOptions(**options)
    judging = open_judge(
        model,
        model_options,
        repeats=repeats,
        choose_by=choose_by,
        answer=answer,
        chat_template=chat_template,
        max_tokens=max_tokens,
    )
    study, _ = open_study(
        as_tuples(tuples),
        data,
        judging,
        templates=names,
        language=language,
        orders=orders,
        seed=model_options.seed,
        limit=limit,
    )
    return study.run(progress=_progress(progress)).judgments()


def _split_options(
    tasks: Sequence[str], options: Mapping[str, Any]
) -> tuple[ModelOptions, TaskOptions]:
    """Return the options of models and tasks; raise an error for those that apply to neither."""
    of_models = {field.name for field in fields(ModelOptions)}
    of_tasks = {field.name for field in fields(TaskOptions)}
    for option in options:
        if option not in of_models | of_tasks:
            guess = suggestion(option, sorted(of_models | of_tasks))
            raise TypeError(f"evaluate() got an unexpected option {option!r}{guess}")
    if unknown := [task for task in tasks if task not in task_names()]:
        guess = suggestion(unknown[0], task_names())
        raise ValueError(
            f"there is no task {unknown[0]!r}{guess}; expected {', '.join(task_names())}"
        )
    accepted = {name for task in tasks or DEFAULT_TASKS for name in task_option_names(task)}
    if unused := (options.keys() & of_tasks) - accepted - {"seed"}:
        message = (
            f"{', '.join(sorted(unused))}: not an option of {', '.join(tasks or DEFAULT_TASKS)}"
        )
        raise ValueError(message)
    return (
        ModelOptions(**{name: options[name] for name in options.keys() & of_models}),
        TaskOptions(**{name: options[name] for name in options.keys() & of_tasks}),
    )


def _models_with_tasks(
    model: Any, name: str, tasks: Sequence[str], options: ModelOptions, task_options: TaskOptions
) -> list[JobGroup]:
    """Return the models, once per prompt, with their tasks.

    Raises InputError for every name that cannot be opened, and for unsupported tasks and options.
    """
    models = model if isinstance(model, list) else [model]
    if not models:
        raise ValueError("no models; expected one or more")
    paths = [os.fspath(value) for value in models if is_path(value)]
    if name and (len(models) != 1 or paths):
        raise ValueError("name is for a single model that is an object")
    opened = open_each_prompt(models, options, name=name, note=_note)
    check_server_options([each.model for each in opened], options)
    return supported_jobs(opened, tasks, task_options, note=_note)


def _note(message: str) -> None:
    warnings.warn(message, stacklevel=5)  # The caller of `evaluate`.


def _data_for(task: Task, data: Data | Source | None, limit: int | None, target: str) -> Data:
    """Return the data of a task, read if they are a name, or a frame for tasks on a benchmark."""
    if data is None and not task.default_data:
        raise ValueError(f"{task.name} has no default data; expected data")
    is_read = hasattr(data, "fingerprint")
    tasks_of_type = DEFAULT_TASKS if isinstance(data, Benchmark) else FRAME_TASKS
    is_known_type = data is None or is_path(data) or (is_read and not isinstance(data, Benchmark))
    if task.name in TASKS and not is_known_type and task.name not in tasks_of_type:
        message = f"{task.name} reads its data from a file or folder; expected its path"
        raise TypeError(f"{message}, not {type(data).__name__}")
    opened: Any = data if is_read else task.read(task.default_data if data is None else data)
    opened = opened if limit is None else opened.first(limit)
    if isinstance(opened, Benchmark):
        opened = opened.with_target(target)
    elif target != "score":
        raise ValueError(f"{task.name}: target requires a benchmark of dialogues")
    return cast(Data, opened)


def _progress(is_shown: bool | None) -> Progress:
    if is_shown is None:
        is_shown = sys.stderr.isatty() or "ipykernel" in sys.modules
    return progress_bar if is_shown else silent
