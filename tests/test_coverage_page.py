"""The page on coverage says what its tables say, and a verdict has one meaning."""

import ast
import math
from itertools import chain
from pathlib import Path

import pytest

from benchmarks.coverage.__main__ import main
from benchmarks.coverage.cells import verdict
from benchmarks.coverage.page import SECTIONS, page, read_rows, write_rows
from benchmarks.coverage.printed_intervals import NOT_SIMULATED, SIMULATED

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/background/coverage"


def test_the_page_is_that_of_its_tables():
    assert page(FOLDER) == FOLDER.with_suffix(".md").read_text("utf-8")


@pytest.mark.parametrize("name", SECTIONS)
def test_verdicts_of_the_tables_follow_from_their_shares(name):
    for row in read_rows(FOLDER / f"{name}.csv"):
        share, error = (float(row[column] or math.nan) for column in ("coverage", "error"))
        required = tuple(map(float, row["required"].split("–"))) if row["required"] else None
        unnoted = [float(row.get(f"unnoted_{c}") or math.nan) for c in ("coverage", "error")]
        assert row["verdict"] == verdict(share, error, float(row["noted"]), required, unnoted)
        assert row["code"]


def test_only_coverage_with_its_interval_inside_92_to_98_percent_holds():
    assert verdict(0.94, 0.01, 0) == "holds"
    assert verdict(0.94, 0.011, 0) == "undecided"
    assert verdict(0.46, 0.01, 0) == "too narrow"
    assert verdict(0.999, 0.001, 1) == "too wide, noted"
    assert verdict(math.nan, math.nan, 1) == "refused"


def test_a_page_is_made_where_none_was(tmp_path):
    row = read_rows(FOLDER / "scores.csv")[0]
    write_rows(tmp_path / "new/scores.csv", [row])
    assert main(["--only", "-o", str(tmp_path / "new.md")]) == 0
    text = (tmp_path / "new.md").read_text("utf-8")
    assert "[scores.csv](new/scores.csv)" in text
    assert "not simulated" in text


ESTIMATES = {"Estimate", "Interval", "PositionEffect", "PositionEffects", "PoweredEstimate"}
PACKAGES = ("bws", "giccs", "mturk", "app/giccs_app")


def has_interval(annotation):
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(annotation) if isinstance(node, ast.Attribute)}
    return not names.isdisjoint(ESTIMATES)


def intervals_of(body, owner):
    """Yield the qualified names of fields and public functions with an interval."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from intervals_of(node.body, f"{owner}.{node.name}")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            if node.returns is not None and has_interval(node.returns):
                yield f"{owner}.{node.name}"
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            is_limit = node.target.id == "low" or node.target.id.endswith("_low")
            if is_limit or has_interval(node.annotation):
                yield f"{owner}.{node.target.id}"


def test_every_printed_interval_is_simulated_or_has_a_reason():
    found = [
        name
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for module in [path.relative_to(ROOT).with_suffix("").parts]
        for name in intervals_of(
            ast.parse(path.read_text("utf-8")).body, ".".join(module).removeprefix("app.")
        )
    ]
    listed = [*chain(*SIMULATED.values(), *NOT_SIMULATED.values())]
    assert sorted(listed) == sorted(found)
    assert set(SIMULATED) <= set(SECTIONS)


def test_intervals_are_found_in_classes_and_functions():
    source = """
class Result:
    value: float
    score_low: float
    metrics: dict[str, metrics.Estimate]
    def interval(self) -> Interval | None: ...
    def _hidden(self) -> Interval: ...
def count() -> int: ...
"""
    found = list(intervals_of(ast.parse(source).body, "m"))
    assert found == ["m.Result.score_low", "m.Result.metrics", "m.Result.interval"]
