"""Transliterations of the Bavarian Archive for Speech Signals: SmartKom, and Verbmobil with it.

A turn begins with its name, ``w001_pkd_001_AAA:`` (session, microphone, number, speaker), and goes on over
the lines after it; a line with ``;`` at its beginning is a comment. The system's speaker is ``SMA``, whoever
speaks with it is the user. What stands within a turn is told by `transliteration`.
"""

from __future__ import annotations

import os
import re
from collections import Counter

from bws.problems import InputError, Problem
from bws.textio import display_name, read_text
from giccs.preparation.transcripts.lines import Line, Transcript
from giccs.preparation.transcripts.transliteration import left_over, strip

__all__ = ["HEAD", "SYSTEM", "read"]

SYSTEM = "SMA"
HEAD = re.compile(r"(\w+?)_(\d{3,4})_([A-Z]{3})(?:_\d+)?:(?:\s+(.*))?$")
MICROPHONE = re.compile(r"([bw]\d{3}_[a-z]{2})[a-z]")
CHANNEL = re.compile(r"([a-z]\d{3}[a-z]{3})\d")


def read(path: str | os.PathLike[str]) -> Transcript:
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
