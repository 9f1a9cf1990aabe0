"""Transliterations of the Bavarian Archive for Speech Signals: SmartKom, and Verbmobil with it.

A turn begins with its name, ``w001_pkd_001_AAA:`` (session, microphone, number, speaker), and goes on over
the lines after it; a line with ``;`` at its beginning is a comment. The system's speaker is ``SMA``, whoever
speaks with it is the user.

`strip` returns what is said within a turn, without its markers. The conventions are those of the lexicon for
Verbmobil II (Burger 1997) and the SmartKom manual (Rabold and Biersack 2002). Of repetitions, corrections and
false starts the part that the speaker took back goes; what was said instead stays. A word that breaks off
goes; a word that a pause interrupts is joined again.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from bws.problems import InputError, Problem
from bws.textio import display_name, read_text
from giccs.preparation.transcripts.objects import Line, Transcript

__all__ = ["HEAD", "SYSTEM", "left_over", "read_smartkom", "strip"]

SYSTEM = "SMA"
HEAD = re.compile(r"(\w+?)_(\d{3,4})_([A-Z]{3})(?:_\d+)?:(?:\s+(.*))?$")
MICROPHONE = re.compile(r"([bw]\d{3}_[a-z]{2})[a-z]")
CHANNEL = re.compile(r"([a-z]\d{3}[a-z]{3})\d")


def read_smartkom(path: str | os.PathLike[str]) -> Transcript:
    """Read a file; raise InputError where it has no turns, or text before the first."""
    file = display_name(path)
    stripped: Counter[str] = Counter()
    turns: list[tuple[int, re.Match[str], list[str]]] = []
    problems: list[Problem] = []
    for number, written in enumerate(read_text(path).splitlines(), start=1):
        head = HEAD.match(written)
        if written.startswith(";"):
            stripped["comment line"] += 1
        elif head:
            turns.append((number, head, [head[4] or ""]))
        elif turns:
            turns[-1][2].append(written)
        elif written.strip():
            message = "text before the first turn; a turn begins like w001_pkd_001_AAA:"
            problems.append(Problem(file, number, message))
    if not turns:
        problems.append(Problem(file, None, "holds no turns; one begins like w001_pkd_001_AAA:"))
    if problems:
        raise InputError(problems)
    lines = []
    warnings = []
    for number, head, texts in turns:
        text, found = strip(" ".join(texts))
        stripped += found
        lines.append(Line(file, number, _dialogue(head[1]), head[2], head[3], text))
        if rest := left_over(text):
            message = f"{' '.join(rest)} may be markers that are not known; they stay in the text"
            warnings.append(Problem(file, number, message))
    speakers = {line.speaker for line in lines}
    others = dict.fromkeys(speakers - {SYSTEM}, "user")
    roles = {**others, SYSTEM: "system"} if SYSTEM in speakers else {}
    return Transcript(tuple(lines), tuple(warnings), stripped, roles)


def _dialogue(session: str) -> str:
    """Return the name that all speakers of a dialogue share.

    >>> _dialogue("w001_pkd"), _dialogue("w001_pkw"), _dialogue("g223acn2")
    ('w001_pk', 'w001_pk', 'g223acn')
    """
    found = MICROPHONE.fullmatch(session) or CHANNEL.fullmatch(session)
    return found[1] if found else session


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
