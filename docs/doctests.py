"""Griffe extension: on the site, examples in docstrings are code, and parameters are lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.M)


class Doctests(griffe.Extension):
    """Fence the examples of every docstring, and list its parameters."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object in place."""
        fence(obj)
        if isinstance(obj, griffe.Function):
            list_parameters(obj)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change the docstring of a package in place."""
        fence(pkg)


def fence(obj: griffe.Object) -> None:
    """Make code of the examples of an object that are not code yet."""
    if obj.docstring and "```" not in obj.docstring.value:
        obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)


def list_parameters(function: griffe.Function) -> None:
    """Make a list of the lines ``name: description`` in the docstring of a function."""
    if function.docstring:
        names = "|".join(re.escape(parameter.name.lstrip("*")) for parameter in function.parameters)
        text = re.sub(rf"^`?({names})`?: ", r"- **\1**: ", function.docstring.value, flags=re.M)
        function.docstring.value = re.sub(r"\n(?=- \*\*|Raises )", "\n\n", text)
