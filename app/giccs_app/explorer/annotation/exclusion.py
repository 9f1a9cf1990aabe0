"""What changes without some annotators: reliability and scores, and a file for ``--exclude``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl
import streamlit as st

from bws.base.charts import BLUE
from bws.base.problems import InputError
from bws.records import Judgments
from bws.split_half import Split
from bws.study_charts import MAX_DRAWN_ITEMS
from giccs_app.explorer import links
from giccs_app.explorer.annotation.history_section import items_by_index
from giccs_app.explorer.display import show_chart, show_problems, show_selected_item
from giccs_app.explorer.labels import format_number, say
from giccs_app.explorer.study import Study
from giccs_app.explorer.theme import GREY

EXCLUDED = "excluded"
"""Parameter of the link."""
FILE = "excluded-annotators.txt"


@dataclass(frozen=True)
class Comparison:
    """Reliability and scores with and without some annotators."""

    split: Split
    """The split of the remaining judgments that is usual for them, and is used for both numbers."""
    reliability: tuple[float, float]
    """Split-half reliability, Spearman–Brown corrected, of all judgments and of the remaining ones; NaN if
    undefined."""
    scores: pl.DataFrame
    """item, score (of all judgments), without; the highest score first."""


def show_exclusion(
    study: Study, judgments: Judgments, key: str, flagged: Sequence[str], names: Mapping[str, str]
) -> None:
    """Let annotators be selected, and show the study without them.

    key: changes with the judgments. flagged: annotators with flags. names: displayed name -> name in the
    file, if they differ.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        excluded = links.multiselect(
            EXCLUDED, say("annotation.exclude"), judgments.annotators.tolist(), width="stretch",
            placeholder=say("page.choose"),
        )  # fmt: skip
        if flagged:
            label = say("annotation.exclude_flagged", n=len(flagged))
            st.button(label, on_click=links.select, args=(EXCLUDED, flagged))
    if not excluded:
        return
    try:
        with st.spinner(say("annotation.computing")):
            comparison = _comparison(key, judgments, tuple(excluded))
    except InputError as error:
        show_problems(say("annotation.no_exclusion"), error.problems)
        return
    _show_numbers(comparison)
    st.caption(say(f"annotation.split_{comparison.split}"))
    titles = {
        name: say(f"annotation.exclusion_{name}") for name in ("rank", "score", "all", "without")
    }
    scores = _with_item_ids(study, judgments, key, comparison.scores)
    chart = _ghost_chart(scores, titles)
    show_chart(chart, "scores-without", comparison.scores, select={"item": "item_id"})
    show_selected_item(study, links.value("item"), "without")
    lines = "".join(f"{names.get(name, name)}\n" for name in excluded)
    st.download_button(say("annotation.exclusion_file"), lines, FILE, icon=":material/download:")
    st.caption(say("annotation.exclusion_said", file=FILE))


def _with_item_ids(
    study: Study, judgments: Judgments, key: str, scores: pl.DataFrame
) -> pl.DataFrame:
    """Add the column item_id, null for items that the study does not have."""
    items, keys = items_by_index(key, study.key, study, judgments), judgments.tuples.item_keys
    rows = [(*keys[index], row["item_id"]) for index, row in items.items()]
    schema = dict.fromkeys(("group", "item", "item_id"), pl.String)
    ids = pl.DataFrame(rows, schema=schema, orient="row")
    return scores.join(ids, on=["group", "item"], how="left", maintain_order="left")


def _show_numbers(comparison: Comparison) -> None:
    before, after = (
        "–" if math.isnan(value) else format_number(value, ".3f")
        for value in comparison.reliability
    )
    change = (comparison.scores["without"] - comparison.scores["score"]).abs().fill_nan(None).max()
    largest = "–" if change is None else format_number(float(str(change)), ".3f")
    with st.container(horizontal=True, gap="large"):
        st.metric(say("annotation.exclusion_reliability"), before, width="content")
        st.metric(say("annotation.exclusion_reliability_without"), after, width="content")
        st.metric(say("annotation.exclusion_change"), largest, width="content")


@st.cache_resource(show_spinner=False, max_entries=8)
def _comparison(key: str, _judgments: Judgments, excluded: tuple[str, ...]) -> Comparison:
    return compare_without(_judgments, excluded)


def compare_without(judgments: Judgments, excluded: Sequence[str]) -> Comparison:
    """Return reliability and scores with and without some annotators.

    Raises InputError if no judgment remains.
    """
    from bws.files import without_annotators
    from bws.split_half import usual_split

    remaining = without_annotators(judgments, excluded)
    without = _scores(remaining).rename({"score": "without"})
    scores = _scores(judgments).join(without, on=["group", "item"], how="left")
    scores = scores.sort("score", descending=True, nulls_last=True, maintain_order=True)
    split = usual_split(remaining)
    values = _reliability(judgments, split), _reliability(remaining, split)
    return Comparison(split, values, scores)


def _scores(judgments: Judgments) -> pl.DataFrame:
    from bws.scoring import score

    method = "best-worst-logit" if judgments.is_adaptive else "counting"
    scores = score(judgments, method)
    return pl.DataFrame(
        {"group": scores.groups.tolist(), "item": scores.items.tolist(), "score": scores.score}
    )


def _reliability(judgments: Judgments, split: Split) -> float:
    from bws.split_half import reliability

    if judgments.is_adaptive:
        return math.nan
    try:
        result = reliability(judgments, split=split)
    except ValueError:
        return math.nan
    return result.groups[0].pearson.spearman_brown


def _ghost_chart(scores: pl.DataFrame, titles: Mapping[str, str]) -> alt.LayerChart:
    """Return the scores of all judgments as a grey line, and those without the annotators as points."""
    drawn = scores.with_row_index("rank", 1).filter(pl.col("score").is_not_nan())
    positions = np.linspace(0, len(drawn) - 1, min(MAX_DRAWN_ITEMS, len(drawn))).round().astype(int)
    base = alt.Chart(drawn[np.unique(positions)]).encode(
        x=alt.X("rank:Q", title=titles["rank"]),
        tooltip=[
            alt.Tooltip("item:N"),
            alt.Tooltip("score:Q", title=titles["all"], format=".3f"),
            alt.Tooltip("without:Q", title=titles["without"], format=".3f"),
        ],
    )
    y = alt.Y("score:Q", title=titles["score"])
    line = base.mark_line(color=GREY, strokeWidth=3, opacity=0.6).encode(y=y)
    points = base.mark_point(color=BLUE, filled=True, size=18, opacity=1)
    return (line + points.encode(y="without:Q")).properties(height=260)
