"""Short names of models, and other labels, in tables and charts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

MAX_LINE_CHARACTERS = 32
"""Longest line of a name in a chart; the tooltip contains the full name."""
WRAPPED_LABELS: Mapping[str, Any] = {
    "labelExpr": "split(datum.label, '\\n')",
    "labelLineHeight": 13,
    "labelLimit": 0,
    "labelBaseline": {
        "condition": {"test": "indexof(datum.label, '\\n') > 0", "value": "bottom"},
        "value": "middle",
    },
}
"""Settings of a vertical Altair axis for labels of one or two lines (`wrap_name`), centred in their rows."""
MIN_ORGANISATION_CHARACTERS = 4
"""Shortest form of an organisation that distinguishes equal names."""
MAX_SHARED_CHARACTERS = 4
"""Largest number of equal characters before the first difference of shortened names."""
BREAKS = re.compile(r"(?<=[-_/.: ])")
"""Positions at which a name can be wrapped."""


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Return the last part of each hub id and path, without those that would be ambiguous.

    >>> short_names(["intfloat/e5-base", "a/mini", "b/mini", "package:minilm"])
    {'intfloat/e5-base': 'e5-base'}
    """
    parts = {model: model.rpartition("/")[2] or model for model in models}
    counts = Counter(parts.values())
    return {model: part for model, part in parts.items() if part != model and counts[part] == 1}


def chart_names(models: Iterable[str], length: int = MAX_LINE_CHARACTERS) -> dict[str, str]:
    """Return a unique name of at most `length` (≥ 16) characters for each model, in the given order.

    The organisation of a hub id, or the folder of a path, is omitted if the rest is unique, otherwise
    shortened. Longer names are shortened by `fit_names`. Settings in parentheses are part of a name.

    >>> names = ["sentence-transformers/mini", "intfloat/mini", "org/e5-base-multilingual"]
    >>> list(chart_names(names, 16).values())
    ['sentence-t…/mini', 'intfloat/mini', 'e5-base-…lingual']
    """
    parts = {name: _split_organisation(name) for name in dict.fromkeys(models)}
    counts = Counter(rest for _, rest in parts.values())
    names = {
        name: _with_organisation(organisation, rest, length) if counts[rest] > 1 else rest
        for name, (organisation, rest) in parts.items()
    }
    return fit_names(names, length)


def fit_names(names: Mapping[str, str], length: int) -> dict[str, str]:
    """Return unique texts of at most `length` (≥ 16) characters by the same keys.

    The middle of a longer text is replaced by an ellipsis. Texts that would then be equal show the part in
    which they differ; the last resort is a number.

    >>> names = [f"distiluse-base-{version}-cased-multilingual" for version in ("v1", "v2")]
    >>> list(fit_names(dict(zip(names, names)), 16).values())
    ['dist…v1-cased-m…', 'dist…v2-cased-m…']
    """
    short = {key: _cut_middle(text, length) for key, text in names.items()}
    for group in _groups_of_equal(short):
        short |= _differing_parts({key: names[key] for key in group}, length)
    for group in _groups_of_equal(short):
        for key in group[1:]:
            short[key] = _numbered(short[key], set(short.values()), length)
    return short


def wrap_name(name: str, width: int) -> str:
    r"""Return a name in lines of at most `width` characters, broken behind punctuation if possible.

    >>> wrap_name("paraphrase-multilingual-mpnet", 24)
    'paraphrase-multilingual-\nmpnet'
    """
    lines = [""]
    for part in BREAKS.split(name):
        for piece in (part[start : start + width] for start in range(0, len(part), width)):
            if len(lines[-1] + piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def wrap_names(names: Mapping[str, str], width: int) -> dict[str, str]:
    r"""Return unique texts of at most two lines of `width` (≥ 16) characters by the same keys.

    Longer texts are shortened by `fit_names`.

    >>> wrap_names({"a": "paraphrase-multilingual-mpnet", "b": "mini"}, 24)
    {'a': 'paraphrase-multilingual-\nmpnet', 'b': 'mini'}
    """
    for margin in range(0, width + 1, 2):  # a break behind punctuation may need a third line
        short = fit_names(names, 2 * width - margin)
        lines = {key: wrap_name(text, width) for key, text in short.items()}
        if all(text.count("\n") < 2 for text in lines.values()):
            break
    return lines


def cut_end(text: str, length: int) -> str:
    """Return a text of at most `length` characters, whose missing end is an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def _split_organisation(name: str) -> tuple[str, str]:
    """Return the organisation and the rest; slashes in settings are ignored.

    >>> _split_organisation("org/mini (prompt a/b)"), _split_organisation("mini")
    (('org', 'mini (prompt a/b)'), ('', 'mini'))
    """
    model, separator, settings = name.partition(" (")
    organisation, _, rest = model.rpartition("/")
    return (organisation, rest + separator + settings) if rest else ("", name)


def _with_organisation(organisation: str, rest: str, length: int) -> str:
    if not organisation:
        return rest
    space = max(MIN_ORGANISATION_CHARACTERS, length - len(rest) - 1)
    return f"{cut_end(organisation, space)}/{rest}"


def _cut_middle(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    end = (length - 1) // 2
    return f"{text[: length - 1 - end]}…{text[-end:]}"


def _groups_of_equal(names: Mapping[str, str]) -> list[list[str]]:
    """Return the keys of equal texts, per text."""
    groups: dict[str, list[str]] = {}
    for key, text in names.items():
        groups.setdefault(text, []).append(key)
    return [group for group in groups.values() if len(group) > 1]


def _differing_parts(names: Mapping[str, str], length: int) -> dict[str, str]:
    """Return the beginning of each text, and its part from the first difference on."""
    head = length // 4
    columns = zip(*names.values(), strict=False)  # only the part that all have can be common
    common = "".join(column[0] for column in takewhile(lambda each: len(set(each)) == 1, columns))
    word = len(BREAKS.split(common)[-1])
    start = max(head, len(common) - min(word, MAX_SHARED_CHARACTERS))
    return {
        key: f"{text[:head]}…{cut_end(text[start:], length - head - 1)}"
        for key, text in names.items()
    }


def _numbered(name: str, used: set[str], length: int) -> str:
    for number in range(2, len(used) + 3):
        suffix = f" #{number}"
        candidate = f"{name[: length - len(suffix)]}{suffix}"
        if candidate not in used:
            return candidate
    raise AssertionError("unreachable: more candidates than names")
