"""giccs card: prepare a benchmark for publication."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, OUTPUT_FOLDER
from bws.base.problems import InputError, Problem
from bws.cli.options import (
    allow_copies_option,
    check_requires_judgments,
    control_option,
    merge_variants_option,
    report_judgments,
)
from giccs.cli.options import language_option


@command(
    "giccs card",
    example="""
    giccs card benchmark.jsonl --init card.toml
    giccs card benchmark.jsonl --config card.toml --judgments judgments.csv -o my-benchmark
    giccs card benchmark.jsonl --config card.toml -o my-benchmark --push my-lab/my-benchmark --private
    giccs card benchmark.jsonl --config card.toml -o my-benchmark --eval-yaml
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "-o", "--output", "folder", type=OUTPUT_FOLDER, metavar="FOLDER", help="Output folder."
)
@click.option(
    "--judgments",
    type=INPUT,
    metavar="FILE",
    help="The judgments behind the scores, published with statistics.",
)
@merge_variants_option
@control_option
@allow_copies_option
@click.option(
    "--comments",
    is_flag=True,
    help="With --judgments: also publish the annotators' comments, which may identify them.",
)
@click.option(
    "--soft-targets",
    type=INPUT,
    metavar="FILE",
    help="Soft targets of these judgments from giccs score --soft-targets, also published.",
)
@click.option(
    "--config",
    type=INPUT,
    metavar="card.toml",
    help="Information that only the authors have: title, licence, limitations ...",
)
@language_option
@click.option(
    "--eval-yaml",
    "with_tasks",
    is_flag=True,
    help="Also write eval.yaml, which declares the data set as a benchmark of the hub.",
)
@click.option(
    "--push",
    "repository",
    metavar="OWNER/NAME",
    help="Also push the folder to this data set of the Hugging Face hub, and read it back.",
)
@click.option("--private", is_flag=True, help="With --push: a private data set.")
@click.option(
    "--init",
    type=OUTPUT,
    metavar="card.toml",
    help="Write a template of this file, and nothing else.",
)
def card(
    console: Console,
    data: str,
    folder: str | None,
    judgments: str | None,
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    comments: bool,
    soft_targets: str | None,
    config: str | None,
    language: str | None,
    with_tasks: bool,
    repository: str | None,
    private: bool,
    init: str | None,
) -> None:
    """Write a dataset card, the data as Parquet and Croissant metadata: a folder for the hub.

    DATA is a benchmark JSONL file, a hub id, giccs-sample or giccs-sample-en. The GiCCS release itself is
    rejected, because its licence does not permit the distribution of modified versions.

    The card contains the statistics of the paper's Tables 1 to 3 and Figure 1, each with the command that
    prints it. Keys missing from card.toml are "not stated" in the card, with a warning.

    --push refuses data whose licence is not stated or permits no derivatives, unless --private is given,
    and a data set with other files. Ids that look like those of workers are refused. Comments are only
    published with --comments, and refused if they contain such ids or e-mail addresses; read them before.

    --json: folder, files, simulated, not_stated (keys of card.toml), fingerprint, with --push also commit and
    url; with --init: config, keys.
    """
    if (folder is None) == (init is None):
        raise click.UsageError("expected either -o FOLDER or --init card.toml")
    if (repository and folder is None) or (private and repository is None):
        raise click.UsageError("--push requires -o FOLDER, and --private requires --push")
    if comments and judgments is None:
        raise click.UsageError("--comments requires --judgments")
    check_requires_judgments(
        judgments, merge_variants=merge_variants, control=control, allow_copies=allow_copies
    )
    if init is not None:
        _write_template(console, init)
    elif folder is not None:
        _write_card(
            console, data, Path(folder), judgments, merge_variants, control, allow_copies, comments,
            soft_targets, config, language, with_tasks, repository, private,
        )  # fmt: skip


def _write_template(console: Console, path: str) -> None:
    from bws.base.text import write_atomic
    from giccs.description.card.stated import QUESTIONS, template

    if Path(path).exists():
        raise InputError(Problem(path, None, "already exists; choose another file or remove it"))
    write_atomic(path, template())
    console.answer(
        f"{path} has {len(QUESTIONS)} keys to complete", {"config": path, "keys": list(QUESTIONS)}
    )


def _write_card(
    console: Console,
    data: str,
    folder: Path,
    judgments: str | None,
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    comments: bool,
    soft_targets: str | None,
    config: str | None,
    language: str | None,
    with_tasks: bool,
    repository: str | None,
    private: bool,
) -> None:
    from bws.files import read_soft_targets
    from giccs.benchmark import read_benchmark
    from giccs.description.card.eval_yaml import FRAMEWORK_NOTE
    from giccs.description.card.folder import (
        card_of,
        check_folder,
        check_may_be_public,
        check_not_the_release,
        push,
        write_folder,
    )
    from giccs.description.card.stated import Stated, read_stated
    from giccs.measures.ceiling import load_judgments

    check_folder(folder)
    benchmark = read_benchmark(data)
    check_not_the_release(data)
    stated = read_stated(config) if config else Stated({})
    if repository and not private:
        check_may_be_public(stated, repository)
    published_judgments = load_judgments(
        benchmark,
        judgments,
        merge_variants=merge_variants,
        control=control,
        allow_copies=allow_copies,
    )
    if published_judgments and judgments:
        report_judgments(console, published_judgments, judgments)
    targets = read_soft_targets(soft_targets) if soft_targets else None
    dataset_card = card_of(
        benchmark, published_judgments, stated, language,
        soft_targets=targets, comments=comments, with_tasks=with_tasks,
    )  # fmt: skip
    files = write_folder(dataset_card, folder)
    console.warn([Problem(data, None, reason) for reason in dataset_card.left_out])
    if comments:
        _warn_of_comments(console, dataset_card.n_comments, judgments)
    if with_tasks:
        console.note(f"eval.yaml: {FRAMEWORK_NOTE}")
    not_stated = dataset_card.not_stated
    console.warn(
        [Problem(config or "card.toml", None, f"{key} is not stated") for key in not_stated]
    )
    document = {
        "folder": str(folder),
        "files": files,
        "simulated": dataset_card.simulated,
        "not_stated": list(not_stated),
        "fingerprint": dataset_card.fingerprint,
    }
    lines = [str(folder / name) for name in files]
    if repository:
        commit = push(dataset_card, folder, repository, private=private)
        document |= {"commit": commit, "url": f"https://huggingface.co/datasets/{repository}"}
        lines.append(f"{repository}@{commit}: read back with the same fingerprint")
    console.answer("\n".join(lines), document)


def _warn_of_comments(console: Console, n_comments: int, judgments: str | None) -> None:
    message = (
        f"{n_comments} comments of annotators are part of the folder, as written; publish them only if the "
        "annotators agreed to it and you have read them: what is published cannot be erased"
    )
    console.warn([Problem(judgments or "judgments", None, message)])
