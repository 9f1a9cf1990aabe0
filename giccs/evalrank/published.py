"""How were the published sets of EvalRank built, and how close does a build come to them?

Both presets read a folder in which things lie as in the authors' release: ``word_similarity`` and
``word_evalrank``, ``sent_similarity`` and ``sent_evalrank``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import read_text
from giccs.evalrank.building import PAIRS, Built, Rules
from giccs.evalrank.similarity_data import SimilaritySet, read_similarity

__all__ = ["PRESETS", "Preset", "compared", "sources"]

WORD_SETS = (
    "WS-353-ALL", "WS-353-SIM", "WS-353-REL", "MC-30", "RG-65", "RW-STANFORD", "MEN-TR-3k", "MTurk-287",
    "MTurk-771", "YP-130", "SIMLEX-999", "VERB-143", "SimVerb-3500",
)  # fmt: skip
"""In the order that the published background shows; MC-30 may stand anywhere after the first."""


@dataclass(frozen=True)
class Preset:
    """How one published set was built."""

    rules: Rules
    sources: tuple[str, ...]
    """Files or folders of rated pairs, a set each, in order."""
    frequent: str
    """File of frequent words; empty where there is none."""
    published: str
    """Folder with what was published."""


PRESETS: Mapping[str, Preset] = {
    "words": Preset(
        Rules(lowercase=True, sort=True),
        tuple(f"word_similarity/EN-{name}.txt" for name in WORD_SETS),
        "word_evalrank/wiki_vocab.txt",
        "word_evalrank",
    ),
    "sentences": Preset(
        Rules(identical=True),
        ("sent_similarity/STS/STSBenchmark", "sent_similarity/STR"),
        "",
        "sent_evalrank",
    ),
}


def sources(preset: Preset, folder: str) -> tuple[list[SimilaritySet], list[Problem]]:
    """Return the sets of a preset that are in the folder, and a warning for each that is not.

    Raises InputError where none is there, or one cannot be read.
    """
    sets: list[SimilaritySet] = []
    missing: list[Problem] = []
    for source in preset.sources:
        place = Path(folder, source)
        if place.exists():
            sets += read_similarity(place).sets
        else:
            message = "is not there; the set is built without it, and is not the published one"
            missing.append(Problem(str(place), None, message))
    if not sets:
        names = ", ".join(preset.sources)
        raise InputError(Problem(folder, None, f"holds none of {names}"))
    return sets, missing


def compared(built: Built, preset: Preset, folder: str) -> dict[str, dict[str, Any]]:
    """Compare each file with the published one, where that is in the folder: lines as sets, and the bytes."""
    place = Path(folder, preset.published)
    found = {}
    for name, lines in built.files.items():
        pattern = f"{PAIRS.removesuffix('.txt')}*.txt" if name == PAIRS else name
        for path in sorted(place.glob(pattern)):
            found[name] = _difference(lines, read_text(path), str(path))
    return found


def _difference(lines: Sequence[str], text: str, path: str) -> dict[str, Any]:
    ours, theirs = set(lines), set(text.rstrip("\n").split("\n"))
    return {
        "published": path,
        "here": len(ours),
        "there": len(theirs),
        "equal": len(ours & theirs),
        "only_here": len(ours - theirs),
        "only_there": len(theirs - ours),
        "same_order": list(lines) == text.rstrip("\n").split("\n")[: len(lines)],
        "same_bytes": "".join(f"{line}\n" for line in lines) == text,
    }
