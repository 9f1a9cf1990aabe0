"""Texts that templates use, names of countries, and the choice of a language."""

import re
from importlib import resources

import pytest

from mturk.service.site import texts
from mturk.service.site.countries import countries, country_names


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
        ("cy-GB,de;q=0.4", "de"),
        ("de;q=0.4,es-MX", "es"),
        ("cy", "en"),
        ("de;q=0", "en"),
        ("de;q=nonsense, en;q=0.1", "en"),
        (";;;,", "en"),
    ],
)
def test_the_browser_chooses_the_language(accepted, language):
    assert texts.choose_language(accepted) == language
