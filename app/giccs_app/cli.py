"""giccs: all commands, in the order of the workflow. The module of each command is imported on demand."""

from __future__ import annotations

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # Before any other import.

from collections.abc import Mapping  # noqa: E402

import click  # noqa: E402

from bws.base.commands import StagedGroup, group  # noqa: E402
from giccs_app.stages import COMMANDS, STAGES  # noqa: E402

EXAMPLE = """
giccs init my-study --language en
giccs eval baseline:char-ngram package:minilm
"""


class _Workflow(StagedGroup):
    """The group of all commands, listed by stage, with further analyses as the last stage."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their order."""
        return list(dict.fromkeys([*COMMANDS, *_further_analyses()]))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command, or make that of a further analysis."""
        if name in COMMANDS or name not in _further_analyses():
            return super().get_command(ctx, name)
        from bws.base.problems import InputError
        from bws.cli.analyses import judgments_command
        from giccs_app.stages import load_further_analysis

        try:
            return judgments_command(f"giccs {name}", load_further_analysis(name))
        except InputError as error:
            raise click.UsageError(str(error), ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the stages, and further analyses as the last one."""
        super().format_options(ctx, formatter)
        width = max(map(len, COMMANDS))
        if others := _further_analyses():
            lines = []
            for name, place in others.items():
                refusal = f" (not available: giccs {name} is another command)"
                lines.append((f"{name:<{width}}", place + (refusal if name in COMMANDS else "")))
            with formatter.section("Further analyses of judgments"):
                formatter.write_dl(lines)


def _further_analyses() -> Mapping[str, str]:
    from bws.analysis.registry import further_analyses

    return further_analyses()


@group("giccs", COMMANDS, EXAMPLE, cls=_Workflow, stages=STAGES)
def main() -> None:
    """Annotate with best-worst scaling, and evaluate language models."""
