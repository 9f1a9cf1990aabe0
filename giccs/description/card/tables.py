"""The data as it is published: Parquet files of items, of judgments and of soft targets."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bws.files.soft_targets import SoftTargets
from bws.problems import InputError, Problem
from bws.records import normal_id
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item

if TYPE_CHECKING:
    import polars as pl

    from bws.records import Judgments

__all__ = ["PublishedTable", "items_table", "judgments_table", "soft_targets_table"]

ITEM_COLUMNS = {
    "item_id": "id of the item",
    "dialogue_id": "id of its dialogue",
    "source": "where the dialogue comes from",
    "domain": "what it is about",
    "original_domain": "what the source called the domain",
    "language": "its language, a BCP 47 tag",
    "n_turns": "turns of the dialogue, the last one included",
    "turns": "the dialogue; its last turn is the one that the utterance is compared with",
    "utterance_id": "id of the utterance, as in the judgments",
    "utterance": "the utterance that is compared with the last turn",
    "score": "similarity of both in the dialogue, from 0 (least) to 1 (most)",
}
TURN_COLUMNS = {"speaker": "who speaks", "text": "what is said"}
JUDGMENT_COLUMNS = {
    "tuple_id": "id of the tuple that was judged",
    "group": "dialogue of the tuple",
    "item": "an utterance of the tuple",
    "best": "the utterance judged most similar to the last turn",
    "worst": "the utterance judged least similar",
    "annotator": "pseudonym of the annotator",
    "shown": "the utterances in the order in which they were shown, between semicolons",
}
SOFT_TARGET_COLUMNS = {
    "tuple_id": "id of the tuple that was judged",
    "group": "dialogue of the tuple",
    "item": "an utterance of the tuple",
    "annotations": "how many annotators judged the tuple",
    "best": "how many of them judged this utterance most similar to the last turn",
    "worst": "how many judged it least similar",
    "p_best": "best / annotations: the raw share, not smoothed",
    "p_worst": "worst / annotations: the raw share, not smoothed",
}
MAX_SCORE_DIFFERENCE = 0.005
"""Between a score of the benchmark, which may be rounded to two decimals, and that of the counts."""
MAX_NAMED = 5

WORKER_IDS = {
    "ids of Mechanical Turk": re.compile(r"A(?=\w*\d\w*[A-Z])[0-9A-Z]{9,20}"),
    "ids of Prolific": re.compile(r"[0-9a-f]{24}"),
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+"),
}


@dataclass(frozen=True)
class PublishedTable:
    """A table of the data set: a configuration of its own, in one Parquet file."""

    config: str
    """What `datasets.load_dataset` calls it."""
    path: str
    """Where it lies in the folder."""
    about: str
    frame: pl.DataFrame
    key: str = ""
    """The column whose values are each there once; empty where there is none."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What each column holds; numbered ones by the name without the number."""

    @cached_property
    def content(self) -> bytes:
        """The Parquet file."""
        out = io.BytesIO()
        self.frame.write_parquet(out, compression="zstd")
        return out.getvalue()

    @cached_property
    def sha256(self) -> str:
        """Digest of the file."""
        return hashlib.sha256(self.content).hexdigest()

    def about_column(self, name: str) -> str:
        """Return what a column holds; a field of a struct goes by its own name."""
        return self.columns.get(name) or self.columns[name.rstrip("0123456789")]


def items_table(items: Sequence[Item]) -> PublishedTable:
    """Return an item a row, with the fields of the benchmark's JSON Lines.

    ``turns`` is a list of structs (speaker, text). ``original_domain`` and ``language`` are columns where an
    item has one.
    """
    import polars as pl

    turn = pl.Struct(dict.fromkeys(TURN_COLUMNS, pl.String))
    others = {"n_turns": pl.Int32(), "turns": pl.List(turn), "score": pl.Float64()}
    schema = {name: others.get(name, pl.String()) for name in ITEM_COLUMNS}
    for name in ("original_domain", "language"):
        if not any(getattr(item, name) for item in items):
            del schema[name]
    rows = [{name: _value(item, name) for name in schema} for item in items]
    frame = pl.DataFrame(rows, schema=schema)
    path = "data/test-00000-of-00001.parquet"
    columns = ITEM_COLUMNS | TURN_COLUMNS
    return PublishedTable("default", path, "the scored items", frame, "item_id", columns)


def _value(item: Item, name: str) -> object:
    if name == "turns":
        return [{"speaker": turn.speaker, "text": turn.text} for turn in item.turns]
    return getattr(item, name)


def judgments_table(judgments: Judgments) -> PublishedTable:
    """Return a judgment a row: tuple_id, group, item1 … itemK, best, worst, annotator, and shown if known.

    Further columns (comments, assignment ids, times) stay where they are: they may tell of a person.
    InputError where annotators go by a name that leads to a person.
    """
    import polars as pl

    _check_pseudonyms(judgments)
    tuples = judgments.tuples
    members = tuples.members[judgments.tuple_of]
    columns = {
        "tuple_id": tuples.ids[judgments.tuple_of],
        "group": tuples.groups[tuples.group_of_tuple[judgments.tuple_of]],
        **{f"item{place + 1}": tuples.items[members[:, place]] for place in range(tuples.k)},
        "best": tuples.items[judgments.best_item],
        "worst": tuples.items[judgments.worst_item],
        "annotator": np.append(judgments.annotators, "")[judgments.annotator_of],  # -1: none
    }
    if judgments.shown is not None:
        order = tuples.items[np.take_along_axis(members, judgments.shown.astype(np.intp), axis=1)]
        columns["shown"] = np.array([";".join(row) for row in order], dtype=object)
    lists = {name: column.tolist() for name, column in columns.items()}
    frame = pl.DataFrame(lists, schema=dict.fromkeys(lists, pl.String))
    path = "data/judgments-00000-of-00001.parquet"
    about = "the best-worst judgments behind the scores"
    return PublishedTable("judgments", path, about, frame, columns=JUDGMENT_COLUMNS)


def _check_pseudonyms(judgments: Judgments) -> None:
    for what, form in WORKER_IDS.items():
        known = [name for name in judgments.annotators if form.fullmatch(name)]
        if known:
            message = (
                f"{len(known)} of {len(judgments.annotators)} annotators go by what look like {what}; "
                "publish pseudonyms (mturk-hits collect writes them)"
            )
            raise InputError(Problem(judgments.source or "judgments", None, message))


def soft_targets_table(targets: SoftTargets, benchmark: Benchmark) -> PublishedTable:
    """Return one row per tuple and utterance.

    InputError where an utterance is not in the benchmark, or where an item has no soft targets or another
    score than (1 + (best - worst) / appearances) / 2.
    """
    import polars as pl

    if faults := list(_faults(targets, benchmark)):
        file = targets.source or "soft targets"
        raise InputError([Problem(file, None, fault) for fault in faults])
    texts = {"tuple_id": targets.tuple_ids, "group": targets.groups, "item": targets.items}
    numbers = {name: getattr(targets, name) for name in SOFT_TARGET_COLUMNS if name not in texts}
    frame = pl.DataFrame(
        {name: pl.Series(column.tolist(), dtype=pl.String) for name, column in texts.items()}
        | {name: pl.Series(column) for name, column in numbers.items()}
    )
    return PublishedTable(
        "soft_targets",
        "data/soft-targets-00000-of-00001.parquet",
        "the shares of annotators who chose each utterance of a tuple as best and as worst",
        frame,
        columns=SOFT_TARGET_COLUMNS,
    )


def _faults(targets: SoftTargets, benchmark: Benchmark) -> Iterator[str]:
    grouped = any(targets.groups)
    items = {_key(item, grouped): item for item in benchmark.items}
    if len(items) < len(benchmark.items):
        yield "names no groups, but utterance ids occur in more than one dialogue; expected the column group"
        return
    keys = list(zip(targets.groups.tolist(), targets.items.tolist(), strict=True))
    if unknown := {item for group, item in keys if (group, item) not in items}:
        yield f"{len(unknown)} items are not in {benchmark.name}: {_listed(unknown)}"
    counted = _scores(targets, keys)
    if missing := [item.item_id for key, item in items.items() if key not in counted]:
        yield f"{len(missing)} items of {benchmark.name} are missing: {_listed(missing)}"
    other = [
        item.item_id
        for key, item in items.items()
        if abs(counted.get(key, item.score) - item.score) > MAX_SCORE_DIFFERENCE
    ]
    if other:
        yield (
            f"{len(other)} items have another score in {benchmark.name} than these counts give: "
            f"{_listed(other)}; expected the soft targets of the judgments behind the scores"
        )


def _key(item: Item, grouped: bool) -> tuple[str, str]:
    return normal_id(item.dialogue_id) if grouped else "", normal_id(item.utterance_id)


def _scores(targets: SoftTargets, keys: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the counting score in [0, 1] of each (group, item)."""
    number = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    row = np.array([number[key] for key in keys], np.int64)
    balance = np.bincount(row, targets.best - targets.worst)
    scores = (1 + balance / np.bincount(row, targets.annotations)) / 2
    return dict(zip(number, scores.tolist(), strict=True))


def _listed(ids: Iterable[str]) -> str:
    names = sorted(ids)
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")
