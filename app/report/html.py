"""Write the report of a folder: one file that needs no network and no script."""

from __future__ import annotations

import hashlib
import os
import re
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from app.report.inputs import Inputs
from app.report.sections import sections
from bws.textio import write_atomic

__all__ = ["write_page"]

TITLE = "A conversational similarity benchmark, and how models do on it"
SIMULATED = (
    "No person was asked: the annotators of these data are simulated, so every score, and every number "
    "that rests on scores, is for trying the tools out and not for reporting."
)
LEAD = (
    "From dialogues over best–worst judgments to a benchmark and to models. Every number below can be "
    "found again by the command beside it, run in the folder of this file.",
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
