"""Items without dialogues, such as words and sentences, as the items of a study."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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
    items = [
        Item(
            item_id=f"{group}/{item}" if grouped else str(item),
            dialogue_id=str(group),
            source="",
            domain="",
            turns=NO_TURNS,
            utterance_id=str(item),
            utterance=str(text or item),
            score=float(value),
        )
        for group, item, text, value in zip(
            scored.groups, scored.items, scored.texts, values, strict=True
        )
        if not np.isnan(value)
    ]
    return Benchmark(name, tuple(items))
