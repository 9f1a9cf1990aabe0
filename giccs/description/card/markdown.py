"""Text from data inside Markdown, where it must stay text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

__all__ = ["escaped", "fenced", "table"]

ANYWHERE = re.compile(r"([\\`*_{}\[\]|~$])")
AT_THE_START = re.compile(r"^(?=[#+\-=:!])|^(\d+)(?=[.)](?:\s|$))")
FENCE = re.compile(r"^\s*(`{3,})", re.M)


def escaped(text: str) -> str:
    r"""Return one line that Markdown and HTML show as it is.

    >>> print(escaped("find_hotel | <b>\n# 1."), escaped("1. a"), escaped("- 0.5"))
    find\_hotel \| &lt;b&gt; # 1. 1\. a \- 0.5
    """
    line = html.escape(" ".join(text.split()), quote=False)
    return AT_THE_START.sub(r"\1\\", ANYWHERE.sub(r"\\\1", line))


def fenced(text: str, language: str = "") -> str:
    """Return a block of code; the fence is longer than any in the text.

    >>> print(fenced("a = 1", "python"))
    ```python
    a = 1
    ```
    """
    longest = max((len(fence) for fence in FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    from tabulate import tabulate

    return str(tabulate(rows, headers, tablefmt="github", disable_numparse=True))
