"""Charts of the report as SVG that inherits the colours of the page, for light and dark themes."""

from __future__ import annotations

import hashlib
import re
from typing import Any

__all__ = ["svg_of"]

WIDTH = 220
"""Of the plot itself, so that a telephone shows the chart at its own size."""
TAG = re.compile(r"<[^>]*>")
ARIA = re.compile(r'\s(?:role|aria-\w+)="[^"]*"')


def svg_of(chart: Any, *, width: int = WIDTH, height: int | None = None) -> str:
    """Return a chart as SVG without a background, with ids that no other chart of the page has.

    Roles and labels of its parts are left out: the page shows the chart as one image with a label.
    """
    import altair as alt

    from giccs.description.figures import chart_svg

    shaped = chart.properties(width=width, **({"height": height} if height else {}))
    legend = alt.LegendConfig(orient="bottom", direction="vertical")
    svg = chart_svg(shaped.configure(background="transparent", legend=legend))
    own = f"c{hashlib.sha256(svg.encode()).hexdigest()[:8]}-"
    svg = TAG.sub(lambda tag: ARIA.sub("", tag[0]), svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{own}\1"', svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{own}", svg)
