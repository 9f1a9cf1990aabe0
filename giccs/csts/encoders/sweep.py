"""Grid search: selection of settings on validation and final trainings with several seeds (C-STS, A.3)."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_toml
from giccs.csts.encoders.runs import Outcome, train, train_seeds, validated
from giccs.csts.encoders.settings import Settings, seeds_problem, why_impossible
from giccs.csts.encoders.splits import Splits
from giccs.measures.results import Result
from giccs.progress import Progress, silent
from giccs.recipes import locate

if TYPE_CHECKING:
    from giccs.csts.encoders.settings import Machine

PER = ("model", "encoding")
"""Settings are selected for each combination of these (C-STS, A.3: "for each model and encoding method")."""


@dataclass(frozen=True)
class Grid:
    """The content of a grid file."""

    file: str
    title: str
    values: Mapping[str, Sequence[Any]]
    """Name of a setting -> list of values."""
    seeds: tuple[int, ...]
    """Seeds of the final trainings with the best settings."""


@dataclass(frozen=True)
class Point:
    """One trained combination of settings."""

    settings: Settings
    result: Result


@dataclass(frozen=True)
class SweepResult:
    """Results of a grid search."""

    points: tuple[Point, ...]
    """Every combination, in the order of the grid."""
    best: tuple[Outcome, ...]
    """The best combination on validation for each model and encoding, with the final seeds."""
    impossible: Mapping[str, int]
    """Reasons for skipped combinations, with their number."""


def read_grid(path: str | os.PathLike[str]) -> Grid:
    """Read a grid (TOML): ``[grid]`` has a list for every setting, ``[final]`` the ``seeds``.

    Raises InputError with every problem.
    """
    file = display_name(path)
    document = read_toml(locate(path))
    grid, final = document.get("grid"), document.get("final", {})
    faults = list(_faults(document, grid, final))
    if faults or not isinstance(grid, dict):
        raise InputError([Problem(file, None, fault) for fault in faults])
    values = {name: _hashable(choices) for name, choices in grid.items()}
    return Grid(file, document.get("title", ""), values, tuple(final.get("seeds", (42,))))


def points(grid: Grid, base: Settings) -> tuple[list[Settings], dict[str, int]]:
    """Return every distinct valid combination, and the number of invalid ones per reason.

    base: values of the settings that are not in the grid. Raises InputError for invalid values.
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
        problems[""] = Problem(grid.file, None, f"no valid combination: {next(iter(impossible))}")
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
    """Train every combination, select on validation, and train the selected ones with the final seeds.

    Existing results in `folder` are reused, unless `force`, so that an interrupted grid search resumes. Only
    the final trainings are results of the folder; those of the combinations are in a subfolder.
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
    """Return Spearman's correlation on validation; undefined values are below every other."""
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
        yield f"unknown {', '.join(unknown)}; expected title, source, grid and final"
    if not isinstance(grid, dict) or not grid:
        yield "no [grid]; expected a list for at least one setting"
        return
    option_names = [
        field.name for field in fields(Settings) if field.name != "texts"
    ]  # Derived from the data.
    for name, choices in grid.items():
        if name not in option_names:
            yield f"grid: unknown setting {name}; expected one of {', '.join(option_names)}"
        elif not isinstance(choices, list) or not choices:
            yield f"grid: {name} is {choices!r}; expected a list of values"
    seeds = final.get("seeds", [42]) if isinstance(final, dict) else None
    if problem := seeds_problem(seeds):
        yield f"final: {problem}"


def _hashable(choices: Sequence[Any]) -> list[Any]:
    return [tuple(choice) if isinstance(choice, list) else choice for choice in choices]
