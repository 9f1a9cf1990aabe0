"""Lemmatisation of texts."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from giccs.benchmark.languages import base_language

if TYPE_CHECKING:
    from spacy.language import Language

MODEL_NAMES = ("{lang}_core_news_sm", "{lang}_core_web_sm")
UNUSED_COMPONENTS = ("parser", "ner", "entity_linker")
"""Components of a trained pipeline that do not affect lemmas."""


@dataclass(frozen=True, slots=True)
class Lemmatiser:
    """Converts texts to lemmas; report its name with every number based on it."""

    name: str
    """For example ``spaCy de_core_news_sm 3.8.0``, or ``spaCy blank de with simplemma 2.0.0``."""
    lang: str
    pipeline: Language
    remarks: tuple[str, ...] = ()
    """Reasons why an installed model was not used."""

    def lemmas(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the lemmas of each text's words, in order and in lower case.

        A word is a token that contains a letter or a digit. Lower case is used because no lemmatiser reliably
        distinguishes a capitalised word at the beginning of a clause („Schön, …“) from a noun. As a
        consequence, a verb and a noun with the same spelling („essen“, „das Essen“) have the same lemma.
        """
        for doc in self.pipeline.pipe(texts):
            yield [(token.lemma_ or token.text).lower() for token in doc if _is_word(token.text)]


def lemmatiser(lang: str) -> Lemmatiser:
    """Return spaCy's small trained model of a language if it is installed, otherwise simplemma's tables.

    The paper used ``de_core_news_sm`` 3.3.0. An installed package with such a name is used only as data (no
    code is executed), and only if it is one of spaCy's models: its version has spaCy's major version and
    equals that in its ``meta.json``, as do language and name. Packages of other authors exist under these
    names in package registries.

    lang: BCP 47 tag; script and region are ignored.

    Raises ValueError for an unsupported language, with the supported ones.
    """
    import spacy

    lang = base_language(lang)
    remarks: list[str] = []
    for name in (model.format(lang=lang) for model in MODEL_NAMES):
        try:
            version = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):
            continue
        if folder := _model_folder(name, lang):
            pipeline = spacy.load(folder, exclude=UNUSED_COMPONENTS)
            return Lemmatiser(f"spaCy {name} {version}", lang, pipeline, tuple(remarks))
        remarks.append(f"{name} {version} is installed but is not a model of spaCy; ignored")
    if lang not in (supported := supported_languages()):
        raise ValueError(f"lang is {lang!r}; expected one of {', '.join(supported)}")
    pipeline = spacy.blank(lang)
    _register_simplemma()
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("simplemma")
    name = f"spaCy blank {lang} with simplemma {metadata.version('simplemma')}"
    return Lemmatiser(name, lang, pipeline, tuple(remarks))


def supported_languages() -> tuple[str, ...]:
    """Return the languages with a tokenizer in spaCy and tables in simplemma."""
    import spacy.lang
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    tokenised = {module.name for module in pkgutil.iter_modules(spacy.lang.__path__)}
    return tuple(sorted(tokenised & SUPPORTED_LANGUAGES))


def _model_folder(name: str, lang: str) -> Path | None:
    """Return the data folder of a trained model, or None if it is not one of spaCy's."""
    package = metadata.distribution(name)
    folder = Path(str(package.locate_file(f"{name}/{name}-{package.version}")))
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        stated = (f"{meta['lang']}_{meta['name']}", meta["lang"], meta["version"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    is_spacy_model = stated == (name, lang, package.version)
    has_major_version = package.version.split(".")[0] == metadata.version("spacy").split(".")[0]
    return (
        folder
        if is_spacy_model and has_major_version and (folder / "config.cfg").is_file()
        else None
    )


def _register_simplemma() -> None:
    """Register simplemma as a pipeline component of spaCy."""
    from simplemma import lemmatize
    from spacy.language import Language

    if Language.has_factory("simplemma"):
        return

    @Language.factory("simplemma", requires=["token.is_sent_start"], assigns=["token.lemma"])
    def component(nlp: Language, name: str) -> Any:
        def set_lemmas(doc: Any) -> Any:
            at_start = True
            for token in doc:
                # Capitals distinguish nouns from verbs, but not at the start of a sentence („Soll ich …?“):
                # of 583 beginnings in giccs-sample, 43 change their lemma, few of them for the worse.
                at_start = at_start or token.is_sent_start
                form = token.text.lower() if at_start else token.text
                token.lemma_ = lemmatize(form, nlp.lang or "")
                at_start = at_start and not _is_word(token.text)
            return doc

        return set_lemmas


def _is_word(token: str) -> bool:
    return any(letter.isalnum() for letter in token)
