"""mturk-hits next: the next round of an adaptive study, or its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import arguments, option, seed_option
from bws.command import Console, command
from bws.options import MAX_COUNT, Number
from mturk.cli.published_study import (
    PublishedStudy,
    confirm_cost,
    ledger_option,
    open_study,
    yes_option,
)

if TYPE_CHECKING:
    from bws.adaptive import Stopping
    from bws.records import Tuples
    from mturk.study.plan import PlannedStudy
    from mturk.study.rounds import RoundSummary

__all__ = ["next_round"]


@command(
    "mturk-hits next",
    example="""
    mturk-hits next --dialogues dialogues.jsonl
    mturk-hits next --dialogues dialogues.jsonl -n 50 --target 0.97 -o round2.csv
    mturk-hits next --dialogues dialogues.jsonl --dry-run
    """,
    interrupt_message="a recorded round is in {ledger}; run the same command to publish the rest of its HITs",
)
@ledger_option
@option(
    "--dialogues --items dialogues",
    "Dialogues (JSONL) of the tuples' groups and items; with kind items, a table of their texts or images.",
    metavar="FILE",
)
@option(
    "-n count", "Tuples of the round.  [default: half the number of items]",
    type=click.IntRange(1, MAX_COUNT), metavar="N",
)  # fmt: skip
@option(
    "--target",
    "Required correlation of the scores with the true scores; no round is published once it is reached.",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.95,
    metavar="R",
)
@option(
    "--keep-apart",
    "Sets of items, one per line; no tuple contains two items of a set.",
    metavar="FILE",
)
@seed_option
@option(
    "-o --output", "File for the tuples of the round.  [default: round-NUMBER.csv]", metavar="FILE"
)
@option(
    "--dry-run",
    "Choose and price the round, but do not publish it.",
    is_flag=True,
    show_default=False,
)
@yes_option
def next_round(
    console: Console,
    ledger: str,
    dialogues: str | None,
    count: int | None,
    target: float,
    keep_apart: str | None,
    seed: int,
    output: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Publish the next round of an adaptive study, once, or report that the study can end.

    New answers are collected. Unless the three gates of bws-stop are passed, tuples of items that the answers
    cannot yet order are chosen as by bws-next, planned with the settings of the study, priced and published.
    Half of the tuples of the last round must have a judgment. After an interruption, run the same command
    again: it publishes the missing HITs of a recorded round and no further round.
    """
    from mturk.study.publish import unpublished_hits

    if output == "-":
        raise click.UsageError("the tuples cannot be written to standard output; expected -o FILE")
    with open_study(console, ledger) as study, study.ledger.exclusive_lock():
        if unpublished_hits(study.ledger):
            _finish(study, dry_run=dry_run, yes=yes)
            return
        study.collect()
        tuples, evidence, rounds = _state(study, target, seed)
        document = {
            "stop": evidence.stop,
            "evidence": evidence.document(),
            "rounds": [summary.document() for summary in rounds],
        }
        console.note(_rounds_text(rounds))
        for gate in evidence.gates:
            console.note(
                f"{gate.name}: {'passed' if gate.passed else 'not passed'}; {gate.sentence}"
            )
        if evidence.stop:
            console.answer(evidence.verdict, document | {"published": None})
            return
        design = _choose(study, tuples, count, keep_apart, seed)
        output = output or f"round-{design.columns['round'][0]}.csv"
        published = _publish(study, tuples, design, output, dialogues, dry_run=dry_run, yes=yes)
        console.answer(
            f"{evidence.verdict}\n{_text(published)}", document | {"published": published}
        )


def _state(
    study: PublishedStudy, target: float, seed: int
) -> tuple[Tuples, Stopping, list[RoundSummary]]:
    """Return the tuples so far, the evidence for an end of the study, and the rounds."""
    from bws.adaptive import stopping
    from mturk.study.rounds import check_answers, judged, study_tuples, summarize_rounds
    from mturk.study.valid_answers import read_valid_answers

    tuples, answers = study_tuples(study.ledger), read_valid_answers(study.ledger)
    judgments = judged(study.ledger, answers)
    with arguments():
        evidence = stopping(judgments, tuples, target, seed=seed)
    if not evidence.stop:
        check_answers(study.ledger, answers, tuples)
    return tuples, evidence, summarize_rounds(study.ledger, answers, tuples)


def _choose(
    study: PublishedStudy, tuples: Tuples, count: int | None, keep_apart: str | None, seed: int
) -> Tuples:
    from bws.adaptive import next_round as chosen
    from bws.files import read_item_sets
    from mturk.study.rounds import judged
    from mturk.study.valid_answers import read_valid_answers

    judgments = judged(study.ledger, read_valid_answers(study.ledger))
    item_sets = read_item_sets(keep_apart) if keep_apart else ()
    size = count or math.ceil(len(tuples.items) / 2)
    with arguments():
        return chosen(judgments, tuples, size, keep_apart=item_sets, seed=seed)


def _publish(
    study: PublishedStudy, before: Tuples, design: Tuples, output: str, dialogues: str | None,
    *, dry_run: bool, yes: bool,
) -> dict[str, Any]:  # fmt: skip
    from bws.files import write_tuples
    from mturk.study.publish import adopt_hits, create_hits
    from mturk.study.rounds import plan_round, record_round, round_cost

    write_tuples(design, output)
    planned = plan_round(study.ledger, output, dialogues)
    for text in planned.notes:
        study.console.note(f"note: {text}")
    number = int(design.columns["round"][0])
    document: dict[str, Any] = {
        "round": number,
        "tuples": len(design),
        "audit": int((design.columns["purpose"] == "audit").sum()),
        "hits": len(planned.hits),
        "cost": str(round_cost(planned)),
        "output": output,
        "done": not dry_run,
    }
    _check_spending(study, planned)
    if dry_run:
        return document
    confirm_cost(study, f"round {number}, {len(planned.hits)} HITs", round_cost(planned), yes=yes)
    record_round(study.ledger, planned, before)
    adopt_hits(study.client, study.ledger)
    create_hits(study.client, study.ledger, progress=_progress(study))
    return document


def _check_spending(study: PublishedStudy, planned: PlannedStudy) -> None:
    """Raise an error if the study with the round costs more than its limit, or the round than the balance."""
    from bws.problems import InputError, Problem
    from mturk.study.client import ServiceError
    from mturk.study.cost import estimate_cost
    from mturk.study.publish import available_balance
    from mturk.study.rounds import round_cost

    settings, cost = planned.settings, round_cost(planned)
    counts = [hit.max_assignments for hit in study.ledger.hits()]
    total = estimate_cost(counts, settings).total + cost
    if settings.spending_limit and total > settings.spending_limit:
        message = (
            f"the study with this round costs ${total} including fees; spending_limit is "
            f"${settings.spending_limit}"
        )
        raise InputError(Problem(study.ledger.path, None, message))
    if cost and (balance := available_balance(study.client)) < cost:
        raise ServiceError(f"the round costs ${cost} including fees, but the balance is ${balance}")


def _finish(study: PublishedStudy, *, dry_run: bool, yes: bool) -> None:
    """Publish the HITs that an interrupted command has recorded."""
    from mturk.study.publish import adopt_hits, create_hits, unpublished_cost, unpublished_hits

    adopted = adopt_hits(study.client, study.ledger).n_adopted
    left, cost, created = len(unpublished_hits(study.ledger)), unpublished_cost(study.ledger), 0
    if not dry_run:
        confirm_cost(study, f"{left} HITs of an interrupted command", cost, yes=yes)
        created = create_hits(study.client, study.ledger, progress=_progress(study))
    study.console.answer(
        f"{adopted + created} HITs of an interrupted command published, {left - created} left; "
        "no further round was chosen",
        {"stop": False, "published": None, "resumed": {"hits": adopted + created, "left": left - created}},
    )  # fmt: skip


def _progress(study: PublishedStudy) -> Any:
    return lambda hits: study.console.progress(hits, "publishing", len(hits))


def _rounds_text(rounds: Sequence[RoundSummary]) -> str:
    return "\n".join(
        f"round {one.number}: {one.judgments} judgments of {one.tuples} tuples ({one.audit} audit), "
        f"{'unknown time' if one.seconds is None else f'{one.seconds:.1f} s per tuple'}, "
        f"{'unknown hourly pay' if one.hourly_usd is None else f'${one.hourly_usd:.2f} per hour'}, "
        f"${one.cost} including fees"
        for one in rounds
    )


def _text(published: dict[str, Any]) -> str:
    return (
        f"round {published['round']}{'' if published['done'] else ' (not published)'}: "
        f"{published['tuples']} tuples ({published['audit']} audit) in {published['hits']} HITs, "
        f"${published['cost']} including fees; {published['output']}"
    )
