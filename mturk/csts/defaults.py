"""The settings of studies of sentence pairs, where they are not those of a study of tuples."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

__all__ = ["COMMENTS", "DEFAULTS"]

ALIKE: Mapping[str, Any] = {
    "language_check": False,
    "countries": (),
}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "conditions": {
        **ALIKE,
        "reward": Decimal("1.20"),
        "assignments": 1,
        "dialogues_per_hit": 3,
        "expected_seconds": 240,
        "duration": 3_600,
    },
    "verification": {
        **ALIKE,
        "reward": Decimal("0.75"),
        "assignments": 3,
        "dialogues_per_hit": 10,
        "expected_seconds": 150,
    },
}
"""Kind -> its settings. Section 3 of the paper has three annotators where agreement is measured."""

COMMENTS: Mapping[str, str] = {
    "dialogue_language": 'Language of the sentences, a BCP 47 tag: "en", "de", "en-GB".\n'
    "By default that of --language.",
    "language": "Language of the page's own texts. By default that of the sentences.",
    "dialogues_per_hit": "Sentence pairs on a page, drawn at random.",
    "countries": "Where workers are, as they say themselves. It is no test of their language;\n"
    "`mturk-hits qualify` makes one. [] for anywhere.",
}
