"""Items without dialogues, such as words and sentences, as the items of a study."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from bws.records import Judgments, Scores
from bws.scoring import score
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn

NO_TURNS = (Turn("", ""),)


def plain_benchmark(
    name: str,
    judgments: Judgments,
    texts: Mapping[tuple[str, str], str],
    scores: Scores | None = None,
) -> Benchmark:
    """Return the items with their texts and scores in [0, 1]; the dialogue of an item is its group.

    texts: (group, item) or ("", item) -> text; an item without text has its id. scores: by default those of
    counting, of an adaptive study those of a choice model; signed scores in [-1, 1] are rescaled.
    Items without score are left out.
    """
    if scores is None and judgments.is_adaptive:
        scores = score(judgments, "best-worst-logit", scale="counting")
    scored = (score(judgments, scale="unit") if scores is None else scores).with_texts(texts)
    assert scored.texts is not None
    values = scored.score
    if (values < 0).any():
        values = (values + 1) / 2
    grouped = any(scored.groups)
    absolute = (
        np.full(len(scored), np.nan) if scored.absolute_score is None else scored.absolute_score
    )
    items = [
        Item(
            item_id=_item_id(group, item, grouped=grouped),
            dialogue_id=str(group),
            source="",
            domain="",
            turns=NO_TURNS,
            utterance_id=str(item),
            utterance=str(text or item),
            score=float(value),
            absolute_score=None if np.isnan(on_one_scale) else float(on_one_scale),
        )
        for group, item, text, value, on_one_scale in zip(
            scored.groups, scored.items, scored.texts, values, absolute, strict=True
        )
        if not np.isnan(value)
    ]
    return Benchmark(name, tuple(items))


def absolute_limits_of(scores: Scores | None) -> pl.DataFrame | None:
    """Return item_id, low and high of the absolute scores of items as `plain_benchmark` names them."""
    if scores is None or scores.absolute_low is None or scores.absolute_high is None:
        return None
    grouped = any(scores.groups)
    ids = [
        _item_id(group, item, grouped=grouped)
        for group, item in zip(scores.groups, scores.items, strict=True)
    ]
    return pl.DataFrame({"item_id": ids, "low": scores.absolute_low, "high": scores.absolute_high})


def _item_id(group: object, item: object, *, grouped: bool) -> str:
    return f"{group}/{item}" if grouped else str(item)
