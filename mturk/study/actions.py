"""Execution of actions, each exactly once, despite crashes, lost responses and duplicate requests.

Actions are recorded before the first call. The token is derived from the content of an action, so reading
the same file again yields the same actions. Each action is marked as sent before its call and as done after
it. An action that was sent but is not done may have been executed; every call checks that itself.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mturk.study.ledger import Action, ActionKind, Ledger

log = logging.getLogger(__name__)

TOKEN_DIGITS = 40
Clock = Callable[[], float]
ActionExecutor = Callable[[Action], bool]
"""Executes an action; returns True if this call executed it, False if it was executed before."""


class RefusedError(Exception):
    """The service refused an action; the message states the reason."""


@dataclass(frozen=True, slots=True)
class ActionResults:
    """Results of executing actions."""

    done: tuple[Action, ...]
    """Executed by this call."""
    already_done: tuple[Action, ...]
    """Executed earlier."""
    refused: tuple[tuple[Action, str], ...]
    """Refused actions, each with the service's reason."""


def make_action(kind: ActionKind, target: str, amount: str = "", text: str = "") -> Action:
    """Return an action with its token, at most 64 characters.

    >>> make_action("bonus", "3A", "0.50", "Danke").token
    'bonus-805d88aeaadeaca11090653327e78063ee72bba2'
    """
    content = json.dumps([kind, target, amount, text]).encode("ascii")
    token = f"{kind}-{hashlib.sha256(content).hexdigest()[:TOKEN_DIGITS]}"
    return Action(token, kind, target, amount, text)


def unfinished_actions(ledger: Ledger, *kinds: ActionKind) -> list[Action]:
    """Return the actions of these kinds that an earlier command has not completed."""
    return [action for action in ledger.actions("meant", "sent") if action.kind in kinds]


def supersede_reviews(ledger: Ledger, actions: Sequence[Action], now: float) -> None:
    """Mark unfinished reviews as failed if their assignments have other decisions now."""
    tokens, targets = {action.token for action in actions}, {action.target for action in actions}
    for action in unfinished_actions(ledger, "approve", "reject", "screen-out"):
        if action.target in targets and action.token not in tokens:
            ledger.set_action_state(action.token, "failed", now)


def execute_actions(
    ledger: Ledger,
    actions: Sequence[Action],
    execute: ActionExecutor,
    *,
    clock: Clock = time.time,
    progress: Callable[[Sequence[Action]], Iterable[Action]] = iter,
) -> ActionResults:
    """Execute actions in order; the caller must hold `ledger.exclusive_lock()`.

    A refused action does not stop the others; it is retried when it is planned again. Raises ServiceError if
    the service is unreachable; calling the function again continues.
    """
    finished = {action.token for action in ledger.actions("done")}
    n_new = ledger.plan_actions(actions, clock())
    pending = [action for action in actions if action.token not in finished]
    log.debug("%d actions: %d new, %d to execute", len(actions), n_new, len(pending))
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
    already_done = tuple(action for action in actions if action.token not in handled_tokens)
    return ActionResults(tuple(done), already_done, tuple(refused))
