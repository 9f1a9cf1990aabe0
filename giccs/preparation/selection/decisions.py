"""Log of decisions about dialogues in JSON Lines: the settings, followed by one decision per line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from bws.base.rows import json_lines_text
from bws.base.text import display_name, read_bytes, write_atomic


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a dialogue."""

    dialogue_id: str
    decision: str
    details: Mapping[str, Any] = field(default_factory=dict)


def write_log(
    path: str | os.PathLike[str],
    command: str,
    files: Iterable[str],
    settings: Mapping[str, Any],
    decisions: Iterable[Decision],
) -> None:
    """Write the log atomically.

    files: input files; the first line contains their SHA-256 digests.
    """
    digests = {
        display_name(file): hashlib.sha256(read_bytes(file)).hexdigest()
        for file in files
        if file != "-"
    }
    head = {
        "decision": "settings",
        "command": command,
        "version": version("giccs"),
        "files": digests,
        **settings,
    }
    lines = [head]
    lines += [
        {"dialogue_id": decision.dialogue_id, "decision": decision.decision, **decision.details}
        for decision in decisions
    ]
    write_atomic(path, json_lines_text(lines))
