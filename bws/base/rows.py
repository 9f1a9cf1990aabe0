"""Rows as text: CSV and JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal


def csv_text(
    rows: Iterable[Sequence[object] | Mapping[str, object]],
    header: Sequence[str] = (),
    *,
    quote_all: bool = False,
    separator: str = ",",
) -> str:
    r"""Return rows as CSV with line feeds; fields are quoted if necessary, None and missing keys are empty.

    A mapping is written in the order of the header. Raises ValueError for a key that is not in the header.

    >>> csv_text([("a", 0.5), {"score": None, "item": "b, c"}], ("item", "score"))
    'item,score\na,0.5\n"b, c",\n'
    """
    out = io.StringIO()
    quoting: Literal[0, 1] = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=separator, lineterminator="\n", quoting=quoting)
    if header:
        writer.writerow(header)
    for row in rows:
        if isinstance(row, Mapping):
            if unknown := row.keys() - set(header):
                raise ValueError(f"keys {sorted(unknown)} are not in the header {list(header)}")
            row = [row.get(name, "") for name in header]
        writer.writerow(row)
    return out.getvalue()


def json_lines_text(objects: Iterable[Mapping[str, Any]]) -> str:
    r"""Return objects as JSON Lines, without escaping non-ASCII characters.

    >>> json_lines_text([{"text": "Grüß Gott"}, {}])
    '{"text": "Grüß Gott"}\n{}\n'
    """
    return "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in objects)
