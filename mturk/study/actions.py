"""Carrying out decisions, each exactly once, whatever crashes, is lost or comes twice.

A decision is written down before the first call; its token follows from what it says, so that the same
file read again gives the same decisions. Each is marked as sent before its call and as done after it.
One that was sent and not done may have been carried out: every call here finds that out for itself.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mturk.study.ledger import Action, ActionKind, Ledger

__all__ = ["Outcome", "RefusedError", "action", "carry_out", "supersede", "unfinished"]

log = logging.getLogger(__name__)

TOKEN_DIGITS = 40
Clock = Callable[[], float]
Do = Callable[[Action], bool]
"""Carries out an action: True where this call has done it, False where it was done before."""


class RefusedError(Exception):
    """The service does not carry out a decision; the text says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of decisions."""

    done: tuple[Action, ...]
    """Now."""
    before: tuple[Action, ...]
    """Earlier: nothing was to be done."""
    refused: tuple[tuple[Action, str], ...]
    """With the service's reason."""


def action(kind: ActionKind, target: str, amount: str = "", text: str = "") -> Action:
    """Return a decision with its token, at most 64 characters.

    >>> action("bonus", "3A", "0.50", "Danke").token
    'bonus-805d88aeaadeaca11090653327e78063ee72bba2'
    """
    said = json.dumps([kind, target, amount, text]).encode("ascii")
    token = f"{kind}-{hashlib.sha256(said).hexdigest()[:TOKEN_DIGITS]}"
    return Action(token, kind, target, amount, text)


def unfinished(ledger: Ledger, *kinds: ActionKind) -> list[Action]:
    """Return the decisions of these kinds that an earlier command has not brought to an end."""
    return [one for one in ledger.actions("meant", "sent") if one.kind in kinds]


def supersede(ledger: Ledger, actions: Sequence[Action], now: float) -> None:
    """Give up unfinished reviews of assignments about which something else is decided now."""
    tokens, targets = {one.token for one in actions}, {one.target for one in actions}
    for one in unfinished(ledger, "approve", "reject"):
        if one.target in targets and one.token not in tokens:
            ledger.act(one.token, "failed", now)


def carry_out(
    ledger: Ledger,
    actions: Sequence[Action],
    do: Do,
    *,
    clock: Clock = time.time,
    progress: Callable[[Sequence[Action]], Iterable[Action]] = iter,
) -> Outcome:
    """Carry out decisions in their order; hold `ledger.alone()`.

    One that the service refuses does not stop the others, and is tried again when it is decided again.
    Where the service is away, ServiceError ends it, and the same again goes on.
    """
    finished = {one.token for one in ledger.actions("done")}
    new_ones = ledger.mean(actions, clock())
    waiting = [one for one in actions if one.token not in finished]
    log.debug("%d decisions: %d new, %d to carry out", len(actions), new_ones, len(waiting))
    done, refused = [], []
    for one in progress(waiting):
        ledger.act(one.token, "sent", clock())
        try:
            new = do(one)
        except RefusedError as error:
            ledger.act(one.token, "failed", clock())
            refused.append((one, str(error)))
            continue
        ledger.act(one.token, "done", clock())
        if new:
            done.append(one)
    known = {one.token for one in (*done, *(one for one, _ in refused))}
    before = tuple(one for one in actions if one.token not in known)
    return Outcome(tuple(done), before, tuple(refused))
