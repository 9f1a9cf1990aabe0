"""Continuous colours have a domain that does not move with the values: 0.82 has one colour in every chart."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import bws
from bws.raw_agreement import annotator_pairs
from bws.study_charts import RAMP, pairs_chart
from giccs.report.figures.differences import SCHEMA as DIFFERENCE_SCHEMA
from giccs.report.figures.differences import difference_matrix
from giccs.report.figures.distributions import (
    DARK_TEXT,
    SHARE_COLOURS,
    distribution_chart,
    distribution_frame,
)
from giccs.report.figures.subsets import SCHEMA as SUBSET_SCHEMA
from giccs.report.figures.subsets import subset_chart

ROOT = Path(__file__).parents[1]
COLOUR_CHANNELS = {"Color", "Fill", "Stroke"}


def colours_without_domain(source: str) -> list[int]:
    """The lines of colour encodings that are or may be continuous and have no explicit domain."""
    if not any(word in source for word in (*COLOUR_CHANNELS, "encode")):
        return []  # most modules draw nothing
    tree = ast.parse(source)
    scales = {
        id(node.func.value): {keyword.arg for keyword in node.keywords}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "scale"
    }
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in COLOUR_CHANNELS and not is_discrete(node.args):
            given = scales.get(id(node), set()) | {
                keyword.arg
                for scale in node.keywords
                if scale.arg == "scale" and isinstance(scale.value, ast.Call)
                for keyword in scale.value.keywords
            }
            lines += [] if "domain" in given else [node.lineno]
        if name == "encode":
            lines += [
                node.lineno
                for keyword in node.keywords
                if keyword.arg in {"color", "fill", "stroke"}
                and isinstance(keyword.value, ast.Constant | ast.JoinedStr)
                and not is_discrete([keyword.value])
            ]
    return lines


def is_discrete(fields: list[ast.expr]) -> bool:
    """Whether the field names a discrete type; fields without type may be continuous."""
    text = fields[0] if fields else ast.Constant("")
    text = text.values[-1] if isinstance(text, ast.JoinedStr) else text
    return isinstance(text, ast.Constant) and str(text.value).endswith((":N", ":O"))


@pytest.mark.parametrize(
    ("source", "is_refused"),
    [
        ("alt.Color('x:Q')", True),
        ("alt.Color('x')", True),
        ("alt.Fill(f'{name}:Q', scale=alt.Scale(scheme='viridis'))", True),
        ("alt.Color('x:Q').scale(range=RAMP)", True),
        ("chart.encode(color='x:Q')", True),
        ("alt.Color('x:Q').scale(domain=[0, 1], range=RAMP)", False),
        ("alt.Color('x:Q', scale=alt.Scale(domain=[0, 1]))", False),
        ("alt.Color(f'{name}:N')", False),
        ("chart.encode(color=colour, y='x:Q')", False),
    ],
)
def test_the_rule(source, is_refused):
    assert bool(colours_without_domain(source)) == is_refused


def test_every_continuous_colour_has_an_explicit_domain():
    refused, n_charts = [], 0
    for package in ("bws", "giccs", "mturk", "app"):
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            n_charts += "alt.Color" in source
            refused += [f"{path}:{line}" for line in colours_without_domain(source)]
    assert n_charts > 5
    assert not refused


def colour_scales(chart) -> list[dict]:
    """The scales of the continuous colours of a chart."""
    layers = chart.to_dict().get("layer", [chart.to_dict()])
    colours = [layer.get("encoding", {}).get("color", {}) for layer in layers]
    scales = [colour["scale"] for colour in colours if colour.get("type") == "quantitative"]
    assert scales
    return scales


def pairs_of(noise):
    tuples = bws.make_tuples([f"i{n}" for n in range(20)], 4, factor=2)
    judgments = bws.simulate(tuples, np.linspace(-1, 1, 20), 4, noise=noise)
    return annotator_pairs(judgments)


def subset_values(*values):
    rows = [
        {"model": "m", "label": "m", "division": "d", "subset": f"d={n}", "value": value, "n": 9}
        for n, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema=SUBSET_SCHEMA)


def differences(*values):
    rows = [
        dict.fromkeys(("first", "first_label"), f"m{n}")
        | dict.fromkeys(("second", "second_label"), f"m{n + 1}")
        | {"value": value, "verdict": "significant"}
        for n, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema=DIFFERENCE_SCHEMA)


@pytest.mark.parametrize(
    ("charts", "domain"),
    [
        ([pairs_chart(pairs_of(noise)) for noise in (0.1, 0.5)], [0.25, 1]),
        ([subset_chart(subset_values(*each)) for each in ((0.82, 0.85), (-0.2, 0.5), (0.6,))], [0, 1]),
        ([difference_matrix(differences(*each)) for each in ((0.01, 0.02), (0.4, 0.1))], [0, 1]),
        (
            [
                distribution_chart(distribution_frame(["a", "a", "b"], scores))
                for scores in ([0.1, 0.3, 0.5], [0.9, 0.9, 0.9])
            ],
            [0, 0.2, 0.4],
        ),
    ],
    ids=["pairs of annotators", "subsets", "differences", "distributions"],
)  # fmt: skip
def test_the_domain_does_not_move_with_the_values(charts, domain):
    for chart in charts:
        for scale in colour_scales(chart):
            assert scale["domain"] == pytest.approx(domain)
            assert scale["clamp"]


def test_metrics_without_bounds_begin_at_0():
    for values, domain in (((2.0, 3.5), [0, 3.5]), ((-3.1, -2.0), [-3.1, 0])):
        (scale,) = colour_scales(subset_chart(subset_values(*values)))
        assert scale["domain"] == domain


def test_counts_of_a_heat_map_begin_at_0():
    from giccs_app.explorer.models.charts import heatmap

    frame = pl.DataFrame(
        {"x": [0.0, 0.5], "x_to": [0.5, 1.0], "y": [0.0, 0.5], "y_to": [0.5, 1.0], "items": [7, 9]}
    )
    titles = {"x": "x", "y": "y", "items": "items"}
    (scale,) = colour_scales(heatmap(frame, "x", "y", titles))
    assert scale["domain"] == [0, 9]


def test_equal_agreement_has_one_colour_in_all_studies():
    # An agreement of 0.82 was almost white in a study whose other pairs agree more.
    pairs = pairs_of(0.3)
    texts = []
    for other in (0.3, 0.99):
        agreement = np.where(np.isnan(pairs.agreement), np.nan, other)
        agreement[0, 1] = agreement[1, 0] = 0.82
        texts.append(svg_colours(dataclasses.replace(pairs, agreement=agreement)))
    common = set.intersection(*texts)
    share = (0.82 - 0.25) / 0.75
    ends = [[int(colour[n : n + 2], 16) for n in (1, 3, 5)] for colour in RAMP]
    expected = [round(low + share * (high - low)) for low, high in zip(*ends, strict=True)]
    assert f"rgb({', '.join(map(str, expected))})" in common


def svg_colours(pairs) -> set[str]:
    import re

    from bws.base.charts import chart_svg

    return set(re.findall(r'fill="(rgb\([^)]*\))"', chart_svg(pairs_chart(pairs))))


def test_numbers_on_shares_have_the_contrast_of_wcag():
    assert DARK_TEXT == "#000000"
    for colour in SHARE_COLOURS:
        channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        assert (luminance + 0.05) / 0.05 >= 7
