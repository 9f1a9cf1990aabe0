"""giccs annotate export: the tuples of a study as a project of another annotation tool."""

from __future__ import annotations

import click

from bws.base.commands import Console, command
from bws.base.options import OUTPUT_FOLDER
from bws.cli.options import option
from mturk.cli.publish import plan_of, study_options


@command(
    "giccs annotate export",
    example="""
    giccs annotate export tuples.csv --dialogues dialogues.jsonl --to label-studio -o label-studio
    giccs annotate export tuples.csv --dialogues dialogues.jsonl --to qualtrics -o survey
    giccs annotate export tuples.csv --items items.csv --config hits.toml --to potato -o potato
    """,
)
@study_options
@option(
    "--to tool", "Annotation tool; csv is a table for any other.",
    choices="label-studio potato qualtrics csv", required=True,
)  # fmt: skip
@option("-o --output folder", "Output folder.", required=True, type=OUTPUT_FOLDER, metavar="FOLDER")
def export(
    console: Console, tuples: str, anchors: str | None, dialogues: str | None, language: str | None,
    config: str | None, tool: str, folder: str,
) -> None:  # fmt: skip
    """Write the tuples of a study as a project of another annotation tool.

    The project contains the texts, the questions and the instructions of the worker page. Items are in random
    order, seeded by the setting `seed`; it is the same for all annotators of a tuple and is stored with their
    judgments. giccs score and the other commands read the results. Reward, qualifications, language check and
    comments are not part of the project.
    """
    from mturk.export import export_study, exported_study

    if anchors is not None:
        message = (
            "--anchors: other tools show all candidates at once, and their results have no anchors"
        )
        raise click.UsageError(f"{message}; expected giccs annotate publish")
    study = exported_study(plan_of(tuples, dialogues, language, config))
    files = [str(path) for path in export_study(study, tool, folder)]
    document = {
        "tool": tool,
        "files": files,
        "tuples": len(study.tuples),
        "items_per_tuple": study.k,
    }
    console.answer("\n".join(files), document)
