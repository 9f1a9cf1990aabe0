"""Both languages have all texts with the same placeholders."""

import re
import string
from importlib import resources

import pytest

from mturk.service.site import texts
from mturk.service.site.countries import countries, country_names


def places(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("key", sorted(texts.TEXTS))
def test_both_languages_have_the_same_places_and_forms(key):
    german, english = texts.TEXTS[key]
    assert german.strip()
    assert english.strip()
    assert german.count("|") == english.count("|") <= 1
    for one, other in zip(german.split("|"), english.split("|"), strict=True):
        assert places(one) == places(other)


def test_every_text_a_template_asks_for_is_there():
    folder = resources.files("mturk.service.site") / "templates"
    used = {
        key
        for file in folder.iterdir()
        for key in re.findall(r'\bt\("([\w.]+)"[,)]', file.read_text(encoding="utf-8"))
    }
    assert len(used) > 50
    assert used <= set(texts.TEXTS)


def test_countries_are_those_of_iso_3166_and_kosovo():
    # ISO 3166-1 has 249 officially assigned codes; XK is the user-assigned code of Kosovo
    assert len(country_names("de")) == 250
    assert country_names("de").keys() == country_names("en").keys()
    assert {"AT", "CH", "DE", "GB", "US", "XK"} <= country_names("de").keys()
    assert not {"EU", "UN", "ZZ", "IC", "AC"} & country_names("de").keys()


def test_countries_are_in_alphabetical_order():
    names = [name for _, name in countries("de")]
    assert len(set(names)) == len(country_names("de"))
    assert names.index("Ägypten") < names.index("Albanien") < names.index("Zypern")
    assert names.index("Honduras") < names.index("Hongkong") < names.index("Indien")


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("en-GB,en;q=0.9,de;q=0.8", "en"),
        ("fr-FR,de;q=0.4", "de"),
        ("fr", "en"),
        ("de;q=0", "en"),
        ("de;q=nonsense, en;q=0.1", "en"),
        (";;;,", "en"),
    ],
)
def test_the_browser_chooses_the_language(accepted, language):
    assert texts.choose_language(accepted) == language
