"""Colours of charts, and their files: SVG, PNG and Vega-Lite."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic

if TYPE_CHECKING:
    import altair as alt

BLUE = "#0072B2"
"""Blue of the colour-blind-safe palette of Okabe and Ito, with a contrast of 5.2:1 on white."""
VERMILION, GREEN, PURPLE = "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK = "#E69F00", "#56B4E9", "#F0E442", "#000000"
PNG_SCALE = 2
CHART_SUFFIXES = (".svg", ".png", ".json")
FONT: dict[str, Any] = {
    "labelFontSize": 12,
    "titleFontSize": 13,
    "labelLimit": 320,
    "titleLimit": 500,
}
AXIS: dict[str, Any] = {**FONT, "maxExtent": 400}
"""`FONT` for axes, whose titles are beside their labels also if these are long."""


def limits(low: float, high: float) -> dict[str, float]:
    """Return the limits of an interval as columns, none if undefined."""
    return {} if math.isnan(low) or math.isnan(high) else {"low": low, "high": high}


def chart_rows(rows: Sequence[Any]) -> alt.InlineData:
    """Return rows as the data of a chart; Altair copies them with no layer, and does not check each value."""
    data: alt.InlineData = _rows_class()(values=rows)
    return data


@cache
def _rows_class() -> Any:
    import altair as alt

    class Rows(alt.InlineData):
        _class_is_valid_at_instantiation = False

        def __deepcopy__(self, memo: object = None) -> Rows:
            return self

    return Rows


def write_chart(chart: alt.TopLevelMixin, path: str | os.PathLike[str]) -> None:
    """Write a chart atomically in the format of the suffix: .svg, .png (double size) or .json (Vega-Lite).

    Raises InputError for other suffixes.
    """
    check_chart_path(path)
    write_atomic(path, chart_bytes(chart, Path(path).suffix.lower()))


def check_chart_path(path: str | os.PathLike[str]) -> None:
    """Raise InputError if `write_chart` does not support the suffix of this file name."""
    if Path(path).suffix.lower() not in CHART_SUFFIXES:
        message = f"unsupported file type; expected a name that ends in one of {', '.join(CHART_SUFFIXES)}"
        raise InputError(Problem(os.fspath(path), None, message))


def chart_bytes(chart: alt.TopLevelMixin, suffix: str) -> bytes:
    """Return the content of a chart file; `suffix` is one of `CHART_SUFFIXES`."""
    if suffix == ".svg":
        return chart_svg(chart).encode("utf-8")
    if suffix == ".json":
        return (json.dumps(specification(chart), ensure_ascii=False, indent=2) + "\n").encode(
            "utf-8"
        )
    import vl_convert

    png: bytes = vl_convert.vegalite_to_png(
        specification(chart), scale=PNG_SCALE, allowed_base_urls=[]
    )
    return png


def chart_svg(chart: alt.TopLevelMixin) -> str:
    """Return a chart as an SVG element, rendered offline."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(specification(chart), allowed_base_urls=[])
    return svg


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """Return a chart in Vega-Lite, with any number of rows; Altair alone refuses more than 5,000."""
    import altair as alt

    with alt.data_transformers.disable_max_rows():
        vega_lite: dict[str, Any] = chart.to_dict()
    return vega_lite
