"""File with the contents of items: a text, two texts, or the address of an image with a description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from urllib.parse import urlsplit

from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.files.table import Table, read_table

ID_COLUMNS = ("item", "item_id", "utterance_id", "id")
GROUP_COLUMNS = ("group", "dialogue_id")
PAIR = ("sentence1", "sentence2")
LAYOUTS = (("image", "text"), PAIR, ("text",))
"""Columns of the three kinds of content; the first that a file has all of applies."""
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ItemContent:
    """Content of an item on a page."""

    texts: tuple[str, ...]
    """One text, the two texts of a pair, or the description of an image."""
    image: str = ""
    """Address of an image; empty for items of text."""

    @classmethod
    def of_option(cls, option: Sequence[str]) -> ItemContent:
        """Return the content of an option of an example.

        >>> ItemContent.of_option(["https://example.org/a.png", "a red kite"])
        ItemContent(texts=('a red kite',), image='https://example.org/a.png')
        """
        if len(option) == 2 and not image_problem(option[0]):
            return cls((option[1],), option[0])
        return cls(tuple(option))


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine."""
    return urlsplit(url).hostname in LOOPBACK_HOSTS


def image_problem(url: str) -> str | None:
    """Return the problem of the address of an image, or None.

    >>> image_problem("https://example.org/a.png")
    >>> image_problem("http://example.org/a.png")
    "image is 'http://example.org/a.png'; expected an address with https://"
    """
    try:
        parts = urlsplit(url)
        is_valid = (
            bool(parts.hostname)
            and "@" not in parts.netloc
            and not any(character.isspace() or not character.isprintable() for character in url)
            and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url)))
        )
    except ValueError:
        is_valid = False
    return None if is_valid else f"image is {url!r}; expected an address with https://"


def read_contents(path: str) -> dict[tuple[str, str], ItemContent]:
    """Return (group, item) -> content of a table; the group is empty in files without groups.

    Columns: item (or item_id, utterance_id, id), and text; or sentence1 and sentence2; or image and text, its
    description. Raises InputError with all problems: an empty cell, a repeated item or content, an image that
    is not loaded by https (http only from this machine).
    """
    table = read_table(path, (*ID_COLUMNS, *GROUP_COLUMNS, *chain.from_iterable(LAYOUTS)))
    columns = table.frame.columns
    item_column = next((name for name in ID_COLUMNS if name in columns), None)
    group_column = next((name for name in GROUP_COLUMNS if name in columns), None)
    layout = next((names for names in LAYOUTS if set(names) <= set(columns)), None)
    if item_column is None or layout is None:
        message = (
            f"columns are {', '.join(columns)}; expected item, and text, or sentence1 and sentence2, "
            "or image and text (the description of the image)"
        )
        raise InputError(Problem(table.file, 1, message))
    contents: dict[tuple[str, str], ItemContent] = {}
    first_lines: dict[object, int] = {}
    problems = list(table.problems)
    for line, row in zip(table.lines.tolist(), table.frame.iter_rows(named=True), strict=True):
        key = normal_id(row[group_column] if group_column else ""), normal_id(row[item_column])
        content = _content(row, layout)
        problems += [Problem(table.file, line, text) for text in _row_problems(key, row, layout)]
        problems += _repeats(table, line, first_lines, key, content)
        contents[key] = content
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return contents


def _content(row: Mapping[str, str], layout: Sequence[str]) -> ItemContent:
    texts = tuple(row[name].strip() for name in layout if name != "image")
    return ItemContent(texts, row["image"].strip() if "image" in layout else "")


def _row_problems(
    key: tuple[str, str], row: Mapping[str, str], layout: Sequence[str]
) -> Iterator[str]:
    if not key[1]:
        yield "the item is empty; expected an id"
    for name in layout:
        if not row[name].strip():
            expected = "a description of the image" if layout[0] == "image" else "a text"
            yield f"{name} is empty; expected {'an address' if name == 'image' else expected}"
    image = row["image"].strip() if "image" in layout else ""
    if image and (problem := image_problem(image)):
        yield problem


def _repeats(
    table: Table,
    line: int,
    first_lines: dict[object, int],
    key: tuple[str, str],
    content: ItemContent,
) -> Iterator[Problem]:
    """Yield repetitions of an id, and of an address or text within a group."""
    content_key = (key[0], "content", content.image or content.texts)
    for name, value in (("item", key), ("text or image", content_key)):
        first = first_lines.setdefault(value, line)
        if first != line and any(content.texts):
            message = f"the {name} repeats line {first}; expected each once"
            yield Problem(table.file, line, message)
