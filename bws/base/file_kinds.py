"""Detection of kinds of files by their columns and content, independent of their names."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bws.base.problems import InputError, Problem

BEST = ("best", "bestitem", "most", "mostrelated", "bestpair")
WORST = ("worst", "worstitem", "least", "leastrelated", "worstpair")
PEOPLE = ("annotator", "worker", "participant", "user", "respondent", "rater")
ANNOTATOR = (*(f"{person}{suffix}" for person in PEOPLE for suffix in ("", "id")), "pid")
TUPLE = ("tupleid", "tuple")
GROUP = ("group", "dialogueid")
ITEM, SCORE = ("item", "itemid", "utteranceid"), ("score",)
TEXT_PAIRS = (
    ("text1", "text2"), ("sentence1", "sentence2"), ("sentencea", "sentenceb"), ("texta", "textb"),
    ("sent1", "sent2"), ("utterance1", "utterance2"), ("word1", "word2"), ("s1", "s2"),
)  # fmt: skip
PAIR_SCORES = (
    "score", "similarityscore", "similarity", "relatednessscore", "relatedness", "rating", "goldscore",
    "gold", "label", "labels",
)  # fmt: skip
ROLES = ("items", "best", "worst", "value", "tuple_id", "group", "annotator")
"""Roles of columns of judgments that ``--column`` names; ``value`` is of the long form."""
LONG = {
    "annotator": ("id", *ANNOTATOR, "uid", "person", "responseid"),
    "tuple_id": ("block", *TUPLE, "trial", "trialid", "question", "questionid", "task", "set"),
    "items": (
        "item", "itemid", "label", "issue", "character", "alternative", "option", "attribute", "object",
    ),
    "value": ("value", "decision", "choice", "response", "answer"),
}  # fmt: skip
"""Plain names of the columns of the long form by role; the first, bwsTools' own, have priority."""


def plain(name: str) -> str:
    """Return a column name without case, spaces and punctuation.

    >>> plain("Most_Related"), plain("best-pair")
    ('mostrelated', 'bestpair')
    """
    return re.sub(r"[\W_]+", "", name).lower()


def first_of(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the column that matches the earliest of `names` by plain name, or None.

    >>> first_of(["Worst", "BestItem"], BEST)
    'BestItem'
    """
    column_by_name = {plain(column): column for column in columns}
    return next((column_by_name[name] for name in names if name in column_by_name), None)


def numbered(columns: Iterable[str], prefix: str = r".*?") -> list[str]:
    """Return the columns named by the prefix (a pattern) and 1, 2, 3, ..., in this order.

    Empty if a number is missing or repeated.

    >>> numbered(["item2", "item1", "best"], "item")
    ['item1', 'item2']
    >>> numbered(["SentPair1", "SemPair2", "Best"])
    ['SentPair1', 'SemPair2']
    """
    matches = [(re.fullmatch(rf"{prefix}[ _.-]?(\d{{1,3}})", name, re.I), name) for name in columns]
    numbered_columns = sorted((int(match[1]), name) for match, name in matches if match)
    right = [number for number, _ in numbered_columns] == list(range(1, len(numbered_columns) + 1))
    return [name for _, name in numbered_columns] if right else []


def pair_columns(columns: Iterable[str]) -> tuple[str, str, str] | None:
    """Return the columns of two texts and of their similarity, or None.

    A table with conditions (C-STS) has none.

    >>> pair_columns(["idx", "Sentence 1", "Sentence 2", "label"])
    ('Sentence 1', 'Sentence 2', 'label')
    >>> pair_columns(["sentence1", "sentence2", "condition", "label"])
    """
    names = list(columns)
    score = first_of(names, PAIR_SCORES)
    if not score or first_of(names, ("condition",)):
        return None
    pairs = ((first_of(names, (a,)), first_of(names, (b,))) for a, b in TEXT_PAIRS)
    return next(((first, second, score) for first, second in pairs if first and second), None)


def column_roles(columns: Sequence[str]) -> list[str]:
    """Return the role of each column in a header of judgments; an empty list for any other header.

    Roles are best, worst and the numbers of items; other columns have their plain name.

    >>> column_roles(["SentPair1", "SemPair2", "Best", "Worst"])
    ['1', '2', 'best', 'worst']
    >>> column_roles(["Item1", "Item2", "Most related", "Least related"])
    ['1', '2', 'best', 'worst']
    >>> column_roles(["a", "b"])
    []
    """
    items, best, worst = numbered(columns), first_of(columns, BEST), first_of(columns, WORST)
    if not items or best is None or worst is None:
        return []
    roles = {name: str(number) for number, name in enumerate(items, start=1)}
    roles |= {best: "best", worst: "worst"}
    return [roles.get(name, plain(name)) for name in columns]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file."""

    name: str
    title: str
    """Name of the kind in messages."""
    readers: str
    """The commands that read or convert it."""
    columns: frozenset[str] = frozenset()
    """Columns (or keys) that it always has and that no other kind has together; empty if names vary."""


KINDS = {
    kind.name: kind
    for kind in (
        FileKind(
            "anchors", "a file of anchors", "bws-score --absolute reads it",
            frozenset({"item", "annotator", "kind", "answer"}),
        ),
        FileKind(
            "anchor-plan", "a plan of anchors", "bws-simulate --anchors reads it",
            frozenset({"anchor", "kind", "item1"}),
        ),
        FileKind("judgments", "a judgments file", "bws-score computes scores from it"),
        FileKind("tuples", "a tuples file", "bws-simulate and mturk-hits publish read it"),
        FileKind(
            "pairs", "a file of rated pairs",
            'the task sentence-similarity reads it (--task sentence-similarity; task="sentence-similarity")',
        ),
        FileKind(
            "benchmark", "a benchmark", "giccs-eval --data reads it",
            frozenset({"item_id", "utterance", "score"}),
        ),
        FileKind(
            "dialogues", "a dialogues file", "giccs-build converts it to a benchmark",
            frozenset({"dialogue_id", "turns"}),
        ),
        FileKind(
            "soft-targets", "a soft targets file", "giccs-card --soft-targets includes it in a dataset card",
            frozenset({"tuple_id", "item", "p_best", "p_worst"}),
        ),
        FileKind("scores", "a scores file", "giccs-build --scores reads it"),
        FileKind(
            "csts", "a C-STS file", "giccs-csts and giccs-eval --task csts read it",
            frozenset({"sentence1", "sentence2", "condition"}),
        ),
        FileKind(
            "dialogue-table", "a table of dialogues", "giccs-build import converts it to a dialogues file",
            frozenset({"context", "candidates"}),
        ),
        *(
            FileKind(
                name, "a chat log", "giccs-build import converts it to a dialogues file", frozenset({key})
            )
            for name, key in (("chats", "messages"), ("sharegpt", "conversations"))
        ),
    )
}  # fmt: skip
"""By name; the first match has priority."""


def kind_of(columns: Iterable[str]) -> FileKind | None:
    """Return the kind of file that has these columns or keys, or None.

    >>> kind_of(["item", "group", "score", "best", "worst"]).name
    'scores'
    >>> kind_of(["dialogue_id", "turns", "candidates"]).title
    'a dialogues file'
    >>> kind_of(["word", "frequency"])
    """
    names = [str(column) for column in columns]
    return next((kind for kind in KINDS.values() if _fits(kind, names)), None)


def _fits(kind: FileKind, columns: Collection[str]) -> bool:
    if kind.columns:
        return kind.columns <= set(columns)
    if kind.name == "judgments":
        return bool(numbered(columns) and first_of(columns, BEST) and first_of(columns, WORST))
    if kind.name == "tuples":
        answers = first_of(columns, (*BEST, *WORST))
        return len(numbered(columns, "item")) > 1 and answers is None
    if kind.name == "pairs":
        return pair_columns(columns) is not None
    return bool(first_of(columns, ITEM) and first_of(columns, SCORE))


def _kind_of_header(line: str) -> FileKind | None:
    """Return the kind of delimited file that has this first line, or None.

    >>> _kind_of_header("item,group,score").name
    'scores'
    """
    for separator in (",", "\t", ";"):
        try:
            kind = kind_of(next(csv.reader([line], delimiter=separator), []))
        except csv.Error:
            continue
        if kind:
            return kind
    return None


def remark(columns: Iterable[str], expected: str = "") -> str:
    """Return a message suffix with the kind of a file with these columns and the commands that read it.

    expected: name of the kind that the command expects. The suffix is empty for such a file, and for a file
    with some of
        its columns, which may have lost the others.

    >>> remark(["dialogue_id", "turns"])
    '; this is a dialogues file; giccs-build converts it to a benchmark'
    >>> remark(["dialogue_id", "turns"], "dialogues"), remark(["a"])
    ('', '')
    >>> remark(["dialogue_id", "turns", "item_id"], "benchmark")
    ''
    """
    names = [str(column) for column in columns]
    kind, expected_columns = kind_of(names), KINDS.get(expected)
    if kind is None or kind is expected_columns:
        return ""
    order = list(KINDS.values())
    if (
        expected_columns
        and expected_columns.columns & set(names)
        and order.index(kind) > order.index(expected_columns)
    ):
        return ""
    return f"; this is {kind.title}; {kind.readers}"


def text_remark(text: str) -> str:
    """Return the `remark` for the text of a file: delimited, JSON Lines or a JSON array.

    >>> text_remark("text1,text2,score\\nKite.,Bus.,0.5")[:32]
    '; this is a file of rated pairs;'
    """
    first = text.lstrip().partition("\n")[0]
    keys = json_keys(first)
    if keys is None and first.startswith("["):
        keys = json_keys(text)
    if keys is not None:
        return remark(keys)
    kind = _kind_of_header(first)
    return f"; this is {kind.title}; {kind.readers}" if kind else ""


MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|table|\?xml)\b", re.I)
SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}
KNOWN_COLUMNS = frozenset({
    "item", "itemid", "utteranceid", "id", "group", "dialogueid", "tupleid",
    "text", "sentence", "utterance", "context", "candidates", "score",
})  # fmt: skip
"""Plain names that are frequent in headers of tables."""


def check_is_no_markup(text: str, name: str) -> None:
    """Raise InputError for text that begins as HTML or XML, such as a saved error page."""
    if MARKUP.match(text):
        message = (
            "is an HTML or XML page; download the data itself, or save the table as CSV (UTF-8)"
        )
        raise InputError(Problem(name, None, message))


def json_keys(text: str) -> list[str] | None:
    """Return the keys of a JSON object, an empty list for a list of other values, and None for other text.

    For a list, the keys are those of its first object.

    >>> json_keys('{"item": "a"}'), json_keys("[1, 2]"), json_keys("item,score")
    (['item'], [], None)
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = value[0] if isinstance(value, list) and value else value
    return list(value) if isinstance(value, dict) else []


def check_is_json_lines(text: str, name: str) -> None:
    """Raise InputError for a JSON array of several lines, or several lines of which none begins an object."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return
    if text.lstrip().startswith("[") and (keys := json_keys(text)) is not None:
        message = f"is one JSON document; expected JSON Lines, one object per line{remark(keys)}"
        raise InputError(Problem(name, None, message))
    if any(line.lstrip().startswith("{") for line in lines):
        return
    check_is_no_markup(text, name)
    message = f"{len(lines)} lines are not JSON; expected JSON Lines, one object per line"
    if kind := _kind_of_header(lines[0]):
        message = f"this is {kind.title} (CSV); {kind.readers}"
    raise InputError(Problem(name, None, message))


def table_separator(text: str) -> str | None:
    """Return the name of the field separator of a table, or None for a list.

    A table has tabs in its first line, or a header: two or more distinct fields without surrounding white
    space, of which one is a frequent column name, or whose number is the same in every row.

    >>> table_separator("id,context\\nd1,Hello, you"), table_separator("yes, please\\nno, thanks")
    ('commas', None)
    """
    lines = [line for line in text.split("\n") if line.strip()]
    for separator, words in SEPARATORS.items():
        fields = _fields(lines[:1], separator)
        if not fields or len(fields[0]) < 2:
            continue
        if separator == "\t" or (
            _may_be_header(fields[0]) and _is_table(fields[0], lines, separator)
        ):
            return words
    return None


def is_header(fields: Collection[str], optional_columns: Iterable[str]) -> bool:
    """Return whether the first row is a header: it has frequent column names that no other row has.

    optional_columns: the fields of the other rows. Without other rows, a frequent name alone does not make a
    header.
    """
    if KNOWN_COLUMNS.isdisjoint(map(plain, fields)):
        return False
    optional = set(optional_columns)
    return bool(optional) and optional.isdisjoint(fields)


def _fields(lines: list[str], separator: str) -> list[list[str]]:
    """Return the rows of delimited lines; empty if they cannot be parsed."""
    try:
        return [
            row for row in csv.reader((f"{line}\n" for line in lines), delimiter=separator) if row
        ]
    except csv.Error:
        return []


def _may_be_header(fields: Collection[str]) -> bool:
    return len(set(fields)) == len(fields) and all(name and name == name.strip() for name in fields)


def _is_table(header: Collection[str], lines: list[str], separator: str) -> bool:
    if kind_of(header) or not KNOWN_COLUMNS.isdisjoint(map(plain, header)):
        return True
    rows = _fields(lines, separator)
    return len(rows) > 1 and all(len(row) == len(header) for row in rows)
