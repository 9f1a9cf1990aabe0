"""Descriptive statistics of dialogues: counts, lengths and lexical richness (paper Table 2).

The printed RTTR and lemma columns of the paper contradict its definitions (section 3.5): 377 tokens with an
RTTR of 3.04 would have 59 types, and 21 lemmas. This module follows the definitions.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

from bws.base.notes import note
from bws.base.progress import tracked
from bws.base.tables import Column, ResultTable
from giccs.benchmark.items import Dialogue, Item
from giccs.description.lemmas import Lemmatiser
from giccs.progress import Progress

log = logging.getLogger(__name__)

MTLD_THRESHOLD = 0.72
MTLD_CHOICES = ("strict", "lexicalrichness")
"""MTLD of a text without a complete factor: undefined, or the value of the library (paper Table 2)."""
MTLD_STABLE_WORDS = 100
"""Number of words from which MTLD is stable: Koizumi (2012), Vocabulary Learning and Instruction 1(1)."""
GROUPINGS: Mapping[str, Callable[[Dialogue | Item], Any]] = {
    "n_turns": lambda dialogue: len(dialogue.turns),
    "domain": lambda dialogue: dialogue.domain,
    "original_domain": lambda dialogue: dialogue.original_domain,
    "source": lambda dialogue: dialogue.source,
}
"""Attributes by which dialogues can be grouped."""
TABLE_2 = ("n_turns", "domain")
GROUPING_COLUMNS = {
    "n_turns": Column("n_turns", "Dialogue turns", unit="-turn"),
    "domain": Column("domain", "Domain"),
    "original_domain": Column("original_domain", "Original domain"),
    "source": Column("source", "Source"),
}
COLUMNS = (
    Column("dialogues", "Dialogues", source="dialogues"),
    Column("rttr", "RTTR", ".2f", source="rttr"),
    Column("mtld", "MTLD", ".2f", source="mtld"),
    Column("tokens", "Tokens", source="tokens"),
    Column("lemmas", "Lemma", source="lemmas"),
    Column("mean_turn_length", "Average turn length", ".2f", source="mean_turn_length"),
    Column("turns", "Turns", source="turns", is_detail=True),
    Column("reasons", "Reasons", is_detail=True),
)
"""Columns of Table 2, in its order; the number of dialogues is added."""


@dataclass(frozen=True, slots=True)
class Richness:
    """Lexical richness of a text; NaN has a reason."""

    rttr: float
    """Root type-token ratio: types / sqrt(words); increases with the length of the text."""
    mtld: float
    """Mean number of consecutive words with types / words above 0.72, forwards and backwards."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons for NaN and caveats, by the name of the number."""


@dataclass(frozen=True, slots=True)
class Description:
    """A row of Table 2: statistics of a group of dialogues, without candidates."""

    by: Mapping[str, Any]
    """Attributes shared by the group's dialogues; empty for all dialogues."""
    dialogues: int
    turns: int
    tokens: int
    """Number of tokens, separated by white space (section 3.5)."""
    rttr: float
    mtld: float
    lemmas: int
    """Number of distinct lemmas of the words, see `Lemmatiser.lemmas`."""
    mean_turn_length: float
    """Tokens per turn."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons for NaN and caveats, by the name of the number."""

    def document(self) -> dict[str, Any]:
        """Return the description as a dict, with reasons only if there are any."""
        document = asdict(self)
        if not self.reasons:
            del document["reasons"]
        return document


def statistics_table(groups: Sequence[Description], by: Sequence[str] = TABLE_2) -> ResultTable:
    """Return Table 2 with one row per group; the notes are the reasons. by: names of the grouping
    attributes."""
    columns = [Column("part", parts=[GROUPING_COLUMNS[name] for name in by]), *COLUMNS]
    rows = [
        (
            group.by,
            *(getattr(group, column.key) for column in COLUMNS[:-1]),
            "; ".join(f"{name}: {reason}" for name, reason in group.reasons.items()),
        )
        for group in groups
    ]
    sources = [f"/groups/{n}" for n in range(len(groups))]
    title = "Descriptive statistics (GiCCS, Table 2)"
    table = ResultTable(columns, rows, title=title, sources=sources)
    names = [" ".join(filter(None, texts[: len(by)])) for texts in table.text_rows()]
    titles = {column.key: column.title for column in COLUMNS}
    notes = [
        f"{titles[key]} of {name}: {reason}."
        for name, group in zip(names, groups, strict=True)
        for key, reason in group.reasons.items()
    ]
    return replace(table, notes=notes)


def describe(
    dialogues: Iterable[Dialogue | Item],
    lemmatiser: Lemmatiser,
    by: Sequence[str] = TABLE_2,
    progress: Progress = tracked,
    mtld: str = "strict",
) -> list[Description]:
    """Describe groups of dialogues, sorted by their attributes, and all dialogues last.

    `dialogues` may be the items of a benchmark: each dialogue id counts once. `by` lists some of `GROUPINGS`;
    without any, only all dialogues are described. `mtld` is one of `MTLD_CHOICES`, see `richness`. Raises
    ValueError for other values, and without dialogues.
    """
    if unknown := [name for name in by if name not in GROUPINGS]:
        raise ValueError(f"unknown by {unknown[0]!r}; expected one of {', '.join(GROUPINGS)}")
    unique_dialogues = list({dialogue.dialogue_id: dialogue for dialogue in dialogues}.values())
    if not unique_dialogues:
        raise ValueError("there are no dialogues to describe")
    log.debug("lemmatising %d dialogues", len(unique_dialogues))
    lemmas = _lemmas(unique_dialogues, lemmatiser, progress)
    groups: dict[tuple[Any, ...], list[Dialogue | Item]] = {}
    for dialogue in unique_dialogues:
        groups.setdefault(tuple(GROUPINGS[name](dialogue) for name in by), []).append(dialogue)
    descriptions = [
        _describe_group(dict(zip(by, key, strict=True)), groups[key], lemmas, mtld)
        for key in sorted(groups)
    ]
    return [
        *(description for description in descriptions if description.by),
        _describe_group({}, unique_dialogues, lemmas, mtld),
    ]


def richness(text: str, mtld: str = "strict") -> Richness:
    """Measure richness with LexicalRichness, on its own words: lower case, no digits, no ASCII punctuation.

    MTLD (McCarthy and Jarvis 2010, Behavior Research Methods 42(2), p. 384 f.) splits a text where types /
    words falls to 0.72. Each segment is a factor, and MTLD is words / factors. The remainder counts as a
    partial factor of (1 - ratio) / (1 - 0.72). If no factor is complete in either direction, the value would
    be an extrapolation from this partial factor only: it can exceed the text's length many times, and is a
    division by zero if all words are different (the library then returns the text's length). MTLD is
    therefore NaN if a pass in either direction completes no factor, unless `mtld` is ``lexicalrichness``:
    then it is the library's value, as in the paper's Table 2, with a remark. Values for fewer than 100 words
    have a remark, because they are not stable (Koizumi 2012).

    Raises ValueError if `mtld` is not one of `MTLD_CHOICES`.
    """
    if mtld not in MTLD_CHOICES:
        raise ValueError(f"unknown mtld {mtld!r}; expected one of {', '.join(MTLD_CHOICES)}")
    from lexicalrichness import LexicalRichness

    lexical = LexicalRichness(text)
    words: list[str] = lexical.wordlist
    if not words:
        reason = note("the text has no words")
        return Richness(math.nan, math.nan, {"rttr": reason, "mtld": reason})
    incomplete = _incomplete_passes(words)
    if incomplete and mtld == "strict":
        reason = note(
            "too short: read {order}, its {n:d} words ({types:d} different) complete no factor",
            order=incomplete,
            n=len(words),
            types=lexical.terms,
        )
        return Richness(lexical.rttr, math.nan, {"mtld": reason})
    remarks = []
    if incomplete:
        remarks.append(
            note(
                "value of LexicalRichness; read {order}, its {n:d} words ({types:d} different) complete no "
                "factor",
                order=incomplete,
                n=len(words),
                types=lexical.terms,
            )
        )
    if len(words) < MTLD_STABLE_WORDS:
        remarks.append(
            note(
                "of {n:d} words only; MTLD is stable from {enough:d} on (Koizumi 2012)",
                n=len(words),
                enough=MTLD_STABLE_WORDS,
            )
        )
    value = lexical.mtld(threshold=MTLD_THRESHOLD)
    return Richness(lexical.rttr, value, {"mtld": "; ".join(remarks)} if remarks else {})


def _incomplete_passes(words: Sequence[str]) -> str:
    """Return the passes over a text that complete no factor: ``forwards``, ``backwards`` or both."""
    passes = {"forwards": words, "backwards": words[::-1]}
    return " and ".join(
        name for name, words_in_order in passes.items() if not _completes_factor(words_in_order)
    )


def _completes_factor(words: Iterable[str]) -> bool:
    types: set[str] = set()
    for n_words, word in enumerate(words, start=1):
        types.add(word)
        if len(types) / n_words <= MTLD_THRESHOLD:
            return True
    return False


def _lemmas(
    dialogues: Sequence[Dialogue | Item], lemmatiser: Lemmatiser, progress: Progress
) -> dict[str, set[str]]:
    """Return each dialogue's distinct lemmas, by its id."""
    turn_lemmas = lemmatiser.lemmas(turn.text for dialogue in dialogues for turn in dialogue.turns)
    return {
        dialogue.dialogue_id: set().union(*islice(turn_lemmas, len(dialogue.turns)))
        for dialogue in progress(dialogues, "lemmas", len(dialogues))
    }


def _describe_group(
    by: Mapping[str, Any],
    group: Sequence[Dialogue | Item],
    lemmas: Mapping[str, set[str]],
    mtld: str,
) -> Description:
    turns = [turn.text for dialogue in group for turn in dialogue.turns]
    tokens = sum(len(turn.split()) for turn in turns)
    measures = richness("\n".join(turns), mtld)
    return Description(
        by=by,
        dialogues=len(group),
        turns=len(turns),
        tokens=tokens,
        rttr=measures.rttr,
        mtld=measures.mtld,
        lemmas=len(set().union(*(lemmas[dialogue.dialogue_id] for dialogue in group))),
        mean_turn_length=tokens / len(turns),
        reasons=measures.reasons,
    )
