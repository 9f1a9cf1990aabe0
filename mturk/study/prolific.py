"""A study at Prolific, in a ledger: the study is its only HIT, submissions are its assignments.

Drafts are found again by their internal name. Transitions, places and decisions are idempotent: their effect
is looked up before and after a lost response. Paying bonuses is not: each payment is asked for once, and if
the response was lost, the bonus counts as paid only when Prolific lists it. Otherwise a person has to decide.
A person also decides about payments that Prolific lists and the ledger does not know.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from bws.base.problems import InputError, Problem, suggestion
from bws.base.settings_files import read_settings_text
from mturk.money import parse_amount, round_to_cents
from mturk.study.actions import RefusedError, make_action
from mturk.study.client import ServiceError
from mturk.study.ledger import Action, ActionState, Assignment, Hit, Ledger
from mturk.study.plan import HitPlan
from mturk.study.privacy import Namer
from mturk.study.prolific_api import Prolific, UnknownResultError
from mturk.study.settings import Settings

PREFIX = "prolific "
"""Start of the endpoint in the ledger of a study at Prolific."""
REQUIRED = (
    "name", "description", "external_study_url", "reward", "total_available_places",
    "estimated_completion_time", "completion_codes",
)  # fmt: skip
FURTHER = (
    "internal_name", "prolific_id_option", "maximum_allowed_time", "device_compatibility",
    "peripheral_requirements", "filters", "filter_set_id", "filter_set_version", "project", "study_labels",
    "submissions_config", "naivety_distribution_rate", "content_warnings", "content_warning_details",
    "is_custom_screening", "credential_pool_id", "data_collection_method", "access_details", "metadata",
)  # fmt: skip
"""Optional fields of Prolific's API, which are passed on."""
PARTICIPANT = "{{%PROLIFIC_PID%}}"
SCREEN_OUT = "FIXED_SCREEN_OUT_PAYMENT"
SCREEN_OUT_REWARD = "fixed_screen_out_reward"
REJECTION_CATEGORIES = (
    "TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK", "LOW_EFFORT",
    "MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER",
)  # fmt: skip
TRANSITIONS = {
    "PUBLISH": (
        {"UNPUBLISHED"},
        {"PUBLISHING", "SCHEDULED", "ACTIVE", "PAUSED", "AWAITING REVIEW", "COMPLETED"},
    ),
    "PAUSE": ({"ACTIVE"}, {"PAUSED"}),
    "START": ({"PAUSED"}, {"ACTIVE"}),
    "STOP": ({"ACTIVE", "PAUSED"}, {"AWAITING REVIEW", "COMPLETED"}),
}
"""Action -> statuses in which it is possible, statuses that it leads to."""
OPEN = frozenset(["RESERVED", "ACTIVE", "TIMED-OUT", "RETURNED"])
"""Statuses of submissions that are not, or not yet, handed in."""
OCCUPYING = frozenset(
    ["RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED", "PROCESSING"]
)
UNKNOWN = "paid without this ledger, payment"
"""Start of the text of a bonus that Prolific lists, but that this ledger has not paid."""
DECIDED = {"approve": "APPROVED", "reject": "REJECTED", "screen-out": "SCREENED OUT"}
BATCH_SIZE = 100


def read_draft(path: str) -> tuple[dict[str, Any], list[str]]:
    """Read a study from TOML: the fields of Prolific's API, with amounts as texts such as "1.50".

    Return the fields, and the names of those that are passed on although this version does not know them.
    Raises InputError with all problems. Values that are not checked here are checked by Prolific.
    """
    file = read_settings_text(path)
    draft = dict(file.values)
    problems = [file.problem(place, message) for place, message in _draft_problems(draft)]
    if problems:
        raise InputError(problems)
    screen_outs = [action.get(SCREEN_OUT_REWARD, 0) for _, action in _actions(draft)]
    if max(screen_outs, default=0) > draft["reward"]:
        found = f"{SCREEN_OUT_REWARD} is {_amount(max(screen_outs))}"
        message = f"{found}; expected at most the reward, {_amount(draft['reward'])}"
        raise InputError(file.problem(("completion_codes",), message))
    unknown = sorted(draft.keys() - {*REQUIRED, *FURTHER})
    return {"prolific_id_option": "url_parameters", "filters": [], **draft}, unknown


def _draft_problems(draft: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the keys and messages of problems; replace amounts by cents."""
    yield from (((name,), f"{name} is missing") for name in REQUIRED if name not in draft)
    for name in draft.keys() - {*REQUIRED, *FURTHER}:
        if near := suggestion(name, (*REQUIRED, *FURTHER)):
            yield (name,), f"unknown key {name}{near}"
    for name in ("name", "description"):
        if not isinstance(draft.get(name, "x"), str) or not draft.get(name, "x").strip():
            yield (name,), f"{name} is {draft[name]!r}; expected a text"
    if PARTICIPANT not in str(draft.get("external_study_url", PARTICIPANT)):
        yield (
            ("external_study_url",),
            f"external_study_url does not contain {PARTICIPANT}; see `giccs annotate serve`",
        )
    for name in ("total_available_places", "estimated_completion_time"):
        value = draft.get(name, 1)
        if type(value) is not int or value < 1:
            yield (name,), f"{name} is {value!r}; expected an integer of at least 1"
    codes = draft.get("completion_codes", [{}])
    if (
        not isinstance(codes, list)
        or not codes
        or not all(isinstance(code, dict) for code in codes)
    ):
        yield ("completion_codes",), "completion_codes; expected tables [[completion_codes]]"
        codes = []
    actions = _actions({"completion_codes": codes})
    for place, table, name in [
        (("reward",), draft, "reward"),
        *(((*at, SCREEN_OUT_REWARD), action, SCREEN_OUT_REWARD) for at, action in actions),
    ]:
        try:
            if name in table:
                table[name] = _cents(table[name])
        except ValueError:
            yield place, f'{name} is {table[name]!r}; expected an amount as a text, such as "1.50"'


def _actions(draft: Mapping[str, Any]) -> list[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Return the place and table of each action of a completion code."""
    return [
        (("completion_codes", number, "actions", index), action)
        for number, code in enumerate(draft["completion_codes"])
        for index, action in enumerate(code.get("actions", ()))
    ]


def _cents(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError
    return int(parse_amount(value, "amount") * 100)


def _amount(cents: Any) -> Decimal:
    return round_to_cents(Decimal(str(cents)) / 100)


def start_draft(ledger: Ledger, url: str, draft: Mapping[str, Any], now: float) -> None:
    """Record a study before its creation; InputError if the ledger contains another one."""
    digest = hashlib.sha256(json.dumps(draft, sort_keys=True).encode("ascii")).hexdigest()[:16]
    name = f"{draft.get('internal_name', draft['name'])} [giccs-{digest}]"
    document = json.dumps({**draft, "internal_name": name}, ensure_ascii=False)
    settings = Settings(
        title=draft["name"],
        reward=_amount(draft["reward"]),
        assignments=draft["total_available_places"],
        expected_seconds=60 * draft["estimated_completion_time"],
    )
    plan = HitPlan(1, (), document, name, f"giccs-{digest}")
    ledger.start_study(PREFIX + url, settings, [plan], now)


def endpoint_of(ledger: Ledger) -> str:
    """Return the address of the API; InputError for the ledger of another service."""
    endpoint = ledger.study().endpoint
    if not endpoint.startswith(PREFIX):
        message = f"is the ledger of a study at {endpoint}; expected one of `giccs annotate prolific draft`"
        raise InputError(Problem(ledger.path, None, message))
    return endpoint.removeprefix(PREFIX)


def create_draft(api: Prolific, ledger: Ledger) -> tuple[str, int]:
    """Create the study, or find it by its internal name; return its id and the number of further drafts.

    Of several with the name, the first is taken. The caller must hold `ledger.exclusive_lock()`.
    """
    hit = ledger.hits()[0]
    if hit.hit_id:
        return hit.hit_id, 0
    studies = [study for study in api.pages("studies/") if study["internal_name"] == hit.annotation]
    if not studies:
        ledger.mark_sent([hit.number], time.time())
        document = json.loads(ledger.question(hit.number))
        studies = [api.call("POST", "studies/", document, repeatable=False)]
    studies.sort(
        key=lambda study: (_status(study) == "UNPUBLISHED", study.get("date_created") or "")
    )
    study_id, places = studies[0]["id"], int(studies[0]["total_available_places"])
    ledger.mark_created(hit.number, study_id, places, time.time())
    return study_id, len(studies) - 1


def study_of(ledger: Ledger) -> Hit:
    """Return the study; InputError if the draft was not created."""
    hit = ledger.hits()[0]
    if hit.hit_id is None:
        message = "the draft was not created; run giccs annotate prolific draft again"
        raise InputError(Problem(ledger.path, None, message))
    return hit


def _status(resource: Mapping[str, Any]) -> str:
    return str(resource["status"]).replace("_", " ").upper().replace("TIMED OUT", "TIMED-OUT")


def change_status(api: Prolific, ledger: Ledger, action: str) -> tuple[str, bool]:
    """Publish, pause, start or stop the study; return its status and whether this call changed it.

    Raises RefusedError if that is impossible in the study's status.
    """
    path = f"studies/{study_of(ledger).hit_id}/"
    possible, reached = TRANSITIONS[action]
    status = _status(api.get(path))
    if status in reached:
        return status, False
    if status not in possible:
        raise RefusedError(f"the study is {status}; expected {' or '.join(sorted(possible))}")
    try:
        api.call("POST", f"{path}transition/", {"action": action}, repeatable=False)
    except UnknownResultError:
        if _status(api.get(path)) not in reached:
            raise
    return _status(api.get(path)), True


def places_cost(api: Prolific, reward: Decimal, places: int) -> Decimal:
    """Return the cost of places, with fees and VAT."""
    document = {"reward": int(reward * 100), "total_available_places": places}
    return _amount(api.call("POST", "study-cost-calculator/", document)["total_cost"])


def raise_places(api: Prolific, ledger: Ledger, places: int) -> None:
    """Set the number of places, a total: repeating the call has no effect."""
    hit = study_of(ledger)
    api.call("PATCH", f"studies/{hit.hit_id}/", {"total_available_places": places})
    ledger.set_max_assignments(hit.number, places)


@dataclass(frozen=True, slots=True)
class Poll:
    """The study and its submissions at Prolific."""

    study: Mapping[str, Any]
    counts: Mapping[str, int]
    """Status -> number of submissions."""
    new: int
    """Submissions that were handed in since the last poll."""

    @property
    def status(self) -> str:
        """Status of the study."""
        return _status(self.study)

    @property
    def places(self) -> int:
        """Number of places of the study."""
        return int(self.study["total_available_places"])

    @property
    def free(self) -> int:
        """Places that nobody has: not taken, returned, timed out or rejected."""
        return self.places - sum(n for status, n in self.counts.items() if status in OCCUPYING)


def poll(api: Prolific, ledger: Ledger, name: Namer) -> Poll:
    """Read the study and its submissions; store those handed in, and their decisions, in the ledger."""
    hit = study_of(ledger)
    study = api.get(f"studies/{hit.hit_id}/")
    counts: dict[str, int] = {}
    rows = []
    for submission in api.pages(f"studies/{hit.hit_id}/submissions/"):
        status = _status(submission)
        counts[status] = counts.get(status, 0) + 1
        if status not in OPEN or submission.get("completed_at"):
            rows.append(_assignment(submission, str(hit.hit_id), status, name))
    new, _ = ledger.store_assignments(ledger.exclude_deleted(rows))
    return Poll(study, counts, new)


def _assignment(
    submission: Mapping[str, Any], study_id: str, status: str, name: Namer
) -> Assignment:
    return Assignment(
        assignment_id=submission["id"],
        hit_id=study_id,
        worker=name(submission["participant_id"]),
        status=status,
        accept_time=_seconds(submission.get("started_at")),
        submit_time=_seconds(submission.get("completed_at")),
        answer_xml=submission.get("study_code") or "",
        collected_at=time.time(),
    )


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


def screen_out_terms(study: Mapping[str, Any]) -> tuple[str, Decimal]:
    """Return code and reward of the study's screening out; RefusedError if it has none."""
    for code in study["completion_codes"]:
        for action in code.get("actions", ()):
            if action["action"] == SCREEN_OUT and code.get("actor") == "researcher":
                return str(code["code"]), _amount(action[SCREEN_OUT_REWARD])
    raise RefusedError(
        f'the study has no completion code with actor = "researcher" and action {SCREEN_OUT}'
    )


def decide(api: Prolific, action: Action) -> bool:
    """Approve, reject or screen out a submission; return False if that was done before.

    For `actions.execute_actions`. The text of a rejection is its category, a colon and the message; that of
    a screening out is the completion code.
    """
    path = f"submissions/{action.target}/"
    status = _status(api.get(path))
    if status == DECIDED[action.kind]:
        return False
    if status in {*DECIDED.values(), "PARTIALLY APPROVED", "PROCESSING"}:
        raise RefusedError(f"the submission is {status}")
    document = {"action": "APPROVE"}
    if action.kind == "reject":
        category, _, message = action.text.partition(": ")
        document = {"action": "REJECT", "rejection_category": category, "message": message}
    elif action.kind == "screen-out":
        document = {"action": "COMPLETE", "completion_code": action.text}
    api.call("POST", f"{path}transition/", document)
    return True


@dataclass(frozen=True, slots=True)
class Batch:
    """Bonuses that are set up at Prolific, and paid together."""

    batch_id: str
    actions: tuple[Action, ...]
    cost: Decimal
    """With fees and VAT."""


def settle_bonuses(
    api: Prolific, ledger: Ledger, paid: Collection[str] = (), unpaid: Collection[str] = ()
) -> list[Action]:
    """Look up bonuses whose payment is unknown, record those that Prolific lists, and return the others.

    paid, unpaid: submissions whose bonuses a person has found paid or unpaid at Prolific.
    """
    unknown = []
    recorded = _recorded_payments(ledger, "done")
    for action in ledger.actions("sent"):
        if action.kind != "bonus":
            continue
        n_expected = recorded[action.target][action.amount] + 1
        if action.target in paid or _payments(api, action.target)[action.amount] >= n_expected:
            ledger.set_action_state(action.token, "done", time.time())
        elif action.target in unpaid:
            ledger.set_action_state(action.token, "failed", time.time())
        else:
            unknown.append(action)
    return unknown


def record_payments(
    api: Prolific, ledger: Ledger, actions: Sequence[Action],
    paid: Collection[str] = (), unpaid: Collection[str] = (),
) -> dict[str, list[str]]:  # fmt: skip
    """Return the payments that Prolific lists and the ledger does not know: submission -> amounts.

    Only the submissions of due bonuses are looked up. Such payments exist if the ledger was lost or restored,
    or a bonus was paid elsewhere. They are recorded for the submissions in `paid`, where they pay the bonuses
    of the same amounts, and in `unpaid`, where they are other payments.
    """
    done = {action.token for action in ledger.actions("done")}
    due = [action for action in actions if action.token not in done]
    recorded = _recorded_payments(ledger, "sent", "done")
    unrecorded = {}
    for submission in dict.fromkeys(action.target for action in due):
        amounts = [*(_payments(api, submission) - recorded[submission]).elements()]
        if submission in paid or submission in unpaid:
            own = [action for action in due if action.target == submission and submission in paid]
            _record(ledger, submission, amounts, own, recorded[submission].total())
        elif amounts:
            unrecorded[submission] = amounts
    return unrecorded


def _record(
    ledger: Ledger, submission: str, amounts: Iterable[str], due: list[Action], n_recorded: int
) -> None:
    """Record payments as done: of bonuses of the same amounts or, without one, of unknown bonuses."""
    payments: list[Action] = []
    for amount in amounts:
        action = next((action for action in due if action.amount == amount), None)
        if action:
            due.remove(action)
        number = n_recorded + len(payments) + 1
        payments.append(action or make_action("bonus", submission, amount, f"{UNKNOWN} {number}"))
    ledger.plan_actions(payments, time.time())
    ledger.set_action_states([payment.token for payment in payments], "done", time.time())


def _payments(api: Prolific, submission: str) -> Counter[str]:
    """Return the bonuses that Prolific lists for a submission: amount -> number."""
    payments = api.get(f"submissions/{submission}/").get("bonus_payments") or ()
    return Counter(str(_amount(cents)) for cents in payments)


def _recorded_payments(ledger: Ledger, *states: ActionState) -> dict[str, Counter[str]]:
    """Return the bonuses in these states: submission -> amount -> number."""
    recorded: dict[str, Counter[str]] = defaultdict(Counter)
    for action in ledger.actions(*states):
        if action.kind == "bonus":
            recorded[action.target][action.amount] += 1
    return recorded


def due_bonuses(
    ledger: Ledger, actions: Iterable[Action], unknown: Iterable[Action]
) -> list[Action]:
    """Return the bonuses that are neither paid nor unknown, nor as high as an unknown one of the submission.

    Of equal bonuses of a submission, Prolific's list does not show which one was paid.
    """
    done = {action.token for action in ledger.actions("done")}
    unclear = {(action.target, action.amount) for action in unknown}
    return [
        action
        for action in actions
        if action.token not in done and (action.target, action.amount) not in unclear
    ]


def set_up_bonuses(api: Prolific, ledger: Ledger, actions: Sequence[Action]) -> list[Batch]:
    """Set up bonuses, which pays nothing; a batch has at most one bonus of a submission."""
    study_id = study_of(ledger).hit_id
    rounds: list[dict[str, Action]] = []
    for action in actions:
        free = (batch for batch in rounds if action.target not in batch and len(batch) < BATCH_SIZE)
        target = next(free, None)
        if target is None:
            rounds.append(target := {})
        target[action.target] = action
    batches = []
    for batch in rounds:
        rows = "\n".join(f"{action.target},{action.amount}" for action in batch.values())
        document = {"study_id": study_id, "csv_bonuses": rows}
        created = api.call("POST", "submissions/bonus-payments/", document)
        amount = sum((Decimal(action.amount) for action in batch.values()), Decimal(0))
        if _amount(created["amount"]) != amount:
            raise ServiceError(
                f"Prolific set up bonuses of {_amount(created['amount'])} instead of {amount}; none was paid"
            )
        batches.append(
            Batch(created["id"], tuple(batch.values()), _amount(created["total_amount"]))
        )
    return batches


def pay_batch(api: Prolific, ledger: Ledger, batch: Batch) -> None:
    """Pay bonuses that were set up; the caller must hold `ledger.exclusive_lock()`.

    Raises UnknownResultError if they may have been paid: `settle_bonuses` looks that up later. After other
    errors they were not paid.
    """
    ledger.plan_actions(batch.actions, time.time())
    tokens = [action.token for action in batch.actions]
    ledger.set_action_states(tokens, "sent", time.time())
    try:
        api.call("POST", f"bulk-bonus-payments/{batch.batch_id}/pay/", {}, repeatable=False)
    except UnknownResultError:
        raise
    except (RefusedError, ServiceError):
        ledger.set_action_states(tokens, "failed", time.time())
        raise
    ledger.set_action_states(tokens, "done", time.time())
