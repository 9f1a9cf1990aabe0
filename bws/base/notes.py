"""Notes: sentences that computations return with their numbers, for people.

A note is plain text, also in results and documents. `note` marks its template in the code, and a catalogue
translates templates (giccs_app/explorer/labels/notes/LANGUAGE.toml; tests/test_notes.py requires one for
every template). `pattern` finds the notes of a template in a text that joins several.
"""

from __future__ import annotations

import math
import re
from functools import cache
from string import Formatter
from typing import Any

SMALLEST_P = 0.001
"""Smallest p-value that texts and tables state; files have all digits."""
NUMBER = r"[-−+]?(?:[\d,.]*\d(?:e[-+]\d+)?|nan|inf)%?"
P_VALUE = r"[=<] \d[\d.]*|–"
MAX_END = 1
"""Maximum length of a text too short to mark the end of the value before it, which then ends before ``;``."""
UNIT = r"[^\W\d_]+(?:[ -][^\W\d_]+)*"
"""Plural name of what is counted: one or several words without digits."""


class _NoteFormatter(Formatter):
    """`str.format` with the format ``p`` of p-values."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text: str = p_text(value) if format_spec == "p" else format(value, format_spec)
        return text


def p_text(p: float) -> str:
    """Return a p-value with its relation sign; a dash for NaN.

    >>> p_text(0.0312), p_text(2e-9), p_text(math.nan)
    ('= 0.031', '< 0.001', '–')
    """
    if math.isnan(p):
        return "–"
    return f"< {SMALLEST_P}" if p < SMALLEST_P else f"= {p:.3f}"


def note(template: str, /, **values: object) -> str:
    """Return the English text of a note: the template with its values, as in `str.format`.

    Numbers have a format (``{n:d}``; p-values ``{p:p}``, see `p_text`), by which `pattern` recognises them;
    ``{unit}`` is the plural name of
    what is counted, and ``{reason}`` another note. Other texts are ids, names, or words and numbers under the
    names that `giccs_app.explorer.labels.remarks` lists.

    >>> note("{n:d} {unit} have no interval", n=3, unit="items")
    '3 items have no interval'
    """
    return _NoteFormatter().vformat(template, (), values)


def sentence(text: str) -> str:
    """Return a note with a capital and one full stop.

    >>> sentence("all items are judged")
    'All items are judged.'
    """
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


@cache
def pattern(template: str) -> re.Pattern[str]:
    """Return the pattern of the notes of a template, with a group for each value.

    >>> found = pattern("{n:d} {unit} have no interval").search("ranks: 3 items have no interval; all equal")
    >>> found.groupdict()
    {'n': '3', 'unit': 'items'}
    """
    fields = list(Formatter().parse(template))
    parts, names = [], set[str]()
    for (text, name, form, _), (after, *_) in zip(
        fields, [*fields[1:], ("", "", "", "")], strict=True
    ):
        parts.append(re.escape(text))
        if name:
            joins = r"[^;]+?" if len(after) <= MAX_END else r".+?"
            value = (
                UNIT if name == "unit" else (P_VALUE if form == "p" else NUMBER) if form else joins
            )
            parts.append(f"(?P={name})" if name in names else f"(?P<{name}>{value})")
            names.add(name)
    if fields[-1][1]:
        parts.append(r"(?=\.?(?:;|$))")
    elif len(fields[-1][0]) <= MAX_END:
        parts.append(r"(?=[;\s]|$)")
    return re.compile(r"(?<!\w)" + "".join(parts))
