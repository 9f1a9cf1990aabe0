"""The noise ceiling of a benchmark, computed once and stored with the results on it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bws.command import json_ready
from bws.records import Judgments
from bws.textio import read_text, write_atomic
from giccs.benchmark import Benchmark
from giccs.measures.ceiling import METHOD, judgments_digest, noise_ceiling
from giccs.measures.metrics import Estimate
from giccs.measures.results import digest, read_estimates

__all__ = ["ceiling_path", "ceiling_with_results", "read_ceiling"]

log = logging.getLogger(__name__)

Ceiling = Mapping[str, Estimate]
Note = Callable[[str], None]
SEED = 0


def ceiling_path(folder: str | os.PathLike[str], fingerprint: str) -> Path:
    """Return the file in a results folder that stores the ceiling of a benchmark."""
    return Path(folder) / "ceiling" / f"{fingerprint[:12]}.json"


def read_ceiling(
    folder: str | os.PathLike[str], fingerprint: str, judged: str | None, note: Note = log.debug
) -> Ceiling | None:
    """Return the ceiling of a benchmark that a results folder stores; None where it stores no such.

    judged: `judgments_digest` of the judgments behind the scores; None where they are not at hand. A file
    that is damaged, of another benchmark, of other judgments or of another version of the method is
    ignored with a note.
    """
    path = ceiling_path(folder, fingerprint)
    if not path.exists():
        return None
    try:
        document = json.loads(read_text(path))
        signature, estimates = document["signature"], read_estimates(document["ceiling"])
        is_whole = document["sha256"] == digest(_measured(signature, document["ceiling"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_whole = False
    if not is_whole:
        note(f"{path} is ignored: it is damaged")
        return None
    expected = _signature(fingerprint, signature["judgments"] if judged is None else judged)
    differing = [key for key in expected if signature.get(key) != expected[key]]
    if differing:
        note(f"{path} is ignored: it is of another {', '.join(differing)}")
        return None
    return estimates


def ceiling_with_results(
    folder: str | os.PathLike[str], judgments: Judgments, benchmark: Benchmark, note: Note
) -> Ceiling:
    """Return the stored noise ceiling of these judgments, or compute and store it.

    InputError as of `noise_ceiling`. Where the folder cannot be written to, a note says so.
    """
    judged = judgments_digest(judgments)
    stored = read_ceiling(folder, benchmark.fingerprint, judged, note)
    if stored is not None:
        return stored
    ceiling = noise_ceiling(judgments, benchmark, seed=SEED)
    signature = _signature(benchmark.fingerprint, judged)
    estimates = {name: estimate.document() for name, estimate in ceiling.items()}
    measured = _measured(signature, estimates)
    text = json.dumps(json_ready({**measured, "sha256": digest(measured)}), indent=2)
    try:
        path = ceiling_path(folder, benchmark.fingerprint)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, f"{text}\n")
    except OSError as error:
        note(f"the noise ceiling is not stored: {error}")
    return ceiling


def _signature(fingerprint: str, judged: str) -> dict[str, Any]:
    return {"data": fingerprint, "judgments": judged, "method": METHOD, "seed": SEED}


def _measured(signature: Mapping[str, Any], estimates: Mapping[str, Any]) -> dict[str, Any]:
    return {"signature": signature, "ceiling": estimates}
