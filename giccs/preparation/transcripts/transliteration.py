"""What a transliteration of spontaneous speech (Verbmobil, SmartKom) says without its markers.

The conventions are those of the Bavarian Archive for Speech Signals: the lexicon for Verbmobil II (Burger
1997) and the SmartKom manual (Rabold and Biersack 2002). Of repetitions, corrections and false starts the
part that the speaker took back goes; what was said instead stays. A word that breaks off goes; a word that
a pause interrupts is joined again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["left_over", "strip"]


class _Marker(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    instead: str


LETTERS = {"a": "ä", "o": "ö", "u": "ü", "A": "Ä", "O": "Ö", "U": "Ü", "s": "ß"}
MARKERS = tuple(
    _Marker(kind, re.compile(pattern), instead)
    for kind, pattern, instead in (
        # what stands within other markers comes first
        ("comment", r"<;[^<>]*>", " "),
        ("pronunciation", r"<![^<>]*>", " "),
        ("prosodic label", r"\[(?:PA|NA|EK|B\d)(?: ?(?:rise|fall|cont))?\]", " "),
        ("noise over words", r"<:\s*<[^<>]*>((?:(?!<:|:>).)*):>", r"\1"),
        ("technical break", r"<\*T>t?|<_T>|<T_>", ""),
        ("off-talk", r"<\*t[RO]OT>|<[RPO]OT>", ""),
        ("language", r"<\*[A-Z]{2,3}>", ""),
        ("lengthening", r"<Z>", ""),
        ("breathing", r"<[AB]>", " "),
        ("pause", r"<PP?>", " "),
        ("hesitation", r"<(?:\"ahm?|ähm?|hm|h\"as|häs|uhm?)>", " "),
        ("unintelligible", r"<%>", " "),
        ("noise", r"<[^<>:]*>", " "),
        ("repetition or correction", r"\+/(?:(?!\+/|/\+).)*/\+", " "),
        ("false start", r"-/(?:(?!-/|/-).)*/-", " "),
        ("interrupted word joined", r"(?<=\w)_\s+_(?=\w)", ""),
        ("broken-off word", r"[^\W_][\w'-]*=(?!\w)|(?<![\w=])=[\w'-]+", " "),
        ("overlap", r"@\d*|(?<![\w.,])\d+@", ""),
        ("keyword", r"!KEY(?=\w)", ""),
        ("word marker", r"(?<!\w)[*%~#$]+(?=\w)|(?<=\w)[*%]+(?!\w)", ""),
    )
)
UMLAUT = re.compile(r'"([aouAOUs])')
SPACE = re.compile(r"\s+")
PUNCTUATION = re.compile(r" +(?=[.,?!:;](?:\s|$))")
CONTRACTION = re.compile(r"(?<=\w) (?='\w\b)")
LEFT = re.compile(r"[<>\[\]{}@=_/\\+*%~#$\"]+")


def strip(text: str) -> tuple[str, Counter[str]]:
    """Return the words and punctuation of a turn, and how many markers of each kind were taken away.

    Stripping again changes nothing.

    >>> said, found = strip('<"ahm> ich m"ochte +/in den/+ ins Kino<Z> , <P> #zwanzig Uhr . <A>')
    >>> said
    'ich möchte ins Kino, zwanzig Uhr.'
    >>> found["repetition or correction"], found["hesitation"], found["umlaut"]
    (1, 1, 1)
    >>> strip("was kommt heute a_ <A> _bend im <:<#Klicken> Fernsehen:> ?")[0]
    'was kommt heute abend im Fernsehen?'
    """
    found: Counter[str] = Counter()
    before = None
    while text != before:  # what one marker hid may be another
        before = text
        text = SPACE.sub(" ", text)
        for marker in MARKERS:
            text = _replace(marker.pattern, marker.instead, text, marker.kind, found)
        text = _replace(UMLAUT, lambda match: LETTERS[match[1]], text, "umlaut", found)
        text = SPACE.sub(" ", text).strip()
        text = CONTRACTION.sub("", PUNCTUATION.sub("", text))
    return text, found


def left_over(text: str) -> list[str]:
    """Return what still looks like a marker in a stripped text.

    >>> left_over("wie {bitte} ?")
    ['{', '}']
    """
    return LEFT.findall(text)


def _replace(
    pattern: re.Pattern[str],
    instead: str | Callable[[re.Match[str]], str],
    text: str,
    kind: str,
    found: Counter[str],
) -> str:
    text, times = pattern.subn(instead, text)
    while times:  # one marker may stand within another of its kind
        found[kind] += times
        text, times = pattern.subn(instead, text)
    return text
