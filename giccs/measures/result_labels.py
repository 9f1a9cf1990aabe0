"""What a result is about: which data, which history, which prompt."""

from __future__ import annotations

from collections.abc import Mapping

from giccs.measures.metrics import Estimate
from giccs.measures.results import Result

__all__ = [
    "asked",
    "ceiling_of",
    "compares_pairs",
    "data_of",
    "history_of",
    "is_choice",
    "model_of",
    "prompt_of",
    "setting_of",
    "steps_not_as_asked",
]


def asked(result: Result) -> tuple[str, str]:
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


def steps_not_as_asked(result: Result) -> list[str]:
    """Return what of the steps behind a model could not be done as asked: ``STEP: why``."""
    steps = result.environment.get("postprocess", [])
    return [f"{one['step']}: {one['warning']}" for one in steps if one.get("warning")]


def prompt_of(result: Result) -> str:
    """Return how the question was put: template, and what differs from a plain question."""
    how = result.signature
    said = [str(how["template"]["name"])]
    said += ["letter"] if how["answer"] == "letter" else []
    said += ["chat"] if how["chat_template"] else []
    said += [f"{how['permutations']} orders"] if how["permutations"] > 1 else []
    return ", ".join(said)


def is_choice(result: Result) -> bool:
    """Tell whether a result is one of multiple choice."""
    return result.task == "multiple-choice-sts"


def compares_pairs(result: Result) -> bool:
    """Tell whether a result is one of pairwise STS, which a noise ceiling is of."""
    return result.task == "pairwise-sts"


def ceiling_of(result: Result, ceiling: Mapping[str, Estimate] | None) -> Mapping[str, Estimate]:
    """Return the noise ceiling where it is of the result's data (``data`` in its extra), else nothing."""
    own = result.signature.get("data")
    return {name: one for name, one in (ceiling or {}).items() if one.extra.get("data", own) == own}
