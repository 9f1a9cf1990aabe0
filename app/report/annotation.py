"""The sections about the annotation: the study, agreement and reliability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.report.content import Cell, Section, Source, Table
from app.report.inputs import Inputs

if TYPE_CHECKING:
    from bws.records import Judgments

__all__ = ["agreement_section", "reliability_section", "study_section"]

BY = ("source", "n_turns")
"""What tells the parts of Tables 1 and 3 apart."""


def study_section(inputs: Inputs) -> Section:
    """Return what was asked and what it would cost."""
    source = _source_of_study(inputs)
    unit = str(source.document["currency"])
    rows: list[tuple[str, Cell]] = [
        ("HITs", source.number("/hits")),
        ("assignments", source.number("/assignments")),
        ("reward of an assignment", ["$", source.number("/reward")]),
        ("rewards", ["$", source.number("/rewards")]),
        ("fees as Mechanical Turk took them", ["$", source.number("/fees")]),
        ("rewards and fees", ["$", source.number("/total")]),
        ("seconds a HIT takes a person, as set", source.number("/expected_seconds")),
        ("earned an hour then", [source.number("/hourly"), f" {unit}"]),
        ("minimum wage", [source.number("/minimum_wage"), f" {unit}"]),
    ]
    text = [
        "People see a dialogue and some of its candidate utterances, and choose the one that is most "
        "similar to the last turn and the one that is least. A HIT is a page of such questions."
    ]
    table = Table("HITs, and what they would cost with people", ("", ""), rows)
    return Section("study", "The study", text, [source.command], tables=[table], about_scores=False)


def _source_of_study(inputs: Inputs) -> Source:
    from bws.files import read_tuples
    from giccs.benchmark.assemble import read_dialogues
    from giccs.benchmark.languages import data_language
    from mturk.kinds.tuples.plan import plan
    from mturk.money import cents
    from mturk.study.cost import estimate
    from mturk.study.settings_file import read_settings

    tuples, dialogues, settings_file = inputs.study
    asked = read_tuples(inputs.path(tuples)), read_dialogues(inputs.path(dialogues))
    settings = read_settings(inputs.path(settings_file), data_language(asked[1], dialogues))
    price = estimate([settings.assignments] * len(plan(*asked, settings)), settings)
    amounts = {
        "reward": price.reward,
        "rewards": price.rewards,
        "fees": price.fees,
        "total": price.total,
        "hourly": cents(price.hourly),
        "minimum_wage": price.minimum,
        "currency": price.currency,
    }
    counts = {
        "hits": price.hits,
        "assignments": price.assignments,
        "expected_seconds": price.expected_seconds,
    }
    command = (
        f"mturk-hits estimate {tuples} --dialogues {dialogues} --config {settings_file} --json"
    )
    return Source(command, counts | {name: str(amount) for name, amount in amounts.items()})


def agreement_section(inputs: Inputs, judgments: Judgments) -> Section:
    """Return the agreement of the annotators (Table 1 of the paper)."""
    from bws.agreement import agreement

    found = agreement(judgments, by=_by(inputs, judgments))
    source = Source(_command("bws-agreement", inputs), found.document())
    text = [
        "Did different annotators give the same answers to the same tuples? Strong agreement: four of "
        "five annotators, or that share, gave the same answer."
    ]
    tables = [source.table(found.result_table())]
    return Section("agreement", "Agreement", text, [source.command], tables=tables)


def reliability_section(inputs: Inputs, judgments: Judgments) -> tuple[Section, Source]:
    """Return the split-half reliability (Table 3 of the paper), and what bws-reliability prints."""
    from bws.split_half import reliability

    found = reliability(judgments, by=_by(inputs, judgments))
    source = Source(_command("bws-reliability", inputs), found.document())
    text = ["Would other judgments of the same tuples have given the same scores?"]
    tables = [source.table(found.result_table())]
    return Section("reliability", "Reliability", text, [source.command], tables=tables), source


def _command(name: str, inputs: Inputs) -> str:
    by = ",".join(BY)
    return f"{name} {inputs.judgments_file} --metadata {inputs.metadata_file} --by {by} --json"


def _by(inputs: Inputs, judgments: Judgments) -> Mapping[str, Any]:
    from bws.metadata import read_metadata

    return dict(read_metadata(inputs.path(inputs.metadata_file)).of_tuples(judgments.tuples, BY))
