"""The charts of the page "Overview"."""

import polars as pl
import pytest

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")

from giccs_app.explorer.overview.charts import NAME_WIDTH, sizes_chart

TITLES = {name: name for name in ("domain", "turns", "items", "dialogues")}


def test_long_domains_have_two_lines_and_are_unique():
    stem = "reservations of restaurants near places of interest"
    domains = [f"{stem}, {end}" for end in ("north", "south")]
    sizes = pl.DataFrame({"domain": domains, "n_turns": 3, "items": 1, "dialogues": 1})
    rows = sizes_chart(sizes, TITLES).data
    assert rows["domain"].to_list() == domains
    assert rows["label"].n_unique() == 2
    for label in rows["label"]:
        lines = label.split("\n")
        assert len(lines) == 2
        assert max(map(len, lines)) <= NAME_WIDTH


def test_sizes_have_a_colour_for_each_length():
    sizes = pl.DataFrame(
        {
            "domain": ["x", "x", "y"],
            "n_turns": [5, 3, 3],
            "items": [1, 2, 3],
            "dialogues": [1, 1, 1],
        }
    )
    colour = sizes_chart(sizes, TITLES).to_dict()["encoding"]["color"]
    assert colour["scale"]["domain"] == [3, 5]
    assert len(set(colour["scale"]["range"])) == 2
