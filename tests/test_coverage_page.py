"""The page on coverage says what its tables say, and a verdict has one meaning."""

import math
from pathlib import Path

import pytest

from benchmarks.coverage.__main__ import main
from benchmarks.coverage.cells import verdict
from benchmarks.coverage.page import SECTIONS, page, read_rows, write_rows

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/background/coverage"


def test_the_page_is_that_of_its_tables():
    assert page(FOLDER) == FOLDER.with_suffix(".md").read_text("utf-8")


@pytest.mark.parametrize("name", SECTIONS)
def test_verdicts_of_the_tables_follow_from_their_shares(name):
    for row in read_rows(FOLDER / f"{name}.csv"):
        share, error = (float(row[column] or math.nan) for column in ("coverage", "error"))
        required = tuple(map(float, row["required"].split("–"))) if row["required"] else None
        assert row["verdict"] == verdict(share, error, float(row["noted"]), required)
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
