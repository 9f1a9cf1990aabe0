"""giccs annotate: annotation studies from tuples to judgments. Command modules are imported on demand."""

from __future__ import annotations

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # before any other import

from bws.base.commands import StagedGroup, group  # noqa: E402

__all__ = ["COMMANDS", "main"]

STAGES = {
    "Study": {
        "qualify": ("mturk.cli.qualify:qualify", "Create a qualification type, and print its setting"),
        "estimate": ("mturk.cli.publish:estimate", "Estimate cost and hourly wage"),
        "preview": ("mturk.cli.publish:preview", "Show the page of a HIT in the browser"),
        "publish": ("mturk.cli.publish:publish", "Create the HITs, each exactly once"),
        "status": ("mturk.cli.collect:status", "Show progress and quality"),
        "collect": ("mturk.cli.collect:collect", "Collect assignments, and write judgments"),
        "next": ("mturk.cli.rounds:next_round", "Publish the next round of an adaptive study"),
        "extend": ("mturk.cli.review:extend", "Extend HITs: time or assignments"),
        "top-up": ("mturk.cli.review:top_up", "Request the missing judgments of the tuples"),
        "close": ("mturk.cli.review:close", "Expire HITs"),
        "batch": ("mturk.cli.review:batch", "Write a batch results file, as on the website"),
        "export": ("mturk.cli.export:export", "Write the tuples as a project of another tool"),
        "check-texts": ("mturk.cli.catalogues:check_texts", "List and check languages"),
    },
    "People": {
        "invite": ("mturk.cli.service:invite", "Print a personal link per worker"),
        "revoke": ("mturk.cli.participants:revoke", "Revoke personal or recruiting links"),
        "participants": ("mturk.cli.participants:participants", "List participants and their assignments"),
        "release": ("mturk.cli.participants:release", "Let a participant enter again from another browser"),
        "withdraw": ("mturk.cli.participants:withdraw", "Delete a participant's answers in a study"),
        "messages": ("mturk.cli.messages:messages", "List the messages of participants"),
        "reply": ("mturk.cli.messages:reply", "Reply to a message of a participant"),
        "person": ("mturk.cli.person:main", "Export or erase all data about one person"),
        "purge": ("mturk.cli.review:purge", "Delete a worker's data from the ledger"),
        "prolific": ("mturk.cli.prolific:main", "Recruit participants at Prolific"),
    },
    "Money": {
        "review": ("mturk.cli.review:review", "Approve and reject assignments"),
        "bonus": ("mturk.cli.review:bonus", "Pay bonuses, each exactly once"),
    },
    "Server": {
        "serve": ("mturk.cli.service:serve", "Run the annotation service"),
        "migrate": ("mturk.cli.service:migrate", "Migrate a database to the current schema version"),
        "simulate": ("mturk.cli.simulate:simulate", "Let simulated workers do all HITs"),
        "audit": ("mturk.cli.audit:audit", "List who saw worker ids, decided, paid or deleted"),
        "notifications": ("mturk.cli.notifications:notifications", "List the events of a requester"),
    },
}  # fmt: skip
"""Part of a study -> name of a command -> its location and its line in the help, as in `giccs_app.stages`."""

COMMANDS = {
    name: location for commands in STAGES.values() for name, (location, _) in commands.items()
}
"""Command name -> location of its function."""

EXAMPLE = """
giccs annotate serve &
giccs annotate preview tuples.csv --dialogues dialogues.jsonl
giccs annotate publish tuples.csv --dialogues dialogues.jsonl
giccs annotate status --watch 10
giccs annotate collect -o judgments.csv
"""


@group("giccs annotate", COMMANDS, EXAMPLE, cls=StagedGroup, stages=STAGES)
def main() -> None:
    """Publish tuples as an annotation study, serve it in the browser and collect the judgments."""
