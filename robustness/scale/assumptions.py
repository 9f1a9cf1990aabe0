"""Assumed, not measured, values. Every value can be changed in a TOML file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml
from mturk.study.settings import Settings

__all__ = [
    "Assumptions",
    "HardwareAssumptions",
    "ModelClass",
    "StudyAssumptions",
    "read_assumptions",
]

PAPER = Settings()


@dataclass(frozen=True, slots=True)
class StudyAssumptions:
    """An annotation study in the paper's design: dialogues of five utterances."""

    items: int = 1_000_000
    workers: int = 1_000
    tuples_an_item: float = 2.0
    annotations: int = PAPER.assignments
    tuples_a_hit: int = PAPER.dialogues_per_hit
    reward: Decimal = PAPER.reward
    """US dollars."""
    seconds: int = PAPER.expected_seconds
    hours_a_week: float = 10.0


@dataclass(frozen=True, slots=True)
class HardwareAssumptions:
    """The hardware of the models."""

    peak_tflops: float = 989.0
    utilisation: float = 0.3
    memory_gb: float = 141.0
    disk_gb_a_second: float = 2.0
    bytes_a_parameter: float = 2.0
    start_seconds: float = 30.0
    dollars_an_hour: float = 3.0


SOURCES = {
    "items": "given",
    "workers": "given",
    "tuples_an_item": "GiCCS, 3.2: 2N; it cites 1.5N to 2N as enough",
    "annotations": "per tuple; GiCCS, 3.2",
    "tuples_a_hit": "one from each of two dialogues; GiCCS, 3.2",
    "reward": "US dollars per HIT; default of mturk-hits, not given in the paper",
    "seconds": "per HIT; default of mturk-hits, to be measured in a pilot",
    "hours_a_week": "per worker; assumed",
    "peak_tflops": "BF16, dense, one H100 or H200 SXM; vendor's data sheet, not measured",
    "utilisation": "share of the peak that is reached; assumed",
    "memory_gb": "of one H200; vendor's data sheet",
    "disk_gb_a_second": "from the disk to the GPU; assumed",
    "bytes_a_parameter": "BF16",
    "start_seconds": "of a process and its framework, per model; assumed",
    "dollars_an_hour": "US dollars per GPU; assumed",
}
"""Name of an assumption -> its unit and source."""


@dataclass(frozen=True, slots=True)
class ModelClass:
    """A number of models of one size."""

    kind: str
    """``encoder`` (pairwise STS) or ``causal`` (multiple-choice STS)."""
    parameters: float
    """In billions."""
    count: int


MIX = (  # a guess
    ModelClass("encoder", 0.1, 200),
    ModelClass("encoder", 0.3, 150),
    ModelClass("encoder", 0.6, 50),
    ModelClass("causal", 0.5, 150),
    ModelClass("causal", 1.5, 150),
    ModelClass("causal", 3.0, 100),
    ModelClass("causal", 8.0, 120),
    ModelClass("causal", 14.0, 40),
    ModelClass("causal", 32.0, 25),
    ModelClass("causal", 70.0, 15),
)
KINDS = ("encoder", "causal")


@dataclass(frozen=True, slots=True)
class Assumptions:
    """All assumptions."""

    study: StudyAssumptions = field(default_factory=StudyAssumptions)
    hardware: HardwareAssumptions = field(default_factory=HardwareAssumptions)
    models: tuple[ModelClass, ...] = MIX

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield (name in the TOML file, value, source)."""
        for section, part in (("study", self.study), ("hardware", self.hardware)):
            for assumption in fields(part):
                yield (
                    f"{section}.{assumption.name}",
                    f"{getattr(part, assumption.name):,}",
                    SOURCES[assumption.name],
                )
        for kind in KINDS:
            mine = [m for m in self.models if m.kind == kind]
            sizes = ", ".join(f"{m.count} of {m.parameters:g}" for m in mine)
            yield (
                f"models, {kind}",
                f"{sum(m.count for m in mine):,}",
                f"billions: {sizes}; assumed",
            )


def read_assumptions(path: str | os.PathLike[str]) -> Assumptions:
    """Read a TOML file with the tables ``study`` and ``hardware`` and a list of tables ``models``.

    Missing keys keep their defaults; ``models`` replaces the whole mix. Raises InputError with all problems.
    """
    name, tables, faults = display_name(path), read_toml(path), []
    sections: dict[str, Any] = {"study": StudyAssumptions(), "hardware": HardwareAssumptions()}
    for section, default in sections.items():
        try:
            sections[section] = _section(default, tables.pop(section, {}))
        except ValueError as error:
            faults.append(f"{section}: {error}")
    try:
        mix = tuple(map(_models, tables.pop("models", []))) or MIX
    except (TypeError, ValueError) as error:
        faults.append(f"models: {error}")
    faults += [f"{key} is unknown; expected study, hardware and models" for key in tables]
    if faults:
        raise InputError(Problem(name, None, fault) for fault in faults)
    return Assumptions(**sections, models=mix)


def _section(default: Any, values: Mapping[str, Any]) -> Any:
    """Return a section with some values replaced; values must be above 0 and have the type of the default."""
    allowed = {setting.name: getattr(default, setting.name) for setting in fields(default)}
    if unknown := values.keys() - allowed.keys():
        raise ValueError(f"{', '.join(sorted(unknown))} is unknown; expected {', '.join(allowed)}")
    return replace(
        default,
        **{key: _coerce(key, allowed[key], value_given) for key, value_given in values.items()},
    )


def _coerce(key: str, default: Any, value_given: Any) -> Any:
    try:
        value = type(default)(value_given)
    except (TypeError, ValueError, InvalidOperation):
        value = 0
    if isinstance(value_given, bool) or not value > 0 or value != value or str(value) == "inf":
        raise ValueError(f"{key} is {value_given!r}; expected a number above 0 such as {default}")
    return value


def _models(table: Mapping[str, Any]) -> ModelClass:
    model_class = ModelClass(**table)
    if model_class.kind not in KINDS or not model_class.parameters > 0 or not model_class.count > 0:
        raise ValueError(f"{table} is invalid; expected a kind of {KINDS} and numbers above 0")
    return model_class
