"""Search for words in texts, regardless of case: hits, and texts with marked hits as HTML."""

from __future__ import annotations

import html


def fold(text: str) -> str:
    """Return a text in lower case with the same number of characters, so that positions are those of `text`.

    A character with a longer lower case is unchanged; a final sigma is a sigma.

    >>> fold("Grüße, ΟΔΟΣ"), len(fold("İ"))
    ('grüße, οδοσ', 1)
    """
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return lower.replace("ς", "σ")


def hits(text: str, words: str) -> list[tuple[int, int]]:
    """Return the first index of each hit, and the index after its end; hits do not overlap.

    >>> hits("Hotel, hotels", "hotel"), hits("aaa", "aa"), hits("a", "")
    ([(0, 5), (7, 12)], [(0, 2)], [])
    """
    folded_text, folded_words = fold(text), fold(words)
    spans: list[tuple[int, int]] = []
    start = folded_text.find(folded_words) if words else -1
    while start >= 0:
        spans.append((start, start + len(words)))
        start = folded_text.find(folded_words, start + len(words))
    return spans


def mark_hits(text: str, words: str) -> str:
    """Return a text as HTML with each hit marked; its characters are escaped.

    >>> mark_hits("<b> Ab", "AB")
    '&lt;b&gt; <mark>Ab</mark>'
    """
    parts, end = [], 0
    for start, next_end in hits(text, words):
        hit = html.escape(text[start:next_end])
        parts += [html.escape(text[end:start]), f"<mark>{hit}</mark>"]
        end = next_end
    return "".join([*parts, html.escape(text[end:])])
