"""Results: what was measured, all that produced it, and the folder where results are kept."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import logging
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from bws.command import json_ready
from bws.problems import InputError, Problem
from bws.textio import read_text, write_atomic
from giccs.benchmark.parquet import read_table
from giccs.measures.metrics import Estimate

if TYPE_CHECKING:
    import polars

__all__ = [
    "Group",
    "Result",
    "Signature",
    "Store",
    "TaskOutput",
    "ceiling_of",
    "comparison_key",
    "data_of",
    "digest",
    "history_of",
    "model_of",
    "postprocess_warnings",
    "prompt_of",
    "read_estimates",
    "setting_of",
]

log = logging.getLogger(__name__)

DIGESTED_KEYS = ("model", "task", "metrics", "groups", "signature")
"""What the digest of a result is made of."""
PREDICTIONS_DIGEST_KEY = "predictions_sha256"
"""What the JSON file calls the digest of the Parquet file."""


class Signature(TypedDict, total=False):
    """All that the numbers of a result depend on; equal signatures, equal numbers.

    `giccs.evaluation.task_results.signature_of` builds it: what every result has, what the model says of
    itself (`revision`, `dtype` and whatever else identifies it) and what the task adds.
    """

    task: str
    model: str
    data: str
    """Fingerprint of the data, whatever the form of its files."""
    giccs: str
    """Version of this package."""
    revision: str
    """Of the model: a commit, or a digest of its files."""
    quantised: str
    similarity: str
    """How vectors are compared."""
    history: str
    """``with``, ``without`` or ``both``, of tasks on dialogues."""
    setting: str
    """How the model is asked, in a few words, of other tasks."""
    asked: Mapping[str, Any]
    """Options of the task, by the names that recipes use."""
    settings: Mapping[str, Any]
    """Of a training, by the names that recipes use."""
    template: Any
    answer: str
    permutations: int
    chat_template: bool
    interval: Any
    """Method, resamples and seed of the intervals."""
    bootstrap: Mapping[str, Any]
    """The same in results of earlier versions."""
    hidden_labels: bool


@dataclass(frozen=True)
class Group:
    """The metrics of some of the items."""

    by: Mapping[str, Any]
    """What these items have in common: ``{"n_turns": 3}``."""
    metrics: Mapping[str, Estimate]


@dataclass(frozen=True)
class TaskOutput:
    """What a task measures of one model; the runner makes a `Result` of it."""

    metrics: Mapping[str, Estimate]
    groups: tuple[Group, ...] = ()
    predictions: polars.DataFrame | None = None
    """One row per item."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What the task adds to the environment of the result."""


@dataclass(frozen=True)
class Result:
    """One model's answer to one task."""

    model: str
    task: str
    metrics: Mapping[str, Estimate]
    groups: tuple[Group, ...]
    signature: Signature
    """All that the numbers depend on; equal signatures, equal numbers."""
    environment: Mapping[str, Any]
    """Where and with what it ran; of no influence beyond rounding."""
    seconds: float
    predictions: polars.DataFrame | None = field(default=None, compare=False)
    """A row an item. None in results that `Store.results` read back: see `Store.predictions`."""
    predictions_sha256: str = field(default="", compare=False)
    """Of the file of predictions, in results that were read back; empty where they name no such file."""

    def document(self) -> dict[str, Any]:
        """Return the result as JSON has it, with a digest by which `from_document` sees damage."""
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
        """Build a result from what `document` returned.

        KeyError or TypeError where it is no such, ValueError where it has a digest that is another's.
        """
        stored_digest = document.get("sha256")
        if stored_digest is not None and stored_digest != digest(
            {key: document[key] for key in DIGESTED_KEYS}
        ):
            raise ValueError("what was measured is not what was written")
        return cls(
            document["model"],
            document["task"],
            read_estimates(document["metrics"]),
            tuple(
                Group(group["by"], read_estimates(group["metrics"])) for group in document["groups"]
            ),
            document["signature"],
            document["environment"],
            document["seconds"],
            predictions_sha256=document.get(PREDICTIONS_DIGEST_KEY) or "",
        )


def digest(signature: Mapping[str, Any]) -> str:
    """Return SHA-256 over a signature, whatever the order of its keys."""
    text = json.dumps(json_ready(signature), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def comparison_key(result: Result) -> tuple[str, str]:
    """Return what results must share to stand in one table: the task, and the data by fingerprint."""
    return result.task, str(result.signature.get("data", ""))


def model_of(result: Result) -> str:
    """Return how the model was called, and in how many bits its weights were quantised, if they were."""
    bits = str(result.signature.get("quantised", "")).rpartition(", ")[2]
    return f"{result.model}, {bits}" if bits else result.model


def data_of(result: Result) -> str:
    """Return how the data was called."""
    return str(result.environment.get("data", "unknown data"))


def history_of(result: Result) -> str:
    """Return which history was shown."""
    return str(result.signature.get("history", ""))


def setting_of(result: Result) -> str:
    """Return how a result's model was asked, in a few words; the history of the tasks on dialogues."""
    return str(result.signature.get("setting", "")) or history_of(result)


def postprocess_warnings(result: Result) -> list[str]:
    """Return what of the steps behind a model could not be done as asked: ``STEP: why``."""
    steps = result.environment.get("postprocess", [])
    return [f"{step['step']}: {step['warning']}" for step in steps if step.get("warning")]


def prompt_of(result: Result) -> str:
    """Return how a multiple-choice question was put: template, and what differs from a plain question.

    Empty for other tasks.
    """
    signature = result.signature
    if "permutations" not in signature:
        return ""
    labels = [str(signature["template"]["name"])]
    labels += ["letter"] if signature["answer"] == "letter" else []
    labels += ["chat"] if signature["chat_template"] else []
    labels += [f"{signature['permutations']} orders"] if signature["permutations"] > 1 else []
    return ", ".join(labels)


def ceiling_of(result: Result, ceiling: Mapping[str, Estimate] | None) -> Mapping[str, Estimate]:
    """Return the noise ceiling where it is of the result's data (``data`` in its extra), else nothing."""
    data = result.signature.get("data")
    return {
        name: estimate
        for name, estimate in (ceiling or {}).items()
        if estimate.extra.get("data", data) == data
    }


class Store:
    """A folder of results: for each a JSON file and a Parquet file with a row an item.

    The JSON file is written last: where it stands, the result is whole. It holds SHA-256 of the Parquet file.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(Problem(str(folder), None, "is a file; results need a folder"))

    def path(self, model: str, task: str, signature: Signature) -> Path:
        """Return where the JSON of a result stands or would stand."""
        return self.folder / f"{_slug(task)}--{_slug(model)}--{digest(signature)[:12]}.json"

    def find(self, model: str, task: str, signature: Signature) -> Result | None:
        """Return the result with this signature, if it has been computed and its predictions exist."""
        path = self.path(model, task, signature)
        result = _read_result(path) if path.exists() else None
        if result and digest(result.signature) == digest(signature):
            if result.predictions_sha256 and not path.with_suffix(".parquet").exists():
                log.debug("not known: %s has no predictions beside it", path)
                return None
            log.debug("known: %s", path)
            return result
        if log.isEnabledFor(logging.DEBUG):
            log.debug("not known: %s; %s", path, self._nearest(path, signature))
        return None

    def _nearest(self, path: Path, signature: Signature) -> str:
        """Return in which keys a signature differs from the most like it of the same model and task."""
        prefix = glob.escape(path.name.rpartition("--")[0])
        differing_keys = {}
        for path in sorted(self.folder.glob(f"{prefix}--*.json")):
            with suppress(InputError):  # only who needs that result is told that it is damaged
                differing_keys[path] = _differing_keys(signature, _read_result(path).signature)
        if not differing_keys:
            return "no result of this model and task is there"
        path = min(differing_keys, key=lambda candidate: len(differing_keys[candidate]))
        return f"nearest is {path}, which differs in {', '.join(differing_keys[path])}"

    def add(self, result: Result) -> Path:
        """Keep a result; return the path of its JSON file."""
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
                message = "is another result than its name says; remove it"
                raise InputError(Problem(str(path), None, message))
            yield result

    def predictions(self, result: Result) -> polars.DataFrame:
        """Return the table of a result's predictions; InputError where it is not what was written."""
        path = self.path(result.model, result.task, result.signature)
        table = path.with_suffix(".parquet")
        try:
            expected_digest = json.loads(read_text(path)).get(
                PREDICTIONS_DIGEST_KEY
            )  # older results say nothing of it
            if expected_digest not in (None, hashlib.sha256(table.read_bytes()).hexdigest()):
                raise ValueError("not the file that was written; compute it again with --force")
            return read_table(table)
        except InputError:
            raise
        except (ValueError, AttributeError, RecursionError) as error:
            message = f"holds no predictions that can be read ({error})"
            raise InputError(Problem(str(table), None, message)) from None

    def with_predictions(self, result: Result) -> Result:
        """Return a result with its predictions, or as it is where no file of predictions exists.

        InputError as of `predictions`.
        """
        path = self.path(result.model, result.task, result.signature).with_suffix(".parquet")
        return replace(result, predictions=self.predictions(result)) if path.exists() else result


def _slug(name: str) -> str:
    """Return what of a name can stand in a file's name; results of strangers name what they like."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[-80:]


def _differing_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the keys, with a dot between those of tables in each other, whose values are not the same."""
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
        message = "is not a result of giccs-eval, or damaged; remove it, or name another folder"
        raise InputError(Problem(str(path), None, message)) from None


def _documents(metrics: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.document() for name, estimate in metrics.items()}


def read_estimates(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, Estimate]:
    """Return estimates from what `Estimate.document` returned for each."""
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
