"""The section of the report that shows the dialogues with their candidates and scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from giccs.benchmark.items import Item
from giccs_app.report.content import Conversation, Section, part_label

MAX_DIALOGUES = 200
"""Maximum number of dialogues on the page."""


def reading_section(items: Sequence[Item], benchmark_file: str) -> Section:
    """Return the first `MAX_DIALOGUES` dialogues, in the order of the benchmark, each with its candidates.

    Candidates are sorted by score, the highest first.
    """
    grouped = [list(group) for _, group in groupby(items, lambda item: item.dialogue_id)]
    text = ["Each dialogue opens on a click. Candidates are compared with the last turn."]
    if len(grouped) > MAX_DIALOGUES:
        text += [
            f"The first {MAX_DIALOGUES} of {len(grouped)} dialogues; all are in {benchmark_file}."
        ]
    conversations = [_conversation(group) for group in grouped[:MAX_DIALOGUES]]
    return Section("reading", "All dialogues", text, conversations=conversations)


def _conversation(items: Sequence[Item]) -> Conversation:
    first = items[0]
    attributes = {"domain": first.domain, "source": first.source, "n_turns": first.n_turns}
    return Conversation(
        f"{first.dialogue_id}: {part_label(attributes)}",
        [(turn.speaker, turn.text) for turn in first.turns],
        [
            (f"{item.score:.2f}", item.utterance)
            for item in sorted(items, key=lambda item: -item.score)
        ],
        first.language or "",
    )
