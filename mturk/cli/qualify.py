"""mturk-hits qualify: who may work on a study, by a test or by not having worked on another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bws.cli.options import arguments, option
from bws.command import Console, command
from giccs.cli.options import language_option

if TYPE_CHECKING:
    from mturk.study.qualification import QualificationTest

__all__ = ["qualify"]


@command(
    "mturk-hits qualify",
    example="""
    mturk-hits qualify --config conditions.toml
    mturk-hits qualify --test test.toml --endpoint https://work.example.org
    mturk-hits qualify --workers-of conditions.db
    """,
)
@option(
    "--config", "Settings of the study: conditions and verification have a test.", metavar="FILE"
)
@language_option
@option("--test", "A test of your own instead (TOML).", metavar="FILE")
@option(
    "--workers-of", "No test: mark everybody who has worked on the study of this ledger.",
    metavar="LEDGER",
)  # fmt: skip
@option(
    "--endpoint", "The service: local, sandbox, production or an address; a ledger knows its own.",
    default="local", metavar="WHERE",
)  # fmt: skip
def qualify(
    console: Console, config: str | None, language: str | None, test: str | None,
    workers_of: str | None, endpoint: str,
) -> None:  # fmt: skip
    """Make a qualification type at the service, and print the setting that asks for it.

    Workers take the test on the worker site and have its value at once: the percentage of the points. With
    --workers-of, those who have written conditions can be kept from verifying them. The same command again
    finds what it made before.
    """
    if sum(map(bool, (config, test, workers_of))) != 1:
        raise click.UsageError("--config, --test or --workers-of is needed, and one of them only")
    if workers_of:
        _mark_workers(console, workers_of)
        return
    from mturk.study.client import connect, resolve
    from mturk.study.qualification import create_qualification_type

    qualification = _test(config, language, test)
    with arguments():
        service = resolve(endpoint)
    type_id, new = create_qualification_type(connect(service), qualification)
    requirement = f"{type_id}>={qualification.pass_at}"
    description = f"{qualification.name!r}, {len(qualification.questions)} questions"
    _print_requirement(
        console, type_id, requirement, f"{'made' if new else 'was there'}: {description}", new=new
    )


def _test(config: str | None, language: str | None, test: str | None) -> QualificationTest:
    from mturk.study.qualification import built_in_test, read_test
    from mturk.study.settings_file import read_settings

    return read_test(test) if test else built_in_test(read_settings(str(config), language))


def _mark_workers(console: Console, ledger: str) -> None:
    from mturk.cli.published_study import open_study
    from mturk.study.qualification import mark_workers

    with open_study(console, ledger) as study:
        study.collect()
        type_id, workers = mark_workers(study.client, study.ledger)
    comment = f"{workers} workers of {ledger} are marked"
    _print_requirement(console, type_id, f"!{type_id}", comment, workers=workers)


def _print_requirement(
    console: Console, type_id: str, requirement: str, comment: str, **more: Any
) -> None:
    document = {"qualification_type_id": type_id, "requirement": requirement, **more}
    console.answer(f'# {comment}\nown_qualifications = ["{requirement}"]', document)
