"""giccs annotate next: the next round of an adaptive study, or its end."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, OUTPUT
from bws.cli.options import arguments, new_items_option, option, seed_option, target_option
from mturk.cli.published_study import (
    PublishedStudy,
    confirm_cost,
    endpoint_option,
    ledger_option,
    open_study,
    yes_option,
)

if TYPE_CHECKING:
    from bws.adaptive import Stopping
    from bws.files import Items
    from bws.records import Tuples
    from mturk.study.plan import PlannedStudy
    from mturk.study.rounds import RoundChoice, RoundSummary


@command(
    "giccs annotate next",
    example="""
    giccs annotate next --dialogues dialogues.jsonl
    giccs annotate next --dialogues dialogues.jsonl -n 50 --target 0.97 -o round2.csv
    giccs annotate next --dialogues dialogues.jsonl --new-items dialogues.jsonl
    giccs annotate next --verify
    """,
    interrupt_message="a recorded round is in {ledger}; run the same command to publish the rest of its HITs",
)
@ledger_option
@endpoint_option
@option(
    "--dialogues --items dialogues",
    "Dialogues (JSONL) of the tuples' groups and items; with kind items, a table of their texts or images.",
    type=INPUT,
    metavar="FILE",
)
@option(
    "-n count", "Tuples of the round.  [default: half the number of items]",
    type=click.IntRange(1, MAX_COUNT), metavar="N",
)  # fmt: skip
@new_items_option
@target_option
@option(
    "--keep-apart",
    "Sets of items, one per line; no tuple contains two items of a set.",
    type=INPUT,
    metavar="FILE",
)
@seed_option
@option(
    "-o --output",
    "File for the tuples of the round.  [default: round-NUMBER.csv]",
    type=OUTPUT,
    metavar="FILE",
)
@option(
    "--verify",
    "Only choose the published rounds again from the ledger, and compare.",
    is_flag=True,
    show_default=False,
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
    endpoint: str | None,
    dialogues: str | None,
    count: int | None,
    new_items: str | None,
    target: float,
    keep_apart: str | None,
    seed: int,
    output: str | None,
    verify: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Publish the next round of an adaptive study, once, or report that the study can end.

    New answers are collected. Unless the three gates of giccs stop are passed, tuples of items that the
    answers cannot yet order are chosen as by giccs next, planned with the settings of the study, priced and
    published. Half of the tuples of the last round must have a judgment. After an interruption, run the same
    command again: it publishes the missing HITs of a recorded round and no further round.

    With --new-items, new items enter the study by a round of their own, whether or not the gates are passed.
    """
    from bws.files import write_tuples
    from mturk.study.publish import unpublished_hits
    from mturk.study.rounds import plan_round, rounds_table

    if output == "-":
        raise click.UsageError("the tuples cannot be written to standard output; expected -o FILE")
    if new_items and (count or keep_apart):
        raise click.UsageError("--new-items cannot be combined with -n or --keep-apart")
    if verify and endpoint is not None:
        raise click.UsageError("--verify and --endpoint cannot be combined")
    if verify:
        _verify(console, ledger)
        return
    with open_study(console, ledger, endpoint) as study, study.ledger.exclusive_lock():
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
        console.note(str(rounds_table(rounds)))
        for gate in evidence.gates:
            console.note(
                f"{gate.name}: {'passed' if gate.passed else 'not passed'}; {gate.sentence}"
            )
        if evidence.stop and not new_items:
            console.answer(evidence.verdict, document | {"published": None})
            return
        new = _read_new_items(new_items, dialogues) if new_items else None
        design, choice = _choose(study, tuples, count, new, keep_apart, seed)
        output = output or f"round-{design.columns['round'][0]}.csv"
        write_tuples(design, output)
        planned = plan_round(study.ledger, output, dialogues)
        for text in planned.notes:
            console.note(f"note: {text}")
        published = _describe(design, planned, output) | {"done": not dry_run}
        _check_spending(study, planned)
        if not dry_run:
            _publish(study, tuples, planned, choice, published["round"], yes=yes)
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


def _read_new_items(path: str, dialogues: str | None) -> Items:
    """Return the items of a file, or of the study's table of texts or images if it is the same file."""
    from bws.files import Items, read_items
    from mturk.kinds.items.content import read_contents

    if path != dialogues or not path.endswith((".csv", ".tsv")):
        return read_items(path)
    keys = list(read_contents(path))
    groups = [group for group, _ in keys]
    return Items([item for _, item in keys], groups if any(groups) else None)


def _choose(
    study: PublishedStudy, tuples: Tuples, count: int | None, new_items: Items | None,
    keep_apart: str | None, seed: int,
) -> tuple[Tuples, RoundChoice]:  # fmt: skip
    """Return the tuples of the round, and what their choice depends on."""
    from bws.adaptive import round_of_new_items
    from bws.files import read_item_sets
    from mturk.study.rounds import RoundChoice, choose_round

    with arguments():
        if new_items:
            design = round_of_new_items(tuples, new_items, seed=seed)
            return design, RoundChoice(seed, None)
        size = count or math.ceil(len(tuples.items) / 2)
        item_sets = read_item_sets(keep_apart) if keep_apart else ()
        return choose_round(study.ledger, tuples, size, seed, item_sets)


def _describe(design: Tuples, planned: PlannedStudy, output: str) -> dict[str, Any]:
    from mturk.study.rounds import round_cost

    return {
        "round": int(design.columns["round"][0]),
        "tuples": len(design),
        "audit": int((design.columns["purpose"] == "audit").sum()),
        "hits": len(planned.hits),
        "cost": str(round_cost(planned)),
        "output": output,
    }


def _publish(
    study: PublishedStudy, before: Tuples, planned: PlannedStudy, choice: RoundChoice, number: int,
    *, yes: bool,
) -> None:  # fmt: skip
    from mturk.study.publish import adopt_hits, create_hits
    from mturk.study.rounds import record_round, round_cost

    confirm_cost(study, f"round {number}, {len(planned.hits)} HITs", round_cost(planned), yes=yes)
    record_round(study.ledger, planned, before, choice)
    adopt_hits(study.client, study.ledger)
    create_hits(study.client, study.ledger, progress=_progress(study))


def _verify(console: Console, path: str) -> None:
    """Report which rounds the ledger's judgments and seeds reproduce; exit with 1 for a difference."""
    from mturk.study.ledger import Ledger
    from mturk.study.rounds import repeat_rounds

    with Ledger.open(path) as ledger:
        rounds = repeat_rounds(ledger)
    texts = {
        True: "reproduced",
        False: "differs from the published tuples",
        None: "not verified: {}",
    }
    lines = [f"round {one.number}: {texts[one.equal].format(one.reason)}" for one in rounds]
    console.answer(
        "\n".join(lines) or "no round after the first", {"rounds": [asdict(one) for one in rounds]}
    )
    if any(one.equal is False for one in rounds):
        raise SystemExit(1)


def _check_spending(study: PublishedStudy, planned: PlannedStudy) -> None:
    """Raise an error if the study with the round costs more than its limit, or the round than the balance."""
    from bws.base.problems import InputError, Problem
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


def _text(published: dict[str, Any]) -> str:
    return (
        f"round {published['round']}{'' if published['done'] else ' (not published)'}: "
        f"{published['tuples']} tuples ({published['audit']} audit) in {published['hits']} HITs, "
        f"${published['cost']} including fees; {published['output']}"
    )
