"""Metadata in exported files: names, language, licence, attribution and annotators."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePath
from typing import Any

from bws.stats.estimates import Estimate
from giccs.benchmark import Benchmark, known_terms
from giccs.benchmark.languages import base_language, data_language
from giccs.benchmark.terms import Terms
from giccs.description.card.stated import Stated, read_stated, with_stated
from giccs.measures.results import Result, history_of

PAPER_TITLE = "GiCCS: A German in-Context Conversational Similarity Benchmark"
"""The paper that introduced both tasks."""
PAPER_LINK = "https://aclanthology.org/2022.gem-1.30/"
PAPER_CITATION = """\
@inproceedings{asaadi2022giccs,
  author = {Asaadi, Shima and Kolagar, Zahra and Liebel, Alina and Zarcone, Alessandra},
  booktitle = {Proceedings of the 2nd Workshop on Natural Language Generation, Evaluation, and Metrics (GEM)},
  publisher = {Association for Computational Linguistics},
  title = {{GiCCS}: A {G}erman in-Context Conversational Similarity Benchmark},
  url = {https://aclanthology.org/2022.gem-1.30/},
  year = {2022},
}
"""

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
COMMIT = re.compile(r"[0-9a-f]{40}")

MTEB_LANGUAGES = {
    "ar": "ara-Arab", "bg": "bul-Cyrl", "bn": "ben-Beng", "ca": "cat-Latn", "cs": "ces-Latn",
    "da": "dan-Latn", "de": "deu-Latn", "el": "ell-Grek", "en": "eng-Latn", "es": "spa-Latn",
    "et": "est-Latn", "eu": "eus-Latn", "fa": "fas-Arab", "fi": "fin-Latn", "fr": "fra-Latn",
    "ga": "gle-Latn", "gl": "glg-Latn", "he": "heb-Hebr", "hi": "hin-Deva", "hr": "hrv-Latn",
    "hu": "hun-Latn", "id": "ind-Latn", "is": "isl-Latn", "it": "ita-Latn", "ja": "jpn-Jpan",
    "ko": "kor-Hang", "lt": "lit-Latn", "lv": "lav-Latn", "mt": "mlt-Latn", "nb": "nob-Latn",
    "nl": "nld-Latn", "nn": "nno-Latn", "pl": "pol-Latn", "pt": "por-Latn", "ro": "ron-Latn",
    "ru": "rus-Cyrl", "sk": "slk-Latn", "sl": "slv-Latn", "sr": "srp-Cyrl", "sv": "swe-Latn",
    "sw": "swh-Latn", "th": "tha-Thai", "tr": "tur-Latn", "uk": "ukr-Cyrl", "vi": "vie-Latn",
    "zh": "zho-Hans",
}  # fmt: skip
"""Two-letter language -> ISO 639-3 code and usual script, in the notation of mteb."""

MAX_NAME_LENGTH = 200
"""Maximum number of characters of a name; file systems allow 255 bytes."""


def path_component(text: str) -> str:
    """Return a text as a single, safe path component; names may come from untrusted sources.

    >>> path_component("results_2026-01-31.json"), path_component("../../.ssh"), path_component("..")
    ('results_2026-01-31.json', '_.._.ssh', '_')
    """
    return re.sub(r"[/\\\x00]", "_", text).lstrip(".")[-MAX_NAME_LENGTH:] or "_"


def slug(data: str) -> str:
    """Return the name of a benchmark (a file, a hub id) in lower case, with underscores.

    >>> slug("giccs-sample"), slug("sasaadi/GiCCS@main"), slug("my/benchmark.jsonl")
    ('giccs_sample', 'giccs', 'giccs_benchmark')
    """
    name = PurePath(data.partition("@")[0]).name.removesuffix(".gz").removesuffix(".jsonl")
    plain = re.sub(r"\W+", "_", name).strip("_").lower()
    return plain if plain.startswith("giccs") else f"giccs_{plain}".rstrip("_")


def mteb_language(tag: str) -> str:
    """Return a BCP 47 tag in the notation of mteb; raise ValueError if the three-letter code is unknown.

    A tag of a three-letter code and a script is returned unchanged.

    >>> mteb_language("de-AT"), mteb_language("zh-Hant-TW"), mteb_language("gsw-Latn")
    ('deu-Latn', 'zho-Hant', 'gsw-Latn')
    """
    base = base_language(tag)
    scripts = [part for part in tag.split("-")[1:2] if len(part) == 4 and part.isalpha()]
    code, _, default_script = MTEB_LANGUAGES.get(base, base if len(base) == 3 else "").partition(
        "-"
    )
    script = scripts[0] if scripts else default_script
    if not code or not script:
        message = f"mteb's code of {tag} is unknown; expected an ISO 639-3 code and a script"
        raise ValueError(f"{message}, such as gsw-Latn, as the language of the data")
    return f"{code}-{script}"


def task_name(data: str, task: str, history: str) -> str:
    """Return the name of a task for one history.

    >>> task_name("giccs-sample", "multiple_choice", "without")
    'giccs_sample_multiple_choice_without_history'
    """
    return f"{slug(data)}_{task}_{history}_history"


def hub_id_of_model(result: Result) -> str | None:
    """Return the id on the hub of a result's model, or None if its revision is not a commit."""
    location = result.model.rpartition(":")[2]
    revision = str(result.signature.get("revision", ""))
    return location if HUB_ID.fullmatch(location) and COMMIT.fullmatch(revision) else None


def metrics_by_history(result: Result) -> dict[str, Mapping[str, Estimate]]:
    """Return history condition -> metrics of a pairwise or multiple-choice result."""
    if result.task == "pairwise-sts":
        return {history_of(result): result.metrics}
    return {
        str(group.by["history"]): group.metrics
        for group in result.groups
        if set(group.by) == {"history"}
    }


@dataclass(frozen=True, slots=True)
class Provenance:
    """Terms and language of a benchmark."""

    data: str
    """The name or path of the benchmark."""
    fingerprint: str
    terms: Terms
    language: str | None
    """BCP 47 tag; None if unknown."""
    card: Stated
    """Content of card.toml."""

    @property
    def citation(self) -> str:
        """Return the BibTeX entries of the paper that introduced the tasks and, if stated, of the data."""
        stated = self.card.text("citation")
        return f"{PAPER_CITATION}\n{stated}\n" if stated.startswith("@") else PAPER_CITATION

    @property
    def file(self) -> str:
        """Return the name of the file with the notice."""
        return f"{slug(self.data)}_LICENCE.txt"

    def notice(self) -> str:
        """Return the notice for exported files, with the text of the licence if the package contains it."""
        lines = [
            f"Exported by giccs from {self.data} (fingerprint {self.fingerprint[:12]}).",
            *self.terms.lines(),
            f"Language: {self.language or 'unknown'}",
        ]
        text = _license_text(self.terms.license)
        return "\n".join(lines) + "\n" + (f"\n{text}" if text else "")

    def comment(self) -> str:
        """Return the terms as a comment in Python or YAML."""
        return "".join(f"# {line}\n" for line in self.terms.lines())

    def document(self) -> dict[str, Any]:
        """Return the stated information as a dict; null if unknown."""
        return {
            "license": self.terms.license or None,
            "license_link": self.terms.license_link or None,
            "annotators": self.terms.annotators,
            "language": self.language,
        }


def read_provenance(
    benchmark: Benchmark,
    config: str | os.PathLike[str] | None = None,
    language: str | None = None,
) -> Provenance:
    """Return the terms of a benchmark, completed by card.toml, `config`.

    language: BCP 47 tag of items that state none. Raises InputError if card.toml or the language contradict
    the known terms.
    """
    card = read_stated(config) if config else Stated({})
    languages = card.texts("language")
    default_language = language or (languages[0] if len(languages) == 1 else None)
    return Provenance(
        benchmark.name,
        benchmark.fingerprint,
        with_stated(known_terms(benchmark), card, benchmark.name),
        data_language(benchmark.items, benchmark.name, default_language),
        card,
    )


def _license_text(license_id: str) -> str:
    """Return the text of a licence, or an empty string if the package does not contain it.

    >>> _license_text("cc-by-4.0").splitlines()[0], _license_text("mit"), _license_text("")
    ('Attribution 4.0 International', '', '')
    """
    files = {file.name: file for file in resources.files("giccs.data").iterdir()}
    file = files.get(f"{license_id.upper()}.txt")
    return file.read_text("utf-8") if file else ""
