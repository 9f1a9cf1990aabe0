"""The published data: Parquet files of items, judgments and soft targets."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.files.soft_targets import SoftTargets
from bws.model_annotators import RUN_COLUMNS, is_model
from bws.record_columns import COLUMN as CONTROL
from bws.record_columns import control_texts
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item

if TYPE_CHECKING:
    import polars as pl

    from bws.records import Judgments

ITEM_COLUMNS = {
    "item_id": "id of the item",
    "dialogue_id": "id of its dialogue",
    "source": "source of the dialogue",
    "domain": "domain of the dialogue",
    "original_domain": "label of the domain in the source",
    "language": "language of the item, a BCP 47 tag",
    "n_turns": "number of turns of the dialogue, including the last one",
    "turns": "the dialogue; the utterance is compared with its last turn",
    "utterance_id": "id of the utterance, as in the judgments",
    "utterance": "the utterance that is compared with the last turn",
    "score": "similarity of the utterance and the last turn in the dialogue, from 0 (lowest) to 1 (highest)",
    "absolute_score": "similarity on one scale for all dialogues, from 0 to 1, from answers to anchors",
}
TURN_COLUMNS = {"speaker": "speaker", "text": "text"}
JUDGMENT_COLUMNS = {
    "tuple_id": "id of the judged tuple",
    "group": "dialogue of the tuple",
    "item": "an utterance of the tuple",
    "best": "the utterance judged most similar to the last turn",
    "worst": "the utterance judged least similar",
    "annotator": "pseudonym of the annotator, or model:NAME@REVISION for a language model",
    "prompt": "prompt of a language model",
    "run": "number of a language model's judgment among those of a tuple with one prompt",
    "round": "round of the tuple in a study in rounds",
    "purpose": "purpose of the tuple in its round: warmup, adaptive (chosen from earlier judgments) or audit",
    "shown": "the utterances in display order, separated by semicolons",
    "control": "control items of the tuple, which have no score, with the answers expected",
    "comment": "comment of the annotator, as written; empty without one",
}
ROUNDS = ("round", "purpose")
"""Columns of studies in rounds."""
SOFT_TARGET_COLUMNS = {
    "tuple_id": "id of the judged tuple",
    "group": "dialogue of the tuple",
    "item": "an utterance of the tuple",
    "annotations": "number of annotators who judged the tuple",
    "best": "number of annotators who judged this utterance most similar to the last turn",
    "worst": "number of annotators who judged it least similar",
    "p_best": "best / annotations: the raw share, without smoothing",
    "p_worst": "worst / annotations: the raw share, without smoothing",
}
MAX_SCORE_DIFFERENCE = 0.005
"""Maximum difference between a score of the benchmark, which may be rounded to two decimals, and that of the
counts."""
MAX_NAMED = 5
COMMENT = "comment"
"""Column of the annotators' comments."""

WORKER_IDS = {
    "ids of Mechanical Turk": re.compile(r"A(?=\w*\d\w*[A-Z])[0-9A-Z]{9,20}"),
    "ids of Prolific": re.compile(r"[0-9a-f]{24}"),
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+"),
}


@dataclass(frozen=True)
class PublishedTable:
    """A table of the data set: a configuration with one Parquet file."""

    config: str
    """Name in `datasets.load_dataset`."""
    path: str
    """Path in the folder."""
    about: str
    frame: pl.DataFrame
    key: str = ""
    """The column with unique values; empty without one."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the columns; numbered ones are listed without their number."""

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
        """Return the description of a column; a field of a struct has its own."""
        return self.columns.get(name) or self.columns[name.rstrip("0123456789")]


def items_table(items: Sequence[Item]) -> PublishedTable:
    """Return a table with one row per item and the fields of the benchmark's JSON Lines.

    ``turns`` is a list of structs (speaker, text). ``original_domain``, ``language`` and
    ``absolute_score`` are columns if an item has them.
    """
    import polars as pl

    turn = pl.Struct(dict.fromkeys(TURN_COLUMNS, pl.String))
    numbers = dict.fromkeys(("score", "absolute_score"), pl.Float64())
    fields = {"n_turns": pl.Int32(), "turns": pl.List(turn), **numbers}
    schema = {name: fields.get(name, pl.String()) for name in ITEM_COLUMNS}
    for name in ("original_domain", "language", "absolute_score"):
        if all(getattr(item, name) in ("", None) for item in items):
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


def judgments_table(judgments: Judgments, *, comments: bool = False) -> PublishedTable:
    """Return a table of judgments: tuple_id, group, item1 … itemK, best, worst, annotator, and round, purpose
    and shown if known.

    comments: whether the column comment is part of the table. Further columns (assignment ids, times) are
    omitted, because they may identify persons. Raises InputError if annotator ids or comments identify
    persons, or if there are no comments.
    """
    import polars as pl

    _check_pseudonyms(judgments)
    if comments:
        _check_comments(judgments)
    tuples = judgments.tuples
    members = tuples.members[judgments.tuple_of]
    columns = {
        "tuple_id": tuples.ids[judgments.tuple_of],
        "group": tuples.groups[tuples.group_of_tuple[judgments.tuple_of]],
        **{
            f"item{position + 1}": tuples.items[members[:, position]]
            for position in range(tuples.k)
        },
        "best": tuples.items[judgments.best_item],
        "worst": tuples.items[judgments.worst_item],
        "annotator": np.append(judgments.annotators, "")[judgments.annotator_of],  # -1: none
    }
    further = [*RUN_COLUMNS, *ROUNDS]
    columns |= {name: judgments.columns[name] for name in further if name in judgments.columns}
    if judgments.shown is not None:
        order = tuples.items[np.take_along_axis(members, judgments.shown.astype(np.intp), axis=1)]
        columns["shown"] = np.array([";".join(row) for row in order], dtype=object)
    if tuples.controls:
        columns[CONTROL] = control_texts(judgments)
    if comments:
        columns[COMMENT] = judgments.columns[COMMENT]
    lists = {name: column.tolist() for name, column in columns.items()}
    frame = pl.DataFrame(lists, schema=dict.fromkeys(lists, pl.String))
    path = "data/judgments-00000-of-00001.parquet"
    about = "the best-worst judgments behind the scores"
    return PublishedTable("judgments", path, about, frame, columns=JUDGMENT_COLUMNS)


def _check_pseudonyms(judgments: Judgments) -> None:
    people = [name for name in judgments.annotators if not is_model(name)]
    for kind, form in WORKER_IDS.items():
        worker_ids = [name for name in people if form.fullmatch(name)]
        if worker_ids:
            message = (
                f"{len(worker_ids)} of {len(judgments.annotators)} annotator ids look like {kind}; "
                "publish pseudonyms (giccs annotate collect writes them)"
            )
            raise InputError(Problem(judgments.source or "judgments", None, message))


def _check_comments(judgments: Judgments) -> None:
    file = judgments.source or "judgments"
    if COMMENT not in judgments.columns:
        raise InputError(Problem(file, None, "has no comments; leave out --comments"))
    problems = [
        Problem(
            file,
            None,
            f"a comment on tuple {tuple_id} contains {kind}; remove them, or leave out --comments",
        )
        for tuple_id, comment in zip(
            judgments.tuples.ids[judgments.tuple_of], judgments.columns[COMMENT], strict=True
        )
        for kind, form in WORKER_IDS.items()
        if re.search(rf"(?<!\w){form.pattern}(?!\w)", comment)
    ]
    if problems:
        raise InputError(dict.fromkeys(problems))


def soft_targets_table(targets: SoftTargets, benchmark: Benchmark) -> PublishedTable:
    """Return a table with one row per tuple and utterance.

    Raises InputError if an utterance is not in the benchmark, or if an item has no soft targets or a score
    other than (1 + (best - worst) / appearances) / 2.
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
        "shares of annotators who selected each utterance of a tuple as best and as worst",
        frame,
        columns=SOFT_TARGET_COLUMNS,
    )


def _faults(targets: SoftTargets, benchmark: Benchmark) -> Iterator[str]:
    grouped = any(targets.groups)
    items = {_key(item, grouped): item for item in benchmark.items}
    if len(items) < len(benchmark.items):
        yield "has no groups, but utterance ids occur in more than one dialogue; expected the column group"
        return
    keys = list(zip(targets.groups.tolist(), targets.items.tolist(), strict=True))
    if unknown := {item for group, item in keys if (group, item) not in items}:
        yield f"{len(unknown)} items are not in {benchmark.name}: {_listed(unknown)}"
    expected_rows = _scores(targets, keys)
    if missing := [item.item_id for key, item in items.items() if key not in expected_rows]:
        yield f"{len(missing)} items of {benchmark.name} are missing: {_listed(missing)}"
    differences = [
        item.item_id
        for key, item in items.items()
        if abs(expected_rows.get(key, item.score) - item.score) > MAX_SCORE_DIFFERENCE
    ]
    if differences:
        yield (
            f"{len(differences)} items have another score in {benchmark.name} than that of these counts: "
            f"{_listed(differences)}; expected the soft targets of the judgments behind the scores"
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
