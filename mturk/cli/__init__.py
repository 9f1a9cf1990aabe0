"""giccs annotate: annotation studies from tuples to judgments. Command modules are imported on demand."""

from __future__ import annotations

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # before any other import

from bws.base.commands import group  # noqa: E402

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "serve": "mturk.cli.service:serve",
    "migrate": "mturk.cli.service:migrate",
    "invite": "mturk.cli.service:invite",
    "revoke": "mturk.cli.participants:revoke",
    "participants": "mturk.cli.participants:participants",
    "release": "mturk.cli.participants:release",
    "withdraw": "mturk.cli.participants:withdraw",
    "messages": "mturk.cli.messages:messages",
    "reply": "mturk.cli.messages:reply",
    "simulate": "mturk.cli.simulate:simulate",
    "qualify": "mturk.cli.qualify:qualify",
    "estimate": "mturk.cli.publish:estimate",
    "preview": "mturk.cli.publish:preview",
    "export": "mturk.cli.export:export",
    "check-texts": "mturk.cli.catalogues:check_texts",
    "publish": "mturk.cli.publish:publish",
    "status": "mturk.cli.collect:status",
    "collect": "mturk.cli.collect:collect",
    "review": "mturk.cli.review:review",
    "bonus": "mturk.cli.review:bonus",
    "next": "mturk.cli.rounds:next_round",
    "extend": "mturk.cli.review:extend",
    "top-up": "mturk.cli.review:top_up",
    "close": "mturk.cli.review:close",
    "batch": "mturk.cli.review:batch",
    "purge": "mturk.cli.review:purge",
    "person": "mturk.cli.person:main",
    "audit": "mturk.cli.audit:audit",
    "notifications": "mturk.cli.notifications:notifications",
    "prolific": "mturk.cli.prolific:main",
}
"""Command name -> location of its function, in the order of a study."""

EXAMPLE = """
giccs annotate serve &
giccs annotate preview tuples.csv --dialogues dialogues.jsonl
giccs annotate publish tuples.csv --dialogues dialogues.jsonl
giccs annotate status --watch 10
giccs annotate collect -o judgments.csv
"""


@group("giccs annotate", COMMANDS, EXAMPLE)
def main() -> None:
    """Publish tuples as an annotation study, serve it in the browser and collect the judgments."""
