"""Results: metrics, the signature of everything that determines them, and the results folder."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from bws.base.commands import json_ready
from bws.base.problems import InputError, Problem
from bws.base.text import read_text, write_atomic
from bws.stats.estimates import Estimate
from giccs.benchmark.items import ABSOLUTE_SUFFIX
from giccs.benchmark.parquet import read_table

if TYPE_CHECKING:
    import polars

log = logging.getLogger(__name__)

DIGESTED_KEYS = ("model", "task", "metrics", "groups", "signature")
"""Keys included in the digest of a result."""
DOCUMENT_TYPES: Mapping[str, Any] = {
    "model": str, "task": str, "metrics": Mapping, "groups": list, "signature": Mapping,
    "environment": Mapping, "seconds": (int, float),
}  # fmt: skip
"""Key of a result's JSON file -> type of its value."""
Limits = Mapping[str, Mapping[str, Estimate]]
"""Name of a row that limits the numbers of models -> its numbers (`giccs.measures.absolute_ceiling`)."""
INPUTS_KEY = "inputs_sha256"
"""Key of the environment: digest of the data without scores, of tasks whose predictions depend on nothing
else."""
K = TypeVar("K")
PREDICTIONS_DIGEST_KEY = "predictions_sha256"
"""Key of the Parquet file's digest in the JSON file."""

MISSING_PREDICTIONS = "its predictions are missing"
"""Template of a note on a result."""
DEFAULT_POOLINGS = ("", "the model's own", "mean", "first and last layer")
"""Poolings that are not part of a model's name in tables: those without ``--pooling``."""


class Signature(TypedDict, total=False):
    """Everything that determines the numbers of a result; equal signatures imply equal numbers.

    Built by `giccs.evaluation.task_results.signature_of` from common values, the identity of the model
    (`revision`, `dtype` and others) and parameters of the task.
    """

    task: str
    model: str
    data: str
    """Fingerprint of the data, independent of the file format."""
    giccs: str
    """Version of this package."""
    revision: str
    """Revision of the model: a commit, or a digest of its files."""
    quantised: str
    pooling: str
    """Pooling of token vectors."""
    prompt: Mapping[str, str]
    """Prompt of an encoder: its name, and the texts before targets and candidates."""
    dimensions: int
    """Number of dimensions of truncated vectors."""
    embeddings: str
    """Precision of quantised vectors."""
    similarity: str
    """Similarity function for vectors."""
    history: str
    """``with``, ``without`` or ``both``, for tasks on dialogues."""
    history_encoding: str
    """How the history is added to the texts of encoders, if other than joined turns."""
    setting: str
    """Short description of the task options, for other tasks."""
    asked: Mapping[str, Any]
    """Options of the task, with their names in recipes."""
    settings: Mapping[str, Any]
    """Settings of a training, with their names in recipes."""
    template: Any
    answer: str
    choice: str
    """Method of choice of generated answers: ``logprobs`` or ``generation``; absent for likelihoods."""
    permutations: int
    chat_template: bool
    interval: Any
    """Method, resamples and seed of the intervals."""
    bootstrap: Mapping[str, Any]
    """The equivalent in results of earlier versions."""
    hidden_labels: bool


@dataclass(frozen=True)
class Group:
    """Metrics of a group of items."""

    by: Mapping[str, Any]
    """Attributes shared by the items: ``{"n_turns": 3}``."""
    metrics: Mapping[str, Estimate]


@dataclass(frozen=True)
class TaskOutput:
    """Output of a task for one model, from which a `Result` is built."""

    metrics: Mapping[str, Estimate]
    groups: tuple[Group, ...] = ()
    predictions: polars.DataFrame | None = None
    """One row per item."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Additions of the task to the environment of the result."""


@dataclass(frozen=True)
class Result:
    """The result of one model on one task."""

    model: str
    task: str
    metrics: Mapping[str, Estimate]
    groups: tuple[Group, ...]
    signature: Signature
    """Everything that determines the numbers; equal signatures imply equal numbers."""
    environment: Mapping[str, Any]
    """System and versions of the run; affects results only by rounding."""
    seconds: float
    predictions: polars.DataFrame | None = field(default=None, compare=False)
    """One row per item. None in results from `Store.results`; see `Store.predictions`."""
    predictions_sha256: str = field(default="", compare=False)
    """Digest of the file of predictions in stored results; empty if there is no such file."""

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict, with a digest that `from_document` verifies."""
        content = {
            "model": self.model,
            "task": self.task,
            "metrics": _documents(self.metrics),
            "groups": [{"by": dict(g.by), "metrics": _documents(g.metrics)} for g in self.groups],
            "signature": dict(self.signature),
        }
        provenance = {"environment": dict(self.environment), "seconds": self.seconds}
        return content | provenance | {"sha256": digest(content)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Result:
        """Build a result from the return value of `document`.

        Raises KeyError, TypeError or AttributeError for other input, and ValueError for a wrong digest.
        """
        for key, kind in DOCUMENT_TYPES.items():
            if not isinstance(document[key], kind):
                raise TypeError(f"{key}: expected {kind}")
        stored_digest = document.get("sha256")
        if stored_digest is not None and stored_digest != digest(
            {key: document[key] for key in DIGESTED_KEYS}
        ):
            raise ValueError("the digest does not match the content")
        return cls(
            document["model"],
            document["task"],
            read_estimates(document["metrics"]),
            tuple(
                Group({**group["by"]}, read_estimates(group["metrics"]))
                for group in document["groups"]
            ),
            document["signature"],
            document["environment"],
            document["seconds"],
            predictions_sha256=document.get(PREDICTIONS_DIGEST_KEY) or "",
        )


def digest(signature: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a signature, independent of the order of its keys."""
    text = json.dumps(json_ready(signature), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def comparison_key(result: Result) -> tuple[str, str]:
    """Return the key that results in the same table share: the task, and the fingerprint of the data.

    If the data are in several languages, the items of a table have the same languages.
    """
    languages: Any = result.signature.get("languages_sha256", "")
    return result.task, str(result.signature.get("data", "")) + languages


def model_of(result: Result) -> str:
    """Return the name of the model with its settings other than the defaults, such as ``m, 4 bits``."""
    prompt = prompt_name_of(result)
    return f"{variant_of(result)}, prompt {prompt}" if prompt else variant_of(result)


LABELLED_SIMILARITIES = ("dot", "l2", "euclidean", "manhattan")
"""Similarities of vectors other than the cosine, in signatures."""


def variant_of(result: Result) -> str:
    """Return the name of the model with its settings, but without its prompt."""
    signature = result.signature
    labels = [result.model, str(signature.get("quantised", "")).rpartition(", ")[2]]
    if (pooling := signature.get("pooling", "")) not in DEFAULT_POOLINGS:
        labels.append(f"{pooling.partition(',')[0]} pooling")
    if "dimensions" in signature:
        labels.append(f"{signature['dimensions']} dimensions")
    labels.append(str(signature.get("embeddings", "")).partition(",")[0])
    if "setting" not in signature and signature.get("similarity") in LABELLED_SIMILARITIES:
        labels.append(signature["similarity"])
    return ", ".join(filter(None, labels))


def prompt_name_of(result: Result) -> str:
    """Return the name of the prompt of an encoder; empty for models without one."""
    return str(result.signature.get("prompt", {}).get("name", ""))


def data_of(result: Result) -> str:
    """Return the name of the data."""
    return str(result.environment.get("data", "unknown data"))


def is_on_absolute_scores(result: Result) -> bool:
    """Return whether predictions were compared with the absolute scores of a benchmark."""
    return data_of(result).endswith(ABSOLUTE_SUFFIX)


def published_data_of(result: Result) -> str:
    """Return the name of the data, or of that with the published instead of the absolute scores."""
    return data_of(result).removesuffix(ABSOLUTE_SUFFIX)


def history_of(result: Result) -> str:
    """Return the history condition, with its encoding if it is not the default: ``with (speakers)``."""
    history = str(result.signature.get("history", ""))
    encoding = result.signature.get("history_encoding")
    return f"{history} ({encoding})" if encoding else history


def condition_of(history: str) -> str:
    """Return the history condition without its encoding: ``with`` of ``with (speakers)``."""
    return history.partition(" ")[0]


def setting_of(result: Result) -> str:
    """Return a short description of the task options, or the history for tasks on dialogues."""
    return str(result.signature.get("setting", "")) or history_of(result)


def postprocess_warnings(result: Result) -> list[str]:
    """Return warnings about postprocessing steps that could only be fitted partly: ``STEP: reason``."""
    steps = result.environment.get("postprocess", [])
    return [f"{step['step']}: {step['warning']}" for step in steps if step.get("warning")]


def newest_by(results: Iterable[Result], key: Callable[[Result], K]) -> dict[K, Result]:
    """Return the newest result of each key."""
    by_time = sorted(results, key=lambda result: str(result.environment.get("when", "")))
    return {key(result): result for result in by_time}


def prompt_of(result: Result) -> str:
    """Return the prompt settings of multiple choice: the template, and options other than the defaults.

    Empty for other tasks.
    """
    signature = result.signature
    if "permutations" not in signature:
        return ""
    labels = [str(signature["template"]["name"])]
    labels += ["letter"] if signature["answer"] == "letter" else []
    labels += [str(signature["choice"])] if "choice" in signature else []
    labels += ["chat"] if signature["chat_template"] else []
    labels += [f"{signature['permutations']} orders"] if signature["permutations"] > 1 else []
    return ", ".join(labels)


def ceiling_of(result: Result, ceiling: Mapping[str, Estimate] | None) -> Mapping[str, Estimate]:
    """Return the noise ceiling if it is for the result's data (``data`` in its extra), or an empty
    mapping."""
    data = result.signature.get("data")
    return {
        name: estimate
        for name, estimate in (ceiling or {}).items()
        if estimate.extra.get("data", data) == data
    }


def limits_of(result: Result, limits: Limits) -> Limits:
    """Return the limits for the result's data."""
    return {name: ceiling_of(result, estimates) for name, estimates in limits.items()}


class Store:
    """A folder of results: for each a JSON file and a Parquet file with one row per item.

    The JSON file is written last and marks the result as complete. It contains the SHA-256 of the Parquet
    file.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(Problem(str(folder), None, "is a file; expected a folder for results"))

    def path(self, model: str, task: str, signature: Signature) -> Path:
        """Return the path of the JSON file of a result, existing or not."""
        return self.folder / f"{_slug(task)}--{_slug(model)}--{digest(signature)[:12]}.json"

    def find(self, model: str, task: str, signature: Signature) -> Result | None:
        """Return the result with this signature, if it exists with its predictions."""
        path = self.path(model, task, signature)
        result = _read_result(path) if path.exists() else None
        if result and digest(result.signature) == digest(signature):
            if result.predictions_sha256 and not path.with_suffix(".parquet").exists():
                log.debug("not reused: %s has no predictions", path)
                return None
            log.debug("known: %s", path)
            return result
        if log.isEnabledFor(logging.DEBUG):
            log.debug("not reused: %s; %s", path, self._nearest(path, signature))
        return None

    def _nearest(self, path: Path, signature: Signature) -> str:
        """Return the keys in which a signature differs from the most similar one of the same model and
        task."""
        differing_keys = {
            candidate: _differing_keys(signature, result.signature)
            for candidate, result in self._neighbours(path)
        }
        if not differing_keys:
            return "no result of this model and task"
        path = min(differing_keys, key=lambda candidate: len(differing_keys[candidate]))
        return f"the most similar is {path}, with different {', '.join(differing_keys[path])}"

    def _neighbours(self, path: Path) -> Iterator[tuple[Path, Result]]:
        """Yield the results of the same model and task with their paths."""
        prefix = glob.escape(path.name.rpartition("--")[0])
        for candidate in sorted(self.folder.glob(f"{prefix}--*.json")):
            with suppress(InputError):  # Damage is only reported when that result is required.
                yield candidate, _read_result(candidate)

    def find_inputs(
        self, model: str, task: str, signature: Signature, inputs: str
    ) -> Result | None:
        """Return a result, with its predictions, of the same inputs with other scores, if there is one.

        inputs: digest of the data without scores. Everything else in the signature is equal.
        """
        for _, result in self._neighbours(self.path(model, task, signature)):
            is_same = result.environment.get(INPUTS_KEY) == inputs
            if is_same and _differing_keys(signature, result.signature) == ["data"]:
                with suppress(InputError):
                    return replace(result, predictions=self.predictions(result))
        return None

    def add(self, result: Result) -> Path:
        """Store a result; return the path of its JSON file."""
        path = self.path(result.model, result.task, result.signature)
        document = result.document()
        if result.predictions is not None:
            table = io.BytesIO()
            result.predictions.write_parquet(table)
            write_atomic(path.with_suffix(".parquet"), table.getvalue())
            document[PREDICTIONS_DIGEST_KEY] = hashlib.sha256(table.getvalue()).hexdigest()
        text = json.dumps(json_ready(document), ensure_ascii=False, indent=2)
        write_atomic(path, f"{text}\n")
        return path

    def results(self) -> Iterator[Result]:
        """Yield the results in the order of their file names."""
        if not self.folder.is_dir():
            raise InputError(Problem(str(self.folder), None, "no such folder of results"))
        for path in sorted(self.folder.glob("*--*--*.json")):
            result = _read_result(path)
            if not path.stem.endswith(digest(result.signature)[:12]):
                message = "its content does not match its name; remove it"
                raise InputError(Problem(str(path), None, message))
            yield result

    def predictions(self, result: Result) -> polars.DataFrame:
        """Return the table of a result's predictions.

        Raises InputError if the file is missing or does not match its digest.
        """
        path = self.path(result.model, result.task, result.signature)
        table = path.with_suffix(".parquet")
        try:
            expected_digest = json.loads(read_text(path)).get(
                PREDICTIONS_DIGEST_KEY
            )  # Older results have no digest.
            if expected_digest not in (None, hashlib.sha256(table.read_bytes()).hexdigest()):
                raise ValueError("does not match its digest; compute it again with --force")
            return read_table(table)
        except InputError:
            raise
        except FileNotFoundError:
            message = "is missing; compute it again with --force"
            raise InputError(Problem(str(table), None, message)) from None
        except (ValueError, AttributeError, RecursionError) as error:
            message = f"contains no readable predictions ({error})"
            raise InputError(Problem(str(table), None, message)) from None

    def with_predictions(self, result: Result) -> Result:
        """Return a result with its predictions, or unchanged if no file of predictions exists.

        Raises InputError as in `predictions`.
        """
        path = self.path(result.model, result.task, result.signature).with_suffix(".parquet")
        return replace(result, predictions=self.predictions(result)) if path.exists() else result


def _slug(name: str) -> str:
    """Return a name with the characters that are safe in file names; results may come from untrusted
    sources."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[-80:]


def _differing_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the keys, with dots for nested tables, that have different values."""
    differing: list[str] = []
    for key in dict.fromkeys([*first, *second]):
        first_value, second_value = first.get(key), second.get(key)
        if isinstance(first_value, Mapping) and isinstance(second_value, Mapping):
            differing += [
                f"{key}.{subkey}" for subkey in _differing_keys(first_value, second_value)
            ]
        elif (key in first, json_ready(first_value)) != (key in second, json_ready(second_value)):
            differing.append(key)
    return differing


def _read_result(path: Path) -> Result:
    try:
        return Result.from_document(json.loads(read_text(path)))
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        message = "is not a result of giccs eval, or damaged; remove it, or specify another folder"
        raise InputError(Problem(str(path), None, message)) from None


def _documents(metrics: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.document() for name, estimate in metrics.items()}


def read_estimates(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, Estimate]:
    """Return estimates from documents of `Estimate.document`."""
    return {name: _estimate(document) for name, document in documents.items()}


def _estimate(document: Mapping[str, Any]) -> Estimate:
    value, low, high = (
        math.nan if document[key] is None else float(document[key])
        for key in ("value", "low", "high")
    )
    extra = {
        name: math.nan if number is None else number
        for name, number in document.items()
        if name not in ("value", "low", "high", "n", "reason")
    }
    return Estimate(value, low, high, int(document["n"]), document.get("reason", ""), extra)
