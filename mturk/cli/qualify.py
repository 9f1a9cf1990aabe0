"""giccs annotate qualify: qualification types by a test, or by participation in another study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, UPDATED
from bws.cli.options import arguments, option
from giccs.cli.options import language_option

if TYPE_CHECKING:
    from mturk.study.qualification import QualificationTest


@command(
    "giccs annotate qualify",
    example="""
    giccs annotate qualify --config conditions.toml
    giccs annotate qualify --test test.toml --endpoint https://work.example.org
    giccs annotate qualify --workers-of conditions.db
    """,
)
@option(
    "--config",
    "Settings of a study of kind conditions, verification or relabel, which have a built-in test.",
    type=INPUT,
    metavar="FILE",
)
@language_option
@option("--test", "Custom test (TOML).", type=INPUT, metavar="FILE")
@option(
    "--workers-of", "Instead of a test, mark all workers of the study of this ledger.",
    type=UPDATED, metavar="LEDGER",
)  # fmt: skip
@option(
    "--endpoint", "Service: local, sandbox or a URL; with --workers-of, its new address if it has changed.  "
    "[default: local, or the service of the ledger]", metavar="WHERE",
)  # fmt: skip
def qualify(
    console: Console, config: str | None, language: str | None, test: str | None,
    workers_of: str | None, endpoint: str | None,
) -> None:  # fmt: skip
    """Create a qualification type and print the setting that requires it.

    Workers take the test on the worker site; the value is the percentage of points, granted immediately.
    With --workers-of, writers of conditions can be excluded from verifying them. An existing type is reused.
    """
    if sum(map(bool, (config, test, workers_of))) != 1:
        raise click.UsageError("exactly one of --config, --test and --workers-of is required")
    if language and not config:
        raise click.UsageError("--language requires --config")
    if workers_of:
        _mark_workers(console, workers_of, endpoint)
        return
    from mturk.study.client import connect, resolve
    from mturk.study.qualification import create_qualification_type

    qualification = _test(config, language, test)
    with arguments():
        service = resolve(endpoint or "local")
    type_id, new = create_qualification_type(connect(service), qualification)
    requirement = f"{type_id}>={qualification.pass_at}"
    description = f"{qualification.name!r}, {len(qualification.questions)} questions"
    _print_requirement(
        console, type_id, requirement, f"{'created' if new else 'existing'}: {description}", new=new
    )


def _test(config: str | None, language: str | None, test: str | None) -> QualificationTest:
    from mturk.study.qualification import built_in_test, read_test
    from mturk.study.settings_file import read_settings

    return read_test(test) if test else built_in_test(read_settings(str(config), language))


def _mark_workers(console: Console, ledger: str, endpoint: str | None) -> None:
    from mturk.cli.published_study import open_study
    from mturk.study.qualification import mark_workers

    with open_study(console, ledger, endpoint) as study:
        study.collect()
        type_id, workers = mark_workers(study.client, study.ledger)
    comment = f"{workers} workers of {ledger} marked"
    _print_requirement(console, type_id, f"!{type_id}", comment, workers=workers)


def _print_requirement(
    console: Console, type_id: str, requirement: str, comment: str, **more: Any
) -> None:
    document = {"qualification_type_id": type_id, "requirement": requirement, **more}
    console.answer(f'# {comment}\nown_qualifications = ["{requirement}"]', document)
