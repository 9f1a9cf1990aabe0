"""The charts of the page "Overview"."""

import polars as pl
import pytest

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")

from giccs_app.explorer.overview.charts import sizes_chart


def test_sizes_have_a_colour_for_each_length():
    sizes = pl.DataFrame(
        {
            "domain": ["x", "x", "y"],
            "n_turns": [5, 3, 3],
            "items": [1, 2, 3],
            "dialogues": [1, 1, 1],
        }
    )
    colour = sizes_chart(
        sizes, {name: name for name in ("domain", "turns", "items", "dialogues")}
    ).to_dict()["encoding"]["color"]
    assert colour["scale"]["domain"] == [3, 5]
    assert len(set(colour["scale"]["range"])) == 2
