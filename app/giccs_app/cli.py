"""giccs: all commands, in the order of the workflow. The module of each command is imported on demand."""

from __future__ import annotations

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # Before any other import.

from collections.abc import Mapping  # noqa: E402

import click  # noqa: E402

from bws.base.commands import Group, group  # noqa: E402

STAGES = {
    "Start": {
        "init": ("giccs_app.studies.cli:init", "Write the folder of a new study, with example data"),
        "data": ("giccs_app.packaged_data:data", "List and copy sample data, recipes and settings files"),
        "demo": ("giccs_app.demo.cli:demo", "Run the complete workflow offline, with simulated workers"),
    },
    "Annotate and score": {
        "import": ("giccs.cli.preparing:import_", "Import dialogues from transcripts, chat logs, sheets"),
        "design": ("bws.cli:make_tuples", "Generate balanced tuples of items"),
        "next": ("bws.cli:next_round", "Choose the tuples of the next round of an adaptive study"),
        "stop": ("bws.cli:stop", "Decide whether an adaptive study can end"),
        "annotate": ("mturk.cli:main", "Serve, publish, monitor, collect and review a study"),
        "judge": ("giccs_app.judging.cli:judge", "Let a language model judge tuples"),
        "simulate": ("bws.cli:simulate", "Simulate judgments of tuples"),
        "score": ("bws.cli:score", "Compute scores of items from judgments"),
        "reliability": ("bws.cli:reliability", "Split-half reliability of the scores"),
        "agreement": ("bws.cli:agreement", "Agreement of the annotators"),
        "verdict": ("bws.cli:verdict", "Decide whether language models may replace annotators"),
    },
    "Build a benchmark": {
        "build": ("giccs.cli.building:build", "Join dialogues and scores into a benchmark"),
        "validate": ("giccs.cli.validation:validate", "Check a benchmark"),
        "stats": ("giccs.cli.statistics:stats", "Describe a benchmark: counts, texts, scores"),
        "expert": ("giccs.cli.expert:expert", "Compare the scores with the ratings of an expert"),
        "card": ("giccs.cli.card:card", "Write a dataset card and files for publication"),
    },
    "Evaluate models": {
        "eval": ("giccs.cli.evaluation:evaluate", "Evaluate models on tasks"),
        "compare": ("giccs.cli.reporting:compare_models", "Test the differences between models"),
        "report": ("giccs.cli.reporting:report", "Print results as tables"),
        "explore": ("giccs_app.explorer.cli:explore", "Explore data, judgments and results in the browser"),
        "csts": ("giccs.csts.cli:main", "Similarity under a condition (C-STS, L-CSTS)"),
        "evalrank": ("giccs.evalrank.cli:main", "Ranking of positives against a background (EvalRank)"),
    },
}  # fmt: skip
"""Stage of the workflow -> name of a command -> its location ``module:function`` and its line in the help.

The line is stated here, so that the help and shell completion import no command.
"""

COMMANDS = {
    name: location for commands in STAGES.values() for name, (location, _) in commands.items()
}
"""Name of a command -> ``module:function``."""

EXAMPLE = """
giccs init my-study --language en
giccs eval baseline:char-ngram package:minilm
"""


class _Workflow(Group):
    """The group of all commands, listed by stage, with the analyses of other packages as the last stage."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their order."""
        return [*COMMANDS, *_other_analyses()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command, or make that of an analysis of another package."""
        if name in COMMANDS or name not in _other_analyses():
            return super().get_command(ctx, name)
        from bws.analysis.registry import load_analysis
        from bws.base.problems import InputError
        from bws.cli.analyses import judgments_command

        try:
            return judgments_command(f"giccs {name}", load_analysis(name))
        except InputError as error:
            raise click.UsageError(str(error), ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section of commands per stage; the epilog states the options of all commands."""
        width = max(map(len, COMMANDS))
        for stage, commands in STAGES.items():
            with formatter.section(stage):
                formatter.write_dl(
                    [(f"{name:<{width}}", summary) for name, (_, summary) in commands.items()]
                )
        if others := _other_analyses():
            with formatter.section("Analyses of other packages"):
                formatter.write_dl([(f"{n:<{width}}", place) for n, place in others.items()])


def _other_analyses() -> Mapping[str, str]:
    from bws.analysis.registry import other_analyses

    return other_analyses()


@group("giccs", COMMANDS, EXAMPLE, cls=_Workflow)
def main() -> None:
    """Annotate with best-worst scaling, and evaluate language models."""
