"""Every requirement that the service can name is said in both languages."""

import pytest

from mturk.service.rules.eligibility import COMPARE, LOCALE, SYSTEM_TYPES, WORDS, Standing, unmet
from mturk.service.site.requirements import HOW, NAMES, in_words

NOBODY = Standing(values={}, names={"3Q": "Reads German"}, country=None, subdivision=None)


def lines(type_id, comparator):
    one = {"QualificationTypeId": type_id, "Comparator": comparator, "IntegerValues": [98]}
    if type_id == LOCALE:
        one |= {
            "IntegerValues": [],
            "LocaleValues": [{"Country": "DE"}, {"Country": "US", "Subdivision": "NY"}],
        }
    return unmet([one], NOBODY)


@pytest.mark.parametrize("comparator", sorted(set(COMPARE) - {"DoesNotExist"}))
@pytest.mark.parametrize("type_id", [*SYSTEM_TYPES, "3Q"])
def test_no_internal_name_is_left(type_id, comparator):
    for line in lines(type_id, comparator):
        german, english = in_words(line, "de"), in_words(line, "en")
        assert "Worker_" not in german + english
        assert german != line
        assert english != line


def test_the_words_for_places_and_parts_of_them():
    (line,) = lines(LOCALE, "In")
    assert in_words(line, "en") == "Country you live in: one of Germany, United States (NY)"
    assert in_words("Reads German is required", "de") == "Reads German: wird verlangt"
    assert in_words("something else", "de") == "something else"


def test_all_comparators_and_the_workers_own_types_have_words():
    assert set(WORDS.values()) <= set(HOW)
    named = {name for name in SYSTEM_TYPES.values() if name.startswith("Worker_")}
    assert named == set(NAMES)
