"""The settings of studies of sentence pairs, where they are not those of a study of tuples."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

__all__ = ["COMMENTS", "DEFAULTS"]

ALIKE: Mapping[str, Any] = {
    "language": "en",
    "dialogue_language": "en",
    "language_check": False,
    "countries": (),
}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "conditions": {
        **ALIKE,
        "title": "Compare sentences: name what they share and what they differ in",
        "description": (
            "Read a few pairs of sentences. For each pair write one short phrase that names something in "
            "which the two are alike, and one that names something in which they are not."
        ),
        "keywords": "English, sentences, writing, similarity, comparison",
        "reward": Decimal("1.20"),
        "assignments": 1,
        "dialogues_per_hit": 3,
        "expected_seconds": 240,
        "duration": 3_600,
    },
    "verification": {
        **ALIKE,
        "title": "Compare sentences: how alike are they in one respect?",
        "description": (
            "Read a few pairs of sentences, each with a phrase that names one respect. Say whether the "
            "phrase fits both sentences, and how alike they are in that respect alone."
        ),
        "keywords": "English, sentences, rating, similarity, comparison",
        "reward": Decimal("0.75"),
        "assignments": 3,
        "dialogues_per_hit": 10,
        "expected_seconds": 150,
    },
}
"""Kind -> its settings. Section 3 of the paper has three annotators where agreement is measured."""

COMMENTS: Mapping[str, str] = {
    "dialogue_language": 'Language of the sentences, for screen readers: "en", "de", "en-GB".',
    "language": 'Language of the page\'s own texts: "de" or "en". The sentences stay as they are.',
    "dialogues_per_hit": "Sentence pairs on a page, drawn at random.",
    "countries": "Where workers are, as they say themselves. It is no test of their English;\n"
    "`mturk-hits qualify` makes one. [] for anywhere.",
}
