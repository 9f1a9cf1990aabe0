"""Reader for transliterations of the Bavarian Archive for Speech Signals (SmartKom and Verbmobil).

A turn begins with its name, such as ``w001_pkd_001_AAA:`` (session, microphone, number, speaker), and may
span several lines; lines that begin with ``;`` are comments. The speaker ``SMA`` is the system, other
speakers are users.

`strip_markers` returns the words of a turn without markers. The conventions are those of the lexicon for
Verbmobil II (Burger 1997) and the SmartKom manual (Rabold and Biersack 2002). Retracted parts of repetitions,
corrections and false starts are removed, as are broken-off words. Words interrupted by a pause are joined.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_text
from giccs.preparation.transcripts.objects import Line, Transcript

SYSTEM_SPEAKER = "SMA"
TURN_HEAD = re.compile(r"(\w+?)_(\d{3,4})_([A-Z]{3})(?:_\d+)?:(?:\s+(.*))?$")
MICROPHONE = re.compile(r"([bw]\d{3}_[a-z]{2})[a-z]")
CHANNEL = re.compile(r"([a-z]\d{3}[a-z]{3})\d")


def read_smartkom(path: str | os.PathLike[str]) -> Transcript:
    """Read a transliteration; raise InputError if it has no turns, or text before the first turn."""
    file = display_name(path)
    stripped: Counter[str] = Counter()
    turns: list[tuple[int, re.Match[str], list[str]]] = []
    problems: list[Problem] = []
    for number, text_line in enumerate(read_text(path).splitlines(), start=1):
        head = TURN_HEAD.match(text_line)
        if text_line.startswith(";"):
            stripped["comment line"] += 1
        elif head:
            turns.append((number, head, [head[4] or ""]))
        elif turns:
            turns[-1][2].append(text_line)
        elif text_line.strip():
            message = "text before the first turn; expected a turn such as w001_pkd_001_AAA:"
            problems.append(Problem(file, number, message))
    if not turns:
        problems.append(Problem(file, None, "no turns; expected a turn such as w001_pkd_001_AAA:"))
    if problems:
        raise InputError(problems)
    lines = []
    warnings = []
    for number, head, texts in turns:
        text, marker_counts = strip_markers(" ".join(texts))
        stripped += marker_counts
        lines.append(Line(file, number, _dialogue_name(head[1]), head[2], head[3], text))
        if leftovers := find_leftovers(text):
            message = f"{' '.join(leftovers)} may be unknown markers; kept in the text"
            warnings.append(Problem(file, number, message))
    speakers = {line.speaker for line in lines}
    user_roles = dict.fromkeys(speakers - {SYSTEM_SPEAKER}, "user")
    roles = {**user_roles, SYSTEM_SPEAKER: "system"} if SYSTEM_SPEAKER in speakers else {}
    return Transcript(tuple(lines), tuple(warnings), stripped, roles)


def _dialogue_name(session: str) -> str:
    """Return the dialogue name, which is shared by the sessions of all speakers.

    >>> _dialogue_name("w001_pkd"), _dialogue_name("w001_pkw"), _dialogue_name("g223acn2")
    ('w001_pk', 'w001_pk', 'g223acn')
    """
    match = MICROPHONE.fullmatch(session) or CHANNEL.fullmatch(session)
    return match[1] if match else session


class _Marker(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    replacement: str


LETTERS = {"a": "ä", "o": "ö", "u": "ü", "A": "Ä", "O": "Ö", "U": "Ü", "s": "ß"}
MARKERS = tuple(
    _Marker(kind, re.compile(pattern), replacement)
    for kind, pattern, replacement in (
        # markers within other markers come first
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
LEFTOVER_MARKER = re.compile(r"[<>\[\]{}@=_/\\+*%~#$\"]+")


def strip_markers(text: str) -> tuple[str, Counter[str]]:
    """Return the words and punctuation of a turn, and the number of removed markers by kind.

    The function is idempotent.

    >>> text, counts = strip_markers('<"ahm> ich m"ochte +/in den/+ ins Kino<Z> , <P> #zwanzig Uhr . <A>')
    >>> text
    'ich möchte ins Kino, zwanzig Uhr.'
    >>> counts["repetition or correction"], counts["hesitation"], counts["umlaut"]
    (1, 1, 1)
    >>> strip_markers("was kommt heute a_ <A> _bend im <:<#Klicken> Fernsehen:> ?")[0]
    'was kommt heute abend im Fernsehen?'
    """
    marker_counts: Counter[str] = Counter()
    before = None
    while text != before:  # removing a marker may reveal another
        before = text
        text = SPACE.sub(" ", text)
        for marker in MARKERS:
            text = _replace_marker(
                marker.pattern, marker.replacement, text, marker.kind, marker_counts
            )
        text = _replace_marker(
            UMLAUT, lambda match: LETTERS[match[1]], text, "umlaut", marker_counts
        )
        text = SPACE.sub(" ", text).strip()
        text = CONTRACTION.sub("", PUNCTUATION.sub("", text))
    return text, marker_counts


def find_leftovers(text: str) -> list[str]:
    """Return the character sequences of a stripped text that look like markers.

    >>> find_leftovers("wie {bitte} ?")
    ['{', '}']
    """
    return LEFTOVER_MARKER.findall(text)


def _replace_marker(
    pattern: re.Pattern[str],
    replacement: str | Callable[[re.Match[str]], str],
    text: str,
    kind: str,
    marker_counts: Counter[str],
) -> str:
    text, times = pattern.subn(replacement, text)
    while times:  # markers may be nested
        marker_counts[kind] += times
        text, times = pattern.subn(replacement, text)
    return text
