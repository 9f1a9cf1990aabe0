"""What a benchmark and its tasks are called in other tools."""

from __future__ import annotations

import re
from pathlib import PurePath

from giccs.benchmark.languages import base_language

__all__ = ["in_a_path", "mteb_language", "slug", "task_name"]

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
"""Two-letter language -> ISO 639-3 code and usual script, as mteb writes languages."""

LONGEST = 200
"""Characters of a name; file systems allow 255 bytes."""


def in_a_path(text: str) -> str:
    """Return a text as one name in a path, never a way out: strangers name what they like.

    >>> in_a_path("results_2026-01-31.json"), in_a_path("../../.ssh"), in_a_path("..")
    ('results_2026-01-31.json', '_.._.ssh', '_')
    """
    return re.sub(r"[/\\\x00]", "_", text).lstrip(".")[-LONGEST:] or "_"


def slug(data: str) -> str:
    """Return the name of a benchmark (a file, a hub id) in lower case, with underscores.

    >>> slug("giccs-sample"), slug("sasaadi/GiCCS@main"), slug("my/benchmark.jsonl")
    ('giccs_sample', 'giccs', 'giccs_benchmark')
    """
    name = PurePath(data.partition("@")[0]).name.removesuffix(".gz").removesuffix(".jsonl")
    plain = re.sub(r"\W+", "_", name).strip("_").lower()
    return plain if plain.startswith("giccs") else f"giccs_{plain}".rstrip("_")


def mteb_language(tag: str) -> str:
    """Return a BCP 47 tag as mteb writes languages; ValueError where the three-letter code is not known.

    A tag of a three-letter code and a script is returned as it is.

    >>> mteb_language("de-AT"), mteb_language("zh-Hant-TW"), mteb_language("gsw-Latn")
    ('deu-Latn', 'zho-Hant', 'gsw-Latn')
    """
    base = base_language(tag)
    scripts = [part for part in tag.split("-")[1:2] if len(part) == 4 and part.isalpha()]
    code, _, usual = MTEB_LANGUAGES.get(base, base if len(base) == 3 else "").partition("-")
    script = scripts[0] if scripts else usual
    if not code or not script:
        message = f"mteb's code of {tag} is not known; expected an ISO 639-3 code and a script"
        raise ValueError(f"{message}, such as gsw-Latn, as the language of the data")
    return f"{code}-{script}"


def task_name(data: str, task: str, history: str) -> str:
    """Return the name of a task under one history.

    >>> task_name("giccs-sample", "multiple_choice", "without")
    'giccs_sample_multiple_choice_without_history'
    """
    return f"{slug(data)}_{task}_{history}_history"
