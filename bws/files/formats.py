"""The formats of judgments that can be read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from bws.files import hollis, km, long, mturk, own, potato, semeval, semrel
from bws.files.check import OnInvalid, judgments_of
from bws.files.detect import TabularFormat, detect
from bws.files.rows import Rows
from bws.files.table import table_of, text_bytes
from bws.records import Judgments
from bws.textio import display_name, read_bytes

__all__ = ["FORMATS", "Form", "read_judgments"]

Form = Literal["auto", "csv", "km", "semrel", "semeval", "hollis", "potato", "long", "mturk-batch"]

# the more special a header, the earlier it stands
FORMATS: Mapping[str, TabularFormat] = {
    "mturk-batch": mturk,
    "semrel": semrel,
    "long": long,
    "hollis": hollis,
    "km": km,
    "csv": own,
    "semeval": semeval,
}


def read_judgments(
    path: str | os.PathLike[str],
    form: Form = "auto",
    *,
    on_invalid: OnInvalid = "error",
    parts: Mapping[str, str] | None = None,
    merge_variants: bool = False,
) -> Judgments:
    """Read judgments of any format and check them.

    path: a file (``-`` is standard input, ``.gz`` is unpacked); for Potato also a folder.
    form: ``auto`` finds out which format it is; `Judgments.source` says which.
    on_invalid: ``error`` raises InputError with every fault; ``skip`` leaves the rows that have one out and
        lists them in `Judgments.left_out`; items that are in these rows only are not there.
    parts: only for ``mturk-batch``: the names of its columns, see `bws.files.mturk.rows`.
    merge_variants: whether items that differ in white space, case and punctuation only are one item, called
        by the most frequent spelling, of equally frequent ones by the first. Without it they stay apart, and
        `Judgments.variants` tells of them; see `bws.variants`.

    Rows are of one tuple when they have the same tuple id or, in files without tuple ids, the same group
    and set of items. An id is compared as Unicode NFC without outer white space.
    """
    if form not in get_args(Form):
        raise ValueError(f"form is {form!r}; allowed are {', '.join(get_args(Form))}")
    if parts and form != "mturk-batch":
        raise ValueError(f"parts are given for form {form!r}; only 'mturk-batch' has some")
    return judgments_of(_rows(path, form, parts), on_invalid, merge_variants=merge_variants)


def _rows(path: str | os.PathLike[str], form: Form, parts: Mapping[str, str] | None) -> Rows:
    name = display_name(path)
    if form == "potato" or (form == "auto" and _is_json(path)):
        return potato.rows(path)
    table = table_of(text_bytes(read_bytes(path), name), name)
    if form == "mturk-batch":
        return mturk.rows(table, parts)
    return FORMATS[detect(table, FORMATS) if form == "auto" else form].rows(table)


def _is_json(path: str | os.PathLike[str]) -> bool:
    return Path(path).is_dir() or os.fspath(path).removesuffix(".gz").endswith((".json", ".jsonl"))
