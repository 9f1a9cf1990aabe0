"""giccs annotate estimate, preview, publish: from tuples to HITs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, OUTPUT
from bws.base.problems import InputError, Problem
from bws.base.terminal import echo
from bws.cli.options import arguments, option
from giccs.cli.options import language_option
from mturk.cli.published_study import (
    ledger_option,
    record_address,
    service_address,
    type_amount,
)
from mturk.kinds.registry import DEFAULT_KIND, kind_names

if TYPE_CHECKING:
    from mturk.study.client import Endpoint
    from mturk.study.cost import CostEstimate
    from mturk.study.ledger import Ledger
    from mturk.study.plan import PlannedStudy
    from mturk.study.publish import AdoptedHits
    from mturk.study.settings import Settings


def _print_settings(ctx: click.Context, parameter: click.Parameter, kind: str | None) -> None:
    if kind:
        from mturk.study.settings_file import default_toml

        echo(default_toml(kind, ctx.params.get("language")), nl=False)
        ctx.exit()


def _print_texts(ctx: click.Context, parameter: click.Parameter, kind: str | None) -> None:
    if kind:
        from mturk.kinds import get_kind
        from mturk.kinds.texts import read_built_in_file

        echo(read_built_in_file(get_kind(kind).package, "en"), nl=False)
        ctx.exit()


def study_options(function: Any) -> Any:
    """Add the arguments and options shared by the commands that plan a study."""
    for add in (
        option(
            "--default-config",
            "Print a commented settings file with all defaults (default kind: tuples) and exit. --language "
            "sets its language.",
            choices=" ".join(kind_names()), is_flag=False, flag_value=DEFAULT_KIND,
            expose_value=False, callback=_print_settings,
        ),
        option(
            "--config", "Settings of the study (TOML).  [default: built-in settings]",
            type=INPUT, metavar="FILE",
        ),
        option(
            "--default-texts",
            "Print the English texts of the worker page, as a template for the setting `texts`, and exit.",
            choices=" ".join(kind_names()), is_flag=False, flag_value=DEFAULT_KIND,
            is_eager=True, expose_value=False, callback=_print_texts,
        ),
        language_option,
        option(
            "--dialogues --items dialogues",
            "Dialogues (JSONL) of the tuples' groups and items; with kind items, a table of their texts or "
            "images.",
            type=INPUT, metavar="FILE",
        ),
        option(
            "--anchors",
            "Plan of anchors of the dialogues (CSV), which workers answer after the tuples.",
            type=INPUT, metavar="FILE",
        ),
        click.argument("tuples", type=INPUT, metavar="TUPLES"),
    ):  # fmt: skip
        function = add(function)
    return function


endpoint_option = option(
    "--endpoint", "Service: local, sandbox, production or a URL.", default="local",
    metavar="WHERE",
)  # fmt: skip
yes_option = option("--yes", "Do not ask for confirmation.", is_flag=True, show_default=False)


def accept_and_ignore(*ignored_options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Accept hidden options of `publish` without effect, so that all commands take the same arguments."""

    def add(function: Any) -> Any:
        decorated = function
        for add_option in ignored_options:
            decorated = add_option(decorated)
            parameter = decorated.__click_params__[-1]
            parameter.hidden, parameter.expose_value = True, False
        return decorated

    return add


@command(
    "giccs annotate estimate",
    example="""
    giccs annotate estimate tuples.csv --dialogues dialogues.jsonl
    giccs annotate estimate --default-config > hits.toml
    giccs annotate estimate --default-config conditions > conditions.toml
    giccs annotate estimate tuples.csv --dialogues dialogues.jsonl --config hits.toml
    """,
)
@study_options
@endpoint_option
@accept_and_ignore(ledger_option, yes_option)
def estimate(
    console: Console, tuples: str, anchors: str | None, dialogues: str | None, language: str | None,
    config: str | None, endpoint: str,
) -> None:  # fmt: skip
    """Estimate the cost of a study and the hourly wage of its workers.

    TUPLES is a tuples file whose groups are dialogue ids or, depending on the setting `kind`, a table of
    sentence pairs or of pairs with conditions. All HITs are rendered and checked locally; the service is
    not called.
    """
    from mturk.study.client import resolve
    from mturk.study.cost import format_estimate

    with arguments():
        service = resolve(endpoint, insist_on_production=True)  # the service is not called
    study = _plan_study(console, tuples, dialogues, language, config, anchors)
    price = _estimate_cost(study)
    _warn_about_wage(console, price, config)
    console.answer(
        format_estimate(price, imaginary=not service.amazon),
        {"endpoint": service.url, **_document(price, service)},
    )


@command(
    "giccs annotate preview",
    example="""
    giccs annotate preview tuples.csv --dialogues dialogues.jsonl
    giccs annotate preview tuples.csv --dialogues dialogues.jsonl --hit 3 --no-browser -o page.html
    """,
)
@study_options
@option(
    "--hit number", "Number of the HIT.", type=click.IntRange(1, MAX_COUNT), default=1, metavar="N"
)
@option("-o --output", "Output file.", default="preview.html", type=OUTPUT, metavar="FILE")
@option(
    "--browser/--no-browser", "Open the page in the browser.", default=True,
    show_default=True,
)  # fmt: skip
@accept_and_ignore(endpoint_option, ledger_option, yes_option)
def preview(
    console: Console, tuples: str, anchors: str | None, dialogues: str | None, language: str | None,
    config: str | None, number: int, output: str, browser: bool,
) -> None:  # fmt: skip
    """Write the page of a HIT as shown to workers in the preview, and open it.

    TUPLES is a tuples file whose groups are dialogue ids or, depending on the setting `kind`, a table of
    sentence pairs or of pairs with conditions. With -o - the page is written to standard output.
    """
    from bws.base.text import write_atomic
    from mturk.kinds.pages import preview_page

    plans = _plan_study(console, tuples, dialogues, language, config, anchors).all_hits
    if number > len(plans):
        raise click.BadParameter(
            f"{number} is out of range; expected 1 to {len(plans)}", param_hint="--hit"
        )
    plan = plans[number - 1]
    write_atomic(output, preview_page(plan))
    if output == "-":
        return
    size = len(plan.question.encode())
    page = {"page": os.path.abspath(output), "hit": number, "hits": len(plans), "bytes": size}
    console.answer(f"{output}: HIT {number} of {len(plans)}, {size} bytes of 65535", page)
    if browser:
        click.launch(os.path.abspath(output))


@command(
    "giccs annotate publish",
    example="""
    giccs annotate publish tuples.csv --dialogues dialogues.jsonl
    giccs annotate publish tuples.csv --dialogues dialogues.jsonl --config hits.toml --ledger study.db
    giccs annotate publish tuples.csv --dialogues dialogues.jsonl --endpoint https://work.example.org
    giccs annotate publish pairs.csv --config conditions.toml
    giccs annotate publish tuples.csv --dialogues dialogues.jsonl --anchors plan.csv
    """,
    interrupt_message="published HITs are recorded in {ledger}; run the same command to publish the rest",
)
@study_options
@option(
    "--endpoint",
    "Service: local, sandbox, production or a URL; for a published study, its new address, if it has "
    "changed.  [default: that of the ledger, or local]", metavar="WHERE",
)  # fmt: skip
@option(
    "--confirm-production insist_on_production", "Allow calls to Mechanical Turk itself, which has closed.",
    is_flag=True,
    former_names="--insist-on-production",
    show_default=False,
)  # fmt: skip
@ledger_option
@yes_option
def publish(
    console: Console, tuples: str, anchors: str | None, dialogues: str | None, language: str | None,
    config: str | None, endpoint: str | None, insist_on_production: bool, ledger: str, yes: bool,
) -> None:  # fmt: skip
    """Create the HITs of a study, each exactly once.

    TUPLES is a tuples file whose groups are dialogue ids or, depending on the setting `kind`, a table of
    sentence pairs or of pairs with conditions. All HITs are rendered, checked and priced before the first
    call. After an interruption, run the same command to continue; existing HITs are detected. With --anchors,
    HITs of their own follow, in which each assignment of a dialogue gets one anchor of the plan; they can be
    added to a published study. For remote
    services, the cost must be typed to confirm; with --yes only if the pay per hour is below 5 or above 100
    dollars, since the reward may be in cents.
    """
    from mturk.study.client import connect, resolve
    from mturk.study.ledger import Ledger

    with arguments():
        service = resolve(
            endpoint or _published_at(ledger) or "local", insist_on_production=insist_on_production
        )
    study = _plan_study(console, tuples, dialogues, language, config, anchors)
    price = _estimate_cost(study)
    _check_limit(price, study.settings, config)
    _warn_about_wage(console, price, config)
    client = connect(service)
    with Ledger.open(ledger, create=True) as opened_ledger, opened_ledger.exclusive_lock():
        _publish(console, client, opened_ledger, study, service, yes)


def _published_at(path: str) -> str:
    """Return the address of the service at which the study of a ledger was published; else an empty text."""
    from mturk.study.ledger import Ledger

    if not os.path.exists(path):
        return ""
    with Ledger.open(path) as ledger:
        return service_address(ledger) if ledger.is_published() else ""


def _publish(
    console: Console, client: Any, ledger: Ledger, study: PlannedStudy, service: Endpoint, yes: bool
) -> None:
    import time

    from mturk.money import unusual_pay
    from mturk.study.publish import adopt_hits, create_hits, unpublished_cost, unpublished_hits

    is_published = ledger.is_published()
    if is_published:
        record_address(console, client, ledger, service)
    elif study.anchors and study.rounds:
        message = (
            "tuples in rounds have no anchors before the last round; publish without --anchors now, and with "
            "it after the last round"
        )
        raise click.UsageError(message)
    ledger.start_study(
        service.url, study.settings, study.hits, time.time(), study.rounds, study.controls
    )
    if study.anchors:
        ledger.add_anchors(study.anchors, study.settings.assignments)
    before = len(ledger.hits()) - len(unpublished_hits(ledger))
    adoption = adopt_hits(client, ledger)
    _warn_about_duplicates(console, adoption)
    cost = unpublished_cost(ledger)
    _check_balance(client, cost)
    settings = ledger.study().settings
    is_unpaid = settings.volunteers and not service.amazon
    doubt = unusual_pay(settings.reward, settings.expected_seconds)
    if not service.loopback and cost and (doubt or not yes) and not is_unpaid:
        _confirm(len(unpublished_hits(ledger)), cost, service)
    try:
        n_created = create_hits(
            client, ledger, progress=lambda hits: console.progress(hits, "publishing", len(hits))
        )
    except (KeyboardInterrupt, OSError):
        left = len(unpublished_hits(ledger))
        console.note(f"{left} of {len(ledger.hits())} HITs are not published yet")
        raise
    _print_summary(
        console,
        ledger,
        service,
        {"published_before": before, "adopted": adoption.n_adopted, "created": n_created},
    )


def _plan_study(
    console: Console,
    tuples: str,
    dialogues: str | None,
    language: str | None,
    config: str | None,
    anchors: str | None,
) -> PlannedStudy:
    from mturk.catalogues.source import page_notes

    study = plan_of(tuples, dialogues, language, config)
    folders = () if config in (None, "-") else (Path(str(config)).absolute().parent,)
    if anchors is not None:
        from mturk.kinds.tuples.anchors.plan import plan_anchors

        planned_anchors = plan_anchors(anchors, study, folders)
        notes = (*study.notes, *planned_anchors.notes)
        study = replace(study, anchors=planned_anchors, notes=notes)
    for text in (*study.notes, *page_notes(study.settings, folders)):
        console.note(f"note: {text}")
    return study


def plan_of(
    tuples: str, dialogues: str | None, language: str | None, config: str | None
) -> PlannedStudy:
    """Plan the study of a tuples file with the settings of a file, or the built-in ones."""
    from mturk.kinds import get_kind
    from mturk.study.settings_file import SettingsFile, read_settings_file

    settings = SettingsFile() if config is None else read_settings_file(config)
    return get_kind(settings.kind).plan(tuples, dialogues, settings, language)


def _estimate_cost(study: PlannedStudy) -> CostEstimate:
    from mturk.study.cost import estimate_cost

    return estimate_cost([study.settings.assignments] * len(study.all_hits), study.settings)


def _document(price: CostEstimate, service: Endpoint) -> dict[str, Any]:
    from mturk.money import round_to_cents

    return {
        "hits": price.hits,
        "assignments": price.assignments,
        "reward": str(price.reward),
        "rewards": str(price.rewards),
        "fees": str(price.fees),
        "total": str(price.total),
        "imaginary": not service.amazon,
        "hourly_usd": str(round_to_cents(price.hourly_usd)),
        "hourly": str(round_to_cents(price.hourly)),
        "minimum_wage": str(price.minimum),
        "below_minimum_wage": price.below_minimum,
        "currency": price.currency,
        "exchange_rate": str(price.exchange_rate),
        "expected_seconds": price.expected_seconds,
    }


def _warn_about_wage(console: Console, price: CostEstimate, config: str | None) -> None:
    from mturk.money import round_to_cents, unusual_pay

    if doubt := unusual_pay(price.reward, price.expected_seconds):
        console.warn([Problem(config or "settings", None, doubt)])
    if price.below_minimum:
        unit = price.currency
        message = (
            f"workers of the expected speed earn {round_to_cents(price.hourly)} {unit} per hour, below the "
            f"minimum wage of {price.minimum} {unit}; the minimum reward is {price.reward_for_minimum}"
        )
        console.warn([Problem(config or "settings", None, message)])


def _check_limit(price: CostEstimate, settings: Settings, config: str | None) -> None:
    if settings.spending_limit and price.total > settings.spending_limit:
        message = (
            f"the study costs ${price.total} including fees; spending_limit is "
            f"${settings.spending_limit}"
        )
        raise InputError(Problem(config or "settings", None, message))


def _check_balance(client: Any, cost: Decimal) -> None:
    from mturk.study.client import ServiceError
    from mturk.study.publish import available_balance

    if cost and (balance := available_balance(client)) < cost:
        raise ServiceError(f"the HITs cost ${cost} including fees, but the balance is ${balance}")


def _confirm(hits: int, cost: Decimal, service: Endpoint) -> None:
    """Ask the user to type the amount to confirm."""
    echo(f"{hits} HITs at {service.url} cost ${cost} including fees.", err=True)
    type_amount(cost, "Type the amount to publish", "nothing was published")


def _warn_about_duplicates(console: Console, adoption: AdoptedHits) -> None:
    console.warn(
        [
            Problem(hit_id, None, f"duplicate HIT for {annotation}; expire it at the service")
            for annotation, hit_id in adoption.duplicates
        ]
    )


def _print_summary(
    console: Console, ledger: Ledger, service: Endpoint, counts: dict[str, int]
) -> None:
    from mturk.study.cost import estimate_cost, format_estimate

    hits = ledger.hits()
    study = ledger.study()
    price = estimate_cost([hit.max_assignments for hit in hits], study.settings)
    message = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count
    )
    text = f"{len(hits)} HITs at {service.url}: {message}; ledger {ledger.path}"
    document = {
        "endpoint": service.url,
        "ledger": ledger.path,
        "hit_type_id": study.hit_type_id,
        **counts,
        "left": sum(hit.hit_id is None for hit in hits),
        **_document(price, service),
    }
    console.answer(f"{text}\n{format_estimate(price, imaginary=not service.amazon)}", document)
