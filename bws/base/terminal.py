"""Text for the terminal: characters that could change what a user sees are escaped."""

from __future__ import annotations

import sys

BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks, embeddings, overrides and isolates, which reorder the text around them."""
ESCAPES = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *BIDIRECTIONAL)
    if chr(code) not in "\n\t"
}
"""Escapes of control, line and bidirectional characters, which names and texts of untrusted files or of
participants could send to a terminal; in a JSON document they stand for the same characters."""


def printable(text: str) -> str:
    r"""Return a text with these characters escaped, except line breaks and tabs.

    >>> print(printable("\x1b[31m a\u202eb"))
    \u001b[31m a\u202eb
    """
    return text.translate(ESCAPES)


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text to standard output or standard error."""
    import click

    click.echo(printable(text), err=err, nl=nl)


def say(line: str) -> None:
    """Write a line to standard error, above an active progress bar."""
    bars = getattr(
        sys.modules.get("tqdm"), "tqdm", None
    )  # Without tqdm imported, there is no progress bar.
    if bars is None:
        echo(line, err=True)
    else:
        bars.write(printable(line), file=sys.stderr)
