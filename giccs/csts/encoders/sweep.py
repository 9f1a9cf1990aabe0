"""Which settings are best on validation, and what do they come to with several seeds (C-STS, A.3)?"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml
from giccs.csts.encoders.runs import Outcome, train, train_seeds, validated
from giccs.csts.encoders.settings import Settings, seeds_problem, why_impossible
from giccs.csts.encoders.splits import Splits
from giccs.measures.results import Result
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.csts.encoders.settings import Machine

__all__ = ["Grid", "SweepResult", "points", "read_grid", "sweep"]

PER = ("model", "encoding")
"""The best is looked for in each of these (C-STS, A.3: "for each model and encoding method")."""


@dataclass(frozen=True)
class Grid:
    """A sweep as its file describes it."""

    file: str
    title: str
    values: Mapping[str, Sequence[Any]]
    """Name of a setting -> what it is tried with."""
    seeds: tuple[int, ...]
    """Of the final trainings with the best settings."""


@dataclass(frozen=True)
class Point:
    """One combination, trained."""

    settings: Settings
    result: Result


@dataclass(frozen=True)
class SweepResult:
    """What a sweep came to."""

    points: tuple[Point, ...]
    """Every combination, in the order of the grid."""
    best: tuple[Outcome, ...]
    """For each model and encoding the best on validation, with the final seeds."""
    impossible: Mapping[str, int]
    """Why combinations were left out, and how many."""


def read_grid(path: str | os.PathLike[str]) -> Grid:
    """Read a sweep (TOML): ``[grid]`` has a list for every setting, ``[final]`` the ``seeds``.

    Raises InputError with everything that is wrong in it.
    """
    file = display_name(path)
    document = read_toml(path)
    grid, final = document.get("grid"), document.get("final", {})
    faults = list(_faults(document, grid, final))
    if faults or not isinstance(grid, dict):
        raise InputError([Problem(file, None, fault) for fault in faults])
    values = {name: _hashable(choices) for name, choices in grid.items()}
    return Grid(file, document.get("title", ""), values, tuple(final.get("seeds", (42,))))


def points(grid: Grid, base: Settings) -> tuple[list[Settings], dict[str, int]]:
    """Return every different combination that makes sense, and why others do not, with how many.

    given: the values of settings of which the grid says nothing. InputError for values that are not allowed.
    """
    settings_set: dict[Settings, None] = {}
    impossible: dict[str, int] = {}
    problems: dict[str, Problem] = {}
    for combination in itertools.product(*grid.values.values()):
        values = dict(zip(grid.values, combination, strict=True))
        try:
            settings = replace(base, **values).canonical()
        except (ValueError, TypeError) as error:
            problems[str(error)] = Problem(grid.file, None, f"grid: {error}")
            continue
        if reason := why_impossible(settings):
            impossible[reason] = impossible.get(reason, 0) + 1
        else:
            settings_set[settings] = None
    if not settings_set and not problems:
        problems[""] = Problem(
            grid.file, None, f"no combination makes sense: {next(iter(impossible))}"
        )
    if problems:
        raise InputError(problems.values())
    return list(settings_set), impossible


def sweep(
    grid: Grid,
    base: Settings,
    splits: Splits,
    folder: str | os.PathLike[str],
    machine: Machine | None = None,
    progress: Progress = silent,
    note: Callable[[str], None] = lambda message: None,
    *,
    force: bool = False,
) -> SweepResult:
    """Train every combination, choose on validation, train the chosen ones with the final seeds.

    What is known in `folder` is not trained again, unless `force`: a sweep that was stopped goes on. Only
    the final trainings are results of the folder; those of the combinations are below it.
    """
    combinations, impossible = points(grid, base)
    trained = []
    for number, settings in enumerate(combinations, 1):
        note(f"{number} of {len(combinations)}: {settings.model}: {settings.described()}")
        result = train_seeds(settings, splits, folder, machine, progress, force=force)
        trained.append(Point(settings, result))
    final = [replace(point.settings, seeds=grid.seeds) for point in _best(trained)]
    outcomes = []
    for settings in final:
        note(f"best: {settings.model}: {settings.described()}, {len(grid.seeds)} seeds")
        outcome = train(
            settings, splits, folder, machine, progress,
            keep=False, force=force, selected=("settings",),
        )  # fmt: skip
        outcomes.append(outcome)
    return SweepResult(tuple(trained), tuple(outcomes), impossible)


def on_validation(result: Result) -> float:
    """Return Spearman's correlation on validation; below every other where it is not defined."""
    value = validated(result)["spearman"].value
    return -math.inf if math.isnan(value) else value


def _best(trained: Sequence[Point]) -> Iterator[Point]:
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for point in trained:
        key = tuple(getattr(point.settings, name) for name in PER)
        groups.setdefault(key, []).append(point)
    for group in groups.values():
        yield max(group, key=lambda point: on_validation(point.result))


def _faults(document: Mapping[str, Any], grid: Any, final: Any) -> Iterator[str]:
    if unknown := sorted(document.keys() - {"title", "source", "grid", "final"}):
        yield f"{', '.join(unknown)} is not known; title, source, grid and final are"
    if not isinstance(grid, dict) or not grid:
        yield "has no [grid]; it needs a list for at least one setting"
        return
    option_names = [
        field.name for field in fields(Settings) if field.name != "texts"
    ]  # follows the data
    for name, choices in grid.items():
        if name not in option_names:
            yield f"grid: {name} is not known; {', '.join(option_names)} are"
        elif not isinstance(choices, list) or not choices:
            yield f"grid: {name} is {choices!r}; it must be a list of values"
    seeds = final.get("seeds", [42]) if isinstance(final, dict) else None
    if problem := seeds_problem(seeds):
        yield f"final: {problem}"


def _hashable(choices: Sequence[Any]) -> list[Any]:
    return [tuple(choice) if isinstance(choice, list) else choice for choice in choices]
