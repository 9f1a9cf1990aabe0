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

__all__ = [
    "ActionResults",
    "RefusedError",
    "execute_actions",
    "make_action",
    "supersede_reviews",
    "unfinished_actions",
]

log = logging.getLogger(__name__)

TOKEN_DIGITS = 40
Clock = Callable[[], float]
Do = Callable[[Action], bool]
"""Carries out an action: True where this call has done it, False where it was done before."""


class RefusedError(Exception):
    """The service does not carry out a decision; the text says why."""


@dataclass(frozen=True, slots=True)
class ActionResults:
    """What became of decisions."""

    done: tuple[Action, ...]
    """Now."""
    already_done: tuple[Action, ...]
    """Earlier: nothing was to be done."""
    refused: tuple[tuple[Action, str], ...]
    """With the service's reason."""


def make_action(kind: ActionKind, target: str, amount: str = "", text: str = "") -> Action:
    """Return a decision with its token, at most 64 characters.

    >>> make_action("bonus", "3A", "0.50", "Danke").token
    'bonus-805d88aeaadeaca11090653327e78063ee72bba2'
    """
    content = json.dumps([kind, target, amount, text]).encode("ascii")
    token = f"{kind}-{hashlib.sha256(content).hexdigest()[:TOKEN_DIGITS]}"
    return Action(token, kind, target, amount, text)


def unfinished_actions(ledger: Ledger, *kinds: ActionKind) -> list[Action]:
    """Return the decisions of these kinds that an earlier command has not brought to an end."""
    return [action for action in ledger.actions("meant", "sent") if action.kind in kinds]


def supersede_reviews(ledger: Ledger, actions: Sequence[Action], now: float) -> None:
    """Give up unfinished reviews of assignments about which something else is decided now."""
    tokens, targets = {action.token for action in actions}, {action.target for action in actions}
    for action in unfinished_actions(ledger, "approve", "reject"):
        if action.target in targets and action.token not in tokens:
            ledger.set_action_state(action.token, "failed", now)


def execute_actions(
    ledger: Ledger,
    actions: Sequence[Action],
    execute: Do,
    *,
    clock: Clock = time.time,
    progress: Callable[[Sequence[Action]], Iterable[Action]] = iter,
) -> ActionResults:
    """Carry out decisions in their order; hold `ledger.alone()`.

    One that the service refuses does not stop the others, and is tried again when it is decided again.
    Where the service is away, ServiceError ends it, and the same again goes on.
    """
    finished = {action.token for action in ledger.actions("done")}
    n_new = ledger.plan_actions(actions, clock())
    pending = [action for action in actions if action.token not in finished]
    log.debug("%d decisions: %d new, %d to carry out", len(actions), n_new, len(pending))
    done, refused = [], []
    for action in progress(pending):
        ledger.set_action_state(action.token, "sent", clock())
        try:
            executed = execute(action)
        except RefusedError as error:
            ledger.set_action_state(action.token, "failed", clock())
            refused.append((action, str(error)))
            continue
        ledger.set_action_state(action.token, "done", clock())
        if executed:
            done.append(action)
    handled_tokens = {action.token for action in (*done, *(action for action, _ in refused))}
    before = tuple(action for action in actions if action.token not in handled_tokens)
    return ActionResults(tuple(done), before, tuple(refused))
