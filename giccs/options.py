"""Options declared once, as fields of a dataclass: for the command line, for files and for documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

__all__ = ["Declared", "declared", "defaults_of", "option", "problem_with"]


@dataclass(frozen=True, slots=True)
class Declared:
    """What is allowed as a value of an option, and its line in the help."""

    help: str
    choices: tuple[str, ...] = ()
    """The allowed words; empty: any."""
    bounds: tuple[int, int] | None = None
    """The smallest and the largest allowed number."""
    metavar: str | None = None
    """How the help calls a value."""
    flag: str = ""
    """Name on the command line, where it is not that of the field with hyphens."""


def option(default: Any, help: str, **settings: Any) -> Any:  # noqa: A002
    """Return a field with its default; settings are those of `Declared`."""
    return field(default=default, metadata={"option": Declared(help, **settings)})


def declared(one: Field[Any]) -> Declared:
    """Return what a field of `option` allows."""
    found: Declared = one.metadata["option"]
    return found


def defaults_of(kind: type) -> dict[str, Any]:
    """Return the options of a dataclass with their defaults; an empty text for None.

    The model and its revision are no options.
    """
    return {
        one.name: "" if one.default is None else one.default
        for one in fields(kind)
        if one.name not in ("model", "revision")
    }


def problem_with(name: str, value: Any, defaults: Mapping[str, Any]) -> str:
    """Return what is wrong with the name of an option, or with the type of its value; else an empty text."""
    if name not in defaults:
        return f"{name}; {', '.join(defaults)} are known"
    if type(value) is not (needed := type(defaults[name])):
        return f"{name} = {value!r}; it must be of type {needed.__name__}"
    return ""
