"""Reading, validation, identification and writing of benchmarks."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

from bws.base.file_kinds import remark
from bws.base.frames import FrameLibrary, Source, data_frame, frame_records, is_path
from bws.base.problems import InputError, Location, Problem, suggestion
from bws.base.rows import json_lines_text
from bws.base.text import display_name, write_atomic
from bws.files.dialogue_texts import equal_form
from bws.files.schema import (
    ANY_TEXT,
    OPTIONAL_TEXT,
    TEXT,
    Field,
    LocatedRecord,
    Row,
    Unique,
    json_rows,
    normal_ids,
    records,
)  # fmt: skip
from giccs.benchmark.assemble import repeated_dialogue_warnings
from giccs.benchmark.dialogue_tuples import dialogues_of_items
from giccs.benchmark.fields import ABSOLUTE_SCORE, ID, LANGUAGE, SCORE, TURNS, turn_problems
from giccs.benchmark.items import ABSOLUTE_SUFFIX, TARGETS, Item
from giccs.benchmark.languages import base_language, check_language, single_language
from giccs.benchmark.parquet import parquet_rows
from giccs.benchmark.terms import UNKNOWN_TERMS, Terms, terms_of_card

log = logging.getLogger(__name__)

SAMPLE = "giccs-sample"
SAMPLES: Mapping[str, str] = {SAMPLE: "", "giccs-sample-en": "en"}
"""Name of a benchmark in the package -> its folder in `giccs.data`."""
SAMPLE_TERMS = Terms(
    "cc-by-4.0",
    "https://creativecommons.org/licenses/by/4.0/",
    "simulated",
    "giccs-sample, the giccs developers",
)
CARD_FILE = "README.md"
PUBLISHED_FILE = "data/test-00000-of-00001.parquet"
"""File of the items in a folder written by giccs card."""
FIELDS: Mapping[str, Field[Any]] = {
    "item_id": ID,
    "dialogue_id": ID,
    "source": ANY_TEXT,
    "domain": ANY_TEXT,
    "turns": TURNS,
    "utterance_id": ID,
    "utterance": TEXT,
    "score": SCORE,
    "original_domain": OPTIONAL_TEXT,
    "language": LANGUAGE,
    "absolute_score": ABSOLUTE_SCORE,
}
KNOWN_KEYS = frozenset([*FIELDS, "n_turns"])
DERIVED_KEYS = ("item_id", "dialogue_id", "utterance_id", "source", "domain")
"""Keys that may be absent from all items: ids are derived from the texts, other values are empty."""
UNIQUE_FIELDS: Sequence[Unique[Item]] = (
    Unique("item_id", lambda item: item.item_id, normal_ids),
    Unique(
        "utterance_id in its dialogue",
        lambda item: (item.dialogue_id, item.utterance_id),
        normal_ids,
    ),
    Unique("utterance in its dialogue", lambda item: (item.dialogue_id, item.utterance.strip())),
)


@dataclass(frozen=True)
class Benchmark:
    """Scored items; items of a dialogue share its turns."""

    name: str
    """Its name: a path, a hub id, or a name in `SAMPLES`."""
    items: tuple[Item, ...]
    warnings: tuple[Problem, ...] = ()
    """Problems that do not prevent use."""
    terms: Terms = UNKNOWN_TERMS
    """Licence and annotators, if known."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, independent of the order of lines and the formatting of the JSON.

        The language is excluded: it can be derived from the texts, so that the digest is unchanged if it is
        stated later. Effects of the language on a result, such as the prompt template, are in the result's
        signature. Absolute scores are excluded as well; `with_target` makes them the scores.
        """
        return _digest(map(_canonical, self.items))

    @cached_property
    def inputs_fingerprint(self) -> str:
        """SHA-256 of the content without the scores: what predictions can depend on."""
        return _digest(_canonical(item, without=("score", "absolute_score")) for item in self.items)

    @cached_property
    def dialogue_ids(self) -> tuple[str, ...]:
        """The distinct dialogues, in the order of the file."""
        return tuple(dict.fromkeys(item.dialogue_id for item in self.items))

    def first(self, dialogues: int) -> Benchmark:
        """Return the benchmark of the first `dialogues` dialogues."""
        dialogue_ids = set(self.dialogue_ids[:dialogues])
        items = tuple(item for item in self.items if item.dialogue_id in dialogue_ids)
        return replace(self, items=items)

    def with_target(self, target: str) -> Benchmark:
        """Return the benchmark whose scores are those of a name in `TARGETS`.

        Raises InputError if its items have no absolute scores.
        """
        if target not in TARGETS:
            raise ValueError(f"unknown target {target!r}; expected {' or '.join(TARGETS)}")
        if target == "score":
            return self
        items = tuple(
            replace(item, score=item.absolute_score, absolute_score=None)
            for item in self.items
            if item.absolute_score is not None
        )
        if len(items) < len(self.items):
            message = (
                "its items have no absolute_score; giccs score --absolute computes absolute scores from "
                "answers to anchors, and giccs build adds them to a benchmark"
            )
            raise InputError(Problem(self.name, None, message))
        return replace(self, name=f"{self.name}{ABSOLUTE_SUFFIX}", items=items)

    def in_language(self, option: str | None) -> Benchmark:
        """Return the benchmark whose items without a language have that of ``--language``.

        Raises InputError if an item states another language.
        """
        if not check_language(self.items, self.name, option)[None] or not option:
            return self
        items = tuple(
            item if item.language else replace(item, language=option) for item in self.items
        )
        return replace(self, items=items)

    def language_parameters(self, option: str | None) -> dict[str, Any]:
        """Return the languages, and the digest of that of each item, if there are several; else nothing.

        They belong to the signature of a result that depends on them. Raises InputError as `in_language`.
        """
        pairs = sorted(
            (item.item_id, base_language(item.language))
            for item in self.in_language(option).items
            if item.language
        )
        languages = sorted({language for _, language in pairs})
        if len(languages) < 2:
            return {}
        digest = hashlib.sha256(json.dumps(pairs).encode("utf-8")).hexdigest()
        return {"languages": languages, "languages_sha256": digest}

    def provenance(self) -> dict[str, str]:
        """Return information on the data for a result: the name, the language if all items state one, and the
        number of dialogues with the turns of another one if there are any."""
        language = single_language(self.items)
        turns = {tuple(equal_form(turn.text) for turn in item.turns) for item in self.items}
        n_repeated = len(self.dialogue_ids) - len(turns)
        return {
            "data": self.name,
            **({"language": language} if language else {}),
            **({"repeated_dialogues": str(n_repeated)} if n_repeated else {}),
        }

    def described(self) -> str:
        """Return the number of items."""
        return f"{len(self.items)} items"

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """Return a data frame with one row per item and the keys of the file as columns."""
        rows = [_row(item) for item in self.items]
        keys = dict.fromkeys(key for row in rows for key in row)
        return data_frame({key: [row.get(key) for row in rows] for key in keys}, library)

    def __repr__(self) -> str:
        """Return name and size."""
        return f"Benchmark({self.name!r}, {self.described()}, {len(self.dialogue_ids)} dialogues)"


def read_benchmark(data: Source) -> Benchmark:
    """Read and validate a benchmark; raise InputError with every problem.

    `data` is ``giccs-sample`` (German), ``giccs-sample-en`` (English), a benchmark JSONL file (``-`` is
    standard input), a folder with the published GiCCS release, or the hub id of a data set with either
    (``owner/name[@revision]``). A pandas or Polars data frame, or a list of dicts, has the keys of the file
    as columns. Required are ``turns``, ``utterance`` and ``score``; ids that all items lack are derived from
    the texts, with a warning, and turns may be strings.

    >>> sample = read_benchmark("giccs-sample")
    >>> len(sample.items), len(sample.dialogue_ids)
    (300, 60)
    >>> read_benchmark([{"turns": ["Hi.", "Is it open?"], "utterance": "Open?", "score": 0.9}])
    Benchmark('<data>', 1 items, 1 dialogues)
    """
    benchmark, problems = check_benchmark(data)
    if problems:
        raise InputError(problems)
    log.debug("%s: %s, %d dialogues", data, benchmark.described(), len(benchmark.dialogue_ids))
    return benchmark


def check_benchmark(data: Source) -> tuple[Benchmark, list[Problem]]:
    """Read a benchmark like `read_benchmark`, but return its problems instead of raising them."""
    if not is_path(data):
        name = display_name(data)
        values_of_rows = frame_records(data)
        if values_of_rows and (other_kind := remark(values_of_rows[0], "benchmark")):
            raise InputError(Problem(name, None, f"expected a benchmark{other_kind}"))
        rows = (Row(Location(name, n), values) for n, values in enumerate(values_of_rows, start=1))
        return _parse_benchmark(rows, name, name)
    name = os.fspath(data)
    if name in SAMPLES:
        with sample_file(name, "benchmark.jsonl") as path:
            benchmark, problems = _parse_benchmark(json_rows(path), name, name)
            return replace(benchmark, terms=SAMPLE_TERMS), problems
    if Path(name).is_dir():
        return _read_folder(Path(name), name)
    if name != "-" and not Path(name).exists():
        if _may_be_hub_id(name):
            from giccs.benchmark.hub import data_folder

            return _read_folder(data_folder(name), name)
        if guess := suggestion(name, SAMPLES):
            raise InputError(Problem(name, None, f"no such file{guess}"))
    return _parse_benchmark(json_rows(name, "benchmark"), display_name(name), name)


def sample_file(name: str, file: str) -> AbstractContextManager[Path]:
    """Give the path of a file of a benchmark in the package.

    >>> with sample_file("giccs-sample-en", "judgments.csv") as path:
    ...     path.name
    'judgments.csv'
    """
    return resources.as_file(resources.files("giccs.data").joinpath(SAMPLES[name], file))


def known_terms(benchmark: Benchmark) -> Terms:
    """Return licence and annotators, if known; a copy of a sample has those of the sample."""
    if benchmark.terms != UNKNOWN_TERMS:
        return benchmark.terms
    is_sample = any(benchmark.fingerprint == read_benchmark(name).fingerprint for name in SAMPLES)
    return SAMPLE_TERMS if is_sample else UNKNOWN_TERMS


def write_benchmark(items: Iterable[Item], path: str | os.PathLike[str]) -> None:
    """Write items as JSONL, atomically."""
    write_atomic(path, json_lines_text(map(_row, items)))


def _may_be_hub_id(name: str) -> bool:
    components = name.split("@")[0].split("/")
    return len(components) == 2 and all(components) and components[0] not in (".", "..", "~")


def _read_folder(folder: Path, name: str) -> tuple[Benchmark, list[Problem]]:
    from giccs.benchmark.release import RELEASE_TERMS, is_release, read_release

    if is_release(folder):
        items, problems, warnings = read_release(folder)
        problems += _consistency_problems(items)
        warnings += _item_warnings(items)
        released = tuple(row.record for row in items)
        return Benchmark(name, released, tuple(warnings), RELEASE_TERMS), problems
    benchmark, problems = _read_file(folder, name)
    return replace(benchmark, terms=terms_of_card(folder / CARD_FILE)), problems


def _read_file(folder: Path, name: str) -> tuple[Benchmark, list[Problem]]:
    """Read the file in a folder that is not the release."""
    if (folder / PUBLISHED_FILE).is_file():
        return _parse_benchmark(
            parquet_rows(folder / PUBLISHED_FILE), str(folder / PUBLISHED_FILE), name
        )
    files = sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])
    if len(files) == 1:
        return _parse_benchmark(json_rows(files[0], "benchmark"), str(files[0]), name)
    message = (
        f"contains {len(files)} .jsonl files and neither the GiCCS release nor the output of giccs card; "
        "expected a benchmark file, or a folder with the release's two TSV files"
    )
    raise InputError(Problem(name, None, message))


def _parse_benchmark(rows: Iterable[Row], file: str, name: str) -> tuple[Benchmark, list[Problem]]:
    missing, rows = _missing_keys(rows)
    parsed = records(file, rows, partial(_parse_item, missing=missing, shared={}))
    faulty_lines = {problem.line for problem in parsed.problems}
    valid_rows = [row for row in parsed.rows if row.location.line not in faulty_lines]
    problems = [*parsed.problems, *_consistency_problems(valid_rows)]
    warnings = [*_derivation_warnings(file, missing), *parsed.warnings, *_item_warnings(valid_rows)]
    if not valid_rows and not problems:
        problems.append(Problem(file, None, "no items; expected one per line"))
    return Benchmark(name, tuple(row.record for row in valid_rows), tuple(warnings)), problems


def _missing_keys(rows: Iterable[Row]) -> tuple[set[str], Iterator[Row]]:
    """Return the keys that are missing from all rows, and the rows, read only as far as necessary."""
    missing, further = set(DERIVED_KEYS), iter(rows)
    first: list[Row] = []
    for row in further:
        first.append(row)
        missing -= {key for key, value in row.values.items() if value is not None}
        if not missing:
            break
    return missing, chain(first, further)


def _derivation_warnings(file: str, missing: Collection[str]) -> Iterator[Problem]:
    if ids := [key for key in DERIVED_KEYS if key in missing and key.endswith("_id")]:
        yield Problem(file, None, f"no {', '.join(ids)}; derived from the texts")


def _parse_item(row: Row, *, missing: Collection[str], shared: dict[Any, Any]) -> Item:
    """Return the item of a row; keys that are missing from all rows are derived.

    shared: texts and turns of earlier rows, of which equal ones are the same object.
    """
    row.warn_of_unknown(KNOWN_KEYS)
    values = {
        name: field.fallback if name in missing else row.get(name, field)
        for name, field in FIELDS.items()
    }
    values |= {
        key: shared.setdefault(value, value) for key, value in values.items() if key != "score"
    }
    for message in turn_problems(row):
        row.wrong(message)
    declared = row.values.get("n_turns")
    turns = row.values.get("turns")
    if declared is not None and isinstance(turns, list) and declared != len(turns):
        row.wrong(f"n_turns is {json.dumps(declared)}, but there are {len(turns)} turns")
    return _with_ids(Item(**values))


def _with_ids(item: Item) -> Item:
    """Return the item with the ids that it lacks; the same texts always have the same ids."""
    dialogue_id = item.dialogue_id or _text_digest(
        text for turn in item.turns for text in (turn.speaker, turn.text)
    )
    utterance_id = item.utterance_id or item.item_id or _text_digest([item.utterance])
    item_id = item.item_id or f"{dialogue_id}/{utterance_id}"
    return replace(item, item_id=item_id, dialogue_id=dialogue_id, utterance_id=utterance_id)


def _text_digest(texts: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps([*texts]).encode()).hexdigest()[:12]


def _consistency_problems(located: Sequence[LocatedRecord[Item]]) -> Iterator[Problem]:
    """Yield problems between items: repeated ids and texts, inconsistent dialogues."""
    for unique in UNIQUE_FIELDS:
        yield from unique.problems(located)
    yield from _absolute_problems(located)
    dialogues: dict[str, LocatedRecord[Item]] = {}
    for row in located:
        dialogues.setdefault(row.record.dialogue_id, row)
    yield from Unique[Item]("dialogue_id", _dialogue_id, normal_ids).problems(dialogues.values())
    for row in located:
        first = dialogues[row.record.dialogue_id]
        if _dialogue_fields(row.record) != _dialogue_fields(first.record):
            yield row.location.problem(
                "turns, source, domain or language differ from those of dialogue "
                f"{row.record.dialogue_id} in {first.location.as_seen_from(row.location)}; expected the "
                "same for all items of a dialogue"
            )


def _absolute_problems(located: Sequence[LocatedRecord[Item]]) -> Iterator[Problem]:
    """Yield a problem if some items have no absolute score, or if it is a copy of the score."""
    without = [row for row in located if row.record.absolute_score is None]
    if len(without) == len(located):
        return
    for row in without:
        yield row.location.problem("no absolute_score; expected one for all items or for none")
    if len(located) > 1 and all(row.record.absolute_score == row.record.score for row in located):
        message = (
            "absolute_score is score in all items; expected scores from answers to anchors "
            "(giccs score --absolute), which score does not contain"
        )
        yield Problem(located[0].location.file, None, message)


def _dialogue_id(item: Item) -> str:
    return item.dialogue_id


def _dialogue_fields(item: Item) -> tuple[object, ...]:
    """Return the fields shared by the items of a dialogue."""
    return item.turns, item.source, item.domain, item.original_domain, item.language


def _item_warnings(located: Sequence[LocatedRecord[Item]]) -> Iterator[Problem]:
    """Yield problems that make a benchmark useless or too easy but are allowed."""
    scores = {row.record.score for row in located}
    if len(located) > 1 and len(scores) == 1:
        message = f"all {len(located)} scores are {scores.pop():g}; correlations are undefined"
        yield Problem(located[0].location.file, None, message)
    for row in located:
        item = row.record
        if equal_form(item.utterance) == equal_form(item.last_turn):
            yield row.location.problem(
                f"utterance {item.utterance_id} is the target utterance itself"
            )
    yield from _repetition_warnings(located)


def _repetition_warnings(located: Sequence[LocatedRecord[Item]]) -> Iterator[Problem]:
    """Yield texts that count several times: utterances of a dialogue, and dialogues."""
    pairs: dict[tuple[str, str], LocatedRecord[Item]] = {}
    for row in located:
        item = row.record
        earlier = pairs.setdefault((item.dialogue_id, equal_form(item.utterance)), row)
        if item.utterance.strip() != earlier.record.utterance.strip():  # Equal ones are errors.
            scores = "" if item.score == earlier.record.score else ", with another score"
            yield row.location.problem(
                f"utterance {item.utterance_id!r} differs from {earlier.record.utterance_id!r} in "
                f"{earlier.location.as_seen_from(row.location)} only in white space or Unicode form{scores}"
            )
    first: dict[str, Location] = {}
    for row in located:
        first.setdefault(row.record.dialogue_id, row.location)
    dialogues = dialogues_of_items([row.record for row in located])
    yield from repeated_dialogue_warnings(
        LocatedRecord(dialogue, first[dialogue.dialogue_id]) for dialogue in dialogues
    )


def _row(item: Item) -> dict[str, Any]:
    # Absent and empty keys are equivalent, so that the fingerprint of items without the key is unchanged.
    original = {"original_domain": item.original_domain} if item.original_domain else {}
    language = {"language": item.language} if item.language else {}
    absolute = {} if item.absolute_score is None else {"absolute_score": item.absolute_score}
    return {
        "item_id": item.item_id,
        "dialogue_id": item.dialogue_id,
        "source": item.source,
        "domain": item.domain,
        **original,
        **language,
        "n_turns": item.n_turns,
        "turns": [{"speaker": turn.speaker, "text": turn.text} for turn in item.turns],
        "utterance_id": item.utterance_id,
        "utterance": item.utterance,
        "score": item.score,
        **absolute,
    }


def _digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines in any order."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _canonical(item: Item, without: Sequence[str] = ("language", "absolute_score")) -> str:
    content = {key: value for key, value in _row(item).items() if key not in without}
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
