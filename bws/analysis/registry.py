"""The table of analyses of judgments: those of this package, and those that other packages name.

Another package adds an analysis by an entry point in the group ``giccs.analyses``. It is then the command
``giccs NAME``, a section of the report, and a part of the page "Annotation" of the explorer.
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
GROUP = "giccs.analyses"


@cache
def other_analyses() -> Mapping[str, str]:
    """Return the name and the location of each analysis of other packages, sorted by name."""
    found = {point.name: point.value for point in entry_points(group=GROUP)}
    return {name: found[name] for name in sorted(found) if name not in ANALYSES}


@cache
def load_analysis(name: str) -> Analysis:
    """Return an analysis of the table or of another package; raise InputError if it cannot be loaded."""
    location = ANALYSES.get(name) or other_analyses()[name]
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
