"""Registry of the kinds of HIT."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

DEFAULT_KIND = "tuples"
GROUP = "mturk.kinds"
"""This package, also the entry point group for kinds of other distributions."""
ANCHORS = {
    "rating": f"{GROUP}.tuples.anchors:RATING",
    "mark": f"{GROUP}.tuples.anchors:MARK",
}
"""Kinds of parts in studies of tuples; no study has them alone."""


@cache
def kind_locations() -> dict[str, str]:
    """Return name -> location of all kinds: the default kind, built-in kinds, anchors, then other kinds."""
    built_in = sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.ispkg
    )
    built_in.sort(key=DEFAULT_KIND.__ne__)
    table = {name: f"{GROUP}.{name}:KIND" for name in built_in} | ANCHORS
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if table.setdefault(point.name, point.value) != point.value:
            raise ValueError(
                f"entry point {GROUP}: {point.name} = {point.value!r} repeats a kind; "
                f"expected a name other than {', '.join(table)}"
            )
    return table


def kind_names() -> tuple[str, ...]:
    """Return the names of the kinds of studies, those of other distributions last.

    >>> kind_names()[:5]
    ('tuples', 'conditions', 'items', 'relabel', 'verification')
    """
    return tuple(name for name in kind_locations() if name not in ANCHORS)
