"""Paragraphs for the methods section of a paper: sentences with numbers and references, in English or German.

The texts are in ``LANGUAGE.toml``, with citations in the form of Pandoc (``[@key]``); the references are in
``references.toml``. `bws.paragraphs.judgments` and `giccs.report.comparison_paragraph` select the sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from string import Formatter
from typing import Any

from bws.base.latex import latex_text
from bws.base.notes import p_text
from bws.base.tables import Interval, wrapped
from bws.base.text import parse_toml

LANGUAGES = ("en", "de")
CITATION = re.compile(r" \[(@[^\]]+)\]")
GERMAN_SEPARATORS = str.maketrans({",": ".", ".": ","})
UNDEFINED = {"en": "undefined", "de": "nicht definiert"}
BETWEEN_LIMITS = {"en": ", ", "de": "; "}


@dataclass(frozen=True)
class Sentence:
    """A sentence: the name of its text, and its values."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)


class _LocalFormatter(Formatter):
    """`str.format` with the separators of a language; an estimate has its interval in brackets."""

    def __init__(self, language: str) -> None:
        self._language = language

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, str):
            text = str(_toml(f"{self._language}.toml")["words"].get(value, value))
            return text.replace("[@", "[\N{WORD JOINER}@")  # no citation, in the name of a model
        if isinstance(value, Interval):
            limits = [self.format_field(limit, format_spec) for limit in (value.low, value.high)]
            number = self.format_field(value.value, format_spec)
            if math.isnan(value.low) or math.isnan(value.high):
                return number
            return f"{number} [{BETWEEN_LIMITS[self._language].join(limits)}]"
        if math.isnan(value):
            return UNDEFINED[self._language]
        text = p_text(value) if format_spec == "p" else format(value, format_spec)
        text = text.replace("%", "\N{NO-BREAK SPACE}%")
        return text.translate(GERMAN_SEPARATORS) if self._language == "de" else text


def prose(sentences: Iterable[Sentence], language: str = "en") -> str:
    """Return the sentences as plain text in one line, without the BibTeX entries of its citations.

    >>> sentence = Sentence("agreement_strong", {"best": 12.5, "worst": 25.0, "share": 80})
    >>> print(prose([sentence], "de").replace("\N{NO-BREAK SPACE}", "~")[:56])
    Mindestens 80~% der Annotierenden gaben bei 12,5~% der T
    """
    words = _toml(f"{language}.toml")["words"]

    def plain(match: re.Match[str]) -> str:
        texts = (_references()[key]["text"] for key in _keys(match[1]))
        return f" ({'; '.join(texts).replace(' and ', words.get(' and ', ' and '))})"

    return CITATION.sub(plain, _text(sentences, language))


def _text(sentences: Iterable[Sentence], language: str) -> str:
    texts, formatter = _toml(f"{language}.toml"), _LocalFormatter(language)
    return " ".join(formatter.vformat(texts[each.name], (), each.values) for each in sentences)


def paragraph(sentences: Sequence[Sentence], language: str = "en", form: str = "table") -> str:
    """Return the sentences as a paragraph, followed by the BibTeX entries of its citations.

    form: ``table`` for plain text, ``markdown`` with citations for Pandoc, ``latex`` with ``\\citep`` of
    natbib and the entries as comments.
    """
    text = _text(sentences, language)
    keys = citation_keys(text)
    entries = [_references()[key]["bibtex"].strip() for key in keys]
    if form == "latex":
        body = "".join(
            f"~\\citep{{{','.join(_keys(part))}}}" if n % 2 else latex_text(part)
            for n, part in enumerate(CITATION.split(text))
        )
        comments = [f"% {line}" for entry in entries for line in entry.splitlines()]
        return "\n".join([body, *comments])
    if form == "markdown":
        blocks = "\n\n".join(entries)
        return f"{text}\n\n```bibtex\n{blocks}\n```" if entries else text
    return "\n\n".join([wrapped(prose(sentences, language), indent=""), *entries])


def citation_keys(text: str) -> list[str]:
    """Return the distinct keys of the citations of a text, in their order.

    >>> citation_keys("a [@orme2009; @holm1979] and b [@orme2009]")
    ['orme2009', 'holm1979']
    """
    return list(dict.fromkeys(key for found in CITATION.findall(text) for key in _keys(found)))


def _keys(citation: str) -> list[str]:
    return [key.strip().removeprefix("@") for key in citation.split(";")]


def _references() -> Mapping[str, Any]:
    return _toml("references.toml")


@cache
def _toml(name: str) -> Mapping[str, Any]:
    return parse_toml((resources.files(__package__) / name).read_text("utf-8"), name)
