"""Ends of a participation in a study: the code and the place of each, with and without submitted tasks.

Whoever has submitted a task gets a code or a way to reach the researchers, and is never asked to give up the
place at the panel. The table in docs/operations/participations.md has the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FINISHED, WITHDRAWN, NO_CONSENT = "finished", "withdrawn", "no_consent"
SCREENED_OUT, TIMED_OUT, ERASED = "screened_out", "timed_out", "erased"
"""Outcomes of participations in the database."""
LEFT, RELEASED, FULL, CLOSED = "left", "released", "full", "closed"
"""Ends that are no outcomes: the participant can continue, or has never begun."""


@dataclass(frozen=True, slots=True)
class End:
    """The code and the place of a participant at an end."""

    codes: tuple[str, ...] = ()
    """Settings of the study; the first that is not empty is the code. None: no code."""
    holds_place: bool = True
    """Whether the participant still counts towards the maximum of the study."""


ENDS: Mapping[tuple[str, bool], End] = {
    # (end, whether a task was submitted)
    (FINISHED, False): End(),  # no task is available at the moment
    (FINISHED, True): End(("completion_code",)),
    (WITHDRAWN, False): End(("withdrawn_code",), holds_place=False),
    (WITHDRAWN, True): End(("withdrawn_code", "completion_code")),
    (NO_CONSENT, False): End(("no_consent_code",), holds_place=False),
    (NO_CONSENT, True): End(("no_consent_code", "completion_code")),
    (SCREENED_OUT, False): End(("screened_out_code",), holds_place=False),
    (SCREENED_OUT, True): End(("screened_out_code", "completion_code")),
    (TIMED_OUT, False): End(("timed_out_code",), holds_place=False),
    (TIMED_OUT, True): End(("timed_out_code",)),
    (LEFT, False): End(),
    (LEFT, True): End(),
    (RELEASED, False): End(holds_place=False),
    (RELEASED, True): End(),
    (FULL, False): End(holds_place=False),  # those who have submitted a task hold a place
    (CLOSED, False): End(),
    (CLOSED, True): End(),
    (ERASED, False): End(holds_place=False),
    (ERASED, True): End(),
}
OUTCOMES = (FINISHED, WITHDRAWN, NO_CONSENT, SCREENED_OUT, TIMED_OUT, ERASED)
FREEING_OUTCOMES = tuple(name for name in OUTCOMES if not ENDS[name, False].holds_place)
"""Outcomes that free the place of a participant who has submitted nothing."""
WITHOUT_TASKS = (WITHDRAWN, SCREENED_OUT, TIMED_OUT)
"""Outcomes after which a participant gets no task in the same session, and is asked for nothing."""
