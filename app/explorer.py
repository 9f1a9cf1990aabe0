"""The score explorer's page; `giccs-explore` starts it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import polars as pl
import streamlit as st

from app.views import candidates_chart, histogram, models_chart, predictions_chart
from bws.problems import InputError
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.results import Result, Store


@st.cache_data(show_spinner=False)
def items_of(data: str) -> tuple[Benchmark, pl.DataFrame]:
    """Return the benchmark and a row an item."""
    benchmark = read_benchmark(data)
    rows = [
        {
            "item_id": item.item_id,
            "dialogue": item.dialogue_id,
            "domain": item.domain,
            "turns": item.n_turns,
            "last turn": item.last_turn,
            "utterance": item.utterance,
            "score": item.score,
        }
        for item in benchmark.items
    ]
    return benchmark, pl.DataFrame(rows)


def overview(items: pl.DataFrame) -> None:
    """Show how the scores are distributed, and how many items each domain and length has."""
    st.altair_chart(histogram(items["score"]), width="stretch")
    sizes = items.group_by("domain", "turns").agg(
        pl.col("dialogue").n_unique().alias("dialogues"),
        pl.len().alias("items"),
        pl.col("score").mean().round(3).alias("mean score"),
    )
    st.dataframe(sizes.sort("domain", "turns"), hide_index=True)


def dialogues(benchmark: Benchmark, items: pl.DataFrame) -> None:
    """Show one dialogue as a chat, its last turn marked, and its candidates by score."""
    domain = st.selectbox("Domain", ["all", *sorted(items["domain"].unique())])
    chosen = items if domain == "all" else items.filter(pl.col("domain") == domain)
    dialogue: str = st.selectbox("Dialogue", chosen["dialogue"].unique(maintain_order=True))
    turns = next(item.turns for item in benchmark.items if item.dialogue_id == dialogue)
    for place, turn in enumerate(turns, start=1):
        with st.chat_message("human" if turn.speaker == "user" else "assistant"):
            st.text(f"{turn.text}   ◀ last turn" if place == len(turns) else turn.text)
    own = items.filter(pl.col("dialogue") == dialogue).select("utterance", "score")
    st.altair_chart(candidates_chart(own), width="stretch")
    st.dataframe(own.sort("score", descending=True), hide_index=True)


def models(store: Store | None, benchmark: Benchmark, items: pl.DataFrame) -> None:
    """Show the models' correlations with the scores, and one model's predictions."""
    results = of_benchmark(store, benchmark)
    if store is None or not results:
        st.info(
            "No results for this benchmark. Make some: giccs-eval MODEL -o results, then --results."
        )
        return
    estimates = [(name, result.metrics["spearman"]) for name, result in results.items()]
    frame = pl.DataFrame(
        [{"model": name, "value": e.value, "low": e.low, "high": e.high} for name, e in estimates]
    )
    st.altair_chart(models_chart(frame), width="stretch")
    model = st.selectbox("Model", list(results))
    predicted = store.predictions(results[model]).select("item_id", "prediction")
    st.altair_chart(predictions_chart(items.join(predicted, on="item_id")), width="stretch")


def of_benchmark(store: Store | None, benchmark: Benchmark) -> dict[str, Result]:
    """Return the pairwise results on exactly this benchmark, by model and history."""
    if store is None:
        return {}
    return {
        f"{result.model} ({result.signature['history']} history)": result
        for result in store.results()
        if result.task == "pairwise-sts" and result.signature["data"] == benchmark.fingerprint
    }


def page(arguments: Sequence[str] | None = None) -> None:
    """Lay out the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=SAMPLE)
    parser.add_argument("--results")
    chosen = parser.parse_args(arguments)
    st.set_page_config(page_title="giccs explorer", layout="wide")
    st.title("giccs explorer")
    try:
        benchmark, items = items_of(chosen.data)
        store = Store(chosen.results) if chosen.results else None
        if benchmark.name == SAMPLE:
            st.caption("giccs-sample: its scores come from simulated annotators.")
        tabs = st.tabs(["Overview", "Dialogues", "Models"])
        with tabs[0]:
            overview(items)
        with tabs[1]:
            dialogues(benchmark, items)
        with tabs[2]:
            models(store, benchmark, items)
    except InputError as error:
        for problem in error.problems:
            st.error(str(problem))


if __name__ == "__main__":
    page()
