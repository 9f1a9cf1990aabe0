"""What exported files state of their texts: licence, attribution, annotators and language."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from giccs.benchmark import Benchmark, known_terms
from giccs.benchmark.languages import data_language
from giccs.benchmark.terms import Terms
from giccs.description.card.stated import Stated, read_stated, with_stated
from giccs.evaluation.interop.names import slug

__all__ = ["Provenance", "provenance"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Terms and language of a benchmark."""

    data: str
    """The benchmark, as it was called."""
    fingerprint: str
    terms: Terms
    language: str | None
    """BCP 47 tag; None where it is unknown."""

    @property
    def file(self) -> str:
        """Return the name of the file with the notice."""
        return f"{slug(self.data)}_LICENCE.txt"

    def notice(self) -> str:
        """Return the text that accompanies exported files."""
        head = [
            f"Exported by giccs from {self.data} (fingerprint {self.fingerprint[:12]}).",
            *self.terms.lines(),
            f"Language: {self.language or 'unknown'}",
        ]
        return "\n".join(head) + "\n"

    def comment(self) -> str:
        """Return the terms as lines of a comment in Python or YAML."""
        return "".join(f"# {line}\n" for line in self.terms.lines())

    def document(self) -> dict[str, Any]:
        """Return what is stated as a dict; null where it is unknown."""
        return {
            "license": self.terms.license or None,
            "license_link": self.terms.license_link or None,
            "annotators": self.terms.annotators,
            "language": self.language,
        }


def provenance(
    benchmark: Benchmark,
    config: str | os.PathLike[str] | None = None,
    language: str | None = None,
) -> Provenance:
    """Return what is known of a benchmark and what card.toml, `config`, states besides.

    language: BCP 47 tag of items that state none. Raises InputError where card.toml or the language
    contradict what is known.
    """
    stated = read_stated(config) if config else Stated({})
    listed = stated.texts("language")
    option = language or (listed[0] if len(listed) == 1 else None)
    return Provenance(
        benchmark.name,
        benchmark.fingerprint,
        with_stated(known_terms(benchmark), stated, benchmark.name),
        data_language(benchmark.items, benchmark.name, option),
    )
