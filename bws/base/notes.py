"""Notes: sentences that computations return with their numbers, for people.

A note is plain text, also in results and documents. `note` marks its template in the code, and a catalogue
translates templates (giccs_app/explorer/labels/notes/LANGUAGE.toml; tests/test_notes.py requires one for
every template). `pattern` finds the notes of a template in a text that joins several.
"""

from __future__ import annotations

import re
from functools import cache
from string import Formatter

NUMBER = r"[-−+]?(?:[\d,.]*\d(?:e[-+]\d+)?%?|nan|inf)"
UNIT = r"[^\W\d_]+(?:[ -][^\W\d_]+)*"
"""Plural name of what is counted: one or several words without digits."""


def note(template: str, /, **values: object) -> str:
    """Return the English text of a note: the template with its values, as in `str.format`.

    Numbers have a format (``{n:d}``), by which `pattern` recognises them; ``{unit}`` is the plural name of
    what is counted.

    >>> note("{n:d} {unit} have no interval", n=3, unit="items")
    '3 items have no interval'
    """
    return template.format(**values)


@cache
def pattern(template: str) -> re.Pattern[str]:
    """Return the pattern of the notes of a template, with a group for each value.

    >>> found = pattern("{n:d} {unit} have no interval").search("ranks: 3 items have no interval; all equal")
    >>> found.groupdict()
    {'n': '3', 'unit': 'items'}
    """
    parts, names = [], set[str]()
    for text, name, form, _ in Formatter().parse(template):
        parts.append(re.escape(text))
        if name:
            value = UNIT if name == "unit" else NUMBER if form else r"[^;]+?"
            parts.append(f"(?P={name})" if name in names else f"(?P<{name}>{value})")
            names.add(name)
    if template.endswith("}"):
        parts.append(r"(?=\.?(?:;|$))")
    return re.compile(r"(?<!\w)" + "".join(parts))
