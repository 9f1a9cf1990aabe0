"""giccs annotate review, bonus, extend, top-up, close, batch, purge: management of a published study."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, Number
from bws.base.problems import Problem
from bws.cli.options import option
from mturk.cli.audit import command_user
from mturk.cli.collect import worker_names
from mturk.cli.published_study import (
    PublishedStudy,
    confirm_cost,
    endpoint_option,
    ledger_option,
    open_study,
    workers_option,
    yes_option,
)

if TYPE_CHECKING:
    from mturk.kinds import HitKind
    from mturk.study.actions import ActionResults
    from mturk.study.ledger import Action
    from mturk.study.review import Decision, PendingReview
    from mturk.study.top_up import TopUp

SECONDS_PER_HOUR = 3600
MAX_LISTED = 50
"""Maximum number of listed assignments; the decisions file contains all."""
MAX_COMMENT_CHARACTERS = 40
hit_argument = click.argument("hit_ids", metavar="[HIT_ID]...", nargs=-1)
assignment_count = click.IntRange(1, 1_000_000_000)


@command(
    "giccs annotate review",
    example="""
    giccs annotate review
    giccs annotate review -o decisions.csv
    giccs annotate review decisions.csv
    giccs annotate review --approve-submitted
    """,
)
@click.argument("decisions", type=INPUT, metavar="[DECISIONS]", required=False)
@ledger_option
@endpoint_option
@option(
    "-o --output", "Write pending assignments to a CSV file in which to mark decisions.",
    type=OUTPUT, metavar="FILE",
)  # fmt: skip
@option("--approve", "Approve an assignment; can be repeated.", multiple=True, metavar="ID")
@option("--approve-submitted", "Approve all pending assignments.", is_flag=True, show_default=False)
@option("--reject", "Reject an assignment; can be repeated.", multiple=True, metavar="ID")
@option(
    "--feedback", "Feedback to the workers; required to reject.", default="", show_default=False
)
@option(
    "--override-rejections",
    "Allow approval of rejected assignments.",
    is_flag=True,
    show_default=False,
)
def review(
    console: Console, decisions: str | None, ledger: str, endpoint: str | None, output: str | None,
    approve: tuple[str, ...], approve_submitted: bool, reject: tuple[str, ...], feedback: str,
    override_rejections: bool,
) -> None:  # fmt: skip
    """List pending assignments, or approve and reject them.

    DECISIONS is the file of -o or a batch results file, with x in the column Approve or Reject and feedback
    in RequesterFeedback. Only marked or named assignments are decided; the service approves the rest after
    the study's auto_approval_delay. Each decision is executed once, even if the command is repeated.
    """
    from mturk.study.review import Decision, read_decisions

    has_decision_options = bool(approve or approve_submitted or reject)
    _check_review(
        console,
        decisions,
        output,
        feedback,
        has_decision_options=has_decision_options,
        has_rejections=bool(reject),
    )
    if conflicting_ids := set(approve) & set(reject):
        raise click.UsageError(f"{', '.join(sorted(conflicting_ids))}: approve or reject, not both")
    read = None if decisions is None else read_decisions(decisions)
    with open_study(console, ledger, endpoint) as study:
        study.collect()
        if read is not None:
            _carry_out_decisions(study, read.decisions, read.unmarked, override=override_rejections)
        elif has_decision_options:
            approved = [
                *approve,
                *(_submitted_assignments(study, reject) if approve_submitted else ()),
            ]
            option_decisions = [
                Decision(assignment_id, "approve", feedback.strip())
                for assignment_id in dict.fromkeys(approved)
            ]
            option_decisions += [
                Decision(assignment_id, "reject", feedback.strip())
                for assignment_id in dict.fromkeys(reject)
            ]
            _carry_out_decisions(study, option_decisions, 0, override=override_rejections)
        else:
            _list_waiting(study, output)


def _check_review(
    console: Console, decisions: str | None, output: str | None, feedback: str, *, has_decision_options: bool,
    has_rejections: bool,
) -> None:  # fmt: skip
    """Raise UsageError for contradictory or incomplete options."""
    if decisions is not None and has_decision_options:
        raise click.UsageError("decisions are given by a file or by options, not both")
    if output is not None and (has_decision_options or decisions is not None):
        raise click.UsageError("-o cannot be combined with decisions")
    if output == "-" and console.as_json:
        raise click.UsageError("--json requires an output file (-o FILE)")
    if has_rejections and not feedback.strip():
        raise click.UsageError("--reject requires --feedback")
    if feedback and not has_decision_options:
        raise click.UsageError("--feedback requires --approve, --approve-submitted or --reject")


def _submitted_assignments(study: PublishedStudy, reject: Sequence[str]) -> list[str]:
    return [
        assignment.assignment_id
        for assignment in study.ledger.assignments()
        if assignment.status == "Submitted" and assignment.assignment_id not in reject
    ]


def _carry_out_decisions(
    study: PublishedStudy, decisions: Sequence[Decision], unmarked: int, *, override: bool
) -> None:
    from mturk.study.actions import supersede_reviews, unfinished_actions
    from mturk.study.collect import update_hit
    from mturk.study.privacy import worker_namer
    from mturk.study.review import execute_review, plan_reviews

    actions, n_decided_before = plan_reviews(study.ledger, decisions, override=override)
    with study.ledger.exclusive_lock():
        supersede_reviews(study.ledger, actions, time.time())
        actions_by_token = {
            action.token: action for action in unfinished_actions(study.ledger, "approve", "reject")
        }
        actions_by_token |= {action.token: action for action in actions}
        outcome = _carry_out_with_progress(study, [*actions_by_token.values()], execute_review)
    hit_by_assignment = {
        assignment.assignment_id: assignment.hit_id for assignment in study.ledger.assignments()
    }
    for hit_id in dict.fromkeys(
        hit_by_assignment[action.target]
        for action in outcome.done
        if action.target in hit_by_assignment
    ):
        update_hit(study.client, study.ledger, hit_id, worker_namer(study.ledger))
    counts = {
        "approved": sum(action.kind == "approve" for action in outcome.done),
        "rejected": sum(action.kind == "reject" for action in outcome.done),
        "decided_before": n_decided_before + len(outcome.already_done),
        "without_mark": unmarked,
        "refused": len(outcome.refused),
    }
    _print_outcome(study.console, "assignments", counts, outcome)


def _list_waiting(study: PublishedStudy, output: str | None) -> None:
    from bws.annotators import annotator_report
    from bws.base.text import write_atomic
    from mturk.study.actions import unfinished_actions
    from mturk.study.review import check_no_open_decisions, pending_reviews, review_csv
    from mturk.study.status import local_time
    from mturk.study.valid_answers import read_valid_answers

    judgments = read_valid_answers(study.ledger)
    report = annotator_report(judgments.judgments) if judgments.judgments else None
    rows = pending_reviews(study.ledger, judgments, report)
    if left := unfinished_actions(study.ledger, "approve", "reject"):
        study.console.note(
            f"note: {len(left)} decisions are unfinished; they are executed with the next decision"
        )
    if output is not None:
        check_no_open_decisions(study.ledger, output)
        write_atomic(output, review_csv(rows, local_time))
    if output == "-":
        return
    annotator_table = report.table() if report else ""
    text = "\n\n".join(filter(None, [_waiting_table(rows, output), annotator_table]))
    document = {
        "waiting": [_waiting_row(row) for row in rows],
        "annotators": report.document() if report else None,
        "output": output,
    }
    study.console.answer(text, document)


def _waiting_table(rows: Sequence[PendingReview], output: str | None) -> str:
    from bws.base.tables import tabulated
    from mturk.study.status import local_time

    message = f"{len(rows)} assignments are pending"
    if output is not None:
        return f"{output}: {message}; mark decisions and run giccs annotate review with the file"
    if not rows:
        return message
    header = ["assignment", "worker", "submitted", "auto-approval", "check", "comment"]
    table = [
        [
            row.assignment.assignment_id, row.assignment.worker,
            local_time(row.assignment.submit_time), local_time(row.assignment.auto_approval_time),
            "; ".join([*row.faults, *row.review_reasons]),
            " ".join(row.comment.split())[:MAX_COMMENT_CHARACTERS],
        ]
        for row in rows[:MAX_LISTED]
    ]  # fmt: skip
    more = (
        f"\n... and {len(rows) - MAX_LISTED} more; use -o to write all"
        if len(rows) > MAX_LISTED
        else ""
    )
    return f"{message}\n{tabulated(table, header)}{more}"


def _waiting_row(row: PendingReview) -> dict[str, Any]:
    assignment = row.assignment
    return {
        "assignment_id": assignment.assignment_id,
        "hit_id": assignment.hit_id,
        "worker": assignment.worker,
        "submit_time": assignment.submit_time,
        "auto_approval_time": assignment.auto_approval_time,
        "faults": list(row.faults),
        "compliance": row.compliance,
        "look_at": list(row.review_reasons),
        "comment": row.comment,
    }


@command(
    "giccs annotate bonus",
    example="""
    giccs annotate bonus bonuses.csv
    giccs annotate bonus bonuses.csv --ledger study.db --yes
    """,
)
@click.argument("bonuses", type=INPUT, metavar="BONUSES")
@ledger_option
@endpoint_option
@yes_option
def bonus(console: Console, bonuses: str, ledger: str, endpoint: str | None, yes: bool) -> None:
    """Pay bonuses, each exactly once.

    BONUSES is a CSV file with the columns assignment_id, amount (US dollars) and reason (shown to the
    worker). No bonus is paid twice, even if the command is repeated after a crash. For remote services, the
    total must be typed to confirm; with --yes only if a bonus is above 10 times the reward.
    """
    from mturk.money import unusual_bonus
    from mturk.study.actions import unfinished_actions
    from mturk.study.bonus import bonus_price, pay_bonus, read_bonuses

    with open_study(console, ledger, endpoint) as study:
        study.collect()
        read = read_bonuses(bonuses, study.ledger)
        tokens_done = {action.token for action in study.ledger.actions("done")}
        actions_by_token = {
            action.token: action for action in [*unfinished_actions(study.ledger, "bonus"), *read]
        }
        due = [action for action in actions_by_token.values() if action.token not in tokens_done]
        cost = bonus_price(due)
        _check_balance(study, cost.total)
        if due:
            reward = study.ledger.study().settings.reward
            doubt = unusual_bonus(max(Decimal(one.amount) for one in due), reward)
            confirm_cost(study, f"{len(due)} bonuses", cost.total, yes=yes, doubt=doubt)
        with study.ledger.exclusive_lock():
            outcome = _carry_out_with_progress(study, due, pay_bonus)
        paid = bonus_price(outcome.done)
        counts = {
            "paid": len(outcome.done),
            "paid_before": len(actions_by_token) - len(due) + len(outcome.already_done),
            "refused": len(outcome.refused),
        }
        _print_outcome(
            console, "bonuses", counts, outcome, total=str(paid.total), fees=str(paid.fees)
        )


@command(
    "giccs annotate extend",
    example="""
    giccs annotate extend --hours 48
    giccs annotate extend --assignments 8
    giccs annotate extend 3XYZ... --hours 24 --assignments 9
    """,
)
@hit_argument
@ledger_option
@endpoint_option
@option(
    "--hours", "Set the expiration to N hours from now, also of expired HITs.",
    type=Number(0, 8760, min_open=True), metavar="N",
)  # fmt: skip
@option(
    "--assignments",
    "Raise the maximum number of assignments per HIT to N.",
    type=assignment_count,
    metavar="N",
)
@yes_option
def extend(
    console: Console, hit_ids: tuple[str, ...], ledger: str, endpoint: str | None, hours: float | None,
    assignments: int | None, yes: bool,
) -> None:  # fmt: skip
    """Extend HITs: a later expiration, or more assignments.

    Applies to all HITs of the study unless a HIT_ID is given. A HIT created with fewer than 10 assignments
    cannot be raised to 10 or more. Both options set totals: repeating the command has no effect.
    """
    from mturk.study.hit_updates import extend_hit as extend_one
    from mturk.study.hit_updates import (
        extension_cost,
        lifetime_problem,
        plan_extensions,
        select_hits,
    )

    if hours is None and assignments is None:
        raise click.UsageError("--hours or --assignments is required")
    if hours and (problem := lifetime_problem(hours * SECONDS_PER_HOUR)):
        raise click.BadParameter(problem, param_hint="--hours")
    with open_study(console, ledger, endpoint) as study:
        study.collect()
        hits = select_hits(study.ledger, hit_ids)
        actions = plan_extensions(hits, assignments) if assignments else []
        cost = extension_cost(hits, actions, study.ledger.study().settings.reward)
        _check_balance(study, cost)
        if actions:
            confirm_cost(study, f"more assignments for {len(actions)} HITs", cost, yes=yes)
        with study.ledger.exclusive_lock():
            until = time.time() + (hours or 0) * SECONDS_PER_HOUR
            extended = [
                extend_one(study.client, study.ledger, hit, until)
                for hit in console.progress(hits if hours else [], "extending", len(hits))
            ]
            outcome = _raise_assignments(study, actions)
        counts = {
            "extended": sum(extended),
            "deleted_there": extended.count(False),
            "raised": len(outcome.done),
            "had_as_many": len(outcome.already_done)
            + (len(hits) - len(actions) if assignments else 0),
            "refused": len(outcome.refused),
        }
        _print_outcome(console, "HITs", counts, outcome, cost=str(cost))


@command(
    "giccs annotate close",
    example="""
    giccs annotate close
    giccs annotate close 3XYZ... 3ABC...
    """,
)
@hit_argument
@ledger_option
@endpoint_option
def close(console: Console, hit_ids: tuple[str, ...], ledger: str, endpoint: str | None) -> None:
    """Expire HITs; accepted assignments can still be submitted.

    Applies to all HITs of the study unless a HIT_ID is given. `extend --hours` reopens them.
    """
    from mturk.study.hit_updates import close_hit as close_one
    from mturk.study.hit_updates import select_hits

    with open_study(console, ledger, endpoint) as study, study.ledger.exclusive_lock():
        hits = select_hits(study.ledger, hit_ids)
        is_open = [
            close_one(study.client, study.ledger, hit)
            for hit in console.progress(hits, "closing", len(hits))
        ]
    n_deleted = is_open.count(False)
    message = f"{len(hits)} HITs closed" + (f", {n_deleted} of them deleted" if n_deleted else "")
    console.answer(message, {"closed": [hit.hit_id for hit in hits], "deleted_there": n_deleted})


@command(
    "giccs annotate top-up",
    example="""
    giccs annotate top-up --dry-run
    giccs annotate top-up
    """,
)
@ledger_option
@endpoint_option
@option(
    "--dry-run",
    "Print the planned changes without applying them.",
    is_flag=True,
    show_default=False,
)
@yes_option
def top_up(console: Console, ledger: str, endpoint: str | None, dry_run: bool, yes: bool) -> None:
    """Request the missing judgments of the tuples.

    Rejected, invalid and repeated answers are missing judgments; open and accepted assignments are expected
    to arrive. HITs are reopened or get more assignments; if a HIT's maximum is reached, its page is
    published as a new HIT.
    """
    from mturk.kinds import get_kind
    from mturk.study.top_up import execute_top_up
    from mturk.study.top_up import plan_top_up as planned
    from mturk.study.valid_answers import read_valid_answers

    with open_study(console, ledger, endpoint) as study, study.ledger.exclusive_lock():
        hits = study.collect().hits
        plan = planned(study.ledger, hits, read_valid_answers(study.ledger))
        document, kind = _top_up_document(plan), get_kind(study.ledger.study().settings.kind)
        if plan.is_empty or dry_run:
            console.answer(_top_up_text(plan, kind, dry_run), document | {"done": False})
            return
        _check_balance(study, plan.cost)
        confirm_cost(study, "the further answers", plan.cost, yes=yes)
        until = time.time() + study.ledger.study().settings.lifetime
        refused = execute_top_up(study.client, study.ledger, plan, until).refused
        document |= {
            "done": True,
            "refused": [{"hit_id": action.target, "text": t} for action, t in refused],
        }
        console.answer(_top_up_text(plan, kind, dry_run=False), document)
    _fail_if_refused(refused)


def _top_up_document(plan: TopUp) -> dict[str, Any]:
    return {
        "lacking": dict(plan.missing_judgments),
        "reopened": [hit.hit_id for hit in plan.reopen],
        "raised": {action.target: int(action.amount) for action in plan.extensions},
        "published_again": [{"hit_id": hit.hit_id, "assignments": n} for hit, n in plan.republish],
        "unpublished": plan.n_unpublished,
        "cost": str(plan.cost),
    }


def _top_up_text(plan: TopUp, kind: HitKind, dry_run: bool) -> str:
    if plan.is_empty:
        return f"no {kind.answer}s are missing; open assignments are counted"
    missing = sum(plan.missing_judgments.values())
    summary = f"{missing} {kind.answer}s of {len(plan.missing_judgments)} {kind.part}s are missing"
    hit_counts = {
        "reopened": len(plan.reopen), "with more assignments": len(plan.extensions),
        "published again": len(plan.republish),
        "published for the first time": plan.n_unpublished,
    }  # fmt: skip
    message = ", ".join(f"{n} {description}" for description, n in hit_counts.items() if n)
    return f"{summary}; {'planned HITs' if dry_run else 'HITs'}: {message}; ${plan.cost} including fees"


@command(
    "giccs annotate batch",
    example="""
    giccs annotate batch -o results.csv
    giccs annotate review results.csv
    giccs score results.csv
    """,
)
@ledger_option
@endpoint_option
@option("-o --output", "Output file.", default="batch_results.csv", type=OUTPUT, metavar="FILE")
@workers_option
def batch(
    console: Console, ledger: str, endpoint: str | None, output: str, worker_ids: str | None
) -> None:
    """Write all assignments as a batch results file, as on the requester site of Mechanical Turk.

    Mark decisions with x in the column Approve or Reject, and run `review` with the file.
    """
    from bws.base.text import write_atomic
    from bws.files.answers_of_people import keep_answers_of_people
    from mturk.study.batch_csv import batch_csv
    from mturk.study.review import check_no_open_decisions

    if output == "-" and console.as_json:
        raise click.UsageError("--json requires an output file (-o FILE)")
    with open_study(console, ledger, endpoint) as study:
        hits = study.collect().hits
        name = worker_names(study.ledger, study.client, worker_ids) or (lambda one: one.worker)
        text, unreadable = batch_csv(study.ledger, hits, name, now=time.time())
        rows = len(study.ledger.assignments())
        check_no_open_decisions(study.ledger, output)
    written = csv.DictReader(StringIO(text))
    keep_answers_of_people(
        output, [(row["WorkerId"], row.get("Answer.comment", "")) for row in written]
    )
    write_atomic(output, text)
    console.warn(
        [
            Problem(assignment_id, None, "unreadable answer; its cells are empty")
            for assignment_id in unreadable
        ]
    )
    if output != "-":
        document = {"output": output, "assignments": rows, "unreadable": unreadable}
        console.answer(f"{output}: {rows} assignments", document)


@command(
    "giccs annotate purge",
    example="""
    giccs annotate purge --worker w-0123456789abcdef
    giccs annotate purge --worker A1B2C3 --worker A2B3C4
    giccs annotate purge --key
    """,
)
@ledger_option
@option(
    "--worker workers", "Delete all assignments of this worker (id or pseudonym).",
    multiple=True, metavar="ID",
)  # fmt: skip
@option(
    "--key", "Delete the key of the pseudonyms, so that they cannot be resolved; collecting and "
    "reviewing are impossible afterwards.", is_flag=True, show_default=False,
)  # fmt: skip
@yes_option
def purge(console: Console, ledger: str, workers: tuple[str, ...], key: bool, yes: bool) -> None:
    """Permanently delete a worker's data from the ledger, or the key of the pseudonyms.

    Files written before and the data of the service are not changed. Deleted assignments are not collected
    again; later submissions of the worker are.
    """
    from mturk.study.ledger import Ledger
    from mturk.study.privacy import destroy_key, find_assignments, key_path, purge_workers

    if not workers and not key:
        raise click.UsageError("--worker or --key is required")
    with Ledger.open(ledger) as opened_ledger, opened_ledger.exclusive_lock():
        assignments_by_worker = find_assignments(opened_ledger, workers)
        total = sum(map(len, assignments_by_worker.values()))
        targets = (
            [f"{total} assignments of {len(assignments_by_worker)} workers"] if workers else []
        )
        targets += [f"the key {key_path(opened_ledger)}"] if key else []
        if not yes:
            click.confirm(f"Permanently delete {' and '.join(targets)}?", abort=True, err=True)
        act: Any = {"actor": command_user(), "now": time.time()}
        n_deleted = purge_workers(opened_ledger, workers, **act) if workers else 0
        had_key = key and destroy_key(opened_ledger, **act)
    message = f"{ledger}: {n_deleted} assignments deleted{', key deleted' if had_key else ''}"
    console.answer(
        message, {"assignments": n_deleted, "workers": len(assignments_by_worker), "key": had_key}
    )


def _carry_out_with_progress(
    study: PublishedStudy, actions: Sequence[Action], do: Callable[[Any, Action], bool]
) -> ActionResults:
    """Execute actions with a progress bar; the ledger must be locked exclusively."""
    from mturk.study.actions import execute_actions

    def progress(waiting: Sequence[Action]) -> Iterable[Action]:
        return study.console.progress(waiting, "calling", len(waiting))

    return execute_actions(
        study.ledger, actions, lambda one: do(study.client, one), progress=progress
    )


def _raise_assignments(study: PublishedStudy, actions: Sequence[Action]) -> ActionResults:
    from mturk.study.hit_updates import add_assignments

    return _carry_out_with_progress(
        study, actions, lambda client, one: add_assignments(client, study.ledger, one)
    )


def _check_balance(study: PublishedStudy, cost: Any) -> None:
    from mturk.study.client import ServiceError
    from mturk.study.publish import available_balance

    if cost and (balance := available_balance(study.client)) < cost:
        raise ServiceError(f"${cost} including fees is required, but the balance is ${balance}")


def _print_outcome(
    console: Console, noun: str, counts: dict[str, int], outcome: ActionResults, **more: str
) -> None:
    message = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n)
    problems = [
        {"target": action.target, "kind": action.kind, "text": text}
        for action, text in outcome.refused
    ]
    money = "".join(f"; {name} ${amount}" for name, amount in more.items())
    console.answer(
        f"{noun}: {message or 'nothing to do'}{money}", {**counts, **more, "refusals": problems}
    )
    _fail_if_refused(outcome.refused)


def _fail_if_refused(refused: Sequence[tuple[Action, str]]) -> None:
    """Exit with code 1 if the service refused any action, listing all reasons."""
    if refused:
        lines = [f"{action.target}: {action.kind} was refused: {text}" for action, text in refused]
        raise click.ClickException("\n".join(lines))
