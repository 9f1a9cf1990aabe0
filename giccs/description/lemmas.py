"""Which base forms does a text have, and who says so?"""

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

__all__ = ["Lemmatiser", "lemmatiser", "supported_languages"]

MODEL_NAMES = ("{lang}_core_news_sm", "{lang}_core_web_sm")
UNUSED_COMPONENTS = ("parser", "ner", "entity_linker")
"""Parts of a trained pipeline on which no lemma depends."""


@dataclass(frozen=True, slots=True)
class Lemmatiser:
    """Turns texts into lemmas; its name belongs beside every number made with it."""

    name: str
    """For instance ``spaCy de_core_news_sm 3.8.0``, or ``spaCy blank de with simplemma 2.0.0``."""
    lang: str
    pipeline: Language
    remarks: tuple[str, ...] = ()
    """Why an installed model was not used."""

    def lemmas(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the lemmas of each text's words, in their order, in lower case.

        A word is a token with a letter or a digit in it; punctuation, spaces and lone symbols are none.
        Case is dropped because no lemmatiser always tells a word that begins a clause („Schön, …“) from a
        noun; the price is that a verb and a noun of one spelling („essen“, „das Essen“) are one lemma.
        """
        for doc in self.pipeline.pipe(texts):
            yield [(token.lemma_ or token.text).lower() for token in doc if _is_word(token.text)]


def lemmatiser(lang: str) -> Lemmatiser:
    """Return spaCy's small trained model of a language where it is installed, otherwise simplemma's tables.

    The paper used ``de_core_news_sm`` 3.3.0. Of an installed package of such a name only data is read (no
    code is run), and only if it is one of spaCy's models: its version is of spaCy's major version and is
    the one in its ``meta.json``, as are language and name. Others took these names on package registries.

    lang: BCP 47 tag; script and region are ignored.

    Raises ValueError for a language for which there is neither, with those for which there is one.
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
        remarks.append(f"{name} {version} is installed, but is no model of spaCy's; not used")
    if lang not in (supported := supported_languages()):
        raise ValueError(f"lang is {lang!r}; there are lemmas of {', '.join(supported)}")
    pipeline = spacy.blank(lang)
    _register_simplemma()
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("simplemma")
    name = f"spaCy blank {lang} with simplemma {metadata.version('simplemma')}"
    return Lemmatiser(name, lang, pipeline, tuple(remarks))


def supported_languages() -> tuple[str, ...]:
    """Return the languages that spaCy splits into tokens and simplemma has tables of."""
    import spacy.lang
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    tokenised = {module.name for module in pkgutil.iter_modules(spacy.lang.__path__)}
    return tuple(sorted(tokenised & SUPPORTED_LANGUAGES))


def _model_folder(name: str, lang: str) -> Path | None:
    """Return the folder of a trained model's data; None where it is not one of spaCy's."""
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
    """Make simplemma a component that spaCy can add to a pipeline."""
    from simplemma import lemmatize
    from spacy.language import Language

    if Language.has_factory("simplemma"):
        return

    @Language.factory("simplemma", requires=["token.is_sent_start"], assigns=["token.lemma"])
    def component(nlp: Language, name: str) -> Any:
        def set_lemmas(doc: Any) -> Any:
            at_start = True
            for token in doc:
                # capitals tell nouns from verbs, but not where a sentence begins („Soll ich …?“):
                # of 583 beginnings in giccs-sample 43 change their lemma so, and few for the worse
                at_start = at_start or token.is_sent_start
                form = token.text.lower() if at_start else token.text
                token.lemma_ = lemmatize(form, nlp.lang or "")
                at_start = at_start and not _is_word(token.text)
            return doc

        return set_lemmas


def _is_word(token: str) -> bool:
    return any(letter.isalnum() for letter in token)
