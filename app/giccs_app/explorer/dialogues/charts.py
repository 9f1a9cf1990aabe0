"""The chart of the page "Dialogues": the candidates of a dialogue with their scores."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Mapping

import altair as alt
import polars as pl

from bws.base.charts import BLUE
from giccs_app.explorer.theme import GREY

TITLES = {
    "score": "similarity to the target utterance",
    "interval": "95 % interval",
    "rank_set": "ranks (95 %)",
    "candidate": "candidate",
    "best": "best",
    "worst": "worst",
    "appearances": "appearances",
}
"""Default titles."""
LABEL_WIDTH = 34
"""Maximum number of characters per line of a label."""
MAX_LABEL_LINES = 6
"""If a text needs more lines, all labels are the letters of the candidates."""
RIGHT_TO_LEFT, END_OF_DIRECTION = "\u2067", "\u2069"
"""The characters RIGHT-TO-LEFT ISOLATE and POP DIRECTIONAL ISOLATE of Unicode."""
LINE_HEIGHT, CANDIDATE_GAP = 14, 12
"""Height of a line of text and distance between candidates, in pixels."""
HAS_HALF_LINE = "slice(datum.label, -1) === '\\n'"


def candidates_chart(
    candidates: pl.DataFrame,
    titles: Mapping[str, str] | None = None,
    width: int = LABEL_WIDTH,
    format_score: Callable[[float], str] = "{:.2f}".format,
) -> alt.LayerChart:
    """Return a dot plot of the candidates of a dialogue with intervals, highest score first.

    The labels are the letters and complete texts of the candidates, or only their letters if a text is long.

    candidates: letter, utterance, score; with judgments also low, high, rank_set, best, worst and
    appearances. A candidate with a null interval has only a dot. `score`, `low` and `high` are in [0, 1].
    format_score: formats the limits of intervals in the tooltip.
    """
    labels_by_name = {**TITLES, **(titles or {})}
    has_judgments = "low" in candidates.columns
    lines = [
        _wrap_label(letter, text, width)
        for letter, text in candidates.select("letter", "utterance").iter_rows()
    ]
    if any(len(label_lines) > MAX_LABEL_LINES for label_lines in lines):
        lines = [[letter] for letter in candidates["letter"]]
    n_lines = max(map(len, lines), default=1)
    labels = [_center_label(label_lines, n_lines) for label_lines in lines]
    frame = candidates.with_columns(pl.Series("label", labels, pl.String))
    if has_judgments:
        frame = _with_tooltip_texts(frame, format_score)
    order = frame.sort("score", descending=True, maintain_order=True)["label"].to_list()
    y = alt.Y("label:N", sort=order, title=None, axis=_multiline_axis(n_lines))
    base = alt.Chart(frame).encode(y=y)
    scale = alt.Scale(domain=[0, 1], nice=False)
    dots = base.mark_point(filled=True, size=110, color=BLUE, opacity=1).encode(
        x=alt.X("score:Q", scale=scale, title=labels_by_name["score"], axis=alt.Axis(tickCount=5)),
        tooltip=_tooltip(has_judgments, labels_by_name),
    )
    layers = [dots]
    has_interval = (
        has_judgments and (frame["low"].is_not_null() & frame["high"].is_not_null()).any()
    )
    if has_interval:  # an empty layer would be an image without an accessible name
        rule = base.transform_filter("isValid(datum.low) && isValid(datum.high)").mark_rule(
            color=GREY, strokeWidth=3
        )
        layers.insert(0, rule.encode(x=alt.X("low:Q", scale=scale), x2="high:Q"))
    chart = alt.LayerChart(layer=layers)
    return chart.properties(height=alt.Step(n_lines * LINE_HEIGHT + CANDIDATE_GAP))


def _multiline_axis(n_lines: int) -> alt.Axis:
    """Return an axis for labels of `_center_label` with at most `n_lines` lines."""
    return alt.Axis(
        labelExpr="split(datum.label, '\\n')",
        labelBaseline={"condition": {"test": HAS_HALF_LINE, "value": "top"}, "value": "middle"},
        labelOffset=-LINE_HEIGHT * (n_lines - 1) / 2,
        labelLimit=400,
        labelLineHeight=LINE_HEIGHT,
        ticks=False,
        domain=False,
    )


def _wrap_label(letter: str, utterance: str, width: int) -> list[str]:
    """Return the letter and the text of a candidate as lines; each has the direction of the text.

    >>> _wrap_label("B", "eins zwei drei vier", 10)
    ['B\xa0 eins', 'zwei drei', 'vier']
    """
    start = f"{letter}\u00a0 "
    first, *others = textwrap.wrap(f"{start}{utterance}", width) or [start]
    texts = [first.removeprefix(start), *others]
    if _is_right_to_left(utterance):
        texts = [f"{RIGHT_TO_LEFT}{text}{END_OF_DIRECTION}" for text in texts]
    return [start + texts[0], *texts[1:]]


def _is_right_to_left(text: str) -> bool:
    """Return whether the first letter with a direction is written from right to left.

    >>> _is_right_to_left("3 نجوم"), _is_right_to_left("OK"), _is_right_to_left("🙂")
    (True, False, False)
    """
    directions = (unicodedata.bidirectional(character) for character in text)
    return next((name for name in directions if name in ("L", "R", "AL")), "L") != "L"


def _center_label(lines: list[str], n_lines: int) -> str:
    """Return a label with empty lines above, so that it is vertically centred in `n_lines` lines.

    Vega aligns labels at the top. A line feed at the end stands for half a line, which the axis adds.
    """
    above, half = divmod(n_lines - len(lines), 2)
    return (
        "\n".join(
            [
                "",
            ]
            * above
            + lines
        )
        + "\n" * half
    )


def _with_tooltip_texts(
    candidates: pl.DataFrame, format_score: Callable[[float], str]
) -> pl.DataFrame:
    """Return the candidates with intervals and counts as texts for the tooltip; missing values are dashes."""
    all_limits = candidates.select("low", "high").iter_rows()
    intervals = [
        "–" if None in limits else " – ".join(map(format_score, limits)) for limits in all_limits
    ]
    counts = pl.col("rank_set", "best", "worst", "appearances").cast(pl.String).fill_null("–")
    return candidates.with_columns(counts, pl.Series("interval", intervals, pl.String))


def _tooltip(has_judgments: bool, titles: Mapping[str, str]) -> list[alt.Tooltip]:
    fields = {"utterance": "candidate", "score": "score"}
    if has_judgments:
        fields |= {name: name for name in ("interval", "rank_set", "best", "worst", "appearances")}
    return [
        alt.Tooltip(field, title=titles[title], format=".2f" if field == "score" else alt.Undefined)
        for field, title in fields.items()
    ]
