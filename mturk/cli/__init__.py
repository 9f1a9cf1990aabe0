"""mturk-hits: from tuples to judgments. Each command's module is loaded only when it is asked for."""

from __future__ import annotations

from bws.interrupts import handle_interrupts

handle_interrupts()  # before anything else is imported

from bws.command import group  # noqa: E402

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "serve": "mturk.cli.service:serve",
    "migrate": "mturk.cli.service:migrate",
    "invite": "mturk.cli.service:invite",
    "simulate": "mturk.cli.rehearsal:simulate",
    "qualify": "mturk.cli.qualifying:qualify",
    "estimate": "mturk.cli.publishing:estimate",
    "preview": "mturk.cli.publishing:preview",
    "publish": "mturk.cli.publishing:publish",
    "status": "mturk.cli.collecting:status",
    "collect": "mturk.cli.collecting:collect",
    "review": "mturk.cli.reviewing:review",
    "bonus": "mturk.cli.reviewing:bonus",
    "extend": "mturk.cli.reviewing:extend",
    "top-up": "mturk.cli.reviewing:top_up",
    "close": "mturk.cli.reviewing:close",
    "batch": "mturk.cli.reviewing:batch",
    "purge": "mturk.cli.reviewing:purge",
}
"""Name of a command -> where it is, in the order of a study."""

EXAMPLE = """
mturk-hits serve &
mturk-hits preview tuples.csv --dialogues dialogues.jsonl
mturk-hits publish tuples.csv --dialogues dialogues.jsonl
mturk-hits status --watch 10
mturk-hits collect -o judgments.csv
"""


@group(COMMANDS, EXAMPLE)
def main() -> None:
    """Publish tuples as an annotation task, let people do it in a browser, collect the judgments."""
