"""Recipes of published papers, which commands accept by name: models, tasks, data and published numbers."""

from __future__ import annotations

import os
from pathlib import Path

from bws.base.problems import InputError, Problem, suggestion

__all__ = ["NAMES", "locate"]

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))
"""Names of the recipes in the package."""


def locate(recipe: str | os.PathLike[str]) -> Path:
    """Return the file of a recipe of the package, or the path itself; raise InputError if it does not exist.

    >>> locate("giccs-paper").name
    'giccs-paper.toml'
    """
    if recipe in NAMES:
        return FOLDER / f"{recipe}.toml"
    path = Path(recipe)
    if str(path) != "-" and not path.exists():
        expected = f"expected a file or one of {', '.join(NAMES)}{suggestion(path.stem, NAMES)}"
        raise InputError(Problem(str(path), None, f"no such file; {expected}"))
    return path
