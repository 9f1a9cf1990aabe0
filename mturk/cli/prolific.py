"""giccs annotate prolific: a study at Prolific, from the draft to the bonuses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command, group
from bws.base.options import INPUT, UPDATED
from bws.base.problems import Problem
from bws.base.terminal import echo
from bws.cli.options import option
from mturk.cli.published_study import type_amount, yes_option

if TYPE_CHECKING:
    from mturk.study.client import Endpoint
    from mturk.study.ledger import Action, Ledger
    from mturk.study.prolific import Poll
    from mturk.study.prolific_api import Prolific

COMMANDS = {
    "draft": "mturk.cli.prolific:draft",
    "publish": "mturk.cli.prolific:publish",
    "status": "mturk.cli.prolific:status",
    "pause": "mturk.cli.prolific:pause",
    "start": "mturk.cli.prolific:start",
    "stop": "mturk.cli.prolific:stop",
    "places": "mturk.cli.prolific:places",
    "reclaim": "mturk.cli.prolific:reclaim",
    "review": "mturk.cli.prolific:review",
    "bonus": "mturk.cli.prolific:bonus",
}
"""Command name -> location of its function, in the order of a study."""

EXAMPLE = """
export PROLIFIC_TOKEN=...
giccs annotate prolific draft study.toml
giccs annotate prolific publish
giccs annotate prolific review --approve-submitted
giccs annotate prolific bonus bonuses.csv
"""
MIN_MESSAGE = 100
"""Minimum length of the message of a rejection."""
ledger_option = option(
    "--ledger", "Ledger of the study (SQLite).", default="prolific.db", type=UPDATED, metavar="FILE"
)


_command = partial(
    command, interrupt_message="finished steps are recorded in {ledger}; repeat the command"
)


@group("giccs annotate prolific", COMMANDS, EXAMPLE)
def main() -> None:
    """Recruit participants at Prolific: publish a study, review submissions, pay bonuses, each exactly once.

    The token is read from PROLIFIC_TOKEN, or from the keyring (`keyring set giccs prolific`).
    """


@dataclass(frozen=True, slots=True)
class Study:
    """The study of a ledger and the connection to Prolific."""

    console: Console
    ledger: Ledger
    endpoint: Endpoint
    api: Prolific

    @property
    def reward(self) -> Decimal:
        """Reward per submission, in the study's currency."""
        return self.ledger.study().settings.reward

    def poll(self) -> Poll:
        """Read the study and its submissions into the ledger."""
        from mturk.study.privacy import worker_namer
        from mturk.study.prolific import poll

        return poll(self.api, self.ledger, worker_namer(self.ledger))

    @property
    def pay_doubt(self) -> str:
        """Why the pay per hour is doubtful; empty if it is not."""
        from mturk.money import unusual_pay

        return unusual_pay(self.reward, self.ledger.study().settings.expected_seconds)

    def confirm(self, description: str, cost: Decimal, *, yes: bool, doubt: str = "") -> None:
        """Show a cost; unless confirmed by option, ask the user to type it.

        doubt: why the amount may be a mistake, for which the option does not suffice.
        """
        message = f"{description}: {cost} in the study's currency, including fees and VAT"
        if doubt:
            self.console.warn([Problem(self.ledger.path, None, doubt)])
        if (yes and not doubt) or self.endpoint.loopback or not cost:
            self.console.note(message)
            return
        echo(message, err=True)
        type_amount(cost, "Type the amount to spend it at Prolific", "nothing was done")


@contextmanager
def _open_study(console: Console, path: str, address: str = "") -> Iterator[Study]:
    """Open and lock a ledger, and connect to Prolific; with an address, create a missing ledger."""
    from mturk.study.ledger import Ledger
    from mturk.study.prolific import endpoint_of
    from mturk.study.prolific_api import Prolific, read_token, resolve_prolific

    token = read_token()
    if address:
        endpoint = resolve_prolific(address)
    with Ledger.open(path, create=bool(address)) as ledger, ledger.exclusive_lock():
        if not address:
            endpoint = resolve_prolific(endpoint_of(ledger))
        api = Prolific(endpoint, token)
        try:
            yield Study(console, ledger, endpoint, api)
        finally:
            api.close()


@_command(
    "giccs annotate prolific draft",
    example="""
    giccs annotate prolific draft study.toml
    giccs annotate prolific draft study.toml --ledger pilot.db
    """,
)
@click.argument("study", type=INPUT, metavar="STUDY")
@ledger_option
@option("--endpoint", "Address of the API.", default="https://api.prolific.com", metavar="URL")
def draft(console: Console, study: str, ledger: str, endpoint: str) -> None:
    """Create a draft of a study, which costs nothing and is shown to nobody.

    STUDY is a TOML file with the fields of Prolific's API; reward and fixed_screen_out_reward are amounts as
    texts ("1.50"). The study is created once, even if the command is repeated, or the ledger is lost.
    """
    from mturk.study.prolific import create_draft, places_cost, read_draft, start_draft

    fields, unknown = read_draft(study)
    if unknown:
        console.note(f"passed on to Prolific as they are: {', '.join(unknown)}")
    with _open_study(console, ledger, endpoint) as opened:
        start_draft(opened.ledger, opened.endpoint.url, fields, time.time())
        study_id, further = create_draft(opened.api, opened.ledger)
        hit = opened.ledger.hits()[0]
        cost = places_cost(opened.api, opened.reward, hit.max_assignments)
        wage = opened.ledger.study().settings.reward * 60 / fields["estimated_completion_time"]
        if opened.pay_doubt:
            console.warn([Problem(study, None, opened.pay_doubt)])
        if further:
            console.note(f"{further} further studies at Prolific have this name; delete them there")
        console.answer(
            f"draft {study_id}: {hit.max_assignments} places at {opened.reward} ({wage:.2f} per hour); "
            f"{cost} in all, including fees and VAT",
            {
                "study_id": study_id, "internal_name": hit.annotation, "places": hit.max_assignments,
                "reward": str(opened.reward), "cost": str(cost), "duplicates": further,
            },
        )  # fmt: skip


@_command("giccs annotate prolific publish", example="giccs annotate prolific publish")
@ledger_option
@yes_option
def publish(console: Console, ledger: str, yes: bool) -> None:
    """Publish the draft. Prolific reserves the cost, which must be typed to confirm.

    A pay per hour below 5 or above 100 must be confirmed also with --yes: the reward may be in pence.
    """
    from mturk.study.prolific import places_cost

    with _open_study(console, ledger) as study:
        poll = study.poll()
        if poll.status == "UNPUBLISHED":
            cost = places_cost(study.api, study.reward, poll.places)
            study.confirm(f"{poll.places} places", cost, yes=yes, doubt=study.pay_doubt)
        _change_status(study, "PUBLISH")


@_command("giccs annotate prolific pause", example="giccs annotate prolific pause")
@ledger_option
def pause(console: Console, ledger: str) -> None:
    """Pause the study: nobody can take a place. Those who have one can finish."""
    with _open_study(console, ledger) as study:
        _change_status(study, "PAUSE")


@_command("giccs annotate prolific start", example="giccs annotate prolific start")
@ledger_option
def start(console: Console, ledger: str) -> None:
    """Continue a paused study."""
    with _open_study(console, ledger) as study:
        _change_status(study, "START")


@_command("giccs annotate prolific stop", example="giccs annotate prolific stop --yes")
@ledger_option
@yes_option
def stop(console: Console, ledger: str, yes: bool) -> None:
    """Stop the study, which is final: only a raise of places opens it again."""
    with _open_study(console, ledger) as study:
        if not yes and not study.endpoint.loopback:
            click.confirm("Stop the study for good?", abort=True, err=True)
        _change_status(study, "STOP")


def _change_status(study: Study, action: str) -> None:
    from mturk.study.prolific import change_status

    with _refusals():
        reached, changed = change_status(study.api, study.ledger, action)
    study.console.answer(
        f"the study is {reached}" if changed else f"the study is {reached}; nothing was changed",
        {"status": reached, "changed": changed},
    )


@contextmanager
def _refusals() -> Iterator[None]:
    from mturk.study.actions import RefusedError

    try:
        yield
    except RefusedError as error:
        raise click.ClickException(f"Prolific: {error}") from None


@_command("giccs annotate prolific status", example="giccs annotate prolific status --json")
@ledger_option
def status(console: Console, ledger: str) -> None:
    """Read the submissions into the ledger; show the study's status and places."""
    from mturk.study.prolific import settle_bonuses

    with _open_study(console, ledger) as study:
        poll = study.poll()
        unknown = settle_bonuses(study.api, study.ledger)
        counts = ", ".join(f"{n} {status.lower()}" for status, n in sorted(poll.counts.items()))
        lines = [
            f"the study is {poll.status}: {poll.places} places, {poll.free} free",
            f"submissions: {counts or 'none'}; {poll.new} new",
            *([_unknown_text(unknown)] if unknown else ()),
        ]
        console.answer(
            "\n".join(lines),
            {
                "status": poll.status, "places": poll.places, "free": poll.free, "new": poll.new,
                "submissions": dict(poll.counts),
                "bonuses_unknown": [action.target for action in unknown],
            },
        )  # fmt: skip


@_command("giccs annotate prolific places", example="giccs annotate prolific places --total 120")
@ledger_option
@option(
    "--total",
    "New number of places.",
    type=click.IntRange(1, 1_000_000),
    required=True,
    metavar="N",
)
@yes_option
def places(console: Console, ledger: str, total: int, yes: bool) -> None:
    """Raise the number of places. The cost of the additional ones must be typed to confirm.

    Prolific never lowers the number. A study that is stopped or complete opens again.
    """
    from mturk.study.prolific import places_cost, raise_places

    with _open_study(console, ledger) as study:
        now = study.poll().places
        if total < now:
            raise click.UsageError(f"the study has {now} places; expected {now} or more")
        if total > now:
            cost = places_cost(study.api, study.reward, total - now)
            study.confirm(f"{total - now} further places", cost, yes=yes, doubt=study.pay_doubt)
        with _refusals():
            raise_places(study.api, study.ledger, total)
        console.answer(f"{total} places ({now} before)", {"places": total, "before": now})


@_command("giccs annotate prolific reclaim", example="giccs annotate prolific reclaim")
@ledger_option
def reclaim(console: Console, ledger: str) -> None:
    """Offer returned, timed-out and rejected places again.

    Prolific itself does so while the study is active, but pauses a full study when a place is returned or a
    submission is rejected. Such a study is continued; the places were paid for at its publication.
    """
    from mturk.study.prolific import change_status

    with _open_study(console, ledger) as study:
        poll = study.poll()
        reached = poll.status
        if poll.free > 0 and reached == "PAUSED":
            reached, _ = change_status(study.api, study.ledger, "START")
        if poll.free > 0 and reached != "ACTIVE":
            raise click.ClickException(
                f"{poll.free} places are free, but the study is {reached}; "
                f"`giccs annotate prolific places --total {poll.places + poll.free}` opens it again"
            )
        free = max(poll.free, 0)
        console.answer(
            f"{free} free places; the study is {reached}", {"free": free, "status": reached}
        )


@_command(
    "giccs annotate prolific review",
    example="""
    giccs annotate prolific review
    giccs annotate prolific review --approve-submitted
    giccs annotate prolific review --reject 60d9aadeb86739de712faee0 --category NO_DATA --message "..."
    giccs annotate prolific review --screen-out 60d9aadeb86739de712faee0
    """,
)
@ledger_option
@option("--approve", "Approve a submission; can be repeated.", multiple=True, metavar="ID")
@option("--approve-submitted", "Approve all pending submissions.", is_flag=True, show_default=False)
@option("--reject", "Reject a submission; can be repeated.", multiple=True, metavar="ID")
@option("--category", "Reason of the rejections.", metavar="CATEGORY", show_default=False)
@option(
    "--message",
    "Message to those rejected, at least 100 characters.",
    default="",
    show_default=False,
)
@option("--screen-out", "Screen a submission out; can be repeated.", multiple=True, metavar="ID")
@yes_option
def review(
    console: Console, ledger: str, approve: tuple[str, ...], approve_submitted: bool,
    reject: tuple[str, ...], category: str | None, message: str, screen_out: tuple[str, ...], yes: bool,
) -> None:  # fmt: skip
    """List pending submissions, or approve, reject and screen them out.

    CATEGORY is TOO_QUICKLY, TOO_SLOWLY, FAILED_INSTRUCTIONS, INCOMP_LONGITUDINAL, FAILED_CHECK, LOW_EFFORT,
    MALINGERING, NO_CODE, BAD_CODE, NO_DATA, UNSUPP_DEVICE or OTHER. Screening out pays the reward set for it
    in the study, whose cost must be typed to confirm. Each decision is executed once, even if the command is
    repeated.
    """
    _check_rejection(reject, category, message)
    with _open_study(console, ledger) as study:
        poll = study.poll()
        submissions = {row.assignment_id: row for row in study.ledger.assignments()}
        pending = [
            row.assignment_id for row in submissions.values() if row.status == "AWAITING REVIEW"
        ]
        decided = [*approve, *reject, *screen_out]
        if approve_submitted:
            approve = (
                *approve,
                *(submission for submission in pending if submission not in decided),
            )
        if not decided and not approve_submitted:
            rows = [
                (name, submissions[name].worker, submissions[name].answer_xml) for name in pending
            ]
            _list_pending(console, rows)
            return
        actions = _decisions(study, poll, approve, reject, screen_out, f"{category}: {message}")
        _check_targets(actions, submissions, ledger)
        _confirm_screen_outs(study, actions, yes=yes)
        _carry_out(study, actions)


def _check_rejection(reject: Sequence[str], category: str | None, message: str) -> None:
    from mturk.study.prolific import REJECTION_CATEGORIES

    if not reject:
        if category or message:
            raise click.UsageError("--category and --message require --reject")
        return
    if category not in REJECTION_CATEGORIES:
        raise click.UsageError(
            f"--category is {category}; expected {', '.join(REJECTION_CATEGORIES)}"
        )
    if len(message.strip()) < MIN_MESSAGE:
        raise click.UsageError(
            f"--message has {len(message.strip())} characters; Prolific expects at least {MIN_MESSAGE}"
        )


def _list_pending(console: Console, rows: Sequence[tuple[str, str, str]]) -> None:
    from bws.base.tables import tabulated

    header = ["submission", "participant", "code"]
    console.answer(
        f"{len(rows)} submissions are pending\n{tabulated(rows, header)}".strip(),
        {"waiting": [dict(zip(header, row, strict=True)) for row in rows]},
    )


def _decisions(
    study: Study, poll: Poll, approve: Iterable[str], reject: Iterable[str], screen_out: Iterable[str],
    reason: str,
) -> list[Action]:  # fmt: skip
    from mturk.study.actions import make_action
    from mturk.study.prolific import screen_out_terms

    actions = [make_action("approve", submission) for submission in approve]
    actions += [make_action("reject", submission, "", reason) for submission in reject]
    if screen_out := tuple(screen_out):
        with _refusals():
            code, reward = screen_out_terms(poll.study)
        actions += [
            make_action("screen-out", submission, str(reward), code) for submission in screen_out
        ]
    return list({action.token: action for action in actions}.values())


def _check_targets(actions: Sequence[Action], submissions: Any, ledger: str) -> None:
    """Raise UsageError for repeated submissions and, apart from screening out, unknown ones."""
    targets = [action.target for action in actions]
    if repeated := {target for target in targets if targets.count(target) > 1}:
        raise click.UsageError(f"{', '.join(sorted(repeated))}: expected one decision each")
    unknown = [a.target for a in actions if a.kind != "screen-out" and a.target not in submissions]
    if unknown:
        raise click.UsageError(
            f"{', '.join(unknown)}: not handed in; expected submissions in {ledger}"
        )


def _confirm_screen_outs(study: Study, actions: Sequence[Action], *, yes: bool) -> None:
    from mturk.study.prolific import places_cost

    done = {action.token for action in study.ledger.actions("done")}
    due = [a for a in actions if a.kind == "screen-out" and a.token not in done]
    if due:
        cost = places_cost(study.api, Decimal(due[0].amount), len(due))
        study.confirm(f"{len(due)} submissions to screen out", cost, yes=yes)


def _carry_out(study: Study, actions: Sequence[Action]) -> None:
    """Execute decisions, with those that an earlier command has not completed."""
    from mturk.study.actions import execute_actions, supersede_reviews, unfinished_actions
    from mturk.study.prolific import decide

    supersede_reviews(study.ledger, actions, time.time())
    left = unfinished_actions(study.ledger, "approve", "reject", "screen-out")
    by_token = {action.token: action for action in [*left, *actions]}
    results = execute_actions(
        study.ledger, [*by_token.values()], lambda action: decide(study.api, action),
        progress=lambda waiting: study.console.progress(waiting, "calling", len(waiting)),
    )  # fmt: skip
    study.poll()
    kinds = ("approve", "reject", "screen-out")
    counts = {kind: sum(action.kind == kind for action in results.done) for kind in kinds}
    counts |= {"decided before": len(results.already_done), "refused": len(results.refused)}
    refusals = [
        {"target": action.target, "kind": action.kind, "text": text}
        for action, text in results.refused
    ]
    text = ", ".join(f"{kind}: {n}" for kind, n in counts.items() if n)
    study.console.answer(
        text or "nothing to do",
        {**{kind.replace(" ", "_").replace("-", "_"): n for kind, n in counts.items()}, "refusals": refusals},
    )  # fmt: skip
    if refusals:
        lines = [f"{row['target']}: {row['kind']} was refused: {row['text']}" for row in refusals]
        raise click.ClickException("\n".join(lines))


@_command(
    "giccs annotate prolific bonus",
    example="""
    giccs annotate prolific bonus bonuses.csv
    giccs annotate prolific bonus bonuses.csv --paid 60d9aadeb86739de712faee0
    giccs annotate prolific bonus bonuses.csv --unpaid 60d9aadeb86739de712faee0
    """,
)
@click.argument("bonuses", type=INPUT, metavar="BONUSES")
@ledger_option
@option(
    "--paid", "Submission whose bonus was paid, as you have seen at Prolific; can be repeated.",
    multiple=True, metavar="ID",
)  # fmt: skip
@option(
    "--unpaid", "Submission whose bonus was not paid, as you have seen at Prolific; can be repeated.",
    multiple=True, metavar="ID",
)  # fmt: skip
@yes_option
def bonus(
    console: Console, bonuses: str, ledger: str, paid: tuple[str, ...], unpaid: tuple[str, ...],
    yes: bool,
) -> None:  # fmt: skip
    """Pay bonuses, each exactly once.

    BONUSES is a CSV file with the columns submission_id, amount (in the study's currency) and reason (for
    your records; it distinguishes bonuses of a submission). The total must be typed to confirm; with --yes
    only if a bonus is above 10 times the reward. If the
    connection breaks while Prolific pays, the result is unknown: nothing is paid again, each later run looks
    for the payment, and --paid or --unpaid decides. They also decide if Prolific lists payments that the
    ledger does not know, since it is an old copy or they were made elsewhere; nothing is paid before.
    """
    from mturk.money import unusual_bonus
    from mturk.study.bonus import read_bonuses
    from mturk.study.prolific import (
        due_bonuses,
        pay_batch,
        record_payments,
        set_up_bonuses,
        settle_bonuses,
    )

    with _open_study(console, ledger) as study:
        study.poll()
        read = read_bonuses(bonuses, study.ledger, id_column="submission_id")
        _check_paid(study.ledger, paid, unpaid)
        unknown = settle_bonuses(study.api, study.ledger, paid, unpaid)
        unrecorded = record_payments(study.api, study.ledger, read, paid, unpaid)
        if unrecorded:
            raise click.ClickException(_unrecorded_text(study.ledger, unrecorded))
        due = due_bonuses(study.ledger, read, unknown)
        with _refusals():
            batches = set_up_bonuses(study.api, study.ledger, due)
        cost = sum((batch.cost for batch in batches), Decimal("0.00"))
        if due:
            doubt = unusual_bonus(max(Decimal(one.amount) for one in due), study.reward)
            study.confirm(f"{len(due)} bonuses", cost, yes=yes, doubt=doubt)
        with _refusals():
            for batch in batches:
                pay_batch(study.api, study.ledger, batch)
        n_done = len(
            {action.token for action in read} & {a.token for a in study.ledger.actions("done")}
        )
        counts = {"paid": len(due), "paid_before": n_done - len(due), "unknown": len(unknown)}
        text = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n)
        console.answer(
            f"bonuses: {text or 'nothing to do'}; total {cost}", {**counts, "cost": str(cost)}
        )
        if unknown:
            raise click.ClickException(_unknown_text(unknown))


def _check_paid(ledger: Ledger, paid: Sequence[str], unpaid: Sequence[str]) -> None:
    """Raise UsageError for an unknown submission, and for one that is declared both paid and unpaid."""
    if both := {*paid} & {*unpaid}:
        raise click.UsageError(f"{', '.join(sorted(both))}: --paid or --unpaid, not both")
    if unknown := {*paid, *unpaid} - {one.assignment_id for one in ledger.assignments()}:
        raise click.UsageError(
            f"{', '.join(sorted(unknown))}: not handed in; expected submissions in {ledger.path}"
        )


def _unrecorded_text(ledger: Ledger, unrecorded: Mapping[str, Sequence[str]]) -> str:
    rows = [f"{submission}: {', '.join(amounts)}" for submission, amounts in unrecorded.items()]
    return "\n".join(
        [
            f"Prolific lists bonuses that {ledger.path} does not know; nothing was paid. Use the latest "
            "ledger if there is one. Otherwise run the command again with --paid ID for each submission "
            "where these are bonuses of your file, and --unpaid ID where they are others:",
            *rows,
        ]
    )


def _unknown_text(unknown: Sequence[Action]) -> str:
    rows = [f"{action.target}: {action.amount} ({action.text})" for action in unknown]
    return "\n".join(
        [
            "bonuses that were sent, but that Prolific does not list (yet); run the command again later, or "
            "once more with --paid ID or --unpaid ID, as you see at Prolific:",
            *rows,
        ]
    )
