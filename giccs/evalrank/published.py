"""Presets that rebuild the published ranking data of EvalRank, and comparison with the published files.

Both presets read a folder with the layout of the authors' release: ``word_similarity`` and ``word_evalrank``,
``sent_similarity`` and ``sent_evalrank``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem
from bws.base.text import read_text
from giccs.evalrank.building import PAIRS_FILE, BuildRules, RankingFiles
from giccs.evalrank.similarity_data import SimilaritySet, read_similarity

WORD_SETS = (
    "WS-353-ALL", "WS-353-SIM", "WS-353-REL", "MC-30", "RG-65", "RW-STANFORD", "MEN-TR-3k", "MTurk-287",
    "MTurk-771", "YP-130", "SIMLEX-999", "VERB-143", "SimVerb-3500",
)  # fmt: skip
"""Word sets in the order of the published background; MC-30 may have any position after the first."""


@dataclass(frozen=True)
class Preset:
    """Rules and sources of a published set."""

    rules: BuildRules
    sources: tuple[str, ...]
    """Files or folders of rated pairs, one per set, in order."""
    frequent: str
    """File of frequent words; empty if not used."""
    published: str
    """Folder of the published files."""


PRESETS: Mapping[str, Preset] = {
    "words": Preset(
        BuildRules(lowercase=True, sort=True),
        tuple(f"word_similarity/EN-{name}.txt" for name in WORD_SETS),
        "word_evalrank/wiki_vocab.txt",
        "word_evalrank",
    ),
    "sentences": Preset(
        BuildRules(identical=True),
        ("sent_similarity/STS/STSBenchmark", "sent_similarity/STR"),
        "",
        "sent_evalrank",
    ),
}


def read_sources(preset: Preset, folder: str) -> tuple[list[SimilaritySet], list[Problem]]:
    """Return the sets of a preset that exist in the folder, and a warning for each missing set.

    Raises InputError if all sets are missing or a set is invalid.
    """
    sets: list[SimilaritySet] = []
    missing: list[Problem] = []
    for source in preset.sources:
        path = Path(folder, source)
        if path.exists():
            sets += read_similarity(path).sets
        else:
            message = (
                "missing; the data are built without this source and differ from the published data"
            )
            missing.append(Problem(str(path), None, message))
    if not sets:
        names = ", ".join(preset.sources)
        raise InputError(Problem(folder, None, f"no sources; expected at least one of {names}"))
    return sets, missing


def compare_with_published(
    built: RankingFiles, preset: Preset, folder: str
) -> dict[str, dict[str, Any]]:
    """Compare the lines and bytes of each file with the published file, if that exists in the folder."""
    published_folder = Path(folder, preset.published)
    differences = {}
    for name, lines in built.files.items():
        pattern = f"{PAIRS_FILE.removesuffix('.txt')}*.txt" if name == PAIRS_FILE else name
        for path in sorted(published_folder.glob(pattern)):
            differences[name] = _compare_lines(lines, read_text(path), str(path))
    return differences


def _compare_lines(lines: Sequence[str], text: str, path: str) -> dict[str, Any]:
    built_lines, published_lines = set(lines), set(text.rstrip("\n").split("\n"))
    return {
        "published": path,
        "here": len(built_lines),
        "there": len(published_lines),
        "equal": len(built_lines & published_lines),
        "only_here": len(built_lines - published_lines),
        "only_there": len(published_lines - built_lines),
        "same_order": list(lines) == text.rstrip("\n").split("\n")[: len(lines)],
        "same_bytes": "".join(f"{line}\n" for line in lines) == text,
    }
