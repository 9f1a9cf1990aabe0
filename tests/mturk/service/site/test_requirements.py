"""Every requirement has a description in both languages."""

import pytest

from mturk.service.rules.eligibility import (
    COMPARATOR_PHRASES,
    COMPARATORS,
    LOCALE,
    SYSTEM_TYPES,
    WorkerQualifications,
    unmet_requirements,
)
from mturk.service.site.requirements import describe_requirement
from mturk.service.site.texts import TEXTS

NOBODY = WorkerQualifications(
    values={}, names={"3Q": "Reads German"}, country=None, subdivision=None
)


def lines(type_id, comparator):
    one = {"QualificationTypeId": type_id, "Comparator": comparator, "IntegerValues": [98]}
    if type_id == LOCALE:
        one |= {
            "IntegerValues": [],
            "LocaleValues": [{"Country": "DE"}, {"Country": "US", "Subdivision": "NY"}],
        }
    return unmet_requirements([one], NOBODY)


@pytest.mark.parametrize("comparator", sorted(set(COMPARATORS) - {"DoesNotExist"}))
@pytest.mark.parametrize("type_id", [*SYSTEM_TYPES, "3Q"])
def test_no_internal_name_is_left(type_id, comparator):
    for line in lines(type_id, comparator):
        german, english = describe_requirement(line, "de"), describe_requirement(line, "en")
        assert "Worker_" not in german + english
        assert german != line
        assert english != line


def test_the_words_for_places_and_parts_of_them():
    (line,) = lines(LOCALE, "In")
    assert (
        describe_requirement(line, "en")
        == "Country you live in: one of Germany, United States (NY)"
    )
    assert describe_requirement("Reads German is required", "de") == "Reads German: erforderlich"
    assert describe_requirement("something else", "de") == "something else"


def test_all_comparators_and_the_workers_own_types_have_words():
    names = {name for name in SYSTEM_TYPES.values() if name.startswith("Worker_")}
    phrases = {*COMPARATOR_PHRASES.values(), "required", "not allowed"}
    assert {key for key in TEXTS if key.startswith("requirement.")} == {
        f"requirement.{name}" for name in names | phrases
    }
