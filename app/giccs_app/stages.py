"""The commands of giccs by stage of the workflow, and further analyses under other names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bws.analysis.analysis import Analysis

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


def load_further_analysis(name: str) -> Analysis:
    """Return an analysis without a script; raise InputError if its name is that of a command of giccs."""
    from bws.analysis.registry import load_analysis
    from bws.base.problems import InputError, Problem

    if name in COMMANDS:
        message = "the name is that of a command of giccs; expected another"
        raise InputError(Problem(f"analysis {name}", None, message))
    return load_analysis(name)
