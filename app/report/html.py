"""Write the report of a folder: one file that needs no network and no script."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from app.report.annotation import agreement_section, reliability_section, study_section
from app.report.benchmark import benchmark_sections
from app.report.content import Section
from app.report.inputs import Inputs
from app.report.models import model_sections, signature_section, source_of_results
from bws.textio import write_atomic

__all__ = ["sections", "write_page"]

TITLE = "A conversational similarity benchmark, and how models do on it"
SIMULATED = (
    "No person was asked: the annotators of these data are simulated, so every score, and every number "
    "that rests on scores, is for trying the tools out and not for reporting."
)
LEAD = (
    "From dialogues over best–worst judgments to a benchmark and to models. Every number below can be "
    "found again by the command beside it, run in the folder of this file.",
)
CITE = (
    "If you use the method: Shima Asaadi, Zahra Kolagar, Alina Liebel and Alessandra Zarcone (2022), "
    "GiCCS: A German in-Context Conversational Similarity Benchmark.",
    "If you use the software: The giccs developers, giccs: conversational semantic textual similarity, "
    "from dialogues to model evaluation, version {version}.",
)
MARK = re.compile(rb'<meta name="giccs-inputs" content="(\w+)">')


def write_page(inputs: Inputs, path: str | os.PathLike[str]) -> bool:
    """Write the page; return False where it stands there already, made from the same files.

    InputError where a file of the folder cannot be used.
    """
    target, digest = Path(path), _digest(inputs)
    if _made_from(target) == digest:
        return False
    write_atomic(target, _rendered(inputs, digest))
    return True


def _made_from(page: Path) -> str:
    found = MARK.search(page.read_bytes()) if page.is_file() else None
    return found[1].decode() if found else ""


def sections(inputs: Inputs) -> Iterator[Section]:
    """Yield the sections of a page, in their order; those without files are left out."""
    results, halves = source_of_results(inputs), None
    if inputs.has(*inputs.study):
        yield study_section(inputs)
    dialogues, scores = benchmark_sections(inputs)
    yield dialogues
    if inputs.judgments is not None:
        yield agreement_section(inputs, inputs.judgments)
        reliability, halves = reliability_section(inputs, inputs.judgments)
        yield reliability
    yield scores
    yield from model_sections(inputs, results)
    yield signature_section(inputs, results, halves)
    cite = [line.format(version=version("giccs")) for line in CITE]
    yield Section("cite", "How to cite", cite, about_scores=False)


def _digest(inputs: Inputs) -> str:
    """Return what the page depends on: the folder's files, this version, the templates."""
    parts = [inputs.digest(), version("giccs"), _template("page.html"), _template("page.css")]
    return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()


def _template(name: str) -> str:
    return (resources.files("app.report") / "templates" / name).read_text("utf-8")


def _rendered(inputs: Inputs, digest: str) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_template("page.html")).render(
        title=TITLE,
        lead=LEAD,
        simulated=SIMULATED if inputs.simulated else "",
        sections=list(sections(inputs)),
        css=Markup(_template("page.css")),  # noqa: S704 - a file of this package
        digest=digest,
        made=f"Made by giccs {version('giccs')}.",
    )
