"""The table of analyses of judgments: those of this package, and those that other packages name.

A line of the table, or an entry point of another package in the group ``giccs.analyses``, adds an analysis.
It is then the command ``giccs NAME``, a section of the report, and a part of the page "Annotation" of the
explorer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from bws.analysis.analysis import Analysis
from bws.base.problems import InputError, Problem

ANALYSES = {
    "agreement": "bws.analysis.judgments:AGREEMENT",
    "reliability": "bws.analysis.judgments:RELIABILITY",
}
"""Name -> ``module:attribute``."""
WITH_SCRIPTS = ("agreement", "reliability")
"""Analyses with a script ``bws-NAME`` and a place of their own in the report and the explorer."""
GROUP = "giccs.analyses"


@cache
def further_analyses() -> Mapping[str, str]:
    """Return the name and the location of each analysis without a script.

    Those of this package in the order of the table, then those of other packages by name.
    """
    own = {name: place for name, place in ANALYSES.items() if name not in WITH_SCRIPTS}
    found = {point.name: point.value for point in entry_points(group=GROUP)}
    return own | {name: found[name] for name in sorted(found) if name not in ANALYSES}


@cache
def load_analysis(name: str) -> Analysis:
    """Return an analysis of the table or of another package; raise InputError if it cannot be loaded."""
    location = ANALYSES.get(name) or further_analyses()[name]
    module, _, attribute = location.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise _unusable(name, f"{location} cannot be imported: {error}") from error
    if not isinstance(found, Analysis):
        raise _unusable(name, f"{location} is not an Analysis; expected module:name of one")
    if found.name != name:
        raise _unusable(name, f"{location} has the name {found.name!r}; expected {name!r}")
    return found


def _unusable(name: str, message: str) -> InputError:
    return InputError(Problem(f"analysis {name}", None, message))
