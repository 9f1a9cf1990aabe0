"""What is assumed and not measured. Every value can be changed in a TOML file."""

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
    """What models run on."""

    peak_tflops: float = 989.0
    utilisation: float = 0.3
    memory_gb: float = 141.0
    disk_gb_a_second: float = 2.0
    bytes_a_parameter: float = 2.0
    start_seconds: float = 30.0
    dollars_an_hour: float = 3.0


SOURCES = {
    "items": "asked for",
    "workers": "asked for",
    "tuples_an_item": "GiCCS, 3.2: 2N; it cites 1.5N to 2N as enough",
    "annotations": "a tuple; GiCCS, 3.2",
    "tuples_a_hit": "one of each of two dialogues; GiCCS, 3.2",
    "reward": "US dollars a HIT; the default of mturk-hits, the paper gives none",
    "seconds": "a HIT; the default of mturk-hits, a pilot tells yours",
    "hours_a_week": "of one worker; a guess",
    "peak_tflops": "BF16, dense, one H100 or H200 SXM; the vendor's data sheet, not measured",
    "utilisation": "share of the peak that is reached; a guess",
    "memory_gb": "of one H200; the vendor's data sheet",
    "disk_gb_a_second": "from the disk to the GPU; a guess",
    "bytes_a_parameter": "BF16",
    "start_seconds": "of a process and its framework, each model; a guess",
    "dollars_an_hour": "US dollars, one GPU; a guess",
}
"""Name of an assumption -> what it counts, and where it is from."""


@dataclass(frozen=True, slots=True)
class ModelClass:
    """So many models of one size."""

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
    """All of them."""

    study: StudyAssumptions = field(default_factory=StudyAssumptions)
    hardware: HardwareAssumptions = field(default_factory=HardwareAssumptions)
    models: tuple[ModelClass, ...] = MIX

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield (name in the TOML file, value, where it is from)."""
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
                f"billions: {sizes}; a guess",
            )


def read_assumptions(path: str | os.PathLike[str]) -> Assumptions:
    """Read a TOML file with the tables ``study`` and ``hardware`` and a list of tables ``models``.

    What it does not name keeps its default; ``models`` replaces the whole mix. InputError with all faults.
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
    faults += [f"{key} is unknown; study, hardware and models are allowed" for key in tables]
    if faults:
        raise InputError(Problem(name, None, fault) for fault in faults)
    return Assumptions(**sections, models=mix)


def _section(default: Any, values: Mapping[str, Any]) -> Any:
    """Return a section with some values replaced, each of its default's type and above 0."""
    allowed = {setting.name: getattr(default, setting.name) for setting in fields(default)}
    if unknown := values.keys() - allowed.keys():
        raise ValueError(f"{', '.join(sorted(unknown))} is unknown; allowed: {', '.join(allowed)}")
    return replace(
        default, **{key: _coerce(key, allowed[key], given) for key, given in values.items()}
    )


def _coerce(key: str, default: Any, value_given: Any) -> Any:
    try:
        value = type(default)(value_given)
    except (TypeError, ValueError, InvalidOperation):
        value = 0
    if isinstance(value_given, bool) or not value > 0 or value != value or str(value) == "inf":
        raise ValueError(f"{key} is {value_given!r}; a number above 0 such as {default} is allowed")
    return value


def _models(table: Mapping[str, Any]) -> ModelClass:
    model_class = ModelClass(**table)
    if model_class.kind not in KINDS or not model_class.parameters > 0 or not model_class.count > 0:
        raise ValueError(f"{table} is wrong; a kind of {KINDS}, and numbers above 0 are allowed")
    return model_class
